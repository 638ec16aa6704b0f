"""How well clusters are seen, what a view keeps of the neighbourhoods, and the view that is shown by default."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from helpers import angle_between, planted
from imapce import IMAPCE, Attributes, metrics
from imapce.choice.scores import Neighborhoods, ViewScore, best_view, neighbors_agree


def nuisance(kind: str, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    if kind == "bimodal":
        return {"bimodal": rng.standard_normal(n) + 8 * (rng.random(n) < 0.5)}
    if kind == "id":
        return {"id": np.arange(n)}
    if kind == "two categories":
        return {f"c{i}": rng.integers(0, 10, n).astype(str) for i in range(2)}
    return {f"b{i}": rng.random(n) < 0.5 for i in range(int(kind))}


@pytest.mark.parametrize("kind", ["0", "1", "2", "5", "two categories", "id", "bimodal"])
@pytest.mark.parametrize("seed", [0, 1])
def test_columns_that_share_nothing_do_not_take_the_view_over(kind: str, seed: int) -> None:
    X, truth, rng = planted(seed=seed)
    table = pa.table({f"x{i}": column for i, column in enumerate(X.T)} | nuisance(kind, len(X), rng))
    assert metrics.knn_accuracy(IMAPCE(random_state=0).fit_transform(table), truth) >= 0.95


def test_kept_is_one_for_the_map_itself_and_nothing_for_rows_in_another_order() -> None:
    points = np.random.default_rng(0).standard_normal((3000, 3))
    here = Neighborhoods(points)
    assert len(here.base) == 1000
    assert here.preservation(points[here.base]).tolist() == [1.0] * 500
    assert abs(here.preservation(points[here.base][::-1]).mean()) < 0.02


@pytest.mark.parametrize("n", [4, 5, 16, 31])
def test_few_rows_and_rows_at_one_place_are_no_obstacle(n: int) -> None:
    points = np.random.default_rng(0).standard_normal((n, 2)).round(0)
    assert np.isfinite(Neighborhoods(points).preservation(points)).all()
    assert np.isfinite(IMAPCE(random_state=0).fit(np.random.default_rng(1).normal(size=(n, 3))).components_).all()


def test_sparse_and_dense_rows_give_the_same_view() -> None:
    X, _, rng = planted(400)
    X = np.column_stack([X, rng.integers(0, 3, (400, 2))])
    dense = IMAPCE(random_state=0).fit(X)
    other = IMAPCE(random_state=0).fit(sparse.csr_array(X))
    assert angle_between(dense.components_, other.components_) < 1e-7


@pytest.mark.parametrize("seed", [0, 1])
def test_planted_clusters_of_a_wide_table_are_shown(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 200)
    X = rng.standard_normal((200, 2000))
    X[:, :80] += 1.5 * rng.standard_normal((3, 80))[truth]
    assert metrics.knn_accuracy(IMAPCE(random_state=0).fit_transform(X), truth) >= 0.95


def test_what_is_to_be_erased_stays_erased() -> None:
    X, _, _ = planted()
    X[:, 9] += X[:, 0]
    model = IMAPCE(random_state=0).fit(X, prior=Attributes([0], erase=True))
    assert np.abs(np.corrcoef(np.column_stack([model.transform(X), X[:, 0]]).T)[:2, 2]).max() < 1e-6
    assert model.read_back_ is not None


def test_neighbours_tell_clusters_that_lie_apart_and_not_those_that_lie_on_one_another() -> None:
    rng = np.random.default_rng(0)
    groups = np.arange(400) % 4
    apart = rng.standard_normal((400, 2)) + 20 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[groups]
    assert neighbors_agree(apart, groups).mean() == 1.0
    assert neighbors_agree(rng.standard_normal((400, 2)), groups).mean() < 0.4


def test_a_cluster_of_five_rows_can_be_told_by_its_own() -> None:
    rng = np.random.default_rng(0)
    groups = np.r_[np.zeros(300, dtype=int), np.ones(5, dtype=int)]
    view = rng.standard_normal((305, 2)) + 30 * groups[:, None]
    assert neighbors_agree(view, groups)[300:].tolist() == [1.0] * 5


def test_of_views_that_show_clusters_as_well_the_one_that_keeps_more_is_shown() -> None:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((300, 3))
    here = Neighborhoods(points)
    flat, full = points[:, :1], points
    right = (rng.random(300) < 0.8).astype(float)
    again = right.copy()
    again[[np.argmax(right), np.argmin(right)]] = [0.0, 1.0]
    assert best_view([ViewScore(flat, right, here), ViewScore(full, again, here)]) == 1
    worse = right.copy()
    worse[np.flatnonzero(right)[:40]] = 0.0
    assert best_view([ViewScore(flat, right, here), ViewScore(full, worse, here)]) == 0


def test_what_nobody_asked_about_neighbourhoods_is_not_computed() -> None:
    here = Neighborhoods(np.random.default_rng(0).standard_normal((100, 2)))
    one = ViewScore(np.zeros((100, 2)), np.ones(100), here)
    assert best_view([one]) == 0
    assert np.isnan(one.computed_preservation)


def test_the_view_is_an_optimum_at_its_mu_and_leads_all_others_by_what_is_seen() -> None:
    X, truth, _ = planted()
    model = IMAPCE().fit(X)
    assert model.optima_[0].seen > 0.95
    assert all(one.converged and one.starts > 0 for one in model.optima_)
    others = [one.seen for one in model.optima_[1:]]
    assert others == sorted(others, reverse=True)
    factors = np.array(sorted({one.mu for one in model.path_ if one.mu >= 0}))
    assert factors[0] == 0.0
    assert factors[2:] / factors[1] == pytest.approx([10.0, 100.0, 1000.0])
    assert "separates 3 clusters best" in model.stop_reason_
    assert metrics.knn_accuracy(model.transform(X), truth) >= 0.97


def test_a_minority_is_looked_for_with_a_high_kurtosis_too() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 6))
    few = np.arange(600) < 60
    X[few, :2] += 7
    model = IMAPCE().fit(X)
    assert min(one.mu for one in model.path_) < 0
    assert metrics.knn_accuracy(model.transform(X), few) >= 0.97
    halves = rng.standard_normal((600, 6)) + 7 * (np.arange(600) % 2)[:, None] * [1, 1, 0, 0, 0, 0]
    assert min(one.mu for one in IMAPCE().fit(halves).path_) == 0.0


def test_where_there_is_one_cluster_neighbourhoods_decide_and_it_is_said() -> None:
    model = IMAPCE().fit(np.random.default_rng(0).standard_normal((400, 5)))
    assert np.isnan(model.optima_[0].seen)
    assert model.optima_[0].kept == max(one.kept for one in model.path_) or model.optima_[0].kept > 0
    assert "preserves neighborhoods best" in model.stop_reason_


def test_pca_s_plane_is_the_optimum_at_mu_zero() -> None:
    X = load_iris().data
    model = IMAPCE().fit(X)
    flat = next(one for one in model.path_ if one.mu == 0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    axes = np.linalg.svd(Z, full_matrices=False)[2][:2]
    assert angle_between(flat.components, axes) < 1e-7


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_no_seed_and_no_order_of_the_rows_changes_the_view(seed: int) -> None:
    X, _, _ = planted()
    first = IMAPCE(random_state=0).fit(X)
    other = IMAPCE(random_state=seed).fit(X[np.random.default_rng(seed).permutation(len(X))])
    assert angle_between(first.components_, other.components_) < 1e-6
    assert other.mu_ == pytest.approx(first.mu_, rel=1e-9)
