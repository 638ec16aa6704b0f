"""Where clusters are looked for: a sample of the rows to explore, as columns and as points of few axes.

    columns → those that agree with others → values up to their rounding → leading axes → points

What is known and to be explained away stands beside the columns as L, and its effect B is taken from them (`given.py`):
columns and points are those of X° = X − LB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from imapce.clusters.agreement import BEYOND, shared_weights
from imapce.priors.problem import Problem
from imapce.rows.base import Rows
from imapce.rows.given import RowsGiven
from imapce.rows.ordering import key_directions, order_of_points
from imapce.rows.standardized import StandardizedRows
from imapce.rows.subspace import Subspace
from imapce.search.closed_form import leading_eigenvectors
from imapce.search.starts import WHITENED_AXES
from imapce.search.stiefel import with_fixed_signs

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]

SAMPLE = 1_500
AXES = 30
# Beyond so many columns the leading axes stand for them, and a column's few values are not looked at.
WIDE = 500
FEW_VALUES = 10
ROUNDED = 9
ROWS_PER_AXIS, FEWEST_AXES = 30, 10
# Rows' worth of what the known explains alone that its effect given the clusters leans on: with none, an effect that
# clusters tell as well is any. With a hundred times as much the views of twelve stories differ by 0.002 (development
# tables).
LEANING = 1.0


@dataclass(frozen=True)
class Space:
    """A sample of the rows to explore of a problem: `values` (m, c) of its columns, and `known` (m, q) beside them.

    `places` (m,) are those of the sample among `n_rows`, in an order that the values alone decide, and `drawn` (m,) the
    same among the rows to explore; `directions` (d, c) lead from standardised rows to columns, `stretch` (c,) to values
    up to their rounding and `turn` (c, p) to points. `effect` (q, c) is what is taken from the values; `narrowed` says
    that some of the axes were left out to look again.
    """

    places: Labels
    values: Array
    _: KW_ONLY
    drawn: Labels
    known: Array
    effect: Array
    directions: Array
    stretch: Array
    turn: Array
    rounded: Array | None
    counts: Labels
    n_rows: int
    rows: StandardizedRows
    valleys: bool
    narrowed: bool = False

    @classmethod
    def of(cls, problem: Problem, unexplored: Mask) -> Space:
        """The space of the rows `unexplored` (n,) of all; less the effect of the known where that was found already."""
        Z = problem.Z if problem.told is None else problem.told.rest
        learned = np.flatnonzero(unexplored & ~problem.set_aside)
        # The same rows for every seed and however the table is sorted, so that explorations of one table agree.
        drawn = Z.content_sample(SAMPLE)
        chosen = np.zeros(Z.n_rows, dtype=bool)
        chosen[drawn] = True
        order = drawn.argsort().argsort()
        known = Z.known(chosen)[order] if isinstance(Z, RowsGiven) else np.zeros((len(drawn), 0))
        directions, sources = _directions(problem, Z)
        values = Z.project(directions, chosen)[order]
        alone = np.zeros((0, values.shape[1]))
        if known.shape[1]:
            alone = effect_of(known, lambda D: D.T @ values, np.sum(values**2, axis=0))
        shared = sources is None
        if sources is not None:
            agreed, shared = _agreed(values - known @ alone, sources)
            directions, values, alone = directions[:, agreed], values[:, agreed], alone[:, agreed]
        # Columns that are not standardised may be in any unit, and no tolerance is to depend on it.
        unit = max(float(values.std()), np.finfo(np.float64).tiny) if values.size else 1.0
        # Rows read in another order differ in their last digits, which decide between equal distances.
        rounded = np.round(values / unit, ROUNDED)
        counts = 1 + (np.diff(np.sort(rounded, axis=0), axis=0) > 1e-12).sum(axis=0)
        spread, stretch = _up_to_rounding(rounded, counts)
        space = cls(
            learned[drawn],
            spread,
            drawn=drawn,
            known=known,
            effect=alone * stretch / unit,
            directions=directions,
            stretch=stretch / unit,
            turn=np.eye(spread.shape[1]),
            rounded=None if known.shape[1] else rounded,
            counts=counts,
            n_rows=len(unexplored),
            rows=Z,
            # Between few values there is always a valley; it tells something where columns agree on it.
            valleys=shared or _mostly_continuous(counts),
        )
        space = replace(space, turn=_leading(space.columns))
        if problem.effect is None or not isinstance(Z, RowsGiven):
            return space
        # What was found of all rows holds for any of them.
        found = Z.less(problem.effect.weights).standardized_effect @ directions
        return replace(space, effect=found * space.stretch)

    @property
    def columns(self) -> Array:
        """The columns (m, c) of X°, up to their rounding."""
        return self.values - self.known @ self.effect

    @cached_property
    def points(self) -> Array:
        """The rows of the sample (m, p)."""
        return self.columns @ self.turn

    @property
    def sample(self) -> Mask:
        """Which of all rows (n,) are in the sample."""
        inside = np.zeros(self.n_rows, dtype=bool)
        inside[self.places] = True
        return inside

    @property
    def basis(self) -> Array:
        """(p, d + q): from standardised rows with the known beside them to points."""
        axes = self.directions @ (self.stretch[:, None] * self.turn)
        if not isinstance(self.rows, RowsGiven):
            return axes.T
        beside = np.zeros((self.rows.beside.n_features, axes.shape[1]))
        beside[: len(axes)] = axes
        beside[self.rows.places] -= self.effect @ self.turn
        return beside.T

    @property
    def mean(self) -> Array:
        """The means of the rows with the known beside them."""
        return self.rows.beside.mean if isinstance(self.rows, RowsGiven) else self.rows.mean

    @property
    def scale(self) -> Array:
        """The scales of the rows with the known beside them."""
        return self.rows.beside.scale if isinstance(self.rows, RowsGiven) else self.rows.scale

    def null(self) -> tuple[Array, Callable[[Array], Array]]:
        """The columns whose values a table of one group would have, and the way from such a table to its points."""
        if self.rounded is None:
            return self.columns, lambda drawn: drawn @ self.turn
        counts = self.counts
        return self.rounded, lambda drawn: _up_to_rounding(drawn, counts)[0] @ self.turn

    def given(self, shares: Array) -> Space:
        """The same rows less the effect of the known given the shares (m, k) of clusters in them.

        values ≈ shares·m + known·B, by least squares that lean on what the known explains alone (`effect_of`).
        """
        values = self.values
        effect = effect_of(self.known, lambda D: D.T @ values, np.sum(values**2, axis=0), shares)
        return replace(self, effect=effect)

    def leading(self, axes: int) -> Space:
        """The same rows in their leading axes alone."""
        return replace(self, turn=self.turn @ _leading(self.points, axes), narrowed=True)

    def points_of(self, some: Mask, rows: Rows) -> Array:
        """Some of all rows, the sample or not, in the same coordinates but for values up to their rounding."""
        return coordinates(rows.subset(some), self.basis, self.mean, self.scale)

    def order_of(self, some: Mask, rows: Rows) -> Labels:
        """The places of some of all rows in an order that their values alone decide."""
        basis = self.basis
        keys = key_directions(len(basis)).T @ basis
        return np.flatnonzero(some)[order_of_points(coordinates(rows.subset(some), keys, self.mean, self.scale))]


def coordinates(rows: Rows, components: Array, mean: Array, scale: Array) -> Array:
    """(n, k): ((x − mean)/scale)·componentsᵀ of all rows."""
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    W = (components * inverse).T
    return rows.project(W, (mean - rows.origin) @ W)


def effect_of(
    known: Array,
    products: Callable[[Array], Array],
    squares: Array,
    shares: Array | None = None,
    *,
    whole: bool = False,
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
        B, beside = alone + regression(shares, LEANING, lambda D: products(D) - D.T @ L @ alone), shares
    if whole:
        return whiten @ B
    tells = np.zeros(len(squares), dtype=bool)
    for of in [one] if shares is None else [one, beside]:
        without, both = left(of), left(np.column_stack([of, L]))
        free = max(m - of.shape[1] - r, 1)
        ratio = (without - both) / r / np.maximum(both / free, 1e-12 * squares + np.finfo(np.float64).tiny)
        tells |= f_distribution.sf(ratio, r, free) < BEYOND / max(len(squares), 1)
    return whiten @ (B * tells)


def searched_axes(problem: Problem, excluded: Array, most: int | None = None) -> Array:
    """B (d, q): the leading principal axes of the rows to explore, free of `excluded` directions and what is erased.

    At most `most` of them, or as many as rows can tell: a kurtosis can be made small by chance in directions enough (on
    784 pixels deeper optima separated worse).
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


def _directions(problem: Problem, Z: StandardizedRows) -> tuple[Array, Labels | None]:
    """(d, c): the columns, each with its source column in the table, or the leading axes of very many, which have none.

    Columns that are known, or that the known tells wholly, are none of them.
    """
    columns = Z.informative & problem.X.informative[: Z.n_features]
    if int(columns.sum()) > WIDE:
        return leading_directions(Z), None
    return np.eye(Z.n_features)[:, columns], problem.sources[columns]


def leading_directions(Z: StandardizedRows) -> Array:
    """The leading axes of very many columns, as many as the rows can tell; signs fixed."""
    most = max(FEWEST_AXES, min(WHITENED_AXES, Z.n_rows // ROWS_PER_AXIS))
    values, axes = leading_eigenvectors(Z.second_moment, min(most, Z.n_features))
    return with_fixed_signs(axes[:, values > Z.rows.resolution * max(values[0], 0.0)])


def _agreed(values: Array, sources: Labels) -> tuple[Mask, bool]:
    """Which columns (n, c) agree with others beyond chance, and whether any do; all where none does, or of very many.

    A cluster is what several columns agree on. A random true/false column, a category, an id or a single two-humped
    column would cut every cluster in pieces: of three clusters and two random categories of ten levels it made seven to
    eighteen, and with such columns left out three.
    """
    n, c = values.shape
    if 2 * c > n or not c:
        return np.ones(c, dtype=bool), True
    weights = shared_weights(values, np.unique(sources, return_inverse=True)[1])
    # Weights of one for all are given where no column shares anything: one that shares has less.
    return weights > 0, bool((weights[weights > 0] < 1.0).any())


def _mostly_continuous(counts: Labels) -> bool:
    varying = counts[counts > 1]
    return bool(len(varying)) and float(np.mean(varying > FEW_VALUES)) >= 0.5


def _up_to_rounding(values: Array, counts: Labels) -> tuple[Array, Array]:
    """Columns (n, c) as they may have been before they were rounded, and what each was stretched by for it.

    A column counts as rounded where its values usually lie farther apart than the kernel is wide in which a valley is
    looked for, 0.9·σ·n^(−1/5): each would be a cluster of no width. Its values are spread evenly up to half the way to
    the next, or half the usual way where that is far, and the column keeps its variance. Three rounded Gaussians (600×4
    in steps of one standard deviation) were 11 to 15 clusters in four of six tables and are three in five. Between two
    values nothing was rounded: with those spread too, ionosphere falls from an NMI of 0.39 to 0.11.
    """
    n = len(values)
    spread, stretch = values.copy(), np.ones(values.shape[1])
    for j in np.flatnonzero((counts > 2) & (counts < n)):
        levels, place = np.unique(values[:, j], return_inverse=True)
        gaps = np.diff(levels)
        usual, deviation = float(np.median(gaps)), float(values[:, j].std())
        if usual < 0.9 * deviation * n**-0.2:
            continue
        gaps = np.minimum(gaps, usual) / 2
        below, above = np.append(gaps[0], gaps), np.append(gaps, gaps[-1])
        between = np.random.default_rng([5, int(j)]).random(n)
        spread[:, j] += between * (below + above)[place] - below[place]
        stretch[j] = deviation / float(spread[:, j].std())
        spread[:, j] *= stretch[j]
    return spread, stretch


def _leading(values: Array, most: int = AXES) -> Array:
    """(c, q): the columns themselves, or where they repeat each other or are more than `most` their leading axes."""
    deviation = values - values.mean(axis=0)
    variances, axes = np.linalg.eigh(deviation.T @ deviation / max(1, len(values)))
    varying = variances > 1e-10 * max(float(variances.max(initial=0.0)), np.finfo(np.float64).tiny)
    if varying.all() and len(variances) <= most:
        return np.eye(len(variances))
    return axes[:, varying][:, ::-1][:, :most]
