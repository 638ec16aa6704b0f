"""Rows with few columns, folded once into their fourth moments: every later evaluation costs nothing in n.

With z̃ = (1, w), w the row in whitened coordinates (z − m = wF, q of them), and p = vech(W̃W̃ᵀ), off-diagonal entries
counted twice, s = z̃ᵀW̃W̃ᵀz̃ = p·vech(z̃z̃ᵀ), so

    Σ s z̃z̃ᵀ = mat(T p),    T = Σ vech(z̃z̃ᵀ) vech(z̃z̃ᵀ)ᵀ.

Whitened, because a direction whose variance is 1e-8 of the others' has fourth moments of 1e-16 of theirs, which is
rounding; and columns that repeat each other drop out, so that T is smaller. T is additive over rows (T of a subset is T
minus T of the others) and, thanks to the constant 1, any offset can be subtracted later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from imapce.rows.base import Array, Moments, Quartic, Rows

# Evaluations times starts of a typical fit, for the cost rule below.
TYPICAL_EVALUATIONS = 1500
BLOCK_BYTES = 4_000_000
# Multiplications up to which a subset is folded anew (about a tenth of a second).
QUICK_FOLD = 3e9


def moment_tensor_pays(n_rows: int, n_features: int, n_components: int) -> bool:
    """Whether n·p² + E·2p² (fold, then evaluate) is below E·n·4dk (pass over the rows each time), p = ½(d+1)(d+2).

    With E = 1,500 evaluations of one start (150 rounds of ten) this holds up to about d = 32 at k = 2.
    """
    p = (n_features + 1) * (n_features + 2) // 2
    passes = TYPICAL_EVALUATIONS * n_rows * 4 * n_features * n_components
    return n_rows * p * p + TYPICAL_EVALUATIONS * 2 * p * p < passes


@dataclass(frozen=True)
class Coordinates:
    """z − centre = w·back and w = (z − centre)·forward, with w uncorrelated and of unit variance."""

    centre: Array
    forward: Array
    back: Array

    @classmethod
    def whitening(cls, rows: Rows) -> Coordinates:
        moments = rows.moments()
        assert moments.scatter is not None
        spread = np.sqrt(moments.variance)
        inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        correlation = moments.scatter * np.outer(inverse, inverse) / rows.n_rows
        if not np.isfinite(correlation).all():
            # Values whose squares overflow are refused by name elsewhere; here they must only not stop the reading.
            correlation = np.eye(len(spread))
        values, vectors = np.linalg.eigh(correlation)
        varying = values > 1e-12 * max(float(values[-1]), np.finfo(np.float64).tiny)
        if not varying.any():
            varying[-1:] = True
            values = np.ones_like(values)
        root, axes = np.sqrt(values[varying]), vectors[:, varying]
        return cls(moments.mean, inverse[:, None] * axes / root, (root * axes).T * spread)


class MomentTensorRows(Rows):
    """The fourth moments of another engine's rows, in that engine's coordinates.

    >>> rows = MomentTensorRows(DenseRows(X))                 # doctest: +SKIP
    """

    folded = True

    def __init__(self, rows: Rows, *, coordinates: Coordinates | None = None, T: Array | None = None):
        self._rows = rows
        self.n_rows, self.n_features, self.origin = rows.n_rows, rows.n_features, rows.origin
        self._coordinates = Coordinates.whitening(rows) if coordinates is None else coordinates
        size = self._coordinates.forward.shape[1] + 1
        self._upper = np.triu_indices(size)
        self._weight = np.where(self._upper[0] == self._upper[1], 1.0, 2.0)
        self._unfold = np.zeros((size, size), dtype=np.intp)
        self._unfold[self._upper] = np.arange(len(self._weight))
        self._unfold.T[self._upper] = np.arange(len(self._weight))
        if T is None:
            self._T = self._fold(rows)
        else:
            self._T = T
            # A difference of tensors keeps the rounding of the larger one: 1e-16 against variance² resolves 1e-6.
            self.resolution = 1e-6

    def _fold(self, rows: Rows) -> Array:
        left, right = self._upper
        T = np.zeros((len(left), len(left)))
        step = max(64, BLOCK_BYTES // (8 * len(left)))
        for block in rows.blocks():
            for start in range(0, len(block), step):
                part = block[start : start + step] - self._coordinates.centre
                extended = np.ones((len(part), self._coordinates.forward.shape[1] + 1))
                np.matmul(part, self._coordinates.forward, out=extended[:, 1:])
                products = extended[:, left] * extended[:, right]
                T += products.T @ products
        return T

    def _compute_moments(self) -> Moments:
        # Not read off T: in a difference of two tensors a column that is constant on this side keeps a variance of
        # rounding size, and standardising would blow it up. One pass in n·d² is nothing against the fold's n·p².
        return self._rows.moments()

    def quartic(self, W: Array, offset: Array) -> Quartic:
        n_frames, _, k = W.shape
        centre, back = self._coordinates.centre, self._coordinates.back
        frames = np.empty((n_frames, len(back) + 1, k))
        frames[:, 1:] = np.matmul(back, W)
        frames[:, 0] = centre @ W - offset
        outer = np.matmul(frames, frames.transpose(0, 2, 1))
        p = outer[:, self._upper[0], self._upper[1]] * self._weight
        weighted = np.matmul((p @ self._T)[:, self._unfold], frames)
        total = weighted[:, 0]
        return Quartic(np.matmul(back.T, weighted[:, 1:]) + centre[:, None] * total[:, None, :], total)

    def scatter_product(self, W: Array, offset: Array) -> Array:
        moments = self.moments()
        assert moments.scatter is not None
        u_total = self.n_rows * (moments.mean @ W - offset)
        return moments.scatter @ W + np.outer(moments.mean, u_total)

    def project(self, W: Array, offset: Array) -> Array:
        return self._rows.project(W, offset)

    def blocks(self, columns: NDArray[np.intp] | None = None) -> Iterator[Array]:
        return self._rows.blocks(columns)

    @property
    def unfolded(self) -> Rows:
        return self._rows

    def subset(self, mask: NDArray[np.bool_]) -> MomentTensorRows:
        """Folded anew in its own coordinates if that is quick or it is the smaller side; else T minus the others'."""
        chosen = self._rows.subset(mask)
        work = chosen.n_rows * len(self._T) ** 2
        if work <= QUICK_FOLD or 2 * chosen.n_rows <= self.n_rows:
            return MomentTensorRows(chosen)
        T = self._T - self._fold(self._rows.subset(~mask))
        return MomentTensorRows(chosen, coordinates=self._coordinates, T=T)

    def without(self, mask: NDArray[np.bool_]) -> MomentTensorRows:
        """Folded anew: in a T that holds values of 1e6 no digit is left of the others."""
        return MomentTensorRows(self._rows.without(mask))
