"""Which columns agree with others: a cluster is what several columns agree on.

    w_j = R_j,  the multiple correlation of source column j with the other source columns (adjusted, 0 by chance)

A column has a say in who is near whom as far as the others agree with it: random true/false columns, ids, unrelated
categories and a single two-humped column have (almost) none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]

RIDGE = 1e-3  # of a column's variance: columns that repeat each other leave nothing to invert
BEYOND = 0.01  # the chance, over all columns, that one which shares nothing counts
BOUND = 3.0  # standard deviations beyond which a value counts as lying there


def shared_weights(rows: Array, groups: Ints) -> Array:
    """R_j of every column (d,): how far the other source columns explain its source column, 0 within chance.

    `rows` (n, d) are some of the table's, `groups` their source columns. Of a number both it and its square (within
    three standard deviations) are explained, by the numbers and squares of the others, and the better counts: three
    clusters in a triangle leave their two columns uncorrelated. R² is adjusted for how many columns explain, and counts
    where an F-test finds it beyond chance. Where no column shares anything all weigh the same.

    >>> rng = np.random.default_rng(0)
    >>> both = rng.integers(0, 2, (300, 1)) * 4 + rng.standard_normal((300, 2))
    >>> alone = rng.integers(0, 2, (300, 1))
    >>> shared_weights(np.column_stack([both, alone]), np.arange(3)).round(1)
    array([0.8, 0.8, 0. ])
    """
    n, d = rows.shape
    varying = rows.std(axis=0) > 0
    own, square, F = _features(rows, groups)
    C = F.T @ F / n
    precision = np.linalg.inv(C + RIDGE * np.eye(len(C)))
    found: list[tuple[int, float, int, int]] = []
    for source in np.unique(own):
        of_source = own == source
        for kind in (False, True):
            target = np.flatnonzero(of_source & (square == kind))
            if not len(target):
                continue
            # What is left of the target given all others, but not given the other part of its own source.
            beside = np.flatnonzero(of_source & (square != kind))
            P = precision[np.ix_(target, target)]
            if len(beside):
                across = precision[np.ix_(target, beside)]
                P = P - across @ np.linalg.solve(precision[np.ix_(beside, beside)], across.T)
            left = np.trace(np.linalg.inv(P)) - RIDGE * len(target)
            explained = 1 - left / np.trace(C[np.ix_(target, target)])
            found.append((int(source), float(explained), int(len(own) - of_source.sum()), max(1, len(target) - 1)))
    if not found:
        return varying.astype(np.float64)
    sources, shares, others, width = (np.array(column) for column in zip(*found, strict=True))
    shares, p = np.clip(shares, 0.0, 1 - 1e-9), np.clip(others, 1, n // 2)
    free = np.maximum(n - p - 1, 1)
    chance = f_distribution.sf((shares / p) / ((1 - shares) / free), p * width, free * width)
    adjusted = np.maximum(1 - (1 - shares) * (n - 1) / free, 0.0)
    weights = np.zeros(d)
    beyond = chance < BEYOND / len(found)
    for source, share in zip(sources[beyond], adjusted[beyond], strict=True):
        weights[groups == source] = np.maximum(weights[groups == source], np.sqrt(share))
    # Sharing is mutual: one column that others explain but that explains none is chance.
    alone = len(np.unique(sources[beyond])) < 2
    return varying.astype(np.float64) if alone else weights * varying


def _features(rows: Array, groups: Ints) -> tuple[Ints, Mask, Array]:
    """What explains and is explained: columns and squares of columns, whose each is, which are squares, and (n, c)."""
    n, d = rows.shape
    centred = rows - rows.mean(axis=0)
    spread = np.sqrt(np.bincount(groups, weights=np.mean(centred**2, axis=0)))[groups]
    bounded = np.clip(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0), -BOUND, BOUND)
    bounded -= bounded.mean(axis=0)
    single = np.flatnonzero(np.bincount(groups)[groups] == 1)
    F, own, square = bounded, groups, np.zeros(d, dtype=bool)
    if 4 * d <= n:
        squares = bounded[:, single] ** 2
        squares -= squares.mean(axis=0)
        # The square of a column of two values is the column itself.
        with np.errstate(invalid="ignore", divide="ignore"):
            same = np.abs(np.mean(squares * bounded[:, single], axis=0)) / (
                squares.std(axis=0) * bounded[:, single].std(axis=0)
            )
        squares, single = squares[:, same <= 0.999], single[same <= 0.999]
        F = np.concatenate([bounded, squares], axis=1)
        own = np.concatenate([groups, groups[single]])
        square = np.concatenate([square, np.ones(len(single), dtype=bool)])
    size = F.std(axis=0)
    varies = size > 1e-6
    F, own, square = F[:, varies] / size[varies], own[varies], square[varies]
    # The columns of one category share its one unit of variance.
    linear = np.bincount(own[~square], minlength=int(groups.max()) + 1)
    return own, square, F / np.sqrt(np.where(square, 1, np.maximum(linear[own], 1)))
