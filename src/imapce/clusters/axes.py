"""Coordinates of the mixture: leading axes of the numeric columns, levels of the categories, covariates.

    numeric (n, q)   sphered leading axes of numeric columns without missing values
    partial (n, h)   numeric columns with missing values (NaN); independent within a component
    levels (n, L)    1 if the row has a level of a category; `blocks` (L,) is the category of each level
    tilt (n, L)      P(level | covariates) / P(level); None without covariates

An input column with two values is a category of two levels. Missing cells were imputed by the column mean, and are
recognized by that value. The axes of many columns are the leading eigenvectors of their second moment, above the edge
of the noise (Marchenko and Pastur 1967): λ > σ²·(1 + √(c/n))², with σ² the mean of the remaining eigenvalues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from imapce.common.arrays import Array, Codes, Mask
from imapce.common.records import Comparable
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.priors.problem import Problem
from imapce.rows.base import Rows
from imapce.rows.given import RowsGiven
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.search.descent import with_fixed_signs
from imapce.search.starts import leading_eigenvectors

TOLERANCE = 1e-6
# Values of the same row differ in their last digits if the rows are read in another order.
DIGITS = 9
# Rank correlation of a column and a function of it. Lengths of crabs that are different measurements have .99.
COPY = 0.999
# Share of the rows with one value from which a column has a spike.
SPIKE = 0.2
# Least factor of the share of a level given the covariates: 0 would forbid the level in all clusters.
LEAST_TILT = 0.05


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Rows in the coordinates of a mixture."""

    numeric: Array
    partial: Array
    levels: Array
    blocks: Codes
    tilt: Array | None = None

    def __len__(self) -> int:
        return len(self.numeric)

    @cached_property
    def pairs(self) -> NDArray[np.float32]:
        """Return the features (1, z, z_i z_j for i ≤ j) of the numeric axes."""
        Z = self.numeric.astype(np.float32)
        # Products with one column at a time take half the time of all at once (100 columns).
        products = [Z[:, i : i + 1] * Z[:, i:] for i in range(Z.shape[1])]
        return np.concatenate([np.ones((len(Z), 1), dtype=np.float32), Z, *products], axis=1)

    @cached_property
    def linear(self) -> Array:
        """Return the features (1, x, x², levels) of partial columns and categories; 0 instead of missing values."""
        x = np.nan_to_num(self.partial)
        return np.concatenate([~np.isnan(self.partial), x, x**2, self.levels], axis=1)

    def take(self, rows: NDArray | slice) -> Coordinates:
        """Return the given rows."""
        arrays = self.numeric[rows], self.partial[rows], self.levels[rows]
        return Coordinates(*arrays, self.blocks, None if self.tilt is None else self.tilt[rows])

    def in_blocks(self, numbers: int) -> Iterator[Coordinates]:
        """Yield blocks of rows with at most so many features."""
        size = max(1, numbers // (self.numeric.shape[1] ** 2 // 2 + self.n_columns + 1))
        for first in range(0, max(1, len(self)), size):
            yield self.take(slice(first, first + size))

    @property
    def n_columns(self) -> int:
        """Return the number of coordinates."""
        return self.numeric.shape[1] + self.partial.shape[1] + self.levels.shape[1]


@dataclass(frozen=True, eq=False)
class ColumnRoles(Comparable):
    """The role of each matrix column (c,): numeric, partial (numeric with missing values) or level of a category.

    A row has level l if its column `level_columns[l]` has the value `level_values[l]`; the share of the level grows by
    1/`level_scales[l]` of itself as the column grows by 1. The partial columns have the
    `missing_values` (h,). A column that `has_spike` has the same value in many rows.
    """

    numeric: Mask
    partial: Mask
    has_spike: Mask
    missing_values: Array
    _: KW_ONLY
    level_columns: Codes
    level_values: Array
    level_scales: Array
    blocks: Codes

    @classmethod
    def learn(cls, values: Array, sources: Codes | None, missing: Array) -> ColumnRoles:
        """Learn the roles of matrix columns from a sample; without `sources` all are numeric."""
        is_missing = np.abs(values - missing) < TOLERANCE
        low = np.where(is_missing, np.inf, values).min(axis=0)
        high = np.where(is_missing, -np.inf, values).max(axis=0)
        is_binary, is_dummy = np.zeros((2, len(low)), dtype=bool)
        if sources is not None:
            is_dummy = np.bincount(sources)[sources] > 1
            is_binary = ~is_dummy & (low < high) & (is_missing | (values == low) | (values == high)).all(axis=0)
        partial = ~is_dummy & ~is_binary & is_missing.any(axis=0)
        ordered, n_same = np.sort(values, axis=0), max(1, round(SPIKE * len(values)))
        # A column of two values is two levels, of which the second mirrors the first.
        columns = np.concatenate([np.flatnonzero(is_binary), np.flatnonzero(is_binary | (is_dummy & (low < high)))])
        is_first = np.arange(len(columns)) < is_binary.sum()
        level_values, steps = np.where(is_first, low[columns], high[columns]), (high - low)[columns]
        counts = (np.abs(values[:, columns] - level_values) < TOLERANCE).sum(axis=0)
        return cls(
            ~is_dummy & ~is_binary & ~partial,
            partial,
            np.asarray((ordered[n_same:] - ordered[:-n_same] < TOLERANCE).any(axis=0)),
            missing[partial],
            level_columns=columns,
            level_values=level_values,
            level_scales=np.where(is_first, -steps, steps) * np.maximum(counts, 0.5) / max(1, len(values)),
            blocks=columns if sources is None else np.unique(sources[columns], return_inverse=True)[1],
        )

    @property
    def unsphered(self) -> Codes:
        """Return the columns of partial columns and levels."""
        return np.append(np.flatnonzero(self.partial), self.level_columns)

    def encode(self, numeric: Array, values: Array, effect: Array | None) -> Coordinates:
        """Return the coordinates of rows with the columns `unsphered` and their effect of covariates (n, h + L)."""
        h, tilt = len(self.missing_values), None
        residuals = values if effect is None else values - effect
        is_missing = np.abs(values[:, :h] - self.missing_values) < TOLERANCE
        levels = (np.abs(values[:, h:] - self.level_values) < TOLERANCE).astype(np.float64)
        if effect is not None and len(self.blocks):
            tilt = np.maximum(1 + effect[:, h:] / self.level_scales, LEAST_TILT)
        partial: Array = np.where(is_missing, np.nan, np.round(residuals[:, :h], DIGITS))
        return Coordinates(np.round(numeric, DIGITS), partial, levels, self.blocks, tilt)


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample of the unexplored rows: matrix columns `values` (m, c) and covariates (m, p), in content order.

    `positions` (m,) are its rows among all input rows, `indices` (m,) among the rows of Z, which are the `candidates`
    (n,) of the input rows. `directions` (d, c) map standardized rows to the columns. Residuals are the values minus the
    `effect` (p, c) of the covariates.
    """

    values: Array
    covariates: Array
    effect: Array
    _: KW_ONLY
    positions: Codes
    indices: Codes
    candidates: Mask
    directions: Array
    sources: Codes | None
    roles: ColumnRoles
    rows: StandardizedRows
    settings: ClusterSettings

    def project(self, Z: StandardizedRows, V: Array) -> Array:
        """Return ZV (m, k) of the rows of the sample, for the rows Z to explore."""
        return in_order(lambda mask: Z.project(V, mask), self.indices, Z.n_rows)

    @cached_property
    def residuals(self) -> Array:
        """Return the columns (m, c) minus the effect of the covariates."""
        return self.values - self.covariates @ self.effect

    @cached_property
    def leading(self) -> Array:
        """Return the leading axes (c, r) of all columns, most variance first."""
        return leading_axes(self.residuals, self.settings.most_axes)

    @cached_property
    def points(self) -> Array:
        """Return the rows (m, r) in the leading axes of all columns, for trees, k-means and neighbors."""
        return np.round(self.residuals @ self.leading, DIGITS)

    @property
    def categories(self) -> dict[int, Codes]:
        """Return the levels (m,) of each category by its input column; missing values are one more level."""
        if self.sources is None or not len(self.roles.blocks):
            return {}
        levels, of_level = self.coordinates(1).levels, self.sources[self.roles.level_columns]
        masks = {int(source): of_level == source for source in np.unique(of_level)}
        return {
            source: np.where(levels[:, members].any(axis=1), levels[:, members].argmax(axis=1), members.sum())
            for source, members in masks.items()
        }

    @property
    def axis_counts(self) -> list[int]:
        """Return the numbers of numeric axes to compare."""
        settings, m = self.settings, len(self.values)
        available = leading_axes(self.residuals[:, self.roles.numeric], settings.most_axes).shape[1]
        most = min(available, max(2, m // settings.rows_per_axis))
        return sorted({min(q, most) for q in (*settings.axes, most)})

    def numeric_axes(self, residuals: Array, q: int) -> tuple[Array, Array]:
        """Return the map (c, q) from columns to sphered leading axes of the numeric columns, and its offset."""
        leading = leading_axes(residuals[:, self.roles.numeric], q)
        axes = np.zeros((residuals.shape[1], leading.shape[1]))
        axes[self.roles.numeric] = leading @ sphering(residuals[:, self.roles.numeric] @ leading)
        return axes, residuals.mean(axis=0) @ axes

    def coordinates(self, q: int, table: Array | None = None) -> Coordinates:
        """Return the rows in q numeric axes, or of another `table` with the same columns and no covariates."""
        roles, effect = self.roles, None
        values, residuals = (self.values, self.residuals) if table is None else (table, table)
        if table is None and self.covariates.shape[1]:
            effect = self.covariates @ self.effect[:, roles.unsphered]
        axes, offset = self.numeric_axes(residuals, q)
        return roles.encode(residuals @ axes - offset, values[:, roles.unsphered], effect)


def leading_axes(values: Array, most: int) -> Array:
    """Return the leading principal axes (c, r) of rows (m, c), most variance first."""
    deviation = values - values.mean(axis=0)
    variances, axes = np.linalg.eigh(deviation.T @ deviation / max(1, len(values)))
    varying = variances > 1e-9 * max(float(variances.max(initial=0.0)), np.finfo(np.float64).tiny)
    return axes[:, varying][:, ::-1][:, :most]


def sphering(values: Array) -> Array:
    """Return the map (p, q) from rows (n, p) to axes of unit variance."""
    axes = leading_axes(values, values.shape[1])
    return np.asarray(axes / (values @ axes).std(axis=0))


@dataclass(frozen=True, eq=False)
class CoordinateMap(Comparable):
    """Map from rows of any engine to the coordinates of a mixture.

    `basis` maps rows [x | l], standardized by `mean` and `scale`, to the numeric axes (before the `offset`), the other
    columns and, if there are covariates, their effect on the other columns.
    """

    basis: Array
    mean: Array
    scale: Array
    offset: Array
    roles: ColumnRoles

    @classmethod
    def from_sample(cls, sample: Sample, q: int) -> CoordinateMap:
        """Return the map that gives the coordinates of the sample, also for other rows."""
        rows, (axes, offset) = sample.rows, sample.numeric_axes(sample.residuals, q)
        original = rows.beside if isinstance(rows, RowsGiven) else rows
        values = np.zeros((original.n_features, sample.directions.shape[1]))
        values[: len(sample.directions)] = sample.directions
        effect, unsphered = np.zeros_like(values), sample.roles.unsphered
        if isinstance(rows, RowsGiven):
            effect[rows.places] = sample.effect
        parts = [(values - effect) @ axes, values[:, unsphered], effect[:, unsphered]]
        basis = np.concatenate(parts[: 3 if isinstance(rows, RowsGiven) else 2], axis=1)
        return cls(basis, original.mean, original.scale, offset, sample.roles)

    def __call__(self, rows: Rows) -> Coordinates:
        """Return the coordinates of all rows."""
        q, m = len(self.offset), len(self.roles.unsphered)
        columns = project_rows(rows, self.basis, self.mean, self.scale)
        numeric, values, effect = np.split(columns, [q, q + m], axis=1)
        return self.roles.encode(numeric - self.offset, values, effect if effect.shape[1] else None)


def project_rows(rows: Rows, basis: Array, mean: Array, scale: Array) -> Array:
    """Return ((x − mean)/scale)·basis (n, k) of all rows."""
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    W = basis * inverse[:, None]
    return rows.project(W, (mean - rows.origin) @ W)


def in_order(reduce: Callable[[Mask], Array], positions: Codes, n_rows: int) -> Array:
    """Return the result of `reduce` for the mask of some rows, in the order of their `positions`."""
    return reduce(as_mask(positions, n_rows))[positions.argsort().argsort()]


def as_mask(positions: Codes, n_rows: int) -> Mask:
    """Return the mask (n,) of the rows at some positions."""
    mask = np.zeros(n_rows, dtype=bool)
    mask[positions] = True
    return mask


def draw_sample(problem: Problem, unexplored: Mask, settings: ClusterSettings = SETTINGS.clusters) -> Sample:
    """Draw a sample of the rows to explore, `unexplored` (n,) among all input rows, in an order of their content."""
    Z = problem.Z if problem.with_known is None else problem.with_known.rest
    indices, candidates = Z.content_sample(settings.rows), unexplored & ~problem.set_aside
    directions, sources = _directions(problem, Z, settings)
    values = in_order(lambda mask: Z.project(directions, mask), indices, Z.n_rows)
    # Columns that are not standardized may have any unit.
    unit = max(float(values.std()), np.finfo(np.float64).tiny) if values.size else 1.0
    values, directions = np.round(values / unit, DIGITS), directions / unit
    if sources is not None and values.shape[1] <= settings.most_axes:
        columns = _without_copies(values, sources)
        values, directions, sources = values[:, columns], directions[:, columns], sources[columns]
    missing = np.full(values.shape[1], np.nan)
    if sources is not None and problem.gaps is not None:
        imputed = np.divide(problem.gaps - Z.mean, Z.scale, out=np.full_like(Z.scale, np.nan), where=Z.scale > 0)
        missing = np.round(imputed[directions.argmax(axis=0)] / unit, DIGITS)
    roles = ColumnRoles.learn(values, sources, missing)
    covariates, effect = np.zeros((len(indices), 0)), np.zeros((0, values.shape[1]))
    if isinstance(Z, RowsGiven):
        covariates = in_order(Z.known, indices, Z.n_rows)
        effect = np.zeros((covariates.shape[1], values.shape[1]))
        if problem.effect is not None:
            effect = Z.less(problem.effect.weights).standardized_effect @ directions
    return Sample(
        dequantized(values, roles, missing),
        covariates,
        effect,
        positions=np.flatnonzero(candidates)[indices],
        indices=indices,
        candidates=candidates,
        directions=directions,
        sources=sources,
        roles=roles,
        rows=Z,
        settings=settings,
    )


def _without_copies(values: Array, sources: Codes) -> Mask:
    """Return a mask of the columns (c,): all categories, and numeric columns that are no function of an earlier one."""
    selected = np.ones(values.shape[1], dtype=bool)
    numbers = [j for j, s in enumerate(sources) if np.sum(sources == s) == 1 and len(np.unique(values[:, j])) > 2]
    if len(numbers) > 1:
        is_copy = np.triu(np.abs(np.corrcoef(rankdata(values[:, numbers], axis=0).T)) > COPY, 1).any(axis=0)
        selected[np.array(numbers)[is_copy]] = False
    return selected


def dequantized(values: Array, roles: ColumnRoles, missing: Array) -> Array:
    """Return the values (m, c) plus uniform noise as wide as the smallest difference in their numeric column.

    Rounded values would have a density that increases without limit as components become narrow.
    """
    values, rng = values.copy(), np.random.default_rng(0)
    for column in np.flatnonzero(roles.numeric | roles.partial):
        has_value = ~(np.abs(values[:, column] - missing[column]) < TOLERANCE)
        steps = np.diff(np.unique(values[has_value, column]))
        width = steps[steps > TOLERANCE].min(initial=np.inf)
        if np.isfinite(width):
            values[has_value, column] += rng.uniform(-width / 2, width / 2, has_value.sum())
    return values


def _directions(problem: Problem, Z: StandardizedRows, settings: ClusterSettings) -> tuple[Array, Codes | None]:
    """Return the columns (d, c) with their input columns, or the leading axes of many numeric columns."""
    columns = Z.informative & problem.X.informative[: Z.n_features]
    categories = problem.categories is not None and problem.categories[columns].any()
    most = settings.columns if categories or problem.gaps is not None else settings.most_axes
    if int(columns.sum()) > most:
        return noise_free_axes(Z.second_moment, Z.n_rows, Z.rows.resolution, min(settings.most_axes, Z.n_rows)), None
    return np.eye(Z.n_features)[:, columns], problem.sources[columns]


def noise_free_axes(form: QuadraticForm, n_rows: int, resolution: float, most: int, fewest: int = 2) -> Array:
    """Return the leading eigenvectors (d, r) of a second moment above the edge of the noise; at least `fewest`.

    Of at most `most` columns all axes are returned that vary.
    """
    values, axes = leading_eigenvectors(form, min(max(most, fewest), form.size))
    varies = values > resolution * max(float(values.max(initial=0.0)), 0.0)
    if form.size > most:
        positions, ratio = np.arange(len(values)), max(form.size, n_rows) / min(form.size, n_rows)
        remaining = np.maximum(min(form.size, n_rows - 1) - positions, 1)
        noise = (form.trace - np.cumsum(values) + values) / remaining / ratio
        is_above = np.logical_and.accumulate(values > noise * (1 + np.sqrt(ratio)) ** 2)
        varies &= is_above | (positions < fewest)
    return with_fixed_signs(axes[:, varies])
