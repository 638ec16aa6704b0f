"""What a person may choose, read and refused in one sentence: clusters of a view, rows, their names, the least size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.arrays import is_dask
from imapce.common.checks import is_whole, require_count
from imapce.common.words import listing
from imapce.errors import Argument, ImapceError, InvalidTypeError, InvalidValueError, Phrase, Reference, Sentence
from imapce.exploration.steps import View
from imapce.priors.kinds import AS_A_MASK, LEAVE_OUT_OR, Subset
from imapce.tables.encode import is_table

# As long as a line of a legend or of a table may be.
LONGEST_NAME = 200


def name_of_cluster(name: Any) -> str | None:
    """What a person calls a cluster, without blanks around it; None where nothing is left.

    >>> name_of_cluster(" B cells "), name_of_cluster("")
    ('B cells', None)
    """
    if name is None:
        return None
    if not isinstance(name, str):
        raise InvalidTypeError(f"name must be None or a text; got {name!r:.80}.")
    text = name.strip()
    if len(text) > LONGEST_NAME:
        raise InvalidValueError(f"name must have at most {LONGEST_NAME} letters; got {len(text):,}. Shorten it.")
    if not text.isprintable():
        raise InvalidValueError(f"name must be one line of letters that can be printed; got {text!r:.80}.")
    return text or None


def named_clusters(clusters: int | Sequence[int] | None, view: View) -> list[int]:
    """The numbers of the clusters meant; the most distinct where none is named."""
    if clusters is None:
        if not view.most_distinct:
            raise InvalidValueError(
                Sentence(
                    "no cluster of this view can be taken: the rows are one group or none is large enough; "
                    "pass a mask, lower ",
                    Argument("min_cluster_size"),
                    ", or take the best split with ",
                    Phrase("anyway", 'run(structure="ignore")'),
                    ".",
                )
            )
        return list(view.most_distinct)
    numbers = list(clusters) if isinstance(clusters, Iterable) else [clusters]
    for number in numbers:
        if not is_whole(number) or number not in view.numbers:
            there = listing(map(str, view.numbers.tolist()), 20) if len(view.numbers) else "there are none"
            raise InvalidValueError(f"clusters must be numbers of clusters in this view ({there}); got {number!r}.")
    if not numbers or len(set(numbers)) != len(numbers):
        raise InvalidValueError(f"clusters must name at least one cluster and none twice; got {clusters!r}.")
    return [int(number) for number in numbers]


def named_rows(chosen: Any, table: Any, n_rows: int, *, argument: str) -> NDArray[np.bool_]:
    """A mask over the n rows from a boolean mask or positions, by the rules of Subset(rows).

    >>> named_rows([0, 2], None, 3, argument="mask")
    array([ True, False,  True])
    """
    try:
        Subset(chosen).require_same_index(table)
        return Subset(chosen).row_mask(n_rows)
    except ImapceError as error:
        # The sentence must name the argument that was given.
        words: dict[Reference, str] = {Argument("Subset(rows)"): argument, LEAVE_OUT_OR: ""}
        if argument == "mask":
            words[AS_A_MASK] = ""
        raise type(error)(error.rendered(lambda part: words.get(part, str(part)))) from error


def names_of_rows(row_ids: Any, X: Any, n_rows: int) -> NDArray:
    """What rows are called in results: as given, else the index of a table, else 0, 1, ...

    >>> names_of_rows(None, None, 3)
    array([0, 1, 2])
    """
    if row_ids is None:
        index = getattr(X, "index", None) if is_table(X) or is_dask(X) else None
        return np.arange(n_rows) if index is None else np.asarray(index)
    ids = np.asarray(row_ids)
    if ids.shape != (n_rows,):
        raise InvalidValueError(f"row_ids must have one entry per row of X ({n_rows}); got shape {ids.shape}.")
    return ids


def size_of_clusters(value: int | str, n_rows: int, *, share: float = 0.02, least: int = 10) -> int:
    """The s of the paper; "auto" is a share of the rows, and not less than `least`.

    >>> size_of_clusters("auto", 2310)
    47
    """
    if isinstance(value, str):
        if value != "auto":
            raise InvalidValueError(f'min_cluster_size must be a whole number or "auto"; got {value!r}.')
        return max(least, int(np.ceil(share * n_rows)))
    return require_count("min_cluster_size", value)
