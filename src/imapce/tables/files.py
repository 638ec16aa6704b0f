"""Tables and matrices in files: read whole or refused in one sentence, written whole or not at all.

>>> write_table({"x": np.zeros(3)}, "points.parquet")
>>> read_table("points.parquet").column_names
['x']
"""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import scipy.sparse

from imapce.common.whole_files import whole_file, writable_target
from imapce.common.words import listing
from imapce.errors import FileFormatError, ImapceError, InvalidTypeError, InvalidValueError
from imapce.tables.encode import column_at, column_names, is_table

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
_ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
READ_SUFFIXES = (*_DELIMITERS, ".parquet", *_ARROW_SUFFIXES, ".npy", ".npz")
WRITE_SUFFIXES = (".csv", ".tsv", ".parquet", *_ARROW_SUFFIXES, ".npy")

# One row must fit in one block; 16 MiB holds rows of about a million columns.
_CSV_BLOCK_BYTES = 1 << 24


def read_table(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> Any:
    """The contents of a file: a pyarrow Table, or for .npy and .npz a 2-D array or a scipy sparse matrix.

    In .csv and .tsv files the first row holds the names, and empty cells, NA and NaN are missing values,
    quoted or not. ``max_bytes`` limits the file and what it unpacks to.

    >>> _ = Path("points.csv").write_text("x,y\\n1,2\\n3,\\n")
    >>> read_table("points.csv")["y"].to_pylist()
    [2, None]
    """
    file = Path(path)
    suffix = _suffix(file, READ_SUFFIXES)
    if not file.exists():
        raise FileFormatError(f"path must name a file, got {str(path)!r}, which does not exist: check the name.")
    if not file.is_file():
        raise FileFormatError(f"path must name a file, got {str(path)!r}, which is not one: name one in it.")
    size = file.stat().st_size
    if size == 0:
        raise FileFormatError(f"path must name a file with data, got {str(path)!r}, which is empty: write it again.")
    _check_size(size, max_bytes, file)
    try:
        if suffix in _DELIMITERS:
            return _read_text(file, suffix, max_bytes)
        if suffix == ".parquet":
            return _read_parquet(file, max_bytes)
        if suffix in _ARROW_SUFFIXES:
            return _read_arrow(file, max_bytes)
        return _read_npy(file) if suffix == ".npy" else _read_npz(file, max_bytes)
    except ImapceError:
        raise
    # A damaged or hostile file can raise nearly anything from the readers (struct, zlib, zip, Arrow, memory).
    except Exception as problem:
        reason = " ".join(str(problem).split())[:300] or type(problem).__name__
        raise FileFormatError(
            f"path must name a whole {suffix} file, got {str(path)!r}, which cannot be read ({reason}): "
            "write it again or correct its suffix."
        ) from problem


def write_table(table: Any, path: str | os.PathLike[str]) -> None:
    """Write a table, or named columns, to a file that appears whole or not at all.

    A pandas index is not written. A .npy file holds the numbers alone, without names, and may also be given a
    2-D array.

    >>> write_table({"x": [0.5, 1.5], "name": ["a", "b"]}, "points.csv")
    >>> Path("points.csv").read_text().split()
    ['"x","name"', '0.5,"a"', '1.5,"b"']
    """
    file = table_target(path)
    suffix = _suffix(file, WRITE_SUFFIXES)
    write = _writer(table, suffix)
    try:
        with whole_file(file) as stream:
            write(stream)
    except (OSError, pa.ArrowException) as problem:
        reason = " ".join(str(getattr(problem, "strerror", None) or problem).split())
        raise InvalidValueError(
            f"path must be a place where the table can be written as {suffix}, got {str(path)!r} ({reason}): "
            "free the place or choose another file or suffix."
        ) from problem


def table_target(path: str | os.PathLike[str]) -> Path:
    """The file that `write_table` would write, or one sentence on why it could not; for checks ahead of long work.

    >>> table_target("points.csv").name
    'points.csv'
    """
    target = writable_target(path)
    _suffix(target, WRITE_SUFFIXES)
    return target


def _suffix(file: Path, allowed: tuple[str, ...]) -> str:
    name = file.name.lower()
    # Longest first, so that .csv.gz is not taken for an unknown .gz.
    for suffix in sorted(allowed, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    raise FileFormatError(
        f"path must end in {listing(allowed)}, got {file.name!r}: rename or convert the file to one of these."
    )


def _check_size(size: int, max_bytes: int | None, file: Path) -> None:
    if max_bytes is not None and size > max_bytes:
        raise FileFormatError(
            f"path must name a file of at most {max_bytes} bytes, got {file.name!r}, which has or unpacks to "
            "more: take a part of it or raise max_bytes."
        )


def _read_text(file: Path, suffix: str, max_bytes: int | None) -> pa.Table:
    if suffix.endswith(".gz"):
        with gzip.open(file) as stream:
            data = stream.read() if max_bytes is None else stream.read(max_bytes + 1)
        _check_size(len(data), max_bytes, file)
        start, source = data[: 1 << 16], pa.BufferReader(data)
    else:
        with open(file, "rb") as stream:
            start = stream.read(1 << 16)
        source = file
    if b"\0" in start:
        raise ValueError("it holds zero bytes, so it is not UTF-8 text")
    header = start.split(b"\n", 1)[0]
    if header.count(b";") > header.count(_DELIMITERS[suffix].encode()):
        # What spreadsheets write where the comma is the decimal point; read as it is, it would be one column of text.
        raise ValueError("its header is separated by semicolons; write it with commas, or as .parquet")
    table = pyarrow.csv.read_csv(
        source,
        read_options=pyarrow.csv.ReadOptions(block_size=_CSV_BLOCK_BYTES),
        parse_options=pyarrow.csv.ParseOptions(delimiter=_DELIMITERS[suffix], newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True),
    )
    if any(pa.types.is_binary(kind) for kind in table.schema.types):
        raise ValueError("it holds text that is not UTF-8")
    if _looks_like_data(table.column_names):
        raise ValueError("its first row holds numbers where the column names must be")
    return table


def _looks_like_data(names: list[str]) -> bool:
    """Whether a header is a row of numbers, other than the 0, 1, 2, ... pandas writes for lack of names."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return all(numbers != list(range(start, start + len(names))) for start in (0, 1))


def _read_parquet(file: Path, max_bytes: int | None) -> pa.Table:
    with pyarrow.parquet.ParquetFile(file) as source:
        groups = range(source.metadata.num_row_groups)
        unpacked = sum(source.metadata.row_group(group).total_byte_size for group in groups)
        # Runs of one value take next to no bytes, so each cell counts as at least one.
        _check_size(max(unpacked, source.metadata.num_rows * source.metadata.num_columns), max_bytes, file)
        return _without_index(source.read())


def _without_index(table: pa.Table) -> pa.Table:
    """The table without the index that pandas stored beside its columns: row names are no feature."""
    stored = (table.schema.metadata or {}).get(b"pandas")
    try:
        described = json.loads(stored) if stored is not None else {}
        index = [name for name in described.get("index_columns", []) if isinstance(name, str)]
    except (ValueError, AttributeError, TypeError):
        # Another program's idea of this field; the columns are then taken as they are.
        return table
    return table.drop_columns([name for name in index if name in table.column_names])


def _read_arrow(file: Path, max_bytes: int | None) -> pa.Table:
    with pa.OSFile(str(file)) as source:
        try:
            table = pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            # The same suffixes are in use for the streaming format, which has no footer.
            source.seek(0)
            table = pa.ipc.open_stream(source).read_all()
    # Arrow trusts the offsets in the file; wrong ones would be read beyond the end of memory.
    table.validate(full=True)
    _check_size(table.nbytes, max_bytes, file)
    return _without_index(table)


def _read_npy(file: Path) -> np.ndarray:
    # A memory map checks the promised shape against the file, where a plain load would allocate it first.
    mapped = np.load(file, mmap_mode="r", allow_pickle=False)
    if not isinstance(mapped, np.ndarray):
        mapped.close()
        raise ValueError("it is an .npz archive")
    return np.array(_numeric_matrix(mapped))


def _read_npz(file: Path, max_bytes: int | None) -> Any:
    with zipfile.ZipFile(file) as archive:
        _check_size(sum(member.file_size for member in archive.infolist()), max_bytes, file)
    with np.load(file, allow_pickle=False) as arrays:
        if not {"format", "shape", "data"} <= set(arrays.files):
            if len(arrays.files) != 1:
                raise ValueError(f"it must hold one array, not {listing(map(repr, arrays.files), 10)}")
            return _numeric_matrix(arrays[arrays.files[0]])
    sparse = scipy.sparse.load_npz(file)
    if sparse.dtype.kind not in "biuf":
        raise ValueError(f"its values are {sparse.dtype}, not numbers")
    if sparse.format in ("csr", "csc", "bsr"):
        # Indices beyond the shape would be followed beyond the end of memory by every later product.
        sparse.check_format(full_check=True)
    return sparse if sparse.format in ("csr", "csc") else sparse.tocsr()


def _numeric_matrix(values: np.ndarray) -> np.ndarray:
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise ValueError(f"it must hold a 2-D array of numbers, not {values.ndim}-D {values.dtype}")
    return values


def _writer(table: Any, suffix: str) -> Callable[[BinaryIO], None]:
    """What writes the table to an open file; what can be refused is refused before one is opened."""
    if isinstance(table, np.ndarray) and suffix == ".npy":
        matrix = table
    else:
        arrow = _arrow(table)
        if suffix in _DELIMITERS:
            options = pyarrow.csv.WriteOptions(delimiter=_DELIMITERS[suffix])
            return lambda stream: pyarrow.csv.write_csv(arrow, stream, options)
        if suffix == ".parquet":
            return lambda stream: pyarrow.parquet.write_table(arrow, stream)
        if suffix in _ARROW_SUFFIXES:
            return lambda stream: _write_arrow(arrow, stream)
        words = [name for name, kind in zip(arrow.column_names, arrow.schema.types, strict=True) if not _plain(kind)]
        if words:
            raise InvalidValueError(
                f"table must hold numbers only for .npy, got {listing(map(repr, words))}: drop them or write .parquet."
            )
        columns = [column.to_numpy() for column in arrow.columns]
        matrix = np.column_stack(columns) if columns else np.empty((arrow.num_rows, 0))
    try:
        _numeric_matrix(matrix)
    except ValueError as problem:
        raise InvalidValueError(f"table must be numbers in two dimensions for .npy, but {problem}.") from problem
    return lambda stream: np.save(stream, matrix, allow_pickle=False)


def _plain(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _arrow(table: Any) -> pa.Table:
    """The table or the named columns as an Arrow table, without index and metadata."""
    try:
        if isinstance(table, Mapping):
            return pa.table({str(name): pa.array(values) for name, values in table.items()})
        if is_table(table):
            names = column_names(table, "table")
            return pa.table([column_at(table, place).to_arrow() for place in range(len(names))], names=names)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        if isinstance(problem, ImapceError):
            raise
        reason = " ".join(str(problem).split())
        raise InvalidValueError(
            f"table must hold columns of one length and of one type each, got others ({reason}): convert them."
        ) from problem
    raise InvalidTypeError(
        f"table must be a pandas, polars or Arrow table or a dict of columns, got {type(table).__name__}: "
        "name its columns in a dict."
    )


def _write_arrow(arrow: pa.Table, stream: BinaryIO) -> None:
    with pa.ipc.new_file(stream, arrow.schema) as writer:
        writer.write_table(arrow)
