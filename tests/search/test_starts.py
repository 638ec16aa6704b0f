"""Where the search begins: closed-form frames, then random ones that depend on the seed alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from helpers import grouped, standardised
from imapce import IMAPCE
from imapce.rows.dense import DenseRows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.rows.subspace import Subspace
from imapce.search.starts import contrastive_axes, kurtosis_frames, leading_eigenvectors, starting_frames


def symmetric(d: int, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(d, d))
    return A + A.T


def rows(X: np.ndarray) -> StandardizedRows:
    return StandardizedRows(DenseRows(X))


@pytest.mark.parametrize("formed", [True, False])
def test_leading_eigenvectors_are_the_algebraically_largest_in_descending_order(formed: bool) -> None:
    M = symmetric(30)
    form = QuadraticForm.of_matrix(M) if formed else QuadraticForm(30, float(np.trace(M)), lambda V: M @ V)
    values, vectors = leading_eigenvectors(form, 3)
    expected = np.linalg.eigvalsh(M)[::-1][:3]
    assert np.allclose(values, expected)
    assert np.allclose(M @ vectors, vectors * values, atol=1e-9)
    assert np.allclose(vectors.T @ vectors, np.eye(3), atol=1e-10)


def test_columns_that_are_uncorrelated_but_for_rounding_have_eigenvectors_too() -> None:
    rng = np.random.default_rng(4)
    kind = rng.integers(0, 3, 600)
    rate = np.tile(rng.gamma(2.0, 0.3, 100), (600, 1))
    for one in range(3):
        rate[np.ix_(kind == one, np.arange(8 * one, 8 * one + 8))] *= 5
    logs = np.log1p(rng.poisson(rate))
    # As many others, the principal scores of counts: LAPACK gives back none of the two largest of their correlations.
    left, sizes, _ = np.linalg.svd(logs - logs.mean(axis=0), full_matrices=False)
    scores = left[:, :15] * sizes[:15]
    assert IMAPCE(random_state=0).fit(scores).components_.shape == (2, 15)
    for noise in (0.0, 1e-16, 6e-16):
        nearly = np.eye(15) + noise * np.tri(15, k=-1) + noise * np.tri(15, k=-1).T
        values, vectors = leading_eigenvectors(QuadraticForm.of_matrix(600 * nearly), 2)
        assert values == pytest.approx([600, 600])
        assert vectors.T @ vectors == pytest.approx(np.eye(2), abs=1e-12)


def test_an_implicit_matrix_gives_the_same_vectors_every_time() -> None:
    M = symmetric(40)
    form = QuadraticForm(40, float(np.trace(M)), lambda V: M @ V)
    assert np.array_equal(leading_eigenvectors(form, 2)[1], leading_eigenvectors(form, 2)[1])


@pytest.mark.parametrize("excluded", [0, 2])
def test_of_a_wide_table_the_axes_come_from_products_of_rows_without_a_pass_for_each(excluded: int) -> None:
    rng = np.random.default_rng(0)
    Z = rows(rng.standard_normal((60, 3_000)))
    assert Z.second_moment.matrix is None
    passes: list[int] = []

    def counted(V: np.ndarray) -> np.ndarray:
        passes.append(V.shape[1])
        return Z.second_moment @ V

    form = replace(Z.second_moment, product=counted)
    inside = Subspace(np.ones(3_000, dtype=bool), rng.standard_normal((3_000, excluded)) if excluded else None)
    values, vectors = leading_eigenvectors(inside.form(form), 20)
    assert passes == []
    lifted = inside.lift(vectors)
    projected = np.concatenate(list(Z.blocks())) @ inside.lift(np.eye(inside.size))
    assert np.allclose(values, np.linalg.svd(projected, compute_uv=False)[:20] ** 2)
    assert np.allclose(lifted.T @ lifted, np.eye(20), atol=1e-12)
    assert np.allclose(inside.form(form) @ vectors, vectors * values, atol=1e-8 * values[0])
    # More axes than rows vary in: the smaller product has no more to tell.
    assert len(leading_eigenvectors(form, 60)[0]) == 60


def test_contrastive_axes_may_have_negative_eigenvalues() -> None:
    M = -np.diag([5.0, 1.0, 3.0, 2.0])
    assert subspace_angles(contrastive_axes(QuadraticForm.of_matrix(M), 2), np.eye(4)[:, [1, 3]]).max() < 1e-12


def test_one_of_the_kurtosis_frames_points_at_balanced_clusters() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    X[:, 3] += 4.0 * (np.arange(2000) % 2)
    X[:, 5] += 4.0 * (np.arange(2000) // 2 % 2)
    frames = kurtosis_frames(rows(X), 2)
    angles = [subspace_angles(frame, np.eye(6)[:, [3, 5]]).max() for frame in frames]
    assert angles[0] < 0.3
    assert all(np.allclose(frame.T @ frame, np.eye(2), atol=1e-12) for frame in frames)


def test_one_of_the_kurtosis_frames_points_at_a_minority() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    X[:40, 2] += 12.0
    frame = kurtosis_frames(rows(X), 1)[-1]
    assert subspace_angles(frame, np.eye(6)[:, [2]]).max() < 0.1


def test_rows_that_vary_in_too_few_directions_give_no_kurtosis_frame() -> None:
    X = np.random.default_rng(0).normal(size=(50, 1)) @ np.ones((1, 4))
    assert kurtosis_frames(rows(X), 2) == []


@pytest.mark.parametrize("n_starts", [1, 2, 3, 4, 5, 12])
def test_there_are_as_many_frames_as_asked_for_the_contrastive_one_first(n_starts: int) -> None:
    X = grouped().X
    Z = rows(X)
    axes = contrastive_axes(Z.second_moment, 2)
    frames = starting_frames(axes, Z, n_starts, np.random.default_rng(0))
    assert frames.shape == (n_starts, 8, 2)
    assert np.allclose(frames[0], axes)
    assert np.allclose(np.matmul(frames.transpose(0, 2, 1), frames), np.eye(2), atol=1e-10)
    principal = np.linalg.svd(standardised(X), full_matrices=False)[2][:2].T
    assert subspace_angles(frames[0], principal).max() < 1e-7


def test_the_seed_moves_the_random_frames_only() -> None:
    Z = rows(grouped().X)
    axes = contrastive_axes(Z.second_moment, 2)
    one, other = (starting_frames(axes, Z, 8, np.random.default_rng(seed)) for seed in (0, 1))
    assert np.array_equal(one[:4], other[:4])
    assert not np.isclose(one[4:], other[4:]).any(axis=(1, 2)).all()


def test_no_start_has_weight_on_a_column_without_information() -> None:
    X = grouped().X
    X[:, 5] = 3.0
    Z = rows(X)
    axes = np.eye(8)[:, [5, 0]]
    frames = starting_frames(axes, Z, 9, np.random.default_rng(0))
    assert np.abs(frames[:, 5]).max() < 1e-12
    assert np.allclose(np.matmul(frames.transpose(0, 2, 1), frames), np.eye(2), atol=1e-10)
