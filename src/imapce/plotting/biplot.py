"""Which features make a view: their weights as arrows, the long ones with their names.

>>> from imapce.baselines import PCA
>>> plot_loadings(PCA().fit(np.eye(4)), max_labels=2)
<Figure size 760x640 with 1 Axes>
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike, NDArray

from imapce.common.checks import is_whole
from imapce.common.words import axis_names, shorten
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.plotting.cloud import Group, draw_groups
from imapce.plotting.scatter import read_embedding
from imapce.plotting.style import (
    HAIRLINE,
    INK,
    KNOWN_GREY,
    PALETTE,
    SOFT_INK,
    TICK_SIZE,
    axes_given,
    panel_on,
    quiet_axes,
    root_figure,
)
from imapce.priors.effect import explained_away

# Arrows shorter than this part of the longest one say little, and their names would only fill the page.
_LONG = 0.15
_LABEL_GAP_POINTS = 3.0
# A name this close to its tip is seen to belong to it; farther away it gets a line.
_LEAD_POINTS = 9.0


def plot_loadings(
    model: Any,
    *,
    embedding: ArrayLike | None = None,
    max_labels: int = 12,
    axes: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
) -> Figure:
    """Draw the feature weights of two axes of a fitted model as arrows and return the figure.

    The `max_labels` longest arrows are coloured and named, all others are thin and grey; what a fit explained away has
    no arrow, and the axes say what the others are given. With an `embedding` the arrows are stretched to its size and
    the rows are drawn faintly behind them. Names never overlap: one that finds no free place is left out. `axes`
    chooses the two axes of a 3-D view.

    >>> from imapce.baselines import PCA
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = PCA().fit(X)
    >>> plot_loadings(model, embedding=model.transform(X), max_labels=2)
    <Figure size 760x640 with 1 Axes>
    """
    weights, names = _read_weights(model, axes)
    if not is_whole(max_labels) or max_labels < 0:
        raise InvalidValueError(f"max_labels must be a whole number of at least 0, got {max_labels!r}.")
    points = None
    if embedding is not None:
        points = read_embedding(embedding, "embedding")
        if max(axes) >= points.shape[1]:
            raise InvalidValueError(
                f"axes must be columns of the embedding, got {axes!r} for {points.shape[1]} columns; "
                "pass the embedding with all its axes."
            )
        points = points[:, list(axes)]
    told = getattr(model, "get_feature_names_out", None)
    named_axes = axis_names(max(axes) + 1) if told is None else told()
    named_axes = axes_given([named_axes[axis] for axis in axes], explained_away(model))
    panel = panel_on(ax, 7.6, 6.4)
    draw_weights(panel, weights, names, points, named_axes=named_axes, max_labels=max_labels)
    return root_figure(panel)


def draw_weights(
    panel: Any,
    weights: NDArray[np.float64],
    names: Sequence[str],
    points: NDArray[np.float64] | None,
    *,
    named_axes: Sequence[str],
    max_labels: int = 12,
) -> None:
    """Draw the weights (d, 2) of features on two axes as arrows, over the rows at `points` where they are given."""
    lengths = np.hypot(*weights.T)
    longest = float(lengths.max())
    stretch = 1.0
    if points is not None:
        draw_groups(panel, points, [Group(np.ones(len(points), dtype=bool), KNOWN_GREY, 1.5, size=1.0)])
        # The 98th percentile, so that one far row does not blow up the arrows.
        stretch = 0.85 * float(np.percentile(np.hypot(*points.T), 98)) / longest or 1.0
    tips = weights * stretch
    ranked = np.argsort(-lengths, kind="stable")
    named = [int(i) for i in ranked[:max_labels] if lengths[i] >= _LONG * longest]
    _draw_arrows(panel, tips, named)
    quiet_axes(panel, *named_axes, title="feature weights")
    placed = _place_names(panel, tips, named, names)
    _note_scale(panel, stretch, placed, len(tips), scaled=points is not None)


def _read_weights(model: Any, axes: tuple[int, int]) -> tuple[NDArray[np.float64], list[str]]:
    """Give the weights of two axes, one row per feature, and the feature names."""
    components = getattr(model, "components_", None)
    if components is None:
        raise InvalidTypeError(
            f"model must be a fitted model with components_, got {type(model).__name__} without; call fit first."
        )
    components = np.asarray(components, dtype=np.float64)
    two = isinstance(axes, tuple | list) and len(axes) == 2 and axes[0] != axes[1]
    if not two or not all(0 <= axis < len(components) for axis in axes):
        raise InvalidValueError(
            f"axes must be two different axes of the {len(components)} in the model, counted from 0, got {axes!r}."
        )
    weights = components[list(axes)].T
    if not np.isfinite(weights).all() or not weights.any():
        raise InvalidValueError("model.components_ must be finite and not all zero; fit the model again.")
    names = getattr(model, "encoded_feature_names_", None)
    if names is None:
        names = [f"x{number}" for number in range(len(weights))]
    effect = getattr(model, "effect_", None)
    known = [] if effect is None else effect.columns
    return np.delete(weights, known, axis=0), [str(name) for name in np.delete(np.asarray(names, dtype=object), known)]


def _draw_arrows(ax: Axes, tips: NDArray[np.float64], named: list[int]) -> None:
    others = np.delete(tips, named, axis=0)
    strength = float(np.clip(60.0 / max(len(others), 1), 0.25, 0.9))
    ax.add_collection(
        LineCollection(
            list(np.stack([np.zeros_like(others), others], axis=1)),
            colors=SOFT_INK,
            linewidths=0.7,
            alpha=strength,
            zorder=2.0,
        )
    )
    chosen = tips[named]
    ax.quiver(
        np.zeros(len(chosen)),
        np.zeros(len(chosen)),
        chosen[:, 0],
        chosen[:, 1],
        angles="xy",
        scale_units="xy",
        scale=1.0,
        color=PALETTE[0],
        width=0.0032,
        headwidth=4.5,
        headlength=6.0,
        headaxislength=5.4,
        zorder=3.0,
    )
    ax.axhline(0.0, color=HAIRLINE, linewidth=0.8, zorder=1.0)
    ax.axvline(0.0, color=HAIRLINE, linewidth=0.8, zorder=1.0)
    # A rim around the arrows and their common root, in which names find a place.
    corners = np.vstack([tips, [[0.0, 0.0]]])
    rim = 0.25 * float(np.ptp(corners, axis=0).max())
    ax.update_datalim([corners.min(axis=0) - rim, corners.max(axis=0) + rim])
    ax.autoscale_view()
    ax.set_aspect("equal", adjustable="datalim")


def _note_scale(ax: Axes, stretch: float, n_named: int, n_features: int, *, scaled: bool) -> None:
    text = f"{n_named} of {n_features} features named" if n_named < n_features else ""
    if scaled:
        text += f"{' · ' if text else ''}arrow length = weight × {stretch:.3g}"
    ax.set_title(text, fontsize=TICK_SIZE, color=SOFT_INK, loc="right", pad=10)


def _place_names(ax: Axes, tips: NDArray[np.float64], named: list[int], names: Sequence[str]) -> int:
    """Put each name, longest arrow first, at the nearest free place to its tip; return how many found one."""
    # The layout has to be final before distances on the page mean anything.
    root_figure(ax).draw_without_rendering()
    to_data = ax.transData.inverted()
    point = root_figure(ax).dpi / 72.0
    origin = ax.transData.transform((0.0, 0.0))
    ends = ax.transData.transform(tips[named]) if named else np.empty((0, 2))
    free = _FreeSpace(ax.get_window_extent(), [_dotted(origin, end, point) for end in ends])
    placed = 0
    for feature, end in zip(named, ends, strict=True):
        text = ax.text(
            0.0,
            0.0,
            shorten(names[feature]),
            fontsize=TICK_SIZE,
            color=INK,
            ha="center",
            va="center",
            zorder=4.0,
            parse_math=False,
        )
        size = text.get_window_extent()
        half = np.array([size.width, size.height]) / 2 + point
        for center in _candidates(origin, end, half, point):
            edge = np.clip(end, center - half, center + half)
            lead = _dotted(end, edge, point) if np.hypot(*(edge - end)) >= _LEAD_POINTS * point else None
            if free.take(Bbox([center - half, center + half]), lead):
                x, y = to_data.transform(center)
                text.set_position((float(x), float(y)))
                if lead is not None:
                    line = to_data.transform([end, edge])
                    ax.plot(*line.T, color=SOFT_INK, linewidth=0.6, zorder=2.5, scalex=False, scaley=False)
                placed += 1
                break
        else:
            text.remove()
    return placed


class _FreeSpace:
    """The part of the page that no name, no named arrow and no leading line has taken yet, in pixels."""

    def __init__(self, page: Bbox, lines: list[NDArray[np.float64]]) -> None:
        self._page = page
        self._names: list[Bbox] = []
        self._ink = np.concatenate([np.empty((0, 2)), *lines])

    def take(self, box: Bbox, lead: NDArray[np.float64] | None) -> bool:
        """Take the place of a name and of the line that leads to it, or tell that it is not free."""
        inside = self._page.x0 <= box.x0 and box.x1 <= self._page.x1
        inside = inside and self._page.y0 <= box.y0 and box.y1 <= self._page.y1
        if not inside or any(box.overlaps(other) for other in self._names) or _any_within(self._ink, box):
            return False
        if lead is not None:
            if any(_any_within(lead, other) for other in self._names):
                return False
            self._ink = np.concatenate([self._ink, lead[:-1]])
        self._names.append(box)
        return True


def _any_within(points: NDArray[np.float64], box: Bbox) -> bool:
    return bool(((points > box.min) & (points < box.max)).all(axis=1).any())


def _dotted(start: NDArray[np.float64], end: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Give points along a line, close enough together that no name fits between two of them."""
    count = int(np.hypot(*(end - start)) / (3.0 * step)) + 2
    return np.linspace(start, end, count)


def _candidates(
    origin: NDArray[np.float64], end: NDArray[np.float64], half: NDArray[np.float64], point: float
) -> Iterator[NDArray[np.float64]]:
    """Give centres for a name: beyond the tip first, then ever farther away and turned to both sides."""
    start = np.arctan2(*(end - origin)[::-1])
    turns = np.deg2rad([side * angle for angle in range(0, 141, 10) for side in (1, -1)][1:])
    for distance in np.arange(_LABEL_GAP_POINTS, 260.0, 6.0) * point:
        for turn in turns:
            direction = np.array([np.cos(start + turn), np.sin(start + turn)])
            # The edge of the name, not its centre, keeps the distance.
            yield end + direction * (distance + half)
