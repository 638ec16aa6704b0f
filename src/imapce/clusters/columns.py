"""Which columns are numbers and which are categories, and how their cells are read from standardised rows.

A category of a table comes as a column for each of its levels; a column of two values is a category too. A level is had
where the column reads as it does for 1; a cell that was missing reads as the mean, so no level is had. A number that
some rows lack is `loose`: its holes, told by the value that filled them, are left out.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.cells import Cells
from imapce.common.records import Comparable
from imapce.rows.base import Rows

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]

SAME = 1e-6
# A class of the known that never has a level would forbid it to every component.
LEAST_TILT = 0.05


@dataclass(frozen=True, eq=False)
class Columns(Comparable):
    """Columns (c,) of values: those that are `whole` numbers, `loose` ones whose holes read as `gaps` (h,), and the
    levels of categories. Level l is had where column `places[l]` reads `values[l]`; a step of `steps[l]` in it is one
    whole probability, `shares` (L,) are those of all rows and `blocks` (L,) their categories.
    """

    whole: Mask
    loose: Mask
    gaps: Array
    _: KW_ONLY
    places: Labels
    values: Array
    steps: Array
    blocks: Labels
    shares: Array
    counts: Labels

    @classmethod
    def of(cls, rounded: Array, sources: Labels | None, gaps: Array) -> Columns:
        """The columns of values (n, c), each with its source column in the table; without sources all are numbers.

        >>> rows = np.array([[0.0, 1.5], [1.0, 2.5], [1.0, 3.5], [0.0, 4.5]])
        >>> columns = Columns.of(rows, np.arange(2), np.full(2, np.nan))
        >>> columns.whole.tolist(), columns.values.tolist()
        ([False, True], [0.0, 1.0])
        """
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
            ends = [(ordered[0, j], ordered[np.isfinite(ordered[:, j]), j][-1]) for j in own]
            if len(own) == 1 and counts[own[0]] == 2:
                (low, high), j = ends[0], own[0]
                levels += [(j, low, low - high, block), (j, high, high - low, block)]
            elif len(own) > 1:
                levels += [(j, high, high - low, block) for j, (low, high) in zip(own, ends, strict=True)]
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
        )

    @property
    def are_numbers(self) -> bool:
        """Whether there are neither categories nor loose numbers."""
        return bool(self.whole.all())

    @property
    def n_categories(self) -> int:
        return int(self.blocks.max(initial=-1)) + 1

    def cells(self, given: Array, as_read: Array, axes: Array, taken: Array | None) -> Cells:
        """Cells of columns (n, c): those `given` the known along `axes` (c, q), and `as_read` to tell levels and holes.

        `taken` (n, c) is what the known does to them.
        """
        change = None if taken is None else taken[:, self.places]
        return self.cells_of(
            given @ axes, given[:, self.loose], as_read[:, self.loose], as_read[:, self.places], change
        )

    def cells_of(self, axes: Array, loose: Array, as_read: Array, levels: Array, taken: Array | None) -> Cells:
        """Cells of rows along the axes, their loose numbers (n, h) and these as they are read, their columns of levels
        (n, L) as they are read, and what the known does to those.
        """
        loose = np.where(np.abs(as_read - self.gaps) < SAME, np.nan, loose)
        # P(level | known)/P(level), by what the known adds to the column of the level.
        tilt = None if taken is None else np.maximum(1 + taken / self.steps / self.shares, LEAST_TILT)
        return Cells(axes, loose, self._flags(levels), self.blocks, tilt if len(self.places) else None)

    def _flags(self, values: Array) -> Array:
        return (np.abs(values - self.values) < SAME).astype(np.float64)

    def codes(self, as_read: Array) -> Labels:
        """(n, b): the level of every category by its place among `places`, -1 where it is missing."""
        flags = self._flags(as_read[:, self.places])
        codes = np.full((len(as_read), self.n_categories), -1)
        for level in range(len(self.places)):
            codes[flags[:, level] > 0, self.blocks[level]] = level
        return codes

    def joined(self, numbers: Array, codes: Labels) -> Array:
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
        return columns.cells_of(axes, loose, as_read, levels, taken if taken.shape[1] else None)


def coordinates(rows: Rows, components: Array, mean: Array, scale: Array) -> Array:
    """(n, k): ((x − mean)/scale)·componentsᵀ of all rows."""
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    W = (components * inverse).T
    return rows.project(W, (mean - rows.origin) @ W)
