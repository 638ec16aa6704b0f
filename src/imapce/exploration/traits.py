r"""How one column differs between rows inside and outside a set, in numbers and in words a person understands.

A number is told by its means, "petal length low (1.5 against 4.9)", a category by the share of a level, "58 % Bachelors
(12 % elsewhere)". Everything is plain (text, numbers, tuples): `dataclasses.asdict` makes of it what JSON can hold.

>>> percent(0.5812), percent(0.004), percent(1.0)
('58\xa0%', 'under 1\xa0%', '100\xa0%')
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from imapce.common.arrays import Array, Mask
from imapce.tables.columns import Column, number_text

BINS = 16
# Whole numbers of so few values get a bar each.
MOST_BARS = 24
# |r| from which two columns repeat each other: "Husband" and "Married-civ-spouse" of Adult have 0.89, the length and
# the width of petals 0.96, and both of these are worth telling.
SAME_LEVELS, SAME_NUMBERS = 0.8, 0.98
NO_BREAK = "\N{NO-BREAK SPACE}"
# A tenth of the rows would have to move: less is no reason to name a cluster after it. A further trait must be worth
# a third of the strongest.
WORTH_NAMING, WORTH_ADDING = 0.1, 0.35
MOST_IN_NAME = 3
# The most that two neighbours overlap, and the most that one group would do by chance, with a word for each.
DISTINCTNESS_SCALE = ((0.01, "very distinct"), (0.1, "distinct"), (0.5, "touching"), (1.0, "overlapping"))
P_VALUE_SCALE = (
    (0.01, "hardly by chance"),
    (0.05, "unlikely by chance"),
    (0.2, "perhaps by chance"),
    (1.0, "by chance"),
)
NOTHING_APART = "like all other rows"
# Levels that say nothing without the name of their column.
_BARE = {"yes", "no", "true", "false", "other", "unknown", "none", "nan", "missing", "not", "na", "n/a"}
_SHORT_LEVEL = 4


@dataclass(frozen=True)
class Numbers:
    """A number among some rows, in its own units: mean, median, and the share of the rows in every bin."""

    mean: float
    median: float
    shares: tuple[float, ...]


@dataclass(frozen=True)
class NumberTrait:
    """A number inside and outside a set of rows; `difference` of the means is in standard deviations of all rows.

    `edges` bound the bins of the histograms, which all sides share; values beyond the outer ones are in the outer bins.
    `beside` is the second set of rows to compare with, where one was asked for.
    """

    column: str
    inside: Numbers
    outside: Numbers
    beside: Numbers | None = None
    edges: tuple[float, ...] = ()
    difference: float = 0.0
    difference_beside: float | None = None
    strength: float = 0.0

    @property
    def is_high(self) -> bool:
        """Whether the mean inside is above that outside."""
        return self.inside.mean > self.outside.mean

    @property
    def told_share(self) -> float:
        """How much of the difference its mean tells: all of it."""
        return self.strength


@dataclass(frozen=True)
class LevelTrait:
    """A category or a truth value inside and outside a set of rows: the share of every level on each side."""

    column: str
    levels: tuple[str, ...]
    inside: tuple[float, ...]
    outside: tuple[float, ...]
    beside: tuple[float, ...] | None = None
    counts: tuple[int, ...] = ()
    strength: float = 0.0

    @property
    def telling(self) -> int:
        """The level that says most: the one that gained most, or the one that is missing where none gained much."""
        gain = np.subtract(self.inside, self.outside)
        most, least = int(np.argmax(gain)), int(np.argmin(gain))
        return least if gain[most] < -gain[least] / 2 else most

    @property
    def told_share(self) -> float:
        """How much of the difference its most telling level tells by itself."""
        return abs(self.inside[self.telling] - self.outside[self.telling])

    def largest(self, most: int) -> list[int]:
        """The levels worth showing, those with the largest share inside or outside first."""
        weight = np.maximum(self.inside, self.outside)
        return [int(level) for level in np.argsort(-weight, kind="stable")[:most] if weight[level] > 0]


Trait = NumberTrait | LevelTrait


def trait_of(column: Column, inside: Mask, outside: Mask, *, beside: Mask | None = None, strength: float) -> Trait:
    """What a column says of the rows inside against those outside; rows where it is missing count on no side."""
    if column.values is not None:
        return _of_numbers(column.name, column.values, inside, outside, beside, strength)
    assert column.codes is not None
    width = len(column.levels)

    def counted(rows: Mask) -> NDArray[np.intp]:
        assert column.codes is not None
        chosen = column.codes[rows]
        return np.bincount(chosen[chosen >= 0], minlength=width)

    def shares(counts: NDArray[np.intp]) -> tuple[float, ...]:
        return tuple((counts / max(int(counts.sum()), 1)).tolist())

    counts = counted(inside)
    return LevelTrait(
        column.name,
        column.levels,
        shares(counts),
        shares(counted(outside)),
        beside=None if beside is None else shares(counted(beside)),
        counts=tuple(counts.tolist()),
        strength=strength,
    )


def say_the_same(trait: Trait, column: Column, other: Trait, beside: Column) -> bool:
    """Whether two traits repeat each other: of all rows, one column can nearly be read from the other."""
    if isinstance(trait, LevelTrait) and isinstance(other, LevelTrait):
        assert column.codes is not None
        assert beside.codes is not None
        first, second = column.codes == trait.telling, beside.codes == other.telling
        return _correlation(first.astype(np.float64), second.astype(np.float64)) > SAME_LEVELS
    if isinstance(trait, LevelTrait) or isinstance(other, LevelTrait):
        levels, number = (column, beside) if column.values is None else (beside, column)
        assert levels.codes is not None
        assert number.values is not None
        known = (levels.codes >= 0) & ~np.isnan(number.values)
        codes, values = levels.codes[known], number.values[known]
        counts = np.bincount(codes, minlength=len(levels.levels))
        means = np.bincount(codes, weights=values, minlength=len(levels.levels)) / np.maximum(counts, 1)
        return _correlation(means[codes], values) > SAME_NUMBERS
    assert column.values is not None
    assert beside.values is not None
    known = ~np.isnan(column.values + beside.values)
    return _correlation(column.values[known], beside.values[known]) > SAME_NUMBERS


def _correlation(first: Array, second: Array) -> float:
    """|r|, 0 where one of them does not vary."""
    first, second = first - first.mean(), second - second.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    return abs(float(first @ second)) / size if size > 0 else 0.0


def _of_numbers(
    name: str, values: Array, inside: Mask, outside: Mask, beside: Mask | None, strength: float
) -> NumberTrait:
    present = values[~np.isnan(values)]
    edges = shared_edges(present)
    spread = float(present.std()) if len(present) else 0.0
    here, there = _numbers(values[inside], edges), _numbers(values[outside], edges)
    left = None if beside is None else _numbers(values[beside], edges)

    def apart(other: Numbers) -> float:
        gap = here.mean - other.mean
        return gap / spread if spread > 0 and np.isfinite(gap) else 0.0

    return NumberTrait(
        name,
        here,
        there,
        beside=left,
        edges=tuple(edges.tolist()),
        difference=apart(there),
        difference_beside=None if left is None else apart(left),
        strength=strength,
    )


def _numbers(values: Array, edges: Array) -> Numbers:
    values = values[~np.isnan(values)]
    if not len(values):
        return Numbers(float("nan"), float("nan"), (0.0,) * (len(edges) - 1))
    counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
    return Numbers(float(values.mean()), float(np.median(values)), tuple((counts / len(values)).tolist()))


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


def name_of_traits(traits: Sequence[Trait]) -> str:
    """A name for rows from their traits, strongest first; a truth about all rows where nothing sets them apart."""
    worth = traits_worth_telling(traits)[:MOST_IN_NAME]
    if not worth:
        return NOTHING_APART
    levels = Counter(level for trait in traits if isinstance(trait, LevelTrait) for level in trait.levels)
    return ", ".join(trait_in_words(trait, with_column=_needs_column(trait, levels)) for trait in worth)


def traits_worth_telling(traits: Sequence[Trait]) -> list[Trait]:
    """The traits that a single number or level tells, strongest first, as far as they are strong beside the first."""
    # "70 % Bachelors" is understood where "education-num high" takes thought, so a level may come before a number that
    # tells half as much again.
    ordered = sorted(traits, key=lambda trait: -trait.told_share * (1.5 if isinstance(trait, LevelTrait) else 1.0))
    return [trait for trait in ordered if trait.told_share >= max(WORTH_NAMING, WORTH_ADDING * ordered[0].told_share)]


def trait_in_words(trait: Trait, *, with_column: bool = True) -> str:
    """One trait in words; of a level `with_column` tells the column, too."""
    if isinstance(trait, NumberTrait):
        inside, outside = aligned(trait.inside.mean, trait.outside.mean)
        return f"{trait.column} {'high' if trait.is_high else 'low'} ({inside} against {outside})"
    place = trait.telling
    level = f"{trait.column} = {trait.levels[place]}" if with_column else trait.levels[place]
    inside, outside = percent(trait.inside[place]), percent(trait.outside[place])
    if trait.inside[place] == 0.0:
        return f"no {level} ({outside} elsewhere)"
    only = "only " if trait.inside[place] < trait.outside[place] else ""
    return f"{only}{inside}{NO_BREAK}{level} ({outside} elsewhere)"


def _needs_column(trait: Trait, levels: Counter[str]) -> bool:
    """Whether a level would not be understood alone: short, a number, or a level of several columns."""
    if isinstance(trait, NumberTrait):
        return False
    level = trait.levels[trait.telling]
    plain = level.strip().lower()
    return len(plain) < _SHORT_LEVEL or plain in _BARE or levels[level] > 1 or not any(map(str.isalpha, plain))


def percent(share: float) -> str:
    r"""A share without decimals, and never a part as nothing or as everything."""
    value = 100 * share
    if 0 < value < 1:
        return f"under 1{NO_BREAK}%"
    return f"over 99{NO_BREAK}%" if 99 < value < 100 else f"{value:.0f}{NO_BREAK}%"


def aligned(one: float, other: float, *more: float) -> list[str]:
    """Numbers with as many decimals as it takes to see how the first two differ.

    >>> aligned(1.462, 4.906), aligned(40.21, 40.44), aligned(189778.4, 210333.9, 0.0)
    (['1.5', '4.9'], ['40.21', '40.44'], ['189,778', '210,334', '0'])
    """
    values = (one, other, *more)
    gap, size = abs(one - other), max(abs(one), abs(other))
    if not math.isfinite(gap) or gap <= 1e-9 * size or not 1e-4 <= size < 1e12:
        return ["unknown" if math.isnan(value) else _signed(number_text(value, 4)) for value in values]
    decimals = max(0, 1 - math.floor(math.log10(gap)))
    return ["unknown" if math.isnan(value) else _signed(f"{value:,.{decimals}f}") for value in values]


def _signed(text: str) -> str:
    """A minus sign, and no sign of a zero."""
    return text.replace("-", "−", 1) if any(digit in text for digit in "123456789") else text.lstrip("-")


def distinctness_in_words(distinctness: float) -> str:
    r"""How much a cluster overlaps its nearest neighbour in the view, on a scale of four words.

    The distinctness of a cluster is Bhattacharyya's distance B to the nearest other; of the area below both bell
    curves they share exp(−B).
    """
    overlap = math.exp(-distinctness)
    word = next(word for most, word in DISTINCTNESS_SCALE if overlap <= most)
    return f"{word}: {percent(overlap)} overlap with its nearest neighbour"


def p_value_in_words(p_value: float) -> str:
    """How surprising the split would be among rows of one Gaussian."""
    word = next(word for most, word in P_VALUE_SCALE if p_value <= most)
    times = p_value * 100
    often = f"{times:.0f} of 100 tables" if times >= 1 else f"{times * 10:.0f} of 1,000 tables"
    return f"{word}: a single group would look as split in {often} (p = {p_value:.2g})"
