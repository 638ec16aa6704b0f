"""Claims: an automatic exploration of Image Segmentation takes under 5 s, a step on 100,000×50 under 2 s.

Whole explorations with defaults: 150×4 in 0.3 s, 569×30 in 1.5 s, 2,310×19 in 3 s, digits in 5 s, and at most twice as
long beside two busy loops. On 100,000×20 the first view takes 0.7 s, clusters 1 s, accept 0.2 s, the second view 1.5 s.
In CPU seconds: 14,000×100 with a column as prior 7, 100,000×768 with a label 15, 1,000,000×20 with a group of 0.4 % of
the rows 20.

The peer is one plain Dirichlet-process mixture of the same rows in all their columns, with up to 20 components (on
100,000 rows it took 491 s once, so it gets 1,000 of them).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from experiments.generated_tables import rare_group
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture
from sklearn.preprocessing import StandardScaler

from benchmarks.growth import planted
from benchmarks.problems import seconds_of
from benchmarks.record import Record, at_most, measure
from imapce import IMAPCE, Attributes, Exploration, Labels, datasets


def mixture_of_all_columns(X: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture = BayesianGaussianMixture(n_components=20, n_init=3, max_iter=100, random_state=0)
        return seconds_of(lambda: mixture.fit(StandardScaler().fit_transform(X)))


def whole_exploration(record: Record) -> None:
    X = datasets.fetch_image_segmentation().X
    totals, fitting, clustering = [], [], []
    for seed in range(1 if record.quick else 5):
        start = time.perf_counter()
        exploration = Exploration(X, min_cluster_size=75, random_state=seed, **paper_way(1e5))
        fit = cluster = 0.0
        while not exploration.done:
            fit += seconds_of(lambda session=exploration: session.propose(clusters=False))
            begun = time.perf_counter()
            found = exploration.cluster().most_distinct
            cluster += time.perf_counter() - begun
            if found:
                exploration.accept()
        totals.append(time.perf_counter() - start)
        fitting.append(fit / totals[-1])
        clustering.append(cluster / totals[-1])
    table = record.table(
        "The paper's way, whole",
        *("table", "median, s", "worst seed, s", "of which fitting", "clustering", "one mixture of all columns, s"),
    )
    table.row(
        *("Image Segmentation, ten starts a step", float(np.median(totals)), max(totals)),
        *(float(np.mean(fitting)), float(np.mean(clustering)), mixture_of_all_columns(X)),
        claim=at_most(5, "median, s"),
    )


def paper_way(mu: float | str) -> dict[str, Any]:
    return {"estimator": IMAPCE(alpha=1.0, mu=mu), "clusterer": "dpgmm", "refine": False}


def one_step(record: Record) -> None:
    n = 5_000 if record.quick else 100_000
    X = planted(n, 50)
    table = record.table("A step of a large table", f"{n:,}×50", "all, s", "fit, s", "clusters, s")
    for name, options in {"the paper's way": paper_way("paper"), "automatic": {}}.items():
        exploration = Exploration(X, random_state=0, **options)
        for place in ("first", "second"):
            fit = seconds_of(lambda session=exploration: session.propose(clusters=False))
            cluster = seconds_of(exploration.cluster)
            table.row(f"{name}, {place}", fit + cluster, fit, cluster, claim=at_most(2, "all, s"))
            if place == "first":
                exploration.accept()
    peer = mixture_of_all_columns(X[:1_000])
    table.row("one mixture of all columns of 1,000 of the rows", peer, None, None)


@contextmanager
def busy_loops(count: int = 2) -> Iterator[None]:
    """So many processes that do nothing but spin, as other work on the machine would."""
    # A loop ends with its parent, however that ends.
    code = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    loops = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def everyday_tables(record: Record) -> None:
    """Whole explorations with defaults, alone and beside two busy loops; the median of three seeds each."""
    tables = {
        "iris": (load_iris().data, 0.3),
        "breast cancer": (load_breast_cancer().data, 1.5),
        "Image Segmentation": (datasets.fetch_image_segmentation().X, 3.0),
        "digits": (load_digits().data, 5.0),
    }
    alone_table = record.table("Whole explorations, defaults", "table", "alone, s", "one mixture of all columns, s")
    beside_table = record.table("Beside two busy loops", "table", "seconds", "times those alone")
    for name, (X, most) in list(tables.items())[: 1 if record.quick else None]:

        def median_of_seeds(X: np.ndarray = X) -> float:
            return float(np.median([seconds_of(Exploration(X, random_state=seed).run) for seed in range(3)]))

        Exploration(X, random_state=0).run(max_steps=1)
        alone = median_of_seeds()
        with busy_loops():
            beside = median_of_seeds()
        title = f"{name}, {X.shape[0]:,}×{X.shape[1]}"
        alone_table.row(title, alone, mixture_of_all_columns(X), claim=at_most(most, "alone, s"))
        beside_table.row(title, beside, beside / alone, claim=at_most(2, "times those alone"))


def categories(n: int, n_columns: int) -> pa.Table:
    """Columns of four levels; in three groups one level of a column is more frequent than the others."""
    rng = np.random.default_rng(0)
    groups, favourite = rng.integers(3, size=n), rng.integers(4, size=(3, n_columns))
    levels = np.where(rng.random((n, n_columns)) < 0.6, favourite[groups], rng.integers(4, size=(n, n_columns)))
    return pa.table({f"c{place}": np.array(list("abcd"))[levels[:, place]] for place in range(n_columns)})


def adult_as_it_is() -> pa.Table:
    data = datasets.fetch_adult("full")
    columns = {name: data.X[:, place] for place, name in enumerate(data.feature_names)}
    return pa.table(columns | {name: text for name, text in data.labels.items() if name != "income"})


def mixed_tables(record: Record) -> None:
    """Categories beside numbers, and categories alone: whole explorations with defaults, once."""
    table = record.table("Tables of categories", "table", "whole exploration, s", claims=False)
    n = 1_000 if record.quick else 8_000
    made = {f"{n:,}×22, drawn categories": categories(n, 22)}
    if not record.quick:
        made["Adult as it is, 32,561×14"] = adult_as_it_is()
    for name, X in made.items():
        table.row(name, seconds_of(Exploration(X, random_state=0).run))


def large_table(record: Record) -> None:
    """The four waits of a session on 100,000 rows, with defaults."""
    n = 5_000 if record.quick else 100_000
    X = planted(n, 20)
    exploration = Exploration(X, random_state=0)
    table = record.table("The waits of a session", f"{n:,}×20", "seconds")
    waits = {
        "first view": (lambda: exploration.propose(clusters=False), 0.7),
        "clusters": (exploration.cluster, 1.0),
        "accept": (exploration.accept, 0.2),
        "second view": (lambda: exploration.propose(clusters=False), 1.5),
    }
    for name, (call, most) in waits.items():
        table.row(name, seconds_of(call), claim=at_most(most, "seconds"))
    table.row("one mixture of all columns of 1,000 of the rows", mixture_of_all_columns(X[:1_000]))


def with_effect(n: int, d: int, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Return groups in some columns and a column or label whose effect is a shift of others, and this column."""
    rng = np.random.default_rng(0)
    groups, known, own = rng.integers(n_groups, size=n), rng.integers(5, size=n), d // 5
    X = rng.standard_normal((n, d), dtype=np.float32)
    X[:, :own] += (1.5 * rng.standard_normal((n_groups, own)))[groups]
    X[:, own // 2 : 2 * own] += rng.standard_normal((5, 2 * own - own // 2))[known]
    return X, known


def cpu_seconds_of(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def large_tables(record: Record) -> None:
    """Fits and whole explorations of large tables, beside k-means with the number of groups."""
    table = record.table("Large tables, CPU seconds", "table", "fit", "whole exploration", "k-means told k")
    share = 0.02 if record.quick else 1.0
    sizes = [round(share * n) for n in (14_000, 100_000, 1_000_000)]
    X, known = with_effect(sizes[0], 100, 4)
    column = np.column_stack([known, X]).astype(np.float64)
    wide, label = with_effect(sizes[1], 768, 5)
    tall = rare_group(sizes[2], 20, sizes[2] // 250)[0]
    cases = (
        ("column as prior", column, Attributes([0]), 4, 7.0),
        ("label as prior", wide, Labels(label.astype(str)), 5, 15.0),
        ("a group of 0.4 %", tall, None, 6, 20.0),
    )
    for name, rows, prior, k, most in cases:
        table.row(
            f"{rows.shape[0]:,}×{rows.shape[1]}, {name}",
            cpu_seconds_of(lambda rows=rows, prior=prior: IMAPCE(random_state=0).fit(rows, prior=prior)),
            cpu_seconds_of(lambda rows=rows, prior=prior: Exploration(rows, prior=prior, random_state=0).run()),
            cpu_seconds_of(lambda rows=rows, k=k: KMeans(k, n_init=10, random_state=0).fit(rows)),
            claim=at_most(most, "whole exploration"),
        )


def main(record: Record, asked: Namespace) -> None:
    whole_exploration(record)
    one_step(record)
    everyday_tables(record)
    mixed_tables(record)
    large_table(record)
    large_tables(record)


if __name__ == "__main__":
    measure("exploration", main, __doc__)
