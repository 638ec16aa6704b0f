"""What an axis of a view is made of: the features that turn it most, with their signs, as figures and the app say it.

>>> axis_in_words(features_of_axis([0.8, -0.5, 0.1], ["age", "alone", "fare"]), "given sex")
'+ age − alone, given sex'
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from imapce.common.words import shorten

NAMED_FEATURES = 3
# A feature that turns an axis by less than this share of its strongest one does not name it.
WORTH_NAMING = 0.25
LETTERS, _FEWEST = 44, 8


def features_of_axis(weights: Sequence[float], names: Sequence[str]) -> list[tuple[str, float]]:
    """The features that make an axis and their weights, the strongest first; at most three, none too weak to tell.

    >>> features_of_axis([0.9, 0.0, -0.3, 0.2], ["a", "b", "c", "d"])
    [('a', 0.9), ('c', -0.3)]
    """
    order = heapq.nlargest(NAMED_FEATURES, range(len(weights)), key=lambda place: abs(weights[place]))
    strongest = abs(weights[order[0]]) if order else 0.0
    worth = [place for place in order if weights[place] and abs(weights[place]) >= WORTH_NAMING * strongest]
    return [(str(names[place]), float(weights[place])) for place in worth]


def axis_in_words(features: Sequence[tuple[str, float]], given: str = "", *, letters: int = LETTERS) -> str:
    """The features of an axis with their signs in about so many letters, long names shortened, and what it is given.

    >>> axis_in_words([("sepal length", 0.7), ("education=Some-college", -0.4)], letters=24)
    '+ sepal …gth − educat…ege'
    """
    room = max(_FEWEST, letters // max(1, len(features)) - 2)
    told = " ".join(f"{'−' if weight < 0 else '+'} {shorten(name, room)}" for name, weight in features)
    return ", ".join(filter(None, [told, given]))
