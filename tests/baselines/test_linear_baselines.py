"""What all linear baselines promise alike: scikit-learn's manners, tables in, rows never changed, clear refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from helpers import grouped
from imapce import Attributes, Samples, Subset
from imapce.baselines import CPCA, GCPCA, LEACE, PCA, KurtosisPursuit
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.base import LinearView

DATA = grouped()
X = DATA.X
ALL = [CPCA, PCA, GCPCA, LEACE, KurtosisPursuit]
KNOWN = Attributes([0, 1])


@parametrize_with_checks([CPCA(), PCA(), GCPCA(), LEACE(), KurtosisPursuit(n_starts=3)])
def test_scikit_learn_s_own_checks(estimator: LinearView, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("kind", ALL)
def test_a_row_s_place_depends_on_no_other_row_and_input_is_left_alone(kind: type) -> None:
    before = X.copy()
    model = kind(random_state=0)
    view = model.fit_transform(X, prior=KNOWN)
    assert np.array_equal(X, before)
    assert np.allclose(model.transform(X[17:18])[0], view[17], rtol=0, atol=1e-12)
    assert np.all(np.take_along_axis(model.components_, np.abs(model.components_).argmax(1)[:, None], 1) > 0)
    again = kind(random_state=0).fit_transform(X, prior=KNOWN)
    assert np.array_equal(view, again)


@pytest.mark.parametrize("kind", ALL)
def test_row_order_changes_nothing(kind: type) -> None:
    order = np.random.default_rng(1).permutation(len(X))
    view = kind(random_state=0).fit_transform(X, prior=KNOWN)
    assert np.allclose(kind(random_state=0).fit_transform(X[order], prior=KNOWN), view[order], atol=1e-5)


@pytest.mark.parametrize("kind", ALL)
def test_tables_sparse_matrices_and_constant_columns_give_the_view_of_the_array(kind: type) -> None:
    view = kind(random_state=0).fit_transform(X, prior=KNOWN)
    names = [f"c{i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    for table in (frame, pl.DataFrame(frame.to_dict("list"))):
        assert np.allclose(kind(random_state=0).fit_transform(table, prior=Attributes(["c0", "c1"])), view, atol=1e-5)
    assert np.allclose(kind(random_state=0).fit_transform(sparse.csr_array(X), prior=KNOWN), view, atol=1e-5)
    wider = np.column_stack([X, np.full(len(X), 3.0)])
    assert np.allclose(kind(random_state=0).fit_transform(wider, prior=KNOWN), view, atol=1e-5)
    named = kind(random_state=0).set_output(transform="pandas").fit_transform(frame, prior=Attributes(["c0", "c1"]))
    assert list(named.columns) == [f"{kind.__name__.lower()}{i}" for i in range(2)]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("n_components", [1, 3])
def test_any_number_of_axes(kind: type, n_components: int) -> None:
    model = kind(n_components, random_state=0).fit(X, prior=KNOWN)
    assert model.components_.shape == (n_components, 8)
    assert model.transform(X).shape == (300, n_components)


@pytest.mark.parametrize("kind", ALL)
def test_columns_that_repeat_each_other_give_finite_views(kind: type) -> None:
    view = kind(random_state=0).fit_transform(np.column_stack([X, X[:, 2:]]), prior=KNOWN)
    assert np.isfinite(view).all()
    assert view.std(axis=0).min() > 1e-3


@pytest.mark.parametrize("kind", ALL)
def test_a_refused_fit_leaves_the_estimator_as_it_was(kind: type) -> None:
    model = kind(random_state=0).fit(X)
    before = model.transform(X)
    with pytest.raises(InvalidValueError):
        model.fit(X, prior=Attributes([99]))
    assert np.array_equal(model.transform(X), before)


@pytest.mark.parametrize("kind", [LEACE, KurtosisPursuit])
def test_a_background_is_refused_where_it_says_nothing(kind: type) -> None:
    with pytest.raises(InvalidTypeError, match=r"Samples\(background\)"):
        kind().fit(X, prior=Samples(X[:50]))


@pytest.mark.parametrize("kind", ALL)
def test_a_subset_is_taken_as_mask_or_positions(kind: type) -> None:
    mask = DATA.kind == 0
    by_mask = kind(random_state=0).fit_transform(X, prior=Subset(mask))
    assert np.allclose(by_mask, kind(random_state=0).fit_transform(X, prior=Subset(np.flatnonzero(mask))))


@pytest.mark.parametrize(
    ("model", "argument"),
    [
        (CPCA(alpha="best"), "alpha"),
        (CPCA(alpha=-1.0), "alpha"),
        (CPCA(n_alphas=2, n_alphas_to_return=3), "n_alphas_to_return"),
        (CPCA(max_log_alpha=-2), "max_log_alpha"),
        (CPCA(verbose="loud"), "verbose"),
        (GCPCA(version="v1"), "version"),
        (GCPCA(orthogonal="yes"), "orthogonal"),
        (GCPCA(shrinkage=-0.1), "shrinkage"),
        (LEACE(shrinkage="some"), "shrinkage"),
        (LEACE(tol=-1.0), "tol"),
        (KurtosisPursuit(n_starts=0), "n_starts"),
        (PCA(n_components=9), "n_components"),
    ],
)
def test_parameters_that_cannot_be_used_are_named(model: LinearView, argument: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=f"^{argument} must"):
        model.fit(X, prior=KNOWN)
