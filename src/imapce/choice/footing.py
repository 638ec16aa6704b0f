"""Rows in which a category counts by what other columns agree on with it, for those who ask how a view falls apart.

A column of two values is cut in two perfectly, by what it is and not by any group: a view of one category alone would
be the clearest there is. Where clusters choose the view a category alone has no say, since a cluster is what several
columns agree on. Here, beside a background, the same is asked of what a view shows:

    x_c  →  x̂_c + e_c,      x̂_c what the other columns of a row tell of the category c, linearly, learned of other rows
                            e_c Gaussian with the covariance of x_c − x̂_c

so its mean and its agreement with others stay, and what is its own looks like one group. Numbers stay as they are.

>>> rng = np.random.default_rng(0)
>>> rows = np.column_stack([rng.integers(0, 2, 400), rng.normal(size=400)]) * 2.0 - 1.0
>>> fair = on_fair_footing(rows, np.arange(2), np.array([True, False]))
>>> len(np.unique(rows[:, 0])), len(np.unique(fair[:, 0])), bool((fair[:, 1] == rows[:, 1]).all())
(2, 400, True)
"""

from __future__ import annotations

import numpy as np

from imapce.common.arrays import Array, Codes, Mask
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.rows.standardized import StandardizedRows

FOLDS, RIDGE = 5, 1e-3


class FairRows:
    """A sample of rows, those of the table or of a background, as they are scored in views."""

    def __init__(
        self,
        rows: StandardizedRows,
        groups: Codes | None,
        categories: Mask | None,
        settings: ClusterSettings = SETTINGS.clusters,
    ):
        self._rows, self._most = rows, settings.many_rows
        self._fair: Array | None = None
        if categories is None or not categories.any() or len(categories) > settings.columns:
            return
        assert groups is not None
        order = rows.content_sample(self._most)
        sample = np.zeros(rows.n_rows, dtype=bool)
        sample[order] = True
        # In the order of their values, so that a sorted table is given the same folds and the same noise.
        values = rows.sampled(sample)[order.argsort().argsort()]
        self._fair = on_fair_footing(values, groups, categories, settings)

    def project(self, V: Array) -> Array:
        """The sample along the axes V (d, c), those of one view or of several."""
        if self._fair is not None:
            return self._fair @ V
        # By 400,000 rows of a background the scores took longer than the search.
        return self._rows.project(V, self._rows.content_mask(self._most))


def on_fair_footing(
    rows: Array, groups: Codes, categories: Mask, settings: ClusterSettings = SETTINGS.clusters
) -> Array:
    """Standardised rows (n, d) with what is a category's own replaced by a Gaussian; `groups` are source columns."""
    n = len(rows)
    told = _told_by_others(rows, groups, categories, settings)
    fair = rows.copy()
    rng = np.random.default_rng(0)
    for source in np.unique(groups[categories]):
        own = np.flatnonzero(groups == source)
        left = rows[:, own] - told[:, own]
        variances, axes = np.linalg.eigh(left.T @ left / n)
        noise = rng.standard_normal((n, len(own))) * np.sqrt(np.maximum(variances, 0.0))
        fair[:, own] = told[:, own] + noise @ axes.T
    return fair


def _told_by_others(rows: Array, groups: Codes, categories: Mask, settings: ClusterSettings) -> Array:
    """(n, d): what the other source columns of a row tell of each category, by regressions on the rows of other folds.

    Of so many columns and so few rows a regression leans on nothing: its ridge is d/n of a column's variance.
    """
    n, d = rows.shape
    told = np.zeros_like(rows)
    fold = np.arange(n) % FOLDS
    for left_out in range(FOLDS):
        here, others = fold == left_out, fold != left_out
        if not here.any() or not others.any():
            continue
        learned = rows[others]
        mean = learned.mean(axis=0)
        deviation = learned - mean
        ridge = max(RIDGE, d / len(learned))
        precision = np.linalg.inv(deviation.T @ deviation / len(learned) + ridge * np.eye(d))
        for source in np.unique(groups[categories]):
            own, beside = np.flatnonzero(groups == source), np.flatnonzero(groups != source)
            # Of a Gaussian with this precision: E[x_own | x_beside] = −P_own⁻¹ P_own,beside x_beside.
            weights = -np.linalg.solve(precision[np.ix_(own, own)], precision[np.ix_(own, beside)])
            told[np.ix_(here, own)] = mean[own] + (rows[np.ix_(here, beside)] - mean[beside]) @ weights.T
    return told
