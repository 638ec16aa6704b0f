"""Claim: a default fit answers in a second, and sooner than scikit-learn's PCA and mixture by BIC on the same rows.

Both look for a plane and for clusters in all columns; the mixture is asked for the sizes that ours is, on at most as
many rows. 700×765 are the blood cells of `IMAPCE_DATA/tables`, with 20 axes; blobs and Gaussian rows are drawn.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from typing import Any

import numpy as np
from experiments import table_suite
from sklearn.datasets import load_iris, make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from benchmarks.problems import median_seconds
from benchmarks.record import Record, at_most, measure
from imapce import IMAPCE, Labels
from imapce.common.settings import SETTINGS


def peer(X: np.ndarray) -> np.ndarray:
    """The plane of PCA, and the clusters of the mixture whose BIC is lowest."""
    Z = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    PCA(2, random_state=0).fit_transform(Z)
    settings = SETTINGS.clusters
    points = PCA(min(settings.axes, *Z.shape), random_state=0).fit_transform(Z)[: settings.rows]
    tried = [GaussianMixture(size, reg_covar=1e-3, random_state=0).fit(points) for size in settings.sizes]
    return min(tried, key=lambda one: one.bic(points)).predict(points)


def main(record: Record, asked: Namespace) -> None:
    rng = np.random.default_rng(0)
    blobs = make_blobs(2_000, 20, centers=6, cluster_std=4.0, random_state=0)[0]
    classes = rng.integers(5, size=len(blobs)).astype(str)
    fits: dict[str, tuple[Any, dict[str, Any], dict[str, Any], float | None]] = {
        "150×4, iris": (load_iris().data, {}, {}, 0.2),
        "2,000×20, six groups": (blobs, {}, {}, 0.7),
        "2,000×20, one Gaussian": (rng.standard_normal((2_000, 20)) @ rng.standard_normal((20, 20)), {}, {}, 0.7),
        "2,000×20, a label of 5 classes known": (blobs, {}, {"prior": Labels(classes)}, 1.0),
    }
    if not asked.quick:
        cells = np.asarray(table_suite.read("pbmc68k").X, dtype=np.float64)
        large = make_blobs(100_000, 50, centers=6, cluster_std=6.0, random_state=0)[0]
        wide = make_blobs(2_000, 9_000, centers=6, cluster_std=20.0, random_state=0)[0]
        fits["100,000×50, six groups"] = (large, {}, {}, 3.0)
        fits["700×765, 20 axes"] = (cells, {"n_components": 20}, {}, 3.0)
        fits["2,000×9,000, six groups"] = (wide, {}, {}, None)
    table = record.table("Default fits", "rows × columns", "fit, s", "PCA and mixture by BIC, s", "times faster")
    for name, (X, parameters, known, most) in fits.items():
        repeats = 1 if asked.quick or most is None else 5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            ours = median_seconds(lambda X=X, p=parameters, k=known: IMAPCE(**p).fit(X, **k), repeats=repeats)
            theirs = median_seconds(lambda X=X: peer(X), repeats=min(3, repeats))
        table.row(name, ours, theirs, theirs / ours, claim=None if most is None else at_most(most, "fit, s"))


if __name__ == "__main__":
    measure("fit", main, __doc__)
