"""Batches: `python -m experiments batches [--quick]`. Rows without their batch, ours beside Harmony, ComBat and others.

The corrected space (20 principal axes where there are more columns) is judged by neighbours, by Leiden's clusters and
by scores of scib-metrics. Then what people ask of Harmony and do not get: corrected columns and not only components,
what only one batch holds left where it is, and a word where batch and type cannot be told apart. Prints every block and
writes them as batches.md and batches.csv; nothing is asserted. What is not installed is left out and said. Quickly: the
tables of at most 600 rows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from experiments import batch_scib, batch_scores, correcting
from experiments.batch_cases import Case, cases
from experiments.results import Row
from experiments.running import Run
from experiments.table_blocks import Block, Cell, mean, write
from experiments.table_views import CODE, fitted
from imapce.priors.kinds import Labels

OURS = "ours"
MOST_AXES = 20
BY_NEIGHBOURS = ("content", "within", "read back", "Leiden ARI", "Leiden NMI")
# Where a batch tells so much of what is looked for, no way can know whose the difference is.
CONFOUNDED = 0.1


def batches(run: Run) -> list[Row]:
    """All blocks; no `Row`, as there is no number of the paper to stand beside."""
    asked = cases(run.quick)
    methods = [OURS, *(one for one in correcting.METHODS if correcting.is_installed(one))]
    found = {case.title: {method: _judged(run, case, method) for method in methods} for case in asked}
    planted = [case for case in asked if case.truth is not None]
    blocks = [
        *_spaces(found, methods),
        *([_columns(found, planted, methods)] if planted else []),
        *(_held_by_one(run, case, methods) for case in planted if case.alone),
        _words(run, asked),
    ]
    for block in blocks:
        block.show(run.console)
    for lacking in (correcting.missing(), batch_scib.missing()):
        if lacking:
            run.console.print(lacking, highlight=False, markup=False, soft_wrap=True)
    write("batches", blocks, run.results)
    return []


def ours(X: Any, batch: Any) -> tuple[np.ndarray, np.ndarray, str]:
    """Standardised rows less the effect of the batch, the same in the units of the table, and what the fit says."""
    model = fitted(X, 0, Labels(batch))
    given = model.given(X, labels=batch)
    return given, given * model.scale_, model.stop_reason_


def _corrected(run: Run, case: Case, method: str) -> dict[str, Any]:
    """The cell of one corrected space, its seconds of the processor, and the error of its columns where it is known."""

    def compute() -> dict[str, Any]:
        if method != OURS:
            correcting.warm_up(method)
        start = time.process_time()
        columns: np.ndarray | None
        words = ""
        if method == OURS:
            given, columns, words = ours(case.X, case.batch)
            space = correcting.in_axes(given, MOST_AXES)
        else:
            made = correcting.corrected(method, case.X, case.batch, MOST_AXES)
            space = made.space
            columns = None if made.columns is None else made.columns * _spread(case.X)
        cell = {"space": space, "seconds": time.process_time() - start, "words": words}
        if columns is not None and case.truth is not None and case.shifted is not None:
            cell |= batch_scores.column_errors(columns, case.truth, case.shifted)
        return cell

    settings = {**case.settings, "what": "corrected", "method": method, "axes": MOST_AXES}
    return run.cells.recall(settings, CODE if method == OURS else "experiments.correcting", compute)


def _spread(X: np.ndarray) -> np.ndarray:
    """Of the columns that vary: rivals get these standardised, and their errors are told in the units of the table."""
    spread = X.std(axis=0)
    return np.asarray(spread[spread > 1e-12 * np.maximum(1.0, np.abs(X).max(axis=0))])


def _judged(run: Run, case: Case, method: str) -> dict[str, Any]:
    cell = _corrected(run, case, method)
    space = np.asarray(cell.pop("space"))
    # The space itself, not only its settings: one made anew by changed code is scored anew.
    digest = float(np.sum(space * np.arange(1, space.size + 1).reshape(space.shape)))
    settings = {**case.settings, "method": method, "space": digest}
    found = run.cells.recall(
        {**settings, "what": "scores"},
        "experiments.batch_scores",
        lambda: batch_scores.scores(space, case.looked_for, case.batch),
    )
    if batch_scib.is_installed():
        found = found | run.cells.recall(
            {**settings, "what": "scib"},
            "experiments.batch_scib",
            lambda: batch_scib.scores(space, case.looked_for, case.batch),
        )
    if case.alone:
        found = found | run.cells.recall(
            {**settings, "what": "apart", "one": case.alone},
            "experiments.batch_scores",
            lambda: batch_scores.apart(space, case.looked_for, case.alone),
        )
    run.note(
        f"{case.title} · {method}: " + ", ".join(f"{one} {found[one]:.3f}" for one in BY_NEIGHBOURS if one in found)
    )
    return cell | found


def _spaces(found: dict[str, dict[str, dict[str, Any]]], methods: list[str]) -> list[Block]:
    """One block for each score, all cases and their mean; seconds last."""
    first = next(iter(found.values()))[OURS]
    keys = [one for one in (*BY_NEIGHBOURS, *batch_scib.TITLES, "seconds") if one in first]
    made = []
    for key in keys:
        rows: list[list[Cell]] = [
            [case, *(float(scores[one][key]) for one in methods)] for case, scores in found.items()
        ]
        values = np.array([row[1:] for row in rows], dtype=np.float64)
        rows.append(["mean", *(mean(column[~np.isnan(column)]) for column in values.T)])
        made.append(Block(f"Corrected spaces: {TITLES.get(key, f'scib-metrics, {key}')}", ("case", *methods), rows))
    return made


TITLES = {
    "content": "15-NN accuracy of what is looked for",
    "within": "the same within the batches",
    "read back": "15-NN accuracy of the batch",
    "Leiden ARI": "ARI of Leiden's clusters and what is looked for",
    "Leiden NMI": "NMI of Leiden's clusters and what is looked for",
    "seconds": "seconds of the processor",
}


def _columns(found: dict[str, dict[str, dict[str, Any]]], planted: list[Case], methods: list[str]) -> Block:
    """Whether the columns themselves come back: the rows without the planted batch are known."""
    rows: list[list[Cell]] = []
    for case in planted:
        for part in ("shifted", "others"):
            scores = found[case.title]
            rows.append([f"{case.title}: {part} columns", *(_figure(scores[one], part) for one in methods)])
    note = (
        "Root mean squared error of the corrected columns, in standard deviations of the columns without the batch. "
        "Harmony corrects components alone and has no columns to give."
    )
    return Block("Corrected columns: their error", ("case", *methods), rows, note)


def _figure(scores: dict[str, Any], key: str) -> float | None:
    return float(scores[key]) if key in scores else None


def _held_by_one(run: Run, case: Case, methods: list[str]) -> Block:
    """A type that only one batch holds: still apart?"""
    rows: list[list[Cell]] = []
    for method in methods:
        scores = _judged(run, case, method)
        rows.append([method, _figure(scores, "told"), _figure(scores, "F1")])
    count = int(np.sum(case.looked_for == case.alone))
    head = ("method", "its rows told by 15-NN", "F1 of the Leiden cluster most like it")
    return Block(f"What only one batch holds: {case.alone} ({count} rows), in one batch only", head, rows)


def _words(run: Run, asked: list[Case]) -> Block:
    """Batches that tell what is looked for: how much, what is in one batch only, what our fit says of it."""
    rows: list[list[Cell]] = []
    for case in asked:
        shared = float(normalized_mutual_info_score(case.batch, case.looked_for))
        if shared < CONFOUNDED:
            continue
        only = crossed(case.batch, case.looked_for), crossed(case.looked_for, case.batch)
        rows.append([case.title, shared, *only, str(_corrected(run, case, OURS)["words"])])
    note = f"Cases in which batch and what is looked for share an NMI of at least {CONFOUNDED}."
    head = ("case", "NMI", "classes in one batch only", "batches of one class only", "what the fit says")
    return Block("Confounded designs", head, rows, note)


def crossed(batch: Any, looked_for: Any) -> str:
    """Which classes are in one batch only, in words.

    >>> crossed(list("aabb"), list("xyyy"))
    'x: a'
    """
    batch, looked_for = np.asarray(batch), np.asarray(looked_for)
    only = {one: np.unique(batch[looked_for == one]) for one in np.unique(looked_for)}
    return ", ".join(f"{one}: {inside[0]}" for one, inside in only.items() if len(inside) == 1) or "none"
