"""Contrastive PCA: eigenvectors of C_X − αC_Y, the choice of α, and PCA as the view with nothing to contrast."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.decomposition import PCA as SklearnPCA

from helpers import angle_between, grouped, only_columns, standardised
from imapce import Attributes, Samples, Subset
from imapce.baselines import CPCA, PCA
from imapce.baselines.cpca import affinity
from imapce.rows.dense import DenseRows
from imapce.rows.open import open_rows
from imapce.rows.standardized import QuadraticForm

DATA = grouped()
X = DATA.X
RNG = np.random.default_rng(3)
BACKGROUND = np.column_stack([10 * RNG.normal(size=(120, 1)) * [1.0, -0.4], RNG.normal(size=(120, 6))])


def covariance(Y: np.ndarray) -> np.ndarray:
    return Y.T @ Y / (len(Y) - 1)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 3.0, 200.0])
@pytest.mark.parametrize("kind", ["attributes", "samples", "subset"])
def test_components_are_the_leading_eigenvectors_of_the_contrast(alpha: float, kind: str) -> None:
    rows = np.arange(100)
    prior, Y = {
        "attributes": (Attributes([0, 1]), only_columns(standardised(X), [0, 1])),
        "samples": (Samples(BACKGROUND), standardised(BACKGROUND)),
        "subset": (Subset(rows), standardised(X[rows])),
    }[kind]
    model = CPCA(3, alpha=alpha).fit(X, prior=prior)
    M = covariance(standardised(X)) - alpha * covariance(Y)
    V = model.components_.T
    assert np.allclose(M @ V, V * model.eigenvalues_, atol=1e-10 * np.linalg.norm(M, 2))
    assert np.allclose(V.T @ V, np.eye(3), atol=1e-12)
    assert np.allclose(model.eigenvalues_, np.linalg.eigvalsh(M)[::-1][:3], atol=1e-10 * np.linalg.norm(M, 2))
    assert model.alpha_ == alpha


def test_weights_of_several_priors_add_up() -> None:
    model = CPCA(alpha=2.0).fit(X, prior=[Attributes([0], weight=3.0), Samples(BACKGROUND)])
    Z = standardised(X)
    M = covariance(Z) - 2 * (3 * covariance(only_columns(Z, [0])) + covariance(standardised(BACKGROUND)))
    assert np.allclose(model.eigenvalues_, np.linalg.eigvalsh(M)[::-1][:2])


@pytest.mark.parametrize("model", [PCA(), CPCA(), CPCA(alpha=7.0), CPCA(alpha="paper")])
def test_without_a_prior_every_contrast_is_pca(model: CPCA) -> None:
    expected = SklearnPCA(2).fit_transform(standardised(X))
    view = model.fit_transform(X)
    assert np.allclose(np.abs(view), np.abs(expected), atol=1e-9)
    assert model.alpha_ == 0.0


@pytest.mark.parametrize("model", [PCA(), CPCA(alpha=0), CPCA(alpha="paper")])
def test_alpha_zero_is_pca_whatever_is_known(model: CPCA) -> None:
    assert np.allclose(model.fit_transform(X, prior=Samples(BACKGROUND)), PCA().fit_transform(X))
    assert model.alpha_ == 0.0


def test_a_background_that_does_not_vary_gives_pca_for_every_alpha_and_says_so_once() -> None:
    with pytest.warns(UserWarning, match="constant in 8 column") as caught:
        model = CPCA(random_state=0).fit(X, prior=Samples(np.zeros((5, 8))))
    assert len(caught) == 1
    pca = PCA().fit(X).components_
    assert np.allclose(model.path_.components, pca, atol=1e-10)
    assert np.allclose(model.path_.affinity, 1.0)


def test_twice_the_background_rows_change_its_covariance_by_their_count_alone() -> None:
    m = len(BACKGROUND)
    once = CPCA(alpha=2.0).fit(X, prior=Samples(BACKGROUND))
    factor = 2 * (m - 1) / (2 * m - 1)
    twice = CPCA(alpha=2.0 / factor).fit(X, prior=Samples(np.repeat(BACKGROUND, 2, axis=0)))
    assert np.allclose(once.components_, twice.components_, atol=1e-9)


def test_a_column_constant_in_x_never_leads_however_large_alpha() -> None:
    wider = np.column_stack([X, np.full(len(X), 2.0)])
    model = CPCA(alpha=50.0).fit(wider, prior=Samples(wider[:100] + RNG.normal(size=(100, 9))))
    assert np.all(model.eigenvalues_ < 0)
    assert np.all(model.components_[:, 8] == 0)
    assert model.transform(wider).std(axis=0).min() > 1e-3


def test_the_path_holds_every_weight_and_the_affinity_of_the_embeddings() -> None:
    model = CPCA(random_state=0).fit(X, prior=Samples(BACKGROUND))
    path = model.path_
    assert path.alphas[0] == 0.0
    assert np.allclose(path.alphas[1:], np.logspace(-1, 3, 40))
    Z = standardised(X)
    Q = [np.linalg.qr(Z @ components.T)[0] for components in path.components]
    expected = [[np.prod(np.linalg.svd(a.T @ b, compute_uv=False)) for b in Q] for a in Q]
    assert np.allclose(path.affinity, expected, atol=1e-9)
    assert model.alphas_.tolist() == [model.alpha_]
    assert model.alpha_ > 0
    place = path.alphas.tolist().index(model.alpha_)
    assert np.array_equal(path.components[place], model.components_)
    fixed = CPCA(alpha=model.alpha_).fit(X, prior=Samples(BACKGROUND))
    assert np.allclose(fixed.components_, model.components_)


def test_the_chosen_view_shows_the_quiet_groups_that_pca_misses() -> None:
    # Columns 2 and 3 hold the quiet grouping; the background has all the rest.
    background = X.copy()
    background[:, 2:4] = 0.1 * RNG.normal(size=(len(X), 2))
    model = CPCA(standardize=False, random_state=0).fit(X, prior=Samples(background))
    pca = PCA(standardize=False).fit(X)
    assert np.sum(pca.components_[:, 2:4] ** 2) < 0.2
    assert np.sum(model.components_[:, 2:4] ** 2) > 1.9


@pytest.mark.parametrize("count", [1, 3, 6])
def test_as_many_weights_are_offered_as_asked_for_in_order(count: int) -> None:
    model = CPCA(n_alphas=6, n_alphas_to_return=count, random_state=0).fit(X, prior=Samples(BACKGROUND))
    assert len(model.alphas_) == count
    assert np.all(np.diff(model.alphas_) > 0)
    assert set(model.alphas_) <= set(model.path_.alphas[1:])
    assert model.alpha_ == model.alphas_[0]


def test_affinity_multiplies_all_cosines_and_a_flat_view_is_like_no_other() -> None:
    C = QuadraticForm.of_matrix(np.diag([1.0, 1.0, 1.0, 1.0, 0.0]))
    eye = np.eye(5)
    turned = eye[:, :3].copy()
    turned[:, 2] = (eye[:, 2] + eye[:, 3]) / np.sqrt(2)
    result = affinity(np.stack([eye[:, :3], turned, eye[:, [0, 1, 4]]]), C)
    assert np.allclose(result, [[1, np.sqrt(0.5), 0], [np.sqrt(0.5), 1, 0], [0, 0, 1]])


def test_views_equal_those_of_the_authors_package() -> None:
    contrastive = pytest.importorskip("contrastive")
    ours = CPCA(alpha=2.0).fit_transform(X, prior=Samples(BACKGROUND))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = contrastive.CPCA().fit_transform(X, BACKGROUND, alpha_selection="manual", alpha_value=2.0)
    assert subspace_angles(ours, np.asarray(peer).real).max() < 1e-6


def test_second_moments_that_are_not_formed_give_the_same_view(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = np.column_stack([X, np.full(len(X), 1.0), RNG.normal(size=(300, 3))])
    prior = Attributes([0, 1])
    formed = CPCA(alpha=2.0).fit(wide, prior=prior)
    monkeypatch.setattr("imapce.rows.dense.scatter_is_affordable", lambda *_: False)
    monkeypatch.setattr("imapce.estimators.base.open_rows", lambda matrix, **_: DenseRows(np.asarray(matrix)))
    streamed = CPCA(alpha=2.0).fit(wide, prior=prior)
    assert angle_between(formed.components_, streamed.components_) < 1e-7
    assert open_rows(X, engine="dense").moments().scatter is None


def test_verbose_tells_the_weight(capsys: pytest.CaptureFixture[str]) -> None:
    CPCA(alpha=2.5, verbose=True).fit(X, prior=Attributes([0]))
    assert "alpha 2.5" in capsys.readouterr().out
