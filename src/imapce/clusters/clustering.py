"""Clusters of a sample, which select views and effects, and clusters of all rows.

    sample → axes, mixture, effect of the covariates      `find_clusters`
    mixture refined on all rows → components for rare groups → one cluster for each row      `assign_rows`

Rows that the mixture explains worst are collected in one pass. If some of these are close to each other and increase
the likelihood enough as a further component (BIC), the sample is too small for their cluster. A row that
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

from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import f as f_distribution

from imapce.clusters.axes import CoordinateMap, Coordinates, Sample, as_mask, draw_sample
from imapce.clusters.covariates import (
    adjust_sample,
    cluster_probabilities,
    clusters_of_components,
    effect_on_columns,
)
from imapce.clusters.merging import overlap_matrix, overlapping_groups
from imapce.clusters.mixture import BLOCK, Mixture, em_sums, m_step, posteriors, refine
from imapce.clusters.selection import Selection, one_hot, select_mixture
from imapce.clusters.significance import OUTLIER, Structure, assess_structure
from imapce.clusters.stability import stability_of
from imapce.common.arrays import Codes, Mask
from imapce.common.records import Comparable
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.common.words import counted
from imapce.common.work import UNWATCHED, Tell, one_thread
from imapce.priors.effect import Effect
from imapce.priors.problem import Problem
from imapce.rows.base import Rows


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

    def assign_sample(self, problem: Problem, unexplored: Mask, rows: Rows) -> SampleClusters:
        """Return the same clusters for the rows `unexplored` (n,) of a later problem; `rows` are all rows."""
        if problem.with_known is not None and self.effect is not None:
            problem = problem.given(self.effect)
        sample = draw_sample(problem, unexplored, self.sample.settings)
        coordinates = self.coordinate_map(rows.subset(as_mask(sample.positions, len(unexplored))))
        in_order = coordinates.take(sample.positions.argsort().argsort())
        labels = self.clusters[self.found.mixture.score_rows(in_order)[0].argmax(axis=1)]
        return replace(self, sample=sample, labels=np.unique(labels, return_inverse=True)[1])

    def determining_column(self, names: Sequence[str], covariates: Collection[int] = ()) -> str:
        """Return a message if an input column, none of `covariates`, determines the clusters (NMI ≥ 0.8), else "".

        A decision tree with one leaf for each cluster predicts the clusters from the column that it uses most.
        """
        sources, values, labels = self.sample.sources, self.sample.values, self.labels
        if sources is None or self.found.gain <= 0 or not labels.any():
            return ""
        # Imported here because that takes a second.
        from sklearn.metrics import normalized_mutual_info_score
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(max_leaf_nodes=int(labels.max()) + 1, random_state=0)
        importances = np.bincount(sources, tree.fit(values, labels).feature_importances_)
        importances[[column for column in covariates if column < len(importances)]] = 0.0
        source = int(importances.argmax())
        column = values[:, sources == source]
        similarity = normalized_mutual_info_score(labels, tree.fit(column, labels).predict(column))
        if similarity < self.sample.settings.same_structure:
            return ""
        determines = f"column {names[source]!r} determines the clusters (NMI {similarity:.2f})"
        return f"{determines}: add it to the prior to see what else there is"

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
    progress: Tell = UNWATCHED.tell,
) -> SampleClusters:
    """Find the clusters of a sample of the rows `unexplored` (n,) of a problem, given its covariates."""
    settings = replace(settings, exponent=getattr(settings, "exponent" if granularity == "auto" else granularity))
    is_fixed, effect = n_clusters is not None, problem.effect
    with one_thread():
        progress("looking for clusters", 0.0)
        sample = draw_sample(problem, unexplored, settings)
        if sample.covariates.shape[1] and effect is None:
            sample, found = adjust_sample(sample, n_clusters, progress)
        else:
            coordinates, points = sample.coordinates, sample.points
            found = select_mixture(
                coordinates, points, sample.axis_counts, settings, n_components=n_clusters, progress=progress
            )
        clusters = clusters_of_components(found.resp, sample, slice(None), is_fixed=is_fixed)
        if effect is None and problem.with_known is not None:
            effect = effect_on_columns(problem, sample, found, clusters)
    return SampleClusters(sample, found, clusters[found.resp.argmax(axis=1)], clusters, effect, is_fixed)


@dataclass(frozen=True, eq=False)
class Partition(Comparable):
    """Clusters of the rows that are unexplored at the start, OUTLIER elsewhere, and the mixture that assigns rows.

    `clusters` (k,) of the components, OUTLIER for a component without rows. By cluster: `stability` is the
    share of resamples in which it reappears (no entry if it was not computed), `overlap` the share of its rows that are
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

    def labels_of(self, unexplored: Mask, rows: Rows, *, min_cluster_size: int) -> Codes:
        """Return the clusters of rows (n,), OUTLIER elsewhere; rows of small clusters are assigned again."""
        labels = np.where(unexplored, self.labels, OUTLIER)
        while True:
            names, counts = np.unique(labels[labels != OUTLIER], return_counts=True)
            if not len(names) or counts.min() >= min_cluster_size:
                return labels
            small = labels == names[counts.argmin()]
            labels[small] = OUTLIER
            allowed = np.isin(self.clusters, np.delete(names, counts.argmin()))
            if allowed.any():
                with one_thread():
                    logs = self.mixture.score_rows(self.coordinate_map(rows.subset(small)))[0]
                labels[small] = self.clusters[np.where(allowed, logs, -np.inf).argmax(axis=1)]


def assign_rows(
    start: SampleClusters,
    unexplored: Mask,
    rows: Rows,
    *,
    min_cluster_size: int = 1,
    progress: Tell = UNWATCHED.tell,
) -> Partition:
    """Return the clusters of all rows `unexplored` (n,), with their significance, overlap and stability.

    `rows` are all rows of the table, and labels given as prior.
    """
    sample, found = start.sample, start.found
    with one_thread():
        resp = cluster_probabilities(found.heldout, start.clusters)
        overlap, groups = overlap_matrix(resp).sum(axis=1), overlapping_groups(resp, sample.settings)
        stability = stability_of(sample, found, start.labels, is_fixed=start.is_fixed, progress=progress)
        structure = assess_structure(sample, found, groups, stability, progress)
        labels, clusters, mixture = _assign(start, unexplored, rows, min_cluster_size, progress)
    partition = Partition(
        labels,
        clusters,
        mixture,
        coordinate_map=start.coordinate_map,
        sample=as_mask(sample.positions, len(unexplored)),
        structure=structure,
        stability=dict(enumerate(stability.tolist())),
        overlap=dict(enumerate(overlap.tolist())),
        groups=dict(enumerate(groups.tolist())),
    )
    labels = partition.labels_of(unexplored, rows, min_cluster_size=min_cluster_size)
    # If only one cluster reaches the minimum size, there are no clusters.
    if len(np.unique(labels[labels != OUTLIER])) < 2:
        labels = np.full_like(labels, OUTLIER)
    n_rare = len(np.unique(labels[labels > start.labels.max()]))
    reason = f"{structure.reason}, and {counted(n_rare, 'rare group')}" if n_rare else structure.reason
    return replace(partition, labels=labels, structure=replace(structure, reason=reason, candidate=labels))


def _assign(
    start: SampleClusters, unexplored: Mask, rows: Rows, min_cluster_size: int, progress: Tell
) -> tuple[Codes, Codes, Mixture]:
    """Refine the mixture on many rows, add components for rare groups, and assign all rows."""
    sample, mixture, clusters = start.sample, start.found.mixture, start.clusters
    settings, to_coordinates, q = sample.settings, start.coordinate_map, start.found.mixture.means.shape[2]
    n, labels, distances = int(unexplored.sum()), np.full(len(unexplored), OUTLIER), np.full(len(unexplored), -1.0)

    # Rows are read once if their coordinates fit in memory; the rows of a small table are all in the sample.
    is_read_once = settings.rows <= len(sample.values) and n <= settings.refined_rows
    everything = to_coordinates(rows.subset(unexplored)) if is_read_once else None

    def coordinates(mask: Mask) -> Coordinates:
        return to_coordinates(rows.subset(mask)) if everything is None else everything.take(mask[unexplored])

    def assign(mask: Mask) -> None:
        limit = q * f_distribution.isf(settings.significance / n, q, mixture.dof[0]) if q else np.inf
        size = BLOCK // max(1, to_coordinates.basis.shape[1])
        for positions in np.split(np.flatnonzero(mask), range(size, int(mask.sum()), size)):
            progress("assigning all rows to clusters", None)
            part = as_mask(positions, len(mask))
            logs, distances[part] = mixture.score_rows(coordinates(part))
            labels[part] = np.where(distances[part] <= limit, clusters[logs.argmax(axis=1)], OUTLIER)

    if len(sample.values) < settings.rows:
        labels[sample.positions] = start.labels
        assign(unexplored & (labels == OUTLIER))
        return labels, clusters, mixture
    progress("refining the mixture on all rows", None)
    indices = sample.rows.content_sample(settings.refined_rows)
    learned = as_mask(np.flatnonzero(sample.candidates)[indices], len(unexplored))
    mixture = refine(mixture, coordinates(learned), settings)
    assign(unexplored)
    most = min(settings.far_rows, n)
    outer = unexplored & (distances >= np.partition(distances, -most)[-most])
    n_clusters, smallest = len(clusters), max(min_cluster_size, int(settings.fewest))
    mixture, clusters = _add_rare_groups(mixture, clusters, coordinates, learned, outer, smallest, n, settings)
    if len(clusters) > n_clusters:
        assign(unexplored)
    return labels, clusters, mixture


def _add_rare_groups(
    mixture: Mixture,
    clusters: Codes,
    coordinates: Callable[[Mask], Coordinates],
    learned: Mask,
    outer: Mask,
    smallest: int,
    n_rows: int,
    settings: ClusterSettings,
) -> tuple[Mixture, Codes]:
    """Add a component and a cluster for each group of `outer` rows that increases the likelihood enough (BIC).

    `coordinates(mask)` are of the rows of a mask (n,); components are refined on the rows `learned`, too.
    """
    from sklearn.cluster import HDBSCAN

    rows, groups = coordinates(outer), np.full(len(outer), -1)
    if len(rows) < 2 * smallest or not rows.numeric.shape[1]:
        return mixture, clusters
    groups[outer] = HDBSCAN(min_cluster_size=smallest, allow_single_cluster=True, copy=True).fit_predict(rows.numeric)
    k, n_new = len(clusters), int(groups.max()) + 1
    if not n_new:
        return mixture, clusters
    sums = em_sums(rows, one_hot(groups[outer], n_new)[None], 1.0, None)
    added = m_step(sums, mixture.dof, rows.blocks, settings)
    rows = coordinates(learned | (groups >= 0))
    added = replace(added, weights=added.weights * (groups >= 0).sum() / len(rows))
    larger = refine(mixture.joined(added), rows, settings)
    logs = larger.score_rows(rows)[0]
    assigned, overlap = logs.argmax(axis=1), overlap_matrix(posteriors(logs)[0])
    is_used = np.maximum(overlap.sum(axis=1), overlap.max(axis=0)) <= settings.most_overlap
    # Axes of a group have at most twice the variance of the widest component; scattered rows are no group.
    volumes = -np.linalg.slogdet(larger.precisions[0])[1]
    is_used &= volumes <= volumes[:k].max() + rows.numeric.shape[1] * np.log(2)
    is_used[:k] = True
    for c in range(k, k + n_new):
        members = logs[assigned == c]
        gain = (posteriors(members)[1] - posteriors(np.delete(members, c, axis=1))[1]).sum()
        is_used[c] &= gain > (rows.n_columns + 1) * np.log(n_rows) / 2
    if not is_used[k:].any():
        return mixture, clusters
    numbers = np.where(is_used[k:], clusters.max() + 1 + np.arange(n_new), OUTLIER)
    return replace(larger, weights=larger.weights * is_used), np.append(clusters, numbers)
