"""α by the trace ratio: the maximum it claims to be, what it may not depend on, and where the ridge holds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from helpers import angle_between, grouped, random_frame, standardised
from imapce import IMAPCE, Attributes, Samples, Subset, load_model
from imapce.baselines import GCPCA
from imapce.choice.trace_ratio import RIDGE, trace_ratio, with_ridge
from imapce.rows.standardized import QuadraticForm

Array = np.ndarray
X = grouped().X
RNG = np.random.default_rng(7)
BACKGROUND = RNG.normal(size=(150, 8)) @ RNG.normal(size=(8, 8))


def second_moment(seed: int, d: int = 5, rank: int | None = None) -> Array:
    rows = np.random.default_rng(seed).normal(size=(rank or 3 * d, d))
    return rows.T @ rows


def ratio_of(a: Array, b: Array, k: int) -> float:
    return trace_ratio(QuadraticForm.of_matrix(a), QuadraticForm.of_matrix(b), k)[0]


def highest_climb(a: Array, b: Array, k: int, restarts: int) -> float:
    """The best of many climbs on the ratio of an unconstrained W, whose span is that of V; no eigenvalue in it."""

    def falling(flat: Array) -> float:
        W = flat.reshape(len(a), k)
        inverse = np.linalg.inv(W.T @ W)
        return -float(np.sum(inverse * (W.T @ a @ W)) / np.sum(inverse * (W.T @ b @ W)))

    climbs = [minimize(falling, random_frame(len(a), k, seed).ravel(), tol=1e-12) for seed in range(restarts)]
    return max(-float(climb.fun) for climb in climbs)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 2])
def test_no_climb_from_anywhere_gets_higher(k: int, seed: int) -> None:
    a, b = second_moment(seed), second_moment(seed + 1)
    assert ratio_of(a, b, k) == pytest.approx(highest_climb(a, b, k, restarts=8), rel=1e-7)


def test_the_frame_attains_the_ratio_and_leaves_no_contrast() -> None:
    a, b = second_moment(0, 12), second_moment(1, 12)
    ratio, V = trace_ratio(QuadraticForm.of_matrix(a), QuadraticForm.of_matrix(b), 3)
    assert np.trace(V.T @ a @ V) / np.trace(V.T @ b @ V) == pytest.approx(ratio, rel=1e-12)
    assert np.linalg.eigvalsh(a - ratio * b)[-3:].sum() == pytest.approx(0.0, abs=1e-9 * np.trace(a))


def test_it_rises_with_the_data_falls_with_the_known_and_with_every_axis() -> None:
    a, b, more = second_moment(0), second_moment(1), 0.2 * second_moment(2)
    assert ratio_of(a + more, b, 2) > ratio_of(a, b, 2) > ratio_of(a, b + more, 2)
    ratios = [ratio_of(a, b, k) for k in range(1, 6)]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[-1] == pytest.approx(np.trace(a) / np.trace(b))


def test_where_the_known_is_flat_the_ratio_is_infinite_and_a_ridge_bounds_it() -> None:
    a, b = second_moment(0), np.diag([3.0, 2.0, 0.0, 0.0, 0.0])
    assert ratio_of(a, b, 2) == np.inf
    # One flat direction is no whole frame.
    assert ratio_of(a, np.diag([3.0, 2.0, 1.0, 1.0, 0.0]), 2) < np.inf
    ridged = with_ridge(QuadraticForm.of_matrix(b), 0.1, np.ones(5, dtype=bool))
    ratio, _ = trace_ratio(QuadraticForm.of_matrix(a), ridged, 2)
    assert ratio == pytest.approx(np.linalg.eigvalsh(a[2:, 2:])[-2:].sum() / (2 * 0.1 * 5 / 5), rel=0.2)


def test_a_form_without_entries_gives_the_same() -> None:
    a, b = second_moment(0, 40), second_moment(1, 40)
    implicit = [QuadraticForm(40, float(np.trace(m)), m.__matmul__) for m in (a, b)]
    columns = np.arange(40) != 3
    b = b + 0.1 * np.trace(b) / 39 * np.diag(columns.astype(float))
    ridged = with_ridge(implicit[1], 0.1, columns)
    assert ridged.trace == pytest.approx(np.trace(b))
    assert trace_ratio(implicit[0], ridged, 2)[0] == pytest.approx(ratio_of(a, b, 2), rel=1e-9)


# --- as the weight of IMAPCE -------------------------------------------------------------------------------------


def fitted(prior: Any, data: Any = X, **changes: Any) -> IMAPCE:
    return IMAPCE(**{"alpha": "ratio", "mu": "paper", "n_starts": 4, "random_state": 0} | changes).fit(
        data, prior=prior
    )


def test_alpha_is_the_ratio_of_the_standardised_tables_whatever_mu() -> None:
    A, B = standardised(X), standardised(BACKGROUND)
    C_Y = 2 * B.T @ B
    expected = ratio_of(A.T @ A, C_Y + RIDGE * np.trace(C_Y) / 8 * np.eye(8), 2)
    for mu in ("paper", "auto", 0.0, 30.0):
        model = fitted(Samples(BACKGROUND, weight=2.0), mu=mu)
        assert model.alpha_ == pytest.approx(expected, rel=1e-10)
        assert {one.alpha for one in model.path_} == ({model.alpha_} if mu == "auto" else set())
        assert "ridge" not in model.stop_reason_


def test_a_number_of_the_same_size_gives_the_same_view() -> None:
    ratio = fitted(Samples(BACKGROUND))
    number = fitted(Samples(BACKGROUND), alpha=ratio.alpha_)
    assert np.array_equal(ratio.components_, number.components_)
    assert ratio.objective_ == number.objective_


@pytest.mark.parametrize(
    ("same", "factor"),
    [(Samples(7 * BACKGROUND), 49), (Samples(np.tile(BACKGROUND, (3, 1))), 3), (Samples(BACKGROUND, weight=5.0), 5)],
    ids=["units", "rows", "weight"],
)
def test_the_scale_of_the_known_moves_alpha_and_no_axis(same: Samples, factor: float) -> None:
    first, other = (fitted(prior, standardize=False) for prior in (Samples(BACKGROUND), same))
    assert first.alpha_ == pytest.approx(factor * other.alpha_, rel=1e-9)
    assert angle_between(first.components_, other.components_) < 1e-5


def test_parts_add_up_and_every_part_lowers_alpha() -> None:
    parts = [Samples(BACKGROUND), Subset(np.arange(60))]
    together = fitted(parts).alpha_
    assert 0 < together < min(fitted(part).alpha_ for part in parts)
    assert fitted([Samples(BACKGROUND), Samples(BACKGROUND)]).alpha_ == pytest.approx(
        fitted(Samples(BACKGROUND, weight=2.0)).alpha_
    )


def test_known_columns_reach_the_bound_of_the_ridge_and_leave_the_view() -> None:
    model = fitted(Attributes([0, 1]))
    A = standardised(X)
    most = np.linalg.eigvalsh(A.T @ A)[-2:].mean() / (RIDGE * len(X) * 2 / 8)
    assert 0.2 * most < model.alpha_ < most
    assert np.abs(model.components_[:, :2]).max() < 0.05
    assert "alpha is as large as its ridge allows." in model.stop_reason_


@pytest.mark.parametrize("prior", [None, Attributes([0], erase=True), Samples(np.ones((20, 8)))])
def test_without_anything_to_weigh_alpha_is_zero(prior: Any) -> None:
    assert fitted(prior).alpha_ == 0.0


def test_erased_directions_and_flat_columns_have_no_say() -> None:
    background = BACKGROUND.copy()
    background[:, 4] = 0.0
    wide = np.column_stack([X, np.ones(len(X))])
    wide_background = np.column_stack([BACKGROUND, np.zeros(len(BACKGROUND))])
    plain = fitted(Samples(BACKGROUND))
    assert fitted(Samples(wide_background), wide).alpha_ == pytest.approx(plain.alpha_, rel=1e-10)
    # Without column 4, in which alone the background is flat, the ratio is lower.
    free, bound = fitted(Samples(background)), fitted([Samples(background), Attributes([4], erase=True)])
    assert bound.alpha_ < free.alpha_


def test_sparse_tables_and_saved_models_keep_it(tmp_path: Path) -> None:
    counts = RNG.poisson(0.6, size=(200, 30)).astype(float)
    background = RNG.poisson(0.4, size=(150, 30)).astype(float)
    dense = fitted(Samples(background), counts)
    model = fitted(Samples(sparse.csr_matrix(background)), sparse.csr_matrix(counts))
    assert model.alpha_ == pytest.approx(dense.alpha_, rel=1e-9)
    model.save(tmp_path / "view.imapce")
    loaded = load_model(tmp_path / "view.imapce")
    assert (loaded.alpha, loaded.alpha_) == ("ratio", model.alpha_)


def test_one_axis_without_kurtosis_is_the_first_of_gcpca() -> None:
    rows = len(X)
    ours = fitted(Samples(BACKGROUND), n_components=1, mu=0.0)
    theirs = GCPCA(1, version="v2", shrinkage=RIDGE).fit(X, prior=Samples(BACKGROUND))
    assert angle_between(ours.components_, theirs.components_) < 1e-5
    assert ours.alpha_ == pytest.approx(theirs.values_[0] * (rows - 1) / (len(BACKGROUND) - 1))
