"""Stability: separated clusters reappear in all resamples, parts of one group in few; granularity; missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from imapce import IMAPCE, Exploration
from imapce.clusters.stability import reappears


def test_separated_clusters_always_reappear() -> None:
    X = np.random.default_rng(0).standard_normal((300, 4)) + 8 * np.eye(3, 4)[np.arange(300) % 3]
    exploration = Exploration(X, random_state=0).run()
    assert exploration.stability_.tolist() == [1.0, 1.0, 1.0]
    assert set(exploration.to_frame()["stability"]) == {1.0}


def test_parts_of_one_group_reappear_less_often() -> None:
    X = np.random.default_rng(1).standard_normal((200, 6))
    exploration = Exploration(X, n_clusters=5, random_state=0).run()
    stability = exploration.stability_
    assert len(stability) == 5
    assert stability.mean() < 0.9
    assert np.allclose(stability * 10, np.round(stability * 10))


def test_a_cluster_reappears_if_its_jaccard_index_is_large() -> None:
    before = np.repeat([0, 1], 20)
    assert reappears(before, np.repeat([3, 1], 20), 2).tolist() == [True, True]
    assert reappears(before, np.arange(40) % 2, 2).tolist() == [False, False]
    # All rows as one cluster: 20 of 40 are shared with each.
    assert reappears(before, np.zeros(40, dtype=int), 2).tolist() == [False, False]
    # 15 of 20 rows are 0.75, and 20 of 25 are 0.8.
    assert reappears(before, np.repeat([0, 1], [15, 25]), 2).tolist() == [True, True]
    assert reappears(before, np.repeat([0, 1], [14, 26]), 2).tolist() == [False, True]


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_missing_values_have_no_cluster_of_their_own(share: float) -> None:
    rng = np.random.default_rng(0)
    kind = np.arange(600) % 3
    X = rng.standard_normal((600, 5)) + 6 * np.eye(3, 5)[kind] + 6 * np.roll(np.eye(3, 5), 1, axis=0)[kind]
    table = pd.DataFrame(np.where(rng.random(X.shape) < share, np.nan, X), columns=list("abcde"))
    exploration = Exploration(table, estimator=IMAPCE(outliers="keep", missing="mean"), random_state=0).run()
    assert len(exploration.clusters_) == 3
    # A row without both columns of its group cannot be assigned.
    assert adjusted_rand_score(kind, exploration.labels_) > 0.7


def test_granularity_changes_the_number_of_clusters() -> None:
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
