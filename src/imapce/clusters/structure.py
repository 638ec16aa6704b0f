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

And do the clusters come back where a fifth of the rows is left out (`stability_of`)? The rows left out are the folds by
which the size of a mixture is chosen, of two draws: ten times 80 % of the rows. The mixture is learned anew from where
it began, and its components are merged anew. A cluster came back where of the rows that are in it or in one of the
groups found more than half are in both (Jaccard's index above ½).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import ndtri
from scipy.stats import norm, rankdata
from scipy.stats import t as t_distribution

from imapce.clusters.columns import Cells
from imapce.clusters.given import groups_of
from imapce.clusters.mixture import (
    ChosenMixture,
    cut,
    fit_mixture,
    folds_of,
    left_out,
    sphered,
    sphering,
    tree_of,
    trimmed,
)
from imapce.clusters.space import Space
from imapce.clusters.valleys import deepest_valley
from imapce.common.arrays import Array, Codes, Mask
from imapce.common.records import Comparable
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.common.words import counted
from imapce.common.work import UNWATCHED, Watch

Verdict = Literal["clear", "perhaps", "none"]
# Groups whose sizes are told.
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

    labels: Codes

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


def judge(space: Space, found: ChosenMixture, labels: Codes, watch: Watch = UNWATCHED) -> Structure:
    """Whether the mixture found and the clusters (m,) made of it are more than chance."""
    if found.gain <= 0:
        return Structure("none", "one group explains rows left out best")
    settings = space.settings
    S = sphered(space.points)
    valley = max(deepest_valley(S, found.labels, settings), deepest_valley(S, labels, settings))
    told = [Evidence("rows with one peak in every direction", valley, float(norm.sf(valley)))]
    if not labels.any():
        return Structure("none", f"no valley separates any two groups (z = {valley:.1f})", tuple(told))
    valley_tells = _valley_tells(space)
    if valley >= settings.clear_valley and valley_tells:
        return Structure("clear", f"a valley separates groups (z = {valley:.1f})", tuple(told))
    # That no valley is where one could be is evidence against structure.
    refuted, likely = True, settings.chance if valley_tells else settings.likely
    for null, needed in ((SameScores, likely), (SameColumns, settings.possible), (SameDistances, settings.possible)):
        z, p_value = _test_against(space, found, null, needed, watch)
        told.append(Evidence(null.words, z, p_value))
        # Columns with two peaks have them in drawn tables too; a valley that is likely tells more.
        refuted = p_value <= needed or (null is SameColumns and valley >= settings.likely_valley)
        if not refuted:
            break
    evidence, chance = tuple(told), f"p = {told[1].p_value:.2g}"
    if not refuted and not space.shared and valley >= settings.clear_valley:
        return Structure("none", "one column alone tells groups apart, and no other column agrees with it", evidence)
    if not refuted:
        less = f"p = {told[-1].p_value:.2g}, asked for is {needed:g} or less"
        return Structure("none", f"{told[-1].against} show as much ({less})", evidence)
    words = f"columns agree on groups more than in {SameScores.words} ({chance})"
    if valley_tells:
        return Structure("perhaps", f"{words}, but no valley separates them: it may be a curve or a gradient", evidence)
    return Structure("clear" if told[1].p_value <= settings.clear else "perhaps", words, evidence)


def _valley_tells(space: Space) -> bool:
    """Whether a valley is evidence: columns agree on it, and none is a category or a heap of one value."""
    if not space.shared or not space.columns.are_numbers:
        return False
    ordered = np.sort(space.rounded, axis=0)
    step = max(1, int(space.settings.heap * len(ordered)))
    heaps = (ordered[step:] == ordered[:-step]).any()
    return not bool(heaps or (space.columns.counts < space.settings.few_values).any())


def _test_against(
    space: Space, found: ChosenMixture, kind: type[SameColumns], needed: float, watch: Watch
) -> tuple[float, float]:
    """z and p-value of the mixture's gain over one component, among those in tables that were drawn without clusters
    (`kind` says what they share with the rows); by some of the rows where these tell clearly enough.
    """
    n, few_rows = len(space.points), space.settings.few_rows
    if n > 2 * few_rows:
        # Seeded, so that the same rows get the same verdict.
        few = np.random.default_rng(9).permutation(n)[:few_rows]
        z, p_value = _among_drawn(kind(space, few), space, found, watch)
        if p_value <= needed:
            return z, p_value
    return _among_drawn(kind(space), space, found, watch)


def _among_drawn(null: SameColumns, space: Space, found: ChosenMixture, watch: Watch) -> tuple[float, float]:
    settings = space.settings
    gain, drawn, z, p_value = gain_of(*space.like(*null.given), found, settings), [], 0.0, 1.0
    for number in range(settings.null_draws):
        watch.tell("asking whether it is structure", number / settings.null_draws)
        drawn.append(gain_of(*space.like(*null.draw(number)), found, settings))
        if number + 1 < settings.fewest_draws:
            continue
        z = (gain - float(np.mean(drawn))) / max(float(np.std(drawn, ddof=1)), 1e-12)
        p_value = float(t_distribution.sf(z / np.sqrt(1 + 1 / len(drawn)), len(drawn) - 1))
        # All draws are for those in between.
        if p_value <= settings.clear or p_value > 3 * settings.possible:
            break
    return z, p_value


def gain_of(points: Array, cells: Cells, found: ChosenMixture, settings: ClusterSettings = SETTINGS.clusters) -> float:
    """ln f of rows left out with the components found above that with one, mean over the middle half of the rows: a few
    far rows decide the mean of all.
    """
    fold = folds_of(len(cells), settings.null_folds)
    start = cut(tree_of(points, settings, found.tree), found.size)
    many = left_out(cells, start, found.prior_rows, fold, settings=settings)
    alone = left_out(cells, np.ones((len(cells), 1)), 1.0, fold, settings=settings)
    return trimmed(many - alone, settings.middle)


class SameColumns:
    """Tables of one group with the values of every column and the correlations of their normal scores.

    Whole categories are drawn, in the order in which their levels lie along the first axis of all rows.
    """

    words = "tables with the same columns and correlations"

    def __init__(self, space: Space, rows: Codes | None = None):
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

    def draw(self, number: int) -> tuple[Array, Codes]:
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

    def __init__(self, space: Space, rows: Codes | None = None):
        super().__init__(space, rows)
        numbers = self.given[0]
        self._mean = numbers.mean(axis=0)
        to_axes = sphering(numbers)
        self._spread = np.linalg.pinv(to_axes)
        self._lengths = np.linalg.norm((numbers - self._mean) @ to_axes, axis=1)

    def draw(self, number: int) -> tuple[Array, Codes]:
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


def _in_order(levels: Codes, points: Array) -> Array:
    """(m, b): the levels of categories as ranks, by where their rows lie along the first axis of all rows."""
    along = sphered(points)[:, -1] if points.shape[1] else np.zeros(len(points))
    ranks = np.zeros(levels.shape)
    for b, codes in enumerate(levels.T):
        place = np.unique(codes, return_inverse=True)[1]
        ranks[:, b] = np.argsort(np.argsort(np.bincount(place, along) / np.bincount(place)))[place]
    return ranks


def stability_of(space: Space, found: ChosenMixture, final: Codes, watch: Watch = UNWATCHED) -> dict[int, float]:
    """The share of the draws in which each of the clusters `final` (m,) of the mixture `found` came back."""
    back = np.zeros(int(final.max()) + 1)
    if found.start is None or len(back) < 2:
        return {}
    settings, fewer = space.settings, space.settings.few_iterations
    times = settings.draws * settings.folds
    for draw in range(settings.draws):
        fold = folds_of(len(final), settings.folds, 1 + draw)
        for f in range(settings.folds):
            watch.tell("asking whether clusters come back", (draw * settings.folds + f) / times)
            drawn = fold != f
            cells, start = space.cells.some(drawn), found.start[drawn]
            shares = fit_mixture(cells, start, found.prior_rows, iterations=fewer, settings=settings)[1]
            labels = groups_of(space, shares.argmax(axis=1), rows=drawn, draws=1)
            back += came_back(final[drawn], labels, len(back))
    return {cluster: float(share) for cluster, share in enumerate(back / times)}


def came_back(before: Codes, after: Codes, n_clusters: int) -> Mask:
    """(k,): whether a group of the labels `after` (n,) is each cluster of those `before`.

    >>> came_back(np.array([0, 0, 0, 1, 1, 1]), np.array([5, 5, 5, 5, 7, 7]), 2)
    array([ True,  True])
    """
    groups = np.unique(after, return_inverse=True)[1]
    both = np.zeros((n_clusters, int(groups.max()) + 1))
    np.add.at(both, (before, groups), 1)
    either = both.sum(axis=1, keepdims=True) + both.sum(axis=0) - both
    return np.asarray((both / np.maximum(either, 1)).max(axis=1) > 0.5)
