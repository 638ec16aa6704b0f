"""The same starts at several μ, searched side by side: one pass over the rows, and one round of the race, for all.

Every start runs against those of its own μ alone, so what comes out is what a race for each μ would give. Of small
tables a round costs what calling NumPy does, whatever the number of starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from imapce.search.lbfgs import Field
from imapce.search.newton import Evaluated
from imapce.search.objective import Objective
from imapce.search.race import JOINED, Race, apart, optima_of
from imapce.search.solution import Optimum, Progress, Trace

Array = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass
class SideBySide(Race):
    """A race of several μ at once: `of` (R,) is the number of each start's objective among `objectives`."""

    of: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    objectives: Sequence[Objective] = ()

    def __post_init__(self) -> None:
        self._mus = np.array([one.mu for one in self.objectives])
        self._bests = np.full(len(self.objectives), np.inf)

    def _evaluated(self, V: Array, start: Ints) -> Evaluated:
        return self.objectives[0].evaluate(V, self._mus[self.of[start]])

    def _scaled(self, G: Array, start: Ints) -> Array:
        return G if self.preconditioner is None else np.matmul(self.preconditioner[self.of[start]], G)

    def advance(self, field: Field) -> None:
        super().advance(field)
        np.minimum.at(self._bests, self.of[field.start], field.value)

    def _best_of(self, field: Field) -> Array:
        return self._bests[self.of[field.start]]

    def _joined(self, field: Field, arrived: list[Field]) -> NDArray[np.bool_]:
        joined = np.zeros(len(field.start), dtype=bool)
        of = self.of[field.start]
        for number in np.unique(of):
            like = [one for one in arrived if self.of[one.start[0]] == number]
            joined[of == number] = super()._joined(field.keep(of == number), like)
        return joined


def sketched(
    objectives: Sequence[Objective],
    starts: Array,
    *,
    tol: float,
    max_iter: int,
    callback: Callable[[Progress], None] | None = None,
) -> tuple[list[list[Optimum]], Trace]:
    """The optima that the `starts` (R, d, k) end in, for each of the `objectives`, which differ in μ ≠ 0 alone; best
    objective first, and no further than to `tol`.

    >>> from imapce.rows.dense import DenseRows
    >>> from imapce.rows.standardized import StandardizedRows
    >>> from imapce.search.stiefel import random_frames
    >>> rng = np.random.default_rng(0)
    >>> Z = StandardizedRows(DenseRows(rng.normal(size=(100, 4))))
    >>> both = [Objective(Z.second_moment, Z, mu) for mu in (1.0, 100.0)]
    >>> found, _ = sketched(both, random_frames(3, 4, 2, rng), tol=1e-3, max_iter=100)
    >>> [one[0].mu for one in found], all(one[0].converged for one in found)
    ([1.0, 100.0], True)
    """
    n_starts, _, k = starts.shape
    of = np.repeat(np.arange(len(objectives)), n_starts)
    scales = [one for one in (objective.preconditioner(k) for objective in objectives) if one is not None]
    race = SideBySide(
        objectives[0],
        np.stack(scales) if scales else None,
        max_iter,
        callback,
        JOINED,
        of=of,
        objectives=objectives,
    )
    frames = np.linalg.qr(objectives[0].within_range(starts))[0]
    left = race.run(race.line_up(np.tile(frames, (len(objectives), 1, 1))), tol)
    outcomes = [""] * len(of)
    for outcome, one in left:
        outcomes[int(one.start[0])] = outcome
    everyone = sorted((one for _, one in left), key=lambda one: float(one.value[0]))
    found = []
    for number, objective in enumerate(objectives):
        here = [one for one in everyone if of[one.start[0]] == number]
        arrived = [one for one in here if outcomes[one.start[0]] not in ("joined", "gave up")] or here[:1]
        reached = [one for one in here if outcomes[one.start[0]] != "gave up"] or arrived
        optima = optima_of(apart(arrived, race.near), reached, tol, 10 * JOINED)
        kurtoses = objective.kurtosis(np.stack([one.V for one in optima]))
        found.append(
            [replace(one, mu=objective.mu, kurtosis=float(kappa)) for one, kappa in zip(optima, kurtoses, strict=True)]
        )
    return found, Trace.of_rounds(race.history, outcomes)
