"""Optima of equation 2 at a given α and μ, or at a few points (α, μ), of which the best optimum becomes the view.

With `mu="auto"`, μ takes 0 (PCA), 0.1, 1, 10 and 100 times the paper's value, and −1 and −10 times if a cluster is a
minority, because a high kurtosis separates clusters with less than 21 % of the rows and a low one cannot. The best
optimum of each point, and then of all points, is selected by cluster accuracy and neighborhood preservation
(`choice/scores.py`). Rows given as prior have the weight of the data, α = tr XᵀX / tr YᵀY.

With background data, α takes multiples of this weight, and separation relative to the background selects the view
(`choice/separation.py`), because the clusters in all dimensions do not depend on the background. With categories, μ
also takes 0 and 0.1 times the paper's value: each larger one ends in the directions of two values.

The starts do not depend on the seed, so a table has one view. Later steps of an exploration start at the view of the
previous step, too, but have fewer starts and no μ < 0.

Optima are searched in coordinates W of a domain:

    V = lift(W),   W (q, k) orthonormal;      f(V) = tr M − tr(VᵀMV) + μ·κ(ZV)  with M, Z in the coordinates of W

Tables with at most 64 columns and 20,000 rows are searched in all directions and rows, and the result is an optimum of
equation 2. Otherwise, the search uses the leading principal axes of a sample, with at least 15 rows for each axis,
because chance lowers the kurtosis if there are many directions (on 784 pixels deeper optima separated worse).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np

from imapce.choice.scores import ViewScore, ViewScorer, best_view
from imapce.choice.separation import LARGEST_MINORITY, SeparationScorer, chance_separation
from imapce.clusters.axes import leading_axes, noise_free_axes, sphering
from imapce.clusters.clustering import SampleClusters
from imapce.common.arrays import Array, Codes
from imapce.common.settings import SETTINGS, ClusterSettings, Settings
from imapce.common.work import one_thread, threads_for
from imapce.priors.problem import FlatRowsError, Problem
from imapce.rows.open import open_rows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.rows.subspace import RowsWithin, Subspace
from imapce.search.descent import squared_distances, with_fixed_signs
from imapce.search.objective import Objective, paper_mu, reconstruction_error
from imapce.search.race import Callback, Optimum, Solution, Trace, converge, minimize, sketch
from imapce.search.starts import WHITENED_AXES, contrastive_axes, starting_frames

# Tangent dimensions up to which Newton's method converges sooner than L-BFGS: breast cancer (56) in 8 ms instead of
# 200, digits (124) in 50 ms instead of 25.
MOST_NEWTON = 64


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
        return cls(
            RowsWithin(problem.Z, inside),
            inside.form(X),
            [(weight, inside.form(form)) for weight, form in priors],
            inside.lift,
            is_reduced=False,
        )

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
    return replace(
        solution,
        optima=[replace(optimum, components=domain.lift(optimum.V).T, alpha=alpha) for optimum in solution.optima],
    )


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
    return replace(
        solution,
        optima=[replace(optimum, mu=mu) for optimum in solution.optima],
        n_evaluations=objective.n_evaluations,
    )


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


@dataclass(frozen=True)
class PathOptimum:
    """An optimum of the path, its frame W in the coordinates of the domain, and the trace of its search."""

    optimum: Optimum
    W: Array
    trace: Trace

    def with_values(self, **values: Any) -> PathOptimum:
        """Return the optimum with other values, such as scores."""
        return replace(self, optimum=replace(self.optimum, **values))


class PathSearch:
    """Search over all (α, μ) of a problem; a number instead of "auto" is the only value of its parameter.

    The clusters `candidate` select the view; without them, separation does. `before` are the axes (k, d) of the view of
    the previous step of an exploration.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        candidate: SampleClusters | None = None,
        before: Array | None = None,
        alpha: float | str = "auto",
        mu: float | str = "auto",
        n_starts: int = 10,
        tol: float = 1e-6,
        max_iter: int = 500,
        callback: Callback = None,
        settings: Settings = SETTINGS,
    ):
        self.settings, self.choice = settings, settings.choice
        self.problem, self.k = problem, problem.n_components
        self.alpha, self.mu = "auto" if alpha == np.inf else alpha, mu
        self.tol, self.max_iter, self.callback = tol, max_iter, callback
        self.candidate = candidate
        self.n_starts = n_starts
        self.before = None if candidate is None else before
        self.domain = Domain.from_problem(problem, settings.clusters)
        if self.domain.Z.n_features < self.k:
            raise FlatRowsError.of_views(self.k)
        # The sample of the clusters in the coordinates of the domain.
        basis = self.domain.lift(np.eye(self.domain.Z.n_features))
        self._rows = basis[:0] if candidate is None else candidate.sample.project(problem.Z, basis)
        # All μ at one α have the same M.
        self._contrast = cache(self.domain.contrast)
        self.n_evaluations = 0
        # Categories with levels that are the only clusters in the selected view.
        self.islands: tuple[int, ...] = ()

    def run(self) -> Solution:
        """Return the distinct optima, converged and with the selected one first, and all optima as `path`."""
        views, criterion = self._by_separation() if self.candidate is None else self._by_clusters(self.candidate)
        # Listed optima are evaluated on all rows; for 27 views of 40,000,000 rows this took twice as long as reading.
        limit = self.choice.listed if self.before is None else self.choice.later_listed
        # An optimum that has not converged would move to another view, which has another score.
        converged = [view.optimum for view in views if view is views[0] or view.optimum.converged]
        shortlist = distinct(converged, min_distance=self.choice.apart)[:limit]
        chosen, *rest = self._converge([view for view in views if any(view.optimum is o for o in shortlist)])
        solution, best = self._solve_chosen(chosen)
        optima = [best, *(view.optimum for view in rest if view.optimum.converged)]
        if self.domain.is_reduced:
            optima = self._evaluate_on_all_rows(optima)
        weight = f", alpha {best.alpha:.4g}" if np.isfinite(best.alpha) and best.alpha else ""
        reason = f"Converged: of {len(views)} optima, {criterion}; mu {best.mu:.4g}{weight}."
        return Solution(
            distinct(optima),
            solution.n_iterations,
            self.n_evaluations,
            reason if best.converged else solution.stop_reason,
            chosen.trace,
            tuple(view.optimum for view in views),
        )

    # --- selection ----------------------------------------------------------------------------------------------------

    def _by_clusters(self, candidate: SampleClusters) -> tuple[list[PathOptimum], str]:
        """Return all optima, the one with the best scores first, and the criterion for the stop reason.

        The best optimum of each point is selected before points are compared, so that its μ alone leads to it again.
        """
        # Clusters that do not improve the held-out likelihood of one component select no view.
        labels = candidate.labels if candidate.found.gain > 0 else np.zeros_like(candidate.labels)
        scorer = ViewScorer(self._rows, candidate.sample, labels, self.settings)
        # Rows given as prior have the weight of the data: other weights did not improve views selected by clusters.
        alpha = self._alphas((1.0,))[0] if self.problem.Y.any_known else np.inf
        sizes = np.unique(candidate.labels, return_counts=True)[1]
        factors = self.choice.mus
        if self.before is None and sizes.min() < LARGEST_MINORITY * sizes.sum():
            factors += self.choice.minority_mus
        best: list[tuple[PathOptimum, ViewScore]] = []
        rest: list[tuple[PathOptimum, ViewScore]] = []
        for views in self._sketch(alpha, self._mus(factors)):
            scored = [(view, scorer.score(view.W)) for view in views]
            best.append(scored.pop(best_view([score for _, score in scored])))
            rest += scored
        chosen = best.pop(best_view([score for _, score in best]))
        self.islands = chosen[1].islands
        first, *remaining = (
            view.with_values(seen=score.cluster_accuracy, kept=score.computed_preservation)
            for view, score in (chosen, *best, *rest)
        )
        remaining.sort(key=lambda view: -np.nan_to_num(view.optimum.seen, nan=view.optimum.kept))
        criterion = (
            f"the one that preserves neighborhoods best ({first.optimum.kept:.2f}; chance 0)"
            if np.isnan(first.optimum.seen)
            else f"the one that separates {len(sizes)} clusters best (15-NN accuracy {first.optimum.seen:.2f})"
        )
        return [first, *remaining], criterion

    def _by_separation(self) -> tuple[list[PathOptimum], str]:
        """Return all optima, the one with the best score first, and the criterion for the stop reason."""
        chance = chance_separation(self.domain.Z.n_rows, self.domain.Z.n_features)
        scorer = SeparationScorer(self.problem, chance, self.settings)
        mus = self._mus(self.choice.mus if scorer.has_categories else self.choice.background_mus)
        alphas = self._alphas(self.choice.alphas)
        views: list[PathOptimum] = []
        for alpha in alphas:
            at_alpha = [self._paper_mu(self._contrast(alpha))] if self.mu == "paper" else mus
            views += [view for found in self._sketch(alpha, at_alpha) for view in found]
        views = _with_separation(views, scorer, minorities=not isinstance(self.mu, str) and self.mu < 0)
        is_clear = max(view.optimum.score for view in views) >= chance + self.choice.clear
        if self.mu == "auto" and any(mus) and not is_clear:
            # If no cut into halves is clear, a high kurtosis may separate a minority.
            minorities = self._sketch(alphas[len(alphas) // 2], self._mus(self.choice.minority_mus))
            views += [view for found in minorities for view in found]
            views = _with_separation(views, scorer, minorities=True)
        views.sort(key=lambda view: -view.optimum.score)
        return views, "the one with the clearest separation"

    def _alphas(self, factors: Sequence[float]) -> list[float]:
        """Return multiples of the α at which the prior has the weight of the data, or the given α."""
        if self.alpha != "auto":
            return [float(self.alpha) if self.problem.Y.any_known else 0.0]
        # A prior without variance in the directions that are searched has no weight for any α.
        weight = sum(weight * form.trace for weight, form in self.domain.priors)
        return [factor * self.domain.X.trace / weight for factor in factors] if weight > 0 else [0.0]

    def _mus(self, factors: Sequence[float]) -> list[float]:
        """Return multiples of the paper's μ, or the given μ."""
        if not isinstance(self.mu, str):
            return [float(self.mu)]
        scale = self._paper_mu(self.domain.X)
        return list(dict.fromkeys(scale * factor for factor in ((1.0,) if self.mu == "paper" else factors)))

    def _paper_mu(self, M: QuadraticForm) -> float:
        """Return the paper's μ; 0 in a domain of k dimensions, which has one view and no reconstruction error."""
        if int(self.domain.Z.informative.sum()) == self.k:
            return 0.0
        return paper_mu(M, self.domain.X, contrastive_axes(M, self.k))

    # --- search -------------------------------------------------------------------------------------------------------

    def _sketch(self, alpha: float, mus: Sequence[float]) -> list[list[PathOptimum]]:
        """Return the optima at each μ, best objective first, as far converged as a comparison needs."""
        starts = self.find_starts(alpha)
        tol, max_iter = max(self.tol, self.choice.sketch), min(self.max_iter, self.choice.sketch_iterations)
        # Later steps evaluate all μ ≠ 0 in the same passes over the rows.
        joint = [mu for mu in mus if mu != 0 and self.before is not None]
        solutions = [
            self._minimize(alpha, mu, starts[:1] if mu == 0 else starts, tol=tol, max_iter=max_iter, polish=False)
            for mu in mus
            if mu not in joint
        ]
        found = [(solution.optima, solution.trace) for solution in solutions]
        if joint:
            objectives = [Objective(self._contrast(alpha), self.domain.Z, mu) for mu in joint]
            with threads_for_passes(self.domain.Z):
                optima, trace = sketch(objectives, starts, tol=tol, max_iter=max_iter, callback=self.callback)
            self.n_evaluations += sum(objective.n_evaluations for objective in objectives)
            found += [(at_mu, trace) for at_mu in optima]
        return [self._compared(alpha, optima, trace) for optima, trace in found]

    def _compared(self, alpha: float, optima: list[Optimum], trace: Trace) -> list[PathOptimum]:
        """Return the optima of a point that take part in the selection, best objective first."""
        if not np.isfinite(optima[0].kurtosis):
            raise FlatRowsError.of_views(self.k)
        # Sketches of one basin would displace those of other basins, and a given μ has no other points.
        if self.candidate is None and self.mu != "auto" and optima[0].mu >= 0:
            optima = distinct(optima, min_distance=self.choice.apart)
        count = 1 if self._has_single_optimum(optima[0].mu) else self.choice.compared
        return [
            PathOptimum(
                replace(optimum, components=self.domain.lift(optimum.V).T.copy(), alpha=alpha), optimum.V, trace
            )
            for optimum in optima[:count]
        ]

    def find_starts(self, alpha: float) -> Array:
        """Return the frames (R, q, k) at which the search for each μ starts."""
        limit = self.choice.later_starts
        if self.before is None:
            limit = self.choice.background_starts if self.candidate is None else self.n_starts
        Z, axes = self.domain.Z, contrastive_axes(self._contrast(alpha), self.k)
        starts = [starting_frames(axes, Z, min(limit, self.n_starts), np.random.default_rng(0))]
        if self.candidate is not None and self.candidate.found.gain > 0:
            starts.append(self._discriminant_axes(self.candidate.labels, axes)[None])
        if self.before is not None and not self.domain.is_reduced and self.before.shape == (self.k, Z.n_features):
            starts.append(self.before.T[None])
        return np.concatenate(starts)

    def _discriminant_axes(self, labels: Codes, completion: Array) -> Array:
        """Return axes (q, k) with the largest distances between clusters, completed by `completion` if necessary."""
        rows = self._rows
        means = np.stack([rows[labels == c].mean(axis=0) for c in range(int(labels.max()) + 1)])[labels]
        to_axes = sphering(rows - means)
        found = leading_axes(means @ to_axes, self.k)
        return np.linalg.qr(np.concatenate([to_axes @ found, completion], axis=1))[0][:, : self.k]

    def _has_single_optimum(self, mu: float) -> bool:
        """Return whether only the lowest optimum of a point is compared: if rows or columns have a weight.

        Exceptions are minorities and reduced domains, in which lower optima fit chance.
        """
        return self.problem.Y.any_known and not self.domain.is_reduced and mu >= 0

    # --- convergence --------------------------------------------------------------------------------------------------

    def _solve_chosen(self, chosen: PathOptimum) -> tuple[Solution, Optimum]:
        """Return the chosen optimum converged; with weighted rows, as found by a fit at its α and μ."""
        if self.before is not None or not self._has_single_optimum(chosen.optimum.mu):
            return self._refine(chosen)
        solution = solve_at(
            self.problem,
            chosen.optimum.alpha,
            chosen.optimum.mu,
            seed=0,
            n_starts=self.n_starts,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=self.callback,
        )
        self.n_evaluations += solution.n_evaluations
        scores = {name: getattr(chosen.optimum, name) for name in ("seen", "kept", "separation", "leakage")}
        return solution, replace(solution.optima[0], **scores)

    def _converge(self, views: list[PathOptimum]) -> list[PathOptimum]:
        """Return the views converged, by Newton's method or in joint passes for all μ ≠ 0 at one α."""
        if views[0].W.size - self.k**2 <= MOST_NEWTON:
            return [views[0], *(replace(view, optimum=self._refine(view, newton=True)[1]) for view in views[1:])]
        converged = dict(enumerate(views))
        for alpha in {view.optimum.alpha for view in views if view.optimum.mu != 0}:
            joint = {i: v for i, v in enumerate(views) if v.optimum.alpha == alpha and v.optimum.mu != 0}
            objectives = [Objective(self._contrast(alpha), self.domain.Z, view.optimum.mu) for view in joint.values()]
            frames = np.stack([view.W for view in joint.values()])
            max_iter = min(self.max_iter, self.choice.sketch_iterations)
            with threads_for_passes(self.domain.Z):
                found = converge(objectives, frames, tol=self.tol, max_iter=max_iter, callback=self.callback)
            self.n_evaluations += sum(objective.n_evaluations for objective in objectives)
            converged |= {i: self._moved(views[i], optimum) for i, optimum in zip(joint, found, strict=True)}
        return list(converged.values())

    def _refine(self, view: PathOptimum, *, newton: bool = False) -> tuple[Solution, Optimum]:
        """Return the optimum converged."""
        alpha, mu = view.optimum.alpha, view.optimum.mu
        solution = self._minimize(alpha, mu, view.W[None], tol=self.tol, max_iter=self.max_iter, newton=newton)
        return solution, self._moved(view, solution.optima[0]).optimum

    def _moved(self, view: PathOptimum, optimum: Optimum) -> PathOptimum:
        """Return a view with the frame of another optimum and the same scores."""
        return replace(view, W=optimum.V).with_values(
            components=self.domain.lift(optimum.V).T.copy(),
            objective=optimum.objective,
            kurtosis=optimum.kurtosis,
            relative_gradient=optimum.relative_gradient,
            converged=optimum.converged,
        )

    def _minimize(self, alpha: float, mu: float, starts: Array, **options: Any) -> Solution:
        """Return the optima of the domain at one point, with the `options` of `find_optima`."""
        solution = find_optima(self._contrast(alpha), self.domain.Z, mu, starts, callback=self.callback, **options)
        self.n_evaluations += solution.n_evaluations
        return solution

    def _evaluate_on_all_rows(self, optima: list[Optimum]) -> list[Optimum]:
        """Return the optima of a reduced domain with equation 2 and κ on all columns and rows."""
        X = self.problem.X.second_moment
        # One pass for all views, because to fold the rows would take longer.
        objective = Objective(X, self.problem.Z.unfolded, 1.0)
        kurtoses = objective.kurtosis(np.stack([optimum.V for optimum in optima])).tolist()
        # If the prior determines the rows, a view consists of rounding errors.
        if not np.isfinite(kurtoses[0]):
            raise FlatRowsError.of_views(self.k)
        evaluated = []
        for optimum, kurtosis in zip(optima, kurtoses, strict=True):
            terms = [(-optimum.alpha * weight, form) for weight, form in self.problem.Y.second_moments]
            error = sum(weight * reconstruction_error(form, optimum.V) for weight, form in [(1.0, X), *terms])
            evaluated.append(replace(optimum, objective=error + optimum.mu * kurtosis, kurtosis=kurtosis))
        return evaluated


def _with_separation(views: list[PathOptimum], scorer: SeparationScorer, *, minorities: bool) -> list[PathOptimum]:
    """Return the views with separation and leakage."""
    scores = scorer.score([view.optimum.V for view in views], minorities=minorities)
    return [view.with_values(separation=clear, leakage=leak) for view, (clear, leak) in zip(views, scores, strict=True)]
