"""Claims: one Gaussian is taken for structure in 5 % ± 2 % of the runs, heavy tails hardly more often, clusters always.

    python -m benchmarks.stopping [--runs 300]

counts how often `Exploration.test` is at most 0.05; clusters are drawn in a tenth of the runs. The step's own fit is
the closed form (μ = 0), since the test does not depend on it. A test that is exactly right leaves ± 2 % of 300 runs in
one of nine sets of seeds.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

import numpy as np

from benchmarks.record import Claim, FigureTable, Record, at_least, measure, within
from imapce import IMAPCE, Exploration

LEVEL = 0.05
# Share of the smaller group, standard deviations between the two, and whether they are to be found in every run.
CLUSTERS = ((0.5, 4.0, True), (0.5, 3.0, False), (0.1, 6.0, True), (0.05, 6.0, False), (0.03, 6.0, True))
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


def rejected(table: FigureTable, name: str, rows: Table, runs: int, claim: Claim | None = None) -> None:
    count, start = 0, time.perf_counter()
    for run in range(runs):
        X = rows(np.random.default_rng([run, 1]))
        count += Exploration(X, estimator=IMAPCE(alpha=1.0, mu=0.0), random_state=run).test() <= LEVEL
    table.row(name, int(count), runs, float(count / runs), (time.perf_counter() - start) / runs, claim=claim)


def main(record: Record, asked: Namespace) -> None:
    runs = 10 if asked.quick else asked.runs
    head = ("rows", "rejected", "runs", "share", "a test, s")
    one = record.table("One Gaussian of any covariance", *head)
    sizes = ((300, 5), (1_000, 10), (2_000, 30))
    for n, d in sizes:
        rejected(one, f"{n:,}×{d}", gaussian(n, d), runs, within(0.03, 0.07, "share"))
    tails = record.table("Heavy tails and outliers", *head, claims=False)
    for n, d in sizes[:2]:
        rejected(tails, f"elliptical t(5), {n:,}×{d}", heavy_tailed(n, d, elliptical=True), runs)
        rejected(tails, f"columns of independent t(5), {n:,}×{d}", heavy_tailed(n, d, elliptical=False), runs)
        rejected(tails, f"1 % outliers, {n:,}×{d}", with_outliers(n, d), runs)
    two = record.table("Two groups in 10 columns", *head)
    for n in (300, 1_000):
        for share, apart, always in CLUSTERS:
            name = f"{share:.0%} and {1 - share:.0%} of {n:,} rows, {apart:g} σ apart".replace("%", " %")
            claim = at_least(1.0, "share") if always else None
            rejected(two, name, two_clusters(n, 10, share=share, apart=apart), max(1, runs // 10), claim)


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=300)


if __name__ == "__main__":
    measure("stopping", main, __doc__, options)
