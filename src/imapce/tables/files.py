"""Tables and matrices in files: read whole or refused in one sentence, written whole or not at all.

>>> write_table({"x": np.zeros(3)}, "points.parquet")
>>> read_table("points.parquet").column_names
['x']
"""

from __future__ import annotations

import glob
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import scipy.sparse

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
from imapce.tables.dialect import Dialect, check_given, recognise
from imapce.tables.encode import column_at, column_names, is_table
from imapce.tables.json import read_json, read_json_lines
from imapce.tables.named import Limit, numeric_matrix, read_h5ad
from imapce.tables.packed import PACKED, ZIP, one_table_of_zip, unpacked_size, unpacked_source
from imapce.tables.text import beginning, read_sheet, read_text

# Standard input or output, as commands call them.
STREAM = "-"
# What stands between the values where nothing else is recognised.
_TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": ",", ".dat": ",", ".data": ","}
_JSON, _JSON_LINES = ".json", (".jsonl", ".ndjson")
_ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
_PLAIN_SUFFIXES = (*_TEXT, _JSON, *_JSON_LINES)
_EXCEL = ".xlsx"
# Every suffix that is read, and that of what is packed in it.
_PLAIN = {f"{plain}{packed}": plain for packed in ("", *PACKED) for plain in _PLAIN_SUFFIXES}
_PLAIN |= {plain: plain for plain in (".parquet", *_ARROW_SUFFIXES, _EXCEL, ".npy", ".npz", ".h5ad", ZIP)}
READ_SUFFIXES = tuple(_PLAIN)
_WRITE_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PATTERN = frozenset("*?[")
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
    sheet: str | None = None,
    max_bytes: int | None = None,
) -> Any:
    """The contents of a file: a pyarrow Table, for .npy and .npz a 2-D array or a scipy sparse matrix, for .h5ad its X
    as a NamedMatrix with obs as `about_rows`.

    Text files (.csv, .tsv, .txt, .dat, .data, also with .gz, .bz2 or .zst, and "-" for standard input) are read as
    `recognised` says, where ``sep``, ``decimal``, ``encoding`` and ``header`` are None; empty cells, NA and NaN are
    missing values, quoted or not, and blanks around values are trimmed. A folder of .parquet files, or a pattern that
    finds some, is one table; a .zip file holds one, and .json records, columns or one object a line. ``sheet`` names
    that of an Excel file, by default the first. ``max_bytes`` limits the file and what it unpacks to.

    >>> _ = Path("points.csv").write_text("x;y\\n1;2,5\\n3;\\n")
    >>> read_table("points.csv")["y"].to_pylist()
    [2.5, None]
    """
    given = {"sep": sep, "decimal": decimal, "encoding": encoding, "header": header, "sheet": sheet}
    return read_contents(path, given=given, max_bytes=max_bytes).table


def recognised(path: str | os.PathLike[str]) -> Dialect:
    """How a text file is written, by its first 64 kB; `words` tells it, "" where all is as in any CSV file.

    >>> _ = Path("points.csv").write_text("1.5|2.5\\n3|4\\n")
    >>> recognised("points.csv").words
    'bars between values and no header (the columns are x0, x1, ...)'
    """
    file = as_path(path)
    suffix = _suffix(file, tuple(name for name in READ_SUFFIXES if _PLAIN[name] in _TEXT))
    _require_file(file, path)
    with _one_sentence(path, suffix):
        plain = _PLAIN[suffix]
        start, whole = beginning(file if plain == suffix else unpacked_source(file, suffix, lambda size: None))
        return recognise(start, whole=whole, default_sep=_TEXT[plain])


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds, and how it was read: in `words` where that is not the usual way, the decimal sign of text, and
    `notes` on what else was in it.
    """

    table: Any
    words: str = ""
    decimal: str | None = None
    notes: tuple[str, ...] = ()


def read_contents(
    path: str | os.PathLike[str],
    *,
    given: Mapping[str, Any] | None = None,
    max_bytes: int | None = None,
    keep_words: bool = False,
) -> Contents:
    """What `read_table` returns, and how it was read; `given` overrules what is recognised.

    `keep_words` is that of `read_text`: words among numbers stay, for `read_cells` to read and to tell.
    """
    asked = {name: value for name, value in (given or {}).items() if value is not None}
    check_given(**{name: asked.get(name) for name in ("sep", "decimal", "encoding", "header")})
    parts = None if str(path) == STREAM else parts_of(str(path))
    file = as_path(path)

    def limit(size: int) -> None:
        if max_bytes is not None and size > max_bytes:
            raise FileFormatError(
                "path",
                Sentence(NAMES, f" a file of at most {max_bytes} bytes"),
                f"{file.name!r}, which has or unpacks to more",
                way_out="take a part of it or raise max_bytes",
            )

    suffix = ".csv" if str(path) == STREAM else ".parquet" if parts is not None else _suffix(file, READ_SUFFIXES)
    if suffix == ZIP:
        limit(_require_file(file, path))
        with _one_sentence(path, suffix), one_table_of_zip(file, _holds_table, limit) as member:
            found = read_contents(member, given=given, max_bytes=max_bytes, keep_words=keep_words)
        return replace(found, notes=(f"{file.name!r} holds {member.name!r}.", *found.notes))
    _require_use(asked, suffix, file)
    if parts is not None:
        with _one_sentence(path, suffix):
            return Contents(read_parts(parts, limit))
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
            return _text_contents(data, ",", {**asked, "keep_words": keep_words})
    limit(_require_file(file, path))
    with _one_sentence(path, suffix):
        return _contents_of(file, suffix, {**asked, "keep_words": keep_words}, limit, max_bytes)


def _contents_of(file: Path, suffix: str, asked: Mapping[str, Any], limit: Limit, max_bytes: int | None) -> Contents:
    plain = _PLAIN[suffix]
    source = file if plain == suffix else unpacked_source(file, suffix, limit, max_bytes)
    if plain in _TEXT:
        return _text_contents(source, _TEXT[plain], asked)
    if plain == _JSON:
        return Contents(read_json(source))
    if plain in _JSON_LINES:
        return Contents(read_json_lines(source))
    if suffix == _EXCEL:
        limit(unpacked_size(file))
        table, dialect, sheets = read_sheet(file, **{"header": None, **asked})
        others = [name for name in sheets if name != sheets[0]]
        if not others or "sheet" in asked:
            return Contents(table, dialect.words, dialect.decimal)
        told = Sentence(
            f"{file.name!r} has {len(sheets)} sheets, and {sheets[0]!r}, the first, was read; ",
            Phrase("name a sheet", "sheet= names another"),
            f" ({listing(map(repr, others), 10)}).",
        )
        return Contents(table, dialect.words, dialect.decimal, (told,))
    if suffix == ".parquet":
        return Contents(read_parquet(file, limit))
    if suffix in _ARROW_SUFFIXES:
        return Contents(read_arrow(file, limit))
    if suffix == ".h5ad":
        return Contents(read_h5ad(file, limit))
    return Contents(read_npy(file) if suffix == ".npy" else read_npz(file, limit))


def _text_contents(source: Path | bytes, default_sep: str, asked: Mapping[str, Any]) -> Contents:
    table, dialect = read_text(source, default_sep=default_sep, **asked)
    return Contents(table, dialect.words, dialect.decimal)


def _holds_table(name: str) -> bool:
    """Whether a file within an archive is a table by its name."""
    return any(name.lower().endswith(suffix) for suffix in READ_SUFFIXES if suffix != ZIP)


def _require_use(asked: Mapping[str, Any], suffix: str, file: Path) -> None:
    """Refuse what says how a file is written where the file is of another kind."""
    for name in asked:
        if name == "sheet" and suffix != _EXCEL:
            raise InvalidValueError(name, f"is for Excel files, got {file.name!r}: leave it out.")
        if name != "sheet" and _PLAIN[suffix] not in _TEXT and not (suffix == _EXCEL and name == "header"):
            raise InvalidValueError(name, f"is for text files, got {file.name!r}: leave it out.")


def parts_of(path: str) -> list[Path] | None:
    """The .parquet files of a folder or of a pattern, in the order of their names; None for a plain path."""
    place = Path(path)
    if place.is_dir():
        parts = sorted(part for part in place.rglob("*.parquet") if part.is_file())
    elif not place.exists() and _PATTERN & set(path):
        parts = sorted(part for name in glob.glob(path, recursive=True) if (part := Path(name)).is_file())
        strangers = [part.name for part in parts if part.suffix.lower() != ".parquet"]
        if not parts or strangers:
            held = f"which also finds {strangers[0]!r}" if strangers else "which finds no file"
            raise FileFormatError("path", f"must find .parquet files only, got {path!r}, {held}: correct the pattern.")
    else:
        return None
    if not parts:
        raise FileFormatError(
            "path",
            f"must name a file or a folder of .parquet files, got {path!r}, which is not one: name a file in it.",
        )
    return parts


def read_parts(parts: list[Path], limit: Limit) -> pa.Table:
    """One table of many Parquet files, which must have the same columns; their order may differ."""
    tables: list[pa.Table] = []
    total = 0
    for part in parts:
        table = read_parquet(part, limit)
        total += table.nbytes
        limit(total)
        first = tables[0].column_names if tables else table.column_names
        if sorted(table.column_names) != sorted(first):
            odd = sorted(set(first) ^ set(table.column_names))
            raise FileFormatError(
                "path",
                f"must find files with the same columns, and {parts[0].name!r} and {part.name!r} differ in "
                f"{listing(map(repr, odd), 10)}: take one of them out or write both with the same columns.",
            )
        tables.append(table.select(first))
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as problem:
        reason = " ".join(str(problem).split())[:200]
        raise FileFormatError(
            "path", f"must find files whose columns have the same types, and these differ ({reason}): write them again."
        ) from problem


def read_parquet(file: Path, limit: Limit) -> pa.Table:
    """The table of one Parquet file, without a stored pandas index."""
    with pyarrow.parquet.ParquetFile(file) as source:
        groups = range(source.metadata.num_row_groups)
        unpacked = sum(source.metadata.row_group(group).total_byte_size for group in groups)
        # Runs of one value take next to no bytes, so each cell counts as at least one.
        limit(max(unpacked, source.metadata.num_rows * source.metadata.num_columns))
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


def read_arrow(file: Path, limit: Limit) -> pa.Table:
    """The table of an Arrow file, in the format with a footer or in that of streams."""
    with pa.OSFile(str(file)) as source:
        try:
            table = pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            # The same suffixes are in use for the streaming format, which has no footer.
            source.seek(0)
            table = pa.ipc.open_stream(source).read_all()
    # Arrow trusts the offsets in the file; wrong ones would be read beyond the end of memory.
    table.validate(full=True)
    limit(table.nbytes)
    return _without_index(table)


def read_npy(file: Path) -> np.ndarray:
    """The 2-D array of numbers in an .npy file."""
    # A memory map checks the promised shape against the file, where a plain load would allocate it first.
    mapped = np.load(file, mmap_mode="r", allow_pickle=False)
    if not isinstance(mapped, np.ndarray):
        mapped.close()
        raise ValueError("it is an .npz archive")
    return np.array(numeric_matrix(mapped))


def read_npz(file: Path, limit: Limit) -> Any:
    """The one 2-D array, or the sparse matrix, in an .npz file."""
    limit(unpacked_size(file))
    with np.load(file, allow_pickle=False) as arrays:
        if not {"format", "shape", "data"} <= set(arrays.files):
            if len(arrays.files) != 1:
                raise ValueError(f"it must hold one array, not {listing(map(repr, arrays.files), 10)}")
            return numeric_matrix(arrays[arrays.files[0]])
    sparse = scipy.sparse.load_npz(file)
    if sparse.dtype.kind not in "biuf":
        raise ValueError(f"its values are {sparse.dtype}, not numbers")
    if sparse.format in ("csr", "csc", "bsr"):
        # Indices beyond the shape would be followed beyond the end of memory by every later product.
        sparse.check_format(full_check=True)
    return sparse if sparse.format in ("csr", "csc") else sparse.tocsr()


def is_text_file(path: str | os.PathLike[str]) -> bool:
    """Whether `read_table` reads it as text, so that separator, decimal sign, encoding and header can be given."""
    name = Path(path).name.lower()
    return name == STREAM or any(_PLAIN[suffix] in _TEXT and name.endswith(suffix) for suffix in READ_SUFFIXES)


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
    if suffix == ".npy":
        matrix = _numbers_alone(table)
        with _open_target(path, suffix) as stream:
            # Given an open file, NumPy writes past its buffer and tells a full disk as a count of items.
            buffer = io.BytesIO()
            np.save(buffer, matrix, allow_pickle=False)
            stream.write(buffer.getbuffer())
        return
    arrow = as_arrow(table)
    with open_table_writer(path, arrow.schema) as write:
        write(arrow)


@contextmanager
def open_table_writer(path: str | os.PathLike[str], schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Someone to give the rows of a table to, some at a time; the file appears when all were given, or not at all."""
    file = table_target(path)
    suffix = _suffix(file, tuple(ending for ending in WRITE_SUFFIXES if ending != ".npy"))
    with _open_target(path, suffix) as stream:
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
def _open_target(path: str | os.PathLike[str], suffix: str) -> Iterator[BinaryIO]:
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
    """The file that `write_table` would write, or one sentence on why it could not; for checks ahead of long work."""
    target = writable_target(path)
    _suffix(target, WRITE_SUFFIXES)
    return target


def _suffix(file: Path, allowed: tuple[str, ...]) -> str:
    name = file.name.lower()
    # Longest first, so that .csv.gz is not taken for an unknown .gz.
    for suffix in sorted(allowed, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    shown = [suffix for suffix in allowed if _PLAIN[suffix] == suffix]
    packed = f", text also with {listing(PACKED)}" if len(shown) < len(allowed) else ""
    raise FileFormatError(
        "path",
        Sentence(Phrase("ends in", "must end in"), f" {listing(shown)}{packed}"),
        repr(file.name),
        way_out="rename or convert the file to one of these",
    )


def _require_file(file: Path, path: str | os.PathLike[str]) -> int:
    """The size of a file that is there, is a file and is not empty."""
    if not file.exists():
        raise FileFormatError(
            "path",
            "must name a file",
            Sentence(FileName(str(path)), ", which does not exist"),
            way_out="check the name",
        )
    if not file.is_file():
        raise FileFormatError(
            "path", "must name a file", Sentence(FileName(str(path)), ", which is not one"), way_out="name one in it"
        )
    size = file.stat().st_size
    if size == 0:
        raise FileFormatError(
            "path",
            Sentence(NAMES, " a file with data"),
            Sentence(FileName(str(path)), ", which is empty"),
            way_out="write it again",
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
            way_out="write it again or correct its suffix",
        ) from problem


def _numbers_alone(table: Any) -> np.ndarray:
    """The matrix of a table that holds nothing but numbers."""
    if isinstance(table, np.ndarray):
        matrix = table
    else:
        arrow = as_arrow(table)
        is_plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        if words := [field.name for field in arrow.schema if not any(check(field.type) for check in is_plain)]:
            raise InvalidValueError(
                f"table must hold numbers only for .npy, got {listing(map(repr, words))}: drop them or write .parquet."
            )
        columns = [column.to_numpy() for column in arrow.columns]
        matrix = np.column_stack(columns) if columns else np.empty((arrow.num_rows, 0))
    try:
        return numeric_matrix(matrix)
    except ValueError as problem:
        raise InvalidValueError(f"table must be numbers in two dimensions for .npy, but {problem}.") from problem


def as_arrow(table: Any) -> pa.Table:
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
