"""Standardised rows that are never written: ((z − m)/σ)ᵀV = zᵀ(V/σ) − mᵀ(V/σ).

X, Y and Z are each standardised with their own mean and standard deviation, and all of it happens on d×k matrices.

Their order is one that their values alone decide: by u = Zg, g two fixed directions, first by u₁ and where that agrees
by u₂. Sorting a table, or reading it from another place, must not change what is found in it; yet folds, samples and
starts are taken by place. Taken by the place in this order, they are the same rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np

from imapce.common.arrays import Array, Codes, Mask, seeded_sample
from imapce.rows.base import Rows

SMALLEST_SPREAD = 1e-150
ORDERED_ROWS = 50_000
LARGEST_FACTOR = 256 << 20  # bytes
# Of their spread: sums of the same numbers in another order differ in their last digits.
DIGITS = 1e-9


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

    def columns(self, chosen: Mask) -> Array:
        """M[:, chosen] (d, q), read off the matrix or as one product with unit vectors."""
        if self.matrix is not None:
            return self.matrix[:, chosen]
        places = np.flatnonzero(chosen)
        units = np.zeros((self.size, len(places)))
        units[places, np.arange(len(places))] = 1.0
        return self @ units

    def map_through(
        self, size: int, forward: Callable[[Array], Array], back: Callable[[Array], Array], trace: float | None
    ) -> QuadraticForm:
        """AᵀMA for a linear map with AV = forward(V) and AᵀG = back(G); `trace` None is that of the matrix formed."""
        if self.matrix is not None:
            matrix = back(back(self.matrix).T)
            matrix = (matrix + matrix.T) / 2
            trace = float(np.trace(matrix)) if trace is None else trace
            return QuadraticForm(size, trace, lambda V: matrix @ V, matrix)
        assert trace is not None
        write = self.factor
        factor = None if write is None else (lambda: back(write().T).T)
        return QuadraticForm(size, trace, lambda V: back(self @ forward(V)), factor=factor)

    @staticmethod
    def combine(terms: Sequence[tuple[float, QuadraticForm]]) -> QuadraticForm:
        """Σ wⱼMⱼ, as one matrix when every term has one."""
        terms = [(weight, form) for weight, form in terms if weight != 0.0] or [(0.0, terms[0][1])]
        if len(terms) == 1 and terms[0][0] == 1.0:
            return terms[0][1]
        # The traces may count more than the matrices do, such as variance outside of a subspace.
        trace = sum(weight * form.trace for weight, form in terms)
        matrices = [weight * form.matrix for weight, form in terms if form.matrix is not None]
        if len(matrices) == len(terms):
            total = reduce(np.add, matrices)
            return QuadraticForm(len(total), trace, lambda V: total @ V, total)
        return QuadraticForm(
            terms[0][1].size, trace, lambda V: reduce(np.add, (weight * (form @ V) for weight, form in terms))
        )


def column_scales(mean: Array, variance: Array, groups: Codes | None, *, standardize: bool) -> Array:
    """σ of every column, 0 for a constant one; the columns of one group (a one-hot category) share √Σ variance.

    A spread below 8 rounding errors of the mean counts as constant: a column of 0.1 has no information in its last
    bit, a column of nanosecond time stamps a few microseconds apart has. So does one below 1e-150, whose square has
    lost its digits and whose reciprocal would overflow.
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

    def __init__(self, rows: Rows, *, groups: Codes | None = None, standardize: bool = True):
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
        centered = values - values.mean(axis=0)
        rows = self.rows.unfolded.cross(centered)
        return self._inverse[:, None] * (rows - np.outer(self._mean, centered.sum(axis=0)))

    def with_columns(self, columns: Mask) -> QuadraticForm:
        """The second moment of the rows whose columns outside `columns` are set to zero."""
        keep, form = columns.astype(np.float64), self.second_moment
        if form.matrix is not None:
            return QuadraticForm.of_matrix(form.matrix * np.outer(keep, keep))
        trace = float(self.n_rows * self.variance[columns].sum())
        return QuadraticForm(form.size, trace, lambda V: keep[:, None] * (form @ (keep[:, None] * V)))

    def project(self, V: Array, sample: Mask | None = None) -> Array:
        """ZV (n, c), or of the rows in `sample` alone; scaled as Z is, whatever rows are asked for."""
        scaled = self._inverse[:, None] * V
        offset = self._mean @ scaled
        if sample is None or sample.all():
            return self.rows.project(scaled, offset)
        # Folding a sample would cost more than the one pass over it.
        return self.rows.unfolded.project_some(scaled, offset, sample)

    def sampled(self, sample: Mask) -> Array:
        """The rows in `sample` themselves (m, d), for what no reduction can tell; a few thousand at most."""
        chosen = self.rows.unfolded.subset(sample)
        return np.concatenate([(block - self._mean) * self._inverse for block in chosen.blocks()])

    def fourth_powers(self, W: Array) -> Array:
        """Σ s² (R,) with s the squared row norms of ZW."""
        return self.rows.fourth_powers(self._inverse[:, None] * W, self._mean)

    def quartic(self, W: Array) -> Array:
        """Zᵀ diag(s) U (R, d, k) with U = ZW and s its squared row norms."""
        scaled = self._inverse[:, None] * W
        result = self.rows.quartic(scaled, self._mean @ scaled)
        return self._inverse[:, None] * (result.weighted - self._mean[:, None] * result.total[:, None, :])

    @cached_property
    def content_order(self) -> Codes:
        """The places (n,) of the rows in an order that their values alone decide, wherever they stand; one pass.

        Very many rows stay in theirs: a sample of 20,000 of them is much the same whichever it is, and to sort them
        would need all of them in one place.
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

    def by_content(self, places: Codes) -> Codes:
        """content_order[places], which of very many rows is not written: eight bytes for each."""
        return places if self.n_rows > ORDERED_ROWS else self.content_order[places]

    def content_sample(self, most: int) -> Codes:
        """The places of at most `most` rows, drawn by their values, in the order of their values."""
        return self.by_content(np.flatnonzero(seeded_sample(self.n_rows, most)))

    def content_mask(self, most: int) -> Mask:
        """The same sample as a mask (n,)."""
        mask = np.ones(self.n_rows, dtype=bool)
        # Of few rows all are meant, and their order costs a pass.
        if self.n_rows > most:
            mask[:] = False
            mask[self.content_sample(most)] = True
        return mask


class MappedRows(StandardizedRows):
    """ZA: the standardised rows Z seen through a linear map A, which a subclass gives by its two products."""

    def __init__(self, Z: StandardizedRows, second_moment: QuadraticForm):
        self._Z, self.rows = Z, Z.rows
        self.n_rows, self.n_features = Z.n_rows, second_moment.size
        self.second_moment = second_moment

    def forward(self, V: Array) -> Array:
        """AV: frames (..., n_features, k) as frames of Z."""
        raise NotImplementedError

    def back(self, G: Array) -> Array:
        """AᵀG: what a gradient in the columns of Z means in those of ZA."""
        raise NotImplementedError

    def blocks(self) -> Iterator[Array]:
        for block in self._Z.blocks():
            yield self.back(block.T).T

    def cross(self, values: Array) -> Array:
        return self.back(self._Z.cross(values))

    def project(self, V: Array, sample: Mask | None = None) -> Array:
        return self._Z.project(self.forward(V), sample)

    def project_exactly(self, V: Array) -> Array:
        return self._Z.project_exactly(self.forward(V))

    def sampled(self, sample: Mask) -> Array:
        return self.back(self._Z.sampled(sample).T).T

    def fourth_powers(self, W: Array) -> Array:
        return self._Z.fourth_powers(self.forward(W))

    def quartic(self, W: Array) -> Array:
        return self.back(self._Z.quartic(self.forward(W)))


def levels_as_in(X: StandardizedRows, Y: StandardizedRows, groups: Codes | None) -> QuadraticForm:
    """YᵀY of a background, with the levels of every category as large and as far apart as they are in X.

    A number has unit variance in X and in Y, so that neither stands out beside the other by how far it varies, only by
    what it goes with. A category of three levels or more (of two it is the same) has that as a whole, and its levels
    may have other shares in Y: of X and Y alone, the rarer ones of the background would be what a view shows. So
    Y_c → Y_c·cov(Y_c)^(−½)·cov(X_c)^(½) for every category c; directions that Y lacks stay without variance.
    """
    form, of_X = Y.second_moment, X.second_moment.matrix
    if groups is None or form.matrix is None or of_X is None:
        return form
    several = np.flatnonzero(np.bincount(groups) > 2)
    if not len(several):
        return form
    A = np.eye(form.size)
    for source in several:
        own = np.ix_(groups == source, groups == source)
        A[own] = _power(form.matrix[own] / Y.n_rows, -0.5) @ _power(of_X[own] / X.n_rows, 0.5)
    return form.map_through(form.size, lambda V: A @ V, lambda G: A.T @ G, None)


def _power(matrix: Array, power: float) -> Array:
    """A power of a symmetric matrix on its range."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-10 * max(float(values[-1]), np.finfo(np.float64).tiny)
    return (vectors[:, kept] * values[kept] ** power) @ vectors[:, kept].T


def order_of_points(points: Array) -> Codes:
    """The order of rows (n, c) by their columns, the first before the second and so on; those that agree in all of
    them, to DIGITS of their spread, are the same row.
    """
    if points.size == 0:
        return np.arange(len(points))
    # A few far rows would make the spread so wide that all others agree.
    spread = np.subtract(*np.percentile(points, [75, 25], axis=0))
    spread = np.where(spread > 0, spread, points.std(axis=0))
    whole = np.rint(points / np.where(spread > 0, DIGITS * spread, 1.0))
    return np.lexsort(whole.T[::-1])


def key_directions(n_features: int) -> Array:
    """g (d, 2), always the same: eigenvectors would have signs that another order of the rows turns."""
    return np.random.default_rng(0).standard_normal((n_features, 2))
