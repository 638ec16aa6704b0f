"""The clusters of a view carried into all directions a step may use, and how far each is from its nearest neighbour.

A view is a shadow: rows of other clusters fall into a cluster's, and some of its own fall outside. A mixture of Student
distributions in the leading principal axes, begun at the clusters of the view, moves them where they belong:

    f(z) = Σ_c π_c·t_ν(z; m_c, S_c),     S_c = (n_c·Ŝ_c + q·S)/(n_c + q),     S the covariance of all rows, q the axes

Heavy tails (ν = 5) keep far rows from widening a cluster, and q rows' worth of S keep a small cluster's S_c regular.

    distinctness(c) = min_j  ⅛ δᵀC̄⁻¹δ + ½ ln(det C̄/√(det C_c·det C_j)),     δ = m_c − m_j, C̄ = (C_c + C_j)/2

is Bhattacharyya's distance in the view to the nearest cluster: a sum of distances, as in the paper, prefers a cluster
far from most to one apart from all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import softmax

from imapce.common.threads import one_thread
from imapce.common.watch import UNWATCHED, Watch
from imapce.exploration.clustering import CLUSTER_ALL, OUTLIER, SAMPLE, Clustering, covariance_of

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

TAIL = 5.0  # ν
ITERATIONS = 30
AXES = 30
# Above so many rows their coordinates in the axes would not fit beside the data; the view's clusters stay as they are.
REFINED_ROWS = 1_000_000


def refined(
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

    >>> from imapce.exploration.clustering import cluster_view
    >>> rng = np.random.default_rng(0)
    >>> points = rng.standard_normal((90, 3)) + 9 * np.eye(3)[np.arange(90) % 3]
    >>> found = cluster_view(points[:, :2], min_cluster_size=10)
    >>> refined(found, points[:, :2], points, min_cluster_size=10, seed=0).sizes.tolist()
    [30, 30, 30]
    """
    labels = clustering.labels
    if len(clustering.sizes) > 1 and points.shape[1]:
        points = points[:, :AXES] / max(float(points[:, :AXES].std()), np.finfo(np.float64).tiny)
        chosen = np.arange(len(points))
        if len(points) > CLUSTER_ALL:
            chosen = np.sort(np.random.default_rng(seed).choice(len(points), SAMPLE, replace=False))
        with one_thread():
            labels = student_mixture(points, labels, chosen, watch)
    return numbered(labels, view, min_cluster_size, sampled=clustering.sampled)


def student_mixture(points: Array, labels: Labels, chosen: Labels, watch: Watch = UNWATCHED) -> Labels:
    """Labels of all points (n, q) by a mixture learned from the `chosen` ones, begun at their labels.

    Points of no cluster are one more component; a component of fewer rows than axes cannot be learned and gives way.

    >>> rng = np.random.default_rng(0)
    >>> two = rng.standard_normal((100, 3)) + 9 * np.repeat([[0], [1]], 50, axis=0)
    >>> begun = np.repeat([0, 1], 50); begun[:5] = 1
    >>> np.unique(student_mixture(two, begun, np.arange(100))[:50])
    array([0])
    """
    learned = points[chosen]
    n, q = learned.shape
    names, counts = np.unique(labels[chosen], return_counts=True)
    names = names[counts > q]
    if len(names) < 2:
        return labels
    # The plain covariance: a robust one is smaller, holds small clusters less, and they run away (Image Segmentation:
    # NMI 0.66 instead of 0.74).
    overall = covariance_of(learned)
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


def numbered(
    labels: Labels, view: Array, min_cluster_size: int, *, sampled: int, as_they_are: bool = False
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
    scaled = np.array([covariance_of(view[given == c] / unit) for c in numbers]).reshape(-1, k, k)
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
        sampled=sampled,
        most_distinct=most,
    )


def nearest_distance(means: Array, covariances: Array) -> Array:
    """Bhattacharyya's distance of every cluster to the nearest other one; 0 where there is no other.

    >>> nearest_distance(np.array([[0.0], [2.0], [8.0]]), np.ones((3, 1, 1)))
    array([0.5, 0.5, 4.5])
    """
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
