"""Where clusters are looked for: a sample of the rows to explore, as columns, as points of few axes and as cells.

    columns → those that agree with others → values up to their rounding → points (all) and cells (numbers, levels)

What is known and to be explained away stands beside the columns as L, and its effect B is taken from them (`given.py`):
columns, points and cells are those of X° = X − LB; of a category the effect tilts the shares of its levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import f as f_distribution

from imapce.clusters.columns import Cells, Columns, Reading, coordinates, shared_weights
from imapce.clusters.mixture import sphering
from imapce.common.arrays import Array, Codes, Mask
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.priors.problem import Problem
from imapce.rows.base import Rows
from imapce.rows.given import RowsGiven
from imapce.rows.standardized import QuadraticForm, StandardizedRows, key_directions, order_of_points
from imapce.rows.subspace import Subspace
from imapce.search.descent import with_fixed_signs
from imapce.search.starts import WHITENED_AXES, leading_eigenvectors

DEFAULT = SETTINGS.clusters
# Digits that rows read in another order have in common.
ROUNDED = 9


@dataclass(frozen=True)
class Space:
    """A sample of the rows to explore of a problem: `values` (m, c) of its columns, and `known` (m, q) beside them.

    `places` (m,) are those of the sample among `n_rows`, in an order that the values alone decide, and `drawn` (m,) the
    same among the rows to explore; `directions` (d, c) lead from standardised rows to columns, `stretch` (c,) to values
    up to their rounding and `turn` (c, p) to points. `effect` (q, c) is what is taken from the values; `columns` tell
    numbers and categories apart, and `shared` says whether any columns agree with others.
    """

    places: Codes
    values: Array
    _: KW_ONLY
    drawn: Codes
    known: Array
    effect: Array
    directions: Array
    stretch: Array
    turn: Array
    rounded: Array
    columns: Columns
    unit: float
    n_rows: int
    rows: StandardizedRows
    shared: bool
    settings: ClusterSettings

    @classmethod
    def of(cls, problem: Problem, unexplored: Mask, settings: ClusterSettings = DEFAULT) -> Space:
        """The space of the rows `unexplored` (n,) of all; less the effect of the known where that was found already."""
        Z = problem.Z if problem.with_known is None else problem.with_known.rest
        learned = np.flatnonzero(unexplored & ~problem.set_aside)
        # The same rows for every seed and however the table is sorted, so that explorations of one table agree.
        drawn = Z.content_sample(settings.rows)
        chosen = np.zeros(Z.n_rows, dtype=bool)
        chosen[drawn] = True
        order = drawn.argsort().argsort()
        known = Z.known(chosen)[order] if isinstance(Z, RowsGiven) else np.zeros((len(drawn), 0))
        directions, sources = _directions(problem, Z, settings)
        values = Z.project(directions, chosen)[order]
        alone = np.zeros((0, values.shape[1]))
        if known.shape[1]:
            alone = effect_of(known, lambda D: D.T @ values, np.sum(values**2, axis=0), settings=settings)
        shared, gaps = sources is None, np.full(values.shape[1], np.nan)
        if sources is not None:
            if problem.gaps is not None:
                # What a cell that was missing and filled reads as in standardised rows.
                filled = np.full_like(Z.scale, np.nan)
                np.divide(problem.gaps - Z.mean, Z.scale, out=filled, where=Z.scale > 0)
                gaps = filled[directions.argmax(axis=0)]
            agreed, shared = _agreed(values - known @ alone, sources, settings)
            # Levels of a category that say nothing split nothing: a mixture has them alike in all components.
            agreed |= np.bincount(sources)[sources] > 1
            directions, values, alone = directions[:, agreed], values[:, agreed], alone[:, agreed]
            sources, gaps = sources[agreed], gaps[agreed]
        # Columns that are not standardised may be in any unit, and no tolerance is to depend on it.
        unit = max(float(values.std()), np.finfo(np.float64).tiny) if values.size else 1.0
        # Rows read in another order differ in their last digits, which decide between equal distances.
        rounded = np.round(values / unit, ROUNDED)
        columns = Columns.of(rounded, sources, np.round(gaps / unit, ROUNDED), settings.least_tilt)
        spread, stretch = columns.up_to_rounding(rounded)
        space = cls(
            learned[drawn],
            spread,
            drawn=drawn,
            known=known,
            effect=alone * stretch / unit,
            directions=directions,
            stretch=stretch / unit,
            turn=np.eye(spread.shape[1]),
            rounded=rounded,
            columns=columns,
            unit=unit,
            n_rows=len(unexplored),
            rows=Z,
            shared=shared,
            settings=settings,
        )
        space = replace(space, turn=_leading(space.given_values, settings.axes))
        if problem.effect is None or not isinstance(Z, RowsGiven):
            return space
        # What was found of all rows holds for any of them.
        found = Z.less(problem.effect.weights).standardized_effect @ directions
        return replace(space, effect=found * space.stretch)

    @property
    def given_values(self) -> Array:
        """The columns (m, c) of X°, up to their rounding."""
        return self.values - self.known @ self.effect

    @cached_property
    def points(self) -> Array:
        """The rows of the sample (m, p), categories as their levels; rounded, or last digits decide who is near."""
        return np.round(self.given_values @ self.turn, ROUNDED)

    @cached_property
    def axes(self) -> Array:
        """(c, q): from columns to sphered axes of the numbers, those with holes left out."""
        return self._axes_of(self.given_values)

    def _axes_of(self, given: Array) -> Array:
        """The axes of any columns (m, c) like these."""
        if self.columns.are_numbers:
            return self.turn @ sphering(given @ self.turn)
        numbers = np.flatnonzero(self.columns.whole)
        if not len(numbers):
            return np.zeros((given.shape[1], 0))
        turn = _leading(given[:, numbers], self.settings.axes)
        turn = turn @ sphering(given[:, numbers] @ turn)
        axes = np.zeros((given.shape[1], turn.shape[1]))
        axes[numbers] = turn
        return axes

    @cached_property
    def cells(self) -> Cells:
        """The rows of the sample as a mixture reads them."""
        taken = self.known @ self.effect if self.known.shape[1] else None
        return self._cells_of(self.given_values, self.rounded, self.axes, taken)

    def _cells_of(self, given: Array, as_read: Array, axes: Array, taken: Array | None) -> Cells:
        """Cells of columns (m, c): those `given` the known along `axes` (c, q), and `as_read` to tell levels and holes;
        `taken` (m, c) is what the known does to them.
        """
        columns = self.columns
        change = None if taken is None else taken[:, columns.places]
        loose = given[:, columns.loose], as_read[:, columns.loose]
        return columns.cells(given @ axes, *loose, as_read[:, columns.places], change)

    @property
    def sample(self) -> Mask:
        """Which of all rows (n,) are in the sample."""
        inside = np.zeros(self.n_rows, dtype=bool)
        inside[self.places] = True
        return inside

    def reading(self) -> Reading:
        """How any row is read as these are."""
        columns, every = self.columns, np.eye(len(self.stretch))
        parts = [self._beside(self.axes, self.effect), self._beside(every[:, columns.loose], self.effect)]
        # Holes and levels are told by what a row reads before the known is taken from it, and then what is taken.
        told = every[:, np.append(np.flatnonzero(columns.loose), columns.places)] / (self.unit * self.stretch[:, None])
        parts.append(self._beside(told, None))
        if self.known.shape[1]:
            parts.append(-self._beside(every[:, columns.places], self.effect, of_columns=False))
        return Reading(np.concatenate(parts), self.mean, self.scale, columns=columns, n_axes=self.axes.shape[1])

    def _beside(self, axes: Array, effect: Array | None, *, of_columns: bool = True) -> Array:
        """(p, d + q): from standardised rows with the known beside them to columns, less an effect, along `axes`."""
        own = self.directions @ (self.stretch[:, None] * axes) * of_columns
        if not isinstance(self.rows, RowsGiven):
            return np.asarray(own.T)
        beside = np.zeros((self.rows.beside.n_features, axes.shape[1]))
        beside[: len(own)] = own
        if effect is not None:
            beside[self.rows.places] -= effect @ axes
        return beside.T

    @property
    def mean(self) -> Array:
        """The means of the rows with the known beside them."""
        return self.rows.beside.mean if isinstance(self.rows, RowsGiven) else self.rows.mean

    @property
    def scale(self) -> Array:
        """The scales of the rows with the known beside them."""
        return self.rows.beside.scale if isinstance(self.rows, RowsGiven) else self.rows.scale

    @property
    def null_numbers(self) -> Array:
        """The numbers (m, ·) whose values a table of one group would have: as they were read, or given the known."""
        numbers = self.columns.whole | self.columns.loose
        return (self.given_values if self.known.shape[1] else self.rounded)[:, numbers]

    def like(self, numbers: Array, levels: Codes) -> tuple[Array, Cells]:
        """Points and cells of a table with other values of these columns: numbers (m, ·) and levels (m, b) by code."""
        table = self.columns.joined(numbers, levels)
        spread = self.columns.up_to_rounding(table)[0] if not self.known.shape[1] else table
        return spread @ self.turn, self._cells_of(spread, table, self._axes_of(spread), None)

    def given(self, shares: Array) -> Space:
        """The same rows less the effect of the known given the shares (m, k) of clusters in them.

        values ≈ shares·m + known·B, by least squares that lean on what the known explains alone (`effect_of`).
        """
        values, squares = self.values, np.sum(self.values**2, axis=0)
        effect = effect_of(self.known, lambda D: D.T @ values, squares, shares, settings=self.settings)
        return replace(self, effect=effect)

    def points_of(self, some: Mask, rows: Rows) -> Array:
        """Some of all rows, the sample or not, in the same coordinates but for values up to their rounding."""
        return coordinates(rows.subset(some), self._beside(self.turn, self.effect), self.mean, self.scale)

    def order_of(self, some: Mask, rows: Rows) -> Codes:
        """The places of some of all rows in an order that their values alone decide."""
        basis = self._beside(self.turn, self.effect)
        keys = key_directions(len(basis)).T @ basis
        return np.flatnonzero(some)[order_of_points(coordinates(rows.subset(some), keys, self.mean, self.scale))]


def effect_of(
    known: Array,
    products: Callable[[Array], Array],
    squares: Array,
    shares: Array | None = None,
    *,
    whole: bool = False,
    settings: ClusterSettings = DEFAULT,
) -> Array:
    """B (q, c) of values (m, c) ≈ shares·m + known·B, by least squares; without shares, of one cluster.

    `products(D)` is Dᵀ·values for D (m, r) and `squares` (c,) are Σ values²: the values themselves may lie anywhere.
    What clusters could tell as well as the known stays with the known: B leans on what it explains alone. A column of
    which an F-test finds the known to tell nothing beyond chance is left as it is: a label that says nothing would give
    every class of a nearly constant column a value of its own. `whole` takes it all the same. The known is taken in the
    directions of its span at unit variance, so that only what it tells counts and not how it is written: a class as
    0/1, a category with or without its last level.
    """
    m = len(known)
    variances, axes = np.linalg.eigh(known.T @ known / m)
    kept = variances > 1e-10 * max(float(variances[-1]), np.finfo(np.float64).tiny)
    whiten = axes[:, kept] / np.sqrt(variances[kept])
    L = known @ whiten
    r = L.shape[1]

    def regression(beside: Array, leaning: float, of: Callable[[Array], Array]) -> Array:
        design = np.column_stack([beside, L])
        lean = np.append(np.full(beside.shape[1], 1e-6), np.full(r, leaning))
        return np.linalg.solve(design.T @ design + np.diag(lean), of(design))[beside.shape[1] :]

    def left(design: Array) -> Array:
        """Σ of what least squares on a design leave of every column."""
        shared = products(design)
        solved = np.linalg.pinv(design.T @ design, rcond=1e-10, hermitian=True) @ shared
        return np.maximum(squares - np.einsum("rc,rc->c", shared, solved), 0.0)

    one = np.ones((m, 1))
    alone = regression(one, 0.0, products)
    B, beside = alone, one
    if shares is not None:
        B, beside = alone + regression(shares, settings.leaning, lambda D: products(D) - D.T @ L @ alone), shares
    # What does not vary tells nothing, and has nothing to be tested.
    if whole or not r:
        return whiten @ B
    tells = np.zeros(len(squares), dtype=bool)
    for of in [one] if shares is None else [one, beside]:
        without, both = left(of), left(np.column_stack([of, L]))
        free = max(m - of.shape[1] - r, 1)
        ratio = (without - both) / r / np.maximum(both / free, 1e-12 * squares + np.finfo(np.float64).tiny)
        tells |= f_distribution.sf(ratio, r, free) < settings.chance / max(len(squares), 1)
    return whiten @ (B * tells)


def searched_axes(problem: Problem, excluded: Array, settings: ClusterSettings = DEFAULT) -> Array:
    """B (d, q): the leading principal axes of the rows to explore, free of `excluded` directions and what is erased; as
    many as rows can tell.
    """
    Z = problem.Z
    inside = problem.directions_left(excluded)
    if not inside.n_erased:
        # ZᵀZ is zero along columns that do not vary, so they need not be taken out.
        inside = Subspace(np.ones(Z.n_features, dtype=bool))
    # Where nothing is left, the largest eigenvalue is rounding and nothing would look small beside it.
    if inside.size < 1:
        return np.zeros((Z.n_features, 0))
    axes = _told_axes(Z, inside.form(Z.second_moment), problem.n_components + 1, settings)
    # Signs are fixed, so that the random starts mean the same however the eigenvectors were found.
    return with_fixed_signs(inside.lift(axes))


def _told_axes(Z: StandardizedRows, form: QuadraticForm, fewest: int, settings: ClusterSettings) -> Array:
    """The leading axes of a form of the rows, as many as these can tell and at least so few."""
    most = max(settings.fewest_axes, fewest, min(WHITENED_AXES, Z.n_rows // settings.rows_per_axis))
    values, axes = leading_eigenvectors(form, min(most, form.size))
    return axes[:, values > Z.rows.resolution * max(values[0], 0.0)]


def _directions(problem: Problem, Z: StandardizedRows, settings: ClusterSettings) -> tuple[Array, Codes | None]:
    """(d, c): the columns, each with its source column in the table, or the leading axes of very many, which have none.

    Columns that are known, or that the known tells wholly, are none of them.
    """
    columns = Z.informative & problem.X.informative[: Z.n_features]
    if int(columns.sum()) > settings.columns:
        return with_fixed_signs(_told_axes(Z, Z.second_moment, 1, settings)), None
    return np.eye(Z.n_features)[:, columns], problem.sources[columns]


def _agreed(values: Array, sources: Codes, settings: ClusterSettings) -> tuple[Mask, bool]:
    """Which columns (n, c) agree with others beyond chance, and whether any do; all where none does, or of very many.

    A cluster is what several columns agree on. A random true/false column, a category, an id or a single two-humped
    column would cut every cluster in pieces: of three clusters and two random categories of ten levels it made seven to
    eighteen, and with such columns left out three.
    """
    n, c = values.shape
    if 2 * c > n or not c:
        return np.ones(c, dtype=bool), True
    weights = shared_weights(values, np.unique(sources, return_inverse=True)[1], settings)
    # Weights of one for all are given where no column shares anything: one that shares has less.
    return weights > 0, bool((weights[weights > 0] < 1.0).any())


def _leading(values: Array, most: int) -> Array:
    """(c, q): the columns themselves, or where they repeat each other or are more than `most` their leading axes."""
    deviation = values - values.mean(axis=0)
    variances, axes = np.linalg.eigh(deviation.T @ deviation / max(1, len(values)))
    varying = variances > 1e-10 * max(float(variances.max(initial=0.0)), np.finfo(np.float64).tiny)
    if varying.all() and len(variances) <= most:
        return np.eye(len(variances))
    return axes[:, varying][:, ::-1][:, :most]
