"""Search over a few α and μ, for `alpha="auto"` and `mu="auto"`: all optima are compared, and the best one is the view.

μ takes 0 (PCA), 0.1, 1, 10 and 100 times the paper's value, and −1 and −10 times if a cluster is a minority, because a
high kurtosis separates clusters with less than 21 % of the rows and a low one cannot. The best optimum of each point
(α, μ), and then of all points, is selected by cluster accuracy and neighborhood preservation (`choice/scores.py`).

Rows given as prior have the weight of the data, α = tr XᵀX / tr YᵀY, and the clusters of the other rows select the
view. With background data, α takes multiples of this weight, and the view with the best separation relative to the
background is selected (`choice/separation.py`), because the clusters in all dimensions do not depend on the background.
With categories, μ also takes 0 and 0.1 times the paper's value: each larger one ends in the directions of two values.

The starts do not depend on the seed, so a table has one view. In a later step of an exploration, the view of the
previous step is one more start; there are fewer other starts, and no μ < 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from imapce.choice.point import Domain, distinct, find_optima, solve_at, threads_for_passes
from imapce.choice.scores import ViewScore, ViewScorer, best_view
from imapce.choice.separation import LARGEST_MINORITY, SeparationScorer, chance_separation
from imapce.clusters.axes import leading_axes, sphering
from imapce.clusters.clustering import SampleClusters
from imapce.common.arrays import Array, Codes
from imapce.common.settings import SETTINGS, Settings
from imapce.priors.problem import FlatRowsError, Problem
from imapce.rows.standardized import QuadraticForm
from imapce.search.objective import Objective, paper_mu, reconstruction_error
from imapce.search.race import Callback, Optimum, Solution, Trace, converge, sketch
from imapce.search.starts import contrastive_axes, starting_frames

# Tangent dimensions up to which Newton's method converges sooner than L-BFGS: breast cancer (56) in 8 ms instead of
# 200, digits (124) in 50 ms instead of 25.
MOST_NEWTON = 64


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

    Parameters
    ----------
    candidate : clusters that select the view; None selects it by separation.
    before : axes (k, d) of the view of the previous step, in a later step of an exploration.
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
        # All μ at one α have the same M and the same starts.
        self._contrast = cache(self.domain.contrast)
        self.starts = cache(self._find_starts)
        self.n_evaluations = 0
        # Categories whose levels are the only clusters in the selected view.
        self.islands: tuple[int, ...] = ()

    def run(self) -> Solution:
        """Return the distinct optima, converged and with the selected one first, and all optima as `path`."""
        views, criterion = self._by_separation() if self.candidate is None else self._by_clusters(self.candidate)
        # Listed optima are evaluated on all rows; for 27 views of 40,000,000 rows this took twice as long as reading.
        n_listed = self.choice.listed if self.before is None else self.choice.later_listed
        # An optimum that has not converged would move to another view, which has another score.
        converged = [view.optimum for view in views if view is views[0] or view.optimum.converged]
        listed = distinct(converged, min_distance=self.choice.apart)[:n_listed]
        chosen, *others = self._converge([view for view in views if any(view.optimum is optimum for optimum in listed)])
        solution, best = self._solve_chosen(chosen)
        optima = [best, *(view.optimum for view in others if view.optimum.converged)]
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
        scorer = ViewScorer(self._sample_rows, candidate.sample, labels, self.settings)
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
        first, *others = (
            view.with_values(seen=score.cluster_accuracy, kept=score.computed_preservation)
            for view, score in (chosen, *best, *rest)
        )
        others.sort(key=lambda view: -np.nan_to_num(view.optimum.seen, nan=view.optimum.kept))
        criterion = f"the one that separates {len(sizes)} clusters best (15-NN accuracy {first.optimum.seen:.2f})"
        if np.isnan(first.optimum.seen):
            criterion = f"the one that preserves neighborhoods best ({first.optimum.kept:.2f}; chance 0)"
        return [first, *others], criterion

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
        views = _with_separation(views, scorer, minorities=mus[0] < 0)
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
        starts = self.starts(alpha)
        tol, max_iter = max(self.tol, self.choice.sketch), min(self.max_iter, self.choice.sketch_iterations)
        # Later steps evaluate all μ ≠ 0 in the same passes over the rows.
        joint = [mu for mu in mus if mu != 0 and self.before is not None]
        found: list[tuple[list[Optimum], Trace]] = []
        for mu in mus:
            if mu not in joint:
                frames = starts[:1] if mu == 0 else starts
                solution = self._minimize(alpha, mu, frames, tol=tol, max_iter=max_iter, polish=False)
                found.append((solution.optima, solution.trace))
        if joint:
            objectives = [Objective(self._contrast(alpha), self.domain.Z, mu) for mu in joint]
            with threads_for_passes(self.domain.Z):
                optima, trace = sketch(objectives, starts, tol=tol, max_iter=max_iter, callback=self.callback)
            self.n_evaluations += sum(objective.n_evaluations for objective in objectives)
            found += [(at_mu, trace) for at_mu in optima]
        return [self._compared(alpha, optima, trace) for optima, trace in found]

    def _compared(self, alpha: float, optima: list[Optimum], trace: Trace) -> list[PathOptimum]:
        """Return the optima of a point that are compared with others, best objective first."""
        if not np.isfinite(optima[0].kurtosis):
            raise FlatRowsError.of_views(self.k)
        # Sketches that end in the same basin would replace others, and a given μ has no other points.
        if self.candidate is None and self.mu != "auto" and optima[0].mu >= 0:
            optima = distinct(optima, min_distance=self.choice.apart)
        count = 1 if self._has_one_optimum(optima[0].mu) else self.choice.compared
        return [
            PathOptimum(
                replace(optimum, components=self.domain.lift(optimum.V).T.copy(), alpha=alpha), optimum.V, trace
            )
            for optimum in optima[:count]
        ]

    def _find_starts(self, alpha: float) -> Array:
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

    def _discriminant_axes(self, labels: Codes, others: Array) -> Array:
        """Return k axes (q, k) with the largest distances between clusters, completed by others if there are fewer."""
        rows = self._sample_rows
        means = np.stack([rows[labels == c].mean(axis=0) for c in range(int(labels.max()) + 1)])[labels]
        to_axes = sphering(rows - means)
        found = leading_axes(means @ to_axes, self.k)
        return np.linalg.qr(np.concatenate([to_axes @ found, others], axis=1))[0][:, : self.k]

    @cached_property
    def _sample_rows(self) -> Array:
        """The sample of the clusters (m, q) in the coordinates of the domain."""
        assert self.candidate is not None
        return self.candidate.sample.project(self.problem.Z, self.domain.lift(np.eye(self.domain.Z.n_features)))

    def _has_one_optimum(self, mu: float) -> bool:
        """Return whether only the lowest optimum of a point is compared: if rows or columns have a weight.

        Exceptions are minorities and reduced domains, in which lower optima fit chance.
        """
        return self.problem.Y.any_known and not self.domain.is_reduced and mu >= 0

    # --- convergence --------------------------------------------------------------------------------------------------

    def _solve_chosen(self, chosen: PathOptimum) -> tuple[Solution, Optimum]:
        """Return the chosen optimum converged; with weighted rows, as found by a fit at its α and μ."""
        if self.before is not None or not self._has_one_optimum(chosen.optimum.mu):
            solution, refined = self._refine(chosen)
            return solution, refined.optimum
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
            return [views[0], *(self._refine(view, newton=True)[1] for view in views[1:])]
        converged = dict(enumerate(views))
        for alpha in {view.optimum.alpha for view in views if view.optimum.mu != 0}:
            joint = {i: v for i, v in enumerate(views) if v.optimum.alpha == alpha and v.optimum.mu != 0}
            objectives = [Objective(self._contrast(alpha), self.domain.Z, view.optimum.mu) for view in joint.values()]
            frames = np.stack([view.W for view in joint.values()])
            max_iter = min(self.max_iter, self.choice.sketch_iterations)
            with threads_for_passes(self.domain.Z):
                found = converge(objectives, frames, tol=self.tol, max_iter=max_iter, callback=self.callback)
            self.n_evaluations += sum(objective.n_evaluations for objective in objectives)
            for i, optimum in zip(joint, found, strict=True):
                converged[i] = self._moved(views[i], optimum)
        return list(converged.values())

    def _refine(self, view: PathOptimum, *, newton: bool = False) -> tuple[Solution, PathOptimum]:
        """Return the view converged."""
        solution = self._minimize(view.optimum.alpha, view.optimum.mu, view.W[None], newton=newton)
        return solution, self._moved(view, solution.optima[0])

    def _moved(self, view: PathOptimum, optimum: Optimum) -> PathOptimum:
        """Return a view with the frame of another optimum and the same scores."""
        moved = view.with_values(
            components=self.domain.lift(optimum.V).T.copy(),
            objective=optimum.objective,
            kurtosis=optimum.kurtosis,
            relative_gradient=optimum.relative_gradient,
            converged=optimum.converged,
        )
        return replace(moved, W=optimum.V)

    def _minimize(self, alpha: float, mu: float, starts: Array, **options: Any) -> Solution:
        """Return the optima of the domain at one point; `options` replace the tolerance and other options."""
        options = {"tol": self.tol, "max_iter": self.max_iter, "callback": self.callback} | options
        solution = find_optima(self._contrast(alpha), self.domain.Z, mu, starts, **options)
        self.n_evaluations += solution.n_evaluations
        return solution

    def _evaluate_on_all_rows(self, optima: list[Optimum]) -> list[Optimum]:
        """Return the optima of a reduced domain with equation 2 and κ on all columns and rows."""
        X = self.problem.X.second_moment
        # One pass for all views, because to fold the rows would take longer.
        frames = np.stack([optimum.V for optimum in optima])
        kurtoses = Objective(X, self.problem.Z.unfolded, 1.0).kurtosis(frames).tolist()
        if not np.isfinite(kurtoses[0]):
            # If the prior determines the rows, a view consists of rounding errors.
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
