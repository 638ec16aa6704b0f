"""Which columns can be features, dates as numbers, and categories that were not learned."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import imapce
from imapce import IMAPCE, Attributes, Exploration, scan
from imapce.baselines import SIDE
from imapce.comparison import compare
from imapce.datasets.downloads import find
from imapce.errors import InvalidValueError
from imapce.tables import write_table
from imapce.tables.cells import dates_as_days
from imapce.tables.encode import encode
from imapce.tables.reader import Reader
from imapce.tables.reading import as_read
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


@pytest.mark.parametrize("made", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_columns_with_more_missing_than_observed_values_are_left_out(made: Any) -> None:
    table = made(
        {
            "x": [1.0, 2.0, 4.0, 1.0, 2.0, 9.0],
            "half": [1.0, None, 2.0, None, None, 5.0],
            "few": [None, 2.0, None, 5.0, None, None],
            "word": ["a", None, None, None, None, "a"],
        }
    )
    reasons = dict.fromkeys(("few", "word"), "has 4 missing values in 6 rows")
    assert usable_columns(table) == (["x", "half"], reasons)
    assert usable_columns(table, keep=["few"])[0] == usable_columns(table, named=["few"])[0] == ["x", "half", "few"]


@pytest.mark.parametrize(
    ("start", "step", "words"), [(1, 1, "1 to 20 in steps of 1"), (990, -10, "990 to 800 in steps of -10")]
)
def test_integers_with_a_constant_step_number_the_rows(start: int, step: int, words: str) -> None:
    values = start + step * np.arange(20)
    assert usable_columns(pa.table({"plate": values}))[1] == {"plate": f"numbers the rows from {words}"}
    for others in (values[:19], values.astype(float), np.append(values[:19], values[18]), np.append(values[:19], 0)):
        assert usable_columns(pa.table({"plate": others}))[0] == ["plate"]
    assert usable_columns(pa.table({"plate": values}), named=["plate"])[0] == ["plate"]


@pytest.mark.parametrize("name", ["index", "row", "sample_nr", "Unnamed: 0"])
def test_a_permutation_of_consecutive_integers_numbers_the_rows_if_the_name_says_so(name: str) -> None:
    values = np.random.default_rng(0).permutation(np.arange(5, 35))
    assert usable_columns(pa.table({name: values}))[1] == {
        name: "numbers the rows, with each integer from 5 to 34 once"
    }
    for column, others in (("age", values), (name, np.append(values[1:], values[1])), (name, values[values < 24])):
        assert usable_columns(pa.table({column: others}))[0] == [column]


def test_ages_and_years_with_repeats_are_features() -> None:
    years = np.repeat(np.arange(1990, 2020), 3)
    table = pa.table({"year": years, "age": np.sort(np.random.default_rng(0).integers(20, 60, 90))})
    assert usable_columns(table)[0] == ["year", "age"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("prior", ["dose", Attributes(["dose"]), "run", Attributes(["run"])])
def test_columns_named_as_a_prior_are_used_as_before(prior: Any) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    table = table.assign(dose=rng.integers(0, 2, 60), run=np.arange(60), key=[f"k{i}" for i in range(60)])
    table.loc[:39, "dose"] = np.nan
    name = prior if isinstance(prior, str) else prior.columns[0]
    assert IMAPCE(missing="mean").fit(table, prior=prior).input_columns == ("a", "b", "c", name)
    assert Exploration(table, prior=prior, missing="mean").feature_names == ["a", "b", "c", name]
    if name == "dose":
        assert SIDE(missing="mean").fit(table, prior=prior).input_columns == ("a", "b", "c", name)
        assert len(compare(table, prior, "PCA", missing="mean").worked) == 1
    assert IMAPCE().fit(table).input_columns == ("a", "b", "c")


def test_a_session_saved_with_such_columns_is_opened_again(tmp_path: Path) -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    table = table.assign(kind=pd.Categorical(["u", "v"] * 10 + [None] * 40), key=[f"k{i}" for i in range(60)])
    exploration = Exploration(table.drop(columns="key"), prior=["kind"], missing="mean", random_state=0)
    assert exploration.feature_names == ["a", "b", "c", "kind=u", "kind=v"]
    exploration.save(tmp_path / "rows.imapce")
    assert Exploration.load(tmp_path / "rows.imapce", table).feature_names == ["a", "b", "c", "kind=u", "kind=v"]


def test_a_scan_keeps_every_column_that_becomes_numbers(tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(40.0) ** 2, "row": np.arange(40), "few": [1.0, 2.0] + [None] * 38})
    write_table(table, tmp_path / "rows.parquet")
    reader, _ = Reader.learn(as_read(scan(tmp_path / "rows.parquet")), missing="mean")
    assert reader.columns == ("x", "row", "few")
    assert imapce.read(tmp_path / "rows.parquet").column_names == ["x"]


@pytest.mark.data("tables/mixed_heart_h.csv.gz")
def test_what_is_left_out_of_published_tables_is_mostly_missing() -> None:
    expected = {"mixed_heart_h": {"slope": 190, "ca": 291, "thal": 266}, "mixed_audiology": {"bser": 222}}
    for name in ("mixed_flags", "penguins", "vowel", "zoo", "mouse", "mixed_heart_h", "mixed_audiology"):
        table = imapce.read(pd.read_csv(find([f"tables/{name}.csv.gz"])))
        missing = {column: reason.split()[1] for column, reason in table.left_out.items()}
        assert missing == {column: str(count) for column, count in expected.get(name, {}).items()}, name
        assert not any("far from all other values" in note for note in table.notes), name


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
