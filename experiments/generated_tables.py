"""Generated tables with known groups: elliptical groups in few columns, and groups hidden in wide tables.

Each table is a pure function of its seed. Nothing here imports imapce.

>>> X, classes = elliptical_groups(0)
>>> X.shape == (len(classes), X.shape[1])
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.str_]

N_TABLES, N_WIDE = 60, 12
ROWS, COLUMNS, GROUPS = (300, 3_000), (2, 64), (2, 10)
SEPARATION = (2.0, 6.0)
TAILS = (3.0, 5.0, 10.0, np.inf)
# Standard deviations of a group along its axes are drawn log-uniformly from this range.
SPREADS = (0.4, 1.6)
WIDE_ROWS, WIDE_COLUMNS, WIDE_GROUPS = (1_500, 20_000), (300, 1_000), (10, 14)
WIDE_NOISE_AXES = (20, 80)


def elliptical_groups(seed: int) -> tuple[Array, Labels]:
    """Return the rows and classes of elliptical groups with t(3) to Gaussian tails.

    The means of the two nearest groups are d' = 2 to 6 apart (Mahalanobis distance in their mean covariance).
    """
    rng = np.random.default_rng([seed, 60])
    n, d = _log_uniform(rng, ROWS), _log_uniform(rng, COLUMNS)
    k = int(rng.integers(GROUPS[0], GROUPS[1] + 1))
    separation, tail = rng.uniform(*SEPARATION), float(rng.choice(TAILS))
    sizes = np.full(k, 1 / k) if rng.random() < 0.5 else 0.3 / k + 0.7 * rng.dirichlet(np.full(k, 2.0))
    factors = [_factor(rng, d) for _ in range(k)] if rng.random() < 0.5 else [_factor(rng, d)] * k
    means = rng.standard_normal((k, d))
    means *= separation / _smallest_distance(means, factors)
    classes = rng.choice(k, n, p=sizes)
    noise = rng.standard_normal((n, d))
    if np.isfinite(tail):
        # Unit variance whatever the tails are, so that d' has one meaning.
        noise *= np.sqrt((tail - 2) / rng.chisquare(tail, (n, 1)))
    rows = np.stack([means[c] + noise[i] @ factors[c] for i, c in enumerate(classes)])
    return rows, classes.astype(str)


def hidden_groups(seed: int) -> tuple[Array, Labels]:
    """Return the rows and classes of groups in a wide table whose noise axes are stronger than the groups."""
    rng = np.random.default_rng([seed, 12])
    n, d = _log_uniform(rng, WIDE_ROWS), _log_uniform(rng, WIDE_COLUMNS)
    k = int(rng.integers(WIDE_GROUPS[0], WIDE_GROUPS[1] + 1))
    n_noise = int(rng.integers(WIDE_NOISE_AXES[0], WIDE_NOISE_AXES[1] + 1))
    axes = np.linalg.qr(rng.standard_normal((d, n_noise + k)))[0].T
    classes = rng.integers(0, k, n)
    # Noise axes have 2 to 6 times the standard deviation that the groups cause along an axis of their own.
    distance = 6.0
    spread = distance / np.sqrt(k) * rng.uniform(2.0, 6.0, n_noise)
    rows = rng.standard_normal((n, d)) + (rng.standard_normal((n, n_noise)) * spread) @ axes[:n_noise]
    return rows + distance * axes[n_noise:][classes], classes.astype(str)


def rare_group(
    n_rows: int = 1_000_000, n_columns: int = 20, n_rare: int = 4_000, distance: float = 8.0, n_groups: int = 5
) -> tuple[Array, NDArray[Any]]:
    """Return the rows of some large groups and of one rare group that is `distance` away in each column."""
    rng = np.random.default_rng([n_rows, n_rare])
    means = 3.0 * rng.standard_normal((n_groups, n_columns))
    classes = rng.integers(0, n_groups, n_rows)
    classes[rng.choice(n_rows, n_rare, replace=False)] = n_groups
    means = np.vstack([means, means.max(axis=0) + distance])
    rows = rng.standard_normal((n_rows, n_columns))
    rows += means[classes]
    return rows, classes


def _log_uniform(rng: np.random.Generator, bounds: tuple[int, int]) -> int:
    """Draw a whole number log-uniformly."""
    return round(float(np.exp(rng.uniform(*np.log(bounds)))))


def _factor(rng: np.random.Generator, d: int) -> Array:
    """Draw a matrix F (d, d) whose FᵀF is a random covariance."""
    spreads = np.exp(rng.uniform(*np.log(SPREADS), d))
    return np.asarray(spreads[:, None] * np.linalg.qr(rng.standard_normal((d, d)))[0])


def _smallest_distance(means: Array, factors: list[Array]) -> float:
    """Return the smallest Mahalanobis distance of two means in the mean covariance of their groups."""
    found = np.inf
    for a in range(len(means)):
        for b in range(a):
            covariance = (factors[a].T @ factors[a] + factors[b].T @ factors[b]) / 2
            gap = means[a] - means[b]
            found = min(found, float(np.sqrt(gap @ np.linalg.solve(covariance, gap))))
    return found
