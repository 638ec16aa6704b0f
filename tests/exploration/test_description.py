"""What a cluster is said to be is what pandas finds in the table: own units, shares of source columns."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from imapce import Attributes, Exploration, Labels, Samples, Subset
from imapce.errors import InvalidValueError
from imapce.estimators.imapce import IMAPCE
from imapce.exploration.description import Profile
from imapce.exploration.traits import LevelTrait, NumberTrait, Trait, aligned, overlap_in_words, p_value_in_words

RNG = np.random.default_rng(0)
GROUP = np.repeat([0, 1, 2], 60)


def people() -> pd.DataFrame:
    """Three groups: old ones with degrees, young ones who smoke, and the rest; gaps in a number and in a category."""
    table = pd.DataFrame(
        {
            "age": np.array([60.0, 20.0, 40.0])[GROUP] + RNG.normal(size=180),
            "school": np.where(GROUP == 0, "Masters", np.where(RNG.random(180) < 0.3, "Bachelors", "none")),
            "smoker": (GROUP == 1) ^ (RNG.random(180) < 0.05),
            "height": 1700.0 + 40.0 * RNG.normal(size=180),
        }
    )
    table.loc[::17, "age"] = np.nan
    table.loc[5::19, "school"] = None
    return table


PEOPLE = people()


def explored(table: Any, **options: Any) -> Exploration:
    exploration = Exploration(table, estimator=IMAPCE(n_starts=2, missing="mean"), random_state=0, **options)
    exploration.accept(mask=np.flatnonzero(GROUP == 0))
    exploration.accept(mask=np.flatnonzero(GROUP == 1))
    return exploration


@pytest.fixture(scope="module")
def session() -> Exploration:
    return explored(PEOPLE)


def trait(profile: Profile, column: str) -> Trait:
    return next(one for one in profile.traits if one.column == column)


def number(profile: Profile, column: str) -> NumberTrait:
    found = trait(profile, column)
    assert isinstance(found, NumberTrait)
    return found


def levels(profile: Profile, column: str) -> LevelTrait:
    found = trait(profile, column)
    assert isinstance(found, LevelTrait)
    return found


def test_numbers_are_those_of_pandas_in_the_units_of_the_table(session: Exploration) -> None:
    age = number(session.description().clusters[1], "age")
    sides = {"inside": GROUP == 1, "outside": GROUP != 1, "beside": GROUP == 2}
    for side, rows in sides.items():
        told = getattr(age, side)
        assert told.mean == pytest.approx(PEOPLE.age[rows].mean())
        assert told.median == pytest.approx(PEOPLE.age[rows].median())
        assert sum(told.shares) == pytest.approx(1.0)
    gap = PEOPLE.age[GROUP == 1].mean() - PEOPLE.age[GROUP != 1].mean()
    assert age.difference == pytest.approx(gap / PEOPLE.age.std(ddof=0))
    counts = np.histogram(PEOPLE.age[GROUP == 1].dropna().clip(age.edges[0], age.edges[-1]), age.edges)[0]
    assert age.inside.shares == pytest.approx(counts / counts.sum())


def test_categories_and_truth_values_are_told_by_the_shares_of_their_levels(session: Exploration) -> None:
    first = session.description().clusters[0]
    school = levels(first, "school")
    inside = PEOPLE.school[GROUP == 0].value_counts(normalize=True)
    outside = PEOPLE.school[GROUP != 0].value_counts(normalize=True)
    assert school.levels == ("Bachelors", "Masters", "none")
    assert school.inside == pytest.approx([inside.get(level, 0.0) for level in school.levels])
    assert school.outside == pytest.approx([outside.get(level, 0.0) for level in school.levels])
    smoker = levels(session.description().clusters[1], "smoker")
    assert smoker.levels == ("no", "yes")
    assert smoker.inside[1] == pytest.approx(PEOPLE.smoker[GROUP == 1].mean())
    # Each source column is told once, not once for each of its levels.
    assert len({one.column for one in first.traits}) == len(first.traits) <= 4


def test_names_are_words_with_values(session: Exploration) -> None:
    old, young = (profile.name for profile in session.description().clusters)
    assert "100\xa0% Masters (0\xa0% elsewhere)" in old.replace("%\xa0", "% ")
    means = aligned(PEOPLE.age[GROUP == 1].mean(), PEOPLE.age[GROUP != 1].mean())
    assert f"age low ({means[0]} against {means[1]})" in young
    assert "smoker = yes" in young
    assert "height" not in old + young
    rows = np.arange(180) % 2 == 0
    assert session.profile(rows).name == "like all other rows"


@pytest.mark.parametrize("kind", [pl.from_pandas, lambda table: table.convert_dtypes()])
def test_any_kind_of_table_is_told_the_same(session: Exploration, kind: Any) -> None:
    other = explored(kind(PEOPLE)).description()
    for one, same in zip(session.description().clusters, other.clusters, strict=True):
        assert one.name == same.name
        assert [each.values for each in one.typical] == [each.values for each in same.typical]


def test_typical_rows_are_nearest_to_the_mean_and_have_the_values_of_the_table() -> None:
    X = RNG.normal(size=(60, 3)) * [1.0, 100.0, 0.01] + 5 * np.eye(3)[0] * (np.arange(60) < 20)[:, None]
    table = pd.DataFrame(X, columns=["a", "b", "c"], index=[f"r{row}" for row in range(60)])
    profile = Exploration(table, random_state=0).profile(np.arange(20))
    distance = np.square((X[:20] - X[:20].mean(axis=0)) / X.std(axis=0)).sum(axis=1)
    assert [one.position for one in profile.typical] == np.argsort(distance)[:5].tolist()
    first = profile.typical[0]
    assert first.name == f"r{first.position}"
    place = [one.column for one in profile.traits].index("a")
    assert float(first.values[place]) == pytest.approx(X[first.position, 0], rel=1e-5)


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_arrays_and_sparse_matrices_have_columns_too(wrap: Any) -> None:
    X = np.round(RNG.normal(size=(90, 4)), 1) + 2000.0 * (np.arange(4) == 3)
    X[:30, 1] += 8.0
    profile = Exploration(wrap(X), random_state=0).profile(np.arange(30), against=np.arange(30, 60))
    assert (profile.size, profile.others) == (30, 30)
    told = number(profile, "x1")
    assert profile.traits[0] == told
    assert told.inside.mean == pytest.approx(X[:30, 1].mean())
    assert told.outside.mean == pytest.approx(X[30:60, 1].mean())
    assert Exploration(wrap(X)).column("x3").values == pytest.approx(X[:, 3])
    with pytest.raises(InvalidValueError, match="name must be a column of X"):
        Exploration(wrap(X)).column("x9")


def test_all_clusters_stand_side_by_side(session: Exploration) -> None:
    description = session.description()
    assert description.left is not None
    assert description.left.size == 60
    assert set(description.features) <= {"age", "height", "smoker: yes", *(f"school: {one}" for one in PEOPLE.school)}
    place = description.features.index("smoker: yes")
    assert description.is_share[place]
    assert description.values[1][place] == pytest.approx(PEOPLE.smoker[GROUP == 1].mean())
    gap = PEOPLE.smoker[GROUP == 1].mean() - PEOPLE.smoker[GROUP != 1].mean()
    assert description.differences[1][place] == pytest.approx(gap / PEOPLE.smoker.std(ddof=0))
    json.dumps(asdict(description))


def test_a_column_that_repeats_another_is_not_named_twice() -> None:
    table = PEOPLE.dropna().assign(years=lambda one: one.school.map({"Masters": 18.0, "Bachelors": 16.0, "none": 9.0}))
    profile = Exploration(table, random_state=0).profile(np.flatnonzero(table.school == "Masters"))
    assert "Masters" in profile.name
    assert "years" not in profile.name
    assert number(profile, "years").inside.mean == 18.0


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (None, []),
        (Attributes(["school"]), ["The column school was known: its effect is explained away, given the clusters."]),
        (
            Attributes(["age", "smoker"], erase=True),
            ["2 columns were erased (age, smoker): nothing linear of them is left in views and clusters."],
        ),
        (Labels(pd.Series(GROUP, name="run")), ["The label run was known: its effect is explained away, given the"]),
        (Labels(GROUP, erase=True), ["A label was erased: nothing linear of it is left in views and clusters."]),
        (Samples(PEOPLE[:40]), ["A background of 40 rows was known: views give up what varies there too."]),
        ([Attributes([3]), Subset(np.arange(9))], ["The column height was known", "9 of 180 rows were known."]),
    ],
)
def test_what_was_known_is_told_in_words(prior: Any, words: list[str]) -> None:
    told = Exploration(PEOPLE, prior=prior, estimator=IMAPCE(missing="mean")).known_in_words
    assert len(told) == len(words)
    assert all(one.startswith(start) for one, start in zip(told, words, strict=True))


def test_scales_have_words() -> None:
    words = [overlap_in_words(value).partition(" (")[0] for value in (0.0, 0.05, 0.4, 1.0)]
    assert words == ["very distinct", "distinct", "touching", "overlapping"]
    assert p_value_in_words(0.004).startswith("hardly by chance: a single group would look as split in 4 of 1,000")
    assert p_value_in_words(0.5).startswith("by chance")
