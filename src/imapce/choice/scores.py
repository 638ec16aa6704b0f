"""Scores of views: how well a view separates the clusters, and how much of the neighborhoods it preserves.

    cluster accuracy = share of the rows with the same cluster as most of their 15 nearest neighbors in the view
    R_NX(K) = ((n − 1)·Q(K) − K)/(n − 1 − K)       Q(K) the mean share of the K nearest neighbors preserved (Lee et al.)
    neighborhood preservation = mean of R_NX(K) over K = 15, 30, 60, ... up to a quarter of the rows; 0 is chance

The view with the best cluster accuracy is selected; among views within one standard error of it, the one that
preserves most neighborhoods. If there is only one cluster, neighborhood preservation decides. Scores on labeled tables
are in experiments/README.md, "Everyday tables".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.axes import Sample
from imapce.common.arrays import Array, Codes
from imapce.common.neighbours import jittered, nearest, votes
from imapce.common.settings import SETTINGS, Settings

# Fewer rows have no neighborhoods.
FEWEST_ROWS = 4
# Accuracy of the level of a category predicted by neighbors, relative to the most common level, from which a view
# separates its levels; NMI with the clusters from which the levels are the clusters; penalty of such views.
ISLANDS, SAME_AS_LEVELS, LAST = 0.9, 0.5, 2.0


class ViewScore:
    """Scores of a view (m, k) of a sample: `right` (m,) is 1 if the neighbors of a clustered row have its cluster.

    `islands` are the one or two categories, other than the clusters, with levels that the view separates.
    """

    def __init__(self, view: Array, right: Array, neighborhoods: Neighborhoods | None, islands: tuple[int, ...] = ()):
        self.right, self.islands = right, islands
        self._view, self._neighborhoods = view, neighborhoods

    @property
    def cluster_accuracy(self) -> float:
        """Return the share of rows with neighbors of the same cluster; NaN if there is only one cluster."""
        return float(self.right.mean()) if len(self.right) else np.nan

    @cached_property
    def preservation_of_rows(self) -> Array:
        """Return the share of its neighborhood that each compared row preserves; computed on first access."""
        neighborhoods = self._neighborhoods
        return np.zeros(1) if neighborhoods is None else neighborhoods.preservation(self._view[neighborhoods.base])

    @property
    def computed_preservation(self) -> float:
        """Return the mean preservation if a comparison of views computed it, else NaN."""
        return float(self.preservation_of_rows.mean()) if "preservation_of_rows" in self.__dict__ else np.nan


def best_view(scores: Sequence[ViewScore]) -> int:
    """Return the index of the best view; views that separate the levels of a category come last."""
    by_row = [score.right if len(score.right) else score.preservation_of_rows for score in scores]
    ranks = [rows.mean() - LAST * bool(score.islands) for rows, score in zip(by_row, scores, strict=True)]
    best = int(np.argmax(ranks))
    losses = [by_row[best] - rows for rows in by_row]
    margins = [loss.std() / np.sqrt(len(loss)) + 1e-12 for loss in losses]
    close = [i for i, loss in enumerate(losses) if loss.mean() <= margins[i] and not scores[i].islands]
    return max(close, key=lambda i: scores[i].preservation_of_rows.mean()) if len(close) > 1 else best


class ViewScorer:
    """Scores views of the rows (m, q) of a sample by their clusters (m,), −1 for rows without a cluster."""

    def __init__(self, rows: Array, sample: Sample, clusters: Codes, settings: Settings = SETTINGS):
        self._settings, self._rows, self._clusters = settings, rows, clusters
        names, sizes = np.unique(clusters[clusters >= 0], return_counts=True)
        large = names[sizes >= settings.choice.few_neighbours]
        self._is_compared = np.isin(clusters, large) & (len(large) > 1)
        self._neighborhoods = Neighborhoods(sample.points, settings) if len(rows) >= FEWEST_ROWS else None
        self._categories = sample.categories

    def score(self, W: Array) -> ViewScore:
        """Return the scores of the view with the axes W (q, k)."""
        view, compared = self._rows @ W, self._is_compared
        clusters = self._clusters[compared]
        right = neighbors_agree(view[compared], clusters, self._settings) if len(clusters) else np.zeros(0)
        return ViewScore(view, right, self._neighborhoods, self._islands(view))

    def _islands(self, view: Array) -> tuple[int, ...]:
        """Return the one or two categories, except the clusters, with levels that neighbors in a view predict."""
        if not self._categories or len(view) < FEWEST_ROWS:
            return ()
        from sklearn.metrics import normalized_mutual_info_score

        neighbors, found = nearest(jittered(view), min(self._settings.clusters.neighbours, len(view) - 1)), []
        for source, codes in self._categories.items():
            chance = np.bincount(codes).max() / len(codes)
            accuracy = np.mean(votes(neighbors, codes, int(codes.max()) + 1).argmax(axis=1) == codes)
            if accuracy - chance >= ISLANDS * (1 - chance) > 0:
                found.append(source)
        # Clusters that differ in a category are not its levels.
        similarity = {c: normalized_mutual_info_score(self._categories[c], self._clusters) for c in found}
        return tuple(c for c in found if similarity[c] < SAME_AS_LEVELS) if len(found) <= 2 else ()


def neighbors_agree(view: Array, clusters: Codes, settings: Settings = SETTINGS) -> Array:
    """Return 1 for each row (n,) if most of its 15 nearest rows in a view (n, k) have its cluster, else 0."""
    n = len(view)
    fewest = int(np.unique(clusters, return_counts=True)[1].min())
    # A row of a cluster of five rows has four neighbors of its cluster at most.
    most = settings.clusters.neighbours if n > settings.choice.few_rows else settings.choice.few_neighbours
    neighbors = nearest(jittered(view), min(most, max(1, 2 * fewest - 3), n - 1))
    return (votes(neighbors, clusters, int(clusters.max()) + 1).argmax(axis=1) == clusters).astype(np.float64)


class Neighborhoods:
    """The neighbors of at most 500 rows among at most 1,000, always the same rows for the same points."""

    def __init__(self, points: Array, settings: Settings = SETTINGS):
        rng = np.random.default_rng(0)
        n, few = len(points), settings.clusters.few_rows
        self.base: Codes = np.arange(n) if n <= 2 * few else np.sort(rng.choice(n, 2 * few, replace=False))
        self.n = m = len(self.base)
        self.queries: Codes = np.arange(m) if m <= few else np.sort(rng.choice(m, few, replace=False))
        smallest = max(1, min(settings.clusters.neighbours, m - 2))
        largest = max(smallest, int(settings.choice.largest_share * m))
        self._sizes = smallest * 2 ** np.arange(int(np.log2(largest / smallest)) + 1)
        self._is_neighbor = self._neighbors(points[self.base])

    def preservation(self, view: Array) -> Array:
        """Return the mean of R_NX over the sizes for each query in a view (n, k) of the rows `base`."""
        total = np.zeros(len(self.queries))
        for size, before, after in zip(self._sizes, self._is_neighbor, self._neighbors(view), strict=True):
            # The row itself is in both.
            share = (np.count_nonzero(before & after, axis=1) - 1) / size
            total += ((self.n - 1) * share - size) / max(1, self.n - 1 - size)
        return total / len(self._sizes)

    def _neighbors(self, points: Array) -> list[NDArray[np.bool_]]:
        """Return for each size which rows of the base are neighbors of the queries; each query itself is one."""
        points = points - points.mean(axis=0)
        # Without a unit of their own, columns that are not standardized overflow single precision.
        points = jittered(points / max(float(np.abs(points).max(initial=0.0)), np.finfo(np.float64).tiny))
        norms = np.einsum("ij,ij->i", points, points)
        distances = norms[self.queries][:, None] + norms[None] - 2 * points[self.queries] @ points.T
        distances[np.arange(len(self.queries)), self.queries] = -np.inf
        # Single precision is sorted in half the time.
        distances = distances.astype(np.float32)
        radii = np.sort(distances, axis=1)[:, self._sizes]
        return [distances <= radii[:, i, None] for i in range(len(self._sizes))]
