"""What came of columns and labels that were known at the start: explained away, erased, or weighed as in the paper."""

from __future__ import annotations

from collections.abc import Sequence

from imapce.priors.base import Prior
from imapce.tables.reader import Reader

EXPLAINED, ERASED, WEIGHED = "explained away", "erased", "weighed"


def known_by_name(priors: Sequence[Prior], reader: Reader, *, explains: bool) -> dict[str, str]:
    """What came of every column and label that was known, by its name; a category is one column.

    >>> from imapce import Attributes
    >>> known_by_name([Attributes([0]), Attributes([2], erase=True)], Reader(3), explains=True)
    {'x0': 'explained away', 'x2': 'erased'}
    """
    came: dict[str, str] = {}
    for prior in priors:
        names = prior.names(reader, untitled="labels")
        came |= dict.fromkeys(names, ERASED if prior.erase else EXPLAINED if explains else WEIGHED)
    return came
