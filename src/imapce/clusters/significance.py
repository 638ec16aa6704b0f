"""Significance of clusters: null tables with the columns of the data but one group, and overlap between clusters.

The held-out gain of the selected mixture over one component is compared with the gains of three kinds of null tables.
Each null model must be rejected at 10 %, and two of them at 1 %: groups that are far apart are seen in the columns
themselves, and the tables of one null model have them too.

    same ranks       normal scores of the columns with their correlations; categories as below
    same columns     the values of the columns with the correlations of their normal scores
    same distances   the distances from the mean, in units of the covariance, in random directions

"clear": all null models are rejected, and there are at least two groups of clusters that share at most 10 % of their
rows. "possible": the null models are rejected, but all clusters overlap (a continuum). "none": anything else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from scipy.stats import t as t_distribution

from imapce.clusters.axes import Coordinates, Sample, sphering
from imapce.clusters.selection import Selection, Starts, folds, held_out, one_hot
from imapce.common.arrays import Array, Codes
from imapce.common.records import Comparable
from imapce.common.settings import ClusterSettings
from imapce.common.words import counted
from imapce.common.work import UNWATCHED, Watch

Verdict = Literal["clear", "possible", "none"]
NullModel = Literal["ranks", "columns", "distances"]
NULL_MODELS: dict[NullModel, str] = {
    "ranks": "tables with the same ranks and correlations",
    "columns": "tables with the same columns and correlations",
    "distances": "tables with the same distances from the mean",
}
MAX_SIZES = 8


@dataclass(frozen=True)
class Evidence:
    """A test of structure: the null model in words, z and p-value.

    >>> Evidence("tables with the same ranks", 4.0, 3e-05).z
    4.0
    """

    against: str
    z: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Split(Comparable):
    """The best clusters of the rows, whatever the verdict: labels (n,), -1 for none.

    >>> Split(np.array([0, 1, 1, -1])).words
    '2 clusters of 2 and 1 rows'
    """

    labels: Codes

    @property
    def sizes(self) -> list[int]:
        """Return the number of rows of each cluster, the largest first."""
        return sorted(np.unique(self.labels[self.labels >= 0], return_counts=True)[1].tolist(), reverse=True)

    @property
    def n_clusters(self) -> int:
        """Return the number of clusters."""
        return len(self.sizes)

    @property
    def words(self) -> str:
        """Return the number and the sizes of the clusters in words."""
        *most, last = [f"{size:,}" for size in self.sizes[:MAX_SIZES]] or ["0"]
        sizes = f"{', '.join(most)} and {last}" if most else last
        if len(self.sizes) > MAX_SIZES:
            sizes = ", ".join([*most, last, "…"])
        return f"{counted(self.n_clusters, 'cluster')} of {sizes} rows"


@dataclass(frozen=True)
class Structure:
    """The evidence for structure: `verdict`, reason in words, tests, and the best clusters.

    >>> Structure("none", "a mixture explains held-out rows no better than one component").is_taken
    False
    """

    verdict: Verdict
    words: str
    evidence: tuple[Evidence, ...] = ()
    candidate: Split | None = field(default=None, compare=False, repr=False)

    @property
    def is_taken(self) -> bool:
        """Return whether clusters are accepted by default."""
        return self.verdict != "none"


def assess_structure(sample: Sample, found: Selection, groups: Codes, watch: Watch = UNWATCHED) -> Structure:
    """Return the evidence for the clusters of a sample, whose `groups` (c,) are those of overlapping clusters."""
    if found.gain <= 0:
        return Structure("none", "a mixture explains held-out rows no better than one component")
    tests: list[Evidence] = []
    for model, words in NULL_MODELS.items():
        tests.append(Evidence(words, *_test_against(sample, found, model, watch)))
        weakest = sorted(tests, key=lambda test: -test.p_value)
        is_rejected = weakest[0].p_value <= sample.settings.weak_significance
        if not is_rejected or (len(tests) > 1 and weakest[1].p_value > sample.settings.significance):
            words = f"{weakest[0].against} show as much (p = {weakest[0].p_value:.2g})"
            return Structure("none", words, tuple(tests))
    chance = f"p = {weakest[1].p_value:.2g}"
    if groups.max(initial=0) == 0:
        words = f"{counted(len(groups), 'cluster')} that overlap, more than in null tables ({chance}): a continuum"
        return Structure("possible", words, tuple(tests))
    return Structure("clear", f"{groups_in_words(groups)} ({chance})", tuple(tests))


def groups_in_words(groups: Codes) -> str:
    """Return the groups of clusters in words.

    >>> groups_in_words(np.array([0, 1, 1, 2]))
    '3 separate groups; one of them is divided into 2 overlapping clusters'
    """
    sizes = np.bincount(groups)
    words = f"{counted(len(sizes), 'separate group')}"
    divided = [str(size) for size in sizes if size > 1]
    if len(divided) == 1:
        return f"{words}; one of them is divided into {divided[0]} overlapping clusters"
    if divided:
        return f"{words}; {len(divided)} of them are divided into {', '.join(divided)} overlapping clusters"
    return words


def _test_against(sample: Sample, found: Selection, model: NullModel, watch: Watch) -> tuple[float, float]:
    """Return z and p-value of the gain among those of null tables, of some of the rows if these are decisive."""
    n, few = len(sample.values), sample.settings.few_rows
    if n > 2 * few:
        # Seeded, so that the same rows get the same verdict.
        rows = np.random.default_rng(9).permutation(n)[:few]
        z, p_value = _compare(NullTables(sample, rows, model), sample, found, watch)
        if p_value <= sample.settings.significance:
            return z, p_value
    return _compare(NullTables(sample, np.arange(n), model), sample, found, watch)


def _compare(tables: NullTables, sample: Sample, found: Selection, watch: Watch) -> tuple[float, float]:
    """Return z and p-value of the gain of the given table among those of null tables."""
    settings, drawn, z, p_value = sample.settings, [], 0.0, 1.0
    gain = gain_of(*tables.coordinates(tables.given, found.n_axes), found, settings)
    for number in range(settings.null_draws):
        watch.tell("comparing with null tables", number / settings.null_draws)
        drawn.append(gain_of(*tables.coordinates(tables.draw(number), found.n_axes), found, settings))
        if number + 1 < settings.fewest_draws:
            continue
        z = (gain - float(np.mean(drawn))) / max(float(np.std(drawn, ddof=1)), 1e-12)
        p_value = float(t_distribution.sf(z / np.sqrt(1 + 1 / len(drawn)), len(drawn) - 1))
        # All draws are for p-values near the significance level.
        if p_value <= settings.significance / 10 or p_value > 3 * settings.weak_significance:
            break
    return z, p_value


def gain_of(rows: Coordinates, points: Array, found: Selection, settings: ClusterSettings) -> float:
    """Return the held-out gain of the selected number of components, from the selected start."""
    labels = Starts(points, settings, only=found.start)(found.n_components)
    if not labels:
        return 0.0
    fold, n = folds(len(rows), settings.folds, settings.seed), len(rows)
    density = held_out(rows, one_hot(labels[found.start], found.n_components)[None], fold, settings)[0]
    return float((density - held_out(rows, np.ones((1, n, 1)), fold, settings)[0]).mean())


class NullTables:
    """Tables of one group like some rows of a sample, and the table of these rows itself.

    Whole categories are drawn, in the order in which their levels lie along the first axis of all rows.
    """

    def __init__(self, sample: Sample, rows: Codes, model: NullModel):
        self._sample, self._model = sample, model
        roles, source = sample.roles, sample.residuals if sample.covariates.shape[1] else sample.values
        numbers, levels = source[rows][:, roles.numeric | roles.partial], roles.codes(sample.values[rows])
        self.given = normal_scores(numbers) if model == "ranks" else numbers, levels
        X = np.column_stack([self.given[0], _level_ranks(levels, sample.points[rows])])
        scores = normal_scores(X)
        variances, axes = np.linalg.eigh(scores.T @ scores / len(X))
        self._root = (axes * np.sqrt(np.maximum(variances, 0.0))).T
        self._order = np.argsort(X, axis=0, kind="stable")
        to_axes = sphering(numbers)
        self._from_axes, self._mean = np.linalg.pinv(to_axes), numbers.mean(axis=0)
        self._lengths = np.linalg.norm((numbers - self._mean) @ to_axes, axis=1)

    def draw(self, number: int) -> tuple[Array, Codes]:
        """Return the numbers and levels of the null table with this number, always the same."""
        drawn = np.random.default_rng([7, number]).standard_normal(self._order.shape) @ self._root
        source = np.take_along_axis(self._order, drawn.argsort(axis=0).argsort(axis=0), axis=0)
        numbers, levels = self.given
        c = numbers.shape[1]
        levels = np.take_along_axis(levels, source[:, c:], axis=0)
        if self._model != "distances":
            return np.take_along_axis(numbers, source[:, :c], axis=0), levels
        rng = np.random.default_rng([8, number])
        axes = rng.standard_normal((len(self._lengths), len(self._from_axes)))
        lengths = rng.permutation(self._lengths) / np.maximum(np.linalg.norm(axes, axis=1), 1e-300)
        return self._mean + (axes * lengths[:, None]) @ self._from_axes, levels

    def coordinates(self, table: tuple[Array, Codes], q: int) -> tuple[Coordinates, Array]:
        """Return the coordinates and the points of numbers and levels."""
        values = self._sample.roles.matrix(*table)
        points = values @ self._sample.leading
        return self._sample.coordinates_of(values, values, q, None), points if len(table[1].T) else points[:, :q]


def normal_scores(X: Array) -> Array:
    """Return the columns (n, c) as standard normal quantiles of their ranks, with unit variance.

    >>> normal_scores(np.array([[1.0], [2.0], [1e9]])).ravel().round(2).tolist()
    [-1.22, 0.0, 1.22]
    """
    scores = ndtri((rankdata(X, axis=0) - 0.5) / len(X))
    return np.asarray(scores / np.maximum(scores.std(axis=0), 1e-12))


def _level_ranks(levels: Codes, points: Array) -> Array:
    """Return the levels (m, b) as ranks of the means of their rows along the first axis."""
    along = points[:, 0] if points.shape[1] else np.zeros(len(points))
    ranks = np.zeros(levels.shape)
    for b, codes in enumerate(levels.T):
        index = np.unique(codes, return_inverse=True)[1]
        ranks[:, b] = np.argsort(np.argsort(np.bincount(index, along) / np.bincount(index)))[index]
    return ranks
