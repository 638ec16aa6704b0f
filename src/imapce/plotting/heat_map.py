"""All clusters of an exploration in one heat map: what every cluster has more or less of than all other rows.

>>> from imapce import Exploration
>>> from imapce.datasets import make_synthetic
>>> exploration = Exploration(make_synthetic(100).X, random_state=0).run(max_steps=1)
>>> len(plot_profiles(exploration.description()).axes)
2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from imapce.errors import InvalidValueError
from imapce.plotting.steps import cluster_hue
from imapce.plotting.style import INK, LABEL_SIZE, SOFT_INK, TICK_SIZE, blank_figure, shorten

if TYPE_CHECKING:
    from imapce.exploration.description import Description

# Blue for less and vermilion for more, which readers with any colour vision tell apart, and grey-white in between.
_DIVERGING = LinearSegmentedColormap.from_list(
    "imapce-diverging", ["#0B3C6F", "#2F7EBC", "#A9CFE8", "#F6F6F4", "#F6C6A3", "#DD7A3B", "#8F3403"]
)
MOST_SD = 3.0
_ROW_INCHES = 0.27
_WIDTH_INCHES = 9.2
# Beyond so many clusters the numbers in the cells would run into each other.
_MOST_WITH_NUMBERS = 26


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
    figure = blank_figure(_WIDTH_INCHES, 1.25 + _ROW_INCHES * n_features)
    ax: Any = figure.add_subplot()
    scale = Normalize(-MOST_SD, MOST_SD)
    ax.imshow(cells, cmap=_DIVERGING, norm=scale, aspect="auto", interpolation="nearest")
    if n_clusters <= _MOST_WITH_NUMBERS:
        small = TICK_SIZE - 1.5 if n_clusters > 12 else TICK_SIZE
        for row, column in np.ndindex(n_features, n_clusters):
            value = cells[row, column]
            ax.text(
                column,
                row,
                f"{value:+.1f}".replace("-", "−") if abs(value) >= 0.05 else "0",
                ha="center",
                va="center",
                fontsize=small,
                color="white" if abs(value) > 1.9 else INK if abs(value) >= 0.3 else SOFT_INK,
            )
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
                0.07 / (_ROW_INCHES * n_features),
                transform=ax.get_xaxis_transform(),
                facecolor=cluster_hue(number),
                clip_on=False,
            )
        )
    ax.set_xticks(np.arange(0.5, n_clusters - 1), minor=True)
    ax.set_yticks(np.arange(0.5, n_features - 1), minor=True)
    ax.grid(which="minor", color="white", linewidth=1.0)
    ax.tick_params(which="minor", length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(ScalarMappable(scale, _DIVERGING), ax=ax, location="bottom", aspect=50, shrink=0.6, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=TICK_SIZE, labelcolor=SOFT_INK, length=0)
    bar.set_ticks(
        [-3, -2, -1, 0, 1, 2, 3], labels=["−3 sd or less", "−2", "−1", "as others", "+1", "+2", "+3 sd or more"]
    )
    return figure
