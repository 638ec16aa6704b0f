"""The manifold of frames: what tangent, retraction, angles and the canonical frame promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from helpers import random_frame, random_stack
from imapce.search.descent import (
    canonical_frame,
    orthonormalize,
    random_frames,
    squared_distances,
    tangent,
    transpose,
)

seeds = st.integers(0, 10_000)
shapes = st.tuples(st.integers(1, 4), st.integers(4, 12), st.integers(1, 3))


def departure(V: np.ndarray) -> float:
    return float(np.abs(transpose(V) @ V - np.eye(V.shape[-1])).max())


@given(seeds, shapes)
def test_random_frames_lie_on_the_manifold(seed: int, shape: tuple[int, int, int]) -> None:
    V = random_frames(*shape, np.random.default_rng(seed))
    assert V.shape == shape
    assert departure(V) < 1e-14 * shape[1]


def test_random_frames_are_zero_on_columns_without_information_and_otherwise_unchanged_by_them() -> None:
    informative = np.array([True, False, True, True, False, True])
    V = random_frames(3, 6, 2, np.random.default_rng(1), informative)
    assert not V[:, ~informative].any()
    assert departure(V) < 1e-13
    assert np.array_equal(V[:, informative], random_frames(3, 4, 2, np.random.default_rng(1)))


@given(seeds, shapes)
def test_orthonormalize_puts_any_full_frame_on_the_manifold_and_keeps_its_span(
    seed: int, shape: tuple[int, int, int]
) -> None:
    R, d, k = shape
    G = random_stack(R, d, k, seed) @ (np.random.default_rng(seed).normal(size=(k, k)) + 3 * np.eye(k))
    V = orthonormalize(G)
    assert departure(V) < 1e-12
    for before, after in zip(G, V, strict=True):
        assert subspace_angles(before, after).max() < 1e-10


@given(seeds, shapes)
def test_tangent_is_a_projection_orthogonal_to_the_frame(seed: int, shape: tuple[int, int, int]) -> None:
    V = random_stack(*shape, seed)
    G = np.random.default_rng(seed).normal(size=shape)
    T = tangent(V, G)
    assert np.abs(transpose(V) @ T).max() < 1e-13
    assert np.allclose(tangent(V, T), T, atol=1e-13)
    assert np.allclose(tangent(V, V), 0, atol=1e-13)


@given(seeds, shapes)
def test_retraction_agrees_with_its_direction_to_first_order(seed: int, shape: tuple[int, int, int]) -> None:
    V = random_stack(*shape, seed)
    P = tangent(V, random_stack(*shape, seed + 1))
    steps = np.array([1e-2, 1e-3])
    errors = np.array([np.abs(orthonormalize(V + t * P) - (V + t * P)).max() for t in steps])
    assert np.all(errors <= 2 * steps**2)


@given(seeds, st.integers(1, 3))
def test_squared_distance_is_the_sum_of_squared_sines(seed: int, k: int) -> None:
    U, V = random_stack(2, 7, k, seed), random_stack(3, 7, k, seed + 1)
    distances = squared_distances(U, V)
    assert distances.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            assert distances[i, j] == pytest.approx(np.sum(np.sin(subspace_angles(U[i], V[j])) ** 2), abs=1e-12)


def moment(seed: int, d: int) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(40, d)) * np.linspace(1, 3, d)
    return X.T @ X


@given(seeds, st.integers(1, 3))
def test_canonical_frame_keeps_the_span_and_is_on_the_manifold(seed: int, k: int) -> None:
    C, V = moment(seed, 7), random_frame(7, k, seed)
    W = canonical_frame(V, C @ V)
    assert departure(W) < 1e-13
    assert subspace_angles(V, W).max() < 1e-12


@given(seeds, st.integers(1, 3))
def test_canonical_frame_does_not_see_how_the_frame_was_turned(seed: int, k: int) -> None:
    C, V = moment(seed, 7), random_frame(7, k, seed)
    turned = V @ np.linalg.qr(np.random.default_rng(seed).normal(size=(k, k)))[0]
    flipped = V * -1
    W = canonical_frame(V, C @ V)
    assert np.allclose(canonical_frame(turned, C @ turned), W, atol=1e-9)
    assert np.allclose(canonical_frame(flipped, C @ flipped), W, atol=1e-9)


@given(seeds)
def test_canonical_axes_are_uncorrelated_with_most_variance_first_and_a_positive_strongest_loading(seed: int) -> None:
    C, V = moment(seed, 7), random_frame(7, 3, seed)
    W = canonical_frame(V, C @ V)
    covariance = W.T @ C @ W
    assert np.abs(covariance - np.diag(np.diagonal(covariance))).max() < 1e-10 * covariance.max()
    assert np.all(np.diff(np.diagonal(covariance)) <= 0)
    assert np.all(W[np.abs(W).argmax(axis=0), range(3)] > 0)
