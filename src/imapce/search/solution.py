"""What a search leaves behind: the distinct optima, how the starts ran, and in words why it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from imapce.common.arrays import Array, Codes
from imapce.common.records import Comparable


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
    beyond chance (`choice/seen.py`). A number that nobody asked for is NaN: a search at one setting scores nothing, and
    `minimize` itself does not know α.

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
