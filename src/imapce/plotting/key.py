"""The key of a scatter plot: what each colour and marker means, beside the data and never on top of it.

>>> key = Key.read(["a", "b", "a"], None, "species", None, 3)
>>> key.color.names, key.row_markers(3)
(['a', 'b'], array([0, 0, 0]))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgba
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from imapce.errors import InvalidValueError
from imapce.plotting.labels import MISSING, DrawnLabels
from imapce.plotting.style import (
    HAIRLINE,
    INK,
    KNOWN_GREY,
    LABEL_SIZE,
    MISSING_GREY,
    PALETTE,
    SOFT_INK,
    TICK_SIZE,
    continuous_colormap,
    shorten,
)

# Filled shapes only: an outline marker such as "x" looks darker than a filled one of the same colour.
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
_ROW_INCHES = 0.2
_HEADING = "heading"


@dataclass(frozen=True)
class Key:
    """How rows are drawn: the labels behind the colours and the markers, and the names of both."""

    color: DrawnLabels | None
    marker: DrawnLabels | None
    color_name: str | None
    marker_name: str | None

    @classmethod
    def read(
        cls,
        color: ArrayLike | None,
        marker: ArrayLike | None,
        color_name: str | None,
        marker_name: str | None,
        n_rows: int,
    ) -> Key:
        """Read both label sets; names default to the names that pandas and polars columns carry."""
        colors = None if color is None else DrawnLabels.read(color, "color", n_rows, most=len(PALETTE))
        shapes = None if marker is None else DrawnLabels.read(marker, "marker", n_rows, most=len(MARKERS))
        if shapes is not None and shapes.continuous:
            raise InvalidValueError(
                "marker must hold categories, got numbers of too many different values; pass them as color, or cut "
                "them into classes first."
            )
        return cls(colors, shapes, color_name or column_name(color), marker_name or column_name(marker))

    def normalize(self) -> Normalize:
        """Give the range of a continuous colour, which is that of all rows, known ones included."""
        assert self.color is not None
        assert self.color.values is not None
        finite = self.color.values[~np.isnan(self.color.values)]
        return Normalize(float(finite.min()), float(finite.max()))

    def row_colors(self, n_rows: int) -> NDArray[np.float64]:
        """Give one RGBA colour per row, as if no row was known."""
        if self.color is None:
            return np.tile(to_rgba(PALETTE[0]), (n_rows, 1))
        if self.color.values is not None:
            colors = continuous_colormap()(self.normalize()(self.color.values).filled(0.0))
        else:
            colors = np.array([to_rgba(hue) for hue in PALETTE])[self.color.codes]
        colors[self.color.missing] = to_rgba(MISSING_GREY)
        return colors

    def row_markers(self, n_rows: int) -> NDArray[np.intp]:
        """Give the position in MARKERS of each row; a row without a marker label is a plain dot."""
        if self.marker is None:
            return np.zeros(n_rows, dtype=np.intp)
        # Codes start at 1 where a dot already means "missing".
        shift = int(self.marker.missing.any() and len(self.marker.names) < len(MARKERS))
        return np.where(self.marker.codes == MISSING, 0, self.marker.codes + shift)

    def draw(self, ax: Any, known: NDArray[np.bool_]) -> None:
        """Draw the legend and the colour bar to the right of an axes; the layout makes room for them."""
        sections = [rows for rows in (self._color_rows(known), self._marker_rows()) if rows]
        if known.any():
            grey = [("known rows", _dot("o", KNOWN_GREY))]
            sections = [sections[0] + grey, *sections[1:]] if sections else [grey]
        if self.color is not None and self.color.continuous:
            self._draw_color_bar(ax, shared=bool(sections))
        if sections:
            _draw_legend(ax, sections, room=0.5 if self.color is not None and self.color.continuous else 1.0)

    def _color_rows(self, known: NDArray[np.bool_]) -> list[tuple[str, Any]]:
        if self.color is None:
            return []
        # A category whose rows are all known is drawn in grey only: its colour is nowhere to be found.
        drawn = set(self.color.codes[~known].tolist())
        rows: list[tuple[str, Any]] = [
            (name, _dot("o", PALETTE[code])) for code, name in enumerate(self.color.names) if code in drawn
        ]
        if (self.color.missing & ~known).any():
            rows.append(("missing", _dot("o", MISSING_GREY)))
        if rows and self.color_name and not self.color.continuous:
            rows.insert(0, (self.color_name, _HEADING))
        return rows

    def _marker_rows(self) -> list[tuple[str, Any]]:
        if self.marker is None:
            return []
        shapes = self.row_markers(len(self.marker.codes))
        rows: list[tuple[str, Any]] = []
        for code, name in enumerate(self.marker.names):
            shape = int(shapes[np.argmax(self.marker.codes == code)])
            rows.append((name, _dot(MARKERS[shape], SOFT_INK)))
        if self.marker.missing.any():
            rows.append(("missing", _dot(MARKERS[0], SOFT_INK)))
        if self.marker_name:
            rows.insert(0, (self.marker_name, _HEADING))
        return rows

    def _draw_color_bar(self, ax: Any, *, shared: bool) -> None:
        """Draw the bar in the lower half when a legend takes the upper one."""
        place = ax.inset_axes((_beside(ax) + 0.02, 0.0, 0.04, 0.42 if shared else 0.9))
        bar = ax.figure.colorbar(ScalarMappable(self.normalize(), continuous_colormap()), cax=place)
        bar.outline.set_visible(False)
        place.tick_params(labelsize=TICK_SIZE, labelcolor=SOFT_INK, color=HAIRLINE, length=3)
        if self.color_name:
            place.set_title(
                shorten(self.color_name),
                fontsize=LABEL_SIZE,
                color=INK,
                loc="left",
                fontweight="bold",
                parse_math=False,
            )


def column_name(labels: ArrayLike | None) -> str | None:
    """The name that a pandas or polars column carries, if it has one.

    >>> column_name([1, 2, 3]) is None
    True
    """
    name = getattr(labels, "name", None)
    return name if isinstance(name, str) and name else None


def _dot(shape: str, hue: str) -> Line2D:
    return Line2D([], [], linestyle="", marker=shape, markersize=7, color=hue, markeredgewidth=0)


def _draw_legend(ax: Any, sections: list[list[tuple[str, Any]]], *, room: float) -> None:
    """Draw the sections below each other, or side by side when they are taller than the axes."""
    blank = ("", _HEADING)
    fits = max(4, int(ax.figure.get_size_inches()[1] * 0.86 * room / _ROW_INCHES)) if _is_page(ax) else 24
    stacked = [row for number, rows in enumerate(sections) for row in ([blank] if number else []) + rows]
    columns = 1
    if len(stacked) > fits and len(sections) > 1:
        tallest = max(map(len, sections))
        stacked = [row for rows in sections for row in rows + [blank] * (tallest - len(rows))]
        columns = len(sections)
    elif len(stacked) > fits:
        columns = -(-len(stacked) // fits)
    nothing = Line2D([], [], linestyle="")
    legend = ax.legend(
        [nothing if handle is _HEADING else handle for _, handle in stacked],
        ["label"] * len(stacked),
        loc="upper left",
        bbox_to_anchor=(_beside(ax), 1.0),
        borderaxespad=0.0,
        frameon=False,
        fontsize=LABEL_SIZE,
        labelcolor=INK,
        ncols=columns,
        handletextpad=0.3,
        columnspacing=1.2,
    )
    # Names are set afterwards because a legend leaves out names that begin with an underscore.
    for text, (name, handle) in zip(legend.get_texts(), stacked, strict=True):
        text.set_parse_math(False)
        text.set_text(shorten(name) if name else "")
        if handle is _HEADING:
            text.set_fontweight("bold")


def _beside(ax: Any) -> float:
    """Give where the key begins, in widths of the axes; the name of a third axis stands in between."""
    return 1.12 if ax.name == "3d" else 1.02


def _is_page(ax: Any) -> bool:
    return hasattr(ax.figure, "get_size_inches")
