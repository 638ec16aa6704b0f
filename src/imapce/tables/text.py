"""Text files as tables: pyarrow reads what is plain, Python's csv makes plain what is not, then the columns are tidied.

Tidied means: blanks around names and values trimmed, an empty last column without a name dropped, a name for each
column that has none or another's, and numbers found behind thousands signs or among words for a missing value.

>>> read_text(b"size; kind\\n1,5; a \\n?; b\\n")[0].to_pydict()
{'size': [1.5, None], 'kind': ['a', 'b']}
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from imapce.common.words import listing
from imapce.errors import InvalidValueError, Phrase, Sentence, needs
from imapce.tables.dialect import BLANKS, SAMPLE_BYTES, Dialect, parse_cells, recognise, windows_or_latin

# One row must fit in one block; 16 MiB holds rows of about a million columns.
_BLOCK_BYTES = 1 << 24
# Arrow counts the bytes of a block with 32 bits.
_LARGEST_BLOCK = (1 << 31) - 1
_NULL_WORDS = [*pyarrow.csv.ConvertOptions().null_values, "None", "<NA>"]
# Missing only where everything else in the column is a number: elsewhere "?" may be a category of its own.
_ODD_WORDS = ["?", "-", "--", ".", "*", "none", "missing"]
# Day, month and year in an order that leaves no doubt; 3/4/2020 is text.
_DATES = [pyarrow.csv.ISO8601, "%Y/%m/%d", "%d.%m.%Y"]
_HEAD = 1000
# 0930 is half past nine and 01 a month, numbers both; 04109 is a place.
_CODE_DIGITS = 5


def read_text(
    source: Path | bytes, *, default_sep: str = ",", keep_words: bool = False, **given: Any
) -> tuple[pa.Table, Dialect]:
    """The table of a text file, or of its bytes, and its dialect; `given` overrules what is recognised.

    With `keep_words` a column of numbers among which words stand for a missing value stays text, for those who tell
    which words these are (`cells.py`).
    """
    start, whole = beginning(source)
    dialect = recognise(start, whole=whole, default_sep=default_sep, **given)
    try:
        return _tidy(_read(source, dialect), dialect, keep_words), dialect
    except UnicodeDecodeError:
        if given.get("encoding") is not None or dialect.encoding != "utf-8":
            raise
        # UTF-8 as far as was looked, and something else beyond.
        dialect = recognise(start, whole=whole, default_sep=default_sep, **{**given, "encoding": "utf-8"})
        code = windows_or_latin(_bytes(source))
        before = f"{dialect.words}, " if dialect.words else ""
        dialect = replace(dialect, encoding=code, words=f"{before}the encoding {code}")
        return _tidy(_read(source, dialect), dialect, keep_words), dialect


def beginning(source: Path | bytes) -> tuple[bytes, bool]:
    """The first bytes, at least two lines of them, and whether they are all."""
    if isinstance(source, bytes):
        size = SAMPLE_BYTES
        while size < len(source) and source.count(b"\n", 0, size) < 2:
            size *= 2
        return source[:size], size >= len(source)
    with open(source, "rb") as stream:
        start = stream.read(SAMPLE_BYTES)
        while start.count(b"\n") < 2 and (more := stream.read(len(start))):
            start += more
        return start, not stream.read(1)


def read_sheet(
    file: Path, *, header: bool | None, sheet: str | None = None, keep_words: bool = False
) -> tuple[pa.Table, Dialect, list[str]]:
    """A sheet of an Excel file, the first by default, and the names of all; its cells are read as text is."""
    with needs("An Excel file", "imapce[excel]"):
        import openpyxl
    with warnings.catch_warnings():
        # About styles and rules that no table needs.
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        try:
            names = [page.title for page in book.worksheets]
            if sheet is not None and sheet not in names:
                raise InvalidValueError(
                    "sheet",
                    f"must name a sheet of {file.name!r}, got {sheet!r}: it has {listing(map(repr, names), 10)}.",
                )
            page = book.worksheets[0 if sheet is None else names.index(sheet)]
            rows = [list(row) for row in page.iter_rows(values_only=True)]
        finally:
            book.close()
    rows = [row for row in rows if any(cell is not None for cell in row)]
    if not rows:
        raise ValueError("its first sheet is empty" if sheet is None else f"its sheet {sheet!r} is empty")
    width = max(map(len, rows))
    rows = [[*row, *[None] * (width - len(row))] for row in rows]
    used = [place for place in range(width) if any(row[place] is not None for row in rows)]
    text = _plain_csv([[_cell(row[place]) for place in used] for row in rows])
    table, dialect = read_text(text, keep_words=keep_words, sep=",", decimal=".", encoding="utf-8", header=header)
    return table, dialect, names


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if hasattr(value, "isoformat"):
        return value.isoformat().removesuffix("T00:00:00")
    return repr(value) if isinstance(value, float) else str(value)


def _bytes(source: Path | bytes) -> bytes:
    return source if isinstance(source, bytes) else source.read_bytes()


def _read(source: Path | bytes, dialect: Dialect) -> pa.Table:
    """The table as it is written, by Arrow where it can and by way of a plain copy where it cannot."""
    if not is_plain(source, dialect):
        return _read_copy(source, dialect)
    try:
        return _read_plain(source, dialect)
    except pa.ArrowInvalid as problem:
        if "conversion error" in str(problem):
            # Types are learned from the first block alone; a block of the whole file learns from all of it.
            return _read_plain(source, dialect, block=_LARGEST_BLOCK)
        if "Expected" not in str(problem):
            raise
        return _read_copy(source, dialect)


def _has_blank_quote(start: bytes, sep: str) -> bool:
    return re.search(re.escape(sep.encode()) + rb' +"', start) is not None


def arrow_options(
    dialect: Dialect, *, block: int = _BLOCK_BYTES, names: list[str] | None = None, codes: Sequence[str] = ()
) -> dict[str, Any]:
    """How Arrow reads a plain text file of this dialect; `names` are those of a table without header, and columns of
    `codes` stay text.
    """

    def comments_skipped(row: Any) -> str:
        return "skip" if row.text is not None and row.text.lstrip().startswith("#") else "error"

    return {
        "read_options": pyarrow.csv.ReadOptions(
            block_size=block,
            encoding=dialect.encoding,
            skip_rows=dialect.skipped,
            column_names=names,
            autogenerate_column_names=not dialect.header and names is None,
        ),
        "parse_options": pyarrow.csv.ParseOptions(
            delimiter=dialect.sep, newlines_in_values=True, invalid_row_handler=comments_skipped
        ),
        "convert_options": pyarrow.csv.ConvertOptions(
            strings_can_be_null=True,
            null_values=_NULL_WORDS,
            decimal_point=dialect.decimal,
            timestamp_parsers=_DATES,
            column_types=dict.fromkeys(codes, pa.string()),
        ),
    }


def is_plain(source: Path | bytes, dialect: Dialect) -> bool:
    """Whether Arrow can read the text as it is written, without a copy."""
    if dialect.sep == BLANKS or len(dialect.sep) > 1:
        return False
    return dialect.encoding != "utf-8" or not _has_blank_quote(beginning(source)[0], dialect.sep)


def _read_plain(source: Path | bytes, dialect: Dialect, block: int = _BLOCK_BYTES) -> pa.Table:

    def read(as_text: list[str]) -> pa.Table:
        whole = source if isinstance(source, Path) else pa.BufferReader(source)
        return pyarrow.csv.read_csv(whole, **arrow_options(dialect, block=block, codes=as_text))

    codes = _code_columns(source, dialect)
    table = read(codes)
    if short := [
        name for name, column in zip(table.column_names, table.columns, strict=True) if _is_of_year_99(column)
    ]:
        table = read([*codes, *short])
    for column in table.columns:
        if pa.types.is_binary(column.type):
            for value in column.drop_null():
                # Raises what the caller waits for at the first value that is no text in this encoding.
                value.as_py().decode(dialect.encoding)
    return table


def _is_of_year_99(column: pa.ChunkedArray) -> bool:
    """Whether dates are before the year 100: Arrow takes 31/12/24 for the year 31."""
    if not pa.types.is_timestamp(column.type):
        return False
    first = pc.min(column).as_py()
    return first is not None and first.year < 100


def _code_columns(source: Path | bytes, dialect: Dialect) -> list[str]:
    """Columns that begin with codes of digits, which Arrow would take for numbers and rob of their zeros."""
    start, whole = beginning(source)
    if re.search(rb"(^|\D)0\d{4}", start) is None:
        return []
    lines = io.StringIO(start.decode(dialect.encoding, "replace").removeprefix("\ufeff"), newline="").readlines()
    lines = lines[dialect.skipped : None if whole else -1]
    try:
        rows = parse_cells([line for line in lines if not line.startswith("#")], dialect.sep)
    except ValueError:
        return []
    names = rows[0] if dialect.header and rows else [f"f{place}" for place in range(len(rows[0]) if rows else 0)]
    below = rows[1:] if dialect.header else rows
    columns = zip(names, zip(*below, strict=False), strict=False)
    words = {"", *_NULL_WORDS, *_ODD_WORDS}
    return [
        name
        for name, cells in columns
        if _are_codes(pa.chunked_array([[c for c in cells if c not in words]], pa.string()))
    ]


def _read_copy(source: Path | bytes, dialect: Dialect) -> pa.Table:
    """By way of a copy in which every row has the cells of the header, separated by commas."""
    text = _bytes(source).decode(dialect.encoding).removeprefix("\ufeff")
    lines = io.StringIO(text, newline="").readlines()[dialect.skipped :]
    lines = [line for line in lines if not line.startswith("#")]
    rows = parse_cells(lines, dialect.sep, most=None)
    width = len(rows[0])
    below = rows[1:]
    if dialect.header and below and all(len(row) == width + 1 for row in below):
        # R names no column of row names, and some programs end rows, but not the header, with a separator.
        rows[0] = [*rows[0], ""] if not any(row[-1] for row in below) else ["", *rows[0]]
    elif width > 1 and not rows[0][-1] and below and all(len(row) == width - 1 for row in below):
        rows[0].pop()
    width = len(rows[0])
    rows = [row[:width] if not any(row[width:]) else row for row in rows]
    if long := [(place, row) for place, row in enumerate(rows) if len(row) > width]:
        place, row = long[0]
        raise ValueError(
            Sentence(
                f"Expected {width} columns, got {len(row)} in row {place + 1} and as wrongly in {len(long) - 1} others"
                "; a value that holds the separator goes in double quotes",
                Phrase("another separator", ""),
            )
        )
    short = [place for place, row in enumerate(rows) if len(row) < width]
    if short and short[-1] == len(rows) - 1 and not lines[-1].endswith(("\n", "\r")):
        raise ValueError(f"Expected {width} columns, got {len(rows[-1])} in its last row, which was cut short")
    if short:
        warnings.warn(
            f"{len(short)} of {len(rows) - dialect.header} rows have fewer than {width} values, the first of them row "
            f"{short[0] + 1}; what they lack is read as missing.",
            stacklevel=2,
        )
        rows = [row + [""] * (width - len(row)) for row in rows]
    return _read_plain(_plain_csv(rows), replace(dialect, sep=",", encoding="utf-8", skipped=0))


def _plain_csv(rows: list[list[str]]) -> bytes:
    copy = io.StringIO(newline="")
    # A single empty cell is a line that Arrow would take for none.
    csv.writer(copy, lineterminator="\n", quoting=csv.QUOTE_MINIMAL).writerows(rows)
    return copy.getvalue().encode()


def _tidy(table: pa.Table, dialect: Dialect, keep_words: bool) -> pa.Table:
    names = [name.strip() for name in table.column_names]
    columns = [_tidy_column(column, dialect.decimal, keep_words) for column in table.columns]
    if not dialect.header:
        names = [f"x{place}" for place in range(len(names))] if dialect.names is None else list(dialect.names)
    while len(names) > 1 and not names[-1] and columns[-1].null_count == len(columns[-1]) and len(columns[-1]):
        names, columns = names[:-1], columns[:-1]
    different = _different(names)
    if twice := [(old, new) for old, new in zip(names, different, strict=True) if old and old != new]:
        called = listing((f"{old!r} is called {new!r}" for old, new in twice), 5)
        warnings.warn(f"the header names a column more than once; from the second on {called}.", stacklevel=2)
    return pa.table(columns, names=different)


def _different(names: list[str]) -> list[str]:
    """Names that are all there and all different: `unnamed0` where there is none, _1, _2, ... where one comes again."""
    taken = set(names)
    seen: set[str] = set()
    result = []
    for place, name in enumerate(names):
        free, number = name or f"unnamed{place}", 0
        while free in seen or (free != name and free in taken):
            number += 1
            free = f"{name or f'unnamed{place}'}_{number}"
        seen.add(free)
        result.append(free)
    return result


def _tidy_column(column: pa.ChunkedArray, decimal: str, keep_words: bool) -> pa.ChunkedArray:
    """Text without the blanks around it, and numbers, truth values or dates where nothing else is left."""
    if not pa.types.is_string(column.type) or column.null_count == len(column):
        return column
    trimmed = pc.utf8_trim_whitespace(column)
    trimmed = _without(trimmed, _NULL_WORDS)
    found = None if _are_codes(trimmed) else _numbers(trimmed, decimal)
    if found is not None and not (keep_words and found.null_count > trimmed.null_count):
        return found
    if trimmed.equals(column):
        return column
    for kind in (pa.bool_(), pa.date32(), pa.timestamp("s")):
        try:
            return trimmed.cast(kind)
        except pa.ArrowInvalid:
            pass
    return trimmed


def _without(column: pa.ChunkedArray, words: list[str]) -> pa.ChunkedArray:
    return pc.if_else(pc.is_in(column, pa.array(words, column.type)), pa.scalar(None, column.type), column)


def _are_codes(column: pa.ChunkedArray) -> bool:
    """Whether cells are digits of one length, five or more, and some begin with 0, as postal codes are."""
    cells = column.drop_null()
    lengths = pc.unique(pc.utf8_length(cells.slice(0, _HEAD))).to_pylist()
    if len(lengths) != 1 or lengths[0] < _CODE_DIGITS or not pc.any(pc.starts_with(cells, "0")).as_py():
        return False
    return bool(pc.all(pc.match_substring_regex(cells, rf"^\d{{{lengths[0]}}}$")).as_py())


def _numbers(column: pa.ChunkedArray, decimal: str) -> pa.ChunkedArray | None:
    """The column as numbers, or None where a value is none; words for a missing value are no hindrance."""
    point, thousands = (r"\.", ",") if decimal == "." else (",", r"\.")
    plain = rf"(\d+({point}\d*)?|{point}\d+)([eE][+-]?\d+)?"
    grouped = rf"\d{{1,3}}([{thousands} \x{{a0}}\x{{202f}}']\d{{3}})+({point}\d+)?"
    pattern = rf"^[+-]?({plain}|{grouped})$"

    def all_match(values: pa.ChunkedArray) -> bool:
        return pc.all(pc.match_substring_regex(values, pattern), min_count=0).as_py() is not False

    if not all_match(_without(column.slice(0, _HEAD), _ODD_WORDS)):
        return None
    values = _without(column, _ODD_WORDS)
    if values.null_count == len(values) or not all_match(values):
        return None
    values = pc.replace_substring_regex(values, rf"[{thousands} \x{{a0}}\x{{202f}}']", "")
    values = pc.replace_substring(values, ",", ".") if decimal == "," else values
    kinds: list[Callable[[], pa.DataType]] = [pa.int64, pa.float64]
    for kind in kinds:
        try:
            return values.cast(kind())
        except pa.ArrowInvalid:
            pass
    return None
