"""Clusterings by who is near whom: HDBSCAN, Leiden, HDBSCAN of a UMAP. Imports nothing of imapce."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN
from sklearn.neighbors import kneighbors_graph

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

NEIGHBOURS = 15
# How near UMAP may draw two rows: its own default for pictures, and what its authors advise for clusters.
DRAWN_APART, FOR_CLUSTERS = 0.1, 0.0


def hdbscan(Z: Array, n_classes: int, seed: int) -> Labels:
    """scikit-learn's HDBSCAN with our own smallest cluster, 2 % of the rows and at least 10.

    >>> hdbscan(np.repeat([[0.0], [9.0]], 20, axis=0) + np.tile(np.linspace(0, 1, 20), 2)[:, None], 2, 0)[[0, 39]]
    array([0, 1])
    """
    smallest = max(10, int(np.ceil(0.02 * len(Z))))
    return np.asarray(HDBSCAN(min_cluster_size=smallest, copy=True).fit_predict(Z))


def leiden(Z: Array, n_classes: int, seed: int) -> Labels:
    """Communities by modularity of the graph that joins two rows where one is among the other's 15 nearest."""
    import igraph
    import leidenalg

    directed = kneighbors_graph(Z, min(NEIGHBOURS, len(Z) - 1))
    graph = directed.maximum(directed.T).tocoo()
    once = graph.row < graph.col
    edges = list(zip(graph.row[once].tolist(), graph.col[once].tolist(), strict=True))
    partition = leidenalg.find_partition(
        igraph.Graph(n=len(Z), edges=edges), leidenalg.ModularityVertexPartition, seed=seed
    )
    return np.asarray(partition.membership)


def umap_hdbscan(Z: Array, n_classes: int, seed: int) -> Labels:
    """HDBSCAN of a UMAP in the plane, drawn for clusters."""
    return hdbscan(umap_map(Z, seed, FOR_CLUSTERS), n_classes, seed)


def umap_map(Z: Array, seed: int, apart: float = DRAWN_APART) -> Array:
    """UMAP of standard axes in the plane."""
    with warnings.catch_warnings():
        # On import it tells that TensorFlow is not there, later that one seed means one thread.
        warnings.simplefilter("ignore")
        import umap

        method: Any = umap.UMAP(
            n_neighbors=min(NEIGHBOURS, len(Z) - 1), min_dist=apart, n_components=2, n_jobs=1, random_state=seed
        )
        return np.asarray(method.fit_transform(Z), dtype=np.float64)
