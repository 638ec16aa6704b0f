"""How the estimator reads what it is given: arrays, sparse matrices and tables in, one finite matrix out."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

from imapce import tables
from imapce.common.words import listed
from imapce.errors import ImapceError, InvalidTypeError, InvalidValueError
from imapce.tables.encoding import Encoding


class ReadsTables:
    """The reading side of an estimator: names and types are learned in `fit` and held to afterwards.

    Keeps `_encoding` (None for arrays) and scikit-learn's `n_features_in_` and `feature_names_in_`.
    """

    _encoding: Encoding | None
    feature_names_in_: NDArray
    n_features_in_: int
    mean_: NDArray[np.float64]
    missing: Literal["error", "mean"]

    def _read(self, X: Any, *, fitting: bool) -> tuple[Any, Encoding | None]:
        """X as a finite matrix and, for a table, how its columns were encoded."""
        if not tables.is_table(X):
            return self._read_array(X, fitting=fitting), None
        encoding = None if fitting else self._encoding
        names = tables.column_names(X)
        if type(X).__module__.startswith("pandas"):
            try:
                validate_data(self, X, reset=fitting, skip_check_array=True)
            except ValueError as error:
                # Word for word, line breaks included: scikit-learn's own checks hold estimators to this message.
                raise InvalidValueError(str(error)) from error
        else:
            self._check_names(names, fitting=fitting)
        encoded = tables.encode(X, encoding=encoding, missing=self.missing)
        if not fitting and encoded.matrix.shape[1] != len(self.mean_):
            raise InvalidValueError(
                f"X must have the {len(self.mean_)} numeric columns of fit; got {encoded.matrix.shape[1]}."
            )
        return encoded.matrix, encoded.encoding

    def _read_array(self, X: Any, *, fitting: bool) -> Any:
        if not fitting and self._encoding is not None and "category" in self._encoding.kinds:
            raise InvalidTypeError(
                "X must be a table with the columns of fit, because some of them are categories; "
                f"got {type(X).__name__}."
            )
        _require_two_dimensions(X, "X")
        _require_numbers(X, "X")
        try:
            matrix = validate_data(
                self,
                X,
                reset=fitting,
                accept_sparse=("csr", "csc"),
                dtype="numeric",
                ensure_all_finite=False,
                ensure_min_samples=2 if fitting else 1,
            )
        except (TypeError, ValueError) as error:
            kind = InvalidTypeError if isinstance(error, TypeError) else InvalidValueError
            raise kind(f"X cannot be used: {' '.join(str(error).split())}") from error
        if fitting:
            # The names of a previous fit say nothing about this array.
            self._encoding = None
        if self.missing == "mean":
            # Rows filled with their columns' means leave the means as they are, so mean_ is what fit filled with
            # (but for rows that were set aside after the filling).
            matrix = filled(matrix, None if fitting else self.mean_)
        require_finite(matrix, "X", self._encoded_names(matrix.shape[1]))
        return matrix

    def _read_background(self, table: Any, means: NDArray[np.float64]) -> Any:
        """The rows of Samples(background) in the encoding of X, columns matched by name where both have names.

        `means` are those of X, which fill gaps here too.
        """
        name, n_features = "Samples(background)", len(means)
        if tables.is_table(table):
            matrix = tables.encode(
                table, encoding=self._encoding, name=name, extra="ignore", missing=self.missing
            ).matrix
        elif sparse.issparse(table):
            matrix = table
        else:
            matrix = np.asarray(table)
            _require_numbers(matrix, name)
            if matrix.dtype == object:
                try:
                    matrix = matrix.astype(np.float64)
                except (TypeError, ValueError) as error:
                    raise InvalidTypeError(f"{name} must hold numbers, and it does not: {error}.") from error
        if matrix.ndim != 2 or matrix.shape[1] != n_features:
            raise InvalidValueError(
                f"{name} must have the {n_features} columns of X; got an array of shape {matrix.shape}."
            )
        if self.missing == "mean":
            matrix = filled(matrix, means)
        if matrix.shape[0] < 2:
            raise InvalidValueError(f"{name} must have at least 2 rows; got {matrix.shape[0]}.")
        require_finite(matrix, name, self._encoded_names(n_features))
        return matrix

    def _check_names(self, names: list[str], *, fitting: bool) -> None:
        """Column names of a table scikit-learn does not know, held to its rules."""
        if fitting:
            self.feature_names_in_ = np.asarray(names, dtype=object)
            self.n_features_in_ = len(names)
        elif self._named() and list(self.feature_names_in_) != names:
            raise InvalidValueError(
                "The feature names should match those that were passed during fit, in the same order; "
                f"fit saw {list(self.feature_names_in_)[:5]}..., X has {names[:5]}..."
            )

    @property
    def input_columns(self) -> tuple[str, ...] | None:
        """The table columns the model reads, in their order; None for one fitted on an array."""
        return None if self._encoding is None else self._encoding.columns

    def _named(self) -> bool:
        return hasattr(self, "feature_names_in_")

    def _encoded_names(self, n_features: int) -> list[str]:
        encoding = getattr(self, "_encoding", None)
        if encoding is not None:
            return list(encoding.feature_names)
        return [f"x{i}" for i in range(n_features)]

    def _columns_of(self, column: Any, n_features: int) -> NDArray[np.intp]:
        """The encoded columns of an attribute given by name or position."""
        if self._encoding is not None:
            try:
                return self._encoding.columns_of(column)
            except ImapceError as error:
                raise type(error)(f"Attributes(columns) names no column of X: {error}") from error
        if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
            if not -n_features <= column < n_features:
                raise InvalidValueError(
                    f"Attributes(columns) must lie within the {n_features} columns of X; got {int(column)}."
                )
            return np.array([int(column) % n_features])
        raise InvalidValueError(
            f"Attributes(columns) must be positions, since X has no column names; got {column!r}. Pass X as a table "
            "to use names."
        )


def filled(matrix: Any, means: NDArray[np.float64] | None) -> Any:
    """A copy with `means`, or else each column's own mean, in place of NaN; what has no NaN, or is sparse, as it is.

    >>> filled(np.array([[1.0], [np.nan], [3.0]]), None).ravel().tolist()
    [1.0, 2.0, 3.0]
    """
    if sparse.issparse(matrix) or matrix.dtype.kind != "f":
        return matrix
    gaps = np.isnan(matrix)
    if not gaps.any():
        return matrix
    copy = matrix.copy()
    # A column of nothing but NaN has no mean; it stays and is refused by name as any other NaN.
    for column in np.flatnonzero(gaps.any(axis=0) & ~gaps.all(axis=0) if means is None else gaps.any(axis=0)):
        present = matrix[~gaps[:, column], column]
        copy[gaps[:, column], column] = present.mean(dtype=np.float64) if means is None else means[column]
    return copy


def _require_two_dimensions(X: Any, name: str) -> None:
    scalar = X is None or isinstance(X, (str, bytes, dict, float, int))
    # The shape first: a sparse matrix of keys is also a dict.
    shape = getattr(X, "shape", () if scalar else None)
    if isinstance(shape, tuple) and len(shape) != 2:
        raise InvalidValueError(
            f"{name} must have rows and columns; got {type(X).__name__} of shape {shape}. Reshape your data, e.g. with "
            "X.reshape(-1, 1) for one column, or read the file first."
        )


def _require_numbers(X: Any, name: str) -> None:
    """Text, dates and complex numbers in one sentence; NumPy would fail later and in its own words."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise InvalidValueError(
            f"{name} must have no masked values, and {int(np.ma.count_masked(X))} are; drop those rows, or use "
            "X.filled(np.nan) and fill them."
        )
    dtype = getattr(X, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if kind == "c":
        raise InvalidValueError(f"{name} must be real. Complex data not supported; got an array of type {dtype}.")
    if kind in ("M", "m"):
        raise InvalidTypeError(
            f"{name} must hold numbers; got an array of type {dtype}. Take a number out of it, for example the year."
        )
    if kind in ("S", "U"):
        raise InvalidTypeError(
            f"{name} must hold numbers; got an array of text ({dtype}). Convert it, or pass a table with categories."
        )


def require_finite(matrix: Any, name: str, names: list[str]) -> None:
    """NaN and inf in one sentence that names the columns; looks closely only where a cheap sum is not finite."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    if sparse.issparse(matrix):
        indices = sparse.coo_array(matrix).col
        missing = np.bincount(indices[np.isnan(sparse.coo_array(matrix).data)], minlength=len(names)) > 0
        endless = np.bincount(indices[np.isinf(sparse.coo_array(matrix).data)], minlength=len(names)) > 0
    else:
        missing, endless = np.zeros(len(names), dtype=bool), np.zeros(len(names), dtype=bool)
        for start in range(0, len(matrix), 4096):
            missing |= np.isnan(matrix[start : start + 4096]).any(axis=0)
            endless |= np.isinf(matrix[start : start + 4096]).any(axis=0)
    if missing.any():
        raise InvalidValueError(
            f"{name} must have no missing values, and column {listed(names, missing)} has NaN; drop those rows or "
            'fill them with missing="mean" (sparse matrices excepted).'
        )
    if endless.any():
        raise InvalidValueError(
            f"{name} must be finite, and column {listed(names, endless)} has infinity (inf); replace these values."
        )
