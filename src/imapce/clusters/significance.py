"""Significance of clusters: null tables of one group, and overlap between clusters.

The held-out gain of the selected mixture over one component is compared with the gains of two kinds of null tables:

    same distances   the distances from the mean, in units of the covariance, in random directions
    same columns     decorrelated columns, which are drawn independently and correlated again

An elliptical table with any tails is like the first, skewed columns with any correlation are like the second.
Columns are decorrelated by the nearest sphering (ZCA). It would mix the values of columns with a spike (a fifth of
the rows have one value) or missing values; these columns and categories are drawn with the correlations of their normal
scores. The gain is computed with other folds than the selection, where it is the largest of many.

"clear": both are rejected at 1 %, and two groups of clusters that overlap by at most 10 % have stable clusters.
"possible": there are such groups, but both are rejected at 5 % only; or both are rejected at 1 %, but clusters overlap
(a continuum) or only one group is stable. "none": all else, and if no cluster is stable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from scipy.stats import t as t_distribution

from imapce.clusters.axes import Sample, sphering
from imapce.clusters.selection import Selection, Starts, folds, held_out, leading_points
from imapce.common.arrays import Array, Codes
from imapce.common.words import counted
from imapce.common.work import UNWATCHED, Tell

OUTLIER = -1
Verdict = Literal["clear", "possible", "none"]
NullModel = Literal["distances", "columns"]
NULL_MODELS: dict[NullModel, str] = {
    "distances": "tables with the same distances from the mean",
    "columns": "tables with the same columns and correlations",
}
# Seeds of folds that were not used for selection.
OTHER_FOLDS = (101, 102, 103)


@dataclass(frozen=True)
class Evidence:
    """A test of structure: a description of the null model, z and p-value."""

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
    progress: Tell = UNWATCHED.tell,
) -> Structure:
    """Return the evidence for clusters of a sample with these `groups` and `stability` (c,)."""
    if found.gain <= 0:
        return Structure("none", "a mixture explains held-out rows no better than one component")
    if len(groups) < 2:
        return Structure("none", "the covariates explain all clusters but one")
    settings, is_stable = sample.settings, stability >= sample.settings.least_stability
    if not is_stable.any():
        return Structure("none", "no cluster reappears in half of the resamples")
    is_separate = len(np.unique(groups[is_stable])) > 1
    level = settings.weak_significance if is_separate else settings.significance
    tests: list[Evidence] = []
    for model, description in NULL_MODELS.items():
        tests.append(Evidence(description, *_test_against(sample, found, model, progress)))
        if tests[-1].p_value > level:
            reason = f"{description} show as much (p = {tests[-1].p_value:.2g})"
            return Structure("none", reason, tuple(tests))
    p_value = max(test.p_value for test in tests)
    if groups.max() == 0:
        reason = f"{counted(len(groups), 'cluster')} that overlap, more than in null tables (p = {p_value:.2g})"
        return Structure("possible", f"{reason}: a continuum", tuple(tests))
    reason = f"{describe_groups(groups)} (p = {p_value:.2g})"
    if not is_separate:
        return Structure("possible", f"{reason}, fewer than two of which are stable", tuple(tests))
    return Structure("clear" if p_value <= settings.significance else "possible", reason, tuple(tests))


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


def _test_against(sample: Sample, found: Selection, model: NullModel, progress: Tell) -> tuple[float, float]:
    """Return z and p-value of the gain among those of null tables; from fewer rows if significant."""
    settings, n, z, p_value = sample.settings, len(sample.values), 0.0, 1.0
    # Seeded, so that the same rows have the same verdict.
    order = np.random.default_rng(9).permutation(n)
    for rows in [order[: settings.few_rows], np.arange(n)] if n > 2 * settings.few_rows else [np.arange(n)]:
        tables = null_tables(sample, rows, model)
        draws: list[float] = []
        gain = _gain_of(next(tables), sample, found, OTHER_FOLDS)
        while len(draws) < settings.null_draws:
            progress("comparing with null tables", len(draws) / settings.null_draws)
            draws.append(_gain_of(next(tables), sample, found, OTHER_FOLDS[:1]))
            if len(draws) in (settings.fewest_draws, 2 * settings.fewest_draws, settings.null_draws):
                z = (gain - float(np.mean(draws))) / max(float(np.std(draws, ddof=1)), 1e-12)
                p_value = float(t_distribution.sf(z / np.sqrt(1 + 1 / len(draws)), len(draws) - 1))
                # All draws are for p-values near the level.
                if not settings.significance / 10 < p_value <= 20 * settings.significance * (1 + 4 / len(draws)):
                    break
        if p_value <= settings.significance:
            break
    return z, p_value


def null_tables(sample: Sample, rows: Codes, model: NullModel) -> Iterator[Array]:
    """Yield the table (m, c) of some rows of a sample, then endless null tables of one group, always the same.

    Whole categories are drawn, in the order in which their levels lie along the first axis of all rows.
    """
    roles, rng = sample.roles, np.random.default_rng(7)
    table, numbers = sample.values[rows], np.flatnonzero(roles.numeric | roles.partial)
    table[:, numbers] = sample.residuals[rows][:, numbers]
    yield table.copy()
    is_free = roles.numeric & ~roles.has_spike if model == "columns" else roles.numeric
    mean, to_axes = table[:, is_free].mean(axis=0), sphering(table[:, is_free])
    to_axes = to_axes @ (to_axes / np.linalg.norm(to_axes, axis=0)).T
    from_axes = np.linalg.pinv(to_axes)
    table[:, is_free] = (table[:, is_free] - mean) @ to_axes
    lengths = np.linalg.norm(table[:, is_free], axis=1)
    levels, along = sample.coordinates(1).levels[rows], sample.points[rows, :1].sum(axis=1)
    masks = [roles.blocks == block for block in np.unique(roles.blocks)]
    ranked = np.column_stack([table[:, numbers], *(_ranks_of_levels(levels[:, mask], along) for mask in masks)])
    columns = [[j] for j in numbers] + [roles.level_columns[mask] for mask in masks]
    scores, order = normal_scores(ranked), np.argsort(ranked, axis=0, kind="stable")
    variances, axes = np.linalg.eigh(scores.T @ scores / len(rows))
    root = (axes * np.sqrt(np.maximum(variances, 0.0))).T
    while True:
        ranks = (rng.standard_normal(ranked.shape) @ root).argsort(axis=0).argsort(axis=0)
        null = table.copy()
        for drawn, group in zip(np.take_along_axis(order, ranks, axis=0).T, columns, strict=True):
            null[:, group] = table[np.ix_(drawn, group)]
        if model == "distances":
            directions = rng.standard_normal((len(rows), len(mean))) @ to_axes @ from_axes
            directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-300)
            null[:, is_free] = directions * rng.permutation(lengths)[:, None]
        null[:, is_free] = mean + null[:, is_free] @ from_axes
        yield null


def _gain_of(table: Array, sample: Sample, found: Selection, seeds: Sequence[int]) -> float:
    """Return the mean held-out gain of the selected number of components in a table, by the folds of seeds."""
    rows, gains = sample.coordinates(found.n_axes, table), []
    points = leading_points(table @ sample.leading, rows, found.n_axes)
    resp = Starts(points, sample.settings, found.two_starts)(found.n_components)[0]
    for seed in seeds:
        fold = folds(len(table), sample.settings.folds, seed)
        single = held_out(rows, np.ones((1, len(table), 1)), fold, sample.settings)[0]
        gains.append(float((held_out(rows, resp, fold, sample.settings)[0] - single).mean()))
    return float(np.mean(gains))


def normal_scores(X: Array) -> Array:
    """Return the columns (n, c) as standard normal quantiles of their ranks."""
    return np.asarray(ndtri((rankdata(X, axis=0) - 0.5) / len(X)))


def _ranks_of_levels(levels: Array, along: Array) -> Array:
    """Return the level of each row (m, L) as the rank of the mean of its rows in `along` (m,)."""
    return np.asarray(levels @ (levels.T @ along / np.maximum(levels.sum(axis=0), 1)).argsort().argsort())
