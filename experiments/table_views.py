"""Views of the suite's tables by 15-NN accuracy of the class: ours, PCA, the paper's setting, the best optimum, UMAP.

The development tables also with one class known and with columns that say nothing; a planted table with one kind of
such columns at a time.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import made_tables, rivals, table_suite
from experiments.cells import fingerprint
from experiments.judging import accuracy
from experiments.plain_rows import pca_plane, plain_matrix, standard_axes
from experiments.rival_graphs import umap_map
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted, mean
from imapce.estimators.imapce import IMAPCE
from imapce.priors.kinds import Subset

Array = NDArray[np.float64]

OURS, PCA, PAPER, BEST, UMAP = "ours", "PCA", "the paper's setting", "best of optima_", "UMAP"
PLAIN, CLASS_KNOWN, NUISANCE = "plain", "one class known", "nuisance columns"
FAR_BELOW = 0.03
# What a cell depends on: the estimator, and not how this module prints.
CODE = "imapce.estimators.imapce"
JUDGED = {"judged": fingerprint("experiments.judging")}
WANTED_MEANS = {"development": 0.765, "added": 0.815}

# {setting: {method: {table: accuracy}}}
Found = dict[str, dict[str, dict[str, float]]]


def fitted(X: Any, seed: int, prior: Any = None, **options: Any) -> IMAPCE:
    with warnings.catch_warnings():
        # What a fit has to say about a table is for its user; here a figure says how the view is.
        warnings.simplefilter("ignore")
        return IMAPCE(random_state=seed, **options).fit(X, prior=prior)


def our_scores(X: Any, classes: np.ndarray, scored: np.ndarray, prior: Any, missing: str) -> dict[str, float]:
    """15-NN of the class among the scored rows: the default view, which no seed changes, and the best by the labels."""
    model = fitted(X, 0, prior, missing=missing)
    every = [accuracy(model.transform(X, view=place)[scored], classes[scored]) for place in range(len(model.optima_))]
    return {OURS: every[0], BEST: max(every)}


def paper_scores(
    X: Any, classes: np.ndarray, scored: np.ndarray, seed: int, prior: Any, missing: str
) -> dict[str, float]:
    view = fitted(X, seed, prior, missing=missing, alpha=1.0, mu="paper").transform(X)
    return {PAPER: accuracy(view[scored], classes[scored])}


def plain_scores(method: str, X: Array, classes: np.ndarray, seed: int) -> dict[str, float]:
    picture = pca_plane(X) if method == PCA else umap_map(standard_axes(X), seed)
    return {method: accuracy(picture, classes)}


def measure(run: Run, seeds: int) -> Found:
    """Every table plain, the development tables in two more settings; UMAP once and only where there is time."""
    plain = [PCA] if run.quick or not rivals.is_installed(UMAP) else [PCA, UMAP]
    found: Found = {}
    for table in map(table_suite.read, table_suite.NUMERIC):
        for setting in (PLAIN, CLASS_KNOWN, NUISANCE) if table.name in table_suite.DEVELOPMENT else (PLAIN,):
            if setting == CLASS_KNOWN and table.n_classes < 3:
                # One class is left, and nothing to tell apart.
                continue
            runs = [_in_setting(run, table, setting, plain, seed) for seed in range(seeds)]
            for method in (OURS, PCA, PAPER, BEST, *plain[1:]):
                scores = [one[method] for one in runs if method in one]
                found.setdefault(setting, {}).setdefault(method, {})[table.name] = mean(scores)
            last = ", ".join(f"{method} {scores[table.name]:.3f}" for method, scores in found[setting].items())
            run.note(f"{table.name}, {setting}: {last}")
    return found


def _in_setting(run: Run, table: table_suite.Table, setting: str, plain: list[str], seed: int) -> dict[str, float]:
    scored = ~table.most_frequent if setting == CLASS_KNOWN else np.ones(len(table.X), dtype=bool)
    prior = Subset(~scored) if setting == CLASS_KNOWN else None
    X: Any = made_tables.with_nuisance(table.X, seed) if setting == NUISANCE else table.X
    missing = "mean" if setting == NUISANCE else "error"
    made = fingerprint("experiments.made_tables") if setting == NUISANCE else ""
    settings = {"suite": setting, "made": made, "table": table.name, "data": table.digest, **JUDGED}
    # Columns that say nothing are drawn anew with every seed; without them a default view and PCA's are the same.
    drawn = {**settings, "seed": seed if setting == NUISANCE else 0}
    classes = table.classes
    scores = run.cells.recall(
        {**drawn, "method": OURS}, CODE, lambda: our_scores(X, classes, scored, prior, missing)
    ) | run.cells.recall(
        {**settings, "seed": seed, "method": PAPER},
        CODE,
        lambda: paper_scores(X, classes, scored, seed, prior, missing),
    )
    # A plain picture cannot be told what is known, so it is drawn of the rows that are left.
    matrix = plain_matrix(X)[scored] if setting == NUISANCE else table.X[scored]
    for method in plain if seed == 0 else [PCA]:
        scores = scores | run.cells.recall(
            {**drawn, "method": method},
            "experiments.plain_rows" if method == PCA else "experiments.rival_graphs",
            lambda method=method: plain_scores(method, matrix, classes[scored], seed),
        )
    return scores


def blocks(found: Found) -> list[Block]:
    made = []
    for setting, by_method in found.items():
        for group, names in table_suite.GROUPS.items():
            tables = [one for one in names if one in by_method[OURS]]
            if not tables:
                continue
            rows: list[list[Cell]] = [[table, *(by_method[method][table] for method in by_method)] for table in tables]
            rows.append(["mean", *(mean([scores[one] for one in tables]) for scores in by_method.values())])
            title = f"Views, {setting}: 15-NN accuracy of the class, {len(tables)} {group} tables"
            made.append(Block(title, ("table", *by_method), rows))
    return made


def wanted(found: Found) -> list[Wanted]:
    """The acceptance of views of the plain tables."""
    plain = found[PLAIN]
    lines = [_mean_wanted(group, least, plain[OURS]) for group, least in WANTED_MEANS.items()]
    far = {table: plain[OURS][table] - plain[PCA][table] for table in plain[OURS]}
    # By the figures as they are printed, as all that is wanted is.
    worse = [table for table in far if round(far[table], 3) < -FAR_BELOW]
    what = f"tables more than {FAR_BELOW} below PCA, of {len(far)}"
    lines.append(Wanted(what, 2, float(len(worse)), True, ", ".join(f"{one} {far[one]:.3f}" for one in worse)))
    gaps = {table: plain[OURS][table] - max(plain[PCA][table], plain[PAPER][table]) for table in plain[OURS]}
    worst = min(gaps, key=lambda one: gaps[one])
    below = mean([plain[OURS][table] - plain[BEST][table] for table in gaps])
    return [
        *lines,
        Wanted("view over the better of PCA and the paper's, worst table", -0.02, gaps[worst], where=worst),
        Wanted("view over the best of optima_, mean", -0.02, below),
        Wanted("view of digits", 0.55, plain[OURS].get("digits")),
    ]


def _mean_wanted(group: str, least: float, ours: dict[str, float]) -> Wanted:
    names = table_suite.GROUPS[group]
    return Wanted(f"views, mean of {len(names)} {group} tables", least, mean([ours[one] for one in names]))


def nuisance(run: Run, seeds: int) -> tuple[Block, list[Wanted]]:
    """The planted table with one kind of column that says nothing at a time."""
    rows: list[list[Cell]] = []
    lines = []
    for kind in made_tables.nuisances(0):
        runs = [
            run.cells.recall(
                {
                    "suite": "nuisance",
                    "kind": kind,
                    "seed": seed,
                    "made": fingerprint("experiments.made_tables"),
                    **JUDGED,
                },
                CODE,
                lambda kind=kind, seed=seed: _nuisance_scores(kind, seed),
            )
            for seed in range(seeds)
        ]
        scores = {method: mean([one[method] for one in runs]) for method in (OURS, PCA, PAPER, BEST)}
        rows.append([kind, *scores.values()])
        lines.append(Wanted(f"planted table, {kind}: 15-NN", 0.97, scores[OURS]))
        run.note(f"planted, {kind}: ours {scores[OURS]:.3f}, PCA {scores[PCA]:.3f}")
    return Block(
        "Nuisance: three planted clusters in 10 columns, 15-NN", ("added", OURS, PCA, PAPER, BEST), rows
    ), lines


def _nuisance_scores(kind: str, seed: int) -> dict[str, float]:
    X, classes = made_tables.nuisances(seed)[kind]
    every = np.ones(len(classes), dtype=bool)
    ours = our_scores(X, classes, every, None, "error") | paper_scores(X, classes, every, seed, None, "error")
    return ours | plain_scores(PCA, plain_matrix(X), classes, seed)
