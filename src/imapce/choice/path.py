"""The walk over (α, μ) that `alpha="auto"` and `mu="auto"` stand for: few points, all optima kept, one shown.

μ runs over 0 (PCA's plane), 0.1, 1, 10 and 100 times the paper's scale, and over −1 and −10 times where a cluster is a
minority: a high kurtosis shows parts of less than 21 %, a low one cannot. Of the optima of a point, and then of all
points, the one in which the clusters are seen best is shown (`choice/scores.py`).

Rows that are known weigh as much as the data, α = tr XᵀX / tr YᵀY, and the clusters of the others choose. Beside a
background α runs over multiples of that, and the optimum that falls apart most clearly is shown (`choice/score.py`):
the background tells what else could split the rows, and clusters of all directions know nothing of it. There categories
count by what other columns agree on with them (`choice/footing.py`), and where there are some μ runs over 0 and 0.1
times the paper's scale, too: every larger one ends in the directions of two values.

Starts are the same whatever the seed, so that a table has one view. A later step of an exploration knows the view of
the step before: it begins there too, and tries less.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from imapce.choice.footing import FairRows
from imapce.choice.point import Callback, Domain, distinct, optima_at, solve_at
from imapce.choice.score import LARGEST_MINORITY, Leakage, reached_by_chance, separation
from imapce.choice.scores import ViewScore, ViewScorer, best_view
from imapce.clusters.axes import leading_axes, sphering
from imapce.clusters.clustering import SampleClusters
from imapce.common.arrays import Array
from imapce.common.settings import SETTINGS, Settings
from imapce.common.work import one_thread, threads_for
from imapce.priors.problem import FlatRowsError, Problem
from imapce.rows.standardized import QuadraticForm
from imapce.search.objective import Objective, paper_mu, reconstruction_error
from imapce.search.race import Optimum, Solution, Trace, converge, sketch
from imapce.search.starts import contrastive_axes, starting_frames

# Tangent dimensions up to which Newton's method brings a view to its last digits sooner than L-BFGS: breast cancer (56)
# in 8 ms, not 200; digits (124) in 50 ms, not 25.
QUICK_NEWTON = 64


@dataclass(frozen=True)
class PathOptimum:
    """An optimum of the path with its scores, its frame W in the domain's coordinates, and the trace of its search."""

    optimum: Optimum
    W: Array
    trace: Trace
    scores: ViewScore | None = None

    def with_scores(self) -> PathOptimum:
        """Return the optimum with its scores."""
        assert self.scores is not None
        accuracy, preservation = self.scores.cluster_accuracy, self.scores.known_preservation
        return replace(self, optimum=replace(self.optimum, seen=accuracy, kept=preservation))


class PathSearch:
    """All (α, μ) of the path for a problem; a number instead of "auto" holds that coordinate fixed.

    With a `candidate` the optima are compared by how well its clusters are seen, else by separation. `before` are the
    axes (k, d) of the view of the step before, where it is a later step of an exploration.

    >>> from imapce.clusters.clustering import find_clusters
    >>> from imapce.priors.problem import pose
    >>> from imapce.rows.open import open_rows
    >>> from imapce.tables.reader import Reader
    >>> two = np.random.default_rng(0).normal(size=(200, 5)) + 4 * np.arange(200)[:, None] % 8 * np.eye(1, 5)
    >>> reader, matrix = Reader.learn(two)
    >>> problem = pose(open_rows(matrix), [], reader, n_components=2)
    >>> solution = PathSearch(problem, candidate=find_clusters(problem, np.ones(200, dtype=bool))).run()
    >>> bool(solution.optima[0].seen > 0.9)
    True
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
        self.domain = Domain.of(problem, settings.clusters)
        self._contrast_of: dict[float, QuadraticForm] = {}
        self._starts_of: dict[float, Array] = {}
        if self.domain.Z.n_features < self.k:
            raise FlatRowsError.of_views(self.k)
        self.n_evaluations = 0
        # Categories whose levels are all that the view shown shows.
        self.islands: tuple[int, ...] = ()

    def run(self) -> Solution:
        """The distinct optima, the one to show first, each brought to the tolerance; `path` is all of them."""
        if self.candidate is None:
            found = self._by_separation()
            words = "the one that falls apart most clearly"
        else:
            found, words = self._by_clusters(self.candidate)
        path = tuple(view.optimum for view in found)
        # All that are listed are evaluated on all rows, and of 27 views of 40,000,000 rows that took twice the time of
        # reading them.
        most = self.choice.listed if self.before is None else self.choice.later_listed
        # One that had not arrived anywhere would end elsewhere, and its score would be that of another view.
        arrived = [view.optimum for view in found if view is found[0] or view.optimum.converged]
        listed = distinct(arrived, apart=self.choice.apart)[:most]
        chosen, *others = self._converged([view for view in found if any(view.optimum is other for other in listed)])
        solution, shown = self._show(chosen)
        optima = [shown, *(view.optimum for view in others if view.optimum.converged)]
        if not self.domain.is_whole:
            optima = self._on_all_rows(optima)
        reason = f"Converged: of {len(path)} optima {words}; mu {shown.mu:.4g}"
        reason += f", alpha {shown.alpha:.4g}." if np.isfinite(shown.alpha) and shown.alpha else "."
        return Solution(
            distinct(optima),
            solution.n_iterations,
            self.n_evaluations,
            reason if shown.converged else solution.stop_reason,
            chosen.trace,
            path,
        )

    # --- by clusters --------------------------------------------------------------------------------------------------

    def _by_clusters(self, candidate: SampleClusters) -> tuple[list[PathOptimum], str]:
        """Every optimum, the one in which the clusters are seen best first; and why it is, in words.

        One is chosen of every point before points are compared, so that its μ alone leads to it again.
        """
        # Clusters that explain held-out rows no better than one component choose no view.
        labels = candidate.labels if candidate.found.gain > 0 else np.zeros_like(candidate.labels)
        scorer = ViewScorer(self._sample_rows, candidate.sample, labels, self.settings)
        # Rows that are known weigh as much as the data: beside their clusters other weights show no more.
        alpha = np.inf if not self.problem.Y.any_known else self._weights((1.0,))[0]
        best: list[PathOptimum] = []
        rest: list[PathOptimum] = []
        mus = self._mus(candidate)
        for walked in (self._walk(alpha, mu) for mu in mus) if self.before is None else self._side_by_side(alpha, mus):
            here = [replace(view, scores=scorer.score(view.W)) for view in walked]
            best.append(here.pop(_best_of(here)))
            rest += here
        shown = best.pop(_best_of(best))
        self.islands = () if shown.scores is None else shown.scores.islands
        shown, *others = [view.with_scores() for view in (shown, *best, *rest)]
        others.sort(key=lambda view: -np.nan_to_num(view.optimum.seen, nan=view.optimum.kept))
        return [shown, *others], _words_of(shown, candidate)

    def _mus(self, candidate: SampleClusters) -> list[float]:
        scale = self._scale
        if not isinstance(self.mu, str):
            return [float(self.mu)]
        if self.mu == "paper" or scale == 0.0:
            return [scale]
        sizes = np.bincount(candidate.labels)
        minority = self.before is None and bool((sizes[sizes > 0] < LARGEST_MINORITY * len(candidate.labels)).any())
        return [scale * factor for factor in (*self.choice.mus, *(self.choice.minority_mus if minority else ()))]

    @property
    def _scale(self) -> float:
        """The paper's μ; a domain of k directions has one view, and no error to take a scale from."""
        X = self.domain.X
        one_view = int(self.domain.Z.informative.sum()) == self.k
        return 0.0 if one_view else paper_mu(X, X, contrastive_axes(X, self.k))

    # --- by separation ------------------------------------------------------------------------------------------------

    def _by_separation(self) -> list[PathOptimum]:
        """Every optimum, the one that falls apart most clearly first."""
        alphas, scale = self._weights(self.choice.alphas), self._scale
        if self.mu == "auto":
            factors = self.choice.mus if self._has_categories else self.choice.background_mus
            mus = [scale * factor for factor in factors] if scale else [0.0]
            points = [(alpha, mu) for alpha in alphas for mu in mus]
        elif self.mu == "paper":
            forms = [(alpha, self.domain.contrast(alpha)) for alpha in alphas]
            points = [(alpha, paper_mu(M, self.domain.X, contrastive_axes(M, self.k))) for alpha, M in forms]
        else:
            points = [(alpha, float(self.mu)) for alpha in alphas]
        found = self._scored([view for point in points for view in self._walk(*point)])
        clear = max(view.optimum.score for view in found) >= self._chance + self.choice.clear
        if not clear and self.mu == "auto" and scale:
            # No split in two is clearer than chance makes it: the parts that a high kurtosis shows may be.
            middle = alphas[len(alphas) // 2]
            found += [view for factor in self.choice.minority_mus for view in self._walk(middle, scale * factor)]
            found = self._scored(found, minorities=True)
        elif not isinstance(self.mu, str) and self.mu < 0:
            found = self._scored(found, minorities=True)
        return sorted(found, key=lambda view: -view.optimum.score)

    @property
    def _chance(self) -> float:
        """The separation that the best of all directions of the domain shows of a Gaussian."""
        return reached_by_chance(self.domain.Z.n_rows, self.domain.Z.n_features)

    def _weights(self, factors: Sequence[float]) -> list[float]:
        """α, so many times that at which the known weighs as much as the data; or the one that is given."""
        if self.alpha != "auto":
            return [float(self.alpha) if self.problem.Y.any_known else 0.0]
        # A prior whose rows vary in nothing the view could show weighs nothing, whatever α.
        weight = sum(w * form.trace for w, form in self.domain.known)
        return [a * self.domain.X.trace / weight for a in factors] if weight > 0 else [0.0]

    @cached_property
    def _leakage(self) -> Leakage:
        problem = self.problem
        return Leakage(problem.X.second_moment, problem.known_columns, problem.Y.weighed_labels)

    @property
    def _has_categories(self) -> bool:
        """Whether columns of a table beside a background are categories, whose two values are cut by any view."""
        categories = self.problem.categories
        return categories is not None and bool(categories.any()) and bool(self.problem.Y.backgrounds)

    @cached_property
    def _fair_rows(self) -> list[FairRows]:
        """The rows to explore and those of each background, as views of them are scored."""
        problem, categories = self.problem, self.problem.categories if self._has_categories else None
        return [
            FairRows(rows, problem.groups, categories, self.settings.clusters)
            for rows in (problem.Z, *problem.Y.backgrounds)
        ]

    def _scored(self, found: list[PathOptimum], *, minorities: bool = False) -> list[PathOptimum]:
        """The optima with their separation and leakage."""
        # The sample is asked for once for all views: to find it among 40,000,000 rows took longer than to score them.
        frames = np.concatenate([view.optimum.V for view in found], axis=1)
        projected = [np.split(rows.project(frames), len(found), axis=1) for rows in self._fair_rows]
        scored = []
        for view, own, *backgrounds in zip(found, *projected, strict=True):
            clear = separation(own, backgrounds, minorities=minorities, chance=self._chance, settings=self.settings)
            leakage = self._leakage.of(view.optimum.V)
            scored.append(replace(view, optimum=replace(view.optimum, separation=clear, leakage=leakage)))
        return scored

    # --- the search ---------------------------------------------------------------------------------------------------

    def _walk(self, alpha: float, mu: float) -> list[PathOptimum]:
        """The optima found at one point, best objective first; so far that they can be compared."""
        starts = self._starts(alpha)
        solution = self._minimize(alpha, mu, starts[:1] if mu == 0 else starts, sketch=True)
        # Sketches of one basin are many, and no other μ brings the basins they crowd out.
        crowded = self.candidate is None and self.mu != "auto" and mu >= 0
        optima = distinct(solution.optima, apart=self.choice.apart) if crowded else solution.optima
        return self._found(alpha, optima, solution.trace)

    def _found(self, alpha: float, optima: list[Optimum], trace: Trace) -> list[PathOptimum]:
        """Those of the optima of a point, best objective first, that are compared."""
        if not np.isfinite(optima[0].kurtosis):
            raise FlatRowsError.of_views(self.k)
        kept = 1 if self._lowest_alone(optima[0].mu) else self.choice.compared
        return [
            PathOptimum(
                replace(optimum, components=self.domain.lift(optimum.V).T.copy(), alpha=alpha), optimum.V, trace
            )
            for optimum in optima[:kept]
        ]

    def _side_by_side(self, alpha: float, mus: list[float]) -> list[list[PathOptimum]]:
        """`_walk` at several μ at once."""
        curved = [Objective(self._contrast(alpha), self.domain.Z, mu) for mu in mus if mu != 0]
        walked = [self._walk(alpha, 0.0)] if 0.0 in mus else []
        if not curved:
            return walked
        with self._threads():
            found, trace = sketch(
                curved,
                self._starts(alpha),
                tol=max(self.tol, self.choice.sketch),
                max_iter=min(self.max_iter, self.choice.sketch_iterations),
                callback=self.callback,
            )
        self.n_evaluations += sum(objective.n_evaluations for objective in curved)
        return walked + [self._found(alpha, optima, trace) for optima in found]

    def _starts(self, alpha: float) -> Array:
        """Where the search of every μ begins: a μ that is given again is to have the starts it had."""
        if alpha not in self._starts_of:
            Z = self.domain.Z
            most = self.n_starts if self.before is None else self.choice.later_starts
            most = self.choice.background_starts if self.candidate is None else most
            axes = contrastive_axes(self._contrast(alpha), self.k)
            starts = starting_frames(axes, Z, min(most, self.n_starts), np.random.default_rng(0))
            if self.candidate is not None and self.candidate.found.gain > 0:
                starts = np.concatenate([starts, self._discriminant_axes(axes)[None]])
            if self.before is not None and self.domain.is_whole and self.before.shape == (self.k, Z.n_features):
                starts = np.concatenate([starts, self.before.T[None]])
            self._starts_of[alpha] = starts
        return self._starts_of[alpha]

    def _discriminant_axes(self, others: Array) -> Array:
        """Return the axes (q, k) along which the clusters are farthest apart; of few clusters `others` are the rest."""
        assert self.candidate is not None
        labels, rows = self.candidate.labels, self._sample_rows
        means = np.stack([rows[labels == c].mean(axis=0) for c in range(int(labels.max()) + 1)])[labels]
        to_axes = sphering(rows - means)
        found = leading_axes(means @ to_axes, self.k)
        return np.linalg.qr(np.concatenate([to_axes @ found, others], axis=1))[0][:, : self.k]

    @cached_property
    def _sample_rows(self) -> Array:
        """The rows (m, q) of the sample of the clusters in the coordinates of the domain."""
        assert self.candidate is not None
        return self.candidate.sample.project(self.problem.Z, self.domain.lift(np.eye(self.domain.Z.n_features)))

    def _contrast(self, alpha: float) -> QuadraticForm:
        """M, formed once for all μ."""
        if alpha not in self._contrast_of:
            self._contrast_of[alpha] = self.domain.contrast(alpha)
        return self._contrast_of[alpha]

    def _show(self, chosen: PathOptimum) -> tuple[Solution, Optimum]:
        """The optimum to show, brought to the tolerance.

        Where rows are known it is the lowest one of its point, as somebody finds it who gives its α and μ; in a later
        step the lowest one that was found.
        """
        if self.before is not None or not self._lowest_alone(chosen.optimum.mu):
            return self._polish(chosen)
        setting = chosen.optimum.alpha, chosen.optimum.mu
        solution = solve_at(
            self.problem,
            *setting,
            seed=0,
            n_starts=self.n_starts,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=self.callback,
        )
        self.n_evaluations += solution.n_evaluations
        scores = {name: getattr(chosen.optimum, name) for name in ("seen", "kept", "separation", "leakage")}
        return solution, replace(solution.optima[0], **scores)

    def _lowest_alone(self, mu: float) -> bool:
        """Whether the lowest optimum of a point stands for it: beside rows that are known, but for minorities and for
        the leading axes of many columns, where lower optima fit chance.
        """
        return self.problem.Y.any_known and self.domain.is_whole and mu >= 0

    def _converged(self, views: list[PathOptimum]) -> list[PathOptimum]:
        """Return the converged optima, those of one α by the same passes; by Newton's method if that is quicker."""
        if views[0].W.size - self.k**2 <= QUICK_NEWTON:
            return [views[0], *(replace(view, optimum=self._polish(view, newton=True)[1]) for view in views[1:])]
        done: dict[int, PathOptimum] = {}
        for alpha in {view.optimum.alpha for view in views}:
            here = [i for i, view in enumerate(views) if view.optimum.alpha == alpha and view.optimum.mu != 0]
            if not here:
                continue
            objectives = [Objective(self._contrast(alpha), self.domain.Z, views[i].optimum.mu) for i in here]
            with self._threads():
                frames = np.stack([views[i].W for i in here])
                most = min(self.max_iter, self.choice.sketch_iterations)
                found = converge(objectives, frames, tol=self.tol, max_iter=most, callback=self.callback)
            self.n_evaluations += sum(objective.n_evaluations for objective in objectives)
            done |= {i: self._moved(views[i], optimum) for i, optimum in zip(here, found, strict=True)}
        return [done.get(i, view) for i, view in enumerate(views)]

    def _polish(self, found: PathOptimum, *, newton: bool = False) -> tuple[Solution, Optimum]:
        """An optimum brought to the tolerance, with the scores it had."""
        solution = self._minimize(found.optimum.alpha, found.optimum.mu, found.W[None], newton=newton)
        return solution, self._moved(found, solution.optima[0]).optimum

    def _moved(self, view: PathOptimum, now: Optimum) -> PathOptimum:
        """The view with the frame of an optimum and the scores it had."""
        optimum = replace(
            view.optimum,
            components=self.domain.lift(now.V).T.copy(),
            objective=now.objective,
            kurtosis=now.kurtosis,
            relative_gradient=now.relative_gradient,
            converged=now.converged,
        )
        return replace(view, optimum=optimum, W=now.V)

    def _threads(self) -> AbstractContextManager[None]:
        """The threads for passes over the rows of the domain."""
        Z = self.domain.Z
        return one_thread() if Z.rows.folded else threads_for(Z.n_rows, Z.n_features)

    def _minimize(
        self, alpha: float, mu: float, starts: Array, *, sketch: bool = False, newton: bool = False
    ) -> Solution:
        tol, max_iter = self.tol, self.max_iter
        if sketch:
            tol, max_iter = max(tol, self.choice.sketch), min(max_iter, self.choice.sketch_iterations)
        solution = optima_at(
            self._contrast(alpha),
            self.domain.Z,
            mu,
            starts,
            tol=tol,
            max_iter=max_iter,
            polish=not sketch,
            newton=newton,
            callback=self.callback,
        )
        self.n_evaluations += solution.n_evaluations
        return solution

    def _on_all_rows(self, optima: list[Optimum]) -> list[Optimum]:
        """Equation 2 and κ of optima of a domain on all columns and rows, each at its own α and μ."""
        X, Y = self.problem.X, self.problem.Y
        # One pass for all views: folding the rows would take longer than that.
        frames = np.stack([optimum.V for optimum in optima])
        kurtoses = Objective(X.second_moment, self.problem.Z.unfolded, 1.0).kurtosis(frames)
        if not np.isfinite(kurtoses[0]):
            # Where nothing is left beside the known, a view is made of rounding.
            raise FlatRowsError.of_views(self.k)
        evaluated = []
        for optimum, kurtosis in zip(optima, kurtoses, strict=True):
            error = reconstruction_error(X.second_moment, optimum.V)
            if Y.any_known:
                known = [weight * reconstruction_error(form, optimum.V) for weight, form in Y.second_moments]
                error -= optimum.alpha * sum(known)
            value = float(error + optimum.mu * kurtosis)
            evaluated.append(replace(optimum, objective=value, kurtosis=float(kurtosis)))
        return evaluated


def _best_of(views: Sequence[PathOptimum]) -> int:
    return best_view([view.scores for view in views if view.scores is not None])


def _words_of(shown: PathOptimum, candidate: SampleClusters) -> str:
    """Why an optimum is shown."""
    count = len(np.unique(candidate.labels))
    if np.isnan(shown.optimum.seen):
        return f"the one that keeps most of the neighbourhoods, {shown.optimum.kept:.2f} (chance 0)"
    return (
        f"the one in which {count} clusters are seen best: the nearest rows tell the cluster of "
        f"{100 * shown.optimum.seen:.0f} % of the rows"
    )
