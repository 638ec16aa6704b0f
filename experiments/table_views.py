"""Views of the suite's tables by 15-NN accuracy of the class: ours, PCA, the paper's setting, the best optimum, UMAP.

Each also with one class known and with columns that say nothing; a planted table with one kind of such columns at a
time; and the rules a view could be chosen by.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import rivals, table_suite
from experiments.cells import fingerprint
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted, mean, rules_block
from imapce.estimators.imapce import IMAPCE, RANKS
from imapce.metrics import knn_accuracy
from imapce.priors.kinds import Subset

Array = NDArray[np.float64]

NEIGHBOURS = 15
OURS, PCA, PAPER, BEST, UMAP = "ours", "PCA", "the paper's setting", "best of optima_", "UMAP"
PLAIN, CLASS_KNOWN, NUISANCE = "plain", "one class known", "nuisance columns"
# Rules that have variants, by what they set; the default is among them. A new rule is one more line.
RULES: dict[str, dict[str, Any]] = {f"rank={one!r}": {"rank": one} for one in RANKS}

# {setting: {method: {table: accuracy}}}
Found = dict[str, dict[str, dict[str, float]]]


def fitted(X: Any, seed: int, prior: Any = None, **options: Any) -> IMAPCE:
    with warnings.catch_warnings():
        # What a fit has to say about a table is for its user; here a figure says how the view is.
        warnings.simplefilter("ignore")
        return IMAPCE(random_state=seed, **options).fit(X, prior=prior)


def our_scores(
    X: Any, classes: np.ndarray, scored: np.ndarray, seed: int, prior: Any, missing: str
) -> dict[str, float]:
    """15-NN of the class among the scored rows: the default view, the paper's setting, the best optimum by labels."""

    def score(view: Array) -> float:
        return knn_accuracy(view[scored], classes[scored], NEIGHBOURS)

    model = fitted(X, seed, prior, missing=missing)
    paper = fitted(X, seed, prior, missing=missing, alpha=1.0, mu="paper")
    return {
        OURS: score(model.transform(X)),
        PAPER: score(paper.transform(X)),
        BEST: max(score(model.transform(X, view=place)) for place in range(len(model.optima_))),
    }


def plain_scores(method: str, X: Array, classes: np.ndarray, seed: int) -> dict[str, float]:
    picture = rivals.pca_plane(X) if method == PCA else rivals.umap_map(X, seed)
    return {method: knn_accuracy(picture, classes, NEIGHBOURS)}


def measure(run: Run, seeds: int) -> Found:
    """Every table in its three settings; UMAP only where there is time, nothing known where only one class is left."""
    plain = [PCA] if run.quick or not rivals.is_installed(UMAP) else [PCA, UMAP]
    found: Found = {}
    for table in map(table_suite.read, table_suite.NAMES):
        for setting in (PLAIN, CLASS_KNOWN, NUISANCE):
            if setting == CLASS_KNOWN and table.n_classes < 3:
                # One class is left, and nothing to tell apart.
                continue
            runs = [_in_setting(run, table, setting, plain, seed) for seed in range(seeds)]
            for method in (OURS, PCA, PAPER, BEST, *plain[1:]):
                found.setdefault(setting, {}).setdefault(method, {})[table.name] = mean([one[method] for one in runs])
            last = ", ".join(f"{method} {scores[table.name]:.3f}" for method, scores in found[setting].items())
            run.note(f"{table.name}, {setting}: {last}")
    return found


def _in_setting(run: Run, table: table_suite.Table, setting: str, plain: list[str], seed: int) -> dict[str, float]:
    scored = ~table.most_frequent if setting == CLASS_KNOWN else np.ones(len(table.X), dtype=bool)
    prior = Subset(~scored) if setting == CLASS_KNOWN else None
    X: Any = table_suite.with_nuisance(table.X, seed) if setting == NUISANCE else table.X
    missing = "mean" if setting == NUISANCE else "error"
    made = fingerprint("experiments.table_suite") if setting == NUISANCE else ""
    settings = {"suite": setting, "made": made, "table": table.name, "data": table.digest, "seed": seed}
    scores = run.cells.recall(settings, __name__, lambda: our_scores(X, table.classes, scored, seed, prior, missing))
    # A plain picture cannot be told what is known, so it is drawn of the rows that are left.
    matrix = rivals.plain_matrix(X)[scored] if setting == NUISANCE else table.X[scored]
    for method in plain:
        picture = {**settings, "method": method, "seed": 0 if method == PCA and setting != NUISANCE else seed}
        scores = scores | run.cells.recall(
            picture,
            "experiments.rivals",
            lambda method=method: plain_scores(method, matrix, table.classes[scored], seed),
        )
    return scores


def blocks(found: Found) -> list[Block]:
    made = []
    for setting, by_method in found.items():
        tables = list(by_method[OURS])
        rows: list[list[Cell]] = [[table, *(by_method[method][table] for method in by_method)] for table in tables]
        rows.append(["mean", *(mean(list(scores.values())) for scores in by_method.values())])
        made.append(Block(f"Views, {setting}: 15-NN accuracy of the class", ("table", *by_method), rows))
    return made


def wanted(found: Found) -> list[Wanted]:
    """The acceptance of views of the plain tables."""
    plain = found[PLAIN]
    gaps = {table: plain[OURS][table] - max(plain[PCA][table], plain[PAPER][table]) for table in plain[OURS]}
    worst = min(gaps, key=lambda one: gaps[one])
    below = mean([plain[OURS][table] - plain[BEST][table] for table in gaps])
    return [
        Wanted("view over the better of PCA and the paper's, worst table", -0.02, gaps[worst], where=worst),
        Wanted("view over the best of optima_, mean", -0.02, below),
        Wanted("view of digits", 0.55, plain[OURS].get("digits")),
    ]


def rules(run: Run, seeds: int) -> Block:
    """The rules a view could be chosen by, judged on tables they were not chosen on."""
    by_rule: dict[str, dict[str, float]] = {rule: {} for rule in RULES}
    for table in map(table_suite.read, table_suite.NAMES):
        for rule in RULES:
            by_rule[rule][table.name] = mean([_by_rule(run, table, rule, seed) for seed in range(seeds)])
    return rules_block(f"Rules of views: mean 15-NN accuracy, {len(table_suite.NAMES)} tables", by_rule)


def _by_rule(run: Run, table: table_suite.Table, rule: str, seed: int) -> float:
    def compute() -> dict[str, float]:
        view = fitted(table.X, seed, **RULES[rule]).transform(table.X)
        return {"accuracy": knn_accuracy(view, table.classes, NEIGHBOURS)}

    settings = {"suite": "rule of views", "table": table.name, "data": table.digest, "rule": rule, "seed": seed}
    return run.cells.recall(settings, __name__, compute)["accuracy"]


def nuisance(run: Run, seeds: int) -> tuple[Block, list[Wanted]]:
    """The planted table with one kind of column that says nothing at a time."""
    rows: list[list[Cell]] = []
    lines = []
    for kind in table_suite.nuisances(0):
        runs = [
            run.cells.recall(
                {"suite": "nuisance", "kind": kind, "seed": seed},
                __name__,
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
    X, classes = table_suite.nuisances(seed)[kind]
    every = np.ones(len(classes), dtype=bool)
    ours = our_scores(X, classes, every, seed, None, "error")
    return ours | plain_scores(PCA, rivals.plain_matrix(X), classes, seed)
