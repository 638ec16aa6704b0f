"""Any table in, encoded matrix out: names, types, categories and missing values of pandas, polars and Arrow.

A number column becomes one matrix column, a boolean column becomes 0/1 and a category column becomes one 0/1
column per category; the ``Encoding`` remembers which is which, so that new rows get the same columns.

>>> learned = encode(pa.table({"size": [1.0, 2.0], "new": [True, False]})).encoding
>>> encode(pa.table({"new": [True], "size": [7.0]}), encoding=learned).matrix
array([[7., 1.]])
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from imapce.common.arrays import Array, Codes
from imapce.common.checks import require_choice
from imapce.common.streams import Portion, Stream, in_order
from imapce.common.words import counted, listing
from imapce.errors import Argument, InvalidTypeError, InvalidValueError, Phrase, Sentence
from imapce.tables.columns import MISSING, Unknown, UnusableColumn, kind_of, numbers, read_codes, read_numbers
from imapce.tables.learn import Encoding, Missing, Summary, encoding_of, refuse_columns
from imapce.tables.scales import Scale, chosen_scales
from imapce.tables.values import Writing

if TYPE_CHECKING:
    from imapce.tables.scan import Scan

# Columns side by side, 16 or 200 of them: blocks of 2 MB were reduced at 0.8 to 3 GB/s of float32 by one core, those of
# 16 MB at half of that.
BLOCK_BYTES = 2 << 20
_ONE_OF = "a pandas DataFrame, a polars DataFrame or a pyarrow Table"


@dataclass(frozen=True)
class Encoded:
    """A matrix together with how it was made from a table.

    >>> encode(pa.table({"size": [1.0, 2.0]})).matrix.tolist()
    [[1.0], [2.0]]
    """

    matrix: np.ndarray
    encoding: Encoding


def is_table(X: Any) -> bool:
    """Whether ``X`` is a pandas DataFrame, a polars DataFrame or a pyarrow Table.

    A polars LazyFrame is refused rather than answered with False: it is a table whose rows do not exist yet,
    and every caller needs them.

    >>> is_table(pa.table({"a": [1]})), is_table([[1]])
    (True, False)
    """
    if nw.dependencies.is_polars_lazyframe(X):
        raise InvalidTypeError("X", f"must be {_ONE_OF}, got a polars LazyFrame: pass X.collect() instead.")
    return bool(
        isinstance(X, Table)
        or nw.dependencies.is_pandas_dataframe(X)
        or nw.dependencies.is_polars_dataframe(X)
        or nw.dependencies.is_pyarrow_table(X)
    )


def column_names(X: Any, name: str = "X") -> list[str]:
    """The column names of a table, all different; names that are not text (pandas ``0, 1``) become ``str()``.

    >>> column_names(pa.table({"a": [1], "b": [2]}))
    ['a', 'b']
    """
    if not is_table(X):
        raise InvalidTypeError(name, f"must be {_ONE_OF}, got {type(X).__name__}: convert it to one of these.")
    X = native_table(X)
    labels = X.column_names if nw.dependencies.is_pyarrow_table(X) else X.columns
    names = [str(label) for label in labels]
    if repeats := [label for label, count in Counter(names).items() if count > 1]:
        raise InvalidValueError(
            name,
            f"must have a different name for each column, got {listing(map(repr, repeats))} more than "
            "once: rename or drop the repeats.",
        )
    return names


def native_table(X: Any) -> Any:
    """The table of pandas, polars or Arrow itself, where `X` is one with what was learned of it."""
    return X.native if isinstance(X, Table) else X


def column_at(X: Any, position: int) -> nw.Series[Any]:
    """One column of a table, nothing copied; by position, as a pandas name that is an integer is ambiguous."""
    return nw.from_native(_native_column(native_table(X), position), series_only=True)


def selected(X: Any, names: Sequence[str]) -> Any:
    """Some columns of a table, in this order; by position, as pandas names may be numbers."""
    have = column_names(X)
    if isinstance(X, Table):
        return X.select(names)
    return nw.from_native(X, eager_only=True)[:, [have.index(name) for name in names]].to_native()


def _native_column(X: Any, position: int) -> Any:
    if nw.dependencies.is_pandas_dataframe(X):
        return X.iloc[:, position]
    return X.to_series(position) if nw.dependencies.is_polars_dataframe(X) else X.column(position)


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """The features of a table as `imapce.read` finds them: wherever a table goes, this goes, and is encoded once.

    `native` holds the feature columns in the units of the table, in its own kind (pandas, polars, Arrow), and `notes`
    says in sentences what was read how, filled or left out; `left_out` has the reason for every column that is no
    feature, `written` how the cells of a column are written that a program would take for text. Whoever encodes it
    gets the same matrix, and must not write into it.

    >>> learned = Table.learn(pa.table({"size": [1.0, 2.0], "id": ["a", "b"]})).select(["size"])
    >>> learned.shape, encode(learned).matrix is encode(learned).matrix
    ((2, 1), True)
    """

    native: Any
    summary: Summary
    _: KW_ONLY
    notes: list[str] = field(default_factory=list)
    left_out: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, Writing] = field(default_factory=dict)
    scales: Mapping[str, Scale] = field(default_factory=dict)
    made: dict[Missing, Encoded] = field(default_factory=dict)

    @classmethod
    def learn(cls, table: Any, name: str = "X", *, written: Mapping[str, Writing] | None = None) -> Table:
        """Look at every column once; `name` is what messages call the table."""
        return cls(table, summarize(table, name), written=written or {})

    def __repr__(self) -> str:
        features = listing(map(repr, self.column_names), 10)
        told = f"Table of {counted(len(self), 'row')} and {counted(self.shape[1], 'feature')}: {features}"
        return "\n".join([told, *(str(note) for note in self.notes)])

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in their order."""
        return list(self.summary.names)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, as of a matrix."""
        return len(self), len(self.summary.names)

    def __len__(self) -> int:
        return len(self.native)

    def select(self, names: Sequence[str]) -> Table:
        """Some of the columns, of which nothing is learned anew; the notes go along."""
        place_of = {name: place for place, name in enumerate(self.summary.names)}
        places = [place_of[name] for name in names]
        scales = {name: scale for name, scale in self.scales.items() if name in names}
        summary = self.summary.select(places)
        return replace(self, native=selected(self.native, names), summary=summary, scales=scales, made={})

    @property
    def numbers(self) -> dict[str, Array]:
        """The columns of numbers by their names, NaN where a value is missing."""
        kinds = zip(self.summary.names, self.summary.kinds, strict=True)
        return {
            name: np.asarray(numbers(column_at(self, place)), dtype=np.float64)
            for place, (name, kind) in enumerate(kinds)
            if kind == "number"
        }

    def transformed(self, transform: Any) -> Table:
        """The same table with columns to be looked at on another scale: "log" or "rank" for all that are strongly
        skewed, or one of them by column.

        >>> Table.learn(pa.table({"fee": [1.0, 10.0, 900.0]})).transformed({"fee": "log"}).scales
        {'fee': LogScale(unit=1.18)}
        """
        return replace(self, scales=chosen_scales(transform, self.numbers, self.column_names), made={})

    def encoded(self, missing: Missing, name: str = "X") -> Encoded:
        """The matrix and its encoding, made when first asked for."""
        if missing not in self.made:
            encoding = encoding_of(self.summary, missing=missing, name=name, written=self.written)
            matrix = fill_matrix(self.native, range(len(encoding.columns)), encoding, name=name)
            if self.scales:
                encoding, matrix = on_scales(encoding, matrix, self.scales)
            _fill_gaps(matrix, encoding, self.summary.gaps)
            self.made[missing] = Encoded(matrix, encoding)
        return self.made[missing]


def on_scales(encoding: Encoding, matrix: Any, scales: Mapping[str, Scale]) -> tuple[Encoding, Any]:
    """The encoding with other scales, which its means are on, too, and the matrix on them; a cell that was NaN is."""
    encoding = replace(encoding, scales=dict(scales))
    matrix, fill = encoding.to_scale(matrix), list(encoding.fill)
    for name in scales:
        place = int(encoding.columns_of(name)[0])
        values = matrix[:, [place]].toarray() if sparse.issparse(matrix) else matrix[:, place]
        fill[place] = float(np.nanmean(values, dtype=np.float64))
    return replace(encoding, fill=tuple(fill)), matrix


def summarize(table: Any, name: str = "X") -> Summary:
    """What the rows of a table tell of its columns."""
    names = column_names(table, name)
    if _are_uniform_floats(table):
        return Summary.of_matrix(names, table.to_numpy())
    return Summary.of_columns(names, (_native_column(table, place) for place in range(len(names))))


def encode(
    X: Any,
    *,
    missing: Missing = "error",
    encoding: Encoding | None = None,
    extra: Literal["error", "ignore"] = "error",
    unknown: Unknown = "error",
    name: str = "X",
) -> Encoded:
    """The matrix of a table; learns the encoding, or applies the one given, matching columns by name.

    The matrix is a new C-ordered float64 array (float32 when every column is), so the table is never changed;
    integers beyond 2**53 are rounded to the nearest float64. ``missing="mean"`` fills with the means of the
    rows the encoding was learned from, for a category with its shares; ``extra`` is about columns that the
    encoding does not know, ``unknown`` about categories it does not know: with "ignore" a warning names them and their
    rows get 0 for every category of the column. ``name`` is what messages call the table.

    >>> encode(pa.table({"on": [True, False]})).matrix.ravel().tolist()
    [1.0, 0.0]
    """
    require_choice("missing", missing, ("error", "mean"))
    require_choice("extra", extra, ("error", "ignore"))
    require_choice("unknown", unknown, ("error", "ignore"))
    names, rows = column_names(X, name), len(X)
    if not names or rows == 0:
        raise InvalidValueError(
            name,
            f"must have at least one column and one row, got {counted(rows, 'row')} and "
            f"{counted(len(names), 'column')}: check the step that made it.",
        )
    if encoding is None:
        learned = X if isinstance(X, Table) else Table.learn(X, name)
        return learned.encoded(missing, name)
    if isinstance(X, Table) and missing in X.made and X.made[missing].encoding == encoding:
        return X.made[missing]
    matrix = fill_matrix(X, matched(names, encoding, extra, name), encoding, unknown=unknown, name=name)
    matrix = encoding.to_scale(matrix)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(matrix.sum(dtype=np.float64)):
            return Encoded(matrix, encoding)
    firsts = np.searchsorted(encoding.groups, range(len(encoding.columns)))
    summary = Summary.of_matrix(encoding.feature_names, matrix).select(firsts.tolist(), encoding.columns)
    summary.require_finite(name)
    if missing == "error":
        summary.require_whole(name)
    _fill_gaps(matrix, encoding, summary.gaps)
    return Encoded(matrix, encoding)


def fill_matrix(
    X: Any, places: Sequence[int], encoding: Encoding, *, unknown: Unknown = "error", name: str = "X"
) -> np.ndarray:
    """The matrix of columns at some places of a table, NaN where a value is missing, in all columns of a category."""
    X = native_table(X)
    if _are_uniform_floats(X) and set(encoding.kinds) == {"number"}:
        values = X.to_numpy()
        matrix = np.empty((len(X), len(places)), dtype=values.dtype)
        # On 200,000 x 50 values the plain assignment took half the time of take().
        if list(places) == list(range(values.shape[1])):
            matrix[...] = values
        else:
            np.take(values, places, axis=1, out=matrix)
        return matrix
    columns = [column_at(X, place) for place in places]
    small = set(encoding.kinds) == {"number"} and all(series.dtype == nw.Float32 for series in columns)
    matrix = np.zeros((len(X), len(encoding.feature_names)), dtype=np.float32 if small else np.float64)
    refused: dict[str, UnusableColumn] = {}
    strangers: list[str] = []
    odd_cells: list[str] = []
    start = 0
    for place, (column, kind, categories, series) in enumerate(
        zip(encoding.columns, encoding.kinds, encoding.categories, columns, strict=True)
    ):
        try:
            if kind == "category":
                block = matrix[:, start : start + len(categories)]
                codes, strange = read_codes(series, categories, unknown)
                known = np.flatnonzero(codes >= 0)
                block[known, codes[known]] = 1.0
                block[codes == MISSING] = np.nan
                if strange:
                    strangers.append(f"{column!r} has {listing(map(repr, strange), 10)}")
            else:
                matrix[:, start], strange = read_numbers(series, kind, encoding.writing(place), unknown)
                if strange:
                    odd_cells.append(f"{column!r} has {listing(map(repr, strange), 10)}")
        except UnusableColumn as problem:
            refused[column] = problem
        start += len(categories) or 1
    refuse_columns(refused, name)
    if strangers:
        warnings.warn(
            Sentence(
                Argument(name),
                f" has categories that were not learned, and 0 stands in every column of theirs: {listing(strangers)}.",
            ),
            stacklevel=3,
        )
    if odd_cells:
        warnings.warn(
            Sentence(Argument(name), f" has cells that are no numbers, read as missing: {listing(odd_cells)}."),
            stacklevel=3,
        )
    return matrix


class ScannedMatrix(Stream):
    """The encoded rows of a scan."""

    def __init__(self, table: Scan, encoding: Encoding, *, missing: Missing = "error", unknown: Unknown = "error"):
        self.table, self.encoding = table.selected(encoding.columns), encoding
        self._missing: Missing = missing
        self._unknown: Unknown = unknown
        self._plain = set(encoding.kinds) == {"number"} and missing == "error" and not encoding.scales

    @property
    def shape(self) -> tuple[int, int]:
        return self.table.n_rows, len(self.encoding.feature_names)

    def portions(self, columns: NDArray[np.intp] | None = None) -> Iterator[Portion]:
        names = None
        if self._plain:
            names = [self.encoding.columns[i] for i in (range(self.shape[1]) if columns is None else columns)]
        for batch in self.table.batches(names):
            blocks = partial(_numbers, batch) if self._plain else partial(self._encoded, batch, columns)
            yield Portion(batch.num_rows, blocks)

    def _encoded(
        self, batch: pa.RecordBatch, columns: NDArray[np.intp] | None, places: Codes | None
    ) -> Iterator[Array]:
        rows = pa.Table.from_batches([batch if places is None else batch.take(pa.array(places))])
        matrix = encode(rows, encoding=self.encoding, missing=self._missing, unknown=self._unknown).matrix
        matrix = matrix.astype(np.float64, copy=False)
        matrix = matrix if columns is None else matrix[:, columns]
        step = _block_rows(matrix.shape[1])
        yield from (matrix[start : start + step] for start in range(0, len(matrix), step))


def _numbers(batch: pa.RecordBatch, places: Codes | None) -> Iterator[Array]:
    """Columns of plain numbers, each copied in one run of memory; a block is the transpose of what they fill."""
    columns = [_values(column) for column in batch.columns]
    n_rows = batch.num_rows
    if places is not None:
        # Of a sample next to nothing has to become float64.
        columns, n_rows = [column[places] for column in columns], len(places)
    step = min(_block_rows(len(columns)), n_rows)
    buffer = np.empty((len(columns), step))
    for start in range(0, n_rows, step):
        stop = min(start + step, n_rows)
        for place, column in enumerate(columns):
            buffer[place, : stop - start] = column[start:stop]
        yield buffer[:, : stop - start].T


def _block_rows(n_columns: int) -> int:
    return max(256, BLOCK_BYTES // (8 * max(1, n_columns)))


def _values(column: pa.Array) -> NDArray[Any]:
    if pa.types.is_floating(column.type) and not column.null_count:
        return column.to_numpy()
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def learn_scan(table: Scan, *, missing: Missing = "error") -> tuple[Encoding, ScannedMatrix]:
    """The encoding of a scan, learned in one pass, and its matrix."""
    refused = {}
    for name in table.columns:
        try:
            kind_of(column_at(table.schema.empty_table(), table.schema.get_field_index(name)))
        except UnusableColumn as problem:
            # A pass over hundreds of gigabytes is not begun for a type that is refused at its end.
            refused[name] = problem
    refuse_columns(refused, "X")
    encoding = encoding_of(reduce(Summary.join, in_order(Summary.of_batch, table.batches())), missing=missing)
    return encoding, ScannedMatrix(table, encoding, missing=missing)


def frame(columns: Mapping[str, np.ndarray], like: Any = None) -> Any:
    """A table of these columns, of the same kind as ``like`` (by default pandas if installed, else Arrow).

    A pandas table gets the plain 0, 1, 2, ... index: the columns need not have the rows of ``like``.

    >>> frame({"x": np.zeros(2)}, like=pa.table({"a": [1]})).column_names
    ['x']
    """
    arrays = {str(key): np.asarray(values) for key, values in columns.items()}
    shapes = {values.shape for values in arrays.values()}
    if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
        raise InvalidValueError(
            f"columns must be 1-D arrays of one length, got shapes {listing(map(str, sorted(shapes)))}: pass "
            "one array per column."
        )
    if like is None:
        try:
            import pandas
        except ImportError:
            return pa.table(arrays)
        return pandas.DataFrame(arrays)
    if not is_table(like):
        raise InvalidTypeError(f"like must be {_ONE_OF}, got {type(like).__name__}: pass one, or None.")
    like = native_table(like)
    if nw.dependencies.is_pyarrow_table(like):
        return pa.table(arrays)
    return nw.get_native_namespace(like).DataFrame(arrays)


def matched(names: list[str], encoding: Encoding, extra: str, name: str) -> list[int]:
    """For each column of the encoding its position in the table."""
    place = {column: position for position, column in enumerate(names)}
    absent = [column for column in encoding.columns if column not in place]
    known = set(encoding.columns)
    unknown = [column for column in names if column not in known] if extra == "error" else []
    if absent or unknown:
        faults = [f"lacks {listing(map(repr, absent))}"] if absent else []
        faults += [f"has the extra {listing(map(repr, unknown))}"] if unknown else []
        raise InvalidValueError(
            name,
            Sentence(
                "must have ",
                Phrase("learned columns", "the columns that the encoding was learned from"),
                f", and it {' and '.join(faults)}",
            ),
            way_out=Sentence(
                "add what is missing",
                Phrase("extra columns", ' and drop the rest, or pass extra="ignore" for extra columns'),
            ),
        )
    return [place[column] for column in encoding.columns]


def _are_uniform_floats(X: Any) -> bool:
    """Whether a table is one of pandas that is all float32 or all float64, which is a matrix already."""
    uniform = ({np.dtype("float64")}, {np.dtype("float32")})
    return bool(nw.dependencies.is_pandas_dataframe(X)) and set(X.dtypes) in uniform


def _fill_gaps(matrix: np.ndarray, encoding: Encoding, columns: Iterable[str]) -> None:
    for column in columns:
        for place in encoding.columns_of(column):
            values = matrix[:, place]
            values[np.isnan(values)] = encoding.fill[place]
