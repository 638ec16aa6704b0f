"""Rows less what the known explains of them, never written: Z° = Z − LB.

    [z | l]ᵀ[V; −BV] = (z − Bᵀl)ᵀV

A view V of Z° is a frame of the rows with the known beside them, L being labels beside the columns, known columns, or
both: projections, second moments and the quartic reduction are those of any rows, and a gradient comes back by the same
small matrix.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from imapce.rows.base import Array
from imapce.rows.standardized import LARGEST_FACTOR, QuadraticForm, StandardizedRows

Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]

# What is left of a column's variance where the known tells all of it is rounding.
EXPLAINED = 1e-9


class RowsGiven(StandardizedRows):
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

    def __init__(self, beside: StandardizedRows, places: Ints, effect: Array, *, n_features: int):
        self.beside, self.places, self.effect = beside, places, effect
        self.rows = beside.rows
        self.n_rows, self.n_features = beside.n_rows, n_features
        self.mean, self.scale = beside.mean[:n_features], beside.scale[:n_features]
        varies = beside.informative[:n_features].copy()
        varies[places[places < n_features]] = False
        inverse = np.divide(1.0, self.scale, out=np.zeros(n_features), where=varies)
        self._B = beside.scale[places][:, None] * effect * inverse
        known = np.zeros(beside.n_features, dtype=bool)
        known[places] = True
        shared = beside.second_moment.columns(known)[:, np.argsort(np.argsort(places))]
        own, with_own = beside.variance[:n_features], shared[:n_features]
        # The share of a column that a line of the known tells; all of it: the column is the known once more.
        told = np.einsum("dq,dq->d", with_own @ np.linalg.pinv(shared[places], rcond=1e-10, hermitian=True), with_own)
        self.informative = varies & (told < (1 - EXPLAINED) * self.n_rows * own)
        self._B = self._B * self.informative
        taken = np.einsum("qd,qd->d", self._B, shared[places] @ self._B - 2 * with_own.T) / self.n_rows
        self.variance = np.where(self.informative, own + taken, 0.0)
        self.second_moment = self._given_moment()

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

    @property
    def standardized_effect(self) -> Array:
        """B (q, d) in the units of the standardised rows."""
        return self._B

    def frame(self, V: Array) -> Array:
        """[V; −BV] (..., d + q, k): the frame of the rows with the known beside them."""
        free = V * self.informative[:, None]
        frame = np.zeros((*V.shape[:-2], self.beside.n_features, V.shape[-1]))
        frame[..., : self.n_features, :] = free
        frame[..., self.places, :] -= np.matmul(self._B, free)
        return frame

    def known(self, sample: Mask | None = None) -> Array:
        """L (n, q), or of some rows: the known columns, standardised."""
        unit = np.zeros((self.beside.n_features, len(self.places)))
        unit[self.places, np.arange(len(self.places))] = 1.0
        return self.beside.project(unit, sample)

    def blocks(self) -> Iterator[Array]:
        for block in self.beside.blocks():
            yield self._back(block.T).T

    def cross(self, values: Array) -> Array:
        return self._back(self.beside.cross(values))

    def project(self, V: Array, sample: Mask | None = None) -> Array:
        return self.beside.project(self.frame(V), sample)

    def sampled(self, sample: Mask) -> Array:
        return self._back(self.beside.sampled(sample).T).T

    def fourth_powers(self, W: Array) -> Array:
        return self.beside.fourth_powers(self.frame(W))

    def quartic(self, W: Array) -> Array:
        return self._back(self.beside.quartic(self.frame(W)))

    def project_exactly(self, V: Array) -> Array:
        """The rows as they are, less nothing: their order is to be that of rows of which nothing is known, whether the
        known is a column or a label beside them.
        """
        beside = np.zeros((self.beside.n_features, V.shape[1]))
        beside[: self.n_features] = V
        return self.beside.project_exactly(beside)

    def _back(self, G: Array) -> Array:
        """[I | −Bᵀ]G: what a frame's part (..., d + q, k) of the rows beside means for the columns (..., d, k)."""
        back = G[..., : self.n_features, :] - np.matmul(self._B.T, G[..., self.places, :])
        return back * self.informative[:, None]

    def _given_moment(self) -> QuadraticForm:
        C = self.beside.second_moment
        if C.matrix is not None:
            matrix = self._back(self._back(C.matrix).T)
            return QuadraticForm.of_matrix((matrix + matrix.T) / 2)
        trace = float(self.n_rows * self.variance.sum())
        small = self.n_rows < self.n_features and 8 * self.n_rows * self.n_features <= LARGEST_FACTOR
        factor = (lambda: np.concatenate(list(self.blocks()))) if small else None
        return QuadraticForm(self.n_features, trace, lambda V: self._back(C @ self.frame(V)), factor=factor)
