"""How often clusters come back: those that are apart always, halves of one group seldom; rows without a value too."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imapce.clusters.structure import came_back
from sklearn.metrics import adjusted_rand_score

from imapce import IMAPCE, Exploration


def test_clusters_that_are_apart_always_come_back() -> None:
    X = np.random.default_rng(0).standard_normal((300, 4)) + 8 * np.eye(3, 4)[np.arange(300) % 3]
    exploration = Exploration(X, random_state=0).run()
    assert exploration.stability_.tolist() == [1.0, 1.0, 1.0]
    assert set(exploration.to_frame()["stability"]) == {1.0}


def test_pieces_of_one_group_come_back_less_often() -> None:
    X = np.random.default_rng(1).standard_normal((200, 6))
    exploration = Exploration(X, n_clusters=5, random_state=0).run()
    stability = exploration.stability_
    assert len(stability) == 5
    assert stability.mean() < 0.9
    assert np.allclose(stability * 10, np.round(stability * 10))


def test_a_cluster_comes_back_where_more_than_half_is_shared() -> None:
    before = np.repeat([0, 1], 10)
    assert came_back(before, np.repeat([3, 1], 10), 2).tolist() == [True, True]
    assert came_back(before, np.arange(20) % 2, 2).tolist() == [False, False]
    assert came_back(before, np.zeros(20, dtype=int), 2).tolist() == [False, False]


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_missing_cells_make_no_cluster_of_their_own(share: float) -> None:
    rng = np.random.default_rng(0)
    kind = np.arange(600) % 3
    X = rng.standard_normal((600, 5)) + 6 * np.eye(3, 5)[kind] + 6 * np.roll(np.eye(3, 5), 1, axis=0)[kind]
    table = pd.DataFrame(np.where(rng.random(X.shape) < share, np.nan, X), columns=list("abcde"))
    exploration = Exploration(table, estimator=IMAPCE(outliers="keep", missing="mean"), random_state=0).run()
    assert len(exploration.clusters_) == 3
    # A row that lacks both columns of its group cannot be told.
    assert adjusted_rand_score(kind, exploration.labels_) > 0.7


def test_granularity_turns_how_many_there_are() -> None:
    rng = np.random.default_rng(0)
    centres = 9 * rng.standard_normal((3, 6))
    X = np.concatenate(
        [
            centre + 1.6 * side * np.eye(6)[i] + rng.standard_normal((120, 6))
            for i, centre in enumerate(centres)
            for side in (-1, 1)
        ]
    )
    counts = [
        len(Exploration(X, granularity=one, random_state=0).run().clusters_) for one in ("coarser", "auto", "finer")
    ]
    assert counts == sorted(counts)
    assert len(Exploration(X, n_clusters=6, random_state=0).run().clusters_) == 6
