"""Rows with further columns beside them, [x | l]: what is known of every row and is no column of the table.

Labels become columns of the rows, so whatever is asked of rows given their labels is a reduction of these: no engine
learns anything new, and x and l are joined block by block, where the rows lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.rows.base import AnyArray, Array, Moments, Quartic, Rows
from imapce.rows.blocks import fourth_powers_of, quartic_of, scatter_product_of


class RowsBeside(Rows):
    """The rows x of any engine with values l (n, q) beside them.

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

    def quartic(self, W: Array, offset: Array) -> Quartic:
        return Quartic(*self.add_blocks(_BlockQuartic(W, offset)))

    def fourth_powers(self, W: Array, centre: Array) -> Array:
        (result,) = self.add_blocks(_BlockFourthPowers(W, centre))
        return np.asarray(result)

    def scatter_product(self, W: Array, offset: Array) -> Array:
        (result,) = self.add_blocks(_BlockScatterProduct(W, offset))
        return np.asarray(result)

    def project(self, W: Array, offset: Array) -> Array:
        own, beside = self._parts(W)
        return self.base.project(own, offset) + self.values @ beside

    def project_some(self, W: Array, offset: Array, mask: NDArray[np.bool_]) -> Array:
        own, beside = self._parts(W)
        return self.base.project_some(own, offset, mask) + self.values[mask] @ beside

    def project_exactly(self, W: Array, offset: Array) -> Array:
        own, beside = self._parts(W)
        return self.base.project_exactly(own, offset) + self.values @ beside

    def cross(self, values: Array) -> Array:
        return np.concatenate([self.base.cross(values), self.values.T @ values])

    def subset(self, mask: NDArray[np.bool_]) -> RowsBeside:
        return RowsBeside(self.base.subset(mask), self.values[mask])

    def without(self, mask: NDArray[np.bool_]) -> RowsBeside:
        return RowsBeside(self.base.without(mask), self.values[~mask])

    def blocks(self, columns: NDArray[np.intp] | None = None) -> Iterator[Array]:
        start = 0
        for block in self.base.blocks():
            stop = start + len(block)
            joined = np.column_stack([block, self.values[start:stop]])
            start = stop
            yield joined if columns is None else joined[:, columns]

    def add_blocks(self, reduce: Callable[..., tuple[Any, ...]], *, beside: AnyArray | None = None) -> tuple[Any, ...]:
        if beside is None:
            return self.base.add_blocks(_Joined(reduce), beside=self.values)
        return super().add_blocks(reduce, beside=beside)

    def _parts(self, W: Array) -> tuple[Array, Array]:
        d = self.base.n_features
        return np.ascontiguousarray(W[:d]), W[d:]


# What is sent to the blocks of a cluster: records, which pickle as functions inside functions do not.


@dataclass(frozen=True)
class _Joined:
    reduce: Callable[..., tuple[Any, ...]]

    def __call__(self, block: Array, values: Array) -> tuple[Any, ...]:
        return self.reduce(np.column_stack([block, values]))


@dataclass(frozen=True)
class _BlockQuartic:
    W: Array
    offset: Array

    def __call__(self, block: Array) -> tuple[Array, Array]:
        result = quartic_of([block], self.W, self.offset)
        return result.weighted, result.total


@dataclass(frozen=True)
class _BlockFourthPowers:
    W: Array
    centre: Array

    def __call__(self, block: Array) -> tuple[Array]:
        return (fourth_powers_of([block], self.W, self.centre),)


@dataclass(frozen=True)
class _BlockScatterProduct:
    W: Array
    offset: Array

    def __call__(self, block: Array) -> tuple[Array]:
        return (scatter_product_of([block], self.W, self.offset),)
