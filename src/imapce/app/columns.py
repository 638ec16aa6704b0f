"""The columns of what is explored, one at a time and as they were written: to colour by, to name rows by, to describe.

A column comes from the table it was read in; where there is none, from the rows of the exploration themselves.
"""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from imapce.exploration.session import Exploration
from imapce.plotting.labels import are_drawn_as_classes

# Columns kept once they were asked for: 16 of a million rows are 128 MB.
KEPT = 16
# Text of more values is not offered to colour by.
MOST_TEXTS = 200


class Columns:
    """Values by the name of their column; `table` holds those that were read, the exploration those it made of them.

    >>> rows = np.random.default_rng(0).normal(size=(20, 3))
    >>> bool(Columns(Exploration(rows)).values("x1")[0] == rows[0, 1])
    True
    """

    def __init__(self, exploration: Exploration, table: pa.Table | None = None, matrix: Any = None):
        self._exploration, self._table, self._matrix = exploration, table, matrix
        self._kept: OrderedDict[str, NDArray[Any]] = OrderedDict()
        read = [] if table is None else list(table.column_names)
        # A feature that is a column of the table as it stands is one column, not two.
        self.names = read + [name for name in exploration.feature_names if name not in read and "=" not in name]

    def values(self, name: str) -> NDArray[Any]:
        """(n,): numbers as float64 with NaN where one is missing, anything else as objects with None."""
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        found = self._read(name) if self._table is not None and name in self._table.column_names else self._made(name)
        self._kept[name] = found
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found

    def kind(self, name: str) -> str:
        """Of one: "number", "category" of few values, or "text" of many."""
        values = self.values(name)
        if values.dtype.kind == "f":
            present = values[~np.isnan(values)]
            # Most measurements are known as such by their first rows.
            few = len(present) and are_drawn_as_classes(len(np.unique(present[:5000])), len(present))
            return "category" if few and are_drawn_as_classes(len(np.unique(present)), len(present)) else "number"
        seen = {value for value in values[:5000] if value is not None}
        return "category" if len(seen) <= MOST_TEXTS else "text"

    def row(self, position: int, names: list[str]) -> dict[str, Any]:
        """One row in words, for these columns."""
        return {name: told(self.values(name)[position]) for name in names}

    def pixels(self, position: int) -> NDArray[np.float64]:
        """All features of one row, as they were written, where a row is a picture."""
        names = self._exploration.feature_names
        if self._matrix is not None:
            one = self._matrix[position : position + 1]
            return np.asarray(one.toarray() if hasattr(one, "toarray") else one, dtype=np.float64).ravel()
        assert self._table is not None
        return np.array([self._table.column(name)[position].as_py() for name in names], dtype=np.float64)

    def _read(self, name: str) -> NDArray[Any]:
        assert self._table is not None
        column = self._table.column(name)
        kind = column.type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
        return np.array(column.to_pylist(), dtype=object)

    def _made(self, name: str) -> NDArray[np.float64]:
        names = self._exploration.feature_names
        axis = np.zeros((1, len(names)))
        axis[0, names.index(name)] = 1.0
        unit = SimpleNamespace(components=axis, mean=np.zeros(len(names)), scale=np.ones(len(names)), explained=None)
        return self._exploration.coordinates(unit)[:, 0]  # type: ignore[arg-type]


def told(value: Any) -> Any:
    """A value as a page shows it: short, and None where it is missing.

    >>> told(0.1 + 0.2), told(3.0), told(float("nan"))
    (0.3, 3, None)
    """
    if value is None or (isinstance(value, float | np.floating) and not np.isfinite(value)):
        return None
    if isinstance(value, float | np.floating):
        short = float(f"{float(value):.6g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return int(value)
    return " ".join(str(value).split())[:200]
