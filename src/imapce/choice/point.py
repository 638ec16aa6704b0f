"""Where views are searched, and the optima of equation 2 there at one α and μ: what a point of a path is, and all there
is where both are given.

    V = lift(W),   W (q, k) orthonormal;      f(V) = tr M − tr(VᵀMV) + μ·κ(ZV)  with M, Z in the coordinates of W

Up to 64 columns are searched whole and on all rows, up to 20,000 of them: what is found there is an optimum of equation
2 and nothing less. Beyond, views lie in the leading principal axes of a sample, with at least 15 rows for each axis: a
kurtosis can be made small by chance in directions enough (on 784 pixels deeper optima separated worse).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from imapce.search.race import Optimum, Progress, Solution, minimize
from imapce.search.starts import WHITENED_AXES, contrastive_axes, starting_frames

Callback = Callable[[Progress], None] | None


@dataclass(frozen=True)
class Domain:
    """The coordinates that views are searched in, with everything the objective needs there."""

    Z: StandardizedRows
    X: QuadraticForm
    known: list[tuple[float, QuadraticForm]]
    lift: Callable[[Array], Array]
    is_whole: bool

    @classmethod
    def of(cls, problem: Problem, settings: ClusterSettings = SETTINGS.clusters) -> Domain:
        """The domain of a search that chooses its setting."""
        Z = problem.Z
        if Z.n_rows <= settings.many_rows and int(Z.informative.sum()) <= WHITENED_AXES:
            return cls.whole(problem)
        basis = searched_axes(problem, settings)
        rows = Z.project(basis, Z.content_mask(settings.many_rows))

        def within(form: QuadraticForm) -> QuadraticForm:
            inner = basis.T @ (form @ basis)
            return QuadraticForm.of_matrix((inner + inner.T) / 2)

        return cls(
            StandardizedRows(open_rows(rows, n_components=problem.n_components), standardize=False),
            within(problem.X.second_moment),
            [(weight, within(form)) for weight, form in problem.Y.second_moments],
            lambda W: basis @ W,
            is_whole=False,
        )

    @classmethod
    def whole(cls, problem: Problem) -> Domain:
        """All directions that nothing erased bars, on all rows: what a given setting is searched in."""
        X, known = problem.X.second_moment, problem.Y.second_moments
        if problem.Y.erased is None:
            # Columns that do not vary, as the known ones given themselves, would have a weight of rounding.
            varies = problem.Z.informative[:, None]
            return cls(problem.Z, X, known, (lambda W: W) if varies.all() else (lambda W: W * varies), is_whole=True)
        inside = problem.directions_left()
        known = [(weight, inside.form(form)) for weight, form in known]
        return cls(RowsWithin(problem.Z, inside), inside.form(X), known, inside.lift, is_whole=True)

    def contrast(self, alpha: float) -> QuadraticForm:
        """M = XᵀX − α Σ wⱼYⱼᵀYⱼ; where no rows are known α has nothing to weigh."""
        if not self.known:
            return self.X
        return QuadraticForm.combine([(1.0, self.X), *((-alpha * weight, form) for weight, form in self.known)])


def searched_axes(
    problem: Problem, settings: ClusterSettings = SETTINGS.clusters, excluded: Array | None = None
) -> Array:
    """Return the leading axes (d, q) of the rows to explore, free of `excluded` directions and what is erased."""
    Z = problem.Z
    inside = problem.directions_left(excluded)
    if not inside.n_erased:
        # ZᵀZ is zero along columns that do not vary, so they need not be taken out.
        inside = Subspace(np.ones(Z.n_features, dtype=bool))
    # If nothing is left, the largest eigenvalue is rounding and nothing would look small beside it.
    if inside.size < 1:
        return np.zeros((Z.n_features, 0))
    fewest = max(settings.fewest_axes, problem.n_components + 1)
    most = max(fewest, min(settings.most_axes, Z.n_rows // settings.rows_per_axis))
    axes = noise_free_axes(inside.form(Z.second_moment), Z.n_rows, Z.rows.resolution, most, fewest)
    # Signs are fixed, so that the random starts mean the same however the eigenvectors were found.
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
    optima = [replace(optimum, mu=mu) for optimum in solution.optima]
    return replace(solution, optima=optima, n_evaluations=objective.n_evaluations)


def distinct(ranked: Sequence[Optimum], *, apart: float = SETTINGS.choice.sketch) -> list[Optimum]:
    """The views without those that show nearly an earlier one: Σ sin² between them is below `apart`."""
    kept: list[Optimum] = []
    for view in ranked:
        others = [other.V for other in kept]
        if not others or squared_distances(view.V[None], np.stack(others)).min() >= apart:
            kept.append(view)
    return kept
