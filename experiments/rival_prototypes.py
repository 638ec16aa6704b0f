"""Clusterings that are told how many clusters there are: k-means, and k-prototypes of mixed tables (Huang 1998).

Nothing here imports imapce.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from experiments.plain_rows import plain_matrix, standard_columns

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

STARTS, MOST_ROUNDS = 10, 100


def kmeans_told(Z: Array, n_classes: int, seed: int) -> Labels:
    return np.asarray(KMeans(n_classes, n_init=10, random_state=seed).fit_predict(Z))


def prototypes_told(table: pa.Table, n_classes: int, seed: int) -> Labels:
    """k-prototypes: squared distances of standardised numbers to means, and γ for every category that is not the mode.

    γ is half the mean standard deviation of the numbers, which is 1/2 of standardised ones. True and false are
    categories; a hole is the mean of its column or its most frequent level. The best of ten starts.

    >>> kind = pa.array(["a", "a", "b", "b"]).dictionary_encode()
    >>> labels = prototypes_told(pa.table({"size": [0.0, 0.1, 5.0, 5.1], "kind": kind}), 2, 0)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """
    numbers, codes = _parts(table)
    gamma = float(numbers.std(axis=0).mean()) / 2 if numbers.shape[1] else 1.0
    rng = np.random.default_rng(seed)
    runs = [_from_one_start(numbers, codes, gamma, n_classes, rng) for _ in range(STARTS)]
    return min(runs, key=lambda one: one[0])[1]


def _parts(table: pa.Table) -> tuple[Array, Labels]:
    """(n, p) standardised numbers and (n, q) codes of the categories."""
    nominal = [pa.types.is_dictionary(one.type) or pa.types.is_boolean(one.type) for one in table.schema]
    names = [one for one, is_nominal in zip(table.column_names, nominal, strict=True) if not is_nominal]
    numbers = standard_columns(plain_matrix(table.select(names))) if names else np.zeros((len(table), 0))
    codes = []
    for column in (table[one] for one in table.column_names if one not in names):
        texts = np.array(["" if one is None else f"={one}" for one in column.to_pylist()])
        levels, counts = np.unique(texts[texts != ""], return_counts=True)
        codes.append(np.searchsorted(levels, np.where(texts == "", levels[counts.argmax()], texts)))
    return numbers, np.column_stack(codes) if codes else np.zeros((len(table), 0), dtype=np.intp)


def _from_one_start(
    numbers: Array, codes: Labels, gamma: float, count: int, rng: np.random.Generator
) -> tuple[float, Labels]:
    """The cost and the labels that rounds of means, modes and nearest prototypes come to from rows drawn at random."""
    drawn = rng.choice(len(numbers), count, replace=False)
    means, modes = numbers[drawn], codes[drawn]
    labels = np.full(len(numbers), -1)
    for _ in range(MOST_ROUNDS):
        costs = _costs(numbers, codes, means, modes, gamma)
        nearest = costs.argmin(axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        for one in np.unique(labels):
            inside = labels == one
            means[one] = numbers[inside].mean(axis=0)
            modes[one] = [np.bincount(column).argmax() for column in codes[inside].T]
    return float(costs.min(axis=1).sum()), labels


def _costs(numbers: Array, codes: Labels, means: Array, modes: Labels, gamma: float) -> Array:
    """(n, k) costs of every row by every prototype."""
    return np.column_stack(
        [
            ((numbers - mean) ** 2).sum(axis=1) + gamma * (codes != mode).sum(axis=1)
            for mean, mode in zip(means, modes, strict=True)
        ]
    )
