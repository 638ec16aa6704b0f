"""The search over (α, μ) that `alpha="auto"` and `mu="auto"` stand for: few points, all optima kept, one choice.

μ runs over 1, 10 and 100 times the paper's scale and α over multiples of tr XᵀX / tr YᵀY, at which the known weighs as
much as the data. Known columns need no such weight: α = ∞ leaves them out of the view, and where what is left still
shows them clearly, also every direction that is correlated with them.

Where no split in two is clear, a few points with μ < 0 are added: a high kurtosis shows minorities, a low one cannot.

Two things keep the search honest where columns are many: views lie in the leading principal axes of the rows to
explore, with at least ROWS_PER_AXIS rows for each (a kurtosis can be made small by chance in directions enough: on
784 pixels deeper optima separated worse), and of very many rows a sample is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from imapce.choice.score import Candidate, Leakage, discounted, distinct, separation
from imapce.choice.spaces import Space, _within, known_units, searched_axes
from imapce.common.threads import single_thread_if
from imapce.priors.terms import PriorTerms
from imapce.rows.open import open_rows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.search.closed_form import contrastive_axes
from imapce.search.objective import Objective, paper_mu
from imapce.search.race import minimize
from imapce.search.solution import Progress, Solution, Trace
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
# Numbers below which a second thread gains little on a quiet machine and costs much on a busy one (6,000 × 64 with two
# threads on two busy cores: 140 times the time of one).
ONE_THREAD = 1_000_000


# A view, where and among which starts it was found: its scores, the space, its frame in it, their trace.
Found = tuple[Candidate, Space, Array, Trace]


@dataclass(frozen=True)
class Outcome:
    """The path, the positions of its views best first, and the chosen one brought to the tolerance.

    `trace` is that of the starts among which the chosen view was found.
    """

    candidates: list[Candidate]
    order: list[int]
    solution: Solution
    trace: Trace
    V: Array
    kurtosis: float
    n_evaluations: int

    @property
    def distinct(self) -> list[Candidate]:
        """The views best first, without those that show nearly an earlier one."""
        return distinct([self.candidates[i] for i in self.order])


class PathSearch:
    """All (α, μ) of the path for given data; a number instead of "auto" holds that coordinate fixed.

    >>> PathSearch(Xs, Z, terms, n_components=2).run(rng)      # doctest: +SKIP
    """

    def __init__(
        self,
        X: StandardizedRows,
        Z: StandardizedRows,
        terms: PriorTerms,
        *,
        n_components: int,
        alpha: float | str = "auto",
        mu: float | str = "auto",
        n_starts: int = 10,
        tol: float = 1e-6,
        max_iter: int = 500,
        every_optimum: bool = True,
        callback: Callable[[Progress], None] | None = None,
    ):
        self.X, self.Z, self.terms = X, Z, terms
        self.k, self.alpha, self.mu = n_components, alpha, mu
        self.n_starts, self.tol, self.max_iter = min(STARTS, n_starts), tol, max_iter
        self.kept = KEPT if every_optimum else 1
        self.callback = callback
        self.columns = terms.known_columns(X.n_features)
        self.leakage = Leakage(X.second_moment, self.columns)
        self.n_evaluations = 0

    def run(self, rng: np.random.Generator) -> Outcome | None:
        """The whole search; None where the rows vary in fewer directions than a view has axes."""
        sample: Mask | None = None
        if self.Z.n_rows > SEARCHED_ROWS:
            sample = np.zeros(self.Z.n_rows, dtype=bool)
            sample[rng.choice(self.Z.n_rows, SEARCHED_ROWS, replace=False)] = True
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
            if is_last or max((one[0] for one in found), key=lambda one: one.separation).leakage <= NOTICEABLE:
                break
        if left is None:
            return None
        # Of the last space that has room for a view: the one after it may be too small.
        space, rest, closed = left
        found += self._walk(space, rest, closed, rng)
        if max(one[0].score for one in found) < space.chance + CLEAR and self.mu == "auto":
            # No split in two is clearer than chance makes it: the parts that a high kurtosis shows may be.
            found += self._walk(space, self._minority_points(space), closed, rng)
            # What was found where the known still showed cannot stand beside them: there the known is what is clear.
            here = [one for one in found if one[1] is space]
            found = [(self._with_minorities(*one[:3]), *one[1:]) for one in here]
        candidates = [one[0] for one in found]
        order = sorted(range(len(candidates)), key=lambda i: -candidates[i].score)
        chosen, space, V, trace = found[order[0]]
        M = self._contrast(space, chosen.alpha)
        objective = Objective(M, space.Z, chosen.mu)
        solution = self._minimize(objective, V[None], tol=self.tol, max_iter=self.max_iter)
        best = solution.optima[0].V
        return Outcome(
            candidates,
            order,
            solution,
            trace,
            space.basis @ best,
            float(objective.kurtosis(best[None])[0]),
            self.n_evaluations,
        )

    # --- where to search -----------------------------------------------------------------------------------------

    def _spaces(self, sample: Mask | None) -> Iterator[tuple[Space, bool]]:
        """The full space; or, to be free of known columns, that without them and then that uncorrelated with them.

        Each with whether it is the last.
        """
        d = self.X.n_features
        if self.alpha == "auto" and self.columns.any():
            unit = known_units(self.terms, d)
            left = int(self.Z.informative.sum()) - unit.shape[1]
            if left >= self.k:
                more = left - unit.shape[1] >= self.k
                yield self._space(unit, sample), not more
                if more:
                    yield self._space(np.column_stack([unit, self.X.second_moment @ unit]), sample), True
                return
        yield self._space(np.zeros((d, 0)), sample), True

    def _space(self, excluded: Array, sample: Mask | None) -> Space:
        Z, without_columns = self.Z, excluded.shape[1] > 0
        parts = [part for part in self.terms.known_parts if not (without_columns and part.rows is None)]
        basis = searched_axes(Z, self.terms, excluded, self.k)
        rows = Z.project(basis, sample)
        return Space(
            basis,
            StandardizedRows(open_rows(rows, n_components=self.k), standardize=False),
            rows,
            _within(self.X.second_moment, basis),
            [(part.weight, _within(part.second_moment, basis)) for part in parts],
            [Y.project(basis) for Y in self.terms.backgrounds],
            without_columns,
        )

    # --- the path ------------------------------------------------------------------------------------------------

    def _points(self, space: Space) -> list[tuple[float, float]]:
        """Every (α, μ) of the path."""
        points = []
        for alpha in self._alphas(space):
            if self.mu == "paper":
                M = self._contrast(space, alpha)
                points.append((alpha, paper_mu(M, space.X, contrastive_axes(M, self.k))))
            else:
                points += [(alpha, mu) for mu in self._mus(space)]
        return points

    def _minority_points(self, space: Space) -> list[tuple[float, float]]:
        """The points with μ < 0, at the middle α: where all starts find the minority, its weight matters little."""
        alphas, scale = self._alphas(space), self._mus(space)[0]
        return [(alphas[len(alphas) // 2], scale * factor) for factor in MINORITY_MUS] if scale > 0 else []

    @staticmethod
    def _with_minorities(candidate: Candidate, space: Space, V: Array) -> Candidate:
        backgrounds = [Y @ V for Y in space.backgrounds]
        clear = separation(space.rows @ V, backgrounds, minorities=True, chance=space.chance)
        return replace(candidate, separation=clear)

    def _walk(
        self, space: Space, points: list[tuple[float, float]], closed: list[Array], rng: np.random.Generator
    ) -> list[Found]:
        """The views found at the given points, scored."""
        found = []
        for alpha, mu in points:
            M = self._contrast(space, alpha)
            drawn = random_frames(self.n_starts - 1 - len(closed), space.Z.n_features, self.k, rng)
            starts = np.concatenate([np.stack([contrastive_axes(M, self.k), *closed]), drawn])
            objective = Objective(M, space.Z, mu)
            solution = self._minimize(
                objective,
                objective.within_range(starts[:1] if mu == 0 else starts),
                tol=max(self.tol, SKETCH),
                max_iter=min(self.max_iter, SKETCH_ITERATIONS),
            )
            optima = solution.optima[: self.kept]
            kurtoses = objective.kurtosis(np.stack([optimum.V for optimum in optima]))
            for optimum, kurtosis in zip(optima, kurtoses, strict=True):
                V = optimum.V
                candidate = Candidate(
                    alpha,
                    mu,
                    (space.basis @ V).T.copy(),
                    optimum.objective,
                    float(kurtosis),
                    optimum.starts,
                    separation(space.rows @ V, [Y @ V for Y in space.backgrounds], chance=space.chance),
                    self.leakage.of(space.basis @ V),
                )
                found.append((candidate, space, V, solution.trace))
        return found

    def _alphas(self, space: Space) -> list[float]:
        if self.alpha != "auto":
            return [float(self.alpha) if self.terms.any_known else 0.0]
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

    def _contrast(self, space: Space, alpha: float) -> QuadraticForm:
        known = [(-alpha * weight, form) for weight, form in space.known] if np.isfinite(alpha) else []
        return QuadraticForm.combine([(1.0, space.X), *known])

    def _minimize(self, objective: Objective, starts: Array, *, tol: float, max_iter: int) -> Solution:
        with single_thread_if(objective.Z.rows.folded or objective.Z.n_rows * objective.Z.n_features <= ONE_THREAD):
            solution = minimize(
                objective,
                starts,
                tol=tol,
                max_iter=max_iter,
                preconditioner=objective.preconditioner(self.k),
                newton=objective.Z.rows.folded,
                callback=self.callback,
            )
        self.n_evaluations += objective.n_evaluations
        return solution


def by_separation(frames: list[Array], X: StandardizedRows, Z: StandardizedRows, terms: PriorTerms) -> list[int]:
    """The positions of frames (d, k) of one (α, μ), those that separate most clearly first."""
    leakage = Leakage(X.second_moment, terms.known_columns(X.n_features))
    backgrounds = terms.backgrounds
    scores = [discounted(separation(Z.project(V), [Y.project(V) for Y in backgrounds]), leakage.of(V)) for V in frames]
    return sorted(range(len(frames)), key=lambda i: -scores[i])
