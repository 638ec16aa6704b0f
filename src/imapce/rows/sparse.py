"""Rows in a SciPy sparse matrix: centring and scaling happen on the small side, so zeros stay zeros.

    Wᵀ(z − m)/σ = (W/σ)ᵀz − mᵀ(W/σ)      W is scaled and the product shifted; z itself is read as it is stored

Moments are sums over what is stored and, for each zero that is not, its column's mean: nothing cancels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from imapce.common.arrays import Array, Codes, Mask
from imapce.rows.base import Moments, Quartic, Rows

BLOCK_BYTES = 4_000_000
# Above this width even the matrix of second moments would be the largest thing in memory (1,024² × 8 B = 8 MiB).
SCATTER_LIMIT = 1024


class SparseRows(Rows):
    """CSR or CSC rows with implicit centring: u = Wᵀz − offset never needs z − m.

    >>> SparseRows(sparse.eye_array(3, format="csr")).moments().variance
    array([0.22222222, 0.22222222, 0.22222222])
    """

    engine = "sparse"
    because = "the matrix is sparse and stays so"

    def __init__(self, matrix: Any):
        csr = sparse.csr_array(matrix)
        if not csr.has_canonical_format:
            # Entries given twice add up in products and would count apart in the variance; the caller's stay as given.
            csr = csr.copy()
            csr.sum_duplicates()
        self._csr = csr
        self.n_rows, self.n_features = csr.shape
        self.origin = np.zeros(self.n_features)

    def _pieces(self, n_columns: int) -> Iterator[tuple[int, Any]]:
        """Row slices as views of the CSR arrays, so that a pass over n rows needs no n × Rk matrix."""
        csr = self._csr
        size = max(256, BLOCK_BYTES // (8 * max(1, n_columns)))
        for start in range(0, self.n_rows, size):
            pointers = csr.indptr[start : start + size + 1]
            first, last = int(pointers[0]), int(pointers[-1])
            piece = sparse.csr_array(
                (csr.data[first:last], csr.indices[first:last], pointers - first),
                shape=(len(pointers) - 1, self.n_features),
            )
            yield start, piece

    def blocks(self, columns: Codes | None = None) -> Iterator[Array]:
        if columns is None:
            columns = np.arange(self.n_features)
        for _, piece in self._pieces(len(columns)):
            chosen = piece if len(columns) == self.n_features else piece[:, columns]
            yield chosen.toarray().astype(np.float64, copy=False)

    def _compute_moments(self) -> Moments:
        csr, n, d = self._csr, self.n_rows, self.n_features
        stored = np.bincount(csr.indices, minlength=d)
        mean = np.bincount(csr.indices, weights=csr.data, minlength=d) / n
        # One round of correction: a running sum of n equal values is off by up to n rounding errors, and a constant
        # column must be seen as one.
        off = np.bincount(csr.indices, weights=csr.data - mean[csr.indices], minlength=d)
        mean += (off - (n - stored) * mean) / n
        # Deviations of the stored values plus m² for each zero: no difference of two large sums.
        deviations = csr.data - mean[csr.indices]
        squares = np.bincount(csr.indices, weights=deviations * deviations, minlength=d)
        variance = (squares + (n - stored) * mean**2) / n
        scatter = None
        if d <= SCATTER_LIMIT:
            scatter = self._scatter(mean, deviations, stored)
        return Moments(n, mean, variance, scatter)

    def _scatter(self, mean: Array, deviations: Array, stored: Codes) -> Array:
        """Σ(z−m)(z−m)ᵀ from D, the stored entries less their column's mean, and B, the pattern of what is stored.

        A row's deviation is D − (1−B)·m, so the scatter is DᵀD − DᵀB̄ − B̄ᵀD + B̄ᵀB̄ with B̄ the unstored means. Only
        deviations are multiplied: DᵀD − n·mmᵀ of the raw values would cancel for a column far from zero.
        """
        csr, n = self._csr, self.n_rows
        D = sparse.csr_array((deviations, csr.indices, csr.indptr), shape=csr.shape)
        pattern = sparse.csr_array((np.ones_like(deviations), csr.indices, csr.indptr), shape=csr.shape)
        column_sums = np.asarray(D.sum(axis=0)).ravel()
        overlap = (pattern.T @ pattern).toarray()
        cross = (np.outer(column_sums, np.ones_like(mean)) - (D.T @ pattern).toarray()) * mean
        absent = n - stored[:, None] - stored[None, :] + overlap
        return (D.T @ D).toarray() - cross - cross.T + absent * np.outer(mean, mean)

    def quartic(self, W: Array, offset: Array) -> Quartic:
        n_frames, d, k = W.shape
        frames = np.ascontiguousarray(W.transpose(1, 0, 2)).reshape(d, n_frames * k)
        weighted = np.zeros((d, n_frames * k))
        total = np.zeros(n_frames * k)
        for _, piece in self._pieces(n_frames * k):
            u = piece @ frames
            u -= offset.reshape(-1)
            per_frame = u.reshape(-1, n_frames, k)
            per_frame *= np.einsum("irk,irk->ir", per_frame, per_frame)[:, :, None]
            weighted += piece.T @ u
            total += u.sum(axis=0)
        return Quartic(weighted.reshape(d, n_frames, k).transpose(1, 0, 2), total.reshape(n_frames, k))

    def scatter_product(self, W: Array, offset: Array) -> Array:
        result = np.zeros((self.n_features, W.shape[1]))
        for _, piece in self._pieces(W.shape[1]):
            result += piece.T @ (piece @ W - offset)
        return result

    def project(self, W: Array, offset: Array) -> Array:
        result = np.empty((self.n_rows, W.shape[1]))
        for start, piece in self._pieces(W.shape[1]):
            result[start : start + piece.shape[0]] = piece @ W - offset
        return result

    def cross(self, values: Array) -> Array:
        return np.asarray(self._csr.T @ values, dtype=np.float64)

    def subset(self, mask: Mask) -> SparseRows:
        return SparseRows(self._csr[np.flatnonzero(mask)])

    def without(self, mask: Mask) -> SparseRows:
        return self.subset(~mask)
