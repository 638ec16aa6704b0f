"""A table as those see it who make everything numeric: dummies, means for holes, standard columns, principal axes.

Nothing here imports imapce, so that finished cells outlive every change of ours.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_AXES = 30


def standard_columns(X: Array) -> Array:
    """Standardised columns, constant ones left out.

    >>> standard_columns(np.array([[0.0, 7.0], [2.0, 7.0]]))
    array([[-1.],
           [ 1.]])
    """
    spread = X.std(axis=0)
    varies = spread > 1e-12 * np.maximum(1.0, np.abs(X).max(axis=0))
    return np.asarray((X[:, varies] - X[:, varies].mean(axis=0)) / spread[varies])


def standard_axes(X: Array) -> Array:
    """Standardised columns, in their 30 leading principal axes where there are more."""
    Z = standard_columns(X)
    return principal_axes(Z, MOST_AXES) if Z.shape[1] > MOST_AXES else Z


def principal_axes(Z: Array, count: int) -> Array:
    """Centred rows in their `count` leading principal axes."""
    left, sizes, _ = np.linalg.svd(Z, full_matrices=False)
    return np.asarray(left[:, :count] * sizes[:count])


def pca_plane(X: Array) -> Array:
    return principal_axes(standard_axes(X), 2)


def plain_matrix(table: pa.Table) -> Array:
    """A mixed table as it is usually made numeric: dummies for categories, holes filled with the mean of their column.

    >>> plain_matrix(pa.table({"size": [1.0, None, 3.0], "kind": pa.array(["a", "b", None]).dictionary_encode()}))
    array([[1. , 1. , 0. ],
           [2. , 0. , 1. ],
           [3. , 0.5, 0.5]])
    """
    columns: list[Array] = []
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            values = np.asarray(column.to_pylist(), dtype=object)
            there = np.array([one is not None for one in values])
            dummies = (np.where(there, values == level, np.nan) for level in sorted(set(values[there])))
            columns += [_filled(one.astype(np.float64)) for one in dummies]
        else:
            columns.append(_filled(numbers(column)))
    return np.column_stack(columns)


def numbers(column: pa.ChunkedArray) -> Array:
    """The numbers of a column, NaN for a hole."""
    return np.array([np.nan if one is None else float(one) for one in column.to_pylist()])


def _filled(column: Array) -> Array:
    return np.where(np.isnan(column), np.nanmean(column), column)
