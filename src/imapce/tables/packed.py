"""Packed files: text behind .gz, .bz2 and .zst, and the one table in a .zip archive."""

from __future__ import annotations

import bz2
import gzip
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pyarrow as pa

from imapce.common.words import listing
from imapce.errors import FileFormatError, FileName, Sentence
from imapce.tables.named import Limit

PACKED = (".gz", ".bz2", ".zst")
ZIP = ".zip"


def unpacked_source(file: Path, suffix: str, limit: Limit, max_bytes: int | None = None) -> bytes:
    """What a file unpacks to; no more than the limit is unpacked to find that it is too much.

    >>> _ = Path("rows.csv.gz").write_bytes(gzip.compress(b"a"))
    >>> unpacked_source(Path("rows.csv.gz"), ".csv.gz", lambda size: None)
    b'a'
    """
    most = -1 if max_bytes is None else max_bytes + 1
    if suffix.endswith(".zst"):
        with pa.input_stream(str(file), compression="zstd") as stream:
            data = stream.read(None if most < 0 else most)
    else:
        with (gzip.open if suffix.endswith(".gz") else bz2.open)(file) as stream:
            data = stream.read(most)
    limit(len(data))
    return data


def unpacked_size(file: Path) -> int:
    """The bytes that a zip archive (.npz, .xlsx) unpacks to."""
    with zipfile.ZipFile(file) as archive:
        return sum(member.file_size for member in archive.infolist())


@contextmanager
def one_table_of_zip(file: Path, is_table: Callable[[str], bool], limit: Limit) -> Iterator[Path]:
    """The one table in an archive, unpacked to a file of its name that is gone afterwards."""
    with zipfile.ZipFile(file) as archive:
        # Macs add a shadow of every file, and hidden files are nobody's table.
        members = [
            member
            for member in archive.infolist()
            if not member.is_dir() and not any(map(_is_hidden, _parts(member.filename)))
        ]
        tables = [member for member in members if is_table(_parts(member.filename)[-1])]
        if len(tables) != 1:
            held = listing((repr(member.filename) for member in tables or members), 10)
            what = f"{len(tables)} tables ({held})" if tables else f"no table ({held})"
            raise FileFormatError(
                "path",
                "must name a .zip file with one table",
                Sentence(FileName(str(file)), f", which holds {what}"),
                way_out="unpack it and name one",
            )
        limit(tables[0].file_size)
        with tempfile.TemporaryDirectory(prefix="imapce-") as folder:
            # The last part alone: a name may point out of the folder.
            place = Path(folder) / _parts(tables[0].filename)[-1]
            with archive.open(tables[0]) as source, open(place, "wb") as target:
                shutil.copyfileobj(source, target)
            yield place


def _is_hidden(part: str) -> bool:
    return part == "__MACOSX" or (part.startswith(".") and part not in (".", ".."))


def _parts(name: str) -> tuple[str, ...]:
    return PurePosixPath(name.replace("\\", "/")).parts
