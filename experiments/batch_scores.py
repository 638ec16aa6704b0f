"""How a space without its batch is judged: neighbours, Leiden's clusters, corrected columns.

Nothing here imports imapce, so that finished cells outlive every change of ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from experiments import rivals
from experiments.judging import judged, told_rows
from experiments.rival_graphs import leiden

Array = NDArray[np.float64]

LEIDEN = "Leiden"


def scores(space: Array, looked_for: Any, batch: Any) -> dict[str, float]:
    """15-NN of what is looked for, within batches, of the batch; ARI and NMI of Leiden where it is installed.

    >>> rng, kind = np.random.default_rng(0), np.arange(120) % 2
    >>> scores(rng.standard_normal((120, 2)) + 9 * kind[:, None], kind, np.arange(120) // 60)["content"]
    1.0
    """
    found = judged(space, looked_for, batch)
    if rivals.is_installed(LEIDEN):
        labels = leiden(space, 0, 0)
        found["Leiden ARI"] = float(adjusted_rand_score(looked_for, labels))
        found["Leiden NMI"] = float(normalized_mutual_info_score(looked_for, labels))
    return found


def column_errors(columns: Array, truth: Array, shifted: NDArray[np.bool_]) -> dict[str, float]:
    """Root of the mean squared error, both centred: of the columns a batch was planted in, and of all others.

    >>> column_errors(np.zeros((2, 2)), np.array([[1.0, 3.0], [-1.0, 3.0]]), np.array([True, False]))
    {'shifted': 1.0, 'others': 0.0}
    """
    error = (columns - columns.mean(axis=0)) - (truth - truth.mean(axis=0))
    return {
        name: float(np.sqrt(np.mean(error[:, where] ** 2)))
        for name, where in (("shifted", shifted), ("others", ~shifted))
    }


def apart(space: Array, looked_for: Any, one: str) -> dict[str, float]:
    """Whether a class is still apart: share of its rows told by 15-NN, and F1 of the Leiden cluster most like it."""
    is_one = np.asarray(looked_for) == one
    found = {"told": float(told_rows(space, looked_for)[is_one].mean())}
    if rivals.is_installed(LEIDEN):
        labels = leiden(space, 0, 0)
        both = [2 * np.sum(is_one & (labels == c)) / (is_one.sum() + np.sum(labels == c)) for c in np.unique(labels)]
        found["F1"] = float(max(both))
    return found
