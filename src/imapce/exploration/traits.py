r"""How one column differs between rows inside and outside a set, in numbers and in words a person understands.

A number is told by its means, "petal length low (1.5 against 4.9)", a category by the share of a level, "58 % Bachelors
(12 % elsewhere)", both of observed cells only; where that says more, it is told how often a column is missing, "age
missing 60 % (12 % elsewhere)". Everything is plain (text, numbers, tuples): `dataclasses.asdict` makes of it what JSON
can hold.

>>> percent(0.5812), percent(0.004), percent(1.0)
('58\xa0%', 'under 1\xa0%', '100\xa0%')
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from imapce.common.words import listing
from imapce.tables.columns import number_text

NO_BREAK = "\N{NO-BREAK SPACE}"
# A tenth of the rows would have to move: less is no reason to name a cluster after it. A further trait must be worth
# a third of the strongest.
WORTH_NAMING, WORTH_ADDING = 0.1, 0.35
MOST_IN_NAME = 3
# The most that two neighbours overlap, and the most that one group would do by chance, with a word for each.
OVERLAP_SCALE = ((0.01, "very distinct"), (0.1, "distinct"), (0.5, "touching"), (1.0, "overlapping"))
P_VALUE_SCALE = (
    (0.01, "hardly by chance"),
    (0.05, "unlikely by chance"),
    (0.2, "perhaps by chance"),
    (1.0, "by chance"),
)
NOTHING_APART = "like all other rows"
# The mean of cells none of which is observed.
NO_VALUE = "no value"
# Levels that say nothing without the name of their column.
_BARE = {"yes", "no", "true", "false", "other", "unknown", "none", "nan", "missing", "not", "na", "n/a"}
_SHORT_LEVEL = 4


@dataclass(frozen=True)
class MissingShares:
    """The share of the rows in which a column is missing, inside, outside and perhaps beside."""

    inside: float
    outside: float
    beside: float | None = None

    @property
    def gap(self) -> float:
        """How many more of the rows inside lack it."""
        return self.inside - self.outside


@dataclass(frozen=True)
class Numbers:
    """A number among some rows, in its own units: mean, median, and the share of the rows in every bin.

    NaN where no cell is observed, and for a median that nobody asked for.
    """

    mean: float
    median: float
    shares: tuple[float, ...]


@dataclass(frozen=True)
class NumberTrait:
    """A number inside and outside a set of rows; `difference` of the means is in standard deviations of all rows.

    `edges` bound the bins of the histograms, which all sides share; values beyond the outer ones are in the outer bins.
    `beside` is the second set of rows to compare with, where one was asked for. Cells that are `missing` count nowhere
    else.
    """

    column: str
    inside: Numbers
    outside: Numbers
    beside: Numbers | None = None
    edges: tuple[float, ...] = ()
    difference: float = 0.0
    difference_beside: float | None = None
    strength: float = 0.0
    missing: MissingShares | None = None

    @property
    def says_missing(self) -> bool:
        """Whether how often it is missing says more than its values do."""
        if self.missing is None or not self.missing.gap:
            return False
        unseen = math.isnan(self.inside.mean) or math.isnan(self.outside.mean)
        return unseen or abs(self.missing.gap) >= self.strength * (1 - 1e-6)

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
    """A category or a truth value inside and outside a set of rows: the share of every level among observed cells.

    All shares of a side are 0 where none of its cells is observed.
    """

    column: str
    levels: tuple[str, ...]
    inside: tuple[float, ...]
    outside: tuple[float, ...]
    beside: tuple[float, ...] | None = None
    counts: tuple[int, ...] = ()
    strength: float = 0.0
    missing: MissingShares | None = None

    @property
    def says_missing(self) -> bool:
        """Whether how often it is missing says more than its most telling level does."""
        if self.missing is None or not self.missing.gap:
            return False
        return not (any(self.inside) and any(self.outside)) or abs(self.missing.gap) > self._told_by_level

    @property
    def telling(self) -> int:
        """The level that says most: the one that gained most, or the one that is missing where none gained much."""
        gain = np.subtract(self.inside, self.outside)
        most, least = int(np.argmax(gain)), int(np.argmin(gain))
        return least if gain[most] < -gain[least] / 2 else most

    @property
    def told_share(self) -> float:
        """How much of the difference its most telling level tells by itself, or how often it is missing."""
        return abs(self.missing.gap) if self.says_missing and self.missing is not None else self._told_by_level

    @property
    def _told_by_level(self) -> float:
        return abs(self.inside[self.telling] - self.outside[self.telling])

    def largest(self, most: int) -> list[int]:
        """The levels worth showing, those with the largest share inside or outside first."""
        weight = np.maximum(self.inside, self.outside)
        return [int(level) for level in np.argsort(-weight, kind="stable")[:most] if weight[level] > 0]


Trait = NumberTrait | LevelTrait


def name_of_traits(traits: Sequence[Trait]) -> str:
    """A name for rows from their traits, strongest first; a truth about all rows where nothing sets them apart."""
    worth = traits_worth_telling(traits)[:MOST_IN_NAME]
    return ", ".join(traits_in_words(worth, among=traits)) or NOTHING_APART


def traits_in_words(traits: Sequence[Trait], *, among: Sequence[Trait]) -> list[str]:
    """Each trait in words; the column of a level is told where it would not be understood among others without."""
    levels = Counter(level for trait in among if isinstance(trait, LevelTrait) for level in trait.levels)
    return [trait_in_words(trait, with_column=_needs_column(trait, levels)) for trait in traits]


def traits_worth_telling(traits: Sequence[Trait]) -> list[Trait]:
    """The traits that a single number or level tells, strongest first, as far as they are strong beside the first."""
    # "70 % Bachelors" is understood where "education-num high" takes thought, so a level may come before a number that
    # tells half as much again.
    ordered = sorted(traits, key=lambda trait: -trait.told_share * (1.5 if isinstance(trait, LevelTrait) else 1.0))
    return [trait for trait in ordered if trait.told_share >= max(WORTH_NAMING, WORTH_ADDING * ordered[0].told_share)]


def trait_in_words(trait: Trait, *, with_column: bool = True) -> str:
    """One trait in words; of a level `with_column` tells the column, too."""
    if trait.says_missing and trait.missing is not None:
        inside, outside = percent(trait.missing.inside), percent(trait.missing.outside)
        often = f"never missing ({outside}" if trait.missing.inside == 0.0 else f"missing {inside} ({outside}"
        return f"{trait.column} {often} elsewhere)"
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


def percent(share: float, *, under: str = "under ", over: str = "over ") -> str:
    r"""A share without decimals, and never a part as nothing or as everything."""
    value = 100 * share
    if 0 < value < 1:
        return f"{under}1{NO_BREAK}%"
    return f"{over}99{NO_BREAK}%" if 99 < value < 100 else f"{value:.0f}{NO_BREAK}%"


def aligned(one: float, other: float, *more: float) -> list[str]:
    """Numbers with as many decimals as it takes to see how the first two differ.

    >>> aligned(1.462, 4.906), aligned(40.21, 40.44), aligned(189778.4, 210333.9, 0.0)
    (['1.5', '4.9'], ['40.21', '40.44'], ['189,778', '210,334', '0'])
    """
    values = (one, other, *more)
    gap, size = abs(one - other), max(abs(one), abs(other))
    if not math.isfinite(gap) or gap <= 1e-9 * size or not 1e-4 <= size < 1e12:
        return [NO_VALUE if math.isnan(value) else _signed(number_text(value, 4)) for value in values]
    decimals = max(0, 1 - math.floor(math.log10(gap)))
    return [NO_VALUE if math.isnan(value) else _signed(f"{value:,.{decimals}f}") for value in values]


def _signed(text: str) -> str:
    """A minus sign, and no sign of a zero."""
    return text.replace("-", "−", 1) if any(digit in text for digit in "123456789") else text.lstrip("-")


def overlap_in_words(overlap: float | None, *, beside: str = "") -> str:
    r"""How much a cluster overlaps its nearest neighbour in the view, on a scale of four words.

    The overlap of two bell curves at Bhattacharyya's distance B is exp(−B), 1 where they are the same. Empty where
    there is no neighbour, or nobody measured. `beside` says what it overlaps, where that is not clear.

    >>> overlap_in_words(0.0), overlap_in_words(0.3, beside="its neighbour")
    ('very distinct (under 1\xa0% overlap)', 'touching (30\xa0% overlap with its neighbour)')
    """
    if overlap is None or math.isnan(overlap):
        return ""
    whom = f" with {beside}" if beside else ""
    return f"{overlap_in_a_word(overlap)} ({overlap_in_percent(overlap)} overlap{whom})"


def overlap_in_a_word(overlap: float) -> str:
    """The word of that scale alone."""
    return next(word for most, word in OVERLAP_SCALE if overlap <= most)


def overlap_in_percent(overlap: float) -> str:
    """The overlap in per cent; bell curves never end, so none is nothing, and no two are one."""
    return percent(min(max(overlap, 1e-9), 1.0))


def how_features_were_chosen(n_features: int) -> str:
    """What a sentence about a cluster compares, and what it leaves out.

    >>> how_features_were_chosen(6830)
    'means and shares of observed cells; of 6,830 features at most the 3 that differ most'
    """
    some = (
        f"; of {n_features:,} features at most the {MOST_IN_NAME} that differ most" if n_features > MOST_IN_NAME else ""
    )
    return f"means and shares of observed cells{some}"


def filled_in_words(filled: Mapping[str, int], n_rows: int) -> str:
    """How many cells of which column were filled, the most first; empty where none was.

    >>> filled_in_words({"age": 177, "deck": 688}, 891)
    'deck 688 of 891, age 177; filled with the mean of the column to look for groups, and counted nowhere else'
    """
    if not filled:
        return ""
    (first, count), *rest = sorted(filled.items(), key=lambda one: (-one[1], one[0]))
    told = listing([f"{first} {count:,} of {n_rows:,}", *(f"{name} {more:,}" for name, more in rest)], 10)
    return f"{told}; filled with the mean of the column to look for groups, and counted nowhere else"


def p_value_in_words(p_value: float) -> str:
    """How surprising the split would be among rows of one Gaussian."""
    word = next(word for most, word in P_VALUE_SCALE if p_value <= most)
    times = p_value * 100
    often = f"{times:.0f} of 100 tables" if times >= 1 else f"{times * 10:.0f} of 1,000 tables"
    return f"{word}: a single group would look as split in {often} (p = {p_value:.2g})"
