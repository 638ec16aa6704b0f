"""What an exploration knew before it began, in words for those who read its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.choice.read_back import ReadBack
from imapce.common.words import listing
from imapce.exploration.data import Data
from imapce.priors.effect import Explained
from imapce.priors.kinds import (
    Attributes,
    Labels,
    Prior,
    Samples,
    Subset,
    as_list,
    known_columns,
    known_labels,
    known_rows,
    require_same_index,
)
from imapce.tables.reader import Reader
from imapce.tables.source import Column

MOST_NAMES, MOST_GIVEN = 8, 3
# What labels are called that came without a title.
UNTITLED = "the known label"
EXPLAINED, ERASED, WEIGHED = "explained away", "erased", "weighed"


def known_from(prior: Any, data: Data) -> dict[str, Any]:
    """What a `Record` says of priors: rows of X join those accepted later, the others act on every view.

    Labels are read, and refused, here and not at the first look.
    """
    priors: list[Prior] = []
    known, weights = np.zeros(data.n_rows, dtype=bool), []
    for one in as_list(prior):
        require_same_index(one, data.table)
        if isinstance(one, Subset):
            known |= known_rows(one, data.n_rows)
            weights.append(float(one.weight))
        elif isinstance(one, Labels):
            priors.append(Labels(known_labels(one, data.n_rows), weight=one.weight, erase=one.erase))
        else:
            priors.append(one)
    return {"known_at_start": known, "priors": tuple(priors), "subset_weight": max(weights, default=1.0)}


def knowledge_in_words(priors: Sequence[Any], known_rows: NDArray[np.bool_], reader: Reader) -> list[str]:
    """A sentence for everything that was known at the start; none where nothing was.

    >>> knowledge_in_words([Attributes([0])], np.array([True, False]), Reader(3))
    ['The column x0 was known: its effect is explained away, given the clusters.', '1 of 2 rows was known.']
    """
    sentences = [_of_prior(prior, reader) for prior in priors]
    if known_rows.any():
        count = int(known_rows.sum())
        sentences.append(f"{count:,} of {len(known_rows):,} rows {'was' if count == 1 else 'were'} known.")
    return sentences


def known_names(priors: Sequence[Any], reader: Reader) -> list[str]:
    """What the known columns and labels are called; a category is one column, as it was given.

    >>> known_names([Attributes([0]), Labels([0, 1], erase=True)], Reader(3))
    ['x0', 'the known label']
    """
    return [name for prior in priors for name in _names(prior, reader)]


def known_by_name(priors: Sequence[Prior], reader: Reader, *, explains: bool) -> dict[str, str]:
    """What came of every column and label that was known, by its name; a category is one column.

    >>> known_by_name([Attributes([0]), Attributes([2], erase=True)], Reader(3), explains=True)
    {'x0': 'explained away', 'x2': 'erased'}
    """
    came: dict[str, str] = {}
    for prior in priors:
        if isinstance(prior, Attributes | Labels):
            names = [prior.y.title or "labels"] if isinstance(prior, Labels) else known_names([prior], reader)
            came |= dict.fromkeys(names, ERASED if prior.erase else EXPLAINED if explains else WEIGHED)
    return came


def knowledge_beside(columns: Sequence[str], priors: Sequence[Any], reader: Reader) -> list[Any]:
    """The priors that are more than these columns and labels explained away."""
    return [
        prior
        for prior in priors
        if isinstance(prior, Samples) or prior.erase or not set(_names(prior, reader)) <= set(columns)
    ]


def known_features(priors: Sequence[Any], reader: Reader) -> NDArray[np.bool_]:
    """(d,), the columns of the matrix that are known."""
    masks = [known_columns(prior, reader) for prior in priors if isinstance(prior, Attributes)]
    return np.logical_or.reduce([np.zeros(len(reader.names), dtype=bool), *masks])


def given_columns(explained: Explained | None, priors: Sequence[Any], reader: Reader) -> tuple[NDArray[np.bool_], str]:
    """(d,), the columns that the axes of a view are to be named by, and in words what they are given.

    Where something was explained away, an axis is made of what is left of the other columns; of columns that were
    erased it is free, whatever its weights there.
    """
    told, words = np.ones(len(reader.names), dtype=bool), []
    if explained is not None:
        told[explained.effect.columns] = False
        titles = [one.title or UNTITLED for one in explained.labels]
        words.append(f"given {listing([*_columns(~told, reader), *titles], MOST_GIVEN)}")
    erasing = [prior for prior in priors if isinstance(prior, (Attributes, Labels)) and prior.erase]
    if erasing:
        told &= ~known_features(erasing, reader)
        words.append(f"free of {listing(known_names(erasing, reader), MOST_GIVEN)}")
    return told, ", ".join(words)


def known_classes(priors: Sequence[Any], reader: Reader, n_rows: int, column: Callable[[int], Column]) -> list[Column]:
    """The known labels and columns that are classes, as columns; `column` reads one of the table by its place."""
    found: list[Column] = []
    for prior in priors:
        if isinstance(prior, Labels):
            read = known_labels(prior, n_rows)
            if read.names is not None:
                found.append(Column(read.title or "", codes=read.values, levels=read.names))
        elif isinstance(prior, Attributes):
            places = np.unique(_groups(reader)[known_columns(prior, reader)])
            found += [one for one in map(column, places.tolist()) if one.codes is not None]
    return found


def one_class_in_words(known: Column, rows: NDArray[np.bool_]) -> str | None:
    """That all of some rows are one class of what was known, where they are.

    >>> run = Column("run", codes=np.array([2, 2, 0]), levels=("1", "2", "3"))
    >>> one_class_in_words(run, np.array([True, True, False]))
    'all of its rows are run 3'
    """
    assert known.codes is not None
    inside = known.codes[rows]
    if len(known.levels) < 2 or not len(inside) or inside[0] < 0 or (inside != inside[0]).any():
        return None
    level = known.levels[inside[0]]
    what = f"are {known.name} {level}" if known.name else f"have the known label {level}"
    return f"all of its rows {what}"


def known_places(priors: Sequence[Any], reader: Reader) -> list[int]:
    """The places of the given columns that are known."""
    return np.unique(_groups(reader)[known_features(priors, reader)]).tolist()


def read_back_in_words(read_back: dict[str, float | None], names: Sequence[str]) -> str:
    """How well the known, called so, is read from a view and from the clusters.

    >>> read_back_in_words({"view": 0.36, "clusters": None, "chance": 0.25}, ["make"])
    'The known (make) is read back from the view with accuracy 0.36; chance 0.25.'
    """
    return ReadBack.of(read_back, listing(names, MOST_GIVEN) if names else "").sentence


def _groups(reader: Reader) -> NDArray[np.intp]:
    """(d,), the place of the given column that every column of the matrix is made of."""
    return np.arange(len(reader.names)) if reader.groups is None else np.asarray(reader.groups)


def _columns(mask: NDArray[np.bool_], reader: Reader) -> list[str]:
    names = reader.columns or reader.names
    return [names[place] for place in np.unique(_groups(reader)[mask])]


def _names(prior: Any, reader: Reader) -> list[str]:
    if isinstance(prior, Attributes):
        return _columns(known_columns(prior, reader), reader)
    return [getattr(prior.y, "title", None) or UNTITLED] if isinstance(prior, Labels) else []


def _of_prior(prior: Any, reader: Reader) -> str:
    if isinstance(prior, Samples):
        count = int(np.shape(prior.background)[0])
        return f"A background of {count:,} rows was known: views give up what varies there too."
    names = _names(prior, reader)
    one = len(names) == 1
    what = "column" if isinstance(prior, Attributes) else "label"
    told = f"{len(names)} {what}s were" if not one else f"The {what} {names[0]} was"
    if names == [UNTITLED]:
        told = "A label was"
    rest = "" if one else f" ({listing(names, MOST_NAMES)})"
    if prior.erase:
        left = f"nothing linear of {'it' if one else 'them'} is left in views and clusters"
        return f"{told} erased{rest}: {left}."
    return f"{told} known{rest}: {'its effect is' if one else 'their effects are'} explained away, given the clusters."
