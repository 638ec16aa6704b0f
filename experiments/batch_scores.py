"""How a space without its batch is judged: neighbours, Leiden's clusters, scores of scib-metrics, corrected columns.

Nothing here imports imapce, so that finished cells outlive every change of ours.
"""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.neighbors import NearestNeighbors

from experiments import rivals
from experiments.judging import judged, told_rows

Array = NDArray[np.float64]

LEIDEN = "Leiden"
SCIB = "scib_metrics"
SCIB_NEIGHBOURS = 90
# Titles of what scib-metrics gives: all from 0 to 1, more is better.
SCIB_SCORES = ("silhouette of labels", "silhouette of batches", "iLISI", "cLISI", "connected")


def scores(space: Array, looked_for: Any, batch: Any) -> dict[str, float]:
    """15-NN of what is looked for, within batches, of the batch; ARI and NMI of Leiden where it is installed.

    >>> rng, kind = np.random.default_rng(0), np.arange(120) % 2
    >>> scores(rng.standard_normal((120, 2)) + 9 * kind[:, None], kind, np.arange(120) // 60)["content"]
    1.0
    """
    found = judged(space, looked_for, batch)
    if rivals.is_installed(LEIDEN):
        labels = rivals.leiden(space, 0, 0)
        found["Leiden ARI"] = float(adjusted_rand_score(looked_for, labels))
        found["Leiden NMI"] = float(normalized_mutual_info_score(looked_for, labels))
    return found


def is_scib_installed() -> bool:
    return importlib.util.find_spec(SCIB) is not None


def scib_missing() -> str:
    """A sentence where scib-metrics is not installed; empty where it is."""
    if is_scib_installed():
        return ""
    return 'Scores of scib-metrics left out: it is not installed; `pip install "imapce[scib]"` brings it, with JAX.'


def scib_scores(space: Array, looked_for: Any, batch: Any) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import scib_metrics
        from scib_metrics.nearest_neighbors import NeighborsResults

        labels, batches = (np.unique(np.asarray(one), return_inverse=True)[1] for one in (looked_for, batch))
        count = min(SCIB_NEIGHBOURS, len(space) - 1)
        distances, indices = NearestNeighbors(n_neighbors=count).fit(space).kneighbors(space)
        near = NeighborsResults(indices=indices, distances=distances)
        values = (
            scib_metrics.silhouette_label(space, labels),
            scib_metrics.silhouette_batch(space, labels, batches),
            scib_metrics.ilisi_knn(near, batches),
            scib_metrics.clisi_knn(near, labels),
            scib_metrics.graph_connectivity(near, labels),
        )
    return {title: float(value) for title, value in zip(SCIB_SCORES, values, strict=True)}


def column_errors(columns: Array, truth: Array, shifted: NDArray[np.bool_]) -> dict[str, float]:
    """Root of the mean squared error, both centred: of the columns a batch was planted in, and of all others.

    >>> column_errors(np.zeros((2, 2)), np.array([[1.0, 3.0], [-1.0, 3.0]]), np.array([True, False]))
    {'shifted': 1.0, 'others': 0.0}
    """
    error = (columns - columns.mean(axis=0)) - (truth - truth.mean(axis=0))
    return {
        name: float(np.sqrt(np.mean(error[:, where] ** 2)))
        for name, where in (("shifted", shifted), ("others", ~shifted))
    }


def apart(space: Array, looked_for: Any, one: str) -> dict[str, float]:
    """Whether a class is still apart: share of its rows told by 15-NN, and F1 of the Leiden cluster most like it."""
    is_one = np.asarray(looked_for) == one
    found = {"told": float(told_rows(space, looked_for)[is_one].mean())}
    if rivals.is_installed(LEIDEN):
        labels = rivals.leiden(space, 0, 0)
        both = [2 * np.sum(is_one & (labels == c)) / (is_one.sum() + np.sum(labels == c)) for c in np.unique(labels)]
        found["F1"] = float(max(both))
    return found
