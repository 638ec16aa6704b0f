"""What an exploration knew before it began, in words for those who read its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.words import listing
from imapce.priors.kinds import Attributes, Labels, Samples, known_columns
from imapce.tables.reader import Reader

MOST_NAMES = 8


def knowledge_in_words(priors: Sequence[Any], known_rows: NDArray[np.bool_], reader: Reader) -> list[str]:
    """A sentence for everything that was known at the start; none where nothing was.

    >>> knowledge_in_words([Attributes([0])], np.array([True, False]), Reader(3))
    ['The column x0 was known: views give up what it explains.', '1 of 2 rows was known.']
    """
    sentences = [_of_prior(prior, reader) for prior in priors]
    if known_rows.any():
        count = int(known_rows.sum())
        sentences.append(f"{count:,} of {len(known_rows):,} rows {'was' if count == 1 else 'were'} known.")
    return sentences


def known_by_name(priors: Sequence[Any], reader: Reader, *, explains: bool) -> dict[str, str]:
    """What came of every column and label that was known, by its name: "explained away", "erased" or "weighed".

    >>> known_by_name([Attributes([0]), Attributes([2], erase=True)], Reader(3), explains=True)
    {'x0': 'explained away', 'x2': 'erased'}
    """
    came: dict[str, str] = {}
    for prior in priors:
        if isinstance(prior, Attributes | Labels):
            names = [prior.y.title or "labels"] if isinstance(prior, Labels) else names_of(prior, reader)
            came |= dict.fromkeys(names, "erased" if prior.erase else "explained away" if explains else "weighed")
    return came


def names_of(attributes: Attributes, reader: Reader) -> list[str]:
    """The names of known columns, a category once."""
    mask = known_columns(attributes, reader)
    groups = np.arange(len(mask)) if reader.groups is None else reader.groups
    names = reader.columns or reader.names
    return [names[place] for place in np.unique(groups[mask])]


def _of_prior(prior: Any, reader: Reader) -> str:
    if isinstance(prior, Attributes):
        known = names_of(prior, reader)
        one = len(known) == 1
        told = f"The column {known[0]} was" if one else f"{len(known)} columns were"
        rest = "" if one else f" ({listing(known, MOST_NAMES)})"
        if prior.erase:
            return f"{told} erased{rest}: nothing linear of {'it' if one else 'them'} is in any view."
        return f"{told} known{rest}: views give up what {'it explains' if one else 'they explain'}."
    if isinstance(prior, Samples):
        count = int(np.shape(prior.background)[0])
        return f"A background of {count:,} rows was known: views give up what varies there too."
    return f"{type(prior).__name__} were known: views give up what they explain."
