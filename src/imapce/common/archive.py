"""Results on disk: one zip of a JSON header and .npy arrays, versioned, readable without this library, never pickle.

Reading trusts nothing: names, sizes, versions and numbers are checked before anything is built from them.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.whole_files import as_path, whole_file
from imapce.errors import FileFormatError, one_line

HEADER = "header.json"
MAX_HEADER_BYTES = 64 << 20
MAX_ARRAY_BYTES = 4 << 30
# A fixed date in every entry: the same model gives the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray],
) -> None:
    """Write `header` and `arrays` as one zip, atomically.

    >>> write_archive("view.imapce", "model", 1, {"k": 2}, {"mean": np.zeros(3)})
    >>> sorted(zipfile.ZipFile("view.imapce").namelist())
    ['header.json', 'mean.npy']
    """
    with whole_file(path) as stream:
        stream.write(archived(kind, version, header, arrays))


def archived(kind: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> bytes:
    """The bytes that `write_archive` writes; the same header and arrays give the same bytes.

    >>> archived("model", 1, {"k": 2}, {})[:2]
    b'PK'
    """
    text = json.dumps(
        {"format": f"imapce-{kind}", "version": version, **header},
        ensure_ascii=False,
        allow_nan=False,
        indent=1,
    )
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        _write_entry(archive, HEADER, text.encode())
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            _write_entry(archive, f"{name}.npy", buffer.getvalue())
    return whole.getvalue()


def _write_entry(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def read_archive(
    path: str | os.PathLike[str], kind: str, version: int, *, oldest: int | None = None
) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """The header and the arrays of a file written by `write_archive`, or one sentence about what is wrong with it.

    Files of versions from the `oldest` on are read as well; what they lack is left to the caller.

    >>> write_archive("view.imapce", "model", 1, {"k": 2}, {"mean": np.zeros(3)})
    >>> header, arrays = read_archive("view.imapce", "model", 1)
    >>> header["k"], arrays["mean"]
    (2, array([0., 0., 0.]))
    """
    source = as_path(path)
    if not source.is_file():
        raise FileFormatError("path", f"must name a saved imapce {kind}; {str(source)!r} is not a file.")
    try:
        with zipfile.ZipFile(source) as archive:
            header = _read_header(archive, kind, range(version if oldest is None else oldest, version + 1), source)
            arrays = {
                entry.filename.removesuffix(".npy"): _read_array(archive, entry)
                for entry in archive.infolist()
                if entry.filename != HEADER
            }
    except FileFormatError:
        raise
    # Damaged or hostile bytes can raise nearly anything: of the zip, an entry, the JSON or an array in it.
    except Exception as error:
        raise FileFormatError(
            f"{str(source)!r} is not a readable imapce {kind}, perhaps cut short or changed ({one_line(error)}); "
            "save it again."
        ) from error
    return header, arrays


def archive_kind(path: str | os.PathLike[str]) -> str | None:
    """What a file written by `write_archive` says it is, such as "model"; None where it says nothing of the kind.

    >>> write_archive("view.imapce", "model", 1, {}, {})
    >>> archive_kind("view.imapce")
    'model'
    """
    try:
        with zipfile.ZipFile(as_path(path)) as archive:
            if archive.getinfo(HEADER).file_size > MAX_HEADER_BYTES:
                return None
            said = json.loads(archive.read(HEADER)).get("format")
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, OSError, AttributeError, RecursionError, zlib.error):
        return None
    return said.removeprefix("imapce-") if isinstance(said, str) else None


def _read_header(archive: zipfile.ZipFile, kind: str, versions: range, source: Path) -> dict[str, Any]:
    names = archive.namelist()
    if len(set(names)) != len(names) or HEADER not in names:
        raise FileFormatError(f"{str(source)!r} is a zip but not a saved imapce {kind}: it has no single {HEADER}.")
    if archive.getinfo(HEADER).file_size > MAX_HEADER_BYTES:
        raise FileFormatError(f"{str(source)!r} has a header of more than {MAX_HEADER_BYTES >> 20} MiB; refused.")
    claimed = sum(entry.file_size for entry in archive.infolist())
    if claimed > MAX_ARRAY_BYTES:
        raise FileFormatError(f"{str(source)!r} claims to hold {claimed} bytes; refused.")
    header = json.loads(archive.read(HEADER), parse_constant=_refuse_constant)
    if not isinstance(header, dict) or header.get("format") != f"imapce-{kind}":
        found = header.get("format") if isinstance(header, dict) else type(header).__name__
        raise FileFormatError(f"{str(source)!r} must be a saved imapce {kind}; it says it is {found!r}.")
    said = header.get("version")
    if not isinstance(said, int) or isinstance(said, bool) or said not in versions:
        reads = f"version {versions[-1]}" if len(versions) == 1 else f"versions {versions[0]} to {versions[-1]}"
        raise FileFormatError(
            f"{str(source)!r} has format version {said!r} and this imapce reads {reads}; "
            "use the imapce that wrote it, or save it again."
        )
    return header


def _refuse_constant(name: str) -> float:
    raise ValueError(f"the header holds {name}")


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray:
    if not entry.filename.endswith(".npy") or "/" in entry.filename or "\\" in entry.filename:
        raise FileFormatError(
            f"a saved imapce file holds only .npy arrays beside its header; found {entry.filename!r}."
        )
    array = np.load(io.BytesIO(archive.read(entry)), allow_pickle=False)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise FileFormatError(f"array {entry.filename!r} must be numeric; found type {getattr(array, 'dtype', '?')}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise FileFormatError(f"array {entry.filename!r} holds NaN or inf; the file was not written by imapce.")
    return array


def in_json(value: Any) -> Any:
    """A number as a file holds it: JSON has no infinity and no NaN, so these are written as words float() reads.

    >>> in_json(2.5), in_json(float("inf"))
    (2.5, 'inf')
    """
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
