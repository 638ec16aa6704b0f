"""Data with a known answer and plain NumPy versions of what the package computes, for tests only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import subspace_angles

from imapce.clusters.axes import Coordinates
from imapce.rows.open import open_rows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.search.objective import Objective

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Grouped:
    """Rows with a loud grouping (`batch`, columns 0-1) and a quiet one (`kind`, columns 2-3); the rest is noise."""

    X: Array
    batch: NDArray[np.intp]
    kind: NDArray[np.intp]


def grouped(n_rows: int = 300, n_features: int = 8, seed: int = 0) -> Grouped:
    rng = np.random.default_rng(seed)
    batch = np.arange(n_rows) % 2
    kind = np.arange(n_rows) // 2 % 3
    X = rng.normal(size=(n_rows, n_features))
    X[:, :2] = np.array([[-5.0, 2.0], [5.0, -2.0]])[batch] + 0.3 * rng.normal(size=(n_rows, 2))
    X[:, 2:4] = np.array([[0.0, 1.0], [0.9, -0.6], [-0.9, -0.5]])[kind] + 0.1 * rng.normal(size=(n_rows, 2))
    return Grouped(X, batch, kind)


def planted(n: int = 600, d: int = 10, seed: int = 0) -> tuple[Array, NDArray[np.intp], np.random.Generator]:
    """Three clusters, at least five standard deviations apart in four of the columns."""
    rng = np.random.default_rng(seed)
    centres = np.zeros((3, d))
    centres[:, :4] = rng.standard_normal((3, 4))
    gaps = np.linalg.norm(centres[:, None] - centres[None], axis=2)[np.triu_indices(3, 1)]
    truth = rng.integers(0, 3, n)
    return rng.standard_normal((n, d)) + (5 * centres / gaps.min())[truth], truth, rng


def standardised(X: NDArray) -> Array:
    """(x − m)/σ with zeros for a constant column."""
    X = np.asarray(X, dtype=np.float64)
    centred = X - X.mean(axis=0)
    spread = X.std(axis=0)
    return np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12 * (1 + abs(X.mean(axis=0))))


def numeric_rows(values: NDArray) -> Coordinates:
    """Return rows without categories and missing values."""
    nothing = np.zeros((len(values), 0))
    return Coordinates(np.asarray(values, dtype=np.float64), nothing, nothing, np.zeros(0, dtype=np.intp))


def random_frame(n_features: int, n_components: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return np.linalg.qr(rng.normal(size=(n_features, n_components)))[0]


def random_stack(n_frames: int, n_features: int, n_components: int, seed: int = 0) -> Array:
    return np.stack([random_frame(n_features, n_components, 1000 * seed + i) for i in range(n_frames)])


def angle_between(A: NDArray, B: NDArray) -> float:
    """The largest principal angle between the row spans of two component matrices (k, d), in radians."""
    return float(np.max(subspace_angles(np.asarray(A).T, np.asarray(B).T)))


def literal_kurtosis(Z: Array, V: Array) -> float:
    """The paper's κ with its n × n matrix written out: n · ‖diag(ZV(VᵀZᵀZV)⁻¹VᵀZᵀ)‖²."""
    Q = Z @ V
    hat = Q @ np.linalg.inv(Q.T @ Q) @ Q.T
    return len(Z) * float(np.sum(np.diagonal(hat) ** 2))


def literal_objective(X: Array, Y: Array | None, Z: Array, V: Array, alpha: float, mu: float) -> float:
    """Equation 2 from the residual matrices themselves."""
    value = np.linalg.norm(X - X @ V @ V.T) ** 2 + mu * literal_kurtosis(Z, V)
    if Y is not None:
        value -= alpha * np.linalg.norm(Y - Y @ V @ V.T) ** 2
    return float(value)


def only_columns(X: Array, columns: list[int]) -> Array:
    """X with every other column set to zero: what Attributes(columns) calls Y."""
    kept = np.zeros_like(X)
    kept[:, columns] = X[:, columns]
    return kept


def objective_of(
    X: NDArray, *, engine: str, mu: float, known: list[int] | None = None, alpha: float = 1.0
) -> Objective:
    """The package's objective for X with the attributes `known`, read by `engine`."""
    Z = StandardizedRows(open_rows(X, engine=engine))
    M = Z.second_moment
    if known is not None:
        columns = np.isin(np.arange(Z.n_features), known)
        M = QuadraticForm.combine([(1.0, M), (-alpha, Z.with_columns(columns))])
    return Objective(M, Z, mu)
