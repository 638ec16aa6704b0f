"""Rows with few columns, folded once into their fourth moments: every later evaluation costs nothing in n.

With z̃ = (1, (z − m)/σ) and p = vech(W̃W̃ᵀ), off-diagonal entries counted twice, s = z̃ᵀW̃W̃ᵀz̃ = p·vech(z̃z̃ᵀ), so

    Σ s z̃z̃ᵀ = mat(T p),    T = Σ vech(z̃z̃ᵀ) vech(z̃z̃ᵀ)ᵀ.

T is additive over rows (T of a subset is T minus T of the others) and, thanks to the constant 1, any offset can be
subtracted later, so that a subset is centred anew without going back to the rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from imapce.rows.base import Array, Moments, Quartic, Rows

# Evaluations times starts of a typical fit, for the cost rule below.
TYPICAL_EVALUATIONS = 1500
BLOCK_BYTES = 4_000_000


def moment_tensor_pays(n_rows: int, n_features: int, n_components: int) -> bool:
    """Whether n·p² + E·2p² (fold, then evaluate) is below E·n·4dk (pass over the rows each time), p = ½(d+1)(d+2).

    With E = 1,500 evaluations of one start (150 rounds of ten) this holds up to about d = 32 at k = 2.
    """
    p = (n_features + 1) * (n_features + 2) // 2
    passes = TYPICAL_EVALUATIONS * n_rows * 4 * n_features * n_components
    return n_rows * p * p + TYPICAL_EVALUATIONS * 2 * p * p < passes


class MomentTensorRows(Rows):
    """The fourth moments of another engine's rows, in that engine's coordinates.

    >>> rows = MomentTensorRows(DenseRows(X))                 # doctest: +SKIP
    """

    folded = True

    def __init__(self, rows: Rows, *, centre: Array | None = None, spread: Array | None = None, T: Array | None = None):
        self._rows = rows
        self.n_rows, self.n_features, self.origin = rows.n_rows, rows.n_features, rows.origin
        size = self.n_features + 1
        self._upper = np.triu_indices(size)
        self._weight = np.where(self._upper[0] == self._upper[1], 1.0, 2.0)
        self._unfold = np.zeros((size, size), dtype=np.intp)
        self._unfold[self._upper] = np.arange(len(self._weight))
        self._unfold.T[self._upper] = np.arange(len(self._weight))
        if centre is None or spread is None:
            moments = rows.moments()
            centre = moments.mean
            spread = np.sqrt(moments.variance)
            spread = np.where(spread > 0, spread, 1.0)
        self._centre, self._spread = centre, spread
        self._T = self._fold(rows) if T is None else T

    def _fold(self, rows: Rows) -> Array:
        left, right = self._upper
        T = np.zeros((len(left), len(left)))
        step = max(64, BLOCK_BYTES // (8 * len(left)))
        for block in rows.blocks():
            for start in range(0, len(block), step):
                part = block[start : start + step]
                extended = np.ones((len(part), self.n_features + 1))
                np.divide(part - self._centre, self._spread, out=extended[:, 1:])
                products = extended[:, left] * extended[:, right]
                T += products.T @ products
        return T

    def _compute_moments(self) -> Moments:
        # Not read off T: in a difference of two tensors a column that is constant on this side keeps a variance of
        # rounding size, and standardising would blow it up. One pass in n·d² is nothing against the fold's n·p².
        return self._rows.moments()

    def quartic(self, W: Array, offset: Array) -> Quartic:
        n_frames, d, k = W.shape
        frames = np.empty((n_frames, d + 1, k))
        frames[:, 1:] = self._spread[:, None] * W
        frames[:, 0] = self._centre @ W - offset
        outer = np.matmul(frames, frames.transpose(0, 2, 1))
        p = outer[:, self._upper[0], self._upper[1]] * self._weight
        weighted = np.matmul((p @ self._T)[:, self._unfold], frames)
        total = weighted[:, 0]
        weighted = self._spread[:, None] * weighted[:, 1:] + self._centre[:, None] * total[:, None, :]
        return Quartic(weighted, total)

    def scatter_product(self, W: Array, offset: Array) -> Array:
        moments = self.moments()
        assert moments.scatter is not None
        u_total = self.n_rows * (moments.mean @ W - offset)
        return moments.scatter @ W + np.outer(moments.mean, u_total)

    def project(self, W: Array, offset: Array) -> Array:
        return self._rows.project(W, offset)

    def blocks(self) -> Iterator[Array]:
        return self._rows.blocks()

    def subset(self, mask: NDArray[np.bool_]) -> MomentTensorRows:
        """T of the smaller side is folded; the larger side's is the difference."""
        chosen = self._rows.subset(mask)
        if 2 * chosen.n_rows <= self.n_rows:
            T = self._fold(chosen)
        else:
            T = self._T - self._fold(self._rows.subset(~mask))
        return MomentTensorRows(chosen, centre=self._centre, spread=self._spread, T=T)
