"""The part of a page that answers "what is cluster 3?": its features in their own units, typical rows, its labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from imapce.common.words import shorten
from imapce.exploration.description import Profile
from imapce.exploration.traits import LevelTrait, NumberTrait, Trait, aligned, percent
from imapce.plotting.reports.page import Grid, Histogram, Lines, Share

MOST_TRAITS_SHOWN = 8
_LEVELS_SHOWN, _LABELS_SHOWN = 3, 8
_NAME, _LEVEL = 34, 26
# A column that would need one row in twenty to move is no difference to speak of, nor is a label of one in a hundred.
_WORTH_SHOWING, _WORTH_TELLING = 0.05, 0.01


def profile_grids(
    profile: Profile, *, what: str, left: str | None, uses: Mapping[str, str] | None = None
) -> list[Grid]:
    """The tables of a profile: features, labels, typical rows; `what` names the rows, `left` those beside the others,
    and `uses` tells what came of labels, by name.

    >>> profile_grids(Profile(size=2, others=2), what="cluster 0", left=None)
    []
    """
    # Where nothing was taken before, what was left is all other rows.
    beside = None if profile.left in (None, profile.others) else left
    key = (what, "all other rows")
    grids = []
    shown = [trait for trait in profile.traits if trait.strength >= _WORTH_SHOWING][:MOST_TRAITS_SHOWN]
    if shown:
        header = _header("feature", what, beside)
        choice = f": {len(shown)} of {profile.n_columns:,} columns, those that differ most"
        heading = f"What sets it apart{choice if len(shown) < profile.n_columns else ''}"
        grids.append(Grid((header, [_row(trait, beside) for trait in shown]), heading=heading, key=key))
    for labels in profile.labels:
        name = shorten(labels.column, _NAME)
        header = _header(name, what, beside)
        row = _row(labels, beside, levels=_LABELS_SHOWN, counts=True)
        # The name of the column stands in the header already.
        table = (header[1:], [row[1:]]) if isinstance(labels, LevelTrait) else (header, [row])
        if isinstance(labels, LevelTrait):
            table[0][0] = name
        of_several = f" of {name}" if len(profile.labels) > 1 else ""
        use = (uses or {}).get(labels.column, "not used")
        grids.append(Grid(table, heading=f"Its labels{of_several}, which were {use}", key=key))
    if profile.typical and shown:
        columns = [trait.column for trait in profile.traits][:MOST_TRAITS_SHOWN]
        rows = [[row.name, *(_value(text) for text in row.values[: len(columns)])] for row in profile.typical]
        grids.append(
            Grid((["row", *(shorten(name, _NAME) for name in columns)], rows), heading="The most typical rows")
        )
    return grids


def made_of(labels: Trait, most: int = 2) -> str:
    r"""What the labels of some rows are, in a few words for a table of all clusters.

    >>> made_of(LevelTrait("digit", ("0", "1"), (0.9, 0.1), (0.0, 1.0)))
    '0 (90\xa0%), 1 (10\xa0%)'
    >>> from imapce.exploration.traits import MissingShares
    >>> made_of(LevelTrait("deck", ("A", "B"), (0.0, 1.0), (1.0, 0.0), missing=MissingShares(0.875, 0.0)))
    'B (100\xa0%); missing in 88\xa0%'
    """
    lacking = 0.0 if labels.missing is None else labels.missing.inside
    missing = f"missing in {percent(lacking)}" if lacking >= _WORTH_TELLING else ""
    if isinstance(labels, NumberTrait):
        told = "mean {} ({} elsewhere)".format(*aligned(labels.inside.mean, labels.outside.mean))
    else:
        order = np.argsort(-np.array(labels.inside), kind="stable")[:most]
        worth = [place for place in order if labels.inside[place] >= _WORTH_TELLING]
        levels = (f"{shorten(labels.levels[place], _LEVEL)} ({percent(labels.inside[place])})" for place in worth)
        told = ", ".join(levels)
    return "; ".join(filter(None, [told, missing]))


def _header(feature: str, what: str, beside: str | None) -> list[object]:
    return [feature, "", what, "all other rows", *([beside] if beside else []), "difference", ""]


def _row(trait: Trait, beside: str | None, *, levels: int = _LEVELS_SHOWN, counts: bool = False) -> list[object]:
    name = shorten(trait.column, _NAME)
    if isinstance(trait, NumberTrait):
        sides = [trait.inside, trait.outside, *([trait.beside] if beside and trait.beside is not None else [])]
        values = [value for side in sides for value in (side.mean, side.median)]
        # The first two decide how many decimals are worth it.
        texts = aligned(values[0], values[2], *values)[2:]
        gone = _missing_shares(trait, beside)
        columns = [
            Lines([*texts[place : place + 2], *gone[place // 2 : place // 2 + 1]]) for place in range(0, len(texts), 2)
        ]
        apart = [f"{_signed(trait.difference)} sd"]
        if beside and trait.difference_beside is not None:
            apart.append(f"{_signed(trait.difference_beside)} to {beside.split()[0]}")
        return [
            name,
            Lines(("mean", "median", *(["missing"] if gone else []))),
            *columns,
            Lines(apart),
            Histogram.of(trait),
        ]
    shown = trait.largest(levels)
    if trait.telling not in shown and trait.inside[trait.telling] != trait.outside[trait.telling]:
        shown = [*shown[: levels - 1], trait.telling]

    gone = _missing_shares(trait, beside)

    def share(side: Sequence[float], *missing: str) -> Lines:
        # Where no cell is observed a share is of nothing.
        return Lines([*(percent(side[place]) if any(side) else "–" for place in shown), *missing])

    inside = share(trait.inside)
    if counts and trait.counts:
        inside = Lines([f"{text} ({trait.counts[place]:,})" for text, place in zip(inside.cells, shown, strict=True)])
    apart = [_points(trait.inside[place] - trait.outside[place]) for place in shown]
    bars = [Share(trait.inside[place], trait.outside[place]) for place in shown]
    if not (any(trait.inside) and any(trait.outside)):
        apart = ["" for _ in shown]
    if gone and trait.missing is not None:
        apart.append(_points(trait.missing.gap))
        bars.append(Share(trait.missing.inside, trait.missing.outside))
    return [
        name,
        Lines([*(shorten(trait.levels[place], _LEVEL) for place in shown), *(["missing"] if gone else [])]),
        Lines([*inside.cells, *gone[:1]]),
        share(trait.outside, *gone[1:2]),
        *([share(trait.beside, *gone[2:])] if beside and trait.beside is not None else []),
        Lines(apart),
        Lines(bars),
    ]


def _missing_shares(trait: Trait, beside: str | None) -> list[str]:
    """The share of the rows of every side in which a column is missing; none where hardly any is."""
    gone = trait.missing
    if gone is None or max(gone.inside, gone.outside) < _WORTH_TELLING:
        return []
    return [
        percent(share) for share in (gone.inside, gone.outside, gone.beside if beside else None) if share is not None
    ]


def _signed(number: float) -> str:
    """A number with its sign, a minus and not a hyphen; none for zero."""
    return f"{number:+.2f}".replace("-", "−") if abs(number) >= 0.005 else "0.00"


def _points(gap: float) -> str:
    """A difference of shares in points of a hundred."""
    points = round(100 * gap)
    return f"{points:+d} points".replace("-", "−") if points else "same"


def _value(text: str) -> str:
    return shorten(text, _LEVEL) if text else "missing"
