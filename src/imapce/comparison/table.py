"""X as every estimator here reads it, for what a comparison itself needs of it: attributes, samples of rows."""

from __future__ import annotations

from typing import Any, Literal

import narwhals as nw
import numpy as np
from scipy import sparse

from imapce.common.arrays import Array, Codes
from imapce.common.dask_arrays import require_in_memory
from imapce.rows.standardized import column_scales
from imapce.tables.encode import is_table, native_table
from imapce.tables.named import NamedMatrix
from imapce.tables.reader import Reader


class Table:
    """X as every estimator here reads it, for what a comparison itself needs of it: attributes, samples of rows."""

    def __init__(self, X: Any, *, missing: Literal["error", "mean"] = "error", standardize: bool = True):
        require_in_memory(X, "compare")
        self.X, self.standardize = X, standardize
        self.reader, self.matrix = Reader.learn(X, missing=missing)
        self.n_rows, self.n_features = self.matrix.shape

    @property
    def groups(self) -> Codes:
        """For each encoded column the column of X it came from."""
        groups = self.reader.groups
        return np.arange(self.n_features) if groups is None else groups

    def dense(self, columns: Codes) -> Array:
        chosen = self.matrix[:, columns]
        return np.asarray(chosen.toarray() if sparse.issparse(chosen) else chosen, dtype=np.float64)

    def names(self) -> list[str]:
        return self.reader.names

    def scaled(self, rows: Codes) -> Array | None:
        """(x − mean)/σ of some rows, with the means and scales of all; None for a sparse matrix."""
        if sparse.issparse(self.matrix):
            return None
        matrix = np.asarray(self.matrix, dtype=np.float64)
        # Values beyond 1e150 overflow; the methods refuse them in their own words.
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance = matrix.mean(axis=0), matrix.var(axis=0)
        scale = column_scales(mean, variance, self.reader.groups, standardize=self.standardize)
        return (matrix[rows] - mean) * np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)

    def rows_of_input(self, rows: Codes) -> Any:
        """These rows of X as the kind of table it is."""
        if len(rows) == self.n_rows:
            return self.X
        if isinstance(self.X, NamedMatrix):
            return self.X.of_rows(rows)
        if is_table(self.X):
            return nw.from_native(native_table(self.X), eager_only=True)[rows.tolist()].to_native()
        return sparse.csr_array(self.X)[rows] if sparse.issparse(self.X) else np.asarray(self.X)[rows]
