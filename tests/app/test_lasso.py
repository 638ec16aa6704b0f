"""A lasso holds exactly the rows that Matplotlib's Path holds, whatever its shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.path import Path

from imapce.app.scene import LassoIndex, read_polygon
from imapce.errors import InvalidValueError


def inside_by_path(points: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """By crossings as well, one polygon after another as Matplotlib closes it."""
    return np.flatnonzero(Path(np.vstack([polygon, polygon[:1]])).contains_points(points))


@given(seed=st.integers(0, 2**31), corners=st.integers(3, 40))
def test_a_lasso_holds_what_a_path_of_matplotlib_holds(seed: int, corners: int) -> None:
    rng = np.random.default_rng(seed)
    points, polygon = rng.normal(size=(400, 2)), rng.normal(size=(corners, 2))
    # A hand crosses its own line: where lines overlap twice, Path counts windings and a lasso counts crossings, so the
    # shapes that are compared wind once.
    centre = polygon.mean(axis=0)
    polygon = polygon[np.argsort(np.arctan2(*(polygon - centre).T))]
    np.testing.assert_array_equal(LassoIndex(points).rows(polygon), inside_by_path(points, polygon))


def test_a_row_on_the_level_of_a_corner_is_counted_once() -> None:
    points = np.array([[0.0, 1.0], [3.0, 1.0], [-3.0, 1.0]])
    diamond = np.array([[-2.0, 1.0], [0.0, 3.0], [2.0, 1.0], [0.0, -1.0]])
    np.testing.assert_array_equal(LassoIndex(points).rows(diamond), [0])


def test_a_lasso_beside_all_rows_holds_none() -> None:
    index = LassoIndex(np.random.default_rng(0).normal(size=(50, 2)))
    assert len(index.rows(np.array([[9.0, 9.0], [10.0, 9.0], [9.0, 10.0]]))) == 0


def test_rows_at_one_place_are_all_held() -> None:
    index = LassoIndex(np.zeros((7, 2)))
    assert len(index.rows(np.array([[-1.0, -1.0], [1.0, -1.0], [0.0, 1.0]]))) == 7


@pytest.mark.parametrize("numbers", [[0.0, 1.0], [0.0] * 7, [np.nan] * 6, [0.0, 1.0, np.inf, 2.0, 3.0, 4.0]])
def test_what_is_no_polygon_is_refused(numbers: list[float]) -> None:
    with pytest.raises(InvalidValueError, match="a lasso must be"):
        read_polygon(numbers)
