"""What is told of columns: repeats among the features, columns that stand in for the known, and silence elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import imapce
from imapce import IMAPCE, Attributes, Exploration, Labels
from imapce.datasets.downloads import find
from imapce.tables import Table
from imapce.tables.columns import Column
from imapce.tables.remarks import columns_of, known_notes, looked_over, repeats, sentinels, stand_ins


def people(n: int = 600) -> pd.DataFrame:
    """Passengers: 'alive' is 'survived', 'class' is 'pclass', 'who' and 'adult_male' tell 'sex' but for children."""
    rng = np.random.default_rng(0)
    male, age, pclass = rng.random(n) < 0.6, rng.gamma(4.0, 8.0, n).round(1), rng.integers(1, 4, n)
    child, survived = age < 12, rng.random(n) < np.where(male, 0.2, 0.7)
    return pd.DataFrame(
        {
            "survived": survived.astype(int),
            "pclass": pclass,
            "sex": np.where(male, "male", "female"),
            "age": age,
            "fare": (rng.lognormal(2.0, 0.5, n) * (4 - pclass)).round(2),
            "class": np.array(["First", "Second", "Third"])[pclass - 1],
            "who": np.where(child, "child", np.where(male, "man", "woman")),
            "adult_male": male & ~child,
            "alive": np.where(survived, "yes", "no"),
        }
    )


REPEATS = "'alive' repeats 'survived', 'class' repeats 'pclass'; drop= leaves them out."
STAND_INS = "'who' and 'adult_male' tell 'sex': add them to what is known?"


def test_repeats_among_the_features_are_named_once():
    assert looked_over(Table.learn(people())).notes == [REPEATS]
    assert imapce.read(people()).notes == [REPEATS]
    assert imapce.read(people(), drop=["class", "alive"]).notes == []


@pytest.mark.parametrize("made", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_columns_that_tell_the_known_are_named(made):
    table = Table.learn(made(people().drop(columns=["class", "alive"])))
    assert known_notes(table, ["sex"]) == [STAND_INS]
    beside = table.select([name for name in table.column_names if name != "sex"])
    sex = next(column for column in columns_of(table) if column.name == "sex")
    assert known_notes(beside, [], [sex]) == [STAND_INS]
    assert known_notes(table, ["age"]) == known_notes(table, ["pclass"]) == known_notes(table, []) == []


def test_a_fit_and_an_exploration_say_both():
    table = people().drop(columns=["class"])
    repeated = "'alive' repeats 'survived'; drop= leaves it out."
    assert IMAPCE(random_state=0).fit(table, prior=Attributes(["sex"])).notes_ == [repeated, STAND_INS]
    exploration = Exploration(table.drop(columns="sex"), prior=Labels(table["sex"]), random_state=0)
    assert exploration.notes_ == [repeated, STAND_INS]
    assert exploration.go_on_with(prior=[]).notes_ == [repeated]


def test_a_number_and_the_same_in_another_unit_repeat_and_two_that_go_together_do_not():
    rng = np.random.default_rng(0)
    inches = rng.normal(68.0, 3.0, 500)
    table = pd.DataFrame(
        {
            "inches": inches,
            "centimetres": (2.54 * inches).round(1),
            "log": np.exp(inches / 20),
            "weight": inches + rng.normal(scale=0.3, size=500),
        }
    )
    columns = columns_of(Table.learn(table))
    assert repeats(columns) == {"centimetres": "inches", "log": "inches"}
    table.loc[:99, "inches"] = np.nan
    assert repeats(columns_of(Table.learn(table))) == {"centimetres": "inches", "log": "inches"}


def test_chance_and_rare_levels_say_nothing():
    rng = np.random.default_rng(0)
    odd = np.zeros(300, dtype=np.intp)
    odd[:3] = 1
    columns = [Column(name, codes=odd, levels=("no", "yes")) for name in "ab"]
    assert repeats(columns) == {}
    many = [Column(f"c{i}", codes=rng.integers(0, 12, 40), levels=tuple("abcdefghijkl")) for i in range(30)]
    assert repeats(many) == {}
    assert stand_ins(many[1:], many[:1]) == {}


def test_very_many_columns_are_not_compared():
    wide = pd.DataFrame(np.repeat(np.random.default_rng(0).normal(size=(50, 1)), 101, axis=1)).add_prefix("g")
    assert looked_over(Table.learn(wide)).notes == []


def ages(n: int, *values: float) -> np.ndarray:
    """Ages, and 4 rows of each value."""
    return np.append(np.random.default_rng(0).integers(18, 90, n).astype(float), np.repeat(values, 4))


@pytest.mark.parametrize("values", [(-999.0,), (9999.0,), (-9999.0, -999.0), (-999.0, 99999.0)], ids=str)
def test_repeated_values_far_from_all_others_are_reported(values):
    assert sentinels(ages(200, *values)) == dict.fromkeys(values, 4)


@pytest.mark.parametrize(
    "values",
    [
        ages(200),
        np.append(ages(200), -999.0),
        ages(900, -999.0),
        ages(200, 200.0),
        np.repeat([0.0, 50.0, 51.0], [500, 4, 5]),
        np.repeat([0.0, 1.0], [90, 10]),
        np.full(9, np.nan),
        np.array([1e308, -1e308] * 9 + [np.inf] * 9),
    ],
    ids=["none", "once", "few in many rows", "near", "counts", "two values", "missing", "huge"],
)
def test_other_values_are_not_reported(values):
    assert sentinels(np.asarray(values)) == {}


def test_a_note_has_the_column_the_value_and_the_rows_and_the_values_stay():
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(4036, 3)), columns=list("abc"))
    table = table.assign(age=ages(4000, *[-999.0] * 9), fee=ages(4000, *[-1e6] * 9)[::-1])
    note = (
        "far from all other values: 'age' is -999 in 36 of 4,036 rows, 'fee' is -1000000 in 36 of 4,036 rows; replace "
        "each by NaN if it stands for a missing value."
    )
    read = imapce.read(table)
    assert note in read.notes
    assert (read.native["age"] == -999).sum() == 36
    assert note in IMAPCE(random_state=0).fit(table).notes_


def test_infinite_and_missing_cells_are_no_evidence():
    table = people(60)
    table["age"] = [np.inf, -np.inf, *[1e300, -1e300] * 29]
    table["fare"] = np.nan
    looked_over(Table.learn(table))


@pytest.mark.data("tables/penguins.csv.gz")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("penguins", {}),
        ("crabs", {}),
        ("olive", {}),
        ("vowel", {}),
        ("zoo", {}),
        ("mixed_flags", {}),
        ("mixed_audiology", {}),
        ("mixed_hypothyroid", {"FTI measured": "T4U measured"}),
        ("mouse", {"pS6_N": "ARC_N"}),
    ],
)
def test_published_tables(name, told):
    assert repeats(columns_of(imapce.read(pd.read_csv(find([f"tables/{name}.csv.gz"]))))) == told
