"""A session of planted groups, and what must hold of any session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce import IMAPCE, Exploration

Array = NDArray[np.float64]


def planted(n_rows: int = 160, n_groups: int = 4, n_features: int = 8, seed: int = 0) -> tuple[Array, NDArray[np.intp]]:
    """Groups of equal size; group g has 8 more in column g and noise of unit variance everywhere."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_rows) % n_groups
    X = rng.normal(size=(n_rows, n_features))
    X[:, :n_groups] += 8 * np.eye(n_groups)[group]
    return X, group


X, GROUP = planted()
NAMES = [f"c{i}" for i in range(8)]


def session(data: Any = None, **changes: Any) -> Exploration:
    options: dict[str, Any] = {"estimator": IMAPCE(alpha=1.0, mu=50.0, n_starts=3), "random_state": 0} | changes
    return Exploration(X if data is None else data, **options)


def saved_bytes(exploration: Exploration, folder: Path) -> bytes:
    exploration.save(folder / "state")
    return (folder / "state").read_bytes()


def consistent(exploration: Exploration, n_rows: int) -> None:
    """Every row is taken at most once, none is lost, and labels, clusters, steps and known rows tell one story."""
    taken = [cluster.rows for step in exploration.steps for cluster in step.clusters]
    rows = np.concatenate([*taken, np.empty(0, dtype=np.intp)])
    assert len(set(rows.tolist())) == len(rows)
    labels = exploration.labels_
    assert labels.shape == (n_rows,)
    assert len(exploration.clusters_) == sum(len(step.clusters) for step in exploration.steps) == len(taken)
    expected = np.full(n_rows, -1)
    for step in exploration.steps:
        for cluster in step.clusters:
            expected[cluster.rows] = cluster.number
    np.testing.assert_array_equal(labels, expected)
    numbers = [cluster.number for cluster in exploration.clusters_]
    assert numbers == sorted(set(numbers))
    assert int((labels == -1).sum()) + len(rows) == n_rows
