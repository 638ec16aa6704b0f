"""Figures of a whole exploration: how large each taken cluster is, of which labels it is made, what sets it apart.

>>> from imapce import Exploration
>>> plot_overview(Exploration(np.random.default_rng(0).normal(size=(50, 4))))
<Figure size 760x240 with 1 Axes>
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from imapce.common.words import shorten
from imapce.errors import InvalidValueError
from imapce.plotting.cloud import Group, draw_groups
from imapce.plotting.key import Key, codes_of, column_name, missing_rows, read_labels
from imapce.plotting.scatter import draw_rows
from imapce.plotting.steps import OTHER_GREY, cluster_hue, draw_entries, flat_points, wrapped_axes, write_number
from imapce.plotting.style import (
    BESIDE,
    HAIRLINE,
    INK,
    KNOWN_GREY,
    LABEL_SIZE,
    SOFT_INK,
    TICK_SIZE,
    blank_figure,
    quiet_axes,
    write_title,
)
from imapce.tables.columns import Column

if TYPE_CHECKING:
    from imapce.exploration.description import Description
    from imapce.exploration.session import Exploration
    from imapce.exploration.steps import View

MOST_LABELS = 15
_ROW_INCHES = 0.3
# Blue for less and vermilion for more, which readers with any colour vision tell apart, and grey-white in between.
_DIVERGING = LinearSegmentedColormap.from_list(
    "imapce-diverging", ["#0B3C6F", "#2F7EBC", "#A9CFE8", "#F6F6F4", "#F6C6A3", "#DD7A3B", "#8F3403"]
)
MOST_SD = 3.0
_FEATURE_INCHES = 0.27
_PROFILES_INCHES = 9.2
# Beyond so many clusters the numbers in the cells would run into each other.
_MOST_WITH_NUMBERS = 26
_MOST_IN_A_COLUMN = 20
_ACROSS = 2


def plot_overview(
    exploration: Exploration, *, labels: ArrayLike | Column | None = None, label_name: str | None = None
) -> Figure:
    """Draw the sizes of all taken clusters as bars and, with `labels`, the labels of their rows as a heat-map.

    Clusters have the number they have in `exploration.labels_` and the colour of their step's figure; rows that
    were not taken, and those known at the start, follow in grey. In the heat-map a cell gives the number of rows
    and is the darker the larger its share of the cluster. Labels on a scale have
    no counts and are left out.

    >>> from imapce import Exploration
    >>> from imapce.datasets import make_synthetic
    >>> data = make_synthetic(100)
    >>> exploration = Exploration(data.X, random_state=0)
    >>> _ = exploration.accept()
    >>> len(plot_overview(exploration, labels=data.labels["batch"]).axes)
    2
    """
    groups = _groups(exploration)
    read = None
    if labels is not None:
        read = read_labels(labels, "labels", len(exploration.row_ids), most=MOST_LABELS)
    table = None if read is None or read.is_number else label_counts(read, [rows for _, _, rows in groups])
    height = 1.1 + _ROW_INCHES * len(groups) + (1.2 if table is not None else 0.0)
    figure = blank_figure(7.6 if table is None else 10.2, max(height, 2.4))
    grid = figure.add_gridspec(1, 1 if table is None else 2, width_ratios=None if table is None else (1.0, 1.5))
    ax: Any = figure.add_subplot(grid[0, 0])
    _draw_bars(ax, groups)
    if table is not None:
        names, counts = table
        beside: Any = figure.add_subplot(grid[0, 1])
        _draw_heat_map(beside, counts, names, label_name or column_name(labels) or "label")
    return figure


def plot_all_clusters(
    exploration: Exploration, view: View, *, labels: Sequence[Column] = (), title: str = "All clusters in one view"
) -> Figure:
    """Draw all rows in a view such as `exploration.overview()`, with the clusters in their colours and numbers.

    Every column of `labels` has a panel of its own beside it. Rows in no cluster are grey.

    >>> from imapce import Exploration
    >>> rng = np.random.default_rng(0)
    >>> exploration = Exploration(rng.normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]).run()
    >>> plot_all_clusters(exploration, exploration.overview())
    <Figure size 760x560 with 1 Axes>
    """
    points, known = flat_points(view.embedding), ~view.unexplored
    names = wrapped_axes(exploration.axes_in_words(view))
    n_panels = 1 + len(labels)
    across = min(_ACROSS, n_panels)
    down = -(-n_panels // across)
    figure = blank_figure(*((7.6, 5.6) if n_panels == 1 else (5.4 * across, 4.5 * down)))
    ax: Any = figure.add_subplot(down, across, 1)
    rest = ~known
    groups, entries = [], []
    for cluster in exploration.clusters_:
        inside = np.zeros(len(points), dtype=bool)
        inside[cluster.rows] = True
        rest &= ~inside
        hue = cluster_hue(cluster.number)
        groups.append(Group(inside, hue, size=1.0 if n_panels == 1 else 0.6))
        named = f": {shorten(cluster.name, 18)}" if cluster.name else ""
        entries.append((f"{cluster.number}{named} ({cluster.size:,})", hue, "o"))
    draw_groups(ax, points, [Group(known, KNOWN_GREY, 1.5), Group(rest, OTHER_GREY, 1.8), *groups])
    for cluster in exploration.clusters_:
        write_number(ax, points[cluster.rows], cluster.number)
    entries += [(f"in none ({int(rest.sum()):,})", OTHER_GREY, "o")] if rest.any() else []
    entries += [(f"known ({int(known.sum()):,})", KNOWN_GREY, "o")] if known.any() else []
    quiet_axes(ax, *names, title=title, subtitle=exploration.known_in_a_line, letters=60 if n_panels == 1 else 36)
    draw_entries(ax, entries, **BESIDE, ncols=-(-len(entries) // _MOST_IN_A_COLUMN))
    for place, column in enumerate(labels, start=2):
        panel: Any = figure.add_subplot(down, across, place)
        key = Key.read(column, None, column.name, None, len(points))
        draw_rows(panel, points, key, known)
        quiet_axes(panel, *names, title=shorten(column.name or "labels", 30))
        key.draw(panel, known)
    return figure


def label_counts(labels: Column, groups: list[NDArray[np.intp]]) -> tuple[list[str], NDArray[np.intp]]:
    """Count the rows of every label in every group; rows without a label are counted last.

    >>> label_counts(read_labels(["a", "b", None], "labels", 3, most=15), [np.array([0, 2])])
    (['a', 'b', 'missing'], array([[1, 0, 1]]))
    """
    n_names = len(labels.levels)
    # Shifted by one so that the rows without a label, which have code -1, can be counted too.
    counts = np.array([np.bincount(codes_of(labels)[rows] + 1, minlength=n_names + 1) for rows in groups])
    counts = np.roll(counts.reshape(len(groups), n_names + 1), -1, axis=1)
    if missing_rows(labels).any():
        return [*labels.levels, "missing"], counts
    return list(labels.levels), counts[:, :n_names]


def _groups(exploration: Exploration) -> list[tuple[str, str, NDArray[np.intp]]]:
    """Give name, colour and rows of every bar."""
    groups = []
    for cluster, step in zip(exploration.clusters_, exploration.origins_, strict=True):
        origin = "regrouped" if step is None else f"step {step}"
        groups.append((f"cluster {cluster.number} ({origin})", cluster_hue(cluster.number), cluster.rows))
    left = np.flatnonzero(~exploration.known)
    start = np.flatnonzero(exploration.known & (exploration.labels_ < 0))
    if len(left):
        groups.append(("outliers" if exploration.done else "not taken", OTHER_GREY, left))
    if len(start):
        groups.append(("known at the start", KNOWN_GREY, start))
    return groups


def _draw_bars(ax: Any, groups: list[tuple[str, str, NDArray[np.intp]]]) -> None:
    sizes = [len(rows) for _, _, rows in groups]
    places = np.arange(len(groups))
    bars = ax.barh(places, sizes, color=[hue for _, hue, _ in groups], height=0.72)
    ax.bar_label(bars, [f"{size:,}" for size in sizes], padding=4, fontsize=TICK_SIZE, color=INK)
    ax.set_yticks(places, [name for name, _, _ in groups], fontsize=LABEL_SIZE, color=INK)
    # Downwards, in the order of their numbers; room on the right for the number of the longest bar.
    ax.set_ylim(len(groups) - 0.5, -0.5)
    ax.set_xlim(0, 1.18 * max(sizes))
    ax.tick_params(axis="y", length=0)
    ax.set_xticks([])
    for side, spine in ax.spines.items():
        spine.set_visible(side == "left")
        spine.set_color(HAIRLINE)
    write_title(ax, "Rows")


def _draw_heat_map(ax: Any, counts: NDArray[np.intp], names: list[str], label_name: str) -> None:
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    # From white to a blue on which white figures can be read.
    blues = ListedColormap(colormaps["Blues"](np.linspace(0.0, 0.9, 256)), name="imapce-blues")
    ax.imshow(shares, cmap=blues, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    texts = {
        (row, column): (f"{counts[row, column]:,}", "white" if shares[row, column] > 0.5 else INK)
        for row, column in zip(*np.nonzero(counts), strict=True)
    }
    _fill_cells(ax, counts.shape, texts, crowded=counts.shape[1] > 10, line=(HAIRLINE, 0.6))
    ax.tick_params(axis="y", labelleft=False, length=0)
    ax.tick_params(axis="x", length=0)
    ax.set_xticks(range(len(names)))
    ax.set_xticklabels([shorten(name, 18) for name in names], rotation=40, ha="right", rotation_mode="anchor")
    for tick in ax.get_xticklabels():
        tick.set(fontsize=TICK_SIZE, color=SOFT_INK, parse_math=False)
    for spine in ax.spines.values():
        spine.set_color(HAIRLINE)
    write_title(ax, f"Rows by {shorten(label_name)}")


def _fill_cells(
    ax: Any, shape: tuple[int, ...], texts: dict[Any, tuple[str, str]], *, crowded: bool, line: tuple[str, float]
) -> None:
    """Write texts in their colours into the cells of a heat map and draw lines between the cells."""
    size = TICK_SIZE - 1.5 if crowded else TICK_SIZE
    for (row, column), (text, hue) in texts.items():
        ax.text(column, row, text, ha="center", va="center", fontsize=size, color=hue)
    ax.set_xticks(np.arange(0.5, shape[1] - 1), minor=True)
    ax.set_yticks(np.arange(0.5, shape[0] - 1), minor=True)
    ax.grid(which="minor", color=line[0], linewidth=line[1])
    ax.tick_params(which="minor", length=0)


def plot_profiles(description: Description) -> Figure:
    """Draw features in rows and clusters in columns, each cell the difference to all other rows.

    The difference is in standard deviations of all rows, of a category's level that of its share. Colours end at three
    standard deviations, the numbers do not.

    >>> from imapce.exploration.description import Description, Profile
    >>> one = Profile(size=5, others=5)
    >>> plot_profiles(Description((one,), None, ("size",), (1.0,), ((2.0,),), ((1.5,),))).axes[0].texts[0].get_text()
    '+1.5'
    """
    if not description.features:
        raise InvalidValueError(
            "description must have at least one cluster and one feature that tells it apart, got none; accept a step."
        )
    cells = np.array(description.differences).T
    n_features, n_clusters = cells.shape
    figure = blank_figure(_PROFILES_INCHES, 1.25 + _FEATURE_INCHES * n_features)
    ax: Any = figure.add_subplot()
    scale = Normalize(-MOST_SD, MOST_SD)
    ax.imshow(cells, cmap=_DIVERGING, norm=scale, aspect="auto", interpolation="nearest")
    texts = {}
    for row, column in np.ndindex(n_features, n_clusters if n_clusters <= _MOST_WITH_NUMBERS else 0):
        value = cells[row, column]
        # Where no cell of a cluster is observed there is nothing to compare.
        text = "–" if np.isnan(value) else f"{value:+.1f}".replace("-", "−") if abs(value) >= 0.05 else "0"
        texts[row, column] = text, "white" if abs(value) > 1.9 else INK if abs(value) >= 0.3 else SOFT_INK
    _fill_cells(ax, cells.shape, texts, crowded=n_clusters > 12, line=("white", 1.0))
    ax.set_yticks(range(n_features), [shorten(name, 34) for name in description.features])
    ax.set_xticks(range(n_clusters), [str(number) for number in description.numbers])
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel("cluster", fontsize=LABEL_SIZE, color=INK, loc="left")
    ax.tick_params(length=0, labelsize=TICK_SIZE, labelcolor=INK)
    ax.tick_params(axis="x", pad=9)
    for tick in ax.get_yticklabels():
        tick.set_parse_math(False)
    # The colour of every cluster above its column, as in all other figures.
    for place, number in enumerate(description.numbers):
        ax.add_patch(
            Rectangle(
                (place - 0.42, 1.0),
                0.84,
                0.07 / (_FEATURE_INCHES * n_features),
                transform=ax.get_xaxis_transform(),
                facecolor=cluster_hue(number),
                clip_on=False,
            )
        )
    for spine in ax.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(ScalarMappable(scale, _DIVERGING), ax=ax, location="bottom", aspect=50, shrink=0.6, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=TICK_SIZE, labelcolor=SOFT_INK, length=0)
    bar.set_ticks(
        [-3, -2, -1, 0, 1, 2, 3], labels=["−3 sd or less", "−2", "−1", "as others", "+1", "+2", "+3 sd or more"]
    )
    return figure
