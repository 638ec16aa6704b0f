"""What a set of rows is: the columns that set it apart, in their own units, and the rows most typical of it.

A number is told by its mean and median inside and outside, a category by the share of every level, both of observed
cells only, and both by how often they are missing. Rows are reduced in one pass to the moments of groups, which tell
how strongly a column sets rows apart (`apart.py`); only the columns worth telling are read again, and from the table
itself.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from imapce.common.arrays import Array, Codes, Mask, on_host
from imapce.common.words import counted as counted_in_words
from imapce.exploration.apart import Strengths, features_of
from imapce.exploration.counted import CountedColumn, GroupMoments
from imapce.exploration.knowledge import one_class_in_words
from imapce.exploration.record import Feature, features_in_words
from imapce.exploration.traits import NOTHING_APART, Trait
from imapce.priors.effect import Explained
from imapce.rows.base import Rows
from imapce.tables.columns import Column
from imapce.tables.reader import OriginalColumns

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

    `traits` are the columns that set the rows apart, strongest first, each with all its levels or its histogram;
    `features` the same in brief, and `name` tells the strongest in words: "petal length low (1.5 against 4.9), 58 %
    Bachelors (12 % elsewhere)". `typical` are the rows nearest to the mean of all
    columns, each in its standard deviation. `labels` compare columns of labels given to be described, which had no part
    in anything else. `known` has a sentence for every known label or column of which all of the rows are one class.
    The traits are a choice, those that differ most, of `n_columns` columns.
    """

    size: int
    others: int
    left: int | None = None
    traits: tuple[Trait, ...] = ()
    typical: tuple[TypicalRow, ...] = ()
    labels: tuple[Trait, ...] = ()
    features: tuple[Feature, ...] = ()
    known: tuple[str, ...] = ()
    n_columns: int = 0

    @property
    def name(self) -> str:
        """What sets the rows apart, in one line."""
        return features_in_words(self.features) or NOTHING_APART

    def __repr__(self) -> str:
        weaker = [f"  {feature.words}" for feature in self.features if not feature.told]
        lines = [f"{counted_in_words(self.size, 'row')} against {self.others:,}: {self.name}"]
        lines += ["also:", *weaker] if weaker else []
        return "\n".join([*lines, *self.known])

    def _repr_html_(self) -> str:
        first, *rest = map(html.escape, repr(self).splitlines())
        return f"<p>{first}</p>" + "".join(f"<p>{line}</p>" for line in rest)


@dataclass(frozen=True)
class Description:
    """All clusters side by side: a profile each, and the features that tell them apart as a table.

    `numbers` are those of the clusters, in the order of all that is told of them; where none are given 0, 1, ...
    `values[c][f]` is the mean of feature f in cluster c in its own units, a share for a category's level, of observed
    cells only, and NaN where none is; `differences[c][f]` the difference to all other rows in standard deviations of
    all rows. The features are a choice of `n_columns` columns: the two that set each cluster apart most, then the
    strongest.
    """

    clusters: tuple[Profile, ...]
    left: Profile | None
    features: tuple[str, ...]
    overall: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    differences: tuple[tuple[float, ...], ...]
    is_share: tuple[bool, ...] = ()
    numbers: tuple[int, ...] = ()
    n_columns: int = 0

    def __post_init__(self) -> None:
        if not self.numbers:
            object.__setattr__(self, "numbers", tuple(range(len(self.clusters))))


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
    source that are `left_out`, by place, set nothing apart. Where something was `explained` away, a column sets rows
    apart by what the known does not explain; what is told of it are the numbers of the table. Rows that are `set_aside`
    are counted, and have no say in how strongly a column sets others apart.

    >>> from imapce.rows.dense import DenseRows
    >>> from imapce.tables.reader import Reader
    >>> X = np.array([[0.0, 1.0], [0.2, 2.0], [8.0, 1.0], [8.2, 2.0]])
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
        labels: Sequence[Column] = (),
        known: Sequence[Column] = (),
        left_out: Sequence[int] = (),
        explained: Explained | None = None,
        set_aside: Mask | None = None,
    ):
        self._known, self._rows, self._source, self._ids = known, rows.unfolded, source, row_ids
        self._groups, self._n_groups = groups, n_groups
        self._labels = [CountedColumn(column, groups, n_groups) for column in labels]
        # Gross outliers are a group of their own that no strength is told by: their spread would hide it.
        ranked = groups if set_aside is None else np.where(set_aside, n_groups, groups)
        self._moments = GroupMoments.of_groups(rows, ranked, n_groups + 1, source.reader.gaps)
        self._strengths = Strengths(source.reader, self._moments, left_out, explained)
        self._counted: dict[int, CountedColumn] = {}

    def profile(self, inside: Sequence[int], outside: Sequence[int], beside: Sequence[int] | None = None) -> Profile:
        """What the rows of the groups `inside` are, against those `outside` and, where given, those `beside`."""
        here, there = np.isin(self._groups, inside), np.isin(self._groups, outside)
        places, strength = self._strengths.strongest(self._strengths.of((inside, here), (outside, there)))
        counted = [self.counted(place) for place in places]
        traits = [
            column.trait(inside, outside, beside, strength=float(strength[place]))
            for place, column in zip(places, counted, strict=True)
        ]
        columns = [one.column for one in counted]
        return Profile(
            size=int(here.sum()),
            others=int(there.sum()),
            left=None if beside is None else int(np.isin(self._groups, beside).sum()),
            traits=tuple(traits),
            typical=self._typical(here, inside, columns),
            labels=tuple(column.trait(inside, outside, beside) for column in self._labels),
            features=features_of(traits, columns),
            n_columns=len(self._source.names),
            known=tuple(words for column in self._known if (words := one_class_in_words(column, here)) is not None),
        )

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
        shown = self._features(others[:-1])
        told = [self._compared(place, others[:-1]) for place in shown]
        return Description(
            clusters=tuple(self.profile([group], others[group], left_at_step[group]) for group in range(n_clusters)),
            left=self.profile([n_clusters], others[-1]) if np.any(self._groups == n_clusters) else None,
            features=tuple(self._strengths.name(place) for place in shown),
            overall=tuple(overall for overall, _, _ in told),
            values=tuple(tuple(values[group] for _, values, _ in told) for group in range(n_clusters)),
            differences=tuple(tuple(gaps[group] for _, _, gaps in told) for group in range(n_clusters)),
            is_share=tuple(self._strengths.is_share(place) for place in shown),
            numbers=tuple(numbers),
            n_columns=self._rows.n_features,
        )

    def _features(self, others: Sequence[Sequence[int]]) -> list[int]:
        """The features that tell the clusters apart best: the two best of each, then the strongest of all."""
        if not others:
            return []
        sides = [(np.isin(self._groups, group), np.isin(self._groups, rest)) for group, rest in enumerate(others)]
        strengths = np.array(
            [
                self._strengths.features(self._strengths.of(([group], here), (rest, there)))
                for (group, rest), (here, there) in zip(enumerate(others), sides, strict=True)
            ]
        )
        ranked = np.argsort(-strengths, axis=1, kind="stable")
        strongest = np.argsort(-strengths.max(axis=0), kind="stable")
        chosen = list(dict.fromkeys([*ranked[:, :2].T.ravel().tolist(), *strongest.tolist()]))[:MOST_FEATURES]
        # In the order of the table, so that levels of one category stay together.
        kept = [place for place in chosen if strengths[:, place].max() > 0]
        return sorted(kept, key=lambda place: (self._strengths.source(place), place))

    def _compared(self, place: int, others: Sequence[Sequence[int]]) -> tuple[float, list[float], list[float]]:
        """Of a feature its mean or share among all rows and in each cluster, and how each differs from the others."""
        counted, level = self.counted(self._strengths.source(place)), self._strengths.level(place)
        everyone = range(self._n_groups)

        def value(side: Sequence[int]) -> float:
            if level is None:
                return counted.missing(side)
            if counted.column.is_number:
                return counted.mean(side)
            return counted.shares(side)[level] if counted.count(side) else float("nan")

        overall, values = value(everyone), [value([group]) for group in range(len(others))]
        spread = counted.spread if level is not None and counted.column.is_number else sqrt(overall * (1 - overall))
        gaps = [here - value(rest) for here, rest in zip(values, others, strict=True)]
        return overall, values, [gap / spread if spread > 0 else 0.0 * gap for gap in gaps]

    def counted(self, place: int) -> CountedColumn:
        """A column of the source, read and counted once for all profiles."""
        if place not in self._counted:
            self._counted[place] = CountedColumn(self._source.column(place), self._groups, self._n_groups)
        return self._counted[place]

    def _typical(self, inside: Mask, groups: Sequence[int], columns: Sequence[Column]) -> tuple[TypicalRow, ...]:
        """The rows nearest to the mean of theirs, every column in its standard deviation among all rows."""
        mean = self._moments.of(groups).mean - self._rows.origin
        spread = np.sqrt(self._moments.of(range(self._n_groups)).variance)
        weight = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        chosen = self._rows.unfolded.subset(inside)
        distance = np.concatenate(list(chosen.reduce_blocks(BlockDistances(mean, weight))))
        nearest = np.argsort(distance, kind="stable")[:MOST_TYPICAL]
        return tuple(
            TypicalRow(int(row), str(self._ids[row]), tuple(column.text(int(row)) for column in columns))
            for row in np.flatnonzero(inside)[nearest]
        )
