"""Data with a planted answer: minorities beside a strong known structure, and gross outliers among real rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import subspace_angles
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score

from experiments.problems import problem
from experiments.results import Row
from experiments.running import Run
from imapce import IMAPCE, Attributes, Exploration, Samples, Subset
from imapce.exploration.clustering import cluster_view

Array = NDArray[np.float64]

ROWS, COLUMNS, KNOWN, DISTANCE = 2000, 30, 4, 7.0
SHARES = (0.03, 0.05, 0.10)
PRIORS = ("columns", "samples", "subset")
FOUND = 0.95


def minority(share: float, kind: str, seed: int) -> tuple[Array, NDArray[np.bool_], Any]:
    """Rows, which of them are the planted part, and a prior with three groups six or more standard deviations apart."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, COLUMNS))
    small = np.zeros(ROWS, dtype=bool)
    small[rng.choice(ROWS, round(share * ROWS), replace=False)] = True
    group = np.where(small & (kind == "subset"), 0, rng.integers(0, 3, ROWS))
    strong = np.eye(COLUMNS)[:, :KNOWN] if kind == "columns" else np.linalg.qr(rng.standard_normal((COLUMNS, KNOWN)))[0]
    centres = 6 * rng.standard_normal((3, KNOWN)) @ strong.T
    direction = rng.standard_normal(COLUMNS)
    direction -= strong @ (strong.T @ direction)
    X += centres[group]
    X[small] += DISTANCE * direction / np.linalg.norm(direction)
    if kind == "columns":
        return X, small, Attributes(list(range(KNOWN)))
    if kind == "samples":
        return X, small, Samples(rng.standard_normal((ROWS, COLUMNS)) + centres[rng.integers(0, 3, ROWS)])
    return X, small, Subset(group > 0)


def minorities(run: Run) -> list[Row]:
    """F1 of the planted part: of the best cluster of the automatic view, and of what an exploration takes first."""
    n_seeds = run.seeds or (2 if run.quick else 20)
    rows = []
    for kind in PRIORS:
        for share in SHARES:
            found = [
                run.cells.recall(
                    {"planted": kind, "share": share, "seed": seed, "steps": 1},
                    "imapce.exploration",
                    lambda kind=kind, share=share, seed=seed: _minority_scores(share, kind, seed),
                )
                for seed in range(n_seeds)
            ]
            for score in ("view", "exploration"):
                values = [one[score] for one in found]
                reached = sum(value >= FOUND for value in values)
                data = f"planted {share:.0%}, known: {kind}"
                often = {f"in how many of {n_seeds} at least {FOUND}": float(reached)}
                title, runs = f"F1 in the {score}", f"seeds 0–{n_seeds - 1}"
                rows.append(Row(data, "IMAPCE, automatic", title, None, values, runs, often))
                run.note(f"{data}: {title} at least {FOUND} in {reached} of {n_seeds}")
    return rows


def _minority_scores(share: float, kind: str, seed: int) -> dict[str, float]:
    X, small, prior = minority(share, kind, seed)
    left = ~prior.rows if isinstance(prior, Subset) else np.ones(ROWS, dtype=bool)
    view = IMAPCE(random_state=0).fit_transform(X, prior=prior)[left]
    clusters = cluster_view(view, min_cluster_size=ROWS // 100)
    in_view = [f1_score(small[left], clusters.labels == c) for c in range(len(clusters.sizes))]
    labels = Exploration(X, prior=prior, random_state=0).run(max_steps=1).labels_
    taken = [f1_score(small, labels == c) for c in range(labels.max() + 1)]
    return {"view": max(in_view, default=0.0), "exploration": max(taken, default=0.0)}


def outliers(run: Run) -> list[Row]:
    """The largest angle, in degrees, between the views without and with 1 % of gross outliers among the rows."""
    n_seeds = run.seeds or (1 if run.quick else 5)
    tables: dict[str, tuple[Array, Any]] = {
        name: (np.asarray(problem(name).X, dtype=np.float64), problem(name).prior)
        for name in ("synthetic", "adult ethnicity")
    }
    tables["digits"] = (load_digits().data, None)
    rows = []
    for name, (X, prior) in tables.items():
        for kind in ("all columns", "one cell"):
            for method, rule in (("IMAPCE, automatic", "auto"), ("IMAPCE, automatic, outliers kept", "keep")):
                values = []
                for seed in range(n_seeds):
                    settings = {"outliers": kind, "data": name, "rule": rule, "seed": seed}
                    cell = run.cells.recall(
                        settings,
                        "imapce.estimators.imapce",
                        lambda X=X, prior=prior, kind=kind, rule=rule, seed=seed: {
                            "angle": _angle(X, prior, kind, rule, seed)
                        },
                    )
                    values.append(cell["angle"])
                data, runs = f"{name}, {kind} at 100 sd", f"seeds 0–{n_seeds - 1}"
                rows.append(Row(data, method, "degrees", None, values, runs, {"worst": max(values)}))
                run.note(f"{name} · {kind} · {method}: degrees, worst {max(values):.1f}")
    return rows


def _angle(X: Array, prior: Any, kind: str, rule: str, seed: int) -> float:
    rng = np.random.default_rng(seed)
    count = max(1, len(X) // 100)
    spread = X.std(axis=0)
    added = X[rng.choice(len(X), count, replace=False)].copy()
    if kind == "all columns":
        added = X.mean(axis=0) + 100 * spread * rng.standard_normal(added.shape)
    else:
        column = rng.choice(np.flatnonzero(spread > 0), count)
        added[np.arange(count), column] += 100 * spread[column]
    clean = IMAPCE(random_state=0, outliers=rule).fit(X, prior=prior)
    spoiled = IMAPCE(random_state=0, outliers=rule).fit(np.vstack([X, added]), prior=prior)
    return float(np.degrees(subspace_angles(clean.components_.T, spoiled.components_.T)).max())
