"""How starts go downhill, many at once: Riemannian L-BFGS, and Newton's method for the last digits.

Starts are frames V (R, d, k) of the Stiefel manifold, VᵀV = I. The objective depends on the span of V alone, so tangent
vectors carry no rotation inside the span, subspaces are compared by principal angles, and a rotation and a sign are
fixed before anything is shown or stored.

    p = −Hg         H from the last MEMORY pairs (s, y) of steps and changes of the gradient, one solve for all starts
    p = −|H|⁻¹g     H from differences of the gradient in one batch of evaluations (Newton)

Pairs, gradients and directions are carried from point to point by projection on the tangent space. A step is taken
where it lowers f enough, else shortened. Newton is worth it where evaluations are cheap (rows folded into their
moments) or only one point is left to refine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from imapce.common.arrays import Array, Codes, Mask

Chosen = slice | Codes

MEMORY = 8  # pairs kept by L-BFGS; 5 and 12 take about a tenth longer on Image Segmentation
SUFFICIENT_DECREASE = 1e-4
SAME_SKETCH = 1e-2  # summed squared sines (about 6 degrees) below which two sketches lead to one optimum
LONGEST_NEWTON_STEP = 0.3  # radians
NEWTON_STEPS, NEWTON_HALVINGS = 20, 4
DIFFERENCE = 1e-4  # half-width, in natural lengths, of the differences behind Newton's Hessian
_UPPER = np.triu(np.ones((MEMORY, MEMORY)))


# --- frames -----------------------------------------------------------------------------------------------------------


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


# --- steps ------------------------------------------------------------------------------------------------------------


class Evaluated(Protocol):
    """What a descent reads of an evaluation: f, its gradient, the size of the gradient's terms; κ it carries along."""

    @property
    def value(self) -> Array: ...
    @property
    def gradient(self) -> Array: ...
    @property
    def scale(self) -> Array: ...
    @property
    def kurtosis(self) -> Array: ...


class ObjectiveLike(Protocol):
    """What a descent asks of an objective: values at a stack of frames and a model of their curvature.

    `noise` is the relative size below which a difference of two values is rounding.
    """

    @property
    def noise(self) -> float: ...

    def evaluate(self, V: Array) -> Evaluated: ...

    def inverse_curvature(self, V: Array) -> Array | None: ...


@dataclass
class Field:
    """The state of the running starts, one row each; rows leave by `keep`, so every array is always dense."""

    start: Codes
    V: Array
    value: Array
    gradient: Array
    scale: Array
    kurtosis: Array
    direction: Array
    slope: Array
    step: Array
    iterations: Codes
    refusals: Codes
    mark: Array
    S: Array
    Y: Array
    PY: Array
    gamma: Array

    def keep(self, rows: Mask) -> Field:
        return Field(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})

    @classmethod
    def stack(cls, fields: list[Field]) -> Field:
        names = cls.__dataclass_fields__
        return cls(**{name: np.concatenate([getattr(field, name) for field in fields]) for name in names})

    def relative_gradient(self) -> Array:
        return _norm(self.gradient) / np.maximum(self.scale, np.finfo(np.float64).tiny)


@dataclass
class Descent:
    """One step of every start of a field: evaluated together, each taken or shortened on its own.

    `evaluate` and `precondition` are given frames or gradients (R, d, k) and the numbers (R,) of their starts.
    """

    evaluate: Callable[[Array, Codes], Evaluated]
    precondition: Callable[[Array, Codes], Array] | None
    noise: float

    def line_up(self, V: Array) -> Field:
        """The starts at their first points."""
        start = np.arange(len(V))
        state = self.evaluate(V, start)
        gradient, iterations = tangent(V, state.gradient), np.zeros_like(start)
        return self._stand(start, V, state.value, gradient, state.scale, state.kurtosis, iterations)

    def at_rest(self, field: Field) -> Field:
        """The same points without a past: directions and pairs from before a Newton step do not fit where it led."""
        past = field.scale, field.kurtosis, field.iterations
        return self._stand(field.start, field.V, field.value, field.gradient, *past)

    def _stand(
        self, start: Codes, V: Array, value: Array, gradient: Array, scale: Array, kurtosis: Array, iterations: Codes
    ) -> Field:
        n, d, k = V.shape
        direction = -tangent(V, self._scaled(gradient, start))
        return Field(
            start=start,
            V=V,
            value=value,
            gradient=gradient,
            scale=scale,
            kurtosis=kurtosis,
            direction=direction,
            slope=np.einsum("rdk,rdk->r", direction, gradient),
            step=0.1 / np.maximum(_norm(direction), np.finfo(np.float64).tiny),
            iterations=iterations,
            refusals=np.zeros(n, dtype=np.intp),
            mark=value.copy(),
            S=np.zeros((n, MEMORY, d * k)),
            Y=np.zeros((n, MEMORY, d * k)),
            PY=np.zeros((n, MEMORY, d * k)),
            gamma=np.ones(n),
        )

    def _scaled(self, G: Array, start: Codes) -> Array:
        return G if self.precondition is None else self.precondition(G, start)

    def advance(self, field: Field) -> None:
        """One batched evaluation: each start either takes its trial step or shortens it."""
        move = field.step[:, None, None] * field.direction
        V = orthonormalize(field.V + move)
        trial = self.evaluate(V, field.start)
        gradient = tangent(V, trial.gradient)
        taken = trial.value <= field.value + SUFFICIENT_DECREASE * field.step * field.slope
        if not taken.all():
            # Near the optimum f no longer resolves the decrease, the slope still does: accept a step that stays level
            # within rounding and does not overshoot (the approximate Wolfe condition of Hager and Zhang).
            new_slope = np.einsum("rdk,rdk->r", gradient, field.direction)
            noise = self.noise * (np.abs(field.value) + field.scale)
            taken |= (trial.value <= field.value + noise) & (new_slope <= 0.8 * np.abs(field.slope))
            refused = ~taken
            predicted = field.step[refused] * field.slope[refused]
            excess = 2.0 * (trial.value[refused] - field.value[refused] - predicted)
            parabola = np.divide(-predicted, excess, out=np.full_like(excess, 0.1), where=excess > 0)
            field.step[refused] *= np.clip(parabola, 0.1, 0.5)
            field.refusals[refused] += 1
        if taken.all():
            self._take(field, slice(None), V, trial, gradient, move)
        elif taken.any():
            self._take(field, np.flatnonzero(taken), V[taken], trial, gradient[taken], move[taken])

    def _take(self, field: Field, rows: Chosen, V: Array, trial: Evaluated, gradient: Array, move: Array) -> None:
        """Move `rows` to their trial points, learn from the step and choose the next direction."""
        self._remember(field, rows, V, gradient, move)
        field.V[rows], field.gradient[rows] = V, gradient
        field.value[rows], field.scale[rows] = trial.value[rows], trial.scale[rows]
        field.kurtosis[rows] = trial.kurtosis[rows]
        field.iterations[rows] += 1
        field.refusals[rows] = 0
        direction = tangent(V, self._quasi_newton(field, rows, gradient))
        slope = np.einsum("rdk,rdk->r", direction, gradient)
        uphill = slope >= 0
        if uphill.any():
            direction[uphill] = -tangent(V[uphill], self._scaled(gradient[uphill], field.start[rows][uphill]))
            slope[uphill] = np.einsum("rdk,rdk->r", direction[uphill], gradient[uphill])
            for memory in (field.S, field.Y, field.PY):
                memory[np.arange(len(field.start))[rows][uphill]] = 0.0
        # A step longer than one radian has no meaning on the manifold.
        field.step[rows] = 1.0 / np.maximum(_norm(direction), 1.0)
        field.direction[rows], field.slope[rows] = direction, slope

    def _remember(self, field: Field, rows: Chosen, V: Array, gradient: Array, move: Array) -> None:
        """Add the step and the change of the gradient, both carried to the new point, to the pairs of L-BFGS."""
        n, d, k = V.shape
        s = tangent(V, move).reshape(n, d * k)
        change = gradient - tangent(V, field.gradient[rows])
        y = change.reshape(n, d * k)
        Py = y if self.precondition is None else tangent(V, self._scaled(change, field.start[rows])).reshape(n, d * k)
        sy = np.einsum("rn,rn->r", s, y)
        # A pair of negative curvature would make the model indefinite; it is left out, the others stay.
        usable = sy > 1e-10 * np.sqrt(np.einsum("rn,rn->r", s, s) * np.einsum("rn,rn->r", y, y))
        if not usable.all():
            rows = np.arange(len(field.start))[rows][usable]
            s, y, Py, sy = s[usable], y[usable], Py[usable], sy[usable]
        for memory, newest in ((field.S, s), (field.Y, y), (field.PY, Py)):
            memory[rows, :-1] = memory[rows, 1:]
            memory[rows, -1] = newest
        field.gamma[rows] = sy / np.einsum("rn,rn->r", y, Py)

    def _quasi_newton(self, field: Field, rows: Chosen, gradient: Array) -> Array:
        """−Hg by the compact form of L-BFGS (Byrd, Nocedal, Schnabel 1994), one small solve for all starts."""
        shape = gradient.shape
        g = gradient.reshape(shape[0], -1, 1)
        S, Y, PY = field.S[rows], field.Y[rows], field.PY[rows]
        gamma = field.gamma[rows][:, None, None]
        SY = np.matmul(S, Y.transpose(0, 2, 1))
        diagonal = np.einsum("rii->ri", SY)
        # Slots not filled yet hold zeros; a unit pivot keeps the triangle solvable and multiplies nothing.
        R = SY * _UPPER
        np.einsum("rii->ri", R)[:] += diagonal == 0
        R_inverse = np.linalg.inv(R)
        w = np.matmul(R_inverse, np.matmul(S, g))
        inner = diagonal[:, :, None] * w + gamma * (
            np.matmul(Y, np.matmul(PY.transpose(0, 2, 1), w)) - np.matmul(PY, g)
        )
        v = np.matmul(R_inverse.transpose(0, 2, 1), inner)
        base = self._scaled(gradient, field.start[rows]).reshape(g.shape)
        result = gamma * base + np.matmul(S.transpose(0, 2, 1), v) - gamma * np.matmul(PY.transpose(0, 2, 1), w)
        return -result.reshape(shape)


def beside_a_better_one(field: Field, distance: float, rivals: Mask | None = None) -> Mask:
    """Which starts lie within `distance` of one with a lower objective; only `rivals` (R, R) are compared."""
    near = squared_distances(field.V, field.V) < distance
    if rivals is not None:
        near &= rivals
    order = np.argsort(np.argsort(field.value, kind="stable"), kind="stable")
    return np.any(near & (order[None, :] < order[:, None]), axis=1)


# --- the last digits --------------------------------------------------------------------------------------------------


def newton_polish(objective: ObjectiveLike, field: Field, tol: float) -> None:
    """Newton steps on every start of `field`, in place; one that comes to lie beside a better one is left alone.

    Where L-BFGS needs hundreds of iterations for the last digits of a badly conditioned problem (320 on Image
    Segmentation), a handful of these do. A step is halved until f or, at the level of rounding, the gradient goes
    down; a start for which no step does stays where it is.
    """
    for _ in range(NEWTON_STEPS):
        pending = np.flatnonzero((field.relative_gradient() > tol) & ~beside_a_better_one(field, SAME_SKETCH))
        if not len(pending):
            return
        move = _newton_steps(objective, field.V[pending], field.gradient[pending])
        move /= np.maximum(1.0, _norm(move) / LONGEST_NEWTON_STEP)[:, None, None]
        progressed = False
        for _ in range(NEWTON_HALVINGS):
            V = orthonormalize(field.V[pending] + move)
            trial = objective.evaluate(V)
            gradient = tangent(V, trial.gradient)
            value, noise = field.value[pending], objective.noise * (np.abs(field.value) + field.scale)[pending]
            calmer = _norm(gradient) / trial.scale < 0.5 * field.relative_gradient()[pending]
            better = (trial.value < value - noise) | (calmer & (trial.value <= value + noise))
            rows = pending[better]
            field.V[rows], field.gradient[rows] = V[better], gradient[better]
            field.value[rows], field.scale[rows] = trial.value[better], trial.scale[better]
            field.kurtosis[rows] = trial.kurtosis[better]
            progressed |= bool(better.any())
            pending, move = pending[~better], 0.5 * move[~better]
            if not len(pending):
                break
        if not progressed:
            return


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


def _norm(G: Array) -> Array:
    return np.sqrt(np.einsum("rdk,rdk->r", G, G))
