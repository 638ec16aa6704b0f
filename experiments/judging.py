"""How a view is judged where labels are there: 15-NN accuracy, the same within the classes of what is known.

15 neighbours (5 where there are at most 150 rows), five shuffled stratified folds with a fixed seed, distances of the
view as it is. Nothing here imports imapce, so that finished cells outlive every change of ours.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

Array = NDArray[np.float64]

NEIGHBOURS, OF_FEW_ROWS, FEW_ROWS = 15, 5, 150
FOLDS = 5
# "Within" counts a class of the known that has so many rows, and in it two classes looked for of so many each.
ENOUGH_KNOWN, ENOUGH_ROWS = 30, 5


def neighbours(n_rows: int) -> int:
    return NEIGHBOURS if n_rows > FEW_ROWS else OF_FEW_ROWS


def told_rows(view: Any, labels: Any, count: int | None = None) -> NDArray[np.bool_]:
    """(n,) whether most of a row's nearest among the other folds have its label.

    >>> told_rows([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]], list("aaabbb"), 1).tolist()
    [True, True, True, True, True, True]
    """
    codes = np.unique(np.asarray(labels), return_inverse=True)[1]
    folds = StratifiedKFold(min(FOLDS, int(np.bincount(codes).max())), shuffle=True, random_state=0)
    voters = KNeighborsClassifier(count or neighbours(len(codes)))
    with warnings.catch_warnings():
        # A class of fewer rows than folds is in some of them only.
        warnings.simplefilter("ignore", UserWarning)
        return np.asarray(cross_val_predict(voters, np.asarray(view), codes, cv=folds) == codes)


def accuracy(view: Any, labels: Any) -> float:
    """Share of the rows that `told_rows` tells."""
    return float(told_rows(view, labels).mean())


def within(view: Array, labels: Any, known: Any) -> float:
    """The accuracy inside each class of the known, weighted by rows; NaN where no class has enough of them."""
    labels, known = np.asarray(labels), np.asarray(known)
    count = neighbours(len(labels))
    told = []
    for one in np.unique(known):
        inside = known == one
        names, sizes = np.unique(labels[inside], return_counts=True)
        enough = names[sizes >= ENOUGH_ROWS]
        if inside.sum() < ENOUGH_KNOWN or len(enough) < 2:
            continue
        chosen = inside & np.isin(labels, enough)
        told.append(told_rows(view[chosen], labels[chosen], count))
    return float(np.concatenate(told).mean()) if told else float("nan")


def judged(view: Array, looked_for: Any, known: Any) -> dict[str, float]:
    """`content`, `within` and `read back`: what is wanted of a view with a label known.

    >>> rng, kind = np.random.default_rng(0), np.arange(120) % 2
    >>> scores = judged(rng.standard_normal((120, 2)) + 9 * kind[:, None], kind, np.arange(120) // 60)
    >>> scores["content"], scores["within"], scores["read back"] < 0.7
    (1.0, 1.0, True)
    """
    return {
        "content": accuracy(view, looked_for),
        "within": within(view, looked_for, known),
        "read back": accuracy(view, known),
    }


def largest_share(labels: Any) -> float:
    """The share of the largest class: what one guesses who sees nothing.

    >>> largest_share(list("aaab"))
    0.75
    """
    return float(np.unique(np.asarray(labels), return_counts=True)[1].max() / len(labels))
