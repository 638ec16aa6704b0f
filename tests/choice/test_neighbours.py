"""Neighbourhoods: which columns have a say, which plane keeps them, and the view that is shown by default."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from imapce.choice.neighbours import Neighbourhoods, nearest, neighbour_plane, reference_axes, shared_weights
from scipy import sparse
from sklearn.datasets import load_iris, load_wine

from helpers import angle_between
from imapce import IMAPCE, Attributes, Samples, load_model, metrics


def planted(n: int = 600, d: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Three clusters, at least five standard deviations apart in four of the columns."""
    rng = np.random.default_rng(seed)
    centres = np.zeros((3, d))
    centres[:, :4] = rng.standard_normal((3, 4))
    gaps = np.linalg.norm(centres[:, None] - centres[None], axis=2)[np.triu_indices(3, 1)]
    truth = rng.integers(0, 3, n)
    return rng.standard_normal((n, d)) + (5 * centres / gaps.min())[truth], truth, rng


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
    assert metrics.knn_accuracy(IMAPCE(random_state=0).fit_transform(table), truth) >= 0.97


def test_random_columns_have_no_say_and_shared_ones_do() -> None:
    X, _, rng = planted()
    beside = np.column_stack([rng.random(600) < 0.5, np.arange(600), rng.integers(0, 3, 600)])
    weights = shared_weights(np.column_stack([X, beside]), np.arange(13))
    assert weights[:4].min() > 0.4
    assert weights[4:].max() == 0.0


def test_a_triangle_of_clusters_in_two_uncorrelated_columns_is_shared() -> None:
    rng = np.random.default_rng(0)
    corners = 4 * np.array([[1.0, 0.0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]])
    X = rng.standard_normal((900, 5))
    X[:, :2] += corners[np.arange(900) % 3]
    assert abs(np.corrcoef(X[:, :2].T)[0, 1]) < 0.1
    weights = shared_weights(X, np.arange(5))
    assert weights[:2].min() > 0.4
    assert weights[2:].max() == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_where_nothing_is_shared_all_weigh_the_same(seed: int) -> None:
    X = np.random.default_rng(seed).standard_normal((300, 9))
    X[:, 3] += 8 * (np.arange(300) % 2)
    assert shared_weights(X, np.arange(9)).tolist() == [1.0] * 9


def test_the_columns_of_a_category_weigh_the_same_and_a_constant_nothing() -> None:
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 500)
    X = np.column_stack([np.eye(3)[level], level + 0.3 * rng.standard_normal(500), np.ones(500)])
    weights = shared_weights(X, np.array([0, 0, 0, 1, 2]))
    assert len(set(weights[:3])) == 1
    assert weights[0] > 0.5
    assert weights[4] == 0.0


def test_kept_is_one_for_the_map_itself_and_nothing_for_rows_in_another_order() -> None:
    points = np.random.default_rng(0).standard_normal((3000, 3))
    here = Neighbourhoods(points)
    assert len(here.base) == 1000
    assert here.kept(points[here.base]).tolist() == [1.0] * 500
    assert abs(here.kept(points[here.base][::-1]).mean()) < 0.02


@pytest.mark.parametrize("n", [4, 5, 16, 31])
def test_few_rows_and_rows_at_one_place_are_no_obstacle(n: int) -> None:
    points = np.random.default_rng(0).standard_normal((n, 2)).round(0)
    assert np.isfinite(Neighbourhoods(points).kept(points)).all()
    assert np.isfinite(neighbour_plane(points, nearest(points), 1)).all()
    assert np.isfinite(IMAPCE(random_state=0).fit(np.random.default_rng(1).normal(size=(n, 3))).components_).all()


def test_two_fits_are_the_same_and_a_seed_does_not_move_the_planes() -> None:
    X, _, _ = planted()
    one, other, third = (IMAPCE(random_state=seed).fit(X) for seed in (0, 0, 7))
    assert one.components_.tobytes() == other.components_.tobytes()
    assert angle_between(one.components_, third.components_) < 0.05


def test_rounding_does_not_turn_the_axes_of_neighbours_round() -> None:
    """LAPACK's signs are any; the draw that breaks ties would make other rows neighbours."""
    X = np.random.default_rng(0).normal(size=(900, 10)) @ np.random.default_rng(1).normal(size=(10, 10))
    C, weights = X.T @ X, np.ones(10)
    expected = reference_axes(C, weights, 900)
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(size=C.shape) * 1e-15
        np.testing.assert_allclose(reference_axes(C * (1 + noise + noise.T), weights, 900), expected, atol=1e-10)


def test_sparse_and_dense_rows_give_the_same_view() -> None:
    X, _, rng = planted(400)
    X = np.column_stack([X, rng.integers(0, 3, (400, 2))])
    dense = IMAPCE(random_state=0).fit(X)
    other = IMAPCE(random_state=0).fit(sparse.csr_array(X))
    assert angle_between(dense.components_, other.components_) < 1e-5


@pytest.mark.parametrize("seed", [0, 1])
def test_planted_clusters_of_a_wide_table_are_shown(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 200)
    X = rng.standard_normal((200, 2000))
    X[:, :80] += 1.5 * rng.standard_normal((3, 80))[truth]
    assert metrics.knn_accuracy(IMAPCE(random_state=0).fit_transform(X), truth) >= 0.95


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_a_known_class_cannot_be_read_back_and_it_is_said(load, tmp_path: Path) -> None:
    data = load()
    columns = {f"x{i}": column for i, column in enumerate(data.data.T)}
    table = pa.table(columns | {"class": data.target.astype(str)})
    model = IMAPCE(random_state=0).fit(table, prior=Attributes(["class"]))
    assert model.read_back_ is not None
    assert model.read_back_["chance"] == pytest.approx(1 / 3)
    assert model.read_back_["score"] <= 1 / 3 + 0.1
    assert f"accuracy {model.read_back_['score']:.2f} by the 15 nearest rows; chance 0.33" in model.stop_reason_
    assert metrics.knn_accuracy(model.transform(table), data.target) <= 0.5
    model.save(tmp_path / "view.imapce")
    loaded = load_model(tmp_path / "view.imapce")
    assert loaded.read_back_ == model.read_back_
    assert [one.kept for one in loaded.optima_] == [one.kept for one in model.optima_]


def test_without_known_columns_nothing_is_read_back() -> None:
    assert IMAPCE(random_state=0).fit(planted()[0]).read_back_ is None


def test_the_chosen_view_comes_first_and_the_others_by_what_they_keep() -> None:
    model = IMAPCE(random_state=0).fit(planted()[0])
    kept = [one.kept for one in model.optima_]
    assert np.isfinite(kept).all()
    assert kept[1:] == sorted(kept[1:], reverse=True)
    assert "of the neighbourhoods" in model.stop_reason_
    planes = [one for one in model.path_ if one.starts == 0]
    assert len(planes) == 2
    assert all(np.isfinite([one.separation, one.mu]).all() for one in planes)


def test_rank_decides_by_what_views_are_compared() -> None:
    X, _, rng = planted()
    background = Samples(rng.standard_normal((200, 10)))
    assert np.isnan(IMAPCE(random_state=0).fit(X, prior=background).optima_[0].kept)
    assert np.isfinite(IMAPCE(random_state=0, rank="neighbours").fit(X, prior=background).optima_[0].kept)
    assert np.isnan(IMAPCE(random_state=0, rank="separation").fit(X).optima_[0].kept)
    fixed = IMAPCE(alpha=1.0, mu=30.0, random_state=0, rank="neighbours").fit(X)
    assert fixed.path_ == []
    assert fixed.optima_[0].kept == max(one.kept for one in fixed.optima_)


@pytest.mark.parametrize(
    ("shape", "words"),
    [((1000, 6), "No two columns share anything beyond chance."), ((200, 1000), "no structure beyond chance.")],
)
def test_noise_is_told_from_structure(shape: tuple[int, int], words: str) -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(shape)
    assert words in IMAPCE(random_state=0).fit(noise).stop_reason_
    noise[:, : shape[1] // 5 + 2] += 3 * rng.integers(0, 2, (shape[0], 1))
    assert "beyond chance" not in IMAPCE(random_state=0).fit(noise).stop_reason_


def test_what_is_to_be_erased_stays_erased() -> None:
    X, _, _ = planted()
    X[:, 9] += X[:, 0]
    model = IMAPCE(random_state=0).fit(X, prior=Attributes([0], erase=True))
    assert np.abs(np.corrcoef(np.column_stack([model.transform(X), X[:, 0]]).T)[:2, 2]).max() < 1e-6
    assert model.read_back_ is not None
