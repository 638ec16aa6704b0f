"""Which columns agree with others: noise has no say, what several columns share has."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import planted
from imapce.clusters.columns import shared_weights


def test_random_columns_have_no_say_and_shared_ones_do() -> None:
    X, _, rng = planted()
    beside = np.column_stack([rng.random(600) < 0.5, np.arange(600), rng.integers(0, 3, 600)])
    weights = shared_weights(np.column_stack([X, beside]), np.arange(13))
    assert weights[:4].min() > 0.4
    assert weights[4:].max() == 0.0


def test_a_triangle_of_clusters_in_two_uncorrelated_columns_is_shared() -> None:
    rng = np.random.default_rng(0)
    corners = 4 * np.array([[1.0, 0.0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]])
    X = rng.standard_normal((900, 5))
    X[:, :2] += corners[np.arange(900) % 3]
    assert abs(np.corrcoef(X[:, :2].T)[0, 1]) < 0.1
    weights = shared_weights(X, np.arange(5))
    assert weights[:2].min() > 0.4
    assert weights[2:].max() == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_where_nothing_is_shared_all_weigh_the_same(seed: int) -> None:
    X = np.random.default_rng(seed).standard_normal((300, 9))
    X[:, 3] += 8 * (np.arange(300) % 2)
    assert shared_weights(X, np.arange(9)).tolist() == [1.0] * 9


def test_the_columns_of_a_category_weigh_the_same_and_a_constant_nothing() -> None:
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 500)
    X = np.column_stack([np.eye(3)[level], level + 0.3 * rng.standard_normal(500), np.ones(500)])
    weights = shared_weights(X, np.array([0, 0, 0, 1, 2]))
    assert len(set(weights[:3])) == 1
    assert weights[0] > 0.5
    assert weights[4] == 0.0
