"""The report of an exploration: all clusters side by side, then each with what it is, where it was seen and its rows.

>>> from imapce import Exploration
>>> exploration = Exploration(np.random.default_rng(0).normal(size=(50, 4)))
>>> write_exploration_report(exploration, "exploration.html").name
'exploration.html'
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from imapce.common.words import uncapitalized
from imapce.errors import InvalidTypeError
from imapce.exploration.knowledge import read_back_in_words
from imapce.exploration.traits import distinctness_in_words, p_value_in_words, percent
from imapce.exploration.verdict import (
    DRAWS,
    best_split_in_words,
    evidence_in_words,
    stability_in_words,
    without_way_out,
)
from imapce.plotting.figure import for_a_file
from imapce.plotting.heat_map import plot_profiles
from imapce.plotting.key import column_name
from imapce.plotting.labels import DrawnLabels
from imapce.plotting.overview import plot_overview
from imapce.plotting.reports.cells import Link
from imapce.plotting.reports.cluster import made_of, profile_grids
from imapce.plotting.reports.hover import HoverRows
from imapce.plotting.reports.page import Grid, Picture, Section, write_report
from imapce.plotting.steps import RASTERISE_FROM, cluster_hue, known_before, plot_proposal, plot_step
from imapce.plotting.style import shorten
from imapce.tables.columns import Column, number_text

if TYPE_CHECKING:
    from imapce.exploration.description import Description, Profile
    from imapce.exploration.session import Exploration

_COLUMNS_HOVERED = 5
_SOME_STEPS, _MANY_STEPS = 10, 20
_NAME_ON_CARD = 44

HOW_TO_READ = """\
A cluster is described against all other rows and, beside it, against the rows that were left when it was taken: a \
cluster that is taken late can be plain among all rows and special among those left. Numbers are in the units of the \
table; a difference in sd is that of the means in standard deviations of all rows, and a difference in points is that \
of two shares in points of a hundred. The most typical rows are nearest to the mean of their cluster in all columns. \
The small histograms show the rows of the cluster filled and all others as a line; their heights are square roots, so \
that a small share is still seen.

Distinctness tells how far a cluster stands from its nearest neighbour in the view it was taken in, by how much the \
two overlap. Very distinct: up to 1 %. Distinct: up to 10 %. Touching: up to half. Overlapping: more than half; \
such a cluster is separate in more directions than the view can show, or not at all.

Stability tells in how many of ten draws of 80 % of the rows the same cluster was found again. One that came back in \
all of them does not depend on a few rows; one that seldom did may be a matter of chance or of how finely one cuts.

A test of a step, where one was asked for, compares the rows left with rows of a single group. Hardly by chance: such \
rows would look as split in at most 1 of 100 tables. Unlikely: in at most 5. Perhaps: in at most 20."""


@for_a_file()
def write_exploration_report(
    exploration: Exploration,
    path: str | os.PathLike[str],
    *,
    labels: ArrayLike | None = None,
    label_name: str | None = None,
    title: str = "Exploration",
    hover: Sequence[str] | None = None,
) -> Path:
    """Write one self-contained HTML page about an exploration, finished or not, and return its path.

    With `labels`, one per row, some possibly missing, and called `label_name`, the figures show them and the tables
    say what each cluster is made of. The labels are shown only; the page says of those that are known by that name what
    came of them, and of others that they were not used. Points of the figures can be hovered: they tell their row,
    cluster, label and the columns named in `hover`, by default those that tell the clusters apart best.

    >>> from imapce import Exploration
    >>> from imapce.datasets import make_synthetic
    >>> data = make_synthetic(100)
    >>> exploration = Exploration(data.X, random_state=0)
    >>> _ = exploration.accept()
    >>> write_exploration_report(exploration, "cells.html", labels=data.labels["celltype"], title="Cells").name
    'cells.html'
    """
    n_rows = len(exploration.row_ids)
    label_name = label_name or column_name(labels) or "label"
    read = None if labels is None else DrawnLabels.read(labels, "labels", n_rows, most=n_rows + 1)
    if read is not None and read.values is None and not read.names:
        # Every label is missing: there is nothing to colour by and nothing to describe.
        labels = read = None
    named = None if read is None else read.column(label_name)
    description = exploration.description(labels=named)
    rows = _hovered(exploration, description, named, hover)
    sections = [_overview(exploration, labels, label_name)]
    if description.clusters:
        sections.append(_side_by_side(exploration, description, label_name))
    sections += [
        _cluster(exploration, place, profile, labels, label_name) for place, profile in enumerate(description.clusters)
    ]
    if description.left is not None and exploration.steps:
        sections.append(_left(exploration, description.left, label_name))
    if description.clusters:
        sections.append(Section("How to read this page", HOW_TO_READ, short="How to read"))
    # Clouds of many points hardly compress: at a lower resolution, not below that of the page, many figures stay small.
    many = len(exploration.steps)
    dpi = 80.0 if many > _MANY_STEPS else 105.0 if many > _SOME_STEPS or n_rows > RASTERISE_FROM else 130.0
    return write_report(path, title=title, sections=sections, summary=_summary(exploration), dpi=dpi, hover=rows)


def _hovered(
    exploration: Exploration, description: Description, labels: Column | None, names: Sequence[str] | None
) -> HoverRows:
    if isinstance(names, str):
        raise InvalidTypeError(f"hover must be a list of names of columns; got {names!r:.80}: write [{names!r:.80}].")
    if names is None:
        strength: dict[str, float] = {}
        for profile in description.clusters:
            for trait in profile.traits:
                strength[trait.column] = max(strength.get(trait.column, 0.0), trait.strength)
        names = sorted(strength, key=lambda name: -strength[name])[:_COLUMNS_HOVERED]
    clusters, places = [], np.full(len(exploration.row_ids), -1)
    for place, (taken, one) in enumerate(zip(exploration.clusters_, description.clusters, strict=True)):
        clusters.append(f"{taken.number}: {shorten(taken.name or one.name, _NAME_ON_CARD)}")
        places[taken.rows] = place
    columns = [Column("cluster", codes=places, levels=tuple(clusters))]
    columns += [] if labels is None else [labels]
    columns += [exploration.column(name) for name in names]
    return HoverRows(exploration.row_ids, columns)


def _summary(exploration: Exploration) -> dict[str, object]:
    taken = int((exploration.labels_ >= 0).sum())
    left = int((~exploration.known).sum())
    start = len(exploration.row_ids) - taken - left
    facts: dict[str, object] = {
        "rows × columns": f"{len(exploration.row_ids):,} × {len(exploration.feature_names):,}",
        "steps": len(exploration.steps),
        "clusters": len(exploration.clusters_),
        "rows taken": taken,
    }
    structure = exploration.structure
    one_group = structure is not None and not exploration.shows(structure)
    facts["one group" if one_group else "left as outliers" if exploration.done else "rows not taken yet"] = left
    if structure is not None:
        facts["structure"] = "by chance" if structure.verdict == "none" else structure.verdict
    if start:
        facts["known at the start"] = start
    return facts


def _overview(exploration: Exploration, labels: ArrayLike | None, label_name: str) -> Section:
    left = int((~exploration.known).sum())
    end = without_way_out(exploration.stop_reason or f"The exploration is not finished: {_rows(left)} are unexplored.")
    tested = _unbroken(evidence_in_words(exploration.structure))
    known = "\n\n".join(
        filter(None, [tested, " ".join(exploration.known_in_words) or "Nothing was known at the start."])
    )
    if exploration.steps and exploration.steps[0].read_back is not None:
        told = read_back_in_words(exploration.steps[0].read_back, exploration.known_names)
        known += f" At step 0 {uncapitalized(told)}"
    if not exploration.steps:
        text = f"No step was accepted, so there is no cluster to show.\n\n{end}\n\n{known}"
        return Section("Overview", text, parts=_not_taken(exploration))
    # The sentence of an exploration that found nothing says so itself.
    why = _is_there_structure(exploration)
    text = (
        f"{end}{why}\n\n{known}\n\nA cluster has one number and one colour from the first view on, in all figures, in "
        "labels_ and in the table of results; steps are numbered from 0."
    )
    if exploration.regroupings:
        done = " ".join(regrouping.words for regrouping in exploration.regroupings)
        text = (
            f"{end}{why}\n\n{known}\n\nRegrouped since: {done}\n\nClusters are shown as they are now, with their "
            "numbers in labels_; the figure of a step shows those it took, as they were then."
        )
    caption = "Rows of every cluster, in the order of their numbers."
    if labels is not None:
        caption += " On the right the number of rows of each label; darker is a larger share of the cluster."
    return Section("Overview", text, [(caption, plot_overview(exploration, labels=labels, label_name=label_name))])


def _is_there_structure(exploration: Exploration) -> str:
    """The question and its answer, after a blank; empty where nobody knows, or all was taken by hand."""
    found = exploration.structure
    if found is None or not (found.verdict == "clear" or exploration.caveat):
        return ""
    answers = {
        "clear": "Yes, clearly",
        "perhaps": "Perhaps",
        "none": "None beyond chance, and the best split was taken all the same",
    }
    return f" Is there structure at all? {answers[found.verdict]}: {_unbroken(found.words)}."


def _unbroken(words: str) -> str:
    """The same words, in which a number and what it is the value of stay on one line."""
    for sign in "=<":
        words = words.replace(f" {sign} ", f"\N{NO-BREAK SPACE}{sign}\N{NO-BREAK SPACE}")
    return words


def _not_taken(exploration: Exploration) -> list[Picture | Grid]:
    """The view that was in sight when nothing was taken, with the best split where that is no more than chance."""
    step = exploration.proposal
    if step is None or not step.views[0].looked_at:
        return []
    caption = f"The view of step {step.number}, in which nothing was taken."
    if (best := best_split_in_words(step.structure)) and not len(step.numbers):
        caption = f"{best}, each group in a colour of its own; it is no more than chance, and none of it was taken."
    coordinates = step.embedding
    flat = coordinates[:, :2]
    if coordinates.shape[1] == 1:
        flat = np.column_stack([coordinates[:, 0], np.arange(len(coordinates))])
    return [Picture(caption, plot_proposal(step), flat)]


def _side_by_side(exploration: Exploration, description: Description, label_name: str) -> Section:
    n_rows = len(exploration.row_ids)
    links = [_link(number) for number in description.numbers]
    apart = [_distinctness(exploration, taken.distinctness).partition(":")[0] for taken in exploration.clusters_]
    made = [made_of(one.labels) for one in description.clusters if one.labels is not None]
    names = [taken.name or "" for taken in exploration.clusters_]
    columns: dict[object, Sequence[object]] = {
        "cluster": links,
        **({"name": names} if any(names) else {}),
        "what it is": [one.name for one in description.clusters],
        "rows": [one.size for one in description.clusters],
        "share": [percent(one.size / n_rows) for one in description.clusters],
    }
    columns |= {"distinctness": apart} if any(apart) else {}
    stable = [
        "" if one.stability is None else f"{round(DRAWS * one.stability)} of {DRAWS}" for one in exploration.clusters_
    ]
    columns |= {"stability": stable} if any(stable) else {}
    columns |= {f"{shorten(label_name)} ({_use(exploration, label_name)})": made} if made else {}
    parts: list[Picture | Grid] = [Grid((list(columns), list(zip(*columns.values(), strict=True))))]
    if description.features:
        caption = (
            "How every cluster differs from all other rows, in standard deviations of all rows; of a category's level "
            "it is the share that differs. Blue is less and orange is more."
        )
        parts.append(Picture(caption, plot_profiles(description)))
        parts.append(_values(description, links))
    return Section("Clusters side by side", parts=parts, anchor="side-by-side", short="Side by side")


def _values(description: Description, links: Sequence[Link]) -> Grid:
    """The same features in their own units: means of numbers, shares of levels."""
    rows: list[list[object]] = []
    for place, (name, overall) in enumerate(zip(description.features, description.overall, strict=True)):
        values = [overall, *(one[place] for one in description.values)]
        share = description.is_share[place]
        texts = [_short_percent(value) if share else number_text(value, 4) for value in values]
        rows.append([shorten(name, 40), *texts])
    header: list[object] = [
        "mean or share",
        "all rows",
        *(Link(str(n), link.anchor, link.hue) for n, link in zip(description.numbers, links, strict=True)),
    ]
    return Grid((header, rows), heading="The same in the units of the table", compact=True)


def _cluster(
    exploration: Exploration, place: int, profile: Profile, labels: ArrayLike | None, label_name: str
) -> Section:
    index, taken = exploration.origins_[place], exploration.clusters_[place]
    number = taken.number
    size = f"Cluster {number} has {_rows(taken.size)} ({percent(taken.size / len(exploration.row_ids))})"
    called = f", {taken.name}" if taken.name else ""
    parts: list[Picture | Grid] = []
    left = None
    if index is None:
        text = f"{size}, as they were regrouped after they were taken."
    else:
        step, first = exploration.steps[index], exploration.clusters_[exploration.origins_.index(index)].number
        who = "chosen automatically" if taken.chosen == "automatic" else "chosen by hand"
        view = f" in view {step.view}" if step.view else ""
        text = f"{size}, taken in step {index} and {who}{view}."
        if apart := _distinctness(exploration, taken.distinctness):
            text += f" {_sentence(apart)}."
        if stable := stability_in_words(taken.stability):
            text += f" It {stable}."
        if step.p_value is not None:
            text += f" {_sentence(p_value_in_words(step.p_value))}."
        if number == first:
            parts.append(_seen(exploration, index, labels, label_name))
        else:
            text += f" It was taken together with cluster {first}, whose figure shows both."
        if not exploration.regroupings:
            left = f"left at step\N{NO-BREAK SPACE}{index}"
    for words in profile.known:
        text += f" What was known tells it: {words}."
    what = f"cluster\N{NO-BREAK SPACE}{number}"
    parts += profile_grids(profile, what=what, left=left, label_name=label_name, use=_use(exploration, label_name))
    return Section(
        f"Cluster {number}{called}: {_rows(taken.size)}",
        text,
        parts=parts,
        lead=profile.name,
        anchor=f"cluster-{number}",
        short=str(number) if place else f"Cluster {number}",
        hue=cluster_hue(number),
    )


def _seen(exploration: Exploration, index: int, labels: ArrayLike | None, label_name: str) -> Picture:
    step = exploration.steps[index]
    coordinates = exploration.coordinates(step)
    n_known = int(known_before(exploration, index).sum())
    before = f"{_rows(n_known)} were known before (grey)" if n_known else "no row was known before"
    caption = f"Step {index}: {before}; every taken cluster is encircled at two standard deviations."
    if labels is not None:
        caption += f" The labels ({shorten(label_name)}) were {_use(exploration, label_name)}."
    if step.components.shape[0] > 2:
        caption += f" The first two of {step.components.shape[0]} axes are drawn."
    figure = plot_step(exploration, index, labels=labels, label_name=label_name)
    flat = coordinates[:, :2]
    if coordinates.shape[1] == 1:
        flat = np.column_stack([coordinates[:, 0], np.arange(len(coordinates))])
    return Picture(caption, figure, flat, panels=range(3 if labels is not None else 2))


def _use(exploration: Exploration, label_name: str) -> str:
    """What came of the labels: "explained away" or "erased" where they are known by this name."""
    return exploration.came_of(label_name) or "not used"


def _left(exploration: Exploration, profile: Profile, label_name: str) -> Section:
    unfinished = "The exploration is not finished, so these rows were not looked at to the end."
    why = without_way_out(exploration.stop_reason or unfinished)
    title = "Rows left as outliers" if exploration.done else "Rows not taken yet"
    text = (
        f"{_rows(profile.size)} {'is' if profile.size == 1 else 'are'} in no cluster. {why} A cluster must have "
        f"at least {_rows(exploration.min_cluster_size)}; smaller groups and rows between the clusters stay here."
    )
    return Section(
        f"{title}: {_rows(profile.size)}",
        text,
        parts=profile_grids(
            profile, what="rows left", left=None, label_name=label_name, use=_use(exploration, label_name)
        ),
        lead=profile.name,
        anchor="rows-left",
        short="Rows left",
    )


def _distinctness(exploration: Exploration, distinctness: float | None) -> str:
    # A cluster alone in its view has nothing to be distinct from, and one drawn by hand was never measured.
    if not distinctness:
        return ""
    if exploration.is_joint or exploration.refine:
        return f"{distinctness_in_words(distinctness)} (distinctness {distinctness:.3g})"
    return f"distinctness {distinctness:.3g}: the sum of its distances to all other clusters of the view"


def _short_percent(share: float) -> str:
    """A share for a narrow column; a share of levels filled in for gaps may pass 1 by a rounding."""
    return percent(min(max(share, 0.0), 1.0)).replace("under ", "<").replace("over ", ">")


def _link(number: int) -> Link:
    return Link(f"Cluster {number}", f"cluster-{number}", cluster_hue(number))


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
