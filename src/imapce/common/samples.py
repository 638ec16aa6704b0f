"""Which rows stand for many: drawn once and for all, so that the same table always asks the same ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def seeded_sample(n_rows: int, most: int) -> NDArray[np.bool_]:
    """A mask of at most `most` rows, the same whenever asked: two fits of the same rows ask the same ones.

    >>> int(seeded_sample(50, 10).sum()), int(seeded_sample(5, 10).sum())
    (10, 5)
    """
    mask = np.ones(n_rows, dtype=bool)
    if n_rows > most:
        mask[:] = False
        mask[np.random.default_rng(0).choice(n_rows, most, replace=False)] = True
    return mask
