"""What is found in a table does not depend on the order of its rows: sorted, shuffled or read from elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from imapce import Exploration
from imapce.rows.open import open_rows
from imapce.rows.standardized import StandardizedRows, order_of_points
from imapce.tables.reader import Reader

TABLES = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}


def standardized(X: np.ndarray) -> StandardizedRows:
    return StandardizedRows(open_rows(Reader.learn(X)[1]))


@pytest.mark.parametrize("name", TABLES)
def test_permuted_rows_have_the_same_labels(name: str) -> None:
    X = TABLES[name]().data
    order = np.random.default_rng(1).permutation(len(X))
    stored, permuted = (Exploration(rows, random_state=0).run() for rows in (X, X[order]))
    assert len(stored.clusters_) > 1
    np.testing.assert_array_equal(permuted.labels_, stored.labels_[order])


def test_a_sample_of_many_rows_is_one_of_values_not_of_places() -> None:
    rng = np.random.default_rng(0)
    # Rows that repeat each other, and a year far from the origin, whose mean loses digits.
    X = np.column_stack([rng.normal(size=5000), rng.integers(0, 3, 5000), 2000 + 5 * rng.normal(size=5000)])
    X[2500:] = X[:2500]
    order = rng.permutation(5000)
    stored, permuted = X[standardized(X).content_sample(1000)], X[order][standardized(X[order]).content_sample(1000)]
    np.testing.assert_array_equal(stored, permuted)
    assert abs(stored.mean(axis=0) - X.mean(axis=0)).max() < 1


def test_last_digits_do_not_decide_the_order() -> None:
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.integers(0, 5, 300) / 7, rng.normal(size=300)])
    # Sums in another order: ties in the first column are still ties.
    np.testing.assert_array_equal(
        order_of_points(points), order_of_points(points * (1 + 1e-15 * rng.normal(size=(300, 2))))
    )


def test_one_far_row_does_not_make_all_others_agree() -> None:
    points = np.random.default_rng(0).normal(size=(100, 2))
    points[0] = 1e12
    assert np.all(np.diff(points[order_of_points(points), 0]) > 0)


def test_consolidation_does_not_depend_on_the_order_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4)) + 3.5 * np.eye(2, 4)[np.arange(400) % 2]
    by_hand, order = np.arange(400) % 6, rng.permutation(400)
    words = []
    for rows, hand in ((X, by_hand), (X[order], by_hand[order])):
        exploration = Exploration(rows, random_state=0)
        for part in range(5):
            exploration.accept(mask=hand == part)
        words.append(exploration.consolidate().words)
    assert words[0] == words[1]
