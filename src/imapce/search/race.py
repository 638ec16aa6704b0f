"""Minimise an objective over subspaces from many starts at once: a race of batched Riemannian L-BFGS.

Each round evaluates every running start in one call, so ten starts read the data as often as the slowest one does.
A start leaves the race when its gradient is small, when it comes to lie on another start ("joined"), or when at its
present pace it cannot reach the best one ("gave up"). What remains is polished, ranked and returned.

`minimize` searches one objective to its last digit. `sketch` searches several that differ in μ alone side by side, one
pass over the rows for all of them, and only so far that optima can be compared; a start runs against those of its own
μ, so what comes out is what a race for each μ would give.

The race knows no formula: it sees `evaluate(V) -> value, gradient, scale` and a preconditioner. It leaves a `Solution`
behind: the distinct optima, how the starts ran, and in words why it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np

from imapce.common.arrays import Array, Codes, Mask
from imapce.common.records import Comparable
from imapce.search.descent import (
    SAME_SKETCH,
    Descent,
    Field,
    ObjectiveLike,
    beside_a_better_one,
    newton_polish,
    squared_distances,
)
from imapce.search.objective import Objective


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each round; raising from the callback cancels the fit."""

    round: int
    running: int
    best: float


@dataclass(frozen=True, eq=False)
class Trace(Comparable):
    """The race as it went: objective of every start after every round (NaN once it has left), and how each ended."""

    evaluations: list[int]
    objectives: Array
    outcomes: list[str]

    @classmethod
    def of_rounds(cls, rounds: Sequence[tuple[Codes, Array]], outcomes: list[str]) -> Trace:
        """From the starts still running in each round and their values; the first evaluation is where they began."""
        objectives = np.full((len(rounds), len(outcomes)), np.nan)
        for row, (start, value) in enumerate(rounds):
            objectives[row, start] = value
        return cls(list(range(2, len(rounds) + 2)), objectives, outcomes)


@dataclass(frozen=True, eq=False)
class Optimum(Comparable):
    """A distinct view: its axes (k, d), where it was found (α, μ), f, κ, how many starts reached it, and its scores.

    α = ∞ says that what is known was explained away, or nothing was: no rows were weighed. `seen` is the share of rows
    whose nearest in the view tell their cluster, and `kept` the share of their neighbourhoods that the view keeps,
    beyond chance (`choice/scores.py`). A number that nobody asked for is NaN: a search at one setting scores nothing,
    and `minimize` itself does not know α.

    >>> Optimum(np.eye(2, 5), objective=3.0, separation=0.5, leakage=0.2).score
    0.4
    >>> Optimum(np.eye(2, 5), objective=3.0)
    Optimum(objective=3, starts=1, 2 axes of 5 columns)
    """

    components: Array
    objective: float
    kurtosis: float = np.nan
    _: KW_ONLY
    starts: int = 1
    alpha: float = np.nan
    mu: float = np.nan
    separation: float = np.nan
    leakage: float = np.nan
    seen: float = np.nan
    kept: float = np.nan
    relative_gradient: float = np.nan
    converged: bool = True

    def __repr__(self) -> str:
        names = ("alpha", "mu", "objective", "kurtosis", "separation", "leakage", "seen", "kept")
        values = {name: getattr(self, name) for name in names}
        numbers = ", ".join(f"{name}={value:.4g}" for name, value in values.items() if not np.isnan(value))
        k, d = self.components.shape
        return f"Optimum({numbers}, starts={self.starts}, {k} axes of {d} columns)"

    @property
    def compared_by(self) -> str | None:
        """The score that it was compared with others by: "seen", where there is one cluster "kept", "score" where
        separation decides; None where α and μ were given, and nothing was compared.

        >>> Optimum(np.eye(2, 5), objective=3.0, seen=0.9, kept=0.4).compared_by
        'seen'
        """
        return next((by for by in ("seen", "kept", "score") if np.isfinite(getattr(self, by))), None)

    @property
    def V(self) -> Array:
        """The frame (d, k), axes as columns, as the paper writes it."""
        return self.components.T

    @property
    def score(self) -> float:
        """separation·(1 − leakage)₊: the split counts as far as the known does not explain the view."""
        return self.separation * (max(0.0, 1.0 - self.leakage) if self.separation > 0 else 1.0)


class Views(list[Optimum]):
    """A list of optima that prints on one line, however many there are.

    >>> Views([Optimum(np.eye(2, 5), objective=3.0)] * 2)
    [2 views, the first Optimum(objective=3, starts=1, 2 axes of 5 columns)]
    """

    def __repr__(self) -> str:
        return f"[{len(self)} views, the first {self[0]!r}]" if len(self) > 1 else super().__repr__()


@dataclass(frozen=True, eq=False)
class Solution(Comparable):
    """All distinct optima, best first, with the reason for stopping in words; `path` holds every view tried before."""

    optima: list[Optimum]
    n_iterations: int
    n_evaluations: int
    stop_reason: str
    trace: Trace
    path: tuple[Optimum, ...] = ()

    @property
    def converged(self) -> bool:
        return self.optima[0].converged


def reason_to_stop(best: Optimum, outcomes: list[str], *, iterations: int, tol: float) -> str:
    """How the race ended, in one sentence."""
    others = [f"{outcomes.count(word)} {word}" for word in ("joined", "gave up", "stopped") if word in outcomes]
    field = f"{best.starts} of {len(outcomes)} starts reached the best objective, {best.objective:.8g}"
    aside = f" ({', '.join(others)})" if others else ""
    end = f"relative gradient {best.relative_gradient:.1e} after {iterations} iterations."
    if best.converged:
        return f"Converged: {field}{aside}; {end}"
    return f"Not converged: {field}{aside}; {end} Raise max_iter or tol (now {tol:g})."


Callback = Callable[[Progress], None] | None

MAX_REFUSALS = 12
JOINED = 1e-4  # summed squared sines (an angle of about half a degree): two starts in one basin
REVIEW = 5  # rounds between looks at the whole field
PATIENCE = 20  # iterations over which the pace of a start is measured
HOPELESS = 20.0  # a start gives up when its gap to the best exceeds this many times its last PATIENCE iterations' gain
POLISH = 1e-4  # the winner is refined to this fraction of tol, so that engines and threads agree on the subspace
CLOSE = 1e-2  # the same for optima that are listed after it: at tol, gradients relative to those of f reached 2e-4
SKETCH = 1e-3  # where Newton follows, the race itself need only tell the basins apart
NEWTON_LIMIT = 128  # tangent dimensions up to which Newton may follow where evaluations are not cheap


@dataclass
class Race:
    """Starts running against each other, those of one objective each: `of` (R,) is the number of a start's objective,
    and `near` how close two of them lie to count as one.
    """

    descent: Descent
    of: Codes
    max_iter: int
    callback: Callback
    near: float = JOINED
    rounds: int = 0
    history: list[tuple[Codes, Array]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.best = np.full(self.of.max() + 1, np.inf)

    def run(self, field: Field, tol: float, *, compete: bool = True) -> list[tuple[str, Field]]:
        """Let the field run until every start has left; returns each with its outcome."""
        left: list[tuple[str, Field]] = []

        def leave(rows: Mask, outcome: str) -> None:
            nonlocal field
            if not rows.any():
                return
            for row in np.flatnonzero(rows):
                left.append((outcome, field.keep(np.arange(len(field.start)) == row)))
            field = field.keep(~rows)

        leave(~np.isfinite(field.value), "gave up")
        leave(field.relative_gradient() <= tol, "converged")
        while len(field.start):
            self.descent.advance(field)
            self.rounds += 1
            self.history.append((field.start.copy(), field.value.copy()))
            np.minimum.at(self.best, self.of[field.start], field.value)
            if self.callback is not None:
                self.callback(Progress(self.rounds, len(field.start), float(self.best.min())))
            leave(field.relative_gradient() <= tol, "converged")
            # Shortened this often a step goes down wherever f is smooth; what is left to chase is rounding.
            leave(field.refusals >= MAX_REFUSALS, "exhausted")
            leave(field.iterations >= self.max_iter, "stopped")
            if compete and self.rounds % REVIEW == 0 and len(field.start):
                leave(self._joined(field, [start for outcome, start in left if outcome == "converged"]), "joined")
                leave(hopeless(field, self.best[self.of[field.start]]), "gave up")
        return left

    def _joined(self, field: Field, arrived: list[Field]) -> Mask:
        """Running starts that lie on an arrived one of their objective, or on a running one that is further down."""
        of = self.of[field.start]
        joined = beside_a_better_one(field, self.near, of[:, None] == of)
        if arrived:
            same = of[:, None] == self.of[[start.start[0] for start in arrived]]
            joined |= np.any(same & (squared_distances(field.V, _frames(arrived)) < self.near), axis=1)
        return joined

    def finish(self, objective: ObjectiveLike, starts: list[Field], tol: float, *, newton: bool) -> list[Field]:
        """Starts brought to `tol`, best first: Newton where evaluations are cheap, L-BFGS for what that leaves."""
        stopped = [start for start in starts if start.iterations[0] >= self.max_iter]
        going = [start for start in starts if start.iterations[0] < self.max_iter]
        if going:
            field = Field.stack(going)
            if newton:
                newton_polish(objective, field, tol * POLISH)
                field = self.descent.at_rest(field.keep(~beside_a_better_one(field, SAME_SKETCH)))
            going = [start for _, start in self.run(field, tol, compete=False)]
            d, k = field.V.shape[1:]
            if not newton and (d - k) * k <= NEWTON_LIMIT:
                # L-BFGS may stall on the last digits; a few Newton steps are worth their price for one start.
                for start in going:
                    newton_polish(objective, start, tol)
        return _rank(going + stopped)


def hopeless(field: Field, best: Array) -> Mask:
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
    callback: Callback = None,
) -> Solution:
    """Run all `starts` (R, d, k) and return the distinct optima they end in, ranked by objective.

    `tol` bounds ‖tangent gradient‖ relative to the gradient's own terms; `max_iter` bounds the iterations of a start.
    `newton` says that a batch of (d−k)k evaluations is cheap, so that the last digits come from Newton's method.
    `polish` brings the best optimum well beyond `tol`; a caller that only compares optima need not pay for it.
    """
    precondition = None if preconditioner is None else (lambda G, _: np.matmul(preconditioner, G))
    descent = Descent(lambda V, _: objective.evaluate(V), precondition, objective.noise)
    race = Race(descent, np.zeros(len(starts), dtype=np.intp), max_iter, callback, SAME_SKETCH if newton else JOINED)
    left = race.run(descent.line_up(np.linalg.qr(starts)[0]), max(tol, SKETCH) if newton else tol)
    arrived, reached = _arrived(left)
    # Where every start is flat there is nothing to refine; the caller is told by an infinite objective.
    if np.isfinite(arrived[0].value[0]):
        if newton:
            arrived = race.finish(objective, apart(arrived, SAME_SKETCH), tol, newton=True)
        if polish:
            arrived[:1] = race.finish(objective, arrived[:1], max(tol * POLISH, objective.noise), newton=False)
    optima = optima_of(apart(arrived, race.near), reached or arrived, tol, race.near if newton else 10 * JOINED)
    outcomes = _outcomes(left)
    iterations = int(arrived[0].iterations[0])
    reason = reason_to_stop(optima[0], outcomes, iterations=iterations, tol=tol)
    return Solution(optima, iterations, race.rounds + 1, reason, Trace.of_rounds(race.history, outcomes))


def sketch(
    objectives: Sequence[Objective], starts: Array, *, tol: float, max_iter: int, callback: Callback = None
) -> tuple[list[list[Optimum]], Trace]:
    """The optima that the `starts` (R, d, k) end in, for each of the `objectives`, which differ in μ ≠ 0 alone; best
    objective first, and no further than to `tol`.
    """
    of = np.repeat(np.arange(len(objectives)), len(starts))
    race = _race_of(objectives, of, starts.shape[2], max_iter, callback)
    frames = np.linalg.qr(objectives[0].within_range(starts))[0]
    left = race.run(race.descent.line_up(np.tile(frames, (len(objectives), 1, 1))), tol)
    found = []
    for number, objective in enumerate(objectives):
        arrived, reached = _arrived([(outcome, start) for outcome, start in left if of[start.start[0]] == number])
        optima = optima_of(apart(arrived, race.near), reached or arrived, tol, 10 * JOINED)
        found.append([replace(optimum, mu=objective.mu) for optimum in optima])
    return found, Trace.of_rounds(race.history, _outcomes(left))


def converge(
    objectives: Sequence[Objective], frames: Array, *, tol: float, max_iter: int, callback: Callback = None
) -> list[Optimum]:
    """Return the optimum that the frame (R, d, k) of each objective ends in; the objectives differ in μ ≠ 0 alone.

    One pass over the rows evaluates all frames, which takes little longer than a pass for one.
    """
    race = _race_of(objectives, np.arange(len(objectives)), frames.shape[2], max_iter, callback)
    tol = max(tol * CLOSE, race.descent.noise)
    left = race.run(race.descent.line_up(frames), tol, compete=False)
    ended = sorted((start for _, start in left), key=lambda start: int(start.start[0]))
    return [
        replace(optima_of([start], [start], tol, JOINED)[0], mu=objective.mu)
        for start, objective in zip(ended, objectives, strict=True)
    ]


def _race_of(objectives: Sequence[Objective], of: Codes, k: int, max_iter: int, callback: Callback) -> Race:
    """Return the race of starts with the objectives `of` (R,), which differ in μ ≠ 0 alone."""
    first, mus = objectives[0], np.array([objective.mu for objective in objectives])[of]
    scales = [scale for scale in (objective.preconditioner(k) for objective in objectives) if scale is not None]
    stack = np.stack(scales) if scales else None
    precondition = None if stack is None else (lambda G, start: np.matmul(stack[of[start]], G))
    descent = Descent(lambda V, start: first.evaluate(V, mus[start]), precondition, first.noise)
    return Race(descent, of, max_iter, callback)


def _outcomes(left: list[tuple[str, Field]]) -> list[str]:
    """How each start ended, by its number."""
    return [outcome for _, outcome in sorted((int(start.start[0]), outcome) for outcome, start in left)]


def _arrived(left: list[tuple[str, Field]]) -> tuple[list[Field], list[Field]]:
    """The starts that stand somewhere of their own, and those that joined one of them too; best first.

    A start that gave up stands nowhere; it only counts where nobody arrived.
    """
    reached = _rank([start for outcome, start in left if outcome != "gave up"])
    arrived = _rank([start for outcome, start in left if outcome not in ("joined", "gave up")])
    return arrived or _rank([start for _, start in left])[:1], reached


def _rank(starts: list[Field]) -> list[Field]:
    return sorted(starts, key=lambda start: float(start.value[0]))


def _frames(starts: list[Field]) -> Array:
    return np.concatenate([start.V for start in starts])


def apart(ranked: list[Field], distance: float) -> list[Field]:
    """The first of every group of subspaces that lie within `distance` of each other."""
    kept: list[Field] = []
    for start in ranked:
        if not kept or squared_distances(start.V, _frames(kept)).min() >= distance:
            kept.append(start)
    return kept


def optima_of(distinct: list[Field], reached: list[Field], tol: float, near: float) -> list[Optimum]:
    """The distinct optima; every start that did not give up counts for the one nearest to where it ended."""
    distances = squared_distances(_frames(reached), _frames(distinct))
    nearest = np.where(distances.min(axis=1) < near, distances.argmin(axis=1), -1)
    optima = []
    for i, start in enumerate(distinct):
        gradient = float(start.relative_gradient()[0])
        optima.append(
            Optimum(
                start.V[0].T,
                float(start.value[0]),
                float(start.kurtosis[0]),
                starts=max(1, int((nearest == i).sum())),
                relative_gradient=gradient,
                converged=gradient <= tol,
            )
        )
    return optima
