"""TODO-DOC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from imapce.common.whole_files import writable_target
from imapce.errors import InvalidValueError
from imapce.exploration.session import Exploration
from imapce.tables.encode import column_names
from imapce.tables.files import table_target


def output_table(carried: pa.Table, view: NDArray[np.float64]) -> pa.Table:
    """The columns that go along, the row number and the axes; a name that is taken gets _1, _2, ... appended.

    >>> output_table(pa.table({"row": ["a"]}), np.zeros((1, 2))).column_names
    ['row', 'row_1', 'imapce0', 'imapce1']
    """
    axes = {f"imapce{axis}": view[:, axis] for axis in range(view.shape[1])}
    return beside(carried, {"row": np.arange(len(view))} | axes)


def cluster_table(carried: pa.Table, exploration: Exploration) -> pa.Table:
    """The columns that go along and those of `Exploration.to_frame`: row, cluster, step, distinctness, coordinates."""
    frame = exploration.to_frame()
    names = column_names(frame, "the result")
    return beside(carried, {name: np.asarray(frame[name]) for name in names})


def beside(carried: pa.Table, added: Mapping[str, NDArray]) -> pa.Table:
    columns = dict(zip(carried.column_names, carried.columns, strict=True))
    for name, values in added.items():
        free, number = name, 0
        while free in columns:
            number += 1
            free = f"{name}_{number}"
        columns[free] = pa.array(values)
    return pa.table(columns)


def check_targets(
    *,
    table: str | None,
    plot: str | None = None,
    report: str | None = None,
    inputs: Iterable[str | None] = (),
    others: Mapping[str, str | None] | None = None,
) -> None:
    """Refuse, before any work, outputs that cannot be written, that collide, or that would replace an input."""
    targets: dict[str, Path] = {}
    if table is not None:
        targets["--output"] = table_target(table)
    if plot is not None:
        # matplotlib takes half a second to import, so only where a figure is asked for.
        from imapce.plotting import figure_target

        targets["--plot"] = figure_target(plot)
    if report is not None:
        from imapce.plotting import report_target

        targets["--report"] = report_target(report)
    targets |= {option: writable_target(path) for option, path in (others or {}).items() if path is not None}
    read = {Path(path).resolve() for path in inputs if path is not None}
    for option, target in targets.items():
        if target in read:
            raise InvalidValueError(f"{option} must not replace a file that is read, got {target.name!r}: rename it.")
    if len(set(targets.values())) < len(targets):
        raise InvalidValueError(f"{' and '.join(targets)} must name different files: rename one of them.")
