"""What an exploration knows before it begins: read from the priors, and in words for those who read its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.choice.leakage import PriorLeakage
from imapce.common.axes import LETTERS, axis_in_words, features_of_axis
from imapce.common.words import axis_names, counted, listing
from imapce.exploration.data import Data
from imapce.priors.base import UNTITLED, Prior, column_sources, given_names
from imapce.priors.effect import Explained
from imapce.priors.kinds import as_list
from imapce.tables.columns import Column
from imapce.tables.reader import Reader

MOST_GIVEN = 3
EXPLAINED, ERASED, WEIGHED = "explained away", "erased", "weighed"


def known_from(prior: Any, data: Data) -> dict[str, Any]:
    """What a `Record` says of priors: rows of X join those accepted later, the others act on every view.

    Labels are read here, so that those which cannot be used are refused before the first look.
    """
    priors, n = as_list(prior), data.n_rows
    for known in priors:
        known.require_same_index(data.table)
    return {
        "priors": tuple(known.resolve(n) for known in priors if not known.names_rows),
        "subset_weight": max((float(known.weight) for known in priors if known.names_rows), default=1.0),
        "known_at_start": np.logical_or.reduce([np.zeros(n, dtype=bool), *(known.row_mask(n) for known in priors)]),
    }


def knowledge_in_words(priors: Sequence[Prior], known_rows: NDArray[np.bool_], reader: Reader) -> list[str]:
    """A sentence for everything that was known at the start; none where nothing was.

    >>> from imapce import Attributes
    >>> knowledge_in_words([Attributes([0])], np.array([True, False]), Reader(3))
    ['The column x0 was known: its effect is explained away, given the clusters.', '1 of 2 rows was known.']
    """
    sentences = [prior.sentence(reader) for prior in priors]
    if known_rows.any():
        count = int(known_rows.sum())
        sentences.append(f"{count:,} of {len(known_rows):,} rows {'was' if count == 1 else 'were'} known.")
    return sentences


def known_names(priors: Sequence[Prior], reader: Reader) -> list[str]:
    """What the known columns and labels are called; a category is one column, as it was given."""
    return [name for prior in priors for name in prior.names(reader)]


def known_by_name(priors: Sequence[Prior], reader: Reader, *, explains: bool) -> dict[str, str]:
    """What came of every column and label that was known, by its name; a category is one column."""
    came: dict[str, str] = {}
    for prior in priors:
        names = prior.names(reader, untitled="labels")
        came |= dict.fromkeys(names, ERASED if prior.erase else EXPLAINED if explains else WEIGHED)
    return came


def knowledge_beside(columns: Sequence[str], priors: Sequence[Prior], reader: Reader) -> list[Prior]:
    """The priors that are more than these columns and labels."""
    return [prior for prior in priors if prior.is_background or not set(prior.names(reader)) <= set(columns)]


def known_features(priors: Sequence[Prior], reader: Reader) -> NDArray[np.bool_]:
    """(d,), the columns of the matrix that are known."""
    masks = [prior.column_mask(reader) for prior in priors]
    return np.logical_or.reduce([np.zeros(len(reader.names), dtype=bool), *masks])


def given_columns(
    explained: Explained | None, priors: Sequence[Prior], reader: Reader
) -> tuple[NDArray[np.bool_], str]:
    """(d,), the columns that the axes of a view are to be named by, and in words what they are given.

    Where something was explained away, an axis is made of what is left of the other columns; of columns that were
    erased it is free, whatever its weights there.
    """
    told, words = np.ones(len(reader.names), dtype=bool), []
    if explained is not None:
        told[explained.effect.columns] = False
        titles = [one.title or UNTITLED for one in explained.labels]
        words.append(f"given {listing([*given_names(~told, reader), *titles], MOST_GIVEN)}")
    erasing = [prior for prior in priors if prior.erase]
    if erasing:
        told &= ~known_features(erasing, reader)
        words.append(f"free of {listing(known_names(erasing, reader), MOST_GIVEN)}")
    return told, ", ".join(words)


def axes_in_words(
    components: NDArray[np.float64],
    explained: Explained | None,
    priors: Sequence[Prior],
    reader: Reader,
    *,
    letters: int = LETTERS,
) -> list[str]:
    """What the axes (k, d) of a view are made of, as "+ age − alone, given sex"; their names where nothing tells.

    >>> axes_in_words(np.eye(2, 3), None, [], Reader(3))
    ['+ x0', '+ x1']
    """
    told, given = given_columns(explained, priors, reader)
    words = [
        axis_in_words(features_of_axis((axis * told).tolist(), reader.names), given, letters=letters)
        for axis in components
    ]
    return [one or name for one, name in zip(words, axis_names(len(words)), strict=True)]


def known_in_a_line(priors: Sequence[Prior], known_rows: NDArray[np.bool_], reader: Reader, *, explains: bool) -> str:
    """What was known at the start, as a line below the title of a figure; "" where nothing was.

    >>> from imapce import Attributes
    >>> known_in_a_line([Attributes([0])], np.array([True, False]), Reader(3), explains=True)
    'known: x0, 1 row'
    """
    came = known_by_name(priors, reader, explains=explains)
    parts = [name if word == EXPLAINED else f"{name} ({word})" for name, word in came.items()]
    parts += ["a background"] if any(prior.is_background for prior in priors) else []
    count = int(known_rows.sum())
    parts += [counted(count, "row")] if count else []
    return f"known: {listing(parts, MOST_GIVEN)}" if parts else ""


def known_classes(
    priors: Sequence[Prior], reader: Reader, n_rows: int, column: Callable[[int], Column]
) -> list[Column]:
    """The known labels and columns that are classes, so that a description can say that a cluster is all of one class.

    `column` reads a column of the table by its place.
    """
    found: list[Column] = []
    for prior in priors:
        read = prior.read_labels(n_rows)
        if read is not None and read.names is not None:
            found.append(Column(read.title or "", codes=read.values, levels=read.names))
        places = np.unique(column_sources(reader)[prior.column_mask(reader)])
        found += [known for known in map(column, places.tolist()) if known.codes is not None]
    return found


def one_class_in_words(known: Column, rows: NDArray[np.bool_]) -> str | None:
    """That all of some rows are one class of what was known, where they are."""
    assert known.codes is not None
    inside = known.codes[rows]
    if len(known.levels) < 2 or not len(inside) or inside[0] < 0 or (inside != inside[0]).any():
        return None
    level = known.levels[inside[0]]
    what = f"are {known.name} {level}" if known.name else f"have the known label {level}"
    return f"all of its rows {what}"


def known_places(priors: Sequence[Prior], reader: Reader) -> list[int]:
    """The places of the given columns that are known."""
    return np.unique(column_sources(reader)[known_features(priors, reader)]).tolist()


def read_back_in_words(read_back: dict[str, float | None], names: Sequence[str]) -> str:
    """How well the known, called so, is read from a view and from the clusters.

    >>> read_back_in_words({"view": 0.36, "clusters": None, "chance": 0.25}, ["make"])
    'The prior (make) can be predicted from the view with accuracy 0.36; chance 0.25.'
    """
    return PriorLeakage.from_dict(read_back, listing(names, MOST_GIVEN) if names else "").message
