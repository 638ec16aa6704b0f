"""Claims: one Gaussian is taken for structure in 5 % ± 2 % of the runs, heavy tails hardly more often, clusters always.

`python -m benchmarks.stopping [RUNS]` (300 unless told) prints how often `Exploration.test` is at most 0.05. The step's
own fit is the closed form (μ = 0), since the test does not depend on it. A test that is exactly right leaves ± 2 % of
300 runs in one of nine sets of seeds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from imapce import IMAPCE, Exploration

LEVEL = 0.05
Table = Callable[[np.random.Generator], np.ndarray]


def gaussian(n: int, d: int) -> Table:
    """Rows of a Gaussian whose covariance has random axes and a condition number of up to 1e4."""

    def table(rng: np.random.Generator) -> np.ndarray:
        spread = np.logspace(0, rng.uniform(0, 2), d)
        axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
        return (rng.standard_normal((n, d)) * spread) @ axes

    return table


def heavy_tailed(n: int, d: int, *, elliptical: bool) -> Table:
    """Student's t with 5 degrees of freedom: one radius for all columns, or every column on its own."""

    def table(rng: np.random.Generator) -> np.ndarray:
        shared = rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(5, (n, 1)) / 5)
        return shared if elliptical else rng.standard_t(5, (n, d))

    return table


def two_clusters(n: int, d: int, *, share: float, apart: float) -> Table:
    """Two Gaussians `apart` standard deviations from each other, the smaller with `share` of the rows."""

    def table(rng: np.random.Generator) -> np.ndarray:
        X = rng.standard_normal((n, d))
        X[: round(share * n), 0] += apart
        return X

    return table


def with_outliers(n: int, d: int) -> Table:
    """A Gaussian with one row in a hundred 30 standard deviations away, all on the same side."""

    def table(rng: np.random.Generator) -> np.ndarray:
        X = rng.standard_normal((n, d))
        X[: n // 100] += 30.0
        return X

    return table


def report(name: str, table: Table, runs: int) -> None:
    rejected, start = 0, time.perf_counter()
    for run in range(runs):
        X = table(np.random.default_rng([run, 1]))
        rejected += Exploration(X, estimator=IMAPCE(alpha=1.0, mu=0.0), random_state=run).test() <= LEVEL
    seconds = (time.perf_counter() - start) / runs
    print(f"{name}: {rejected} of {runs} rejected at {LEVEL} ({rejected / runs:.1%}), {seconds:.2f} s each", flush=True)


def main(runs: int = 300) -> None:
    sizes = ((300, 5), (1_000, 10), (2_000, 30))
    for n, d in sizes:
        report(f"Gaussian {n:,}x{d} (claim 5 % ± 2 %)", gaussian(n, d), runs)
    for n, d in sizes[:2]:
        report(f"elliptical t(5) {n:,}x{d}", heavy_tailed(n, d, elliptical=True), runs)
        report(f"independent t(5) {n:,}x{d}", heavy_tailed(n, d, elliptical=False), runs)
        report(f"1 % outliers {n:,}x{d}", with_outliers(n, d), runs)
    for n in (300, 1_000):
        for share, apart in ((0.5, 4.0), (0.5, 3.0), (0.1, 6.0), (0.05, 6.0), (0.03, 6.0)):
            name = f"clusters {share:.0%}/{1 - share:.0%} at {apart:g} σ, {n:,}x10"
            report(name, two_clusters(n, 10, share=share, apart=apart), runs // 10)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
