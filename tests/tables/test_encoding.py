"""An encoding as JSON, and frames and rows chosen in the types of a table's columns."""

from __future__ import annotations

import datetime
import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from imapce.errors import FileFormatError, InvalidTypeError, InvalidValueError
from imapce.tables.encode import encode, frame
from imapce.tables.learn import Encoding
from imapce.tables.usable import select
from tables_of_kinds import MIXED, each_kind, one_sentence


def test_an_encoding_survives_json() -> None:
    table = pd.DataFrame(
        {
            "a": [0.1, 0.2, 0.4],
            "b": [True, False, True],
            "s": pd.Categorical(["x", "y", "x"]),
            "i": pd.Categorical([2, 1, 2]),
            "f": pd.Categorical([2.0, 1.5, 2.0]),
            "t": pd.Categorical([True, False, True]),
        }
    )
    encoding = encode(table).encoding
    back = Encoding.from_json(json.loads(json.dumps(encoding.to_json(), allow_nan=False)))
    assert back == encoding
    assert [type(values[0]) for values in back.categories if values] == [str, int, float, bool]
    np.testing.assert_array_equal(encode(table, encoding=back).matrix, encode(table).matrix)


def entry(**changes: Any) -> dict[str, Any]:
    plain = {"name": "a", "kind": "category", "categories": ["x", "y"], "fill": [0.5, 0.5]}
    return {"columns": [{**plain, **changes}]}


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {},
        {"columns": []},
        {"columns": {}},
        {"columns": ["a"]},
        {"columns": [{"name": "a"}]},
        {**entry(), "more": 1},
        entry(extra=1),
        entry(name=3),
        entry(kind="text"),
        entry(kind=["category"]),
        entry(kind="number"),
        entry(categories=[], fill=[]),
        entry(categories="xy"),
        entry(categories=["x", 1]),
        entry(categories=[True, 1]),
        entry(categories=["y", "x"]),
        entry(categories=["x", "x"]),
        entry(categories=[["x"], ["y"]]),
        entry(categories=[None, None]),
        entry(categories=[1, 10**5000]),
        entry(categories=[1.0, float("inf")]),
        entry(categories=[float("nan"), 1.0]),
        entry(fill=[0.5]),
        entry(fill=[0.5, 1.5]),
        entry(fill=[0.5, float("nan")]),
        entry(fill=[0.5, 10**400]),
        entry(fill=[0.5, True]),
        entry(kind="number", categories=[], fill=[float("inf")]),
        {"columns": entry()["columns"] * 2},
        {
            "columns": [
                *entry()["columns"],
                *entry(name="a=x", kind="number", categories=[], fill=[0.0])["columns"],
            ]
        },
    ],
)
def test_hostile_json_is_refused(stored: Any) -> None:
    with pytest.raises(FileFormatError) as caught:
        Encoding.from_json(stored)
    assert len(one_sentence(caught)) < 200


@each_kind
def test_frame_builds_the_kind_it_is_shown(make: Any) -> None:
    like = make({"a": [1]})
    built = frame({"x": np.arange(3.0), "w": np.array(["u", "v", "w"])}, like=like)
    assert type(built) is type(like)
    assert list(built["x"].to_numpy()) == [0.0, 1.0, 2.0]


def test_frame_without_an_example_and_with_bad_columns() -> None:
    assert isinstance(frame({"x": np.zeros(2)}), pd.DataFrame)
    with pytest.raises(InvalidValueError, match=r"\(2,\), \(3,\)"):
        frame({"x": np.zeros(2), "y": np.zeros(3)})
    with pytest.raises(InvalidValueError, match="1-D"):
        frame({"x": np.zeros((2, 2))})
    with pytest.raises(InvalidTypeError, match="ndarray"):
        frame({"x": np.zeros(2)}, like=np.zeros(2))


def test_frame_is_arrow_where_pandas_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    assert isinstance(frame({"x": np.zeros(2)}), pa.Table)


@each_kind
def test_select_compares_in_the_type_of_the_column(make: Any) -> None:
    table = make({**MIXED, "share": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    for column, value, expected in (
        ("count", "2", [1]),
        ("count", "2.0", [1]),
        ("size", "4", [3]),
        ("share", "0.1", [0]),
        ("ripe", "true", [0, 2, 3]),
        ("ripe", "0", [1, 5]),
        ("colour", "red", [0, 2, 5]),
    ):
        mask = select(table, column, value)
        assert mask.dtype == bool
        assert np.flatnonzero(mask).tolist() == expected
    for column, value, told in (
        ("color", "red", "did you mean 'colour'"),
        ("colour", "rad", "did you mean 'red'"),
        ("colour", "42", "'red', 'blue'"),
        ("count", "2.5", "'1', '2'"),
        ("count", "nan", "'1', '2'"),
        ("count", "1e300", "'1', '2'"),
        ("count", "two", "must be a number"),
        ("ripe", "2", "true/false"),
    ):
        with pytest.raises(InvalidValueError, match=told) as caught:
            select(table, column, value)
        one_sentence(caught)


def test_select_in_other_types() -> None:
    table = pa.table(
        {
            "day": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)],
            "small": pa.array([0.1, 0.2], pa.float32()),
            "half": pa.array(np.array([0.5, 1.5], np.float16)),
            "floor": pa.array([3, 4]).dictionary_encode(),
            "list": [[1], [2]],
            "id": [2**60, 2**60 + 1],
        }
    )
    for column, value in (
        ("day", "2020-01-02"),
        ("small", "0.2"),
        ("half", "1.5"),
        ("floor", "4"),
        ("id", str(2**60 + 1)),
    ):
        assert select(table, column, value).tolist() == [False, True]
    with pytest.raises(InvalidValueError, match="'list'"):
        select(table, "list", "1")
    with pytest.raises(InvalidValueError, match="and 5 more"):
        select(pa.table({"a": list(range(15))}), "a", "99")
