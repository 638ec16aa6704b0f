"""Projection pursuit by kurtosis: stationary, monotone, affine invariant, and as low as IMAPCE gets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from helpers import grouped, literal_kurtosis, random_stack, standardised
from imapce import IMAPCE, Attributes, Subset, datasets
from imapce.baselines import KurtosisPursuit
from imapce.baselines.kurtosis_pursuit import WhitenedRows, pursue
from imapce.errors import InvalidValueError
from imapce.rows.open import open_rows
from imapce.rows.standardized import StandardizedRows

DATA = grouped()
X = DATA.X


def planted(n_clusters: int, n_features: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Clusters on a circle in two columns of small variance, noise of large variance elsewhere, all mixed."""
    rng = np.random.default_rng(seed)
    labels = np.arange(400) % n_clusters
    angle = 2 * np.pi * np.arange(n_clusters) / n_clusters
    rows = 3 * rng.normal(size=(400, n_features))
    rows[:, :2] = np.column_stack([np.cos(angle), np.sin(angle)])[labels] + 0.1 * rng.normal(size=(400, 2))
    return rows @ rng.normal(size=(n_features, n_features)), labels


def whitened(rows: np.ndarray) -> WhitenedRows:
    Z = StandardizedRows(open_rows(rows))
    values, vectors = np.linalg.eigh(Z.second_moment.matrix / len(rows))
    return WhitenedRows(Z, vectors / np.sqrt(values))


@pytest.mark.parametrize("n_clusters", [3, 4])
def test_planted_clusters_are_found_where_variance_is_smallest(n_clusters: int) -> None:
    rows, labels = planted(n_clusters)
    view = KurtosisPursuit(random_state=0).fit_transform(rows)
    found = KMeans(n_clusters, n_init=5, random_state=0).fit_predict(view / view.std(axis=0))
    assert adjusted_rand_score(labels, found) > 0.98


def test_two_clusters_are_found_on_one_axis() -> None:
    rows, labels = planted(2)
    view = KurtosisPursuit(1, random_state=0).fit_transform(rows)
    assert adjusted_rand_score(labels, view[:, 0] > 0) > 0.98


def test_kurtosis_is_that_of_the_view_and_axes_are_canonical() -> None:
    model = KurtosisPursuit(random_state=0).fit(X)
    assert model.kurtosis_ == pytest.approx(literal_kurtosis(standardised(X), model.components_.T), rel=1e-10)
    assert model.kurtosis_ == model.kurtoses_.min()
    assert len(model.kurtoses_) == 10
    assert np.allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-12)
    assert abs(np.cov(model.transform(X).T)[0, 1]) < 1e-10


def test_every_start_ends_where_the_gradient_has_no_tangent_part_and_never_rises() -> None:
    rows = whitened(X)
    starts = random_stack(6, 8, 2)
    levels = [pursue(rows, starts, tol=1e-9, max_iter=m).kurtosis for m in (1, 2, 4, 8, 16)]
    assert np.all(np.diff(np.stack(levels), axis=0) <= 1e-12)
    end = pursue(rows, starts, tol=1e-8, max_iter=2000)
    assert end.converged.all()
    B = rows.weighted_moments(end.V)
    gradient = 4 * B @ end.V
    assert np.abs(gradient - end.V @ (end.V.transpose(0, 2, 1) @ gradient)).max() < 1e-5
    # The gradient itself, by differences of κ along the tangent of a view that is not stationary.
    V, E = starts[:1], np.linalg.qr(np.random.default_rng(0).normal(size=(1, 8, 2)))[0]
    h = 1e-5

    def kurtosis(W: np.ndarray) -> float:
        return float(np.einsum("rdk,rde,rek->", W, rows.weighted_moments(W), W))

    slope = (kurtosis(V + h * E) - kurtosis(V - h * E)) / (2 * h)
    assert slope == pytest.approx(float(np.sum(4 * (rows.weighted_moments(V) @ V) * E)), rel=1e-6)


def test_kurtosis_is_no_higher_than_what_imapce_reaches_with_a_huge_weight() -> None:
    rows = datasets.make_synthetic().X
    ours = KurtosisPursuit(random_state=0).fit(rows)
    theirs = IMAPCE(mu=1e9, random_state=0).fit(rows)
    assert ours.kurtosis_ <= theirs.kurtosis_ * (1 + 1e-6)


def test_any_affine_map_of_the_columns_leaves_the_picture() -> None:
    rng = np.random.default_rng(2)
    rows, _ = planted(3)
    moved = rows @ rng.normal(size=(10, 10)) + 100 * rng.normal(size=10)
    first, second = KurtosisPursuit(random_state=0), KurtosisPursuit(random_state=0)
    view, other = first.fit_transform(rows), second.fit_transform(moved)
    assert second.kurtosis_ == pytest.approx(first.kurtosis_, rel=1e-9)
    assert subspace_angles(view, other).max() < 1e-4


def test_known_rows_are_left_out_of_the_kurtosis() -> None:
    known = DATA.kind == 0
    model = KurtosisPursuit(random_state=0).fit(X, prior=Subset(known))
    assert model.kurtosis_ == pytest.approx(KurtosisPursuit(random_state=0).fit(X[~known]).kurtosis_, rel=1e-9)
    rest = model.transform(X[~known])
    assert model.kurtosis_ == pytest.approx(literal_kurtosis(rest - rest.mean(axis=0), np.eye(2)), rel=1e-9)


def test_known_columns_are_left_out_of_the_search() -> None:
    model = KurtosisPursuit(random_state=0).fit(X, prior=Attributes([0, 1]))
    assert np.all(model.components_[:, :2] == 0)
    assert model.kurtosis_ == pytest.approx(KurtosisPursuit(random_state=0).fit(X[:, 2:]).kurtosis_, rel=1e-9)


def test_too_few_iterations_are_told() -> None:
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = KurtosisPursuit(max_iter=1, n_starts=2, random_state=0).fit(X)
    assert model.n_iter_ == 1


def test_what_leaves_nothing_to_explore_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"Subset\(rows\) leaves 0 of 300"):
        KurtosisPursuit().fit(X, prior=Subset(np.arange(300)))
    with pytest.raises(InvalidValueError, match=r"got 1\. Lower n_components or name less as known"):
        KurtosisPursuit().fit(X[:, :3], prior=Attributes([0, 1]))


def test_verbose_tells_the_progress() -> None:
    told: list[str] = []
    KurtosisPursuit(verbose=lambda words, share: told.append(words), random_state=0).fit(X)
    assert "starts running, least kurtosis" in told[0]
