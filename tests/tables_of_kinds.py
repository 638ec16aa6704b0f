"""The same columns as tables of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from imapce.errors import InvalidValueError
from imapce.tables.encode import encode

MIXED: dict[str, list[Any]] = {
    "size": [1.5, 2.5, None, 4.0, 5.0, 6.0],
    "count": [1, 2, 3, 4, 5, 6],
    "ripe": [True, False, True, True, None, False],
    "colour": ["red", "blue", "red", None, "blue", "red"],
}
MEANS = [3.8, 3.5, 0.6, 0.4, 0.6]


def as_pandas(columns: dict[str, list[Any]]) -> Any:
    # pandas 2 looks whether infinity is a whole number.
    with np.errstate(invalid="ignore"):
        return pd.DataFrame(columns).convert_dtypes()


KINDS: list[Callable[[dict[str, list[Any]]], Any]] = [as_pandas, pl.DataFrame, pa.table]
each_kind = pytest.mark.parametrize("make", KINDS, ids=["pandas", "polars", "arrow"])


def one_sentence(caught: Any) -> str:
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith((".", "?"))
    return text


def refusal(X: Any, **options: Any) -> str:
    with pytest.raises(InvalidValueError) as caught:
        encode(X, **options)
    return one_sentence(caught)
