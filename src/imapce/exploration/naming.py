r"""What sets rows apart, in words a person understands: "petal length low (1.5 against 4.9)", "58 % Bachelors".

>>> percent(0.5812), percent(0.004), percent(1.0)
('58\xa0%', 'under 1\xa0%', '100\xa0%')
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from imapce.exploration.traits import LevelTrait, NumberTrait, Trait
from imapce.tables.columns import number_text

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


def name_of_traits(traits: Sequence[Trait], most: int = MOST_IN_NAME) -> str:
    r"""A name for rows from their traits, strongest first; a truth about all rows where nothing sets them apart.

    >>> name_of_traits([LevelTrait("education", ("Bachelors", "none"), (0.58, 0.42), (0.12, 0.88), strength=0.46)])
    '58\xa0%\xa0Bachelors (12\xa0% elsewhere)'
    """
    told = traits_worth_telling(traits)[:most]
    if not told:
        return NOTHING_APART
    levels = Counter(level for trait in traits if isinstance(trait, LevelTrait) for level in trait.levels)
    return ", ".join(trait_in_words(trait, bare=_is_bare(trait, levels)) for trait in told)


def traits_worth_telling(traits: Sequence[Trait]) -> list[Trait]:
    """The traits that a single number or level tells, strongest first, as far as they are strong beside the first."""
    # "70 % Bachelors" is understood where "education-num high" takes thought, so a level may come before a number that
    # tells half as much again.
    ordered = sorted(traits, key=lambda trait: -trait.told * (1.5 if isinstance(trait, LevelTrait) else 1.0))
    return [trait for trait in ordered if trait.told >= max(WORTH_NAMING, WORTH_ADDING * ordered[0].told)]


def trait_in_words(trait: Trait, *, bare: bool = True, elsewhere: str = "elsewhere") -> str:
    r"""One trait in words; `bare` names the column of a level too.

    >>> trait_in_words(LevelTrait("smoker", ("no", "yes"), (0.1, 0.9), (0.8, 0.2), strength=0.7))
    '90\xa0%\xa0smoker = yes (20\xa0% elsewhere)'
    """
    if isinstance(trait, NumberTrait):
        inside, outside = aligned(trait.inside.mean, trait.outside.mean)
        return f"{trait.column} {'high' if trait.is_high else 'low'} ({inside} against {outside})"
    place = trait.telling
    level = f"{trait.column} = {trait.levels[place]}" if bare else trait.levels[place]
    inside, outside = percent(trait.inside[place]), percent(trait.outside[place])
    if trait.inside[place] == 0.0:
        return f"no {level} ({outside} {elsewhere})"
    only = "only " if trait.inside[place] < trait.outside[place] else ""
    return f"{only}{inside}{NO_BREAK}{level} ({outside} {elsewhere})"


def _is_bare(trait: Trait, levels: Counter[str]) -> bool:
    """Whether a level would not be understood alone: short, a number, or a level of several columns."""
    if isinstance(trait, NumberTrait):
        return False
    level = trait.levels[trait.telling]
    plain = level.strip().lower()
    return len(plain) < _SHORT_LEVEL or plain in _BARE or levels[level] > 1 or not any(map(str.isalpha, plain))


def percent(share: float) -> str:
    r"""A share without decimals, and never a part as nothing or as everything.

    >>> percent(0.001), percent(0.999), percent(0.0)
    ('under 1\xa0%', 'over 99\xa0%', '0\xa0%')
    """
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

    >>> distinctness_in_words(0.5)
    'overlapping: 61\xa0% overlap with its nearest neighbour'
    """
    overlap = math.exp(-distinctness)
    word = next(word for most, word in DISTINCTNESS_SCALE if overlap <= most)
    return f"{word}: {percent(overlap)} overlap with its nearest neighbour"


def p_value_in_words(p_value: float) -> str:
    """How surprising the split would be among rows of one Gaussian.

    >>> p_value_in_words(0.01)
    'hardly by chance: a single group would look as split in 1 of 100 tables (p = 0.01)'
    """
    word = next(word for most, word in P_VALUE_SCALE if p_value <= most)
    times = p_value * 100
    often = f"{times:.0f} of 100 tables" if times >= 1 else f"{times * 10:.0f} of 1,000 tables"
    return f"{word}: a single group would look as split in {often} (p = {p_value:.2g})"
