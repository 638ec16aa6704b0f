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

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
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
# Least factor of the share of a level given the covariates: 0 would forbid the level in all clusters.
LEAST_TILT = 0.05


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Rows in the coordinates of a mixture.

    >>> nothing = np.zeros((1, 0))
    >>> Coordinates(np.array([[2.0, 3.0]]), nothing, nothing, np.zeros(0, dtype=np.intp)).pairs
    array([[1., 2., 3., 4., 6., 9.]], dtype=float32)
    """

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
    1/`level_scales[l]` of itself as the column grows by 1. `missing_values` (h,) are those of the partial columns.
    """

    numeric: Mask
    partial: Mask
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
        levels: list[tuple[int, float, float, int]] = []
        is_category = np.zeros(values.shape[1], dtype=bool)
        for source in np.unique(sources).tolist() if sources is not None else []:
            members = np.flatnonzero(sources == source)
            distinct = [np.unique(values[~is_missing[:, j], j]) for j in members]
            if len(members) == 1 and len(distinct[0]) != 2:
                continue
            is_category[members] = True
            for j, found in zip(members.tolist(), distinct, strict=True):
                if len(found) > 1:
                    low, high = float(found[0]), float(found[-1])
                    levels += [(j, low, low - high, source)] if len(members) == 1 else []
                    levels += [(j, high, high - low, source)]
        columns, level_values, steps, blocks = np.array(levels, dtype=np.float64).reshape(-1, 4).T
        counts = (np.abs(values[:, columns.astype(np.intp)] - level_values) < TOLERANCE).sum(axis=0)
        partial = ~is_category & is_missing.any(axis=0)
        return cls(
            ~is_category & ~partial,
            partial,
            missing[partial],
            level_columns=columns.astype(np.intp),
            level_values=level_values,
            level_scales=steps * np.maximum(counts, 0.5) / max(1, len(values)),
            blocks=np.unique(blocks, return_inverse=True)[1],
        )

    def encode(self, values: Array, effect: Array | None, axes: Array, offset: Array) -> Coordinates:
        """Return the coordinates of rows with the columns `values` (n, c) and the effect (n, c) of covariates."""
        residuals, tilt = values if effect is None else values - effect, None
        is_missing = np.abs(values[:, self.partial] - self.missing_values) < TOLERANCE
        levels = (np.abs(values[:, self.level_columns] - self.level_values) < TOLERANCE).astype(np.float64)
        if effect is not None and len(self.blocks):
            tilt = np.maximum(1 + effect[:, self.level_columns] / self.level_scales, LEAST_TILT)
        numeric = np.round(residuals @ axes - offset, DIGITS)
        partial: Array = np.where(is_missing, np.nan, np.round(residuals[:, self.partial], DIGITS))
        return Coordinates(numeric, partial, levels, self.blocks, tilt)


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample of the unexplored rows: matrix columns `values` (m, c) and covariates (m, p), in content order.

    `positions` (m,) are its rows among all `n_rows` input rows, `indices` (m,) among the `candidates`, the rows of Z.
    `directions` (d, c) map standardized rows to the columns, which are divided by `unit`. Residuals are
    the values minus the `effect` (p, c) of the covariates.
    """

    values: Array
    covariates: Array
    effect: Array
    _: KW_ONLY
    candidates: Codes
    indices: Codes
    directions: Array
    sources: Codes | None
    roles: ColumnRoles
    unit: float
    n_rows: int
    rows: StandardizedRows
    settings: ClusterSettings

    @property
    def positions(self) -> Codes:
        """Return the positions (m,) of the rows among all rows."""
        return self.candidates[self.indices]

    def project(self, Z: StandardizedRows, V: Array) -> Array:
        """Return ZV (m, k) of the rows of the sample, for the rows Z to explore."""
        in_sample = np.zeros(Z.n_rows, dtype=bool)
        in_sample[self.indices] = True
        return Z.project(V, in_sample)[self.indices.argsort().argsort()]

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
        numeric = residuals[:, self.roles.numeric]
        leading = leading_axes(numeric, q)
        axes = np.zeros((residuals.shape[1], leading.shape[1]))
        axes[self.roles.numeric] = leading @ sphering(numeric @ leading)
        return axes, residuals.mean(axis=0) @ axes

    def coordinates(self, q: int, table: Array | None = None) -> Coordinates:
        """Return the rows in q numeric axes, or of another `table` with the same columns and no covariates."""
        if table is not None:
            return self.roles.encode(table, None, *self.numeric_axes(table, q))
        effect = self.covariates @ self.effect if self.covariates.shape[1] else None
        return self.roles.encode(self.values, effect, *self.numeric_axes(self.residuals, q))

    def with_effect(self, effect: Array) -> Sample:
        """Return the sample with another effect of the covariates."""
        return replace(self, effect=effect)


def leading_axes(values: Array, most: int) -> Array:
    """Return the leading principal axes (c, r) of rows (m, c), most variance first."""
    deviation = values - values.mean(axis=0)
    variances, axes = np.linalg.eigh(deviation.T @ deviation / max(1, len(values)))
    varying = variances > 1e-9 * max(float(variances.max(initial=0.0)), np.finfo(np.float64).tiny)
    return axes[:, varying][:, ::-1][:, :most]


def sphering(values: Array) -> Array:
    """Return the map (p, q) from rows (n, p) to axes of unit variance.

    >>> rows = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 6.0], [2.0, 6.0]])
    >>> (rows @ sphering(rows)).var(axis=0)
    array([1., 1.])
    """
    deviation = values - values.mean(axis=0)
    variances, axes = np.linalg.eigh(deviation.T @ deviation / max(1, len(values)))
    varying = variances > 1e-10 * max(float(variances.max(initial=0.0)), np.finfo(np.float64).tiny)
    return np.asarray(axes[:, varying] / np.sqrt(variances[varying]))


@dataclass(frozen=True, eq=False)
class CoordinateMap(Comparable):
    """Map from rows of any engine to the coordinates of a mixture.

    `basis` (d + p, c or 2c) maps rows [x | l], standardized by `mean` and `scale`, to the columns of a sample and, if
    there are covariates, to their effect; `axes` (c, q) and `offset` (q,) map residuals to the numeric axes.
    """

    basis: Array
    mean: Array
    scale: Array
    axes: Array
    offset: Array
    roles: ColumnRoles

    @classmethod
    def from_sample(cls, sample: Sample, q: int) -> CoordinateMap:
        """Return the map that gives the coordinates of the sample, also for other rows."""
        rows, has_effect = sample.rows, isinstance(sample.rows, RowsGiven)
        original = rows.beside if isinstance(rows, RowsGiven) else rows
        d, c = sample.directions.shape
        basis = np.zeros((len(original.mean), c * (1 + has_effect)))
        basis[:d, :c] = sample.directions / sample.unit
        if isinstance(rows, RowsGiven):
            basis[rows.places, c:] = sample.effect
        axes = sample.numeric_axes(sample.residuals, q)
        return cls(basis, original.mean, original.scale, *axes, sample.roles)

    def __call__(self, rows: Rows) -> Coordinates:
        """Return the coordinates of all rows."""
        c = len(self.axes)
        if self.roles.numeric.all():
            # One product with few axes: an exploration of 100,000 × 768 with a label took 15.8 s instead of 17.3 s.
            values, of_covariates = np.split(self.basis, [c], axis=1)
            residuals = values - of_covariates if of_covariates.shape[1] else values
            numeric = project_rows(rows, residuals @ self.axes, self.mean, self.scale) - self.offset
            nothing = np.zeros((len(numeric), 0))
            return Coordinates(np.round(numeric, DIGITS), nothing, nothing, self.roles.blocks)
        columns = project_rows(rows, self.basis, self.mean, self.scale)
        effect = columns[:, c:] if columns.shape[1] > c else None
        return self.roles.encode(columns[:, :c], effect, self.axes, self.offset)


def project_rows(rows: Rows, basis: Array, mean: Array, scale: Array) -> Array:
    """Return ((x − mean)/scale)·basis (n, k) of all rows."""
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    W = basis * inverse[:, None]
    return rows.project(W, (mean - rows.origin) @ W)


def draw_sample(problem: Problem, unexplored: Mask, settings: ClusterSettings = SETTINGS.clusters) -> Sample:
    """Draw a sample of the rows to explore, `unexplored` (n,) among all input rows, in an order of their content."""
    Z = problem.Z if problem.with_known is None else problem.with_known.rest
    indices = Z.content_sample(settings.rows)
    in_sample = np.zeros(Z.n_rows, dtype=bool)
    in_sample[indices] = True
    order = indices.argsort().argsort()
    covariates = Z.known(in_sample)[order] if isinstance(Z, RowsGiven) else np.zeros((len(indices), 0))
    directions, sources = _directions(problem, Z, settings)
    values = Z.project(directions, in_sample)[order]
    # Columns that are not standardized may have any unit.
    unit = max(float(values.std()), np.finfo(np.float64).tiny) if values.size else 1.0
    values = np.round(values / unit, DIGITS)
    if sources is not None and values.shape[1] <= settings.most_axes:
        columns = _without_copies(values, sources)
        values, directions, sources = values[:, columns], directions[:, columns], sources[columns]
    missing = np.full(values.shape[1], np.nan)
    if sources is not None and problem.gaps is not None:
        imputed = np.divide(problem.gaps - Z.mean, Z.scale, out=np.full_like(Z.scale, np.nan), where=Z.scale > 0)
        missing = np.round(imputed[directions.argmax(axis=0)] / unit, DIGITS)
    roles = ColumnRoles.learn(values, sources, missing)
    values = dequantized(values, roles, missing)
    effect = np.zeros((covariates.shape[1], values.shape[1]))
    if problem.effect is not None and isinstance(Z, RowsGiven):
        effect = Z.less(problem.effect.weights).standardized_effect @ directions / unit
    return Sample(
        values,
        covariates,
        effect,
        candidates=np.flatnonzero(unexplored & ~problem.set_aside),
        indices=indices,
        directions=directions,
        sources=sources,
        roles=roles,
        unit=unit,
        n_rows=len(unexplored),
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
    count = min(max(most, fewest), form.size)
    values, axes = leading_eigenvectors(form, count)
    count = len(values)
    varies = values > resolution * max(float(values.max(initial=0.0)), 0.0)
    if form.size > most:
        before = np.cumsum(values) - values
        remaining = np.maximum(min(form.size, n_rows - 1) - np.arange(count), 1)
        ratio = max(form.size, n_rows) / min(form.size, n_rows)
        noise = (form.trace - before) / remaining / ratio
        is_above = np.logical_and.accumulate(values > noise * (1 + np.sqrt(ratio)) ** 2)
        varies &= is_above | (np.arange(count) < fewest)
    return with_fixed_signs(axes[:, varies])
