"""The data of a session: its rows as a matrix, the table they came from, their names, and a print to know them by.

A saved session holds the print instead of the data: number of rows, column names, the mean and variance of every column
and a hash over all values in order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.arrays import Array, Mask, is_dask, is_scan
from imapce.common.records import Comparable
from imapce.common.words import close_matches, counted
from imapce.common.work import threads_for
from imapce.errors import Argument, ImapceError, InvalidTypeError, InvalidValueError, Reference
from imapce.estimators.imapce import IMAPCE
from imapce.exploration.counted import CountedColumn, GroupMoments
from imapce.priors.kinds import AS_A_MASK, LEAVE_OUT_OR, Subset
from imapce.priors.problem import require_shape
from imapce.rows.base import Rows
from imapce.rows.open import open_rows
from imapce.tables.columns import Column
from imapce.tables.encode import Table, is_table, native_table
from imapce.tables.named import NamedMatrix
from imapce.tables.reader import OriginalColumns, Reader
from imapce.tables.reading import as_read


@dataclass(frozen=True, eq=False)
class DataPrint(Comparable):
    """What tells data apart without keeping it: rows, column names, means, variances, and a hash of all values.

    `transform` are the columns that these are of another scale of, each with its name.
    """

    n_rows: int
    columns: tuple[str, ...]
    mean: Array
    variance: Array
    digest: str
    transform: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, rows: Rows, reader: Reader) -> DataPrint:
        """The print of rows as they were read."""
        moments, mean = rows.moments(), rows.moments().mean + rows.origin
        return cls(
            rows.n_rows, tuple(reader.names), mean, moments.variance, rows.digest(), tuple(reader.transform.items())
        )

    def require_same(self, other: DataPrint) -> None:
        """Refuse other data than this by the name of what differs."""
        rule = "must be the data of the session"
        for what, here, there in (
            ("row", other.n_rows, self.n_rows),
            ("column", len(other.columns), len(self.columns)),
        ):
            if here != there:
                raise InvalidValueError("X", f"{rule}; it has {counted(here, what)} and the session {there:,}.")
        for name, expected in zip(other.columns, self.columns, strict=True):
            if name != expected:
                raise InvalidValueError("X", f"{rule}; it has column {name!r} where the session has {expected!r}.")
        if other.digest == self.digest:
            return
        close = np.isclose(other.mean, self.mean, rtol=1e-9, atol=1e-300)
        close &= np.isclose(other.variance, self.variance, rtol=1e-7, atol=1e-300)
        if close.all():
            raise InvalidValueError(
                "X",
                f"{rule}, in the same order; its columns have the same means and spreads, so the rows are in another "
                "order or a few values differ.",
            )
        different = [self.columns[i] for i in np.flatnonzero(~close)]
        more = f" and {len(different) - 3} more" if len(different) > 3 else ""
        raise InvalidValueError("X", f"{rule}; the values of {', '.join(map(repr, different[:3]))}{more} differ.")


def used_columns(saved: DataPrint | None) -> set[str]:
    """Return the names of the table columns that a saved session may have been made of."""
    columns = () if saved is None else saved.columns
    # "color=red" is a matrix column of the table column "color".
    return {*columns, *(column.partition("=")[0] for column in columns)}


@dataclass(frozen=True, eq=False)
class Data:
    """The rows of a session; `table` has the features where a table was given, `row_ids` (n,) are the names of rows in
    results, and `notes` say how the table was read.

    >>> data = Data.read(np.eye(5), IMAPCE())
    >>> data.n_rows, data.column("x1").values.tolist()
    (5, [0.0, 1.0, 0.0, 0.0, 0.0])
    """

    rows: Rows
    reader: Reader
    table: Any
    row_ids: NDArray
    read_table: Table | None = None
    # Of an array whose gaps were filled: which rows of a column were gaps; and whether rows lie on disk or a cluster.
    holes: Mapping[int, NDArray[np.intp]] = field(default_factory=dict)
    is_elsewhere: bool = False

    def __getstate__(self) -> dict[str, Any]:
        # What was read of the columns is read again where it is needed.
        return {name: value for name, value in self.__dict__.items() if name not in ("all_moments", "_counted")}

    @classmethod
    def read(
        cls,
        X: Any,
        estimator: IMAPCE,
        row_ids: Any = None,
        *,
        transform: Any = None,
        named: Collection[str] | None = (),
    ) -> Data:
        """What was given as X, as the estimator reads it, and columns on another scale where `transform` says so.

        Columns `named` in a prior or by a saved session are features also if most of their values are missing.
        """
        read = as_read(X, transform, named=named)
        of_table = isinstance(read, Table)
        reader, matrix = Reader.learn(read, missing=estimator.missing, transform=None if of_table else transform)
        require_shape(matrix.shape, estimator.n_components)
        with threads_for(*matrix.shape), np.errstate(over="ignore", invalid="ignore"):
            rows = open_rows(matrix, engine=estimator.engine, n_components=estimator.n_components)
        names = _names_of_rows(row_ids, native_table(X), rows.n_rows)
        # Without its matrix, which the rows have.
        table = replace(read, made={}) if of_table else None
        native, elsewhere = None if table is None else table.native, is_scan(X) or is_dask(X)
        return cls(rows, reader, native, names, table, _holes(read, reader), elsewhere)

    @property
    def notes(self) -> tuple[str, ...]:
        """How the table was read, in sentences."""
        return () if self.read_table is None else tuple(self.read_table.notes)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of rows and of matrix columns."""
        return self.rows.n_rows, self.rows.n_features

    @property
    def n_rows(self) -> int:
        """n."""
        return self.rows.n_rows

    @cached_property
    def print(self) -> DataPrint:
        """What tells these data from others; it takes a pass over all values."""
        return DataPrint.of(self.rows, self.reader)

    @property
    def source(self) -> OriginalColumns:
        """The columns as they were given, in their own units."""

        def values(places: NDArray[np.intp]) -> Array:
            read = np.vstack([block.copy() for block in self.rows.blocks(places)]) + self.rows.origin[places]
            for column, place in enumerate(places.tolist()):
                read[self.holes.get(place, []), column] = np.nan
            return read

        return OriginalColumns(self.reader, self.table, values)

    @cached_property
    def all_moments(self) -> GroupMoments:
        """The observed cells of all rows as one group."""
        return GroupMoments.of_all(self.rows, self.reader.gaps)

    @cached_property
    def _counted(self) -> dict[int, CountedColumn]:
        return {}

    def counted(self, place: int) -> CountedColumn:
        """A column as it was given, by place, read once and counted as one group."""
        if place not in self._counted:
            column = self.source.column(place)
            self._counted[place] = CountedColumn(column, np.zeros(self.n_rows, dtype=np.intp), 1)
        return self._counted[place]

    @cached_property
    def filled(self) -> dict[str, int]:
        """How many cells of which column were missing, and filled."""
        gaps, names = self.reader.gaps, self.source.names
        if gaps is None:
            return {}
        groups = np.arange(self.reader.n_features) if self.reader.groups is None else self.reader.groups
        places = np.unique(groups[~np.isnan(gaps)]).tolist()
        if self.is_elsewhere:
            holes = self.all_moments.holes[0][np.searchsorted(groups, places)]
            return {names[place]: int(count) for place, count in zip(places, holes, strict=True)}
        return {names[place]: self.n_rows - self.counted(place).count([0]) for place in places}

    def column(self, name: str) -> Column:
        """One of these columns by its name."""
        source = self.source
        if not isinstance(name, str):
            raise InvalidTypeError(f"name must be the name of a column, a text; got {name!r:.80}.")
        if name not in source.names:
            raise InvalidValueError(f"name must be a column of X, got {name!r}: {close_matches(name, source.names)}")
        return source.column(source.names.index(name))

    def mask_of(self, chosen: Any, argument: str) -> Mask:
        """(n,): a boolean mask or positions as a mask, by the rules of Subset(rows)."""
        try:
            Subset(chosen).require_same_index(self.table)
            return Subset(chosen).row_mask(self.n_rows)
        except ImapceError as error:
            # The sentence must name the argument that was given.
            words: dict[Reference, str] = {Argument("Subset(rows)"): argument, LEAVE_OUT_OR: ""}
            if argument == "mask":
                words[AS_A_MASK] = ""
            raise type(error)(error.rendered(lambda part: words.get(part, str(part)))) from error

    def positions_of(self, rows: Any) -> NDArray[np.intp]:
        """Positions of rows in the order asked for, from the end where they are negative."""
        places = np.asarray(rows)
        if places.size and not np.issubdtype(places.dtype, np.integer):
            raise InvalidTypeError(f"rows must be positions, whole numbers; got values of type {places.dtype}.")
        if places.size and not (-self.n_rows <= places.min() and places.max() < self.n_rows):
            raise InvalidValueError(
                f"rows must lie within the {self.n_rows} rows of X; got {places.min()} to {places.max()}."
            )
        return places.astype(np.intp) % self.n_rows


def _names_of_rows(row_ids: Any, X: Any, n_rows: int) -> NDArray:
    """What rows are called in results: as given, else the index of a table, else 0, 1, ..."""
    if row_ids is None:
        index = getattr(X, "index", None) if is_table(X) or is_dask(X) else None
        return np.arange(n_rows) if index is None else np.asarray(index)
    ids = np.asarray(row_ids)
    if ids.shape != (n_rows,):
        raise InvalidValueError(f"row_ids must have one entry per row of X ({n_rows}); got shape {ids.shape}.")
    return ids


def _holes(X: Any, reader: Reader) -> dict[int, NDArray[np.intp]]:
    """The rows in which the columns of an array, by place, had a gap that was filled."""
    gaps = reader.gaps
    if reader.filled_with is None or gaps is None:
        return {}
    matrix = np.asarray(X.matrix if isinstance(X, NamedMatrix) else X)
    return {int(place): np.flatnonzero(np.isnan(matrix[:, place])) for place in np.flatnonzero(~np.isnan(gaps))}
