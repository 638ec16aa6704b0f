"""The Stiefel manifold St(k, d) = {V : VᵀV = I}, for stacks of frames V (R, d, k).

The objective depends on the span of V alone, so tangent vectors carry no rotation inside the span (the horizontal
space of the Grassmann quotient), subspaces are compared by principal angles, and a rotation and a sign are fixed
before anything is shown or stored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from imapce.common.arrays import Array, Mask


def transpose(V: NDArray) -> Array:
    """Vᵀ of every frame of a stack.

    >>> transpose(np.zeros((4, 5, 2))).shape
    (4, 2, 5)
    """
    return np.swapaxes(V, -1, -2)


def tangent(V: Array, G: Array) -> Array:
    """G − V VᵀG, the part of G that moves the span.

    >>> V = random_frames(1, 5, 2, np.random.default_rng(0))
    >>> bool(np.allclose(transpose(V) @ tangent(V, np.ones((1, 5, 2))), 0))
    True
    """
    return G - np.matmul(V, np.matmul(transpose(V), G))


def orthonormalize(V: Array) -> Array:
    """The retraction: V L⁻ᵀ with VᵀV = LLᵀ. For a tangent step VᵀV = I + t²PᵀP, so Cholesky is safe and cheap.

    >>> orthonormalize(np.array([[[3.0], [4.0]]])).ravel()
    array([0.6, 0.8])
    """
    L = np.linalg.cholesky(np.matmul(transpose(V), V))
    return transpose(np.linalg.solve(L, transpose(V)))


def random_frames(
    n_frames: int,
    n_features: int,
    n_components: int,
    rng: np.random.Generator,
    informative: Mask | None = None,
) -> Array:
    """Uniform random frames, zero on columns without information, so that a constant column changes no draw.

    >>> V = random_frames(1, 4, 2, np.random.default_rng(0), np.array([True, False, True, True]))
    >>> V.shape, V[0, 1].tolist()
    ((1, 4, 2), [0.0, 0.0])
    """
    width = n_features if informative is None else int(informative.sum())
    frames = np.zeros((n_frames, n_features, n_components))
    draw = np.linalg.qr(rng.standard_normal((n_frames, width, n_components)))[0]
    frames[:, slice(None) if informative is None else informative] = draw
    return frames


def principal_angles(U: Array, V: Array) -> Array:
    """Angles between two spans in radians, largest last; small ones from the sine, where arccos has no digits left.

    >>> V = np.eye(4)[:, :2]
    >>> principal_angles(V, V[:, ::-1])
    array([0., 0.])
    """
    cosines = np.linalg.svd(U.T @ V, compute_uv=False)
    sines = np.linalg.svd(V - U @ (U.T @ V), compute_uv=False)[::-1]
    small = cosines**2 > 0.5
    angles = np.where(small, np.arcsin(np.clip(sines, 0, 1)), np.arccos(np.clip(cosines, -1, 1)))
    return np.sort(angles)


def squared_distances(U: Array, V: Array) -> Array:
    """k − ‖UᵀV‖² for all pairs of two stacks: the sum of squared sines of their principal angles.

    >>> squared_distances(np.eye(3)[None, :, :2], np.eye(3)[None, :, 1:])
    array([[1.]])
    """
    k = U.shape[-1]
    overlaps = np.tensordot(U, V, axes=([1], [1]))  # (R, k, S, k)
    return k - np.einsum("rksl,rksl->rs", overlaps, overlaps)


def canonical_frame(V: Array, second_moment_of_V: Array) -> Array:
    """The same span with axes along the principal axes of the embedding, most variance first, signs fixed.

    Sign: in every axis the loading of largest size is positive. It depends on no row and on no row order.

    >>> C = np.diag([1.0, 4.0])
    >>> np.argmax(canonical_frame(-np.eye(2), C @ -np.eye(2)), axis=0)
    array([1, 0])
    """
    covariance = V.T @ second_moment_of_V
    _, rotation = np.linalg.eigh((covariance + covariance.T) / 2)
    return with_fixed_signs(V @ rotation[:, ::-1])


def with_fixed_signs(V: Array) -> Array:
    """The axes (d, k) with the sign that makes the loading of largest size positive.

    >>> with_fixed_signs(np.array([[0.6], [-0.8]])).ravel().tolist()
    [-0.6, 0.8]
    """
    strongest = V[np.argmax(np.abs(V), axis=0), np.arange(V.shape[1])]
    return V * np.where(strongest < 0, -1.0, 1.0)
