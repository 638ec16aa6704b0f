"""One figure of a whole exploration: how large each taken cluster is and, with labels, what it is made of.

>>> from imapce import Exploration
>>> plot_overview(Exploration(np.random.default_rng(0).normal(size=(50, 4))))
<Figure size 760x240 with 1 Axes>
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from imapce.plotting.key import column_name
from imapce.plotting.labels import DrawnLabels
from imapce.plotting.steps import OTHER_GREY, cluster_hue
from imapce.plotting.style import (
    HAIRLINE,
    INK,
    KNOWN_GREY,
    LABEL_SIZE,
    SOFT_INK,
    TICK_SIZE,
    TITLE_SIZE,
    blank_figure,
    shorten,
)

if TYPE_CHECKING:
    from imapce.exploration.session import Exploration

MOST_LABELS = 15
_ROW_INCHES = 0.3
_MISSING_NAME = "missing"


def plot_overview(
    exploration: Exploration, *, labels: ArrayLike | None = None, label_name: str | None = None
) -> Figure:
    """Draw the sizes of all taken clusters as bars and, with `labels`, the labels of their rows as a heat-map.

    Clusters have the number they have in `exploration.labels_` and the colour of their step's figure; rows that
    were not taken, and those known at the start, follow in grey. In the heat-map a cell gives the number of rows
    and is the darker the larger its share of the cluster. Labels on a scale (numbers that are no classes) have
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
        read = DrawnLabels.read(labels, "labels", len(exploration.row_ids), most=MOST_LABELS)
    table = None if read is None or read.continuous else label_counts(read, [rows for _, _, rows in groups])
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


def label_counts(labels: DrawnLabels, groups: list[NDArray[np.intp]]) -> tuple[list[str], NDArray[np.intp]]:
    """Count the rows of every label in every group; rows without a label are counted last.

    >>> label_counts(DrawnLabels.read(["a", "b", None], "labels", 3, most=15), [np.array([0, 2])])
    (['a', 'b', 'missing'], array([[1, 0, 1]]))
    """
    n_names = len(labels.names)
    # Shifted by one so that the rows without a label, which have code -1, can be counted too.
    counts = np.array([np.bincount(labels.codes[rows] + 1, minlength=n_names + 1) for rows in groups])
    counts = np.roll(counts.reshape(len(groups), n_names + 1), -1, axis=1)
    if labels.missing.any():
        return [*labels.names, _MISSING_NAME], counts
    return list(labels.names), counts[:, :n_names]


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
    _title(ax, "Rows")


def _draw_heat_map(ax: Any, counts: NDArray[np.intp], names: list[str], label_name: str) -> None:
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    # From white to a blue on which white figures can be read.
    blues = ListedColormap(colormaps["Blues"](np.linspace(0.0, 0.9, 256)), name="imapce-blues")
    ax.imshow(shares, cmap=blues, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    crowded = counts.shape[1] > 10
    for row, column in zip(*np.nonzero(counts), strict=True):
        ax.text(
            column,
            row,
            f"{counts[row, column]:,}",
            ha="center",
            va="center",
            fontsize=TICK_SIZE - 1.5 if crowded else TICK_SIZE,
            color="white" if shares[row, column] > 0.5 else INK,
        )
    ax.tick_params(axis="y", labelleft=False, length=0)
    ax.tick_params(axis="x", length=0)
    ax.set_xticks(range(len(names)))
    ax.set_xticklabels([shorten(name, 18) for name in names], rotation=40, ha="right", rotation_mode="anchor")
    for tick in ax.get_xticklabels():
        tick.set(fontsize=TICK_SIZE, color=SOFT_INK, parse_math=False)
    ax.set_xticks(np.arange(0.5, len(names) - 1), minor=True)
    ax.set_yticks(np.arange(0.5, len(counts) - 1), minor=True)
    ax.grid(which="minor", color=HAIRLINE, linewidth=0.6)
    ax.tick_params(which="minor", length=0)
    for spine in ax.spines.values():
        spine.set_color(HAIRLINE)
    _title(ax, f"Rows by {shorten(label_name)}")


def _title(ax: Any, text: str) -> None:
    ax.set_title(text, fontsize=TITLE_SIZE, color=INK, fontweight="bold", loc="left", pad=10, parse_math=False)
