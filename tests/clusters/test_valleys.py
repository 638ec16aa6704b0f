"""Clusters without a valley between them are one; a column of two values makes none."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from imapce.clusters.valleys import merge_groups, valley_between


def blobs(n: int, apart: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    group = np.arange(n) % 3
    return np.random.default_rng(seed).standard_normal((n, 5)) + apart * np.eye(3, 5)[group], group


@pytest.mark.parametrize("seed", range(3))
def test_pieces_of_one_cluster_become_one_and_clusters_stay(seed: int) -> None:
    rows, group = blobs(600, 7.0, seed)
    pieces = 2 * group + (rows[:, 4] > 0)
    assert adjusted_rand_score(group, merge_groups(rows, pieces)) == 1.0


@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_a_cloud_with_one_peak_cut_anywhere_is_one(kind: str) -> None:
    rng = np.random.default_rng(1)
    rows = getattr(rng, kind)(size=(400, 4))
    cut = np.digitize(rows[:, 0], np.quantile(rows[:, 0], [0.3, 0.7]))
    assert set(merge_groups(rows, cut)) == {0}


def test_numbers_run_from_zero_and_one_cluster_stays_as_it_is() -> None:
    rows, group = blobs(90, 9.0)
    assert sorted(set(merge_groups(rows, 10 * group + 5).tolist())) == [0, 1, 2]
    assert set(merge_groups(rows, np.full(90, 7))) == {0}


def test_clusters_farther_apart_have_a_deeper_valley() -> None:
    rng = np.random.default_rng(0)
    assert valley_between(np.full(20, -1.0), np.full(20, 1.0)) > 3
    depths = [valley_between(rng.normal(-1, s, 2000), rng.normal(1, s, 2000)) for s in (2.0, 0.7, 0.4, 0.2)]
    assert depths == sorted(depths)
    assert depths[0] < 0.5
    assert depths[-1] > 3.5


def test_identical_rows_of_two_clusters_are_one() -> None:
    assert len(set(merge_groups(np.ones((40, 3)), np.arange(40) % 2))) in (1, 2)
