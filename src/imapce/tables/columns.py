"""One column of a table: the kind that its type makes it, its values as numbers or as levels, why it cannot be used.

>>> colours = nw.from_native(pa.chunked_array([["red", None, "blue"]]), series_only=True)
>>> kind_of(colours), read_codes(colours, ("blue", "red"))[0]
('category', array([ 1, -1,  0]))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from imapce.common.words import listing
from imapce.errors import Phrase, Sentence, Words

Kind = Literal["number", "boolean", "category"]
Category = str | int | float | bool
Unknown = Literal["error", "ignore"]

CATEGORY_TYPES = (str, int, float, bool)

# Text with more values than this is prose or an identifier: one-hot columns of it would hold no structure.
MOST_TEXT_VALUES = 50
MISSING, UNKNOWN = -1, -2
NO_YES = ("no", "yes")
MAKE_TEXT = Phrase("drop column", " (make them text)")
MIXED_TYPES = ("has categories of more than one type", MAKE_TEXT)
OR_DROP = Phrase("or drop column", ", or drop it")
_CATEGORIES = (nw.String, nw.Categorical, nw.Enum)


class UnusableColumn(Exception):
    """Why a column cannot become numbers, and what to do with it."""

    def __init__(self, reason: str, way_out: Words):
        super().__init__(reason, way_out)
        self.reason, self.sentence = reason, Sentence(reason, way_out)


@dataclass(frozen=True, eq=False)
class Column:
    """A column as people know it: `values` of a number, NaN where missing, or `codes` into `levels`, -1 where missing.

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


def is_free_text(n_values: int, n_rows: int) -> bool:
    """Whether text of so many different values in so many rows is prose or an identifier, and no category.

    >>> is_free_text(2, 4), is_free_text(2, 5)
    (True, False)
    """
    return n_values > MOST_TEXT_VALUES or 2 * n_values >= n_rows


def kind_of(series: nw.Series[Any]) -> Kind:
    """The kind that a column is by its type; raises UnusableColumn where no number comes of it."""
    dtype = series.dtype
    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_numeric():
        return "number"
    if dtype in _CATEGORIES:
        return "category"
    if dtype.is_temporal():
        number = "take a number out of it, for example the year or the seconds since a start"
        way_out = Sentence(" (", Phrase("number of a date", number), ")")
    elif dtype.is_nested():
        way_out = Sentence(" (spread it over columns of its own", OR_DROP, ")")
    else:
        way_out = Sentence(" (convert it to a number, boolean or categorical type", OR_DROP, ")")
    raise UnusableColumn(f"is {type_name(series)}", way_out)


def read_column(name: str, series: nw.Series[Any], kind: Kind, categories: tuple[Category, ...] = ()) -> Column:
    """A column as what it was learned as; values that were not learned are missing."""
    if kind == "category":
        codes, _ = read_codes(series, categories, "ignore")
        return Column(name, codes=np.maximum(codes, MISSING), levels=tuple(str(level) for level in categories))
    values = np.asarray(read_numbers(series, kind), dtype=np.float64)
    if kind == "number":
        return Column(name, values=values)
    return Column(name, codes=np.where(np.isnan(values), MISSING, np.nan_to_num(values)).astype(np.intp), levels=NO_YES)


def read_numbers(series: nw.Series[Any], kind: Kind = "number") -> NDArray[Any]:
    """A column that was learned as a number or a boolean, as floats; raises UnusableColumn where it is now another."""
    dtype = series.dtype
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        if series.null_count() == len(series):
            # A single new row with a missing value is a column of nulls, whose type says nothing.
            return np.full(len(series), np.nan)
        raise UnusableColumn(f"was learned as a {kind} and is now {type_name(series)}", " (convert it)")
    values = numbers(series)
    if kind == "boolean" and dtype != nw.Boolean and not np.isin(values[~np.isnan(values)], (0, 1)).all():
        raise UnusableColumn("was learned as a boolean and now has numbers other than 0 and 1", " (convert it)")
    return values


def read_codes(
    series: nw.Series[Any], categories: tuple[Category, ...], unknown: Unknown = "error"
) -> tuple[NDArray[np.intp], list[Any]]:
    """A column that was learned as a category, as places in `categories`, and the values that are none of them.

    A missing value is -1. A value that was not learned is refused, or -2 with ``unknown="ignore"``.
    """
    dtype = series.dtype
    if not (dtype.is_numeric() or dtype == nw.Boolean or dtype in _CATEGORIES):
        if series.null_count() == len(series):
            return np.full(len(series), MISSING), []
        raise UnusableColumn(f"was learned as a category and is now {type_name(series)}", " (convert it)")
    array = as_arrow_values(series)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    values = array.dictionary.to_pylist()
    place = {value: position for position, value in enumerate(categories)}
    # NaN differs from itself; the last place of the lookup serves the rows without a value.
    lookup = [place.get(value, UNKNOWN) if value is not None and value == value else MISSING for value in values]
    found = array.indices.cast(pa.int64()).fill_null(len(values)).to_numpy(zero_copy_only=False)
    codes = np.array([*lookup, MISSING])[found]
    strange = [values[position] for position in np.unique(found[codes == UNKNOWN])]
    if strange and unknown == "error":
        raise UnusableColumn(
            f"has the unknown category {listing(map(repr, strange), 10)}",
            Sentence(
                f" (it was learned with {listing(map(repr, categories), 10)}; ",
                Phrase("unknown category", "drop those rows or learn again"),
                ")",
            ),
        )
    return codes, strange


def numbers(series: nw.Series[Any]) -> NDArray[Any]:
    """The column as floats, NaN where it is missing."""
    if series.dtype in (nw.Float32, nw.Float64):
        return series.to_numpy()
    if series.dtype.is_integer() and not series.implementation.is_polars():
        # Arrow's checked cast refuses integers beyond 2**53, where pandas and polars round to the nearest.
        return series.to_arrow().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return series.cast(nw.Float64).to_numpy()


def as_arrow_values(series: nw.Series[Any]) -> Any:
    """The values of a category as Arrow holds them."""
    try:
        return series.to_arrow()
    except pa.ArrowException as problem:
        # pandas categories may mix types (1 and "a"), which no Arrow dictionary holds.
        raise UnusableColumn(*MIXED_TYPES) from problem


def type_name(series: nw.Series[Any]) -> str:
    """What its own library calls the type of a column."""
    native = series.to_native()
    kind = getattr(native, "type", None) or native.dtype
    # A pandas categorical of intervals prints as "category", which hides what is wrong with it.
    inner = getattr(getattr(kind, "categories", None), "dtype", None)
    return f"{kind} of {inner}" if inner is not None else str(kind)


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
