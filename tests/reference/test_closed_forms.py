"""Where the answer is known in closed form: PCA, contrastive PCA for each kind of prior, and exact kurtosis."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from helpers import angle_between, grouped, literal_objective, only_columns, standardised
from imapce import IMAPCE, Attributes, Samples, Subset

DATA = grouped(seed=3)
X = DATA.X
Z = standardised(X)


def leading(M: np.ndarray, k: int) -> np.ndarray:
    values, vectors = np.linalg.eigh(M)
    return vectors[:, np.argsort(values)[::-1][:k]].T


@pytest.mark.parametrize("k", [1, 2, 3])
def test_without_kurtosis_and_prior_it_is_pca_of_standardised_data(k: int) -> None:
    model = IMAPCE(k, mu=0, alpha=0).fit(X)
    pca = PCA(k).fit(StandardScaler().fit_transform(X))
    assert angle_between(model.components_, pca.components_) < 1e-7
    assert np.allclose(np.abs(np.sum(model.components_ * pca.components_, axis=1)), 1.0)
    assert np.allclose(np.abs(model.transform(X)), np.abs(pca.transform(StandardScaler().fit_transform(X))), atol=1e-9)
    assert np.allclose(model.explained_variance_ratio_, pca.explained_variance_ratio_)


def test_with_centring_only_it_is_plain_pca() -> None:
    model = IMAPCE(2, mu=0, alpha=0, standardize=False).fit(X)
    assert angle_between(model.components_, PCA(2).fit(X).components_) < 1e-7


@pytest.mark.parametrize("alpha", [0.5, 1.0, 5.0])
@pytest.mark.parametrize("k", [1, 2])
def test_without_kurtosis_an_attribute_prior_is_contrastive_pca(alpha: float, k: int) -> None:
    Y = only_columns(Z, [0, 1])
    model = IMAPCE(k, mu=0, alpha=alpha).fit(X, prior=Attributes([0, 1]))
    assert angle_between(model.components_, leading(Z.T @ Z - alpha * Y.T @ Y, k)) < 1e-7
    V = model.components_.T
    assert model.objective_ == pytest.approx(literal_objective(Z, Y, Z, V, alpha, 0.0), rel=1e-10)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 5.0])
def test_without_kurtosis_a_sample_prior_is_contrastive_pca(alpha: float) -> None:
    background = grouped(150, seed=8).X * np.array([3.0, 3, 1, 1, 1, 1, 1, 1]) + 2.0
    Y = standardised(background)
    model = IMAPCE(2, mu=0, alpha=alpha).fit(X, prior=Samples(background))
    assert angle_between(model.components_, leading(Z.T @ Z - alpha * Y.T @ Y, 2)) < 1e-7


@pytest.mark.parametrize("alpha", [0.5, 1.0, 5.0])
def test_without_kurtosis_a_subset_prior_is_contrastive_pca(alpha: float) -> None:
    known = DATA.kind == 1
    Y = standardised(X[known])
    model = IMAPCE(2, mu=0, alpha=alpha).fit(X, prior=Subset(known))
    assert angle_between(model.components_, leading(Z.T @ Z - alpha * Y.T @ Y, 2)) < 1e-7


def test_without_kurtosis_several_weighted_priors_add_up() -> None:
    known = DATA.kind == 1
    background = grouped(150, seed=8).X
    prior = [Attributes([0], weight=0.5), Subset(known, weight=2.0), Samples(background)]
    M = Z.T @ Z - 0.7 * (
        0.5 * only_columns(Z, [0]).T @ only_columns(Z, [0])
        + 2.0 * standardised(X[known]).T @ standardised(X[known])
        + standardised(background).T @ standardised(background)
    )
    assert angle_between(IMAPCE(2, mu=0, alpha=0.7).fit(X, prior=prior).components_, leading(M, 2)) < 1e-7


def test_alpha_zero_forgets_the_attributes_but_not_which_rows_are_known() -> None:
    plain = IMAPCE(mu=20, alpha=0, random_state=0).fit(X)
    attributes = IMAPCE(mu=20, alpha=0, random_state=0).fit(X, prior=Attributes([0]))
    assert angle_between(plain.components_, attributes.components_) < 1e-7
    known = DATA.kind == 1
    subset = IMAPCE(mu=20, alpha=0, random_state=0).fit(X, prior=Subset(known))
    V = subset.components_.T
    assert subset.objective_ == pytest.approx(literal_objective(Z, None, standardised(X[~known]), V, 0, 20), rel=1e-9)


def test_one_axis_of_two_equal_clusters_has_kurtosis_one_and_is_found() -> None:
    """Two equal point clusters along one axis and Gaussian noise elsewhere: κ = 1 there, 3 elsewhere."""
    rng = np.random.default_rng(0)
    n = 2000
    data = np.column_stack([rng.normal(size=(n, 5)), np.repeat([-1.0, 1.0], n // 2)])
    model = IMAPCE(1, mu=1e6, random_state=0).fit(data)
    assert model.kurtosis_ == pytest.approx(1.0, abs=1e-6)
    assert angle_between(model.components_, np.eye(6)[5:]) < 1e-4


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_kurtosis_of_a_two_point_split_follows_its_formula(share: float) -> None:
    """κ of shares p and 1−p is 1/(p(1−p)) − 3, the source of the 21.1 % rule."""
    n = 1000
    column = (np.arange(n) < share * n).astype(float)
    model = IMAPCE(1, mu=1.0, n_starts=1).fit(column[:, None])
    assert model.kurtosis_ == pytest.approx(1 / (share * (1 - share)) - 3, rel=1e-10)
