"""One column of a table: the kind that its type makes it, its values as numbers or as levels, why it cannot be used.

>>> colours = nw.from_native(pa.chunked_array([["red", None, "blue"]]), series_only=True)
>>> kind_of(colours), read_codes(colours, ("blue", "red"))[0]
('category', array([ 1, -1,  0]))
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from imapce.common.words import listing
from imapce.errors import Argument, Phrase, Sentence, Words
from imapce.tables.values import Writing

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
_SECONDS_OF_A_DAY = 86_400.0
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
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


def read_column(
    name: str,
    series: nw.Series[Any],
    kind: Kind,
    categories: tuple[Category, ...] = (),
    writing: Writing | None = None,
) -> Column:
    """A column as what it was learned as; values that were not learned are missing."""
    if kind == "category":
        codes, _ = read_codes(series, categories, "ignore")
        return Column(name, codes=np.maximum(codes, MISSING), levels=tuple(str(level) for level in categories))
    values = np.asarray(read_numbers(series, kind, writing, "ignore")[0], dtype=np.float64)
    if kind == "number":
        return Column(name, values=values)
    return Column(name, codes=np.where(np.isnan(values), MISSING, np.nan_to_num(values)).astype(np.intp), levels=NO_YES)


def read_numbers(
    series: nw.Series[Any], kind: Kind = "number", writing: Writing | None = None, unknown: Unknown = "error"
) -> tuple[NDArray[Any], list[str]]:
    """A column that was learned as a number or a boolean, as floats, and the cells that are none and became NaN.

    Text is read by its `writing`. Raises UnusableColumn where the column is now another, and for a word that was not
    learned, unless `unknown` is "ignore".
    """
    dtype = series.dtype
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        if series.null_count() == len(series):
            # A single new row with a missing value is a column of nulls, whose type says nothing.
            return np.full(len(series), np.nan), []
        if is_date(series) and writing is not None and writing.kind == "date":
            return days(series), []
        texts = text_cells(series) if kind == "number" else None
        if texts is None:
            raise UnusableColumn(f"was learned as a {kind} and is now {type_name(series)}", " (convert it)")
        return _read_texts(texts, writing or Writing("number"), unknown, type_name(series))
    values = numbers(series)
    if kind == "boolean" and dtype != nw.Boolean and not np.isin(values[~np.isnan(values)], (0, 1)).all():
        raise UnusableColumn("was learned as a boolean and now has numbers other than 0 and 1", " (convert it)")
    return values, []


def _read_texts(texts: Texts, writing: Writing, unknown: Unknown, type_name: str) -> tuple[NDArray[Any], list[str]]:
    """Cells of text as numbers, each different one read once."""
    values, strange = np.full(len(texts.distinct) + 1, np.nan), []
    for place, text in enumerate(texts.distinct):
        try:
            value = writing.value(text)
            values[place] = np.nan if value is None else value
        except ValueError:
            strange.append(text)
    if 2 * len(strange) > len(texts.distinct):
        raise UnusableColumn(f"was learned as a number and is now {type_name}", " (convert it)")
    if strange and unknown == "error":
        raise UnusableColumn(
            f"was learned as numbers and has {listing(map(repr, strange), 10)}",
            Sentence(
                " (", Phrase("unknown cell", "leave those cells empty, or use "), Argument("unknown", "ignore"), ")"
            ),
        )
    return values[texts.codes], strange


@dataclass(frozen=True, eq=False)
class Texts:
    """Cells of text: the different ones, and for each row its place among them, behind the last where it is missing."""

    distinct: list[str]
    codes: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.codes)


def text_cells(series: nw.Series[Any]) -> Texts | None:
    """The cells of a column of text, or of text and numbers side by side; None where it holds anything else."""
    if series.dtype == nw.String:
        encoded = series.to_arrow().dictionary_encode()
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        distinct = encoded.dictionary.to_pylist()
        codes = encoded.indices.cast(pa.int64()).fill_null(len(distinct)).to_numpy(zero_copy_only=False)
        return Texts(distinct, codes)
    if series.dtype != nw.Object:
        return None
    cells = [None if value is None or value != value else value for value in series.to_list()]
    if not all(cell is None or isinstance(cell, (str, int, float, Decimal)) for cell in cells):
        return None
    texts = [None if cell is None else cell if isinstance(cell, str) else str(cell) for cell in cells]
    place = {text: position for position, text in enumerate(dict.fromkeys(text for text in texts if text is not None))}
    return Texts(list(place), np.array([len(place) if text is None else place[text] for text in texts], dtype=np.intp))


def is_date(series: nw.Series[Any]) -> bool:
    """Whether a column holds dates, times or durations.

    >>> is_date(nw.from_native(pa.chunked_array([pa.array([10], pa.date64())]), series_only=True))
    True
    """
    # narwhals has no name for Arrow's dates in milliseconds.
    return series.dtype.is_temporal() or pa.types.is_temporal(getattr(series.to_native(), "type", pa.null()))


def days(series: nw.Series[Any]) -> NDArray[np.float64]:
    """Dates as days since 1970, times of day and durations as days; NaN where one is missing.

    >>> days(nw.from_native(pa.chunked_array([pa.array([10], pa.date32())]), series_only=True))
    array([10.])
    """
    column = series.to_arrow()
    kind = column.type
    if pa.types.is_date(kind):
        found = column.cast(pa.date32()).cast(pa.int32()).cast(pa.float64())
    else:
        counts = column.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64()).cast(pa.float64(), safe=False)
        found = pc.divide(counts, _UNITS[kind.unit] * _SECONDS_OF_A_DAY)
    return found.to_numpy(zero_copy_only=False)


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
