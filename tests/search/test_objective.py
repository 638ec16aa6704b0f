"""Equation 2, its gradient and the kurtosis against literal formulas and finite differences along the manifold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import (
    angle_between,
    grouped,
    literal_kurtosis,
    literal_objective,
    objective_of,
    only_columns,
    random_frame,
    random_stack,
    standardised,
)
from imapce.rows.dense import DenseRows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.search.descent import orthonormalize, tangent
from imapce.search.objective import Objective, kurtosis_matrix, paper_mu, reconstruction_error, stacked_product

ENGINES = ("dense", "sparse", "moment_tensor")


def sample(n_rows: int, n_features: int, seed: int = 0) -> np.ndarray:
    """Correlated rows with heavy and light tails."""
    rng = np.random.default_rng(seed)
    return rng.standard_t(7, size=(n_rows, n_features)) @ rng.normal(size=(n_features, n_features)) + rng.normal(
        size=n_features
    )


def along(V: np.ndarray, direction: np.ndarray, t: float) -> np.ndarray:
    return orthonormalize(V + t * direction)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("n", "d", "k", "R"), [(40, 5, 1, 1), (60, 7, 2, 4), (50, 6, 3, 4), (300, 12, 2, 1)])
def test_gradient_equals_central_differences_along_the_manifold(engine: str, n: int, d: int, k: int, R: int) -> None:
    objective = objective_of(sample(n, d), engine=engine, mu=3.0, known=[0], alpha=0.7)
    V = random_stack(R, d, k, seed=n)
    direction = tangent(V, random_stack(R, d, k, seed=n + 1))
    slope = np.einsum("rdk,rdk->r", objective.evaluate(V).gradient, direction)
    h = 1e-5
    ahead, behind = objective.evaluate(along(V, direction, h)).value, objective.evaluate(along(V, direction, -h)).value
    assert np.allclose((ahead - behind) / (2 * h), slope, rtol=1e-6)


@pytest.mark.parametrize("engine", ["dense", "moment_tensor"])
def test_gradient_of_columns_a_million_from_zero_equals_central_differences(engine: str) -> None:
    X = standardised(sample(80, 6)) + 1e6 * np.arange(1, 7)
    objective = objective_of(X, engine=engine, mu=5.0, known=[0, 1])
    V = random_stack(3, 6, 2)
    direction = tangent(V, random_stack(3, 6, 2, seed=5))
    slope = np.einsum("rdk,rdk->r", objective.evaluate(V).gradient, direction)
    h = 1e-5
    ahead, behind = objective.evaluate(along(V, direction, h)).value, objective.evaluate(along(V, direction, -h)).value
    assert np.allclose((ahead - behind) / (2 * h), slope, rtol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_remainder_of_the_first_order_expansion_falls_with_the_square_of_the_step(engine: str, k: int) -> None:
    objective = objective_of(sample(70, 8), engine=engine, mu=10.0, known=[2])
    V = random_stack(2, 8, k, seed=k)
    direction = tangent(V, random_stack(2, 8, k, seed=k + 10))
    start = objective.evaluate(V)
    slope = np.einsum("rdk,rdk->r", start.gradient, direction)
    steps = np.logspace(-2, -4, 7)
    remainder = np.array([objective.evaluate(along(V, direction, t)).value - start.value - t * slope for t in steps])
    orders = np.polyfit(np.log(steps), np.log(np.abs(remainder)), 1)[0]
    assert np.all(np.abs(orders - 2.0) < 0.1), orders


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_value_equals_the_paper_s_formula_written_out(engine: str, k: int) -> None:
    X = sample(50, 7)
    Z = standardised(X)
    known = [1, 4]
    evaluation = objective_of(X, engine=engine, mu=4.0, known=known, alpha=1.5).evaluate(random_stack(4, 7, k))
    for V, value, kurtosis in zip(random_stack(4, 7, k), evaluation.value, evaluation.kurtosis, strict=True):
        assert kurtosis == pytest.approx(literal_kurtosis(Z, V), rel=1e-10)
        assert value == pytest.approx(literal_objective(Z, only_columns(Z, known), Z, V, 1.5, 4.0), rel=1e-10)


def test_an_evaluation_without_kurtosis_reports_kurtosis_all_the_same() -> None:
    X = sample(50, 7)
    objective = objective_of(X, engine="dense", mu=0.0)
    V = random_frame(7, 2)
    evaluation = objective.evaluate(V[None])
    assert evaluation.kurtosis[0] == pytest.approx(literal_kurtosis(standardised(X), V), rel=1e-10)
    assert evaluation.value[0] == pytest.approx(literal_objective(standardised(X), None, standardised(X), V, 0, 0))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_kurtosis_of_gaussian_rows_is_k_times_k_plus_two_within_sampling_error(k: int) -> None:
    n = 40_000
    X = np.random.default_rng(k).normal(size=(n, 5))
    kurtosis = objective_of(X, engine="dense", mu=1.0).kurtosis(random_frame(5, k)[None])[0]
    # Mardia: the sample kurtosis of Gaussian rows has variance 8k(k+2)/n; five standard errors.
    assert kurtosis == pytest.approx(k * (k + 2), abs=5 * np.sqrt(8 * k * (k + 2) / n))


def test_kurtosis_of_two_equal_points_is_its_lower_bound() -> None:
    X = np.repeat([[-1.0], [1.0]], 20, axis=0)
    assert objective_of(X, engine="dense", mu=1.0).kurtosis(np.ones((1, 1, 1)))[0] == pytest.approx(1.0, rel=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from(ENGINES))
def test_kurtosis_is_never_below_k_squared(seed: int, k: int, engine: str) -> None:
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 0.0, 1.0], size=(30, 5)) + 0.01 * rng.normal(size=(30, 5))
    kurtosis = objective_of(X, engine=engine, mu=1.0).kurtosis(random_stack(3, 5, k, seed))
    assert np.all(kurtosis >= k**2 * (1 - 1e-12))


@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from(ENGINES))
def test_kurtosis_depends_on_the_span_alone(seed: int, k: int, engine: str) -> None:
    objective = objective_of(sample(40, 6, seed), engine=engine, mu=1.0)
    V = random_frame(6, k, seed)
    mixing = np.random.default_rng(seed).normal(size=(k, k)) + 3 * np.eye(k)
    assert objective.kurtosis((V @ mixing)[None])[0] == pytest.approx(objective.kurtosis(V[None])[0], rel=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 3), st.sampled_from(ENGINES))
def test_gradient_of_the_kurtosis_is_orthogonal_to_the_frame(seed: int, k: int, engine: str) -> None:
    V = random_stack(2, 6, k, seed)
    X = sample(40, 6, seed)
    Z = objective_of(X, engine=engine, mu=1.0).Z
    nothing = QuadraticForm.of_matrix(np.zeros((6, 6)))
    gradient = Objective(nothing, Z, 1.0).evaluate(V).gradient
    assert np.abs(V.transpose(0, 2, 1) @ gradient).max() < 1e-10 * np.abs(gradient).max()
    assert np.abs(gradient).max() > 0


def test_a_flat_view_is_worth_infinity_and_not_a_number_out_of_rounding() -> None:
    X = grouped().X
    X[:, 5] = X[:, 4]
    V = np.zeros((1, 8, 2))
    V[0, 0, 0] = 1.0
    V[0, [4, 5], 1] = [np.sqrt(0.5), -np.sqrt(0.5)]
    objective = objective_of(X, engine="dense", mu=1.0)
    assert objective.evaluate(V).value[0] == np.inf


def test_evaluations_are_counted() -> None:
    objective = objective_of(sample(20, 4), engine="dense", mu=1.0)
    for _ in range(3):
        objective.evaluate(random_stack(5, 4, 2))
    assert objective.n_evaluations == 3


def test_a_stack_is_evaluated_as_its_frames_one_by_one() -> None:
    objective = objective_of(sample(30, 5), engine="dense", mu=2.0, known=[0])
    V = random_stack(4, 5, 2)
    together = objective.evaluate(V)
    for i in range(4):
        alone = objective.evaluate(V[i : i + 1])
        assert together.value[i] == pytest.approx(alone.value[0], rel=1e-13)
        assert np.allclose(together.gradient[i], alone.gradient[0], rtol=1e-11, atol=1e-9)
        assert together.scale[i] == pytest.approx(alone.scale[0], rel=1e-12)


def test_stacked_product_is_a_product_for_every_frame() -> None:
    rng = np.random.default_rng(0)
    M = rng.normal(size=(6, 6))
    M += M.T
    V = random_stack(3, 6, 2)
    assert np.allclose(stacked_product(QuadraticForm.of_matrix(M), V), M @ V)


def test_kurtosis_matrix_is_the_weighted_scatter_of_whitened_rows() -> None:
    X = sample(60, 4)
    Z = standardised(X)
    values, vectors = np.linalg.eigh(Z.T @ Z / 60)
    basis = vectors / np.sqrt(values)
    U = Z @ basis
    expected = (U * np.sum(U**2, axis=1)[:, None]).T @ U
    assert np.allclose(kurtosis_matrix(StandardizedRows(DenseRows(X)), basis), expected)


def test_paper_mu_is_ten_to_the_one_and_a_half_below_the_reconstruction_error() -> None:
    Z = StandardizedRows(DenseRows(sample(60, 5)))
    V = random_frame(5, 2)
    C = Z.second_moment
    error = np.linalg.norm(standardised(sample(60, 5)) @ (np.eye(5) - V @ V.T)) ** 2
    assert reconstruction_error(C, V) == pytest.approx(error, rel=1e-12)
    assert paper_mu(C, C, V) == pytest.approx(error / 10**1.5, rel=1e-12)


def test_paper_mu_falls_back_on_the_plain_error_where_the_prior_outweighs_the_data() -> None:
    C = StandardizedRows(DenseRows(sample(60, 5))).second_moment
    V = random_frame(5, 2)
    M = QuadraticForm.combine([(1.0, C), (-5.0, C)])
    assert reconstruction_error(M, V) < 0
    assert paper_mu(M, C, V) == pytest.approx(reconstruction_error(C, V) / 10**1.5, rel=1e-12)


def test_preconditioner_is_symmetric_positive_and_absent_where_it_would_not_help() -> None:
    P = objective_of(sample(60, 6), engine="dense", mu=50.0).preconditioner(2)
    assert P is not None
    assert np.allclose(P, P.T)
    assert np.linalg.eigvalsh(P)[0] > 0
    assert objective_of(sample(60, 6), engine="dense", mu=0.0).preconditioner(2) is None
    assert objective_of(sample(60, 70), engine="dense", mu=50.0).preconditioner(2) is None


def test_frames_of_the_same_span_have_no_angle_between_them() -> None:
    """The yardstick of the other tests: it must see a turn of 1e-6 and no turn of the frame inside the span."""
    V = random_frame(6, 2).T
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    assert angle_between(V, turn @ V) < 1e-12
    tilted = np.linalg.qr((V + 1e-6 * random_frame(6, 2, seed=9).T).T)[0].T
    assert 1e-8 < angle_between(V, tilted) < 2e-6
