"""Clusters of a view carried into all directions: rows go where they belong, sizes and numbers are kept in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score, normalized_mutual_info_score

from imapce import IMAPCE, Attributes, Exploration, Subset
from imapce.errors import InvalidTypeError
from imapce.exploration.clustering import cluster_view, nearest_distance, number_clusters, student_mixture

RNG = np.random.default_rng(0)


def three_groups(n: int = 600, d: int = 8, gap: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    truth = np.arange(n) % 3
    return rng.standard_normal((n, d)) + gap * np.eye(d)[truth], truth


def test_rows_that_a_view_misplaces_are_put_right() -> None:
    X, truth = three_groups()
    begun = truth.copy()
    begun[::5] = RNG.integers(0, 3, len(begun[::5]))
    assert normalized_mutual_info_score(truth, begun) < 0.8
    assert normalized_mutual_info_score(truth, student_mixture(X, begun, np.arange(len(X)))) > 0.97


def test_rows_outside_the_sample_follow_what_was_learned_from_it() -> None:
    X, truth = three_groups(gap=6.0)
    sample = np.arange(0, 600, 2)
    begun = np.where(np.isin(np.arange(600), sample), truth, 0)
    np.testing.assert_array_equal(student_mixture(X, begun, sample), truth)


def test_far_rows_do_not_widen_a_cluster() -> None:
    X, truth = three_groups()
    X[:6] *= 10
    found = student_mixture(X, truth, np.arange(len(X)))
    assert normalized_mutual_info_score(truth[6:], found[6:]) > 0.97


def test_a_cluster_of_fewer_rows_than_axes_gives_way_and_one_alone_stays() -> None:
    X, truth = three_groups()
    begun = np.where(truth == 2, 1, truth)
    begun[:5] = 7
    assert 7 not in student_mixture(X, begun, np.arange(len(X)))
    alone = np.zeros(len(X), dtype=int)
    np.testing.assert_array_equal(student_mixture(X, alone, np.arange(len(X))), alone)


def test_identical_rows_are_no_obstacle() -> None:
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 50, axis=0)
    labels = np.repeat([0, 1], 50)
    np.testing.assert_array_equal(student_mixture(X, labels, np.arange(100)), labels)


def test_clusters_are_numbered_by_size_and_small_ones_are_outliers() -> None:
    labels = np.repeat([5, 2, 9], [10, 40, 3])
    found = number_clusters(labels, RNG.standard_normal((53, 2)), 5, sampled=len(labels))
    assert found.sizes.tolist() == [40, 10]
    np.testing.assert_array_equal(found.labels, np.repeat([1, 0, -1], [10, 40, 3]))


def test_of_two_clusters_the_smaller_is_set_apart_and_of_more_the_one_apart_from_all() -> None:
    rng = np.random.default_rng(2)
    two = np.repeat([0, 1], [80, 20])
    assert number_clusters(
        two, rng.standard_normal((100, 2)) + 9 * two[:, None], 5, sampled=len(two)
    ).most_distinct == (1,)
    # Two neighbours far away have the larger sum of distances, the third has the larger distance to its nearest.
    three = np.repeat([0, 1, 2], [60, 50, 40])
    place = np.array([[0.0, 0.0], [30.0, 0.0], [33.0, 0.0]])[three]
    assert number_clusters(three, rng.standard_normal((150, 2)) + place, 5, sampled=len(three)).most_distinct == (0,)


@pytest.mark.parametrize("count", [0, 1])
def test_without_a_neighbour_there_is_no_distance(count: int) -> None:
    assert nearest_distance(np.zeros((count, 2)), np.tile(np.eye(2), (count, 1, 1))).tolist() == [0.0] * count


def test_the_distance_is_bhattacharyya_s_to_the_nearest() -> None:
    assert nearest_distance(np.array([[0.0], [2.0], [8.0]]), np.ones((3, 1, 1))).tolist() == [0.5, 0.5, 4.5]


def test_an_exploration_puts_right_what_its_views_mix_up() -> None:
    rng = np.random.default_rng(4)
    truth = np.arange(900) % 6
    X = rng.standard_normal((900, 10)) + 5 * np.eye(10)[truth]
    options: dict[str, Any] = {"estimator": IMAPCE(n_starts=4), "random_state": 0, "clusterer": "dpgmm"}
    step, plain = Exploration(X, **options).propose(), Exploration(X, refine=False, **options).propose()
    np.testing.assert_array_equal(step.embedding, plain.embedding)

    def mixed(clusters: np.ndarray) -> float:
        return normalized_mutual_info_score(truth, clusters)

    assert mixed(step.clusters) > mixed(plain.clusters) + 0.02


@pytest.mark.parametrize("share", [0.03, 0.1])
def test_a_small_cluster_beside_strong_known_columns_is_found(share: float) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((2000, 30))
    X[:, :4] += 6 * rng.standard_normal((3, 4))[rng.integers(0, 3, 2000)]
    small = np.arange(2000) < 2000 * share
    X[small, 4:] += 7 / np.sqrt(26)
    prior = Attributes([0, 1, 2, 3])
    model = IMAPCE(random_state=0).fit(X, prior=prior)
    clusters = cluster_view(model.transform(X), min_cluster_size=20)
    assert max(f1_score(small, clusters.labels == c) for c in range(len(clusters.sizes))) >= 0.95
    taken = Exploration(X, prior=prior, random_state=0).run(max_steps=2).clusters_
    assert max(f1_score(small, np.isin(np.arange(2000), one.rows)) for one in taken) >= 0.95


def test_refine_is_saved_and_must_be_true_or_false(tmp_path) -> None:
    X, _ = three_groups(200)
    path = tmp_path / "s.imapce"
    Exploration(X, refine=False, random_state=0, prior=Subset([0])).save(path)
    assert Exploration.load(path, X).refine is False
    with pytest.raises(InvalidTypeError, match="refine must be True or False; got 'x'"):
        Exploration(X, refine="x")


@pytest.mark.parametrize("clusterer", ["joint", "dpgmm"])
@pytest.mark.parametrize("unit", [1e-13, 1e9])
def test_clusters_do_not_depend_on_units(unit: float, clusterer: str) -> None:
    X, _ = three_groups(240, 4, 8.0)
    estimator = IMAPCE(standardize=False, outliers="keep", n_starts=3)
    whole, scaled = (
        Exploration(data, estimator=estimator, random_state=0, clusterer=clusterer).propose() for data in (X, X * unit)
    )
    np.testing.assert_array_equal(scaled.clusters, whole.clusters)
    np.testing.assert_allclose(scaled.distinctness, whole.distinctness, rtol=1e-6)
