"""A view written to a file some rows at a time, so that neither the rows nor the view need fit in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import issparse

from imapce.common.arrays import Array, is_scan
from imapce.common.streams import in_order
from imapce.common.words import close_matches
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.tables.encode import is_table
from imapce.tables.files import as_arrow, open_table_writer, table_target

# Rows placed at a time, of a table in memory.
BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class Batch:
    """Some rows: what the model reads of them, what goes along, and the number of the first."""

    features: Any
    beside: pa.Table
    start: int


def write_view(
    path: str | os.PathLike[str],
    X: Any,
    place: Callable[[Any, int], Array],
    *,
    axes: Sequence[str],
    reads: Sequence[str] | None,
    columns: Sequence[str] | None,
) -> int:
    """Write `columns` of X (None: all of them), a row's number and place(rows, first) on `axes`; how many rows it was.

    `reads` are the columns that `place` is given, None where it is given arrays, beside the number of the first row.
    """
    table_target(path)
    batches = _batches(X, reads, columns)
    first = next(batches)

    def placed(batch: Batch) -> pa.Table:
        view = place(batch.features, batch.start)
        numbers = pa.array(np.arange(batch.start, batch.start + len(view)))
        return beside(batch.beside, {"row": numbers, **dict(zip(axes, view.T, strict=True))})

    def all_of_them() -> Iterator[Batch]:
        yield first
        yield from batches

    rows = in_order(placed, all_of_them())
    head, n_rows = next(rows), 0
    with open_table_writer(path, head.schema) as write:
        while head is not None:
            write(head)
            n_rows += len(head)
            head = next(rows, None)
    return n_rows


def beside(carried: pa.Table, added: dict[str, Any]) -> pa.Table:
    """The columns that go along and those that are added; a name that is taken gets _1, _2, ... appended.

    >>> beside(pa.table({"row": ["a"]}), {"row": [0]}).column_names
    ['row', 'row_1']
    """
    columns = dict(zip(carried.column_names, carried.columns, strict=True))
    for name, values in added.items():
        free, number = name, 0
        while free in columns:
            number += 1
            free = f"{name}_{number}"
        columns[free] = pa.array(values) if not isinstance(values, pa.Array) else values
    return pa.table(columns)


def _batches(X: Any, reads: Sequence[str] | None, columns: Sequence[str] | None) -> Iterator[Batch]:
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns or ()):
        raise InvalidTypeError(f"columns must be None or a list of names; got {columns!r:.80}.")
    if is_scan(X):
        names, whole = X.schema.names, None
    elif is_table(X):
        whole = as_arrow(X)
        names = whole.column_names
    else:
        yield from _slices(X, columns)
        return
    carried = list(X.columns if whole is None else names) if columns is None else list(columns)
    for name in (*carried, *(reads or ())):
        if name not in names:
            raise InvalidValueError(f"columns must be among those of X, got {name!r}: {close_matches(name, names)}")
    needed = list(dict.fromkeys((*carried, *(reads or names))))
    batches = X.batches(needed) if whole is None else whole.select(needed).to_batches(max_chunksize=BATCH_ROWS)
    start = 0
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        yield Batch(rows.select(list(reads or names)), _written_out(rows.select(carried)), start)
        start += len(rows)


def _slices(X: Any, columns: Sequence[str] | None) -> Iterator[Batch]:
    if columns:
        raise InvalidValueError(f"columns are those of a table, and X is {type(X).__name__}; leave columns out.")
    rows = X.tocsr() if issparse(X) else np.asarray(X) if not hasattr(X, "shape") else X
    for start in range(0, rows.shape[0], BATCH_ROWS):
        yield Batch(rows[start : start + BATCH_ROWS], pa.table({}), start)


def _written_out(table: pa.Table) -> pa.Table:
    """Dictionaries differ from batch to batch, and not every format can hold that."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
