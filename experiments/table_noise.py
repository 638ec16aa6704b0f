"""Where there is nothing, nothing should be called clear: verdicts on 17 kinds of noise, and on noise that is wide."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments import made_tables, noise_tables
from experiments.cells import fingerprint
from experiments.judging import accuracy
from experiments.plain_rows import pca_plane
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted, mean
from experiments.table_cells import CLEAR, POSSIBLE, VERDICTS, drawn, n_clusters
from imapce.estimators.imapce import IMAPCE

RUNS, QUICK_RUNS = 20, 3
# Shares of the tables of noise: called clear, called clear or possible, the latter in the worst kind.
MOST_CLEAR, MOST_TOLD, MOST_OF_A_KIND = 0.01, 0.07, 0.20


def is_empty(labels: Any) -> bool:
    """No cluster was taken out of the rest: all rows left, or one cluster that is more than half of them.

    >>> is_empty([-1, -1, -1]), is_empty([0, 0, -1]), is_empty([0, -1, -1]), is_empty([0, 0, 1])
    (True, True, False, False)
    """
    labels = np.asarray(labels)
    taken = np.unique(labels[labels >= 0])
    return len(taken) == 0 or (len(taken) == 1 and bool(np.mean(labels >= 0) > 0.5))


def measure(run: Run) -> tuple[list[Block], list[Wanted]]:
    """The verdicts on every kind of noise, 20 tables each, quickly 3; and tables of 5,000 columns."""
    runs = QUICK_RUNS if run.quick else RUNS
    found: dict[str, list[Mapping[str, Any]]] = {}
    for kind in noise_tables.KINDS:
        found[kind] = [_explored(run, kind, seed) for seed in range(runs)]
        run.note(f"noise, {kind}: " + ", ".join(f"{verdict} {_count(found[kind], verdict)}" for verdict in VERDICTS))
    wide, of_wide = _wide_blocks(run, 1 if run.quick else 3)
    return [verdicts_block(found), wide], [*wanted(found), *of_wide]


def verdicts_block(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Block:
    """How many tables of each kind are called what, and how many clusters are taken."""
    rows: list[list[Cell]] = []
    every = [one for cells in found.values() for one in cells]
    for kind, cells in [*found.items(), ("all", every)]:
        taken = mean([n_clusters(one["labels"]) for one in cells])
        rows.append([kind, *(_count(cells, verdict) for verdict in VERDICTS), taken])
    shape = "100 to 2,000 rows, 3 to 80 columns"
    return Block(f"Noise: what it is called, {shape}", ("kind", *VERDICTS, "mean clusters"), rows)


def wanted(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Wanted]:
    """The acceptance of noise: seldom clear, not often possible, and no kind that fails."""
    every = [one for cells in found.values() for one in cells]
    told = {kind: (_count(cells, CLEAR) + _count(cells, POSSIBLE)) / len(cells) for kind, cells in found.items()}
    called = [kind for kind, cells in found.items() if _count(cells, CLEAR)]
    worst = max(told, key=lambda one: told[one])
    what = f"noise, {len(every)} tables: share called"
    return [
        Wanted(f"{what} clear", MOST_CLEAR, _count(every, CLEAR) / len(every), True, ", ".join(called)),
        Wanted(f"{what} clear or possible", MOST_TOLD, mean([told[kind] for kind in found]), True),
        Wanted(f"{what} clear or possible, worst kind", MOST_OF_A_KIND, told[worst], True, worst),
    ]


def _count(cells: Sequence[Mapping[str, Any]], verdict: str) -> int:
    return sum(str(one["verdict"]) == verdict for one in cells)


def _explored(run: Run, kind: str, seed: int) -> dict[str, Any]:
    settings = {"suite": "noise", "kind": kind}
    return drawn(run, settings, noise_tables.__name__, partial(noise_tables.noise, kind, seed), seed)


def _wide_blocks(run: Run, seeds: int) -> tuple[Block, list[Wanted]]:
    found = []
    for seed in range(seeds):
        made = {"suite": "wide", "shape": made_tables.WIDE, "seed": seed, "made": fingerprint(made_tables.__name__)}
        scores = run.cells.recall(made, "imapce.estimators.imapce", partial(_wide_scores, seed))
        draw = partial(made_tables.wide_noise, seed)
        labels = drawn(run, {"suite": "wide noise"}, made_tables.__name__, draw, seed)["labels"]
        found.append({**scores, "none": float(is_empty(labels)), "clusters": float(n_clusters(labels))})
    means = {key: mean([one[key] for one in found]) for key in ("view", "PCA", "none", "clusters")}
    rows: list[list[Cell]] = [
        ["planted: 15-NN of the view", means["view"]],
        ["planted: 15-NN of PCA", means["PCA"]],
        ["noise: share of runs without a cluster", means["none"]],
        ["noise: mean clusters", means["clusters"]],
        ["noise: what a fit says", str(found[0]["said"])],
    ]
    run.note(f"200×5,000: view {means['view']:.3f}, PCA {means['PCA']:.3f}, noise {means['clusters']:.1f} clusters")
    lines = [
        Wanted("200×5,000 planted: 15-NN of the view", 0.95, means["view"]),
        Wanted("200×5,000 noise: share of runs without a cluster", 1.0, means["none"]),
    ]
    return Block("Wide: 200×5,000", ("what", "seen"), rows), lines


def _wide_scores(seed: int) -> dict[str, Any]:
    X, classes = made_tables.wide_planted(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        view = IMAPCE(random_state=seed).fit_transform(X)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = IMAPCE(random_state=seed).fit(made_tables.wide_noise(seed))
    said = [model.stop_reason_, *(str(one.message) for one in heard)]
    return {"view": accuracy(view, classes), "PCA": accuracy(pca_plane(X), classes), "said": " ".join(said)}
