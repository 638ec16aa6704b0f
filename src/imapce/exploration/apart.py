"""Which columns set rows apart, how strongly, and in brief: what every surface tells of a cluster.

How strongly a column sets rows apart is on one scale from 0 to 1 for numbers, categories and gaps: the share of the
rows that would have to move for inside to look like outside,

    ½ Σ |p(level | inside) − p(level | outside)|,    for a number  2Φ(|d|/2) − 1,  d = (m − m′)/√((s² + s′²)/2),

which is the same for two bell curves that are d standard deviations apart; of observed cells, or else the difference of
the shares that are missing, whichever is more. What is told is read from the columns as they were given.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from imapce.common.arrays import Array, Mask
from imapce.exploration.counted import GroupMoments, Side, say_the_same
from imapce.exploration.data import Data
from imapce.exploration.record import Feature
from imapce.exploration.traits import (
    MOST_IN_NAME,
    WORTH_NAMING,
    LevelTrait,
    MissingShares,
    Numbers,
    NumberTrait,
    Trait,
    traits_in_words,
    traits_worth_telling,
)
from imapce.priors.effect import Explained
from imapce.tables.columns import NO_YES, Column
from imapce.tables.reader import Reader

MOST_TRAITS = 10
GROUP = tuple[Sequence[int], Mask]


class Strengths:
    """How strongly the columns that a reader learned set groups of rows apart.

    Columns of the table that are `left_out`, by place, set nothing apart; where something was `explained` away, it is
    what the known does not explain that does. A feature is a matrix column, or, after all of these, that a column of
    the table is missing.
    """

    def __init__(
        self, reader: Reader, moments: GroupMoments, left_out: Sequence[int] = (), explained: Explained | None = None
    ):
        self._reader, self._moments, self._explained = reader, moments, explained
        encoding, d = reader.encoding, reader.n_features
        self._columns = reader.names if encoding is None else list(encoding.columns)
        self._kinds = ("number",) * d if encoding is None else encoding.kinds
        self._places = np.arange(d) if encoding is None else encoding.groups
        self._is_number = np.array([kind == "number" for kind in self._kinds], dtype=bool)[self._places]
        self._left_out = np.isin(np.arange(len(self._columns)), list(left_out))

    def of(self, inside: GROUP, outside: GROUP) -> tuple[Array, Array]:
        """(d,) and (c,): how strongly every matrix column sets groups, given with their rows (n,), apart, and how much
        more often every column of the table is missing.
        """
        (here, inside_rows), (there, outside_rows) = inside, outside
        one, other = self._moments.of(here), self._moments.of(there)
        if not one.n_rows or not other.n_rows:
            return np.zeros(len(one.mean)), np.zeros(len(self._columns))
        gap = one.mean - other.mean
        if self._explained is not None:
            # A difference that the known turns around is none to be told by the numbers of the table.
            left = gap - self._explained.between(gap, inside_rows, outside_rows)
            gap = np.where(left * gap > 0, left, 0.0)
        strength: Array = np.where(self._is_number, _of_numbers(gap, one, other), np.abs(gap))
        strength[(one.observed == 0) | (other.observed == 0)] = 0.0
        missing = np.zeros(len(self._columns))
        missing[self._places] = np.abs(one.missing - other.missing)
        # Rounded, so that no order hangs on how the sums were taken.
        strength[:], missing[:] = np.round(strength, 9), np.where(self._left_out, 0.0, np.round(missing, 9))
        return strength, missing

    def strongest(self, strength: tuple[Array, Array]) -> tuple[list[int], Array]:
        """The places of the columns of the table that set rows apart most, and the strength of all: of a category half
        the sum over its levels.
        """
        of_matrix, missing = strength
        total = np.bincount(self._places, weights=of_matrix, minlength=len(self._columns)).astype(np.float64)
        total = np.where([kind == "category" for kind in self._kinds], total / 2, total)
        total = np.where(self._left_out, 0.0, np.maximum(np.round(total, 9), missing))
        order = np.argsort(-total, kind="stable")[:MOST_TRAITS]
        return [int(place) for place in order if total[place] > 0], total

    def features(self, strength: tuple[Array, Array]) -> Array:
        """(d + c,): the strength of every feature; none for the first level of two, which says what the second says,
        nor for gaps that hardly differ.
        """
        of_matrix, missing = strength[0].copy(), strength[1].copy()
        encoding = self._reader.encoding
        if encoding is not None:
            two = [place for place, levels in enumerate(encoding.categories) if len(levels) == 2]
            of_matrix[np.searchsorted(self._places, two)] = 0.0
        of_matrix[self._left_out[self._places]] = 0.0
        missing[missing < WORTH_NAMING] = 0.0
        return np.append(of_matrix, missing)

    def source(self, feature: int) -> int:
        """The place of the table's column that a feature is of."""
        d = self._reader.n_features
        return feature - d if feature >= d else int(self._places[feature])

    def level(self, feature: int) -> int | None:
        """The level that a feature is the share of, 0 for a number; None where it is that the column is missing."""
        if feature >= self._reader.n_features:
            return None
        source = self.source(feature)
        return 1 if self._kinds[source] == "boolean" else feature - int(np.searchsorted(self._places, source))

    def is_share(self, feature: int) -> bool:
        """Whether a feature is told by a share, and no mean of a number."""
        return feature >= self._reader.n_features or not bool(self._is_number[feature])

    def name(self, feature: int) -> str:
        """What a feature is called: "age", "school: Masters", "smoker: yes", "deck: missing"."""
        column, kind = self._columns[self.source(feature)], self._kinds[self.source(feature)]
        if feature >= self._reader.n_features:
            return f"{column}: missing"
        if kind == "category":
            return f"{column}: {self._reader.names[feature][len(column) + 1 :]}"
        return f"{column}: yes" if kind == "boolean" else self._reader.names[feature]

    def trait(self, place: int, inside: Sequence[int], outside: Sequence[int], strength: float) -> Trait:
        """A column of the table by its sums alone, where its values cannot be read: on disk, on a cluster."""
        one, other = self._moments.of(inside), self._moments.of(outside)
        name, kind = self._columns[place], self._kinds[place]
        of = np.flatnonzero(self._places == place)
        gone = MissingShares(float(one.missing[of[0]]), float(other.missing[of[0]]))
        missing = gone if gone.inside or gone.outside else None
        if kind == "number":
            spread = float(np.sqrt(self._moments.of(range(len(self._moments.sizes))).variance[of[0]]))
            here, there = (_mean(side, int(of[0]), 1e-12 * spread) for side in (one, other))
            gap = (here - there) / spread if spread > 0 and np.isfinite(here - there) else 0.0
            told = [Numbers(mean, float("nan"), ()) for mean in (here, there)]
            return NumberTrait(name, told[0], told[1], difference=gap, strength=strength, missing=missing)
        encoding = self._reader.encoding
        assert encoding is not None
        levels = NO_YES if kind == "boolean" else tuple(map(str, encoding.categories[place]))
        # None of the rows is none, and not what rounding leaves of the sums.
        shares = [
            tuple(np.abs(np.round(side.mean[of] * bool(side.observed[of[0]]), 12)).tolist()) for side in (one, other)
        ]
        if kind == "boolean":
            seen = [bool(side.observed[of[0]]) for side in (one, other)]
            shares = [(any_seen - yes, yes) for (yes,), any_seen in zip(shares, seen, strict=True)]
        return LevelTrait(name, levels, shares[0], shares[1], strength=strength, missing=missing)


def features_apart(
    data: Data,
    inside: Mask,
    *,
    set_aside: Mask | None = None,
    left_out: Sequence[int] = (),
    explained: Explained | None = None,
) -> tuple[Feature, ...]:
    """What sets rows apart from all others, in brief: of all rows nothing is read that was read before.

    Gross outliers that are `set_aside` are among the others; how strongly a column sets rows apart is told without
    them, whose spread would hide it.

    >>> from imapce.estimators.imapce import IMAPCE
    >>> data = Data.read(np.array([[0.0, 5.0], [0.2, 6.0], [1.0, 5.0], [1.1, 6.0]]), IMAPCE())
    >>> features_apart(data, np.array([True, True, False, False]))
    (x0 low (0.10 against 1.05),)
    """
    aside = np.zeros(data.n_rows, dtype=bool) if set_aside is None else set_aside & ~inside
    gaps = data.reader.gaps
    moments = data.all_moments.without(data.rows, aside, gaps).split(data.rows, inside, gaps)
    strengths = Strengths(data.reader, moments, left_out, explained)
    places, strength = strengths.strongest(strengths.of(([1], inside), ([0], ~inside)))
    if data.is_elsewhere:
        if aside.any():
            strengths = Strengths(data.reader, data.all_moments.split(data.rows, inside, gaps))
        return features_of([strengths.trait(place, [1], [0], float(strength[place])) for place in places])
    rows = np.flatnonzero(inside)
    counted = [data.counted(place).split(rows) for place in places]
    traits = [
        column.trait([1], [0], strength=float(strength[place]), brief=True)
        for place, column in zip(places, counted, strict=True)
    ]
    return features_of(traits, [one.column for one in counted])


def features_of(traits: Sequence[Trait], columns: Sequence[Column] = ()) -> tuple[Feature, ...]:
    """Traits in brief, those first that are told: the strongest, without those that repeat one of these, as
    education-num repeats education; then the others as they come.
    """
    of = {trait.column: column for trait, column in zip(traits, columns, strict=False)}
    told: list[Trait] = []
    for trait in traits_worth_telling(traits):
        repeats = of and any(say_the_same(trait, of[trait.column], other, of[other.column]) for other in told)
        if not repeats and len(told) < MOST_IN_NAME:
            told.append(trait)
    ordered = [*told, *(trait for trait in traits if trait not in told)]
    words = [*traits_in_words(told, among=told), *traits_in_words(ordered[len(told) :], among=traits)]
    return tuple(_feature(*one, told=place < len(told)) for place, one in enumerate(zip(ordered, words, strict=True)))


def _feature(trait: Trait, words: str, *, told: bool) -> Feature:
    level = None
    if trait.says_missing and trait.missing is not None:
        inside, outside = trait.missing.inside, trait.missing.outside
    elif isinstance(trait, LevelTrait):
        inside, outside, level = trait.inside[trait.telling], trait.outside[trait.telling], trait.levels[trait.telling]
    else:
        inside, outside = trait.inside.mean, trait.outside.mean
    is_number = isinstance(trait, NumberTrait) and not trait.says_missing
    return Feature(
        trait.column,
        words,
        inside=inside,
        outside=outside,
        level=level,
        is_missing=trait.says_missing,
        difference=trait.difference if is_number and isinstance(trait, NumberTrait) else inside - outside,
        strength=trait.strength,
        told=told,
    )


def _of_numbers(gap: Array, one: Side, other: Side) -> NDArray[np.float64]:
    """2Φ(|d|/2) − 1; a column without spread on either side and with a difference sets them apart fully."""
    gap = np.abs(gap)
    pooled = np.sqrt((one.variance + other.variance) / 2)
    ratio = np.divide(gap, pooled, out=np.where(gap > 0, np.inf, 0.0), where=pooled > 1e-12 * (1.0 + gap))
    return erf(ratio / np.sqrt(8.0))


def _mean(side: Side, place: int, rounding: float) -> float:
    mean = float(side.mean[place]) if side.observed[place] else float("nan")
    return 0.0 if abs(mean) < rounding else mean
