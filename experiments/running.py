"""What an experiment is run with: its cells, where it writes, how many seeds and draws; a line for each cell done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from experiments.cells import Cells
from experiments.methods import Method, view
from experiments.problems import TABLE_1, Problem, problem
from experiments.results import Row
from experiments.scores import scores

# Seeds on fixed data and draws of images, (quick, full); slow maps of pairs outside Table 1 are drawn once.
SEEDS = {"IMAPCE": (2, 5)}
OTHER_SEEDS = (1, 3)
DRAWS = {"IMAPCE": (1, 3), "SteepestIMAPCE": (1, 3), "CPCA": (1, 3), "GCPCA": (1, 3), "LEACE": (1, 3), "SIDE": (1, 1)}
OTHER_DRAWS = (1, 2)
# Slow on many rows: they look at all pairs of them, or (SIDE) at a covariance for every class.
PAIRWISE = ("CTSNE", "RevisedCTSNE", "FairNeRV", "FairTNeRV", "SIDE")
# A quick run draws only so many images.
QUICK_ROWS = 1000


@dataclass(frozen=True)
class Run:
    """`seeds` overrules the number of seeds and draws; `quick` takes one or two of each."""

    cells: Cells
    folder: Path
    console: Console
    quick: bool = False
    seeds: int | None = None
    # Tables of figures go into it, else beside the pictures.
    kept: Path | None = None

    @property
    def results(self) -> Path:
        return self.kept or self.folder

    def problem(self, name: str, draw: int = 0) -> Problem:
        on = problem(name, draw)
        return on.sample(QUICK_ROWS) if self.quick and on.is_images else on

    def count(self, method: Method, on: Problem) -> int:
        """How many seeds or draws; one is enough where nothing is random."""
        if not on.is_images and not method.seeded:
            return 1
        if on.name.endswith("as uint8") and not self.seeds:
            # The authors' sums are there to explain; the right ones carry the figures.
            return 1
        if on.is_images and method.estimator in PAIRWISE and on.name not in TABLE_1 and not self.seeds:
            return 1
        table, others = (DRAWS, OTHER_DRAWS) if on.is_images else (SEEDS, OTHER_SEEDS)
        return self.seeds or table.get(method.estimator, others)[0 if self.quick else 1]

    def rows(
        self, method: Method, name: str, wanted: dict[str, tuple[str, float | None]], beside: Sequence[str] = ()
    ) -> list[Row]:
        """One row for each wanted score {key: (title, the paper's number)} of a method on a problem."""
        first = self.problem(name)
        n_runs = self.count(method, first)
        found = []
        for run in range(n_runs):
            on = self.problem(name, run) if run and first.is_images else first
            found.append(scored(self.cells, method, on, run))
            summary = ", ".join(f"{title} {found[-1][key]:.3f}" for key, (title, _) in wanted.items())
            self.note(f"{name} · {method.name} · run {run + 1} of {n_runs}: {summary}")
        others = {column: float(np.mean([one[column] for one in found])) for column in beside if column in found[0]}
        seconds = float(np.median([one["seconds"] for one in found]))
        return [
            Row(name, method.name, title, paper, [one[key] for one in found], _runs(first, n_runs), others, seconds)
            for key, (title, paper) in wanted.items()
        ]

    def note(self, line: str) -> None:
        self.console.print(line, style="dim", highlight=False, markup=False, soft_wrap=True)


def scored(cells: Cells, method: Method, problem: Problem, seed: int) -> dict[str, float]:
    """Every score of the view a method gives of a problem, and the seconds it took."""
    cell = view(cells, method, problem, seed)
    embedding = np.asarray(cell["embedding"], dtype=np.float64)
    # The view itself, not only its settings: a view made anew by changed code is scored anew.
    digest = float(np.sum(embedding * np.arange(1, embedding.size + 1).reshape(embedding.shape)))
    settings = {**method.settings(problem, seed), "scores": True, "view": digest}
    return {
        **cells.recall(settings, "experiments.scores", lambda: scores(problem, embedding)),
        "seconds": cell["seconds"],
    }


def _runs(on: Problem, count: int) -> str:
    """The seeds or draws in words, and the rows where they are fewer than the paper's."""
    unit = "draw" if on.is_images else "seed"
    which = f"{unit} 0" if count == 1 else f"{unit}s 0–{count - 1}"
    return which if len(on.X) != QUICK_ROWS or not on.is_images else f"{which}, {QUICK_ROWS:,} rows"
