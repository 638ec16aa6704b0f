"""Run an experiment by name: `python -m experiments table1 [--quick] [--out DIR]`; `all` runs every one."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments import exploration, table1
from experiments.results import Row

EXPERIMENTS: dict[str, Callable[[bool], list[Row]]] = {
    "table1": table1.rows,
    "image_segmentation": exploration.image_segmentation,
    "mnist_exploration": exploration.mnist_exploration,
}


def show(name: str, rows: list[Row], folder: Path) -> None:
    table = Table(title=f"{name}: the paper and ours")
    for column in ("data", "score", "paper", "ours ± sd", "floor", "runs", "seconds a fit"):
        table.add_column(column)
    for row in rows:
        table.add_row(*row.cells())
    Console().print(table)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["data", "score", "paper", "ours", "sd", "floor", "runs", "seconds"])
        writer.writerows(row.values() for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("name", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--quick", action="store_true", help="fewer seeds and draws")
    parser.add_argument("--out", type=Path, default=Path("experiments/out"), help="folder for the CSV files")
    arguments = parser.parse_args()
    for name in EXPERIMENTS if arguments.name == "all" else [arguments.name]:
        show(name, EXPERIMENTS[name](arguments.quick), arguments.out)


if __name__ == "__main__":
    main()
