"""How well a view shows the clusters, and what it keeps of the neighbourhoods; the rule that chooses by both.

    seen = share of the rows whose cluster is that of most of their 15 nearest in the view
    R_NX(K) = ((n − 1)·Q(K) − K)/(n − 1 − K),   Q(K) the share of a row's K nearest that the view keeps (Lee et al.)
    kept = mean of R_NX(K) over K = 15, 30, 60, ... up to a quarter of the rows;   0 is chance, 1 a perfect map

A view exists to show what is there, so of several optima the one in which the clusters are seen best is shown; of those
within one standard error of it the one that keeps most of who is near whom in all directions. Where one cluster is
all there is, its neighbourhoods decide. On the 14 development tables 15-NN accuracy of the class is then 0.77 and on 13
others 0.83 (PCA 0.75 and 0.77; by neighbourhoods alone 0.76 and 0.80).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from imapce.clusters.partition import Candidate
from imapce.priors.problem import Problem

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]

# Neighbours from which a vote means something; a third of them where rows are few.
VOTERS, FEW_VOTERS, FEW_ROWS = 15, 5, 150
LARGEST_SHARE = 0.25
# Rows asked for their neighbours, and among how many: of more the mean is the same to 0.01.
BASE, QUERIES = 1_000, 500
SMALLEST_CLUSTER = 5
TIE = 1e-6  # of the spread: rows at one place are neighbours by lot, the same lot in every engine


class Sight:
    """What a view (m, k) of the sample shows: for every row in a cluster whether its neighbours tell that, `right`, and
    for every row asked how much of its neighbourhood is kept; that is told when it is asked for, and takes longer.

    >>> points = np.random.default_rng(0).standard_normal((200, 2))
    >>> half = Sight(points[:, :1], np.array([1.0, 1.0, 0.0, 1.0]), Neighbourhoods(points))
    >>> half.seen, 0 < half.kept < 1
    (0.75, True)
    """

    def __init__(self, view: Array, right: Array, neighbourhoods: Neighbourhoods | None):
        self.right = right
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
    as in the best.

    >>> points = np.random.default_rng(0).standard_normal((200, 2))
    >>> here = Neighbourhoods(points)
    >>> half = Sight(points[:, :1], np.array([1.0, 1.0, 0.0]), here)
    >>> clearest([half, Sight(points, np.array([1.0, 0.0, 1.0]), here)])
    1
    """
    told = [one.right if len(one.right) else one.kept_rows for one in views]
    best = int(np.argmax([one.mean() for one in told]))

    def hardly_behind(one: Array) -> bool:
        lost = told[best] - one
        return bool(lost.mean() <= lost.std() / np.sqrt(len(lost)) + 1e-12)

    as_clear = [place for place, one in enumerate(told) if hardly_behind(one)]
    return max(as_clear, key=lambda place: views[place].kept) if len(as_clear) > 1 else best


class Onlooker:
    """Looks at views of a problem by the clusters found in a sample of its rows.

    >>> from imapce.clusters.partition import candidate_of
    >>> from imapce.priors.problem import pose
    >>> from imapce.rows.open import open_rows
    >>> from imapce.tables.reader import Reader
    >>> two = np.random.default_rng(0).normal(size=(200, 3)) + 6 * (np.arange(200) % 2)[:, None] * [1, 1, 0]
    >>> reader, matrix = Reader.learn(two)
    >>> problem = pose(open_rows(matrix), [], reader, n_components=2)
    >>> onlooker = Onlooker(problem, candidate_of(problem, np.ones(200, dtype=bool)))
    >>> onlooker.look(np.eye(3)[:, :2]).seen
    1.0
    """

    def __init__(self, problem: Problem, candidate: Candidate):
        self._Z = problem.Z
        drawn = candidate.space.drawn
        self._sample = np.zeros(self._Z.n_rows, dtype=bool)
        self._sample[drawn] = True
        self._order = drawn.argsort().argsort()
        self._groups = candidate.labels
        names, sizes = np.unique(self._groups, return_counts=True)
        large = names[sizes >= SMALLEST_CLUSTER]
        self._told = np.isin(self._groups, large) & (len(large) > 1)
        self._neighbourhoods = Neighbourhoods(candidate.space.points) if len(drawn) > 3 else None

    def look(self, V: Array) -> Sight:
        """At the view with the axes V (d, k)."""
        view = self._Z.project(V, self._sample)[self._order]
        told, groups = self._told, self._groups
        right = neighbours_agree(view[told], groups[told]) if told.any() else np.zeros(0)
        return Sight(view, right, self._neighbourhoods)


def neighbours_agree(view: Array, groups: Ints) -> Array:
    """(n,): 1 where most of the 15 nearest rows of a view (n, k) have the row's own group, else 0.

    >>> neighbours_agree(np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]), np.array([0, 0, 0, 1, 1, 1]))
    array([1., 1., 1., 1., 1., 1.])
    """
    n = len(view)
    fewest = int(np.unique(groups, return_counts=True)[1].min())
    # A group of five has four others to be told by.
    voters = min(VOTERS if n > FEW_ROWS else FEW_VOTERS, max(1, 2 * fewest - 3), n - 1)
    near = cKDTree(jittered(view)).query(jittered(view), voters + 1)[1][:, 1:]
    several = int(groups.max()) + 1
    ballots = groups[near] + several * np.arange(n)[:, None]
    votes = np.bincount(ballots.ravel(), minlength=n * several).reshape(n, several)
    return (votes.argmax(axis=1) == groups).astype(np.float64)


def jittered(points: Array) -> Array:
    """Points with ties broken by a fixed draw."""
    if not points.shape[1]:
        return points
    spread = np.sqrt(np.mean((points - points.mean(axis=0)) ** 2))
    return points + TIE * spread * np.random.default_rng(0).standard_normal(points.shape)


def squared_distances_between(some: Array, points: Array) -> Array:
    """‖a − b‖² (m, n), as one product."""
    norms = np.einsum("ij,ij->i", points, points)
    return np.einsum("ij,ij->i", some, some)[:, None] + norms[None] - 2 * some @ points.T


class Neighbourhoods:
    """Who is near whom, for at most 500 rows among at most 1,000, the same ones whenever the same rows are given.

    >>> points = np.random.default_rng(0).standard_normal((200, 2))
    >>> here = Neighbourhoods(points)
    >>> float(here.kept(points[here.base]).mean()), bool(abs(here.kept(points[here.base][::-1]).mean()) < 0.05)
    (1.0, True)
    """

    def __init__(self, near: Array):
        rng = np.random.default_rng(0)
        n = len(near)
        self.base: Ints = np.arange(n) if n <= BASE else np.sort(rng.choice(n, BASE, replace=False))
        self.n = m = len(self.base)
        self.queries: Ints = np.arange(m) if m <= QUERIES else np.sort(rng.choice(m, QUERIES, replace=False))
        smallest = max(1, min(VOTERS, m - 2))
        largest = max(smallest, int(LARGEST_SHARE * m))
        self._sizes = smallest * 2 ** np.arange(int(np.log2(largest / smallest)) + 1)
        distances = self._distances(near[self.base])
        reach = self._reach(distances)
        self._inside = [distances <= reach[:, place, None] for place in range(len(self._sizes))]

    def _distances(self, points: Array) -> NDArray[np.float32]:
        """Of the queries to the base, a row itself first of all."""
        points = points - points.mean(axis=0)
        # In units of their own, or columns that are not standardised overflow the half digits below.
        points = jittered(points / max(float(np.abs(points).max(initial=0.0)), np.finfo(np.float64).tiny))
        distances = squared_distances_between(points[self.queries], points)
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
