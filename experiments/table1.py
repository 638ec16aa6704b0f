"""Table 1 of the paper, the IMAPCE column: NLS on synthetic and Adult, linear accuracy on superimposed images.

α = 1 and μ as in the paper (200, 150, 1e5, 1e7). The paper's draws of images cannot be had; ours are five.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from experiments.results import Row
from imapce import IMAPCE, Attributes, Samples, datasets, metrics


def rows(quick: bool) -> list[Row]:
    seeds, draws = (3, 1) if quick else (20, 5)
    return [*synthetic(seeds), *adult(seeds), mnist(draws), cifar(draws), cifar(draws, n_starts=1)]


def fitted(X: Any, prior: Any, **parameters: Any) -> tuple[IMAPCE, float]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        # On CIFAR-100 no start meets the tolerance within max_iter; the table is about what is found by then.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = IMAPCE(alpha=1.0, **parameters).fit(X, prior=prior)
    return model, time.perf_counter() - start


def attribute_prior(data: datasets.Dataset, label: str, columns: list[int], mu: float, seeds: int) -> Any:
    objectives, scores, seconds = [], [], []
    for seed in range(seeds):
        model, elapsed = fitted(data.X, Attributes(columns), mu=mu, random_state=seed)
        objectives.append(model.objective_)
        scores.append(metrics.normalized_laplacian_score(model.transform(data.X), data.labels[label]))
        seconds.append(elapsed)
    return objectives, scores, float(np.median(seconds))


def synthetic(seeds: int) -> list[Row]:
    objectives, scores, seconds = attribute_prior(datasets.load_synthetic_paper(), "batch", [0, 1, 2, 3], 200, seeds)
    return [
        Row("synthetic, columns 0-3 known", "objective", None, objectives, "each <= 6387.39", seconds),
        Row("synthetic, columns 0-3 known", "NLS of batch", 0.45, scores, ">= 0.445", seconds),
    ]


def adult(seeds: int) -> list[Row]:
    data = datasets.fetch_adult()
    column = data.feature_names.index("ethnicity")
    objectives, scores, seconds = attribute_prior(data, "ethnicity", [column], 150, seeds)
    return [
        Row("Adult, ethnicity known", "objective", None, objectives, "each <= 3296.30", seconds),
        Row("Adult, ethnicity known", "NLS of ethnicity", 0.21, scores, ">= 0.205", seconds),
    ]


def superimposed(
    background: datasets.Dataset, classes: tuple[str, str], n_background: int, draws: int, **parameters: Any
) -> Any:
    reference = datasets.fetch_fashion_mnist()
    accuracies, seconds = [], []
    for draw in range(draws):
        data = datasets.make_superimposed(reference, background, classes, 6000, n_background, random_state=draw)
        model, elapsed = fitted(data.X, Samples(data.background), random_state=draw, **parameters)
        scores = metrics.classifier_scores(model.transform(data.X), data.labels["class"])
        accuracies.append(scores["accuracy"])
        seconds.append(elapsed)
    return accuracies, float(np.median(seconds))


def mnist(draws: int) -> Row:
    accuracies, seconds = superimposed(datasets.fetch_mnist(), ("Sandal", "Sneaker"), 1000, draws, mu=1e5)
    return Row("MNIST + Sandal/Sneaker", "linear accuracy", 0.81, accuracies, ">= 0.78", seconds)


def cifar(draws: int, n_starts: int = 10) -> Row:
    accuracies, seconds = superimposed(
        datasets.fetch_cifar100(), ("Trouser", "Dress"), 5000, draws, mu=1e7, n_starts=n_starts
    )
    name = "CIFAR-100 + Trouser/Dress" + (", one start" if n_starts == 1 else "")
    return Row(name, "linear accuracy", 0.95, accuracies, ">= 0.93", seconds)
