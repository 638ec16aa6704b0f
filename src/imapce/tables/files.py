"""Tables and matrices in files: read whole or refused in one sentence, written whole or not at all.

>>> write_table({"x": np.zeros(3)}, "points.parquet")
>>> read_table("points.parquet").column_names
['x']
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from imapce.common.whole_files import as_path, whole_file, writable_target
from imapce.common.words import listing
from imapce.errors import (
    FileFormatError,
    FileName,
    ImapceError,
    InvalidTypeError,
    InvalidValueError,
    Phrase,
    Sentence,
    one_line,
)
from imapce.tables import binary
from imapce.tables.annotated import read_h5ad
from imapce.tables.dialect import Dialect, checked, recognise
from imapce.tables.encode import column_at, column_names, is_table
from imapce.tables.text import beginning, read_json_lines, read_sheet, read_text

# Standard input or output, as commands call them.
STREAM = "-"
# What stands between the values where nothing else is recognised.
_TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": ",", ".dat": ",", ".data": ","}
_JSON_LINES = (".jsonl", ".ndjson")
_PACKED = (".gz", ".bz2", ".zst")
_ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
_PLAIN_SUFFIXES = (*_TEXT, *_JSON_LINES)
READ_SUFFIXES = (
    *_PLAIN_SUFFIXES,
    *(f"{plain}{packed}" for plain in _PLAIN_SUFFIXES for packed in _PACKED),
    *(".parquet", *_ARROW_SUFFIXES, ".xlsx", ".npy", ".npz", ".h5ad"),
)
_WRITE_DELIMITERS = {".csv": ",", ".tsv": "\t"}
WRITE_SUFFIXES = (*_WRITE_DELIMITERS, ".parquet", *_ARROW_SUFFIXES, ".npy")
# Of a path; a page that was sent the file says what the file must be.
NAMES = Phrase("names", "must name")


def read_table(
    path: str | os.PathLike[str],
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    max_bytes: int | None = None,
) -> Any:
    """The contents of a file: a pyarrow Table, for .npy and .npz a 2-D array or a scipy sparse matrix, for .h5ad its X
    as a NamedMatrix with obs as `about_rows`.

    Text files (.csv, .tsv, .txt, .dat, .data, also with .gz, .bz2 or .zst, and "-" for standard input) are read as
    `recognised` says, where ``sep``, ``decimal``, ``encoding`` and ``header`` are None; empty cells, NA and NaN are
    missing values, quoted or not, and blanks around values are trimmed. A folder of .parquet files, or a pattern that
    finds some, is one table. ``max_bytes`` limits the file and what it unpacks to.

    >>> _ = Path("points.csv").write_text("x;y\\n1;2,5\\n3;\\n")
    >>> read_table("points.csv")["y"].to_pylist()
    [2.5, None]
    """
    given = {"sep": sep, "decimal": decimal, "encoding": encoding, "header": header}
    return read_and_tell(path, given=given, max_bytes=max_bytes)[0]


def recognised(path: str | os.PathLike[str]) -> Dialect:
    """How a text file is written, by its first 64 kB; `words` tells it, "" where all is as in any CSV file.

    >>> _ = Path("points.csv").write_text("1.5|2.5\\n3|4\\n")
    >>> recognised("points.csv").words
    'bars between values and no header (the columns are x0, x1, ...)'
    """
    file = as_path(path)
    suffix = _suffix(file, tuple(name for name in READ_SUFFIXES if _unpacked(name) in _TEXT))
    _require_file(file, path)
    with _one_sentence(path, suffix):
        start, whole = beginning(_source(file, suffix, lambda size: None))
        return recognise(start, whole=whole, default_sep=_TEXT[_unpacked(suffix)])


def read_and_tell(
    path: str | os.PathLike[str], *, given: Mapping[str, Any] | None = None, max_bytes: int | None = None
) -> tuple[Any, str]:
    """What `read_table` returns, and the words of the dialect it was read in; `given` overrules what is recognised.

    >>> _ = Path("points.csv").write_text("x;y\\n1;2,5\\n3;\\n")
    >>> read_and_tell("points.csv")[1]
    'semicolons between values and a decimal comma'
    """
    asked = {name: value for name, value in (given or {}).items() if value is not None}
    checked(**{name: asked.get(name) for name in ("sep", "decimal", "encoding", "header")})
    parts = None if str(path) == STREAM else binary.parts_of(str(path))
    file = as_path(path)

    def limit(size: int) -> None:
        _check_size(size, max_bytes, file)

    suffix = ".csv" if str(path) == STREAM else ".parquet" if parts is not None else _suffix(file, READ_SUFFIXES)
    plain = _unpacked(suffix)
    useless = [name for name in asked if plain not in _TEXT and not (suffix == ".xlsx" and name == "header")]
    if useless:
        raise InvalidValueError(useless[0], f"is for text files, got {file.name!r}: leave it out.")
    if parts is not None:
        with _one_sentence(path, suffix):
            return binary.read_parts(parts, limit), ""
    if str(path) == STREAM:
        # Piece by piece: read() alone goes on waiting after a Ctrl-C that comes between two of its pieces.
        source = cast(io.BufferedReader, sys.stdin.buffer)
        data = b"".join(iter(lambda: source.read1(1 << 20), b""))
        if not data:
            raise FileFormatError(
                "path", "must name a file with data, got '-', and standard input is empty: pipe a file."
            )
        limit(len(data))
        with _one_sentence(path, suffix):
            table, dialect = read_text(data, **asked)
        return table, dialect.words
    limit(_require_file(file, path))
    with _one_sentence(path, suffix):
        if plain in _TEXT:
            table, dialect = read_text(_source(file, suffix, limit, max_bytes), default_sep=_TEXT[plain], **asked)
            return table, dialect.words
        if plain in _JSON_LINES:
            return read_json_lines(_source(file, suffix, limit, max_bytes)), ""
        if suffix == ".xlsx":
            limit(binary.unpacked_size(file))
            table, dialect = read_sheet(file, asked.get("header"))
            return table, dialect.words
        if suffix == ".parquet":
            return binary.read_parquet(file, limit), ""
        if suffix in _ARROW_SUFFIXES:
            return binary.read_arrow(file, limit), ""
        if suffix == ".h5ad":
            return read_h5ad(file, limit), ""
        return (binary.read_npy(file) if suffix == ".npy" else binary.read_npz(file, limit)), ""


def is_text_file(path: str | os.PathLike[str]) -> bool:
    """Whether `read_table` reads it as text, so that separator, decimal sign, encoding and header can be given.

    >>> is_text_file("rows.csv.gz"), is_text_file("-"), is_text_file("rows.parquet")
    (True, True, False)
    """
    name = Path(path).name.lower()
    return name == STREAM or any(_unpacked(suffix) in _TEXT and name.endswith(suffix) for suffix in READ_SUFFIXES)


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
    with _written(path, suffix) as stream:
        write(stream)


@contextmanager
def batches_written(path: str | os.PathLike[str], schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Someone to give the rows of a table to, some at a time; the file appears when all were given, or not at all.

    >>> with batches_written("points.arrow", pa.schema({"x": pa.float64()})) as write:
    ...     for start in (0.0, 2.0):
    ...         write(pa.table({"x": [start, start + 1]}))
    >>> read_table("points.arrow")["x"].to_pylist()
    [0.0, 1.0, 2.0, 3.0]
    """
    file = table_target(path)
    suffix = _suffix(file, tuple(one for one in WRITE_SUFFIXES if one != ".npy"))
    with _written(path, suffix) as stream:
        if suffix in _WRITE_DELIMITERS:
            options = pyarrow.csv.WriteOptions(delimiter=_WRITE_DELIMITERS[suffix])
            writer: Any = pyarrow.csv.CSVWriter(stream, schema, write_options=options)
        elif suffix == ".parquet":
            writer = pyarrow.parquet.ParquetWriter(stream, schema)
        else:
            writer = pa.ipc.new_file(stream, schema)
        with writer:
            yield lambda rows: writer.write_table(rows.select(schema.names).cast(schema))


@contextmanager
def _written(path: str | os.PathLike[str], suffix: str) -> Iterator[BinaryIO]:
    """A stream to a whole file, and Arrow's complaints in one sentence."""
    try:
        with whole_file(path) as stream:
            yield stream
    except pa.ArrowException as problem:
        reason = " ".join(str(problem).split())
        raise InvalidValueError(
            "path",
            f"must be a place where the table can be written as {suffix}, got {str(path)!r} ({reason}): "
            "free the place or choose another file or suffix.",
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
    shown = [suffix for suffix in allowed if _unpacked(suffix) == suffix]
    packed = f", text also with {listing(_PACKED)}" if len(shown) < len(allowed) else ""
    raise FileFormatError(
        "path",
        Sentence(Phrase("ends in", "must end in"), f" {listing(shown)}{packed}"),
        repr(file.name),
        "rename or convert the file to one of these",
    )


def _check_size(size: int, max_bytes: int | None, file: Path) -> None:
    if max_bytes is not None and size > max_bytes:
        raise FileFormatError(
            "path",
            Sentence(NAMES, f" a file of at most {max_bytes} bytes"),
            f"{file.name!r}, which has or unpacks to more",
            "take a part of it or raise max_bytes",
        )


def _require_file(file: Path, path: str | os.PathLike[str]) -> int:
    """The size of a file that is there, is a file and is not empty."""
    if not file.exists():
        raise FileFormatError(
            "path", "must name a file", Sentence(FileName(str(path)), ", which does not exist"), "check the name"
        )
    if not file.is_file():
        raise FileFormatError(
            "path", "must name a file", Sentence(FileName(str(path)), ", which is not one"), "name one in it"
        )
    size = file.stat().st_size
    if size == 0:
        raise FileFormatError(
            "path",
            Sentence(NAMES, " a file with data"),
            Sentence(FileName(str(path)), ", which is empty"),
            "write it again",
        )
    return size


@contextmanager
def _one_sentence(path: str | os.PathLike[str], suffix: str) -> Iterator[None]:
    try:
        yield
    except ImapceError:
        raise
    # A damaged or hostile file can raise nearly anything from the readers (struct, zlib, zip, Arrow, memory).
    except Exception as problem:
        raise FileFormatError(
            "path",
            Sentence(NAMES, f" a whole {suffix} file"),
            Sentence(FileName(str(path)), ", which cannot be read (", one_line(problem, path=str(path)), ")"),
            "write it again or correct its suffix",
        ) from problem


def _unpacked(suffix: str) -> str:
    for packed in _PACKED:
        suffix = suffix.removesuffix(packed)
    return suffix


def _source(file: Path, suffix: str, limit: binary.Limit, max_bytes: int | None = None) -> Path | bytes:
    """The file itself, or what it unpacks to; no more than the limit is unpacked to find that it is too much."""
    if _unpacked(suffix) == suffix:
        return file
    most = -1 if max_bytes is None else max_bytes + 1
    if suffix.endswith(".zst"):
        with pa.input_stream(str(file), compression="zstd") as stream:
            data = stream.read(None if most < 0 else most)
    else:
        with (gzip.open if suffix.endswith(".gz") else bz2.open)(file) as stream:
            data = stream.read(most)
    limit(len(data))
    return data


def _writer(table: Any, suffix: str) -> Callable[[BinaryIO], None]:
    """What writes the table to an open file; what can be refused is refused before one is opened."""
    if isinstance(table, np.ndarray) and suffix == ".npy":
        matrix = table
    else:
        arrow = as_arrow(table)
        if suffix in _WRITE_DELIMITERS:
            options = pyarrow.csv.WriteOptions(delimiter=_WRITE_DELIMITERS[suffix])
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
        binary.numeric_matrix(matrix)
    except ValueError as problem:
        raise InvalidValueError(f"table must be numbers in two dimensions for .npy, but {problem}.") from problem
    return lambda stream: _write_npy(matrix, stream)


def _plain(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def as_arrow(table: Any) -> pa.Table:
    """The table or the named columns as an Arrow table, without index and metadata.

    >>> as_arrow({"x": [1, 2]}).column_names
    ['x']
    """
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


def _write_npy(matrix: Any, stream: BinaryIO) -> None:
    # Given an open file, NumPy writes past its buffer and tells a full disk as a count of items.
    buffer = io.BytesIO()
    np.save(buffer, matrix, allow_pickle=False)
    stream.write(buffer.getbuffer())
