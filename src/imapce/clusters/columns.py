"""The columns of a sample of rows: which agree with others, which are categories, and their cells as a mixture reads
them.

A cluster is what several columns agree on, w_j = R_j the multiple correlation of a source column with the others
(adjusted, 0 by chance): random true/false columns, ids and a single column with two peaks have no say.

A category of a table comes as a column for each of its levels; a column of two values is a category too. A level is had
where the column reads as it does for 1; a cell that was missing reads as the mean, so no level is had. A number that
some rows lack is `loose`: its holes, known by the value that filled them, are left out.

    axes (n, q)   sphered numbers, of which components have covariances
    loose (n, h)  numbers that some rows lack, NaN there; independent within a component
    flags (n, L)  1 where a row has a level, the levels of category b at `blocks` = b; all 0 where it lacks one
    tilt (n, L)   P(level | known) / P(level), what the known does to a category; None where nothing is known

>>> rows = np.array([[0.0, 1.5], [1.0, 2.5], [1.0, 3.5], [0.0, 4.5]])
>>> Columns.of(rows, np.arange(2), np.full(2, np.nan)).whole.tolist()
[False, True]
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from imapce.common.arrays import Array, Codes, Mask
from imapce.common.records import Comparable
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.rows.base import Rows

SAME = 1e-6


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows as a mixture reads them; see the head of the file."""

    axes: Array
    loose: Array
    flags: Array
    blocks: Codes
    tilt: Array | None = None

    @classmethod
    def of(cls, axes: Array) -> Cells:
        """Rows (n, q) of numbers alone."""
        nothing = np.zeros((len(axes), 0))
        return cls(np.asarray(axes, dtype=np.float64), nothing, nothing, np.zeros(0, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.axes)

    def some(self, rows: NDArray | slice) -> Cells:
        """Some of the rows, by mask, position or slice."""
        tilt = None if self.tilt is None else self.tilt[rows]
        return replace(self, axes=self.axes[rows], loose=self.loose[rows], flags=self.flags[rows], tilt=tilt)

    @property
    def is_empty(self) -> bool:
        """Whether no column is left that could tell rows apart."""
        return not (self.axes.shape[1] or self.flags.shape[1] or self.loose.shape[1])


@dataclass(frozen=True, eq=False)
class Columns(Comparable):
    """Columns (c,) of values: those that are `whole` numbers, `loose` ones whose holes read as `gaps` (h,), and the
    levels of categories. Level l is had where column `places[l]` reads `values[l]`; a step of `steps[l]` in it is one
    whole probability, `shares` (L,) are those of all rows and `blocks` (L,) their categories. Given the known no level
    has less than `least_tilt` of its share.
    """

    whole: Mask
    loose: Mask
    gaps: Array
    _: KW_ONLY
    places: Codes
    values: Array
    steps: Array
    blocks: Codes
    shares: Array
    counts: Codes
    least_tilt: float

    @classmethod
    def of(
        cls, rounded: Array, sources: Codes | None, gaps: Array, least_tilt: float = SETTINGS.clusters.least_tilt
    ) -> Columns:
        """The columns of values (n, c), each with its source column in the table; without sources all are numbers."""
        n, c = rounded.shape
        hole = np.abs(rounded - gaps) < SAME
        ordered = np.sort(np.where(hole, np.inf, rounded), axis=0)
        with np.errstate(invalid="ignore"):
            counts = 1 + ((np.diff(ordered, axis=0) > 1e-12) & np.isfinite(ordered[1:])).sum(axis=0)
        levels: list[tuple[int, float, float, int]] = []
        category = np.zeros(c, dtype=bool)
        for source in [] if sources is None else np.unique(sources):
            own = [int(j) for j in np.flatnonzero(sources == source)]
            block = levels[-1][3] + 1 if levels else 0
            # The lowest and highest value of a column for a level are 0 and 1; its mean stands for a hole.
            there = [ordered[np.isfinite(ordered[:, j]), j] for j in own]
            ends = [(values[0], values[-1]) if len(values) else (0.0, 0.0) for values in there]
            if len(own) == 1 and counts[own[0]] == 2:
                (low, high), j = ends[0], own[0]
                levels += [(j, low, low - high, block), (j, high, high - low, block)]
            elif len(own) > 1:
                # A level that no row has, or every row that says its level, tells nothing.
                levels += [(j, high, high - low, block) for j, (low, high) in zip(own, ends, strict=True) if high > low]
            category[own] = len(own) > 1 or counts[own[0]] == 2
        places, values, steps, blocks = np.array(levels, dtype=np.float64).reshape(-1, 4).T
        had = (np.abs(rounded[:, places.astype(np.intp)] - values) < SAME).sum(axis=0)
        loose = ~category & hole.any(axis=0)
        return cls(
            ~category & ~loose,
            loose,
            gaps[loose],
            places=places.astype(np.intp),
            values=values,
            steps=steps,
            blocks=blocks.astype(np.intp),
            shares=np.maximum(had, 0.5) / max(n, 1),
            counts=np.where(category, 2, counts),
            least_tilt=least_tilt,
        )

    @property
    def are_numbers(self) -> bool:
        """Whether there are neither categories nor loose numbers."""
        return bool(self.whole.all())

    @property
    def n_categories(self) -> int:
        """How many categories there are."""
        return int(self.blocks.max(initial=-1)) + 1

    def cells(self, axes: Array, loose: Array, as_read: Array, levels: Array, taken: Array | None) -> Cells:
        """Cells of rows along the axes, their loose numbers (n, h) and these as they are read, their columns of levels
        (n, L) as they are read, and what the known does to those.
        """
        loose = np.where(np.abs(as_read - self.gaps) < SAME, np.nan, loose)
        # P(level | known)/P(level), by what the known adds to the column of the level.
        tilt = None if taken is None else np.maximum(1 + taken / self.steps / self.shares, self.least_tilt)
        return Cells(axes, loose, self._flags(levels), self.blocks, tilt if len(self.places) else None)

    def _flags(self, values: Array) -> Array:
        return (np.abs(values - self.values) < SAME).astype(np.float64)

    def codes(self, as_read: Array) -> Codes:
        """(n, b): the level of every category by its place among `places`, -1 where it is missing."""
        flags = self._flags(as_read[:, self.places])
        codes = np.full((len(as_read), self.n_categories), -1)
        for level in range(len(self.places)):
            codes[flags[:, level] > 0, self.blocks[level]] = level
        return codes

    def joined(self, numbers: Array, codes: Codes) -> Array:
        """(n, c): columns with these numbers, whole and loose in their order, and these levels of the categories."""
        table = np.zeros((len(numbers), len(self.whole)))
        table[:, self.whole | self.loose] = numbers
        for block in range(self.n_categories):
            own = np.flatnonzero(self.blocks == block)
            had = codes[:, block, None] == own
            for level, place in enumerate(self.places[own]):
                if len(np.unique(self.places[own])) == 1:
                    table[had[:, level], place] = self.values[own[level]]
                else:
                    table[:, place] = self.values[own[level]] - np.where(had[:, level], 0.0, self.steps[own[level]])
            # A missing cell reads as the mean of the column, zero.
            table[np.ix_(codes[:, block] < 0, np.unique(self.places[own]))] = 0.0
        return table

    def up_to_rounding(self, values: Array) -> tuple[Array, Array]:
        """Columns (n, c) as they may have been before they were rounded, and what each was stretched by for it.

        A column counts as rounded where its values usually lie farther apart than the kernel is wide in which a valley
        is looked for, 0.9·σ·n^(−1/5): each would be a cluster of no width. Its values are spread evenly up to half the
        way to the next, or half the usual way where that is far, and the column keeps its variance. Three rounded
        Gaussians (600×4 in steps of one standard deviation) were 11 to 15 clusters in four of six tables and are three
        in five. Between two values nothing was rounded.
        """
        n = len(values)
        spread, stretch = values.copy(), np.ones(values.shape[1])
        for j in np.flatnonzero((self.counts > 2) & (self.counts < n)):
            levels, place = np.unique(values[:, j], return_inverse=True)
            gaps = np.diff(levels)
            usual, deviation = float(np.median(gaps)) if len(gaps) else 0.0, float(values[:, j].std())
            if not usual or usual < 0.9 * deviation * n**-0.2:
                continue
            gaps = np.minimum(gaps, usual) / 2
            below, above = np.append(gaps[0], gaps), np.append(gaps, gaps[-1])
            between = np.random.default_rng([5, int(j)]).random(n)
            spread[:, j] += between * (below + above)[place] - below[place]
            stretch[j] = deviation / float(spread[:, j].std())
            spread[:, j] *= stretch[j]
        return spread, stretch


@dataclass(frozen=True, eq=False)
class Reading(Comparable):
    """How any row is read as cells: `basis` (p, d + q) leads from rows, standardised by `mean` and `scale` with the
    known beside them, to axes, loose numbers, levels as they are read and what the known does to them.
    """

    basis: Array
    mean: Array
    scale: Array
    _: KW_ONLY
    columns: Columns
    n_axes: int

    def cells(self, rows: Rows) -> Cells:
        """The cells of all rows."""
        columns = self.columns
        read = coordinates(rows, self.basis, self.mean, self.scale)
        h, n_levels = int(columns.loose.sum()), len(columns.places)
        axes, loose, as_read, levels, taken = np.split(read, np.cumsum([self.n_axes, h, h, n_levels]), axis=1)
        return columns.cells(axes, loose, as_read, levels, taken if taken.shape[1] else None)


def coordinates(rows: Rows, components: Array, mean: Array, scale: Array) -> Array:
    """(n, k): ((x − mean)/scale)·componentsᵀ of all rows."""
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    W = (components * inverse).T
    return rows.project(W, (mean - rows.origin) @ W)


def shared_weights(rows: Array, groups: Codes, settings: ClusterSettings = SETTINGS.clusters) -> Array:
    """R_j of every column (d,): how far the other source columns explain its source column, 0 within chance.

    `rows` (n, d) are some of the table's, `groups` their source columns. Of a number both it and its square (within
    three standard deviations) are explained, by the numbers and squares of the others, and the better counts: three
    clusters in a triangle leave their two columns uncorrelated. R² is adjusted for how many columns explain, and counts
    where an F-test finds it beyond chance. Where no column shares anything all weigh the same.
    """
    n, d = rows.shape
    ridge = settings.ridge
    varying = rows.std(axis=0) > 0
    own, square, F = _explaining(rows, groups, settings.bound)
    C = F.T @ F / n
    precision = np.linalg.inv(C + ridge * np.eye(len(C)))
    found: list[tuple[int, float, int, int]] = []
    for source in np.unique(own):
        of_source = own == source
        for kind in (False, True):
            target = np.flatnonzero(of_source & (square == kind))
            if not len(target):
                continue
            # What is left of the target given all others, but not given the other part of its own source.
            beside = np.flatnonzero(of_source & (square != kind))
            P = precision[np.ix_(target, target)]
            if len(beside):
                across = precision[np.ix_(target, beside)]
                P = P - across @ np.linalg.solve(precision[np.ix_(beside, beside)], across.T)
            left = np.trace(np.linalg.inv(P)) - ridge * len(target)
            explained = 1 - left / np.trace(C[np.ix_(target, target)])
            found.append((int(source), float(explained), int(len(own) - of_source.sum()), max(1, len(target) - 1)))
    if not found:
        return varying.astype(np.float64)
    sources, shares, others, width = (np.array(column) for column in zip(*found, strict=True))
    shares, p = np.clip(shares, 0.0, 1 - 1e-9), np.clip(others, 1, n // 2)
    free = np.maximum(n - p - 1, 1)
    chance = f_distribution.sf((shares / p) / ((1 - shares) / free), p * width, free * width)
    adjusted = np.maximum(1 - (1 - shares) * (n - 1) / free, 0.0)
    weights = np.zeros(d)
    beyond = chance < settings.chance / len(found)
    for source, share in zip(sources[beyond], adjusted[beyond], strict=True):
        weights[groups == source] = np.maximum(weights[groups == source], np.sqrt(share))
    # Sharing is mutual: one column that others explain but that explains none is chance.
    alone = len(np.unique(sources[beyond])) < 2
    return varying.astype(np.float64) if alone else weights * varying


def _explaining(rows: Array, groups: Codes, bound: float) -> tuple[Codes, Mask, Array]:
    """What explains and is explained: columns and squares of columns, whose each is, which are squares, and (n, c)."""
    n, d = rows.shape
    centred = rows - rows.mean(axis=0)
    spread = np.sqrt(np.bincount(groups, weights=np.mean(centred**2, axis=0)))[groups]
    bounded = np.clip(np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0), -bound, bound)
    bounded -= bounded.mean(axis=0)
    single = np.flatnonzero(np.bincount(groups)[groups] == 1)
    F, own, square = bounded, groups, np.zeros(d, dtype=bool)
    if 4 * d <= n:
        squares = bounded[:, single] ** 2
        squares -= squares.mean(axis=0)
        # The square of a column of two values is the column itself.
        with np.errstate(invalid="ignore", divide="ignore"):
            same = np.abs(np.mean(squares * bounded[:, single], axis=0)) / (
                squares.std(axis=0) * bounded[:, single].std(axis=0)
            )
        squares, single = squares[:, same <= 0.999], single[same <= 0.999]
        F = np.concatenate([bounded, squares], axis=1)
        own = np.concatenate([groups, groups[single]])
        square = np.concatenate([square, np.ones(len(single), dtype=bool)])
    size = F.std(axis=0)
    varies = size > 1e-6
    F, own, square = F[:, varies] / size[varies], own[varies], square[varies]
    # The columns of one category share its one unit of variance.
    linear = np.bincount(own[~square], minlength=int(groups.max()) + 1)
    return own, square, F / np.sqrt(np.where(square, 1, np.maximum(linear[own], 1)))
