"""The scale on which a column of numbers is looked at, and which columns are so skewed that another is worth a look.

    log    z = asinh(x/2u)     which is ln(x/u) beyond a few u, and straight through zero; u is the column's own unit:
                               of values of one sign the 1 % quantile of |x| > 0, so that all but the smallest are on a
                               log scale; of both signs the median of |x| > 0, so that nothing is torn at zero
    rank   z = Φ⁻¹(rank/n)     through the learned values, between them and beyond them on straight lines

Both rise everywhere, so every z has its x: what is shown is in the units of the table.

>>> scale = LogScale.learn(np.array([1.0, 10.0, 1000.0]))
>>> scale.to_units(scale.to_scale(np.array([0.0, 50.0, -3.0]))).round(9).tolist()
[0.0, 50.0, -3.0]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri

from imapce.common.arrays import Array, seeded_sample
from imapce.common.settings import SETTINGS, TableSettings
from imapce.common.words import close_matches, listing
from imapce.errors import InvalidTypeError, InvalidValueError, Phrase, Sentence

# "skewed" for all that are, else a name.
SKEWED = "skewed"
# What a sentence on columns that are skewed offers, by which it is known.
OFFERS_LOG = "log scale"
ScaleName = Literal["log", "rank"]
Transform = ScaleName | Mapping[str, ScaleName]
MOST_KNOTS = 256


@dataclass(frozen=True)
class LogScale:
    """z = asinh(x/(2·unit)); zero stays zero, so sparse columns stay sparse.

    ln(1 + |x|/u) with the sign of x would have a kink at zero, and a valley in a column that has none there.

    >>> LogScale(1.0).to_scale(np.array([0.0, 100.0, 1000.0])).round(3).tolist()
    [0.0, 4.605, 6.908]
    """

    kind: ClassVar[ScaleName] = "log"
    unit: float

    @classmethod
    def learn(cls, values: Array) -> LogScale:
        """Of finite values, those of a column that are there."""
        sizes = np.abs(values[values != 0])
        if not sizes.size:
            return cls(1.0)
        both = bool(values.min() < 0 < values.max())
        unit = float(np.quantile(sizes, 0.5 if both else 0.01))
        return cls(max(unit, float(np.finfo(np.float64).tiny)))

    def to_scale(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the table on this scale; NaN stays."""
        return np.arcsinh(values / (2 * self.unit))

    def to_units(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values on this scale in the units of the table."""
        with np.errstate(over="ignore"):
            return np.sinh(values) * (2 * self.unit)

    def to_json(self) -> dict[str, Any]:
        """As a file holds it."""
        return {"kind": self.kind, "unit": self.unit}

    @property
    def is_sound(self) -> bool:
        """Whether it could have been learned."""
        return type(self.unit) is float and math.isfinite(self.unit) and self.unit > 0


@dataclass(frozen=True)
class RankScale:
    """z = the score of x among `values` (m,) with normal `scores` (m,), both rising; straight lines beyond the ends.

    >>> RankScale.learn(np.array([3.0, 1.0, 700.0])).to_scale(np.array([3.0, 1.0])).round(2).tolist()
    [0.0, -0.97]
    """

    kind: ClassVar[ScaleName] = "rank"
    values: tuple[float, ...]
    scores: tuple[float, ...]

    @classmethod
    def learn(cls, values: Array) -> RankScale:
        """Of finite values, those of a column that are there; of very many some are kept, evenly in their scores."""
        found, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
        # A value that occurs often has the middle of its ranks.
        scores = ndtri((np.cumsum(counts) - counts / 2) / max(len(values), 1))
        if len(found) > MOST_KNOTS:
            even = np.searchsorted(scores, np.linspace(scores[0], scores[-1], MOST_KNOTS))
            chosen = np.unique(np.append(np.minimum(even, len(found) - 1), len(found) - 1))
            found, scores = found[chosen], scores[chosen]
        return cls(tuple(found.tolist()), tuple(scores.tolist()))

    def to_scale(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the table on this scale; NaN stays."""
        return _on_lines(values, self.values, self.scores)

    def to_units(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values on this scale in the units of the table."""
        return _on_lines(values, self.scores, self.values)

    def to_json(self) -> dict[str, Any]:
        """As a file holds it."""
        return {"kind": self.kind, "values": list(self.values), "scores": list(self.scores)}

    @property
    def is_sound(self) -> bool:
        """Whether it could have been learned."""
        both = (self.values, self.scores)
        plain = all(type(value) is float and math.isfinite(value) for values in both for value in values)
        rising = all(before < after for values in both for before, after in pairwise(values))
        return plain and rising and 1 <= len(self.values) == len(self.scores) <= MOST_KNOTS + 1


Scale = LogScale | RankScale
SCALES: dict[str, type[LogScale] | type[RankScale]] = {"log": LogScale, "rank": RankScale}


def _on_lines(values: NDArray[Any], places: Sequence[float], heights: Sequence[float]) -> NDArray[Any]:
    """The line through points that rise; beyond the ends as steep as between the last two."""
    values = np.asarray(values, dtype=np.float64)
    x, y = np.asarray(places), np.asarray(heights)
    if len(x) == 1:
        return values - x[0] + y[0]
    between = np.interp(values, x, y)
    below, above = (y[1] - y[0]) / (x[1] - x[0]), (y[-1] - y[-2]) / (x[-1] - x[-2])
    low, high = y[0] + (values - x[0]) * below, y[-1] + (values - x[-1]) * above
    return np.where(values < x[0], low, np.where(values > x[-1], high, between))


def scale_of_json(stored: Any) -> Scale:
    """The scale that `to_json` wrote; raises ValueError, KeyError or TypeError for anything else."""
    if stored["kind"] == LogScale.kind:
        return LogScale(stored["unit"])
    if stored["kind"] != RankScale.kind:
        raise ValueError(f"a scale of the kind {stored['kind']!r}")
    return RankScale(tuple(stored["values"]), tuple(stored["scores"]))


def rescaled(matrix: Any, functions: Mapping[int, Callable[[NDArray[Any]], NDArray[Any]]]) -> Any:
    """A copy of a matrix (n, d) with a function of some of its columns in their place; itself where there are none.

    Of a sparse matrix only what is stored is asked for, so zero must stay zero.

    >>> rescaled(np.array([[1.0, 3.0]]), {1: np.square}).tolist()
    [[1.0, 9.0]]
    """
    if not functions:
        return matrix
    if sparse.issparse(matrix):
        columns = sparse.csc_array(matrix, dtype=np.float64, copy=True)
        for place, function in functions.items():
            own = slice(columns.indptr[place], columns.indptr[place + 1])
            columns.data[own] = function(columns.data[own])
        return columns.asformat(matrix.format)
    copy = np.array(matrix, dtype=matrix.dtype if matrix.dtype.kind == "f" else np.float64)
    for place, function in functions.items():
        copy[:, place] = function(copy[:, place])
    return copy


# --- which columns ----------------------------------------------------------------------------------------------------


def is_skewed(values: Array, settings: TableSettings = SETTINGS.tables) -> bool:
    """Whether values (n,), NaN where they are missing, are strongly skewed, and not so on a log scale.

    The skewness is that of all but the outer half per cent on either side, which count as lying at its edge: a few
    gross values are outliers, and others see to these. The bulk must lean, too: (q₉₅ + q₅ − 2·median)/(q₉₅ − q₅), which
    the far values of a heavy tail on both sides do not move. A column that shares one value among half the rows, or has
    few different ones, is a count or a category rather than an amount.

    >>> rng = np.random.default_rng(0)
    >>> amounts, times = rng.lognormal(sigma=1.5, size=500), rng.exponential(size=500)
    >>> is_skewed(amounts), is_skewed(times)
    (True, False)
    """
    values = np.asarray(values, dtype=np.float64)
    values = values[seeded_sample(len(values), settings.rows)]
    values = values[np.isfinite(values)]
    if len(values) < settings.fewest_values:
        return False
    # In units of the largest, whose cubes fit in a float.
    values = values / max(float(np.abs(values).max()), np.finfo(np.float64).tiny)
    skewness, (low, middle, high) = _skewness(values), np.quantile(values, [0.05, 0.5, 0.95])
    leaning = np.sign(skewness) * (high + low - 2 * middle)
    if abs(skewness) < settings.skewed or leaning < settings.leaning * (high - low):
        return False
    _, counts = np.unique(values, return_counts=True)
    if len(counts) < settings.fewest_values or counts.max() >= settings.heap * len(values):
        return False
    return abs(_skewness(LogScale.learn(values).to_scale(values))) <= settings.even


def _skewness(values: Array) -> float:
    low, high = np.quantile(values, [0.005, 0.995])
    inner = np.clip(values, low, high)
    inner = inner - inner.mean()
    spread = float(np.abs(inner).max(initial=0.0))
    if not 0 < spread < np.inf:
        return 0.0
    inner = inner / spread
    return float(np.mean(inner**3) / np.mean(inner**2) ** 1.5)


def require_transform(transform: Any) -> None:
    """Refuse what is neither "log", "rank" nor one of them for each of some columns."""
    asked = list(transform.values()) if isinstance(transform, Mapping) else [transform]
    for scale in asked:
        if not isinstance(scale, str) or scale not in SCALES:
            kind = InvalidValueError if isinstance(scale, str) else InvalidTypeError
            raise kind(
                "transform",
                'must be "log", "rank" or one of them by column',
                f"{scale!r:.80}",
                way_out='write for example transform="log" for all skewed columns or transform={"income": "log"}',
            )


def chosen_scales(transform: Any, numbers: Mapping[str, Array], names: Iterable[str]) -> dict[str, Scale]:
    """The scale of every column that gets one: `numbers` are the columns of numbers by name, `names` all columns.

    "log" and "rank" are for all that are skewed, and so is "skewed" among names, unless a column has it for a name.

    >>> chosen_scales({"a": "log"}, {"a": np.array([1.0, 1.0, 2.0]), "b": np.zeros(3)}, ["a", "b"])
    {'a': LogScale(unit=1.0)}
    """
    require_transform(transform)
    every = list(names)
    asked = dict(transform) if isinstance(transform, Mapping) else {SKEWED: transform}
    for column in asked:
        if column in numbers or (column == SKEWED and SKEWED not in every):
            continue
        if column in every:
            raise InvalidValueError(
                "transform", f"must name columns of numbers, and {column!r} is none", way_out="leave it out"
            )
        raise InvalidValueError(
            "transform", f"must name columns that are features, got {column!r}: {close_matches(str(column), every)}"
        )
    of_skewed = None if SKEWED in every else asked.pop(SKEWED, None)
    if of_skewed is not None:
        asked = {name: of_skewed for name, values in numbers.items() if is_skewed(values)} | asked
    return {name: SCALES[asked[name]].learn(_finite(values)) for name, values in numbers.items() if name in asked}


def _finite(values: Array) -> Array:
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    return values if values.size else np.zeros(1)


def scale_notes(numbers: Mapping[str, Array], scales: Mapping[str, Scale], *, asked: bool) -> list[str]:
    """What is to be told of the scales of columns: those with another one, and those that are skewed and have none.

    >>> print(*scale_notes({"fee": np.random.default_rng(0).lognormal(sigma=1.5, size=500)}, {}, asked=False))
    strongly skewed: 'fee'; transform="log" looks at it on a log scale.
    """
    notes: list[str] = []
    for kind, words in (("log", "on a log scale"), ("rank", "by rank")):
        if names := [name for name, scale in scales.items() if scale.kind == kind]:
            notes.append(f"{listing(map(repr, names), 10)} {'is' if len(names) == 1 else 'are'} looked at {words}.")
    if asked and not scales:
        notes.append("no column is strongly skewed, so all are looked at as they are.")
    skewed = [name for name, values in numbers.items() if name not in scales and is_skewed(values)]
    if skewed:
        them = "it" if len(skewed) == 1 else "them"
        way = Phrase(OFFERS_LOG, 'transform="log"')
        told = listing(map(repr, skewed), 10)
        notes.append(Sentence(f"strongly skewed: {told}; ", way, f" looks at {them} on a log scale."))
    return notes
