"""What an exploration knew before it began, in words for those who read its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.words import listing
from imapce.priors.kinds import Attributes, Samples, known_columns
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


def _of_prior(prior: Any, reader: Reader) -> str:
    if isinstance(prior, Attributes):
        mask = known_columns(prior, reader)
        groups = np.arange(len(mask)) if reader.groups is None else reader.groups
        names = reader.columns or reader.names
        known = [names[place] for place in np.unique(groups[mask])]
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
