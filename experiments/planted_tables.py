"""Tables with a planted answer: Gaussians far apart and nearly touching, parallel sheets, a curve that is one group.

Each is a pure function of its seed that gives rows and the class of every row. Nothing here imports imapce.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.str_]

THREE_SHAPES = ((150, 4), (300, 5), (600, 10))
PAIR_SHAPE, PAIR_DISTANCE = (2_000, 8), 2.8
SHEETS_SHAPE = (600, 5)
# Size, three directions of shape, and the thin one across the sheets, which lie so many of its deviations apart.
SHEET_SPREADS, SHEET_DISTANCE = (10.0, 1.0, 1.0, 1.0, 0.15), 6.0
PARABOLA_SHAPE, PARABOLA_NOISE = (500, 5), 0.3


def three_gaussians(seed: int, n_rows: int = 600, n_columns: int = 10, distance: float = 5.0) -> tuple[Array, Labels]:
    """Three Gaussian clusters of unit variance, `distance` standard deviations apart each from each.

    >>> X, classes = three_gaussians(0, 150, 4, distance=8.0)
    >>> X.shape, sorted(set(classes.tolist()))
    ((150, 4), ['0', '1', '2'])
    """
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 3, n_rows)
    directions = np.linalg.qr(rng.standard_normal((n_columns, 3)))[0].T
    return rng.standard_normal((n_rows, n_columns)) + distance / np.sqrt(2) * directions[classes], classes.astype(str)


def overlapping_pair(seed: int) -> tuple[Array, Labels]:
    """Two Gaussians with one random covariance, d' = 2.8 apart in a random direction: 8 % lie nearer to the other."""
    rng = np.random.default_rng([seed, 28])
    classes = rng.integers(0, 2, PAIR_SHAPE[0])
    direction = rng.standard_normal(PAIR_SHAPE[1])
    rows = rng.standard_normal(PAIR_SHAPE) + PAIR_DISTANCE * np.outer(classes, direction / np.linalg.norm(direction))
    return np.asarray(rows @ rng.standard_normal((PAIR_SHAPE[1], PAIR_SHAPE[1]))), classes.astype(str)


def parallel_sheets(seed: int) -> tuple[Array, Labels]:
    """Two thin parallel sheets, told apart only across them, where the rows vary least.

    As in crabs every column is mostly size: it has 97 % of the variance, and the direction across has 0.2 %.
    """
    rng = np.random.default_rng([seed, 5])
    n_rows, n_columns = SHEETS_SHAPE
    classes = rng.integers(0, 2, n_rows)
    points = rng.standard_normal(SHEETS_SHAPE)
    points[:, -1] += SHEET_DISTANCE * (classes - 0.5)
    # Size moves all columns alike; the other directions are random among those square to it.
    directions = rng.standard_normal((n_columns, n_columns))
    directions[:, 0] = rng.uniform(0.8, 1.2, n_columns)
    return np.asarray((points * SHEET_SPREADS) @ np.linalg.qr(directions)[0].T), classes.astype(str)


def parabola(seed: int) -> tuple[Array, Labels]:
    """One noisy parabola among three columns of noise: dependence, and one group."""
    rng = np.random.default_rng([seed, 2])
    rows = rng.standard_normal(PARABOLA_SHAPE)
    rows[:, 1] = rows[:, 0] ** 2 + PARABOLA_NOISE * rows[:, 1]
    return rows, np.full(len(rows), "0")
