"""Claim: ct-SNE of 6,000 images with 10 or 100 classes takes at most 2.5 times as long as openTSNE's t-SNE.

Both start from the same 50 principal axes, exact neighbours, perplexity and iterations; the peer runs with `n_jobs`.
"""

from __future__ import annotations

import time

from benchmarks.record import FigureTable, Record, at_most
from imapce import datasets
from imapce.baselines import CTSNE, TSNE


def seconds(method: CTSNE | TSNE, data: datasets.Dataset) -> float:
    start = time.perf_counter()
    method.fit(data.X, prior=data.labels["background_class"])
    return time.perf_counter() - start


def time_of_one_map(table: FigureTable, background: datasets.Dataset, classes: tuple[str, str], quick: bool) -> None:
    n, n_iter = (600, 50) if quick else (6_000, 1_000)
    data = datasets.make_superimposed(
        datasets.fetch_fashion_mnist(), background, classes, n=n, n_background=0, random_state=0
    )
    settings = {"perplexity": 30, "n_iter": n_iter, "exaggeration_iter": n_iter // 4, "random_state": 0}
    # Compiling is paid once a machine.
    CTSNE(perplexity=5, n_iter=2).fit(data.X[:100], prior=data.labels["class"][:100])
    ours = seconds(CTSNE(**settings), data)
    n_labels = len(set(data.labels["background_class"].tolist()))
    for n_jobs, threads in ((1, "one thread"), (2, "two threads")):
        peer = seconds(TSNE(n_jobs=n_jobs, **settings), data)
        name = f"{n:,}×784, {n_labels} labels, {threads} of the peer"
        table.row(name, ours, peer, ours / peer, claim=at_most(2.5, "ratio"))


def maps(record: Record) -> None:
    table = record.table("ct-SNE", "rows", "ours, s", "t-SNE of openTSNE, s", "ratio")
    time_of_one_map(table, datasets.fetch_mnist(), ("Sandal", "Sneaker"), record.quick)
    if not record.quick:
        time_of_one_map(table, datasets.fetch_cifar100(), ("Trouser", "Dress"), record.quick)
