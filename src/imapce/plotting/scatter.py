"""Scatter plots of an embedding: one colour and one marker per row, known rows in grey behind the rest.

>>> view, island = np.eye(4)[:, :2], np.array(["Dream", "Biscoe", "Dream", "Torgersen"])
>>> plot_embedding(view, color=island, known=island == "Dream")
<Figure size 760x560 with 1 Axes>
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from numpy.typing import ArrayLike, NDArray

from imapce.common import words
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.plotting.cloud import CROWDED, draw_cloud, point_look
from imapce.plotting.key import MARKERS, Key
from imapce.plotting.style import (
    HAIRLINE,
    INK,
    KNOWN_GREY,
    LABEL_SIZE,
    MISSING_GREY,
    TITLE_SIZE,
    blank_figure,
    panel_on,
    quiet_axes,
    root_figure,
)
from imapce.priors.effect import axes_of_model, explained_away
from imapce.tables.columns import Column

MOST_PANELS = 3
_MOST_KNOWN = 5
_DRAW_ORDER_SEED = 0


def plot_embedding(
    embedding: ArrayLike,
    *,
    color: ArrayLike | Column | Mapping[str, ArrayLike | Column] | None = None,
    marker: ArrayLike | None = None,
    known: ArrayLike | None = None,
    title: str | None = None,
    subtitle: str | None = None,
    color_name: str | None = None,
    marker_name: str | None = None,
    axis_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the rows of a 2-D or 3-D embedding and return the figure.

    `color` and `marker` hold one label per row; several columns in `color`, by name, give a panel each. Numbers of more
    than 12 different values are drawn on a scale with a colour bar, unless they are classes as `Labels` takes them (at
    most 20, five rows or more for each); all else as categories: at most 20 colours and 8 markers, beyond which
    the largest categories keep theirs and the rest is "other". Rows in the boolean mask `known` are drawn first, in
    light grey. All rows are drawn, in an order shuffled with a fixed seed, so that no category hides another one;
    beyond 20,000 rows as one image, in which a pixel is the denser the more rows lie on it and has no shape.

    `subtitle` is a smaller line below the title, as "known: sex".

    >>> view = np.random.default_rng(0).normal(size=(100, 2))
    >>> plot_embedding(view, color=np.arange(100) % 3, color_name="kind", title="what else is there")
    <Figure size 760x560 with 1 Axes>
    """
    points = read_embedding(embedding, "embedding")
    if isinstance(color, Mapping) and len(color) < 2:
        color_name, color = next(iter(color.items()), (None, None))
    greyed = _read_known(known, len(points))
    if isinstance(color, Mapping):
        if ax is not None:
            raise InvalidValueError(f"ax is for one column of labels, got {len(color)} in color; leave ax out.")
        keys = [Key.read(labels, marker, str(name), marker_name, len(points)) for name, labels in color.items()]
        return _panels(points, keys, greyed, _read_axis_names(axis_names, points.shape[1]), title, subtitle)
    key = Key.read(color, marker, color_name, marker_name, len(points))
    three_d = points.shape[1] == 3
    names = _read_axis_names(axis_names, points.shape[1])
    panel = panel_on(ax, 7.6, 5.6, three_d=three_d)
    draw_rows(panel, points, key, greyed)
    _dress(panel, names, title, subtitle)
    key.draw(panel, greyed)
    if ax is None and three_d:
        _settle(root_figure(panel))
    return root_figure(panel)


def first_axes(view: Any) -> Any:
    """The axes of a view that are drawn: all of two or three, of more the first two.

    >>> first_axes(np.zeros((9, 3))).shape, first_axes(np.zeros((9, 4))).shape
    ((9, 3), (9, 2))
    """
    return view if view.shape[1] <= 3 else view[:, :2]


def words_of_view(model: Any, title: str | None = None, known: Sequence[str] | None = None) -> dict[str, Any]:
    """What a figure of a fitted view says beside its rows: title, "known: …" and what its axes are made of.

    `known` says it in the words of a caller; without, what was explained away is told.

    >>> from imapce.baselines import PCA
    >>> words_of_view(PCA().fit(np.diag([3.0, 2.0, 0.0, 0.0])), "Rows")["axis_names"][0]
    '+ x0 − x1'
    """
    names, axes = explained_away(model) if known is None else known, axes_of_model(model)
    subtitle = f"known: {words.listing(names, _MOST_KNOWN)}" if names else None
    return {"title": title, "subtitle": subtitle, "axis_names": axes if len(axes) <= 3 else axes[:2]}


def _panels(
    points: NDArray[np.float64],
    keys: Sequence[Key],
    known: NDArray[np.bool_],
    axis_names: Sequence[str],
    title: str | None,
    subtitle: str | None,
) -> Figure:
    """The same rows once for each column of labels, each panel with its own key."""
    across = min(MOST_PANELS, len(keys))
    figure = blank_figure(5.4 * across, 4.2 * -(-len(keys) // across))
    three_d = points.shape[1] == 3
    for place, key in enumerate(keys, start=1):
        panel = figure.add_subplot(-(-len(keys) // across), across, place, projection="3d" if three_d else None)
        draw_rows(panel, points, key, known)
        _dress(panel, axis_names, None)
        key.draw(panel, known)
    if title or subtitle:
        told = "\n".join(filter(None, [title, subtitle]))
        figure.suptitle(told, x=0.01, ha="left", fontsize=TITLE_SIZE, color=INK, fontweight="bold", parse_math=False)
    if three_d:
        _settle(figure)
    return figure


def plot_comparison(
    panels: Sequence[tuple[str, ArrayLike]],
    *,
    color: ArrayLike | None = None,
    marker: ArrayLike | None = None,
    known: ArrayLike | None = None,
    color_name: str | None = None,
    marker_name: str | None = None,
    axis_names: Sequence[str] | None = None,
) -> Figure:
    """Draw several embeddings of the same rows side by side, with one legend that holds for all of them.

    Axes are named by `axis_names`, else as the columns of an embedding that is a table, else as IMAPCE names them.

    >>> view = np.random.default_rng(0).normal(size=(100, 2))
    >>> figure = plot_comparison([("before", view), ("after", -view)], color=np.arange(100) % 3)
    >>> [ax.get_title(loc="left") for ax in figure.axes]
    ['before', 'after']
    """
    if isinstance(panels, str) or not isinstance(panels, Sequence) or not panels:
        raise InvalidValueError(
            f"panels must be a list of (title, embedding) pairs with at least one pair, got {panels!r}."
        )
    if not all(isinstance(panel, tuple | list) and len(panel) == 2 for panel in panels):
        raise InvalidTypeError(
            "panels must be a list of (title, embedding) pairs, got another kind of item; "
            'write [("PCA", pca), ("view", view)].'
        )
    drawn = [
        (
            str(title),
            read_embedding(values, f"embedding of {title!r}"),
            _column_names(values) if axis_names is None else axis_names,
        )
        for title, values in panels
    ]
    rows = {title: len(points) for title, points, _ in drawn}
    if len(set(rows.values())) > 1:
        raise InvalidValueError(
            f"panels must show the same rows, got {rows} rows; transform one table for all of them."
        )
    n_rows = len(drawn[0][1])
    key = Key.read(color, marker, color_name, marker_name, n_rows)
    greyed = _read_known(known, n_rows)
    figure = blank_figure(3.3 * len(drawn) + 1.9, 3.9)
    panel: Any = None
    for place, (title, points, names) in enumerate(drawn, start=1):
        three_d = points.shape[1] == 3
        panel = figure.add_subplot(1, len(drawn), place, projection="3d" if three_d else None)
        draw_rows(panel, points, key, greyed)
        _dress(panel, _read_axis_names(names, points.shape[1]), title)
        if three_d:
            # Smaller within its panel, since the name of the third axis reaches into the next one.
            panel.set_box_aspect(panel.get_box_aspect(), zoom=0.85)
            panel.locator_params(nbins=4)
    key.draw(panel, greyed)
    if any(points.shape[1] == 3 for _, points, _ in drawn):
        _settle(figure)
    return figure


def read_embedding(embedding: ArrayLike, argument: str) -> NDArray[np.float64]:
    """Give an embedding as a table of finite numbers with 2 or 3 columns, or say what is wrong with it.

    >>> read_embedding([[0.0, 1.0, 2.0, 3.0]], "embedding")
    Traceback (most recent call last):
    imapce.errors.InvalidValueError: embedding must have one row per point and 2 or 3 columns, got shape (1, 4); ...
    """
    try:
        points = np.asarray(embedding, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(
            f"{argument} must be a table of numbers, got a {type(embedding).__name__} that is none; "
            "pass what transform returned."
        ) from error
    if points.ndim != 2 or points.shape[1] not in (2, 3) or len(points) == 0:
        raise InvalidValueError(
            f"{argument} must have one row per point and 2 or 3 columns, got shape {points.shape}; "
            "choose the columns to draw, such as embedding[:, :2]."
        )
    broken = ~np.isfinite(points).all(axis=1)
    if broken.any():
        raise InvalidValueError(
            f"{argument} must be finite, got NaN or infinity in {int(broken.sum())} of {len(points)} rows "
            f"(first: row {int(np.argmax(broken))}); drop these rows and their labels."
        )
    return points


def draw_rows(ax: Any, points: NDArray[np.float64], key: Key, known: NDArray[np.bool_]) -> None:
    """Draw the known rows in grey and the others above them, each group in its shuffled order; many as an image."""
    if len(points) > CROWDED:
        _draw_crowd(ax, points, key, known)
        return
    area, opacity = point_look(len(points))
    colors = key.row_colors(len(points))
    colors[known] = to_rgba(KNOWN_GREY)
    colors[:, 3] = np.where(known, np.maximum(opacity, 0.5), opacity)
    shapes = key.row_markers(len(points))
    order = np.random.default_rng(_DRAW_ORDER_SEED).permutation(len(points))
    for layer, group in ((1.5, order[known[order]]), (2.0, order[~known[order]])):
        if len(group) == 0:
            continue
        # matplotlib sorts 3-D points by depth within an artist and cannot mix shapes there: one per marker.
        parts = (
            [group[shapes[group] == shape] for shape in np.unique(shapes[group])] if points.shape[1] == 3 else [group]
        )
        for part in parts:
            _draw_layer(ax, points[part], colors[part], shapes[part], area, layer)


def _draw_crowd(ax: Any, points: NDArray[np.float64], key: Key, known: NDArray[np.bool_]) -> None:
    """Images for known rows, for those without a value on a scale, and for all others, above each other."""
    codes, hues, unplaced = key.row_codes(len(points))
    below = [(known, KNOWN_GREY, 1.5), (unplaced & ~known, MISSING_GREY, 1.8)]
    for rows, hue, layer in below:
        drawn = points[rows]
        draw_cloud(ax, drawn, np.zeros(len(drawn), dtype=np.uint8), [to_rgba(hue)], layer=layer, known=True)
    rest = ~(known | unplaced)
    draw_cloud(ax, points[rest], codes[rest], hues, layer=2.0, scale=key.is_scale)


def _draw_layer(
    ax: Any,
    points: NDArray[np.float64],
    colors: NDArray[np.float64],
    shapes: NDArray[np.intp],
    area: float,
    layer: float,
) -> None:
    extra = {"depthshade": False} if points.shape[1] == 3 else {}
    artist = ax.scatter(
        *points.T,
        c=colors,
        s=area,
        marker=MARKERS[shapes[0]],
        linewidths=0,
        edgecolors="none",
        zorder=layer,
        **extra,
    )
    if (shapes != shapes[0]).any():
        # One artist with a shape per point, because artist after artist would put the last marker on top.
        styles = [MarkerStyle(shape) for shape in MARKERS]
        outlines = [style.get_path().transformed(style.get_transform()) for style in styles]
        artist.set_paths([outlines[shape] for shape in shapes])


def _dress(ax: Any, axis_names: Sequence[str], title: str | None, subtitle: str | None = None) -> None:
    quiet_axes(ax, axis_names[0], axis_names[1], title=title, subtitle=subtitle)
    if ax.name == "3d":
        ax.set_zlabel(axis_names[2], fontsize=LABEL_SIZE, color=INK, parse_math=False)
        ax.set_aspect("equal")
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.set_pane_color(to_rgba("white"))
            axis.line.set_color(HAIRLINE)
            # matplotlib has no public way to a paler 3-D grid; should this one go, the grid is only darker.
            getattr(axis, "_axinfo", {}).get("grid", {}).update(color=HAIRLINE, linewidth=0.6)
    else:
        # Widening the limits instead of shrinking the box keeps panels of one row equally large.
        ax.set_aspect("equal", adjustable="datalim")


def _settle(figure: Figure) -> None:
    """Repeat the layout: a 3-D box and the room for its key depend on each other."""
    for _ in range(3):
        figure.draw_without_rendering()


def _read_known(known: ArrayLike | None, n_rows: int) -> NDArray[np.bool_]:
    if known is None:
        return np.zeros(n_rows, dtype=bool)
    mask = np.asarray(known)
    if mask.dtype != bool or mask.shape != (n_rows,):
        raise InvalidValueError(
            f"known must be a mask of {n_rows} true or false values, got {mask.dtype} values of shape "
            f"{mask.shape}; turn row numbers into a mask with numpy.isin(numpy.arange({n_rows}), rows)."
        )
    return mask


def _column_names(embedding: Any) -> list[str] | None:
    """The names of a table's columns, None where it has none or they are numbers."""
    names = getattr(embedding, "columns", None)
    return list(names) if names is not None and all(isinstance(name, str) for name in names) else None


def _read_axis_names(axis_names: Sequence[str] | None, n_columns: int) -> list[str]:
    if axis_names is None:
        return words.axis_names(n_columns)
    if isinstance(axis_names, str) or len(axis_names) != n_columns:
        raise InvalidValueError(
            f"axis_names must hold one name for each of the {n_columns} columns, got {axis_names!r}."
        )
    return [str(name) for name in axis_names]
