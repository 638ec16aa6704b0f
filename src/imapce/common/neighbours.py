"""Who is near whom among points: one search for trees, views and what is read back from them."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from imapce.common.arrays import Array, Codes

# Beyond so many columns a tree looks at nearly all points, and up to so many points one product is sooner.
FEW_COLUMNS, FEW_POINTS = 6, 2_000
TIE = 1e-6  # of the spread


def nearest(points: Array, k: int) -> Codes:
    """(n, k): the places of the points (n, p) nearest to each, itself left out.

    >>> nearest(np.array([[0.0], [1.0], [5.0]]), 1).ravel()
    array([1, 0, 1])
    """
    if points.shape[1] <= FEW_COLUMNS or len(points) > FEW_POINTS:
        return np.asarray(cKDTree(points).query(points, k + 1)[1][:, 1:])
    squared = np.einsum("ij,ij->i", points, points)
    D = squared[:, None] + squared - 2 * (points @ points.T)
    np.fill_diagonal(D, np.inf)
    return np.argpartition(D, k, axis=1)[:, :k]


def votes(near: Codes, codes: Codes, n_classes: int) -> Codes:
    """(n, c): how many of the neighbours (n, k) of each point are of each class, by the codes of the classes.

    >>> votes(np.array([[1, 2], [0, 2]]), np.array([0, 1, 1]), 2).tolist()
    [[0, 2], [1, 1]]
    """
    n = len(near)
    ballots = codes[near] + n_classes * np.arange(n)[:, None]
    return np.bincount(ballots.ravel(), minlength=n * n_classes).reshape(n, n_classes)


def jittered(points: Array) -> Array:
    """Points (n, p) moved a little by a fixed draw: those at one place are neighbours by lot, the same in every engine.

    >>> len(np.unique(jittered(np.repeat([[0.0], [1.0]], 3, axis=0))))
    6
    """
    if not points.shape[1]:
        return points
    spread = np.sqrt(np.mean((points - points.mean(axis=0)) ** 2))
    return points + TIE * spread * np.random.default_rng(0).standard_normal(points.shape)
