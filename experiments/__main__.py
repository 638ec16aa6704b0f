"""The evaluation by name: `python -m experiments table1 [--quick] [--seeds N] [--out DIR]`, or `all` of it.

Finished cells are kept in DIR/cells, so an interrupted run goes on where it stopped; --fresh makes them anew.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from rich.console import Console

from experiments.cells import Cells
from experiments.results import Row, show
from experiments.running import Run

# The function of an experiment has its name; the module that holds it is imported when it is asked for.
EXPERIMENTS = {
    "timing": "timing",
    "table1": "table1",
    "adult": "table1",
    "mnist_fmnist": "images",
    "cifar_fmnist": "images",
    "image_segmentation": "exploration",
    "mnist_exploration": "exploration",
    "ablation_mu": "ablation",
    "insight": "insight",
    "tables": "tables",
    "known": "known",
    "batches": "batches",
    "tuning": "tuning",
    "figures": "figures",
}


def experiment(name: str) -> Callable[[Run], list[Row]]:
    """What makes an experiment, by its name."""
    found: Callable[[Run], list[Row]] = getattr(import_module(f"experiments.{EXPERIMENTS[name]}"), name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("name", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--quick", action="store_true", help="one or two seeds and draws, of 1,000 images")
    parser.add_argument("--seeds", type=int, metavar="N", help="so many seeds and draws everywhere")
    parser.add_argument(
        "--out", type=Path, default=Path("experiments/out"), help="folder for tables, figures and cells"
    )
    parser.add_argument("--fresh", action="store_true", help="compute every cell again")
    arguments = parser.parse_args()
    if arguments.seeds is not None and arguments.seeds < 1:
        parser.error(f"--seeds must be at least 1; got {arguments.seeds}")
    console = Console()
    cells = Cells(arguments.out / "cells", fresh=arguments.fresh)
    run = Run(cells, arguments.out, console, arguments.quick, arguments.seeds)
    for name in EXPERIMENTS if arguments.name == "all" else [arguments.name]:
        start = time.perf_counter()
        rows = experiment(name)(run)
        if rows:
            show(name, rows, arguments.out, console)
        console.print(f"{name}: {time.perf_counter() - start:.0f} s, written to {arguments.out}", highlight=False)


if __name__ == "__main__":
    main()
