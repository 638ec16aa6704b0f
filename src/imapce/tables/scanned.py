"""A scan as a matrix: what its columns become is learned in one pass, then every block is encoded as it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from imapce.common.streams import Array, Places, Portion, Stream, in_order
from imapce.common.words import listing
from imapce.errors import InvalidValueError, Sentence
from imapce.tables.columns import (
    DROP_OR_CLIP,
    DROP_OR_FILL,
    MAKE_CATEGORICAL,
    MAKE_NUMBER,
    MOST_TEXT_VALUES,
    ONLY_MISSING,
    Unknown,
)
from imapce.tables.encode import encode
from imapce.tables.encoding import Encoding, Kind
from imapce.tables.scan import Scan

Missing = Literal["error", "mean"]

# Columns side by side, 16 or 200 of them: blocks of 2 MB were reduced at 0.8 to 3 GB/s of float32 by one core, those of
# 16 MB at half of that.
BLOCK_BYTES = 2 << 20


class ScannedMatrix(Stream):
    """The encoded rows of a scan.

    >>> from imapce.tables import write_table
    >>> from imapce.tables.scan import scan
    >>> write_table({"a": np.arange(3.0), "b": [True, False, True]}, "table.parquet")
    >>> encoding, matrix = learned(scan("table.parquet"))
    >>> next(next(matrix.portions()).blocks(None)).tolist()
    [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]]
    """

    def __init__(self, table: Scan, encoding: Encoding, *, missing: Missing = "error", unknown: Unknown = "error"):
        self.table, self.encoding = table.selected(encoding.columns), encoding
        self._missing: Missing = missing
        self._unknown: Unknown = unknown
        self._plain = set(encoding.kinds) == {"number"} and missing == "error"

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
        self, batch: pa.RecordBatch, columns: NDArray[np.intp] | None, places: Places | None
    ) -> Iterator[Array]:
        rows = pa.Table.from_batches([batch if places is None else batch.take(pa.array(places))])
        matrix = encode(rows, encoding=self.encoding, missing=self._missing, unknown=self._unknown).matrix
        matrix = matrix.astype(np.float64, copy=False)
        matrix = matrix if columns is None else matrix[:, columns]
        step = _block_rows(matrix.shape[1])
        yield from (matrix[start : start + step] for start in range(0, len(matrix), step))


def _numbers(batch: pa.RecordBatch, places: Places | None) -> Iterator[Array]:
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


def learned(table: Scan, *, missing: Missing = "error") -> tuple[Encoding, ScannedMatrix]:
    """The encoding of a scan, learned in one pass, and its matrix.

    >>> from imapce.tables import write_table
    >>> from imapce.tables.scan import scan
    >>> write_table(pa.table({"c": ["x", "y", "x", "x", "y"], "n": [1, 2, 3, 4, 5]}), "table.parquet")
    >>> learned(scan("table.parquet"))[0].feature_names
    ('c=x', 'c=y', 'n')
    """
    columns = [Column.of(table.schema.field(name)) for name in table.columns]
    require_usable(columns)

    def looked_at(batch: pa.RecordBatch) -> list[Column]:
        seen = [Column.of(table.schema.field(name)) for name in table.columns]
        for one, values in zip(seen, batch.columns, strict=True):
            one.look_at(values)
        return seen

    for seen in in_order(looked_at, table.batches()):
        columns = [one.joined(other) for one, other in zip(columns, seen, strict=True)]
    encoding = encoding_of(columns, table.n_rows, missing=missing)
    return encoding, ScannedMatrix(table, encoding, missing=missing)


def require_usable(columns: Sequence[Column]) -> None:
    """Refuse columns whose type cannot become numbers."""
    if refused := {one.name: one.refused for one in columns if one.refused}:
        _refuse(refused)


def encoding_of(columns: Sequence[Column], n_rows: int, *, missing: Missing) -> Encoding:
    """The encoding of columns that were looked at whole, or what is wrong with them in one sentence."""
    if refused := {one.name: reason for one in columns if (reason := one.fault(n_rows))}:
        _refuse(refused)
    if endless := {one.name: one.n_infinite for one in columns if one.n_infinite}:
        held = listing(f"{name!r} has {count}" for name, count in endless.items())
        raise InvalidValueError(
            "X", f"must hold finite values, and inf or -inf is in it ({held})", way_out=DROP_OR_CLIP
        )
    gaps = {one.name: one.n_missing for one in columns if one.n_missing}
    if gaps and missing == "error":
        held = listing(f"{name!r} has {count}" for name, count in gaps.items())
        raise InvalidValueError("X", f"must not hold missing values (NaN), and {held}", way_out=DROP_OR_FILL)
    return Encoding(
        tuple(one.name for one in columns),
        tuple(one.kind for one in columns),
        tuple(one.categories for one in columns),
        fill=tuple(value for one in columns for value in one.fill(n_rows)),
        gaps=tuple(gaps),
    )


def _refuse(reasons: dict[str, str]) -> None:
    faults = listing(Sentence(f"{name!r} ", reason) for name, reason in reasons.items())
    raise InvalidValueError(
        "X", Sentence("must have columns that can become numbers, but ", faults, "; choose others with columns=.")
    )


class Column:
    """What one pass learns of a column: its sum and gaps, or its categories and how often each occurs."""

    def __init__(self, name: str, kind: Kind, *, text: bool = False, refused: str = ""):
        self.name, self.kind, self.text, self.refused = name, kind, text, refused
        self.total, self.n_missing, self.n_infinite = 0.0, 0, 0
        self.counts: dict[Any, int] = {}

    @classmethod
    def of(cls, field: pa.Field) -> Column:
        """
        >>> Column.of(pa.field("day", pa.date32())).refused
        'is date32[day] (convert it to a number, boolean or categorical type, or drop it)'
        """
        kind, types = field.type, pa.types
        if types.is_boolean(kind):
            return cls(field.name, "boolean")
        if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
            return cls(field.name, "number")
        text = types.is_string(kind) or types.is_large_string(kind)
        if text or types.is_dictionary(kind):
            return cls(field.name, "category", text=text)
        return cls(field.name, "number", refused=Sentence(f"is {kind} (", MAKE_NUMBER, ")"))

    @property
    def categories(self) -> tuple[Any, ...]:
        """Sorted; none for numbers."""
        return tuple(sorted(self.counts))

    def look_at(self, values: pa.Array) -> None:
        """One batch of the column."""
        if self.kind == "category":
            counted = pc.value_counts(values)
            for value, count in zip(
                counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True
            ):
                if value is None:
                    self.n_missing += count
                else:
                    self._count(value, count)
            return
        # One read of float32 in half the time of a cast and a sum.
        quick = pa.types.is_float32(values.type) or pa.types.is_float64(values.type)
        total = pc.sum(values).as_py() if quick and not values.null_count else np.nan
        if not np.isfinite(total):
            numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            gone, endless = np.isnan(numbers), np.isinf(numbers)
            self.n_missing += int(gone.sum())
            self.n_infinite += int(endless.sum())
            total = float(numbers[~gone & ~endless].sum())
        self.total += total

    def joined(self, other: Column) -> Column:
        """What both looked at."""
        self.total += other.total
        self.n_missing += other.n_missing
        self.n_infinite += other.n_infinite
        for value, count in other.counts.items():
            self._count(value, count)
        return self

    def _count(self, value: Any, count: int) -> None:
        # Text of very many values is refused at the end; what is kept of it until then is bounded.
        if value in self.counts or len(self.counts) <= 1000 * MOST_TEXT_VALUES:
            self.counts[value] = self.counts.get(value, 0) + count

    def fault(self, n_rows: int) -> str:
        """Why the column cannot be used; "" where it can."""
        if self.n_missing == n_rows:
            return ONLY_MISSING
        if self.text and (len(self.counts) > MOST_TEXT_VALUES or 2 * len(self.counts) >= n_rows):
            return Sentence(f"is free text with {len(self.counts)} distinct values or more", MAKE_CATEGORICAL)
        return ""

    def fill(self, n_rows: int) -> list[float]:
        """Means of the matrix columns over the rows that have a value; of a category its shares."""
        present = max(1, n_rows - self.n_missing)
        if self.kind == "category":
            return [self.counts[value] / present for value in self.categories]
        return [self.total / present]
