"""Columns learned once: arrays, sparse matrices and tables in, a finite matrix out, new rows held to the same columns.

>>> reader, matrix = Reader.learn(np.array([[1.0, 2.0], [3.0, 4.0]]))
>>> reader.names, reader.read([[5.0, 6.0]]).shape
(['x0', 'x1'], (1, 2))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from imapce.common.arrays import Array, Mask, as_cupy, is_dask, is_on_card, is_scan, on_host
from imapce.common.words import listing
from imapce.errors import ImapceError, InvalidTypeError, InvalidValueError, Sentence, one_line
from imapce.tables.columns import MISSING, NO_YES, Column, Unknown, read_column
from imapce.tables.encode import (
    ScannedMatrix,
    Table,
    column_at,
    column_names,
    encode,
    is_table,
    learn_scan,
    matched,
    native_table,
    selected,
)
from imapce.tables.learn import Encoding, Missing, Summary
from imapce.tables.named import NamedMatrix, column_means
from imapce.tables.scales import SKEWED, Scale, chosen_scales

if TYPE_CHECKING:
    from imapce.tables.scan import Scan


@dataclass(frozen=True)
class Reader:
    """How a table becomes a matrix, learned from the first one; `encoding` is None where that was an array.

    >>> import pyarrow as pa
    >>> reader, matrix = Reader.learn(pa.table({"size": [1.0, 2.0, 4.0, 8.0], "on": [True, False, True, True]}))
    >>> reader.columns, reader.columns_of("on")
    (('size', 'on'), array([1]))
    """

    n_features: int
    encoding: Encoding | None = None
    unknown: Unknown = "error"
    filled_with: tuple[float, ...] | None = field(default=None, compare=False)
    left_out: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def learn(cls, X: Any, *, missing: Missing = "error", transform: Any = None) -> tuple[Reader, Any]:
        """The reader of tables like `X`, and the matrix of `X` itself; gaps are filled with its own means.

        `transform` puts columns on another scale, as `imapce.read` does.
        """
        if transform is not None and (is_scan(X) or is_dask(X)):
            raise InvalidValueError(
                "transform",
                f"needs all rows in memory to learn the scale of a column, got {type(X).__name__}",
                way_out="write the logarithm as a column of its own where the file is made",
            )
        if is_scan(X):
            encoding, stream = learn_scan(X, missing=missing)
            return cls(stream.shape[1], encoding), stream
        if is_dask(X):
            from imapce.tables.distributed import learn_on_cluster

            of_table, chunks = learn_on_cluster(X, missing=missing)
            return cls(chunks.n_features, of_table), chunks
        if is_table(X):
            if transform is not None:
                X = (X if isinstance(X, Table) else Table.learn(X)).transformed(transform)
            encoded = encode(X, missing=missing)
            left_out = tuple(X.left_out) if isinstance(X, Table) else ()
            return cls(encoded.matrix.shape[1], encoded.encoding, left_out=left_out), encoded.matrix
        named = X if isinstance(X, NamedMatrix) else None
        matrix = _as_matrix(X if named is None else named.matrix, "X", fewest_rows=2)
        scales: Mapping[str, Scale] = {}
        if transform is not None:
            named = NamedMatrix(matrix, cls(matrix.shape[1]).names if named is None else named.names)
            scales = _scales_of_matrix(named, transform)
            matrix = replace(named.encoding(np.zeros(matrix.shape[1])), scales=scales).to_scale(matrix)
        reader = cls(matrix.shape[1])
        if missing == "mean":
            before, matrix = matrix, fill_gaps(matrix, None)
            if matrix is not before:
                holes = np.isnan(before)
                first = matrix[holes.argmax(axis=0), np.arange(matrix.shape[1])]
                reader = replace(reader, filled_with=tuple(np.where(holes.any(axis=0), first, np.nan).tolist()))
        require_finite(matrix, "X", reader.names if named is None else list(named.names), learning=True)
        if named is None:
            return reader, matrix
        return replace(reader, encoding=replace(named.encoding(column_means(matrix)), scales=scales)), matrix

    def held_to_columns(self, X: Any) -> Any:
        """New rows of a table with the learned columns in their order and without those that were left out.

        Other columns are left for those to refuse who have the words. The order of a pandas table of numbers alone is
        held to scikit-learn's rule, which is the same one.
        """
        if not is_table(X) or self.encoding is None:
            return X
        names, columns = column_names(X), list(self.encoding.columns)
        plain = type(native_table(X)).__module__.startswith("pandas") and set(self.encoding.kinds) == {"number"}
        if names == columns or (plain and not self.left_out and not self.encoding.written):
            return X
        told = [name for name in names if name in columns or name not in self.left_out]
        return selected(X, columns if set(told) == set(columns) else told)

    def require_names(self, names: list[str]) -> None:
        """Refuse new rows whose columns are not the learned ones, in whatever order."""
        if self.encoding is not None:
            matched(names, self.encoding, "error", "X")

    def with_unknown(self, unknown: Unknown) -> Reader:
        """The same reader with another way to meet categories it has not learned: "error" or "ignore"."""
        return replace(self, unknown=unknown)

    def read(
        self, X: Any, *, means: Array | None = None, missing: Missing = "error", unknown: Unknown | None = None
    ) -> Any:
        """The matrix of new rows. `means` fill the gaps of an array; those of a table are in its encoding.

        `unknown` is that of `encode`, by default the reader's own.
        """
        self.require_table_for_categories(X)
        return self._read(X, "X", means, missing=missing, unknown=unknown or self.unknown)

    def background(self, table: Any, *, means: Array, missing: Missing = "error", encoded: bool = False) -> Any:
        """The rows of Samples(background) in the encoding of X, columns matched by name where both have names.

        `means` are those of X, which fill gaps here too; `encoded` says that the rows are a matrix of that encoding.
        """
        reader = replace(self, encoding=replace(self.encoding, scales={})) if encoded and self.encoding else self
        matrix = reader._read(table, "Samples(background)", means, missing=missing, extra="ignore")
        if matrix.shape[0] < 2:
            raise InvalidValueError("Samples(background)", f"must have at least 2 rows; got {matrix.shape[0]}.")
        return matrix

    def _read(
        self,
        X: Any,
        name: str,
        means: Array | None,
        *,
        missing: Missing,
        unknown: Unknown = "error",
        extra: Literal["error", "ignore"] = "error",
    ) -> Any:
        """Rows of any kind, held to the columns that were learned."""
        if is_scan(X):
            matrix: Any = self._scanned(X, missing, unknown)
        elif is_dask(X):
            from imapce.tables.distributed import encode_on_cluster

            matrix = encode_on_cluster(
                X, self.encoding, missing=missing, unknown=unknown, extra=extra, means=means, name=name
            )
        elif is_table(X):
            matrix = encode(X, encoding=self.encoding, missing=missing, unknown=unknown, extra=extra, name=name).matrix
        else:
            named = isinstance(X, NamedMatrix)
            matrix = X if not named else (X if self.columns is None else X.select(self.columns, name)).matrix
            # A background has its own sentence on rows.
            matrix = _as_matrix(matrix, name, fewest_rows=1 if name == "X" else 0)
            if self.encoding is not None and matrix.shape[1] == self.n_features:
                matrix = self.encoding.to_scale(matrix)
        if matrix.shape[1] != self.n_features:
            learned = "fit" if name == "X" else "X"
            raise InvalidValueError(
                name, f"must have the {self.n_features} columns of {learned}; got {matrix.shape[1]}."
            )
        if not is_in_columns(X):
            matrix = fill_gaps(matrix, means) if missing == "mean" else matrix
            require_finite(matrix, name, self.names)
        return matrix

    def _scanned(self, X: Scan, missing: Missing, unknown: Unknown) -> ScannedMatrix:
        """The matrix of new rows on disk, columns matched by name."""
        if self.encoding is None:
            raise InvalidTypeError(
                "X", "must be an array, as in fit, which has no names to match the columns of a scan by."
            )
        absent = [column for column in self.encoding.columns if column not in X.schema.names]
        if absent:
            raise InvalidValueError(
                "X", f"must have the columns of fit, and the scan lacks {listing(map(repr, absent))}."
            )
        return ScannedMatrix(X, self.encoding, missing=missing, unknown=unknown)

    def require_table_for_categories(self, X: Any) -> None:
        """Refuse an array where columns were learned as categories, which it cannot hold."""
        if not is_in_columns(X) and self.encoding is not None and "category" in self.encoding.kinds:
            raise InvalidTypeError(
                "X",
                "must be a table with the columns of fit, because some of them are categories; "
                f"got {type(X).__name__}.",
            )

    @property
    def transform(self) -> dict[str, str]:
        """The columns that are read on another scale than that of the table, and which."""
        return {} if self.encoding is None else {name: scale.kind for name, scale in self.encoding.scales.items()}

    def to_units(self, matrix: Any) -> Any:
        """Rows (n, d) as they were read, in the units of the table; those of a Dask array when they are asked for."""
        if self.encoding is None or not self.encoding.scales:
            return matrix
        if is_dask(matrix):
            return matrix.rechunk({1: -1}).map_blocks(self.encoding.to_units, dtype=np.float64)
        return self.encoding.to_units(matrix)

    @property
    def names(self) -> list[str]:
        """The names of the matrix columns; x0, x1, ... for an array."""
        if self.encoding is not None:
            return list(self.encoding.feature_names)
        return [f"x{i}" for i in range(self.n_features)]

    @property
    def groups(self) -> NDArray[np.intp] | None:
        """For each matrix column the table column it came from; None for an array, where each is its own."""
        return None if self.encoding is None else self.encoding.groups

    @property
    def categories(self) -> Mask | None:
        """(d,), the matrix columns that come of a category or a truth value; None for an array.

        >>> import pyarrow as pa
        >>> Reader.learn(pa.table({"size": [1.0, 2.0, 4.0], "on": [True, False, True]}))[0].categories
        array([False,  True])
        """
        if self.encoding is None:
            return None
        return np.array([kind != "number" for kind in self.encoding.kinds])[self.encoding.groups]

    @property
    def gaps(self) -> Array | None:
        """(d,), what missing cells of each matrix column were filled with, NaN where none was; None without any.

        >>> Reader.learn(np.array([[1.0, 4.0], [np.nan, 5.0], [3.0, 6.0]]), missing="mean")[0].gaps
        array([ 2., nan])
        """
        if self.filled_with is not None:
            return np.asarray(self.filled_with)
        if self.encoding is None or not self.encoding.gaps:
            return None
        filled_in = np.full(self.n_features, np.nan)
        for column in self.encoding.gaps:
            places = self.encoding.columns_of(column)
            filled_in[places] = np.asarray(self.encoding.fill)[places]
        return filled_in

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The table columns that are read, in their order; None for an array."""
        return None if self.encoding is None else self.encoding.columns

    def columns_of(self, column: Any) -> NDArray[np.intp]:
        """The matrix columns of an attribute given by name or position."""
        if self.encoding is not None:
            try:
                return self.encoding.columns_of(column)
            except ImapceError as error:
                raise InvalidValueError("Attributes(columns)", f"names no column of X: {error}") from error
        if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
            if not -self.n_features <= column < self.n_features:
                raise InvalidValueError(
                    "Attributes(columns)", f"must lie within the {self.n_features} columns of X; got {int(column)}."
                )
            return np.array([int(column) % self.n_features])
        raise InvalidValueError(
            "Attributes(columns)",
            f"must be positions, since X has no column names; got {column!r}. Pass X as a table to use names.",
        )


def _scales_of_matrix(named: NamedMatrix, transform: Any) -> dict[str, Scale]:
    """The scales of the columns of a matrix, sparse or not."""
    matrix = named.matrix
    if is_on_card(matrix):
        raise InvalidValueError("transform", "is for arrays of the host, and X lies on a card", way_out="scale X there")
    columns = sparse.csc_array(matrix) if sparse.issparse(matrix) else matrix
    asked = set(transform) if isinstance(transform, Mapping) and SKEWED not in transform else set(named.names)
    numbers = {
        name: (columns[:, [place]].toarray() if sparse.issparse(columns) else columns[:, [place]])[:, 0]
        for place, name in enumerate(named.names)
        if name in asked
    }
    scales = chosen_scales(transform, numbers, named.names)
    if sparse.issparse(matrix) and any(scale.kind == "rank" for scale in scales.values()):
        raise InvalidValueError(
            "transform",
            'must be "log" for a sparse matrix, whose zeros stay zero',
            way_out="use X.toarray()",
        )
    return scales


def is_in_columns(X: Any) -> bool:
    """Whether `X` is a table, a scan or lies on a cluster, which are read column by column; not an array."""
    return is_scan(X) or is_dask(X) or is_table(X)


def _as_matrix(X: Any, name: str, *, fewest_rows: int) -> Any:
    """An array or a sparse matrix of numbers, which may still hold NaN and inf; anything else in one sentence."""
    require_numbers_in_rows(X, name)
    if is_on_card(X):
        return _on_card(X, name, fewest_rows)
    try:
        matrix = check_array(
            X,
            accept_sparse=("csr", "csc"),
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=fewest_rows,
            input_name=name,
        )
        # Whole numbers beyond 64 bits in plain lists stay Python objects there.
        return matrix.astype(np.float64) if matrix.dtype == object else matrix
    except (TypeError, ValueError, OverflowError) as error:
        kind = InvalidTypeError if isinstance(error, TypeError) else InvalidValueError
        raise kind(name, Sentence("cannot be used: ", one_line(error))) from error


def _on_card(X: Any, name: str, fewest_rows: int) -> Any:
    """An array of a card, which stays there."""
    matrix = as_cupy(X)
    if matrix.dtype.kind not in "fiub":
        raise InvalidTypeError(name, f"must hold real numbers; got an array of type {matrix.dtype} on the card.")
    n, d = matrix.shape
    if n < fewest_rows or d < 1:
        raise InvalidValueError(name, f"must have at least {fewest_rows} row(s) and a column; got shape {(n, d)}.")
    return matrix


def require_numbers_in_rows(X: Any, name: str = "X") -> None:
    """Refuse what has no rows and columns, or holds text, dates or complex numbers."""
    _require_two_dimensions(X, name)
    _require_numbers(X, name)


def fill_gaps(matrix: Any, means: NDArray[np.float64] | None) -> Any:
    """A copy with `means`, or else each column's own mean, in place of NaN; what has no NaN, or is sparse, as it is."""
    if sparse.issparse(matrix) or matrix.dtype.kind != "f":
        return matrix
    if is_on_card(matrix):
        if not np.isnan(float(matrix.sum(dtype=np.float64))):
            return matrix
        raise InvalidValueError(
            'missing="mean" fills arrays of the host, and X lies on a card; fill it there, or pass X as a NumPy array.'
        )
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
    if hasattr(X, "obs_names") and hasattr(X, "obsm"):
        raise InvalidTypeError(
            name,
            f"must be a matrix or a table; got an {type(X).__name__}. Use imapce.anndata.embed(adata) or "
            "Exploration.from_anndata(adata), or pass adata.X.",
        )
    scalar = X is None or isinstance(X, (str, bytes, dict, float, int))
    # The shape first: a sparse matrix of keys is also a dict.
    shape = getattr(X, "shape", () if scalar else None)
    if isinstance(shape, tuple) and len(shape) != 2:
        raise InvalidValueError(
            name,
            f"must have rows and columns; got {type(X).__name__} of shape {shape}. Reshape your data, e.g. with "
            "X.reshape(-1, 1) for one column, or read the file first.",
        )


def _require_numbers(X: Any, name: str) -> None:
    """Text, dates and complex numbers in one sentence; NumPy would fail later and in its own words."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise InvalidValueError(
            name,
            f"must have no masked values, and {int(np.ma.count_masked(X))} are; drop those rows, or use "
            "X.filled(np.nan) and fill them.",
        )
    dtype = getattr(X, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if kind == "c":
        raise InvalidValueError(name, f"must be real. Complex data not supported; got an array of type {dtype}.")
    if kind in ("M", "m"):
        raise InvalidTypeError(
            name, f"must hold numbers; got an array of type {dtype}. Take a number out of it, for example the year."
        )
    if kind in ("S", "U"):
        raise InvalidTypeError(
            name, f"must hold numbers; got an array of text ({dtype}). Convert it, or pass a table with categories."
        )


def require_finite(matrix: Any, name: str, names: list[str], *, learning: bool = False) -> None:
    """Refuse NaN and inf, naming the columns; looks closely only where a cheap sum is not finite."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(float(values.sum(dtype=np.float64))):
            return
    if sparse.issparse(matrix):
        stored = sparse.coo_array(matrix)
        gaps, endless = (
            np.bincount(stored.col[where(stored.data)], minlength=len(names)) for where in (np.isnan, np.isinf)
        )
        summary = Summary(tuple(names), ["number"] * len(names), matrix.shape[0], gaps, endless, np.zeros(len(names)))
    else:
        blocks = (on_host(matrix[start : start + 4096]) for start in range(0, len(matrix), 4096))
        summary = reduce(Summary.join, (Summary.of_matrix(names, block) for block in blocks))
    if learning:
        # A column of nothing but NaN has no mean to be filled with.
        summary.require_usable(name)
    summary.require_finite(name)
    summary.require_whole(name, can_be_filled=not sparse.issparse(matrix))


@dataclass(frozen=True, eq=False)
class OriginalColumns:
    """The columns that a reader learned, as they were before it encoded them; nothing is read before it is asked for.

    `table` is the table itself, None for an array, of which `values(places)` (n, c) gives columns of the matrix.

    >>> columns = OriginalColumns(Reader(2), None, lambda places: np.eye(2)[:, places])
    >>> columns.names, columns.column(1).values
    (['x0', 'x1'], array([0., 1.]))
    """

    reader: Reader
    table: Any
    values: Callable[[NDArray[np.intp]], Array]

    @property
    def names(self) -> list[str]:
        """The names of the columns, one for each category column."""
        return list(self.reader.columns or self.reader.names)

    def column(self, place: int) -> Column:
        """One of the columns."""
        encoding, name = self.reader.encoding, self.names[place]
        if encoding is None:
            return Column(name, values=self.values(np.array([place]))[:, 0])
        if self.table is None:
            return self._decoded(encoding, place)
        series = column_at(self.table, column_names(self.table).index(name))
        return read_column(name, series, encoding.kinds[place], encoding.categories[place], encoding.writing(place))

    def _decoded(self, encoding: Encoding, place: int) -> Column:
        """A column whose table cannot be read again, from the matrix: what gaps were filled with is missing."""
        name, kind = encoding.columns[place], encoding.kinds[place]
        matrix = np.flatnonzero(encoding.groups == place)
        cells, fill = self.values(matrix), np.asarray(encoding.fill)[matrix]
        missing = np.isnan(cells[:, 0])
        if name in encoding.gaps:
            missing |= (np.abs(cells - fill) <= 1e-12 * (1.0 + np.abs(fill))).all(axis=1)
        if kind == "number":
            scale = encoding.scales.get(name)
            values = cells[:, 0] if scale is None else scale.to_units(cells[:, 0])
            return Column(name, values=np.where(missing, np.nan, values))
        codes = cells.argmax(axis=1) if kind == "category" else cells[:, 0].round().astype(np.intp)
        levels = tuple(map(str, encoding.categories[place])) if kind == "category" else NO_YES
        return Column(name, codes=np.where(missing, MISSING, codes), levels=levels)
