"""The quiet look that all figures share, set on each artist and never through global rcParams.

>>> ax = panel_on(None, 7.2, 5.2)
>>> quiet_axes(ax, "imapce0", "imapce1", title="iris")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from imapce.common.words import given, shorten
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.plotting.figure import new_page

# The eight Okabe-Ito colours and four more, chosen so that the closest pair stays 17 CIELAB units apart for
# readers with deuteranopia, 19 with protanopia and 26 without either. The two that are pale on white come
# late, and the brown last because it stands for "other" when there are more categories than colours.
PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#E69F00",
    "#56B4E9",
    "#CC79A7",
    "#000000",
    "#882255",
    "#332288",
    "#9BE564",
    "#F0E442",
    "#5A2D00",
)
# Of clusters there are often more than twelve. Theirs are the palette without black, which stands for "unexplored", and
# thirteen more, each in turn the colour of OKLCH farthest from all before it, from the greys and from light and dark
# ground. The closest two of the 24 are 15 CIELAB units apart, 11 with deuteranopia, 12 with protanopia: numbers stand
# beside them.
CLUSTER_HUES = (
    *(hue for hue in PALETTE if hue != "#000000"),
    "#9DA255",
    "#77DBF4",
    "#4FED8A",
    "#2B5BD1",
    "#78597F",
    "#E36270",
    "#6990E2",
    "#AC502E",
    "#D6963B",
    "#D1A8CE",
    "#8A5558",
    "#C67DC4",
    "#C4CA3A",
)
# Labels have twenty: the palette, then further ones of clusters. The brown is the last here too.
LABEL_HUES = (*PALETTE[:-1], *CLUSTER_HUES[11:19], PALETTE[-1])
KNOWN_GREY = "#D6D6D6"
MISSING_GREY = "#A8A8A8"
INK = "#24292F"
SOFT_INK = "#6A737D"
HAIRLINE = "#D0D7DE"
GRID = "#EEF1F4"

TITLE_SIZE = 11.5
LABEL_SIZE = 10.0
TICK_SIZE = 9.0


def continuous_colormap() -> ListedColormap:
    """Viridis without its last yellow, which cannot be seen on white paper.

    >>> continuous_colormap().N
    256
    """
    full = matplotlib.colormaps["viridis"]
    return ListedColormap(full(np.linspace(0.0, 0.93, 256)), name="imapce-viridis")


def blank_figure(width: float, height: float) -> Figure:
    """Give an empty white figure of so many inches."""
    figure = new_page(figsize=(width, height), layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)  # type: ignore[union-attr, call-arg]
    return figure


def plain_figure(width: float, height: float) -> Figure:
    """Give an empty white figure of so many inches whose parts are placed by who draws them."""
    return new_page(figsize=(width, height), facecolor="white")


def root_figure(ax: Axes) -> Figure:
    """Give the page an axes is drawn on, also when the axes sits in a sub-figure."""
    figure: Any = ax.figure
    while not isinstance(figure, Figure):
        figure = figure.figure
    return figure


def panel_on(ax: Any, width: float, height: float, *, three_d: bool = False) -> Any:
    """Give the axes to draw on: `ax`, refused where it is none or has another number of dimensions, or that of a new
    figure of so many inches; the layout makes room for legends.
    """
    if ax is None:
        return blank_figure(width, height).add_subplot(projection="3d" if three_d else None)
    if not isinstance(ax, Axes):
        raise InvalidTypeError(
            f"ax must be a matplotlib Axes, got {type(ax).__name__}; leave it out to have a figure made."
        )
    if (ax.name == "3d") != three_d:
        wanted = 'a 3-D axes, made with projection="3d"' if three_d else "a flat 2-D axes"
        raise InvalidValueError(f"ax must be {wanted}, got a {ax.name} one; leave it out to have the right one made.")
    return ax


# A legend to the right of its axes.
BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0), "borderaxespad": 0.0}


def draw_legend(ax: Any, entries: Sequence[tuple[str, Any]], **place: Any) -> Any:
    """Draw a quiet legend of names and their marks, and give it."""
    names, handles = [name for name, _ in entries], [handle for _, handle in entries]
    return ax.legend(handles, names, frameon=False, fontsize=LABEL_SIZE, labelcolor=INK, **place)


def mark(shape: str, hue: str, size: float = 7.0, **line: Any) -> Line2D:
    """A mark for a legend; with a linestyle, on a line."""
    return Line2D([], [], marker=shape, color=hue, markersize=size, **{"linestyle": "", "markeredgewidth": 0, **line})


def write_title(ax: Any, text: str, *, size: float = TITLE_SIZE, pad: float | None = 10) -> None:
    """Write a bold title at the left, shown as written."""
    # A place of its own, since looking for one above all that is drawn takes a tenth of a figure's time.
    ax.set_title(text, y=1.0, fontsize=size, color=INK, fontweight="bold", loc="left", pad=pad, parse_math=False)


def write_heading(ax: Any, title: str | None, subtitle: str | None, *, letters: int = 84) -> None:
    """Write a title and a smaller line below it, each in at most so many letters, above an axes."""
    if title:
        write_title(ax, "\n".join(shorten(line, letters) for line in title.splitlines()), pad=24 if subtitle else 10)
    if subtitle:
        place = {"xy": (0.0, 1.0), "xycoords": "axes fraction", "xytext": (0, 9), "textcoords": "offset points"}
        told = shorten(subtitle, int(1.2 * letters))
        ax.annotate(told, **place, fontsize=TICK_SIZE, color=SOFT_INK, parse_math=False, annotation_clip=False)


def quiet_axes(
    ax: Any, x_name: str, y_name: str, *, title: str | None = None, subtitle: str | None = None, letters: int = 84
) -> None:
    """Give an axes hairline spines, a pale grid below the data, and names that are shown as written."""
    ax.set_facecolor("white")
    ax.set_axisbelow(True)
    ax.grid(True, color=GRID, linewidth=0.8)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(HAIRLINE)
    ax.tick_params(labelsize=TICK_SIZE, labelcolor=SOFT_INK, color=HAIRLINE, length=3)
    # parse_math=False: a "$" in a column name is a dollar sign, and half a formula must not break the page.
    ax.set_xlabel(x_name, fontsize=LABEL_SIZE, color=INK, parse_math=False)
    ax.set_ylabel(y_name, fontsize=LABEL_SIZE, color=INK, parse_math=False)
    write_heading(ax, title, subtitle, letters=letters)


def axes_given(axes: Sequence[str], known: Sequence[str], longest: int = 28) -> list[str]:
    """Name axes with what they are given, as many of the known as fit in so many letters, at least one.

    >>> axes_given(["imapce0"], ["make"]), axes_given(["imapce0"], ["make", "year of registration", "country"])
    (['imapce0 given make'], ['imapce0 given make, year of registration, and 1 more'])
    """
    names = [shorten(name, longest) for name in known]
    most = max(1, sum(len(", ".join(names[: place + 1])) <= longest for place in range(len(names))))
    return [given(axis, names, most) for axis in axes]


def follow_known(low: Any, high: Any, least: Any, most: Any) -> tuple[Any, Any]:
    """Widen a window, axis by axis, towards known rows between `least` and `most`, by half its width and no farther.

    Known rows can lie so far away that the others would shrink to a spot.

    >>> follow_known(np.zeros(2), np.ones(2), np.array([-0.25, -9.0]), np.ones(2))[0]
    array([-0.25, -0.5 ])
    """
    room = np.where(high > low, high - low, 1.0)
    return (
        np.maximum(low - 0.5 * room, np.minimum(low, least)),
        np.minimum(high + 0.5 * room, np.maximum(high, most)),
    )
