"""What a session looks at: the next view of the rows left, and their clusters, found once or view by view."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from imapce.clusters.given import Candidate, candidate_of
from imapce.clusters.partition import Partition, partition_of
from imapce.common.checks import is_whole
from imapce.common.threads import threads_for
from imapce.common.watch import Tell, Watch
from imapce.errors import InvalidValueError
from imapce.estimators.imapce import IMAPCE
from imapce.exploration.record import Feature, free_number
from imapce.exploration.results import Results
from imapce.exploration.steps import Look, Step, View, features_apart
from imapce.exploration.verdict import require_granularity, require_number_of_clusters, require_rule
from imapce.priors.base import Prior, labels_among
from imapce.priors.effect import Explained
from imapce.priors.kinds import Subset
from imapce.priors.problem import FlatRowsError, Problem
from imapce.rows.base import Rows
from imapce.search.solution import Optimum

Mask = NDArray[np.bool_]
Cancel = Callable[[], bool]


class Looking(Results):
    """A session that can look: the same state always shows the same step."""

    def propose(self, *, clusters: bool = True, progress: Tell | None = None, cancel: Cancel | None = None) -> Step:
        """The next view of the unexplored rows and its clusters; asking again gives the same step.

        With clusters=False the view comes without them, for those who want to see it first; `cluster` finds them.
        `progress(words, share)` is told what is being done, and `cancel()` may return True to end it: then
        CancelledError is raised and the session is as it was.
        """
        watch = Watch(progress, cancel)
        if self._proposal is None:
            try:
                self._look, step = self._looked(watch)
                self._set_aside = self._look.problem.set_aside
            except FlatRowsError:
                self._flat = True
                raise
            self._proposal = step.with_view(0, self._look.placed(step.views[0]))
        if clusters:
            self._clustered(0, watch)
        return self._proposal

    def look(
        self,
        *,
        n_components: int | None = None,
        alpha: float | str | None = None,
        mu: float | str | None = None,
        progress: Tell | None = None,
        cancel: Cancel | None = None,
    ) -> View:
        """A view of the unexplored rows with other settings than those of the session, which it leaves as it is.

        With alpha=0 and mu=0 it shows the directions of most variance, whatever is known.

        >>> from imapce import Exploration
        >>> exploration = Exploration(np.random.default_rng(0).normal(size=(60, 5)), random_state=0)
        >>> exploration.look(n_components=3).embedding.shape
        (60, 3)
        """
        given = {"n_components": n_components, "alpha": alpha, "mu": mu}
        model = clone(self._model).set_params(**{key: value for key, value in given.items() if value is not None})
        model.check_parameters()
        found, step = self._looked(Watch(progress, cancel), model)
        return found.placed(step.views[0])

    def go_on_with(
        self,
        *,
        prior: Any = None,
        alpha: float | str | None = None,
        mu: float | str | None = None,
        granularity: str | None = None,
        n_clusters: int | str | None = None,
        structure: str | None = None,
    ) -> Self:
        """Go on with other settings: all that is known besides what was taken, the weights, how many clusters there are
        and whether they are shown where they are no more than chance; what was taken stays.

        `prior` replaces what was known at the start, and [] forgets it; n_clusters="auto" asks for no number any more;
        structure="ignore" shows the best split from now on, as `run` does. None leaves each as it is.

        >>> from imapce import Attributes, Exploration
        >>> exploration = Exploration(np.random.default_rng(0).normal(size=(60, 5)), random_state=0)
        >>> exploration.go_on_with(prior=Attributes([0])).known_in_words
        ['The column x0 was known: its effect is explained away, given the clusters.']
        """
        before = dict(self.__dict__)
        given = {key: value for key, value in {"alpha": alpha, "mu": mu}.items() if value is not None}
        try:
            self._model = clone(self._model).set_params(**given)
            self._model.check_parameters()
            if prior is not None:
                self._know(prior)
                for known in self._other_priors:
                    known.column_mask(self._reader)
            if granularity is not None:
                self.granularity = require_granularity(granularity)
            if n_clusters is not None:
                self.n_clusters = None if n_clusters == "auto" else require_number_of_clusters(n_clusters)
            self._require_clusters_as_asked()
            if structure is not None:
                self._ignore_structure(require_rule(structure))
            if given or any(one is not None for one in (prior, granularity, n_clusters)) or structure is None:
                self._proposal, self._look, self._candidate, self._partition = None, None, None, None
                self._numbers = None
                self._flat, self._by_chance = False, None
            self._commit(self._moves, self._undone)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _ignore_structure(self, ignore: bool) -> None:
        """From now on show clusters also where they are no more than chance, or no longer; what was found stays."""
        if ignore == self.ignores_structure:
            return
        self.ignores_structure, self._by_chance = ignore, None
        if self._partition is not None:
            self._partition = self._with_numbers(self._partition)
        if self._proposal is not None:
            views = tuple(replace(view, found=None) for view in self._proposal.views)
            self._proposal = replace(self._proposal, views=views, structure=None, features=())

    def _priors(self, known: Mask) -> list[Prior]:
        subset: list[Prior] = [Subset(known, weight=self._subset_weight)] if known.any() else []
        return [*self._other_priors, *subset]

    def _looked(self, watch: Watch, model: IMAPCE | None = None) -> tuple[Look, Step]:
        """The next look and its step, as they always are after what was accepted."""
        known, number = self.known, len(self.steps)
        left = len(known) - int(known.sum())
        model = clone(self._model) if model is None else model
        if left <= model.n_components:
            raise InvalidValueError(f"nothing can be proposed: {left} rows are unexplored. Use undo() to go back.")
        seed = int(np.random.SeedSequence([self.random_state, number]).generate_state(1)[0] % 2**31)
        try:
            return Look.at(
                self._rows,
                self._reader,
                model,
                priors=self._priors(known),
                known=known,
                number=number,
                seed=seed,
                watch=watch,
                start=self._found_at_start(model, watch),
                before=self.steps[-1].components if self.steps else None,
                granularity=self.granularity,
                n_clusters=self.n_clusters,
            )
        except FlatRowsError:
            # Clusters that were found in all directions are there although no view of them alone is.
            if not (self.is_joint and self.steps) or model.n_components != self._model.n_components:
                raise
            return self._look_back(known, number, seed)

    def _found_at_start(self, model: IMAPCE, watch: Watch) -> tuple[Candidate, Rows] | None:
        """Clusters and the effect of the known, found once, for a look after the first; None where each look finds its
        own, as beside a background of which nothing was explained away.
        """
        asked = self.is_joint or any(prior.has_effect for prior in self._other_priors)
        if not (self._moves and model.explains and asked):
            return None
        start = self._candidate_at_start(watch)
        return start, self._with_labels(start)

    def _look_back(self, known: Mask, number: int, seed: int) -> tuple[Look, Step]:
        """Rows left that vary in too few directions for a view of their own, in that of the step before."""
        last, problem = self.steps[-1], self._posed(known)
        seen = Optimum(last.components, last.objective, last.kurtosis)
        view = View(
            seen, last.mean, last.scale, unexplored=~known, set_aside=problem.set_aside, explained=last.explained
        )
        words = (
            f"The rows left do not vary in {self._model.n_components} directions; this is the view of the step before."
        )
        return Look(self._rows, problem, seen, seed), Step(number, (view,), words)

    def _current_look(self, watch: Watch) -> Look:
        if self._look is None:
            self._look = self._looked(watch)[0]
        return self._look

    def _posed(self, known: Mask, *, for_clusters: bool = False) -> Problem:
        """The problem of the rows that are not in `known` (n,).

        Clusters are found given what is known, also where a number for α weighs it in the views; but α = 0 ignores it.
        """
        model = clone(self._model)
        if for_clusters and model.alpha != 0:
            model.set_params(alpha="auto")
        with threads_for(self._rows.n_rows, self._rows.n_features):
            return model.pose(self._rows, self._priors(known), self._reader)

    def _candidate_at_start(self, watch: Watch) -> Candidate:
        """The best clusters of the rows that were unexplored at the start, and the effect of the known given them."""
        if self._candidate is None and not self._moves and self._model.explains:
            self._candidate = self._current_look(watch).candidate
        if self._candidate is None:
            start = self._known_at_start
            self._candidate = candidate_of(
                self._posed(start, for_clusters=True),
                ~start,
                granularity=self.granularity,
                n_clusters=self.n_clusters,
                watch=watch,
            )
        return self._candidate

    def _with_labels(self, candidate: Candidate) -> Rows:
        """All rows, with the labels beside them that clusters are found given."""
        if candidate.effect is None:
            return self._rows
        return candidate.effect.joined(self._rows, labels_among(self._other_priors, self._rows.n_rows))

    def _parted(self, watch: Watch) -> Partition:
        """The clusters of the rows that were unexplored at the start, found once."""
        if self._partition is None:
            candidate = self._candidate_at_start(watch)
            found = partition_of(
                candidate,
                ~self._known_at_start,
                self._with_labels(candidate),
                min_cluster_size=self.min_cluster_size,
                watch=watch,
            )
            self._partition = self._with_numbers(found)
        return self._partition

    def _with_numbers(self, found: Partition) -> Partition:
        """The clusters with the numbers they have through the session; those that are not shown need none."""
        shown = found.n_clusters if self.shows(found.structure) else 0
        if self._numbers is None or self._numbers[1] - self._numbers[0] != shown:
            first = free_number(self._moves)
            self._numbers, self._numbered_before = (first, first + shown), len(self._undone)
        return found.numbered(self._numbers[0])

    @staticmethod
    def _view(step: Step, view: Any) -> View:
        if not is_whole(view) or not 0 <= view < len(step.views):
            raise InvalidValueError(f"view must be from 0 to {len(step.views) - 1} in this step; got {view!r}.")
        return step.views[view]

    def _clustered(self, place: int, watch: Watch) -> View:
        """A view of the proposal with its clusters, which it keeps."""
        assert self._proposal is not None
        seen = self._proposal.views[place]
        if not seen.looked_at and self.is_joint:
            found = self._parted(watch)
            nobody = np.zeros(self._rows.n_rows, dtype=bool)
            left = seen.clustered if self.shows(found.structure) else nobody
            beside = self._with_labels(self._candidate_at_start(watch))
            labels = self._kept_apart(found.among(left, beside, min_cluster_size=self.min_cluster_size), left)
            seen = self._current_look(watch).showing(
                seen, labels, min_cluster_size=self.min_cluster_size, sample=found.sample
            )
            self._proposal = replace(self._proposal.with_view(place, seen), structure=found.structure)
        elif not seen.looked_at:
            seen = self._current_look(watch).clustered(
                seen,
                min_cluster_size=self.min_cluster_size,
                max_clusters=self.max_clusters,
                refine=self.refine,
                watch=watch,
            )
            seen = replace(seen, found=seen.clustering.renumbered(self._free_numbers()))
            apart = self._kept_apart(seen.clusters, seen.clustered)
            if not np.array_equal(apart, seen.clusters):
                seen = self._current_look(watch).showing(
                    seen, apart, min_cluster_size=self.min_cluster_size, sample=seen.clustered
                )
            self._proposal = self._proposal.with_view(place, seen)
        if place == 0 and seen.most_distinct and not self._proposal.features:
            rows = np.flatnonzero(seen.clusters == seen.most_distinct[0])
            self._proposal = replace(self._proposal, features=self._features(rows, seen))
        return seen

    def _free_numbers(self) -> Iterator[int]:
        """Numbers for the clusters of a view of its own: those after the clusters taken, but no piece's."""
        taken = {number for number, _ in self._pieces}
        first = 1 + max((cluster.number for move in self._moves for cluster in move.clusters), default=-1)
        return (number for number in count(first) if number not in taken)

    def _kept_apart(self, labels: NDArray[np.intp], left: Mask) -> NDArray[np.intp]:
        """Labels (n,) in which the rows left of every piece that was split off have its number."""
        labels = labels.copy()
        for number, rows in self._pieces:
            labels[rows[left[rows]]] = number
        return labels

    @property
    def _explained_last(self) -> Explained | None:
        """What was taken from the rows before the view that was looked at last."""
        seen = self._proposal.views[0] if self._proposal is not None else self.steps[-1] if self.steps else None
        return None if seen is None else seen.explained

    def _features(self, rows: NDArray[np.intp], view: View) -> tuple[Feature, ...]:
        """What sets rows apart from the other unexplored ones of a view."""
        step = self._proposal
        told = step is not None and step.features and view is step.views[0]
        if step is not None and told and np.array_equal(rows, np.flatnonzero(view.clusters == view.most_distinct[0])):
            return step.features
        inside = np.isin(np.arange(self._rows.n_rows), rows)
        return features_apart(
            self._rows,
            inside,
            view.clustered & ~inside,
            names=self.feature_names,
            set_aside=view.set_aside,
            components=view.components,
            mean=view.mean,
            explained=view.explained,
        )
