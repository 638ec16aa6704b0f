"""Columns on another scale: which are skewed, that log and rank rise and come back, that all rows go through them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from imapce import scan
from imapce.datasets.downloads import find
from imapce.errors import FileFormatError, ImapceError, InvalidValueError
from imapce.tables import Encoding, NamedMatrix, Table, encode, write_table
from imapce.tables.reader import Reader
from imapce.tables.scales import LogScale, RankScale, chosen_scales, is_skewed, scale_notes

RNG = np.random.default_rng(0)
COLUMNS = {
    "positive": RNG.lognormal(sigma=2.0, size=400),
    "with zeros": np.where(RNG.random(400) < 0.3, 0.0, RNG.lognormal(5.0, 1.5, size=400)),
    "both signs": RNG.standard_t(2, size=400) * 1e4,
    "counts": RNG.poisson(3.0, size=400).astype(float),
    "negative": -RNG.lognormal(sigma=1.5, size=400),
    "tiny": RNG.lognormal(sigma=1.0, size=400) * 1e-12,
    "constant": np.full(400, 7.0),
    "nothing": np.zeros(400),
}


@pytest.mark.parametrize("kind", [LogScale, RankScale])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_scale_rises_and_comes_back(kind, name):
    values = COLUMNS[name]
    scale = kind.learn(values)
    # New rows lie between the learned values, and beyond them on either side.
    span = np.ptp(values) or 1.0
    rows = np.sort(np.append(values, np.linspace(values.min() - span, values.max() + span, 501)))
    placed = scale.to_scale(rows)
    assert np.isfinite(placed).all()
    assert (np.diff(placed)[np.diff(rows) > 1e-9 * span] > 0).all()
    assert scale.to_units(placed) == pytest.approx(rows, rel=1e-6, abs=1e-9 * span)
    assert np.isnan(scale.to_scale(np.array([np.nan])))[0]


def test_the_formulas_are_those_that_are_told():
    amounts = np.exp(np.linspace(0.0, 9.0, 200))
    unit = np.quantile(amounts, 0.01)
    large = amounts > 5 * unit
    assert LogScale.learn(amounts).to_scale(amounts)[large] == pytest.approx(np.log(amounts / unit)[large], abs=0.05)
    both = np.array([-9.0, -1.0, 0.0, 3.0, 5.0])
    assert LogScale.learn(both).unit == np.median([9.0, 1.0, 3.0, 5.0])
    assert LogScale(4.0).to_scale(np.array([-9.0])) == pytest.approx(-np.arcsinh(9 / 8))
    ranks = RankScale.learn(COLUMNS["positive"]).to_scale(COLUMNS["positive"])
    assert (ranks.mean(), ranks.std()) == pytest.approx((0.0, 1.0), abs=0.02)


def test_values_around_zero_are_not_torn_apart():
    values = np.random.default_rng(1).standard_t(3, size=2000)
    placed = LogScale.learn(values).to_scale(values)
    near = np.histogram(placed, bins=np.linspace(-1, 1, 9))[0]
    assert near[3:5].min() > 0.8 * near.max()


@pytest.mark.parametrize(
    ("values", "skewed"),
    [
        (RNG.lognormal(sigma=1.5, size=500), True),
        (RNG.lognormal(sigma=1.0, size=500) * 1e6 + 0.0, True),
        (np.where(RNG.random(500) < 0.2, 0.0, RNG.lognormal(6.0, 1.2, size=500)), True),
        (-RNG.lognormal(sigma=1.5, size=500), True),
        (RNG.normal(size=500), False),
        (RNG.exponential(size=500), False),
        (RNG.standard_t(2, size=500), False),
        (RNG.poisson(0.4, size=500).astype(float), False),
        (np.where(RNG.random(500) < 0.7, 0.0, RNG.lognormal(6.0, 1.2, size=500)), False),
        (np.append(RNG.normal(100.0, 1.0, size=499), 1e6), False),
        (1000 + RNG.lognormal(sigma=1.0, size=500), False),
        (np.repeat([0.0, 5.0], [450, 50]) + RNG.normal(scale=0.1, size=500), False),
        (np.full(500, np.nan), False),
        (np.array([1.0, 1000.0]), False),
    ],
)
def test_what_is_strongly_skewed(values, skewed):
    assert is_skewed(values) is skewed
    assert is_skewed(np.append(values, [np.nan] * 50)) is skewed


@pytest.mark.data("tables/penguins.csv.gz")
@pytest.mark.parametrize(
    ("table", "skewed"),
    [("penguins", []), ("crabs", []), ("olive", []), ("optdigits", []), ("mixed_hypothyroid", ["TSH"])],
)
def test_tables_in_which_nothing_is_skewed_hear_nothing(table, skewed):
    file = find([f"tables/{table}.csv.gz"])
    numbers = pd.read_csv(file).select_dtypes("number")
    assert [name for name in numbers if is_skewed(numbers[name].to_numpy())] == skewed


def a_table() -> pd.DataFrame:
    return pd.DataFrame(
        {name.replace(" ", "_"): values for name, values in COLUMNS.items()} | {"kind": ["a", "b"] * 200}
    )


def test_skewed_columns_are_chosen_by_one_word_and_others_by_name():
    table = Table.learn(a_table())
    assert list(table.transformed("log").scales) == ["positive", "with_zeros", "negative", "tiny"]
    mixed = table.transformed({"skewed": "log", "tiny": "rank", "counts": "log"}).scales
    assert {name: scale.kind for name, scale in mixed.items()} == {
        "positive": "log",
        "with_zeros": "log",
        "negative": "log",
        "tiny": "rank",
        "counts": "log",
    }
    named = Table.learn(a_table().rename(columns={"counts": "skewed"}))
    assert list(named.transformed({"skewed": "log"}).scales) == ["skewed"]


@pytest.mark.parametrize(
    ("transform", "words"),
    [
        ("sqrt", 'transform must be "log", "rank" or one of them by column, got \'sqrt\''),
        (3, "got 3"),
        ({"positive": "sqrt"}, "got 'sqrt'"),
        ({"positiv": "log"}, "'positiv'"),
        ({"kind": "log"}, "'kind' is none"),
    ],
)
def test_what_cannot_be_a_transform_is_refused_in_one_sentence(transform, words):
    with pytest.raises(ImapceError, match=r"^transform must") as problem:
        Table.learn(a_table()).transformed(transform)
    assert words in str(problem.value)
    assert "\n" not in str(problem.value)


def test_new_rows_go_through_the_scale_and_gaps_are_filled_on_it():
    table = a_table()
    table.loc[:9, "positive"] = np.nan
    encoded = Table.learn(table).transformed({"positive": "log"}).encoded("mean")
    scale = encoded.encoding.scales["positive"]
    present = table["positive"].to_numpy()[10:]
    assert encoded.matrix[10:, 0] == pytest.approx(scale.to_scale(present))
    assert encoded.encoding.fill[0] == pytest.approx(scale.to_scale(present).mean())
    assert encoded.matrix[:10, 0] == pytest.approx(encoded.encoding.fill[0])
    again = encode(table[::-1], encoding=encoded.encoding, missing="mean").matrix
    assert (again == encoded.matrix[::-1]).all()
    units = encoded.encoding.to_units(encoded.matrix)
    assert units[10:, 0] == pytest.approx(present)
    assert (units[:, 1:] == encoded.matrix[:, 1:]).all()


@pytest.mark.parametrize("transform", ["log", "rank", {"positive": "rank", "counts": "log"}])
def test_an_encoding_with_scales_is_stored_and_read_again(transform):
    encoding = Table.learn(a_table()).transformed(transform).encoded("error").encoding
    stored = json.loads(json.dumps(encoding.to_json()))
    assert Encoding.from_json(stored) == encoding
    assert "scale" not in next(entry for entry in stored["columns"] if entry["name"] == "kind")


@pytest.mark.parametrize(
    "scale",
    [
        {"kind": "log", "unit": 0.0},
        {"kind": "log", "unit": "1"},
        {"kind": "log", "unit": float("inf")},
        {"kind": "cube", "unit": 1.0},
        {"kind": "rank", "values": [1.0, 1.0], "scores": [0.0, 1.0]},
        {"kind": "rank", "values": [1.0], "scores": [0.0, 1.0]},
        {"kind": "rank", "values": [], "scores": []},
        {"kind": "log", "unit": 1.0, "more": 1},
        ["log"],
    ],
)
def test_a_scale_that_nobody_learned_is_refused(scale):
    stored = Encoding(("a",), ("number",), ((),), fill=(2.0,)).to_json()
    stored["columns"][0]["scale"] = scale
    with pytest.raises(FileFormatError):
        Encoding.from_json(stored)


def test_arrays_and_sparse_matrices_have_scales_too():
    X = np.column_stack([COLUMNS["positive"], COLUMNS["with zeros"], RNG.normal(size=400)])
    reader, matrix = Reader.learn(X, transform="log")
    assert reader.transform == {"x0": "log", "x1": "log"}
    assert (reader.read(X[:5]) == matrix[:5]).all()
    assert reader.to_units(matrix) == pytest.approx(X)
    named, same = Reader.learn(NamedMatrix(sparse.csr_array(X), ("a", "b", "c")), transform={"b": "log"})
    assert named.transform == {"b": "log"}
    assert sparse.issparse(same)
    assert same.toarray()[:, 1] == pytest.approx(matrix[:, 1])
    with pytest.raises(InvalidValueError, match='"log" for a sparse matrix'):
        Reader.learn(sparse.csr_array(X), transform={"x0": "rank"})


def test_a_table_on_disk_is_read_on_a_learned_scale_and_none_is_learned_of_it(tmp_path):
    table = a_table().drop(columns="kind")
    write_table(pa.Table.from_pandas(table), tmp_path / "rows.parquet")
    reader, matrix = Reader.learn(table, transform="log")
    portions = reader.read(scan(tmp_path / "rows.parquet")).portions()
    there = np.concatenate([block.copy() for portion in portions for block in portion.blocks(None)])
    assert there == pytest.approx(matrix)
    with pytest.raises(InvalidValueError, match="transform needs all rows in memory"):
        Reader.learn(scan(tmp_path / "rows.parquet"), transform="log")


def test_what_is_told():
    numbers = {"fee": COLUMNS["positive"], "age": RNG.normal(size=400)}
    assert scale_notes(numbers, {}, asked=False) == [
        "strongly skewed: 'fee'; transform=\"log\" looks at it on a log scale."
    ]
    scales = chosen_scales("log", numbers, numbers)
    assert scale_notes(numbers, scales, asked=True) == ["'fee' is looked at on a log scale."]
    assert scale_notes({"age": numbers["age"]}, {}, asked=True) == [
        "no column is strongly skewed, so all are looked at as they are."
    ]
    assert scale_notes({"age": numbers["age"]}, {}, asked=False) == []
