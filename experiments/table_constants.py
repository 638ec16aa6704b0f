"""Every number that clusters are found by, judged on tables it was not chosen on.

Such numbers are the fields of one frozen record of imapce. For each, some values are tried, all others as they are: the
mean NMI and ARI of the candidate clusters over the 33 tables, whatever the verdict, and what one gets on a table for
which the value was chosen on the 32 others (`leave_one_out`). A number that carries over gives there what its default
gives; where it gives less, the suite was fitted, and where a value gives more, another default is better.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from experiments import table_suite
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted, leave_one_out, mean
from imapce.clusters.partition import candidate_of
from imapce.priors.problem import pose
from imapce.rows.open import open_rows
from imapce.tables.reader import Reader

SETTINGS = "imapce.clusters.settings"
CODE = "imapce.clusters.partition"
# {field: values to try beside the default}. A field that is not named here gets values about its default.
CONSTANTS: dict[str, tuple[Any, ...]] = {
    "share": (0.9, 0.95, 0.98),
    "trim": (0.0, 0.05, 0.1, 0.2),
    "rows_per_component": (4, 8, 16),
    "sure": (0.6, 1.2, 2.4),
}
ABOUT = (0.5, 1.0, 1.5)
SCORES = ("nmi", "ari")
WITHIN = 0.01


def default_settings() -> Any | None:
    """The record of all numbers with their defaults; None where there is no such record."""
    if importlib.util.find_spec(SETTINGS) is None:
        return None
    return importlib.import_module(SETTINGS).Settings()


def values_of(name: str, default: Any) -> tuple[Any, ...]:
    """The values to try of one field, its default among them; the default alone where it is no number and not named.

    >>> values_of("share", 0.93), values_of("unheard_of", 10), values_of("names", ("a", "b"))
    ((0.93, 0.9, 0.95, 0.98), (5, 10, 15), (('a', 'b'),))
    """
    if isinstance(default, bool):
        return (False, True)
    if name in CONSTANTS:
        return tuple(dict.fromkeys((default, *CONSTANTS[name])))
    if isinstance(default, int):
        return tuple(sorted({max(1, round(default * factor)) for factor in ABOUT}))
    if isinstance(default, float):
        return tuple(dict.fromkeys(round(default * factor, 6) for factor in ABOUT))
    return (default,)


def measure(run: Run, tables: Sequence[str] = table_suite.NAMES) -> tuple[list[Block], list[Wanted]]:
    """A line for every value of every field, and one for each field that leaves one table out at a time."""
    default = default_settings()
    if default is None:
        return [], []
    suite = [table_suite.read(name) for name in tables]
    rows: list[list[Cell]] = []
    lines = []
    for field in dataclasses.fields(default):
        usual = getattr(default, field.name)
        tried = values_of(field.name, usual)
        if len(tried) < 2:
            rows.append([field.name, f"{usual} (not tried)", None, None])
            continue
        scores = {value: _scores(run, suite, dataclasses.replace(default, **{field.name: value})) for value in tried}
        for value, found in scores.items():
            title = f"{value}{' (default)' * (value == usual)}"
            rows.append([field.name, title, *(mean(list(found[score].values())) for score in SCORES)])
            run.note(f"{field.name} = {title}: NMI {rows[-1][2]:.3f}, ARI {rows[-1][3]:.3f}")
        left_out = {score: leave_one_out({str(value): scores[value][score] for value in tried}) for score in SCORES}
        rows.append([field.name, "chosen, leave-one-table-out", *left_out.values()])
        for score in SCORES:
            gap = abs(left_out[score] - mean(list(scores[usual][score].values())))
            what = f"{field.name}: {score.upper()} with one table left out, from the default's"
            lines.append(Wanted(what, WITHIN, gap, at_most=True))
    title = f"Constants: mean NMI and ARI of the candidates, {len(suite)} tables"
    note = "Leave-one-table-out: for each table the value that is best on the others, its score there, averaged."
    return [Block(title, ("constant", "value", "NMI", "ARI"), rows, note)], lines


def _scores(run: Run, suite: Sequence[table_suite.Table], settings: Any) -> Mapping[str, Mapping[str, float]]:
    """{score: {table: value}} of the candidates found by these settings."""
    cells = {table.name: _cell(run, table, settings) for table in suite}
    return {score: {name: float(cell[score]) for name, cell in cells.items()} for score in SCORES}


def _cell(run: Run, table: table_suite.Table, settings: Any) -> dict[str, Any]:
    asked = {"suite": "constants", "table": table.name, "data": table.digest, "settings": repr(settings)}
    return run.cells.recall(asked, CODE, lambda: candidate_scores(table, settings=settings))


def candidate_scores(table: table_suite.Table, **options: Any) -> dict[str, float]:
    """NMI and ARI of the candidate clusters among the rows they were found in."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader, matrix = Reader.learn(table.as_given, missing="mean")
        problem = pose(open_rows(matrix), [], reader, n_components=2, missing="mean")
        candidate = candidate_of(problem, np.ones(len(table.X), dtype=bool), **options)
    classes = table.classes[candidate.space.places]
    return {
        "nmi": float(normalized_mutual_info_score(classes, candidate.labels)),
        "ari": float(adjusted_rand_score(classes, candidate.labels)),
    }
