"""The words of messages: lists of names that stay short, the known names nearest to one that is not, counts, times.

>>> listing(["age", "sex", "income"], most=2)
'age, sex, and 1 more'
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from imapce.errors import Sentence

if TYPE_CHECKING:
    # `imapce --help` speaks too, and must not wait for it.
    import numpy as np
    from numpy.typing import NDArray


# Below it a guess is told without a number.
FEW_SECONDS = 7.5


def uncapitalized(sentence: str) -> str:
    """A sentence as it goes on after a colon or within another.

    >>> uncapitalized("Clear structure")
    'clear structure'
    """
    return sentence[:1].lower() + sentence[1:]


def listing(items: Iterable[str], most: int = 50) -> str:
    """The items with commas between them, the tail beyond ``most`` as a count.

    >>> listing(["a", "b", "c"], most=2)
    'a, b, and 1 more'
    """
    shown = list(items)
    tail = f", and {len(shown) - most} more" if len(shown) > most else ""
    if any(isinstance(item, Sentence) for item in shown):
        return Sentence(Sentence.joined(", ", shown[:most]), tail)
    return (", ".join(shown[:most]) or "nothing") + tail


def enumerated(items: Sequence[str]) -> str:
    """All items, the last one after an "and".

    >>> enumerated(["age", "sex", "income"])
    'age, sex and income'
    """
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def close_matches(wanted: str, known: Iterable[str]) -> str:
    """The way out for a name that is not known: the nearest known names, else the first ten.

    >>> close_matches("sise", ["size", "colour"])
    "did you mean 'size'?"
    """
    names = list(known)
    near = difflib.get_close_matches(wanted, names, n=3)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"the columns are {listing(map(repr, names), 10)}." if names else "there is no other column."


def listed(names: list[str], chosen: NDArray[np.bool_], most: int = 5) -> str:
    """The names where `chosen` is true, quoted, the tail beyond ``most`` as a count.

    >>> import numpy as np
    >>> listed(["age", "sex", "income"], np.array([True, False, True]), most=1)
    "'age' and 1 more"
    """
    found = [repr(name) for name, is_chosen in zip(names, chosen, strict=True) if is_chosen]
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")


def counted(number: int, one: str, many: str | None = None) -> str:
    """How many of what, in the right number.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "axis", "axes")
    ('1 row', '1,200 rows', '2 axes')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def given(what: str, known: Iterable[str], most: int = 3) -> str:
    """What is left of something once the known is explained away; itself where nothing is known.

    >>> given("price", ["make"]), given("price", [])
    ('price given make', 'price')
    """
    names = list(known)
    return f"{what} given {listing(names, most)}" if names else what


def roughly(seconds: float) -> str:
    """A time that is a guess.

    >>> roughly(4), roughly(38)
    ('a few seconds', 'about 40 seconds')
    """
    return duration(seconds) if seconds < FEW_SECONDS else f"about {duration(seconds)}"


def duration(seconds: float) -> str:
    """A time as one would say it, no finer than an estimate is.

    >>> duration(4), duration(38), duration(200), duration(9000)
    ('a few seconds', '40 seconds', '3 minutes', '2 hours and 30 minutes')
    """
    if seconds < FEW_SECONDS:
        return "a few seconds"
    if seconds < 95:
        return counted(5 * round(seconds / 5) if seconds < 20 else 10 * round(seconds / 10), "second")
    minutes = round(seconds / 60)
    if minutes < 60:
        return counted(minutes, "minute")
    hours, rest = divmod(10 * round(minutes / 10), 60)
    return counted(hours, "hour") + (f" and {counted(rest, 'minute')}" if rest else "")


def size_in_words(n_bytes: float) -> str:
    """A size as one would say it.

    >>> size_in_words(2.56e9), size_in_words(3.2e7)
    ('2.6 GB', '32 MB')
    """
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{max(n_bytes / 1e6, 1):.0f} MB"


def axis_names(count: int, view: str = "imapce") -> list[str]:
    """What the axes of a view are called, everywhere: in tables, figures, reports and on the screen.

    >>> axis_names(2), axis_names(2, "cpca")
    (['imapce0', 'imapce1'], ['cpca0', 'cpca1'])
    """
    return [f"{view}{axis}" for axis in range(count)]


def shorten(name: object, longest: int = 24) -> str:
    """Give a name on one line and at most so long; both ends stay, since encoded names differ at the end.

    >>> shorten("marital-status=Married-civ-spouse", 20)
    'marital-statu…spouse'
    """
    text = " ".join(str(name).split()) or "(empty)"
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 3
    return text[: longest - 1 - tail] + "…" + text[len(text) - tail :]
