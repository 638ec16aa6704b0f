"""The report of an exploration: all clusters side by side, then each with what it is, where it was seen and its rows.

>>> from imapce import Exploration
>>> exploration = Exploration(np.random.default_rng(0).normal(size=(50, 4)))
>>> write_exploration_report(exploration, "exploration.html").name
'exploration.html'
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from imapce.common.words import counted, shorten, uncapitalized
from imapce.errors import InvalidTypeError
from imapce.exploration.knowledge import read_back_in_words
from imapce.exploration.traits import distinctness_in_a_word, distinctness_in_words, p_value_in_words, percent
from imapce.exploration.verdict import (
    DRAWS,
    best_split_in_words,
    evidence_in_words,
    stability_in_words,
    without_way_out,
)
from imapce.plotting.cloud import CROWDED
from imapce.plotting.figure import for_a_file
from imapce.plotting.key import column_name, read_labels
from imapce.plotting.overview import plot_overview, plot_profiles
from imapce.plotting.reports.cluster import made_of, profile_grids
from imapce.plotting.reports.hover import HoverRows
from imapce.plotting.reports.page import Grid, Link, Picture, Section, text_of, write_report
from imapce.plotting.steps import cluster_hue, flat_points, known_before, plot_proposal, plot_step
from imapce.tables.columns import Column, number_text

if TYPE_CHECKING:
    from imapce.exploration.description import Description, Profile
    from imapce.exploration.session import Exploration

_COLUMNS_HOVERED = 5
_SOME_STEPS, _MANY_STEPS = 10, 20
_NAME_ON_CARD = 44
ANSWERS = {
    "clear": "Yes, clearly",
    "perhaps": "Perhaps",
    "none": "None beyond chance, and the best split was taken all the same",
}


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
    named = None if labels is None else read_labels(labels, "labels", n_rows, most=n_rows + 1, name=label_name)
    if named is not None and not named.is_number and not named.levels:
        # Every label is missing: there is nothing to colour by and nothing to describe.
        labels = named = None
    description = exploration.description(labels=named)
    rows = _hovered(exploration, description, named, hover)
    report = _Report(exploration, labels, label_name)
    sections = [report.overview()]
    if description.clusters:
        sections.append(report.side_by_side(description))
    sections += [report.cluster(place, profile) for place, profile in enumerate(description.clusters)]
    if description.left is not None and exploration.steps:
        sections.append(report.rows_left(description.left))
    if description.clusters:
        sections.append(Section("How to read this page", text_of("how_to_read_clusters"), short="How to read"))
    # Clouds of many points hardly compress: at a lower resolution, not below that of the page, many figures stay small.
    many = len(exploration.steps)
    dpi = 80.0 if many > _MANY_STEPS else 105.0 if many > _SOME_STEPS or n_rows > CROWDED else 130.0
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
    for place, (taken, profile) in enumerate(zip(exploration.clusters_, description.clusters, strict=True)):
        clusters.append(f"{taken.number}: {shorten(taken.name or profile.name, _NAME_ON_CARD)}")
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


@dataclass(frozen=True, eq=False)
class _Report:
    """The sections of one report; the labels are called `label_name`."""

    exploration: Exploration
    labels: ArrayLike | None
    label_name: str

    @property
    def _use(self) -> str:
        """What came of the labels: "explained away" or "erased" where they are known by this name."""
        return self.exploration.came_of(self.label_name) or "not used"

    def overview(self) -> Section:
        exploration, found = self.exploration, self.exploration.structure
        left = counted(int((~exploration.known).sum()), "row")
        end = exploration.stop_reason or f"The exploration is not finished: {left} are unexplored."
        # Nobody knows the answer, or all was taken by hand; the sentence of one that found nothing says so itself.
        answer = ANSWERS[found.verdict] if found and (found.verdict == "clear" or exploration.caveat) else ""
        facts: dict[str, Any] = {"answer": answer, "tested": evidence_in_words(found), "read_back": ""}
        if exploration.steps and exploration.steps[0].read_back is not None:
            told = read_back_in_words(exploration.steps[0].read_back, exploration.known_names)
            facts["read_back"] = uncapitalized(told)
        text = text_of("exploration_overview", exploration=exploration, end=without_way_out(end), **facts)
        if not exploration.steps:
            return Section("Overview", text, parts=self._not_taken())
        caption = "Rows of every cluster, in the order of their numbers."
        if self.labels is not None:
            caption += " On the right the number of rows of each label; darker is a larger share of the cluster."
        figure = plot_overview(exploration, labels=self.labels, label_name=self.label_name)
        return Section("Overview", text, [(caption, figure)])

    def _not_taken(self) -> list[Picture | Grid]:
        """The view that was in sight when nothing was taken, with the best split where that is no more than chance."""
        step = self.exploration.proposal
        if step is None or not step.views[0].looked_at:
            return []
        caption = f"The view of step {step.number}, in which nothing was taken."
        if (best := best_split_in_words(step.structure)) and not len(step.numbers):
            caption = f"{best}, each group in a colour of its own; it is no more than chance, and none of it was taken."
        return [Picture(caption, plot_proposal(step), flat_points(step.embedding))]

    def side_by_side(self, description: Description) -> Section:
        clusters, profiles = self.exploration.clusters_, description.clusters
        names = [taken.name or "" for taken in clusters]
        apart = [self._distinctness_in_a_word(taken.distinctness) for taken in clusters]
        stable = [
            "" if taken.stability is None else f"{round(DRAWS * taken.stability)} of {DRAWS}" for taken in clusters
        ]
        n_rows = len(self.exploration.row_ids)
        columns: dict[object, Sequence[object]] = {
            "cluster": [_link(number) for number in description.numbers],
            "name": names,
            "what it is": [profile.name for profile in profiles],
            "rows": [profile.size for profile in profiles],
            "share": [percent(profile.size / n_rows) for profile in profiles],
            "distinctness": apart,
            "stability": stable,
            f"{shorten(self.label_name)} ({self._use})": [
                "" if profile.labels is None else made_of(profile.labels) for profile in profiles
            ],
        }
        told = {name: cells for name, cells in columns.items() if any(cells)}
        parts: list[Picture | Grid] = [Grid((list(told), list(zip(*told.values(), strict=True))))]
        if description.features:
            caption = (
                "How every cluster differs from all other rows, in standard deviations of all rows; of a category's "
                "level it is the share that differs. Blue is less and orange is more."
            )
            parts += [Picture(caption, plot_profiles(description)), _values(description)]
        return Section("Clusters side by side", parts=parts, anchor="side-by-side", short="Side by side")

    def cluster(self, place: int, profile: Profile) -> Section:
        exploration = self.exploration
        index, taken = exploration.origins_[place], exploration.clusters_[place]
        parts: list[Picture | Grid] = []
        step, first, left, sentences = None, None, None, []
        if index is not None:
            step, first = exploration.steps[index], exploration.clusters_[exploration.origins_.index(index)].number
            stable = stability_in_words(taken.stability)
            chance = "" if step.p_value is None else p_value_in_words(step.p_value)
            sentences = [self._distinctness(taken.distinctness), f"It {stable}" if stable else "", chance]
            if taken.number == first:
                parts.append(self._step(index))
            if not exploration.regroupings:
                left = f"left at step\N{NO-BREAK SPACE}{index}"
        share = percent(taken.size / len(exploration.row_ids))
        facts = {"index": index, "step": step, "first": first, "sentences": list(filter(None, sentences))}
        what = f"cluster\N{NO-BREAK SPACE}{taken.number}"
        parts += profile_grids(profile, what=what, left=left, label_name=self.label_name, use=self._use)
        return Section(
            f"Cluster {taken.number}{f', {taken.name}' if taken.name else ''}: {counted(taken.size, 'row')}",
            text_of("exploration_cluster", taken=taken, share=share, known=profile.known, **facts),
            parts=parts,
            lead=profile.name,
            anchor=f"cluster-{taken.number}",
            short=str(taken.number) if place else f"Cluster {taken.number}",
            hue=cluster_hue(taken.number),
        )

    def _step(self, index: int) -> Picture:
        step = self.exploration.steps[index]
        caption = text_of(
            "exploration_step",
            index=index,
            n_known=int(known_before(self.exploration, index).sum()),
            label_name="" if self.labels is None else shorten(self.label_name),
            use=self._use,
            n_axes=len(step.components),
        )
        figure = plot_step(self.exploration, index, labels=self.labels, label_name=self.label_name)
        points = flat_points(self.exploration.coordinates(step))
        return Picture(caption, figure, points, panels=range(2 if self.labels is None else 3))

    def rows_left(self, profile: Profile) -> Section:
        exploration = self.exploration
        title = "Rows left as outliers" if exploration.done else "Rows not taken yet"
        end = without_way_out(exploration.stop_reason or "")
        return Section(
            f"{title}: {counted(profile.size, 'row')}",
            text_of("exploration_left", size=profile.size, end=end, least=exploration.min_cluster_size),
            parts=profile_grids(profile, what="rows left", left=None, label_name=self.label_name, use=self._use),
            lead=profile.name,
            anchor="rows-left",
            short="Rows left",
        )

    def _distinctness(self, distinctness: float | None) -> str:
        # A cluster alone in its view has nothing to be distinct from, and one drawn by hand was never measured.
        if not distinctness:
            return ""
        if self.exploration.is_joint or self.exploration.refine:
            return f"{distinctness_in_words(distinctness)} (distinctness {distinctness:.3g})"
        return f"distinctness {distinctness:.3g}: the sum of its distances to all other clusters of the view"

    def _distinctness_in_a_word(self, distinctness: float | None) -> str:
        if not distinctness:
            return ""
        overlaps = self.exploration.is_joint or self.exploration.refine
        return distinctness_in_a_word(distinctness) if overlaps else f"distinctness {distinctness:.3g}"


def _values(description: Description) -> Grid:
    """The same features in their own units: means of numbers, shares of levels."""
    rows: list[list[object]] = []
    for place, (name, overall) in enumerate(zip(description.features, description.overall, strict=True)):
        values = [overall, *(cluster[place] for cluster in description.values)]
        share = description.is_share[place]
        texts = [_short_percent(value) if share else number_text(value, 4) for value in values]
        rows.append([shorten(name, 40), *texts])
    links = [replace(_link(number), text=str(number)) for number in description.numbers]
    return Grid((["mean or share", "all rows", *links], rows), "The same in the units of the table", compact=True)


def _short_percent(share: float) -> str:
    """A share for a narrow column; a share of levels filled in for gaps may pass 1 by a rounding."""
    return percent(min(max(share, 0.0), 1.0), under="<", over=">")


def _link(number: int) -> Link:
    return Link(f"Cluster {number}", f"cluster-{number}", cluster_hue(number))
