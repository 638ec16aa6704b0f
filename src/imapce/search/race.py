"""Minimise an objective over subspaces from many starts at once: batched Riemannian L-BFGS.

Each round evaluates every running start in one call, so ten starts read the data as often as the slowest one does.
A start leaves the race when its gradient is small, when it comes to lie on another start ("joined"), or when at its
present pace it cannot reach the best one ("gave up"). What remains is polished, ranked and returned.

The solver knows no formula: it sees `evaluate(V) -> value, gradient, scale` and a preconditioner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from imapce.search.lbfgs import _UPPER, MEMORY, Rows, _Field
from imapce.search.newton import ROUNDING, SAME_SKETCH, Evaluated, ObjectiveLike, beside_a_better_one, newton_polish
from imapce.search.solution import LocalOptimum, Progress, Solution, Trace
from imapce.search.stiefel import orthonormalize, squared_distances, tangent

Array = NDArray[np.float64]

SUFFICIENT_DECREASE = 1e-4
MAX_REFUSALS = 12
JOINED = 1e-4  # summed squared sines (an angle of about half a degree): two starts in one basin
REVIEW = 5  # rounds between looks at the whole field
PATIENCE = 20  # iterations over which the pace of a start is measured
HOPELESS = 20.0  # a start gives up when its gap to the best exceeds this many times its last PATIENCE iterations' gain
POLISH = 1e-4  # the winner is refined to this fraction of tol, so that engines and threads agree on the subspace
SKETCH = 1e-3  # where Newton follows, the race itself need only tell the basins apart
NEWTON_LIMIT = 128  # tangent dimensions up to which Newton may follow where evaluations are not cheap


@dataclass
class _Race:
    objective: ObjectiveLike
    preconditioner: Array | None
    max_iter: int
    callback: Callable[[Progress], None] | None = None
    near: float = JOINED
    rounds: int = 0
    best: float = np.inf
    history: list[tuple[NDArray[np.intp], Array]] = field(default_factory=list)

    def _scaled(self, G: Array) -> Array:
        return G if self.preconditioner is None else np.matmul(self.preconditioner, G)

    def line_up(self, V: Array) -> _Field:
        """The starts at their first points."""
        state = self.objective.evaluate(V)
        iterations = np.zeros(len(V), dtype=np.intp)
        return self._standing(np.arange(len(V)), V, state.value, tangent(V, state.gradient), state.scale, iterations)

    def _at_rest(self, field: _Field) -> _Field:
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
    ) -> _Field:
        n, d, k = V.shape
        direction = -tangent(V, self._scaled(gradient))
        norm = np.sqrt(np.einsum("rdk,rdk->r", direction, direction))
        return _Field(
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

    def advance(self, field: _Field) -> None:
        """One batched evaluation: each start either takes its trial step or shortens it."""
        move = field.step[:, None, None] * field.direction
        V = orthonormalize(field.V + move)
        trial = self.objective.evaluate(V)
        gradient = tangent(V, trial.gradient)
        taken = trial.value <= field.value + SUFFICIENT_DECREASE * field.step * field.slope
        if not taken.all():
            # Near the optimum f no longer resolves the decrease, the slope still does: accept a step that stays level
            # within rounding and does not overshoot (the approximate Wolfe condition of Hager and Zhang).
            new_slope = np.einsum("rdk,rdk->r", gradient, field.direction)
            noise = ROUNDING * (np.abs(field.value) + field.scale)
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

    def _take(self, field: _Field, rows: Rows, V: Array, trial: Evaluated, gradient: Array, move: Array) -> None:
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
            direction[uphill] = -tangent(V[uphill], self._scaled(gradient[uphill]))
            slope[uphill] = np.einsum("rdk,rdk->r", direction[uphill], gradient[uphill])
            for memory in (field.S, field.Y, field.PY):
                memory[np.arange(len(field.start))[rows][uphill]] = 0.0
        length = np.sqrt(np.einsum("rdk,rdk->r", direction, direction))
        # A step longer than one radian has no meaning on the manifold.
        field.step[rows] = 1.0 / np.maximum(length, 1.0)
        field.direction[rows], field.slope[rows] = direction, slope

    def _remember(self, field: _Field, rows: Rows, V: Array, gradient: Array, move: Array) -> None:
        """Add the step and the change of the gradient, both carried to the new point, to the pairs of L-BFGS."""
        n, d, k = V.shape
        s = tangent(V, move).reshape(n, d * k)
        change = gradient - tangent(V, field.gradient[rows])
        y = change.reshape(n, d * k)
        Py = y if self.preconditioner is None else tangent(V, self._scaled(change)).reshape(n, d * k)
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

    def _quasi_newton(self, field: _Field, rows: Rows, gradient: Array) -> Array:
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
        base = self._scaled(gradient).reshape(g.shape)
        result = gamma * base + np.matmul(S.transpose(0, 2, 1), v) - gamma * np.matmul(PY.transpose(0, 2, 1), w)
        return -result.reshape(shape)

    def run(self, field: _Field, tol: float, *, compete: bool = True) -> list[tuple[str, _Field]]:
        """Let the field run until every start has left; returns each with its outcome."""
        left: list[tuple[str, _Field]] = []

        def leave(rows: NDArray[np.bool_], outcome: str) -> None:
            nonlocal field
            if not rows.any():
                return
            for row in np.flatnonzero(rows):
                left.append((outcome, field.keep(np.arange(len(field.start)) == row)))
            field = field.keep(~rows)

        leave(~np.isfinite(field.value), "gave up")
        leave(field.relative_gradient() <= tol, "converged")
        while len(field.start):
            self.advance(field)
            self.rounds += 1
            self.history.append((field.start.copy(), field.value.copy()))
            self.best = min(self.best, float(field.value.min()))
            if self.callback is not None:
                self.callback(Progress(self.rounds, len(field.start), self.best))
            leave(field.relative_gradient() <= tol, "converged")
            # Shortened this often a step goes down wherever f is smooth; what is left to chase is rounding.
            leave(field.refusals >= MAX_REFUSALS, "exhausted")
            leave(field.iterations >= self.max_iter, "stopped")
            if compete and self.rounds % REVIEW == 0 and len(field.start):
                leave(self._joined(field, [one for outcome, one in left if outcome == "converged"]), "joined")
                leave(self._hopeless(field, self.best), "gave up")
        return left

    def finish(self, ones: list[_Field], tol: float, *, newton: bool) -> list[_Field]:
        """Starts brought to `tol`, best first: Newton where evaluations are cheap, L-BFGS for what that leaves."""
        stopped = [one for one in ones if one.iterations[0] >= self.max_iter]
        going = [one for one in ones if one.iterations[0] < self.max_iter]
        if going:
            field = _Field.stack(going)
            if newton:
                newton_polish(self.objective, field, tol * POLISH)
                field = self._at_rest(field.keep(~beside_a_better_one(field, SAME_SKETCH)))
            going = [one for _, one in self.run(field, tol, compete=False)]
            d, k = field.V.shape[1:]
            if not newton and (d - k) * k <= NEWTON_LIMIT:
                # L-BFGS may stall on the last digits; a few Newton steps are worth their price for one start.
                for one in going:
                    newton_polish(self.objective, one, tol)
        return sorted(going + stopped, key=lambda one: float(one.value[0]))

    def _joined(self, field: _Field, arrived: list[_Field]) -> NDArray[np.bool_]:
        """Running starts that lie on an arrived one, or on a running one that is further down."""
        joined = beside_a_better_one(field, self.near)
        if arrived:
            joined |= np.any(squared_distances(field.V, np.concatenate([one.V for one in arrived])) < self.near, axis=1)
        return joined

    @staticmethod
    def _hopeless(field: _Field, best: float) -> NDArray[np.bool_]:
        due = (field.iterations > 0) & (field.iterations % PATIENCE < REVIEW) & (field.mark > field.value)
        hopeless = due & (field.value - best > HOPELESS * (field.mark - field.value))
        field.mark[due] = field.value[due]
        return hopeless


def minimize(
    objective: ObjectiveLike,
    starts: Array,
    *,
    tol: float = 1e-6,
    max_iter: int = 500,
    preconditioner: Array | None = None,
    newton: bool = False,
    callback: Callable[[Progress], None] | None = None,
) -> Solution:
    """Run all `starts` (R, d, k) and return the distinct optima they end in, ranked by objective.

    `tol` bounds ‖tangent gradient‖ relative to the gradient's own terms; `max_iter` bounds the iterations of a start.
    `newton` says that a batch of (d−k)k evaluations is cheap, so that the last digits come from Newton's method.

    >>> solution = minimize(objective, starts)                # doctest: +SKIP
    >>> solution.stop_reason                                  # doctest: +SKIP
    'Converged: 8 of 10 starts reached the best objective, 6387.39, ...'
    """
    race = _Race(objective, preconditioner, max_iter, callback, SAME_SKETCH if newton else JOINED)
    left = race.run(race.line_up(np.linalg.qr(starts)[0]), max(tol, SKETCH) if newton else tol)
    outcomes = [""] * len(starts)
    for outcome, one in left:
        outcomes[int(one.start[0])] = outcome
    # A start that gave up stands nowhere; it only counts where nobody arrived.
    everyone = sorted((one for _, one in left), key=lambda one: float(one.value[0]))
    arrived = [one for one in everyone if outcomes[one.start[0]] not in ("joined", "gave up")] or everyone[:1]
    # Where every start is flat there is nothing to refine; the caller is told by an infinite objective.
    if np.isfinite(arrived[0].value[0]):
        if newton:
            arrived = race.finish(_apart(arrived, SAME_SKETCH), tol, newton=True)
        arrived[:1] = race.finish(arrived[:1], tol * POLISH, newton=False)
    reached = [one for one in everyone if outcomes[one.start[0]] != "gave up"] or arrived
    optima = _optima(_apart(arrived, race.near), reached, tol, race.near if newton else 10 * JOINED)
    iterations = int(arrived[0].iterations[0])
    reason = _stop_reason(optima[0], outcomes, iterations, tol)
    return Solution(optima, iterations, race.rounds + 1, reason, _trace(race.history, outcomes))


def _apart(ranked: list[_Field], distance: float) -> list[_Field]:
    """The first of every group of subspaces that lie within `distance` of each other."""
    kept: list[_Field] = []
    for one in ranked:
        if not kept or squared_distances(one.V, np.concatenate([other.V for other in kept])).min() >= distance:
            kept.append(one)
    return kept


def _optima(distinct: list[_Field], reached: list[_Field], tol: float, near: float) -> list[LocalOptimum]:
    """The distinct optima; every start that did not give up counts for the one nearest to where it ended."""
    distances = squared_distances(
        np.concatenate([one.V for one in reached]), np.concatenate([one.V for one in distinct])
    )
    nearest = np.where(distances.min(axis=1) < near, distances.argmin(axis=1), -1)
    optima = []
    for i, one in enumerate(distinct):
        gradient = float(one.relative_gradient()[0])
        starts = max(1, int((nearest == i).sum()))
        optima.append(LocalOptimum(one.V[0], float(one.value[0]), starts, gradient <= tol, gradient))
    return optima


def _trace(history: list[tuple[NDArray[np.intp], Array]], outcomes: list[str]) -> Trace:
    objectives = np.full((len(history), len(outcomes)), np.nan)
    for row, (start, value) in enumerate(history):
        objectives[row, start] = value
    return Trace(list(range(2, len(history) + 2)), objectives, outcomes)


def _stop_reason(best: LocalOptimum, outcomes: list[str], iterations: int, tol: float) -> str:
    others = [f"{outcomes.count(word)} {word}" for word in ("joined", "gave up", "stopped") if word in outcomes]
    field = f"{best.starts} of {len(outcomes)} starts reached the best objective, {best.objective:.8g}"
    aside = f" ({', '.join(others)})" if others else ""
    end = f"relative gradient {best.relative_gradient:.1e} after {iterations} iterations."
    if best.converged:
        return f"Converged: {field}{aside}; {end}"
    return f"Not converged: {field}{aside}; {end} Raise max_iter or tol (now {tol:g})."
