"""One line of a table: what the paper prints and what we measured over several seeds or draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from experiments.result_files import Figure, write_figures


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

    def figures(self, block: str) -> Iterator[Figure]:
        """Every figure of the row by its name: the paper's, ours, its deviation, what stands beside."""
        named = {"paper": self.paper, "ours": self.mean, "sd": self.deviation, **self.beside, "runs": self.runs}
        for column, value in {**named, "seconds": self.seconds}.items():
            if value is not None:
                yield block, f"{self.data} · {self.method} · {self.score}", column, value


def show(name: str, rows: Sequence[Row], folder: Path, console: Console) -> None:
    """Print the table "paper | ours ± sd" and write its figures as NAME.csv."""
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
    write_figures(folder / f"{name}.csv", (figure for row in rows for figure in row.figures(name)))


def print_wide(table: Table, console: Console) -> None:
    """Print a table as wide as it is; `print` alone never goes beyond the console's own width."""
    width = Measurement.get(console, console.options.update(width=1000), table).maximum
    Console(file=console.file, width=max(width, console.width)).print(table)


def _number(value: float | None, digits: int) -> str:
    if value is None:
        return "–"
    return f"{value:,.2f}" if abs(value) >= 100 else f"{value:.{digits}f}"
