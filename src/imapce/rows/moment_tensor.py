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
from functools import cached_property
from typing import Any

import numpy as np

from imapce.common.arrays import Array, Codes, Mask, array_module, on_host
from imapce.rows.base import Moments, Quartic, Rows
from imapce.rows.standardized import SMALLEST_SPREAD

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
        # Below, squares of reciprocals overflow; standardised rows take such a column for constant.
        inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread >= SMALLEST_SPREAD)
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


@dataclass(frozen=True)
class HalfMatrix:
    """Which entries of a symmetric matrix vech keeps (upper), how often each counts, and the way back (unfold)."""

    upper: tuple[Codes, Codes]
    weight: Array
    unfold: Codes

    @classmethod
    def of_size(cls, size: int) -> HalfMatrix:
        left, right = np.triu_indices(size)
        unfold = np.zeros((size, size), dtype=np.intp)
        unfold[left, right] = unfold[right, left] = np.arange(len(left))
        return cls((left, right), np.where(left == right, 1.0, 2.0), unfold)


@dataclass(frozen=True)
class BlockFold:
    """T = Σ vech(z̃z̃ᵀ) vech(z̃z̃ᵀ)ᵀ of one block: n·p² multiplications, the costliest thing done to rows here."""

    coordinates: Coordinates
    half: HalfMatrix

    def __call__(self, block: Any) -> tuple[Any]:
        xp = array_module(block)
        left, right = (xp.asarray(side) for side in self.half.upper)
        T = xp.zeros((len(left), len(left)))
        centre, forward = xp.asarray(self.coordinates.centre), xp.asarray(self.coordinates.forward)
        # A card has no cache to fit a block in, and wants work for all of its multiprocessors.
        step = max(64, BLOCK_BYTES // (8 * len(left))) if xp is np else max(64, (64 << 20) // (8 * len(left)))
        for start in range(0, len(block), step):
            part = block[start : start + step] - centre
            extended = xp.ones((len(part), forward.shape[1] + 1))
            extended[:, 1:] = part @ forward
            products = extended[:, left] * extended[:, right]
            T += products.T @ products
        return (T,)


class MomentTensorRows(Rows):
    """The fourth moments of another engine's rows, in that engine's coordinates; folded when `quartic` first asks.

    >>> from imapce.rows.dense import DenseRows
    >>> rows = MomentTensorRows(DenseRows(np.random.default_rng(0).normal(size=(50, 3))))
    >>> rows.quartic(np.eye(3)[None, :, :2], np.zeros((1, 2))).weighted.shape
    (1, 3, 2)
    """

    engine = "moment_tensor"
    because = "columns are few, so rows are folded once into their fourth moments"

    folded = True

    def __init__(self, rows: Rows, *, part_of: MomentTensorRows | None = None, others: Rows | None = None):
        self._rows = rows
        self.n_rows, self.n_features, self.origin = rows.n_rows, rows.n_features, rows.origin
        # A small rest of a large table is folded instead of the rows: T = T of the whole − T of the others.
        self._part_of, self._others = part_of, others
        if part_of is not None:
            # A difference of tensors keeps the rounding of the larger one: 1e-16 against variance² resolves 1e-6.
            self.resolution = 1e-6

    @cached_property
    def _coordinates(self) -> Coordinates:
        return Coordinates.whitening(self._rows) if self._part_of is None else self._part_of._coordinates

    @cached_property
    def _half(self) -> HalfMatrix:
        return HalfMatrix.of_size(self._coordinates.forward.shape[1] + 1)

    @cached_property
    def _T(self) -> Array:
        if self._part_of is None or self._others is None:
            return self._fold(self._rows)
        return self._part_of._T - self._fold(self._others)

    def _fold(self, rows: Rows) -> Array:
        (T,) = rows.add_blocks(BlockFold(self._coordinates, self._half))
        return on_host(T)

    def _compute_moments(self) -> Moments:
        # Not read off T: in a difference of two tensors a column that is constant on this side keeps a variance of
        # rounding size, and standardising would blow it up. One pass in n·d² is nothing against the fold's n·p².
        return self._rows.moments()

    def quartic(self, W: Array, offset: Array) -> Quartic:
        n_frames, _, k = W.shape
        centre, back = self._coordinates.centre, self._coordinates.back
        half = self._half
        frames = np.empty((n_frames, len(back) + 1, k))
        frames[:, 1:] = np.matmul(back, W)
        frames[:, 0] = centre @ W - offset
        outer = np.matmul(frames, frames.transpose(0, 2, 1))
        p = outer[:, half.upper[0], half.upper[1]] * half.weight
        weighted = np.matmul((p @ self._T)[:, half.unfold], frames)
        total = weighted[:, 0]
        return Quartic(np.matmul(back.T, weighted[:, 1:]) + centre[:, None] * total[:, None, :], total)

    def scatter_product(self, W: Array, offset: Array) -> Array:
        moments = self.moments()
        assert moments.scatter is not None
        u_total = self.n_rows * (moments.mean @ W - offset)
        return moments.scatter @ W + np.outer(moments.mean, u_total)

    def project(self, W: Array, offset: Array) -> Array:
        return self._rows.project(W, offset)

    def blocks(self, columns: Codes | None = None) -> Iterator[Array]:
        return self._rows.blocks(columns)

    @property
    def unfolded(self) -> Rows:
        return self._rows

    def subset(self, mask: Mask) -> MomentTensorRows:
        """Folded anew in its own coordinates if that is quick or it is the smaller side; else T minus the others'."""
        chosen = self._rows.subset(mask)
        size = self._coordinates.forward.shape[1] + 1
        work = chosen.n_rows * (size * (size + 1) // 2) ** 2
        if work <= QUICK_FOLD or 2 * chosen.n_rows <= self.n_rows:
            return MomentTensorRows(chosen)
        return MomentTensorRows(chosen, part_of=self, others=self._rows.subset(~mask))

    def without(self, mask: Mask) -> MomentTensorRows:
        """Folded anew: in a T that holds values of 1e6 no digit is left of the others."""
        return MomentTensorRows(self._rows.without(mask))
