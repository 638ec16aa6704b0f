"""The key of a scatter plot: what each colour and marker means, beside the data and never on top of it.

>>> key = Key.read(["a", "b", "a"], None, "species", None, 3)
>>> key.color.levels, key.row_markers(3)
(('a', 'b'), array([0, 0, 0]))
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

from imapce.common.checks import are_classes, is_missing
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.plotting.style import (
    BESIDE,
    HAIRLINE,
    KNOWN_GREY,
    LABEL_SIZE,
    MISSING_GREY,
    PALETTE,
    SOFT_INK,
    TICK_SIZE,
    continuous_colormap,
    draw_legend,
    mark,
    shorten,
    write_title,
)
from imapce.tables.columns import Column

# Filled shapes only: an outline marker such as "x" looks darker than a filled one of the same colour.
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
MISSING = -1
LOOKED_AT_FIRST = 5000
_ROW_INCHES = 0.2
_HEADING = "heading"


def hold_classes(values: NDArray[np.float64]) -> bool:
    """Whether numbers, of which some may be missing, are drawn as classes and not on a scale.

    >>> hold_classes(np.arange(300) % 15), hold_classes(np.arange(60) % 15), hold_classes(np.arange(3.0))
    (True, False, True)
    """
    present = values[np.isfinite(values)]
    # Most measurements are known as such by their first rows; sorting a million takes 100 ms.
    for some in (present[:LOOKED_AT_FIRST], present):
        n_values = len(np.unique(some))
        if n_values > len(PALETTE) and not are_classes(n_values, len(present)):
            return False
    return True


def read_labels(labels: ArrayLike, argument: str, n_rows: int, *, most: int, name: str | None = None) -> Column:
    """Read labels of any kind; beyond `most` categories the largest keep their name, the rest is 'other'.

    Numbers are categories where they are classes as in Labels(y) or have a colour each; on a scale an infinite value
    counts as missing.
    Without a `name` it is the one that a pandas or polars column carries.

    >>> read_labels(["a", "b", "b", "c"], "color", 4, most=2).levels
    ('b', 'other (2 more)')
    """
    title = name or column_name(labels) or ""
    column = _one_column(labels, argument, n_rows)
    absent = np.zeros(n_rows, dtype=bool)
    # Text is never missing, and a page reads the same labels for every figure.
    if not set(map(type, column)) <= {str, int, bool}:
        absent = np.fromiter((is_missing(value) for value in column), dtype=bool, count=n_rows)
    kinds = set(map(type, column[~absent]))
    for kind in kinds:
        if kind.__hash__ is None:
            raise InvalidTypeError(f"{argument} must hold texts, numbers or dates; got values of type {kind.__name__}.")
    numeric = all(issubclass(kind, numbers.Real) and not issubclass(kind, bool | np.bool_) for kind in kinds)
    # A count before any sorting: labels of mixed kinds can be counted but not ordered.
    counts = Counter(column[~absent].tolist())
    if numeric and counts:
        values = np.full(n_rows, np.nan)
        values[~absent] = column[~absent].astype(float)
        if not hold_classes(values):
            values[~np.isfinite(values)] = np.nan
            return Column(title, values=values)
    ordered = sorted(counts) if numeric else sorted(counts, key=lambda label: (str(label), repr(label)))
    others: list[str] = []
    if len(ordered) > most:
        kept = set(sorted(ordered, key=lambda label: -counts[label])[: most - 1])
        others = [f"other ({len(ordered) - len(kept)} more)"]
        ordered = [label for label in ordered if label in kept]
    place = {label: code for code, label in enumerate(ordered)}
    codes = np.full(n_rows, MISSING, dtype=np.intp)
    codes[~absent] = [place.get(label, len(ordered)) for label in column[~absent].tolist()]
    return Column(title, codes=codes, levels=(*map(_label_name, ordered), *others))


def missing_rows(labels: Column) -> NDArray[np.bool_]:
    """Which rows have no label."""
    return np.isnan(labels.values) if labels.values is not None else codes_of(labels) == MISSING


def codes_of(labels: Column) -> NDArray[np.intp]:
    """The category of every row; none where the labels are on a scale."""
    assert labels.codes is not None or labels.values is not None
    return labels.codes if labels.codes is not None else np.full(len(labels.values), MISSING)  # type: ignore[arg-type]


def column_name(labels: ArrayLike | None) -> str | None:
    """The name that a pandas or polars column carries, if it has one."""
    name = getattr(labels, "name", None)
    return name if isinstance(name, str) and name else None


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
    """How rows are drawn: the labels behind the colours and those behind the markers, each with its name."""

    color: Column | None
    marker: Column | None

    @classmethod
    def read(
        cls,
        color: ArrayLike | None,
        marker: ArrayLike | None,
        color_name: str | None,
        marker_name: str | None,
        n_rows: int,
    ) -> Key:
        """Read both label sets."""
        colors = None if color is None else read_labels(color, "color", n_rows, most=len(PALETTE), name=color_name)
        shapes = None if marker is None else read_labels(marker, "marker", n_rows, most=len(MARKERS), name=marker_name)
        if shapes is not None and shapes.is_number:
            raise InvalidValueError(
                "marker must hold categories, got numbers on a scale; "
                "pass them as color, or cut them into classes first."
            )
        return cls(colors, shapes)

    def row_colors(self, n_rows: int) -> NDArray[np.float64]:
        """Give one RGBA colour per row, as if no row was known."""
        if self.color is None:
            return np.tile(to_rgba(PALETTE[0]), (n_rows, 1))
        if self.color.values is not None:
            colors = continuous_colormap()(_range_of(self.color.values)(self.color.values).filled(0.0))
        else:
            colors = np.array([to_rgba(hue) for hue in PALETTE])[codes_of(self.color)]
        colors[missing_rows(self.color)] = to_rgba(MISSING_GREY)
        return colors

    def row_markers(self, n_rows: int) -> NDArray[np.intp]:
        """Give the position in MARKERS of each row; a row without a marker label is a plain dot."""
        if self.marker is None:
            return np.zeros(n_rows, dtype=np.intp)
        codes = codes_of(self.marker)
        return np.where(codes == MISSING, 0, codes + self._first_marker)

    @property
    def _first_marker(self) -> int:
        """Codes start at 1 where a dot already means "missing"."""
        assert self.marker is not None
        return int(missing_rows(self.marker).any() and len(self.marker.levels) < len(MARKERS))

    def draw(self, ax: Any, known: NDArray[np.bool_]) -> None:
        """Draw the legend and the colour bar to the right of an axes; the layout makes room for them."""
        sections = [rows for rows in (self._color_rows(known), self._marker_rows()) if rows]
        if known.any():
            grey = [("known rows", mark("o", KNOWN_GREY))]
            sections = [sections[0] + grey, *sections[1:]] if sections else [grey]
        scaled = self.color is not None and self.color.is_number
        if scaled:
            self._draw_color_bar(ax, shared=bool(sections))
        if sections:
            _draw_legend(ax, sections, room=0.5 if scaled else 1.0)

    def _color_rows(self, known: NDArray[np.bool_]) -> list[tuple[str, Any]]:
        if self.color is None:
            return []
        # A category whose rows are all known is drawn in grey only: its colour is nowhere to be found.
        drawn = set(codes_of(self.color)[~known].tolist())
        levels = enumerate(self.color.levels)
        rows: list[tuple[str, Any]] = [(name, mark("o", PALETTE[code])) for code, name in levels if code in drawn]
        if (missing_rows(self.color) & ~known).any():
            rows.append(("missing", mark("o", MISSING_GREY)))
        if rows and self.color.name and not self.color.is_number:
            rows.insert(0, (self.color.name, _HEADING))
        return rows

    def _marker_rows(self) -> list[tuple[str, Any]]:
        if self.marker is None:
            return []
        shapes = MARKERS[self._first_marker :]
        rows: list[tuple[str, Any]] = [
            (name, mark(shape, SOFT_INK)) for name, shape in zip(self.marker.levels, shapes, strict=False)
        ]
        if missing_rows(self.marker).any():
            rows.append(("missing", mark(MARKERS[0], SOFT_INK)))
        if self.marker.name:
            rows.insert(0, (self.marker.name, _HEADING))
        return rows

    def _draw_color_bar(self, ax: Any, *, shared: bool) -> None:
        """Draw the bar in the lower half when a legend takes the upper one."""
        assert self.color is not None
        place = ax.inset_axes((_beside(ax) + 0.02, 0.0, 0.04, 0.42 if shared else 0.9))
        bar = ax.figure.colorbar(ScalarMappable(_range_of(self.color.values), continuous_colormap()), cax=place)
        bar.outline.set_visible(False)
        place.tick_params(labelsize=TICK_SIZE, labelcolor=SOFT_INK, color=HAIRLINE, length=3)
        if self.color.name:
            write_title(place, shorten(self.color.name), size=LABEL_SIZE, pad=None)


def _range_of(values: Any) -> Normalize:
    """The range of a continuous colour, which is that of all rows, known ones included."""
    return Normalize(float(np.nanmin(values)), float(np.nanmax(values)))


def _draw_legend(ax: Any, sections: list[list[tuple[str, Any]]], *, room: float) -> None:
    """Draw the sections below each other, or side by side when they are taller than the axes."""
    blank = ("", _HEADING)
    on_page = hasattr(ax.figure, "get_size_inches")
    fits = max(4, int(ax.figure.get_size_inches()[1] * 0.86 * room / _ROW_INCHES)) if on_page else 24
    stacked = [row for number, rows in enumerate(sections) for row in ([blank] if number else []) + rows]
    columns = 1
    if len(stacked) > fits and len(sections) > 1:
        tallest = max(map(len, sections))
        stacked = [row for rows in sections for row in rows + [blank] * (tallest - len(rows))]
        columns = len(sections)
    elif len(stacked) > fits:
        columns = -(-len(stacked) // fits)
    nothing = Line2D([], [], linestyle="")
    entries = [("label", nothing if handle is _HEADING else handle) for _, handle in stacked]
    place = {**BESIDE, "bbox_to_anchor": (_beside(ax), 1.0)}
    legend = draw_legend(ax, entries, **place, ncols=columns, handletextpad=0.3, columnspacing=1.2)
    # Names are set afterwards because a legend leaves out names that begin with an underscore.
    for text, (name, handle) in zip(legend.get_texts(), stacked, strict=True):
        text.set_parse_math(False)
        text.set_text(shorten(name) if name else "")
        if handle is _HEADING:
            text.set_fontweight("bold")


def _beside(ax: Any) -> float:
    """Give where the key begins, in widths of the axes; the name of a third axis stands in between."""
    return 1.12 if ax.name == "3d" else 1.02
