"""Are the clusters found more than what a table of one group shows? A verdict beside the clusters, not a gate.

1. A valley. Along the discriminant of some clusters against all other rows, learned on other folds, the density of all
   rows has a valley whose z is about standard normal where there is none (`valleys`). No cloud with one peak has one.
2. Dependence beyond one group. Tables are drawn that have the columns of this one and are one group, and the mixture's
   gain over one component on rows left out (mean of the middle half of the rows) must lie above theirs. Two kinds are
   drawn, and the weaker evidence counts:
   the same values in every column, whole categories and their holes, with the correlations of their normal scores;
   the same distances from the mean in units of the covariance, in any direction.

"clear" needs a valley, or of categories, between whose levels there is always one, much dependence. Dependence without
a valley is "perhaps": a curve has it too. Anything else is "none".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import norm, rankdata
from scipy.stats import t as t_distribution

from imapce.clusters.cells import Cells
from imapce.clusters.mixture import Choice, folds_of, left_out, trees_of, trimmed
from imapce.clusters.space import Space
from imapce.clusters.trees import cut, sphered, sphering
from imapce.clusters.valleys import deepest_valley
from imapce.common.records import Comparable
from imapce.common.watch import UNWATCHED, Watch
from imapce.common.words import counted

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Verdict = Literal["clear", "perhaps", "none"]

# z from which a valley is no chance, and from which it is likely none: those of 48 tables of noise without categories
# and heaps reached 2.6.
CLEAR_VALLEY, LIKELY_VALLEY = 3.5, 2.5
# p-values of the gain among drawn tables. Where categories or heaps of one value leave no valley to tell, structure is
# clear up to CLEAR and perhaps there up to LIKELY; that no valley is where one could be is evidence against it, and it
# is perhaps there up to UNSEEN. Every kind of drawn table must be refuted by POSSIBLE.
CLEAR, UNSEEN, LIKELY, POSSIBLE = 0.001, 0.01, 0.05, 0.1
DRAWS, FEWEST_DRAWS = 9, 4
FOLDS, MIDDLE = 3, 0.25
# The share of rows with one value from which a column is a heap and something beside it: its valley is no evidence.
HEAP = 0.25
FEW_VALUES = 10
# Rows that are enough to tell what is clear; where they do not, all of the sample are asked.
FEW_ROWS = 500
MOST_SIZES = 8


@dataclass(frozen=True)
class Evidence:
    """One test of structure: what it was tested against, in words, its z and its p-value.

    >>> Evidence("tables with one peak", 4.0, 3e-05).z
    4.0
    """

    against: str
    z: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Split(Comparable):
    """The best split of the rows, whether or not it is more than chance: labels (n,) of all rows, -1 for none.

    >>> Split(np.array([0, 1, 1, -1])).words
    '2 groups of 2 and 1 rows'
    """

    labels: Labels

    @property
    def sizes(self) -> list[int]:
        """How many rows each group has, the largest first."""
        return sorted(np.unique(self.labels[self.labels >= 0], return_counts=True)[1].tolist(), reverse=True)

    @property
    def n_clusters(self) -> int:
        """How many groups there are."""
        return len(self.sizes)

    @property
    def words(self) -> str:
        """How many groups of how many rows."""
        *most, last = [f"{size:,}" for size in self.sizes[:MOST_SIZES]] or ["0"]
        sizes = f"{', '.join(most)} and {last}" if most else last
        if len(self.sizes) > MOST_SIZES:
            sizes = ", ".join([*most, last, "…"])
        return f"{counted(self.n_clusters, 'group')} of {sizes} rows"


@dataclass(frozen=True)
class Structure:
    """Whether rows are more than one group: the `verdict`, the reason in words, the tests, and the best split.

    >>> Structure("none", "one group explains rows left out best").is_taken
    False
    """

    verdict: Verdict
    words: str
    evidence: tuple[Evidence, ...] = ()
    candidate: Split | None = field(default=None, compare=False, repr=False)

    @property
    def is_taken(self) -> bool:
        """Whether clusters are shown and taken without being asked for: where the verdict is clear or perhaps."""
        return self.verdict != "none"


def judged(space: Space, found: Choice, labels: Labels, watch: Watch = UNWATCHED) -> Structure:
    """Whether the mixture found and the clusters (m,) made of it are more than chance.

    >>> from imapce.clusters.mixture import choose
    >>> from imapce.priors.problem import pose
    >>> from imapce.rows.open import open_rows
    >>> from imapce.tables.reader import Reader
    >>> rows = np.random.default_rng(0).standard_normal((200, 3)) + 9 * (np.arange(200) < 99)[:, None]
    >>> reader, matrix = Reader.learn(rows)
    >>> space = Space.of(pose(open_rows(matrix), [], reader, n_components=2), np.ones(200, dtype=bool))
    >>> found = choose(space.cells, space.points)
    >>> judged(space, found, found.labels).verdict
    'clear'
    """
    if found.gain <= 0:
        return Structure("none", "one group explains rows left out best")
    S = sphered(space.points)
    valley = max(deepest_valley(S, found.labels), deepest_valley(S, labels))
    told = [Evidence("rows with one peak in every direction", valley, float(norm.sf(valley)))]
    if not labels.any():
        return Structure("none", f"no valley separates any two groups (z = {valley:.1f})", tuple(told))
    if valley >= CLEAR_VALLEY and _valley_tells(space):
        return Structure("clear", f"a valley separates groups (z = {valley:.1f})", tuple(told))
    refuted, likely = True, UNSEEN if _valley_tells(space) else LIKELY
    for null, needed in ((SameScores, likely), (SameColumns, POSSIBLE), (SameDistances, POSSIBLE)):
        z, p_value = _beyond(space, found, null, needed, watch)
        told.append(Evidence(null.words, z, p_value))
        # Columns with two peaks have them in drawn tables too; a valley that is likely tells more.
        refuted = p_value <= needed or (null is SameColumns and valley >= LIKELY_VALLEY)
        if not refuted:
            break
    evidence, chance = tuple(told), f"p = {told[1].p_value:.2g}"
    if not refuted and not space.shared and valley >= CLEAR_VALLEY:
        return Structure("none", "one column alone tells groups apart, and no other column agrees with it", evidence)
    if not refuted:
        return Structure("none", f"{told[-1].against} show as much (p = {told[-1].p_value:.2g})", evidence)
    words = f"columns agree on groups more than in {SameScores.words} ({chance})"
    if _valley_tells(space):
        return Structure("perhaps", f"{words}, but no valley separates them: it may be a curve or a gradient", evidence)
    return Structure("clear" if told[1].p_value <= CLEAR else "perhaps", words, evidence)


def _valley_tells(space: Space) -> bool:
    """Whether a valley is evidence: columns agree on it, and none is a category or a heap of one value."""
    if not space.shared or not space.columns.are_numbers:
        return False
    ordered = np.sort(space.rounded, axis=0)
    step = max(1, int(HEAP * len(ordered)))
    return not bool((ordered[step:] == ordered[:-step]).any() or (space.columns.counts < FEW_VALUES).any())


def _beyond(space: Space, found: Choice, kind: type[SameColumns], needed: float, watch: Watch) -> tuple[float, float]:
    """z and p-value of the gain among those of drawn tables; by some of the rows where these tell clearly enough."""
    n = len(space.points)
    if n > 2 * FEW_ROWS:
        few = np.random.default_rng(9).permutation(n)[:FEW_ROWS]
        z, p_value = _among_drawn(kind(space, few), space, found, watch)
        if p_value <= needed:
            return z, p_value
    return _among_drawn(kind(space), space, found, watch)


def _among_drawn(null: SameColumns, space: Space, found: Choice, watch: Watch) -> tuple[float, float]:
    gain, drawn, z, p_value = gain_of(*space.like(*null.given), found), [], 0.0, 1.0
    for number in range(DRAWS):
        watch.tell("asking whether it is structure", number / DRAWS)
        drawn.append(gain_of(*space.like(*null.draw(number)), found))
        if number + 1 < FEWEST_DRAWS:
            continue
        z = (gain - float(np.mean(drawn))) / max(float(np.std(drawn, ddof=1)), 1e-12)
        p_value = float(t_distribution.sf(z / np.sqrt(1 + 1 / len(drawn)), len(drawn) - 1))
        # All draws are for those in between.
        if p_value <= CLEAR or p_value > 3 * POSSIBLE:
            break
    return z, p_value


def gain_of(points: Array, cells: Cells, found: Choice) -> float:
    """ln f of rows left out with the components found above that with one, mean over the middle half of the rows.

    The middle half: a few far rows decide the mean, and t(3) noise then lies 4 standard deviations from its copula.
    """
    fold = folds_of(len(cells), FOLDS)
    start = cut(trees_of(points, only=found.tree)[0], found.size)
    many = left_out(cells, start, found.kappa, fold, range(FOLDS))
    return trimmed(many - left_out(cells, np.ones((len(cells), 1)), 1.0, fold, range(FOLDS)), MIDDLE)


class SameColumns:
    """Tables of one group with the values of every column and the correlations of their normal scores.

    Whole categories are drawn, in the order in which their levels lie along the first axis of all rows.
    """

    words = "tables with the same columns and correlations"

    def __init__(self, space: Space, rows: Labels | None = None):
        chosen = np.arange(len(space.points)) if rows is None else rows
        levels = space.columns.codes(space.rounded)[chosen]
        self.given = self._numbers(space.null_numbers[chosen]), levels
        X = np.column_stack([self.given[0], _in_order(levels, space.points[chosen])])
        scores = normal_scores(X)
        values, axes = np.linalg.eigh(scores.T @ scores / len(X))
        self._root = (axes * np.sqrt(np.maximum(values, 0.0))).T
        self._order = np.argsort(X, axis=0, kind="stable")

    def _numbers(self, numbers: Array) -> Array:
        return numbers

    def draw(self, number: int) -> tuple[Array, Labels]:
        """The numbers and levels of the table with this number, always the same."""
        drawn = np.random.default_rng([7, number]).standard_normal(self._order.shape) @ self._root
        source = np.take_along_axis(self._order, drawn.argsort(axis=0).argsort(axis=0), axis=0)
        numbers, levels = self.given
        c = numbers.shape[1]
        return np.take_along_axis(numbers, source[:, :c], axis=0), np.take_along_axis(levels, source[:, c:], axis=0)


class SameScores(SameColumns):
    """The same of the normal scores of the numbers: skewed columns, which look like groups themselves, are no more."""

    words = "tables with the same ranks and correlations"

    def _numbers(self, numbers: Array) -> Array:
        return normal_scores(numbers)


class SameDistances(SameColumns):
    """Tables whose numbers have the covariance and the rows' distances from the mean in its units, in any direction."""

    words = "tables with the same distances from the middle"

    def __init__(self, space: Space, rows: Labels | None = None):
        super().__init__(space, rows)
        numbers = self.given[0]
        self._mean = numbers.mean(axis=0)
        to_axes = sphering(numbers)
        self._spread = np.linalg.pinv(to_axes)
        self._lengths = np.linalg.norm((numbers - self._mean) @ to_axes, axis=1)

    def draw(self, number: int) -> tuple[Array, Labels]:
        rng = np.random.default_rng([8, number])
        drawn = rng.standard_normal((len(self._lengths), len(self._spread)))
        lengths = rng.permutation(self._lengths) / np.maximum(np.linalg.norm(drawn, axis=1), 1e-300)
        return self._mean + (drawn * lengths[:, None]) @ self._spread, super().draw(number)[1]


def normal_scores(X: Array) -> Array:
    """Columns (n, c) by their ranks, as a standard normal would have them, at unit variance.

    >>> normal_scores(np.array([[1.0], [2.0], [1e9]])).ravel().round(2).tolist()
    [-1.22, 0.0, 1.22]
    """
    scores = ndtri((rankdata(X, axis=0) - 0.5) / len(X))
    return np.asarray(scores / np.maximum(scores.std(axis=0), 1e-12))


def _in_order(levels: Labels, points: Array) -> Array:
    """(m, b): the levels of categories as ranks, by where their rows lie along the first axis of all rows."""
    along = sphered(points)[:, -1] if points.shape[1] else np.zeros(len(points))
    ranks = np.zeros(levels.shape)
    for b, codes in enumerate(levels.T):
        place = np.unique(codes, return_inverse=True)[1]
        ranks[:, b] = np.argsort(np.argsort(np.bincount(place, along) / np.bincount(place)))[place]
    return ranks
