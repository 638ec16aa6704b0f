"""The optimum against a second, unrelated solver: pymanopt's trust regions on the literal objective."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from helpers import angle_between, grouped, literal_objective, only_columns, standardised
from imapce import IMAPCE, Attributes, Samples, Subset

pymanopt = pytest.importorskip("pymanopt", reason="pymanopt is not installed")

DATA = grouped(150, 6, seed=5)
Z_ALL = standardised(DATA.X)
BACKGROUND = grouped(60, 6, seed=6).X * np.array([4.0, 4, 1, 1, 1, 1])
KNOWN = DATA.kind == 2


def literal_gradient(
    X: np.ndarray, Y: np.ndarray, Z: np.ndarray, alpha: float, mu: float
) -> Callable[[np.ndarray], np.ndarray]:
    """The derivative of tr M − tr(VᵀMV) + μκ from residuals and leverages; its own code, no package function."""
    M = X.T @ X - alpha * Y.T @ Y

    def gradient(V: np.ndarray) -> np.ndarray:
        Q = Z @ V
        inverse = np.linalg.inv(Q.T @ Q)
        leverage = np.einsum("ij,jk,ik->i", Q, inverse, Q)
        inner = Z.T @ (leverage[:, None] * Q) @ inverse
        outer = Z.T @ Q @ inverse @ (Q.T @ (leverage[:, None] * Q)) @ inverse
        return -2 * M @ V + 4 * mu * len(Z) * (inner - outer)

    return gradient


def second_opinion(
    X: np.ndarray, Y: np.ndarray, Z: np.ndarray, alpha: float, mu: float, k: int
) -> tuple[float, np.ndarray]:
    """The best of eight conjugate-gradient runs on the Grassmann manifold."""
    manifold = pymanopt.manifolds.Grassmann(X.shape[1], k)
    derivative = literal_gradient(X, Y, Z, alpha, mu)

    @pymanopt.function.numpy(manifold)
    def cost(V: np.ndarray) -> float:
        return literal_objective(X, Y, Z, V, alpha, mu)

    @pymanopt.function.numpy(manifold)
    def euclidean_gradient(V: np.ndarray) -> np.ndarray:
        return derivative(V)

    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=euclidean_gradient)
    optimizer = pymanopt.optimizers.ConjugateGradient(
        max_iterations=400, min_gradient_norm=1e-7, min_step_size=1e-14, verbosity=0
    )
    rng = np.random.default_rng(0)
    starts = [np.linalg.qr(rng.normal(size=(X.shape[1], k)))[0] for _ in range(8)]
    best = min((optimizer.run(problem, initial_point=start) for start in starts), key=lambda run: run.cost)
    return float(best.cost), best.point


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("mu", [5.0, 100.0])
@pytest.mark.parametrize("prior", ["attributes", "samples", "subset"])
def test_the_optimum_is_the_one_another_solver_finds(prior: str, mu: float, k: int) -> None:
    given, Y, Z = {
        "attributes": (Attributes([0, 1]), only_columns(Z_ALL, [0, 1]), Z_ALL),
        "samples": (Samples(BACKGROUND), standardised(BACKGROUND), Z_ALL),
        "subset": (Subset(KNOWN), standardised(DATA.X[KNOWN]), standardised(DATA.X[~KNOWN])),
    }[prior]
    model = IMAPCE(k, alpha=1.0, mu=mu, random_state=0).fit(DATA.X, prior=given)
    value, V = second_opinion(Z_ALL, Y, Z, 1.0, mu, k)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    assert angle_between(model.components_, V.T) < 1e-4
