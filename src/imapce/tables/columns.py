"""What one column of a table becomes: a number, a boolean or a category, or a reason why it cannot be used.

>>> colours = nw.from_native(pa.chunked_array([["red", "blue", "red", "red", "blue"]]), series_only=True)
>>> plan_of(colours).categories
('blue', 'red')
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast

import narwhals as nw
import numpy as np
import pyarrow as pa

from imapce.common.words import listing
from imapce.errors import Phrase, Sentence, Words
from imapce.tables.encoding import CATEGORY_TYPES, Category, Kind

# Text with more values than this is prose or an identifier: one-hot columns of it would hold no structure.
MOST_TEXT_VALUES = 50
UNKNOWN = -2
# What is wrong with a column or with values, and the way out.
ONLY_MISSING = Sentence("has only missing values", Phrase("drop column", " (drop it)"))
MIXED_TYPES = Sentence("has categories of more than one type", Phrase("drop column", " (make them text)"))
MAKE_CATEGORICAL = Phrase("drop column", " (drop it, or make it categorical)")
OR_DROP = Phrase("or drop column", ", or drop it")
MAKE_NUMBER = Sentence("convert it to a number, boolean or categorical type", OR_DROP)
DROP_OR_FILL = Phrase("drop or fill", 'drop those rows or columns, or fill them with missing="mean"')
DROP_OR_CLIP = Phrase("drop or clip", "drop those rows or clip the values")

Unknown = Literal["error", "ignore"]


class Plan(NamedTuple):
    """What one column becomes; codes are positions in categories, -1 for missing, None to read the numbers.

    Code -2 stands for a category that was not learned; ``strange`` are these.

    >>> plan_of(nw.from_native(pa.chunked_array([[1.5, 2.5]]), series_only=True)).kind
    'number'
    """

    kind: Kind
    categories: tuple[Category, ...]
    codes: np.ndarray | None
    series: nw.Series[Any]
    strange: tuple[Any, ...] = ()


def plan_of(series: nw.Series[Any]) -> Plan | str:
    """What a column becomes, or why it cannot become anything and the way out.

    >>> plan_of(nw.from_native(pa.chunked_array([["what", "ever"]]), series_only=True))
    'is free text with 2 distinct values in 2 rows (drop it, or make it categorical)'
    """
    dtype = series.dtype
    if all_missing(series):
        return ONLY_MISSING
    kind = kind_of(series)
    if kind in ("boolean", "number"):
        return Plan(cast(Kind, kind), (), None, series)
    if kind != "category":
        return kind
    dictionary, codes = _dictionary_and_codes(series)
    observed = [dictionary[code] for code in np.unique(codes) if code >= 0]
    kinds = {type(value) for value in observed}
    if len(kinds) > 1 or not kinds <= set(CATEGORY_TYPES):
        return Sentence(f"has categories of type {_type_name(series)}", Phrase("drop column", " (make them text)"))
    categories = tuple(sorted(set(observed)))
    rows = len(series)
    if dtype == nw.String and (len(categories) > MOST_TEXT_VALUES or 2 * len(categories) >= rows):
        distinct = f"{len(categories)} distinct values in {rows} rows"
        return Sentence(f"is free text with {distinct}", MAKE_CATEGORICAL)
    return Plan("category", categories, _positions(dictionary, codes, categories), series)


def kind_of(series: nw.Series[Any]) -> Kind | str:
    """The kind that a column is by its type, or why it cannot be any.

    >>> kind_of(nw.from_native(pa.chunked_array([[True]]), series_only=True))
    'boolean'
    """
    dtype = series.dtype
    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_numeric():
        return "number"
    return "category" if dtype in (nw.String, nw.Categorical, nw.Enum) else _not_a_number(series)


def follow(
    series: nw.Series[Any], kind: Kind, categories: tuple[Category, ...], unknown: Unknown = "error"
) -> Plan | str:
    """How a column of new rows follows the kind that was learned, or why it cannot.

    With ``unknown="ignore"`` a category that was not learned is no fault: its rows have none of the learned ones.

    >>> follow(nw.from_native(pa.chunked_array([["green"]]), series_only=True), "category", ("blue", "red"))
    "has the unknown category 'green' (it was learned with 'blue', 'red'; drop those rows or learn again)"
    """
    dtype = series.dtype
    if all_missing(series):
        # A single new row with a missing value is a column of nulls, whose type says nothing.
        return Plan(kind, categories, np.full(len(series), -1), series)
    if kind == "category":
        if not (dtype.is_numeric() or dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean)):
            return f"was learned as a category and is now {_type_name(series)} (convert it)"
        dictionary, codes = _dictionary_and_codes(series)
        known = set(categories)
        strange = [dictionary[code] for code in np.unique(codes) if code >= 0 and dictionary[code] not in known]
        if strange and unknown == "error":
            return Sentence(
                f"has the unknown category {listing(map(repr, strange), 10)} (it was learned with "
                f"{listing(map(repr, categories), 10)}; ",
                Phrase("unknown category", "drop those rows or learn again"),
                ")",
            )
        places = _positions(dictionary, codes, categories)
        # A code of -1 without a value behind it is a gap; with one, it is a category that was not learned.
        return Plan(kind, categories, np.where((places < 0) & (codes >= 0), UNKNOWN, places), series, tuple(strange))
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        return f"was learned as a {kind} and is now {_type_name(series)} (convert it)"
    if kind == "boolean" and dtype != nw.Boolean:
        values = numbers(series)
        if not np.isin(values[~np.isnan(values)], (0, 1)).all():
            return "was learned as a boolean and now has numbers other than 0 and 1 (convert it)"
    return Plan(kind, (), None, series)


def numbers(series: nw.Series[Any]) -> np.ndarray:
    """The column as floats, NaN where it is missing.

    >>> numbers(nw.from_native(pa.chunked_array([[1, None]]), series_only=True))
    array([ 1., nan])
    """
    if series.dtype in (nw.Float32, nw.Float64):
        return series.to_numpy()
    if series.dtype.is_integer() and not series.implementation.is_polars():
        # Arrow's checked cast refuses integers beyond 2**53, where pandas and polars round to the nearest.
        return series.to_arrow().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return series.cast(nw.Float64).to_numpy()


def all_missing(series: nw.Series[Any]) -> bool:
    """Whether a column has no value at all, null and NaN alike.

    >>> all_missing(nw.from_native(pa.chunked_array([[None, float("nan")]]), series_only=True))
    True
    """
    if series.null_count() == len(series):
        return True
    # polars and Arrow tell NaN from null; the first value settles it for nearly every column.
    return (
        series.dtype.is_float()
        and bool(np.isnan(numbers(series.head(1))).all())
        and bool(np.isnan(numbers(series)).all())
    )


def _dictionary_and_codes(series: nw.Series[Any]) -> tuple[list[Any], np.ndarray]:
    """The distinct values of a column and for each row the position of its value, -1 where it is missing."""
    array = series.to_arrow()
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    values = array.dictionary.to_pylist()
    codes = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    gone = [position for position, value in enumerate(values) if value is None or value != value]
    return values, np.where(np.isin(codes, gone), -1, codes) if gone else codes


def _positions(dictionary: list[Any], codes: np.ndarray, categories: tuple[Category, ...]) -> np.ndarray:
    """Codes into the dictionary as codes into the categories; the last place of the lookup serves code -1."""
    place = {value: position for position, value in enumerate(categories)}
    lookup = np.array([place.get(value, -1) for value in dictionary] + [-1])
    return lookup[codes]


def _type_name(series: nw.Series[Any]) -> str:
    native = series.to_native()
    kind = getattr(native, "type", None) or native.dtype
    # A pandas categorical of intervals prints as "category", which hides what is wrong with it.
    inner = getattr(getattr(kind, "categories", None), "dtype", None)
    return f"{kind} of {inner}" if inner is not None else str(kind)


def _not_a_number(series: nw.Series[Any]) -> str:
    """Why a column of this type is refused, and what to do with it."""
    dtype = series.dtype
    if dtype.is_temporal():
        way_out: Words = Phrase(
            "number of a date", "take a number out of it, for example the year or the seconds since a start"
        )
    elif dtype.is_nested():
        way_out = Sentence("spread it over columns of its own", OR_DROP)
    else:
        way_out = MAKE_NUMBER
    return Sentence(f"is {_type_name(series)} (", way_out, ")")
