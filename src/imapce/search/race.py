"""Minimise an objective over subspaces from many starts at once: a race of batched Riemannian L-BFGS.

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

from imapce.search.lbfgs import Descent, Field
from imapce.search.newton import SAME_SKETCH, ObjectiveLike, beside_a_better_one, newton_polish
from imapce.search.solution import Optimum, Progress, Solution, Trace, reason_to_stop
from imapce.search.stiefel import squared_distances

Array = NDArray[np.float64]

MAX_REFUSALS = 12
JOINED = 1e-4  # summed squared sines (an angle of about half a degree): two starts in one basin
REVIEW = 5  # rounds between looks at the whole field
PATIENCE = 20  # iterations over which the pace of a start is measured
HOPELESS = 20.0  # a start gives up when its gap to the best exceeds this many times its last PATIENCE iterations' gain
POLISH = 1e-4  # the winner is refined to this fraction of tol, so that engines and threads agree on the subspace
SKETCH = 1e-3  # where Newton follows, the race itself need only tell the basins apart
NEWTON_LIMIT = 128  # tangent dimensions up to which Newton may follow where evaluations are not cheap


@dataclass
class Race(Descent):
    """The starts running against each other; `near` is how close two of them lie to count as one."""

    max_iter: int
    callback: Callable[[Progress], None] | None = None
    near: float = JOINED
    rounds: int = 0
    best: float = np.inf
    history: list[tuple[NDArray[np.intp], Array]] = field(default_factory=list)

    def run(self, field: Field, tol: float, *, compete: bool = True) -> list[tuple[str, Field]]:
        """Let the field run until every start has left; returns each with its outcome."""
        left: list[tuple[str, Field]] = []

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
                leave(hopeless(field, self._best_of(field)), "gave up")
        return left

    def finish(self, ones: list[Field], tol: float, *, newton: bool) -> list[Field]:
        """Starts brought to `tol`, best first: Newton where evaluations are cheap, L-BFGS for what that leaves."""
        stopped = [one for one in ones if one.iterations[0] >= self.max_iter]
        going = [one for one in ones if one.iterations[0] < self.max_iter]
        if going:
            field = Field.stack(going)
            if newton:
                newton_polish(self.objective, field, tol * POLISH)
                field = self.at_rest(field.keep(~beside_a_better_one(field, SAME_SKETCH)))
            going = [one for _, one in self.run(field, tol, compete=False)]
            d, k = field.V.shape[1:]
            if not newton and (d - k) * k <= NEWTON_LIMIT:
                # L-BFGS may stall on the last digits; a few Newton steps are worth their price for one start.
                for one in going:
                    newton_polish(self.objective, one, tol)
        return sorted(going + stopped, key=lambda one: float(one.value[0]))

    def _joined(self, field: Field, arrived: list[Field]) -> NDArray[np.bool_]:
        """Running starts that lie on an arrived one, or on a running one that is further down."""
        joined = beside_a_better_one(field, self.near)
        if arrived:
            joined |= np.any(squared_distances(field.V, np.concatenate([one.V for one in arrived])) < self.near, axis=1)
        return joined

    def _best_of(self, field: Field) -> float | Array:
        """The lowest objective that the starts of a field run against."""
        return self.best


def hopeless(field: Field, best: float | Array) -> NDArray[np.bool_]:
    """Which starts cannot reach the best objective at their present pace; from here on a new one is measured."""
    due = (field.iterations > 0) & (field.iterations % PATIENCE < REVIEW) & (field.mark > field.value)
    behind = due & (field.value - best > HOPELESS * (field.mark - field.value))
    field.mark[due] = field.value[due]
    return behind


def minimize(
    objective: ObjectiveLike,
    starts: Array,
    *,
    tol: float = 1e-6,
    max_iter: int = 500,
    preconditioner: Array | None = None,
    newton: bool = False,
    polish: bool = True,
    callback: Callable[[Progress], None] | None = None,
) -> Solution:
    """Run all `starts` (R, d, k) and return the distinct optima they end in, ranked by objective.

    `tol` bounds ‖tangent gradient‖ relative to the gradient's own terms; `max_iter` bounds the iterations of a start.
    `newton` says that a batch of (d−k)k evaluations is cheap, so that the last digits come from Newton's method.
    `polish` brings the best optimum well beyond `tol`; a caller that only compares optima need not pay for it.

    >>> solution = minimize(objective, starts)                # doctest: +SKIP
    >>> solution.stop_reason                                  # doctest: +SKIP
    'Converged: 8 of 10 starts reached the best objective, 6387.39, ...'
    """
    race = Race(objective, preconditioner, max_iter, callback, SAME_SKETCH if newton else JOINED)
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
            arrived = race.finish(apart(arrived, SAME_SKETCH), tol, newton=True)
        if polish:
            arrived[:1] = race.finish(arrived[:1], max(tol * POLISH, objective.noise), newton=False)
    reached = [one for one in everyone if outcomes[one.start[0]] != "gave up"] or arrived
    optima = optima_of(apart(arrived, race.near), reached, tol, race.near if newton else 10 * JOINED)
    iterations = int(arrived[0].iterations[0])
    reason = reason_to_stop(optima[0], outcomes, iterations=iterations, tol=tol)
    return Solution(optima, iterations, race.rounds + 1, reason, Trace.of_rounds(race.history, outcomes))


def apart(ranked: list[Field], distance: float) -> list[Field]:
    """The first of every group of subspaces that lie within `distance` of each other."""
    kept: list[Field] = []
    for one in ranked:
        if not kept or squared_distances(one.V, np.concatenate([other.V for other in kept])).min() >= distance:
            kept.append(one)
    return kept


def optima_of(distinct: list[Field], reached: list[Field], tol: float, near: float) -> list[Optimum]:
    """The distinct optima; every start that did not give up counts for the one nearest to where it ended."""
    distances = squared_distances(
        np.concatenate([one.V for one in reached]), np.concatenate([one.V for one in distinct])
    )
    nearest = np.where(distances.min(axis=1) < near, distances.argmin(axis=1), -1)
    optima = []
    for i, one in enumerate(distinct):
        gradient = float(one.relative_gradient()[0])
        starts = max(1, int((nearest == i).sum()))
        optima.append(
            Optimum(
                one.V[0].T,
                float(one.value[0]),
                starts=starts,
                relative_gradient=gradient,
                converged=gradient <= tol,
            )
        )
    return optima
