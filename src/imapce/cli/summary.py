"""What a result says first, in three sentences for people: is anything there, what makes it, is the known gone.

Numbers of the search stand below them, under --details.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from imapce.choice.leakage import PriorLeakage
from imapce.clusters.significance import Structure
from imapce.common.arrays import Array
from imapce.common.words import counted, enumerated, listing
from imapce.estimators.imapce import IMAPCE
from imapce.exploration.record import Record
from imapce.exploration.verdict import BEGINNINGS
from imapce.priors.effect import strongest

MOST_COLUMNS = 3
# A column of a smaller share would not be missed in a picture.
LEAST_SHARE = 0.05
# Of the way from chance to certainty: what 15 neighbours of a few hundred rows guess by luck, and what a picture shows.
GONE, SEEN = 0.1, 0.4
MOST_KNOWN = 3


def view_in_sentences(model: IMAPCE, known: Sequence[str] | None = None) -> list[str]:
    """Of a fitted view; `known` is what it was told in words, None where nobody remembers.

    >>> X = np.random.default_rng(0).normal(size=(90, 3)) + 9 * (np.arange(90) % 2)[:, None] * np.eye(1, 3)
    >>> view_in_sentences(IMAPCE().fit(X), [])[0]
    '2 clusters lie apart in this view.'
    """
    number = getattr(model, "n_clusters_", None)
    if number is None:
        there = "No clusters were looked for, since the weights were given or a background is known."
    elif number == 1:
        there = "No clusters were found: the rows are one group, in the view that keeps most of their neighbourhoods."
    else:
        there = f"{number} clusters lie apart in this view{_how_well(model)}."
    share = np.zeros(len(model.encoded_feature_names_))
    places = strongest(model, len(share))
    share[places] = np.mean(model.components_**2, axis=0)[places]
    names = list(model.reader_.columns or model.reader_.names)
    whole, groups = np.zeros(len(names)), model.reader_.groups
    np.add.at(whole, np.arange(len(share)) if groups is None else groups, share)
    made = f"It is made of {_columns(whole, names)}."
    return [there, made, _known(PriorLeakage.from_model(model), known)]


def _how_well(model: IMAPCE) -> str:
    seen = getattr(model.optima_[0], "seen", None)
    if seen is None or not np.isfinite(seen):
        return ""
    return (
        f": the nearest rows tell the cluster of {100 * seen:.0f}\N{NO-BREAK SPACE}% of the rows"
        if seen < 0.995
        else ""
    )


def session_in_sentences(
    record: Record, structure: Structure | None, known: Sequence[str], names: Sequence[str]
) -> list[str]:
    """Of an exploration, as far as it went; `structure` is the verdict on it, `known` what was known, in words, and
    `names` are those of its features.
    """
    clusters, n_rows = record.moves.clusters, record.moves.n_rows
    taken = sum(cluster.size for cluster in clusters)
    verdict = "" if structure is None else f"{BEGINNINGS[structure.verdict]}: "
    if clusters:
        rows = f"all {n_rows:,} rows" if taken == n_rows else f"{taken:,} of {n_rows:,} rows"
        there = f"{verdict}{counted(len(clusters), 'cluster')} hold{'s' if len(clusters) == 1 else ''} {rows}."
    else:
        there = f"{verdict}no cluster was taken." if verdict else "No cluster was taken."
    steps = record.moves.steps
    if not steps:
        nothing_seen = "No view was taken in which what is known could be seen."
        return [there, nothing_seen if known else _known(None, known)]
    share = np.mean([np.mean(step.components**2, axis=0) for step in steps], axis=0)
    told = steps[0].read_back
    titles = [str(name) for prior in record.priors for name in ([prior.title] if prior.title else prior.listed)]
    read = None if told is None else PriorLeakage.from_dict(told, listing(titles, MOST_KNOWN) if titles else "")
    made = [f"The views that show {'it' if len(clusters) == 1 else 'them'} are made of {_columns(share, names)}."]
    return [there, *made, _known(read, known)]


def _columns(share: Array, names: Sequence[str]) -> str:
    """The columns of the largest shares, with what each makes."""
    order = [place for place in np.argsort(-share, kind="stable")[:MOST_COLUMNS] if share[place] >= LEAST_SHARE]
    if not order:
        return f"many columns, none of them more than {100 * share.max():.0f}\N{NO-BREAK SPACE}%"
    told = [f"{names[place]} ({100 * share[place]:.0f}\N{NO-BREAK SPACE}%)" for place in order]
    rest = int((share >= LEAST_SHARE).sum()) - len(order)
    return f"{enumerated(told)}{f', then {rest} more' if rest else ''}"


def _known(read: PriorLeakage | None, known: Sequence[str] | None) -> str:
    """Whether the known is gone from the view."""
    if read is None:
        if known is None:
            return "Of known columns or labels nothing is told."
        return "What is known has no value for each row that could be read back." if known else "Nothing was known."
    assert read.view is not None
    what = f"What is known ({read.prior})" if read.prior else "What is known"
    left = (read.view - read.chance) / (1.0 - read.chance)
    measure = "accuracy" if read.chance else "R²"
    numbers = f"{measure} {read.view:.2f}, chance {read.chance:.2f}"
    if left <= GONE:
        return f"{what} is gone: the view tells it no better than chance ({numbers})."
    if left <= SEEN:
        return f"{what} is nearly gone: the view tells a little of it ({numbers})."
    return f"{what} is still seen in the view ({numbers}); --erase leaves nothing linear of it."


def print_sentences(console: Any, sentences: Sequence[str]) -> None:
    """A sentence a line, above the facts."""
    from rich.text import Text

    for sentence in sentences:
        console.print(Text(sentence))
    console.print()
