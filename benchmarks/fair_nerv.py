"""Claims: 1,000 iterations of Fair-NeRV and Fair-t-NeRV take under 30 s for 1,500 rows and under 90 s for 6,000.

The peer is one evaluation of the gradient with n×n arrays of NumPy in double precision, the straightforward way.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.problems import median_seconds, sandals_and_sneakers
from benchmarks.record import FigureTable, Record, at_most
from imapce import datasets
from imapce.baselines import FairNeRV, FairTNeRV
from imapce.baselines.fair_nerv import FairCost, Weights

DEMO = Weights(0.54, 0.91, 0.04, 0.69, 0.91)


def plain_gradient(Y: Any, log_p: Any, S: Any, labels: Any, weights: Weights, student: bool) -> Any:
    """dC/dY from n×n arrays: every formula as it stands."""
    n = len(Y)
    norms = np.sum(Y**2, axis=1)
    D = norms[:, None] + norms - 2 * Y @ Y.T
    itself = np.eye(n, dtype=bool)
    l = np.where(itself, -np.inf, -np.log1p(D) if student else -D / S[:, None])
    a = 1 / (1 + D) if student else 1 / S[:, None]
    largest = l.max(axis=1, keepdims=True)
    log_q = l - largest - np.log(np.exp(l - largest).sum(axis=1, keepdims=True))
    log_q[itself] = log_p[itself] = 0.0
    q, p = np.where(itself, 0.0, np.exp(log_q)), np.where(itself, 0.0, np.exp(log_p))
    tau = np.where(labels[:, None] == labels, weights.tau_in, weights.tau_out)
    G = tau * (q - p) + (1 - tau) * q * (log_q - log_p)
    members = np.eye(labels.max() + 1)[labels]
    share = members.mean(axis=0)
    rho = weights.omega * share / (1 - share[labels])[:, None]
    rho[np.arange(n), labels] = 1 - weights.omega
    r = np.maximum(q @ members, np.finfo(float).tiny)
    excess = np.log(r / rho)
    divergence = np.sum(r * excess, axis=1, keepdims=True)
    mixing = weights.gamma * (1 - rho / r) + (1 - weights.gamma) * (excess - divergence)
    B = a * (weights.beta * (q * G.sum(axis=1, keepdims=True) - G) - (1 - weights.beta) * q * mixing[:, labels])
    B += B.T
    return 2 * (B.sum(axis=1, keepdims=True) * Y - B @ Y)


def time_of_a_map(table: FigureTable, name: str, X: Any, labels: Any, most: float, n_iter: int) -> None:
    for of, Estimator in {"Fair-NeRV": FairNeRV, "Fair-t-NeRV": FairTNeRV}.items():
        # Compiling is not part of the claim.
        Estimator(n_neighbors=5, n_iter=1).fit(np.random.default_rng(0).normal(size=(50, 3)))
        start, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = Estimator(random_state=0, n_iter=n_iter).fit(X, prior=labels)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        cells = (seconds, cpu, model.n_iter_, model.cost_)
        table.row(f"{of}, {name}", *cells, claim=at_most(most, "seconds"))


def time_of_one_gradient(table: FigureTable, name: str, X: Any, labels: Any, repeats: int) -> None:
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    rows = (X - X.mean(axis=0)) / spread
    Y = np.random.default_rng(0).normal(size=(len(X), 2))
    for student in (False, True):
        fair = FairCost(rows, labels, DEMO, n_neighbors=20, student=student)
        log_p = np.maximum(fair.log_neighbourhoods.astype(np.float64), np.log(np.finfo(float).tiny))
        expected = plain_gradient(Y, log_p, fair.scales, labels, DEMO, student)
        difference = np.linalg.norm(fair.evaluate(Y)[0] - expected) / np.linalg.norm(expected)
        ours = median_seconds(lambda: fair.evaluate(Y), repeats)  # noqa: B023 - called at once
        plain = median_seconds(
            lambda: plain_gradient(Y, log_p, fair.scales, labels, DEMO, student),  # noqa: B023
            max(1, repeats // 3),
        )
        of = "Fair-t-NeRV" if student else "Fair-NeRV"
        table.row(f"{of}, {name}", 1e3 * ours, 1e3 * plain, plain / ours, float(difference))


def maps(record: Record) -> None:
    data = datasets.load_synthetic_paper()
    known = [(f"{len(data.X):,} rows, batch known", data.X, data.labels["batch"], 30, 15)]
    if not record.quick:
        images = sandals_and_sneakers()
        known.append((f"{len(images.X):,} images, digit known", images.X, images.labels["background_class"], 90, 5))
    gradients = record.table(
        "Fair-NeRV, one gradient",
        *("rows", "ours, ms", "n×n arrays of NumPy, ms", "times faster", "relative difference"),
        claims=False,
    )
    table = record.table("Fair-NeRV, a map", "rows", "seconds", "CPU, s", "iterations", "cost")
    for name, X, labels, most, repeats in known:
        time_of_one_gradient(gradients, name, X, labels, 3 if record.quick else repeats)
        time_of_a_map(table, name, X, labels, most, 50 if record.quick else 1_000)
