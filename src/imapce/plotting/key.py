"""The key of a scatter plot: what each colour and marker means, beside the data and never on top of it.

>>> key = Key.read(["a", "b", "a"], None, "species", None, 3)
>>> key.color.names, key.row_markers(3)
(['a', 'b'], array([0, 0, 0]))
"""

from __future__ import annotations

import numbers
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgba
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from imapce.common.checks import is_missing
from imapce.errors import InvalidTypeError, InvalidValueError
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
from imapce.tables.source import Column

# Filled shapes only: an outline marker such as "x" looks darker than a filled one of the same colour.
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
MISSING = -1
# Numbers of more different values, or with fewer rows for each, are a scale: the rule of Labels(y).
MOST_CLASSES, ROWS_PER_CLASS = 20, 5
LOOKED_AT_FIRST = 5000
_ROW_INCHES = 0.2
_HEADING = "heading"


def are_classes(values: NDArray[np.float64]) -> bool:
    """Whether numbers, of which some may be missing, are classes rather than a scale.

    >>> are_classes(np.arange(300) % 15), are_classes(np.arange(300.0))
    (True, False)
    """
    present = values[np.isfinite(values)]
    most = min(MOST_CLASSES, max(2, len(present) // ROWS_PER_CLASS))
    # A few rows tell it of most measurements; sorting a million takes 100 ms.
    return len(np.unique(present[:LOOKED_AT_FIRST])) <= most and len(np.unique(present)) <= most


@dataclass(frozen=True)
class DrawnLabels:
    """One label per row as it is drawn: either `values` on a scale (then `names` is empty) or `codes` into `names`.

    `codes` holds `MISSING` where a row has no label; `values` holds NaN there.
    """

    names: list[str]
    codes: NDArray[np.intp]
    values: NDArray[np.float64] | None

    @property
    def continuous(self) -> bool:
        """Whether the labels are numbers on a scale rather than categories."""
        return self.values is not None

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which rows have no label."""
        return np.isnan(self.values) if self.values is not None else self.codes == MISSING

    def column(self, name: str) -> Column:
        """The same as a column that can be described or hovered."""
        if self.values is not None:
            return Column(name, values=self.values)
        return Column(name, codes=self.codes, levels=tuple(self.names))

    @classmethod
    def read(cls, labels: ArrayLike, argument: str, n_rows: int, *, most: int) -> DrawnLabels:
        """Read labels of any kind; beyond `most` categories the largest keep their name, the rest is 'other'.

        Numbers are categories where they are classes as in Labels(y); on a scale an infinite value counts as missing.

        >>> DrawnLabels.read(["a", "b", "b", "c"], "color", 4, most=2).names
        ['b', 'other (2 more)']
        """
        column = _one_column(labels, argument, n_rows)
        absent = np.zeros(n_rows, dtype=bool)
        # Text is never missing, and a page reads the same labels for every figure.
        if not set(map(type, column)) <= {str, int, bool}:
            absent = np.fromiter((is_missing(value) for value in column), dtype=bool, count=n_rows)
        kinds = set(map(type, column[~absent]))
        numeric = all(issubclass(kind, numbers.Real) and not issubclass(kind, bool | np.bool_) for kind in kinds)
        for kind in kinds:
            if kind.__hash__ is None:
                raise InvalidTypeError(
                    f"{argument} must hold texts, numbers or dates; got values of type {kind.__name__}."
                )
        # A count before any sorting: labels of mixed kinds can be counted but not ordered.
        counts = Counter(column[~absent].tolist())
        if numeric and counts:
            values = np.full(n_rows, np.nan)
            values[~absent] = column[~absent].astype(float)
            if not are_classes(values):
                values[~np.isfinite(values)] = np.nan
                return cls([], np.full(n_rows, MISSING, dtype=np.intp), values)
        ordered = sorted(counts) if numeric else sorted(counts, key=lambda label: (str(label), repr(label)))
        names = [_label_name(label) for label in ordered]
        if len(ordered) > most:
            kept = set(sorted(ordered, key=lambda label: -counts[label])[: most - 1])
            names = [_label_name(label) for label in ordered if label in kept]
            names.append(f"other ({len(ordered) - len(kept)} more)")
            ordered = [label for label in ordered if label in kept]
        position = {label: code for code, label in enumerate(ordered)}
        codes = np.full(n_rows, MISSING, dtype=np.intp)
        lookup = {label: position.get(label, len(ordered)) for label in counts}
        codes[~absent] = list(map(lookup.__getitem__, column[~absent].tolist()))
        return cls(names, codes, None)


def _one_column(labels: ArrayLike, argument: str, n_rows: int) -> NDArray[np.object_]:
    """Give the labels as one Python object per row, or say what is wrong with their shape."""
    if isinstance(labels, str) or not hasattr(labels, "__len__"):
        raise InvalidValueError(
            f"{argument} must hold one label per row, got {labels!r}; pass the column itself, not its name."
        )
    array = np.asarray(labels, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) != n_rows:
        raise InvalidValueError(
            f"{argument} must hold one label for each of the {n_rows} rows, got shape {array.shape}; "
            "pass the labels of exactly the rows that are drawn."
        )
    return array


def _label_name(label: object) -> str:
    """Write whole numbers without a decimal point: class labels often went through a float column."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


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
                "marker must hold categories, got numbers on a scale; "
                "pass them as color, or cut them into classes first."
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
