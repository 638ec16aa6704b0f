"""Generalised contrastive PCA: the axes of the largest variance ratio."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from helpers import angle_between, grouped, standardised
from imapce import Attributes, Samples
from imapce.baselines import GCPCA, PCA

X = grouped().X
RNG = np.random.default_rng(5)
BACKGROUND = np.column_stack([10 * RNG.normal(size=(120, 1)) * [1.0, -0.4], RNG.normal(size=(120, 6))])
BACKGROUND[:, 1] += RNG.normal(size=120)


def fixture() -> tuple[np.ndarray, np.ndarray]:
    j = np.arange(3)
    A = np.sin((1 + j) * (1 + 2.3 * np.arange(20)[:, None]))
    B = np.cos((1 + j) * (0.7 + 1.9 * np.arange(15)[:, None]))
    B[:, 0] *= 0.3
    return A, B


def test_values_and_axes_of_a_small_case_worked_out_elsewhere() -> None:
    A, B = fixture()
    model = GCPCA(3, shrinkage=0, standardize=False).fit(A, prior=Samples(B))
    assert model.values_ == pytest.approx([0.832648, 0.075735, -0.021834], abs=1e-6)
    assert model.components_[0] == pytest.approx([0.999404, -0.032515, 0.011559], abs=1e-6)
    assert np.allclose(np.linalg.norm(model.components_, axis=1), 1.0)


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_versions_have_the_same_axes_and_their_own_values(version: str) -> None:
    v4 = GCPCA(shrinkage=0).fit(X, prior=Samples(BACKGROUND))
    other = GCPCA(version=version, shrinkage=0).fit(X, prior=Samples(BACKGROUND))
    assert np.array_equal(v4.components_, other.components_)
    ratio = other.values_ + (version == "v3")
    assert np.allclose((ratio - 1) / (ratio + 1), v4.values_)


def test_axes_are_the_generalised_eigenvectors_of_the_shrunk_background() -> None:
    model = GCPCA(3, version="v2").fit(X, prior=Samples(BACKGROUND))
    a = np.cov(standardised(X).T)
    b = np.cov(standardised(BACKGROUND).T)
    b += 0.1 * np.trace(b) / 8 * np.eye(8)
    values, vectors = eigh(a, b)
    assert np.allclose(model.values_, values[::-1][:3])
    assert angle_between(model.components_, vectors[:, ::-1][:, :3].T) < 1e-7


@pytest.mark.parametrize("scaled", ["data", "background"])
def test_rescaling_a_whole_table_changes_no_axis(scaled: str) -> None:
    first = GCPCA(standardize=False).fit(X, prior=Samples(BACKGROUND))
    A, B = (7 * X, BACKGROUND) if scaled == "data" else (X, 7 * BACKGROUND)
    assert angle_between(first.components_, GCPCA(standardize=False).fit(A, prior=Samples(B)).components_) < 1e-7


def test_where_the_background_is_flat_ties_are_ordered_by_the_variance_in_x() -> None:
    flat = BACKGROUND.copy()
    flat[:, 3:] = 1.0
    model = GCPCA(3, shrinkage=0, standardize=False).fit(X, prior=Samples(flat))
    assert np.allclose(model.values_, 1.0, atol=1e-9)
    centred = X - X.mean(axis=0)
    expected = np.linalg.eigh(centred[:, 3:].T @ centred[:, 3:])[1][:, ::-1][:, :3]
    assert np.allclose(np.abs(model.components_[:, 3:]), np.abs(expected.T), atol=1e-6)
    assert np.all(np.isinf(GCPCA(version="v2", shrinkage=0).fit(X, prior=Samples(flat)).values_))


def test_attributes_leave_nothing_but_the_other_columns_without_shrinkage() -> None:
    model = GCPCA(shrinkage=0).fit(X, prior=Attributes([0, 1]))
    assert np.allclose(model.components_[:, :2], 0.0, atol=1e-7)


@pytest.mark.parametrize("model", [GCPCA(version="v4.1"), GCPCA(orthogonal=True)])
def test_the_orthogonal_variant_starts_with_the_same_axis_and_is_orthonormal(model: GCPCA) -> None:
    model.set_params(n_components=3).fit(X, prior=Samples(BACKGROUND))
    plain = GCPCA(3).fit(X, prior=Samples(BACKGROUND))
    assert np.allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-10)
    assert np.allclose(model.components_[0], plain.components_[0], atol=1e-8)
    assert np.all(np.diff(model.values_) <= 0)
    # In the complement of the best and the worst axis nothing exceeds the best one of all.
    assert model.values_[1] <= plain.values_[0]


def test_all_axes_can_be_orthogonal() -> None:
    model = GCPCA(8, orthogonal=True).fit(X, prior=Samples(BACKGROUND))
    assert np.allclose(model.components_ @ model.components_.T, np.eye(8), atol=1e-8)


def test_without_a_prior_all_axes_tie_and_the_view_is_pca() -> None:
    assert np.allclose(GCPCA().fit_transform(X), PCA().fit_transform(X), atol=1e-8)
