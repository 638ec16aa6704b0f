"""LEACE: what is linearly known is gone, and nothing else has moved more than it must."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import null_space, subspace_angles
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from helpers import grouped, standardised
from imapce import Attributes, Subset
from imapce.baselines import LEACE, PCA
from imapce.errors import InvalidValueError

DATA = grouped()
X = DATA.X


def projection(model: LEACE) -> np.ndarray:
    L, R = model.erasure_
    return np.eye(len(L)) - L @ R


def cross_covariance(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    one_hot = np.equal.outer(labels, np.unique(labels)).astype(float)
    return rows.T @ (one_hot - one_hot.mean(axis=0)) / (len(rows) - 1)


def test_projection_of_a_small_case_worked_out_elsewhere() -> None:
    i = np.arange(20)
    small = np.sin((1 + np.arange(3)) * (1 + 2.3 * i[:, None]))
    model = LEACE(shrinkage=False, standardize=False).fit(small, prior=i % 2)
    expected = [
        [0.021493, -0.128196, -0.036265],
        [-0.143242, 0.981234, -0.005309],
        [-0.073562, -0.009637, 0.997274],
    ]
    assert np.allclose(projection(model), expected, atol=1e-6)
    assert np.trace(projection(model)) == pytest.approx(2.0)
    # The case has singular values in units of the one-hot label, whose deviation is that of two equal classes.
    assert model.canonical_correlations_ == pytest.approx([0.069879 / np.sqrt(2 * 0.25 * 20 / 19), 0.0], abs=1e-6)


@pytest.mark.parametrize("shrinkage", [False, True, "auto"])
@pytest.mark.parametrize("labels", [DATA.batch, DATA.kind, DATA.batch + 2 * DATA.kind])
def test_no_covariance_with_the_label_is_left_and_the_projection_has_its_rank(shrinkage, labels) -> None:
    model = LEACE(shrinkage=shrinkage).fit(X, prior=labels)
    P = projection(model)
    assert np.abs(cross_covariance(model.erase(X), labels)).max() < 1e-12
    assert np.abs(cross_covariance(model.transform(X), labels)).max() < 1e-12
    assert np.allclose(P @ P, P, atol=1e-9)
    assert np.trace(P) == pytest.approx(8 - (len(np.unique(labels)) - 1))


def test_a_linear_classifier_is_at_chance_after_erasure_and_not_before() -> None:
    before = cross_val_score(LogisticRegression(), PCA().fit_transform(X), DATA.batch, cv=5).mean()
    after = cross_val_score(LogisticRegression(), LEACE().fit(X, prior=DATA.batch).erase(X), DATA.batch, cv=5).mean()
    assert before > 0.99
    assert after < 0.55


def test_the_view_is_the_pca_of_the_erased_rows_and_shows_what_was_hidden() -> None:
    model = LEACE().fit(X, prior=DATA.batch)
    erased = model.erase(X)
    scores = erased @ np.linalg.svd(erased, full_matrices=False)[2][:2].T
    assert np.allclose(np.abs(model.transform(X)), np.abs(scores), atol=1e-9)
    assert np.allclose(np.cov(model.transform(X).T)[0, 1], 0.0, atol=1e-10)
    new = grouped(seed=7).X
    assert np.allclose(model.transform(new)[:5], model.transform(new[:5]))


def test_admissible_directions_are_the_null_space_of_the_cross_covariance() -> None:
    model = LEACE(shrinkage=False).fit(X, prior=DATA.kind)
    allowed = null_space(cross_covariance(standardised(X), DATA.kind).T, rcond=1e-10)
    row_space = np.linalg.svd(projection(model))[2][: allowed.shape[1]].T
    assert subspace_angles(allowed, row_space).max() < 1e-8
    assert np.allclose(model.components_ @ cross_covariance(standardised(X), DATA.kind), 0.0, atol=1e-12)


def test_erased_rows_move_least_among_projections_onto_the_same_null_space() -> None:
    model = LEACE(shrinkage=False).fit(X, prior=DATA.batch)
    Z = standardised(X)
    moved = np.sum((Z - model.erase(X)) ** 2)
    covariance = cross_covariance(Z, DATA.batch)[:, :1]
    orthogonal = Z @ covariance @ covariance.T / np.sum(covariance**2)
    assert moved < np.sum(orthogonal**2)


def test_attributes_are_erased_as_columns_and_vanish_themselves() -> None:
    model = LEACE().fit(X, prior=Attributes([0, 4]))
    erased = model.erase(X)
    assert np.abs(erased[:, [0, 4]]).max() < 1e-10
    assert np.abs(erased.T @ standardised(X)[:, [0, 4]]).max() / len(X) < 1e-12
    assert model.canonical_correlations_ == pytest.approx([1.0, 1.0])


def test_a_category_column_and_its_labels_erase_the_same() -> None:
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(8)])
    frame["kind"] = pd.Series(np.array(["a", "b", "c"])[DATA.kind], dtype="category")
    by_column = LEACE(shrinkage=False).fit_transform(frame, prior=Attributes(["kind"]))
    by_label = LEACE(shrinkage=False).fit_transform(frame, prior=DATA.kind)
    assert np.allclose(by_column, by_label, atol=1e-8)


def test_a_subset_and_attributes_are_erased_together() -> None:
    mask = DATA.kind == 1
    model = LEACE().fit(X, prior=[Attributes([0]), Subset(mask)])
    erased = model.erase(X)
    assert np.abs(cross_covariance(erased, mask)).max() < 1e-12
    assert np.abs(erased.T @ standardised(X)[:, 0]).max() / len(X) < 1e-12
    assert np.allclose(
        LEACE().fit_transform(X, prior=Subset(mask)), LEACE().fit_transform(X, prior=np.where(mask, "yes", "no"))
    )


def test_a_correlation_below_tol_is_left_in() -> None:
    weak = LEACE().fit(X, prior=DATA.batch).canonical_correlations_[0]
    untouched = LEACE(tol=min(1.0, weak + 1e-9)).fit(X, prior=DATA.batch)
    assert np.allclose(untouched.transform(X), PCA().fit_transform(X), atol=1e-9)


def test_shrinkage_stays_a_covariance_with_few_rows() -> None:
    few = np.random.default_rng(0).normal(size=(20, 3))
    labels = np.arange(20) % 2
    model = LEACE(shrinkage=True).fit(few, prior=labels)
    assert np.abs(cross_covariance(model.erase(few), labels)).max() < 1e-12


def test_without_a_prior_the_view_is_pca() -> None:
    assert np.allclose(LEACE().fit_transform(X), PCA().fit_transform(X), atol=1e-9)


def test_labels_that_leave_too_little_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="prior leaves fewer than n_components=2"):
        LEACE(shrinkage=False).fit(X[:, :3], prior=Attributes([0, 1]))
    with pytest.raises(InvalidValueError, match="prior"):
        LEACE().fit(X, prior=DATA.batch[:10])
