"""Claim: the time of a fit grows at most like n^1.05 (1e4 to 1e6 rows, 50 columns); growth in d stands beside it.

The data are three planted clusters in noise, so that every size has the same answer; the peer is scikit-learn's PCA.
"""

from __future__ import annotations

import time
import warnings
from argparse import Namespace

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from benchmarks.problems import seconds_of
from benchmarks.record import FigureTable, Record, at_most, measure
from imapce import IMAPCE


def planted(n_rows: int, n_features: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    centres = 4 * rng.standard_normal((3, 4))
    X[:, :4] += centres[rng.integers(0, 3, n_rows)]
    return X


def seconds_of_fit(X: np.ndarray) -> tuple[float, int]:
    model = IMAPCE(alpha=1.0, mu="paper", random_state=0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    return time.perf_counter() - start, model.n_evaluations_


def exponent(sizes: list[int], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measured(table: FigureTable, shapes: list[tuple[int, int]], sizes: list[int], repeats: int) -> tuple[float, float]:
    """The exponents of a fit's seconds and of those of one evaluation."""
    totals, each = [], []
    for shape in shapes:
        X = planted(*shape)
        runs = [seconds_of_fit(X) for _ in range(repeats)]
        seconds, evaluations = float(np.median([run[0] for run in runs])), runs[0][1]
        totals.append(seconds)
        each.append(seconds / evaluations)
        pca = seconds_of(lambda X=X: PCA(2).fit(X))
        table.row(f"{shape[0]:,} × {shape[1]:,}", seconds, evaluations, 1e3 * each[-1], pca)
    return exponent(sizes, totals), exponent(sizes, each)


def main(record: Record, asked: Namespace) -> None:
    seen = record.table("Fits", "rows × columns", "fit, s", "evaluations", "each, ms", "PCA, s", claims=False)
    rows = [3_000, 10_000, 30_000] if asked.quick else [10_000, 30_000, 100_000, 300_000, 1_000_000]
    # 5,000 columns took a minute more and told nothing about a claim.
    columns = [50, 158] if asked.quick else [50, 158, 500, 1_581]
    in_n = measured(seen, [(n, 50) for n in rows], rows, 3)
    in_d = measured(seen, [(5_000, d) for d in columns], columns, 1)
    table = record.table("Exponents", "seconds as a power of", "fit", "one evaluation")
    table.row(f"n, {rows[0]:,} to {rows[-1]:,} rows of 50 columns", *in_n, claim=at_most(1.05, "fit"))
    table.row(f"d, {columns[0]} to {columns[-1]:,} columns of 5,000 rows", *in_d)


if __name__ == "__main__":
    measure("growth", main, __doc__)
