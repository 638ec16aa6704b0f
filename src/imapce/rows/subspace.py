"""Rows seen inside a subspace: what is left when some directions may not be looked along.

A view from which nothing linear of the known columns A can be read has axes with vᵀ C_X[:, A] = 0 (linear erasure,
Belrose et al. 2023, as a constraint). With N an orthonormal basis of these directions V = NṼ, and the search for Ṽ is
the search as always, on NᵀMN and on rows whose quartic reduction is Nᵀ·quartic(NW).

N has d − r columns and is never written: it is the last columns of a block reflector H = I − YKYᵀ (Schreiber and
Parlett 1988) whose first r columns span what is erased, so NW costs 2drk and a hundred thousand columns are no trouble.
"""

from __future__ import annotations

import numpy as np

from imapce.common.arrays import Array, Mask
from imapce.rows.standardized import MappedRows, QuadraticForm, StandardizedRows

# Known columns that repeat each other, or a whole one-hot category, span fewer directions than they are. The singular
# values of their unit columns beyond the rank are rounding: 1e-16, or 1e-12 in sparse columns whose mean is a hundred
# times their spread.
NEGLIGIBLE = 1e-10


class Subspace:
    """{v : vᵀB = 0, v zero outside `columns`}, for B (d, q) = C_X[:, A], or for no B; orthonormal coordinates in it.

    >>> inside = Subspace(np.array([True, True, False]), np.array([[3.0], [4.0], [0.0]]))
    >>> inside.size, np.round(np.abs(inside.lift(np.eye(1))).ravel(), 3).tolist()
    (1, [0.8, 0.6, 0.0])
    """

    def __init__(self, columns: Mask, erased: Array | None = None):
        self.n_features = len(columns)
        self._columns = np.flatnonzero(columns)
        basis = np.zeros((len(self._columns), 0)) if erased is None else _range(erased, columns)
        self.n_erased = r = basis.shape[1]
        self.size = len(self._columns) - r
        # A rotation of the basis that makes its first r rows −UΣUᵀ: then Y = basis − [I; 0] has YᵀY = 2U(I + Σ)Uᵀ,
        # never near singular, and H depends on the span alone, not on the signs a decomposition happens to choose.
        U, cosines, W_T = np.linalg.svd(basis[:r])
        self._Y = -(basis @ W_T.T) @ U.T
        self._Y[:r] -= np.eye(r)
        self._K = (U / (1.0 + cosines)) @ U.T

    @property
    def is_whole(self) -> bool:
        """Whether nothing is erased and no column left out, so that coordinates are the columns themselves."""
        return self.size == self.n_features

    def lift(self, W: Array) -> Array:
        """NW: coordinates (..., size, k) as vectors of all columns (..., d, k)."""
        if self.is_whole:
            return W
        r = self.n_erased
        inside = np.zeros((*W.shape[:-2], len(self._columns), W.shape[-1]))
        inside[..., r:, :] = W
        inside -= np.matmul(self._Y, np.matmul(self._K, np.matmul(self._Y[r:].T, W)))
        if len(self._columns) == self.n_features:
            return inside
        vectors = np.zeros((*W.shape[:-2], self.n_features, W.shape[-1]))
        vectors[..., self._columns, :] = inside
        return vectors

    def coordinates(self, G: Array) -> Array:
        """NᵀG: the part of G (..., d, k) that lies in the subspace, in its coordinates."""
        r = self.n_erased
        inside = G if len(self._columns) == self.n_features else G[..., self._columns, :]
        return inside[..., r:, :] - np.matmul(self._Y[r:], np.matmul(self._K, np.matmul(self._Y.T, inside)))

    def form(self, M: QuadraticForm) -> QuadraticForm:
        """NᵀMN, with the trace of M itself: f goes on counting the variance that no view in the subspace can show."""
        return M if self.is_whole else M.map_through(self.size, self.lift, self.coordinates, M.trace)


class RowsWithin(MappedRows):
    """ZN, the standardised rows Z in the coordinates of a subspace.

    >>> from imapce.rows.dense import DenseRows
    >>> Z = StandardizedRows(DenseRows(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])))
    >>> RowsWithin(Z, Subspace(np.array([True, True, False]))).second_moment.matrix.round(1)
    array([[ 3. , -1.5],
           [-1.5,  3. ]])
    """

    def __init__(self, Z: StandardizedRows, inside: Subspace):
        self._inside = inside
        self.informative = np.ones(inside.size, dtype=bool)
        super().__init__(Z, inside.form(Z.second_moment))

    def forward(self, V: Array) -> Array:
        return self._inside.lift(V)

    def back(self, G: Array) -> Array:
        return self._inside.coordinates(G)


def _range(B: Array, columns: Mask) -> Array:
    """An orthonormal basis of the span of B's columns, as vectors of `columns` alone.

    Every column of B counts as one of unit length, whatever its scale; one that is constant in X is zero and counts
    for nothing, and so does one whose covariances are all with columns left out.
    """
    norms = np.linalg.norm(B, axis=0)
    unit = B[:, norms > 0] / norms[norms > 0]
    left, values, _ = np.linalg.svd(unit[columns], full_matrices=False)
    return left[:, values > NEGLIGIBLE]
