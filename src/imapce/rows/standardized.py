"""Standardised rows that are never written: ((z − m)/σ)ᵀV = zᵀ(V/σ) − mᵀ(V/σ).

X, Y and Z are each standardised with their own mean and standard deviation, and all of it happens on d×k matrices.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from imapce.common.samples import seeded_sample
from imapce.rows.base import Array, Rows
from imapce.rows.ordering import key_directions, order_of_points

SMALLEST_SPREAD = 1e-150
ORDERED_ROWS = 50_000
LARGEST_FACTOR = 256 << 20  # bytes


@dataclass(frozen=True)
class QuadraticForm:
    """A symmetric d×d matrix M as the solver needs it: `M @ V`, its trace and, where it was formed, its entries.

    `factor` writes F (n, d) with M = FᵀF, where M was not formed and F is small and has fewer rows than columns.

    >>> QuadraticForm.of_matrix(np.eye(3)).trace
    3.0
    """

    size: int
    trace: float
    product: Callable[[Array], Array]
    matrix: Array | None = None
    factor: Callable[[], Array] | None = None
    # Eigenvalues and eigenvectors that were asked for already.
    found: list[tuple[Array, Array]] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of_matrix(cls, matrix: Array) -> QuadraticForm:
        """The form of a symmetric matrix that was formed."""
        return cls(len(matrix), float(np.trace(matrix)), lambda V: matrix @ V, matrix)

    def __matmul__(self, V: Array) -> Array:
        return self.product(V)

    def columns(self, chosen: NDArray[np.bool_]) -> Array:
        """M[:, chosen] (d, q), read off the matrix or as one product with unit vectors."""
        if self.matrix is not None:
            return self.matrix[:, chosen]
        places = np.flatnonzero(chosen)
        units = np.zeros((self.size, len(places)))
        units[places, np.arange(len(places))] = 1.0
        return self @ units

    def restricted_to(self, columns: NDArray[np.bool_], trace: float) -> QuadraticForm:
        """ΠMΠ with Π keeping `columns`: the second moment of the rows whose other columns are zero."""
        keep = columns.astype(np.float64)
        if self.matrix is not None:
            return QuadraticForm.of_matrix(self.matrix * np.outer(keep, keep))
        return QuadraticForm(self.size, trace, lambda V: keep[:, None] * (self @ (keep[:, None] * V)))

    @staticmethod
    def combine(terms: Sequence[tuple[float, QuadraticForm]]) -> QuadraticForm:
        """Σ wⱼMⱼ, as one matrix when every term has one.

        >>> M, N = QuadraticForm.of_matrix(np.eye(2)), QuadraticForm.of_matrix(np.diag([0.0, 1.0]))
        >>> QuadraticForm.combine([(1.0, M), (-2.0, N)]).matrix.diagonal()
        array([ 1., -1.])
        """
        terms = [(weight, form) for weight, form in terms if weight != 0.0] or [(0.0, terms[0][1])]
        if len(terms) == 1 and terms[0][0] == 1.0:
            return terms[0][1]
        matrices = [(weight, form.matrix) for weight, form in terms if form.matrix is not None]
        if len(matrices) == len(terms):
            total = matrices[0][0] * matrices[0][1]
            for weight, matrix in matrices[1:]:
                total += weight * matrix
            # The traces may count more than the matrices do, such as variance outside of a subspace.
            trace = sum(weight * form.trace for weight, form in terms)
            return QuadraticForm(len(total), trace, lambda V: total @ V, total)

        def product(V: Array) -> Array:
            result = terms[0][0] * (terms[0][1] @ V)
            for weight, form in terms[1:]:
                result += weight * (form @ V)
            return result

        return QuadraticForm(terms[0][1].size, sum(weight * form.trace for weight, form in terms), product)


def column_scales(mean: Array, variance: Array, groups: NDArray[np.intp] | None, *, standardize: bool) -> Array:
    """σ of every column, 0 for a constant one; the columns of one group (a one-hot category) share √Σ variance.

    A spread below 8 rounding errors of the mean counts as constant: a column of 0.1 has no information in its last
    bit, a column of nanosecond time stamps a few microseconds apart has. So does one below 1e-150, whose square has
    lost its digits and whose reciprocal would overflow.

    >>> column_scales(np.array([0.0, 0.1]), np.array([4.0, 1e-34]), None, standardize=True)
    array([2., 0.])
    """
    spread = np.sqrt(variance)
    constant = (spread <= 8 * np.finfo(np.float64).eps * np.abs(mean)) | (spread < SMALLEST_SPREAD)
    if not standardize:
        return np.where(constant, 0.0, 1.0)
    if groups is not None:
        spread = np.sqrt(np.bincount(groups, weights=variance))[groups]
    return np.where(constant, 0.0, spread)


class StandardizedRows:
    """Z = (rows − m)/σ, reduced only through the engine below; a column with σ = 0 reads as zeros.

    >>> from imapce.rows.dense import DenseRows
    >>> Z = StandardizedRows(DenseRows(np.array([[1.0, 5.0, 7.0], [3.0, 9.0, 7.0]])))
    >>> Z.second_moment.matrix
    array([[2., 2., 0.],
           [2., 2., 0.],
           [0., 0., 0.]])
    """

    def __init__(self, rows: Rows, *, groups: NDArray[np.intp] | None = None, standardize: bool = True):
        self.rows = rows
        self.n_rows, self.n_features = rows.n_rows, rows.n_features
        moments = rows.moments()
        self._mean = moments.mean
        # The constant-column rule needs the true location, which is the engine's mean plus its origin.
        self.mean = moments.mean + rows.origin
        self.scale = column_scales(self.mean, moments.variance, groups, standardize=standardize)
        self.informative = self.scale > 0
        self._inverse = np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.informative)
        self.variance = moments.variance * self._inverse**2
        self.second_moment = self._second_moment(moments.scatter)

    def _second_moment(self, scatter: Array | None) -> QuadraticForm:
        """C = ZᵀZ, or where d×d is too large two products with the rows whenever it is used."""
        if scatter is not None:
            return QuadraticForm.of_matrix(scatter * np.outer(self._inverse, self._inverse))
        trace = float(self.n_rows * self.variance.sum())

        def product(V: Array) -> Array:
            W = self._inverse[:, None] * V
            return self._inverse[:, None] * self.rows.scatter_product(W, self._mean @ W)

        small = self.n_rows < self.n_features and 8 * self.n_rows * self.n_features <= LARGEST_FACTOR
        factor = (lambda: np.concatenate(list(self.blocks()))) if small else None
        return QuadraticForm(self.n_features, trace, product, factor=factor)

    @property
    def unfolded(self) -> StandardizedRows:
        """The same rows as they are read once, where folding them would cost more than the pass it saves."""
        if self.rows.unfolded is self.rows:
            return self
        other = copy.copy(self)
        other.rows = self.rows.unfolded
        return other

    def blocks(self) -> Iterator[Array]:
        """The rows themselves, block by block, for the few methods that need more than the reductions above."""
        for block in self.rows.blocks():
            yield (block - self._mean) * self._inverse

    def cross(self, values: Array) -> Array:
        """ZᵀL (d, q) for values L (n, q) beside the rows."""
        rows = self.rows.unfolded.cross(values)
        return self._inverse[:, None] * (rows - np.outer(self._mean, values.sum(axis=0)))

    def with_columns(self, columns: NDArray[np.bool_]) -> QuadraticForm:
        """The second moment of the rows whose columns outside `columns` are set to zero."""
        return self.second_moment.restricted_to(columns, float(self.n_rows * self.variance[columns].sum()))

    def project(self, V: Array, sample: NDArray[np.bool_] | None = None) -> Array:
        """ZV (n, c), or of the rows in `sample` alone; scaled as Z is, whatever rows are asked for."""
        scaled = self._inverse[:, None] * V
        offset = self._mean @ scaled
        if sample is None or sample.all():
            return self.rows.project(scaled, offset)
        # Folding a sample would cost more than the one pass over it.
        return self.rows.unfolded.project_some(scaled, offset, sample)

    def sampled(self, sample: NDArray[np.bool_]) -> Array:
        """The rows in `sample` themselves (m, d), for what no reduction can tell; a few thousand at most."""
        chosen = self.rows.unfolded.subset(sample)
        return np.concatenate([(block - self._mean) * self._inverse for block in chosen.blocks()])

    def fourth_powers(self, W: Array) -> Array:
        """Σ s² (R,) with s the squared row norms of ZW."""
        return self.rows.fourth_powers(self._inverse[:, None] * W, self._mean)

    @cached_property
    def content_order(self) -> NDArray[np.intp]:
        """The places (n,) of the rows in an order that their values alone decide, wherever they stand; one pass.

        Very many rows stay in theirs: a sample of 20,000 of them is much the same whichever it is, and to sort them
        would need all of them in one place.

        >>> from imapce.rows.dense import DenseRows
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> Z, turned = (StandardizedRows(DenseRows(rows)) for rows in (X, X[::-1].copy()))
        >>> bool(np.all(X[Z.content_order] == X[::-1][turned.content_order]))
        True
        """
        if self.n_rows > ORDERED_ROWS:
            return np.arange(self.n_rows)
        # Columns that do not vary have no say, so that those which are known may be left out without another order.
        keys = np.zeros((self.n_features, 2))
        keys[self.informative] = key_directions(int(self.informative.sum()))
        return order_of_points(self.project_exactly(keys))

    def project_exactly(self, V: Array) -> Array:
        """ZV (n, c) to rounding of float64, where the order of the results is what is asked for."""
        scaled = self._inverse[:, None] * V
        return self.rows.unfolded.project_exactly(scaled, self._mean @ scaled)

    def by_content(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """content_order[places], which of very many rows is not written: eight bytes for each."""
        return places if self.n_rows > ORDERED_ROWS else self.content_order[places]

    def content_sample(self, most: int) -> NDArray[np.intp]:
        """The places of at most `most` rows, drawn by their values, in the order of their values.

        >>> from imapce.rows.dense import DenseRows
        >>> len(StandardizedRows(DenseRows(np.eye(9))).content_sample(4))
        4
        """
        return self.by_content(np.flatnonzero(seeded_sample(self.n_rows, most)))

    def content_mask(self, most: int) -> NDArray[np.bool_]:
        """The same sample as a mask (n,)."""
        mask = np.ones(self.n_rows, dtype=bool)
        # Of few rows all are meant, and their order costs a pass.
        if self.n_rows > most:
            mask[:] = False
            mask[self.content_sample(most)] = True
        return mask

    def quartic(self, W: Array) -> Array:
        """Zᵀ diag(s) U (R, d, k) with U = ZW and s its squared row norms."""
        scaled = self._inverse[:, None] * W
        result = self.rows.quartic(scaled, self._mean @ scaled)
        return self._inverse[:, None] * (result.weighted - self._mean[:, None] * result.total[:, None, :])
