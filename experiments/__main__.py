"""The evaluation by name: `python -m experiments table1 [--quick] [--seeds N] [--out DIR]`, or `all` of it.

Finished cells are kept in DIR/cells, so an interrupted run goes on where it stopped; --fresh makes them anew. Figures
of a full run go to experiments/results, with the commit they were made on, and the README is written from them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

from rich.console import Console

from experiments.cells import Cells
from experiments.provenance import note_run
from experiments.results import Row, show
from experiments.running import Run

# The function of an experiment has its name; the module that holds it is imported when it is asked for. Those that take
# longest come first, so that two at a time end together; figures need the views of others.
EXPERIMENTS = {
    "tables": "tables",
    "ablation_mu": "ablation",
    "mnist_exploration": "exploration",
    "tuning": "tuning",
    "mnist_fmnist": "images",
    "cifar_fmnist": "images",
    "insight": "insight",
    "image_segmentation": "exploration",
    "known": "known",
    "batches": "batches",
    "table1": "table1",
    "adult": "table1",
    "figures": "figures",
    "timing": "timing",
}
# Measured alone: nothing may run beside it.
ALONE = ("timing",)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
OUT, RESULTS = Path("experiments/out"), Path("experiments/results")


def experiment(name: str) -> Callable[[Run], list[Row]]:
    """What makes an experiment, by its name."""
    found: Callable[[Run], list[Row]] = getattr(import_module(f"experiments.{EXPERIMENTS[name]}"), name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("name", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--quick", action="store_true", help="one or two seeds and draws, of 1,000 images")
    parser.add_argument("--seeds", type=int, metavar="N", help="so many seeds and draws everywhere")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for figures, cells and tables not kept")
    parser.add_argument("--fresh", action="store_true", help="compute every cell again")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="of all, so many experiments at a time")
    arguments = parser.parse_args()
    for option in ("seeds", "jobs"):
        if getattr(arguments, option) is not None and getattr(arguments, option) < 1:
            parser.error(f"--{option} must be at least 1; got {getattr(arguments, option)}")
    if arguments.name == "all" and arguments.jobs > 1:
        sys.exit(run_side_by_side(arguments.jobs, sys.argv[2:], arguments.out))
    for name in EXPERIMENTS if arguments.name == "all" else [arguments.name]:
        run_one(name, arguments)


def run_one(name: str, arguments: argparse.Namespace) -> None:
    """One experiment from its cells to its figures."""
    console = Console()
    whole = not arguments.quick and arguments.seeds is None and arguments.out == OUT
    cells = Cells(arguments.out / "cells", fresh=arguments.fresh)
    run = Run(cells, arguments.out, console, arguments.quick, arguments.seeds, RESULTS if whole else None)
    start = time.perf_counter()
    rows = experiment(name)(run)
    if rows:
        show(name, rows, run.results, console)
    note_run(run.results, name, cells.seconds)
    took = f"{time.perf_counter() - start:.0f} s, its cells {cells.seconds:.0f} s"
    console.print(f"{name}: {took}, written to {run.results}", highlight=False)


def run_side_by_side(jobs: int, options: list[str], out: Path) -> int:
    """All experiments in processes of their own, some at a time; what each prints goes to NAME.log in `out`."""
    out.mkdir(parents=True, exist_ok=True)

    def run(name: str) -> int:
        with open(out / f"{name}.log", "w", encoding="utf-8") as log:
            command = [sys.executable, "-m", "experiments", name, *options, "--jobs", "1"]
            # Each its share of the cores: more threads than cores are slower than one.
            threads = dict.fromkeys(THREADS, str(max(1, (os.cpu_count() or 1) // jobs)))
            environment = {**os.environ, **threads}
            status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=environment).returncode
        print(f"{name}: {'done' if status == 0 else 'FAILED, see ' + log.name}", flush=True)
        return status

    beside = [name for name in EXPERIMENTS if name not in ALONE]
    with ThreadPoolExecutor(jobs) as pool:
        failed = sum(map(bool, pool.map(run, beside)))
    return int(failed + sum(bool(run(name)) for name in ALONE) > 0)


if __name__ == "__main__":
    main()
