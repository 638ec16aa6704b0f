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
from imapce.plotting.key import Key, read_labels
from imapce.plotting.scatter import plot_embedding, point_look
from imapce.plotting.style import (
    BESIDE,
    CLUSTER_HUES,
    INK,
    KNOWN_GREY,
    LABEL_SIZE,
    PALETTE,
    axes_given,
    blank_figure,
    draw_legend,
    follow_known,
    mark,
    panel_on,
    quiet_axes,
    root_figure,
)

if TYPE_CHECKING:
    from imapce.exploration.record import AcceptedStep
    from imapce.exploration.session import Exploration
    from imapce.exploration.steps import Step

Points = NDArray[np.float64]
Mask = NDArray[np.bool_]
Entry = tuple[str, str, str]

UNEXPLORED_BLACK = "#000000"
OTHER_GREY = "#8C959F"
RASTERISE_FROM = 20_000
_PANEL_INCHES = 2.95
_HEIGHT_INCHES = 4.2
_TITLE_LETTERS = 64
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
    labels: ArrayLike | None = None,
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
    points = flat_points(exploration.coordinates(step))
    names = _axis_names(len(step.components), exploration.explained_away)
    known = known_before(exploration, index)
    n_rows = len(points)
    key = None if labels is None else Key.read(_checked(labels, n_rows), None, label_name, None, n_rows)
    n_panels = 2 if key is None else 3
    figure = blank_figure(_PANEL_INCHES * n_panels + (1.4 if key is not None else 0.0), _HEIGHT_INCHES)
    panels = [figure.add_subplot(1, n_panels, place) for place in range(1, n_panels + 1)]

    cloud(panels[0], points, known, KNOWN_GREY, 1.5)
    cloud(panels[0], points, ~known, UNEXPLORED_BLACK, 2.0)
    quiet_axes(panels[0], *names, title="What is known")

    rest = ~known
    for cluster in step.clusters:
        rest[cluster.rows] = False
    cloud(panels[1], points, known, KNOWN_GREY, 1.5)
    cloud(panels[1], points, rest, OTHER_GREY, 1.8)
    entries = _known_entry(known) + ([(f"others ({int(rest.sum()):,})", OTHER_GREY, "o")] if rest.any() else [])
    for place, cluster in enumerate(step.clusters):
        inside = np.zeros(n_rows, dtype=bool)
        inside[cluster.rows] = True
        cloud(panels[1], points, inside, cluster_hue(cluster.number), 2.0)
        entries.insert(place, (f"cluster {cluster.number} ({cluster.size:,})", cluster_hue(cluster.number), "o"))
    outlines = [encircle(panels[1], points, cluster.rows, cluster.number) for cluster in step.clusters]
    quiet_axes(panels[1], names[0], "", title=f"What was taken{_how_sure(step)}")
    _legend_below(panels[1], entries)

    if labels is not None and key is not None:
        plot_embedding(
            points,
            color=labels,
            known=known,
            title="What the labels say",
            color_name=(key.color.name if key.color else "") or "labels",
            axis_names=[names[0], ""],
            ax=panels[2],
        )
    outside = _same_window(panels, points, outlines, known)
    black = (f"unexplored ({int((~known).sum()):,})", UNEXPLORED_BLACK, "o")
    _legend_below(panels[0], [*_known_entry(known, outside), black], columns=1 if outside else 2)
    for ax in panels[1:]:
        ax.tick_params(labelleft=False)
    _rasterise(panels, n_rows)
    return figure


def plot_proposal(step: Step, *, view: int = 0) -> Figure:
    """Draw a view of a proposal with all its clusters, the most distinct encircled, and return the figure.

    Outliers are small grey crosses and known rows light grey dots; the key gives the size of every cluster and how much
    of it its nearest neighbour shares. Where there is no structure beyond chance, the best split is drawn and told as
    such; where there perhaps is some, the title says so.

    >>> from imapce import Exploration
    >>> from imapce.datasets import make_synthetic
    >>> plot_proposal(Exploration(make_synthetic(100).X, random_state=0).propose(), view=0)
    <Figure size 840x540 with 1 Axes>
    """
    if not is_whole(view) or not 0 <= view < len(step.views):
        raise InvalidValueError(f"view must be from 0 to {len(step.views) - 1} in this step; got {view!r}.")
    seen = step.views[view]
    points, names = flat_points(seen.embedding), _axis_names(len(seen.components))
    known, clusters = ~seen.unexplored, seen.clusters
    outliers = ~known & (clusters < 0)
    none_shown = not len(seen.numbers)
    one_group = none_shown and step.structure is not None and not step.structure.is_taken
    ax = panel_on(None, 8.4, 5.4)
    cloud(ax, points, known, KNOWN_GREY, 1.5)
    entries: list[Entry] = []
    if one_group and best_split_in_words(step.structure):
        # Rows of no group of the split, few if any, stay crosses.
        entries = _best_split(ax, points, outliers, step.structure)
    cloud(ax, points, outliers, OTHER_GREY, 1.8, marker="x")
    for number, overlap in zip(seen.numbers.tolist(), seen.overlap.tolist(), strict=True):
        inside = clusters == number
        cloud(ax, points, inside, cluster_hue(number), 2.0)
        apart = overlap_in_words(overlap) or "the only one"
        most = "\nthe most distinct" if number in seen.most_distinct and len(seen.numbers) > 1 else ""
        entries.append((f"cluster {number}: {int(inside.sum()):,} rows\n{apart}{most}", cluster_hue(number), "o"))
    outlines = [encircle(ax, points, np.flatnonzero(clusters == number), number) for number in seen.most_distinct]
    if outliers.any():
        name = "one group" if one_group else "outliers"
        entries.append((f"{name}: {int(outliers.sum()):,} rows", OTHER_GREY, "x"))
    if none_shown:
        told = ": no structure beyond chance" if one_group else ": no cluster is large enough"
    else:
        told = "".join(f"\n{line}" for line in textwrap.wrap(caveat(step.structure), _TITLE_LETTERS))
    quiet_axes(ax, *names, title=f"Step {step.number}, view {view}{told}")
    outside = _same_window([ax], points, outlines, known)
    if known.any():
        entries.append((f"known: {int(known.sum()):,} rows{_out(outside)}", KNOWN_GREY, "o"))
    _legend(ax, entries, **BESIDE, labelspacing=0.8)
    _rasterise([ax], len(points))
    return root_figure(ax)


def _how_sure(step: AcceptedStep) -> str:
    """What the title adds where clusters that were taken automatically are not clearly some."""
    by_hand = all(cluster.chosen != "automatic" for cluster in step.clusters)
    if by_hand or step.structure is None or step.structure.verdict == "clear":
        return ""
    return ": perhaps groups" if step.structure.is_taken else ": groups by chance"


def _best_split(ax: Any, points: Points, left: Mask, structure: Any) -> list[Entry]:
    """Draw the groups of a split that is no more than chance, take them from the rows `left`, and name them."""
    labels = structure.candidate.labels
    names, counts = np.unique(labels[left & (labels >= 0)], return_counts=True)
    entries: list[Entry] = []
    for place, name in enumerate(names[np.argsort(-counts, kind="stable")].tolist()):
        inside = left & (labels == name)
        cloud(ax, points, inside, cluster_hue(place), 2.0)
        entries.append((f"best split: {int(inside.sum()):,} rows\nno more than chance", cluster_hue(place), "o"))
    left &= labels < 0
    return entries


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


def _checked(labels: ArrayLike, n_rows: int) -> ArrayLike:
    """Refuse labels that do not fit by the name the caller used."""
    read_labels(labels, "labels", n_rows, most=len(PALETTE))
    return labels


def flat_points(coordinates: Points) -> Points:
    """Give two coordinates to draw: the first two, of a view of one axis this one and the number of the row."""
    if coordinates.shape[1] == 1:
        return np.column_stack([coordinates[:, 0], np.arange(len(coordinates))])
    return coordinates[:, :2]


def _axis_names(n_axes: int, known: Sequence[str] = ()) -> tuple[str, str]:
    """Name the two axes that are drawn, given what is known."""
    names = axes_given(axis_names(n_axes), known, longest=14)
    more = f" (of {n_axes})" if n_axes > 2 else ""
    return f"{names[0]}{more}", "row" if n_axes == 1 else f"{names[1]}{more}"


def cloud(ax: Any, points: Points, rows: Mask, hue: str, layer: float, marker: str = "o") -> None:
    """Draw some rows in one colour, with the area and the opacity that all the points call for."""
    if not rows.any():
        return
    area, every_opacity = point_look(points)
    opacity = every_opacity[rows] if hue != KNOWN_GREY else np.maximum(every_opacity[rows], 0.5)
    # One number for all where they are equal: matplotlib then stamps one point instead of drawing each.
    alpha = float(opacity[0]) if np.ptp(opacity) == 0 else opacity
    cross = marker == "x"
    ax.scatter(
        *points[rows].T,
        color=hue,
        s=area * (0.8 if cross else 0.6),
        marker=marker,
        linewidths=0.7 if cross else 0,
        alpha=alpha,
        zorder=layer,
    )


def encircle(ax: Axes, points: Points, rows: NDArray[np.intp], number: int) -> Points:
    """Draw the ellipse of a cluster with its number on top, and give the outline."""
    members = points[rows]
    centre = members.mean(axis=0)
    deviation = members - centre
    variance, axes = np.linalg.eigh(deviation.T @ deviation / len(members))
    # A cluster without spread still gets a circle that can be seen.
    least = 0.012 * float(np.ptp(points, axis=0).max()) or 1.0
    radii = np.maximum(_ELLIPSE_SIGMAS * np.sqrt(np.maximum(variance, 0.0)), least)
    # Dark on white, so that the line is seen on rows of any colour.
    for hue, width in (("white", 3.6), (INK, 1.5)):
        ellipse = Ellipse(
            (float(centre[0]), float(centre[1])),
            float(2 * radii[1]),
            float(2 * radii[0]),
            angle=float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))),
            fill=False,
            edgecolor=hue,
            linewidth=width,
            zorder=3.0,
        )
        ax.add_patch(ellipse)
    turn = np.linspace(0.0, 2 * np.pi, 90)
    outline = centre + (np.stack([np.cos(turn), np.sin(turn)], axis=1) * radii) @ axes.T
    top = outline[np.argmax(outline[:, 1])]
    ax.annotate(
        str(number),
        (float(top[0]), float(top[1])),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=LABEL_SIZE,
        fontweight="bold",
        color=INK,
        zorder=4.0,
        path_effects=[withStroke(linewidth=3.0, foreground="white")],
    )
    return outline


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


def _rasterise(panels: list[Any], n_rows: int) -> None:
    """Keep vector files small: beyond 20,000 rows the points of a panel become one image."""
    for ax in panels:
        for artist in ax.collections:
            artist.set_rasterized(n_rows > RASTERISE_FROM)


def _known_entry(known: Mask, outside: int = 0) -> list[Entry]:
    return [(f"known ({int(known.sum()):,}{_out(outside)})", KNOWN_GREY, "o")] if known.any() else []


def _out(outside: int) -> str:
    return f", {outside:,} outside" if outside else ""


def _legend_below(ax: Any, entries: list[Entry], columns: int = 2) -> None:
    _legend(ax, entries, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=min(columns, len(entries)))


def _legend(ax: Any, entries: list[Entry], **place: Any) -> None:
    marks = [(name, mark(shape, hue, 6.5, markeredgewidth=1.2 * (shape == "x"))) for name, hue, shape in entries]
    draw_legend(ax, marks, handletextpad=0.2, columnspacing=1.0, **place)
