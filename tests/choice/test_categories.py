"""Categories beside a background: a view is not made of one of them, and tables of numbers are as they were."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from imapce import IMAPCE, Samples
from imapce.choice.separation import decorrelate_categories, separation
from imapce.rows.dense import DenseRows
from imapce.rows.standardized import StandardizedRows, levels_as_in


def planted(seed: int, n: int = 500) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Two kinds in d and e, a size that data and background share, and two categories that go with nothing; the levels
    of one have other shares in the background.
    """
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 2
    numbers = rng.normal(size=(2 * n, 5))
    numbers[:, :3] += 2.5 * rng.normal(size=2 * n)[:, None]
    numbers[:n, 3:] += 1.8 * (2 * kind - 1)[:, None]
    table = pd.DataFrame(numbers, columns=list("abcde"))
    table["site"] = rng.choice(["north", "south", "east"], 2 * n)
    table["shift"] = rng.choice(["day", "night"], 2 * n)
    table.loc[n:, "site"] = rng.choice(["north", "south", "east"], n, p=[0.9, 0.08, 0.02])
    return table[:n], table[n:], kind


def share_of_columns(model: IMAPCE) -> dict[str, float]:
    shares = np.bincount(model.reader_.groups, weights=np.mean(model.components_**2, axis=0))
    return dict(zip(model.reader_.columns, shares.tolist(), strict=True))


@pytest.mark.parametrize("seed", [1, 4])
def test_a_category_that_goes_with_nothing_is_not_the_view(seed):
    table, background, kind = planted(seed)
    model = IMAPCE(random_state=0).fit(table, prior=Samples(background))
    shares = share_of_columns(model)
    # With the clearest split of all, 'site' had 0.49 of the first of these views and 0.99 of the second.
    assert shares["site"] < 0.1
    assert shares["d"] + shares["e"] > 0.4
    view = model.transform(table)
    apart = view[kind == 0].mean(axis=0) - view[kind == 1].mean(axis=0)
    axis = apart / np.linalg.norm(apart)
    assert ((view @ axis > (view @ axis).mean()) == (kind == 0)).mean() > 0.95


def test_a_category_alone_does_not_fall_apart_and_one_that_others_agree_with_does():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 1000)
    rows = np.column_stack(
        [
            2.0 * rng.integers(0, 2, 1000) - 1,
            2.0 * group - 1,
            (2.0 * group - 1) * np.where(rng.random(1000) < 0.02, -1, 1),
        ]
    )
    decorrelated = decorrelate_categories(rows, np.arange(3), np.ones(3, dtype=bool))
    assert separation(rows[:, :1], []) > 0.9
    assert separation(decorrelated[:, :1], []) < 0.1
    assert separation(decorrelated[:, 1:2], []) > 0.5
    assert decorrelated.std(axis=0) == pytest.approx(rows.std(axis=0), abs=0.1)


def test_numeric_columns_are_not_changed():
    rows = np.column_stack([2.0 * (np.arange(300) % 2) - 1, np.random.default_rng(0).normal(size=(300, 3))])
    decorrelated = decorrelate_categories(rows, np.arange(4), np.arange(4) < 1)
    assert np.array_equal(decorrelated[:, 1:], rows[:, 1:])
    assert len(np.unique(decorrelated[:, 0])) == 300


def test_levels_of_a_background_are_as_large_as_those_of_the_data():
    rng = np.random.default_rng(0)
    levels = np.eye(3)
    X = np.column_stack([levels[rng.choice(3, 600)], rng.normal(size=600)])
    Y = np.column_stack([levels[rng.choice(3, 600, p=[0.9, 0.08, 0.02])], rng.normal(size=600)])
    groups = np.array([0, 0, 0, 1])
    of_X, of_Y = (StandardizedRows(DenseRows(rows), groups=groups) for rows in (X, Y))
    form = levels_as_in(of_X, of_Y, groups)
    assert form.matrix[:3, :3] == pytest.approx(of_X.second_moment.matrix[:3, :3], abs=1e-6)
    assert form.matrix[3, 3] == of_Y.second_moment.matrix[3, 3]


def test_a_background_of_numbers_and_pairs_is_as_it_was():
    rng = np.random.default_rng(0)
    on = rng.integers(0, 2, 200)
    Y = StandardizedRows(DenseRows(np.column_stack([on, 1 - on, rng.normal(size=200)])), groups=np.array([0, 0, 1]))
    assert levels_as_in(Y, Y, np.array([0, 0, 1])) is Y.second_moment
