"""The rivals' cells of the suite alone: `python -m experiments.rival_cells [SEEDS]`. They outlive changes of ours."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from experiments import rivals, table_suite
from experiments.cells import Cells
from experiments.running import Run
from experiments.table_cells import plainly_clustered, scored


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    folder = Path("experiments/out")
    run = Run(Cells(folder / "cells"), folder, Console())
    # Seed by seed, so that a quick run finds its cells first.
    for seed in range(seeds):
        for table in map(table_suite.read, table_suite.NAMES):
            for rival in rivals.rivals_of(table.mixed is not None):
                scores = scored([plainly_clustered(run, table, rival, seed)], table.classes)
                run.note(f"{table.name} · {rival}, seed {seed}: NMI {scores.nmi:.3f}, ARI {scores.ari:.3f}")


if __name__ == "__main__":
    main()
