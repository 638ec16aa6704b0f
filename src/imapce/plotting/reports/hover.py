"""Points of a picture that answer to the pointer: the rows behind them, packed for static/report.js.

Without script the picture is as it was. Coordinates are kept as fractions of a panel, so the picture may be scaled.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.proj3d import proj_transform  # type: ignore[import-untyped]
from numpy.typing import NDArray

from imapce.common.arrays import seeded_sample
from imapce.tables.columns import Column

Points = NDArray[np.float64]

MOST_POINTS = 20_000
# A page shall stay under 2 MB; what pictures and tables leave of it goes to the points, within these bounds.
PAGE_LETTERS = 1_850_000
LEAST_LETTERS, MOST_LETTERS = 60_000, 800_000


@dataclass(frozen=True, eq=False)
class Places:
    """Where rows lie on a picture: the boxes of panels (left, top, width, height) and the rows as fractions of a panel.

    >>> figure = Figure()
    >>> _ = figure.add_axes((0, 0, 1, 1), xlim=(0, 10), ylim=(0, 10))
    >>> Places.on(figure, np.array([[5.0, 2.5]]), [0]).rows.round(3)
    array([[0.5 , 0.25]])
    """

    boxes: list[list[float]]
    rows: Points

    @classmethod
    def on(cls, drawn: Figure, points: Points, panels: Sequence[int]) -> Places:
        """Of a figure that was drawn, and whose panels all have the limits of the first."""
        ax: Any = drawn.axes[panels[0]]
        if ax.name == "3d":
            points = np.column_stack(proj_transform(*points.T, ax.get_proj()))
        box = ax.get_window_extent()
        rows = (ax.transData.transform(points[:, :2]) - [box.x0, box.y0]) / [box.width, box.height]
        wide, tall = drawn.bbox.width, drawn.bbox.height
        frames = [drawn.axes[panel].get_window_extent() for panel in panels]
        return cls([[box.x0 / wide, 1 - box.y1 / tall, box.width / wide, box.height / tall] for box in frames], rows)


@dataclass(frozen=True, eq=False)
class HoverRows:
    """The rows that answer on one page: their names and a few columns of each.

    Pictures place the rows of `sample`, 20,000 at most. `chosen` are the places in it of those there is room for, and
    `fine` says whether a coordinate has two bytes or one, where there are many points in many pictures.

    >>> rows = HoverRows(np.arange(30_000), []).fitting(n_pictures=1, page_letters=0)
    >>> rows.words
    'Hover a point to read its row: 20,000 of 30,000 rows answer, a sample with a fixed seed.'
    """

    ids: NDArray[Any]
    columns: Sequence[Column]
    chosen: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    fine: bool = True

    @cached_property
    def sample(self) -> NDArray[np.intp]:
        """The positions of the rows that pictures place, a sample with a fixed seed where there are many."""
        return np.flatnonzero(seeded_sample(len(self.ids), MOST_POINTS))

    def fitting(self, *, n_pictures: int, page_letters: int) -> HoverRows:
        """As many of the rows as a page of so many letters has room for, 20,000 at most."""
        ids = np.asarray(self.ids)
        plain = ids.dtype.kind in "iu"
        name = 16 / 3 if plain else 3 + max((len(str(name)) for name in ids[:: max(1, len(ids) // 1000)]), default=0)
        # Four letters stand for three bytes.
        values = sum(4 / 3 * (4 if column.is_number else 2) for column in self.columns)
        letters = min(max(PAGE_LETTERS - page_letters, LEAST_LETTERS), MOST_LETTERS)
        room = {size: int(letters / (8 / 3 * size * max(n_pictures, 1) + values + name)) for size in (1, 2)}
        fine = room[2] >= min(len(ids), MOST_POINTS)
        most = min(MOST_POINTS, room[2 if fine else 1])
        return replace(self, chosen=np.flatnonzero(seeded_sample(len(self.sample), most)), fine=fine)

    @property
    def words(self) -> str:
        """What a caption says of it."""
        words = "Hover a point to read its row"
        if len(self.chosen) == len(self.ids):
            return f"{words}."
        return f"{words}: {len(self.chosen):,} of {len(self.ids):,} rows answer, a sample with a fixed seed."

    def data(self, pictures: Sequence[Places]) -> dict[str, Any]:
        """What static/report.js reads: plain numbers and texts, arrays as base64."""
        ids = np.asarray(self.ids)[self.sample[self.chosen]]
        plain = ids.dtype.kind in "iu" and len(ids) and ids.min() >= -(2**31) and ids.max() < 2**31
        return {
            "fine": self.fine,
            "ids": _packed(ids, "<i4") if plain else [str(name) for name in ids],
            "columns": [self._column(column) for column in self.columns],
            "pictures": [self._picture(places) for places in pictures],
        }

    def _picture(self, places: Places) -> dict[str, Any]:
        shown = places.rows[self.chosen]
        top, kind = (65535, "<u2") if self.fine else (255, "u1")
        inside = np.all((shown >= 0) & (shown <= 1), axis=1, keepdims=True)
        # Zero says that the row lies outside the panel.
        codes = np.where(inside, 1 + np.round(np.clip(shown, 0, 1) * (top - 1)), 0)
        boxes = [[round(float(value), 5) for value in box] for box in places.boxes]
        return {"boxes": boxes, "x": _packed(codes[:, 0], kind), "y": _packed(codes[:, 1], kind)}

    def _column(self, column: Column) -> dict[str, Any]:
        if column.values is not None:
            return {"name": column.name, "values": _packed(column.values[self.sample[self.chosen]], "<f4")}
        assert column.codes is not None
        # Zero says that the value is missing.
        coded = column.codes[self.sample[self.chosen]] + 1
        kind = "u1" if len(column.levels) < 255 else "<u2"
        return {"name": column.name, "levels": list(column.levels), "codes": _packed(coded, kind), "wide": kind != "u1"}


def _packed(values: NDArray[Any], kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values.astype(kind)).tobytes()).decode("ascii")
