"""Scores of views next to background data: how clearly a view splits the rows, and how much of the prior it contains.

    η(θ) = max_t σ²_between(t)/σ²                    share of the variance along θ that the best cut explains
    e(θ) = (η(θ) − 2/π)/(1 − 2/π) − e_Y(θ)₊          0 for a Gaussian, 1 for two points, minus that of the background Y
    separation = e(θ*) + ½ Σ (e(θ⊥) − chance)₊
    leakage    = Σ ρ²                                canonical correlations ρ of the view and the prior
    score      = separation·(1 − leakage)₊

θ* is the direction of the whitened view with the largest η, and θ⊥ are the directions orthogonal to it, with weight ½
(`across` in `common/settings.py`). A direction in which a background is split as well does not count. Heavy tails and
outliers decrease η, and a sharp peak does not increase it. On the superimposed images used for development, this score
lost least against the best available view, compared with the held-out likelihood of a density and of mixtures, the
kurtosis, and differences of each to the background. So did the weight ½.

A cluster with less than 21 % of the rows explains too little variance for η. If no cut into halves is clear, cuts that
separate a minority are compared with a Gaussian cut at the same share instead of 2/π, and multiplied by the depth of
the density at the cut, because a long tail explains as much variance as a cluster.

Leakage is a discount and not a constraint: a view without any leakage also loses the clusters that correlate with the
prior, which is common.

A category with two values is split perfectly by any cut between them. Therefore categories are replaced by the part
that the other columns of a row predict, plus Gaussian noise (`decorrelate_categories`):

    x_c  →  x̂_c + e_c        x̂_c linear prediction from the other columns, fitted on other rows
                             e_c Gaussian with the covariance of x_c − x̂_c
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.stats import norm

from imapce.common.arrays import Array, Codes, Mask
from imapce.common.settings import SETTINGS, Settings
from imapce.priors.labels import LabelTerm
from imapce.priors.problem import Problem
from imapce.rows.standardized import QuadraticForm, StandardizedRows

ONE_GAUSSIAN = 2 / np.pi
# Standard deviations from the mean that the histograms cover; values further out are counted in the last bins.
REACH = 12
BINS_PER_UNIT = 32
BINS = 2 * REACH * BINS_PER_UNIT
# A low kurtosis separates two clusters if the smaller one has more than (3 − √3)/6 of the rows, a high one if less.
LARGEST_MINORITY = (3 - 3**0.5) / 6
# Folds and least ridge of the regressions that predict categories.
FOLDS, RIDGE = 5, 1e-3


class SeparationScorer:
    """Scores views of the rows to explore by separation, relative to `chance` and the backgrounds, and by leakage."""

    def __init__(self, problem: Problem, chance: float, settings: Settings = SETTINGS):
        self._settings = settings
        self._chance = chance
        self._moment = problem.X.second_moment
        self._covariates = covariate_moments(self._moment, problem.known_columns, problem.Y.weighed_labels)
        self._tables = (problem.Z, *problem.Y.backgrounds)
        categories = problem.categories if problem.Y.backgrounds else None
        self.has_categories = categories is not None and bool(categories.any())
        self._samples: list[Array] = []
        if categories is not None and self.has_categories and len(categories) <= settings.clusters.columns:
            samples = [sample_by_content(rows, settings.clusters.many_rows) for rows in self._tables]
            self._samples = [decorrelate_categories(sample, problem.sources, categories) for sample in samples]

    def score(self, frames: Sequence[Array], *, minorities: bool) -> list[tuple[float, float]]:
        """Return the separation and the leakage of the views with the axes V (d, k)."""
        axes = np.concatenate(frames, axis=1)
        # With all 400,000 rows of a background the scores took longer than the search. One projection for all views,
        # because to draw the sample from 40,000,000 rows took longer than the scores.
        most = self._settings.clusters.many_rows
        projected = [sample @ axes for sample in self._samples] or [
            rows.project(axes, rows.content_mask(most)) for rows in self._tables
        ]
        views = [np.split(rows, len(frames), axis=1) for rows in projected]
        return [
            (
                separation(view, backgrounds, minorities=minorities, chance=self._chance, settings=self._settings),
                leakage(V, self._moment, self._covariates),
            )
            for V, view, *backgrounds in zip(frames, *views, strict=True)
        ]


# --- separation -------------------------------------------------------------------------------------------------------


def separation(
    view: Array,
    backgrounds: Sequence[Array],
    *,
    minorities: bool = False,
    chance: float = 0.0,
    settings: Settings = SETTINGS,
) -> float:
    """Return how clearly the rows of a view (n, k) are split, relative to a Gaussian and to each background.

    Directions orthogonal to the first one count only above `chance`, because every view has them. With `minorities`,
    cuts that separate a minority count too, and cuts into halves only above `chance`.
    """
    centered = view - view.mean(axis=0)
    whitening = _inverse_root(centered.T @ centered / len(view), 1e-12)
    if whitening.shape[1] < view.shape[1]:
        return -np.inf
    axes = whitening @ _clearest_axes(centered @ whitening, minorities, settings)
    counts = histograms(centered @ axes)
    halves = clarity_of_halves(counts, settings)
    excess = halves - chance * (np.arange(len(halves)) > 0)
    if minorities:
        excess = np.maximum(halves - chance, clarity_of_minorities(counts, settings))
    in_backgrounds = [clarity(Y @ axes, minorities, settings) for Y in backgrounds]
    excess = excess - np.max([np.zeros(len(halves)), *in_backgrounds], axis=0)
    return float(excess[0] + settings.choice.across * np.maximum(excess[1:], 0.0).sum())


def chance_separation(n_rows: int, n_searched: int) -> float:
    """Return the separation of Gaussian rows in the best of all directions in q dimensions.

    2√(2/π)·√((1 − 3/π)·q/n), the standard deviation of mean |x|/√(mean x²) along one direction times √q.
    """
    return float(2 * np.sqrt(ONE_GAUSSIAN * (1 - 3 / np.pi) * n_searched / n_rows) / (1 - ONE_GAUSSIAN))


def clarity(projections: Array, minorities: bool, settings: Settings = SETTINGS) -> Array:
    """Return how clear the best cut of each column of projections (n, p) is, optionally with cuts of minorities."""
    counts = histograms(projections)
    halves = clarity_of_halves(counts, settings)
    return np.maximum(halves, clarity_of_minorities(counts, settings)) if minorities else halves


def histograms(projections: Array) -> Array:
    """Return the histogram (p, BINS) of each standardized column of projections (n, p)."""
    centered = projections - projections.mean(axis=0)
    spread = np.sqrt(np.mean(centered**2, axis=0))
    scaled = np.divide(centered, spread, out=np.zeros_like(centered), where=spread > 0)
    bins = np.clip(((scaled + REACH) * BINS_PER_UNIT).astype(np.intp), 0, BINS - 1)
    return np.stack([np.bincount(column, minlength=BINS) for column in bins.T]).astype(np.float64)


def clarity_of_halves(counts: Array, settings: Settings = SETTINGS) -> Array:
    """Return (η − 2/π)/(1 − 2/π) for each histogram: 0 for a Gaussian, 1 for two points.

    Rows beyond four standard deviations count as rows at four, so that outliers cannot make a cut.
    """
    edge = int((REACH - settings.choice.tail) * BINS_PER_UNIT)
    inner = counts[:, edge : BINS - edge].copy()
    inner[:, 0] += counts[:, :edge].sum(axis=1)
    inner[:, -1] += counts[:, BINS - edge :].sum(axis=1)
    return (_explained_variance(inner)[0].max(axis=1) - ONE_GAUSSIAN) / (1 - ONE_GAUSSIAN)


def clarity_of_minorities(counts: Array, settings: Settings = SETTINGS) -> Array:
    """Return max (η(t) − g(p))/(1 − g(p))·depth(t), or 0, over the cuts t that separate a share p of 1 to 21 %.

    g(p) = φ(Φ⁻¹(p))²/(p(1 − p)) is η of a Gaussian cut at the same share, and depth(t) = 1 − f(t)/min(highest density
    on either side).
    """
    explained, below = _explained_variance(counts)
    n = counts.sum(axis=1, keepdims=True)
    share = np.minimum(below, n - below) / n
    smallest = np.maximum(settings.outliers.smallest_share, settings.outliers.smallest_rows / n)
    is_minority = (share >= smallest) & (share <= LARGEST_MINORITY)
    tail = np.where(is_minority, share, 0.5)
    gaussian = norm.pdf(norm.ppf(tail)) ** 2 / (tail * (1 - tail))
    density = gaussian_filter1d(counts, settings.choice.smoothing * BINS_PER_UNIT, axis=1, mode="constant")
    left = np.maximum.accumulate(density, axis=1)
    right = np.maximum.accumulate(density[:, ::-1], axis=1)[:, ::-1]
    peak = np.minimum(left[:, :-1], right[:, 1:])
    at_cut = (density[:, :-1] + density[:, 1:]) / 2
    depth = np.clip(1 - np.divide(at_cut, peak, out=np.ones_like(peak), where=peak > 0), 0.0, 1.0)
    excess = (explained - gaussian) / (1 - gaussian) * depth
    return np.where(is_minority, excess, 0.0).max(axis=1, initial=0.0)


def _explained_variance(counts: Array) -> tuple[Array, Array]:
    """Return σ²_between/σ² of each cut between two bins, and the number of rows below the cut."""
    bins = counts.shape[1]
    centers = (np.arange(bins) - (bins - 1) / 2) / BINS_PER_UNIT
    below = np.cumsum(counts, axis=1)[:, :-1]
    sums = np.cumsum(counts * centers, axis=1)
    n = counts.sum(axis=1, keepdims=True)
    mean = sums[:, -1:] / n
    inside = below * (n - below)
    between = np.divide((sums[:, :-1] - below * mean) ** 2, inside, out=np.zeros_like(below), where=inside > 0)
    variance = (counts @ centers**2)[:, None] / n - mean**2
    return np.divide(between, variance, out=np.zeros_like(between), where=variance > 0), below


def _clearest_axes(whitened: Array, minorities: bool, settings: Settings) -> Array:
    """Return θ* and the directions orthogonal to it (k, k), each with the clearest cut of the remaining ones."""
    k = whitened.shape[1]
    chosen = np.zeros((k, 0))
    while chosen.shape[1] < k:
        free = np.linalg.svd(chosen)[0][:, chosen.shape[1] :] if chosen.shape[1] else np.eye(k)
        choices = free @ _directions(free.shape[1], settings.choice.directions)
        best = int(np.argmax(clarity(whitened @ choices, minorities, settings)))
        chosen = np.column_stack([chosen, choices[:, best]])
    return chosen


def _directions(k: int, n_directions: int) -> Array:
    """Return unit vectors (k, m) that cover the half sphere: equal angles in the plane, otherwise a fixed draw."""
    if k == 1:
        return np.ones((1, 1))
    if k == 2:
        angles = np.arange(n_directions) * np.pi / n_directions
        return np.stack([np.cos(angles), np.sin(angles)])
    draws = np.random.default_rng(0).standard_normal((k, k * k * n_directions))
    return draws / np.linalg.norm(draws, axis=0)


# --- leakage ----------------------------------------------------------------------------------------------------------


def covariate_moments(second_moment: QuadraticForm, columns: Mask, labels: LabelTerm | None = None) -> Array:
    """Return S·K^(−½) (d, r), S the cross moments of X and the covariates and K the second moment of the covariates."""
    if labels is None and not columns.any():
        return np.zeros((second_moment.size, 0))
    cross = second_moment.columns(columns)
    inner = cross[columns]
    if labels is not None:
        L, shared = labels.values, labels.shared
        inner = np.block([[inner, shared[columns]], [shared[columns].T, L.T @ L]])
        cross = np.column_stack([cross, shared])
    return cross @ _inverse_root(inner, 1e-10)


def leakage(V: Array, second_moment: QuadraticForm, covariates: Array) -> float:
    """Return Σρ² for a view with the axes V (d, k) and the `covariate_moments` (d, r); 0 without covariates."""
    if not covariates.shape[1]:
        return 0.0
    correlations = _inverse_root(V.T @ (second_moment @ V), 1e-12).T @ (V.T @ covariates)
    return float(np.sum(correlations**2))


def _inverse_root(moment: Array, tolerance: float) -> Array:
    """Return R (c, r) with RRᵀ = M⁺ for a positive semidefinite matrix M (c, c)."""
    values, vectors = np.linalg.eigh(moment)
    is_positive = values > tolerance * values.max(initial=0.0)
    return vectors[:, is_positive] / np.sqrt(values[is_positive])


# --- categories -------------------------------------------------------------------------------------------------------


def sample_by_content(rows: StandardizedRows, most: int) -> Array:
    """Return at most so many rows (m, d) in the order of their values, so that the order of a table has no effect."""
    order = rows.content_sample(most)
    return rows.sampled(rows.content_mask(most))[order.argsort().argsort()]


def decorrelate_categories(rows: Array, groups: Codes, categories: Mask) -> Array:
    """Replace the part of each category that the other columns do not predict by Gaussian noise.

    `groups` are the input columns of the standardized rows (n, d), and `categories` is the mask of their categories.
    """
    predictions = _predict_categories(rows, groups, categories)
    decorrelated = rows.copy()
    rng = np.random.default_rng(0)
    for group in np.unique(groups[categories]):
        columns = np.flatnonzero(groups == group)
        residuals = rows[:, columns] - predictions[:, columns]
        variances, axes = np.linalg.eigh(residuals.T @ residuals / len(rows))
        noise = rng.standard_normal(residuals.shape) * np.sqrt(np.maximum(variances, 0.0))
        decorrelated[:, columns] = predictions[:, columns] + noise @ axes.T
    return decorrelated


def _predict_categories(rows: Array, groups: Codes, categories: Mask) -> Array:
    """Return cross-validated ridge regressions (n, d) of each category on the other input columns.

    The ridge is d/n of the variance of a column, so that many columns of few rows predict nothing.
    """
    n, d = rows.shape
    predictions = np.zeros_like(rows)
    fold = np.arange(n) % FOLDS
    for number in range(min(n, FOLDS) if n > 1 else 0):
        train, test = rows[fold != number], np.flatnonzero(fold == number)
        mean = train.mean(axis=0)
        deviation = train - mean
        ridge = max(RIDGE, d / len(train))
        precision = np.linalg.inv(deviation.T @ deviation / len(train) + ridge * np.eye(d))
        for group in np.unique(groups[categories]):
            inside, outside = np.flatnonzero(groups == group), np.flatnonzero(groups != group)
            # For a Gaussian with this precision P: E[x_in | x_out] = −P_in⁻¹ P_in,out x_out.
            weights = -np.linalg.solve(precision[np.ix_(inside, inside)], precision[np.ix_(inside, outside)])
            residuals = rows[np.ix_(test, outside)] - mean[outside]
            predictions[np.ix_(test, inside)] = mean[inside] + residuals @ weights.T
    return predictions
