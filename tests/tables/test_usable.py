"""Which columns can be features, dates as numbers, and categories that were not learned."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from imapce.errors import InvalidValueError
from imapce.tables.cells import dates_as_days
from imapce.tables.encode import encode
from imapce.tables.reader import Reader
from imapce.tables.usable import usable_columns

LETTERS = ["a", "b"] * 3


def test_every_kind_of_table_gives_the_same_answer() -> None:
    table = pa.table(
        {
            "x": [1.0, 2.0, 4.0, 1.0, 2.0, 9.0],
            "kind": LETTERS,
            "key": ["k1", "k2", "k3", "k4", "k5", "k6"],
            "text": ["k1", "k2", "k3", "k4", "k4", "k1"],
            "when": [datetime.datetime(2020, 1, day) for day in range(1, 7)],
            "on": [True] * 6,
        }
    )
    expected = (
        ["x", "kind"],
        {
            "key": "is an id, 6 distinct values in 6 rows",
            "text": "is free text with 4 distinct values in 6 rows",
            "when": "is a date",
            "on": "is constant",
        },
    )
    for same in (table, table.to_pandas(), pl.from_arrow(table)):
        assert usable_columns(same) == expected
    assert usable_columns(table, keep=("on", "when"))[0] == ["x", "kind", "when", "on"]


@pytest.mark.parametrize("name", ["id", "ID", "PassengerId", "row_id", "index", "unnamed0", "sample no", "sampleID"])
def test_whole_numbers_in_order_are_an_id_where_they_are_named_like_one(name: str) -> None:
    for start in (0, 1):
        assert usable_columns(pa.table({name: np.arange(start, start + 5)}))[1] == {
            name: "is an id that counts the rows"
        }
    for values in (np.arange(5) * 1.5, np.array([1, 2, 3, 4, 4])):
        assert usable_columns(pa.table({name: values}))[0] == [name]


def test_whole_numbers_that_all_differ_are_an_id_only_by_that_name() -> None:
    values = np.array([5552, 17, 90, 4])
    assert usable_columns(pa.table({"id": values, "patientID": values, "index": values, "nr": values})) == (
        ["index", "nr"],
        dict.fromkeys(("id", "patientID"), "is an id, 4 distinct values in 4 rows"),
    )


@pytest.mark.parametrize("name", ["paid", "acid", "grid", "dose", "casino"])
def test_other_names_count_as_features(name: str) -> None:
    assert usable_columns(pa.table({name: np.arange(5)}))[0] == [name]


def test_dates_are_days() -> None:
    noon = datetime.datetime(1970, 1, 2, 12)
    table = pa.table(
        {
            "day": pa.array([datetime.date(1970, 1, 3)], pa.date64()),
            "s": pa.array([noon], pa.timestamp("s")),
            "ns": pa.array([noon], pa.timestamp("ns", "UTC")),
            "time": pa.array([datetime.time(6)], pa.time32("ms")),
            "long": pa.array([datetime.timedelta(hours=36)]),
            "x": [1],
        }
    )
    assert dates_as_days(table)[0].to_pydict() == {
        "day": [2.0],
        "s": [1.5],
        "ns": [1.5],
        "time": [0.25],
        "long": [1.5],
        "x": [1],
    }


def test_categories_that_were_not_learned_are_refused_or_zeros() -> None:
    learned = encode(pd.DataFrame({"kind": LETTERS, "x": np.arange(6.0)})).encoding
    new = pd.DataFrame({"kind": ["c", None, "b"], "x": [1.0, 2.0, 3.0]})
    with pytest.raises(InvalidValueError, match="unknown category 'c'"):
        encode(new, encoding=learned, missing="mean")
    with pytest.warns(UserWarning, match="not learned.*'kind' has 'c'"):
        matrix = encode(new, encoding=learned, missing="mean", unknown="ignore").matrix
    assert matrix.tolist() == [[0.0, 0.0, 1.0], [0.5, 0.5, 2.0], [0.0, 1.0, 3.0]]
    with pytest.raises(InvalidValueError, match="unknown must be"):
        encode(new, unknown="maybe")


def test_a_reader_ignores_unknown_categories_where_it_is_told_to() -> None:
    reader, _ = Reader.learn(pa.table({"kind": LETTERS}))
    new = pa.table({"kind": ["c", "a"]})
    with pytest.warns(UserWarning, match="'c'"):
        assert reader.read(new, unknown="ignore").tolist() == [[0.0, 0.0], [1.0, 0.0]]
    with pytest.warns(UserWarning, match="'c'"):
        assert reader.with_unknown("ignore").read(new).sum() == 1
    with pytest.raises(InvalidValueError, match="unknown category"):
        reader.read(new)
