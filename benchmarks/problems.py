"""The optimisation problems the benchmarks share: X, Y and Z standardised, M, Z and μ as the objective takes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from imapce import datasets
from imapce.rows.open import open_rows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.search.objective import Objective


@dataclass(frozen=True)
class Problem:
    name: str
    M: QuadraticForm
    Z: StandardizedRows
    mu: float

    def objective(self) -> Objective:
        return Objective(self.M, self.Z, self.mu)


def synthetic() -> Problem:
    X = StandardizedRows(open_rows(datasets.load_synthetic_paper().X))
    known = np.arange(X.n_features) < 4
    M = QuadraticForm.combine([(1.0, X.second_moment), (-1.0, X.with_columns(known))])
    return Problem("synthetic, prior columns 0–3, μ = 200", M, X, 200.0)


def image_segmentation() -> Problem:
    X = StandardizedRows(open_rows(datasets.fetch_image_segmentation().X))
    return Problem("Image Segmentation, μ = 1e5", X.second_moment, X, 1e5)


def sandals_and_sneakers(n: int = 6_000, n_background: int = 1_000) -> datasets.Dataset:
    """Sandals and sneakers over digits, and digits alone."""
    return datasets.make_superimposed(
        datasets.fetch_fashion_mnist(),
        datasets.fetch_mnist(),
        ("Sandal", "Sneaker"),
        n=n,
        n_background=n_background,
        random_state=0,
    )


def superimposed_digits() -> Problem:
    data = sandals_and_sneakers()
    X = StandardizedRows(open_rows(data.X))
    Y = StandardizedRows(open_rows(data.background))
    M = QuadraticForm.combine([(1.0, X.second_moment), (-1.0, Y.second_moment)])
    return Problem("MNIST+Fashion-MNIST, μ = 1e5", M, X, 1e5)


def seconds_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def median_seconds(call: Callable[[], object], repeats: int = 7) -> float:
    """The median wall time of a call after one that warms caches."""
    call()
    return float(np.median([seconds_of(call) for _ in range(repeats)]))
