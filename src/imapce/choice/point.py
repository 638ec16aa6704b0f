"""The optima of equation 2 at one α and μ, and the coordinates W in which they are searched.

    V = lift(W),   W (q, k) orthonormal;      f(V) = tr M − tr(VᵀMV) + μ·κ(ZV)  with M, Z in the coordinates of W

Tables with at most 64 columns and 20,000 rows are searched in all directions and rows, and the result is an optimum of
equation 2. Otherwise, the search uses the leading principal axes of a sample, with at least 15 rows for each axis,
because chance lowers the kurtosis if there are many directions (on 784 pixels deeper optima separated worse).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from imapce.clusters.axes import noise_free_axes
from imapce.common.arrays import Array
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.common.work import one_thread, threads_for
from imapce.priors.problem import FlatRowsError, Problem
from imapce.rows.open import open_rows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.rows.subspace import RowsWithin, Subspace
from imapce.search.descent import squared_distances, with_fixed_signs
from imapce.search.objective import Objective, paper_mu
from imapce.search.race import Callback, Optimum, Solution, minimize
from imapce.search.starts import WHITENED_AXES, contrastive_axes, starting_frames


@dataclass(frozen=True)
class Domain:
    """The terms of the objective in the coordinates of a search; `priors` are the weight and YᵀY of each prior."""

    Z: StandardizedRows
    X: QuadraticForm
    priors: list[tuple[float, QuadraticForm]]
    lift: Callable[[Array], Array]
    is_reduced: bool

    @classmethod
    def from_problem(cls, problem: Problem, settings: ClusterSettings = SETTINGS.clusters) -> Domain:
        """Return all directions of a small problem, otherwise the leading axes of a sample."""
        Z = problem.Z
        if Z.n_rows <= settings.many_rows and int(Z.informative.sum()) <= WHITENED_AXES:
            return cls.unreduced(problem)
        basis = search_axes(problem, settings)
        rows = Z.project(basis, Z.content_mask(settings.many_rows))

        def restrict(form: QuadraticForm) -> QuadraticForm:
            inner = basis.T @ (form @ basis)
            return QuadraticForm.of_matrix((inner + inner.T) / 2)

        return cls(
            StandardizedRows(open_rows(rows, n_components=problem.n_components), standardize=False),
            restrict(problem.X.second_moment),
            [(weight, restrict(form)) for weight, form in problem.Y.second_moments],
            lambda W: basis @ W,
            is_reduced=True,
        )

    @classmethod
    def unreduced(cls, problem: Problem) -> Domain:
        """Return all rows, and all directions in which no erased prior is correlated with a view."""
        X, priors = problem.X.second_moment, problem.Y.second_moments
        if problem.Y.erased is None:
            # Constant columns, such as covariates adjusted for themselves, would have a weight of rounding errors.
            varies = problem.Z.informative[:, None]
            return cls(problem.Z, X, priors, lambda W: W * varies, is_reduced=False)
        inside = problem.directions_left()
        priors = [(weight, inside.form(form)) for weight, form in priors]
        return cls(RowsWithin(problem.Z, inside), inside.form(X), priors, inside.lift, is_reduced=False)

    def contrast(self, alpha: float) -> QuadraticForm:
        """Return M = XᵀX − α Σ wⱼYⱼᵀYⱼ."""
        return QuadraticForm.combine([(1.0, self.X), *((-alpha * weight, form) for weight, form in self.priors)])


def search_axes(
    problem: Problem, settings: ClusterSettings = SETTINGS.clusters, excluded: Array | None = None
) -> Array:
    """Return the leading axes (d, q) of the rows to explore, orthogonal to `excluded` and to erased directions."""
    Z = problem.Z
    inside = problem.directions_left(excluded)
    if not inside.n_erased:
        # ZᵀZ is zero along constant columns, which need not be removed.
        inside = Subspace(np.ones(Z.n_features, dtype=bool))
    # Without any direction, the largest eigenvalue is a rounding error and no axis is small relative to it.
    if inside.size < 1:
        return np.zeros((Z.n_features, 0))
    fewest = max(settings.fewest_axes, problem.n_components + 1)
    most = max(fewest, min(settings.most_axes, Z.n_rows // settings.rows_per_axis))
    axes = noise_free_axes(inside.form(Z.second_moment), Z.n_rows, Z.rows.resolution, most, fewest)
    # Signs are fixed so that the random starts do not depend on how the eigenvectors are computed.
    return with_fixed_signs(inside.lift(axes))


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
    """Return the optima of a problem at a given α and μ, or at the paper's μ for this α; best objective first."""
    domain = Domain.unreduced(problem)
    M = domain.contrast(alpha)
    axes = contrastive_axes(M, problem.n_components)
    mu = paper_mu(M, domain.X, axes) if isinstance(mu, str) else float(mu)
    # Without kurtosis the closed form is the optimum.
    starts = starting_frames(axes, domain.Z, 1 if mu == 0 else n_starts, np.random.default_rng(seed))
    solution = find_optima(M, domain.Z, mu, starts, tol=tol, max_iter=max_iter, callback=callback)
    if not np.isfinite(solution.optima[0].kurtosis):
        raise FlatRowsError.of_views(problem.n_components)
    optima = [replace(optimum, components=domain.lift(optimum.V).T, alpha=alpha) for optimum in solution.optima]
    return replace(solution, optima=optima)


def find_optima(
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
    """Return the optima of tr M − tr(VᵀMV) + μ·κ(ZV) that are reached from the `starts` (R, d, k)."""
    objective = Objective(M, Z, mu)
    with threads_for_passes(Z):
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
    optima = [replace(optimum, mu=mu) for optimum in solution.optima]
    return replace(solution, optima=optima, n_evaluations=objective.n_evaluations)


def threads_for_passes(Z: StandardizedRows) -> AbstractContextManager[None]:
    """Return a context with the threads for passes over the rows."""
    # Rows on a GPU are multiplied there, and the remaining work on the host is small for any number of rows.
    return one_thread() if Z.rows.folded or Z.rows.xp is not np else threads_for(Z.n_rows, Z.n_features)


def distinct(ranked: Sequence[Optimum], *, min_distance: float = SETTINGS.choice.sketch) -> list[Optimum]:
    """Return the optima whose Σ sin² to each better one is at least `min_distance`."""
    chosen: list[Optimum] = []
    for optimum in ranked:
        if not chosen or squared_distances(optimum.V[None], np.stack([c.V for c in chosen])).min() >= min_distance:
            chosen.append(optimum)
    return chosen
