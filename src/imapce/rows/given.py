"""Rows with what is known beside them, and rows less what the known explains of them; neither is ever written.

    [z | l]         z the columns of the table, l labels that are no columns of it: rows like any others
    Z° = Z − LB     L the known: labels beside the columns, known columns, or both;   [z | l]ᵀ[V; −BV] = (z − Bᵀl)ᵀV

A view V of Z° is a frame of the rows with the known beside them, so projections, second moments and the quartic
reduction are those of any rows, no engine learns anything new, and a gradient comes back by the same small matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from imapce.common.arrays import Array, Codes, Mask
from imapce.rows.base import AnyArray, Moments, Rows
from imapce.rows.dense import BlockRows, Blocks, Sums
from imapce.rows.standardized import MappedRows, StandardizedRows

# What is left of a column's variance where the known tells all of it is rounding.
EXPLAINED = 1e-9


class RowsBeside(BlockRows):
    """[x | l]: the rows x of any engine with values l (n, q) beside them, joined block by block where the rows lie.

    >>> from imapce.rows.dense import DenseRows
    >>> RowsBeside(DenseRows(np.eye(2)), np.array([[5.0], [7.0]])).moments().mean
    array([0.5, 0.5, 6. ])
    """

    def __init__(self, rows: Rows, values: Array):
        self.base, self.values = rows.unfolded, values
        self.n_rows, self.n_features = rows.n_rows, rows.n_features + values.shape[1]
        self.origin = np.concatenate([self.base.origin, np.zeros(values.shape[1])])
        self.engine, self.because = self.base.engine, self.base.because
        self.precision, self.resolution = self.base.precision, self.base.resolution

    def _sum(self, reduce: Callable[[Blocks], Sums]) -> Sums:
        return self.add_blocks(partial(_reduce_block, reduce))

    def _compute_moments(self) -> Moments:
        own = self.base.moments()
        mean = self.values.mean(axis=0)
        centred = self.values - mean
        among = centred.T @ centred
        scatter = None
        if own.scatter is not None:
            across = self.base.cross(centred)
            scatter = np.block([[own.scatter, across], [across.T, among]])
        variance = np.concatenate([own.variance, np.diagonal(among) / self.n_rows])
        return Moments(self.n_rows, np.concatenate([own.mean, mean]), variance, scatter)

    def project(self, W: Array, offset: Array) -> Array:
        own, beside = self._parts(W)
        return self.base.project(own, offset) + self.values @ beside

    def project_some(self, W: Array, offset: Array, mask: Mask) -> Array:
        own, beside = self._parts(W)
        return self.base.project_some(own, offset, mask) + self.values[mask] @ beside

    def project_exactly(self, W: Array, offset: Array) -> Array:
        own, beside = self._parts(W)
        return self.base.project_exactly(own, offset) + self.values @ beside

    def _parts(self, W: Array) -> tuple[Array, Array]:
        d = self.base.n_features
        return np.ascontiguousarray(W[:d]), W[d:]

    def cross(self, values: Array) -> Array:
        return np.concatenate([self.base.cross(values), self.values.T @ values])

    def subset(self, mask: Mask) -> RowsBeside:
        return RowsBeside(self.base.subset(mask), self.values[mask])

    def split(self, mask: Mask) -> tuple[Rows, Rows]:
        inside, outside = self.base.split(mask)
        return self.share_moments(RowsBeside(inside, self.values[mask]), RowsBeside(outside, self.values[~mask]))

    def without(self, mask: Mask) -> RowsBeside:
        return RowsBeside(self.base.without(mask), self.values[~mask])

    def blocks(self, columns: Codes | None = None) -> Iterator[Array]:
        start = 0
        for block in self.base.blocks():
            joined = np.column_stack([block, self.values[start : start + len(block)]])
            start += len(block)
            yield joined if columns is None else joined[:, columns]

    def add_blocks(self, reduce: Callable[..., tuple[Any, ...]], *, beside: AnyArray | None = None) -> tuple[Any, ...]:
        if beside is None:
            return self.base.add_blocks(partial(_reduce_joined, reduce), beside=self.values)
        return super().add_blocks(reduce, beside=beside)


def _reduce_block(reduce: Callable[[Blocks], Sums], block: Array) -> Sums:
    return reduce([block])


def _reduce_joined(reduce: Callable[..., tuple[Any, ...]], block: Array, values: Array) -> tuple[Any, ...]:
    return reduce(np.column_stack([block, values]))


class RowsGiven(MappedRows):
    """Z° (n, d) of the rows `beside` [z | l], standardised; the known columns stand at `places` among those of [z | l].

    `effect` (q, d) is B in the units of the table: what a unit of each known column adds to every column. Columns of
    the table that are known, or that the known tells wholly, read as zeros.

    >>> from imapce.rows.dense import DenseRows
    >>> rows = StandardizedRows(DenseRows(np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 4.0]])))
    >>> RowsGiven(rows, np.array([0]), np.array([[1.0, 0.75]]), n_features=2).project(np.eye(2)).round(2)
    array([[ 0.  , -0.13],
           [ 0.  ,  0.27],
           [ 0.  , -0.13]])
    """

    def __init__(self, beside: StandardizedRows, places: Codes, effect: Array, *, n_features: int):
        self.beside, self.places, self.effect, self.n_features = beside, places, effect, n_features
        self.mean, self.scale = beside.mean[:n_features], beside.scale[:n_features]
        varies = beside.informative[:n_features].copy()
        varies[places[places < n_features]] = False
        inverse = np.divide(1.0, self.scale, out=np.zeros(n_features), where=varies)
        B = beside.scale[places][:, None] * effect * inverse
        known = np.zeros(beside.n_features, dtype=bool)
        known[places] = True
        shared = beside.second_moment.columns(known)[:, np.argsort(np.argsort(places))]
        own, with_own = beside.variance[:n_features], shared[:n_features]
        # The share of a column that a line of the known tells; all of it: the column is the known once more.
        explained = np.einsum(
            "dq,dq->d", with_own @ np.linalg.pinv(shared[places], rcond=1e-10, hermitian=True), with_own
        )
        self.informative = varies & (explained < (1 - EXPLAINED) * beside.n_rows * own)
        # B in the units of the standardised rows.
        self.standardized_effect = B = B * self.informative
        taken = np.einsum("qd,qd->d", B, shared[places] @ B - 2 * with_own.T) / beside.n_rows
        self.variance = np.where(self.informative, own + taken, 0.0)
        C = beside.second_moment
        trace = float(beside.n_rows * self.variance.sum()) if C.matrix is None else None
        super().__init__(beside, C.map_through(n_features, self.forward, self.back, trace))

    def forward(self, V: Array) -> Array:
        """[V; −BV] (..., d + q, k): the frame of the rows with the known beside them."""
        free = V * self.informative[:, None]
        frame = np.zeros((*V.shape[:-2], self.beside.n_features, V.shape[-1]))
        frame[..., : self.n_features, :] = free
        frame[..., self.places, :] -= np.matmul(self.standardized_effect, free)
        return frame

    def back(self, G: Array) -> Array:
        """[I | −Bᵀ]G: what a frame's part (..., d + q, k) of the rows beside means for the columns (..., d, k)."""
        own = G[..., : self.n_features, :] - np.matmul(self.standardized_effect.T, G[..., self.places, :])
        return own * self.informative[:, None]

    def less(self, effect: Array) -> RowsGiven:
        """The same rows less another effect (q, d), in the units of the table."""
        return RowsGiven(self.beside, self.places, effect, n_features=self.n_features)

    @property
    def unfolded(self) -> RowsGiven:
        other = self.beside.unfolded
        return self if other is self.beside else RowsGiven(other, self.places, self.effect, n_features=self.n_features)

    @property
    def before(self) -> RowsGiven:
        """The same columns with nothing taken from them."""
        return self.less(np.zeros_like(self.effect))

    def known(self, sample: Mask | None = None) -> Array:
        """L (n, q), or of some rows: the known columns, standardised."""
        unit = np.zeros((self.beside.n_features, len(self.places)))
        unit[self.places, np.arange(len(self.places))] = 1.0
        return self.beside.project(unit, sample)

    def project_exactly(self, V: Array) -> Array:
        """The rows as they are, less nothing: their order is to be that of rows of which nothing is known, whether the
        known is a column or a label beside them.
        """
        beside = np.zeros((self.beside.n_features, V.shape[1]))
        beside[: self.n_features] = V
        return self.beside.project_exactly(beside)
