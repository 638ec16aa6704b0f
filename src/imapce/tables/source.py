"""The columns of a table as people know them: numbers in their own units, or levels with their names.

>>> import pyarrow as pa
>>> table = pa.table({"size": [1.0, 2.0, 4.0, 8.0], "on": [True, False, True, None]})
>>> source_column(table, "on", "boolean").levels
('no', 'yes')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.tables.columns import all_missing, follow, numbers
from imapce.tables.encode import column_at, column_names
from imapce.tables.encoding import Category, Kind
from imapce.tables.reader import Reader

NO_YES = ("no", "yes")


@dataclass(frozen=True, eq=False)
class Column:
    """One column: `values` (NaN where missing) of a number, or `codes` (-1 where missing) into `levels`.

    >>> Column("size", values=np.array([1.5, np.nan])).text(0), Column("size", values=np.array([1.5, np.nan])).text(1)
    ('1.5', '')
    """

    name: str
    values: NDArray[np.float64] | None = None
    codes: NDArray[np.intp] | None = None
    levels: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers rather than levels."""
        return self.values is not None

    def text(self, row: int) -> str:
        """The value of a row as it is read; empty where it is missing."""
        if self.values is not None:
            value = float(self.values[row])
            return "" if np.isnan(value) else number_text(value)
        assert self.codes is not None
        code = int(self.codes[row])
        return self.levels[code] if code >= 0 else ""


@dataclass(frozen=True, eq=False)
class Source:
    """The columns that a reader learned, as they were before it encoded them; nothing is read before it is asked for.

    `table` is the table itself, None for an array, of which `values(places)` (n, c) gives columns of the matrix.

    >>> source = Source(Reader(2), None, lambda places: np.eye(2)[:, places])
    >>> source.names, source.column(1).values
    (['x0', 'x1'], array([0., 1.]))
    """

    reader: Reader
    table: Any
    values: Callable[[NDArray[np.intp]], NDArray[np.float64]]

    @property
    def names(self) -> list[str]:
        """The names of the columns, one for each category column."""
        return list(self.reader.columns or self.reader.names)

    def column(self, place: int) -> Column:
        """One of the columns."""
        encoding = self.reader.encoding
        if encoding is None or self.table is None:
            return Column(self.names[place], values=self.values(np.array([place]))[:, 0])
        return source_column(self.table, encoding.columns[place], encoding.kinds[place], encoding.categories[place])


def source_column(table: Any, name: str, kind: Kind, categories: Sequence[Category] = ()) -> Column:
    """A column of a table by its name, read as what it was learned as.

    >>> import pyarrow as pa
    >>> source_column(pa.table({"colour": ["red", "blue", None]}), "colour", "category", ("blue", "red")).codes
    array([ 1,  0, -1])
    """
    series = column_at(table, column_names(table).index(name))
    if kind == "category":
        plan = follow(series, kind, tuple(categories), "ignore")
        codes = plan.codes if not isinstance(plan, str) else None
        assert codes is not None
        return Column(name, codes=np.maximum(codes, -1), levels=tuple(str(level) for level in categories))
    values = np.full(len(series), np.nan) if all_missing(series) else np.asarray(numbers(series), dtype=np.float64)
    if kind == "number":
        return Column(name, values=values)
    return Column(name, codes=np.where(np.isnan(values), -1, np.nan_to_num(values)).astype(np.intp), levels=NO_YES)


def number_text(value: float, digits: int = 6) -> str:
    """A number as people write it, with so many digits at most.

    >>> number_text(1234567.0), number_text(0.123456789), number_text(40.0)
    ('1,234,567', '0.123457', '40')
    """
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    if 1e-4 <= abs(value) < 1e15:
        whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
        text = f"{value:,.{max(0, digits - whole)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.{digits}g}"
