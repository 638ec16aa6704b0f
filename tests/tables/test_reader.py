"""Tables of every kind give the same view; categories count as one; names decide where both sides have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from helpers import angle_between, grouped
from imapce import IMAPCE, Attributes, Exploration, Samples
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.tables.reader import require_finite

DATA = grouped()
X = DATA.X
NAMES = [f"c{i}" for i in range(8)]
LETTERS = np.array(["red", "green", "blue"])[DATA.kind]
MAKERS: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


def small(**changes: Any) -> IMAPCE:
    return IMAPCE(**{"mu": 100.0, "n_starts": 4, "random_state": 0} | changes)


def numbers(make: Any, matrix: np.ndarray = X) -> Any:
    return make({name: matrix[:, i] for i, name in enumerate(NAMES)})


def with_colour(make: Any) -> Any:
    colour: Any = pd.Categorical(LETTERS) if make is pd.DataFrame else list(LETTERS)
    return make({"colour": colour, **{name: X[:, i] for i, name in enumerate(NAMES[:5])}})


@pytest.mark.parametrize("kind", MAKERS)
def test_a_table_of_numbers_gives_the_view_of_its_array(kind: str) -> None:
    table = numbers(MAKERS[kind])
    from_table, from_array = (
        small().fit(table, prior=Attributes(["c0", "c1"])),
        small().fit(X, prior=Attributes([0, 1])),
    )
    assert np.allclose(from_table.components_, from_array.components_, atol=1e-9)
    assert np.allclose(from_table.transform(table), from_array.transform(X), atol=1e-8)
    assert list(from_table.feature_names_in_) == NAMES
    assert from_table.encoded_feature_names_ == NAMES


@pytest.mark.parametrize("kind", MAKERS)
def test_a_category_becomes_columns_that_together_have_the_variance_of_one(kind: str) -> None:
    table = with_colour(MAKERS[kind])
    model = small().fit(table)
    assert model.encoded_feature_names_ == ["colour=blue", "colour=green", "colour=red", *NAMES[:5]]
    assert model.n_features_in_ == 6
    one_hot = np.stack([c == LETTERS for c in ("blue", "green", "red")], axis=1).astype(float)
    assert np.allclose(model.scale_[:3], np.sqrt(one_hot.var(axis=0).sum()))
    assert (one_hot.var(axis=0) / model.scale_[:3] ** 2).sum() == pytest.approx(1.0)
    expected = np.column_stack(
        [(one_hot - one_hot.mean(axis=0)) / model.scale_[0], (X - X.mean(0))[:, :5] / X.std(0)[:5]]
    )
    assert np.allclose(model.transform(table), expected @ model.components_.T, atol=1e-10)


def test_every_kind_of_table_gives_the_same_components() -> None:
    views = [small().fit(with_colour(make), prior=Attributes(["colour"])).components_ for make in MAKERS.values()]
    for view in views[1:]:
        assert np.array_equal(view, views[0])


def test_an_attribute_prior_on_a_category_means_all_its_columns() -> None:
    table = with_colour(pd.DataFrame)
    by_name = small(mu=0, alpha=1).fit(table, prior=Attributes(["colour"]))
    by_position = small(mu=0, alpha=1).fit(table, prior=Attributes([0]))
    assert np.array_equal(by_name.components_, by_position.components_)
    one_hot = np.stack([c == LETTERS for c in ("blue", "green", "red")], axis=1).astype(float)
    Z = np.column_stack(
        [(one_hot - one_hot.mean(0)) / np.sqrt(one_hot.var(0).sum()), ((X - X.mean(0)) / X.std(0))[:, :5]]
    )
    Y = Z.copy()
    Y[:, 3:] = 0
    vectors = np.linalg.eigh(Z.T @ Z - Y.T @ Y)[1]
    assert angle_between(by_name.components_, vectors[:, -2:].T) < 1e-7


def test_a_single_name_may_stand_alone() -> None:
    table = with_colour(pd.DataFrame)
    one, other = small().fit(table, prior=Attributes("c0")), small().fit(table, prior=Attributes(["c0"]))
    assert np.array_equal(one.components_, other.components_)


def test_a_column_mask_is_the_same_as_its_positions() -> None:
    mask = np.arange(8) < 2
    one, other = small().fit(X, prior=Attributes(mask)), small().fit(X, prior=Attributes([0, 1]))
    assert np.array_equal(one.components_, other.components_)


@pytest.mark.parametrize("kind", MAKERS)
def test_background_columns_are_matched_by_name_and_extra_ones_ignored(kind: str) -> None:
    background = grouped(100, seed=9).X * np.arange(1, 9)
    straight = small().fit(numbers(MAKERS[kind]), prior=Samples(numbers(MAKERS[kind], background)))
    order = [3, 1, 7, 0, 2, 6, 5, 4]
    columns = {NAMES[i]: background[:, i] for i in order} | {"extra": np.zeros(100)}
    mixed = small().fit(numbers(MAKERS[kind]), prior=Samples(MAKERS[kind](columns)))
    assert np.array_equal(mixed.components_, straight.components_)
    as_array = small().fit(numbers(MAKERS[kind]), prior=Samples(background))
    assert angle_between(as_array.components_, straight.components_) < 1e-9


def test_a_background_may_be_another_kind_of_table_sparse_or_a_list() -> None:
    background = grouped(100, seed=9).X
    reference = small().fit(X, prior=Samples(background)).components_
    for other in (sparse.csr_array(background), background.tolist(), background.astype(object)):
        assert angle_between(small().fit(X, prior=Samples(other)).components_, reference) < 1e-7
    crossed = small().fit(numbers(pd.DataFrame), prior=Samples(numbers(pl.DataFrame, background)))
    assert angle_between(crossed.components_, reference) < 1e-7


def test_new_rows_of_a_table_with_categories_need_not_hold_every_category() -> None:
    table = with_colour(pd.DataFrame)
    model = small().fit(table)
    whole = model.transform(table)
    for i in (0, 5, 100):
        assert np.allclose(model.transform(table.iloc[i : i + 1])[0], whole[i], atol=1e-12)


def test_booleans_and_integers_read_as_numbers() -> None:
    table = numbers(pd.DataFrame).assign(flag=DATA.batch == 1, count=DATA.kind)
    model = small().fit(table)
    assert model.encoded_feature_names_[-2:] == ["flag", "count"]
    matrix = np.column_stack([X, DATA.batch, DATA.kind]).astype(float)
    assert angle_between(model.components_, small().fit(matrix).components_) < 1e-7


def test_require_finite_passes_what_is_finite_and_looks_at_no_integers() -> None:
    require_finite(np.array([[1, 2]]), "X", ["a", "b"])
    require_finite(np.array([[1e308, 1e308]]), "X", ["a", "b"])


def test_long_lists_of_columns_are_cut() -> None:
    with pytest.raises(InvalidValueError, match=r"'n0' has 2, .*'n9' has 2, and 5 more: drop those rows"):
        require_finite(np.array([[np.nan] * 15, [np.nan] * 15, [1.0] * 15]), "X", [f"n{i}" for i in range(15)])
    with pytest.raises(InvalidValueError, match=r"'a' has 1: drop those rows or columns\.$"):
        require_finite(sparse.csr_array([[np.nan, 1.0], [0.0, 1.0]]), "X", ["a", "b"])


def test_an_anndata_is_sent_to_its_own_door() -> None:
    anndata = pytest.importorskip("anndata")
    for refused in (small().fit, Exploration):
        with pytest.raises(InvalidTypeError, match=r"imapce\.anndata\.embed\(adata\) or Exploration\.from_anndata"):
            refused(anndata.AnnData(X))
