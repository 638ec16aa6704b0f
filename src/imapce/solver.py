"""Minimise an objective over subspaces from many starts at once: batched Riemannian L-BFGS.

Each round evaluates every running start in one call, so ten starts read the data as often as the slowest one does.
A start leaves the race when its gradient is small, when it comes to lie on another start ("joined"), or when at its
present pace it cannot reach the best one ("gave up"). What remains is polished, ranked and returned.

The solver knows no formula: it sees `evaluate(V) -> value, gradient, scale` and a preconditioner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from imapce.stiefel import orthonormalize, squared_distances, tangent

Array = NDArray[np.float64]

MEMORY = 8  # pairs kept by L-BFGS; 5 to 20 differ by less than 10 % in evaluations on all six data sets
SUFFICIENT_DECREASE = 1e-4
ROUNDING = 1e-13  # relative size below which a difference of two objectives is noise
JOINED = 1e-4  # summed squared sines (an angle of about half a degree): two starts in one basin
REVIEW = 5  # rounds between looks at the whole field
PATIENCE = 40  # iterations over which the pace of a start is measured
HOPELESS = 20.0  # a start gives up when its gap to the best exceeds this many times its last PATIENCE iterations' gain
POLISH = 1e-4  # the winner is refined to this fraction of tol, so that engines and threads agree on the subspace
SKETCH = 1e-3  # where Newton follows, the race itself need only tell the basins apart
LONGEST_NEWTON_STEP = 0.3  # radians
NEWTON_LIMIT = 128  # tangent dimensions up to which the polish is Newton's: the Hessian is one batch of evaluations


class Evaluated(Protocol):
    @property
    def value(self) -> Array: ...
    @property
    def gradient(self) -> Array: ...
    @property
    def scale(self) -> Array: ...


class ObjectiveLike(Protocol):
    def evaluate(self, V: Array) -> Evaluated: ...


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each round; raising from the callback cancels the fit."""

    round: int
    running: int
    best: float


@dataclass(frozen=True)
class Trace:
    """The race as it went: objective of every start after every round (NaN once it has left), and how each ended."""

    evaluations: list[int]
    objectives: Array
    outcomes: list[str]


@dataclass(frozen=True)
class LocalOptimum:
    """A distinct subspace at which starts ended: frame V (d, k), its objective and how many starts reached it."""

    V: Array
    objective: float
    starts: int
    converged: bool
    relative_gradient: float


@dataclass(frozen=True)
class Solution:
    """All distinct optima, best first, with the reason for stopping in words."""

    optima: list[LocalOptimum]
    n_iterations: int
    n_evaluations: int
    stop_reason: str
    trace: Trace

    @property
    def converged(self) -> bool:
        return self.optima[0].converged


@dataclass
class _Field:
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
    mark: Array
    S: Array
    Y: Array
    PY: Array
    gamma: Array
    known_pairs: NDArray[np.intp]

    def keep(self, rows: NDArray[np.bool_]) -> _Field:
        return _Field(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})

    def relative_gradient(self) -> Array:
        norm = np.sqrt(np.einsum("rdk,rdk->r", self.gradient, self.gradient))
        return norm / np.maximum(self.scale, np.finfo(np.float64).tiny)


@dataclass
class _Race:
    objective: ObjectiveLike
    preconditioner: Array | None
    max_iter: int
    callback: Callable[[Progress], None] | None = None
    rounds: int = 0
    history: list[tuple[NDArray[np.intp], Array]] = field(default_factory=list)

    def _scaled(self, G: Array) -> Array:
        return G if self.preconditioner is None else np.matmul(self.preconditioner, G)

    def line_up(self, V: Array) -> _Field:
        n, d, k = V.shape
        state = self.objective.evaluate(V)
        gradient = tangent(V, state.gradient)
        direction = -tangent(V, self._scaled(gradient))
        norm = np.sqrt(np.einsum("rdk,rdk->r", direction, direction))
        return _Field(
            start=np.arange(n),
            V=V,
            value=state.value,
            gradient=gradient,
            scale=state.scale,
            direction=direction,
            slope=np.einsum("rdk,rdk->r", direction, gradient),
            step=0.1 / np.maximum(norm, np.finfo(np.float64).tiny),
            iterations=np.zeros(n, dtype=np.intp),
            mark=state.value.copy(),
            S=np.zeros((n, MEMORY, d * k)),
            Y=np.zeros((n, MEMORY, d * k)),
            PY=np.zeros((n, MEMORY, d * k)),
            gamma=np.ones(n),
            known_pairs=np.zeros(n, dtype=np.intp),
        )

    def advance(self, field: _Field) -> None:
        """One batched evaluation: each start either takes its trial step or shortens it."""
        move = field.step[:, None, None] * field.direction
        V = orthonormalize(field.V + move)
        trial = self.objective.evaluate(V)
        gradient = tangent(V, trial.gradient)
        wanted = field.value + SUFFICIENT_DECREASE * field.step * field.slope
        noise = ROUNDING * (np.abs(field.value) + field.scale)
        # Near the optimum f no longer resolves the decrease, the slope still does: accept a step that stays level
        # within rounding and does not overshoot (the approximate Wolfe condition of Hager and Zhang).
        new_slope = np.einsum("rdk,rdk->r", gradient, tangent(V, field.direction))
        level = (trial.value <= field.value + noise) & (new_slope <= 0.8 * np.abs(field.slope))
        taken = (trial.value <= wanted) | level
        refused = ~taken
        if refused.any():
            predicted = field.step[refused] * field.slope[refused]
            excess = 2.0 * (trial.value[refused] - field.value[refused] - predicted)
            parabola = np.divide(-predicted, excess, out=np.full_like(excess, 0.1), where=excess > 0)
            field.step[refused] *= np.clip(parabola, 0.1, 0.5)
        if taken.any():
            self._take(field, taken, V[taken], trial, gradient[taken], move[taken])

    def _take(
        self,
        field: _Field,
        taken: NDArray[np.bool_],
        V: Array,
        trial: Evaluated,
        gradient: Array,
        move: Array,
    ) -> None:
        n, d, k = V.shape
        s = tangent(V, move).reshape(n, d * k)
        change = gradient - tangent(V, field.gradient[taken])
        y = change.reshape(n, d * k)
        sy = np.einsum("rn,rn->r", s, y)
        Py = tangent(V, self._scaled(change)).reshape(n, d * k)
        yPy = np.einsum("rn,rn->r", y, Py)
        # A pair of negative curvature would make the model indefinite; it is left out, the others stay.
        usable = sy > 1e-10 * np.sqrt(np.einsum("rn,rn->r", s, s) * np.einsum("rn,rn->r", y, y))
        rows = np.flatnonzero(taken)
        learn = rows[usable]
        for memory, newest in ((field.S, s), (field.Y, y), (field.PY, Py)):
            memory[learn, :-1] = memory[learn, 1:]
            memory[learn, -1] = newest[usable]
        field.gamma[learn] = sy[usable] / yPy[usable]
        field.known_pairs[learn] = np.minimum(field.known_pairs[learn] + 1, MEMORY)
        field.V[taken], field.gradient[taken] = V, gradient
        field.value[taken], field.scale[taken] = trial.value[taken], trial.scale[taken]
        field.iterations[taken] += 1
        direction = tangent(V, self._quasi_newton(field, rows, gradient))
        slope = np.einsum("rdk,rdk->r", direction, gradient)
        uphill = slope >= 0
        if uphill.any():
            direction[uphill] = -tangent(V[uphill], self._scaled(gradient[uphill]))
            slope[uphill] = np.einsum("rdk,rdk->r", direction[uphill], gradient[uphill])
            field.known_pairs[rows[uphill]] = 0
            for memory in (field.S, field.Y, field.PY):
                memory[rows[uphill]] = 0.0
        length = np.sqrt(np.einsum("rdk,rdk->r", direction, direction))
        # A step longer than one radian has no meaning on the manifold.
        field.step[taken] = 1.0 / np.maximum(length, 1.0)
        field.direction[taken], field.slope[taken] = direction, slope

    def _quasi_newton(self, field: _Field, rows: NDArray[np.intp], gradient: Array) -> Array:
        """−Hg by the compact form of L-BFGS (Byrd, Nocedal, Schnabel 1994), one small solve for all starts."""
        shape = gradient.shape
        g = gradient.reshape(len(rows), -1, 1)
        everyone = len(rows) == len(field.start)
        S, Y, PY = (m if everyone else m[rows] for m in (field.S, field.Y, field.PY))
        gamma = field.gamma[rows][:, None, None]
        SY = np.matmul(S, Y.transpose(0, 2, 1))
        diagonal = np.einsum("rii->ri", SY)
        # Slots not filled yet hold zeros; a unit pivot keeps the triangle solvable and multiplies nothing.
        R = np.triu(SY) + np.eye(MEMORY) * (diagonal == 0)[:, :, None]
        w = np.linalg.solve(R, np.matmul(S, g))
        inner = diagonal[:, :, None] * w + gamma * (
            np.matmul(Y, np.matmul(PY.transpose(0, 2, 1), w)) - np.matmul(PY, g)
        )
        v = np.linalg.solve(R.transpose(0, 2, 1), inner)
        base = self._scaled(gradient).reshape(g.shape)
        result = gamma * base + np.matmul(S.transpose(0, 2, 1), v) - gamma * np.matmul(PY.transpose(0, 2, 1), w)
        return -result.reshape(shape)

    def run(self, field: _Field, tol: float, *, compete: bool = True) -> list[tuple[str, _Field]]:
        """Let the field run until every start has left; returns each with its outcome."""
        left: list[tuple[str, _Field]] = []

        def leave(rows: NDArray[np.bool_], outcome: str) -> None:
            nonlocal field
            for row in np.flatnonzero(rows):
                left.append((outcome, field.keep(np.arange(len(field.start)) == row)))
            field = field.keep(~rows)

        leave(~np.isfinite(field.value), "gave up")
        leave(field.relative_gradient() <= tol, "converged")
        while len(field.start):
            self.advance(field)
            self.rounds += 1
            self.history.append((field.start.copy(), field.value.copy()))
            best = min([float(field.value.min())] + [float(one.value[0]) for _, one in left])
            if self.callback is not None:
                self.callback(Progress(self.rounds, len(field.start), best))
            leave(field.relative_gradient() <= tol, "converged")
            # A step this short moves no digit of V: rounding, not the objective, is what is left.
            leave(
                field.step * np.sqrt(np.einsum("rdk,rdk->r", field.direction, field.direction)) < 1e-15,
                "exhausted",
            )
            leave(field.iterations >= self.max_iter, "stopped")
            if compete and self.rounds % REVIEW == 0 and len(field.start):
                leave(self._joined(field, [one for outcome, one in left if outcome == "converged"]), "joined")
                leave(self._hopeless(field, best), "gave up")
        return left

    def finish(self, one: _Field, tol: float) -> _Field:
        """One start brought to `tol`: Newton where the tangent space is small, then whatever L-BFGS still can do."""
        if one.iterations[0] >= self.max_iter:
            return one
        return self.run(newton(self.objective, one, tol), tol, compete=False)[0][1]

    @staticmethod
    def _joined(field: _Field, arrived: list[_Field]) -> NDArray[np.bool_]:
        """Running starts that lie on an arrived one, or on a running one that is further down."""
        among = squared_distances(field.V, field.V) < JOINED
        order = np.argsort(np.argsort(field.value, kind="stable"), kind="stable")
        joined = np.any(among & (order[None, :] < order[:, None]), axis=1)
        if arrived:
            joined |= np.any(squared_distances(field.V, np.concatenate([one.V for one in arrived])) < JOINED, axis=1)
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
    callback: Callable[[Progress], None] | None = None,
) -> Solution:
    """Run all `starts` (R, d, k) and return the distinct optima they end in, ranked by objective.

    `tol` bounds ‖tangent gradient‖ relative to the gradient's own terms; `max_iter` bounds the iterations of a start.

    >>> solution = minimize(objective, starts)                # doctest: +SKIP
    >>> solution.stop_reason                                  # doctest: +SKIP
    'Converged: 8 of 10 starts reached the best objective, 6387.39, ...'
    """
    race = _Race(objective, preconditioner, max_iter, callback)
    _, d, k = starts.shape
    sketch = max(tol, SKETCH) if (d - k) * k <= NEWTON_LIMIT else tol
    left = race.run(race.line_up(orthonormalize(starts)), sketch)
    outcomes = [""] * len(starts)
    for outcome, one in left:
        outcomes[int(one.start[0])] = outcome
    # A start that gave up stands nowhere; it only counts where nobody arrived.
    arrived = [one for outcome, one in left if outcome not in ("joined", "gave up")] or [_lowest(left)]
    if sketch > tol:
        arrived = [race.finish(one, tol) for one in arrived]
    arrived.sort(key=lambda one: float(one.value[0]))
    arrived[0] = race.finish(arrived[0], tol * POLISH)
    joined = [one for outcome, one in left if outcome == "joined"]
    optima = _distinct(arrived, arrived + joined, tol)
    iterations = int(arrived[0].iterations[0])
    reason = _stop_reason(optima[0], outcomes, iterations, tol)
    return Solution(optima, iterations, race.rounds + 1, reason, _trace(race.history, outcomes))


def _lowest(left: list[tuple[str, _Field]]) -> _Field:
    return min((one for _, one in left), key=lambda one: float(one.value[0]))


def newton(objective: ObjectiveLike, one: _Field, tol: float, *, max_steps: int = 20) -> _Field:
    """Newton steps on one start, with the Hessian from differences of the gradient in one batch of evaluations.

    Where L-BFGS needs hundreds of iterations for the last digits of a badly conditioned problem (320 on Image
    Segmentation), a handful of these do. Directions of negative curvature count with their absolute value, so that
    a saddle is left; the step is halved until f or, at the level of rounding, the gradient goes down.
    """
    _, d, k = one.V.shape
    if (d - k) * k > NEWTON_LIMIT:
        return one
    for _ in range(max_steps):
        if one.relative_gradient()[0] <= tol:
            break
        V = one.V[0]
        complement = np.linalg.svd(V, full_matrices=True)[0][:, k:]
        move = complement @ _newton_step(objective, one, complement)
        move /= max(1.0, float(np.linalg.norm(move)) / LONGEST_NEWTON_STEP)
        for length in (1.0, 0.5, 0.25, 0.125):
            trial_V = orthonormalize((V + length * move)[None])
            trial = objective.evaluate(trial_V)
            gradient = tangent(trial_V, trial.gradient)
            moved = replace(one, V=trial_V, value=trial.value, gradient=gradient, scale=trial.scale)
            noise = ROUNDING * (abs(float(one.value[0])) + float(one.scale[0]))
            calmer = moved.relative_gradient()[0] < 0.5 * one.relative_gradient()[0]
            if moved.value[0] < one.value[0] - noise or (calmer and moved.value[0] <= one.value[0] + noise):
                break
        else:
            break
        one = moved
    return one


def _newton_step(objective: ObjectiveLike, one: _Field, complement: Array) -> Array:
    """−|H|⁻¹g in the coordinates of `complement`, a basis (d, d−k) of the directions that leave the span of V."""
    V = one.V[0]
    d, k = V.shape
    width = 1e-5
    directions = np.einsum("di,jk->ijdk", complement, np.eye(k)).reshape(-1, d, k)
    frames = np.concatenate([orthonormalize(V + sign * width * directions) for sign in (1.0, -1.0)])
    slopes = np.matmul(complement.T, tangent(frames, objective.evaluate(frames).gradient))
    forward, backward = slopes.reshape(2, len(directions), len(directions))
    hessian = (forward - backward) / (2 * width)
    curvatures, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    curvatures = np.abs(curvatures)
    # Flat directions (Z does not vary there) would divide noise by noise; they are left where they are.
    curved = curvatures > 1e-9 * curvatures.max()
    slope = (complement.T @ one.gradient[0]).reshape(-1)
    weights = np.divide(vectors.T @ slope, curvatures, out=np.zeros_like(slope), where=curved)
    return -(vectors @ weights).reshape(-1, k)


def _distinct(arrived: list[_Field], everyone: list[_Field], tol: float) -> list[LocalOptimum]:
    """One entry per subspace, best first; every start counts for the subspace nearest to where it ended."""
    kept: list[_Field] = []
    for one in arrived:
        if not kept or squared_distances(one.V, np.concatenate([other.V for other in kept])).min() >= JOINED:
            kept.append(one)
    ends = np.concatenate([one.V for one in everyone])
    frames = np.concatenate([one.V for one in kept])
    distances = squared_distances(ends, frames)
    nearest = np.where(distances.min(axis=1) < 10 * JOINED, distances.argmin(axis=1), -1)
    optima = []
    for i, one in enumerate(kept):
        gradient = float(one.relative_gradient()[0])
        optima.append(
            LocalOptimum(one.V[0], float(one.value[0]), max(1, int((nearest == i).sum())), gradient <= tol, gradient)
        )
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
