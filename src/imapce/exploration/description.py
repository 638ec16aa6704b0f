"""What a set of rows is: the columns that set it apart, in their own units, and the rows most typical of it.

A number is told by its mean and median inside and outside, a category by the share of every level. How strongly a
column sets rows apart is on one scale from 0 to 1 for both: the share of the rows that would have to move for inside
to look like outside,

    ½ Σ |p(level | inside) − p(level | outside)|,    for a number  2Φ(|d|/2) − 1,  d = (m − m′)/√((s² + s′²)/2),

which is the same for two bell curves that are d standard deviations apart. Rows are reduced in one pass to the moments
of groups; only the columns worth telling are read again, and from the table itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import erf

from imapce.common.arrays import Array, Codes, Mask, on_host
from imapce.exploration.knowledge import one_class_in_words
from imapce.exploration.traits import NOTHING_APART, Trait, name_of_traits, say_the_same, trait_of, traits_worth_telling
from imapce.rows.base import Rows
from imapce.tables.columns import Column
from imapce.tables.reader import OriginalColumns

MOST_TRAITS = 10
MOST_TYPICAL = 5
MOST_FEATURES = 24


@dataclass(frozen=True)
class TypicalRow:
    """A row near the centre of its cluster: its position, its name and its values in the columns of the traits."""

    position: int
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Profile:
    """What `size` rows are, compared with `others`; for a cluster of a session also with what was `left` at its step.

    `traits` are the columns that set the rows apart, strongest first, and `name` tells the strongest in words: "petal
    length low (1.5 against 4.9), 58 % Bachelors (12 % elsewhere)". `typical` are the rows nearest to the mean of all
    columns, each in its standard deviation. `labels` compares labels that were given to be described and had no part
    in anything else. `known` has a sentence for every known label or column of which all of the rows are one class.
    """

    size: int
    others: int
    left: int | None = None
    traits: tuple[Trait, ...] = ()
    typical: tuple[TypicalRow, ...] = ()
    labels: Trait | None = None
    name: str = NOTHING_APART
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class Description:
    """All clusters side by side: a profile each, and the features that tell them apart as a table.

    `numbers` are those of the clusters, in the order of all that is told of them; where none are given 0, 1, ...
    `values[c][f]` is the mean of feature f in cluster c in its own units, a share for a category's level;
    `differences[c][f]` the difference to all other rows in standard deviations of all rows.
    """

    clusters: tuple[Profile, ...]
    left: Profile | None
    features: tuple[str, ...]
    overall: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    differences: tuple[tuple[float, ...], ...]
    is_share: tuple[bool, ...] = ()
    numbers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.numbers:
            object.__setattr__(self, "numbers", tuple(range(len(self.clusters))))


class GroupMoments:
    """Counts, means and variances of the matrix columns in groups of rows, from one pass over them."""

    def __init__(self, rows: Rows, groups: Codes, n_groups: int):
        # About the mean of all rows, where the sums of squares do not cancel.
        centre = rows.moments().mean
        self._counts = np.bincount(groups, minlength=n_groups)
        self._sums, self._squares = rows.unfolded.add_blocks(BlockSums(centre, n_groups), beside=groups)
        self._centre = centre + rows.origin

    def of(self, groups: Iterable[int]) -> tuple[int, Array, Array]:
        """How many rows some groups have together, their means and their variances."""
        chosen = list(groups)
        count = int(self._counts[chosen].sum())
        offset = self._sums[chosen].sum(axis=0) / max(count, 1)
        variance = self._squares[chosen].sum(axis=0) / max(count, 1) - offset**2
        return count, self._centre + offset, np.maximum(variance, 0.0)


@dataclass(frozen=True)
class BlockSums:
    """Of the rows of a block in each of the groups the sum and the sum of squares, about a centre."""

    centre: Array
    n_groups: int

    def __call__(self, block: Array, groups: Codes) -> tuple[Array, Array]:
        places = (groups, np.arange(len(groups)))
        members = sparse.csr_array((np.ones(len(groups)), places), shape=(self.n_groups, len(groups)))
        deviation = block - self.centre
        sums = members @ deviation
        return sums, members @ np.square(deviation, out=deviation)


@dataclass(frozen=True)
class BlockDistances:
    """How far the rows of a block are from a mean, squared, in units 1/weight."""

    mean: Array
    weight: Array

    def __call__(self, block: Array) -> Array:
        return np.square((on_host(block) - self.mean) * self.weight).sum(axis=1)


class Describer:
    """Profiles of rows that come in groups, of which some are inside, some outside and perhaps some beside.

    `known` are columns of classes that were known, of which it is said where all of the rows are one; columns of the
    source that are `left_out`, by place, set nothing apart.

    >>> from imapce.rows.dense import DenseRows
    >>> from imapce.tables.reader import Reader
    >>> X = np.array([[0.0, 1.0], [0.1, 2.0], [8.0, 1.0], [8.2, 2.0]])
    >>> source = OriginalColumns(Reader(2), None, lambda places: X[:, places])
    >>> describer = Describer(DenseRows(X), source, np.arange(4), groups=np.array([0, 0, 1, 1]), n_groups=2)
    >>> describer.profile([0], [1]).name
    'x0 low (0.1 against 8.1)'
    """

    def __init__(
        self,
        rows: Rows,
        source: OriginalColumns,
        row_ids: NDArray,
        *,
        groups: Codes,
        n_groups: int,
        labels: Column | None = None,
        known: Sequence[Column] = (),
        left_out: Sequence[int] = (),
    ):
        self._known, self._left_out = known, list(left_out)
        self._rows, self._source, self._ids = rows.unfolded, source, row_ids
        self._groups, self._n_groups, self._labels = groups, n_groups, labels
        self._moments = GroupMoments(rows, groups, n_groups)
        encoding = source.reader.encoding
        self._places = np.arange(rows.n_features) if encoding is None else encoding.groups
        kinds = ("number",) * rows.n_features if encoding is None else encoding.kinds
        self._is_number = np.array([kind == "number" for kind in kinds])[self._places]
        self._read: dict[int, Column] = {}

    def profile(self, inside: Sequence[int], outside: Sequence[int], beside: Sequence[int] | None = None) -> Profile:
        """What the rows of the groups `inside` are, against those `outside` and, where given, those `beside`."""
        here, there = np.isin(self._groups, inside), np.isin(self._groups, outside)
        left = None if beside is None else np.isin(self._groups, beside)
        strength = self._of_columns(self.strength(inside, outside))
        strength[self._left_out] = 0.0
        strongest = np.argsort(-strength, kind="stable")[:MOST_TRAITS]
        columns = [self.column(int(place)) for place in strongest if strength[place] > 0]
        traits = [
            trait_of(column, here, there, beside=left, strength=float(strength[place]))
            for place, column in zip(strongest, columns, strict=False)
        ]
        labels = None if self._labels is None else trait_of(self._labels, here, there, beside=left, strength=0.0)
        return Profile(
            size=int(here.sum()),
            others=int(there.sum()),
            left=None if left is None else int(left.sum()),
            traits=tuple(traits),
            typical=self._typical(here, inside, columns),
            labels=labels,
            name=name_of_traits(self._saying_more(traits)),
            known=tuple(words for column in self._known if (words := one_class_in_words(column, here)) is not None),
        )

    def strength(self, inside: Sequence[int], outside: Sequence[int]) -> Array:
        """(d,): how strongly every matrix column sets groups apart, of a level the difference of its shares."""
        (_, here, spread), (n_others, there, other_spread) = self._moments.of(inside), self._moments.of(outside)
        if not n_others:
            return np.zeros(len(here))
        gap = np.abs(here - there)
        # A column without spread on either side and with a difference sets them apart fully.
        pooled = np.sqrt((spread + other_spread) / 2)
        ratio = np.divide(gap, pooled, out=np.where(gap > 0, np.inf, 0.0), where=pooled > 1e-12 * (1.0 + gap))
        return np.where(self._is_number, erf(ratio / np.sqrt(8.0)), gap)

    def describe(self, taken: Sequence[Sequence[int]], numbers: Sequence[int]) -> Description:
        """All clusters side by side, each against all other rows and beside that against what was left at its step.

        Groups are the clusters, in the order of their `numbers`, then the rows that are left, then those known at the
        start; `taken` are the clusters that every step took.
        """
        n_clusters = len(numbers)
        others = [[other for other in range(self._n_groups) if other != group] for group in range(n_clusters + 1)]
        left_at_step = {}
        gone: set[int] = set()
        for groups in taken:
            for group in groups:
                left_at_step[group] = [other for other in others[group] if other not in gone and other <= n_clusters]
            gone |= set(groups)
        features = self._features(others[:-1])
        _, overall, variance = self._moments.of(range(self._n_groups))
        means = [self._moments.of([group])[1] for group in range(n_clusters)]
        spread = np.sqrt(variance)
        gaps = [
            np.divide(here - self._moments.of(others[group])[1], spread, out=np.zeros_like(spread), where=spread > 0)
            for group, here in enumerate(means)
        ]
        return Description(
            clusters=tuple(self.profile([group], others[group], left_at_step[group]) for group in range(n_clusters)),
            left=self.profile([n_clusters], others[-1]) if np.any(self._groups == n_clusters) else None,
            features=tuple(self._feature_name(place) for place in features),
            overall=tuple(overall[features].tolist()),
            values=tuple(tuple(here[features].tolist()) for here in means),
            differences=tuple(tuple(gap[features].tolist()) for gap in gaps),
            is_share=tuple(not bool(self._is_number[place]) for place in features),
            numbers=tuple(numbers),
        )

    def _features(self, others: Sequence[Sequence[int]]) -> list[int]:
        """The matrix columns that tell the clusters apart best: the two best of each, then the strongest of all."""
        if not others:
            return []
        strengths = np.array([self.strength([group], outside) for group, outside in enumerate(others)])
        strengths[:, self._repeated()] = 0.0
        strengths[:, np.isin(self._places, self._left_out)] = 0.0
        ranked = np.argsort(-strengths, axis=1, kind="stable")
        strongest = np.argsort(-strengths.max(axis=0), kind="stable")
        chosen = list(dict.fromkeys([*ranked[:, :2].T.ravel().tolist(), *strongest.tolist()]))[:MOST_FEATURES]
        # In the order of the table, so that levels of one category stay together.
        return sorted(place for place in chosen if strengths[:, place].max() > 0)

    def column(self, place: int) -> Column:
        """A column of the source, read once for all profiles."""
        if place not in self._read:
            self._read[place] = self._source.column(place)
        return self._read[place]

    def _saying_more(self, traits: Sequence[Trait]) -> list[Trait]:
        """The traits worth telling without those that repeat a stronger one, as education-num repeats education."""
        kept: list[tuple[Trait, Column]] = []
        columns = {column.name: column for column in self._read.values()}
        for trait in traits_worth_telling(traits):
            if not any(say_the_same(trait, columns[trait.column], other, column) for other, column in kept):
                kept.append((trait, columns[trait.column]))
        return [trait for trait, _ in kept]

    def _of_columns(self, strength: Array) -> Array:
        """The strength of the source's columns: of a category half the sum over its levels."""
        encoding = self._source.reader.encoding
        if encoding is None:
            return strength
        total = np.bincount(self._places, weights=strength, minlength=len(encoding.columns))
        return np.where([kind == "category" for kind in encoding.kinds], total / 2, total)

    def _repeated(self) -> NDArray[np.intp]:
        """The first level of every category of two, which says what the second says."""
        encoding = self._source.reader.encoding
        if encoding is None:
            return np.zeros(0, dtype=np.intp)
        two = [place for place, levels in enumerate(encoding.categories) if len(levels) == 2]
        return np.searchsorted(self._places, two)

    def _feature_name(self, place: int) -> str:
        encoding = self._source.reader.encoding
        name = self._source.reader.names[place]
        if encoding is None:
            return name
        source = int(self._places[place])
        column, kind = encoding.columns[source], encoding.kinds[source]
        if kind == "category":
            return f"{column}: {name[len(column) + 1 :]}"
        return f"{column}: yes" if kind == "boolean" else name

    def _typical(self, inside: Mask, groups: Sequence[int], columns: Sequence[Column]) -> tuple[TypicalRow, ...]:
        """The rows nearest to the mean of theirs, every column in its standard deviation among all rows."""
        mean = self._moments.of(groups)[1] - self._rows.origin
        spread = np.sqrt(self._moments.of(range(self._n_groups))[2])
        weight = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        chosen = self._rows.unfolded.subset(inside)
        distance = np.concatenate(list(chosen.reduce_blocks(BlockDistances(mean, weight))))
        nearest = np.argsort(distance, kind="stable")[:MOST_TYPICAL]
        return tuple(
            TypicalRow(int(row), str(self._ids[row]), tuple(column.text(int(row)) for column in columns))
            for row in np.flatnonzero(inside)[nearest]
        )
