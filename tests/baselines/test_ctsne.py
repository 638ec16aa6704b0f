"""ct-SNE and revised ct-SNE: objective and gradient against the formulas, invariances, and what the maps must show."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from imapce import Attributes, Samples, Subset, datasets, metrics
from imapce.baselines import CTSNE, TSNE, UMAP, RevisedCTSNE, tsne_descent
from imapce.baselines.tsne_affinities import (
    balanced_neighbours,
    conditional_affinities,
    gaussian_affinities,
    gaussian_rows,
    same_label_share,
)
from imapce.baselines.tsne_descent import ConditionedDivergence, layout, pair_weights, starting_map

RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 5)) + 3 * RNG.integers(0, 3, N)[:, None]
LABELS = RNG.integers(0, 4, N)
LABELS[:4] = [0, 1, 2, 3]
P = gaussian_affinities(X, 10, all_points=True)
Y = RNG.normal(size=(N, 2)) * 3


def literal_divergence(Y: np.ndarray, labels: np.ndarray, beta: float, exaggeration: float = 1.0) -> float:
    """KL(P‖R) from dense matrices; with c ≠ 1 the function whose gradient the exaggerated step uses."""
    dense = P.toarray()
    t = 1 / (1 + ((Y[:, None] - Y[None]) ** 2).sum(axis=2))
    same, other = pair_weights(labels, beta)
    w = np.where(labels[:, None] == labels[None], same, other)
    off = ~np.eye(N, dtype=bool)
    Z = (w * t)[off].sum()
    if exaggeration == 1.0:
        return float((dense[off] * np.log(dense[off] / (w * t / Z)[off])).sum())
    return float(-exaggeration * (dense[off] * np.log(t[off])).sum() + np.log(Z))


def checkable(**parameters: Any) -> dict[str, Any]:
    return {"perplexity": 2, "n_iter": 30, "exaggeration_iter": 10, "random_state": 0} | parameters


def known_failures(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, TSNE):
        return {"check_fit2d_1sample": "sets perplexity=0.5 on any class called TSNE; no row has an entropy below 0"}
    return {}


@parametrize_with_checks(
    [CTSNE(**checkable()), RevisedCTSNE(**checkable()), TSNE(**checkable())], expected_failed_checks=known_failures
)
def test_scikit_learn_s_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


# --- objective and gradient -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [1.0, 1e-2, 1e-5])
def test_the_value_is_the_divergence_with_its_constants(beta: float) -> None:
    assert ConditionedDivergence(P, LABELS, beta).value(Y) == pytest.approx(
        literal_divergence(Y, LABELS, beta), rel=1e-6
    )


@pytest.mark.parametrize("exaggeration", [1.0, 12.0])
def test_the_gradient_is_that_of_central_differences(exaggeration: float) -> None:
    got = 4 * ConditionedDivergence(P, LABELS, 1e-2).gradient(Y, exaggeration)
    expected, h = np.zeros_like(Y), 1e-5
    for place in np.ndindex(*Y.shape):
        step = np.zeros_like(Y)
        step[place] = h
        up, down = (literal_divergence(Y + s, LABELS, 1e-2, exaggeration) for s in (step, -step))
        expected[place] = (up - down) / (2 * h)
    assert np.abs(got - expected).max() < 1e-6 * np.abs(expected).max()


def test_gradients_sum_to_zero_and_turn_with_the_map() -> None:
    divergence = ConditionedDivergence(P, LABELS, 1e-2)
    gradient = divergence.gradient(Y)
    assert np.abs(gradient.sum(axis=0)).max() < 1e-15
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    assert divergence.value(Y @ turn + 7) == pytest.approx(divergence.value(Y), rel=1e-12)
    assert np.allclose(divergence.gradient(Y @ turn + 7), gradient @ turn, atol=1e-14)


@pytest.mark.parametrize("method", ["barnes_hut", "fft"])
@pytest.mark.parametrize("most", [0, 10, 5000])
def test_the_split_into_all_pairs_and_classes_is_the_weighted_sum(
    method: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With θ = 0 the trees are exact; a class of one row and, with `most`, classes summed in either way."""
    monkeypatch.setattr(tsne_descent, "MOST_DIRECT_IN_CLASS", most)
    labels = LABELS.copy()
    labels[0] = 9
    expected, expected_Z = ConditionedDivergence(P, labels, 1e-3, method="exact").repulsion(Y)
    F, Z = ConditionedDivergence(P, labels, 1e-3, method=method, theta=0.0).repulsion(Y)
    # The grid is made for thousands of points; here it only has to stay finite and near.
    tolerance = 1e-12 if method == "barnes_hut" else 0.2
    assert np.linalg.norm(F - expected) < tolerance * np.linalg.norm(expected)
    assert pytest.approx(expected_Z, rel=tolerance) == Z


def test_weights_average_to_one_and_are_one_where_classes_tell_nothing() -> None:
    same, other = pair_weights(LABELS, 1e-3)
    rho = same_label_share(LABELS)
    assert rho == pytest.approx(np.mean((LABELS[:, None] == LABELS)[~np.eye(N, dtype=bool)]))
    assert same * rho + other * (1 - rho) == pytest.approx(1.0)
    assert pair_weights(np.zeros(5, dtype=int), 1e-3) == (1.0, 1.0) == pair_weights(np.arange(5), 1e-3)


# --- affinities -------------------------------------------------------------------------------------------------------


def test_plain_affinities_are_those_of_opentsne() -> None:
    from openTSNE.affinity import PerplexityBasedNN

    expected = PerplexityBasedNN(X, 10, method="exact").P
    assert abs(gaussian_affinities(X, 10) - expected).max() < 1e-6 * expected.max()


def test_rows_have_the_perplexity_asked_for_weighted_or_not() -> None:
    squared = RNG.gamma(2.0, size=(20, 60)) * 1e6
    for weights in (np.ones((20, 60)), RNG.uniform(0.1, 1, size=(20, 60))):
        rows = gaussian_rows(squared, weights, 15.0)
        assert np.allclose(np.exp(-(rows * np.log(rows)).sum(axis=1)), 15.0, rtol=1e-6)
    assert np.allclose(gaussian_rows(np.zeros((2, 6)), np.ones((2, 6)), 2.0), 1 / 6)


def test_neighbours_are_half_of_the_own_class_and_small_classes_are_made_up_for() -> None:
    labels = np.repeat([0, 1, 2], [40, 19, 1])
    neighbours, distances = balanced_neighbours(X, labels, 21)
    own = (labels[neighbours] == labels[:, None]).sum(axis=1)
    assert set(own[labels == 0]) == {11}
    assert set(own[labels == 1]) == {11}
    assert set(own[labels == 2]) == {0}
    assert all(len(set(row)) == 21 and i not in row for i, row in enumerate(neighbours))
    assert np.allclose(distances, np.linalg.norm(X[:, None] - X[neighbours], axis=2))
    own = (labels[balanced_neighbours(X, labels, 45)[0]] == labels[:, None]).sum(axis=1)
    assert [set(own[labels == label]) for label in range(3)] == [{25}, {18}, {0}]


@pytest.mark.parametrize("fixed", [True, False])
def test_conditional_affinities_follow_the_formula_and_are_t_sne_s_for_one_class(fixed: bool) -> None:
    one_class = conditional_affinities(X, 10, np.zeros(N, dtype=int), 1e-3, fixed_perplexity=fixed)
    assert abs(one_class - gaussian_affinities(X, 10)).max() < 1e-15
    conditional = conditional_affinities(X, 10, LABELS, 1e-3, fixed_perplexity=fixed)
    assert conditional.sum() == pytest.approx(1.0)
    assert abs(conditional - conditional.T).max() < 1e-15
    edges = conditional.tocoo()
    assert edges.data[LABELS[edges.row] == LABELS[edges.col]].sum() < 0.02


# --- the maps ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CTSNE, RevisedCTSNE])
def test_the_same_seed_gives_the_same_map_and_names_of_classes_do_not_matter(kind: Any) -> None:
    method = kind(**checkable(perplexity=10, n_iter=100))
    expected = method.fit_transform(X, prior=LABELS)
    assert np.array_equal(method.fit_transform(X, prior=LABELS), expected)
    for names in (np.array(["d", "b", "a", "c"]), np.array([-7, 100, 3, -1])):
        assert np.array_equal(method.fit_transform(X, prior=names[LABELS]), expected)
    other = kind(**checkable(perplexity=10, n_iter=100, random_state=1)).fit_transform(X, prior=LABELS)
    assert not np.array_equal(other, expected)


def test_without_conditioning_it_is_t_sne() -> None:
    settings = {"perplexity": 10, "n_iter": 60, "random_state": 0, "standardize": False}
    one_class = CTSNE(**settings).fit_transform(X)
    centred = X - X.mean(axis=0)
    start = starting_map(centred, 2, "pca", np.random.RandomState(0))
    assert np.array_equal(layout(gaussian_affinities(centred, 10), start, n_iter=60)[0], one_class)
    assert np.array_equal(CTSNE(beta=1.0, **settings).fit_transform(X, prior=LABELS), one_class)
    assert np.array_equal(RevisedCTSNE(**settings).fit_transform(X), one_class)
    assert not np.array_equal(CTSNE(**settings).fit_transform(X, prior=LABELS), one_class)


@pytest.mark.parametrize("method", ["exact", "barnes_hut", "fft"])
def test_classes_count_in_every_method_and_at_theta_zero(method: Any) -> None:
    settings = checkable(perplexity=10, method=method, theta=0.0)
    maps = [CTSNE(beta=beta, **settings).fit_transform(X, prior=LABELS) for beta in (1.0, 1e-3)]
    assert np.abs(maps[0] - maps[1]).max() > 1e-6


def test_the_objective_falls_from_300_to_1000_iterations() -> None:
    costs = [CTSNE(perplexity=10, n_iter=n, random_state=0).fit(X, prior=LABELS).kl_divergence_ for n in (300, 1000)]
    assert costs[1] < costs[0]


def test_repeated_rows_part_in_a_tree() -> None:
    twins = np.repeat(X[:30], 2, axis=0)
    view = CTSNE(**checkable(perplexity=5, n_iter=300, method="barnes_hut")).fit_transform(twins, prior=LABELS)
    assert np.linalg.norm(view[::2] - view[1::2], axis=1).min() > 0
    assert np.isfinite(view).all()


def test_revised_ct_sne_shows_the_cell_types_of_the_synthetic_set_without_its_batches() -> None:
    data = datasets.make_synthetic()
    model = RevisedCTSNE(perplexity=50, alpha=1e-10, n_iter=500, random_state=0)
    view = model.fit_transform(data.X, prior=data.labels["batch"])
    assert metrics.normalized_laplacian_score(view, data.labels["batch"]) > 0.45
    assert cross_val_score(KNeighborsClassifier(15), view, data.labels["celltype"]).mean() > 0.99


# --- manners ----------------------------------------------------------------------------------------------------------


def test_priors_and_tables() -> None:
    table = pd.DataFrame(X, columns=list("abcde")).assign(kind=LABELS)
    method = CTSNE(**checkable(perplexity=10)).set_output(transform="pandas")
    view = method.fit_transform(table, prior=Attributes(["kind"]))
    assert list(view.columns) == ["ctsne0", "ctsne1"]
    method.fit(table, prior=Subset(np.arange(20)))
    with pytest.raises(TypeError, match="must be labels"):
        method.fit(table, prior=Samples(table))
    assert method.fit(table).embedding_.shape == (N, 2)


@pytest.mark.usefixtures("every_word")
def test_a_cancelled_fit_leaves_the_estimator_as_it_was() -> None:
    seen: list[tuple[str, float | None]] = []

    def stop_later(words: str, share: float | None) -> None:
        seen.append((words, share))
        if words == "iteration 60 of 100":
            raise KeyboardInterrupt

    method = CTSNE(**checkable(perplexity=10, n_iter=100), verbose=stop_later)
    with pytest.raises(KeyboardInterrupt):
        method.fit(X, prior=LABELS)
    assert not hasattr(method, "embedding_")
    assert [share for _, share in seen] == [iteration / 100 for iteration in range(1, 61)]
    assert [words.split(",")[0] for words, _ in seen if "cost" in words] == ["iteration 50 of 100"]


@pytest.mark.usefixtures("every_word")
def test_plain_t_sne_counts_through_its_phases_and_ignores_the_prior() -> None:
    seen: list[float | None] = []
    settings = {"perplexity": 10, "n_iter": 250, "exaggeration_iter": 100, "random_state": 0}
    view = TSNE(**settings, verbose=lambda words, share: seen.append(share)).fit_transform(X, prior=Samples(X))
    assert seen == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert np.array_equal(TSNE(**settings).fit_transform(X), view)


def test_umap_does_not_look_at_the_prior_and_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("umap", reason="UMAP needs umap-learn")
    view = UMAP(random_state=0).fit_transform(X, prior=LABELS)
    assert view.shape == (len(X), 2)
    assert np.array_equal(view, UMAP(random_state=0).fit_transform(X))
    assert not np.array_equal(view, UMAP(random_state=1).fit_transform(X))
    with pytest.warns(UserWarning, match="n_neighbors=15 needs more rows"):
        UMAP(random_state=0).fit(X[:10])
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match='pip install "umap-learn"'):
        UMAP().fit(X)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": 0.0}, "beta must be above 0"),
        ({"beta": 1.5}, "beta must be above 0"),
        ({"n_components": 3}, "n_components must be 1 or 2"),
        ({"perplexity": 0.5}, "perplexity must be at least 1"),
        ({"method": "tree"}, "method must be one of"),
        ({"initialization": "spectral"}, "initialization must be one of"),
        ({"learning_rate": "fast"}, "learning_rate must be a number"),
        ({"exaggeration_iter": -1}, "exaggeration_iter must be at least 1"),
        ({"learning_rate": 1e308}, "learning_rate must keep the map finite"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        CTSNE(**checkable(perplexity=10) | changes).fit(X, prior=LABELS)
    with pytest.raises(ValueError, match="alpha must be above 0"):
        RevisedCTSNE(alpha=0).fit(X)


def test_a_perplexity_beyond_the_rows_is_lowered_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="perplexity=30 needs more than 90 rows and X has 60; 19.67 is used"):
        CTSNE(**checkable(perplexity=30)).fit(X)
    with pytest.raises(ValueError, match="at least 4 rows"):
        CTSNE().fit(X[:3])
