"""What people do without us: plain clusterings of a table and plain pictures of it, none of which sees a label.

All get standardised columns, in their first 30 principal axes where there are more; only k-means is told how many
clusters there are. Nothing here imports imapce, so that finished cells outlive every change of ours.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.neighbors import kneighbors_graph

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
# Rows in standard axes, the number of classes (for those who are told), a seed.
Clusterer = Callable[[Array, int, int], Labels]

MOST_AXES = 30
NEIGHBOURS = 15
MOST_OF_A_MIXTURE = 15
MOST_OF_DIRICHLET = 20
# A mixture of a table with discrete columns can collapse onto one value; then it is held wider.
REGULARISATION = (1e-4, 1e-3, 1e-2)


def standard_axes(X: Array) -> Array:
    """Standardised columns (constant ones left out), in their 30 leading principal axes where there are more.

    >>> standard_axes(np.array([[0.0, 7.0], [2.0, 7.0]]))
    array([[-1.],
           [ 1.]])
    """
    spread = X.std(axis=0)
    varies = spread > 1e-12 * np.maximum(1.0, np.abs(X).max(axis=0))
    Z = (X[:, varies] - X[:, varies].mean(axis=0)) / spread[varies]
    return principal_axes(Z, MOST_AXES) if Z.shape[1] > MOST_AXES else Z


def principal_axes(Z: Array, count: int) -> Array:
    """Centred rows in their `count` leading principal axes."""
    left, sizes, _ = np.linalg.svd(Z, full_matrices=False)
    return np.asarray(left[:, :count] * sizes[:count])


def plain_matrix(table: pa.Table) -> Array:
    """A mixed table as it is usually made numeric: dummies for categories, missing values filled with the mean."""
    columns = []
    for column in table.columns:
        values = column.combine_chunks()
        if pa.types.is_dictionary(values.type):
            levels = np.asarray(values.to_pylist())
            columns += [(levels == level).astype(np.float64) for level in np.unique(levels)]
            continue
        numbers = np.asarray([np.nan if one is None else float(one) for one in values.to_pylist()])
        columns.append(np.where(np.isnan(numbers), np.nanmean(numbers), numbers))
    return np.column_stack(columns)


def kmeans_told(Z: Array, n_classes: int, seed: int) -> Labels:
    return np.asarray(KMeans(n_classes, n_init=10, random_state=seed).fit_predict(Z))


def mixture_by_bic(Z: Array, n_classes: int, seed: int) -> Labels:
    """The Gaussian mixture of 1 to 15 components with full covariances that has the best BIC."""
    best, found = np.inf, np.zeros(len(Z), dtype=np.intp)
    for count in range(1, min(MOST_OF_A_MIXTURE, len(Z) // 2) + 1):
        mixture = GaussianMixture(count, n_init=2, reg_covar=REGULARISATION[0], max_iter=200, random_state=seed)
        try:
            mixture.fit(Z)
        except ValueError:
            # A component has shrunk to a point: this many components are no model of the table.
            continue
        if (bic := mixture.bic(Z)) < best:
            best, found = bic, mixture.predict(Z)
    return found


def dirichlet_mixture(Z: Array, n_classes: int, seed: int) -> Labels:
    """A Dirichlet-process mixture of up to 20 components."""
    for regularisation in REGULARISATION:
        mixture = BayesianGaussianMixture(
            n_components=min(MOST_OF_DIRICHLET, len(Z) // 2),
            weight_concentration_prior_type="dirichlet_process",
            reg_covar=regularisation,
            max_iter=500,
            random_state=seed,
        )
        try:
            return np.asarray(mixture.fit_predict(Z))
        except ValueError:
            continue
    return np.zeros(len(Z), dtype=np.intp)


def hdbscan(Z: Array, n_classes: int, seed: int) -> Labels:
    """scikit-learn's HDBSCAN with our own smallest cluster, 2 % of the rows and at least 10."""
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


TOLD = "k-means told k"
BIC = "mixture by BIC"
CLUSTERERS: dict[str, Clusterer] = {
    TOLD: kmeans_told,
    BIC: mixture_by_bic,
    "Dirichlet mixture": dirichlet_mixture,
    "HDBSCAN": hdbscan,
    "Leiden": leiden,
}
NEEDS = {"Leiden": ("igraph", "leidenalg"), "UMAP": ("umap",)}


def is_installed(rival: str) -> bool:
    return all(importlib.util.find_spec(library) is not None for library in NEEDS.get(rival, ()))


def clustered(rival: str, X: Array, n_classes: int, seed: int) -> Labels:
    """The labels a rival gives to the rows of a table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CLUSTERERS[rival](standard_axes(X), n_classes, seed)


def pca_plane(X: Array) -> Array:
    return principal_axes(standard_axes(X), 2)


def umap_map(X: Array, seed: int) -> Array:
    with warnings.catch_warnings():
        # On import it tells that TensorFlow is not there, later that one seed means one thread.
        warnings.simplefilter("ignore")
        import umap

        Z = standard_axes(X)
        method: Any = umap.UMAP(n_neighbors=min(NEIGHBOURS, len(Z) - 1), n_jobs=1, random_state=seed)
        return np.asarray(method.fit_transform(Z), dtype=np.float64)
