"""X as every estimator here reads it, for what a comparison itself needs of it: attributes, samples of rows."""

from __future__ import annotations

from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from imapce.rows.standardized import column_scales
from imapce.tables.encode import is_table
from imapce.tables.reader import ReadsTables

Array = NDArray[np.float64]
Positions = NDArray[np.intp]


class Table(ReadsTables, BaseEstimator):
    """X as every estimator here reads it, for what a comparison itself needs of it: attributes, samples of rows."""

    def __init__(self, X: Any, *, missing: Literal["error", "mean"] = "error", standardize: bool = True):
        self.X, self.missing, self.standardize = X, missing, standardize
        self.matrix, self._encoding = self._read(X, fitting=True)
        self.n_rows, self.n_features = self.matrix.shape

    @property
    def groups(self) -> Positions:
        """For each encoded column the column of X it came from."""
        return np.arange(self.n_features) if self._encoding is None else self._encoding.groups

    def columns_of(self, column: Any) -> Positions:
        return self._columns_of(column, self.n_features)

    def dense(self, columns: Positions) -> Array:
        chosen = self.matrix[:, columns]
        return np.asarray(chosen.toarray() if sparse.issparse(chosen) else chosen, dtype=np.float64)

    def names(self) -> list[str]:
        return self._encoded_names(self.n_features)

    def scaled(self, rows: Positions) -> Array | None:
        """(x − mean)/σ of some rows, with the means and scales of all; None for a sparse matrix."""
        if sparse.issparse(self.matrix):
            return None
        matrix = np.asarray(self.matrix, dtype=np.float64)
        groups = None if self._encoding is None else self._encoding.groups
        # Values beyond 1e150 overflow; the methods refuse them in their own words.
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance = matrix.mean(axis=0), matrix.var(axis=0)
        scale = column_scales(mean, variance, groups, standardize=self.standardize)
        return (matrix[rows] - mean) * np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)

    def rows_of_input(self, rows: Positions) -> Any:
        """These rows of X as the kind of table it is."""
        if len(rows) == self.n_rows:
            return self.X
        if is_table(self.X):
            return nw.from_native(self.X, eager_only=True)[rows.tolist()].to_native()
        return sparse.csr_array(self.X)[rows] if sparse.issparse(self.X) else np.asarray(self.X)[rows]
