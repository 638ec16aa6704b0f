"""Cells of the suite: an exploration of a table to its end, and a rival's clustering of it; and how both are scored.

Rows never taken count as one more cluster, for us as for HDBSCAN. Seconds are of the processor, not of the clock, so
that a busy machine does not change them.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from experiments import rivals, table_suite
from experiments.cells import fingerprint
from experiments.running import Run
from experiments.table_blocks import mean
from imapce.estimators.imapce import IMAPCE
from imapce.exploration import Exploration

CODE = "imapce.exploration"
CLEAR, POSSIBLE, NONE = "clear", "possible", "none"
VERDICTS = (CLEAR, POSSIBLE, NONE)


@dataclass(frozen=True)
class Scores:
    """One method on one table: means over the seeds, the mean ARI of every two of them, the first seed's verdict."""

    nmi: float
    ari: float
    clusters: float
    agreement: float
    seconds: float
    verdict: str = ""


def verdict_of(exploration: Exploration) -> str:
    """Whether an exploration says that its rows are several groups; "" where it is not asked to say it."""
    structure = exploration.structure
    return "" if structure is None else str(structure.verdict)


def to_its_end(table: Any, seed: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The labels, the verdict and the seconds of an exploration of an array or of a mixed table."""
    estimator = {"estimator": IMAPCE(outliers="keep", missing="mean")} if isinstance(table, pa.Table) else {}
    start = time.process_time()
    with warnings.catch_warnings():
        # What a session says about such rows is for its user; here it is counted what it takes.
        warnings.simplefilter("ignore")
        exploration = Exploration(table, random_state=seed, **{**estimator, **options}).run()
    labels = np.asarray(exploration.labels_, dtype=np.int32)
    return {"seconds": time.process_time() - start, "labels": labels, "verdict": verdict_of(exploration)}


def explored(run: Run, table: table_suite.Table, way: str, options: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The cell of one exploration to its end."""
    asked = {name: repr(value) for name, value in options.items()}
    settings = {**_settings(table, way, seed), "suite": "exploration", "options": asked}
    return run.cells.recall(settings, CODE, lambda: to_its_end(table.as_given, seed, options))


def drawn(run: Run, settings: Mapping[str, Any], made: str, draw: Callable[[], Any], seed: int) -> dict[str, Any]:
    """The cell of an exploration of rows that the module `made` draws."""
    return run.cells.recall(
        {**settings, "seed": seed, "made": fingerprint(made)}, CODE, lambda: to_its_end(draw(), seed, {})
    )


def plainly_clustered(run: Run, table: table_suite.Table, rival: str, seed: int) -> dict[str, Any]:
    """The cell of one plain clustering, which no change of ours makes anew."""

    def compute() -> dict[str, Any]:
        start = time.process_time()
        labels = rivals.clustered(rival, table.as_given, table.n_classes, seed)
        return {"seconds": time.process_time() - start, "labels": labels.astype(np.int32)}

    settings = {**_settings(table, rival, seed), "suite": "rival", "rows": fingerprint("experiments.plain_rows")}
    return run.cells.recall(settings, rivals.code_of(rival), compute)


def scored(cells: Sequence[Mapping[str, Any]], classes: np.ndarray) -> Scores:
    """The scores of the cells of all seeds."""
    found = [np.asarray(cell["labels"]) for cell in cells]
    pairs = [adjusted_rand_score(one, other) for one, other in itertools.combinations(found, 2)]
    return Scores(
        mean([normalized_mutual_info_score(classes, labels) for labels in found]),
        mean([adjusted_rand_score(classes, labels) for labels in found]),
        mean([n_clusters(labels) for labels in found]),
        mean(pairs),
        mean([float(cell["seconds"]) for cell in cells]),
        str(cells[0].get("verdict", "")),
    )


def n_clusters(labels: Any) -> int:
    """How many clusters were taken.

    >>> n_clusters([-1, 0, 2, 2])
    2
    """
    labels = np.asarray(labels)
    return len(np.unique(labels[labels >= 0]))


def _settings(table: table_suite.Table, way: str, seed: int) -> dict[str, Any]:
    return {"table": table.name, "data": table.digest, "way": way, "seed": seed}
