"""Significance of clusters: null tables with the columns of the data but one group, and overlap between clusters.

The held-out gain of the selected mixture over one component is compared with the gains of three kinds of null tables:

    same distances   the distances from the mean, in units of the covariance, in random directions
    same columns     the values of the columns with the correlations of their normal scores
    same ranks       normal scores of the columns with their correlations; categories as above

The first must be rejected at 1 %, and the second at 0.1 %; or at 20 %, if the third is rejected at 5 %: groups that are
far apart are visible in each column, so tables with these columns have groups too. If clusters are stable and overlap
by at most 2 %, the third suffices at 0.1 %. The gain is computed with other folds than the selection, where it is the
largest of many.

"clear": the null models are rejected, and there are at least two groups of clusters that overlap by at most 10 % and
have stable clusters. "possible": all clusters overlap (a continuum), fewer than two groups are stable, or the second
model is rejected at 1 % only, or at 20 % with clusters that are stable and overlap by at most 2 %. "none": all else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from scipy.stats import t as t_distribution

from imapce.clusters.axes import Sample, sphering
from imapce.clusters.selection import Selection, Starts, folds, held_out, leading_points, one_hot
from imapce.common.arrays import Array, Codes
from imapce.common.words import counted
from imapce.common.work import UNWATCHED, Tell

OUTLIER = -1
Verdict = Literal["clear", "possible", "none"]
NullModel = Literal["ranks", "columns", "distances"]
NULL_MODELS: dict[NullModel, str] = {
    "distances": "tables with the same distances from the mean",
    "columns": "tables with the same columns and correlations",
    "ranks": "tables with the same ranks and correlations",
}
# Seeds of folds by which nothing was selected.
OTHER_FOLDS = (101, 102, 103)


@dataclass(frozen=True)
class Evidence:
    """A test of structure: the null model in words, z and p-value.

    >>> Evidence("tables with the same ranks", 4.0, 3e-05).z
    4.0
    """

    against: str
    z: float
    p_value: float


@dataclass(frozen=True)
class Structure:
    """The evidence for structure: `verdict`, `reason`, tests, and the best clusters (n,), OUTLIER for none.

    >>> Structure("none", "a mixture explains held-out rows no better than one component").is_taken
    False
    """

    verdict: Verdict
    reason: str
    evidence: tuple[Evidence, ...] = ()
    candidate: Codes | None = field(default=None, compare=False, repr=False)

    @property
    def is_taken(self) -> bool:
        """Return whether clusters are accepted by default."""
        return self.verdict != "none"

    @property
    def sizes(self) -> list[int]:
        """Return the number of rows of each of the best clusters, the largest first."""
        labels = np.zeros(0) if self.candidate is None else self.candidate[self.candidate != OUTLIER]
        return sorted(np.unique(labels, return_counts=True)[1].tolist(), reverse=True)


def assess_structure(
    sample: Sample,
    found: Selection,
    groups: Codes,
    stability: Array,
    overlap: Array,
    progress: Tell = UNWATCHED.tell,
) -> Structure:
    """Return the evidence for clusters of a sample with these `groups`, `stability` and total `overlap` (c,)."""
    if found.gain <= 0:
        return Structure("none", "a mixture explains held-out rows no better than one component")
    if len(groups) < 2:
        return Structure("none", "the covariates explain all clusters but one")
    settings, tests = sample.settings, []
    level, strong, weak = settings.significance, settings.strong_significance, settings.weak_significance
    # Groups that are far from each other are in most tables with the same columns, too.
    is_separate = overlap.max() <= settings.most_overlap / 5 and stability.min() >= settings.resample_share
    # The p-values at which a model is rejected alone, and up to which the next may decide.
    levels = {"distances": (level, level), "columns": (strong, 1.0 if is_separate else weak), "ranks": (1.0, 1.0)}
    for model, description in NULL_MODELS.items():
        alone, at_most = levels[model]
        tests.append(Evidence(description, *_test_against(sample, found, model, alone, progress)))
        if tests[-1].p_value > at_most:
            return _not_significant(tests)
        if model == "columns" and tests[-1].p_value <= alone:
            break
    p_value = tests[1].p_value
    is_strong = p_value <= strong or tests[-1].p_value <= (settings.rank_significance if p_value <= weak else strong)
    if not is_strong and p_value > (weak if is_separate else level):
        return _not_significant(tests)
    reason, chance = describe_groups(groups), f"p = {max(tests[0].p_value, min(p_value, tests[-1].p_value)):.2g}"
    if groups.max(initial=0) == 0:
        reason = f"{counted(len(groups), 'cluster')} that overlap, more than in null tables ({chance}): a continuum"
        return Structure("possible", reason, tuple(tests))
    if is_strong and len(np.unique(groups[stability >= settings.least_stability])) < 2:
        return Structure("possible", f"{reason} ({chance}), fewer than two of which are stable", tuple(tests))
    return Structure("clear" if is_strong else "possible", f"{reason} ({chance})", tuple(tests))


def _not_significant(tests: list[Evidence]) -> Structure:
    """Return the verdict "none", because of the test with the largest p-value."""
    weakest = max(tests, key=lambda test: test.p_value)
    return Structure("none", f"{weakest.against} show as much (p = {weakest.p_value:.2g})", tuple(tests))


def describe_groups(groups: Codes) -> str:
    """Return a description of the groups of clusters.

    >>> describe_groups(np.array([0, 1, 1, 2]))
    '3 separate groups; one of them is divided into 2 overlapping clusters'
    """
    sizes = np.bincount(groups)
    description, divided = counted(len(sizes), "separate group"), [str(size) for size in sizes if size > 1]
    if not divided:
        return description
    which = "one of them is" if len(divided) == 1 else f"{len(divided)} of them are"
    return f"{description}; {which} divided into {', '.join(divided)} overlapping clusters"


def _test_against(
    sample: Sample, found: Selection, model: NullModel, level: float, progress: Tell
) -> tuple[float, float]:
    """Return z and p-value of the gain; by fewer rows if their p-value is already at most `level`."""
    n, few, z, p_value = len(sample.values), sample.settings.few_rows, 0.0, 1.0
    # Seeded, so that the same rows have the same verdict.
    order = np.random.default_rng(9).permutation(n)
    for rows in [order[:few], np.arange(n)] if n > 2 * few else [np.arange(n)]:
        z, p_value = _compare(NullTables(sample, rows, model), sample, found, progress)
        if p_value <= level:
            break
    return z, p_value


def _compare(tables: NullTables, sample: Sample, found: Selection, progress: Tell) -> tuple[float, float]:
    """Return z and p-value of the gain of the given table among those of null tables."""
    settings, draws, z, p_value = sample.settings, [], 0.0, 1.0
    gain = tables.gain_of(tables.given, found, OTHER_FOLDS)
    for number in range(settings.null_draws):
        progress("comparing with null tables", number / settings.null_draws)
        draws.append(tables.gain_of(tables.draw(number), found, OTHER_FOLDS[:1]))
        if number + 1 not in (settings.fewest_draws, 2 * settings.fewest_draws, settings.null_draws):
            continue
        z = (gain - float(np.mean(draws))) / max(float(np.std(draws, ddof=1)), 1e-12)
        p_value = float(t_distribution.sf(z / np.sqrt(1 + 1 / len(draws)), len(draws) - 1))
        # All draws are for p-values between the significance levels.
        if p_value <= settings.strong_significance or p_value > (1 + 4 / len(draws)) * settings.weak_significance:
            break
    return z, p_value


class NullTables:
    """Tables (m, c) of one group like some rows of a sample, and the table `given` of these rows itself.

    Whole categories are drawn, in the order in which their levels lie along the first axis of all rows.
    """

    def __init__(self, sample: Sample, rows: Codes, model: NullModel):
        roles, self._sample, self._model = sample.roles, sample, model
        self._is_number = roles.numeric | roles.partial
        self.given = np.where(self._is_number, sample.residuals, sample.values)[rows]
        if model == "ranks":
            self.given[:, self._is_number] = normal_scores(self.given[:, self._is_number])
        numbers, levels = self.given[:, self._is_number], sample.coordinates(1).levels[rows]
        along = sample.points[rows, :1].sum(axis=1)
        masks = [roles.blocks == block for block in np.unique(roles.blocks)]
        self._columns = [[j] for j in np.flatnonzero(self._is_number)] + [roles.level_columns[mask] for mask in masks]
        ranked = np.column_stack([numbers, *(_ranks_of_levels(levels[:, mask], along) for mask in masks)])
        scores = normal_scores(ranked)
        variances, axes = np.linalg.eigh(scores.T @ scores / len(rows))
        self._root = (axes * np.sqrt(np.maximum(variances, 0.0))).T
        self._order = np.argsort(ranked, axis=0, kind="stable")
        to_axes = sphering(numbers)
        self._from_axes, self._mean = np.linalg.pinv(to_axes), numbers.mean(axis=0)
        self._lengths = np.linalg.norm((numbers - self._mean) @ to_axes, axis=1)

    def draw(self, number: int) -> Array:
        """Return the null table with this number, always the same."""
        draws = np.random.default_rng([7, number]).standard_normal(self._order.shape) @ self._root
        source = np.take_along_axis(self._order, draws.argsort(axis=0).argsort(axis=0), axis=0)
        table = self.given.copy()
        for columns, rows in zip(self._columns, source.T, strict=True):
            table[:, columns] = self.given[rows][:, columns]
        if self._model == "distances":
            rng = np.random.default_rng([8, number])
            axes = rng.standard_normal((len(self._lengths), len(self._from_axes)))
            lengths = rng.permutation(self._lengths) / np.maximum(np.linalg.norm(axes, axis=1), 1e-300)
            table[:, self._is_number] = self._mean + (axes * lengths[:, None]) @ self._from_axes
        return table

    def gain_of(self, table: Array, found: Selection, seeds: Sequence[int]) -> float:
        """Return the mean held-out gain of the selected number of components in a table, by the folds of seeds."""
        sample, k, n = self._sample, found.n_components, len(table)
        rows = sample.coordinates(found.n_axes, table)
        points = leading_points(table @ sample.leading, rows, found.n_axes)
        labels = Starts(points, sample.settings, found.two_starts)(k)
        if not labels:
            return 0.0
        resp, gains = np.stack([one_hot(start, k) for start in labels.values()]), []
        for seed in seeds:
            fold = folds(n, sample.settings.folds, seed)
            density = held_out(rows, resp, fold, sample.settings)[0]
            gains.append(float((density - held_out(rows, np.ones((1, n, 1)), fold, sample.settings)[0]).mean()))
        return float(np.mean(gains))


def normal_scores(X: Array) -> Array:
    """Return the columns (n, c) as standard normal quantiles of their ranks.

    >>> normal_scores(np.array([[1.0], [2.0], [1e9]])).ravel().round(2).tolist()
    [-0.97, 0.0, 0.97]
    """
    return np.asarray(ndtri((rankdata(X, axis=0) - 0.5) / len(X)))


def _ranks_of_levels(levels: Array, along: Array) -> Array:
    """Return the level of each row (m, L) as the rank of the mean of its rows in `along` (m,)."""
    return np.asarray(levels @ (levels.T @ along / np.maximum(levels.sum(axis=0), 1)).argsort().argsort())
