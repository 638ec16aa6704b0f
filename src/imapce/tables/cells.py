"""The cells of a whole table as people write them: columns of text that are numbers or dates become these, and told.

>>> cells = read_cells(pa.table({"a": ["1.5", "2.5", "n.a.", "4"], "town": ["Ulm", "Bern", "Ulm", "Ulm"]}))
>>> cells.native["a"].to_pylist(), cells.notes["a"]
([1.5, 2.5, None, 4.0], "'a' is numbers but for 'n.a.' in row 3, read as missing.")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from imapce.common.words import counted, enumerated
from imapce.tables.columns import Texts, days, is_date, text_cells
from imapce.tables.encode import column_at, column_names, native_table
from imapce.tables.values import Recognised, Writing, recognise_cells

# Rows and words that are told one by one.
MOST_ROWS, MOST_WORDS = 3, 5


@dataclass(frozen=True, eq=False)
class ReadCells:
    """A table whose cells were read: `native` in its own kind, and by the column how it is written and what is told."""

    native: Any
    written: Mapping[str, Writing] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    # How dates are written, for those who leave them out.
    dates: Mapping[str, str] = field(default_factory=dict)


def read_cells(table: Any, *, decimal: str | None = None, name: str = "X") -> ReadCells:
    """A table of pandas, polars or Arrow with numbers and dates in place of text that is such; no row is changed.

    `decimal` is the decimal sign of the file, for columns that leave it open.
    """
    table = native_table(table)
    written: dict[str, Writing] = {}
    notes: dict[str, str] = {}
    dates: dict[str, str] = {}
    for place, (column, texts, found) in enumerate(_recognised(table, decimal, name)):
        if texts is None or found is None:
            continue
        table = with_column(table, place, _values(texts, found), found.writing.kind)
        written[column] = found.writing
        notes[column] = f"{column!r} {found.words}{_but_for(texts, found.writing.words)}."
        if found.writing.kind == "date":
            dates[column] = found.order_in_words
    return ReadCells(table, written, notes, dates)


def keeping_dates(cells: ReadCells, table: pa.Table) -> pa.Table:
    """The Arrow table with its cells read, but for dates, which are as they were written.

    >>> table = pa.table({"day": ["31/12/2024", "1/2/2025"], "paid": ["€2", "€3"]})
    >>> keeping_dates(read_cells(table), table).to_pydict()
    {'day': ['31/12/2024', '1/2/2025'], 'paid': [2, 3]}
    """
    kept = cells.native
    for name in cells.dates:
        kept = kept.set_column(kept.column_names.index(name), name, table.column(name))
    return kept


def has_cells_to_read(table: Any) -> bool:
    """Whether text in a table that could be taken as it is is clearly numbers or dates, which someone may have chosen.

    >>> has_cells_to_read(pa.table({"store": ["1", "2", "unknown"] * 9}))
    False
    """
    return any(found is not None for _, _, found in _recognised(native_table(table), None, "X", typed=True))


def with_column(table: Any, place: int, values: NDArray[np.float64], kind: Literal["number", "date", "float"]) -> Any:
    """The table with other values in one column, NaN where one is missing; those of a date are days since 1970.

    Numbers that are all whole become whole numbers, as in a file.
    """
    gaps = np.isnan(values)
    array: Any = values
    if kind == "date":
        seconds = np.where(gaps, 0, np.nan_to_num(values) * 86_400).round().astype(np.int64)
        array = np.where(gaps, np.datetime64("NaT", "s"), seconds.astype("datetime64[s]"))
    elif kind == "number" and _are_whole(values[~gaps]):
        array = np.where(gaps, 0, values).astype(np.int64)
    if nw.dependencies.is_pandas_dataframe(table):
        table = table.copy(deep=False)
        # pandas has no whole numbers with gaps among its plain types.
        table.isetitem(place, values if gaps.any() and kind == "number" else array)
        return table
    arrow = pa.chunked_array([pa.array(array, mask=gaps)])
    if kind == "date" and _are_whole(values[~gaps]):
        arrow = arrow.cast(pa.date32())
    if nw.dependencies.is_polars_dataframe(table):
        import polars

        names = table.columns
        return table.with_columns(polars.Series(names[place], polars.from_arrow(arrow)))
    return table.set_column(place, table.column_names[place], arrow)


def dates_as_days(table: Any, name: str = "X") -> tuple[Any, dict[str, Writing]]:
    """A table with its dates as days since 1970, and which columns these were.

    >>> import datetime
    >>> dates_as_days(pa.table({"day": [datetime.date(1970, 1, 11), None]}))[0].to_pydict()
    {'day': [10.0, None]}
    """
    found: dict[str, Writing] = {}
    for place, column in enumerate(column_names(table, name)):
        series = column_at(table, place)
        if is_date(series):
            table = with_column(table, place, days(series), "float")
            found[column] = Writing("date", order="ymd")
    return table, found


def _recognised(
    table: Any, decimal: str | None, name: str, *, typed: bool = False
) -> Iterator[tuple[str, Texts | None, Recognised | None]]:
    for place, column in enumerate(column_names(table, name)):
        texts = text_cells(column_at(table, place))
        if texts is None or not texts.distinct:
            yield column, None, None
            continue
        counts = np.bincount(texts.codes, minlength=len(texts.distinct) + 1)[:-1]
        of_cells = dict(zip(texts.distinct, counts.tolist(), strict=True))
        yield column, texts, recognise_cells(of_cells, decimal=decimal, typed=typed)


def _are_whole(values: NDArray[np.float64]) -> bool:
    # Beyond 2**53 not every whole number is a float.
    return bool((values == np.round(values)).all() and (np.abs(values) < 2**53).all())


def _values(texts: Texts, found: Recognised) -> NDArray[np.float64]:
    values = [found.values[text] for text in texts.distinct]
    return np.array([np.nan if value is None else value for value in values] + [np.nan])[texts.codes]


def _but_for(texts: Texts, words: tuple[str, ...]) -> str:
    """The words that stood for no value, with their rows, which count from 1 and without the header."""
    if not words:
        return ""
    place = {text: position for position, text in enumerate(texts.distinct)}
    told = [(word, np.flatnonzero(texts.codes == place[word]) + 1) for word in words]
    told.sort(key=lambda word_rows: -len(word_rows[1]))
    phrases = [f"{word!r} {_in_rows(rows.tolist())}" for word, rows in told[:MOST_WORDS]]
    if rest := told[MOST_WORDS:]:
        phrases.append(f"{counted(len(rest), 'other word')} {_in_rows_count(sum(len(rows) for _, rows in rest))}")
    return f" but for {enumerated(phrases)}, read as missing"


def _in_rows(rows: list[int]) -> str:
    if len(rows) > MOST_ROWS:
        return _in_rows_count(len(rows))
    return f"in row{'s' if len(rows) > 1 else ''} {enumerated([f'{row:,}' for row in rows])}"


def _in_rows_count(count: int) -> str:
    return f"in {counted(count, 'row')}"
