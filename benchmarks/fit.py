"""Claim: a default fit answers in a second, and sooner than scikit-learn's PCA and mixture by BIC on the same rows.

Both look for a plane and for clusters in all columns; the mixture is asked for the sizes that ours is, on at most as
many rows. 700×765 are the blood cells of `IMAPCE_DATA/tables`, with 20 axes; blobs and Gaussian rows are drawn.
"""

from __future__ import annotations

import warnings

import numpy as np
from experiments import table_suite
from sklearn.datasets import load_iris, make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from benchmarks.problems import median_seconds
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


def main() -> None:
    rng = np.random.default_rng(0)
    blobs = make_blobs(2_000, 20, centers=6, cluster_std=4.0, random_state=0)[0]
    classes = rng.integers(5, size=len(blobs)).astype(str)
    cells = table_suite.read("pbmc68k").X
    fits = {
        "150×4, iris": (load_iris().data, {}, {}, 0.2),
        "2,000×20, six groups": (blobs, {}, {}, 0.7),
        "2,000×20, one Gaussian": (rng.standard_normal((2_000, 20)) @ rng.standard_normal((20, 20)), {}, {}, 0.7),
        "2,000×20, a label of 5 classes known": (blobs, {}, {"prior": Labels(classes)}, 1.0),
        "100,000×50, six groups": (make_blobs(100_000, 50, centers=6, cluster_std=6.0, random_state=0)[0], {}, {}, 3.0),
        "700×765, 20 axes": (np.asarray(cells, dtype=np.float64), {"n_components": 20}, {}, 3.0),
    }
    for name, (X, parameters, known, wanted) in fits.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            ours = median_seconds(lambda X=X, p=parameters, k=known: IMAPCE(**p).fit(X, **k), repeats=5)
            theirs = median_seconds(lambda X=X: peer(X), repeats=3)
        print(f"{name}: {ours:.2f} s (wanted {wanted}); PCA and mixture by BIC {theirs:.2f} s, {theirs / ours:.1f}x")


if __name__ == "__main__":
    main()
