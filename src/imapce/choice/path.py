"""The search over (α, μ) that `alpha="auto"` and `mu="auto"` stand for: few points, all optima kept, one choice.

μ runs over 1, 10 and 100 times the paper's scale and α over multiples of tr XᵀX / tr YᵀY, at which the known weighs as
much as the data. Known columns need no such weight: α = ∞ leaves them out of the view, and where what is left still
shows them clearly, also every direction that is correlated with them.

Where no split in two is clear, a few points with μ < 0 are added: a high kurtosis shows minorities, a low one cannot.
Of very many rows a sample is searched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from imapce.choice.point import Callback, optima_at
from imapce.choice.score import Leakage, distinct, separation
from imapce.choice.spaces import Space, spaces_without_columns
from imapce.priors.problem import FlatRowsError, Problem
from imapce.rows.standardized import QuadraticForm
from imapce.search.closed_form import contrastive_axes
from imapce.search.objective import Objective, paper_mu, reconstruction_error
from imapce.search.solution import Optimum, Solution, Trace
from imapce.search.starts import kurtosis_frames
from imapce.search.stiefel import random_frames

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ALPHAS = (0.5, 1.0, 2.0, 5.0)
MUS = (1.0, 10.0, 100.0)
MINORITY_MUS = (-1.0, -10.0)  # a high kurtosis shows parts of less than 21 %, which a low one cannot
CLEAR = 0.15  # the score beyond chance from which a split is clear; Gaussian rows reached 0.07 (12 tables, μ = "paper")
STARTS = 8  # for each point, the random ones drawn anew: its neighbours on the path reach what it misses
SKETCH, SKETCH_ITERATIONS = 1e-3, 100
KEPT = 4  # optima of a point that are scored, best objective first
NOTICEABLE = 0.1  # leakage of the clearest view, above which what is correlated with the known goes as well
SEARCHED_ROWS = 20_000


@dataclass(frozen=True)
class Found:
    """A view of the path: the optimum with its scores, the space it was found in, its frame there, its trace."""

    optimum: Optimum
    space: Space
    V: Array
    trace: Trace


class PathSearch:
    """All (α, μ) of the path for a problem; a number instead of "auto" holds that coordinate fixed.

    >>> from imapce.priors.problem import pose
    >>> from imapce.rows.open import open_rows
    >>> from imapce.tables.reader import Reader
    >>> two = np.random.default_rng(0).normal(size=(200, 5)) + 4 * np.arange(200)[:, None] % 8 * np.eye(1, 5)
    >>> reader, matrix = Reader.learn(two)
    >>> solution = PathSearch(pose(open_rows(matrix), [], reader, n_components=2)).run(np.random.default_rng(0))
    >>> bool(solution.optima[0].separation > 0.5)
    True
    """

    def __init__(
        self,
        problem: Problem,
        *,
        alpha: float | str = "auto",
        mu: float | str = "auto",
        n_starts: int = 10,
        tol: float = 1e-6,
        max_iter: int = 500,
        every_optimum: bool = True,
        callback: Callback = None,
    ):
        self.problem, self.k = problem, problem.n_components
        self.alpha, self.mu = alpha, mu
        self.n_starts, self.tol, self.max_iter = min(STARTS, n_starts), tol, max_iter
        self.kept = KEPT if every_optimum else 1
        self.callback = callback
        self.leakage = Leakage(problem.X.second_moment, problem.known_columns)
        self.n_evaluations = 0

    def run(self, rng: np.random.Generator) -> Solution:
        """The distinct views, best score first, the chosen one brought to the tolerance; `path` is all of them."""
        found = self._search(rng)
        best = max(found, key=lambda one: one.optimum.score)
        M = best.space.contrast(best.optimum.alpha)
        solution = self._minimize(M, best.space, best.optimum.mu, best.V[None], self.tol, self.max_iter)
        if not np.isfinite(solution.optima[0].kurtosis):
            raise FlatRowsError.of_views(self.k)
        path = tuple(one.optimum for one in found)
        chosen, *others = distinct(sorted(path, key=lambda one: -one.score))
        polished = solution.optima[0]
        chosen = replace(
            chosen,
            components=(best.space.basis @ polished.V).T,
            relative_gradient=polished.relative_gradient,
            converged=polished.converged,
        )
        reason = solution.stop_reason
        if solution.converged:
            reason = (
                f"Converged: the clearest of {len(path)} views on a path over alpha and mu; "
                f"alpha {chosen.alpha:.4g}, mu {chosen.mu:.4g}."
            )
        return Solution(
            self._on_all_rows([chosen, *others]),
            solution.n_iterations,
            self.n_evaluations,
            reason,
            best.trace,
            path,
        )

    def _search(self, rng: np.random.Generator) -> list[Found]:
        """Every view of the path."""
        n_rows = self.problem.Z.n_rows
        sample: Mask | None = None
        if n_rows > SEARCHED_ROWS:
            sample = np.zeros(n_rows, dtype=bool)
            sample[rng.choice(n_rows, SEARCHED_ROWS, replace=False)] = True
        found: list[Found] = []
        left: tuple[Space, list[tuple[float, float]], list[Array]] | None = None
        for space, is_last in self._spaces(sample):
            if space.Z.n_features < self.k:
                continue
            points = self._points(space)
            closed = kurtosis_frames(space.Z, self.k)[: self.n_starts - 1]
            # The middle of the path tells whether the clearest view is one of the known; only then is there a reason
            # to give up more directions, and the rest of this space need not be walked.
            probe = len(points) // 2
            found += self._walk(space, points[probe : probe + 1], closed, rng)
            left = space, points[:probe] + points[probe + 1 :], closed
            if is_last or max((one.optimum for one in found), key=lambda one: one.separation).leakage <= NOTICEABLE:
                break
        if left is None:
            raise FlatRowsError.of_views(self.k)
        # Of the last space that has room for a view: the one after it may be too small.
        space, rest, closed = left
        found += self._walk(space, rest, closed, rng)
        if max(one.optimum.score for one in found) < space.chance + CLEAR and self.mu == "auto":
            # No split in two is clearer than chance makes it: the parts that a high kurtosis shows may be.
            found += self._walk(space, self._minority_points(space), closed, rng)
            # What was found where the known still showed cannot stand beside them: there the known is what is clear.
            found = [_with_minorities(one) for one in found if one.space is space]
        return found

    def _spaces(self, sample: Mask | None) -> Iterator[tuple[Space, bool]]:
        """The full space; or, to be free of known columns, those without them. Each with whether it is the last."""
        freed = False
        if self.alpha == "auto":
            for one in spaces_without_columns(self.problem, sample):
                freed = True
                yield one
        if not freed:
            yield Space.of(self.problem, np.zeros((self.problem.X.n_features, 0)), sample), True

    def _points(self, space: Space) -> list[tuple[float, float]]:
        """Every (α, μ) of the path."""
        points = []
        for alpha in self._alphas(space):
            if self.mu == "paper":
                M = space.contrast(alpha)
                points.append((alpha, paper_mu(M, space.X, contrastive_axes(M, self.k))))
            else:
                points += [(alpha, mu) for mu in self._mus(space)]
        return points

    def _minority_points(self, space: Space) -> list[tuple[float, float]]:
        """The points with μ < 0, at the middle α: where all starts find the minority, its weight matters little."""
        alphas, scale = self._alphas(space), self._mus(space)[0]
        return [(alphas[len(alphas) // 2], scale * factor) for factor in MINORITY_MUS] if scale > 0 else []

    def _walk(
        self, space: Space, points: list[tuple[float, float]], closed: list[Array], rng: np.random.Generator
    ) -> list[Found]:
        """The views found at the given points, scored."""
        found = []
        for alpha, mu in points:
            M = space.contrast(alpha)
            drawn = random_frames(self.n_starts - 1 - len(closed), space.Z.n_features, self.k, rng)
            starts = np.concatenate([np.stack([contrastive_axes(M, self.k), *closed]), drawn])
            tol, max_iter = max(self.tol, SKETCH), min(self.max_iter, SKETCH_ITERATIONS)
            solution = self._minimize(M, space, mu, starts[:1] if mu == 0 else starts, tol, max_iter)
            for optimum in solution.optima[: self.kept]:
                scored = replace(
                    optimum,
                    components=(space.basis @ optimum.V).T.copy(),
                    alpha=alpha,
                    separation=_separation(space, optimum.V),
                    leakage=self.leakage.of(space.basis @ optimum.V),
                    relative_gradient=SKETCH,
                    converged=True,
                )
                found.append(Found(scored, space, optimum.V, solution.trace))
        return found

    def _alphas(self, space: Space) -> list[float]:
        if self.alpha != "auto":
            return [float(self.alpha) if self.problem.Y.any_known else 0.0]
        if not space.known:
            return [np.inf if space.without_columns else 0.0]
        # A prior whose rows vary in nothing the view could show weighs nothing, whatever α.
        weight = sum(w * form.trace for w, form in space.known)
        return [a * space.X.trace / weight for a in ALPHAS] if weight > 0 else [0.0]

    def _mus(self, space: Space) -> list[float]:
        if self.mu != "auto":
            return [float(self.mu)]
        # A space of k directions has one view, and no error to take a scale from.
        if space.X.size == self.k:
            return [0.0]
        scale = paper_mu(space.X, space.X, contrastive_axes(space.X, self.k))
        return [scale * factor for factor in MUS]

    def _minimize(
        self, M: QuadraticForm, space: Space, mu: float, starts: Array, tol: float, max_iter: int
    ) -> Solution:
        solution = optima_at(M, space.Z, mu, starts, tol=tol, max_iter=max_iter, callback=self.callback)
        self.n_evaluations += solution.n_evaluations
        return solution

    def _on_all_rows(self, optima: list[Optimum]) -> list[Optimum]:
        """Equation 2 and κ of views on all columns and rows, each at its own α and μ.

        The path counts only the variance of the space it searches; α = ∞ leaves its constant term out.
        """
        X, Y = self.problem.X, self.problem.Y
        # One pass for all views: folding the rows would take longer than that.
        frames = np.stack([one.V for one in optima])
        kurtoses = Objective(X.second_moment, self.problem.Z.unfolded, 1.0).kurtosis(frames)
        evaluated = []
        for one, kurtosis in zip(optima, kurtoses, strict=True):
            error = reconstruction_error(X.second_moment, one.V)
            if np.isfinite(one.alpha):
                known = sum(weight * reconstruction_error(form, one.V) for weight, form in Y.second_moments)
                error -= one.alpha * known
            evaluated.append(replace(one, objective=float(error + one.mu * kurtosis), kurtosis=float(kurtosis)))
        return evaluated


def _separation(space: Space, V: Array, *, minorities: bool = False) -> float:
    shown = [Y @ V for Y in space.backgrounds]
    return separation(space.rows @ V, shown, minorities=minorities, chance=space.chance)


def _with_minorities(found: Found) -> Found:
    clear = _separation(found.space, found.V, minorities=True)
    return replace(found, optimum=replace(found.optimum, separation=clear))
