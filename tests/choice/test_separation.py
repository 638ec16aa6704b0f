"""Scores of a view without labels: separation rewards clusters of the data alone, leakage detects the prior."""

from __future__ import annotations

import numpy as np
import pytest

from imapce.choice.path import distinct
from imapce.choice.separation import (
    ONE_GAUSSIAN,
    chance_separation,
    clarity_of_halves,
    clarity_of_minorities,
    covariate_moments,
    histograms,
    leakage,
    separation,
)
from imapce.rows.dense import DenseRows
from imapce.rows.standardized import StandardizedRows
from imapce.search.race import Optimum

RNG = np.random.default_rng(0)
GAUSSIAN = RNG.standard_normal((4000, 2))
SIDES = np.repeat([-1.0, 1.0], 2000)[:, None]
TWO = np.column_stack([SIDES[:, 0] + 0.3 * RNG.standard_normal(4000), RNG.standard_normal(4000)])


def halves(projections: np.ndarray) -> np.ndarray:
    return clarity_of_halves(histograms(projections))


def test_one_gaussian_has_its_known_share_and_two_points_have_all() -> None:
    assert halves(GAUSSIAN) == pytest.approx([0.0] * 2, abs=0.05)
    assert halves(SIDES) == pytest.approx([1.0])
    assert halves(np.ones((5, 1))) == pytest.approx([-ONE_GAUSSIAN / (1 - ONE_GAUSSIAN)])


def test_the_share_is_that_of_the_best_cut_tried_one_by_one() -> None:
    values = np.sort(RNG.exponential(size=300))
    shares = [
        (i * (values[:i].mean() - values.mean()) ** 2 + (300 - i) * (values[i:].mean() - values.mean()) ** 2)
        / (300 * values.var())
        for i in range(1, 300)
    ]
    assert np.abs(values - values.mean()).max() < 4 * values.std() or max(shares) < 1
    found = ONE_GAUSSIAN + (1 - ONE_GAUSSIAN) * halves(values[:, None])[0]
    assert found == pytest.approx(max(shares), abs=0.03)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_clusters_stand_out_in_views_of_any_width(k: int) -> None:
    plain = np.random.default_rng(1).standard_normal((3000, k))
    split = plain.copy()
    split[:1500, 0] += 5
    assert abs(separation(plain, [])) < 0.22
    assert separation(split, []) > separation(plain, []) + 0.41


def test_separation_does_not_depend_on_units_or_on_a_turn_by_the_grid_s_angle() -> None:
    turn = np.array([[np.cos(np.pi / 8), -np.sin(np.pi / 8)], [np.sin(np.pi / 8), np.cos(np.pi / 8)]])
    assert separation(1e3 * TWO + 7, []) == pytest.approx(separation(TWO, []), abs=1e-9)
    assert separation(TWO @ turn, []) == pytest.approx(separation(TWO, []), abs=0.02)


def test_a_second_split_across_the_first_counts() -> None:
    four = np.column_stack([TWO[:, 0], np.tile([-1.0, 1.0], 2000) + 0.3 * RNG.standard_normal(4000)])
    assert separation(four, []) > separation(TWO, []) + 0.2


def test_a_split_that_the_background_has_as_well_is_worth_nothing() -> None:
    background = TWO[::4]
    elsewhere = TWO[::4, ::-1]
    assert separation(TWO, [background]) < 0.05
    assert separation(TWO, [elsewhere]) == pytest.approx(separation(TWO, []), abs=0.14)
    assert separation(TWO, [elsewhere, background]) <= separation(TWO, [background])


def test_outliers_and_peaks_are_no_clusters() -> None:
    spoiled = GAUSSIAN.copy()
    spoiled[:20] *= 50
    for minorities in (False, True):
        assert separation(spoiled, [], minorities=minorities) < 0.055
        assert separation(RNG.laplace(size=(4000, 2)), [], minorities=minorities) < 0.055


@pytest.mark.parametrize("share", [0.03, 0.05, 0.1])
def test_a_small_part_behind_a_valley_counts_where_minorities_are_asked_for(share: float) -> None:
    apart = GAUSSIAN.copy()
    apart[: int(share * 4000), 0] += 6
    assert separation(apart, [], minorities=True) > separation(apart, []) + 0.2
    assert separation(apart, [], minorities=True) > 0.3
    assert separation(apart, [apart[::4]], minorities=True) < 0.1


def test_a_long_tail_is_no_minority() -> None:
    tail = np.column_stack([RNG.exponential(size=4000), RNG.standard_normal(4000)])
    assert clarity_of_minorities(histograms(tail)).max() < 0.1
    three = np.column_stack([GAUSSIAN[:, 0], GAUSSIAN[:, 1]])
    three[:9, 0] += 30  # fewer rows than a part may have
    assert clarity_of_minorities(histograms(three)).max() < 0.1


def test_what_chance_reaches_is_what_gaussian_rows_show_in_their_best_direction() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((1000, 30))
    direction = rng.standard_normal(30)
    for _ in range(50):  # the direction that agrees best with its own cut
        direction = rows.T @ np.sign(rows @ direction)
    best = halves((rows @ direction)[:, None])[0]
    assert best == pytest.approx(chance_separation(1000, 30), abs=0.08)


def test_a_flat_view_is_the_worst_of_all() -> None:
    assert separation(np.column_stack([GAUSSIAN[:, 0], GAUSSIAN[:, 0]]), []) == -np.inf


def test_leakage_is_the_sum_of_the_squared_canonical_correlations() -> None:
    X = RNG.standard_normal((500, 5)) @ RNG.standard_normal((5, 5))
    Xs = StandardizedRows(DenseRows(X))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    V = np.linalg.qr(RNG.standard_normal((5, 2)))[0]
    known = np.array([True, False, False, True, False])
    covariates = covariate_moments(Xs.second_moment, known)
    U, A = np.linalg.qr(Z @ V)[0], np.linalg.qr(Z[:, known])[0]
    assert leakage(V, Xs.second_moment, covariates) == pytest.approx(np.sum((U.T @ A) ** 2), rel=1e-9)


def test_a_column_leaks_itself_wholly_and_an_independent_one_hardly() -> None:
    X = np.random.default_rng(5).standard_normal((2000, 4))
    moment = StandardizedRows(DenseRows(X)).second_moment
    covariates = covariate_moments(moment, np.arange(4) < 2)
    assert leakage(np.eye(4)[:, 2:], moment, covariates) < 0.02
    assert leakage(np.eye(4)[:, 1:3], moment, covariates) == pytest.approx(1.0, abs=0.02)
    assert leakage(np.eye(4)[:, :2], moment, covariates) == pytest.approx(2.0)


def test_a_clear_view_of_the_known_scores_below_a_less_clear_one_of_the_rest() -> None:
    clear = Optimum(np.eye(4)[:2], 0.0, separation=0.5, leakage=0.9)
    honest = Optimum(np.eye(4)[2:], 0.0, separation=0.3, leakage=0.05)
    flat = Optimum(np.eye(4)[1:3], 0.0, separation=-np.inf, leakage=1.5)
    assert honest.score > clear.score > flat.score == -np.inf


def test_no_known_columns_leak_nothing() -> None:
    moment = StandardizedRows(DenseRows(GAUSSIAN)).second_moment
    assert leakage(np.eye(2), moment, covariate_moments(moment, np.zeros(2, dtype=bool))) == 0.0


def test_views_that_are_the_same_subspace_are_kept_once() -> None:
    def candidate(components: np.ndarray) -> Optimum:
        return Optimum(components, 0.0, separation=0.0, leakage=0.0)

    first, turned, other = np.eye(4)[:2], np.eye(4)[[1, 0]], np.eye(4)[1:3]
    kept = distinct([candidate(frame) for frame in (first, turned, other)])
    assert [one.components.tolist() for one in kept] == [first.tolist(), other.tolist()]
