"""Riemannian L-BFGS for many starts at once: the state of every start, and how each takes its next step.

    p = −Hg,   H from the last MEMORY pairs (s, y) of steps and changes of the gradient, one small solve for all starts

Pairs, gradients and directions are carried from point to point by projection on the tangent space. A step is taken
where it lowers f enough, else shortened.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from imapce.search.newton import Evaluated, ObjectiveLike
from imapce.search.stiefel import orthonormalize, tangent

Array = NDArray[np.float64]
Chosen = slice | NDArray[np.intp]

MEMORY = 8  # pairs kept by L-BFGS; 5 and 12 take about a tenth longer on Image Segmentation
SUFFICIENT_DECREASE = 1e-4
_UPPER = np.triu(np.ones((MEMORY, MEMORY)))


@dataclass
class Field:
    """The state of the running starts, one row each; rows leave by `keep`, so every array is always dense."""

    start: NDArray[np.intp]
    V: Array
    value: Array
    gradient: Array
    scale: Array
    direction: Array
    slope: Array
    step: Array
    iterations: NDArray[np.intp]
    refusals: NDArray[np.intp]
    mark: Array
    S: Array
    Y: Array
    PY: Array
    gamma: Array

    def keep(self, rows: NDArray[np.bool_]) -> Field:
        return Field(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})

    @classmethod
    def stack(cls, ones: list[Field]) -> Field:
        return cls(**{name: np.concatenate([getattr(one, name) for one in ones]) for name in cls.__dataclass_fields__})

    def relative_gradient(self) -> Array:
        norm = np.sqrt(np.einsum("rdk,rdk->r", self.gradient, self.gradient))
        return norm / np.maximum(self.scale, np.finfo(np.float64).tiny)


@dataclass
class Descent:
    """One step of every start of a field: evaluated together, each taken or shortened on its own."""

    objective: ObjectiveLike
    preconditioner: Array | None

    def _evaluated(self, V: Array, start: NDArray[np.intp]) -> Evaluated:
        """The frames V (R, d, k) of some starts."""
        return self.objective.evaluate(V)

    def _scaled(self, G: Array, start: NDArray[np.intp]) -> Array:
        """Gradients (R, d, k) of some starts, preconditioned."""
        return G if self.preconditioner is None else np.matmul(self.preconditioner, G)

    def line_up(self, V: Array) -> Field:
        """The starts at their first points."""
        start = np.arange(len(V))
        state = self._evaluated(V, start)
        iterations = np.zeros(len(V), dtype=np.intp)
        return self._standing(start, V, state.value, tangent(V, state.gradient), state.scale, iterations)

    def at_rest(self, field: Field) -> Field:
        """The same points without a past: directions and pairs from before a Newton step do not fit where it led."""
        return self._standing(field.start, field.V, field.value, field.gradient, field.scale, field.iterations)

    def _standing(
        self,
        start: NDArray[np.intp],
        V: Array,
        value: Array,
        gradient: Array,
        scale: Array,
        iterations: NDArray[np.intp],
    ) -> Field:
        n, d, k = V.shape
        direction = -tangent(V, self._scaled(gradient, start))
        norm = np.sqrt(np.einsum("rdk,rdk->r", direction, direction))
        return Field(
            start=start,
            V=V,
            value=value,
            gradient=gradient,
            scale=scale,
            direction=direction,
            slope=np.einsum("rdk,rdk->r", direction, gradient),
            step=0.1 / np.maximum(norm, np.finfo(np.float64).tiny),
            iterations=iterations,
            refusals=np.zeros(n, dtype=np.intp),
            mark=value.copy(),
            S=np.zeros((n, MEMORY, d * k)),
            Y=np.zeros((n, MEMORY, d * k)),
            PY=np.zeros((n, MEMORY, d * k)),
            gamma=np.ones(n),
        )

    def advance(self, field: Field) -> None:
        """One batched evaluation: each start either takes its trial step or shortens it."""
        move = field.step[:, None, None] * field.direction
        V = orthonormalize(field.V + move)
        trial = self._evaluated(V, field.start)
        gradient = tangent(V, trial.gradient)
        taken = trial.value <= field.value + SUFFICIENT_DECREASE * field.step * field.slope
        if not taken.all():
            # Near the optimum f no longer resolves the decrease, the slope still does: accept a step that stays level
            # within rounding and does not overshoot (the approximate Wolfe condition of Hager and Zhang).
            new_slope = np.einsum("rdk,rdk->r", gradient, field.direction)
            noise = self.objective.noise * (np.abs(field.value) + field.scale)
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
        length = np.sqrt(np.einsum("rdk,rdk->r", direction, direction))
        # A step longer than one radian has no meaning on the manifold.
        field.step[rows] = 1.0 / np.maximum(length, 1.0)
        field.direction[rows], field.slope[rows] = direction, slope

    def _remember(self, field: Field, rows: Chosen, V: Array, gradient: Array, move: Array) -> None:
        """Add the step and the change of the gradient, both carried to the new point, to the pairs of L-BFGS."""
        n, d, k = V.shape
        s = tangent(V, move).reshape(n, d * k)
        change = gradient - tangent(V, field.gradient[rows])
        y = change.reshape(n, d * k)
        Py = y if self.preconditioner is None else tangent(V, self._scaled(change, field.start[rows])).reshape(n, d * k)
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
