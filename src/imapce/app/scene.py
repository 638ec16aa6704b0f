"""One view as it is drawn: where rows lie, along which axes, how it is framed, and which rows a lasso holds."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.app.lasso import LassoIndex

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

NAMED_FEATURES = 3
ARROWS = 10
# A feature that turns an axis by less than this share of its strongest one does not name it.
WORTH_NAMING = 0.25
FRAMED = 0.001
# So many rows tell where most of them are; ranking a million takes 100 ms.
RANKED = 50_000
MOST_ROOM = 1.6


@dataclass(eq=False)
class Scene:
    """Rows at `coordinates` (n, k) along `components` (k, d) in standardised space; `title` says what view this is.

    `kind` is "overview", "proposal", "step" or "three"; `number` the optimum or the step it shows. `clusters` holds
    the numbers of clusters, which are those in `numbers`, ascending. `named` (d,) are the columns that its axes and
    arrows are named by, all where it is None, and `given` says what these are given.
    """

    coordinates: Array
    components: Array
    _: KW_ONLY
    kind: str
    title: str
    number: int = 0
    known: Mask
    clusters: NDArray[np.intp] | None = None
    numbers: tuple[int, ...] = ()
    most_distinct: tuple[int, ...] = ()
    named: Mask | None = None
    given: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    _index: LassoIndex | None = None

    @property
    def n_axes(self) -> int:
        """k, two or three."""
        return self.coordinates.shape[1]

    def inside(self, polygon: Array, looking: Array | None = None) -> NDArray[np.intp]:
        """The rows inside a polygon, of the plane itself or of the plane (k, 2) it is looked at in."""
        if looking is not None:
            return LassoIndex(self.coordinates @ looking).rows(polygon)
        return self.index().rows(polygon)

    def index(self) -> LassoIndex:
        """The rows sorted for lassos, once."""
        if self._index is None:
            self._index = LassoIndex(self.coordinates)
        return self._index

    def frame(self) -> list[list[float]]:
        """The least and the largest coordinate to show, axis by axis; far known rows and a few far others stay out."""
        shown = self.coordinates[~self.known] if self.known.any() and not self.known.all() else self.coordinates
        low, high = _ends(shown)
        inner_low, inner_high = np.quantile(shown[:: max(1, len(shown) // RANKED)], [FRAMED, 1 - FRAMED], axis=0)
        inner = inner_high - inner_low
        far = (high - low) > MOST_ROOM * np.maximum(inner, 1e-12)
        low, high = np.where(far, inner_low - 0.15 * inner, low), np.where(far, inner_high + 0.15 * inner, high)
        room = np.where(high > low, high - low, 1.0)
        # Known rows are followed for half the width of the others, as in the figures.
        least, most = _ends(self.coordinates) if shown is not self.coordinates else (low, high)
        low = np.maximum(low - 0.5 * room, np.minimum(low, least))
        high = np.minimum(high + 0.5 * room, np.maximum(high, most))
        room = np.where(high > low, high - low, 1.0)
        return [(low - 0.04 * room).tolist(), (high + 0.04 * room).tolist()]

    def outlines(self) -> list[dict[str, Any]]:
        """Mean and covariance of every cluster; the page draws two standard deviations around the most distinct."""
        if self.clusters is None:
            return []
        count, k = len(self.numbers), self.n_axes
        # Sums by cluster in one pass over each axis, about the middle of all rows so that squares lose no digits;
        # gathering the rows of a million first took five times as long.
        groups = np.where(self.clusters < 0, 0, 1 + np.searchsorted(self.numbers, self.clusters))
        sizes = np.bincount(groups, minlength=count + 1)[1:]
        parts = np.maximum(sizes, 1)
        middle = np.array([axis.mean() for axis in self.coordinates.T])
        axes = [axis - centre for axis, centre in zip(self.coordinates.T, middle, strict=True)]
        means = np.stack([np.bincount(groups, axis, count + 1)[1:] / parts for axis in axes], axis=1)
        spread = np.empty((count, k, k))
        for i in range(k):
            for j in range(i, k):
                squares = np.bincount(groups, axes[i] * axes[j], count + 1)[1:] / parts
                spread[:, i, j] = spread[:, j, i] = squares - means[:, i] * means[:, j]
        means += middle
        return [
            {
                "number": number,
                "name": self.facts["names"][place].removeprefix("Cluster ") if "names" in self.facts else str(number),
                "mean": means[place].tolist(),
                "covariance": spread[place].tolist(),
                "most": number in self.most_distinct,
            }
            for place, number in enumerate(self.numbers)
            if sizes[place]
        ]

    def axes(self, names: list[str]) -> list[dict[str, Any]]:
        """Every axis with the features that make it, strongest first, and the sign they make it with."""
        told = []
        for axis in self._named_components():
            strongest = np.argsort(-np.abs(axis), kind="stable")[:NAMED_FEATURES]
            worth = [j for j in strongest if abs(axis[j]) >= WORTH_NAMING * abs(axis[strongest[0]]) and axis[j]]
            features = [{"name": names[j], "weight": round(float(axis[j]), 4)} for j in worth]
            told.append({"features": features, "given": self.given if features else ""})
        return told

    def _named_components(self) -> Array:
        """The axes without their weights in columns that do not name them."""
        return self.components if self.named is None else self.components * self.named

    def arrows(self, names: list[str]) -> list[dict[str, Any]]:
        """The features with the longest loadings, as arrows for the biplot."""
        length = np.sqrt((self._named_components() ** 2).sum(axis=0))
        strongest = np.argsort(-length, kind="stable")[:ARROWS]
        return [{"name": names[j], "to": self.components[:, j].tolist()} for j in strongest if length[j] > 0]

    def told(self, names: list[str]) -> dict[str, Any]:
        """All but the coordinates, which travel as bytes."""
        low, high = self.frame()
        return {
            "kind": self.kind,
            "title": self.title,
            "number": self.number,
            "dims": self.n_axes,
            "low": low,
            "high": high,
            "axes": self.axes(names),
            "arrows": self.arrows(names),
            "outlines": self.outlines(),
            **self.facts,
        }


def _ends(points: Array) -> tuple[Array, Array]:
    """The least and the largest of every axis, one at a time: along rows of two numbers it takes ten times as long."""
    return np.array([axis.min() for axis in points.T]), np.array([axis.max() for axis in points.T])
