"""An order of the rows that their values alone decide, so that what is drawn of them is the same wherever they stand.

    u = Zg,  g two fixed directions;      rows in the order of u₁, those that agree in it in the order of u₂

Sorting a table, or reading it from another place, must not change what is found in it; yet folds, samples and starts
are taken by place. Taken by the place in this order, they are the same rows. Sums of the same numbers in another order
differ in their last digits, so u counts up to DIGITS of its spread; rows that agree in both are the same row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.intp]

DIGITS = 1e-9


def order_of_points(points: Array) -> Places:
    """The order of rows (n, c) by their columns, the first before the second and so on.

    >>> order_of_points(np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 1.0]]))
    array([1, 2, 0])
    """
    if points.size == 0:
        return np.arange(len(points))
    # A few far rows would make the spread so wide that all others agree.
    spread = np.subtract(*np.percentile(points, [75, 25], axis=0))
    spread = np.where(spread > 0, spread, points.std(axis=0))
    whole = np.rint(points / np.where(spread > 0, DIGITS * spread, 1.0))
    return np.lexsort(whole.T[::-1])


def key_directions(n_features: int) -> Array:
    """g (d, 2), always the same: eigenvectors would have signs that another order of the rows turns.

    >>> key_directions(3).shape
    (3, 2)
    """
    return np.random.default_rng(0).standard_normal((n_features, 2))
