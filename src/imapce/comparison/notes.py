"""How the scores of a comparison were made, in sentences for whoever reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from imapce.choice.read_back import told_by
from imapce.common.arrays import Codes, Mask
from imapce.common.checks import as_codes
from imapce.common.words import listing, roughly
from imapce.comparison import methods
from imapce.comparison.scores import QUANTILE_BINS, class_labels, is_numeric, stated
from imapce.comparison.table import Table
from imapce.errors import Argument, Sentence
from imapce.priors.base import Prior
from imapce.priors.effect import explained_away


def notes_on(
    table: Table,
    priors: list[Prior],
    known: dict[str, NDArray[Any]],
    known_labels: Any,
    labels: NDArray[Any] | None,
    unexplored: Mask | None,
    scored: Codes,
) -> list[str]:
    """How the scores of this comparison were made, one sentence each."""
    notes = []
    numeric = [name for name, column in known.items() if is_numeric(column)]
    if not known:
        why = "a background table has no class for the rows of X" if priors else "no prior was given"
        notes.append(f"Scores of what is known are empty: {why}.")
    elif known_labels is None and any(prior.is_background for prior in priors):
        notes.append("Scores of what is known are about columns and rows; of a background table there is no score.")
    if len(known) > 1:
        notes.append(f"Of the {len(known)} known columns the one that shows most in a view counts.")
    if numeric:
        many = ", ".join(numeric[:5]) + (", ..." if len(numeric) > 5 else "")
        notes.append(f"Measurements ({many}): NLS on 10 quantile bins, read back as R², whose chance is 0.")
    classes = (column[scored][stated(column[scored])] for column in known.values() if not is_numeric(column))
    bins = [len(scored) // QUANTILE_BINS] if numeric else []
    if min([*(np.bincount(as_codes("known", column, None)).min() for column in classes), *bins], default=101) <= 100:
        notes.append(
            "NLS asks for up to 100 neighbours; a known class of fewer rows is above 0 even where it lies apart."
        )
    read = None if labels is None else class_labels(labels, table.n_rows)
    if read is None or isinstance(read, str):
        why = "no labels were given" if read is None else read
        notes.append(f"The silhouette is that of k-means clusters, the best k from 2 to 10, since {why}.")
    else:
        notes.append("Silhouette, 15-NN accuracy and k-means NMI are those of the labels.")
    if unexplored is not None:
        notes.append("Structure is scored on the rows that are not known.")
    if len(scored) < table.n_rows:
        notes.append(f"All methods are scored on the same {len(scored):,} of {table.n_rows:,} rows.")
    if sparse.issparse(table.matrix):
        notes.append("Trustworthiness is empty: X is sparse.")
    return notes


def remarks_on_known(title: str, estimator: Any) -> tuple[str, ...]:
    """What a fitted method tells itself of what is left of the known: what it explained away, and how well that is read
    back from its view and its clusters.

    >>> from imapce import IMAPCE, Attributes
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> remarks_on_known("IMAPCE", IMAPCE().fit(X, prior=Attributes([1])))[0].split(":")[0]
    'IMAPCE explained x1 away'
    """
    if getattr(estimator, "read_back_", None) is None:
        return ()
    names, told = explained_away(estimator), told_by(estimator)
    lead = f"{title} explained {listing(names, 5)} away" if names else title
    if told is None:
        return ()
    sentence = replace(told, what="").sentence
    return (f"{lead}: {sentence[0].lower()}{sentence[1:]}",)


def note_on_slow(priors: list[Prior], n_rows: int, max_rows: int | None) -> list[str]:
    """What the methods that were not asked for would add, and about how long they would take; nothing if none would.

    >>> note_on_slow([], 2_000, None)[0].split(":")[0]
    'The fast methods were compared'
    """
    slow = [
        method for method in methods.METHODS.values() if method.cost is not None and method.left_out(priors) is None
    ]
    if not slow:
        return []
    seconds = sum(method.seconds(n_rows, max_rows) for method in slow)
    names = listing(method.title for method in slow)
    time = f" adds {names}, and would take {roughly(seconds)} more."
    return [Sentence("The fast methods were compared: ", Argument("methods", "all"), time)]
