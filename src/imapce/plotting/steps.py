"""Figures of one step of an exploration: what was known, which cluster was taken, what the labels say.

>>> from imapce import Exploration
>>> from imapce.datasets import make_synthetic
>>> plot_proposal(Exploration(make_synthetic(100).X, random_state=0).propose())
<Figure size 840x540 with 1 Axes>
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from imapce.common.checks import is_whole
from imapce.common.words import axis_names
from imapce.errors import InvalidValueError
from imapce.exploration.traits import overlap_in_words
from imapce.exploration.verdict import best_split_in_words, caveat
from imapce.plotting.cloud import Group, draw_groups
from imapce.plotting.key import read_labels
from imapce.plotting.scatter import plot_embedding
from imapce.plotting.style import (
    BESIDE,
    CLUSTER_HUES,
    INK,
    KNOWN_GREY,
    LABEL_HUES,
    LABEL_SIZE,
    draw_legend,
    follow_known,
    mark,
    panel_on,
    plain_figure,
    quiet_axes,
    root_figure,
)
from imapce.tables.columns import Column

if TYPE_CHECKING:
    from imapce.exploration.record import AcceptedStep
    from imapce.exploration.session import Exploration
    from imapce.exploration.steps import Step

Points = NDArray[np.float64]
Mask = NDArray[np.bool_]
Entry = tuple[str, str, str]

UNEXPLORED_BLACK = "#000000"
OTHER_GREY = "#8C959F"
_PANEL_INCHES = 2.95
_HEIGHT_INCHES = 4.2
_TITLE_LETTERS = 64
# The room in inches for the numbers of the axes, for a line of their names, and beside a colour bar.
_TICKS_INCHES, _NUMBERS_INCHES, _LINE_INCHES, _SCALE_INCHES = 0.22, 0.5, 0.17, 1.1
_AXIS_LETTERS, _WRAPPED = 40, 30
# Two standard deviations hold 86 % of a bell-shaped cluster.
_ELLIPSE_SIGMAS = 2.0


def cluster_hue(number: int) -> str:
    """Give the colour of a cluster by its number, the same in every figure; after 24 clusters they repeat.

    >>> cluster_hue(0)
    '#0072B2'
    """
    return CLUSTER_HUES[number % len(CLUSTER_HUES)]


def plot_step(
    exploration: Exploration,
    index: int,
    *,
    labels: ArrayLike | Column | None = None,
    label_name: str | None = None,
) -> Figure:
    """Draw an accepted step in the view it was seen in, panel by panel, and return the figure.

    On the left the rows known before the step are grey and the unexplored ones black. In the middle every taken
    cluster has its colour, its number (as in `exploration.labels_`) and an ellipse of two standard deviations
    around it. On the right, where `labels` are given, the unexplored rows are coloured by them. Of a view with
    more than two axes the first two are drawn, and the names of the axes say so. The panels frame the unexplored
    rows; the key says how many known rows lie outside.

    >>> from imapce import Exploration
    >>> from imapce.datasets import make_synthetic
    >>> data = make_synthetic(100)
    >>> exploration = Exploration(data.X, random_state=0)
    >>> _ = exploration.accept()
    >>> plot_step(exploration, 0, labels=data.labels["batch"], label_name="batch")
    <Figure size 1025x420 with 3 Axes>
    """
    step = step_at(exploration, index)
    column = None
    if labels is not None:
        column = read_labels(labels, "labels", len(exploration.row_ids), most=len(LABEL_HUES), name=label_name)
    return draw_step(exploration, index, flat_points(exploration.coordinates(step)), column)


def draw_step(exploration: Exploration, index: int, points: Points, column: Column | None) -> Figure:
    """The same with the rows at `points`, and labels that were read."""
    step = exploration.steps[index]
    names = wrapped_axes(exploration.axes_in_words(step, letters=_AXIS_LETTERS))
    known = known_before(exploration, index)
    n_rows = len(points)
    n_panels = 2 if column is None else 3
    # A place for everything: the layout that looks for one takes half the time of a figure, and a page has many.
    figure = plain_figure(_PANEL_INCHES * n_panels + (1.4 if column is not None else 0.0), _HEIGHT_INCHES)
    panels = [figure.add_axes((0.1, 0.3, 0.8, 0.6), label=str(place)) for place in range(n_panels)]

    grey = Group(known, KNOWN_GREY, 1.5)
    draw_groups(panels[0], points, [grey, Group(~known, UNEXPLORED_BLACK)])
    quiet_axes(panels[0], *names, title="What is known", subtitle=exploration.known_in_a_line, letters=30)

    rest = ~known
    taken = []
    for cluster in step.clusters:
        rest[cluster.rows] = False
        taken.append(Group(np.isin(np.arange(n_rows), cluster.rows), cluster_hue(cluster.number)))
    draw_groups(panels[1], points, [grey, Group(rest, OTHER_GREY, 1.8), *taken])
    entries: list[Entry] = [
        (f"cluster {cluster.number} ({cluster.size:,})", cluster_hue(cluster.number), "o") for cluster in step.clusters
    ]
    entries += _known_entry(known) + ([(f"others ({int(rest.sum()):,})", OTHER_GREY, "o")] if rest.any() else [])
    outlines = [encircle(panels[1], points, cluster.rows, cluster.number) for cluster in step.clusters]
    quiet_axes(panels[1], names[0], "", title=f"What was taken{_how_sure(step)}")
    taken_lines = _legend_below(panels[1], entries)

    if column is not None:
        plot_embedding(
            points,
            color=column,
            known=known,
            title="What the labels say",
            color_name=column.name or "labels",
            axis_names=[names[0], ""],
            ax=panels[2],
        )
    outside = _same_window(panels, points, outlines, known)
    black = (f"unexplored ({int((~known).sum()):,})", UNEXPLORED_BLACK, "o")
    known_lines = _legend_below(panels[0], [*_known_entry(known, outside), black], columns=1)
    for ax in panels[1:]:
        ax.tick_params(labelleft=False)
    _set_side_by_side(figure, panels, max(taken_lines, known_lines))
    return figure


def _set_side_by_side(figure: Any, panels: Sequence[Any], keys: int) -> None:
    """Give the panels equal widths, between the names of the first one's axes and the key beside the last one, above
    keys of so many lines.
    """
    width, height = figure.get_size_inches()
    legends = [ax.get_legend() for ax in panels]
    beside = 0.1
    if len(panels) > 2:
        measured = 0.0 if legends[-1] is None else legends[-1].get_window_extent().width / figure.dpi + 0.1
        beside = max(measured, _SCALE_INCHES if panels[-1].child_axes else 0.0)
    lines = max(len(ax.get_xlabel().splitlines()) for ax in panels)
    below = _TICKS_INCHES + _LINE_INCHES * lines + 0.22 * keys + 0.22
    # A second line: what is known below the first title, how sure the second is.
    above = 0.62 if panels[0].texts or "\n" in panels[1].get_title(loc="left") else 0.42
    sides = len(panels[0].get_ylabel().splitlines())
    left = _NUMBERS_INCHES + _LINE_INCHES * sides
    wide = max(0.8, (width - left - beside - 0.2 * len(panels)) / len(panels))
    tall = height - below - above
    for place, ax in enumerate(panels):
        ax.set_position(((left + place * (wide + 0.2)) / width, below / height, wide / width, tall / height))
        # Where names stand is told too: to look for it, matplotlib measures all numbers of the axes.
        ax.xaxis.set_label_coords(0.5, -(_TICKS_INCHES + 0.08) / tall)
        ax.yaxis.set_label_coords(-(_NUMBERS_INCHES - 0.02) / wide, 0.5)
        ax.xaxis.label.set_verticalalignment("top")
    for ax, legend in zip(panels[:2], legends, strict=False):
        legend.set_bbox_to_anchor((0.5, -(_TICKS_INCHES + 0.12 + _LINE_INCHES * lines) / tall), ax.transAxes)


def plot_proposal(step: Step, *, view: int = 0) -> Figure:
    """Draw a view of a proposal with all its clusters, the most distinct encircled, and return the figure.

    Outliers are small grey crosses and known rows light grey dots; the key gives the size of every cluster and how much
    of it its nearest neighbour shares. Where there is no structure beyond chance, the best split is drawn and told as
    such; where it is possible, the title says so.

    >>> from imapce import Exploration
    >>> from imapce.datasets import make_synthetic
    >>> plot_proposal(Exploration(make_synthetic(100).X, random_state=0).propose(), view=0)
    <Figure size 840x540 with 1 Axes>
    """
    if not is_whole(view) or not 0 <= view < len(step.views):
        raise InvalidValueError(f"view must be from 0 to {len(step.views) - 1} in this step; got {view!r}.")
    seen = step.views[view]
    points = flat_points(seen.embedding)
    names = wrapped_axes(seen.axes or axis_names(len(seen.components)), _TITLE_LETTERS)
    known, clusters = ~seen.unexplored, seen.clusters
    outliers = ~known & (clusters < 0)
    none_shown = not len(seen.numbers)
    one_group = none_shown and step.structure is not None and not step.structure.is_taken
    ax = panel_on(None, 8.4, 5.4)
    groups = [Group(known, KNOWN_GREY, 1.5)]
    entries: list[Entry] = []
    if one_group and best_split_in_words(step.structure):
        # Rows of no group of the split, few if any, stay crosses.
        split, entries = _best_split(outliers, step.structure)
        groups += split
    groups.append(Group(outliers, OTHER_GREY, 1.8, marker="x"))
    for number, overlap in zip(seen.numbers.tolist(), seen.overlap.tolist(), strict=True):
        inside = clusters == number
        groups.append(Group(inside, cluster_hue(number)))
        apart = overlap_in_words(overlap) or "the only one"
        most = "\nthe most distinct" if number in seen.most_distinct and len(seen.numbers) > 1 else ""
        entries.append((f"cluster {number}: {int(inside.sum()):,} rows\n{apart}{most}", cluster_hue(number), "o"))
    draw_groups(ax, points, groups)
    outlines = [encircle(ax, points, np.flatnonzero(clusters == number), number) for number in seen.most_distinct]
    if outliers.any():
        name = "one group" if one_group else "outliers"
        entries.append((f"{name}: {int(outliers.sum()):,} rows", OTHER_GREY, "x"))
    if none_shown:
        told = ": no structure beyond chance" if one_group else ": no cluster is large enough"
    else:
        told = "".join(f"\n{line}" for line in textwrap.wrap(caveat(step.structure), _TITLE_LETTERS))
    which = f", view {view + 1} of {len(step.views)}" if len(step.views) > 1 else ""
    quiet_axes(ax, *names, title=f"Step {step.number}{which}{told}", subtitle=seen.known)
    outside = _same_window([ax], points, outlines, known)
    if known.any():
        entries.append((f"known: {int(known.sum()):,} rows{_out(outside)}", KNOWN_GREY, "o"))
    draw_entries(ax, entries, **BESIDE, labelspacing=0.8)
    return root_figure(ax)


def _how_sure(step: AcceptedStep) -> str:
    """What the title adds where clusters that were taken automatically are not clearly some."""
    by_hand = all(cluster.chosen != "automatic" for cluster in step.clusters)
    if by_hand or step.structure is None or step.structure.verdict == "clear":
        return ""
    return ":\npossible groups" if step.structure.is_taken else ":\ngroups by chance"


def _best_split(left: Mask, structure: Any) -> tuple[list[Group], list[Entry]]:
    """The groups of a split that is no more than chance, taken from the rows `left`, and what they are called."""
    labels = structure.candidate
    names, counts = np.unique(labels[left & (labels >= 0)], return_counts=True)
    groups: list[Group] = []
    entries: list[Entry] = []
    for place, name in enumerate(names[np.argsort(-counts, kind="stable")].tolist()):
        inside = left & (labels == name)
        groups.append(Group(inside, cluster_hue(place)))
        entries.append((f"best split: {int(inside.sum()):,} rows\nno more than chance", cluster_hue(place), "o"))
    left &= labels < 0
    return groups, entries


def step_at(exploration: Exploration, index: int) -> AcceptedStep:
    """Give an accepted step by its number, or say which numbers there are."""
    steps = exploration.steps
    if not is_whole(index) or not 0 <= index < len(steps):
        there = f"from 0 to {len(steps) - 1}" if steps else "that of an accepted step, and none is accepted yet"
        raise InvalidValueError(f"index must be {there}; got {index!r}.")
    return steps[index]


def known_before(exploration: Exploration, index: int) -> Mask:
    """Give the rows that were known when a step was proposed: those of the start and of earlier steps."""
    known = exploration.known & (exploration.labels_ < 0)
    for step in exploration.steps[:index]:
        for cluster in step.clusters:
            known[cluster.rows] = True
    return known


def flat_points(coordinates: Points) -> Points:
    """Give two coordinates to draw: the first two, of a view of one axis this one and the number of the row."""
    if coordinates.shape[1] == 1:
        return np.column_stack([coordinates[:, 0], np.arange(len(coordinates))])
    return coordinates[:, :2]


def wrapped_axes(told: Sequence[str], letters: int = _WRAPPED) -> tuple[str, str]:
    """Name the two axes that are drawn, in lines of so many letters."""
    more = f" (of {len(told)})" if len(told) > 2 else ""
    names = [f"{told[0]}{more}", "row" if len(told) == 1 else f"{told[1]}{more}"]
    first, second = ("\n".join(textwrap.wrap(name, letters)[:2]) for name in names)
    return first, second


def encircle(ax: Axes, points: Points, rows: NDArray[np.intp], number: int) -> Points:
    """Draw the ellipse of a cluster with its number on top, and give the outline."""
    members = points[rows]
    centre = members.mean(axis=0)
    deviation = members - centre
    variance, axes = np.linalg.eigh(deviation.T @ deviation / len(members))
    # A cluster without spread still gets a circle that can be seen.
    least = 0.012 * float(np.ptp(points, axis=0).max()) or 1.0
    radii = np.maximum(_ELLIPSE_SIGMAS * np.sqrt(np.maximum(variance, 0.0)), least)
    # Dark on white, so that the line is seen on rows of any colour; the white lets rows below it through.
    for hue, width, opacity in (("white", 2.8, 0.6), (INK, 1.4, 1.0)):
        ellipse = Ellipse(
            (float(centre[0]), float(centre[1])),
            float(2 * radii[1]),
            float(2 * radii[0]),
            angle=float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))),
            fill=False,
            edgecolor=hue,
            linewidth=width,
            alpha=opacity,
            zorder=3.0,
        )
        ax.add_patch(ellipse)
    turn = np.linspace(0.0, 2 * np.pi, 90)
    outline = centre + (np.stack([np.cos(turn), np.sin(turn)], axis=1) * radii) @ axes.T
    _write_number_at(ax, outline[np.argmax(outline[:, 1])], number, xytext=(0, 2), va="bottom")
    return outline


def write_number(ax: Axes, members: Points, number: int) -> None:
    """Write the number of a cluster on the middle of its rows."""
    _write_number_at(ax, np.array([np.median(axis) for axis in members.T]), number, xytext=(0, 0), va="center")


def _write_number_at(ax: Axes, place: Points, number: int, **how: Any) -> None:
    ax.annotate(
        str(number),
        (float(place[0]), float(place[1])),
        textcoords="offset points",
        ha="center",
        fontsize=LABEL_SIZE,
        fontweight="bold",
        color=INK,
        zorder=4.0,
        path_effects=[withStroke(linewidth=3.0, foreground="white")],
        **how,
    )


def _same_window(panels: list[Any], points: Points, outlines: list[Points], known: Mask) -> int:
    """Give all panels the same limits, and say how many known rows lie outside of them.

    The unexplored rows and the ellipses always fit.
    """
    shown = np.vstack([points[~known], *outlines])
    low, high = shown.min(axis=0), shown.max(axis=0)
    room = np.where(high > low, high - low, 1.0)
    low, high = follow_known(low, high, points.min(axis=0), points.max(axis=0))
    # A little more at the top, for the number above an ellipse.
    low, high = low - 0.05 * room, high + np.array([0.05, 0.1]) * room
    for ax in panels:
        # A view is often long and narrow, and what makes a cluster distinct does not depend on the scale of an axis.
        ax.set_aspect("auto")
        ax.set_xlim(low[0], high[0])
        ax.set_ylim(low[1], high[1])
        ax.locator_params(nbins=5)
    return int((known & ((points < low) | (points > high)).any(axis=1)).sum())


def _known_entry(known: Mask, outside: int = 0) -> list[Entry]:
    return [(f"known ({int(known.sum()):,}{_out(outside)})", KNOWN_GREY, "o")] if known.any() else []


def _out(outside: int) -> str:
    return f", {outside:,} outside" if outside else ""


def _legend_below(ax: Any, entries: list[Entry], columns: int = 2) -> int:
    """Draw a key below an axes and tell how many lines it has."""
    columns = min(columns, len(entries))
    draw_entries(ax, entries, loc="upper center", ncols=columns)
    return -(-len(entries) // columns)


def draw_entries(ax: Any, entries: list[Entry], **place: Any) -> None:
    """Draw a key of names, colours and shapes."""
    marks = [(name, mark(shape, hue, 6.5, markeredgewidth=1.2 * (shape == "x"))) for name, hue, shape in entries]
    draw_legend(ax, marks, handletextpad=0.2, columnspacing=1.0, **place)
