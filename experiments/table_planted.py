"""Where groups are planted, exactly they should be found; and one curve is no groups but no noise either: possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from experiments import planted_tables
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted, mean
from experiments.table_cells import POSSIBLE, VERDICTS, drawn, n_clusters

# Quickly, so many tables of each kind.
QUICK_RUNS = 3
FAR_APART = 8.0


@dataclass(frozen=True)
class Planted:
    """A kind of table with an answer: how it is drawn, when it is found, in how many of how many tables."""

    name: str
    draw: Callable[[int], tuple[NDArray[np.float64], NDArray[np.str_]]]
    groups: int
    least_ari: float
    runs: int
    enough: int

    def is_found(self, cell: Mapping[str, Any], classes: NDArray[np.str_]) -> bool:
        """Exactly the groups planted, told apart as well as they can be; one curve told as possible."""
        if self.groups == 1:
            return str(cell["verdict"]) == POSSIBLE
        agreed = adjusted_rand_score(classes, cell["labels"])
        return n_clusters(cell["labels"]) == self.groups and bool(agreed >= self.least_ari)


def _three(n_rows: int, n_columns: int) -> Planted:
    return Planted(
        f"three Gaussians {FAR_APART:g} sd apart, {n_rows}×{n_columns}",
        lambda seed: planted_tables.three_gaussians(seed, n_rows, n_columns, FAR_APART),
        groups=3,
        least_ari=0.99,
        runs=40,
        enough=39,
    )


KINDS = (
    *(_three(*shape) for shape in planted_tables.THREE_SHAPES),
    # Who knows both Gaussians gets an ARI of 0.70; half of it is not two other groups.
    Planted("two Gaussians at d' = 2.8, 2,000×8", planted_tables.overlapping_pair, 2, 0.35, 20, 18),
    Planted("two thin parallel sheets, 600×5", planted_tables.parallel_sheets, 2, 0.9, 20, 18),
    Planted("a noisy parabola, 500×5", planted_tables.parabola, 1, 0.0, 20, 18),
)


def measure(run: Run) -> tuple[Block, list[Wanted]]:
    """How often each planted answer comes out; in a quick run of three tables each, all three are wanted."""
    rows: list[list[Cell]] = []
    lines = []
    for kind in KINDS:
        runs = QUICK_RUNS if run.quick else kind.runs
        settings = {"suite": "planted", "kind": kind.name}
        found, aris, cells = 0, [], []
        for seed in range(runs):
            X, classes = kind.draw(seed)
            cells.append(drawn(run, settings, planted_tables.__name__, partial(np.asarray, X), seed))
            found += kind.is_found(cells[-1], classes)
            aris.append(float(adjusted_rand_score(classes, cells[-1]["labels"])))
        verdicts = " / ".join(str(sum(str(one["verdict"]) == verdict for one in cells)) for verdict in VERDICTS)
        clusters = mean([n_clusters(one["labels"]) for one in cells])
        rows.append([kind.name, f"{found} of {runs}", clusters, mean(aris), verdicts])
        what = f"told as possible, of {runs}" if kind.groups == 1 else f"exactly {kind.groups} found, of {runs}"
        lines.append(Wanted(f"{kind.name}: {what}", min(runs, kind.enough), float(found)))
        run.note(f"{kind.name}: as it should be in {found} of {runs}, {clusters:.1f} clusters")
    head = ("data", "as it should be", "mean clusters", "mean ARI", " / ".join(VERDICTS))
    return Block("Planted: exactly the groups that are there", head, rows), lines
