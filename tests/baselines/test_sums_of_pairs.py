"""The n-body sums against the plain double sum, and the traps of openTSNE's routines."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from imapce.baselines import tsne_descent as nbody
from imapce.baselines.tsne_descent import attraction, direct_sums, grid_sums, tree_sums


def literal_sums(Y: np.ndarray, w: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Σⱼ w t² (yᵢ − yⱼ) and Σ w t, as written in the theory."""
    difference = Y[:, None] - Y[None]
    t = 1 / (1 + (difference**2).sum(axis=2))
    np.fill_diagonal(t, 0)
    w = np.ones_like(t) if w is None else w
    return ((w * t**2)[..., None] * difference).sum(axis=1), float((w * t).sum())


def points(n: int, k: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, k)) * 8


def error(got: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("threads_from", [10, 10_000])
def test_direct_sums_weigh_pairs_within_and_between_groups(
    k: int, threads_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nbody, "THREADS_FROM", threads_from)
    Y, starts = points(90, k), np.array([0, 1, 30, 90])
    group = np.repeat([0, 1, 2], np.diff(starts))
    same = group[:, None] == group[None]
    for inside, outside in ((1.0, 0.0), (3.0, 0.01), (1.0, 1.0)):
        F, Z = direct_sums(Y, starts, inside, outside)
        expected, expected_Z = literal_sums(Y, np.where(same, inside, outside))
        assert F.shape == (90, k)
        assert error(F, expected) < 1e-12
        assert pytest.approx(expected_Z, rel=1e-12) == Z


@pytest.mark.parametrize("k", [1, 2])
def test_grid_and_tree_come_close_to_the_plain_sums(k: int) -> None:
    Y = points(600, k)
    expected, expected_Z = literal_sums(Y)
    for (F, Z), tolerance in ((grid_sums(Y), 0.06), (tree_sums(Y, 0.5), 0.06), (tree_sums(Y, 0.0), 1e-10)):
        assert error(F, expected) < tolerance
        assert pytest.approx(expected_Z, rel=tolerance) == Z


def test_a_grid_holds_points_that_come_in_falling_order() -> None:
    falling = np.ascontiguousarray(np.linspace(40, -40, 400).reshape(200, 2))
    F, Z = grid_sums(falling)
    rising_F, rising_Z = grid_sums(np.ascontiguousarray(falling[::-1]))
    assert np.allclose(F, rising_F[::-1], atol=1e-9)
    assert pytest.approx(rising_Z) == Z
    assert pytest.approx(literal_sums(falling)[1], rel=0.05) == Z
    largest_first = points(300)
    largest_first[0, 0] = 60.0
    assert error(grid_sums(largest_first)[0], literal_sums(largest_first)[0]) < 0.06


def test_attraction_and_its_divergence_are_the_plain_sums_over_the_edges() -> None:
    Y = points(50)
    P = sparse.random(50, 50, 0.2, format="csr", random_state=0)
    P = (P + P.T).tocsr()
    P.data /= P.data.sum()
    dense, difference = P.toarray(), Y[:, None] - Y[None]
    t = 1 / (1 + (difference**2).sum(axis=2))
    A, divergence = attraction(P, Y, with_divergence=True)
    assert error(A, ((dense * t)[..., None] * difference).sum(axis=1)) < 1e-12
    edges = dense > 0
    assert divergence == pytest.approx((dense[edges] * np.log(dense[edges] / t[edges])).sum(), rel=1e-6)
    assert attraction(P, Y)[1] == 0.0


def test_the_points_are_not_changed() -> None:
    Y = points(40)
    before = Y.copy()
    for sums in (grid_sums, lambda Y: tree_sums(Y, 0.5), lambda Y: direct_sums(Y, np.array([0, 40]))):
        sums(Y)
        assert np.array_equal(Y, before)
