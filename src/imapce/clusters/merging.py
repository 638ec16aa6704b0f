"""Overlap between clusters, groups of overlapping clusters, and clusters that covariates cannot be separated from.

    O_ij = Σ_n r_ni·[row n is assigned to j] / Σ_n r_ni       share of cluster i that is misclassified as j

Groups of clusters are joined until no group has more than 10 % of its rows misclassified as another: Σ_j O_ij ≤ 0.1.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from imapce.clusters.axes import sphering
from imapce.common.arrays import Array, Codes
from imapce.common.settings import SETTINGS, ClusterSettings


def overlap_matrix(resp: Array) -> Array:
    """Return the share (k, k) of each component that is misclassified as each other one; 0 on the diagonal.

    >>> overlap_matrix(np.array([[0.75, 0.25], [0.25, 0.75]]))
    array([[0.  , 0.25],
           [0.25, 0.  ]])
    """
    k = resp.shape[1]
    assigned = np.eye(k)[resp.argmax(axis=1)]
    overlap = resp.T @ assigned / np.maximum(resp.sum(axis=0), 1e-12)[:, None]
    np.fill_diagonal(overlap, 0.0)
    return overlap


def overlapping_groups(resp: Array, settings: ClusterSettings = SETTINGS.clusters) -> Codes:
    """Return the group (k,) of each cluster from probabilities (m, k): clusters are joined until groups overlap little.

    >>> overlapping_groups(np.array([[0.7, 0.3, 0.0], [0.3, 0.7, 0.0], [0.0, 0.0, 1.0]]))
    array([0, 0, 1])
    """
    groups = np.arange(resp.shape[1])
    while True:
        overlap = overlap_matrix(resp @ np.eye(groups.max() + 1)[groups])
        most = overlap.sum(axis=1).argmax()
        if overlap[most].sum() <= settings.most_overlap:
            return groups
        first, second = sorted((most, overlap[most].argmax()))
        groups = np.unique(np.where(groups == second, first, groups), return_inverse=True)[1]


def merge_confounded_clusters(
    labels: Codes, covariates: Array, views: list[Array], settings: ClusterSettings = SETTINGS.clusters
) -> Codes:
    """Return labels 0, 1, ... after merging clusters until all covariate classes are connected by shared clusters.

    If no two classes share a cluster, any effect of the classes explains the rows equally well. The two clusters
    that are nearest in all `views` of the rows (m, ·) are merged first.

    >>> rows, species = np.array([[0.0], [9.0], [0.1], [9.5]]), np.array([[-1.0], [-1.0], [1.0], [1.0]])
    >>> merge_confounded_clusters(np.arange(4), species, [rows])
    array([0, 1, 0, 2])
    """
    labels = np.unique(labels, return_inverse=True)[1]
    classes = np.unique(covariates.round(6), axis=0, return_inverse=True)[1].ravel()
    n_classes = int(classes.max(initial=0)) + 1
    # Rows without a value do not connect the clusters of different classes.
    has_class = covariates.round(6).any(axis=1).astype(np.float64)
    while 1 < n_classes <= settings.most_classes and labels.any():
        k = int(labels.max()) + 1
        counts = np.zeros((k, n_classes))
        np.add.at(counts, (labels, classes), has_class)
        holds = (counts >= settings.class_share * counts.sum(axis=1, keepdims=True)).astype(np.float64)
        part = connected_components(holds @ holds.T)[1]
        if not part.any():
            break
        distances = np.zeros((k, k))
        for view in views:
            means = np.stack([view[labels == c].mean(axis=0) for c in range(k)])
            means = means @ sphering(view - means[labels])
            distances += np.sum((means[:, None] - means) ** 2, axis=2)
        distances[part[:, None] == part] = np.inf
        a, b = sorted(int(i) for i in np.unravel_index(distances.argmin(), distances.shape))
        labels = np.unique(np.where(labels == b, a, labels), return_inverse=True)[1]
    return labels
