"""The last digits: Newton's method on subspaces, with the Hessian from one batch of evaluations.

Worth it where evaluations are cheap (rows folded into their moments) or only one point is left to refine.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from imapce.search.stiefel import orthonormalize, squared_distances, tangent, transpose

Array = NDArray[np.float64]

SAME_SKETCH = 1e-2  # summed squared sines (about 6 degrees) below which two sketches lead to one optimum
LONGEST_NEWTON_STEP = 0.3  # radians
NEWTON_HALVINGS = 4
DIFFERENCE = 1e-4  # half-width, in natural lengths, of the differences behind Newton's Hessian


class Evaluated(Protocol):
    """What Newton's method reads of an evaluation: f, its gradient and the size of the gradient's terms."""

    @property
    def value(self) -> Array: ...
    @property
    def gradient(self) -> Array: ...
    @property
    def scale(self) -> Array: ...


class ObjectiveLike(Protocol):
    """What Newton's method asks of an objective: values at a stack of frames and a model of their curvature.

    `noise` is the relative size below which a difference of two values is rounding.
    """

    @property
    def noise(self) -> float: ...

    def evaluate(self, V: Array) -> Evaluated: ...

    def inverse_curvature(self, V: Array) -> Array | None: ...


class Points(Protocol):
    """Points of the search, one row each, that are refined in place."""

    V: Array
    value: Array
    gradient: Array
    scale: Array

    def relative_gradient(self) -> Array: ...


def newton_polish(objective: ObjectiveLike, field: Points, tol: float, *, max_steps: int = 20) -> None:
    """Newton steps on every start of `field`, in place; one that comes to lie beside a better one is left alone.

    Where L-BFGS needs hundreds of iterations for the last digits of a badly conditioned problem (320 on Image
    Segmentation), a handful of these do. A step is halved until f or, at the level of rounding, the gradient goes
    down; a start for which no step does stays where it is.
    """
    for _ in range(max_steps):
        pending = np.flatnonzero((field.relative_gradient() > tol) & ~beside_a_better_one(field, SAME_SKETCH))
        if not len(pending):
            return
        move = _newton_steps(objective, field.V[pending], field.gradient[pending])
        length = np.sqrt(np.einsum("rdk,rdk->r", move, move))
        move /= np.maximum(1.0, length / LONGEST_NEWTON_STEP)[:, None, None]
        progressed = False
        for _ in range(NEWTON_HALVINGS):
            V = orthonormalize(field.V[pending] + move)
            trial = objective.evaluate(V)
            gradient = tangent(V, trial.gradient)
            norm = np.sqrt(np.einsum("rdk,rdk->r", gradient, gradient))
            value, noise = field.value[pending], objective.noise * (np.abs(field.value) + field.scale)[pending]
            calmer = norm / trial.scale < 0.5 * field.relative_gradient()[pending]
            better = (trial.value < value - noise) | (calmer & (trial.value <= value + noise))
            rows = pending[better]
            field.V[rows], field.gradient[rows] = V[better], gradient[better]
            field.value[rows], field.scale[rows] = trial.value[better], trial.scale[better]
            progressed |= bool(better.any())
            pending, move = pending[~better], 0.5 * move[~better]
            if not len(pending):
                break
        if not progressed:
            return


def beside_a_better_one(field: Points, distance: float) -> NDArray[np.bool_]:
    """Which starts lie within `distance` of one with a lower objective.

    >>> from types import SimpleNamespace
    >>> beside_a_better_one(SimpleNamespace(V=np.stack([np.eye(3)[:, :1]] * 2), value=np.array([2.0, 1.0])), 1e-2)
    array([ True, False])
    """
    near = squared_distances(field.V, field.V) < distance
    order = np.argsort(np.argsort(field.value, kind="stable"), kind="stable")
    return np.any(near & (order[None, :] < order[:, None]), axis=1)


def _newton_steps(objective: ObjectiveLike, V: Array, gradient: Array) -> Array:
    """−|H|⁻¹g of every start, the Hessian from differences of the gradient in one batch of evaluations.

    In the coordinates of the directions that leave the span, d−k for each axis. Directions of negative curvature
    count with their absolute value, so that a saddle is left and not sought.
    """
    n, d, k = V.shape
    size = (d - k) * k
    complement = np.linalg.qr(V, mode="complete")[0][:, :, k:]
    model = objective.inverse_curvature(V)
    if model is not None:
        # Directions are measured in the lengths over which f bends: with one length for all, the error of a stiff
        # direction's difference swamps a soft one (steps of an exploration of Image Segmentation stalled at 1e-6).
        inner = np.matmul(transpose(complement), np.matmul(model, complement))
        lengths, turn = np.linalg.eigh((inner + transpose(inner)) / 2)
        complement = np.matmul(complement, turn * np.sqrt(np.maximum(lengths, 0.0))[:, None, :])
    along = np.einsum("rdi,jk->rijdk", complement, np.eye(k)).reshape(n, size, d, k)
    frames = np.concatenate([V[:, None] + DIFFERENCE * along, V[:, None] - DIFFERENCE * along])
    frames = orthonormalize(frames.reshape(2 * n * size, d, k))
    slopes = tangent(frames, objective.evaluate(frames).gradient).reshape(2, n, size, d, k)
    change = np.matmul(transpose(complement)[:, None], (slopes[0] - slopes[1]) / (2 * DIFFERENCE))
    hessian = change.reshape(n, size, size)
    curvatures, axes = np.linalg.eigh((hessian + transpose(hessian)) / 2)
    curvatures = np.abs(curvatures)
    # Directions without curvature (Z does not vary there) would divide noise by noise; they stay as they are.
    curved = curvatures > 1e-9 * curvatures.max(axis=1, keepdims=True)
    slope = np.matmul(transpose(complement), gradient).reshape(n, size, 1)
    weights = np.divide(
        np.matmul(transpose(axes), slope),
        curvatures[:, :, None],
        where=curved[:, :, None],
        out=np.zeros_like(slope),
    )
    return -np.matmul(complement, np.matmul(axes, weights).reshape(n, d - k, k))
