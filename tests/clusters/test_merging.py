"""Overlap of clusters, groups of overlapping clusters, and clusters that are confounded with covariates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from imapce.clusters.merging import merge_confounded_clusters, overlap_matrix, overlapping_groups
from imapce.common.settings import SETTINGS


def soft(labels: np.ndarray, k: int, other: dict[int, int], share: float) -> np.ndarray:
    """Probabilities of labels, with `share` of cluster c given to cluster other[c]."""
    resp = np.eye(k)[labels]
    for c, elsewhere in other.items():
        resp[labels == c, c], resp[labels == c, elsewhere] = 1 - share, share
    return resp


def test_overlap_is_the_share_of_a_cluster_that_is_assigned_to_another() -> None:
    resp = np.array([[0.9, 0.1, 0.0], [0.6, 0.4, 0.0], [0.2, 0.8, 0.0], [0.0, 0.3, 0.7]])
    expected = [[0, 0.2 / 1.7, 0], [0.5 / 1.6, 0, 0.3 / 1.6], [0, 0, 0]]
    np.testing.assert_allclose(overlap_matrix(resp), expected)


@pytest.mark.parametrize(("share", "n_groups"), [(0.09, 3), (0.12, 2)])
def test_clusters_that_overlap_by_more_than_ten_percent_are_one_group(share: float, n_groups: int) -> None:
    resp = soft(np.repeat([0, 1, 2], 100), 3, {0: 2, 2: 0}, share)
    found = overlapping_groups(resp)
    assert len(np.unique(found)) == n_groups
    assert bool(found[0] == found[2]) is (n_groups == 2)
    assert found[1] not in (found[0], found[2])


def test_a_cluster_that_overlaps_little_with_each_of_many_is_in_a_group() -> None:
    """Five others have 4 % each, which are 20 % together."""
    resp = np.eye(6)[np.repeat(np.arange(6), 50)]
    resp[:50] = [0.8, *[0.04] * 5]
    resp[50:, 0], resp[50:] = 0.04, resp[50:] * 0.96 + 0.04 * np.eye(6)[0]
    assert len(np.unique(overlapping_groups(resp))) < 6


def test_a_chain_of_overlapping_clusters_is_one_group() -> None:
    resp = soft(np.repeat(np.arange(4), 100), 4, {0: 1, 1: 2, 2: 1}, 0.15)
    assert overlapping_groups(resp).tolist() == [0, 0, 0, 1]


def confounded(n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two types in two runs, each run with clusters of its own: clusters 0 and 1 in run 0, 2 and 3 in run 1."""
    labels = np.repeat(np.arange(4), n)
    rows = np.random.default_rng(0).standard_normal((4 * n, 2)) + np.array([[0, 0], [20, 0], [0, 4], [20, 6]])[labels]
    return rows, labels, np.where(labels < 2, -1.0, 1.0)[:, None]


def test_confounded_clusters_are_merged_with_the_nearest_of_the_other_class() -> None:
    rows, labels, run = confounded()
    merged = merge_confounded_clusters(labels, run, [rows])
    assert merged.reshape(4, -1)[:, 0].tolist() == [0, 1, 0, 2]
    assert len(np.unique(merged)) == 3


def test_clusters_that_share_classes_are_not_merged() -> None:
    rows, labels, run = confounded()
    mixed = run.copy()
    mixed[:20] *= -1
    np.testing.assert_array_equal(merge_confounded_clusters(labels, mixed, [rows]), labels)
    # Less than a tenth of a cluster connects nothing.
    few = run.copy()
    few[:3] *= -1
    assert len(np.unique(merge_confounded_clusters(labels, few, [rows]))) == 3


def test_rows_without_a_label_do_not_connect_classes() -> None:
    rows, labels, run = confounded()
    run[labels == 0][:20] = 0.0
    without = run.copy()
    without[:20] = without[80:100] = 0.0
    merged = merge_confounded_clusters(labels, without, [rows])
    assert len(np.unique(merged)) == 3
    assert merged[0] == merged[80]
    assert merged[0] != merged[40]


def test_more_classes_than_are_compared_merge_nothing() -> None:
    rows, labels, run = confounded()
    np.testing.assert_array_equal(
        merge_confounded_clusters(labels, run, [rows], replace(SETTINGS.clusters, most_classes=1)), labels
    )
    one_class = np.ones_like(run)
    np.testing.assert_array_equal(merge_confounded_clusters(labels, one_class, [rows]), labels)
