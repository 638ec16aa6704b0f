"""The clusters of all rows that are unexplored at the start, found once and in all directions; steps show what is left.

    space → mixture, given the known → merged where no valley is → a verdict

A view is a shadow: what it separates is apart, what it does not may be too. So clusters are found where all directions
that are free of the known are seen at once, from a sample of the rows, and a step takes them in the order in which its
views show them. What is accepted by hand restricts them.

>>> from imapce.clusters.given import candidate_of
>>> from imapce.priors.problem import pose
>>> from imapce.rows.open import open_rows
>>> from imapce.tables.reader import Reader
>>> X = np.random.default_rng(0).standard_normal((150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]
>>> reader, matrix = Reader.learn(X)
>>> rows, all_rows = open_rows(matrix), np.ones(150, dtype=bool)
>>> best = candidate_of(pose(rows, [], reader, n_components=2), all_rows)
>>> found = partition_of(best, all_rows, rows)
>>> np.bincount(found.labels), found.structure.verdict, found.stability
(array([50, 50, 50]), 'clear', {0: 1.0, 1: 1.0, 2: 1.0})
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np

from imapce.clusters.columns import Reading
from imapce.clusters.given import Candidate, clusters_of
from imapce.clusters.mixture import Mixture, choose, component_of
from imapce.clusters.structure import Split, Structure, judge, stability_of
from imapce.common.arrays import Codes, Mask
from imapce.common.records import Comparable
from imapce.common.work import UNWATCHED, Watch, one_thread
from imapce.rows.base import Rows

OUTLIER = -1
# Numbers held at once while rows are given to clusters.
HELD = 8_000_000


@dataclass(frozen=True, eq=False)
class Partition(Comparable):
    """Clusters of the rows that are unexplored at the start, OUTLIER for others, and what gives rows to them.

    `clusters` (k,) are those of the mixture's components, OUTLIER where a component has no row of the `sample`; the
    mixture sees rows by `reading`. `stability` is, by the number of a cluster, the share of draws of 80 % of the rows
    in which it came back.
    """

    labels: Codes
    clusters: Codes
    mixture: Mixture
    _: KW_ONLY
    reading: Reading
    sample: Mask
    structure: Structure
    stability: dict[int, float] = field(default_factory=dict)

    @property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return len(np.unique(self.labels[self.labels != OUTLIER]))

    def numbered(self, first: int) -> Partition:
        """The same clusters by size, the largest with the number `first`, the others with those after it."""
        names, counts = np.unique(self.labels[self.labels != OUTLIER], return_counts=True)
        # One place more, for OUTLIER and for components whose cluster gave way.
        numbers = np.full(max(self.labels.max(initial=0), self.clusters.max(initial=0)) + 2, OUTLIER)
        numbers[names[np.argsort(-counts, kind="stable")]] = first + np.arange(len(names))
        stability = {int(numbers[name]): share for name, share in self.stability.items() if numbers[name] != OUTLIER}
        return replace(self, labels=numbers[self.labels], clusters=numbers[self.clusters], stability=stability)

    def among(self, left: Mask, rows: Rows, *, min_cluster_size: int) -> Codes:
        """Clusters of the rows left (n,), OUTLIER elsewhere; too small ones give way, the smallest first.

        Their rows go to the components of other clusters that explain them best; the last one's are outliers.
        """
        labels = np.where(left, self.labels, OUTLIER)
        while True:
            names, counts = np.unique(labels[labels != OUTLIER], return_counts=True)
            if not len(names) or counts.min() >= min_cluster_size:
                return labels
            gone = labels == names[counts.argmin()]
            allowed = np.isin(self.clusters, np.delete(names, counts.argmin()))
            labels[gone] = OUTLIER
            if allowed.any():
                labels[gone] = self.assigned(gone, rows, allowed)

    def assigned(self, some: Mask, rows: Rows, allowed: Mask) -> Codes:
        """The clusters of some rows, by the component, of those allowed (k,), that explains each best."""
        with one_thread():
            return self.clusters[component_of(self.mixture, self.reading.cells(rows.subset(some)), allowed)]


def partition_of(
    candidate: Candidate, unexplored: Mask, rows: Rows, *, min_cluster_size: int = 1, watch: Watch = UNWATCHED
) -> Partition:
    """The clusters of all rows `unexplored` (n,), gross outliers among them, and whether they are more than chance.

    `rows` are all rows of the table, with the known labels beside them where there are some. Where one cluster is all
    that is found, they are the two halves that explain the rows best, and the verdict is "none".
    """
    space, found, final = candidate.space, candidate.found, candidate.labels
    with one_thread():
        structure = judge(space, found, final, watch)
        if not final.any():
            found = choose(space.cells, space.points, watch, settings=space.settings, size=2)
            final = found.labels
        stability = stability_of(space, found, final, watch)
    labels = np.full(space.n_rows, OUTLIER)
    labels[space.places] = final
    whole = Partition(
        labels,
        clusters_of(found.labels, final, len(found.mixture.weights)),
        found.mixture,
        reading=space.reading(),
        sample=space.sample,
        structure=structure,
        stability=stability,
    )
    # Rows of the sample are given anew where it is one, so that all rows are in the cluster that explains them best.
    others = unexplored if whole.sample.sum() == space.settings.rows < unexplored.sum() else unexplored & ~whole.sample
    for some in _in_parts(others, HELD // max(1, len(whole.reading.basis))):
        watch.tell("giving all rows to the clusters")
        labels[some] = whole.assigned(some, rows, whole.clusters != OUTLIER)
    labels = whole.among(unexplored, rows, min_cluster_size=min_cluster_size)
    # Where too small clusters left one, it is what was not to be told apart.
    if len(np.unique(labels[labels != OUTLIER])) < 2:
        labels = np.full_like(labels, OUTLIER)
    return replace(whole, labels=labels, structure=replace(structure, candidate=Split(labels)))


def _in_parts(rows: Mask, most: int) -> Iterator[Mask]:
    """Masks (n,) of at most so many of the rows each."""
    places = np.flatnonzero(rows)
    for first in range(0, len(places), most):
        some = np.zeros(len(rows), dtype=bool)
        some[places[first : first + most]] = True
        yield some
