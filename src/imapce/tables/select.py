"""Rows by what a column says: COLUMN=VALUE, as it is written on a command line, becomes a mask.

>>> select(pa.table({"island": ["Dream", "Biscoe", "Dream"]}), "island", "Dream").tolist()
[True, False, True]
"""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from imapce.common.words import close_matches, listing
from imapce.errors import InvalidValueError
from imapce.tables.encode import column_at, column_names


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
