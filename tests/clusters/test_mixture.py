"""A mixture whose size is chosen by rows left out: clusters are found, one Gaussian is one, small parts give way."""

from __future__ import annotations

import numpy as np
import pytest
from imapce.clusters.columns import Cells
from scipy.stats import multivariate_normal

from imapce.clusters.mixture import (
    Mixture,
    choose,
    component_of,
    cut,
    fit_mixture,
    folds_of,
    left_out,
    locally_sphered,
    mixture_of,
    sphered,
    tree_of,
)

RNG = np.random.default_rng(0)


def test_the_density_is_that_of_a_mixture_of_gaussians() -> None:
    roots = np.array([np.linalg.inv(np.linalg.cholesky(S)).T for S in (np.eye(2), np.array([[2.0, 1.0], [1.0, 3.0]]))])
    mixture = Mixture(np.array([0.3, 0.7]), np.array([[0.0, 0.0], [4.0, 1.0]]), roots)
    rows = RNG.standard_normal((20, 2))
    expected = 0.3 * multivariate_normal(np.zeros(2), np.eye(2)).pdf(rows)
    expected += 0.7 * multivariate_normal([4.0, 1.0], [[2.0, 1.0], [1.0, 3.0]]).pdf(rows)
    np.testing.assert_allclose(np.exp(mixture.log_density(Cells.of(rows))), expected, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_one_gaussian_is_one_component(seed: int) -> None:
    rows = np.random.default_rng(seed).standard_normal((300, 6))
    assert len(choose(Cells.of(rows), rows).mixture.weights) == 1


def test_a_component_of_fewer_rows_than_it_takes_gives_way() -> None:
    shares = np.zeros((50, 2))
    shares[:2, 1], shares[2:, 0] = 1.0, 1.0
    mixture, ended = fit_mixture(Cells.of(RNG.standard_normal((50, 2))), shares, 2.0)
    assert mixture.weights.tolist() == [1.0]
    assert ended.shape == (50, 1)


def test_more_rows_than_a_block_go_to_the_components_allowed() -> None:
    mixture = Mixture(np.full(3, 1 / 3), np.array([[0.0], [5.0], [9.0]]), np.ones((3, 1, 1)))
    rows = Cells.of(np.array([[0.0], [4.0], [9.0], [6.0], [8.0]]))
    assert component_of(mixture, rows, np.ones(3, dtype=bool), block=3).tolist() == [0, 1, 2, 1, 2]
    assert component_of(mixture, rows, np.array([True, False, True]), block=3).tolist() == [0, 0, 2, 2, 2]


@pytest.mark.parametrize("rows", [np.zeros((60, 3)), np.zeros((3, 2)), RNG.standard_normal((12, 8)), np.ones((40, 0))])
def test_odd_rows_have_a_mixture(rows: np.ndarray) -> None:
    assert len(choose(Cells.of(rows), rows).labels) == len(rows)


def test_a_cut_has_no_more_branches_than_asked_for() -> None:
    tree = tree_of(RNG.standard_normal((40, 8)))
    for size in (1, 2, 7):
        shares = cut(tree, size)
        assert shares.shape == (40, size)
        assert (shares.sum(axis=1) == 1).all()


def test_one_covariance_for_all_tells_groups_that_overlap() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2000, 8))
    rows[:1000, 0] += 2.8
    S = sphered(rows @ rng.standard_normal((8, 8)))
    found = choose(Cells.of(S), S)
    assert len(found.mixture.weights) == 2
    assert np.isinf(found.prior_rows)
    assert len(found.mixture.roots) == 1
    halves = found.labels[:1000], found.labels[1000:]
    assert abs(halves[0].mean() - halves[1].mean()) > 0.7


def test_thin_sheets_come_apart_in_units_of_their_neighbourhoods() -> None:
    rng = np.random.default_rng(0)
    side = np.arange(400) % 2
    rows = sphered(np.column_stack([10 * rng.standard_normal((400, 3)), 0.1 * rng.standard_normal(400) + 0.6 * side]))
    mixed = rows @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
    away = locally_sphered(mixed)
    assert np.ptp([away[side == s].mean(axis=0) for s in (0, 1)], axis=0).max() > 3


def test_levels_are_those_of_the_rows_and_missing_cells_have_no_factor() -> None:
    flags = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    cells = Cells(np.zeros((4, 0)), np.zeros((4, 0)), flags, np.zeros(2, dtype=np.intp))
    mixture = mixture_of(cells, np.eye(2)[[0, 0, 1, 1]], 1.0)
    assert mixture.levels is not None
    # One row of the shares of all, 2/3 and 1/3, beside the rows themselves.
    np.testing.assert_allclose(mixture.levels, [[(2 + 2 / 3) / 3, (1 / 3) / 3], [(2 / 3) / 2, (1 + 1 / 3) / 2]])
    np.testing.assert_allclose(mixture.shares(cells)[3], mixture.weights)


def test_numbers_with_holes_are_told_by_the_values_there_are() -> None:
    rng = np.random.default_rng(0)
    side = np.arange(400) % 2
    loose = rng.standard_normal((400, 3)) + 6 * side[:, None]
    loose[rng.random((400, 3)) < 0.4] = np.nan
    cells = Cells(np.zeros((400, 0)), loose, np.zeros((400, 0)), np.zeros(0, dtype=np.intp))
    found = choose(cells, np.nan_to_num(loose))
    known = ~np.isnan(loose).all(axis=1)
    assert max(np.mean(found.labels[known] == side[known]), np.mean(found.labels[known] != side[known])) > 0.97


def test_a_tilt_takes_from_levels_what_the_known_does_to_them() -> None:
    rng = np.random.default_rng(0)
    known, group = rng.integers(0, 2, 3000), rng.integers(0, 2, 3000)
    odds = np.array([[0.2, 0.5], [0.5, 0.8]])[group, known]
    had = (rng.random(3000) < odds).astype(float)
    flags = np.column_stack([1 - had, had])
    share = np.array([had[known == k].mean() for k in (0, 1)])[known]
    tilt = np.column_stack([(1 - share) / (1 - had.mean()), share / had.mean()])
    cells = Cells(np.zeros((3000, 0)), np.zeros((3000, 0)), flags, np.zeros(2, dtype=np.intp), tilt)
    shares = np.eye(2)[group]
    mixture = None
    for _ in range(50):
        mixture = mixture_of(cells, shares, 1.0, before=mixture)
    assert mixture is not None
    # The tilt of the level that a row has is the same in all components and left out of their densities.
    logs = mixture.log_joint(cells)[np.arange(3000), group] - np.log(mixture.weights[group])
    logs += np.log(np.where(had > 0, tilt[:, 1], tilt[:, 0]))
    expected = np.where(had > 0, odds, 1 - odds)
    # Within a group the levels of both classes are those of one odds ratio, which these odds are nearly.
    np.testing.assert_allclose(np.exp(logs), expected, atol=0.06)


def test_a_number_that_hardly_any_row_has_leaves_a_density() -> None:
    """Of 40 rows two have it, both in one fold: the mixtures of the others know nothing of it."""
    loose = np.full((40, 1), np.nan)
    fold = folds_of(40, 5)
    loose[np.flatnonzero(fold == 0)[:2]] = [[0.5], [-0.5]]
    cells = Cells(RNG.standard_normal((40, 2)), loose, np.zeros((40, 0)), np.zeros(0, dtype=np.intp))
    logs = left_out(cells, np.eye(2)[np.arange(40) % 2], 2.0, fold)
    assert np.isfinite(logs).all()
    assert len(choose(cells, cells.axes).labels) == 40
