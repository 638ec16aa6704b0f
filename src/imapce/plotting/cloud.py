"""Rows as a cloud: points while they are few; beyond 20,000 one image of counts, painted pixel by pixel.

In the image a pixel has the colour of one of its rows and is the denser the more rows lie on it. Which row that is is
drawn by lot, in which a row of a group of m rows has the weight 1/√m: a large group shows through, a rare one stays
visible. Rare groups and lonely rows have larger dots. On a scale a pixel has the mean of its rows.

>>> red_and_blue = np.array([[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]])
>>> paint(np.array([[1.0, 1.0], [1.2, 1.1]]), np.array([0, 1]), red_and_blue, (3, 3), dpi=30)[1, 1]
array([  0,   0, 255, 184], dtype=uint8)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist, allow_rasterization
from matplotlib.colors import to_rgba
from mpl_toolkits.mplot3d.proj3d import proj_transform  # type: ignore[import-untyped]
from numpy.typing import NDArray

from imapce.plotting.style import KNOWN_GREY

Points = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

# A million points took matplotlib 7 s with a colour each, and less than half of them could be told apart.
CROWDED = 20_000
# The diameter of a dot in points of 1/72 inch, by how many rows there are.
_DOTS = ((2_000, 2.4), (40_000, 1.8), (200_000, 1.2))
_SMALLEST = 0.7
# The smallest groups are rare, as many of them as have so many rows together.
_RARE = 2_000
# How opaque a pixel of one row is; so many rows as nearly all pixels have at most make it fully so.
FAINTEST, KNOWN_FAINTEST = 0.45, 0.75
_FULL, _LEAST_FULL = 0.98, 4.0
# A row is lonely where a square of so many pixels has no more than two.
_SQUARE = 4
_SEED = 0


@dataclass(frozen=True, eq=False)
class Group:
    """Some rows (n,) in one colour; `size` is the area of a point against the usual one."""

    rows: NDArray[np.bool_]
    hue: str
    layer: float = 2.0
    marker: str = "o"
    size: float = 0.6


def point_look(n_rows: int) -> tuple[float, float]:
    """The area and the opacity of so many points: smaller and paler as they become many.

    >>> point_look(100), point_look(1600)
    ((34.0, 0.88), (15.0, 0.88))
    """
    area = float(np.clip(30.0 * np.sqrt(400.0 / n_rows), 2.5, 34.0))
    return area, float(np.clip((1500.0 / n_rows) ** 0.3, 0.3, 0.88))


def draw_groups(ax: Any, points: Points, groups: Sequence[Group]) -> None:
    """Draw groups of rows above each other, each in one colour; beyond 20,000 rows in all as images, the known below.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_groups(ax, np.eye(2), [Group(np.array([True, False]), "#0072B2")])
    >>> len(ax.collections)
    1
    """
    groups = [group for group in groups if group.rows.any()]
    if len(points) > CROWDED:
        for known in (True, False):
            layer = [group for group in groups if (group.hue == KNOWN_GREY) == known]
            codes = np.full(len(points), len(layer), dtype=np.uint8)
            for place, group in enumerate(layer):
                codes[group.rows] = place
            drawn = codes < len(layer)
            hues = [to_rgba(group.hue) for group in layer]
            draw_cloud(ax, points[drawn], codes[drawn], hues, layer=1.5 if known else 2.0, known=known)
        return
    area, opacity = point_look(len(points))
    for group in groups:
        cross = group.marker == "x"
        ax.scatter(
            *points[group.rows].T,
            # One colour and one opacity for all: matplotlib then stamps one point instead of drawing each.
            color=group.hue,
            alpha=max(opacity, 0.5) if group.hue == KNOWN_GREY else opacity,
            s=area * group.size * (4 / 3 if cross else 1.0),
            marker=group.marker,
            linewidths=0.7 if cross else 0,
            zorder=group.layer,
        )


def draw_cloud(
    ax: Any, points: Points, codes: Codes, hues: Any, *, layer: float, scale: bool = False, known: bool = False
) -> None:
    """Draw rows at `points` (n, 2 or 3), each in the colour of `hues` (k, RGBA) that its code names, as one image.

    With `scale` the codes are places on a scale and a pixel has their mean; pale `known` rows are drawn denser. The
    image is painted when the figure is drawn, in the pixels that it has then.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> draw_cloud(ax, np.eye(2), np.zeros(2, dtype=int), [(0, 0, 0, 1)], layer=2.0)
    >>> len(ax.artists)
    1
    """
    if not len(points):
        return
    artist = Cloud(
        points, codes, np.asarray(hues, dtype=np.float64), scale=scale, faintest=KNOWN_FAINTEST if known else FAINTEST
    )
    artist.set_zorder(layer)
    ax.add_artist(artist)
    if ax.name == "3d":
        ax.auto_scale_xyz(*points.T)
    else:
        # One axis at a time: along rows of two numbers it takes ten times as long.
        ax.update_datalim([[axis.min() for axis in points.T], [axis.max() for axis in points.T]])
        ax.autoscale_view()


class Cloud(Artist):
    """An image of counts that is painted anew for the size, the window and the resolution it is drawn in."""

    def __init__(self, points: Points, codes: Codes, hues: NDArray[np.float64], *, scale: bool, faintest: float):
        super().__init__()
        # In files of lines and letters it is an image too.
        self.set_rasterized(True)
        codes = np.asarray(codes)
        if not scale and len(hues) > 1:
            order = _by_lot(codes, len(hues))
            points, codes = points[order], codes[order]
        self._points, self._codes, self._hues = points, codes, hues
        self._scale, self._faintest = scale, faintest
        self._painted: tuple[Any, NDArray[np.uint8]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "_painted": None}

    @allow_rasterization
    def draw(self, renderer: Any) -> None:
        """Paint the rows within the axes and put the image there."""
        ax: Any = self.axes
        figure: Any = self.get_figure(root=True)
        if not self.get_visible():
            return
        box = ax.bbox
        left, bottom = int(np.floor(box.x0)), int(np.floor(box.y0))
        shape = max(1, int(np.ceil(box.y1)) - bottom), max(1, int(np.ceil(box.x1)) - left)
        projection = ax.get_proj() if ax.name == "3d" else None
        look = (*ax.transData.frozen().transform([[0.0, 0.0], [1.0, 1.0]]).ravel(), left, bottom, shape, figure.dpi)
        look += () if projection is None else tuple(projection.ravel())
        # Where the layout is found first, a figure is drawn twice in the same place.
        if self._painted is None or self._painted[0] != look:
            points = (
                self._points if projection is None else np.column_stack(proj_transform(*self._points.T, projection))
            )
            at = ax.transData.transform(points[:, :2]) - [left, bottom]
            image = paint(
                at, self._codes, self._hues, shape, dpi=figure.dpi, scale=self._scale, faintest=self._faintest
            )
            self._painted = look, image
        gc = renderer.new_gc()
        gc.set_clip_rectangle(box)
        renderer.draw_image(gc, left, bottom, self._painted[1])
        gc.restore()
        self.stale = False


def paint(
    at: Points,
    codes: Codes,
    hues: NDArray[np.float64],
    shape: tuple[int, int],
    *,
    dpi: float,
    scale: bool = False,
    faintest: float = FAINTEST,
) -> NDArray[np.uint8]:
    """The image (height, width, RGBA), its lowest line first, of rows `at` so many pixels from its lower left corner.

    Of two rows on one pixel the later one is seen, on a scale their mean.

    >>> image = paint(np.array([[1.5, 0.5]]), np.array([0]), np.array([[0.0, 0, 0, 1]]), (2, 2), dpi=30)
    >>> image[:, :, 3]
    array([[  0, 114],
           [  0,   0]], dtype=uint8)
    """
    height, width = shape
    across, up = at[:, 0], at[:, 1]
    inside = (across >= 0) & (across < width) & (up >= 0) & (up < height)
    if not inside.all():
        across, up, codes = across[inside], up[inside], codes[inside]
    columns, rows = across.astype(np.int32), up.astype(np.int32)
    large = _dots(columns, rows, codes, 0 if scale else len(hues), width, dpi)
    counts = np.zeros(height * width, dtype=np.int64)
    seen = np.zeros(height * width, dtype=np.float64 if scale else codes.dtype)
    layers = [(slice(None), 1)] if large is None else [(~large, len(codes)), (large, 1)]
    for drawn, among in layers:
        places, many = _stamped(columns[drawn], rows[drawn], _pixels(among, dpi), shape)
        stamped = np.repeat(codes[drawn], many) if many > 1 else codes[drawn]
        keep = places >= 0
        if not keep.all():
            places, stamped = places[keep], stamped[keep]
        counts += np.bincount(places, minlength=len(counts))
        if scale:
            seen += np.bincount(places, weights=stamped, minlength=len(counts))
        else:
            seen[places] = stamped
    return _image(counts, seen, hues, shape, scale=scale, faintest=faintest)


def _image(
    counts: NDArray[np.int64],
    seen: NDArray[Any],
    hues: NDArray[np.float64],
    shape: tuple[int, int],
    *,
    scale: bool,
    faintest: float,
) -> NDArray[np.uint8]:
    """Colours of what is seen, the denser the more."""
    filled = np.flatnonzero(counts)
    image = np.zeros((len(counts), 4), dtype=np.uint8)
    if len(filled):
        many = counts[filled]
        full = max(_LEAST_FULL, float(np.quantile(many, _FULL)))
        density = np.minimum(1.0, faintest + (1.0 - faintest) * np.log(many) / np.log(full))
        chosen = np.rint(seen[filled] / many).astype(np.intp) if scale else seen[filled]
        colors = hues[chosen]
        colors[:, 3] *= density
        image[filled] = np.floor(255 * colors).astype(np.uint8)
    return image.reshape(*shape, 4)


def _by_lot(codes: Codes, n_groups: int) -> NDArray[np.intp]:
    """An order with a fixed seed in which the later of two rows is of a group of m rows with weight 1/√m."""
    sizes = np.bincount(codes, minlength=n_groups).astype(np.float32)
    waiting = np.random.default_rng(_SEED).standard_exponential(len(codes), dtype=np.float32)
    # Of waiting times with rates 1/√m the shortest belongs to a row with a chance in proportion to its rate.
    return np.argsort(-waiting * np.sqrt(sizes)[codes])


def _dots(
    columns: NDArray[np.int32], rows: NDArray[np.int32], codes: Codes, n_groups: int, width: int, dpi: float
) -> NDArray[np.bool_] | None:
    """Which rows have a large dot, None where all have: those of rare groups and those far from others."""
    if _pixels(len(codes), dpi) == _pixels(1, dpi):
        return None
    large = np.zeros(len(codes), dtype=bool)
    if n_groups:
        sizes = np.bincount(codes, minlength=n_groups)
        order = np.argsort(sizes, kind="stable")
        rare = order[np.cumsum(sizes[order]) <= _RARE]
        large = np.isin(np.arange(n_groups), rare)[codes]
    squares = (rows // _SQUARE) * (width // _SQUARE + 1) + columns // _SQUARE
    return large | (np.bincount(squares)[squares] <= 2)


def _pixels(n_rows: int, dpi: float) -> int:
    """The diameter of the dots of so many rows."""
    wide = next((points for most, points in _DOTS if n_rows <= most), _SMALLEST)
    return max(1, round(wide * dpi / 72))


def _stamped(
    columns: NDArray[np.int32], rows: NDArray[np.int32], size: int, shape: tuple[int, int]
) -> tuple[NDArray[np.int64], int]:
    """The pixels of every dot, dot by dot, -1 outside of the image, and how many each has."""
    height, width = shape
    middle = (size - 1) / 2
    offsets = [
        (dy, dx)
        for dy in range(size)
        for dx in range(size)
        if size < 3 or (dy - middle) ** 2 + (dx - middle) ** 2 <= (size / 2) ** 2
    ]
    first = size // 2
    down, right = np.array(offsets, dtype=np.int64).T - first
    y, x = rows[:, None] + down, columns[:, None] + right
    places = np.where((y >= 0) & (y < height) & (x >= 0) & (x < width), y * width + x, -1)
    return places.ravel(), len(offsets)
