"""The rows given the known, as a scikit-learn transformer: all columns, less what the known does to them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import imapce
from helpers import grouped, standardised
from imapce import IMAPCE, Attributes, Given, ImapceError, Labels, Samples, Subset

DATA = grouped()
X = DATA.X
NAMES = [f"c{i}" for i in range(X.shape[1])]
RUN = np.array(["first", "second"], dtype=object)[DATA.batch]
SIZE = np.random.default_rng(2).normal(size=len(X))
PRIORS: dict[str, tuple[Any, Any]] = {
    "nothing": (None, None),
    "columns": (Attributes([0, 1]), None),
    "classes": (Labels(RUN), RUN),
    "labels themselves": (RUN, RUN),
    "a number": (Labels(SIZE), SIZE),
    "two labels": ([Labels(RUN), Labels(SIZE)], [RUN, SIZE]),
    "a label and a column": ([Labels(RUN), Attributes([3])], RUN),
}


@parametrize_with_checks([Given()])
def test_scikit_learn_s_own_checks(estimator: Given, check: Any) -> None:
    check(estimator)


# --- what comes out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", PRIORS)
def test_it_is_what_a_view_looks_at(known: str) -> None:
    prior, labels = PRIORS[known]
    view = IMAPCE().fit(X, prior=prior)
    model = Given(prior)
    left = model.fit_transform(X)
    assert left.shape == X.shape
    np.testing.assert_allclose(left, view.given(X, labels=labels), rtol=0, atol=1e-12)
    np.testing.assert_allclose(left, model.transform(X, labels=labels), rtol=0, atol=1e-12)
    np.testing.assert_allclose(left, model.given(X, labels=labels), rtol=0, atol=1e-12)
    assert (model.effect_ is None) == (view.effect_ is None)
    if model.effect_ is not None and view.effect_ is not None:
        np.testing.assert_allclose(model.effect_.weights, view.effect_.weights, rtol=0, atol=1e-12)
    assert (model.read_back_ is None) == (known == "nothing")
    if model.read_back_ is not None and view.read_back_ is not None:
        assert model.read_back_ == {**view.read_back_, "view": None}


def test_with_nothing_known_nothing_is_taken() -> None:
    model = Given()
    np.testing.assert_allclose(model.fit_transform(X), standardised(X), atol=1e-12)
    assert model.effect_ is None
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-12)


def test_the_rows_are_x_minus_lb_in_plain_numpy() -> None:
    model = Given(RUN, standardize=False).fit(X)
    assert model.effect_ is not None
    L = np.column_stack([RUN == "first", RUN == "second"]) - [np.mean(RUN == "first"), np.mean(RUN == "second")]
    expected = X - X.mean(axis=0) - L @ model.effect_.weights
    np.testing.assert_allclose(model.transform(X, labels=RUN), expected, atol=1e-12)


def test_known_columns_are_zero_and_come_back_as_their_means() -> None:
    model = Given(Attributes([0, 1]))
    left = model.fit_transform(X)
    assert np.abs(left[:, :2]).max() < 1e-9
    assert np.abs(left[:, 2:]).max() > 1
    back = model.inverse_transform(left)
    np.testing.assert_allclose(back[:, :2], np.tile(X[:, :2].mean(axis=0), (len(X), 1)), atol=1e-9)
    np.testing.assert_allclose(back.mean(axis=0), X.mean(axis=0), atol=1e-9)


def test_what_is_erased_is_nowhere_linear() -> None:
    left = Given(Labels(RUN, erase=True)).fit_transform(X)
    assert np.abs(left[RUN == "first"].mean(axis=0) - left[RUN == "second"].mean(axis=0)).max() < 1e-9
    left = Given(Attributes([0], erase=True)).fit_transform(X)
    assert np.abs(left.T @ standardised(X)[:, 0]).max() < 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_batches_with_unlike_shares_of_the_kinds_meet_within_each_kind(seed: int) -> None:
    """Means of the batches, subtracted, take a part of the kinds with them and leave the batches apart."""
    rng = np.random.default_rng(seed)
    batch = np.arange(300) % 2
    kind = (rng.random(300) < np.array([0.7, 0.4])[batch]).astype(int)
    rows = rng.normal(size=(300, 6)) + 5 * kind[:, None] * [1, 1, 1, 0, 0, 0] + rng.normal(size=(2, 6))[batch]

    def apart(points: np.ndarray) -> float:
        points = (points - points.mean(axis=0)) / points.std(axis=0)
        places = [[points[(kind == k) & (batch == b)].mean(axis=0) for b in (0, 1)] for k in (0, 1)]
        return float(np.mean([np.linalg.norm(one - other) for one, other in places]))

    means = np.stack([rows[batch == one].mean(axis=0) for one in range(2)])[batch]
    assert apart(Given(batch).fit_transform(rows)) < 0.5 * apart(rows - means) < 0.5 * apart(rows)


# --- new rows ---------------------------------------------------------------------------------------------------------


def test_labels_of_new_rows_are_needed_and_may_be_missing() -> None:
    model = Given(pd.Series(RUN, name="run")).fit(X)
    assert model.label_names == ("run",)
    with pytest.raises(ImapceError, match="labels must be given for the rows of X: the fit was given run"):
        model.transform(X)
    with pytest.raises(ImapceError, match="one label per row of X"):
        model.transform(X, labels=RUN[:5])
    with pytest.raises(ImapceError, match=r"labels must be classes that fit saw .* got 'third'"):
        model.transform(X[:1], labels=["third"])
    none = model.transform(X[:3], labels=[None, None, None])
    np.testing.assert_allclose(none, standardised(X)[:3], atol=1e-12)
    with pytest.raises(ImapceError, match="labels must be None: no labels were known in fit"):
        Given(Attributes([0])).fit(X).transform(X, labels=RUN)
    with pytest.raises(ImapceError, match="labels must be a list of 2"):
        Given([Labels(RUN), Labels(SIZE)]).fit(X).transform(X, labels=RUN)


def test_a_class_that_only_rows_set_aside_have_takes_nothing_from_them() -> None:
    far, label = X.copy(), RUN.copy()
    far[:3] *= 1e4
    label[:3] = "third"
    model = Given(label)
    left = model.fit_transform(far)
    assert list(model.outliers_[:3]) == [0, 1, 2]
    np.testing.assert_allclose(left[:3], ((far - model.mean_) / model.scale_)[:3], rtol=1e-9)
    np.testing.assert_allclose(IMAPCE().fit(far, prior=label).given(far[3:], labels=label[3:]), left[3:], atol=1e-9)
    assert IMAPCE().fit_transform(far, prior=label).shape == (300, 2)


def test_a_label_that_says_nothing_without_the_rows_set_aside_is_left_out() -> None:
    far, label = X.copy(), np.full(len(X), "usual", dtype=object)
    far[:3] *= 1e4
    label[:3] = "odd"
    model = Given([Labels(label), Labels(RUN)])
    assert model.fit_transform(far).shape == X.shape
    assert model.label_names == ("labels",)


def test_what_is_written_to_a_file_is_the_transform(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=NAMES)
    model = Given([Labels(RUN), Labels(SIZE)]).fit(table)
    assert model.transform_to(tmp_path / "left.parquet", table, labels=[RUN, SIZE], columns=[]) == len(X)
    written = pd.read_parquet(tmp_path / "left.parquet")
    assert list(written.columns) == ["row", *NAMES]
    np.testing.assert_array_equal(written[NAMES].to_numpy(), model.transform(table, labels=[RUN, SIZE]))


# --- scikit-learn's world ---------------------------------------------------------------------------------------------


def test_what_fit_is_told_goes_before_what_the_constructor_was() -> None:
    one, other = Given(RUN).fit(X, prior=Attributes([0])), Given(Attributes([0])).fit(X)
    assert one.effect_ == other.effect_
    np.testing.assert_array_equal(Given(RUN).fit_transform(X, prior=Attributes([0])), other.transform(X))


def test_clone_pickle_and_parameters() -> None:
    values = {"prior": Labels(RUN), "standardize": False, "outliers": "keep", "missing": "mean", "engine": "dense"}
    assert set(values) == set(Given().get_params())
    copied = clone(Given(**values)).get_params()
    assert {**copied, "prior": None} == {**values, "prior": None}
    assert list(copied["prior"].y) == list(RUN)
    model = Given(RUN).fit(X)
    again = pickle.loads(pickle.dumps(model))
    assert again.transform(X, labels=RUN).tobytes() == model.transform(X, labels=RUN).tobytes()
    assert "Given(" in repr(model)


def test_names_of_columns_in_and_out() -> None:
    table = pd.DataFrame(X, columns=NAMES, index=np.arange(300) + 1000)
    model = Given(Labels(pd.Series(RUN, index=table.index))).set_output(transform="pandas")
    left = model.fit_transform(table)
    assert list(left.columns) == NAMES == list(model.get_feature_names_out())
    assert list(left.index) == list(table.index)
    assert list(Given().fit(X).get_feature_names_out()) == [f"x{i}" for i in range(8)]
    assert list(Given().fit(X).get_feature_names_out(NAMES)) == NAMES
    out = Given().set_output(transform="polars").fit_transform(pl.DataFrame(dict(zip(NAMES, X.T, strict=True))))
    assert isinstance(out, pl.DataFrame)
    assert out.columns == NAMES


def test_categories_are_columns_of_their_own() -> None:
    table = pd.DataFrame(X, columns=NAMES).assign(kind=pd.Categorical(np.array(["a", "b", "c"])[DATA.kind]))
    model = Given(Labels(RUN)).set_output(transform="pandas").fit(table)
    left = model.transform(table, labels=RUN)
    assert list(left.columns) == [*NAMES, "kind=a", "kind=b", "kind=c"]
    with pytest.raises(ImapceError, match=r"X must have the columns of transform \(11\)"):
        model.inverse_transform(X)


def test_it_works_in_a_pipeline_and_a_column_transformer() -> None:
    pipeline = make_pipeline(Given(Attributes([0, 1])), PCA(2)).fit(X)
    np.testing.assert_allclose(
        pipeline.transform(X),
        PCA(2).fit(Given(Attributes([0, 1])).fit_transform(X)).transform(Given(Attributes([0, 1])).fit_transform(X)),
        atol=1e-9,
    )
    table = pd.DataFrame(X, columns=NAMES)
    chosen = ColumnTransformer([("left", Given(RUN), NAMES[2:]), ("rest", "passthrough", NAMES[:2])])
    np.testing.assert_array_equal(chosen.fit_transform(table)[:, :6], Given(RUN).fit_transform(table[NAMES[2:]]))
    assert chosen.get_feature_names_out()[0] == "left__c2"


def test_priors_and_labels_are_routed_through_a_pipeline() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        step = Given().set_fit_request(prior=True).set_transform_request(labels=True)
        pipeline = make_pipeline(FunctionTransformer(), step).fit(X, prior=RUN)
        left = pipeline.transform(X, labels=RUN)
    np.testing.assert_array_equal(left, Given(RUN).fit(X).transform(X, labels=RUN))


@pytest.mark.parametrize("engine", ["dense", "sparse", "moment_tensor"])
def test_engines_agree(engine: str) -> None:
    rows = sparse.csr_array(X) if engine == "sparse" else X
    model = Given(RUN, engine=engine)
    np.testing.assert_allclose(model.fit_transform(rows), Given(RUN).fit_transform(X), atol=1e-9)
    assert model.engine_ == engine


def test_rows_on_disk_are_corrected_as_those_in_memory(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=NAMES)
    table.to_parquet(tmp_path / "rows.parquet")
    scanned = imapce.scan(tmp_path / "rows.parquet")
    np.testing.assert_allclose(Given(RUN).fit_transform(scanned), Given(RUN).fit_transform(table), atol=1e-9)


def test_missing_values_are_filled_with_means_where_that_is_asked_for() -> None:
    holes = X.copy()
    holes[4, 5] = np.nan
    with pytest.raises(ImapceError, match="missing"):
        Given(RUN).fit(holes)
    left = Given(RUN, missing="mean").fit_transform(holes)
    assert np.isfinite(left).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"prior": Samples(X[:9])}, "prior must be Attributes.*got Samples"),
        ({"prior": [Labels(RUN), Subset([0, 1])]}, "prior must be Attributes.*got Subset"),
        ({"prior": "batch"}, "pass X as a table to use names"),
        ({"prior": RUN[:9]}, "one label per row"),
        ({"outliers": "auto"}, "outliers must be one of"),
        ({"missing": "drop"}, "missing must be one of"),
        ({"standardize": 1}, "standardize must be"),
        ({"engine": "gpu"}, "engine must be one of"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(changes: dict[str, Any], words: str) -> None:
    model = Given(**changes)
    with pytest.raises(ImapceError, match=words) as caught:
        model.fit(X)
    assert "\n" not in str(caught.value)
    assert [name for name in vars(model) if name.endswith("_")] == []


def test_before_fit_it_says_so() -> None:
    for method in ("transform", "inverse_transform", "given"):
        with pytest.raises(NotFittedError):
            getattr(Given(), method)(X)
