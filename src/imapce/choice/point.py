"""The optima of equation 2 at one α and μ: what a point of a path is, and all there is where both are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from imapce.choice.domain import Domain
from imapce.common.threads import one_thread, threads_for
from imapce.priors.problem import FlatRowsError, Problem
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.search.objective import Objective, paper_mu
from imapce.search.race import minimize
from imapce.search.solution import Progress, Solution
from imapce.search.starts import contrastive_axes, starting_frames

Array = NDArray[np.float64]
Callback = Callable[[Progress], None] | None


def solve_at(
    problem: Problem,
    alpha: float,
    mu: float | Literal["paper"],
    *,
    seed: int,
    n_starts: int = 10,
    tol: float = 1e-6,
    max_iter: int = 500,
    callback: Callback = None,
) -> Solution:
    """The optima of a problem at a given α and μ, or at the paper's μ for that α; best objective first."""
    domain = Domain.whole(problem)
    M = domain.contrast(alpha)
    axes = contrastive_axes(M, problem.n_components)
    mu = paper_mu(M, domain.X, axes) if isinstance(mu, str) else float(mu)
    # Without kurtosis the closed form is the answer and no other start can add to it.
    starts = starting_frames(axes, domain.Z, 1 if mu == 0 else n_starts, np.random.default_rng(seed))
    solution = optima_at(M, domain.Z, mu, starts, tol=tol, max_iter=max_iter, callback=callback)
    if not np.isfinite(solution.optima[0].kurtosis):
        raise FlatRowsError.of_views(problem.n_components)
    optima = [replace(one, components=domain.lift(one.V).T, alpha=alpha) for one in solution.optima]
    return replace(solution, optima=optima)


def optima_at(
    M: QuadraticForm,
    Z: StandardizedRows,
    mu: float,
    starts: Array,
    *,
    tol: float,
    max_iter: int,
    polish: bool = True,
    newton: bool = False,
    callback: Callback = None,
) -> Solution:
    """The optima of tr M − tr(VᵀMV) + μ·κ(ZV) that the `starts` (R, d, k) end in, each with its κ."""
    objective = Objective(M, Z, mu)
    # Rows on a card are multiplied there, and what is left for the host is small whatever their number.
    with one_thread() if Z.rows.folded or Z.rows.xp is not np else threads_for(Z.n_rows, Z.n_features):
        solution = minimize(
            objective,
            objective.starts_in_range(starts),
            tol=tol,
            max_iter=max_iter,
            preconditioner=objective.preconditioner(starts.shape[2]),
            newton=newton or Z.rows.folded,
            polish=polish,
            callback=callback,
        )
        kurtoses = objective.kurtosis(np.stack([one.V for one in solution.optima]))
    optima = [replace(one, mu=mu, kurtosis=float(k)) for one, k in zip(solution.optima, kurtoses, strict=True)]
    return replace(solution, optima=optima, n_evaluations=objective.n_evaluations)
