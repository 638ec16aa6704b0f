"""The key of a scatter plot: what each colour and marker means, beside the data and never on top of it.

>>> key = Key.read(["a", "b", "a"], None, "species", None, 3)
>>> key.color.levels, key.row_markers(3)
(('a', 'b'), array([0, 0, 0]))
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgba
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from imapce.common.checks import are_classes, is_missing
from imapce.common.words import shorten
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.plotting.cloud import CROWDED
from imapce.plotting.style import (
    BESIDE,
    HAIRLINE,
    KNOWN_GREY,
    LABEL_HUES,
    LABEL_SIZE,
    MISSING_GREY,
    PALETTE,
    SOFT_INK,
    TICK_SIZE,
    continuous_colormap,
    draw_legend,
    mark,
    write_title,
)
from imapce.tables.columns import Column

# Filled shapes only: an outline marker such as "x" looks darker than a filled one of the same colour.
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
MISSING = -1
LOOKED_AT_FIRST = 5000
_ROW_INCHES = 0.2
_HEADING = "heading"
_NO_SHAPES = "not drawn: many rows"


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


def read_labels(
    labels: ArrayLike | Column, argument: str, n_rows: int, *, most: int, name: str | None = None
) -> Column:
    """Read labels of any kind; beyond `most` categories the largest keep their name, the rest is 'other'.

    Numbers are categories where they are classes as in Labels(y) or have a colour each; on a scale an infinite value
    counts as missing. Without a `name` it is the one that a pandas or polars column carries. A `Column` was read before
    and is only held to `most`.

    >>> read_labels(["a", "b", "b", "c"], "color", 4, most=2).levels
    ('b', 'other (2 more)')
    """
    title = name or column_name(labels) or ""
    if isinstance(labels, Column):
        column = _of_column(labels, argument, n_rows)
    else:
        column = _of_values(_one_column(labels, argument, n_rows), argument)
    return replace(column if column.is_number else _with_at_most(column, most), name=title)


def _of_column(labels: Column, argument: str, n_rows: int) -> Column:
    """A column of a table: levels as they are, without those no row has; numbers that are classes become levels."""
    there = len(labels.values) if labels.values is not None else len(codes_of(labels))
    if there != n_rows:
        raise InvalidValueError(f"{argument} must hold one label for each of the {n_rows} rows, got {there}.")
    if labels.values is not None:
        few = np.isfinite(labels.values).any() and hold_classes(labels.values)
        return _of_values(labels.values.astype(object), argument) if few else labels
    codes = codes_of(labels)
    used = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(labels.levels)))
    if len(used) == len(labels.levels):
        return labels
    place = np.full(len(labels.levels) + 1, MISSING)
    place[used] = np.arange(len(used))
    return Column(labels.name, codes=place[codes], levels=tuple(labels.levels[code] for code in used))


def _of_values(column: NDArray[np.object_], argument: str) -> Column:
    n_rows = len(column)
    absent = np.zeros(n_rows, dtype=bool)
    # Text is never missing.
    if not set(map(type, column)) <= {str, int, bool}:
        absent = np.fromiter((is_missing(value) for value in column), dtype=bool, count=n_rows)
    present = column[~absent] if absent.any() else column
    kinds = set(map(type, present))
    for kind in kinds:
        if kind.__hash__ is None:
            raise InvalidTypeError(f"{argument} must hold texts, numbers or dates; got values of type {kind.__name__}.")
    numeric = all(issubclass(kind, numbers.Real) and not issubclass(kind, bool | np.bool_) for kind in kinds)
    if numeric and len(present):
        values = np.full(n_rows, np.nan)
        values[~absent] = present.astype(float)
        if not hold_classes(values):
            values[~np.isfinite(values)] = np.nan
            return Column("", values=values)
    # Found before any sorting: labels of mixed kinds can be told apart but not ordered.
    found = set(present.tolist())
    ordered = sorted(found) if numeric else sorted(found, key=lambda label: (str(label), repr(label)))
    place = {label: code for code, label in enumerate(ordered)}
    codes = np.full(n_rows, MISSING, dtype=np.intp)
    codes[~absent] = np.fromiter(map(place.__getitem__, present.tolist()), dtype=np.intp, count=len(present))
    return Column("", codes=codes, levels=tuple(map(_label_name, ordered)))


def _with_at_most(column: Column, most: int) -> Column:
    """The same with at most so many levels: the largest keep their name, the others are one."""
    if len(column.levels) <= most:
        return column
    codes = codes_of(column)
    counts = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    kept = np.sort(np.argsort(-counts, kind="stable")[: most - 1])
    place = np.full(len(column.levels) + 1, len(kept))
    place[kept], place[-1] = np.arange(len(kept)), MISSING
    others = f"other ({len(column.levels) - len(kept)} more)"
    return Column(column.name, codes=place[codes], levels=(*(column.levels[code] for code in kept), others))


def missing_rows(labels: Column) -> NDArray[np.bool_]:
    """Which rows have no label."""
    return np.isnan(labels.values) if labels.values is not None else codes_of(labels) == MISSING


def codes_of(labels: Column) -> NDArray[np.intp]:
    """The category of every row; none where the labels are on a scale."""
    assert labels.codes is not None or labels.values is not None
    return labels.codes if labels.codes is not None else np.full(len(labels.values), MISSING)  # type: ignore[arg-type]


def column_name(labels: ArrayLike | Column | None) -> str | None:
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
        color: ArrayLike | Column | None,
        marker: ArrayLike | Column | None,
        color_name: str | None,
        marker_name: str | None,
        n_rows: int,
    ) -> Key:
        """Read both label sets."""
        colors = None if color is None else read_labels(color, "color", n_rows, most=len(LABEL_HUES), name=color_name)
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
            colors = np.array([to_rgba(hue) for hue in LABEL_HUES])[codes_of(self.color)]
        colors[missing_rows(self.color)] = to_rgba(MISSING_GREY)
        return colors

    @property
    def is_scale(self) -> bool:
        """Whether the colours are places on a scale."""
        return self.color is not None and self.color.is_number

    def row_codes(self, n_rows: int) -> tuple[NDArray[np.integer[Any]], NDArray[np.float64], NDArray[np.bool_]]:
        """Give one code per row and the colours they name, as if no row was known, and the rows without a place."""
        none = np.zeros(n_rows, dtype=bool)
        if self.color is None:
            return np.zeros(n_rows, dtype=np.uint8), np.array([to_rgba(PALETTE[0])]), none
        missing = missing_rows(self.color)
        if self.color.values is not None:
            shades = continuous_colormap()
            places = _range_of(self.color.values)(np.where(missing, np.nanmin(self.color.values), self.color.values))
            return (np.asarray(places) * (shades.N - 1)).round().astype(np.uint8), shades(np.arange(shades.N)), missing
        codes = np.where(missing, len(LABEL_HUES), codes_of(self.color)).astype(np.uint8)
        return codes, np.array([to_rgba(hue) for hue in (*LABEL_HUES, MISSING_GREY)]), none

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
        shapes = self._marker_rows() if len(known) <= CROWDED else self._no_shapes()
        sections = [rows for rows in (self._color_rows(known), shapes) if rows]
        if known.any():
            grey = [("known rows", mark("o", KNOWN_GREY))]
            sections = [sections[0] + grey, *sections[1:]] if sections else [grey]
        scaled = self.is_scale
        if scaled:
            self._draw_color_bar(ax, shared=bool(sections))
        if sections:
            _draw_legend(ax, sections, room=0.5 if scaled else 1.0)

    def _color_rows(self, known: NDArray[np.bool_]) -> list[tuple[str, Any]]:
        if self.color is None:
            return []
        # A category whose rows are all known is drawn in grey only: its colour is nowhere to be found.
        drawn = set(np.unique(codes_of(self.color)[~known]).tolist())
        levels = enumerate(self.color.levels)
        rows: list[tuple[str, Any]] = [(name, mark("o", LABEL_HUES[code])) for code, name in levels if code in drawn]
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

    def _no_shapes(self) -> list[tuple[str, Any]]:
        """What is said of markers where rows are so many that a pixel holds several."""
        if self.marker is None:
            return []
        return [(self.marker.name or "shapes", _HEADING), (_NO_SHAPES, _HEADING)]

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
        if handle is _HEADING and name != _NO_SHAPES:
            text.set_fontweight("bold")


def _beside(ax: Any) -> float:
    """Give where the key begins, in widths of the axes; the name of a third axis stands in between."""
    return 1.12 if ax.name == "3d" else 1.02
