"""A mixture whose size is chosen by rows left out: clusters are found, one Gaussian is one, small parts give way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from imapce.clusters.mixture import Mixture, choose, component_of, fit_mixture, start, tree_of

RNG = np.random.default_rng(0)


def test_the_density_is_that_of_a_mixture_of_gaussians() -> None:
    roots = np.array([np.linalg.inv(np.linalg.cholesky(S)).T for S in (np.eye(2), np.array([[2.0, 1.0], [1.0, 3.0]]))])
    mixture = Mixture(np.array([0.3, 0.7]), np.array([[0.0, 0.0], [4.0, 1.0]]), roots)
    rows = RNG.standard_normal((20, 2))
    expected = 0.3 * multivariate_normal(np.zeros(2), np.eye(2)).pdf(rows)
    expected += 0.7 * multivariate_normal([4.0, 1.0], [[2.0, 1.0], [1.0, 3.0]]).pdf(rows)
    np.testing.assert_allclose(np.exp(mixture.log_density(rows)), expected, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_one_gaussian_is_one_component(seed: int) -> None:
    assert len(choose(np.random.default_rng(seed).standard_normal((300, 6))).mixture.weights) == 1


def test_a_component_of_fewer_rows_than_it_takes_gives_way() -> None:
    shares = np.zeros((50, 2))
    shares[:2, 1], shares[2:, 0] = 1.0, 1.0
    mixture, ended = fit_mixture(RNG.standard_normal((50, 2)), shares, kappa=2.0)
    assert mixture.weights.tolist() == [1.0]
    assert ended.shape == (50, 1)


def test_more_rows_than_a_block_go_to_the_components_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("imapce.clusters.mixture.BLOCK", 3)
    mixture = Mixture(np.full(3, 1 / 3), np.array([[0.0], [5.0], [9.0]]), np.ones((3, 1, 1)))
    rows = np.array([[0.0], [4.0], [9.0], [6.0], [8.0]])
    assert component_of(mixture, rows, np.ones(3, dtype=bool)).tolist() == [0, 1, 2, 1, 2]
    assert component_of(mixture, rows, np.array([True, False, True])).tolist() == [0, 0, 2, 2, 2]


@pytest.mark.parametrize("rows", [np.zeros((60, 3)), np.zeros((3, 2)), RNG.standard_normal((12, 8)), np.ones((40, 0))])
def test_odd_rows_have_a_mixture(rows: np.ndarray) -> None:
    assert len(choose(rows).labels) == len(rows)


def test_a_cut_has_no_more_branches_than_asked_for() -> None:
    tree = tree_of(RNG.standard_normal((40, 8)))
    for size in (1, 2, 7):
        shares = start(tree, size)
        assert shares.shape == (40, size)
        assert (shares.sum(axis=1) == 1).all()
