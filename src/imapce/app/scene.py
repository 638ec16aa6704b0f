"""One view as it is drawn: where rows lie, along which axes, how it is framed; turns between two; rows in a lasso."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm, logm

from imapce.common.axes import features_of_axis
from imapce.errors import InvalidValueError
from imapce.plotting.style import follow_known

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ARROWS = 10
FRAMED = 0.001
# So many rows tell where most of them are; ranking a million takes 100 ms.
RANKED = 50_000
MOST_ROOM = 1.6
# Below this sine of an angle its directions coincide (or are opposite), and no third direction can be told from them.
LEAST_SINE = 1e-7
MOST_CORNERS = 100_000


@dataclass(eq=False)
class Scene:
    """Rows at `coordinates` (n, k) along `components` (k, d) in standardised space; `title` says what view this is.

    `kind` is "plain", "proposal", "step", "overview" or "three"; `number` the optimum or the step it shows. `clusters`
    holds the numbers of clusters, which are those in `numbers`, ascending; `names` and `codes` are what they are called
    and the colours they have, where that is not by their numbers, and `words` what they are. `named` (d,) are the
    columns that its axes and arrows are named by, all where it is None, and `given` says what these are given.
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
    names: tuple[str | None, ...] = ()
    codes: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    most_distinct: tuple[int, ...] = ()
    named: Mask | None = None
    given: str = ""
    legend: str = "Rows"
    facts: dict[str, Any] = field(default_factory=dict)
    _index: LassoIndex | None = None

    @property
    def n_axes(self) -> int:
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
        if shown is not self.coordinates:
            low, high = follow_known(low, high, *_ends(self.coordinates))
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
                "name": (self.names[place] if self.names else None) or str(number),
                "mean": means[place].tolist(),
                "covariance": spread[place].tolist(),
                "most": number in self.most_distinct,
            }
            for place, number in enumerate(self.numbers)
            if sizes[place]
        ]

    def axes(self, names: list[str]) -> list[dict[str, Any]]:
        """Every axis with the features that make it, strongest first, and the sign they make it with."""
        described = []
        for axis in self._named_components():
            made = features_of_axis(axis.tolist(), names)
            features = [{"name": name, "weight": round(weight, 4)} for name, weight in made]
            described.append({"features": features, "given": self.given if features else ""})
        return described

    def _named_components(self) -> Array:
        """The axes without their weights in columns that do not name them."""
        return self.components if self.named is None else self.components * self.named

    def arrows(self, names: list[str]) -> list[dict[str, Any]]:
        """The features with the longest loadings, as arrows for the biplot."""
        length = np.sqrt((self._named_components() ** 2).sum(axis=0))
        strongest = np.argsort(-length, kind="stable")[:ARROWS]
        return [{"name": names[j], "to": self.components[:, j].tolist()} for j in strongest if length[j] > 0]

    def content(self, names: list[str]) -> dict[str, Any]:
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


@dataclass(frozen=True, eq=False)
class Turn:
    """The turn from one view of k axes to another along the geodesic between their planes.

    With axes A, B (d, k), orthonormal:  AᵀB = U cos(Θ) W.  The geodesic is  G(t) = A U cos(tΘ) + S sin(tΘ),
    S = (B Wᵀ − A U cos Θ) / sin Θ,  and its frame turns within the plane from Uᵀ to W:  V(t) = G(t) Uᵀ exp(t L),
    L = log(U W).  Rows x then lie at x V(t) = x A · M₁(t) + x B · M₂(t): two small matrices and the 2k numbers of every
    row, half of which the page has from the view before. Between steps the scale of the columns changes too; then both
    ends are exact, and what lies between turns and rescales at once.

    >>> axes = np.eye(4)
    >>> turn = Turn.between(axes[:, :2], axes[:, 2:])
    >>> np.round(np.degrees(turn.angles))
    array([90., 90.])
    """

    angles: Array
    U: Array
    W: Array
    L: Array

    @classmethod
    def between(cls, A: Array, B: Array) -> Turn:
        """The turn from the plane of A (d, k) to that of B."""
        U, cosines, W = np.linalg.svd(A.T @ B)
        cosines = np.clip(cosines, -1.0, 1.0)
        if np.linalg.det(U @ W) < 0:
            # A plane seen from behind: the least aligned direction turns the long way round instead, so that the frame
            # turns and is never folded.
            U[:, -1] *= -1
            cosines[-1] *= -1
        return cls(np.arccos(cosines), U, W, _rotation_log(U @ W))

    def at(self, t: float) -> tuple[Array, Array]:
        """M₁ and M₂ (k, k) at 0 ≤ t ≤ 1."""
        sines = np.sin(self.angles)
        apart = np.abs(sines) > LEAST_SINE
        safe = np.where(apart, sines, 1.0)
        new = np.sin(t * self.angles) / safe
        old = np.cos(t * self.angles) - np.cos(self.angles) * new
        # Coinciding directions: a straight way between the two ends; opposite ones go through the middle as a turn
        # seen edge-on does.
        eased = np.where(np.cos(self.angles) > 0, t, (1 - np.cos(np.pi * t)) / 2)
        new, old = np.where(apart, new, eased), np.where(apart, old, 1 - eased)
        frame = self.U.T @ expm(t * self.L)
        return (self.U * old) @ frame, (self.W.T * new) @ frame

    def content(self) -> dict[str, Any]:
        """The turn as plain lists for the page, which makes M₁ and M₂ of them."""
        return {"angles": self.angles.tolist(), "U": self.U.tolist(), "W": self.W.tolist(), "L": self.L.tolist()}


def _rotation_log(R: Array) -> Array:
    """The skew L with exp(L) = R, for a rotation of two or three axes."""
    if len(R) == 2:
        angle = np.arctan2(R[1, 0], R[0, 0])
        return angle * np.array([[0.0, -1.0], [1.0, 0.0]])
    if len(R) == 3 and np.trace(R) < -1 + 1e-9:
        # Half a turn: the logarithm is not unique, and its axis is the direction that stays.
        values, vectors = np.linalg.eigh((R + R.T) / 2)
        x, y, z = vectors[:, np.argmax(values)]
        return np.pi * np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    found = np.real(logm(R))
    return (found - found.T) / 2


def read_polygon(numbers: Any) -> Array:
    """(m, 2) corners of a lasso from x, y, x, y, ...; refused where it is no polygon.

    >>> read_polygon([0.0, 0.0, 1.0, 0.0, 0.0, 1.0]).shape
    (3, 2)
    """
    corners = np.asarray(numbers, dtype=np.float64).ravel()
    if len(corners) < 6 or len(corners) % 2 or len(corners) > 2 * MOST_CORNERS or not np.isfinite(corners).all():
        raise InvalidValueError(
            f"a lasso must be 3 to {MOST_CORNERS:,} corners of two finite numbers; got {len(corners)} numbers: "
            "draw it again."
        )
    return corners.reshape(-1, 2)


class LassoIndex:
    """The rows of one view, sorted by y once, so that every edge of a lasso is asked only of the rows beside it.

    A row is inside where a ray to its right crosses the polygon an odd number of times. Edges are half open, so that a
    vertex is never counted twice. A million rows take 5 to 9 ms, without the order 150 to 280.

    >>> index = LassoIndex(np.array([[0.5, 0.5], [2.0, 0.5]]))
    >>> index.rows(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
    array([0])
    """

    def __init__(self, xy: Array):
        self.order = np.argsort(xy[:, 1], kind="stable").astype(np.int32 if len(xy) < 2**31 else np.int64)
        self.x, self.y = (np.ascontiguousarray(xy[self.order, axis], dtype=np.float64) for axis in (0, 1))

    def rows(self, polygon: Array) -> NDArray[np.intp]:
        """The positions, ascending, of the rows inside a polygon (m, 2)."""
        x0, y0 = polygon.T
        x1, y1 = np.roll(x0, -1), np.roll(y0, -1)
        first = np.searchsorted(self.y, np.minimum(y0, y1))
        last = np.searchsorted(self.y, np.maximum(y0, y1))
        low, high = int(first.min()), int(last.max())
        odd = np.zeros(high - low, dtype=bool)
        for edge in np.flatnonzero(first < last):
            beside = slice(first[edge], last[edge])
            slope = (x1[edge] - x0[edge]) / (y1[edge] - y0[edge])
            odd[beside.start - low : beside.stop - low] ^= (
                self.x[beside] < x0[edge] + (self.y[beside] - y0[edge]) * slope
            )
        return np.sort(self.order[low:high][odd]).astype(np.intp)
