"""Scores of a view, against explicit matrices, tables worked by hand and brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, StratifiedKFold

from imapce import datasets
from imapce.errors import ImapceError, InvalidTypeError, InvalidValueError
from imapce.metrics.readback import residual_predictability
from imapce.metrics.scores import (
    classifier_scores,
    cluster_jaccard,
    nls_ceiling,
    normalized_laplacian_score,
    normalized_mutual_information,
    trustworthiness,
)


def explicit_nls(points: np.ndarray, labels: np.ndarray, k: int, *, symmetrize: bool) -> float:
    """Σ_l n_l (f'Lf / f'f) / n with every matrix written out."""
    n = len(points)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    A = np.zeros((n, n))
    for i in range(n):
        A[i, np.argsort(distances[i])[:k]] = 1
    if symmetrize:
        A = np.maximum(A, A.T)
    D = np.diag(A.sum(axis=1))
    root = np.diag(1 / np.sqrt(np.diag(D)))
    L = root @ (D - A) @ root
    total = 0.0
    for label in np.unique(labels):
        f = (labels == label).astype(float)
        total += f.sum() * (f @ L @ f) / (f @ f)
    return total / n


@pytest.mark.parametrize("symmetrize", [False, True])
def test_nls_is_the_rayleigh_quotient_of_the_explicit_laplacian(symmetrize: bool) -> None:
    rng = np.random.default_rng(3)
    points, labels = rng.normal(size=(80, 3)), rng.integers(0, 4, 80)
    points[labels == 0] += 1.5
    expected = np.mean([explicit_nls(points, labels, k, symmetrize=symmetrize) for k in (3, 8, 20)])
    got = normalized_laplacian_score(points, labels, (20, 3, 8), symmetrize=symmetrize)
    assert got == pytest.approx(expected, abs=1e-12)


def test_nls_of_separate_and_of_opposed_labels() -> None:
    far_apart = np.repeat([[0.0], [100.0]], 20, axis=0) + np.linspace(0, 1, 40)[:, None]
    assert normalized_laplacian_score(far_apart, np.repeat(["x", "y"], 20), 5) == 0.0
    pairs = np.repeat(np.arange(10.0), 2)[:, None] + np.tile([0.0, 0.01], 10)[:, None]
    assert normalized_laplacian_score(pairs, np.tile([True, False], 10), 1) == 1.0
    assert nls_ceiling(np.tile([True, False], 10)) < 1.0


def test_nls_excludes_the_row_itself_among_duplicates() -> None:
    # Three identical rows of three labels: a row counted as its own neighbour would give less than 1.
    points = np.repeat(np.arange(4.0), 3)[:, None]
    assert normalized_laplacian_score(points, np.tile([0, 1, 2], 4), 2) == 1.0
    # Far more duplicates than neighbours asked for, so the row itself need not be among the hits.
    many = np.repeat([[0.0], [9.0]], 200, axis=0)
    own = np.arange(400)
    assert normalized_laplacian_score(many, own, 10) == 1.0


def test_nls_ties_do_not_follow_the_order_of_the_table() -> None:
    labels = np.repeat([0, 1], [600, 900])
    score = normalized_laplacian_score(np.zeros((1500, 2)), labels)
    assert score == pytest.approx(nls_ceiling(labels), abs=0.03)


def test_nls_caps_k_with_a_warning_and_counts_it_once() -> None:
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(25, 2)), rng.integers(0, 2, 25)
    with pytest.warns(UserWarning, match="cut to 24"):
        score = normalized_laplacian_score(points, labels)
    assert score == pytest.approx(normalized_laplacian_score(points, labels, (10, 20, 24)))
    assert normalized_laplacian_score(points, labels, 24) == pytest.approx(nls_ceiling(labels))


@pytest.mark.parametrize(("sizes", "ceiling"), [((600, 900), 0.4803), ((876, 124), 0.2175)])
def test_ceiling_is_the_mean_under_permuted_labels(sizes: tuple[int, int], ceiling: float) -> None:
    rng = np.random.default_rng(1)
    labels = np.repeat([1, 0], sizes)
    points = rng.normal(size=(len(labels), 2))
    scores = [normalized_laplacian_score(points, rng.permutation(labels)) for _ in range(20)]
    assert nls_ceiling(labels) == pytest.approx(ceiling, abs=5e-5)
    assert np.mean(scores) == pytest.approx(ceiling, abs=0.002)


@pytest.mark.data("synthetic_dataset.csv")
@pytest.mark.data("uci_adult_data.csv")
def test_ceilings_of_the_papers_sets() -> None:
    assert nls_ceiling(datasets.load_synthetic_paper().labels["batch"]) == pytest.approx(0.4803, abs=5e-5)
    adult = datasets.fetch_adult()
    assert nls_ceiling(adult.labels["ethnicity"]) == pytest.approx(0.2175, abs=5e-5)
    assert normalized_laplacian_score(adult.X[:, [2]], adult.labels["ethnicity"]) == 0.0


#         class a  b  c
# cluster 0: 3  1  0
# cluster 1: 1  3  0     not taken: one a, one b, two c
TRUE = np.array(list("aaaaa" + "bbbbb" + "cc"))
PRED = np.array([0, 0, 0, 1, -1, 0, 1, 1, 1, -1, -1, -1])


def test_jaccard_worked_by_hand() -> None:
    # a: 3 / (5 + 4 - 3) = 1/2, b: 3/6 = 1/2, c: 0.
    assert cluster_jaccard(TRUE, PRED) == pytest.approx(1 / 3)
    # J_a = 3 / max(5, 4), J_b the same; c scores 0 and leaves the denominator: 2 * 5 * 0.6 / 10.
    assert cluster_jaccard(TRUE, PRED, "authors") == pytest.approx(0.6)


def test_jaccard_with_class_sizes_that_count_the_prior() -> None:
    sizes = {"a": 10, "b": 5, "c": 2, "wholly in the prior": 7}
    # a: 3 / (10 + 4 - 3), b: 1/2, c: 0
    assert cluster_jaccard(TRUE, PRED, class_sizes=sizes) == pytest.approx((3 / 11 + 1 / 2) / 3)
    # J_a = 3/10, J_b = 3/5, weights 10 and 5
    assert cluster_jaccard(TRUE, PRED, "authors", class_sizes=sizes) == pytest.approx((3 + 3) / 15)
    with pytest.raises(InvalidValueError, match="every class"):
        cluster_jaccard(TRUE, PRED, class_sizes={"a": 10})
    with pytest.raises(InvalidValueError, match="whole data"):
        cluster_jaccard(TRUE, PRED, class_sizes={"a": 4, "b": 5, "c": 2})


def test_the_two_definitions_choose_different_clusters() -> None:
    # Class x: 3 rows in cluster 0 (of 13), 2 in cluster 1 (of 2). Most rows: 0; best Jaccard: 1.
    truth, pred = ["x"] * 5 + ["y"] * 10, [0] * 3 + [1] * 2 + [0] * 10
    assert cluster_jaccard(truth, pred) == pytest.approx((2 / 5 + 10 / 13) / 2)
    assert cluster_jaccard(truth, pred, "authors") == pytest.approx((5 * 3 / 13 + 10 * 10 / 13) / 15)


def test_one_cluster_may_serve_several_classes_and_none_taken_scores_zero() -> None:
    assert cluster_jaccard([1, 1, 2, 2], [5, 5, 5, 5]) == pytest.approx(0.5)
    for definition in ("union", "authors"):
        assert cluster_jaccard([1, 1, 2, 2], [-1, -1, -1, -1], definition) == 0.0


def test_minus_one_is_a_class_like_any_other_in_the_truth() -> None:
    assert cluster_jaccard([-1, -1, -2, -2], ["u", "u", "v", "v"]) == 1.0
    assert cluster_jaccard([-1, -1, -2, -2], [3.0, 3.0, -1.0, -1.0]) == 0.5


def test_nmi_by_formula_and_rows_not_taken_are_a_cluster() -> None:
    def entropy(counts: np.ndarray) -> float:
        shares = counts[counts > 0] / counts.sum()
        return float(-np.sum(shares * np.log(shares)))

    table = np.array([[3, 1, 0], [1, 3, 0], [1, 1, 2]], dtype=float)
    h_true, h_pred = entropy(table.sum(axis=0)), entropy(table.sum(axis=1))
    expected = 2 * (h_true + h_pred - entropy(table.ravel())) / (h_true + h_pred)
    assert normalized_mutual_information(TRUE, PRED) == pytest.approx(expected)
    assert normalized_mutual_information([0.5, 0.5, 2.0], [7, 7, -1]) == pytest.approx(1.0)


labels_of_rows = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3)), min_size=2, max_size=40)


@settings(max_examples=60, deadline=None)
@given(labels_of_rows, st.permutations(range(4)), st.permutations(range(4)), st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_names_or_order(rows, new_class, new_cluster, random) -> None:  # type: ignore[no-untyped-def]
    truth, pred = np.array(rows).T
    renamed_truth = np.array([f"class {new_class[value]}" for value in truth])
    renamed_pred = np.array([value if value == -1 else 10 + new_cluster[value] for value in pred])
    order = list(range(len(rows)))
    random.shuffle(order)
    for score in (cluster_jaccard, normalized_mutual_information):
        assert score(renamed_truth[order], renamed_pred[order]) == pytest.approx(score(truth, pred), abs=1e-9)
    assert nls_ceiling(renamed_truth[order]) == pytest.approx(nls_ceiling(truth))
    assert 0.0 <= cluster_jaccard(truth, pred) <= 1.0


def test_pandas_labels_and_their_missing_value() -> None:
    labels = pd.Series(["b", "a", "b"], dtype="string", index=[9, 8, 7])
    assert nls_ceiling(labels) == pytest.approx(2 / 3)
    assert nls_ceiling(labels.astype("category")) == pytest.approx(2 / 3)
    with pytest.raises(InvalidValueError, match="row 1"):
        nls_ceiling(labels.where(labels == "b"))


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(5)))
def test_nls_does_not_depend_on_label_names(new_names: list[int]) -> None:
    rng = np.random.default_rng(5)
    points, labels = rng.normal(size=(60, 2)), rng.integers(0, 5, 60)
    renamed = [f"{new_names[label] - 2}" for label in labels]
    assert normalized_laplacian_score(points, renamed, 7) == normalized_laplacian_score(points, labels, 7)


def test_mixed_kinds_of_labels() -> None:
    points = np.arange(6.0)[:, None]
    assert normalized_laplacian_score(points, ["1", "1", "1", 1, 1, 1], 1) == pytest.approx(
        normalized_laplacian_score(points, [0, 0, 0, 1, 1, 1], 1)
    )
    assert nls_ceiling(["1", 1]) == 1.0


def test_classifier_scores_separate_and_noise() -> None:
    rng = np.random.default_rng(0)
    labels = np.array(["left", "right", "up"])[rng.integers(0, 3, 240)]
    centres = {"left": (-5, 0), "right": (5, 0), "up": (0, 8)}
    points = np.array([centres[label] for label in labels]) + rng.normal(scale=0.2, size=(240, 2))
    for classifier in ("linear", "svm"):
        scores = classifier_scores(points, labels, classifier, n_splits=4)
        names = ("accuracy", "f1", "recall", "recall_authors")
        assert set(scores) == {*names, *(f"{name}_sd" for name in names)}
        assert min(scores["accuracy"], scores["f1"], scores["recall"]) > 0.97
    noise = classifier_scores(rng.normal(size=(240, 2)), labels, "svm", n_splits=4)
    assert noise["accuracy"] < 0.5
    assert noise["accuracy_sd"] > 0.0


def test_the_radial_classifier_sees_a_ring_and_the_linear_one_does_not() -> None:
    rng = np.random.default_rng(2)
    points = rng.normal(size=(400, 2))
    inside = np.linalg.norm(points, axis=1) < 1.1
    assert classifier_scores(points, inside, "svm", n_splits=3)["accuracy"] > 0.9
    assert classifier_scores(points, inside, "linear", n_splits=3)["accuracy"] < 0.75
    assert classifier_scores(points, inside, n_splits=3) == classifier_scores(points, inside, n_splits=3)


def brute_force_vote(points: np.ndarray, codes: np.ndarray, seed: int) -> float:
    guess = np.empty_like(codes)
    for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(points, codes):
        sd = points[train].std(axis=0)
        for row in test:
            distances = np.linalg.norm((points[train] - points[row]) / sd, axis=1)
            voters = codes[train][np.argsort(distances)[:15]]
            weights = [np.sum(voters == c) / np.mean(codes[train] == c) for c in range(codes.max() + 1)]
            guess[row] = int(np.argmax(weights))
    return float(np.mean([np.mean(guess[codes == c] == c) for c in range(codes.max() + 1)]))


def brute_force_neighbours_r2(points: np.ndarray, target: np.ndarray, seed: int) -> float:
    residual = np.empty_like(target)
    for train, test in KFold(10, shuffle=True, random_state=seed).split(points):
        sd = points[train].std(axis=0)
        for row in test:
            distances = np.linalg.norm((points[train] - points[row]) / sd, axis=1)
            residual[row] = target[row] - target[train][np.argsort(distances)[:15]].mean()
    return float(1 - np.mean(residual**2) / np.var(target))


def test_weighted_vote_by_brute_force_on_unequal_classes() -> None:
    rng = np.random.default_rng(7)
    codes = np.repeat([0, 1, 2], [150, 40, 25])
    points = rng.normal(size=(215, 2)) * [1.0, 30.0]
    points[:, 0] += codes * 0.8
    result = residual_predictability(points, codes, random_state=4)
    assert result["knn"] == pytest.approx(brute_force_vote(points, codes, seed=4), abs=1e-12)
    assert result["score"] == max(result["linear"], result["knn"])
    assert result["chance"] == pytest.approx(1 / 3)
    assert result["ceiling"] is None
    assert result["measure"] == "balanced_accuracy"


def test_residual_predictability_between_chance_and_ceiling() -> None:
    data = datasets.make_synthetic(600, random_state=1)
    removed, kept = data.X[:, 4:6], data.X[:, :2]
    gone = residual_predictability(removed, data.labels["batch"], data.X)
    assert gone["score"] < 0.58
    assert gone["ceiling"] == 1.0
    assert residual_predictability(kept, data.labels["batch"])["score"] == 1.0


def test_a_rare_class_counts_as_much_as_the_common_one() -> None:
    rng = np.random.default_rng(0)
    rare = np.arange(400) % 20 == 0
    result = residual_predictability(rng.normal(size=(400, 2)), rare)
    # A vote that is not weighted would call everything common: exactly 0.5 by never answering "rare".
    assert 0.35 < result["knn"] < 0.65
    assert residual_predictability(np.where(rare, 5.0, 0.0)[:, None], rare)["score"] == 1.0


def test_classes_smaller_than_the_number_of_folds_are_allowed() -> None:
    points = np.repeat([0.0, 50.0], [60, 4])[:, None] + np.linspace(0, 1, 64)[:, None]
    assert residual_predictability(points, ["many"] * 60 + ["few"] * 4)["score"] == 1.0
    with pytest.raises(InvalidValueError, match="merge rare classes"):
        residual_predictability(points, ["many"] * 63 + ["one"])


def test_numeric_attributes_are_read_by_r2() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 2))
    linear = residual_predictability(points, 3 * points[:, 0] - points[:, 1], points)
    assert linear["measure"] == "r2"
    assert linear["chance"] == 0.0
    assert linear["linear"] > 0.999
    assert linear["ceiling"] == linear["score"]
    curve = points[:, 0] ** 2
    curved = residual_predictability(points, curve)
    assert curved["knn"] == pytest.approx(brute_force_neighbours_r2(points, curve, seed=0), abs=1e-9)
    assert curved["score"] == curved["knn"] > 0.5 > 0.2 > curved["linear"]
    assert residual_predictability(points, rng.normal(size=300))["score"] < 0.05
    whole_numbers = rng.integers(0, 60, 300)
    assert residual_predictability(points, whole_numbers, attribute_kind="numeric")["measure"] == "r2"
    few_floats = residual_predictability(points, (points[:, 0] > 0).astype(float))
    assert few_floats["measure"] == "balanced_accuracy"


def test_trustworthiness_and_its_sample() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    assert trustworthiness(X, X) == 1.0
    assert trustworthiness(X, rng.normal(size=(300, 2))) == pytest.approx(0.5, abs=0.06)
    large = rng.normal(size=(5001, 2))
    assert trustworthiness(large, large) == 1.0


VIEW = np.random.default_rng(0).normal(size=(30, 2))
WITH_NAN = np.where(np.arange(60).reshape(30, 2) == 7, np.nan, VIEW)
TWO = np.arange(30) % 2
BAD_CALLS = [
    (lambda: normalized_laplacian_score(VIEW[:, 0], TWO, 3), InvalidValueError, "reshape"),
    (lambda: normalized_laplacian_score(WITH_NAN, TWO, 3), InvalidValueError, "row 3"),
    (lambda: normalized_laplacian_score("view", TWO, 3), InvalidTypeError, "table of numbers"),
    (lambda: normalized_laplacian_score(VIEW, TWO[:-1], 3), InvalidValueError, "30 rows, got 29"),
    (lambda: normalized_laplacian_score(VIEW, [None, *TWO[1:]], 3), InvalidValueError, "row 0"),
    (lambda: normalized_laplacian_score(VIEW, np.where(TWO, np.nan, 1), 3), InvalidValueError, "row 1"),
    (lambda: normalized_laplacian_score(VIEW, TWO, 0), InvalidValueError, "n_neighbors"),
    (lambda: normalized_laplacian_score(VIEW, TWO, []), InvalidValueError, "n_neighbors"),
    (lambda: normalized_laplacian_score(VIEW, TWO, 2.5), InvalidValueError, "n_neighbors"),
    (lambda: nls_ceiling([1]), InvalidValueError, "at least two"),
    (lambda: cluster_jaccard(TWO, TWO[:3]), InvalidValueError, "labels_pred"),
    (lambda: cluster_jaccard(TWO, TWO, "dice"), InvalidValueError, "'dice'"),
    (lambda: normalized_mutual_information(TWO, TWO[:3]), InvalidValueError, "labels_pred"),
    (lambda: classifier_scores(VIEW, TWO, "forest"), InvalidValueError, "'forest'"),
    (lambda: classifier_scores(VIEW, TWO, n_splits=0), InvalidValueError, "n_splits"),
    (lambda: classifier_scores(VIEW, np.zeros(30)), InvalidValueError, "two classes"),
    (lambda: residual_predictability(VIEW, np.zeros(30)), InvalidValueError, "nothing to read"),
    (lambda: residual_predictability(VIEW, TWO, VIEW[:5]), InvalidValueError, "X must have 30 rows"),
    (lambda: residual_predictability(VIEW, TWO, n_splits=31), InvalidValueError, "fewer folds"),
    (
        lambda: residual_predictability(VIEW, TWO.astype(str), attribute_kind="numeric"),
        InvalidTypeError,
        "numbers",
    ),
    (lambda: trustworthiness(VIEW, VIEW[:9]), InvalidValueError, "embedding must have 30 rows"),
    (lambda: trustworthiness(VIEW, VIEW, 15), InvalidValueError, "less than half"),
]


@pytest.mark.parametrize(("call", "kind", "words"), BAD_CALLS)
def test_errors_name_the_argument_in_one_sentence(call, kind, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kind, match=words) as caught:
        call()
    assert isinstance(caught.value, ImapceError)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")
