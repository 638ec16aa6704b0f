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
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from imapce.common.progress import Progress, watching
from imapce.common.words import axis_names, counted, shorten, uncapitalized
from imapce.errors import InvalidTypeError, Sentence
from imapce.exploration.description import MOST_FEATURES
from imapce.exploration.knowledge import read_back_in_words
from imapce.exploration.traits import NO_VALUE, aligned, filled_in_words, overlap_in_words, p_value_in_words, percent
from imapce.exploration.verdict import (
    best_split_in_words,
    evidence_in_words,
    stability_in_words,
    without_way_out,
)
from imapce.plotting.biplot import draw_weights
from imapce.plotting.cloud import CROWDED, Points
from imapce.plotting.figure import for_a_file
from imapce.plotting.key import read_labels
from imapce.plotting.labels import labels_by_name
from imapce.plotting.overview import plot_all_clusters, plot_overview, plot_profiles
from imapce.plotting.reports.cluster import made_of, profile_grids
from imapce.plotting.reports.hover import HoverRows
from imapce.plotting.reports.page import Grid, Link, Picture, Section, report_target, text_of, write_report
from imapce.plotting.scatter import plot_embedding
from imapce.plotting.steps import cluster_hue, draw_step, flat_points, known_before, plot_proposal, wrapped_axes
from imapce.plotting.style import LABEL_HUES, panel_on, root_figure
from imapce.tables.columns import Column
from imapce.tables.scales import OFFERS_LOG

if TYPE_CHECKING:
    from imapce.exploration.description import Description, Profile
    from imapce.exploration.session import Exploration
    from imapce.exploration.steps import View

_COLUMNS_HOVERED = 5
_SOME_STEPS, _MANY_STEPS = 10, 20
_NAME_ON_CARD = 44
ANSWERS = {
    "clear": "Yes, clearly",
    "possible": "Possible",
    "none": "None beyond chance, and the best split was taken all the same",
}


@for_a_file()
def write_exploration_report(
    exploration: Exploration,
    path: str | os.PathLike[str],
    *,
    labels: Any = None,
    label_name: str | None = None,
    title: str = "Exploration",
    hover: Sequence[str] | None = None,
    progress: Progress = None,
) -> Path:
    """Write one self-contained HTML page about an exploration, finished or not, and return its path.

    With `labels`, one per row, some possibly missing, and called `label_name`, the figures show them and the tables
    say what each cluster is made of. They may be the name of a column, or several by their names: the first colours the
    figures of the steps and each has its part in the tables. The labels are shown only; the page says of those that
    are known by that name what came of them, and of others that they were not used. Points of the figures can be
    hovered: they tell their row, cluster, labels and the columns named in `hover`, by default those that tell the
    clusters apart best. `progress` is told, in words and as a share, how far the page is.

    >>> from imapce import Exploration
    >>> from imapce.datasets import make_synthetic
    >>> data = make_synthetic(100)
    >>> exploration = Exploration(data.X, random_state=0)
    >>> _ = exploration.accept()
    >>> write_exploration_report(exploration, "cells.html", labels=data.labels["celltype"], title="Cells").name
    'cells.html'
    """
    report_target(path)
    n_rows = len(exploration.row_ids)
    columns = _read_columns(exploration, labels, label_name)
    with watching(progress, of="of the page") as watch:
        watch.tell("describing the clusters", 0.0)
        description = exploration.description(labels=columns)
        rows = _hovered(exploration, description, columns, hover)
        report = _Report(exploration, columns)
        sections = [report.overview()]
        if description.clusters:
            sections.append(report.side_by_side(description))
        sections += [report.cluster(place, profile) for place, profile in enumerate(description.clusters)]
        if description.left is not None and exploration.steps:
            sections.append(report.rows_left(description.left))
        if (tried := report.what_to_try()) is not None:
            sections.append(tried)
        if description.clusters:
            sections.append(Section("How to read this page", text_of("how_to_read_clusters"), short="How to read"))
        # Clouds of many points hardly compress: at a lower resolution, not below that of the page, many stay small.
        many = len(exploration.steps)
        dpi = 80.0 if many > _MANY_STEPS else 105.0 if many > _SOME_STEPS or n_rows > CROWDED else 130.0
        facts = _summary(exploration)
        tell = None if progress is None else watch.tell
        return write_report(path, title=title, sections=sections, summary=facts, dpi=dpi, hover=rows, progress=tell)


def _read_columns(exploration: Exploration, labels: Any, label_name: str | None) -> list[Column]:
    """The columns of labels, each read once; one without any label in it is left out."""
    n_rows = len(exploration.row_ids)
    columns = [
        read_labels(values, "labels", n_rows, most=n_rows + 1, name=str(name))
        for name, values in labels_by_name(exploration, labels, label_name).items()
    ]
    return [column for column in columns if column.is_number or column.levels]


def _hovered(
    exploration: Exploration, description: Description, labels: Sequence[Column], names: Sequence[str] | None
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
    columns += labels
    columns += [exploration.column(name) for name in names]
    return HoverRows(exploration.row_ids, columns)


def _summary(exploration: Exploration) -> dict[str, object]:
    taken = int((exploration.labels_ >= 0).sum())
    left = int((~exploration.known).sum())
    start = len(exploration.row_ids) - taken - left
    reader = exploration.found.data.reader
    facts: dict[str, object] = {
        "rows × columns": f"{len(exploration.row_ids):,} × {len(reader.columns or reader.names):,}",
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
    """The sections of one report; the first column of labels colours the figures of the steps."""

    exploration: Exploration
    columns: Sequence[Column]

    @property
    def labels(self) -> Column | None:
        return self.columns[0] if self.columns else None

    @property
    def label_name(self) -> str:
        return self.columns[0].name if self.columns else "label"

    @property
    def _use(self) -> str:
        """What came of the labels: "explained away" or "erased" where they are known by this name."""
        return self._uses.get(self.label_name, "not used")

    @property
    def _uses(self) -> dict[str, str]:
        """The same of every column of labels."""
        return {column.name: self.exploration.came_of(column.name) or "not used" for column in self.columns}

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
        facts["filled"] = filled_in_words(exploration.filled, len(exploration.row_ids))
        text = text_of("exploration_overview", exploration=exploration, end=without_way_out(end), **facts)
        if not exploration.steps:
            return Section("Overview", text, parts=self._not_taken())
        seen = Picture(
            "All rows in the one view in which all clusters are seen best; a number stands amid its cluster."
            + self._what_colours(),
            self._all_clusters,
            panels=range(1 + len(self.columns)),
        )
        counts = [self._counts(column) for column in self.columns if not column.is_number] or [self._counts(None)]
        return Section("Overview", text, parts=[seen, *counts])

    def _all_clusters(self) -> tuple[Figure, Points]:
        view = self.exploration.overview()
        return plot_all_clusters(self.exploration, view, labels=self.columns), flat_points(view.embedding)

    def _what_colours(self) -> str:
        """What a caption says of panels coloured by labels."""
        if not self.columns:
            return ""
        told = (f"{shorten(name)} was {use}" for name, use in self._uses.items())
        return f" Beside it the same rows by their labels: {', '.join(told)}."

    def _counts(self, column: Column | None) -> Picture:
        """How many rows every cluster has, and how many of them have which label."""
        caption = "Rows of every cluster, in the order of their numbers."
        if column is not None:
            name = shorten(column.name)
            caption += f" On the right the number of rows of each {name}; darker is a larger share of the cluster."
        return Picture(caption, lambda: (plot_overview(self.exploration, labels=column), None))

    def _not_taken(self) -> list[Picture | Grid]:
        """The view that was in sight when nothing was taken, the labels in it, and the features that make it."""
        step = self.exploration.proposal
        if step is None or not step.views[0].looked_at:
            return []
        view = step.views[0]
        caption = f"The view of step {step.number}, in which nothing was taken."
        if (best := best_split_in_words(step.structure)) and not len(step.numbers):
            caption = f"{best}, each group in a colour of its own; it is no more than chance, and none of it was taken."
        points = flat_points(view.embedding)
        parts: list[Picture | Grid] = [Picture(caption, lambda: (plot_proposal(step), points))]
        names = wrapped_axes(self.exploration.axes_in_words(view))
        for column in self.columns:
            told = f"The same rows by {shorten(column.name)}, which was {self._uses[column.name]}."
            parts.append(Picture(told, partial(_by_labels, points, column, names)))
        if len(view.components) > 1:
            told = "Which features make the view: long arrows pull points their way."
            parts.append(Picture(told, partial(_weights, self.exploration, view, points)))
        return parts

    def what_to_try(self) -> Section | None:
        """What may still show something; nothing where clusters were found."""
        step = self.exploration.proposal
        if self.exploration.steps or step is None or self.exploration.structure is None:
            return None
        sentences = [note for note in self.exploration.notes_ if isinstance(note, Sentence)]
        skewed = [str(note) for note in sentences if note.has_phrase(OFFERS_LOG)]
        text = text_of(
            "what_to_try",
            skewed=skewed,
            scaled=bool(self.exploration.found.data.reader.transform),
            known=bool(self.exploration.explained_away),
            split=best_split_in_words(step.structure),
        )
        return Section("What could be tried", text)

    def side_by_side(self, description: Description) -> Section:
        clusters, profiles = self.exploration.clusters_, description.clusters
        names = [taken.name or "" for taken in clusters]
        apart = [overlap_in_words(taken.overlap) for taken in clusters]
        stable = [stability_in_words(taken.stability) for taken in clusters]
        n_rows = len(self.exploration.row_ids)
        columns: dict[object, Sequence[object]] = {
            "cluster": [_link(number) for number in description.numbers],
            "name": names,
            "what it is": [profile.name for profile in profiles],
            "rows": [profile.size for profile in profiles],
            "share": [percent(profile.size / n_rows) for profile in profiles],
            "distinctness": apart,
            "stability": stable,
        }
        for place, column in enumerate(self.columns):
            heading = f"{shorten(column.name)} ({self._uses[column.name]})"
            columns[heading] = [made_of(profile.labels[place]) for profile in profiles]
        told = {name: cells for name, cells in columns.items() if any(cells)}
        parts: list[Picture | Grid] = [Grid((list(told), list(zip(*told.values(), strict=True))))]
        if description.features:
            caption = (
                "How every cluster differs from all other rows, in standard deviations of all rows; of a category's "
                "level it is the share that differs. Blue is less and orange is more."
                f"{_choice(description)}"
            )
            parts += [Picture(caption, lambda: (plot_profiles(description), None)), _values(description)]
        return Section("Clusters side by side", parts=parts, anchor="side-by-side", short="Side by side")

    def cluster(self, place: int, profile: Profile) -> Section:
        exploration = self.exploration
        index, taken = exploration.origins_[place], exploration.clusters_[place]
        parts: list[Picture | Grid] = []
        step, first, left, sentences = None, None, None, []
        if index is not None:
            step = exploration.steps[index - 1]
            first = exploration.clusters_[exploration.origins_.index(index)].number
            stable = stability_in_words(taken.stability)
            chance = "" if step.p_value is None else p_value_in_words(step.p_value)
            apart = overlap_in_words(taken.overlap, beside="its nearest neighbour")
            sentences = [apart, f"It reappears in {stable}" if stable else "", chance]
            if taken.number == first:
                parts.append(self._step(index))
            if not exploration.regroupings:
                left = f"left at step\N{NO-BREAK SPACE}{index}"
        share = percent(taken.size / len(exploration.row_ids))
        facts = {"index": index, "step": step, "first": first, "sentences": list(filter(None, sentences))}
        what = f"cluster\N{NO-BREAK SPACE}{taken.number}"
        parts += profile_grids(profile, what=what, left=left, uses=self._uses)
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
        """The picture of a step by its number, from 1."""
        step, n_rows = self.exploration.steps[index - 1], len(self.exploration.row_ids)
        caption = text_of(
            "exploration_step",
            index=index,
            n_known=int(known_before(self.exploration, index - 1).sum()),
            label_name="" if self.labels is None else shorten(self.label_name),
            use=self._use,
            n_axes=len(step.components),
        )
        column = self.labels
        held = None if column is None else read_labels(column, "labels", n_rows, most=len(LABEL_HUES), name=column.name)

        def drawn() -> tuple[Figure, Points]:
            points = flat_points(self.exploration.coordinates(step))
            return draw_step(self.exploration, index - 1, points, held), points

        return Picture(caption, drawn, panels=range(2 if column is None else 3))

    def rows_left(self, profile: Profile) -> Section:
        exploration = self.exploration
        title = "Rows left as outliers" if exploration.done else "Rows not taken yet"
        end = without_way_out(exploration.stop_reason or "")
        return Section(
            f"{title}: {counted(profile.size, 'row')}",
            text_of("exploration_left", size=profile.size, end=end, least=exploration.min_cluster_size),
            parts=profile_grids(profile, what="rows left", left=None, uses=self._uses),
            lead=profile.name,
            anchor="rows-left",
            short="Rows left",
        )


def _by_labels(points: Points, column: Column, names: Sequence[str]) -> tuple[Figure, Points]:
    return plot_embedding(points, color=column, color_name=column.name, axis_names=names), points


def _weights(exploration: Exploration, view: View, points: Points) -> tuple[Figure, None]:
    """The features that make a view, as arrows; those that are known have none."""
    told, given = exploration.given_in_words(view)
    names = [name for name, shown in zip(exploration.feature_names, told, strict=True) if shown]
    axes = [", ".join(filter(None, [axis, given])) for axis in axis_names(2)]
    panel = panel_on(None, 7.6, 5.6)
    draw_weights(panel, view.components[:2, told].T, names, points, named_axes=axes)
    return root_figure(panel), None


def _values(description: Description) -> Grid:
    """The same features in their own units: means of numbers, shares of levels."""
    rows: list[list[object]] = []
    for place, (name, overall) in enumerate(zip(description.features, description.overall, strict=True)):
        values = [overall, *(cluster[place] for cluster in description.values)]
        if description.is_share[place]:
            texts = [NO_VALUE if isnan(value) else _short_percent(value) for value in values]
        else:
            seen = [value for value in values if not isnan(value)]
            texts = aligned(min(seen), max(seen), *values)[2:]
        rows.append([shorten(name, 40), *texts])
    links = [replace(_link(number), text=str(number)) for number in description.numbers]
    return Grid((["mean or share", "all rows", *links], rows), "The same in the units of the table", compact=True)


def _short_percent(share: float) -> str:
    """A share for a narrow column."""
    return percent(share, under="<", over=">")


def _choice(description: Description) -> str:
    """That not all columns are shown, and which are."""
    shown = len(description.features)
    if not MOST_FEATURES <= shown < description.n_columns:
        return ""
    return (
        f" Shown are {shown} of {description.n_columns:,} columns: the two that set each cluster apart most, then "
        "those that differ most in any cluster."
    )


def _link(number: int) -> Link:
    return Link(f"Cluster {number}", f"cluster-{number}", cluster_hue(number))
