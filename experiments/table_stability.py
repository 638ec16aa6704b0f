"""Whether an answer rests on which rows were there: two random 80 % of the rows of each table, explored each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from experiments import table_suite
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted, mean
from experiments.table_cells import CODE, to_its_end

SHARE = 0.8
PAIRS, QUICK_PAIRS = 3, 1
LEAST_ARI, LEAST_AGREED = 0.8, 0.9


def rows_of(n_rows: int, pair: int, half: int) -> NDArray[np.intp]:
    """Places of a random 80 % of the rows, in their order.

    >>> len(rows_of(100, 0, 0)), bool((rows_of(100, 0, 0) == rows_of(100, 0, 1)).all())
    (80, False)
    """
    rng = np.random.default_rng([pair, half, n_rows])
    return np.sort(rng.permutation(n_rows)[: round(SHARE * n_rows)])


def measure(run: Run) -> tuple[Block, list[Wanted]]:
    """ARI on the common rows and whether the verdicts are the same, table by table."""
    pairs = QUICK_PAIRS if run.quick else PAIRS
    rows: list[list[Cell]] = []
    aris, agreed = [], []
    for table in map(table_suite.read, table_suite.NAMES):
        found = [_pair(run, table, pair) for pair in range(pairs)]
        aris.append(mean([one["ari"] for one in found]))
        agreed.append(mean([float(one["agreed"]) for one in found]))
        told = ", ".join(one["verdicts"] for one in found)
        rows.append([table.name, aris[-1], agreed[-1], told])
        run.note(f"{table.name}, two random 80 %: ARI {aris[-1]:.3f}, {told}")
    rows.append(["mean", mean(aris), mean(agreed), ""])
    which = f"{len(aris)} tables"
    lines = [
        Wanted(f"two random 80 % of the rows, {which}: mean ARI", LEAST_ARI, mean(aris)),
        Wanted(f"two random 80 % of the rows, {which}: share with one verdict", LEAST_AGREED, mean(agreed)),
    ]
    head = ("table", "ARI on common rows", "one verdict", "verdicts")
    title = f"Stability: two random 80 % of the rows, {pairs} pair{'s' * (pairs > 1)} a table, {which}"
    return Block(title, head, rows, "Two answers without a cluster agree: an ARI of 1."), lines


def _pair(run: Run, table: table_suite.Table, pair: int) -> dict[str, Any]:
    places = [rows_of(len(table.X), pair, half) for half in (0, 1)]
    cells = [_explored(run, table, pair, half) for half in (0, 1)]
    common = np.intersect1d(places[0], places[1])
    labels = [
        np.asarray(cell["labels"])[np.searchsorted(inside, common)] for cell, inside in zip(cells, places, strict=True)
    ]
    verdicts = [str(cell["verdict"]) for cell in cells]
    return {
        "ari": float(adjusted_rand_score(*labels)),
        "agreed": verdicts[0] == verdicts[1],
        "verdicts": " + ".join(verdicts),
    }


def _explored(run: Run, table: table_suite.Table, pair: int, half: int) -> dict[str, Any]:
    """The cell of an exploration of one random 80 %."""
    settings = {"suite": "stability", "table": table.name, "data": table.digest, "pair": pair, "half": half}

    def compute() -> dict[str, Any]:
        return to_its_end(table.rows(rows_of(len(table.X), pair, half)), 0, {})

    return run.cells.recall({**settings, "share": SHARE}, CODE, compute)
