"""One search for neighbours: the same ones by a tree and by a product, ties by lot."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from imapce.common.neighbours import jittered, nearest


@pytest.mark.parametrize(("n", "columns"), [(60, 2), (60, 9), (2100, 9)])
def test_neighbours_are_those_of_all_distances(n: int, columns: int) -> None:
    points = np.random.default_rng(0).standard_normal((n, columns))
    distances = cdist(points, points)
    np.fill_diagonal(distances, np.inf)
    expected = np.sort(np.argsort(distances, axis=1)[:, :4], axis=1)
    np.testing.assert_array_equal(np.sort(nearest(points, 4), axis=1), expected)


def test_points_at_one_place_come_apart_always_in_the_same_way() -> None:
    points = np.repeat([[0.0, 0.0], [1.0, 1.0]], 5, axis=0)
    moved = jittered(points)
    assert len(np.unique(moved, axis=0)) == 10
    assert np.abs(moved - points).max() < 1e-4
    np.testing.assert_array_equal(moved, jittered(points))
    assert jittered(np.zeros((3, 0))).shape == (3, 0)
