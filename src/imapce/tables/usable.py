"""What of a table is used: columns that can be features (no ids, free text, dates, constants), rows by COLUMN=VALUE.

`encode` refuses such columns; where a table is used as it was found, as on the command line, they are left out instead.

>>> table = pa.table({"id": ["k", "l", "m", "n"], "size": [1.0, 2.0, 4.0, 8.0], "unit": ["cm"] * 4})
>>> usable_columns(table)
(['size'], {'id': 'is an id, 4 distinct values in 4 rows', 'unit': 'is constant'})
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from imapce.common.settings import SETTINGS
from imapce.common.words import close_matches, listing
from imapce.errors import InvalidValueError
from imapce.tables.columns import MOST_TEXT_VALUES, numbers
from imapce.tables.encode import Table, column_at, column_names

IS_A_DATE = "is a date"
# id, row_id, PassengerId and sampleID, but neither "acid" nor "paid".
_ID_NAME = re.compile(r"(|.*[\W_])[iI][dD]|.*[a-z](Id|ID)")
_COUNT_NAME = re.compile(
    # "Unnamed: 0" is the name that pandas gives to an index in a file.
    r"(|.*[\W_])(ids|idx|index|key|rows?|rownum|row_?names?|nr|no|num|number|unnamed(: )?\d*)",
    re.IGNORECASE,
)


def usable_columns(
    table: Any, *, keep: Collection[str] = (), named: Collection[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """The columns that can be features, in their order, and for each other one the reason; `keep` are not questioned.

    Left out are columns with one value or none, text that is an id or free (as many values as half the rows), more
    than 50 categories, whole numbers that count the rows and are named like it, or that all differ and are named an
    id, dates, and types that no number comes of. Columns with more missing than observed values and integers that
    number 20 or more rows (a constant step, or an index-like name and each integer of a range once) are left out, too,
    unless the user named them, for example as a prior (`named`).

    >>> usable_columns(pa.table({"row_id": [1, 2, 3], "x": [0.5, 0.1, 0.2]}))[1]
    {'row_id': 'is an id that counts the rows'}
    """
    learned = table if isinstance(table, Table) else Table.learn(table, "table")
    features: list[str] = []
    left_out: dict[str, str] = {}
    for place, name in enumerate(learned.column_names):
        reason = None if name in keep or not len(learned) else _reason(learned, place, is_named=name in named)
        if reason is None:
            features.append(name)
        else:
            left_out[name] = reason
    return features, left_out


def select(table: Any, column: str, value: str) -> np.ndarray:
    """Which rows have this value, given as text, in this column: a boolean mask, never empty of True.

    A number column compares as a number in its own precision, a boolean column as true/false, any other
    column as text; missing values match nothing.

    >>> select(pa.table({"size": [1, 2]}), "size", "2.0").tolist()
    [False, True]
    """
    names = column_names(table, "table")
    if column not in names:
        raise InvalidValueError(f"column must be a column of the table, got {column!r}: {close_matches(column, names)}")
    values = column_at(table, names.index(column)).to_arrow()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_float16(values.type):
        # Arrow compares no half floats.
        values = values.cast(pa.float32())
    numeric = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    numeric = numeric or pa.types.is_decimal(values.type)
    if not numeric and not pa.types.is_boolean(values.type):
        try:
            values = values.cast(pa.large_string())
        except pa.ArrowException as problem:
            raise InvalidValueError(
                f"column must hold numbers, text, categories or dates, got {column!r} of type {values.type}: "
                "pick another column."
            ) from problem
    wanted = _scalar(value, values.type, column)
    mask = np.zeros(len(values), dtype=bool)
    if wanted is not None:
        mask = pc.fill_null(pc.equal(values, wanted), False).to_numpy(zero_copy_only=False)
    if not mask.any():
        known = [str(item) for item in pc.unique(values.drop_null()).to_pylist()]
        near = difflib.get_close_matches(value, known, n=1)
        hint = f"did you mean {near[0]!r}, as the column" if near else "the column"
        raise InvalidValueError(
            f"value must occur in column {column!r}, got {value!r}: {hint} has {listing(map(repr, known), 10)}."
        )
    return mask


def _reason(table: Table, place: int, *, is_named: bool) -> str | None:
    """Why a column can be no feature, None where it can."""
    summary, series, rows = table.summary, column_at(table, place), len(table)
    problem, found = summary.problem(place), summary.categories.get(place)
    if series.dtype.is_temporal() and summary.n_missing[place] < rows:
        return IS_A_DATE
    if found is not None:
        if found.is_text and found.n_values == rows > 1 and not _is_prose(series):
            return f"is an id, {rows} distinct values in {rows} rows"
        if found.n_values > MOST_TEXT_VALUES and (not found.is_text or found.n_values < rows):
            return f"has {found.n_values} levels"
    if problem is not None:
        return problem.reason
    if not is_named and (reason := _uninformative_reason(table, place)) is not None:
        return reason
    if found is not None:
        return "is constant" if found.n_values == 1 and rows > 1 else None
    values = numbers(series)
    present = values[~np.isnan(values)]
    if rows > 1 and (present == present[0]).all():
        return "is constant"
    name = summary.names[place]
    if rows / 2 < present.size < rows and _ID_NAME.fullmatch(name) and _are_keys(present):
        return f"is an id, {present.size} distinct values in {rows} rows"
    if not series.dtype.is_integer() or present.size < rows or rows == 1:
        return None
    counts = present[0] in (0, 1) and bool((np.diff(present) == 1).all())
    if counts and (_COUNT_NAME.fullmatch(name) or _ID_NAME.fullmatch(name)):
        return "is an id that counts the rows"
    if _ID_NAME.fullmatch(name) and np.unique(present).size == rows:
        return f"is an id, {rows} distinct values in {rows} rows"
    return None


def uninformative_columns(table: Table, named: Collection[str]) -> dict[str, str]:
    """Return why columns are left out: most values are missing, or they number the rows; never `named` ones."""
    reasons = {name: _uninformative_reason(table, place) for place, name in enumerate(table.column_names)}
    return {name: reason for name, reason in reasons.items() if reason is not None and name not in named}


def _uninformative_reason(table: Table, place: int) -> str | None:
    """Return the reason if most values of a column are missing or it numbers the rows, else None."""
    rows, n_missing = len(table), table.summary.n_missing[place]
    if 2 * n_missing > rows:
        return f"has {n_missing} missing values in {rows} rows"
    series = column_at(table, place)
    if n_missing or rows < SETTINGS.tables.fewest_row_numbers or not series.dtype.is_integer():
        return None
    name, values = table.column_names[place], numbers(series)
    steps, low, high = np.diff(values), values.min(), values.max()
    if steps[0] != 0 and (steps == steps[0]).all():
        return f"numbers the rows from {values[0]:.0f} to {values[-1]:.0f} in steps of {steps[0]:.0f}"
    # A permutation is evidence only with a name: ranks of a measurement are one as well.
    if _COUNT_NAME.fullmatch(name) and high - low == len(values) - 1 and np.unique(values).size == len(values):
        return f"numbers the rows, with each integer from {low:.0f} to {high:.0f} once"
    return None


def _are_keys(values: NDArray[Any]) -> bool:
    """Whether numbers are whole and all differ, whatever their type: pandas has none for whole numbers with gaps."""
    return bool((values == np.round(values)).all()) and np.unique(values).size == values.size


def _is_prose(series: nw.Series[Any]) -> bool:
    """Whether values are sentences rather than keys: on average three words or more."""
    values = series.head(100).to_list()
    return sum(str(value).count(" ") for value in values) >= 2 * len(values)


def _scalar(text: str, kind: pa.DataType, column: str) -> pa.Scalar | None:
    """The text as a value of this type; None when the type cannot hold it, so that no row can match."""
    if pa.types.is_large_string(kind):
        return pa.scalar(text, kind)
    try:
        return pa.scalar(text.strip()).cast(kind)
    except pa.ArrowException:
        pass
    try:
        if pa.types.is_boolean(kind):
            raise ValueError(text)
        number = float(text)
        # Arrow reads "2.0" and "2e3" as no integer.
        return pa.scalar(int(number) if pa.types.is_integer(kind) and number.is_integer() else number).cast(kind)
    except (pa.ArrowException, OverflowError):
        return None
    except ValueError as problem:
        raise InvalidValueError(
            f"value must be a number or true/false for column {column!r} of type {kind}, got {text!r}: pass "
            "one that occurs in it."
        ) from problem
