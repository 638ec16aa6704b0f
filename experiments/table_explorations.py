"""Explorations of the suite's tables to their end, beside plain clusterings: NMI, ARI, clusters, seeds, seconds.

Rows never taken count as one more cluster, for us as for HDBSCAN. Seconds are of the processor, not of the clock, so
that a busy machine does not change them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from experiments import rivals, table_suite
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted, mean, rules_block
from imapce.exploration import Exploration
from imapce.exploration.clustering import METHODS

OURS = "ours"
PAPER = "the paper's way"
# Rules that have variants, by what they set; the default is among them. A new rule is one more line.
RULES: dict[str, dict[str, Any]] = {
    "clusterer='joint'": {"clusterer": "joint"},
    **{f"clusterer={one!r}": {"clusterer": one} for one in METHODS},
    "clusterer='dpgmm', refine=False": {"clusterer": "dpgmm", "refine": False},
}
SMALL_TABLE = 600


@dataclass(frozen=True)
class Scores:
    """One method on one table: means over the seeds, and the mean ARI of every two of them."""

    nmi: float
    ari: float
    clusters: float
    agreement: float
    seconds: float


def explored(run: Run, table: table_suite.Table, way: str, options: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The cell of one exploration to its end."""

    def compute() -> dict[str, Any]:
        start = time.process_time()
        labels = Exploration(table.X, random_state=seed, **options).run().labels_
        return {"seconds": time.process_time() - start, "labels": np.asarray(labels, dtype=np.int32)}

    asked = {name: repr(value) for name, value in options.items()}
    return run.cells.recall({**_settings(table, way, seed), "options": asked}, "imapce.exploration", compute)


def plainly_clustered(run: Run, table: table_suite.Table, rival: str, seed: int) -> dict[str, Any]:
    """The cell of one plain clustering."""

    def compute() -> dict[str, Any]:
        start = time.process_time()
        labels = rivals.clustered(rival, table.X, table.n_classes, seed)
        return {"seconds": time.process_time() - start, "labels": labels.astype(np.int32)}

    return run.cells.recall(_settings(table, rival, seed), "experiments.rivals", compute)


def scored(cells: Sequence[Mapping[str, Any]], classes: np.ndarray) -> Scores:
    """The scores of the cells of all seeds."""
    found = [np.asarray(cell["labels"]) for cell in cells]
    pairs = [adjusted_rand_score(one, other) for one, other in itertools.combinations(found, 2)]
    return Scores(
        mean([normalized_mutual_info_score(classes, labels) for labels in found]),
        mean([adjusted_rand_score(classes, labels) for labels in found]),
        mean([len(np.unique(labels[labels >= 0])) for labels in found]),
        mean(pairs),
        mean([float(cell["seconds"]) for cell in cells]),
    )


Found = dict[str, dict[str, Scores]]


def measure(run: Run, seeds: int) -> Found:
    """{method: {table: scores}} of ours, the paper's way and every rival that is installed."""
    methods = [OURS, PAPER, *(one for one in rivals.CLUSTERERS if rivals.is_installed(one))]
    found: Found = {method: {} for method in methods}
    for table in map(table_suite.read, table_suite.NAMES):
        for method in methods:
            if method in rivals.CLUSTERERS:
                cells = [plainly_clustered(run, table, method, seed) for seed in range(seeds)]
            else:
                options = {"method": "paper"} if method == PAPER else {}
                cells = [explored(run, table, method, options, seed) for seed in range(seeds)]
            scores = found[method][table.name] = scored(cells, table.classes)
            run.note(f"{table.name} · {method}: NMI {scores.nmi:.3f}, ARI {scores.ari:.3f}, {scores.seconds:.1f} s")
    return found


def blocks(found: Found) -> list[Block]:
    """NMI / ARI of all methods, ours in detail and the means, of each group of tables."""
    return [block for group in table_suite.GROUPS for block in _blocks_of(group, of_group(found, group))]


def of_group(found: Found, group: str) -> Found:
    names = table_suite.GROUPS[group]
    return {method: {one: tables[one] for one in names if one in tables} for method, tables in found.items()}


def _blocks_of(group: str, found: Found) -> list[Block]:
    tables = list(found[OURS])
    which = f"{len(tables)} {group} tables"
    pairs: list[list[Cell]] = [
        [table, *(f"{found[method][table].nmi:.2f} / {found[method][table].ari:.2f}" for method in found)]
        for table in tables
    ]
    detail: list[list[Cell]] = [
        [
            table,
            *(f"{found[method][table].clusters:.1f}" for method in (OURS, PAPER, rivals.BIC)),
            *(found[method][table].agreement for method in (OURS, rivals.BIC)),
            *(f"{found[method][table].seconds:.2f}" for method in (OURS, PAPER, rivals.BIC)),
            found[OURS][table].nmi - found[rivals.BIC][table].nmi,
        ]
        for table in tables
    ]
    means: list[list[Cell]] = [
        [method, *(mean([getattr(one, score) for one in found[method].values()]) for score in SCORES)]
        for method in found
    ]
    return [
        Block(f"Explorations: NMI / ARI, {which}", ("table", *found), pairs),
        Block(
            f"Explorations: clusters, agreement of seeds (ARI), seconds, gap to the mixture, {which}", DETAIL, detail
        ),
        Block(f"Explorations: means over {which}", ("method", *SCORES), means),
    ]


SCORES = ("nmi", "ari", "clusters", "agreement", "seconds")
DETAIL = (
    *("table", "clusters: ours", "paper's", "mixture", "agreement: ours", "mixture"),
    *("seconds: ours", "paper's", "mixture", "NMI over the mixture"),
)


def wanted(found: Found) -> list[Wanted]:
    """The acceptance of explorations: against the best rival not told k, against k-means that is, table by table."""
    return [line for group in table_suite.GROUPS for line in _wanted_of(group, of_group(found, group))]


def _wanted_of(group: str, found: Found) -> list[Wanted]:
    lines = []
    for score in ("nmi", "ari"):
        means = {method: mean([getattr(one, score) for one in tables.values()]) for method, tables in found.items()}
        rest = {method: value for method, value in means.items() if method not in (OURS, PAPER, rivals.TOLD)}
        best = max(rest, key=lambda one: rest[one])
        what = f"{group}: mean {score.upper()} over"
        lines.append(Wanted(f"{what} the best rival not told k", 0.03, means[OURS] - rest[best], where=best))
        lines.append(Wanted(f"{what} k-means told k", 0.0, means[OURS] - means[rivals.TOLD]))
    gaps = {table: found[OURS][table].nmi - found[rivals.BIC][table].nmi for table in found[OURS]}
    worst = min(gaps, key=lambda one: gaps[one])
    lines.append(Wanted(f"{group}: NMI over the mixture by BIC, worst table", -0.05, gaps[worst], where=worst))
    agreement = mean([one.agreement for one in found[OURS].values()])
    return [*lines, Wanted(f"{group}: agreement of seeds, mean ARI", 0.9, agreement)]


def rules(run: Run, seeds: int) -> Block:
    """The rules an exploration could go by, judged on tables they were not chosen on; quickly on small tables only."""
    tables = [
        one for one in map(table_suite.read, table_suite.DEVELOPMENT) if not run.quick or len(one.X) < SMALL_TABLE
    ]
    by_rule: dict[str, dict[str, float]] = {}
    for rule, options in RULES.items():
        by_rule[rule] = {
            table.name: scored([explored(run, table, rule, options, seed) for seed in range(seeds)], table.classes).nmi
            for table in tables
        }
        run.note(f"rule {rule}: NMI {mean(list(by_rule[rule].values())):.3f}")
    return rules_block(f"Rules of explorations: mean NMI, {len(tables)} tables", by_rule)


def _settings(table: table_suite.Table, way: str, seed: int) -> dict[str, Any]:
    return {"suite": "exploration", "table": table.name, "data": table.digest, "way": way, "seed": seed}
