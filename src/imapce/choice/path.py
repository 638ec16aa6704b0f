"""The search over (α, μ) that `alpha="auto"` and `mu="auto"` stand for: few points, all optima kept, one choice.

The view shown is the one that keeps most of the neighbourhoods (`choice/neighbours.py`), of the clearest optima, the
paper's view, PCA's plane and the plane of neighbours; with a background, the optimum that falls apart most clearly.

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

from imapce.choice.known import FEWEST_ROWS, Judged, hidden, keeping, said
from imapce.choice.planes import Planes
from imapce.choice.point import Callback, optima_at
from imapce.choice.score import SEARCHED_ROWS, Leakage, distinct, separation, shown_by_some
from imapce.choice.spaces import Space, spaces_without_columns
from imapce.priors.problem import FlatRowsError, Problem
from imapce.rows.standardized import QuadraticForm
from imapce.search.closed_form import contrastive_axes
from imapce.search.objective import Objective, paper_mu, reconstruction_error
from imapce.search.solution import Optimum, Solution, Trace
from imapce.search.starts import kurtosis_frames
from imapce.search.stiefel import random_frames, squared_distances

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ALPHAS = (0.5, 1.0, 2.0, 5.0)
MUS = (1.0, 10.0, 100.0)
# Where neighbours decide, optima are challengers of planes that need no search: the paper's setting and one beyond it.
CHALLENGER_ALPHAS, CHALLENGER_MUS, CHALLENGER_STARTS = (1.0,), (1.0, 10.0), 6
MINORITY_MUS = (-1.0, -10.0)  # a high kurtosis shows parts of less than 21 %, which a low one cannot
CLEAR = 0.15  # the score beyond chance from which a split is clear; Gaussian rows reached 0.07 (12 tables, μ = "paper")
STARTS = 8  # for each point, the random ones drawn anew: its neighbours on the path reach what it misses
SKETCH, SKETCH_ITERATIONS = 1e-3, 100
KEPT = 4  # optima of a point that are scored, best objective first
# Σ sin² between those of a given μ, and between those listed after the clearest: sketches of one basin are many, and no
# other μ brings the basins they crowd out (CIFAR-100 + T-shirt/Coat at μ = 1e5, draw 0: 0.94 instead of 0.91).
APART = 0.03
LISTED = 8  # of those, the chosen one among them; nobody looks through more, and each costs work for every row
NOTICEABLE = 0.1  # leakage of the clearest view, above which what is correlated with the known goes as well
CHALLENGERS = 3  # optima, clearest first, that may be shown; of more the one that keeps most does so by luck


@dataclass(frozen=True)
class Found:
    """A view of the path: the optimum with its scores, the space it was found in, its frame there, its trace."""

    optimum: Optimum
    space: Space
    V: Array
    trace: Trace


class PathSearch:
    """All (α, μ) of the path for a problem; a number instead of "auto" holds that coordinate fixed.

    α = ∞ is what "auto" does about known columns, and stands for it.

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
        rank: str = "separation",
        callback: Callback = None,
    ):
        self.problem, self.k = problem, problem.n_components
        self.alpha, self.mu = "auto" if alpha == np.inf else alpha, mu
        self.tol, self.max_iter = tol, max_iter
        few = rank == "neighbours"
        self.n_starts = min(CHALLENGER_STARTS if few else STARTS, n_starts)
        self._alpha_factors = CHALLENGER_ALPHAS if few else ALPHAS
        self._mu_factors = CHALLENGER_MUS if few else MUS
        self.rank = rank
        self.kept = 1 if rank == "objective" else KEPT
        self.callback = callback
        self.leakage = Leakage(problem.X.second_moment, problem.known_columns, problem.Y.weighed_labels)
        self.n_evaluations = 0

    def run(self, rng: np.random.Generator) -> Solution:
        """The distinct views, the chosen one first and brought to the tolerance; `path` is all of them."""
        found = self._search(rng)
        if self.rank == "neighbours" and self.problem.Z.n_rows >= FEWEST_ROWS:
            return self._by_neighbours(found)
        best = max(found, key=lambda one: one.optimum.score)
        path = tuple(one.optimum for one in found)
        # Of sketches of one basin the clearest: all that are left are evaluated on all rows, and of 27 views of
        # 40,000,000 rows that took twice the time of reading them.
        _, *others = distinct(sorted(path, key=lambda one: -one.score), apart=APART)[:LISTED]
        reason = (
            f"Converged: the clearest of {len(path)} views on a path over alpha and mu; "
            f"alpha {best.optimum.alpha:.4g}, mu {best.optimum.mu:.4g}."
        )
        return self._polished(best, others, reason, path)

    def _polished(self, best: Found, others: list[Optimum], reason: str, path: tuple[Optimum, ...]) -> Solution:
        """The chosen optimum brought to the tolerance, the others after it, all evaluated on all rows."""
        M = best.space.contrast(best.optimum.alpha)
        solution = self._minimize(M, best.space, best.optimum.mu, best.V[None])
        if not np.isfinite(solution.optima[0].kurtosis):
            raise FlatRowsError.of_views(self.k)
        polished = solution.optima[0]
        chosen = replace(
            best.optimum,
            components=(best.space.basis @ polished.V).T,
            relative_gradient=polished.relative_gradient,
            converged=polished.converged,
        )
        return Solution(
            self._on_all_rows([chosen, *others]),
            solution.n_iterations,
            self.n_evaluations,
            reason if solution.converged else solution.stop_reason,
            best.trace,
            path,
        )

    def _by_neighbours(self, found: list[Found]) -> Solution:
        """The view that keeps most of the neighbourhoods, or with known columns most among those that hide them."""
        clearest = max(found, key=lambda one: one.optimum.score)
        planes = Planes(self.problem, clearest.space.basis)
        optima = distinct(sorted((one.optimum for one in found), key=lambda one: -one.score))
        asked = optima[:CHALLENGERS]
        if self.problem.hides:
            views, how = hidden(planes, asked)
        else:
            views, how = keeping(planes, [*asked, *self._paper_s_view(found, asked)])
        scored = [self._scored(one, clearest.space) for one in views]
        judged = {id(one.optimum): now for one, now in zip(views, scored, strict=True) if one.optimum is not None}
        rest = {id(one): replace(one, kept=float(planes.kept(one.V).mean())) for one in optima if id(one) not in judged}
        path = tuple((judged | rest).get(id(one.optimum), one.optimum) for one in found)
        path += tuple(now for one, now in zip(views, scored, strict=True) if one.optimum is None)
        others = sorted([*scored[1:], *rest.values()], key=lambda one: -one.kept)
        _, *others = distinct([scored[0], *others])
        reason = f"Converged: of {len(path)} views {said(views, how)}.{planes.remark}"
        if views[0].optimum is None:
            n_iterations = max(1, len(clearest.trace.evaluations))
            optima = self._on_all_rows([scored[0], *others])
            return Solution(optima, n_iterations, self.n_evaluations, reason, clearest.trace, path)
        best = next(one for one in found if one.optimum is views[0].optimum)
        return self._polished(replace(best, optimum=scored[0]), others, reason, path)

    def _paper_s_view(self, found: list[Found], beside: list[Optimum]) -> list[Optimum]:
        """The lowest objective at the paper's μ, where nothing is known; none where it is asked about already."""
        if self.problem.Y.any_known or self.mu != "auto":
            return []
        scale = min(abs(one.optimum.mu) for one in found)
        paper_s = min((one.optimum for one in found if one.optimum.mu == scale), key=lambda one: one.objective)
        return [] if any(one is paper_s for one in beside) else [paper_s]

    def _scored(self, one: Judged, space: Space) -> Optimum:
        """A judged view as an optimum; a plane stands at the paper's μ and the α that says who had no part in it."""
        if one.optimum is not None:
            return replace(one.optimum, kept=one.mean)
        Z = self.problem.Z
        shown = [shown_by_some(Y, one.V) for Y in self.problem.Y.backgrounds]
        return Optimum(
            one.V.T.copy(),
            np.nan,
            starts=0,
            alpha=np.inf if self._has_ban else 0.0,
            mu=self._mus(space)[0],
            separation=separation(shown_by_some(Z, one.V), shown, chance=space.chance),
            leakage=self.leakage.of(one.V),
            kept=one.mean,
        )

    @property
    def _has_ban(self) -> bool:
        """Whether columns or labels are known that no weight, but a ban keeps out of the view."""
        return bool(self.problem.known_columns.any()) or self.problem.Y.weighed_labels is not None

    def _search(self, rng: np.random.Generator) -> list[Found]:
        """Every view of the path."""
        n_rows = self.problem.Z.n_rows
        sample: Mask | None = None
        if n_rows > SEARCHED_ROWS:
            sample = np.zeros(n_rows, dtype=bool)
            sample[self.problem.Z.by_content(rng.choice(n_rows, SEARCHED_ROWS, replace=False))] = True
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
        elif not isinstance(self.mu, str) and self.mu < 0:
            found = [_with_minorities(one) for one in found]
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
            solution = self._minimize(M, space, mu, starts[:1] if mu == 0 else starts, sketch=True)
            for optimum in self._compared(solution.optima):
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

    def _compared(self, optima: list[Optimum]) -> list[Optimum]:
        """Those of a point that are scored; of a given μ such as lie apart."""
        if self.mu == "auto":
            return optima[: self.kept]
        apart: list[Optimum] = []
        for one in optima:
            if not apart or squared_distances(one.V[None], np.stack([other.V for other in apart])).min() >= APART:
                apart.append(one)
        return apart[: self.kept]

    def _alphas(self, space: Space) -> list[float]:
        if self.alpha != "auto":
            return [float(self.alpha) if self.problem.Y.any_known else 0.0]
        if not space.known:
            return [np.inf if space.without_columns else 0.0]
        # A prior whose rows vary in nothing the view could show weighs nothing, whatever α.
        weight = sum(w * form.trace for w, form in space.known)
        return [a * space.X.trace / weight for a in self._alpha_factors] if weight > 0 else [0.0]

    def _mus(self, space: Space) -> list[float]:
        if not isinstance(self.mu, str):
            return [float(self.mu)]
        # A space of k directions has one view, and no error to take a scale from.
        if space.X.size == self.k:
            return [0.0]
        scale = paper_mu(space.X, space.X, contrastive_axes(space.X, self.k))
        return [scale * factor for factor in self._mu_factors]

    def _minimize(self, M: QuadraticForm, space: Space, mu: float, starts: Array, *, sketch: bool = False) -> Solution:
        """The optima; as a `sketch` only so far that they can be compared."""
        tol, max_iter = self.tol, self.max_iter
        if sketch:
            tol, max_iter = max(tol, SKETCH), min(max_iter, SKETCH_ITERATIONS)
        solution = optima_at(
            M, space.Z, mu, starts, tol=tol, max_iter=max_iter, polish=not sketch, callback=self.callback
        )
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
        if not np.isfinite(kurtoses[0]):
            # Where nothing is left beside the known, a view is made of rounding.
            raise FlatRowsError.of_views(self.k)
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
