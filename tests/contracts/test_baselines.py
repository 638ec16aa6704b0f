"""What every baseline promises, whatever it computes: shapes, manners, refusals in one sentence, equal seeds."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from helpers import grouped
from imapce import Attributes, ImapceError, Samples, Subset, baselines
from imapce.errors import MissingExtraError
from imapce.estimators.base import LinearView

DATA = grouped(90, 6)
X = DATA.X
TABLE = pd.DataFrame(X, columns=[f"c{i}" for i in range(6)], index=[f"row{i}" for i in range(90)])
BATCH = np.array(["north", "south"])[DATA.batch]

# What keeps an iterative method to a second on 90 rows; a parameter that a class does not have is left out.
QUICK: dict[str, Any] = {
    "random_state": 0,
    "perplexity": 10,
    "n_neighbors": 10,
    "k_eff": 10,
    "max_iter": 60,
    "n_iter": 60,
    "n_iterations": 60,
    "n_starts": 2,
    "max_sweeps": 60,
    "n_jobs": 1,
}

# Every prior there is; a method takes those it can use and refuses the others.
PRIORS: dict[str, Any] = {
    "labels": BATCH,
    "attributes": Attributes([0, 1]),
    "samples": Samples(X[:40]),
    "subset": Subset(DATA.batch == 0),
}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def estimator_class(name: str) -> type:
    try:
        found = getattr(baselines, name)
        found()
    except MissingExtraError as error:
        pytest.skip(str(error))
    return found


def made(name: str, **changes: Any) -> Any:
    kind = estimator_class(name)
    accepted = inspect.signature(kind).parameters
    return kind(**{key: value for key, value in QUICK.items() if key in accepted} | changes)


def attempt(action: Callable[..., Any], prior: Any) -> tuple[Any, ImapceError | None]:
    """What a fit of X gives, or the refusal; a library that is not installed skips the test."""
    try:
        return action(X, prior=prior), None
    except MissingExtraError as error:
        pytest.skip(str(error))
    except ImapceError as error:
        return None, error


@cache
def usable_prior(name: str) -> Any:
    """The first prior the method accepts; a method without any use for one is fitted without."""
    return next((prior for prior in PRIORS.values() if attempt(made(name).fit, prior)[1] is None), None)


def fitted(name: str, **changes: Any) -> Any:
    return made(name, **changes).fit(X, prior=usable_prior(name))


def shown(model: Any, data: Any) -> np.ndarray:
    """The picture of the rows of fit: placed by the formula, or the map itself."""
    return np.asarray(model.transform(data) if isinstance(model, LinearView) else model.embedding_)


def one_sentence(error: BaseException) -> bool:
    text = str(error)
    return 20 < len(text) < 500 and "\n" not in text and text.rstrip().endswith(".")


names = pytest.mark.parametrize("name", sorted(baselines._HOMES))


@names
def test_parameters_after_the_first_are_named_and_shared_ones_have_one_meaning(name: str) -> None:
    parameters = inspect.signature(estimator_class(name)).parameters
    assert next(iter(parameters)) == "n_components"
    assert all(p.kind is p.KEYWORD_ONLY for p in list(parameters.values())[1:])
    shared = {"n_components": 2, "standardize": True, "missing": "error", "random_state": None, "verbose": False}
    for parameter, default in shared.items():
        assert parameters[parameter].default == default, parameter
    for method in ("fit", "fit_transform"):
        signature = inspect.signature(getattr(estimator_class(name), method)).parameters
        assert list(signature) == ["self", "X", "y", "prior"]
        assert signature["prior"].kind is inspect.Parameter.KEYWORD_ONLY


@names
@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_map_has_a_row_for_each_row_and_a_column_for_each_axis(name: str, k: int) -> None:
    model = made(name, n_components=k)
    view, refusal = attempt(model.fit_transform, usable_prior(name))
    if refusal is not None and k != 2 and "n_components" in str(refusal):
        pytest.skip(f"{name} refuses n_components={k}: {refusal}")
    assert refusal is None
    assert view.shape == (90, k)
    assert np.isfinite(view).all()
    assert np.all(np.ptp(view, axis=0) > 0)


@names
def test_fit_transform_is_the_map_of_fit(name: str) -> None:
    view = made(name).fit_transform(X, prior=usable_prior(name))
    assert np.allclose(view, shown(fitted(name), X), rtol=0, atol=1e-10)


@names
def test_equal_seeds_give_equal_maps(name: str) -> None:
    one, two = (made(name).fit_transform(X, prior=usable_prior(name)) for _ in range(2))
    assert np.allclose(one, two, rtol=0, atol=1e-10)


@names
def test_what_is_passed_in_is_not_changed(name: str) -> None:
    prior = usable_prior(name)
    data, labels, table = X.copy(), BATCH.copy(), TABLE.copy()
    data.setflags(write=False)
    made(name).fit_transform(data, prior=prior)
    made(name).fit_transform(table, prior=prior)
    assert np.array_equal(data, X)
    assert np.array_equal(labels, BATCH)
    pd.testing.assert_frame_equal(table, TABLE)


@names
def test_a_table_in_gives_a_table_out_with_its_index_and_named_axes(name: str) -> None:
    view = made(name).set_output(transform="pandas").fit_transform(TABLE, prior=usable_prior(name))
    assert list(view.index) == list(TABLE.index)
    assert list(view.columns) == [f"{name.lower()}{axis}" for axis in range(2)]
    plain = made(name).fit_transform(X, prior=usable_prior(name))
    assert np.allclose(view.to_numpy(), plain, rtol=0, atol=1e-6)


@names
def test_pandas_and_polars_tables_give_the_same_map(name: str) -> None:
    prior = usable_prior(name)
    one = made(name).fit_transform(TABLE, prior=prior)
    two = made(name).fit_transform(pl.from_pandas(TABLE), prior=prior)
    assert np.allclose(np.asarray(one), np.asarray(two), rtol=0, atol=1e-10)


@names
def test_a_text_column_is_read_as_a_category(name: str) -> None:
    table = TABLE.assign(kind=np.array(["a", "b", "c"])[DATA.kind])
    prior = usable_prior(name)
    if isinstance(prior, Samples):
        prior = Samples(table[:40])
    model = made(name).fit(table, prior=prior)
    assert shown(model, table).shape == (90, 2)
    assert np.isfinite(shown(model, table)).all()
    assert list(model.feature_names_in_) == list(table.columns)


@names
def test_a_prior_of_a_kind_that_does_not_exist_is_refused(name: str) -> None:
    for nonsense in (3.5, object(), {"batch": 1}, [Attributes([0]), "batch"], BATCH[:7], Attributes(["nowhere"])):
        with pytest.raises(ImapceError) as caught:
            made(name).fit(X, prior=nonsense)
        assert one_sentence(caught.value), str(caught.value)


@names
@pytest.mark.parametrize("kind", PRIORS)
def test_every_prior_is_used_or_refused_with_a_sentence(name: str, kind: str) -> None:
    model, refusal = attempt(made(name).fit, PRIORS[kind])
    if refusal is None:
        assert np.isfinite(shown(model, X)).all()
    else:
        assert one_sentence(refusal), str(refusal)
        assert any(word in str(refusal) for word in ("prior", "Attributes", "Samples", "Subset")), str(refusal)


@names
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda data: np.where(data == data[3, 1], np.nan, data), "NaN"),
        (lambda data: np.where(data == data[3, 1], np.inf, data), "inf"),
        (lambda data: data[:, 0], "rows and columns"),
        (lambda data: data.astype(str), "numbers"),
        (lambda data: data + 1j, "real"),
    ],
)
def test_bad_rows_are_refused_in_one_sentence(name: str, spoil: Callable[[np.ndarray], Any], words: str) -> None:
    with pytest.raises(ImapceError, match=words) as caught:
        made(name).fit(spoil(X), prior=usable_prior(name))
    assert one_sentence(caught.value), str(caught.value)


@names
def test_missing_values_are_filled_when_asked_for(name: str) -> None:
    gaps = X.copy()
    gaps[5, 4] = np.nan
    assert np.isfinite(made(name, missing="mean").fit_transform(gaps, prior=usable_prior(name))).all()


@names
@pytest.mark.parametrize(
    "bad",
    [{"n_components": 0}, {"n_components": 1.5}, {"missing": "drop"}, {"standardize": "yes"}, {"random_state": -1}],
)
def test_a_parameter_that_cannot_be_used_is_refused_by_name(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(ImapceError, match=next(iter(bad))) as caught:
        made(name, **bad).fit(X, prior=usable_prior(name))
    assert one_sentence(caught.value), str(caught.value)


@names
def test_a_refused_fit_leaves_the_estimator_as_it_was(name: str) -> None:
    model = fitted(name)
    before = dict(model.__dict__)
    spoiled = X.copy()
    spoiled[3, 1] = np.nan
    for data, prior in ((spoiled, usable_prior(name)), (X[:, :4], object())):
        with pytest.raises(ImapceError):
            model.fit(data, prior=prior)
        assert model.__dict__.keys() == before.keys()
        assert all(model.__dict__[key] is before[key] for key in before)
    unfitted = made(name)
    with pytest.raises(ImapceError):
        unfitted.fit(spoiled)
    assert not hasattr(unfitted, "n_features_in_")


@names
def test_clone_carries_the_parameters_and_nothing_fitted(name: str) -> None:
    model = fitted(name, n_components=2)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "n_features_in_")
    assert np.allclose(copy.fit_transform(X, prior=usable_prior(name)), shown(model, X), rtol=0, atol=1e-10)


@names
def test_a_formula_places_a_row_whatever_the_others(name: str) -> None:
    model = fitted(name)
    if not isinstance(model, LinearView):
        pytest.skip(f"{name} is a map of the rows at hand; new rows have no place in it")
    assert np.allclose(model.transform(X[7:8])[0], model.transform(X)[7], rtol=0, atol=1e-10)


def test_the_list_of_baselines_is_the_list_of_homes() -> None:
    assert baselines.__all__ == sorted(baselines._HOMES) == dir(baselines)
    with pytest.raises(AttributeError, match="no attribute 'Nowhere'"):
        _ = baselines.Nowhere
