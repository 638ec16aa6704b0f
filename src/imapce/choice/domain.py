"""Where views are searched: all directions, or the leading axes where columns are many or rows very many.

    V = lift(W),   W (q, k) orthonormal;      f(V) = tr M − tr(VᵀMV) + μ·κ(ZV)  with M, Z in the coordinates of W

Up to 64 columns are searched whole and on all rows, up to 20,000 of them: what is found there is an optimum of equation
2 and nothing less. Beyond, views lie in the leading principal axes of a sample, with at least 30 rows for each axis: a
kurtosis can be made small by chance in directions enough (on 784 pixels deeper optima separated worse).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from imapce.choice.score import SEARCHED_ROWS, reached_by_chance
from imapce.clusters.space import searched_axes
from imapce.priors.problem import Problem
from imapce.rows.open import open_rows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.rows.subspace import RowsWithin
from imapce.search.starts import WHITENED_AXES

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Domain:
    """The coordinates that views are searched in, with everything the objective needs there.

    >>> from imapce.priors.problem import pose
    >>> from imapce.tables.reader import Reader
    >>> reader, matrix = Reader.learn(np.random.default_rng(0).normal(size=(50, 4)))
    >>> Domain.of(pose(open_rows(matrix), [], reader, n_components=2)).is_whole
    True
    """

    Z: StandardizedRows
    X: QuadraticForm
    known: list[tuple[float, QuadraticForm]]
    lift: Callable[[Array], Array]
    is_whole: bool

    @classmethod
    def of(cls, problem: Problem) -> Domain:
        """The domain of a search that chooses its setting."""
        Z = problem.Z
        if Z.n_rows <= SEARCHED_ROWS and int(Z.informative.sum()) <= WHITENED_AXES:
            return cls.whole(problem)
        basis = searched_axes(problem, np.zeros((Z.n_features, 0)))
        rows = Z.project(basis, Z.content_mask(SEARCHED_ROWS))

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

    @property
    def chance(self) -> float:
        """The separation that the best of all directions here shows of a Gaussian."""
        return reached_by_chance(self.Z.n_rows, self.Z.n_features)

    def contrast(self, alpha: float) -> QuadraticForm:
        """M = XᵀX − α Σ wⱼYⱼᵀYⱼ; where no rows are known α has nothing to weigh."""
        if not self.known:
            # Without a prior M is ZᵀZ itself, and where that is not formed a product with it is a pass over the rows.
            return self.Z.second_moment if self.X is self.Z.second_moment else self.X
        return QuadraticForm.combine([(1.0, self.X), *((-alpha * weight, form) for weight, form in self.known)])
