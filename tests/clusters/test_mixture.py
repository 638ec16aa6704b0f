"""The mixture: its density, missing values, levels with shrinkage and tilt, tails, EM in blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_t, norm

from helpers import numeric_rows
from imapce.clusters import mixture as module
from imapce.clusters.axes import Coordinates
from imapce.clusters.mixture import Mixture, em_sums, fit_mixtures, m_step, posteriors, refine
from imapce.common.settings import SETTINGS

RNG = np.random.default_rng(0)
CLUSTERS = SETTINGS.clusters


def all_rows(n: int) -> np.ndarray:
    return np.ones((1, n), dtype=bool)


def mixed_rows(n: int = 60) -> Coordinates:
    """Rows with two axes, two partial columns, a category of three levels and one of two."""
    partial = np.where(RNG.random((n, 2)) < 0.3, np.nan, RNG.standard_normal((n, 2)))
    levels = np.hstack([np.eye(3)[RNG.integers(0, 3, n)], np.eye(2)[RNG.integers(0, 2, n)]])
    levels[:5, :3] = 0.0
    return Coordinates(RNG.standard_normal((n, 2)), partial, levels, np.array([0, 0, 0, 1, 1]))


def test_the_density_is_that_of_t_components_times_normals_times_levels() -> None:
    covariances = np.array([np.eye(2), [[2.0, 1.0], [1.0, 3.0]]])
    means, weights, nu = np.array([[0.0, 0.0], [4.0, 1.0]]), np.array([0.3, 0.7]), 7.0
    partial_means, variances = RNG.standard_normal((2, 2)), np.array([[1.0, 2.0], [0.5, 3.0]])
    p = np.array([[0.2, 0.3, 0.5, 0.4, 0.6], [0.6, 0.3, 0.1, 0.9, 0.1]])
    fitted = Mixture(
        *(weights[None], means[None], np.linalg.inv(covariances)[None], np.array([nu])),
        *(partial_means[None], variances[None], p[None]),
    )
    rows = mixed_rows()
    expected = np.zeros(len(rows))
    for c in range(2):
        density = weights[c] * multivariate_t(means[c], covariances[c], df=nu).pdf(rows.numeric)
        # Missing values have no factor.
        normals = norm.pdf(rows.partial, partial_means[c], np.sqrt(variances[c]))
        expected += density * np.nan_to_num(normals, nan=1.0).prod(axis=1) * np.where(rows.levels, p[c], 1).prod(axis=1)
    resp, density = posteriors(fitted.score_rows(rows)[0])
    np.testing.assert_allclose(np.exp(density), expected, rtol=1e-4)
    np.testing.assert_allclose(resp.sum(axis=1), 1.0)


def test_a_batch_of_mixtures_is_that_of_each_alone() -> None:
    rows, n = mixed_rows(), 60
    resp = RNG.dirichlet(np.ones(3), (2, n))
    training = RNG.random((2, n)) < 0.8
    together, logs = fit_mixtures(rows, resp, training, steps=6)
    for b in range(2):
        alone, own = fit_mixtures(rows, resp[b : b + 1], training[b : b + 1], steps=6)
        np.testing.assert_allclose(own[0], logs[b], rtol=1e-5, atol=1e-4)
        assert alone.dof[0] == together.dof[b]


def test_levels_are_multinomial_shrunk_by_one_row_towards_those_of_all() -> None:
    levels = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    rows = Coordinates(np.zeros((4, 0)), np.zeros((4, 0)), levels, np.zeros(2, dtype=np.intp))
    resp = np.eye(2)[[0, 0, 1, 1]]
    sums = em_sums(rows, resp[None], 1.0, None)
    fitted = m_step(sums, np.ones(1), rows.blocks, CLUSTERS)
    expected = [[(2 + 2 / 3) / 3, (1 / 3) / 3], [(2 / 3) / 2, (1 + 1 / 3) / 2]]
    np.testing.assert_allclose(fitted.level_probabilities[0], expected)
    # The row without a level says nothing.
    np.testing.assert_allclose(posteriors(fitted.score_rows(rows)[0])[0][3], fitted.weights[0])


def test_covariances_are_shrunk_towards_the_pooled_one() -> None:
    Z, side = RNG.standard_normal((60, 2)) @ [[2.0, 0.0], [1.0, 1.0]], np.arange(60) % 2
    Z[side > 0] *= 3
    rows = numeric_rows(Z)
    sums = em_sums(rows, np.eye(2)[side][None], 1.0, None)
    fitted = m_step(sums, np.ones(1), rows.blocks, CLUSTERS)
    within = [np.cov(Z[side == c].T, bias=True) for c in range(2)]
    ridge, prior = CLUSTERS.ridge * np.eye(2), 2 * CLUSTERS.prior_rows
    pooled = np.mean(within, axis=0) + ridge
    expected = [(30 * (S + ridge) + prior * pooled) / (30 + prior) for S in within]
    np.testing.assert_allclose(np.linalg.inv(fitted.precisions[0]), expected, rtol=1e-4)


@pytest.mark.parametrize(("nu", "low", "high"), [(3.0, 4, 5), (np.inf, 20, 100)])
def test_tails_are_estimated(nu: float, low: float, high: float) -> None:
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((1500, 3)) / np.sqrt(rng.chisquare(nu, (1500, 1)) / nu if np.isfinite(nu) else 1.0)
    fitted = fit_mixtures(numeric_rows(Z / Z.std(axis=0)), np.ones((1, 1500, 1)), all_rows(1500))[0]
    assert low <= fitted.dof[0] <= high


def test_groups_are_recovered_from_partial_columns() -> None:
    rng = np.random.default_rng(0)
    side = np.arange(400) % 2
    partial = rng.standard_normal((400, 3)) + 6 * side[:, None]
    partial[rng.random((400, 3)) < 0.4] = np.nan
    nothing = np.zeros((400, 0))
    rows = Coordinates(nothing, partial, nothing, np.zeros(0, dtype=np.intp))
    # A start of which every fifth row is wrong.
    start = np.where(rng.random(400) < 0.2, 1 - side, side)
    fitted = fit_mixtures(rows, np.eye(2)[start][None], all_rows(400))[0]
    has_value = ~np.isnan(partial).all(axis=1)
    assert np.mean(posteriors(fitted.score_rows(rows)[0])[0].argmax(axis=1)[has_value] == side[has_value]) > 0.98


def test_a_tilt_takes_the_effect_of_covariates_from_levels() -> None:
    rng = np.random.default_rng(0)
    known, group = rng.integers(0, 2, 3000), rng.integers(0, 2, 3000)
    odds = np.array([[0.2, 0.5], [0.5, 0.8]])[group, known]
    has_level = (rng.random(3000) < odds).astype(float)
    share = np.array([has_level[known == k].mean() for k in (0, 1)])[known]
    tilt = np.column_stack([(1 - share) / (1 - has_level.mean()), share / has_level.mean()])
    levels, nothing = np.column_stack([1 - has_level, has_level]), np.zeros((3000, 0))
    rows = Coordinates(nothing, nothing, levels, np.zeros(2, dtype=np.intp), tilt)
    resp, fitted = np.eye(2)[group][None], None
    for _ in range(50):
        fitted = m_step(em_sums(rows, resp, 1.0, fitted), np.ones(1), rows.blocks, CLUSTERS)
    assert fitted is not None
    # The tilt of the level that a row has is the same in all components and left out of their densities.
    logs = fitted.log_joint(rows)[0][0, np.arange(3000), group] - np.log(fitted.weights[0, group])
    logs += np.log(np.where(has_level > 0, tilt[:, 1], tilt[:, 0]))
    # Within a group the levels of both classes are those of one odds ratio, which these odds are nearly.
    np.testing.assert_allclose(np.exp(logs), np.where(has_level > 0, odds, 1 - odds), atol=0.06)


def test_a_column_that_hardly_any_row_has_leaves_a_density() -> None:
    """Of 40 rows two have a value, and both are left out of the fit."""
    partial = np.full((40, 1), np.nan)
    partial[:2] = [[0.5], [-0.5]]
    rows = Coordinates(RNG.standard_normal((40, 2)), partial, np.zeros((40, 0)), np.zeros(0, dtype=np.intp))
    training = all_rows(40)
    training[0, :2] = False
    assert np.isfinite(fit_mixtures(rows, np.eye(2)[np.arange(40) % 2][None], training)[1]).all()


@pytest.mark.parametrize("shape", [(60, 3), (3, 2), (40, 0)])
def test_rows_that_do_not_vary_have_a_mixture(shape: tuple[int, int]) -> None:
    rows = numeric_rows(np.zeros(shape))
    logs = fit_mixtures(rows, np.eye(2)[np.arange(shape[0]) % 2][None], all_rows(shape[0]))[1]
    assert np.isfinite(logs).all()


def test_refining_in_blocks_is_refining_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = mixed_rows(200)
    fitted = fit_mixtures(rows, RNG.dirichlet(np.ones(3), (1, 200)), all_rows(200))[0]
    at_once = refine(fitted, rows)
    monkeypatch.setattr(module, "BLOCK", 300)
    assert len(list(rows.in_blocks(300))) > 5
    in_blocks = refine(fitted, rows)
    np.testing.assert_allclose(in_blocks.log_joint(rows)[0], at_once.log_joint(rows)[0], atol=1e-3)
    assert np.abs(at_once.means - refine(fitted, rows, replace(CLUSTERS, refining_steps=1)).means).max() > 1e-4


def test_joined_mixtures_have_the_components_of_both() -> None:
    rows = mixed_rows()
    three, two = (fit_mixtures(rows, RNG.dirichlet(np.ones(k), (1, 60)), all_rows(60), steps=3)[0] for k in (3, 2))
    logs, distances = three.joined(two).log_joint(rows)
    expected = [np.concatenate(pair, axis=2) for pair in zip(three.log_joint(rows), two.log_joint(rows), strict=True)]
    np.testing.assert_allclose(logs, expected[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(distances, expected[1], rtol=1e-6, atol=1e-6)


def test_a_component_without_weight_has_no_rows() -> None:
    rows = mixed_rows()
    fitted = fit_mixtures(rows, RNG.dirichlet(np.ones(3), (1, 60)), all_rows(60))[0]
    logs = fitted.score_rows(rows)[0]
    dropped = replace(fitted, weights=fitted.weights * [1.0, 0.0, 1.0]).score_rows(rows)[0]
    np.testing.assert_array_equal(posteriors(dropped)[0][:, 1], 0.0)
    np.testing.assert_allclose(dropped[:, [0, 2]], logs[:, [0, 2]])


def test_rows_are_scored_in_blocks_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = mixed_rows()
    fitted = fit_mixtures(rows, RNG.dirichlet(np.ones(3), (1, 60)), all_rows(60))[0]
    logs, distances = fitted.log_joint(rows)
    monkeypatch.setattr(module, "BLOCK", 100)
    in_blocks, nearest = fitted.score_rows(rows)
    np.testing.assert_allclose(in_blocks, logs[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(nearest, distances[0].min(axis=1), rtol=1e-5, atol=1e-5)
