"""Scores of scib-metrics, which brings JAX and is left out where it is not installed.

Nothing here imports imapce, so that finished cells outlive every change of ours.
"""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

Array = NDArray[np.float64]

LIBRARY = "scib_metrics"
NEIGHBOURS = 90
# All from 0 to 1, more is better.
TITLES = ("silhouette of labels", "silhouette of batches", "iLISI", "cLISI", "connected")


def is_installed() -> bool:
    return importlib.util.find_spec(LIBRARY) is not None


def missing() -> str:
    """A sentence where scib-metrics is not installed; empty where it is."""
    if is_installed():
        return ""
    return 'Scores of scib-metrics left out: it is not installed; `pip install "imapce[scib]"` brings it, with JAX.'


def scores(space: Array, looked_for: Any, batch: Any) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import scib_metrics
        from scib_metrics.nearest_neighbors import NeighborsResults

        labels, batches = (np.unique(np.asarray(one), return_inverse=True)[1] for one in (looked_for, batch))
        count = min(NEIGHBOURS, len(space) - 1)
        distances, indices = NearestNeighbors(n_neighbors=count).fit(space).kneighbors(space)
        near = NeighborsResults(indices=indices, distances=distances)
        values = (
            scib_metrics.silhouette_label(space, labels),
            # Where every class is in one batch only, there is nothing to be mixed.
            scib_metrics.silhouette_batch(space, labels, batches) if _are_shared(labels, batches) else np.nan,
            scib_metrics.ilisi_knn(near, batches),
            scib_metrics.clisi_knn(near, labels),
            scib_metrics.graph_connectivity(near, labels),
        )
    return {title: float(value) for title, value in zip(TITLES, values, strict=True)}


def _are_shared(labels: NDArray[np.intp], batches: NDArray[np.intp]) -> bool:
    """Whether any class is in more than one batch."""
    return any(len(np.unique(batches[labels == one])) > 1 for one in np.unique(labels))
