"""Clusters of a view: found there as the paper does, carried into all directions, or found elsewhere and shown in it.

Algorithm 1 as published (`method="paper"`) looks for clusters where it shows them: a Dirichlet-process mixture of the
view, and of its clusters of an acceptable size the one farthest from all others together (equations 4 and 5), both
where there are exactly two:

    δ_lj = √((m_j − m_l)ᵀ C_l⁻¹ (m_j − m_l)),    D = (δ + δᵀ)/2,    c* = argmax D·1

A view is a shadow: rows of other clusters fall into a cluster's, and some of its own fall outside. Beside a background
a mixture of Student distributions in the leading principal axes, begun at the clusters of the view, moves them where
they belong (`refine_clusters`):

    f(z) = Σ_c π_c·t_ν(z; m_c, S_c),     S_c = (n_c·Ŝ_c + q·S)/(n_c + q),     S the covariance of all rows, q the axes

Heavy tails (ν = 5) keep far rows from widening a cluster, and q rows' worth of S keep a small cluster's S_c regular.
By default clusters are found once and in all directions (`clusters/`), and only shown here. Of both the one is taken
that is farthest from its nearest by Bhattacharyya's distance in the view,

    distinctness(c) = min_j  ⅛ δᵀC̄⁻¹δ + ½ ln(det C̄/√(det C_c·det C_j)),     δ = m_c − m_j, C̄ = (C_c + C_j)/2

since a sum of distances prefers a cluster far from most to one apart from all.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from imapce.clusters.clustering import OUTLIER
from imapce.common.arrays import Array, Codes
from imapce.common.checks import require_choice, require_truth
from imapce.common.records import Comparable
from imapce.common.work import UNWATCHED, Watch, one_thread
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.imapce import IMAPCE

WAYS = ("auto", "paper")
# "joint" finds the clusters once and in all directions, "dpgmm" view by view.
CLUSTERERS = ("auto", "joint", "dpgmm")
# Above so many rows a seeded sample is clustered and the rest assigned. The mixture of 10,000 rows takes 1.4 s and that
# of 4,000 takes 0.6 s, and a few Gaussians in the plane are known well from either.
CLUSTER_ALL, SAMPLE = 10_000, 4_000
TAIL = 5.0  # ν
ITERATIONS = 30
# Above so many rows their coordinates in the axes would not fit beside the data; the view's clusters stay as they are.
REFINED_ROWS = 1_000_000


def settings_of(method: str, estimator: Any, clusterer: str, refine: bool | None) -> tuple[IMAPCE, str, bool]:
    """What a method means: the estimator, the clusterer and whether its clusters are refined, where these are not said.

    >>> settings_of("paper", None, "auto", None)
    (IMAPCE(alpha=1.0, mu='paper', outliers='keep'), 'dpgmm', False)
    """
    require_choice("method", method, WAYS)
    if clusterer == "hdbscan":
        raise InvalidValueError(
            "clusterer must be one of 'auto', 'joint', 'dpgmm'; got 'hdbscan', which found less and is gone: "
            'use "dpgmm" for clusters view by view.'
        )
    require_choice("clusterer", clusterer, CLUSTERERS)
    if refine is not None:
        require_truth("refine", refine)
    if estimator is not None and not isinstance(estimator, IMAPCE):
        raise InvalidTypeError(f"estimator must be an IMAPCE; got {estimator!r:.80}.")
    if method == "auto":
        model = IMAPCE(outliers="keep") if estimator is None else clone(estimator)
        return model, clusterer, refine is None or bool(refine)
    for name, said, wanted in (("clusterer", clusterer, ("auto", "dpgmm")), ("refine", refine, (None, False))):
        if said not in wanted:
            raise InvalidValueError(
                f'{name} must be {wanted[1]!r} with method="paper", whose it is; got {said!r}: leave it out, or choose '
                'method="auto".'
            )
    model = IMAPCE(alpha=1.0, mu="paper", outliers="keep") if estimator is None else clone(estimator)
    return model, "dpgmm", False


@dataclass(frozen=True, eq=False)
class Clustering(Comparable):
    """Clusters of one view, those of an acceptable size; everything else is OUTLIER.

    `numbers` (c,) are what the clusters are called, ascending; `labels` (n,) and `most_distinct` hold such numbers. All
    other arrays have an entry for each of them, in the same order: `distinctness[i]`, the row sum of D or the distance
    to the nearest, is that of cluster `numbers[i]`, and `overlap[i]`, from 0 to 1, what it shares with the nearest:
    exp(−B) of Bhattacharyya's distance B, NaN where there is no other. In a view of its own they are 0, 1, ... by size,
    in a session those they have from their first look on. `most_distinct` is c* of equation 5, both where exactly two
    clusters are acceptable, none where none is; `sampled` says from how many rows the clusters were learned.
    """

    labels: Codes
    numbers: Codes
    means: Array
    covariances: Array
    sizes: Codes
    distinctness: Array
    overlap: Array
    sampled: int
    most_distinct: tuple[int, ...]

    def renumbered(self, free: Iterable[int]) -> Clustering:
        """The same clusters with other numbers, the next of `free` for each: the most distinct first, then by size."""
        first = np.isin(self.numbers, self.most_distinct)
        order = np.lexsort([-self.sizes, ~first])
        numbers = np.empty(len(order), dtype=np.intp)
        numbers[order] = list(islice(free, len(order)))
        names = dict(zip(self.numbers.tolist(), numbers.tolist(), strict=True))
        labels = self.labels.copy()
        for before, after in names.items():
            labels[self.labels == before] = after
        place = np.argsort(numbers)
        return replace(
            self,
            labels=labels,
            numbers=numbers[place],
            means=self.means[place],
            covariances=self.covariances[place],
            sizes=self.sizes[place],
            distinctness=self.distinctness[place],
            overlap=self.overlap[place],
            most_distinct=tuple(sorted(names[number] for number in self.most_distinct)),
        )


def mahalanobis_distinctness(means: Array, covariances: Array) -> Array:
    """D·1: for each cluster the sum of its symmetrised Mahalanobis distances to the others (equations 4 and 5)."""
    if not len(means):
        return np.zeros(0)
    difference = means[None, :, :] - means[:, None, :]
    solved = np.linalg.solve(covariances[:, None], difference[..., None])[..., 0]
    delta = np.sqrt(np.maximum(np.einsum("ljk,ljk->lj", difference, solved), 0.0))
    return ((delta + delta.T) / 2).sum(axis=1)


def most_distinct(distinctness: Array) -> tuple[int, ...]:
    """c* of equation 5; both of exactly two clusters, none where there is none."""
    if len(distinctness) == 2:
        return (0, 1)
    return (int(np.argmax(distinctness)),) if len(distinctness) else ()


def cluster_view(
    view: Array,
    *,
    min_cluster_size: int,
    max_clusters: int = 5,
    seed: int = 0,
    cluster_all: int = CLUSTER_ALL,
    sample: int = SAMPLE,
) -> Clustering:
    """Cluster the rows of a view (n, k) as the paper does; clusters smaller than `min_cluster_size` are outliers.

    Of more than `cluster_all` rows a `sample` is clustered.

    >>> view = np.random.default_rng(0).normal(size=(90, 2)) + 9 * (np.arange(90) % 2)[:, None]
    >>> cluster_view(view, min_cluster_size=9, max_clusters=2).most_distinct
    (0, 1)
    """
    scaled, back = _unit_axes(view)
    chosen = _learned_from(len(view), seed, cluster_all, sample)
    labels, mixture_means, mixture_covariances = _mixture(scaled, chosen, max_clusters, seed)
    found, counts = np.unique(labels, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    acceptable = found[order[counts[order] >= min_cluster_size]]
    numbered = np.full(len(view), OUTLIER)
    for number, cluster in enumerate(acceptable):
        numbered[labels == cluster] = number
    means, covariances = mixture_means[acceptable], mixture_covariances[acceptable]
    # Mahalanobis distances do not depend on the units, so they are taken where the numbers are well scaled.
    distinctness = mahalanobis_distinctness(means, covariances)
    return Clustering(
        labels=numbered,
        numbers=np.arange(len(acceptable)),
        means=view.mean(axis=0) + means @ back,
        covariances=np.einsum("ai,cab,bj->cij", back, covariances, back),
        sizes=np.bincount(numbered[numbered >= 0], minlength=len(acceptable)).astype(np.intp),
        distinctness=distinctness,
        overlap=overlap_of(nearest_distance(means, covariances)),
        sampled=len(chosen),
        most_distinct=most_distinct(distinctness),
    )


def _learned_from(n_rows: int, seed: int, most: int = CLUSTER_ALL, sample: int = SAMPLE) -> Codes:
    """The places of the rows that clusters are learned from: all, or of more than `most` a seeded sample."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, sample, replace=False))


def _unit_axes(view: Array) -> tuple[Array, Array]:
    """The view in its principal axes at unit variance, and the matrix that leads back.

    So no tolerance of the mixture depends on the units of the data.
    """
    centred = view - view.mean(axis=0)
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    keep = singular > 1e-10 * max(float(singular[0]), np.finfo(np.float64).tiny)
    if not keep.any():
        return np.zeros((len(view), 1)), np.zeros((1, view.shape[1]))
    spread = singular[keep] / np.sqrt(len(view))
    return (centred @ axes[keep].T) / spread, spread[:, None] * axes[keep]


def _mixture(scaled: Array, chosen: Codes, max_clusters: int, seed: int) -> tuple[Codes, Array, Array]:
    """Dirichlet-process mixture with the authors' settings: labels, and means and covariances of all components."""
    mixture = BayesianGaussianMixture(
        n_components=min(max_clusters, len(np.unique(scaled[chosen], axis=0))),
        covariance_type="full",
        weight_concentration_prior_type="dirichlet_process",
        max_iter=100,
        n_init=3,
        random_state=seed,
    )
    with warnings.catch_warnings(), one_thread():
        # A hundred iterations, as in the paper, are enough to tell clusters apart whether or not the bound has settled.
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(scaled[chosen])
    return mixture.predict(scaled), mixture.means_, mixture.covariances_


def refine_clusters(
    clustering: Clustering,
    view: Array,
    points: Array,
    *,
    min_cluster_size: int,
    seed: int,
    watch: Watch = UNWATCHED,
) -> Clustering:
    """The clusters of a view (n, k) after the mixture of the same rows in all directions left has moved them.

    `points` (n, q) are the rows in the leading axes that are free of what is known, most variance first.
    """
    labels = clustering.labels
    if len(clustering.sizes) > 1 and points.shape[1]:
        points = points / max(float(points.std()), np.finfo(np.float64).tiny)
        with one_thread():
            labels = student_mixture(points, labels, _learned_from(len(points), seed), watch)
    return number_clusters(labels, view, min_cluster_size, sampled=clustering.sampled)


def student_mixture(points: Array, labels: Codes, chosen: Codes, watch: Watch = UNWATCHED) -> Codes:
    """Codes of all points (n, q) by a mixture learned from the `chosen` ones, begun at their labels.

    Points of no cluster are one more component; a component of fewer rows than axes cannot be learned and gives way.
    """
    learned = points[chosen]
    n, q = learned.shape
    names, counts = np.unique(labels[chosen], return_counts=True)
    names = names[counts > q]
    if len(names) < 2:
        return labels
    # The plain covariance: a robust one is smaller, holds small clusters less, and they run away
    # (seen on Image Segmentation).
    overall = _covariance_of(learned)
    shares = (labels[chosen][:, None] == names).astype(np.float64)
    pull = np.ones_like(shares)
    parts: list[tuple[Array, Array, float]] = []
    for iteration in range(ITERATIONS):
        watch.tell("carrying the clusters into all directions", iteration / ITERATIONS)
        parts = []
        for c in range(len(names)):
            size = max(float(shares[:, c].sum()), np.finfo(np.float64).tiny)
            weight = shares[:, c] * pull[:, c]
            mean = weight @ learned / max(float(weight.sum()), np.finfo(np.float64).tiny)
            deviation = learned - mean
            spread = (deviation.T * weight) @ deviation
            parts.append((mean, np.linalg.cholesky((spread + q * overall) / (size + q)), np.log(size / n)))
        logs, pull = _log_densities(learned, parts)
        shares = softmax(logs, axis=1)
    if len(chosen) == len(points):
        return names[shares.argmax(axis=1)]
    return names[_log_densities(points, parts)[0].argmax(axis=1)]


def _log_densities(points: Array, parts: list[tuple[Array, Array, float]]) -> tuple[Array, Array]:
    """ln π_c t_ν(z; m_c, S_c) up to a constant (n, c), and the weights (ν + q)/(ν + distance²) of the next step."""
    q = points.shape[1]
    logs, weights = np.empty((len(points), len(parts))), np.empty((len(points), len(parts)))
    for c, (mean, root, share) in enumerate(parts):
        distance = np.sum(solve_triangular(root, (points - mean).T, lower=True) ** 2, axis=0)
        logs[:, c] = share - np.log(np.diagonal(root)).sum() - (TAIL + q) / 2 * np.log1p(distance / TAIL)
        weights[:, c] = (TAIL + q) / (TAIL + distance)
    return logs, weights


def number_clusters(
    labels: Codes, view: Array, min_cluster_size: int, *, sampled: int, as_they_are: bool = False
) -> Clustering:
    """The clusters that are large enough, each as it lies in the view; largest first, or numbered `as_they_are`."""
    found, counts = np.unique(labels[labels != OUTLIER], return_counts=True)
    order = np.arange(len(found)) if as_they_are else np.argsort(-counts, kind="stable")
    order = order[counts[order] >= min_cluster_size]
    kept, sizes = found[order], counts[order].astype(np.intp)
    numbers = kept if as_they_are else np.arange(len(kept))
    given = np.full(len(labels), OUTLIER)
    for number, name in zip(numbers, kept, strict=True):
        given[labels == name] = number
    k = view.shape[1]
    means = np.array([view[given == c].mean(axis=0) for c in numbers]).reshape(-1, k)
    # In units of the view, as the floor that keeps covariances regular is absolute.
    unit = max(float(view.std()), np.finfo(np.float64).tiny)
    scaled = np.array([_covariance_of(view[given == c] / unit) for c in numbers]).reshape(-1, k, k)
    distinctness = nearest_distance(means / unit, scaled)
    # Of two clusters equally far from each other the smaller is the one that is set apart; the other is the rest.
    apart = np.flatnonzero(distinctness >= distinctness.max(initial=0.0) * (1 - 1e-9))
    most = (int(numbers[apart[np.argmin(sizes[apart])]]),) if len(apart) else ()
    return Clustering(
        labels=given,
        numbers=numbers,
        means=means,
        covariances=scaled * unit**2,
        sizes=sizes,
        distinctness=distinctness,
        overlap=overlap_of(distinctness),
        sampled=sampled,
        most_distinct=most,
    )


def nearest_distance(means: Array, covariances: Array) -> Array:
    """Bhattacharyya's distance of every cluster to the nearest other one; 0 where there is no other."""
    if len(means) < 2:
        return np.zeros(len(means))
    difference = means[:, None, :] - means[None, :, :]
    shared = (covariances[:, None] + covariances[None, :]) / 2
    solved = np.linalg.solve(shared, difference[..., None])[..., 0]
    volumes = np.linalg.slogdet(covariances)[1]
    shape = np.linalg.slogdet(shared)[1] - (volumes[:, None] + volumes[None, :]) / 2
    distances = np.einsum("ijk,ijk->ij", difference, solved) / 8 + shape / 2
    np.fill_diagonal(distances, np.inf)
    return distances.min(axis=1)


def overlap_of(nearest: Array) -> Array:
    """exp(−B), what clusters share with their nearest; NaN where there is no other.

    >>> overlap_of(np.array([0.0, np.log(2.0)])), overlap_of(np.zeros(1))
    (array([1. , 0.5]), array([nan]))
    """
    return np.exp(-np.maximum(nearest, 0.0)) if len(nearest) > 1 else np.full(len(nearest), np.nan)


def _covariance_of(points: Array) -> Array:
    """The covariance (k, k) of points, never singular."""
    k = points.shape[1]
    deviation = points - points.mean(axis=0)
    covariance = deviation.T @ deviation / max(1, len(points))
    # Identical rows have no spread; a millionth of a unit keeps their distances finite and very large.
    return covariance + 1e-12 * max(1e-12, float(np.trace(covariance))) * np.eye(k)
