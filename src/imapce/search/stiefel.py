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
    """Vᵀ of every frame of a stack."""
    return np.swapaxes(V, -1, -2)


def tangent(V: Array, G: Array) -> Array:
    """G − V VᵀG, the part of G that moves the span."""
    return G - np.matmul(V, np.matmul(transpose(V), G))


def orthonormalize(V: Array) -> Array:
    """The retraction: V L⁻ᵀ with VᵀV = LLᵀ. For a tangent step VᵀV = I + t²PᵀP, so Cholesky is safe and cheap."""
    L = np.linalg.cholesky(np.matmul(transpose(V), V))
    return transpose(np.linalg.solve(L, transpose(V)))


def random_frames(
    n_frames: int,
    n_features: int,
    n_components: int,
    rng: np.random.Generator,
    informative: Mask | None = None,
) -> Array:
    """Uniform random frames, zero on columns without information, so that a constant column changes no draw."""
    width = n_features if informative is None else int(informative.sum())
    frames = np.zeros((n_frames, n_features, n_components))
    draw = np.linalg.qr(rng.standard_normal((n_frames, width, n_components)))[0]
    frames[:, slice(None) if informative is None else informative] = draw
    return frames


def squared_distances(U: Array, V: Array) -> Array:
    """k − ‖UᵀV‖² for all pairs of two stacks: the sum of squared sines of their principal angles."""
    k = U.shape[-1]
    overlaps = np.tensordot(U, V, axes=([1], [1]))  # (R, k, S, k)
    return k - np.einsum("rksl,rksl->rs", overlaps, overlaps)


def canonical_frame(V: Array, second_moment_of_V: Array) -> Array:
    """The same span with axes along the principal axes of the embedding, most variance first, signs fixed.

    Sign: in every axis the loading of largest size is positive. It depends on no row and on no row order.
    """
    covariance = V.T @ second_moment_of_V
    _, rotation = np.linalg.eigh((covariance + covariance.T) / 2)
    return with_fixed_signs(V @ rotation[:, ::-1])


def with_fixed_signs(V: Array) -> Array:
    """The axes (d, k) with the sign that makes the loading of largest size positive."""
    strongest = V[np.argmax(np.abs(V), axis=0), np.arange(V.shape[1])]
    return V * np.where(strongest < 0, -1.0, 1.0)
