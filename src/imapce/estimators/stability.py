"""Is a view more than the luck of its rows? Views of halves of the rows, found each on its own, set beside each other.

    agreement(V, W) = mean of ρ²,    ρ the canonical correlations of the views XV and XW of all rows
                    = ‖A^(−½)·VᵀCW·B^(−½)‖²/k,    C = XᵀX,  A = VᵀCV,  B = WᵀCW

so 1 says that both halves show the same, however rotated, and it costs no pass over the rows. Angles between V and W
themselves would call two views different that differ only along columns which repeat each other.

Chance is the agreement of two random planes of the same columns: k/d where columns share nothing, more where they do.
A half shares no row with the other, so nothing of what both show is there because the same rows were seen twice.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.search.objective import stacked_product
from imapce.search.stiefel import random_frames, transpose

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

CHANCE_DRAWS = 100
FLAT = 1e-12


def agreement(V: Array, W: Array, second_moment: QuadraticForm) -> float:
    """The mean squared canonical correlation of the views with axes V and W (d, k); not orthonormal they may be.

    >>> C = QuadraticForm.of_matrix(np.diag([4.0, 1.0, 1.0]))
    >>> axes = np.eye(3)
    >>> agreement(axes[:, :2], 3 * axes[:, :2], C), agreement(axes[:, :2], axes[:, 1:], C)
    (1.0, 0.5)
    """
    both = np.column_stack([V, W])
    return _shared(both.T @ (second_moment @ both))


def agreement_by_chance(X: StandardizedRows, n_components: int) -> float:
    """What two random views of the columns that vary agree in, on average over a fixed draw.

    >>> from imapce.rows.dense import DenseRows
    >>> rows = np.random.default_rng(0).normal(size=(500, 10))
    >>> round(agreement_by_chance(StandardizedRows(DenseRows(rows)), 2), 1)
    0.2
    """
    drawn = random_frames(2 * CHANCE_DRAWS, X.n_features, n_components, np.random.default_rng(0), X.informative)
    pairs = np.concatenate([drawn[:CHANCE_DRAWS], drawn[CHANCE_DRAWS:]], axis=2)
    moments = np.matmul(transpose(pairs), stacked_product(X.second_moment, pairs))
    return float(np.mean([_shared(moment) for moment in moments]))


def agreement_of_halves(
    X: StandardizedRows, axes_without: Callable[[Mask, int], Array], *, n_splits: int, seed: int
) -> float:
    """The mean agreement of the two halves of `n_splits` random splits.

    `axes_without(mask, seed)` are the axes (d, k), for standardised columns of X, of a fit that has never seen the rows
    of the table in `mask`; its length is that of X's rows.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_splits):
        first = np.zeros(X.n_rows, dtype=bool)
        first[rng.permutation(X.n_rows)[: X.n_rows // 2]] = True
        V, W = (axes_without(half, int(rng.integers(2**31))) for half in (first, ~first))
        found.append(agreement(V, W, X.second_moment))
    return float(np.mean(found))


def _shared(moment: Array) -> float:
    """The mean of ρ² from the second moment (2k, 2k) of two views side by side."""
    k = len(moment) // 2
    half_V, half_W = _inverse_root(moment[:k, :k]), _inverse_root(moment[k:, k:])
    return float(np.sum((half_V.T @ moment[:k, k:] @ half_W) ** 2) / k)


def _inverse_root(moment: Array) -> Array:
    """L (k, r) with LᵀML = I on the directions in which M varies."""
    values, vectors = np.linalg.eigh(moment)
    varying = values > FLAT * max(float(values[-1]), 0.0)
    return vectors[:, varying] / np.sqrt(values[varying])
