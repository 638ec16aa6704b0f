"""TODO-DOC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from imapce.choice.score import reached_by_chance
from imapce.priors.terms import PriorTerms
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.search.closed_form import leading_eigenvectors
from imapce.search.starts import WHITENED_AXES
from imapce.search.stiefel import with_fixed_signs

Array = NDArray[np.float64]

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

    @property
    def chance(self) -> float:
        return reached_by_chance(*self.rows.shape)


def known_units(terms: PriorTerms, n_features: int) -> Array:
    """The unit vectors (d, c) of the known columns."""
    columns = np.flatnonzero(terms.known_columns(n_features))
    unit = np.zeros((n_features, len(columns)))
    unit[columns, np.arange(len(columns))] = 1.0
    return unit


def searched_axes(Z: StandardizedRows, terms: PriorTerms, excluded: Array, n_components: int) -> Array:
    """B (d, q): the leading principal axes of the rows to explore, free of `excluded` directions and what is erased."""
    if terms.erased is not None:
        sizes = np.linalg.norm(terms.erased, axis=0)
        excluded = np.column_stack([excluded, terms.erased[:, sizes > 0] / sizes[sizes > 0]])
    most = max(FEWEST_AXES, n_components + 1, min(WHITENED_AXES, Z.n_rows // ROWS_PER_AXIS))
    return _principal_axes(Z, excluded, most)


def _principal_axes(Z: StandardizedRows, excluded: Array, most: int) -> Array:
    """The leading eigenvectors of ZᵀZ among the directions orthogonal to all `excluded` ones."""
    C, d = Z.second_moment, Z.n_features
    # Columns that are constant among the rows to explore get no weight, which the excluded ones would else lend.
    varies = Z.informative[:, None]
    Q, sizes, _ = np.linalg.svd(excluded * varies, full_matrices=False)
    Q = Q[:, sizes > 1e-10 * sizes.max(initial=0.0)]
    # Where nothing is left, the largest eigenvalue is rounding and nothing would look small beside it.
    if Q.shape[1] >= int(Z.informative.sum()):
        return np.zeros((d, 0))

    def free(V: Array) -> Array:
        return V * varies - Q @ (Q.T @ V)

    if C.matrix is not None:
        form = QuadraticForm.of_matrix(free(free(C.matrix).T))
    else:
        form = QuadraticForm(d, C.trace, lambda V: free(C @ free(V)))
    values, axes = leading_eigenvectors(form, min(most, d if form.matrix is not None else d - 1))
    # Signs are fixed, so that the random starts mean the same however the eigenvectors were found.
    return with_fixed_signs(axes[:, values > Z.rows.resolution * max(values[0], 0.0)])


def _within(form: QuadraticForm, basis: Array) -> QuadraticForm:
    """BᵀMB."""
    inner = basis.T @ (form @ basis)
    return QuadraticForm.of_matrix((inner + inner.T) / 2)
