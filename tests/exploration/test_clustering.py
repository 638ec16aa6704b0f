"""Clusters of a view: equations 4 and 5, which clusters count, and that units, seeds and sampling do not matter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from archives import repacked, unpacked
from imapce import Exploration
from imapce.errors import InvalidValueError
from imapce.exploration import clustering
from imapce.exploration.clustering import OUTLIER, cluster_view, mahalanobis_distinctness, most_distinct, settings_of

Array = NDArray[np.float64]
CORNERS = np.array([[0.0, 0.0, 0.0], [20.0, 0.0, 4.0], [50.0, 30.0, -6.0], [-40.0, 5.0, 9.0]])


def blobs(sizes: list[int], n_axes: int = 2, spread: float = 1.0, seed: int = 0) -> tuple[Array, NDArray[np.intp]]:
    """Well separated round blobs and the blob of every row."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    return CORNERS[truth, :n_axes] + spread * rng.normal(size=(len(truth), n_axes)), truth


def looped_distinctness(means: Array, covariances: Array) -> list[float]:
    """Equations 4 and 5 entry by entry."""
    n = len(means)
    delta = [[0.0] * n for _ in range(n)]
    for one in range(n):
        inverse = np.linalg.inv(covariances[one])
        for other in range(n):
            step = means[other] - means[one]
            delta[one][other] = float(np.sqrt(step @ inverse @ step))
    return [sum((delta[one][other] + delta[other][one]) / 2 for other in range(n)) for one in range(n)]


def same_partition(a: NDArray, b: NDArray) -> bool:
    return adjusted_rand_score(a, b) == 1.0


# --- equations 4 and 5 --------------------------------------------------------------------------------------------


@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 1000))
def test_distinctness_is_the_sum_of_symmetrised_mahalanobis_distances(n_clusters: int, n_axes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    means = 5 * rng.normal(size=(n_clusters, n_axes))
    factors = rng.normal(size=(n_clusters, n_axes, n_axes + 3))
    covariances = factors @ factors.transpose(0, 2, 1)
    expected = looped_distinctness(means, covariances)
    np.testing.assert_allclose(mahalanobis_distinctness(means, covariances), expected, rtol=1e-9, atol=1e-12)


def test_distinctness_of_no_clusters_is_empty() -> None:
    assert mahalanobis_distinctness(np.zeros((0, 2)), np.zeros((0, 2, 2))).shape == (0,)


def test_the_distinctness_reported_is_that_of_the_means_and_covariances_reported() -> None:
    view, _ = blobs([80, 60, 40])
    found = cluster_view(view, min_cluster_size=10)
    assert len(found.sizes) >= 3
    np.testing.assert_allclose(found.distinctness, looped_distinctness(found.means, found.covariances), rtol=1e-6)


@pytest.mark.parametrize(
    ("distinctness", "expected"),
    [([], ()), ([0.0], (0,)), ([3.0, 3.0], (0, 1)), ([1.0, 7.0, 2.0], (1,)), ([1.0, 2.0, 3.0, 9.0], (3,))],
)
def test_both_of_two_clusters_are_taken_else_the_most_distinct(
    distinctness: list[float], expected: tuple[int, ...]
) -> None:
    assert most_distinct(np.array(distinctness)) == expected


def test_the_blob_far_from_the_others_is_most_distinct() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 60)
    view = np.array([[0.0, 0.0], [10.0, 0.0], [5.0, 90.0]])[truth] + rng.normal(size=(180, 2))
    found = cluster_view(view, min_cluster_size=30)
    (chosen,) = found.most_distinct
    assert set(truth[found.labels == chosen]) == {2}


# --- acceptable clusters ----------------------------------------------------------------------------------------------


def test_clusters_are_numbered_by_size_and_small_ones_are_outliers() -> None:
    view, truth = blobs([30, 90, 60, 12], spread=0.2)
    found = cluster_view(view, min_cluster_size=20, max_clusters=4)
    assert found.sizes.tolist() == [90, 60, 30]
    assert [set(truth[found.labels == c]) for c in range(3)] == [{1}, {2}, {0}]
    assert set(truth[found.labels == OUTLIER]) == {3}
    assert len(found.means) == len(found.covariances) == len(found.distinctness) == 3


def test_a_cluster_of_exactly_the_smallest_size_is_acceptable() -> None:
    view, _ = blobs([50, 20], spread=0.2)
    assert cluster_view(view, min_cluster_size=20, max_clusters=2).sizes.tolist() == [50, 20]
    assert cluster_view(view, min_cluster_size=21, max_clusters=2).sizes.tolist() == [50]


def test_exactly_two_acceptable_clusters_are_both_most_distinct() -> None:
    view, _ = blobs([60, 50], spread=0.2)
    assert cluster_view(view, min_cluster_size=20, max_clusters=2).most_distinct == (0, 1)


def test_one_acceptable_cluster_is_most_distinct() -> None:
    view, truth = blobs([80, 10, 10], spread=0.2)
    found = cluster_view(view, min_cluster_size=20, max_clusters=3)
    assert found.most_distinct == (0,)
    np.testing.assert_array_equal(found.labels == 0, truth == 0)


def test_no_acceptable_cluster_gives_nothing() -> None:
    view, _ = blobs([15, 15, 15], spread=0.2)
    found = cluster_view(view, min_cluster_size=40, max_clusters=3)
    assert found.most_distinct == ()
    assert (found.labels == OUTLIER).all()
    assert found.means.shape == (0, 2)
    assert found.covariances.shape == (0, 2, 2)


def test_empty_components_of_the_mixture_do_not_shift_labels_against_means() -> None:
    # Two blobs and up to twelve components: most get no row, and some of them come before the ones that do.
    empty_before_used = False
    for seed in range(8):
        view, _ = blobs([70, 40], spread=0.5, seed=seed)
        scaled, _ = clustering._unit_axes(view)
        used = np.unique(clustering._mixture(scaled, np.arange(len(view)), 12, seed)[0])
        empty_before_used |= bool(used.max() > len(used) - 1)
        found = cluster_view(view, min_cluster_size=10, max_clusters=12, seed=seed)
        for cluster in range(len(found.sizes)):
            members = view[found.labels == cluster]
            deviation = found.means[cluster] - members.mean(axis=0)
            assert np.linalg.norm(deviation) < 1.5, (seed, cluster)
            assert np.linalg.norm(found.means - members.mean(axis=0), axis=1).argmin() == cluster
    assert empty_before_used, "no mixture of this test had an empty component before a used one"


# --- what must not matter ---------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_clusters() -> None:
    view = np.random.default_rng(0).normal(size=(200, 2))
    one, two = (cluster_view(view, min_cluster_size=10, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.means, two.means)
    np.testing.assert_array_equal(one.distinctness, two.distinctness)


def test_the_view_is_not_changed() -> None:
    view, _ = blobs([40, 30])
    before = view.copy()
    cluster_view(view, min_cluster_size=10)
    np.testing.assert_array_equal(view, before)


ANGLE = 0.7
ROTATION = np.array([[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]])
SHEAR = np.array([[1.0, 3.0], [0.0, 0.02]])
MAPS = {
    "a millionth": 1e-6 * np.eye(2),
    "a million": 1e6 * np.eye(2),
    "rotation": ROTATION,
    "unequal units": np.diag([1e-3, 1e3]),
    "shear": SHEAR,
}


@pytest.mark.parametrize("name", MAPS)
def test_clusters_and_distinctness_do_not_depend_on_units_or_rotation(name: str) -> None:
    view, _ = blobs([90, 60, 40])
    moved = view @ MAPS[name].T + 5 * np.abs(MAPS[name]).max()
    plain = cluster_view(view, min_cluster_size=20)
    mapped = cluster_view(moved, min_cluster_size=20)
    np.testing.assert_array_equal(mapped.labels, plain.labels)
    np.testing.assert_allclose(mapped.distinctness, plain.distinctness, rtol=1e-4)


def test_means_and_covariances_come_in_the_units_of_the_view() -> None:
    view, truth = blobs([100, 80, 60])
    by = 1e6 * ROTATION
    plain = cluster_view(view, min_cluster_size=20, max_clusters=3)
    mapped = cluster_view(view @ by.T, min_cluster_size=20, max_clusters=3)
    assert mapped.sizes.tolist() == [100, 80, 60]
    np.testing.assert_allclose(mapped.means, plain.means @ by.T, rtol=1e-4, atol=1e2)
    np.testing.assert_allclose(mapped.covariances, by @ plain.covariances @ by.T, rtol=1e-4, atol=1e8)
    for cluster in range(3):
        # The mixture pulls the means a little towards the middle of the view.
        np.testing.assert_allclose(plain.means[cluster], view[truth == cluster].mean(axis=0), atol=2.0)


# --- views at the edge ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6 / 3])
def test_identical_rows_are_at_most_one_cluster(value: float) -> None:
    found = cluster_view(np.full((40, 2), value), min_cluster_size=10)
    assert len(found.sizes) <= 1
    assert np.isfinite(found.distinctness).all()
    np.testing.assert_allclose(found.means, np.full((len(found.sizes), 2), value))


def test_a_view_on_a_line_has_its_clusters_found() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [70, 50])
    along = np.array([0.0, 30.0])[truth] + rng.normal(size=120)
    found = cluster_view(along[:, None] * np.array([[1.0, -2.0]]) + 7.0, min_cluster_size=20)
    assert found.most_distinct
    assert np.isfinite(found.distinctness).all()
    for cluster in range(len(found.sizes)):
        assert len(set(truth[found.labels == cluster])) == 1
        np.testing.assert_allclose((found.means[cluster] - 7.0) @ [2.0, 1.0], 0.0, atol=1e-8)


@pytest.mark.parametrize("n_rows", [2, 3, 4])
def test_fewer_rows_than_clusters_looked_for_are_clustered(n_rows: int) -> None:
    view = np.random.default_rng(0).normal(size=(n_rows, 2))
    found = cluster_view(view, min_cluster_size=1, max_clusters=5)
    assert found.labels.shape == (n_rows,)
    assert int(found.sizes.sum()) == int((found.labels != OUTLIER).sum())


@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_blobs_are_found_in_one_two_and_three_axes(n_axes: int) -> None:
    view, truth = blobs([70, 60, 50, 40], n_axes, spread=0.2)
    found = cluster_view(view, min_cluster_size=30, max_clusters=4)
    taken = found.labels != OUTLIER
    assert taken.mean() > 0.9
    assert same_partition(found.labels[taken], truth[taken])
    assert found.means.shape == (4, n_axes)
    assert found.covariances.shape == (4, n_axes, n_axes)


def test_no_more_clusters_than_asked_for() -> None:
    view, _ = blobs([40, 40, 40, 40], spread=0.2)
    assert len(cluster_view(view, min_cluster_size=10, max_clusters=2).sizes) <= 2


def test_a_large_view_is_learned_from_a_sample_and_the_rest_assigned() -> None:
    view, truth = blobs([600, 400, 300], spread=0.5)
    everything = cluster_view(view, min_cluster_size=100, max_clusters=3)
    sampled = cluster_view(view, min_cluster_size=100, max_clusters=3, cluster_all=500, sample=500)
    assert everything.sampled == len(view)
    assert sampled.sampled == 500
    both = (everything.labels != OUTLIER) & (sampled.labels != OUTLIER)
    assert both.mean() > 0.999
    np.testing.assert_array_equal(sampled.labels[both], everything.labels[both])
    assert same_partition(sampled.labels[both], truth[both])


def test_a_view_of_exactly_the_sample_size_is_clustered_whole() -> None:
    view, _ = blobs([60, 50])
    one_more = np.vstack([view, view[:1]])
    for rows in (view, one_more):
        assert cluster_view(rows, min_cluster_size=20, cluster_all=110, sample=110).sampled == 110


@pytest.mark.parametrize(
    ("clusterer", "way_out"), [("kmeans", "got 'kmeans'"), ("hdbscan", 'use "dpgmm" for clusters')]
)
def test_a_clusterer_that_is_none_is_refused_in_one_sentence(clusterer: str, way_out: str) -> None:
    with pytest.raises(InvalidValueError, match="clusterer must be one of 'auto', 'joint', 'dpgmm'; got ") as caught:
        settings_of("auto", None, clusterer, None)
    assert way_out in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_session_saved_with_a_clusterer_that_is_gone_goes_on(tmp_path: Path) -> None:
    view, _ = blobs([60, 50, 40], 3)
    exploration = Exploration(view, clusterer="dpgmm", random_state=0)
    exploration.accept()
    path = tmp_path / "session.imapce"
    exploration.save(path)
    header, arrays = unpacked(path)
    header["clusterer"] = "hdbscan"
    loaded = Exploration.load(repacked(path, header, arrays), view)
    assert loaded.clusterer == "dpgmm"
    np.testing.assert_array_equal(loaded.labels_, exploration.labels_)
