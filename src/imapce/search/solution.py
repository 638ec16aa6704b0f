"""TODO-DOC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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
