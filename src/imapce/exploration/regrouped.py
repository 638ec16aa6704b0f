"""Clusters grouped anew without a new view: split one, merge some, consolidate all. Each is a move like a step.

A `Regrouping` says which clusters went and which came for them, so labels, files, undo and redo need no second way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.given import candidate_of
from imapce.clusters.partition import partition_of
from imapce.clusters.space import Space
from imapce.common.checks import is_whole
from imapce.common.watch import Tell, Watch
from imapce.common.words import listing, uncapitalized
from imapce.errors import InvalidValueError, Sentence
from imapce.exploration.choices import named_clusters
from imapce.exploration.clustering import OUTLIER
from imapce.exploration.consolidation import consolidated
from imapce.exploration.looking import Cancel, Looking
from imapce.exploration.record import Regrouping, TakenCluster
from imapce.exploration.steps import features_apart
from imapce.exploration.verdict import SPLITS_IT, best_split_in_words, require_rule, verdict_in_words
from imapce.priors.problem import Problem
from imapce.rows.base import Rows

Positions = NDArray[np.intp]
Mask = NDArray[np.bool_]


class Regrouped(Looking):
    """A session whose clusters can be regrouped; every regrouping can be undone and is kept in the file."""

    def split(
        self,
        cluster: int,
        *,
        proposed: bool = False,
        view: int = 0,
        structure: str = "heed",
        progress: Tell | None = None,
        cancel: Cancel | None = None,
    ) -> Regrouping:
        """Split one accepted cluster, by its number in `labels_`, in the pieces it falls into best.

        The largest piece keeps the number, the others get the next free ones. With `proposed` the number is that of a
        cluster in a view of the current proposal, and proposals show its pieces from then on. Pieces that are no more
        than chance are refused; structure="ignore" takes the best split there is. `words` of the regrouping says which.

        >>> from imapce import Exploration
        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3])
        >>> _ = exploration.accept(mask=np.arange(150) % 3 != 0)
        >>> [(piece.number, piece.size) for piece in exploration.split(0).clusters]
        [(0, 50), (1, 50)]
        """
        watch = Watch(progress, cancel)
        ignore = require_rule(structure)
        if proposed:
            step = self.propose(clusters=False, progress=progress, cancel=cancel)
            self._view(step, view)
            seen = self._clustered(view, watch)
            (number,) = named_clusters(_one(cluster), seen)
            rows = np.flatnonzero(seen.clusters == number)
        else:
            number = self._accepted_cluster(cluster, "cluster")
            rows = self._taken(number).rows
        what = f"{'proposed cluster' if proposed else 'cluster'} {number}"
        pieces, words = self._pieces_of(rows, what, ignore, watch)
        # The largest first, which keeps the number.
        highest = max([self._free_number - 1, *(seen.numbers.tolist() if proposed else ())])
        numbers = (number, *range(highest + 1, highest + len(pieces)))
        sizes = " and ".join(f"{len(piece):,}" for piece in pieces)
        words = f"Split {what} in pieces of {sizes} rows: {words}."
        if proposed:
            return self._regroup(Regrouping("split", (), (), words=words, pieces=tuple(pieces), numbers=numbers))
        made = tuple(self._made(piece, one) for piece, one in zip(pieces, numbers, strict=True))
        return self._regroup(Regrouping("split", (number,), made, words=words))

    def merge(self, clusters: Sequence[int]) -> Regrouping:
        """Make one of two or more accepted clusters, by their numbers in `labels_`; it has the lowest of them.

        Where one of them has a name, or all the same, it keeps it.

        >>> from imapce import Exploration
        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]).run()
        >>> exploration.merge([0, 2]).clusters[0].size, len(exploration.clusters_)
        (100, 2)
        """
        if isinstance(clusters, str) or not isinstance(clusters, Iterable):
            raise InvalidValueError(f"clusters must be two or more numbers of accepted clusters; got {clusters!r:.80}.")
        numbers = sorted(self._accepted_cluster(number, "clusters") for number in clusters)
        if len(numbers) < 2 or len(set(numbers)) != len(numbers):
            raise InvalidValueError(f"clusters must name at least two clusters and none twice; got {clusters!r:.80}.")
        rows = np.sort(np.concatenate([self._taken(number).rows for number in numbers]))
        words = f"Merged clusters {_numbers(numbers)} into one of {len(rows):,} rows."
        return self._regroup(
            Regrouping("merge", tuple(numbers), (self._made(rows, numbers[0], of=numbers),), words=words)
        )

    def consolidate(self, *, progress: Tell | None = None, cancel: Cancel | None = None) -> Regrouping:
        """Compare all accepted clusters in all directions: those that no valley separates become one, and rows left
        over go to the cluster they clearly belong to. Where there is nothing to tell, nothing is recorded.

        >>> from imapce import Exploration
        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(160, 4)) + 9 * np.eye(2, 4)[np.arange(160) % 2])
        >>> for part in range(4):
        ...     _ = exploration.accept(mask=np.arange(160) % 4 == part)
        >>> exploration.consolidate().words
        'Consolidated 4 clusters into 2: 0 with 2, 1 with 3.'
        """
        watch = Watch(progress, cancel)
        before = self.clusters_
        if not before:
            raise InvalidValueError("consolidate() compares accepted clusters, and there are none; accept some first.")
        labels, start = self.labels_, self._known_at_start
        numbers = np.array([cluster.number for cluster in before])
        watch.tell("comparing the clusters in all directions", 0.0)
        problem, all_rows = self._given(start, watch)
        groups, given = consolidated(
            Space.of(problem, ~start),
            np.where(labels < 0, OUTLIER, np.searchsorted(numbers, labels)),
            all_rows,
            left=~self.known & ~problem.set_aside,
            watch=watch,
        )
        # Of every group the lowest number stays, then come those that go.
        members = [numbers[groups == group].tolist() for group in range(int(groups.max()) + 1)]
        changed = [group for group, of in enumerate(members) if len(of) > 1 or (given == group).any()]
        stay = [members[group][0] for group in changed]
        go = [number for group in changed for number in members[group][1:]]
        rows = [np.flatnonzero(np.isin(labels, members[group]) | (given == group)) for group in changed]
        n_given = int((given != OUTLIER).sum())
        n_left = len(labels) - int(self.known.sum()) - n_given
        words = _consolidated_words(len(before), [members[group] for group in changed], n_given, n_left)
        parts = zip(rows, stay, changed, strict=True)
        new = tuple(self._made(some, one, chosen="automatic", of=members[group]) for some, one, group in parts)
        regrouping = Regrouping("consolidate", (*stay, *go), new, words=words)
        return self._regroup(regrouping) if changed or n_left else regrouping

    # --- inside -------------------------------------------------------------------------------------------------------

    def _given(self, known: Mask, watch: Watch) -> tuple[Problem, Rows]:
        """The problem of the rows that are not in `known` (n,), less the effect of what was known at the start, and all
        rows with the labels beside them that it is read from.
        """
        problem = self._posed(known, for_clusters=True)
        if problem.told is None:
            return problem, self._rows
        candidate = self._candidate_at_start(watch)
        assert candidate.effect is not None
        return problem.given(candidate.effect), self._with_labels(candidate)

    def _accepted_cluster(self, number: Any, argument: str) -> int:
        there = [cluster.number for cluster in self.clusters_]
        if not there:
            raise InvalidValueError(argument, "must name accepted clusters, and there are none; accept some first.")
        if not is_whole(number) or number not in there:
            raise InvalidValueError(
                argument,
                f"must be among the numbers of accepted clusters ({listing(map(str, there), 20)}); got {number!r:.80}.",
            )
        return int(number)

    def _taken(self, number: int) -> TakenCluster:
        return next(cluster for cluster in self.clusters_ if cluster.number == number)

    def _pieces_of(self, rows: Positions, what: str, ignore: bool, watch: Watch) -> tuple[list[Positions], str]:
        """The pieces of some rows, largest first, and in words what separates them; `ignore` takes those by chance."""
        fewest = max(2 * self.min_cluster_size, self._model.n_components + 1)
        if len(rows) < fewest:
            raise InvalidValueError(
                f"{what} has {len(rows)} rows, and two pieces of at least min_cluster_size={self.min_cluster_size} "
                f"need {fewest}; it stays as it is."
            )
        inside = np.zeros(self._rows.n_rows, dtype=bool)
        inside[rows] = True
        problem, all_rows = self._given(~inside, watch)
        best = candidate_of(problem, inside, granularity=self.granularity, watch=watch)
        found = partition_of(best, inside, all_rows, min_cluster_size=self.min_cluster_size, watch=watch)
        names, counts = np.unique(found.labels[rows], return_counts=True)
        if len(names) < 2:
            raise InvalidValueError(
                f"{what} does not fall into pieces of at least min_cluster_size={self.min_cluster_size} rows; it stays "
                "as it is, or take rows of your own by accept(mask=...)."
            )
        told = verdict_in_words(found.structure)
        if not (found.structure.is_taken or ignore):
            words = best_split_in_words(found.structure)
            raise InvalidValueError(
                Sentence(f"{what} stays whole: {uncapitalized(told)}; {uncapitalized(words)}", SPLITS_IT, ".")
            )
        order = np.argsort(-counts, kind="stable")
        return [rows[found.labels[rows] == names[i]] for i in order], uncapitalized(told)

    def _made(self, rows: Positions, number: int, *, chosen: str = "hand", of: Iterable[int] = ()) -> TakenCluster:
        """A cluster that no view showed as it is, described against all other rows; called as what it is made of is.

        Where these have two names, neither is right for all its rows.
        """
        names = {self._taken(one).name for one in of} - {None}
        inside = np.zeros(self._rows.n_rows, dtype=bool)
        inside[rows] = True
        features = features_apart(
            self._rows,
            inside,
            ~inside & ~self._set_aside,
            names=self.feature_names,
            set_aside=self._set_aside,
            explained=self._explained_last,
        )
        name = names.pop() if len(names) == 1 else None
        return TakenCluster(rows, None, features, number=number, chosen=chosen, name=name)

    def _regroup(self, regrouping: Regrouping) -> Regrouping:
        self._commit([*self._moves, regrouping], [])
        return regrouping


def _one(cluster: Any) -> Any:
    if isinstance(cluster, Iterable):
        raise InvalidValueError(f"cluster must be the number of one cluster; got {cluster!r:.80}.")
    return cluster


def _numbers(numbers: Iterable[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


def _consolidated_words(n_before: int, changed: list[list[int]], n_given: int, n_left: int) -> str:
    merges = [group for group in changed if len(group) > 1]
    n_after = n_before - sum(len(group) - 1 for group in merges)
    parts = []
    if merges:
        which = ", ".join(" with ".join(map(str, group)) for group in merges)
        parts.append(f"Consolidated {n_before} clusters into {n_after}: {which}.")
    else:
        parts.append(f"A valley separates any two of the {n_before} clusters.")
    if n_given:
        rows = "1 row" if n_given == 1 else f"{n_given:,} rows"
        parts.append(f"{rows} left over went to the cluster that clearly explains them.")
    if n_left:
        parts.append(
            "1 row is far from every cluster." if n_left == 1 else f"{n_left:,} rows are far from every cluster."
        )
    return " ".join(parts)
