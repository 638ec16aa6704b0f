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
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa

from imapce.common.words import counted, listing
from imapce.errors import Argument, InvalidTypeError, InvalidValueError, Phrase, Sentence
from imapce.tables.columns import (
    DROP_OR_CLIP,
    DROP_OR_FILL,
    MIXED_TYPES,
    ONLY_MISSING,
    Plan,
    Unknown,
    follow,
    numbers,
    plan_of,
)
from imapce.tables.encoding import Encoding, Kind

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
        nw.dependencies.is_pandas_dataframe(X)
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
    labels = X.column_names if nw.dependencies.is_pyarrow_table(X) else X.columns
    names = [str(label) for label in labels]
    if repeats := [label for label, count in Counter(names).items() if count > 1]:
        raise InvalidValueError(
            name,
            f"must have a different name for each column, got {listing(map(repr, repeats))} more than "
            "once: rename or drop the repeats.",
        )
    return names


def column_at(X: Any, position: int) -> nw.Series[Any]:
    """One column of a table, nothing copied; by position, as a pandas name that is an integer is ambiguous.

    >>> column_at(pa.table({"a": [1], "b": [2]}), 1).to_list()
    [2]
    """
    if nw.dependencies.is_pandas_dataframe(X):
        native = X.iloc[:, position]
    elif nw.dependencies.is_polars_dataframe(X):
        native = X.to_series(position)
    else:
        native = X.column(position)
    return nw.from_native(native, series_only=True)


def encode(
    X: Any,
    *,
    missing: Literal["error", "mean"] = "error",
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
    for argument, value, choices in (
        ("missing", missing, ("error", "mean")),
        ("extra", extra, ("error", "ignore")),
        ("unknown", unknown, ("error", "ignore")),
    ):
        if value not in choices:
            raise InvalidValueError(
                argument, f"must be {choices[0]!r} or {choices[1]!r}, got {value!r}: pass one of the two."
            )
    names, rows = column_names(X, name), len(X)
    if not names or rows == 0:
        raise InvalidValueError(
            name,
            f"must have at least one column and one row, got {counted(rows, 'row')} and "
            f"{counted(len(names), 'column')}: check the step that made it.",
        )
    positions = list(range(len(names))) if encoding is None else _matched(names, encoding, extra, name)

    matrix = _uniform_floats(X, positions, encoding)
    if matrix is not None:
        numeric: tuple[Kind, ...] = tuple("number" for _ in names)
        learned = encoding or Encoding(tuple(names), numeric, ((),) * len(names), fill=())
    else:
        plans = _plans(X, positions, names, encoding, name, unknown)
        matrix = _filled(plans, rows)
        kinds, categories = tuple(plan.kind for plan in plans), tuple(plan.categories for plan in plans)
        learned = encoding or Encoding(tuple(names), kinds, categories, fill=())
    if repeats := [feature for feature, count in Counter(learned.feature_names).items() if count > 1]:
        raise InvalidValueError(
            name,
            f"must give each encoded column a name of its own, got {listing(map(repr, repeats))} "
            "twice, as a column and as column=category: rename one of the columns.",
        )

    means, counts = _means_and_missing(matrix, learned, name)
    if encoding is None:
        empty = {c: ONLY_MISSING for c, count in counts.items() if count == rows}
        _refuse(empty, name)
        learned = replace(learned, fill=tuple(means.tolist()), gaps=tuple(counts))
    if counts and missing == "error":
        held = listing(f"{column!r} has {count}" for column, count in counts.items())
        raise InvalidValueError(name, f"must not hold missing values (NaN), and {held}", way_out=DROP_OR_FILL)
    for column in counts:
        for position in learned.columns_of(column):
            values = matrix[:, position]
            values[np.isnan(values)] = learned.fill[position]
    return Encoded(matrix, learned)


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
    if nw.dependencies.is_pyarrow_table(like):
        return pa.table(arrays)
    return nw.get_native_namespace(like).DataFrame(arrays)


def _refuse(reasons: Mapping[str, str], name: str) -> None:
    """Raise one sentence that names every refused column; nothing when there is none."""
    if reasons:
        faults = listing(Sentence(f"{column!r} ", reason) for column, reason in reasons.items())
        raise InvalidValueError(name, Sentence("must have columns that can become numbers, but ", faults))


def _matched(names: list[str], encoding: Encoding, extra: str, name: str) -> list[int]:
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


def _uniform_floats(X: Any, positions: list[int], encoding: Encoding | None) -> np.ndarray | None:
    """The matrix of a pandas table that is all float32 or all float64 in one step, else None."""
    uniform = ({np.dtype("float64")}, {np.dtype("float32")})
    if not nw.dependencies.is_pandas_dataframe(X) or set(X.dtypes) not in uniform:
        return None
    if encoding is not None and set(encoding.kinds) != {"number"}:
        return None
    values = X.to_numpy()
    matrix = np.empty((len(X), len(positions)), dtype=values.dtype)
    # On 200,000 x 50 values the plain assignment took half the time of take().
    if positions == list(range(values.shape[1])):
        matrix[...] = values
    else:
        np.take(values, positions, axis=1, out=matrix)
    return matrix


def _plans(
    X: Any, positions: list[int], names: list[str], encoding: Encoding | None, name: str, unknown: Unknown
) -> list[Plan]:
    """Decide for each column what it becomes, or name every column that cannot become anything."""
    plans: list[Plan] = []
    strange: list[str] = []
    refused: dict[str, str] = {}
    for order, position in enumerate(positions):
        series = column_at(X, position)
        try:
            if encoding is None:
                plan = plan_of(series)
            else:
                plan = follow(series, encoding.kinds[order], encoding.categories[order], unknown)
        except pa.ArrowException:
            # pandas categories may mix types (1 and "a"), which no Arrow dictionary holds.
            plan = MIXED_TYPES
        if isinstance(plan, str):
            refused[names[position]] = plan
        else:
            plans.append(plan)
            if plan.strange:
                strange.append(f"{names[position]!r} has {listing(map(repr, plan.strange), 10)}")
    _refuse(refused, name)
    if strange:
        warnings.warn(
            Sentence(
                Argument(name),
                f" has categories that were not learned, and 0 stands in every column of theirs: {listing(strange)}.",
            ),
            stacklevel=3,
        )
    return plans


def _filled(plans: list[Plan], rows: int) -> np.ndarray:
    """The matrix of the planned columns, NaN where a value is missing (in every column of its category)."""
    widths = [len(plan.categories) if plan.kind == "category" else 1 for plan in plans]
    small = all(plan.kind == "number" and plan.series.dtype == nw.Float32 for plan in plans)
    matrix = np.zeros((rows, sum(widths)), dtype=np.float32 if small else np.float64)
    start = 0
    for plan, width in zip(plans, widths, strict=True):
        block = matrix[:, start : start + width]
        if plan.codes is None:
            block[:, 0] = numbers(plan.series)
        else:
            known = np.flatnonzero(plan.codes >= 0)
            block[known, plan.codes[known]] = 1.0
            block[plan.codes == -1] = np.nan
        start += width
    return matrix


def _means_and_missing(matrix: np.ndarray, encoding: Encoding, name: str) -> tuple[np.ndarray, dict[str, int]]:
    """The mean of each matrix column over its present values and the missing count of each table column."""
    # One pass finds every column to look at: a NaN or an infinity in it makes its mean not finite.
    with np.errstate(over="ignore", invalid="ignore"):
        means = matrix.mean(axis=0, dtype=np.float64)
    missing: dict[str, int] = {}
    infinite: dict[str, int] = {}
    for position in np.flatnonzero(~np.isfinite(means)):
        column = encoding.columns[encoding.groups[position]]
        values = matrix[:, position].astype(np.float64)
        if count := int(np.isinf(values).sum()):
            infinite[column] = count
            continue
        present = values[~np.isnan(values)]
        if present.size < values.size:
            missing[column] = values.size - present.size
        with np.errstate(over="ignore"):
            mean = present.mean() if present.size else np.nan
        # The sum of values near 1e308 overflows though their mean does not.
        means[position] = mean if not np.isinf(mean) else (present / present.size).sum()
    if infinite:
        held = listing(f"{column!r} has {count}" for column, count in infinite.items())
        raise InvalidValueError(
            name, f"must hold finite values, and inf or -inf is in it ({held})", way_out=DROP_OR_CLIP
        )
    return means, missing
