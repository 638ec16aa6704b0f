"""Rows that lie on a Dask cluster, placed when they are asked for: a part of them at a time, and never brought here."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from imapce.common.arrays import Array, is_dask
from imapce.rows.open import project_matrix
from imapce.tables.columns import Unknown
from imapce.tables.reader import Missing, Reader


def left_lazy(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose result scikit-learn puts into the container of `set_output`, but for Dask collections: pandas
    would compute them and bring them here.
    """
    plain = inspect.unwrap(method)

    @functools.wraps(method)
    def chosen(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        return (plain if is_dask(X) else method)(self, X, *args, **kwargs)

    return chosen


@dataclass(frozen=True)
class PlacedPart:
    """Where a view puts the rows of one part of a table, read as any table is: a function that can be sent.

    >>> PlacedPart(Reader(2), np.array([[1.0], [0.0]]), np.ones(2))(np.array([[3.0, 5.0]]))
    array([[2.]])
    """

    reader: Reader
    weights: Array
    mean: Array
    missing: Missing = "error"
    unknown: Unknown | None = None

    def __call__(self, part: Any) -> Array:
        if not len(part):
            return np.empty((0, self.weights.shape[1]))
        matrix = self.reader.read(part, means=self.mean, missing=self.missing, unknown=self.unknown)
        return project_matrix(matrix, self.weights, self.mean)
