"""Words that sentences to users share: lists that end in a count, and the near names of one that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def listing(items: Iterable[str], most: int = 50) -> str:
    """The items with commas between them, the tail beyond ``most`` as a count.

    >>> listing(["a", "b", "c"], most=2)
    'a, b, and 1 more'
    """
    shown = list(items)
    tail = f", and {len(shown) - most} more" if len(shown) > most else ""
    return (", ".join(shown[:most]) or "nothing") + tail


def close_matches(wanted: str, known: Iterable[str]) -> str:
    """The way out for a name that is not known: the nearest known names, else the first ten.

    >>> close_matches("sise", ["size", "colour"])
    "did you mean 'size'?"
    """
    names = list(known)
    near = difflib.get_close_matches(wanted, names, n=3)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"the columns are {listing(map(repr, names), 10)}."


def listed(names: list[str], chosen: NDArray[np.bool_], most: int = 5) -> str:
    """The chosen names in quotes, the tail beyond ``most`` as a count.

    >>> listed(["a", "b", "c"], np.array([True, False, True]), most=1)
    "'a' and 1 more"
    """
    found = [repr(names[i]) for i in np.flatnonzero(chosen)]
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")
