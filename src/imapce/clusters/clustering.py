"""Clusters of a sample, which select views and effects, and clusters of all rows.

    sample → axes, mixture, effect of the covariates      `find_clusters`
    mixture refined on all rows → components for rare groups → one cluster for every row      `assign_rows`

Rows that the mixture explains worst are collected in one pass. If some of these are close to each other and increase
the likelihood enough as a further component (BIC), they are a cluster that the sample is too small to show. A row that
no component explains, F(d²/q; q, ν) > 1 − 0.01/n, is an outlier.

>>> from imapce.priors.problem import pose
>>> from imapce.rows.open import open_rows
>>> from imapce.tables.reader import Reader
>>> X = np.random.default_rng(0).standard_normal((150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]
>>> reader, matrix = Reader.learn(X)
>>> rows, all_rows = open_rows(matrix), np.ones(150, dtype=bool)
>>> found = find_clusters(pose(rows, [], reader, n_components=2), all_rows)
>>> partition = assign_rows(found, all_rows, rows)
>>> np.bincount(partition.labels), partition.structure.verdict, partition.stability
(array([50, 50, 50]), 'clear', {0: 1.0, 1: 1.0, 2: 1.0})
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import f as f_distribution

from imapce.clusters.axes import CoordinateMap, Coordinates, Sample, draw_sample
from imapce.clusters.covariates import adjust_sample, cluster_of_components, effect_on_columns, merged_labels
from imapce.clusters.merging import overlap_matrix, overlapping_groups
from imapce.clusters.mixture import BLOCK, Mixture, em_sums, log_joint, m_step, pair_features, posteriors, refine
from imapce.clusters.selection import Selection, one_hot, select_mixture
from imapce.clusters.significance import Split, Structure, assess_structure
from imapce.clusters.stability import stability_of
from imapce.common.arrays import Array, Codes, Mask
from imapce.common.records import Comparable
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.common.work import UNWATCHED, Watch, one_thread
from imapce.priors.effect import Effect
from imapce.priors.problem import Problem
from imapce.rows.base import Rows

OUTLIER = -1
# Columns that are compared with the clusters.
TREES = 5


@dataclass(frozen=True)
class SampleClusters:
    """Clusters `labels` (m,) of the rows of a `sample`, with any significance, and the `effect` given the clusters.

    `clusters` (k,) of the components of `found`; `effect` is None without covariates.
    """

    sample: Sample
    found: Selection
    labels: Codes
    clusters: Codes
    effect: Effect | None
    is_fixed: bool = False

    def among(self, problem: Problem, unexplored: Mask, rows: Rows) -> SampleClusters:
        """Return the same clusters for the rows `unexplored` (n,) of a later problem; `rows` are all rows."""
        if problem.with_known is not None and self.effect is not None:
            problem = problem.given(self.effect)
        sample = draw_sample(problem, unexplored, self.sample.settings)
        some = np.zeros(len(unexplored), dtype=bool)
        some[sample.positions] = True
        coordinates = self.coordinate_map(rows.subset(some)).take(sample.positions.argsort().argsort())
        labels = self.clusters[np.argmax(self.found.mixture.log_joint(coordinates)[0], axis=1)]
        return replace(self, sample=sample, labels=np.unique(labels, return_inverse=True)[1])

    def determining_column(self, names: Sequence[str], known: Collection[int] = ()) -> str:
        """Return in words which input column determines the clusters (NMI ≥ 0.8), not one of `known`; "" if none.

        A decision tree with one leaf for each cluster predicts the clusters from one of the columns that differ most.
        """
        sample, labels = self.sample, self.labels
        if sample.sources is None or self.found.gain <= 0 or not labels.any():
            return ""
        # Imported here because that takes a second.
        from sklearn.metrics import normalized_mutual_info_score
        from sklearn.tree import DecisionTreeClassifier

        member = (labels[:, None] == np.arange(int(labels.max()) + 1)).astype(np.float64)
        deviation = sample.values - sample.values.mean(axis=0)
        explained = ((member.T @ deviation) ** 2 / np.maximum(member.sum(axis=0), 1)[:, None]).sum(axis=0)
        shares = explained / np.maximum((deviation**2).sum(axis=0), np.finfo(np.float64).tiny)
        order = dict.fromkeys(sample.sources[np.argsort(-shares, kind="stable")].tolist())
        best = 0.0, 0
        for source in [source for source in order if source not in known][:TREES]:
            column = sample.values[:, sample.sources == source]
            tree = DecisionTreeClassifier(max_leaf_nodes=member.shape[1], random_state=0).fit(column, labels)
            best = max(best, (float(normalized_mutual_info_score(labels, tree.predict(column))), source))
        if best[0] < sample.settings.same_structure:
            return ""
        words = f"column {names[best[1]]!r} determines the clusters (NMI {best[0]:.2f})"
        return f"{words}: add it to the prior to see what else there is"

    @property
    def coordinate_map(self) -> CoordinateMap:
        """Return the map from rows to the coordinates of the mixture."""
        return CoordinateMap.from_sample(self.sample, self.found.n_axes)


def find_clusters(
    problem: Problem,
    unexplored: Mask,
    *,
    granularity: str = "auto",
    n_clusters: int | None = None,
    settings: ClusterSettings = SETTINGS.clusters,
    watch: Watch = UNWATCHED,
) -> SampleClusters:
    """Find the clusters of a sample of the rows `unexplored` (n,) of a problem, given its covariates."""
    settings = replace(settings, exponent=getattr(settings, "exponent" if granularity == "auto" else granularity))
    is_fixed, effect = n_clusters is not None, problem.effect
    with one_thread():
        watch.tell("looking for clusters", 0.0)
        sample = draw_sample(problem, unexplored, settings)
        if sample.covariates.shape[1] and effect is None:
            sample, found = adjust_sample(sample, n_clusters, watch)
        else:
            counts = sample.axis_counts
            found = select_mixture(
                sample.coordinates, sample.points, counts, settings, n_components=n_clusters, watch=watch
            )
        labels = merged_labels(found.resp, sample, slice(None), is_fixed=is_fixed)
        clusters = cluster_of_components(found.resp, labels)
        if effect is None and problem.with_known is not None:
            effect = effect_on_columns(problem, sample, found, clusters)
    return SampleClusters(sample, found, labels, clusters, effect, is_fixed)


@dataclass(frozen=True, eq=False)
class Partition(Comparable):
    """Clusters of the rows that are unexplored at the start, OUTLIER elsewhere, and the mixture that assigns rows.

    `clusters` (k,) of the components, OUTLIER for a component without rows. By cluster: `stability` is the
    share of resamples in which it reappears (no entry if it is not known), `overlap` the share of its rows that are
    misclassified, `groups` the group of overlapping clusters that it belongs to.
    """

    labels: Codes
    clusters: Codes
    mixture: Mixture
    _: KW_ONLY
    coordinate_map: CoordinateMap
    sample: Mask
    structure: Structure
    stability: dict[int, float] = field(default_factory=dict)
    overlap: dict[int, float] = field(default_factory=dict)
    groups: dict[int, int] = field(default_factory=dict)

    @property
    def n_clusters(self) -> int:
        """Return the number of clusters."""
        return len(np.unique(self.labels[self.labels != OUTLIER]))

    def numbered(self, first: int) -> Partition:
        """Return the same clusters numbered by size: the largest is `first`."""
        names, counts = np.unique(self.labels[self.labels != OUTLIER], return_counts=True)
        # One more entry for OUTLIER and for the components of clusters that were dropped.
        numbers = np.full(max(self.labels.max(initial=0), self.clusters.max(initial=0)) + 2, OUTLIER)
        numbers[names[np.argsort(-counts, kind="stable")]] = first + np.arange(len(names))
        by_number: dict[str, Any] = {
            name: {int(numbers[c]): value for c, value in getattr(self, name).items() if numbers[c] != OUTLIER}
            for name in ("stability", "overlap", "groups")
        }
        return replace(self, labels=numbers[self.labels], clusters=numbers[self.clusters], **by_number)

    def among(self, left: Mask, rows: Rows, *, min_cluster_size: int) -> Codes:
        """Return the clusters of the rows `left` (n,), OUTLIER elsewhere; rows of small clusters are assigned again."""
        labels = np.where(left, self.labels, OUTLIER)
        while True:
            names, counts = np.unique(labels[labels != OUTLIER], return_counts=True)
            if not len(names) or counts.min() >= min_cluster_size:
                return labels
            dropped = labels == names[counts.argmin()]
            allowed = np.isin(self.clusters, np.delete(names, counts.argmin()))
            labels[dropped] = OUTLIER
            if allowed.any():
                labels[dropped] = self.assigned(dropped, rows, allowed)

    def assigned(self, some: Mask, rows: Rows, allowed: Mask) -> Codes:
        """Return the clusters of some rows by the best of the components `allowed` (k,)."""
        with one_thread():
            logs = self.mixture.log_joint(self.coordinate_map(rows.subset(some)))[0]
        return self.clusters[np.where(allowed, logs, -np.inf).argmax(axis=1)]


def assign_rows(
    start: SampleClusters, unexplored: Mask, rows: Rows, *, min_cluster_size: int = 1, watch: Watch = UNWATCHED
) -> Partition:
    """Return the clusters of all rows `unexplored` (n,), with their significance, overlap and stability.

    `rows` are all rows of the table, and labels given as prior.
    """
    sample, found, clusters = start.sample, start.found, start.clusters
    settings, to_coordinates = sample.settings, start.coordinate_map
    with one_thread():
        resp = found.heldout @ (clusters[:, None] == np.arange(int(start.labels.max()) + 1))
        overlap = overlap_matrix(resp)
        groups = overlapping_groups(resp, settings)
        stability = stability_of(sample, found, start.labels, is_fixed=start.is_fixed, watch=watch)
        structure = assess_structure(sample, found, groups, stability, overlap.sum(axis=1), watch)
        labels, clusters, mixture = _assign(start, unexplored, rows, min_cluster_size, watch)
    inside = np.zeros(sample.n_rows, dtype=bool)
    inside[sample.positions] = True
    partition = Partition(
        labels,
        clusters,
        mixture,
        coordinate_map=to_coordinates,
        sample=inside,
        structure=structure,
        stability=dict(enumerate(stability.tolist())),
        overlap=dict(enumerate(overlap.sum(axis=1).tolist())),
        groups=dict(enumerate(groups.tolist())),
    )
    labels = partition.among(unexplored, rows, min_cluster_size=min_cluster_size)
    # If only one cluster reaches the minimum size, there are no clusters.
    if len(np.unique(labels[labels != OUTLIER])) < 2:
        labels = np.full_like(labels, OUTLIER)
    return replace(partition, labels=labels, structure=replace(structure, candidate=Split(labels)))


def _assign(
    start: SampleClusters, unexplored: Mask, rows: Rows, min_cluster_size: int, watch: Watch
) -> tuple[Codes, Codes, Mixture]:
    """Refine the mixture on many rows, add components for rare groups, and assign all rows."""
    sample, mixture, clusters = start.sample, start.found.mixture, start.clusters
    settings, to_coordinates = sample.settings, start.coordinate_map
    labels = np.full(sample.n_rows, OUTLIER)
    if len(sample.values) < settings.rows:
        labels[sample.positions] = start.labels
        rest = unexplored & (labels == OUTLIER)
        if rest.any():
            labels[rest] = clusters[_explain(mixture, to_coordinates(rows.subset(rest)))[0].argmax(axis=1)]
        return labels, clusters, mixture
    watch.tell("refining the mixture on all rows")
    drawn = sample.rows.content_sample(settings.refined_rows)
    learned = np.zeros(sample.n_rows, dtype=bool)
    learned[sample.candidates[drawn]] = True
    some = to_coordinates(rows.subset(learned)).take(drawn.argsort().argsort()).rounded()
    mixture = refine(mixture, some, settings)

    def assign(mixture: Mixture) -> Coordinates:
        """Assign all rows, and return those that are farthest from all components."""
        q, n = some.numeric.shape[1], int(unexplored.sum())
        limit = q * f_distribution.isf(settings.significance / n, q, mixture.dof[0]) if q else np.inf
        far, distances = some.take(slice(0)), np.zeros(0)
        for part in _in_parts(unexplored, BLOCK // max(1, to_coordinates.basis.shape[1])):
            watch.tell("assigning all rows to clusters")
            here = to_coordinates(rows.subset(part)).rounded()
            logs, distance = _explain(mixture, here)
            labels[part] = np.where(distance <= limit, clusters[logs.argmax(axis=1)], OUTLIER)
            far, distances = far.joined(here), np.append(distances, distance)
            kept = np.argsort(-distances, kind="stable")[: settings.far_rows]
            far, distances = far.take(kept), distances[kept]
        return far

    far = assign(mixture)
    larger = _rare_groups(mixture, some, far, int(unexplored.sum()), min_cluster_size, settings)
    if larger is not mixture:
        n_new = larger.n_components - mixture.n_components
        mixture, clusters = larger, np.append(clusters, clusters.max() + 1 + np.arange(n_new))
        assign(mixture)
    return labels, clusters, mixture


def _explain(mixture: Mixture, rows: Coordinates) -> tuple[Array, Array]:
    """Return ln π_c f_c (n, k) and the squared distance to the nearest component, in blocks of rows."""
    parts = [log_joint(mixture, some, pair_features(some.numeric)) for some in rows.in_blocks(BLOCK)]
    return np.concatenate([logs[0] for logs, _ in parts]), np.concatenate([d[0].min(axis=1) for _, d in parts])


def _rare_groups(
    mixture: Mixture,
    learned: Coordinates,
    far: Coordinates,
    n_rows: int,
    min_cluster_size: int,
    settings: ClusterSettings,
) -> Mixture:
    """Return the mixture with a component for each group of far rows that increases the likelihood enough (BIC)."""
    from sklearn.cluster import HDBSCAN

    smallest = max(min_cluster_size, int(settings.fewest))
    if len(far) < 2 * smallest or not far.numeric.shape[1]:
        return mixture
    far = far.take(np.lexsort(far.numeric.T))
    groups = HDBSCAN(min_cluster_size=smallest, allow_single_cluster=True, copy=True).fit_predict(far.numeric)
    k, n_new = mixture.n_components, int(groups.max()) + 1
    if not n_new:
        return mixture
    rows = learned.joined(far.take(groups >= 0))
    resp = np.zeros((len(rows), k + n_new))
    resp[: len(learned), :k] = posteriors(_explain(mixture, learned)[0])[0]
    resp[len(learned) :, k:] = one_hot(groups[groups >= 0], n_new)
    sums = em_sums(rows, pair_features(rows.numeric), resp[None], 1.0, None)
    larger = refine(m_step(sums, mixture.dof, rows.blocks, settings), rows, settings)
    logs = _explain(larger, rows)[0]
    assigned, overlap = logs.argmax(axis=1), overlap_matrix(posteriors(logs)[0])
    volumes = -np.linalg.slogdet(larger.precisions[0])[1]
    penalty = (learned.n_columns + 1) * np.log(n_rows) / 2
    kept = np.ones(k + n_new, dtype=bool)
    for c in range(k, k + n_new):
        members = assigned == c
        without = np.delete(logs[members], c, axis=1)
        gain = float((posteriors(logs[members])[1] - posteriors(without)[1]).sum()) if members.any() else 0.0
        is_separate = max(overlap[c].sum(), overlap[:, c].max()) <= settings.most_overlap
        kept[c] = gain > penalty and is_separate and volumes[c] <= volumes[:k].max()
    return larger.take_components(kept) if kept[k:].any() else mixture


def _in_parts(rows: Mask, most: int) -> Iterator[Mask]:
    """Yield masks (n,) of at most so many of the rows each."""
    positions = np.flatnonzero(rows)
    for first in range(0, len(positions), most):
        some = np.zeros(len(rows), dtype=bool)
        some[positions[first : first + most]] = True
        yield some
