"""Where to look: the leading axes of the rows to explore, free of what the view may not show.

    B (d, q)  the leading eigenvectors of ZᵀZ inside {v : vᵀE = 0},  E what is excluded or erased

Views lie in the leading principal axes, with at least ROWS_PER_AXIS rows for each: a kurtosis can be made small by
chance in directions enough (on 784 pixels deeper optima separated worse). The refinement of clusters and the test for
what is left look in the same place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from imapce.choice.score import reached_by_chance, shown_by_some
from imapce.priors.problem import Problem
from imapce.rows.open import open_rows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.rows.subspace import Subspace
from imapce.search.closed_form import leading_eigenvectors
from imapce.search.starts import WHITENED_AXES
from imapce.search.stiefel import with_fixed_signs

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROWS_PER_AXIS = 30
FEWEST_AXES = 10


@dataclass(frozen=True)
class Space:
    """A part of the columns' space to search in: basis B (d, q), and everything the objective needs in it."""

    basis: Array
    Z: StandardizedRows
    rows: Array
    X: QuadraticForm
    known: list[tuple[float, QuadraticForm]]
    backgrounds: list[Array]
    without_columns: bool

    @classmethod
    def of(
        cls, problem: Problem, excluded: Array, sample: Mask | None = None, *, without_columns: bool = False
    ) -> Space:
        """The space free of `excluded` directions (d, c), with Z or a sample of it in its coordinates.

        `without_columns` says that known columns and labels are not to be weighed in it.
        """
        parts = [part for part in problem.Y.parts if not (without_columns and part.rows is None)]
        basis = searched_axes(problem, excluded)
        rows = problem.Z.project(basis, sample)
        return cls(
            basis,
            StandardizedRows(open_rows(rows, n_components=problem.n_components), standardize=False),
            rows,
            _within(problem.X.second_moment, basis),
            [(part.weight, _within(part.second_moment, basis)) for part in parts],
            [shown_by_some(Y, basis) for Y in problem.Y.backgrounds],
            without_columns,
        )

    @property
    def chance(self) -> float:
        return reached_by_chance(*self.rows.shape)

    def contrast(self, alpha: float) -> QuadraticForm:
        """BᵀMB; α = ∞ is for spaces without the known columns, where it has nothing to weigh."""
        known = [(-alpha * weight, form) for weight, form in self.known] if np.isfinite(alpha) else []
        return QuadraticForm.combine([(1.0, self.X), *known])


def spaces_without_columns(problem: Problem, sample: Mask | None = None) -> Iterator[tuple[Space, bool]]:
    """To be free of known columns and labels: the space without them (labels are no direction of it), then the one
    uncorrelated with them; each with whether it is the last. None where too few directions would be left.
    """
    unit, shared = known_units(problem), known_directions(problem)
    left = int(problem.Z.informative.sum()) - unit.shape[1]
    if shared.shape[1] and left >= problem.n_components:
        labels = problem.label_directions
        given_up = unit.shape[1] + (np.linalg.matrix_rank(labels) if labels.shape[1] else 0)
        more = left - given_up >= problem.n_components
        yield Space.of(problem, unit, sample, without_columns=True), not more
        if more:
            yield Space.of(problem, np.column_stack([unit, shared]), sample, without_columns=True), True


def known_units(problem: Problem) -> Array:
    """The unit vectors (d, c) of the known columns."""
    return units_of(problem.known_columns)


def known_directions(problem: Problem) -> Array:
    """C_X[:, K] and XᵀL (d, q): what a direction uncorrelated with the known columns and labels is orthogonal to."""
    unit = known_units(problem)
    return np.column_stack([problem.X.second_moment @ unit, problem.label_directions])


def units_of(chosen: Mask) -> Array:
    """The unit vectors (d, c) of the chosen columns.

    >>> units_of(np.array([False, True])).tolist()
    [[0.0], [1.0]]
    """
    columns = np.flatnonzero(chosen)
    unit = np.zeros((len(chosen), len(columns)))
    unit[columns, np.arange(len(columns))] = 1.0
    return unit


def searched_axes(problem: Problem, excluded: Array, most: int | None = None) -> Array:
    """B (d, q): the leading principal axes of the rows to explore, free of `excluded` directions and what is erased.

    At most `most` of them, or what a kurtosis may be searched in.
    """
    Z = problem.Z
    inside = problem.directions_left(excluded)
    if not inside.n_erased:
        # ZᵀZ is zero along columns that do not vary, so they need not be taken out.
        inside = Subspace(np.ones(Z.n_features, dtype=bool))
    # Where nothing is left, the largest eigenvalue is rounding and nothing would look small beside it.
    if inside.size < 1:
        return np.zeros((Z.n_features, 0))
    if most is None:
        most = max(FEWEST_AXES, problem.n_components + 1, min(WHITENED_AXES, Z.n_rows // ROWS_PER_AXIS))
    form = inside.form(Z.second_moment)
    values, axes = leading_eigenvectors(form, min(most, form.size))
    varying = values > Z.rows.resolution * max(values[0], 0.0)
    # Signs are fixed, so that the random starts mean the same however the eigenvectors were found.
    return with_fixed_signs(inside.lift(axes[:, varying]))


def space_left(problem: Problem, components: Array, alpha: float) -> Array:
    """The leading axes B (d, q) in which the clusters of a view may differ: those free of what is known.

    Known columns are known whether a weight or a ban keeps them out of the view, and a binary one alone would be two
    clusters. What is correlated with them is given up only where the view gave it up too. Labels are no columns: what
    is known of the rows is all that is correlated with them.
    """
    excluded = np.zeros((problem.X.n_features, 0))
    if alpha > 0:
        excluded = known_units(problem)
        shared = problem.X.second_moment @ excluded
        seen = np.linalg.norm(components @ shared, axis=1)
        if shared.size and seen.max() <= 1e-8 * np.linalg.norm(shared):
            excluded = np.column_stack([excluded, shared])
        excluded = np.column_stack([excluded, problem.label_directions])
    return searched_axes(problem, excluded)


def _within(form: QuadraticForm, basis: Array) -> QuadraticForm:
    """BᵀMB."""
    inner = basis.T @ (form @ basis)
    return QuadraticForm.of_matrix((inner + inner.T) / 2)
