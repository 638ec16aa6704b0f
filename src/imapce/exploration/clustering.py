"""Clusters of a view and how distinct each is: Dirichlet-process Gaussian mixture, equations 4 and 5 of the paper.

    δ_lj = √((m_j − m_l)ᵀ C_l⁻¹ (m_j − m_l)),    D = (δ + δᵀ)/2,    c* = argmax D·1

Only clusters of an acceptable size count; exactly two acceptable clusters are both most distinct.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from imapce.clusters.partition import OUTLIER
from imapce.common.checks import require_choice
from imapce.common.records import Comparable
from imapce.common.threads import one_thread

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

METHODS = ("dpgmm", "hdbscan")
# "joint" finds the clusters once and in all directions (`partition`), the others view by view.
CLUSTERERS = ("auto", "joint", *METHODS)
# Above so many rows a seeded sample is clustered and the rest assigned. The mixture of 10,000 rows takes 1.4 s and that
# of 4,000 takes 0.6 s, and a few Gaussians in the plane are known well from either.
CLUSTER_ALL = 10_000
SAMPLE = 4_000


@dataclass(frozen=True, eq=False)
class Clustering(Comparable):
    """Clusters of one view, those of an acceptable size; everything else is OUTLIER.

    `numbers` (c,) are what the clusters are called, ascending; `labels` (n,) and `most_distinct` hold such numbers. All
    other arrays have an entry for each of them, in the same order: `distinctness[i]`, the row sum of D, is that of
    cluster `numbers[i]`. In a view of its own they are 0, 1, ... by size, in a session those they have from their first
    look on. `most_distinct` is c* of equation 5, both where exactly two clusters are acceptable, none where none is;
    `sampled` says from how many rows the clusters were learned.
    """

    labels: Labels
    numbers: Labels
    means: Array
    covariances: Array
    sizes: Labels
    distinctness: Array
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
            most_distinct=tuple(sorted(names[one] for one in self.most_distinct)),
        )


def mahalanobis_distinctness(means: Array, covariances: Array) -> Array:
    """D·1: for each cluster the sum of its symmetrised Mahalanobis distances to the others (equations 4 and 5).

    >>> mahalanobis_distinctness(np.array([[0.0], [2.0]]), np.array([[[1.0]], [[4.0]]]))
    array([1.5, 1.5])
    """
    if not len(means):
        return np.zeros(0)
    difference = means[None, :, :] - means[:, None, :]
    solved = np.linalg.solve(covariances[:, None], difference[..., None])[..., 0]
    delta = np.sqrt(np.maximum(np.einsum("ljk,ljk->lj", difference, solved), 0.0))
    return ((delta + delta.T) / 2).sum(axis=1)


def most_distinct(distinctness: Array) -> tuple[int, ...]:
    """c* of equation 5; both of exactly two clusters, none where there is none.

    >>> most_distinct(np.array([1.0, 7.0, 2.0])), most_distinct(np.array([3.0, 3.0]))
    ((1,), (0, 1))
    """
    if len(distinctness) == 2:
        return (0, 1)
    return (int(np.argmax(distinctness)),) if len(distinctness) else ()


def cluster_view(
    view: Array,
    *,
    min_cluster_size: int,
    max_clusters: int = 5,
    method: str = "dpgmm",
    seed: int = 0,
) -> Clustering:
    """Cluster the rows of a view (n, k); clusters smaller than `min_cluster_size` are outliers.

    >>> cluster_view(view, min_cluster_size=75).most_distinct          # doctest: +SKIP
    (2,)
    """
    require_choice("clusterer", method, METHODS)
    scaled, back = _unit_axes(view)
    chosen = np.arange(len(view))
    if len(view) > CLUSTER_ALL:
        chosen = np.sort(np.random.default_rng(seed).choice(len(view), SAMPLE, replace=False))
    if method == "dpgmm":
        labels, parameters = _mixture(scaled, chosen, max_clusters, seed)
    else:
        labels, parameters = _density(scaled, chosen, min_cluster_size, max_clusters)
    found, counts = np.unique(labels[labels != OUTLIER], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    acceptable = [int(found[i]) for i in order if counts[i] >= min_cluster_size]
    numbered = np.full(len(view), OUTLIER)
    for number, cluster in enumerate(acceptable):
        numbered[labels == cluster] = number
    k = scaled.shape[1]
    means = np.array([parameters[cluster][0] for cluster in acceptable]).reshape(-1, k)
    covariances = np.array([parameters[cluster][1] for cluster in acceptable]).reshape(-1, k, k)
    # Mahalanobis distances do not depend on the units, so they are taken where the numbers are well scaled.
    distinctness = mahalanobis_distinctness(means, covariances)
    return Clustering(
        labels=numbered,
        numbers=np.arange(len(acceptable)),
        means=view.mean(axis=0) + means @ back,
        covariances=np.einsum("ai,cab,bj->cij", back, covariances, back),
        sizes=np.bincount(numbered[numbered >= 0], minlength=len(acceptable)).astype(np.intp),
        distinctness=distinctness,
        sampled=len(chosen),
        most_distinct=most_distinct(distinctness),
    )


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


Parameters = dict[int, tuple[Array, Array]]


def _mixture(scaled: Array, chosen: Labels, max_clusters: int, seed: int) -> tuple[Labels, Parameters]:
    """Dirichlet-process mixture with the authors' settings; mean and covariance by component, empty ones included."""
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
    return mixture.predict(scaled), dict(enumerate(zip(mixture.means_, mixture.covariances_, strict=True)))


def _density(scaled: Array, chosen: Labels, min_cluster_size: int, max_clusters: int) -> tuple[Labels, Parameters]:
    """HDBSCAN on the chosen rows, the largest clusters kept; other rows go to the Gaussian that fits them best."""
    size = max(2, int(min_cluster_size * len(chosen) / len(scaled)))
    learned = HDBSCAN(min_cluster_size=min(size, len(chosen)), copy=True).fit_predict(scaled[chosen])
    found, counts = np.unique(learned[learned >= 0], return_counts=True)
    kept = found[np.argsort(-counts, kind="stable")][:max_clusters]
    parameters: Parameters = {}
    distances = np.full((len(kept), len(scaled)), np.inf)
    for row, cluster in enumerate(kept):
        members = scaled[chosen][learned == cluster]
        mean, covariance = members.mean(axis=0), covariance_of(members)
        parameters[int(cluster)] = (mean, covariance)
        deviation = scaled - mean
        distances[row] = np.einsum("ik,ik->i", deviation, np.linalg.solve(covariance, deviation.T).T)
    labels = np.full(len(scaled), OUTLIER)
    if len(kept):
        # Beyond three standard deviations of the nearest cluster a row is as much noise as HDBSCAN's own noise.
        labels = np.where(distances.min(axis=0) <= 9.0, kept[distances.argmin(axis=0)], OUTLIER)
    labels[chosen] = np.where(np.isin(learned, kept), learned, OUTLIER)
    return labels, parameters


def covariance_of(points: Array) -> Array:
    """The covariance (k, k) of points, never singular."""
    k = points.shape[1]
    deviation = points - points.mean(axis=0)
    covariance = deviation.T @ deviation / max(1, len(points))
    # Identical rows have no spread; a millionth of a unit keeps their distances finite and very large.
    return covariance + 1e-12 * max(1e-12, float(np.trace(covariance))) * np.eye(k)
