"""Claim: the time of a fit grows at most like n^1.05 (1e4 to 1e6 rows, 50 columns); growth in d is printed beside it.

The data are three planted clusters in noise, so that every size has the same answer; the peer is scikit-learn's PCA.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

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


def table(label: str, shapes: list[tuple[int, int]], sizes: list[int], repeats: int) -> None:
    totals, each = [], []
    for shape in shapes:
        X = planted(*shape)
        runs = [seconds_of_fit(X) for _ in range(repeats)]
        seconds = float(np.median([run[0] for run in runs]))
        start = time.perf_counter()
        PCA(2).fit(X)
        pca = time.perf_counter() - start
        totals.append(seconds)
        each.append(seconds / runs[0][1])
        print(
            f"{shape[0]:>9,} x {shape[1]:<5,}: fit {seconds:7.3f} s, {runs[0][1]:4d} evaluations, "
            f"{1e3 * each[-1]:8.3f} ms each; PCA {pca:.3f} s",
            flush=True,
        )
    print(f"exponent in {label}: fit {exponent(sizes, totals):.2f}, per evaluation {exponent(sizes, each):.2f}")


def main() -> None:
    rows = [10_000, 30_000, 100_000, 300_000, 1_000_000]
    table("n (claim 1.05)", [(n, 50) for n in rows], rows, 3)
    columns = [50, 158, 500, 1_581, 5_000]
    table("d at 5,000 rows", [(5_000, d) for d in columns], columns, 1)


if __name__ == "__main__":
    main()
