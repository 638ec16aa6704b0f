"""IMAPCE as a scikit-learn transformer: its checks, its place in pipelines, and what its attributes promise."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from helpers import angle_between, grouped, literal_kurtosis, literal_objective, only_columns, standardised
from imapce import IMAPCE, Attributes, Samples, Subset

DATA = grouped()
X = DATA.X
NAMES = [f"c{i}" for i in range(X.shape[1])]
KNOWN = Attributes([0, 1])


def small(**changes: Any) -> IMAPCE:
    return IMAPCE(**{"alpha": 1.0, "mu": 100.0, "n_starts": 4, "random_state": 0} | changes)


@pytest.fixture(scope="module")
def model() -> IMAPCE:
    return small().fit(X, prior=KNOWN)


@parametrize_with_checks([IMAPCE(n_starts=3, max_iter=300)])
def test_scikit_learn_s_own_checks(estimator: IMAPCE, check: Any) -> None:
    check(estimator)


# --- attributes -------------------------------------------------------------------------------------------------------


def test_components_are_orthonormal_uncorrelated_and_ordered_by_variance(model: IMAPCE) -> None:
    assert model.components_.shape == (2, 8)
    assert np.allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-12)
    covariance = np.cov(model.transform(X).T)
    assert abs(covariance[0, 1]) < 1e-10
    assert covariance[0, 0] > covariance[1, 1]
    assert np.all(model.components_[range(2), np.abs(model.components_).argmax(axis=1)] > 0)


def test_objective_and_kurtosis_equal_an_independent_evaluation(model: IMAPCE) -> None:
    Z = standardised(X)
    for optimum in model.optima_:
        V = optimum.components.T
        assert optimum.objective == pytest.approx(
            literal_objective(Z, only_columns(Z, [0, 1]), Z, V, 1.0, 100.0), rel=1e-10
        )
        assert optimum.kurtosis == pytest.approx(literal_kurtosis(Z, V), rel=1e-10)
    assert model.objective_ == model.optima_[0].objective
    assert model.kurtosis_ == model.optima_[0].kurtosis
    assert np.array_equal(model.components_, model.optima_[0].components)


def test_mean_scale_and_shares_are_those_of_the_data(model: IMAPCE) -> None:
    assert np.allclose(model.mean_, X.mean(axis=0))
    assert np.allclose(model.scale_, X.std(axis=0))
    view = model.transform(X)
    assert np.allclose(model.explained_variance_ratio_, view.var(axis=0) / 8)
    expected = np.corrcoef(view.T, X.T)[:2, 2:]
    assert np.allclose(model.axis_correlation_, expected, atol=1e-9)


def test_alpha_is_zero_without_a_prior_and_the_given_one_with_it(model: IMAPCE) -> None:
    assert model.alpha_ == 1.0
    assert small(alpha=3).fit(X).alpha_ == 0.0
    assert small(alpha=3).fit(X, prior=[]).alpha_ == 0.0


def test_the_paper_s_rule_for_mu_is_a_share_of_the_error_and_scales_with_the_rows() -> None:
    model = IMAPCE(alpha=1.0, mu="paper", random_state=0, n_starts=2)
    mu = model.fit(X).mu_
    error = IMAPCE(alpha=1.0, mu=0).fit(X).objective_
    assert mu == pytest.approx(error / 10**1.5)
    assert model.fit(np.repeat(X, 2, axis=0)).mu_ == pytest.approx(2 * mu)


def test_loadings_list_the_features_that_shape_the_view_first(model: IMAPCE) -> None:
    table = model.loadings()
    axes = list(model.get_feature_names_out())
    named = [name for axis in axes for name in (axis, f"{axis}_correlation")]
    assert axes == ["imapce0", "imapce1"]
    assert list(table.columns) == ["feature", *named, "contribution"]
    assert set(table["feature"][:2]) == {"x2", "x3"}
    assert np.all(np.diff(table["contribution"]) <= 0)
    assert table["contribution"].sum() == pytest.approx(1.0)
    place = int(table["feature"].tolist().index("x5"))
    assert table["imapce1"][place] == model.components_[1, 5]


# --- transform --------------------------------------------------------------------------------------------------------


def test_transform_is_the_standardised_row_times_the_components(model: IMAPCE) -> None:
    assert np.allclose(model.transform(X), standardised(X) @ model.components_.T, atol=1e-12)


def test_a_row_s_place_depends_on_no_other_row(model: IMAPCE) -> None:
    whole = model.transform(X)
    for i in (0, 17, 299):
        assert np.allclose(model.transform(X[i : i + 1])[0], whole[i], rtol=0, atol=1e-12)
    assert np.allclose(model.transform(X[::-1])[::-1], whole, rtol=0, atol=1e-12)


def test_inverse_transform_of_transform_is_the_projection(model: IMAPCE) -> None:
    V = model.components_.T
    expected = (standardised(X) @ V @ V.T) * X.std(axis=0) + X.mean(axis=0)
    assert np.allclose(model.inverse_transform(model.transform(X)), expected)
    again = model.transform(model.inverse_transform(model.transform(X)))
    assert np.allclose(again, model.transform(X), atol=1e-10)


def test_fit_transform_is_fit_then_transform() -> None:
    assert np.array_equal(small().fit_transform(X, prior=KNOWN), small().fit(X, prior=KNOWN).transform(X))


def test_sparse_rows_are_placed_where_dense_ones_are(model: IMAPCE) -> None:
    assert np.allclose(model.transform(sparse.csr_array(X)), model.transform(X), atol=1e-11)


def test_far_columns_keep_their_digits_in_transform() -> None:
    far = X + 1e6
    view = small().fit(X, prior=KNOWN).transform(X)
    assert np.allclose(small().fit(far, prior=KNOWN).transform(far), view, atol=1e-6)


def test_float32_input_gives_the_view_of_its_float64_copy() -> None:
    single = X.astype(np.float32)
    one, other = small().fit(single, prior=KNOWN), small().fit(single.astype(np.float64), prior=KNOWN)
    assert angle_between(one.components_, other.components_) < 1e-9
    assert one.transform(single).dtype == np.float64


# --- scikit-learn's world ---------------------------------------------------------------------------------------------


def test_clone_and_set_params_carry_every_parameter() -> None:
    values = {
        "n_components": 3,
        "alpha": 2.0,
        "mu": 7.0,
        "standardize": False,
        "n_starts": 2,
        "tol": 1e-4,
        "max_iter": 9,
        "engine": "dense",
        "random_state": 5,
        "verbose": True,
        "missing": "mean",
        "outliers": "trim",
    }
    assert set(values) == set(IMAPCE().get_params())
    assert clone(IMAPCE(**values)).get_params() == values
    assert IMAPCE().set_params(**values).get_params() == values


def test_pickle_and_copy_keep_the_model_to_the_bit(model: IMAPCE) -> None:
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again.transform(X).tobytes() == model.transform(X).tobytes()
        assert again.stop_reason_ == model.stop_reason_


def test_it_works_in_a_pipeline_and_a_grid_search() -> None:
    pipeline = make_pipeline(StandardScaler(), small(n_starts=2), KNeighborsClassifier())
    search = GridSearchCV(pipeline, {"imapce__mu": [1.0, 300.0]}, cv=2).fit(X, DATA.kind)
    assert search.best_score_ > 0.5
    assert list(pipeline.fit(X, DATA.kind)[:-1].get_feature_names_out()) == ["imapce0", "imapce1"]


def test_it_works_in_a_column_transformer() -> None:
    table = pd.DataFrame(X, columns=NAMES)
    chosen = ColumnTransformer([("view", small(), NAMES[2:]), ("rest", "passthrough", NAMES[:2])])
    out = chosen.fit_transform(table)
    assert np.allclose(out[:, :2], small().fit_transform(table[NAMES[2:]]))
    assert list(chosen.get_feature_names_out()) == ["view__imapce0", "view__imapce1", "rest__c0", "rest__c1"]


@pytest.mark.parametrize(("kind", "table"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output_gives_tables_with_named_axes(kind: str, table: type) -> None:
    out = small().set_output(transform=kind).fit_transform(X, prior=KNOWN)
    assert isinstance(out, table)
    assert list(out.columns) == ["imapce0", "imapce1"]
    assert np.array_equal(out.to_numpy(), small().fit_transform(X, prior=KNOWN))


def test_set_output_pandas_keeps_the_row_index() -> None:
    table = pd.DataFrame(X, columns=NAMES, index=np.arange(300) + 1000)
    out = small().set_output(transform="pandas").fit_transform(table, prior=KNOWN)
    assert list(out.index) == list(table.index)


def test_feature_names_in_and_out() -> None:
    fitted = small().fit(pd.DataFrame(X, columns=NAMES))
    assert list(fitted.feature_names_in_) == NAMES
    assert fitted.n_features_in_ == 8
    assert list(fitted.get_feature_names_out()) == ["imapce0", "imapce1"]
    assert not hasattr(small().fit(X), "feature_names_in_")


def test_refitting_an_array_forgets_the_names_of_a_table() -> None:
    model = small().fit(pd.DataFrame(X, columns=NAMES))
    model.fit(X[:, :5])
    assert not hasattr(model, "feature_names_in_")
    assert model.encoded_feature_names_ == [f"x{i}" for i in range(5)]
    assert model.transform(X[:, :5]).shape == (300, 2)


def test_a_prior_is_routed_through_a_pipeline() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(FunctionTransformer(), small().set_fit_request(prior=True))
        view = pipeline.fit(X, prior=KNOWN)[-1]
    assert angle_between(view.components_, small().fit(X, prior=KNOWN).components_) < 1e-9
    assert angle_between(view.components_, small().fit(X).components_) > 0.1


def test_transform_before_fit_says_so() -> None:
    for method in ("transform", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(IMAPCE(), method)(X)
    with pytest.raises(NotFittedError):
        IMAPCE().loadings()


# --- what may not change ----------------------------------------------------------------------------------------------


def test_fit_and_transform_never_change_the_caller_s_arrays() -> None:
    array, background, mask = X.copy(), X[:50].copy(), np.arange(300) < 30
    columns = [0, 1]
    prior = [Attributes(columns), Samples(background), Subset(mask)]
    before = [a.tobytes() for a in (array, background, mask)]
    view = small().fit_transform(array, prior=prior)
    kept = view.tobytes()
    small().fit(array).inverse_transform(view)
    assert [a.tobytes() for a in (array, background, mask)] == before
    assert view.tobytes() == kept
    assert columns == [0, 1]
    assert len(prior) == 3


def test_fit_does_not_change_its_parameters() -> None:
    model = small(mu="auto")
    before = model.get_params()
    model.fit(X, prior=KNOWN)
    assert model.get_params() == before


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_fit_and_transform_never_change_the_caller_s_tables(make: Any) -> None:
    columns = {name: X[:, i].copy() for i, name in enumerate(NAMES)}
    columns["kind"] = np.array(["a", "b", "c"], dtype=object)[DATA.kind]
    if make is pd.DataFrame:
        columns["kind"] = pd.Categorical(columns["kind"])
    table, untouched = make(columns), make(columns)
    small().fit(table, prior=Attributes(["kind"])).transform(table)
    assert table.equals(untouched)


# --- stopping, cancelling, refitting ----------------------------------------------------------------------------------


def test_too_few_iterations_give_a_warning_and_a_sentence() -> None:
    with pytest.warns(ConvergenceWarning, match="Not converged"):
        model = small(max_iter=2).fit(X, prior=KNOWN)
    assert model.stop_reason_.startswith("Not converged: ")
    assert "max_iter" in model.stop_reason_
    assert model.n_iter_ <= 2
    assert model.components_.shape == (2, 8)


def test_a_converged_fit_warns_of_nothing_and_says_so(model: IMAPCE) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small().fit(X, prior=KNOWN)
    assert model.stop_reason_.startswith("Converged: ")
    assert f"{model.objective_:.8g}" in model.stop_reason_
    assert "\n" not in model.stop_reason_


@pytest.mark.usefixtures("every_word")
def test_a_function_is_told_every_round_and_a_falling_best() -> None:
    told: list[str] = []
    small(verbose=lambda words, share: told.append(words)).fit(X, prior=KNOWN)
    rounds = [re.search(r"round (\d+), (\d+) starts? running, best objective (\S+)", words) for words in told]
    seen = [found.groups() for found in rounds if found is not None]
    assert [int(number) for number, _, _ in seen] == list(range(1, len(seen) + 1))
    assert int(seen[0][1]) <= 4
    best = [float(value) for _, _, value in seen]
    assert all(later <= earlier + 1e-7 * abs(earlier) for earlier, later in pairwise(best))


def test_verbose_says_which_engine_was_taken(capsys: pytest.CaptureFixture[str]) -> None:
    small(verbose=True).fit(X, prior=KNOWN)
    assert "engine moment_tensor: " in capsys.readouterr().out
    small().fit(X, prior=KNOWN)
    assert capsys.readouterr() == ("", "")


class Cancelled(Exception):
    pass


def cancel(words: str, share: float | None) -> None:
    if "round 3," in words:
        raise Cancelled


@pytest.mark.usefixtures("every_word")
def test_a_cancelled_first_fit_leaves_an_unfitted_estimator() -> None:
    model = small(verbose=cancel)
    with pytest.raises(Cancelled):
        model.fit(pd.DataFrame(X, columns=NAMES), prior=KNOWN)
    with pytest.raises(NotFittedError):
        model.transform(X)
    assert [name for name in vars(model) if name.endswith("_")] == []
    assert model.set_params(verbose=False).fit(X, prior=KNOWN).components_.shape == (2, 8)


@pytest.mark.usefixtures("every_word")
def test_a_cancelled_refit_leaves_the_previous_model_whole() -> None:
    model = small().fit(X, prior=KNOWN)
    before, view = sorted(vars(model)), model.transform(X)
    model.set_params(verbose=cancel, mu=5.0)
    with pytest.raises(Cancelled):
        model.fit(pd.DataFrame(X[:, :5], columns=NAMES[:5]))
    assert sorted(vars(model)) == before
    assert np.array_equal(model.transform(X), view)
    assert model.mu_ == 100.0


def test_a_refused_refit_leaves_the_previous_model_whole() -> None:
    model = small().fit(X, prior=KNOWN)
    view = model.transform(X)
    with pytest.raises(ValueError):
        model.fit(X[:, :5], prior=Attributes([7]))
    assert np.array_equal(model.transform(X), view)


# --- parameters reach where they act ----------------------------------------------------------------------------------


def test_n_starts_is_the_number_of_starts() -> None:
    for n_starts in (1, 2, 7):
        model = small(n_starts=n_starts).fit(X, prior=KNOWN)
        assert model.trace_.objectives.shape[1] == n_starts
        assert len(model.trace_.outcomes) == n_starts


def test_without_kurtosis_one_start_is_enough() -> None:
    assert len(small(mu=0).fit(X).trace_.outcomes) == 1


def test_random_state_moves_the_random_starts_and_nothing_else() -> None:
    one, other = small(n_starts=8).fit(X, prior=KNOWN), small(n_starts=8, random_state=1).fit(X, prior=KNOWN)
    # The first four starts are closed-form; a start leaves the race as NaN.
    assert np.allclose(one.trace_.objectives[0, :4], other.trace_.objectives[0, :4], rtol=1e-12)
    assert not np.any(one.trace_.objectives[0, 4:] == other.trace_.objectives[0, 4:])
    assert angle_between(one.components_, other.components_) < 1e-6


def test_tol_decides_how_small_the_gradient_must_be() -> None:
    wide = np.random.default_rng(0).standard_t(5, size=(200, 90))
    loose = IMAPCE(alpha=1.0, mu=50.0, n_starts=1, tol=1e-2).fit(wide)
    tight = IMAPCE(alpha=1.0, mu=50.0, n_starts=1, tol=1e-6).fit(wide)
    assert loose.n_evaluations_ < tight.n_evaluations_
    assert tight.objective_ <= loose.objective_


def test_standardize_false_only_centres() -> None:
    model = small(standardize=False).fit(X)
    assert np.array_equal(model.scale_, np.ones(8))
    assert np.allclose(model.transform(X), (X - X.mean(axis=0)) @ model.components_.T)


def test_alpha_weighs_the_prior() -> None:
    kept = [np.sum(small(alpha=alpha, mu=1.0).fit(X, prior=KNOWN).components_[:, :2] ** 2) for alpha in (0.0, 1.0, 9.0)]
    assert kept[0] > 0.9
    assert 0.5 > kept[1] >= kept[2]


def test_more_mu_never_gives_more_kurtosis() -> None:
    kurtoses = [small(mu=mu, n_starts=10).fit(X, prior=KNOWN).kurtosis_ for mu in (1.0, 30.0, 1000.0)]
    assert kurtoses[0] >= kurtoses[1] >= kurtoses[2]
    assert kurtoses[0] > kurtoses[2] + 0.1


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_n_components_is_the_number_of_axes(k: int) -> None:
    model = small(n_components=k).fit(X, prior=KNOWN)
    assert model.components_.shape == (k, 8)
    assert model.transform(X).shape == (300, k)
