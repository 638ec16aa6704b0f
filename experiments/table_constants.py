"""The numbers that decide how many clusters there are, judged on tables they were not chosen on.

They are fields of one frozen record of imapce. For each, some values are tried, all others as they are: the
mean NMI and ARI of the candidate clusters over the 33 tables, whatever the verdict, and what one gets on a table for
which the value was chosen on the 32 others (`leave_one_out`). A number that carries over gives there what its default
gives; where it gives less, the suite was fitted, and where a value gives more, another default is better.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from experiments import table_suite
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted, leave_one_out, mean
from imapce.clusters.clustering import assign_rows, find_clusters
from imapce.common.settings import SETTINGS
from imapce.priors.problem import pose
from imapce.rows.open import open_rows
from imapce.tables.reader import Reader

CODE = "imapce.clusters"
# {field: values to try beside the default}. A new number to judge is a line more; each value takes minutes.
CONSTANTS: dict[str, tuple[float, ...]] = {
    "exponent": (0.2, 0.25, 0.35, 0.4),
    "prior_rows": (3.0, 5.0, 12.0),
    "ridge": (0.003, 0.03),
    "rows_per_axis": (10, 20),
    "axes_share": (0.3, 0.7),
    "folds": (5,),
    "iterations": (20,),
    "neighbours": (10, 25),
    "smoothings": (2, 8),
    "nearest": (5, 20),
    "rounds": (1, 5),
    "fewest": (5.0, 15.0),
    "leaning": (0.3, 3.0),
}
# Numbers that decide whether clusters are accepted; rows of tables without structure are one cluster.
EVIDENCE: dict[str, tuple[float, ...]] = {
    "significance": (0.003, 0.03),
    "weak_significance": (0.02, 0.1),
    "most_overlap": (0.05, 0.2),
    "least_stability": (0.3, 0.7),
}
SCORES = ("nmi", "ari")
WITHIN = 0.01


def values_of(name: str, default: float) -> tuple[float, ...]:
    """The values to try of one field, its default first.

    >>> values_of("exponent", 0.3)
    (0.3, 0.2, 0.25, 0.35, 0.4)
    """
    return tuple(dict.fromkeys((default, *{**CONSTANTS, **EVIDENCE}[name])))


def measure(run: Run, tables: Sequence[str] = table_suite.NAMES) -> tuple[list[Block], list[Wanted]]:
    """A line for every value of every field, and one for each field that leaves one table out at a time."""
    default = SETTINGS.clusters
    suite = [table_suite.read(name) for name in tables]
    rows: list[list[Cell]] = []
    lines = []
    for name in (*CONSTANTS, *EVIDENCE):
        usual, is_accepted = getattr(default, name), name in EVIDENCE
        tried = values_of(name, usual)
        scores = {
            value: _scores(run, suite, dataclasses.replace(default, **{name: value}), is_accepted) for value in tried
        }
        for value, found in scores.items():
            title = f"{value}{' (default)' * (value == usual)}"
            rows.append([f"{name} = {title}", *(mean(list(found[score].values())) for score in SCORES)])
            run.note(f"{name} = {title}: NMI {rows[-1][1]:.3f}, ARI {rows[-1][2]:.3f}")
        left_out = {score: leave_one_out({str(value): scores[value][score] for value in tried}) for score in SCORES}
        rows.append([f"{name}, chosen, leave-one-table-out", *left_out.values()])
        for score in SCORES:
            gap = abs(left_out[score] - mean(list(scores[usual][score].values())))
            what = f"{name}: {score.upper()} with one table left out, from the default's"
            lines.append(Wanted(what, WITHIN, gap, at_most=True))
    title = f"Constants: mean NMI and ARI of the candidates, {len(suite)} tables"
    note = "Leave-one-table-out: for each table the value that is best on the others, its score there, averaged. "
    note += f"{', '.join(EVIDENCE)}: of the clusters that are accepted."
    return [Block(title, ("constant", "NMI", "ARI"), rows, note)], lines


def _scores(
    run: Run, suite: Sequence[table_suite.Table], settings: Any, is_accepted: bool
) -> Mapping[str, Mapping[str, float]]:
    """{score: {table: value}} of the candidates found by these settings, or of the clusters that are accepted."""
    cells = {table.name: _cell(run, table, settings, is_accepted) for table in suite}
    return {score: {name: float(cell[score]) for name, cell in cells.items()} for score in SCORES}


def _cell(run: Run, table: table_suite.Table, settings: Any, is_accepted: bool) -> dict[str, Any]:
    asked = {"suite": "constants", "table": table.name, "data": table.digest, "settings": repr(settings)}
    asked |= {"accepted": True} if is_accepted else {}
    return run.cells.recall(asked, CODE, lambda: candidate_scores(table, is_accepted=is_accepted, settings=settings))


def candidate_scores(table: table_suite.Table, *, is_accepted: bool = False, **options: Any) -> dict[str, float]:
    """NMI and ARI of the candidate clusters, or of those that are accepted, among the rows they were found in."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader, matrix = Reader.learn(table.as_given, missing="mean")
        rows, all_rows = open_rows(matrix), np.ones(len(table.X), dtype=bool)
        problem = pose(rows, [], reader, n_components=2, missing="mean")
        found = find_clusters(problem, all_rows, **options)
        labels, classes = found.labels, table.classes[found.sample.positions]
        if is_accepted and not assign_rows(found, all_rows, rows).structure.is_taken:
            labels = np.zeros_like(labels)
    return {
        "nmi": float(normalized_mutual_info_score(classes, labels)),
        "ari": float(adjusted_rand_score(classes, labels)),
    }
