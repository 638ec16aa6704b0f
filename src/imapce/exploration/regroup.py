"""Clusters grouped anew without a new view: split one, merge some, consolidate all. Each is a move like a step.

A `Regrouping` says which clusters went and which came for them, so labels, files, undo and redo need no second way.

Consolidating compares all accepted clusters in all dimensions: clusters that overlap are merged, and a remaining row
is assigned to a cluster if

    P(c | z) ≥ SURE,    f_c(z) ≥ the density that all but a share OUTERMOST of the cluster's own rows have
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from imapce.clusters.axes import CoordinateMap, Coordinates, Sample, draw_sample
from imapce.clusters.clustering import assign_rows, find_clusters
from imapce.clusters.merging import overlapping_groups
from imapce.clusters.mixture import Mixture, em_sums, m_step, posteriors
from imapce.clusters.selection import one_hot
from imapce.common.arrays import Array, Codes, Mask
from imapce.common.checks import is_whole
from imapce.common.words import counted, listing, uncapitalized
from imapce.common.work import UNWATCHED, Watch, one_thread
from imapce.errors import InvalidValueError, Sentence
from imapce.exploration.accept import clusters_meant
from imapce.exploration.clustering import OUTLIER
from imapce.exploration.look import Findings
from imapce.exploration.record import Regrouping, TakenCluster
from imapce.exploration.verdict import SPLITS_IT, best_split_in_words, verdict_in_words
from imapce.rows.base import Rows

SURE, OUTERMOST = 0.95, 0.05
FEWEST_COMPARED = 50
# Degrees of freedom of the compared clusters: nearly Gaussian.
TAIL = 50.0


def split(found: Findings, cluster: Any, *, view: int | None, ignore: bool, watch: Watch) -> Regrouping:
    """An accepted cluster in the pieces it falls into best, or one of a view of the proposal.

    Pieces that are no more than chance are refused, unless that is to be ignored.
    """
    highest = found.next_number - 1
    if view is None:
        number, what = _require_accepted(cluster, "cluster", found), f"cluster {cluster}"
        rows = found.record.moves.by_number[number].rows
    else:
        seen = found.cluster(view, watch)
        if isinstance(cluster, Iterable):
            raise InvalidValueError(f"cluster must be the number of one cluster; got {cluster!r:.80}.")
        (number,) = clusters_meant(cluster, seen)
        what, rows = f"proposed cluster {number}", np.flatnonzero(seen.clusters == number)
        highest = max(found.next_number - 1, *seen.numbers.tolist())
    pieces, why = _pieces_of(rows, what, found, ignore, watch)
    # The largest first, which keeps the number.
    numbers = (number, *range(highest + 1, highest + len(pieces)))
    sizes = " and ".join(f"{len(piece):,}" for piece in pieces)
    words = f"Split {what} in pieces of {sizes} rows: {why}."
    if view is not None:
        return Regrouping("split", (), (), words=words, pieces=tuple(pieces), numbers=numbers)
    made = tuple(_new_cluster(found, *piece) for piece in zip(pieces, numbers, strict=True))
    return Regrouping("split", (number,), made, words=words)


def merge(found: Findings, clusters: Sequence[int]) -> Regrouping:
    """Two or more accepted clusters as one, which has the lowest of their numbers."""
    if isinstance(clusters, str) or not isinstance(clusters, Iterable):
        raise InvalidValueError(f"clusters must be two or more numbers of accepted clusters; got {clusters!r:.80}.")
    numbers = sorted(_require_accepted(number, "clusters", found) for number in clusters)
    if len(numbers) < 2 or len(set(numbers)) != len(numbers):
        raise InvalidValueError(f"clusters must name at least two clusters and none twice; got {clusters!r:.80}.")
    rows = np.sort(np.concatenate([found.record.moves.by_number[number].rows for number in numbers]))
    *most, last = map(str, numbers)
    words = f"Merged clusters {', '.join(most)} and {last} into one of {len(rows):,} rows."
    return Regrouping("merge", tuple(numbers), (_new_cluster(found, rows, numbers[0], of=numbers),), words=words)


def consolidate(found: Findings, watch: Watch) -> tuple[Regrouping, bool]:
    """Merge overlapping clusters and assign remaining rows that clearly belong to one; return whether any changed."""
    moves, known, start = found.record.moves, found.record.known, found.record.known_at_start
    if not moves.clusters:
        raise InvalidValueError("consolidate() compares accepted clusters, and there are none; accept some first.")
    numbers = np.array([cluster.number for cluster in moves.clusters])
    watch.tell("comparing the clusters in all directions", 0.0)
    problem, all_rows = found.given(start, watch)
    groups, given = compare_clusters(
        draw_sample(problem, ~start),
        np.where(moves.labels < 0, OUTLIER, np.searchsorted(numbers, moves.labels)),
        all_rows,
        left=~known & ~problem.set_aside,
        watch=watch,
    )
    # Of every group the lowest number stays, then come those that go.
    members = [numbers[groups == group].tolist() for group in range(int(groups.max()) + 1)]
    changed = [group for group, of in enumerate(members) if len(of) > 1 or (given == group).any()]
    stay = [members[group][0] for group in changed]
    go = [number for group in changed for number in members[group][1:]]
    made = tuple(
        _new_cluster(
            found,
            np.flatnonzero(np.isin(moves.labels, members[group]) | (given == group)),
            members[group][0],
            chosen="automatic",
            of=members[group],
        )
        for group in changed
    )
    n_given = int((given != OUTLIER).sum())
    n_left = len(known) - int(known.sum()) - n_given
    words = _consolidation_in_words(len(numbers), [members[group] for group in changed], n_given, n_left)
    return Regrouping("consolidate", (*stay, *go), made, words=words), bool(changed or n_left)


def compare_clusters(
    sample: Sample, labels: Codes, rows: Rows, *, left: Mask, watch: Watch = UNWATCHED
) -> tuple[Codes, Codes]:
    """Return the group 0, 1, ... of each cluster (k,) of labels (n,), and the group of each row `left` (n,), if any."""
    k, given = int(labels.max()) + 1, np.full(len(labels), OUTLIER)
    with one_thread():
        to_coordinates = CoordinateMap.from_sample(sample, sample.axis_counts[0])
        taken = np.zeros(len(labels), dtype=bool)
        for c in range(k):
            taken[_some(np.flatnonzero(labels == c), sample.settings.rows // k)] = True
        points, codes = to_coordinates(rows.subset(taken)), labels[taken]
        mixture = _mixture_of(points, codes, sample)
        groups = overlapping_groups(posteriors(mixture.score_rows(points)[0])[0], sample.settings)
        if left.any():
            watch.tell("assigning the remaining rows to the clusters")
            sizes = np.bincount(groups[labels[labels >= 0]]).astype(np.float64)
            merged = _mixture_of(points, groups[codes], sample)
            given[left] = _belonging(merged, points, groups[codes], to_coordinates(rows.subset(left)), sizes)
    return groups, given


def _mixture_of(points: Coordinates, labels: Codes, sample: Sample) -> Mixture:
    """Return the mixture with a component for each cluster."""
    resp = one_hot(labels, int(labels.max()) + 1)[None]
    dof = np.array([TAIL])
    sums = em_sums(points, resp, 1.0, None)
    return m_step(sums, dof, points.blocks, sample.settings)


def _some(rows: Codes, most: int) -> Codes:
    """Return at most so many of the rows, and at least FEWEST_COMPARED if there are, always the same."""
    most = max(most, FEWEST_COMPARED)
    return rows if len(rows) <= most else np.random.default_rng(0).choice(rows, most, replace=False)


def _belonging(mixture: Mixture, points: Coordinates, groups: Codes, others: Coordinates, sizes: Array) -> Codes:
    """Return the group of each of the `others` (m,) that belongs to one, OUTLIER for the rest."""
    # Of large clusters some rows were compared, and their share in those is not their share.
    shift = np.log(sizes / sizes.sum()) - np.log(mixture.weights[0])
    own = mixture.score_rows(points)[0][np.arange(len(points)), groups]
    edge = np.array([np.quantile(own[groups == c], OUTERMOST) for c in range(len(sizes))])
    logs = mixture.score_rows(others)[0]
    resp, best = posteriors(logs + shift)[0], (logs + shift).argmax(axis=1)
    rows = np.arange(len(best))
    return np.where((resp[rows, best] >= SURE) & (logs >= edge)[rows, best], best, OUTLIER)


def _require_accepted(number: Any, argument: str, found: Findings) -> int:
    there = found.record.moves.by_number
    if not there:
        raise InvalidValueError(argument, "must name accepted clusters, and there are none; accept some first.")
    if not is_whole(number) or number not in there:
        raise InvalidValueError(
            argument,
            f"must be among the numbers of accepted clusters ({listing(map(str, there), 20)}); got {number!r:.80}.",
        )
    return int(number)


def _pieces_of(rows: Codes, what: str, found: Findings, ignore: bool, watch: Watch) -> tuple[list[Codes], str]:
    """The pieces of some rows, largest first, and in words what separates them; `ignore` takes those by chance."""
    least = found.record.min_cluster_size
    fewest = max(2 * least, found.record.estimator.n_components + 1)
    if len(rows) < fewest:
        raise InvalidValueError(
            f"{what} has {len(rows)} rows, and two pieces of at least min_cluster_size={least} need {fewest}; it stays "
            "as it is."
        )
    inside = np.isin(np.arange(found.data.n_rows), rows)
    problem, all_rows = found.given(~inside, watch)
    best = find_clusters(problem, inside, granularity=found.record.granularity, progress=watch.tell)
    parts = assign_rows(best, inside, all_rows, min_cluster_size=least, progress=watch.tell)
    names, counts = np.unique(parts.labels[rows], return_counts=True)
    if len(names) < 2:
        raise InvalidValueError(
            f"{what} does not fall into pieces of at least min_cluster_size={least} rows; it stays as it is, or take "
            "rows of your own by accept(mask=...)."
        )
    why = uncapitalized(verdict_in_words(parts.structure))
    if not (parts.structure.is_taken or ignore):
        instead = uncapitalized(best_split_in_words(parts.structure))
        raise InvalidValueError(Sentence(f"{what} stays whole: {why}; {instead}", SPLITS_IT, "."))
    order = np.argsort(-counts, kind="stable")
    return [rows[parts.labels[rows] == names[i]] for i in order], why


def _new_cluster(
    found: Findings, rows: Codes, number: int, *, chosen: str = "hand", of: Iterable[int] = ()
) -> TakenCluster:
    """A cluster that no view showed as it is, described against all other rows; called as what it is made of is.

    Where these have two names, neither is right for all its rows.
    """
    names = {found.record.moves.by_number[other].name for other in of} - {None}
    name = names.pop() if len(names) == 1 else None
    return TakenCluster(rows, None, found.features_of(rows), number=number, chosen=chosen, name=name)


def _consolidation_in_words(n_before: int, changed: list[list[int]], n_given: int, n_left: int) -> str:
    merges = [group for group in changed if len(group) > 1]
    n_after = n_before - sum(len(group) - 1 for group in merges)
    parts = []
    if merges:
        which = ", ".join(" with ".join(map(str, group)) for group in merges)
        parts.append(f"Consolidated {n_before} clusters into {n_after}: {which}.")
    else:
        parts.append(f"No two of the {n_before} clusters overlap.")
    if n_given:
        parts.append(f"{counted(n_given, 'row')} left over went to the cluster that clearly explains them.")
    if n_left:
        parts.append(f"{counted(n_left, 'row is', 'rows are')} far from every cluster.")
    return " ".join(parts)
