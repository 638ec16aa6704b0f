"""Explorations of generated tables with known groups: elliptical groups beside Gaussian mixtures, and wide tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments import generated_tables, rivals
from experiments.cells import fingerprint
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted, mean
from experiments.table_cells import Scores, drawn, scored

Draw = Callable[[int], tuple[generated_tables.Array, generated_tables.Labels]]

QUICK_TABLES, QUICK_WIDE = 5, 1
OURS, PEER = "ours", "best of four by BIC"
# Mean NMI above that of the peer, and mean ARI of wide tables.
WANTED_ABOVE, WANTED_WIDE = 0.08, 0.9


def measure(run: Run) -> tuple[list[Block], list[Wanted]]:
    """NMI and ARI on the 60 tables of elliptical groups and on the 12 wide ones; quickly on 5 and 1."""
    elliptical: list[list[Cell]] = []
    found: dict[str, list[Scores]] = {OURS: [], PEER: []}
    for seed in range(QUICK_TABLES if run.quick else generated_tables.N_TABLES):
        X, classes = generated_tables.elliptical_groups(seed)
        found[OURS].append(scored([_explored(run, generated_tables.elliptical_groups, seed)], classes))
        found[PEER].append(scored([_peer(run, seed, X)], classes))
        pairs = [f"{scores[-1].nmi:.2f} / {scores[-1].ari:.2f}" for scores in found.values()]
        verdict, clusters = found[OURS][-1].verdict, found[OURS][-1].clusters
        elliptical.append([str(seed), _shape(X), len(np.unique(classes)), verdict, clusters, *pairs])
        run.note(f"generated {seed}, {_shape(X)}: NMI / ARI {pairs[0]}, {PEER} {pairs[1]}")
    wide: list[list[Cell]] = []
    hidden = []
    for seed in range(QUICK_WIDE if run.quick else generated_tables.N_WIDE):
        X, classes = generated_tables.hidden_groups(seed)
        hidden.append(scored([_explored(run, generated_tables.hidden_groups, seed)], classes))
        one = hidden[-1]
        wide.append([str(seed), _shape(X), len(np.unique(classes)), one.verdict, one.clusters, one.nmi, one.ari])
        run.note(f"generated, wide {seed}, {_shape(X)}: NMI {one.nmi:.3f}, ARI {one.ari:.3f}")
    return _blocks(elliptical, wide, found, hidden), _wanted(found, hidden)


def _blocks(
    elliptical: list[list[Cell]], wide: list[list[Cell]], found: Mapping[str, list[Scores]], hidden: list[Scores]
) -> list[Block]:
    head = ("table", "shape", "groups", "verdict", "clusters")
    named: dict[str, list[Scores]] = {**found, "ours, wide": hidden}
    means: list[list[Cell]] = [
        [name, len(scores), *(mean([getattr(one, score) for one in scores]) for score in ("nmi", "ari", "seconds"))]
        for name, scores in named.items()
    ]
    return [
        Block(f"Generated: NMI / ARI, {len(elliptical)} tables of elliptical groups", (*head, *found), elliptical),
        Block(f"Generated: {len(wide)} wide tables with hidden groups", (*head, "NMI", "ARI"), wide),
        Block("Generated: means", ("method", "tables", "NMI", "ARI", "seconds"), means),
    ]


def _wanted(found: Mapping[str, list[Scores]], hidden: list[Scores]) -> list[Wanted]:
    """The acceptance of generated tables: how far above the peer, and the agreement with hidden groups."""
    nmi = {method: mean([one.nmi for one in scores]) for method, scores in found.items()}
    what = f"generated, {len(found[OURS])} tables: mean NMI over {PEER}"
    ari = mean([one.ari for one in hidden])
    return [
        Wanted(what, WANTED_ABOVE, nmi[OURS] - nmi[PEER]),
        Wanted(f"generated, {len(hidden)} wide tables: mean ARI", WANTED_WIDE, ari),
    ]


def _shape(X: np.ndarray) -> str:
    return f"{len(X):,}×{X.shape[1]}"


def _rows(draw: Draw, seed: int) -> generated_tables.Array:
    return draw(seed)[0]


def _explored(run: Run, draw: Draw, seed: int) -> dict[str, Any]:
    settings = {"suite": "generated", "kind": draw.__name__}
    return drawn(run, settings, generated_tables.__name__, partial(_rows, draw, seed), seed)


def _peer(run: Run, seed: int, X: np.ndarray) -> dict[str, Any]:
    """The cell of the peer, which no change of ours makes anew."""

    def compute() -> dict[str, Any]:
        start = time.process_time()
        labels = rivals.clustered(PEER, X, 0, 0)
        return {"seconds": time.process_time() - start, "labels": labels.astype(np.int32)}

    settings = {"suite": "generated peer", "seed": seed, "made": fingerprint(generated_tables.__name__)}
    return run.cells.recall(settings, rivals.code_of(PEER), compute)
