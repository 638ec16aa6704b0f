"""Select the number of axes and components by held-out likelihood.

    gain(q, k) = mean held-out log-likelihood of k components in q axes − that of one component

The number of axes is the smallest with a share `axes_share` of the best gain. The number of components maximizes
gain(q, k)/k^e: the gain of real clusters, which are not elliptical, increases slowly with each further component; e is
the exponent times the share of numeric axes among axes and categories. In sphered axes the gains of different numbers
of axes are comparable. Each number of components has three starts: k-means, Ward's tree of smoothed rows, and the same
tree of locally sphered rows, which separates thin parallel sheets; the best on the first fold is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, ward

from imapce.clusters.axes import Coordinates, sphering
from imapce.clusters.mixture import Mixture, fit_mixtures, posteriors
from imapce.common.arrays import Array, Codes
from imapce.common.neighbours import nearest
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.common.work import UNWATCHED, Tell, quiet_about_convergence


@dataclass(frozen=True, eq=False)
class Selection:
    """The selected mixture of a sample, and how it was selected.

    `resp` (m, k) are the probabilities of its components, `heldout` (m, k) the same by mixtures fitted to other folds;
    `gain` is the held-out log-likelihood per row minus that of one component, `start` the index of the best start.
    """

    mixture: Mixture
    resp: Array
    heldout: Array
    n_axes: int
    gain: float
    start: int

    @property
    def n_components(self) -> int:
        """Return the number of components."""
        return self.resp.shape[1]

    @property
    def two_starts(self) -> set[int]:
        """Return the best start and a second start, because a single start fails in some resamples and null tables."""
        return {self.start, 0 if self.start else 1}


def select_mixture(
    coordinates: Callable[[int], Coordinates],
    points: Array,
    axis_counts: list[int],
    settings: ClusterSettings = SETTINGS.clusters,
    *,
    n_components: int | None = None,
    progress: Tell = UNWATCHED.tell,
) -> Selection:
    """Select the mixture of rows with `coordinates(q)`; `points` (m, r) are the same rows for trees and k-means."""
    m, q = len(points), axis_counts[-1]
    fold = folds(m, settings.folds, settings.seed)
    if len(axis_counts) > 1:
        gain_of = {}
        for count in axis_counts:
            rows = coordinates(count)
            starts = Starts(leading_points(points, rows, count), settings, (0,))
            fits = _compare_sizes(rows, starts, fold, settings.few_sizes, settings, progress, n_folds=1)
            gain_of[count] = max(gain for gain, *_ in fits.values())
        least = settings.axes_share * max(gain_of.values())
        # If no number of axes gains, none is too many.
        q = min((count for count in axis_counts if gain_of[count] >= least), default=q)
    rows = coordinates(q)
    sizes = [k for k in settings.sizes if k == 2 or k * settings.fewest <= m]
    if n_components is not None:
        sizes = [n_components]
    fits = _compare_sizes(rows, Starts(leading_points(points, rows, q), settings), fold, sizes, settings, progress)
    # A multinomial has no shape that could be wrong.
    n_numeric, n_categories = q + rows.partial.shape[1], len(np.unique(rows.blocks))
    exponent = max(settings.exponent * n_numeric / max(n_numeric + n_categories, 1), settings.finer)
    k = max(fits, key=lambda k: max(fits[k][0], 0.0) / k**exponent)
    gain, resp, heldout, start = fits[k]
    mixture, logs = fit_mixtures(rows, resp[None], np.ones((1, m), dtype=bool), settings)
    return Selection(mixture, posteriors(logs)[0][0], heldout, q, gain, start)


def leading_points(points: Array, rows: Coordinates, q: int) -> Array:
    """Return the points in the leading axes; all points if there are categories or missing values."""
    return points if rows.linear.shape[1] else points[:, :q]


def _compare_sizes(
    rows: Coordinates,
    starts: Starts,
    fold: Codes,
    sizes: Sequence[int],
    settings: ClusterSettings,
    progress: Tell,
    n_folds: int | None = None,
) -> dict[int, tuple[float, Array, Array, int]]:
    """Return gain, best start (m, k), held-out probabilities (m, k) and kind of start for each number of components."""
    n_folds = n_folds or settings.folds
    inside, fits = fold < n_folds, {}
    single = held_out(rows, np.ones((1, len(fold), 1)), fold, settings, n_folds)[0]
    for number, k in enumerate(sizes):
        progress("selecting the number of clusters", number / len(sizes))
        resp, kinds = starts(k)
        density, heldout, best = held_out(rows, resp, fold, settings, n_folds)
        fits[k] = float((density - single)[inside].mean()), resp[best], heldout, kinds[best]
    return fits


def held_out(
    rows: Coordinates, resp: Array, fold: Codes, settings: ClusterSettings, n_folds: int | None = None
) -> tuple[Array, Array, int]:
    """Return held-out log densities (m,) and component probabilities (m, k) of the best start (b, m, k), and the start.

    Of several starts, the best on the first fold is fitted to the remaining ones of the first `n_folds`.
    """
    best, first, heldout, densities = 0, 0, np.zeros(resp.shape[1:]), np.zeros(len(fold))
    if len(resp) > 1:
        training = np.tile(fold != 0, (len(resp), 1))
        probabilities, density = posteriors(fit_mixtures(rows, resp, training, settings)[1])
        # Of starts that end in the same optimum, the first one is the fastest.
        scores, first = density[:, fold == 0].mean(axis=1), 1
        best = int((scores >= scores.max() - settings.tolerance).argmax())
        heldout, densities = probabilities[best], density[best]
    training = np.array([fold != f for f in range(first, n_folds or settings.folds)])
    if len(training):
        logs = fit_mixtures(rows, np.repeat(resp[best : best + 1], len(training), axis=0), training, settings)[1]
        for inside, *values in zip(training, *posteriors(logs), strict=True):
            heldout[~inside], densities[~inside] = (value[~inside] for value in values)
    return densities, heldout, best


class Starts:
    """Start probabilities with k groups each, from k-means (kind 0) and from two trees that are built once (1, 2)."""

    def __init__(
        self, points: Array, settings: ClusterSettings = SETTINGS.clusters, kinds: Collection[int] = (0, 1, 2)
    ):
        self.points, self.has_means = points, 0 in kinds and points.shape[1] > 0
        self.trees = {1: smoothed_tree(points, settings)} if 1 in kinds else {}
        if 2 in kinds:
            sphered = sphere_locally((points - points.mean(axis=0)) @ sphering(points), settings)
            self.trees[2] = smoothed_tree(sphered, settings)

    def __call__(self, k: int) -> tuple[Array, list[int]]:
        """Return the starts (b, m, k) that have k groups, with their kinds; if there is none, arbitrary groups."""
        labels = {kind: fcluster(tree, k, "maxclust") - 1 for kind, tree in self.trees.items()}
        if self.has_means and k <= len(self.points):
            from sklearn.cluster import KMeans

            with quiet_about_convergence():
                labels[0] = KMeans(k, n_init=1, random_state=0).fit_predict(self.points)
        found = {kind: labels[kind] for kind in sorted(labels) if len(np.unique(labels[kind])) == k}
        found = found or {0: np.arange(len(self.points)) % k}
        return np.stack([one_hot(groups, k) for groups in found.values()]), list(found)


def smoothed_tree(Z: Array, settings: ClusterSettings = SETTINGS.clusters) -> Array:
    """Build Ward's tree after moving each row four times to the mean of itself and its nearest neighbors."""
    k = min(settings.neighbours, len(Z) // 5)
    if k and Z.shape[1]:
        neighbors = nearest(Z, k)
        for _ in range(settings.smoothings):
            Z = (Z + Z[neighbors].sum(axis=1)) / (k + 1)
    return np.asarray(ward(Z if Z.shape[1] else np.zeros((len(Z), 1))))


def sphere_locally(Z: Array, settings: ClusterSettings = SETTINGS.clusters) -> Array:
    """Sphere the differences between rows and their neighborhood means, three times."""
    n, q = Z.shape
    k = min(settings.nearest, n // 5)
    for _ in range(settings.rounds if k and q > 1 else 0):
        difference = Z - Z[nearest(Z, k)].mean(axis=1)
        C = difference.T @ difference / n
        variances, axes = np.linalg.eigh((n * C + np.trace(C) * np.eye(q)) / (n + q))
        Z = Z @ (axes / np.sqrt(np.maximum(variances, np.finfo(np.float64).tiny ** 0.5)))
    return Z


def folds(n: int, count: int, seed: int = 0) -> Codes:
    """Return the fold (n,) of each row, the same for each call."""
    return np.random.default_rng(seed).permutation(n) % count


def one_hot(labels: Codes, k: int) -> Array:
    """Return start probabilities (n, k) of groups 0 to k − 1; a negative label has none."""
    inside = (labels[:, None] == np.arange(k)).astype(np.float64)
    return inside * 0.98 + 0.02 / k * (labels >= 0)[:, None]
