"""SIDE: the background against values of an independent program, its shortcuts, and the views chosen from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA, FastICA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from helpers import angle_between, grouped, standardised
from imapce import Attributes, ImapceError, Samples, Subset, datasets
from imapce.baselines import SIDE
from imapce.baselines.side import kl_scores, log_cosh_scores
from imapce.baselines.side_background import Background, quadratic_multiplier

DATA = grouped()


def fixture_rows() -> np.ndarray:
    i, j = np.arange(30)[:, None], np.arange(3)
    X = np.sin((1 + j) * (1 + 2.3 * i)) * np.array([1, 0.5, 2])
    X[:12] += [2, 0, 1]
    return X


def fixture_background() -> Background:
    return Background(fixture_rows()).margin().cluster(np.arange(12)).cluster(np.arange(8, 20))


@pytest.fixture(scope="module")
def overlapping() -> Background:
    return fixture_background().fit(tol=1e-10)


def assert_same(one: Background, other: Background, atol: float) -> None:
    for row in range(one.n_rows):
        a, b = one.gaussians[one.groups[row]], other.gaussians[other.groups[row]]
        assert np.allclose(a.mean, b.mean, rtol=0, atol=atol)
        assert np.allclose(a.covariance, b.covariance, rtol=0, atol=atol)


# --- the background ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "mean", "log_determinant"),
    [
        (0, [2.03435158, 0.00906015, 0.64747411], -2.464390),
        (8, [2.15969889, 0.06846966, 1.60971783], -2.198653),
        (12, [-0.00328599, 0.01571783, 0.10835843], -1.855416),
        (20, [-0.08743439, -0.04410686, -0.11452257], -2.207350),
    ],
)
def test_overlapping_clusters_give_the_reference_values(
    overlapping: Background, row: int, mean: list[float], log_determinant: float
) -> None:
    assert len(overlapping.gaussians) == 4
    assert overlapping.residual < 1e-10
    gaussian = overlapping.gaussians[overlapping.groups[row]]
    assert np.allclose(gaussian.mean, mean, rtol=0, atol=1e-8)
    assert np.log(gaussian.variances).sum() == pytest.approx(log_determinant, abs=1e-6)


def test_the_whitened_reference_rows_have_the_reference_spectrum_and_scores(overlapping: Background) -> None:
    variances = np.linalg.eigvalsh(np.cov(overlapping.whiten(fixture_rows()).T))
    assert np.allclose(variances, [0.91185266, 1.05031976, 1.14127565], rtol=0, atol=1e-8)
    assert np.allclose(np.sort(kl_scores(variances))[::-1], [0.00456451, 0.00206476, 0.00061255], atol=1e-8)


def test_one_sweep_gives_the_reference_values_and_a_warning() -> None:
    with pytest.warns(ConvergenceWarning, match="after 1 sweeps"):
        background = fixture_background().fit(max_sweeps=1)
    gaussian = background.gaussians[background.groups[0]]
    assert np.allclose(gaussian.mean, [2.06950157, 0.02810286, 0.96703033], rtol=0, atol=1e-8)
    assert np.log(gaussian.variances).sum() == pytest.approx(-2.240591, abs=1e-6)


FIRST, SECOND = np.arange(30) < 12, np.arange(30) >= 12

CLOSED_FORMS: dict[str, Callable[[Background], Background]] = {
    "nothing": lambda b: b,
    "margin": lambda b: b.margin(),
    "one cluster": lambda b: b.cluster(np.arange(30)),
    "a partition": lambda b: b.cluster(FIRST).cluster(SECOND),
    "a partition with margins": lambda b: b.margin().cluster(FIRST).cluster(SECOND),
    "one cluster and the rest free": lambda b: b.cluster(FIRST),
    "two disjoint clusters and the rest free": lambda b: b.cluster(np.arange(8)).cluster(np.arange(9, 20)),
}


@pytest.mark.parametrize("stated", CLOSED_FORMS.values(), ids=CLOSED_FORMS)
def test_closed_forms_equal_the_iteration(stated: Callable[[Background], Background]) -> None:
    # Turned, because with axes as near to the columns as the fixture's a thousand sweeps are still 1e-3 away.
    X = fixture_rows() @ np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    closed = stated(Background(X)).fit()
    swept = stated(Background(X)).fit(closed_form=False, tol=1e-9)
    assert closed.n_sweeps == 0
    assert swept.n_sweeps > 0
    assert closed.residual < 1e-12
    assert_same(closed, swept, atol=1e-6)


def test_a_cluster_with_margins_is_iterated_and_meets_both() -> None:
    X = fixture_rows()
    background = Background(X).margin().cluster(FIRST).fit(tol=1e-8)
    assert background.n_sweeps > 1
    assert background.residual < 1e-8
    sizes = np.bincount(background.groups)
    mean = sum(size * g.mean for size, g in zip(sizes, background.gaussians, strict=True)) / 30
    assert np.allclose(mean, X.mean(axis=0), atol=1e-7)
    known = background.gaussians[background.groups[0]]
    assert np.allclose(known.mean, X[FIRST].mean(axis=0), atol=1e-7)


def test_margins_with_all_rows_as_a_cluster_are_the_mean_and_the_covariance() -> None:
    X = fixture_rows()
    background = Background(X).margin().cluster(np.arange(30)).fit()
    assert background.n_sweeps == 0
    assert np.allclose(background.gaussians[0].mean, X.mean(axis=0))
    assert np.allclose(background.gaussians[0].covariance, np.cov(X.T, ddof=0))


@pytest.mark.parametrize("target", [0.01, 1.0, 7.3, 500.0, 1e7])
def test_the_multiplier_meets_its_target(target: float) -> None:
    counts, c, offsets = np.array([3.0, 5.0]), np.array([0.2, 2.0]), np.array([1.0, -0.3])
    root = quadratic_multiplier(counts, c, offsets, target)
    assert root > -1 / c.max()
    shrink = 1 + root * c
    assert counts @ (c / shrink + (offsets / shrink) ** 2) == pytest.approx(target, rel=1e-9)


def test_whitening_a_partition_leaves_no_mean_and_the_identity() -> None:
    X = standardised(DATA.X)
    background = Background(X).cluster(DATA.batch == 0).cluster(DATA.batch == 1).fit()
    Y = background.whiten(X)
    for batch in (0, 1):
        assert np.allclose(np.cov(Y[DATA.batch == batch].T, ddof=0), np.eye(8), atol=1e-10)
        assert np.allclose(Y[DATA.batch == batch].mean(axis=0), 0, atol=1e-10)


def test_samples_have_the_moments_of_their_group(overlapping: Background) -> None:
    background = overlapping
    groups = np.repeat(np.arange(4), 40_000)
    drawn = background.sample(0, groups=groups)
    assert background.sample(0).shape == (30, 3)
    assert np.array_equal(background.sample(3), background.sample(3))
    for g, gaussian in enumerate(background.gaussians):
        assert np.allclose(drawn[groups == g].mean(axis=0), gaussian.mean, atol=0.03)
        assert np.allclose(np.cov(drawn[groups == g].T), gaussian.covariance, atol=0.06)


def test_a_direction_without_variance_is_floored_and_remembered() -> None:
    X = standardised(np.column_stack([DATA.X, DATA.batch]))
    background = Background(X).cluster(DATA.batch == 0).cluster(DATA.batch == 1).fit()
    directions, shares = background.floored_shares()
    assert np.allclose(shares, [0] * 8 + [1], atol=1e-9)
    assert abs(directions[8, -1]) == pytest.approx(1)
    assert np.isfinite(background.whiten(X)).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b.cluster([0, 99]), "lie within the 30 rows"),
        (lambda b: b.cluster(np.zeros(30, dtype=bool)), "empty"),
        (lambda b: b.cluster(np.ones(7, dtype=bool)), "one entry per row"),
        (lambda b: b.whiten(fixture_rows()), "not fitted"),
        (lambda b: b.sample(), "not fitted"),
        (lambda b: b.fit().whiten(fixture_rows()[:5]), "one group for each of 5 rows"),
        (lambda b: b.fit().whiten(np.ones((30, 2))), "3 columns"),
        (lambda b: b.fit().whiten(fixture_rows(), groups=np.full(30, 5)), "between 0 and 0"),
        (lambda b: b.fit().whiten(fixture_rows(), groups=np.zeros(30)), "whole numbers"),
        (lambda b: Background(np.ones(3)), "two dimensions"),
        (lambda b: Background(1e6 * fixture_rows()), "standardised"),
    ],
)
def test_the_background_refuses_with_a_sentence(call: Callable[[Background], Any], words: str) -> None:
    with pytest.raises(ImapceError, match=words):
        call(Background(fixture_rows()))


# --- nothing known: PCA and ICA ---------------------------------------------------------------------------------------


def test_with_nothing_known_the_pca_view_is_pca_where_large_variances_surprise_most() -> None:
    # Two blocks of correlated columns: s = 3.7 and 3.0 score .7 and .45, the smallest s = .33 scores .22.
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(400, 2))
    X = np.column_stack([latent[:, [0] * 5], latent[:, [1] * 4], rng.normal(size=(400, 2))])
    X = X + 0.7 * rng.normal(size=X.shape)
    model = SIDE(view="pca", margins=False).fit(X)
    pca = PCA(2).fit(standardised(X))
    assert np.allclose(np.abs(np.sum(model.components_ * pca.components_, axis=1)), 1, atol=1e-10)
    assert np.allclose(model.scores_, kl_scores(pca.explained_variance_))
    assert (model.n_iter_, model.residual_, model.view_) == (0, 0.0, "pca")


def test_with_nothing_known_the_pca_view_orders_all_principal_axes_by_score() -> None:
    X = DATA.X
    model = SIDE(8, view="pca", margins=False).fit(X)
    pca = PCA().fit(standardised(X))
    order = np.argsort(-kl_scores(pca.explained_variance_))
    assert not np.array_equal(order, np.arange(8))
    assert np.allclose(np.abs(np.sum(model.components_ * pca.components_[order], axis=1)), 1, atol=1e-8)
    assert np.all(np.diff(model.scores_) <= 0)


def test_with_nothing_known_the_ica_view_is_fast_ica_ordered_by_score() -> None:
    rng = np.random.default_rng(1)
    sources = np.column_stack(
        [rng.uniform(-1, 1, 600), rng.laplace(size=600), rng.choice([-1, 1], 600), *rng.normal(size=(1, 600))]
    )
    X = (sources + 0.05 * rng.normal(size=sources.shape)) @ rng.normal(size=(4, 4))
    model = SIDE(4, margins=False, n_restarts=1, random_state=5).fit(X)
    ica = FastICA(whiten="unit-variance", random_state=5).fit(standardised(X))
    scores = log_cosh_scores(ica.transform(standardised(X)))
    order = np.argsort(-np.abs(scores))
    expected = ica.components_[order] / np.linalg.norm(ica.components_[order], axis=1, keepdims=True)
    assert np.allclose(np.abs(np.sum(model.components_ * expected, axis=1)), 1, atol=1e-3)
    assert np.allclose(model.scores_, scores[order], atol=1e-4)
    two = SIDE(2, margins=False, n_restarts=1, random_state=5).fit(X)
    assert angle_between(two.components_, expected[:2]) < 0.03


# --- views under a prior ----------------------------------------------------------------------------------------------


def test_labels_attributes_and_one_subset_per_class_know_the_same() -> None:
    X = np.column_stack([DATA.X, DATA.batch])
    by_label = SIDE(random_state=0).fit(X, prior=np.array(["b", "a"])[DATA.batch])
    by_column = SIDE(random_state=0).fit(X, prior=Attributes([8]))
    by_rows = SIDE(random_state=0).fit(X, prior=[Subset(DATA.batch == 1), Subset(DATA.batch == 0)])
    for model in (by_column, by_rows):
        assert np.allclose(model.components_, by_label.components_, atol=1e-8)
    assert by_label.n_iter_ == 0
    assert np.abs(by_label.components_[:, 8]).max() < 1e-6


def test_a_subset_is_one_cluster_and_says_nothing_about_the_rest() -> None:
    known = DATA.kind == 0
    model = SIDE(margins=False, random_state=0).fit(DATA.X, prior=Subset(known))
    Y = model.whiten(DATA.X)
    assert np.allclose(np.cov(Y[known].T, ddof=0), np.eye(8), atol=1e-8)
    assert np.allclose(Y[~known], standardised(DATA.X)[~known])


def test_a_known_grouping_makes_room_for_the_hidden_one() -> None:
    def accuracy(view: np.ndarray, labels: np.ndarray) -> float:
        return float(cross_val_score(KNeighborsClassifier(15), view, labels).mean())

    model = SIDE(random_state=0).fit(DATA.X, prior=DATA.batch)
    assert accuracy(model.transform(DATA.X), DATA.kind) > 0.95
    assert accuracy(model.whiten(DATA.X) @ model.components_.T, DATA.batch) < 0.65


@pytest.mark.data("uci_adult_data.csv")
def test_the_label_column_of_adult_is_left_out_of_the_view() -> None:
    adult = datasets.fetch_adult()
    model = SIDE(random_state=0).fit(adult.X, prior=adult.labels["ethnicity"])
    assert np.abs(model.components_[:, adult.feature_names.index("ethnicity")]).max() < 1e-6
    gender = cross_val_score(KNeighborsClassifier(15), model.transform(adult.X), adult.labels["gender"]).mean()
    assert gender >= 0.95


def test_a_pca_view_of_what_is_wholly_known_says_that_it_shows_nothing() -> None:
    with pytest.warns(UserWarning, match="nothing to show"):
        model = SIDE(view="pca").fit(DATA.X, prior=DATA.batch)
    assert np.all(model.scores_ < 1e-5)


def test_auto_takes_pca_where_variances_surprise_and_ica_where_they_are_known() -> None:
    assert SIDE(view="auto", random_state=0).fit(DATA.X).view_ == "pca"
    assert SIDE(view="auto", random_state=0).fit(DATA.X, prior=DATA.batch).view_ == "ica"


def test_the_cap_on_ica_keeps_the_directions_of_most_variance() -> None:
    model = SIDE(random_state=0, standardize=False, max_ica_dimensions=3).fit(DATA.X, prior=DATA.batch)
    assert np.linalg.matrix_rank(model.components_) == 2
    capped = SIDE(3, random_state=0, standardize=False, max_ica_dimensions=3).fit(DATA.X, prior=DATA.batch)
    assert angle_between(capped.components_, PCA(3).fit(DATA.X).components_) < 1e-6


def test_more_columns_than_rows_of_a_class_still_give_a_view() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    X = rng.normal(size=(90, 40)) + 3 * rng.normal(size=(3, 40))[labels]
    model = SIDE(random_state=0, max_ica_dimensions=20).fit(X, prior=labels)
    assert np.isfinite(model.transform(X)).all()


# --- manners ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([SIDE(), SIDE(view="pca")])
def test_scikit_learn_s_own_checks(estimator: SIDE, check: Any) -> None:
    check(estimator)


def test_axes_are_unit_vectors_with_non_negative_means_and_show_the_data() -> None:
    model = SIDE(random_state=0).fit(DATA.X, prior=DATA.batch)
    assert np.allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert np.all(model.components_.sum(axis=1) >= 0)
    assert np.allclose(model.transform(DATA.X), standardised(DATA.X) @ model.components_.T)


def test_constant_and_repeated_columns_change_nothing_that_is_shown() -> None:
    X = np.column_stack([DATA.X, np.full(300, 4.0), DATA.X[:, 0]])
    model = SIDE(view="pca", margins=False).fit(X)
    assert np.all(model.components_[:, 8] == 0)
    assert model.transform(X).std(axis=0).min() > 0.05
    assert np.all(model.whiten(X)[:, 8] == 0)


@pytest.mark.parametrize("unit", [1e-60, 1e3, 1e60])
def test_without_standardisation_the_unit_of_measurement_changes_nothing(unit: float) -> None:
    plain, scaled = (
        SIDE(view="pca", standardize=False, tol=1e-3).fit(X, prior=Subset(DATA.kind == 0))
        for X in (DATA.X, unit * DATA.X)
    )
    assert np.allclose(scaled.components_, plain.components_, atol=1e-6)


def test_equal_seeds_give_equal_views() -> None:
    one, two = (SIDE(random_state=3).fit(DATA.X, prior=DATA.batch) for _ in range(2))
    assert np.array_equal(one.components_, two.components_)


def test_restarts_never_weaken_the_last_axis() -> None:
    weakest = [abs(SIDE(random_state=0, n_restarts=r).fit(DATA.X).scores_[-1]) for r in (1, 4)]
    assert weakest[1] >= weakest[0]


@pytest.mark.usefixtures("every_word")
def test_verbose_reports_each_sweep_and_a_cancelled_fit_changes_nothing() -> None:
    overlapping = [Subset(np.arange(100)), Subset(np.arange(50, 150))]
    seen: list[str] = []
    model = SIDE(random_state=0, verbose=lambda words, share: seen.append(words), tol=1e-3).fit(
        DATA.X, prior=overlapping
    )
    assert [int(words.split()[1]) for words in seen] == list(range(1, model.n_iter_ + 1))
    assert seen[-1].endswith(f"residual {model.residual_:.3g}")
    assert model.residual_ < 1e-3

    def cancel(words: str, share: float | None) -> None:
        raise KeyboardInterrupt

    before = model.components_
    with pytest.raises(KeyboardInterrupt):
        model.set_params(verbose=cancel).fit(DATA.X[:200, :5], prior=overlapping)
    assert model.components_ is before


def test_a_table_with_a_category_takes_its_name_as_the_prior() -> None:
    table = pd.DataFrame(DATA.X, columns=[f"c{i}" for i in range(8)]).assign(batch=np.array(["u", "v"])[DATA.batch])
    model = SIDE(random_state=0).fit(table, prior=Attributes(["batch"]))
    plain = SIDE(random_state=0).fit(DATA.X, prior=DATA.batch)
    assert angle_between(model.components_[:, :8], plain.components_) < 0.2


@pytest.mark.parametrize(
    ("parameters", "prior", "words"),
    [
        ({}, Samples(DATA.X), "labels for this method"),
        ({}, Attributes([0]), "takes 300 values"),
        ({}, DATA.batch[:7], "one value for each of 300 rows"),
        ({}, "batch", "pass X as a table to use names"),
        ({"view": "umap"}, None, "view must be"),
        ({"margins": 2}, None, "margins must be"),
        ({"n_restarts": 0}, None, "n_restarts must be at least 1"),
        ({"max_sweeps": 1.5}, None, "max_sweeps must be a whole number"),
        ({"max_ica_dimensions": 0}, None, "max_ica_dimensions must be"),
        ({"tol": -1}, None, "tol must be"),
        ({"verbose": "yes"}, None, "verbose must be"),
        ({"n_components": 9}, None, "at most the number of columns"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(parameters: dict[str, Any], prior: Any, words: str) -> None:
    with pytest.raises(ImapceError, match=words):
        SIDE(**parameters).fit(DATA.X, prior=prior)


def test_sparse_rows_are_refused_and_too_few_directions_are_said() -> None:
    with pytest.raises(ImapceError, match="dense"):
        SIDE().fit(sparse.csr_array(DATA.X))
    flat = np.repeat(DATA.X[:, :1], 3, axis=1)
    with pytest.raises(ImapceError, match="vary in at least n_components=2 directions"):
        SIDE().fit(flat)
