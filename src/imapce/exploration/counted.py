"""Rows counted in groups, of observed cells only: columns of the matrix by their sums, columns of the table whole.

A missing cell was filled with the mean of its column before anything was looked at (`Reader.gaps`), and in the matrix
it is known by that; a column of the table knows its own. What is counted once for every group is added up for any set
of groups, so that all clusters are described by one pass over the matrix and one over the columns worth telling, which
are sorted once where medians are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from imapce.common.arrays import Array, Codes, Mask
from imapce.exploration.traits import LevelTrait, MissingShares, Numbers, NumberTrait, Trait
from imapce.rows.base import Rows
from imapce.tables.columns import Column

BINS = 16
# Whole numbers of so few values get a bar each.
MOST_BARS = 24
# |r| from which two columns repeat each other: "Husband" and "Married-civ-spouse" of Adult have 0.89, the length and
# the width of petals 0.96, and both of these are worth telling.
SAME_LEVELS, SAME_NUMBERS = 0.8, 0.98
# Whether two columns repeat each other is seen as well in so many rows.
COMPARED_ROWS = 20_000
# A filled cell differs from what it was filled with by rounding at most, in units of the column's spread.
SAME = 1e-9


@dataclass(frozen=True)
class BlockSums:
    """Of the rows of a block in each of the groups the sums, the sums of squares and how many cells are missing.

    Sums are about a centre; `holes` (d,) is what missing cells read as, NaN where none is, and `near` how closely.
    """

    centre: Array
    n_groups: int
    holes: Array | None = None
    near: Array | None = None

    @classmethod
    def about_mean(cls, rows: Rows, n_groups: int, gaps: Array | None) -> BlockSums:
        """Those about the mean of all rows; `gaps` (d,) is what missing cells were filled with."""
        moments = rows.moments()
        near = SAME * (np.sqrt(moments.variance) + SAME * np.abs(moments.mean + rows.origin))
        return cls(moments.mean, n_groups, None if gaps is None else gaps - rows.origin, near)

    def __call__(self, block: Array, groups: Codes) -> tuple[Array, Array, Array]:
        places = (groups, np.arange(len(groups)))
        members = sparse.csr_array((np.ones(len(groups)), places), shape=(self.n_groups, len(groups)))
        deviation = block - self.centre
        missing = np.zeros((self.n_groups, len(self.centre)))
        if self.holes is not None:
            assert self.near is not None
            some = np.flatnonzero(~np.isnan(self.holes))
            hole = np.abs(block[:, some] - self.holes[some]) <= self.near[some]
            deviation[:, some] = np.where(hole, 0.0, deviation[:, some])
            missing[:, some] = members @ hole.astype(np.float64)
        sums = members @ deviation
        return sums, members @ np.square(deviation, out=deviation), missing


@dataclass(frozen=True, eq=False)
class Side:
    """Some rows: how many, how many cells of every column are observed, and the means and variances of these."""

    n_rows: int
    observed: Array
    mean: Array
    variance: Array

    @property
    def missing(self) -> Array:
        """(d,), the share of the rows in which a column is missing."""
        return 1.0 - self.observed / max(self.n_rows, 1)


@dataclass(frozen=True, eq=False)
class GroupMoments:
    """Sums of the matrix columns (g, d) in groups of rows, about a centre where sums of squares do not cancel.

    >>> from imapce.rows.dense import DenseRows
    >>> rows = DenseRows(np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 9.0]]))
    >>> GroupMoments.of_groups(rows, np.array([0, 0, 1]), 2, None).of([0]).mean
    array([1.5, 4.5])
    """

    origin: Array
    centre: Array
    sizes: Codes
    sums: Array
    squares: Array
    holes: Array

    @classmethod
    def of_groups(cls, rows: Rows, groups: Codes, n_groups: int, gaps: Array | None) -> GroupMoments:
        """Those of rows in groups (n,); `gaps` (d,) is what missing cells were filled with, None where nothing was."""
        sums, squares, holes = rows.unfolded.add_blocks(BlockSums.about_mean(rows, n_groups, gaps), beside=groups)
        return cls(rows.origin, rows.moments().mean, np.bincount(groups, minlength=n_groups), sums, squares, holes)

    @classmethod
    def of_all(cls, rows: Rows, gaps: Array | None) -> GroupMoments:
        """All rows as one group; where no cell was filled they were reduced to it already."""
        if gaps is not None:
            return cls.of_groups(rows, np.zeros(rows.n_rows, dtype=np.intp), 1, gaps)
        moments = rows.moments()
        nothing = np.zeros((1, rows.n_features))
        squares = rows.n_rows * moments.variance[None, :]
        return cls(rows.origin, moments.mean, np.array([rows.n_rows]), nothing, squares, nothing)

    def split(self, rows: Rows, inside: Mask, gaps: Array | None) -> GroupMoments:
        """Of all rows as one group two: those outside, and those inside, which alone are read."""
        chosen = rows.unfolded.subset(inside)
        here = chosen.add_blocks(BlockSums.about_mean(rows, 1, gaps), beside=np.zeros(chosen.n_rows, dtype=np.intp))
        sums, squares, holes = (
            np.vstack([all_of - of_set, of_set])
            for all_of, of_set in zip((self.sums, self.squares, self.holes), here, strict=True)
        )
        sizes = np.append(self.sizes - chosen.n_rows, chosen.n_rows)
        return GroupMoments(self.origin, self.centre, sizes, sums, np.maximum(squares, 0.0), holes)

    def without(self, rows: Rows, aside: Mask, gaps: Array | None) -> GroupMoments:
        """Of all rows as one group the same without those set aside."""
        if not aside.any():
            return self
        two = self.split(rows, aside, gaps)
        kept = {name: getattr(two, name)[:1] for name in ("sizes", "sums", "squares", "holes")}
        return replace(two, **kept)

    def of(self, groups: Iterable[int]) -> Side:
        """Some groups together."""
        chosen = list(groups)
        n_rows = int(self.sizes[chosen].sum())
        observed = n_rows - self.holes[chosen].sum(axis=0)
        count = np.maximum(observed, 1.0)
        offset = self.sums[chosen].sum(axis=0) / count
        variance = np.maximum(self.squares[chosen].sum(axis=0) / count - offset**2, 0.0)
        return Side(n_rows, observed, self.origin + self.centre + offset, variance)


class CountedColumn:
    """A column in groups (n,) of rows; a side is a list of groups.

    >>> ages = Column("age", values=np.array([20.0, np.nan, 40.0, 60.0]))
    >>> counted = CountedColumn(ages, np.array([0, 0, 1, 1]), 2)
    >>> counted.mean([0]), counted.mean([1]), counted.missing([0])
    (20.0, 50.0, 0.5)
    """

    def __init__(self, column: Column, groups: Codes, n_groups: int):
        self.column = column
        self._groups, self._n_groups = groups, n_groups
        self._sizes = np.bincount(groups, minlength=n_groups)

    @cached_property
    def _present(self) -> tuple[Array, Codes]:
        """The observed values of a number, and the groups they are in."""
        values = self.column.values
        assert values is not None
        seen = ~np.isnan(values)
        return (values, self._groups) if seen.all() else (values[seen], self._groups[seen])

    @cached_property
    def _centre(self) -> float:
        return float(self._present[0].mean()) if len(self._present[0]) else 0.0

    @cached_property
    def _sums(self) -> Array:
        """(g,), the sums of a number about the mean of all rows, where nothing cancels."""
        values, groups = self._present
        return np.bincount(groups, weights=values - self._centre, minlength=self._n_groups).astype(np.float64)

    @cached_property
    def _observed(self) -> NDArray[np.intp]:
        """(g,), how many cells are observed."""
        if self.column.values is None:
            return self._levels.sum(axis=1)
        return np.bincount(self._present[1], minlength=self._n_groups)

    @cached_property
    def _levels(self) -> NDArray[np.intp]:
        """(g, l), how many rows of a group have a level."""
        codes = self.column.codes
        assert codes is not None
        width, seen = len(self.column.levels), codes >= 0
        places = self._groups[seen] * width + codes[seen]
        return np.bincount(places, minlength=self._n_groups * width).reshape(self._n_groups, width)

    @cached_property
    def _sorted(self) -> tuple[Array, Codes]:
        """The observed values of a number in their order, and the groups they are in."""
        values, groups = self._present
        order = np.argsort(values)
        return values[order], groups[order]

    @cached_property
    def edges(self) -> Array:
        """The bounds of the bins that all groups share."""
        return shared_edges(self._present[0])

    @cached_property
    def _bins(self) -> NDArray[np.intp]:
        """(g, b), how many values of a group are in a bin; those beyond the outer bounds are in the outer bins."""
        values, groups = self._present
        edges, width = self.edges, len(self.edges) - 1
        bins = np.clip(np.searchsorted(edges, np.minimum(values, edges[-1]), side="right") - 1, 0, width - 1)
        return np.bincount(groups * width + bins, minlength=self._n_groups * width).reshape(self._n_groups, width)

    @cached_property
    def spread(self) -> float:
        """The standard deviation of a number among all rows."""
        values = self._present[0]
        return float(values.std()) if len(values) else 0.0

    @property
    def has_gaps(self) -> bool:
        """Whether a cell of any group is missing."""
        return bool(self._observed.sum() < self._sizes.sum())

    def split(self, inside: Codes) -> CountedColumn:
        """Of a column counted as one group two: the other rows, and those `inside`, by place, which alone are read.

        It tells means, shares and what is missing; medians and bins take all rows.
        """
        column, n_rows = self.column, int(self._sizes.sum())
        here = Column(
            column.name,
            values=None if column.values is None else column.values[inside],
            codes=None if column.codes is None else column.codes[inside],
            levels=column.levels,
        )
        one = CountedColumn(here, np.zeros(len(inside), dtype=np.intp), 1)
        two = CountedColumn(column, np.zeros(0, dtype=np.intp), 2)
        two._sizes = np.array([n_rows - len(inside), len(inside)])
        # What is counted when it is asked for is known already.
        known: dict[str, object] = {"_observed": np.concatenate([self._observed - one._observed, one._observed])}
        if column.values is None:
            known["_levels"] = np.vstack([self._levels - one._levels, one._levels])
        else:
            sums = float((one._present[0] - self._centre).sum())
            known |= {"_centre": self._centre, "_sums": np.array([-sums, sums]), "spread": self.spread}
        two.__dict__.update(known)
        return two

    def count(self, side: Sequence[int]) -> int:
        """How many cells of a side are observed."""
        return int(self._observed[list(side)].sum())

    def missing(self, side: Sequence[int]) -> float:
        """The share of the rows of a side in which the column is missing."""
        rows = int(self._sizes[list(side)].sum())
        return 1.0 - self.count(side) / rows if rows else 0.0

    def mean(self, side: Sequence[int]) -> float:
        """The mean of a number; NaN where none is observed."""
        count = self.count(side)
        if not count:
            return float("nan")
        mean = self._centre + float(self._sums[list(side)].sum()) / count
        # Counts that are all zero have the mean zero, and not what rounding leaves of the centre.
        return 0.0 if abs(mean) < 1e-12 * (abs(self._centre) + self.spread) else mean

    def median(self, side: Sequence[int]) -> float:
        """The median of a number; NaN where none is observed."""
        values, groups = self._sorted
        inside = np.zeros(self._n_groups, dtype=bool)
        inside[list(side)] = True
        places = np.flatnonzero(inside[groups])
        if not len(places):
            return float("nan")
        low, high = places[(len(places) - 1) // 2], places[len(places) // 2]
        return float(values[low] + (values[high] - values[low]) / 2)

    def level_counts(self, side: Sequence[int]) -> NDArray[np.intp]:
        """(l,), how many rows of a side have each level."""
        return self._levels[list(side)].sum(axis=0)

    def shares(self, side: Sequence[int]) -> tuple[float, ...]:
        """(l,), the share of each level among the observed cells of a side; zeros where none is."""
        counts = self.level_counts(side)
        return tuple((counts / max(int(counts.sum()), 1)).tolist())

    def numbers(self, side: Sequence[int]) -> Numbers:
        """A number on one side, whole: mean, median and the share of the rows in every bin."""
        counts = self._bins[list(side)].sum(axis=0)
        shares = tuple((counts / max(int(counts.sum()), 1)).tolist())
        return Numbers(self.mean(side), self.median(side), shares)

    def difference(self, inside: Sequence[int], outside: Sequence[int]) -> float:
        """The difference of the means of a number in standard deviations of all rows."""
        gap = self.mean(inside) - self.mean(outside)
        return gap / self.spread if self.spread > 0 and np.isfinite(gap) else 0.0

    def trait(
        self,
        inside: Sequence[int],
        outside: Sequence[int],
        beside: Sequence[int] | None = None,
        *,
        strength: float = 0.0,
        brief: bool = False,
    ) -> Trait:
        """What the column says of the rows inside against those outside; `brief` leaves out medians and histograms."""
        sides = [inside, outside, *([] if beside is None else [beside])]
        missing = MissingShares(*(self.missing(side) for side in sides)) if self.has_gaps else None
        if self.column.values is None:
            here, there, *left = (self.shares(side) for side in sides)
            return LevelTrait(
                self.column.name,
                self.column.levels,
                here,
                there,
                beside=left[0] if left else None,
                counts=tuple(self.level_counts(inside).tolist()),
                strength=strength,
                missing=missing,
            )
        if brief:
            told = [Numbers(self.mean(side), float("nan"), ()) for side in sides]
        else:
            told = [self.numbers(side) for side in sides]
        return NumberTrait(
            self.column.name,
            told[0],
            told[1],
            beside=told[2] if beside is not None else None,
            edges=() if brief else tuple(self.edges.tolist()),
            difference=self.difference(inside, outside),
            difference_beside=None if beside is None else self.difference(inside, beside),
            strength=strength,
            missing=missing,
        )


def trait_of(column: Column, inside: Mask, outside: Mask, *, strength: float = 0.0) -> Trait:
    """What a column says of the rows inside against those outside, which may be some of the same."""
    counted = CountedColumn(column, inside.astype(np.intp) + 2 * outside, 4)
    return counted.trait([1, 3], [2, 3], strength=strength)


def shared_edges(values: Array) -> Array:
    """The bounds of bins that suit all of these values: one for each whole number, or 16 over all but the outer 1 %."""
    if not len(values):
        return np.array([0.0, 1.0])
    low, high = float(values.min()), float(values.max())
    if high - low < MOST_BARS and bool((values == np.round(values)).all()):
        return np.arange(low - 0.5, high + 1.0)
    inner = np.quantile(values, [0.005, 0.995])
    if inner[1] > inner[0]:
        low, high = inner
    if not high - low > abs(low) * 1e-12:
        return np.array([low - 0.5, low + 0.5])
    return np.linspace(low, high, BINS + 1)


def say_the_same(trait: Trait, column: Column, other: Trait, beside: Column) -> bool:
    """Whether two traits repeat each other: of all rows, one column can nearly be read from the other."""
    if trait.says_missing or other.says_missing:
        return _correlation(*(_read_by(*one) for one in ((trait, column), (other, beside)))) > SAME_LEVELS
    if isinstance(trait, LevelTrait) and isinstance(other, LevelTrait):
        return _correlation(_read_by(trait, column), _read_by(other, beside)) > SAME_LEVELS
    if isinstance(trait, LevelTrait) or isinstance(other, LevelTrait):
        levels, number = (column, beside) if column.values is None else (beside, column)
        assert levels.codes is not None
        assert number.values is not None
        codes, values = _some(levels.codes), _some(number.values)
        known = (codes >= 0) & ~np.isnan(values)
        codes, values = codes[known], values[known]
        counts = np.bincount(codes, minlength=len(levels.levels))
        means = np.bincount(codes, weights=values, minlength=len(levels.levels)) / np.maximum(counts, 1)
        return _correlation(means[codes], values) > SAME_NUMBERS
    assert column.values is not None
    assert beside.values is not None
    first, second = _some(column.values), _some(beside.values)
    known = ~np.isnan(first + second)
    return _correlation(first[known], second[known]) > SAME_NUMBERS


def _read_by(trait: Trait, column: Column) -> Array:
    """What a trait tells of every row: its number, whether it has the level, or whether the cell is missing."""
    if trait.says_missing:
        if column.values is not None:
            return np.isnan(_some(column.values)).astype(np.float64)
        assert column.codes is not None
        return (_some(column.codes) < 0).astype(np.float64)
    if isinstance(trait, LevelTrait):
        assert column.codes is not None
        return (_some(column.codes) == trait.telling).astype(np.float64)
    assert column.values is not None
    values = _some(column.values)
    return np.where(np.isnan(values), np.nanmean(values), values)


def _some(values: NDArray) -> NDArray:
    """Every so manieth of many rows."""
    return values[:: max(1, len(values) // COMPARED_ROWS)]


def _correlation(first: Array, second: Array) -> float:
    """|r|, 0 where one of them does not vary."""
    if not len(first):
        return 0.0
    first, second = first - first.mean(), second - second.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    return abs(float(first @ second)) / size if size > 0 else 0.0
