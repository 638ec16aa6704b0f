"""One line of a table: what the paper prints and what we measured over several seeds or draws."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """`beside` are further scores of the same views, printed as columns of their own (means over the same runs)."""

    data: str
    method: str
    score: str
    paper: float | None
    measured: Sequence[float]
    runs: str
    beside: Mapping[str, float | None] = field(default_factory=dict)
    seconds: float | None = None

    @property
    def mean(self) -> float:
        return float(np.mean(self.measured))

    @property
    def deviation(self) -> float:
        return float(np.std(self.measured))

    @property
    def difference(self) -> float | None:
        return None if self.paper is None else self.mean - self.paper


def show(name: str, rows: Sequence[Row], folder: Path, console: Console) -> None:
    """Print the table "paper | ours ± sd" and write it, with every column, as NAME.csv."""
    others = list(dict.fromkeys(column for row in rows for column in row.beside))
    # Columns as wide as their words: a table that does not fit the window is better scrolled than broken.
    table = Table(title=f"{name}: the paper and ours", title_justify="left")
    for column in ("data", "method", "score"):
        table.add_column(column, no_wrap=True)
    for column in ("paper", "ours ± sd", *others, "runs", "seconds"):
        table.add_column(column, no_wrap=True, justify="right")
    previous = None
    for row in rows:
        if previous not in (None, row.data):
            table.add_section()
        table.add_row(
            "" if row.data == previous else row.data,
            row.method,
            row.score,
            _number(row.paper, 2),
            f"{_number(row.mean, 3)} ± {_number(row.deviation, 3)}",
            *(_number(row.beside.get(column), 3) for column in others),
            row.runs,
            _number(row.seconds, 2),
        )
        previous = row.data
    print_wide(table, console)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["data", "method", "score", "paper", "ours", "sd", "difference", *others, "runs", "seconds"])
        for row in rows:
            values = [row.paper, row.mean, row.deviation, row.difference, *(row.beside.get(one) for one in others)]
            writer.writerow([row.data, row.method, row.score, *values, row.runs, row.seconds])


def print_wide(table: Table, console: Console) -> None:
    """Print a table as wide as it is; `print` alone never goes beyond the console's own width."""
    width = Measurement.get(console, console.options.update(width=1000), table).maximum
    Console(file=console.file, width=max(width, console.width)).print(table)


def _number(value: float | None, digits: int) -> str:
    if value is None:
        return "–"
    return f"{value:,.2f}" if abs(value) >= 100 else f"{value:.{digits}f}"
