"""How well a view shows the clusters, and what it keeps of the neighbourhoods; the rule that chooses by both.

    seen = share of the rows whose cluster is that of most of their 15 nearest in the view
    R_NX(K) = ((n − 1)·Q(K) − K)/(n − 1 − K),   Q(K) the share of a row's K nearest that the view keeps (Lee et al.)
    kept = mean of R_NX(K) over K = 15, 30, 60, ... up to a quarter of the rows;   0 is chance, 1 a perfect map

A view exists to show what is there, so of several optima the one in which the clusters are seen best is shown; of those
within one standard error of it the one that keeps most of who is near whom in all directions. Where one cluster is
all there is, its neighbourhoods decide. What that gives on labelled tables: experiments/README.md, "Everyday tables".
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
from imapce.priors.problem import Problem

# Rows from which there are neighbours to speak of.
FEWEST_ROWS = 4
# Share of the rows beyond the most common level whose level the neighbors tell, from which a view shows the levels of a
# category; NMI with the clusters from which these are the clusters; and what puts such views last.
ISLANDS, SAME_AS_LEVELS, LAST = 0.9, 0.5, 2.0


class Sight:
    """What a view (m, k) of the sample shows: for every row in a cluster whether its neighbours tell that, `right`, and
    for every row asked how much of its neighbourhood is kept; that is told when it is asked for, and takes longer.
    `islands` are the input columns, one or two categories other than the clusters, whose levels the view shows.
    """

    def __init__(self, view: Array, right: Array, neighbourhoods: Neighbourhoods | None, islands: tuple[int, ...] = ()):
        self.right, self.islands = right, islands
        self._view, self._neighbourhoods = view, neighbourhoods

    @property
    def seen(self) -> float:
        """The share of rows whose neighbours tell their cluster; NaN where there is one cluster."""
        return float(self.right.mean()) if len(self.right) else np.nan

    @cached_property
    def kept_rows(self) -> Array:
        """How much of its neighbourhood each row asked keeps."""
        here = self._neighbourhoods
        return np.zeros(1) if here is None else here.kept(self._view[here.base])

    @property
    def kept(self) -> float:
        """The mean share of the neighbourhoods, beyond chance."""
        return float(self.kept_rows.mean())

    @property
    def known_kept(self) -> float:
        """`kept` where somebody asked for it, else NaN."""
        return self.kept if "kept_rows" in self.__dict__ else np.nan


def clearest(views: Sequence[Sight]) -> int:
    """The place of the view that keeps most, among those in which the clusters are seen within a standard error as well
    as in the best. Views that show the levels of a category come last.
    """
    by_row = [view.right if len(view.right) else view.kept_rows for view in views]
    best = int(np.argmax([rows.mean() - LAST * bool(view.islands) for rows, view in zip(by_row, views, strict=True)]))

    def hardly_behind(rows: Array) -> bool:
        lost = by_row[best] - rows
        return bool(lost.mean() <= lost.std() / np.sqrt(len(lost)) + 1e-12)

    as_clear = [place for place, rows in enumerate(by_row) if hardly_behind(rows) and not views[place].islands]
    return max(as_clear, key=lambda place: views[place].kept) if len(as_clear) > 1 else best


class Onlooker:
    """Looks at views of a problem by the clusters (m,) of a sample of its rows, -1 for rows in none."""

    def __init__(self, problem: Problem, sample: Sample, clusters: Codes, settings: Settings = SETTINGS):
        self._settings = settings
        self._Z = problem.Z
        drawn = sample.drawn
        self._sample = np.zeros(self._Z.n_rows, dtype=bool)
        self._sample[drawn] = True
        self._order = drawn.argsort().argsort()
        self._groups = clusters
        names, sizes = np.unique(clusters[clusters >= 0], return_counts=True)
        large = names[sizes >= settings.choice.few_neighbours]
        self._asked = np.isin(self._groups, large) & (len(large) > 1)
        self._neighbourhoods = Neighbourhoods(sample.points, settings) if len(drawn) >= FEWEST_ROWS else None
        self._categories = sample.categories

    def look(self, V: Array) -> Sight:
        """At the view with the axes V (d, k)."""
        view = self._Z.project(V, self._sample)[self._order]
        asked, groups = self._asked, self._groups
        right = neighbours_agree(view[asked], groups[asked], self._settings) if asked.any() else np.zeros(0)
        return Sight(view, right, self._neighbourhoods, self._islands(view))

    def _islands(self, view: Array) -> tuple[int, ...]:
        """Return the one or two categories whose levels the neighbors in a view tell, unless the clusters do."""
        if not self._categories or len(view) < FEWEST_ROWS:
            return ()
        from sklearn.metrics import normalized_mutual_info_score

        near, found = nearest(jittered(view), min(self._settings.clusters.neighbours, len(view) - 1)), []
        for source, codes in self._categories.items():
            chance = np.bincount(codes).max() / len(codes)
            told = np.mean(votes(near, codes, int(codes.max()) + 1).argmax(axis=1) == codes)
            if told - chance >= ISLANDS * (1 - chance) > 0:
                found.append(source)
        if len(found) > 2:
            return ()
        # Clusters that differ in a category are not its levels.
        return tuple(
            c for c in found if normalized_mutual_info_score(self._categories[c], self._groups) < SAME_AS_LEVELS
        )


def neighbours_agree(view: Array, groups: Codes, settings: Settings = SETTINGS) -> Array:
    """(n,): 1 where most of the 15 nearest rows of a view (n, k) have the row's own group, else 0."""
    n = len(view)
    fewest = int(np.unique(groups, return_counts=True)[1].min())
    # A group of five has four others to be told by.
    most = settings.clusters.neighbours if n > settings.choice.few_rows else settings.choice.few_neighbours
    near = nearest(jittered(view), min(most, max(1, 2 * fewest - 3), n - 1))
    return (votes(near, groups, int(groups.max()) + 1).argmax(axis=1) == groups).astype(np.float64)


class Neighbourhoods:
    """Who is near whom, for at most 500 rows among at most 1,000, the same ones whenever the same rows are given."""

    def __init__(self, near: Array, settings: Settings = SETTINGS):
        rng = np.random.default_rng(0)
        n, few = len(near), settings.clusters.few_rows
        self.base: Codes = np.arange(n) if n <= 2 * few else np.sort(rng.choice(n, 2 * few, replace=False))
        self.n = m = len(self.base)
        self.queries: Codes = np.arange(m) if m <= few else np.sort(rng.choice(m, few, replace=False))
        smallest = max(1, min(settings.clusters.neighbours, m - 2))
        largest = max(smallest, int(settings.choice.largest_share * m))
        self._sizes = smallest * 2 ** np.arange(int(np.log2(largest / smallest)) + 1)
        distances = self._distances(near[self.base])
        reach = self._reach(distances)
        self._inside = [distances <= reach[:, place, None] for place in range(len(self._sizes))]

    def _distances(self, points: Array) -> NDArray[np.float32]:
        """Of the queries to the base, a row itself first of all."""
        points = points - points.mean(axis=0)
        # In units of their own, or columns that are not standardised overflow the half digits below.
        points = jittered(points / max(float(np.abs(points).max(initial=0.0)), np.finfo(np.float64).tiny))
        some, norms = points[self.queries], np.einsum("ij,ij->i", points, points)
        distances = np.einsum("ij,ij->i", some, some)[:, None] + norms[None] - 2 * some @ points.T
        distances[np.arange(len(self.queries)), self.queries] = -np.inf
        # Half the digits are sorted in half the time.
        return distances.astype(np.float32)

    def kept(self, view: Array) -> Array:
        """(queries,): for each row asked the mean of R_NX over the sizes, in a view (n, k) of the rows `base`."""
        distances = self._distances(view)
        reach = self._reach(distances)
        total = np.zeros(len(distances))
        for place, size in enumerate(self._sizes):
            both = (distances <= reach[:, place, None]) & self._inside[place]
            # The row itself is in both.
            share = (np.count_nonzero(both, axis=1) - 1) / size
            total += ((self.n - 1) * share - size) / max(1, self.n - 1 - size)
        return total / len(self._sizes)

    def _reach(self, distances: NDArray[np.float32]) -> NDArray[np.float32]:
        """(queries, sizes): how far the K-th neighbour is, for every K."""
        return np.sort(distances, axis=1)[:, self._sizes]
