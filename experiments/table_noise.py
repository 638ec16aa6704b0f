"""Where there is nothing, nothing should be found; where three clusters stand apart, three; and both in wide tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from experiments import rivals, table_suite
from experiments.cells import fingerprint
from experiments.judging import accuracy
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted, mean
from imapce.estimators.imapce import IMAPCE
from imapce.exploration import Exploration

Array = NDArray[np.float64]

SHAPES = ((200, 6), (1_000, 10), (2_000, 30))
NEARLY_ALL = 0.95


def is_empty(labels: Any) -> bool:
    """No cluster was taken out of the rest: all rows left, or one cluster that is more than half of them.

    >>> is_empty([-1, -1, -1]), is_empty([0, 0, -1]), is_empty([0, -1, -1]), is_empty([0, 0, 1])
    (True, True, False, False)
    """
    labels = np.asarray(labels)
    taken = np.unique(labels[labels >= 0])
    return len(taken) == 0 or (len(taken) == 1 and bool(np.mean(labels >= 0) > 0.5))


def measure(run: Run) -> tuple[list[Block], list[Wanted]]:
    """How often noise stays whole and three Gaussians come out as three; 20 runs each, quickly 3 and no large ones."""
    runs = 3 if run.quick else 20
    enough = float(np.floor(NEARLY_ALL * runs))
    shapes = SHAPES[:-1] if run.quick else SHAPES
    rows: list[list[Cell]] = []
    lines = []
    for kind in table_suite.NOISE:
        for shape in shapes:
            taken = [_noise(run, kind, shape, seed) for seed in range(runs)]
            none = sum(one["none"] for one in taken)
            data = f"{kind}, {shape[0]:,}×{shape[1]}"
            rows.append([data, f"{none:.0f} of {runs}", mean([one["clusters"] for one in taken])])
            lines.append(Wanted(f"noise, {data}: no cluster, of {runs}", enough, float(none)))
            run.note(f"noise, {data}: no cluster in {none:.0f} of {runs}")
    apart = [_three(run, seed) for seed in range(runs)]
    three = sum(one["clusters"] == 3 and one["ari"] >= 0.99 for one in apart)
    rows.append(["three Gaussians 8 sd apart", f"{three} of {runs}", mean([one["clusters"] for one in apart])])
    lines.append(Wanted(f"three Gaussians 8 sd apart: three, ARI ≥ 0.99, of {runs}", enough, float(three)))
    wide, more = _wide_blocks(run, 1 if run.quick else 3)
    head = ("data", "as it should be", "mean clusters")
    return [Block("Noise: no cluster taken; three Gaussians: exactly three", head, rows), wide], [*lines, *more]


def _noise(run: Run, kind: str, shape: tuple[int, int], seed: int) -> dict[str, float]:
    settings = {"suite": "noise", "kind": kind, "shape": shape, "seed": seed}
    return _taken(_labels(run, settings, lambda: table_suite.noise(kind, shape, seed), seed))


def _three(run: Run, seed: int) -> dict[str, float]:
    X, classes = table_suite.planted(seed, distance=8.0)
    labels = _labels(run, {"suite": "three Gaussians", "seed": seed}, lambda: X, seed)
    return {**_taken(labels), "ari": float(adjusted_rand_score(classes, labels))}


def _labels(run: Run, settings: dict[str, Any], draw: Callable[[], Array], seed: int) -> NDArray[np.int32]:
    """The cell of an exploration of rows that are drawn, to its end."""

    def compute() -> dict[str, Any]:
        with warnings.catch_warnings():
            # What a session says about such rows is for its user; here it is counted what it takes.
            warnings.simplefilter("ignore")
            labels = Exploration(draw(), random_state=seed).run().labels_
        return {"labels": np.asarray(labels, dtype=np.int32)}

    # By hand, not by this module: twenty runs of everything are not made anew for a line of a table.
    settings = {**settings, "made": fingerprint("experiments.table_suite")}
    return np.asarray(run.cells.recall(settings, "imapce.exploration", compute)["labels"])


def _taken(labels: NDArray[np.int32]) -> dict[str, float]:
    return {"none": float(is_empty(labels)), "clusters": float(len(np.unique(labels[labels >= 0])))}


def _wide_blocks(run: Run, seeds: int) -> tuple[Block, list[Wanted]]:
    found = []
    for seed in range(seeds):
        settings = {"suite": "wide", "shape": table_suite.WIDE, "seed": seed}
        scores = run.cells.recall(settings, __name__, lambda seed=seed: _wide_scores(seed))
        found.append({**scores, **_noise(run, "Gaussian", table_suite.WIDE, seed)})
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
    X, classes = table_suite.wide_planted(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        view = IMAPCE(random_state=seed).fit_transform(X)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = IMAPCE(random_state=seed).fit(table_suite.noise("Gaussian", table_suite.WIDE, seed))
    said = [model.stop_reason_, *(str(one.message) for one in heard)]
    return {
        "view": accuracy(view, classes),
        "PCA": accuracy(rivals.pca_plane(X), classes),
        "said": " ".join(said),
    }
