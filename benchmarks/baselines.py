"""Claims about the baselines, each against a peer in the same run.

`python -m benchmarks.baselines` runs all of them, `--only cpca --out DIR` one.
"""

from __future__ import annotations

import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

import contrastive
import numpy as np
from scipy.linalg import subspace_angles

from benchmarks import ctsne, fair_nerv
from benchmarks.problems import median_seconds, sandals_and_sneakers
from benchmarks.record import Record, at_least, measure
from imapce import Samples
from imapce.baselines import CPCA


def cpca(record: Record) -> None:
    """The whole automatic choice of α (41 weights) on 6,000×784 with a background of 1,000×784: 5 times faster.

    The peer is asked for two weights: it counts α = 0 among them, so that one is left, as with ours.
    """
    n, n_background = (600, 300) if record.quick else (6_000, 1_000)
    data = sandals_and_sneakers(n, n_background)
    model = CPCA(random_state=0)
    with warnings.catch_warnings():
        # Ours: pixels that are constant in the background. The peer's: 0/0 in these columns, complex eigenvectors.
        warnings.simplefilter("ignore")
        ours = median_seconds(lambda: model.fit_transform(data.X, prior=Samples(data.background)), repeats=3)
        start = time.perf_counter()
        views, alphas = contrastive.CPCA().fit_transform(
            data.X, data.background, n_alphas_to_return=2, return_alphas=True
        )
        theirs = time.perf_counter() - start
    same = model.path_.components[int(np.argmin(np.abs(model.path_.alphas - alphas[1])))]
    standardised = (data.X - model.mean_) / np.where(model.scale_ > 0, model.scale_, 1.0)
    angle = float(subspace_angles(standardised @ same.T, np.asarray(views[1]).real).max())
    table = record.table(
        "cPCA, 41 weights", "rows", "ours, s", "contrastive, s", "times faster", "largest angle between the views, rad"
    )
    size = f"{n:,}×784 and {n_background:,}×784"
    table.row(size, ours, theirs, theirs / ours, angle, claim=at_least(5, "times faster"))


CLAIMS: dict[str, Callable[[Record], None]] = {"cpca": cpca, "ctsne": ctsne.maps, "fair_nerv": fair_nerv.maps}


def main(record: Record, asked: Namespace) -> None:
    for name in asked.only or CLAIMS:
        CLAIMS[name](record)


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=list(CLAIMS))


if __name__ == "__main__":
    measure("baselines", main, __doc__, options)
