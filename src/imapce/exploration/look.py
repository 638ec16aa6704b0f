"""What is found of a record: the next view of the rows left, and their clusters, in all directions or view by view.

All of it follows from the record and its data, and the same record always shows the same step; it is kept while the
record is the current one, so that asking again computes nothing. A move makes a new record, with nothing found but what
holds for every record of the session: the clusters of the rows that were unexplored at the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from imapce.clusters.clustering import Partition, SampleClusters, assign_rows, find_clusters
from imapce.clusters.significance import Structure
from imapce.common.arrays import Codes, Mask
from imapce.common.checks import is_whole
from imapce.common.words import counted
from imapce.common.work import Watch, quiet_about_convergence
from imapce.errors import Argument, InvalidValueError, Sentence
from imapce.estimators.imapce import IMAPCE
from imapce.exploration.apart import features_apart
from imapce.exploration.data import Data
from imapce.exploration.knowledge import axes_in_words, known_in_a_line, known_places
from imapce.exploration.overview import overview_of
from imapce.exploration.record import Feature, Moves, Record
from imapce.exploration.steps import Look, Step, View
from imapce.exploration.stopping import StructureTest
from imapce.exploration.verdict import TAKES_IT, best_split_in_words, verdict_in_words
from imapce.priors.base import Prior, labels_among
from imapce.priors.effect import Explained
from imapce.priors.kinds import Subset
from imapce.priors.problem import FlatRowsError, Problem
from imapce.rows.base import Rows
from imapce.search.race import Optimum

# Why rows are in no cluster.
TOO_FEW, ONE_GROUP = "too few for a cluster", "one group"


@dataclass(eq=False)
class Start:
    """What is found once, of the rows that were unexplored at the start, and holds whatever is accepted.

    `numbers` are those of its clusters, from the first to the one after the last; `redoable` is how many moves could be
    redone when they were given: these have numbers from before. `first` is the step of the first look, without its
    clusters.
    """

    candidate: SampleClusters | None = None
    partition: Partition | None = None
    numbers: tuple[int, int] | None = None
    redoable: int = 0
    first: Step | None = None

    def __getstate__(self) -> dict[str, Any]:
        # It holds products with the rows, which no pickle can hold; it is looked again where they are needed.
        return {**self.__dict__, "candidate": None}


@dataclass(eq=False)
class Findings:
    """What was found of a record: its proposal as far as it was looked at, and what that was made with.

    `redoable` is how many moves can be redone after the record; `set_aside` (n,) are the gross outliers, as far as it
    was looked; `by_chance` is the p-value at which a run gave up; `overview` is the view of all clusters, once it was
    asked for.
    """

    record: Record
    data: Data
    set_aside: Mask
    redoable: int = 0
    start: Start = field(default_factory=Start)
    step: Step | None = None
    look: Look | None = None
    is_flat: bool = False
    by_chance: float | None = None
    overview: View | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "look": None}

    # --- from one record to the next ----------------------------------------------------------------------------------

    def copied(self) -> Findings:
        """The same for another session: what either finds from now on is its own."""
        return replace(self, start=replace(self.start))

    def at_start(self) -> Findings:
        """Nothing found yet of the record before its first move."""
        return Findings(replace(self.record, moves=Moves(self.data.n_rows)), self.data, self.set_aside)

    def anew(self, record: Record) -> Findings:
        """Nothing found yet of a record with other settings."""
        return Findings(record, self.data, self.set_aside, self.redoable)

    def after(self, record: Record, redoable: int) -> Findings:
        """What holds of the record after a move: of other rows left nothing but what was found at the start."""
        before, now = self.record, record
        start = replace(self.start, redoable=min(self.start.redoable, redoable))
        if len(before.moves.steps) != len(now.moves.steps) or not np.array_equal(before.known, now.known):
            return Findings(record, self.data, self.set_aside, redoable, start)
        after = replace(self, record=record, redoable=redoable, start=start, overview=None)
        return after if len(before.moves.pieces) == len(now.moves.pieces) else after.without_clusters()

    def with_other_numbers(self) -> Findings:
        """The same before clusters that are only shown have numbers."""
        return replace(self, start=Start(self.start.candidate, first=self.start.first), step=None, overview=None)

    def without_clusters(self, **changes: Any) -> Findings:
        """The same with views whose clusters are to be shown anew."""
        if self.step is None:
            return self
        views = tuple(replace(view, found=None) for view in self.step.views)
        return replace(self, step=replace(self.step, views=views, features=(), **changes))

    def ignoring_structure(self, ignore: bool) -> Findings:
        """The same of a record that shows clusters also where they are no more than chance, or no longer."""
        if ignore == self.record.ignores_structure:
            return self
        record = replace(self.record, ignores_structure=ignore)
        after = replace(self, record=record, by_chance=None, start=replace(self.start)).without_clusters(structure=None)
        if after.start.partition is not None:
            after.start.partition = after._with_numbers(after.start.partition)
        return after

    def plain_record(self) -> Record:
        """The record as it leaves memory: with the print of its data, and backgrounds in the encoding of X."""
        means, missing = self.data.print.mean, self.record.estimator.missing
        priors = tuple(prior.encode(self.data.reader, means=means, missing=missing) for prior in self.record.priors)
        # Where none of the numbers was given yet, the next look finds the same.
        numbers = self.start.numbers
        given = numbers is not None and self.record.moves.next_number > numbers[0]
        return replace(self.record, priors=priors, numbers=numbers if given else None, data=self.data.print)

    # --- the proposal -------------------------------------------------------------------------------------------------

    def propose(self, watch: Watch, *, clusters: bool) -> Step:
        """The next view of the unexplored rows, with its clusters where they are asked for."""
        if self.step is None:
            try:
                self.look, step = self._look_for_view(clone(self.record.estimator), watch)
            except FlatRowsError:
                self.is_flat = True
                raise
            self.set_aside = self.look.problem.set_aside
            self.step = step.with_view(0, self.look.place(step.views[0]))
            if not len(self.record.moves):
                self.start.first = step
        if clusters:
            self.cluster(0, watch)
        return self.step

    def look_with(self, watch: Watch, **parameters: Any) -> View:
        """A view of the same rows by an estimator with other parameters; nothing of it is kept."""
        model = clone(self.record.estimator).set_params(**parameters)
        model.check_parameters()
        look, step = self._look_for_view(model, watch)
        return look.place(step.views[0])

    def view(self, place: Any, watch: Watch) -> View:
        """A view of the proposal, as far as it was looked at."""
        step = self.propose(watch, clusters=False)
        if not is_whole(place) or not 0 <= place < len(step.views):
            raise InvalidValueError(f"view must be from 0 to {len(step.views) - 1} in this step; got {place!r}.")
        return step.views[place]

    def cluster(self, place: Any, watch: Watch) -> View:
        """A view of the proposal with its clusters, which it keeps."""
        seen, step = self.view(place, watch), self.propose(watch, clusters=False)
        if not seen.looked_at:
            seen = (
                self._with_clusters_left(seen, watch) if self.record.is_joint else self._with_own_clusters(seen, watch)
            )
            structure = self.structure if self.record.is_joint else None
            self.step = step = replace(step.with_view(place, seen), structure=structure)
        if place == 0 and seen.most_distinct and not step.features:
            rows = np.flatnonzero(seen.clusters == seen.most_distinct[0])
            self.step = replace(step, features=self.features_of(rows))
        return seen

    def see_all(self, watch: Watch) -> View:
        """All rows in the view of the first look that shows the clusters taken best; the proposal's before one is."""
        if not self.record.moves.clusters:
            return self.cluster(0, watch)
        if self.overview is None:
            at_start = self.record.known_at_start
            first = self._first_look(watch)
            watch.tell("choosing the view of all clusters")
            problem = self._pose(at_start)
            if problem.with_known is not None:
                effect = self.candidate(watch).effect
                assert effect is not None
                problem = problem.given(effect)
            self.overview = overview_of(first.views, self.data.rows, problem, ~at_start, self.record.moves.labels)
        return self.overview

    def _first_look(self, watch: Watch) -> Step:
        """The step of the first look, at all rows that were not known at the start."""
        if self.start.first is None:
            self.start.first = self.at_start().propose(watch, clusters=False)
        return self.start.first

    def test(self, watch: Watch) -> float:
        """The p-value of the unexplored rows against one Gaussian, which the proposal keeps; 1 of too few rows."""
        if self.record.n_left <= self.record.estimator.n_components:
            return 1.0
        step = self.propose(watch, clusters=False)
        if step.p_value is not None:
            return step.p_value
        look = self._current_look(watch)
        p_value = StructureTest(self.record.random_state).of_step(look.problem.Z, look.axes, watch)
        self.step = replace(step, p_value=p_value)
        return p_value

    def features_of(self, rows: Codes) -> tuple[Feature, ...]:
        """What sets rows apart from all others; known columns do not."""
        inside = np.zeros(self.record.moves.n_rows, dtype=bool)
        inside[rows] = True
        left_out = known_places(self.record.priors, self.data.reader)
        return features_apart(self.data, inside, set_aside=self.set_aside, left_out=left_out, explained=self.explained)

    def fact_of(self, number: int, name: Literal["stability", "groups"]) -> Any:
        """Return the stability or the group of a cluster of the proposal; None for pieces, and view by view."""
        pieces = {piece for piece, _ in self.record.moves.pieces}
        if self.start.partition is None or not self.record.is_joint or number in pieces:
            return None
        return getattr(self.start.partition, name).get(number)

    @property
    def explained(self) -> Explained | None:
        """What was taken from the rows before the view that was looked at last."""
        seen: Any = self.step.views[0] if self.step is not None else next(reversed(self.record.moves.steps), None)
        return None if seen is None else seen.explained

    @property
    def structure(self) -> Structure | None:
        """Whether the rows are more than one group; None where clusters are found view by view, or not yet."""
        if self.start.partition is not None:
            return self.start.partition.structure
        steps = reversed(self.record.moves.steps)
        return next((step.structure for step in steps if step.structure is not None), None)

    @property
    def next_number(self) -> int:
        """The lowest number above all that a cluster has or had."""
        return max(self.record.moves.next_number, 0 if self.start.numbers is None else self.start.numbers[1])

    @property
    def end(self) -> tuple[str, str] | None:
        """Why the exploration is over, in a sentence, and in a few words for each row left; None while it is not."""
        record, step, left = self.record, self.step, self.record.n_left
        axes, least = record.estimator.n_components, record.min_cluster_size
        if left == 0:
            return "Every row is taken.", ""

        def rows(words: str = "") -> str:
            aside = int((self.set_aside & ~record.known).sum())
            outliers = f" ({aside:,} of them gross outliers, set aside)" if aside else ""
            return f"{counted(left, 'row')}{outliers}{words}"

        are_left = " is left" if left == 1 else " are left"
        if left < least or (left == least and not record.is_joint):
            size = Argument("min_cluster_size", least)
            return Sentence(rows(f"{are_left}, no more than "), size, "; they are outliers."), TOO_FEW
        if left <= axes:
            return rows(f"{are_left}, too few for a view of {axes} axes; they are outliers."), TOO_FEW
        if self.is_flat:
            return f"The {rows()} left do not vary in {axes} directions; they stay as outliers.", "do not vary"
        if step is not None and step.structure is not None and not record.shows(step.structure):
            best = best_split_in_words(step.structure) if not record.moves.steps else ""
            shares = [view.optimum.seen for view in step.views]
            if best and len(shares) > 1 and np.isfinite(shares).any():
                best += f", shown best by view {1 + int(np.nanargmax(shares))} of {len(shares)}"
            way_out = Sentence(f" {best}", TAKES_IT, ".") if best else ""
            return Sentence(f"{verdict_in_words(step.structure)}; the {rows()} are one group.", way_out), ONE_GROUP
        if step is not None and step.views[0].looked_at and not step.most_distinct:
            stay = "stays" if left == 1 else "stay"
            none = f"No cluster of at least {counted(least, 'row')} is in the view"
            return f"{none}; {rows()} {stay} as outliers.", TOO_FEW
        if self.by_chance is not None:
            chance = f"No structure is left that one Gaussian would not show (p = {self.by_chance:.2g})"
            return f"{chance}; the {rows()} left are not split further.", ONE_GROUP
        return None

    # --- views --------------------------------------------------------------------------------------------------------

    def _look_for_view(self, model: IMAPCE, watch: Watch) -> tuple[Look, Step]:
        """Fit the next view of the unexplored rows: what it was found with, and its step, still without clusters.

        Rows left that vary in too few directions for a view of their own are shown in that of the step before.
        """
        record, steps = self.record, self.record.moves.steps
        left = record.n_left
        if left <= model.n_components:
            raise InvalidValueError(f"nothing can be proposed: {left} rows are unexplored. Use undo() to go back.")
        seed = int(np.random.SeedSequence([record.random_state, len(steps)]).generate_state(1)[0] % 2**31)
        try:
            return self._fit_view(model.set_params(random_state=seed), seed, watch)
        except FlatRowsError:
            # Clusters that were found in all directions are there although no view of them alone is.
            if not (record.is_joint and steps) or model.n_components != record.estimator.n_components:
                raise
            return self._look_back(seed)

    def _fit_view(self, model: IMAPCE, seed: int, watch: Watch) -> tuple[Look, Step]:
        """Fit the model to the rows given what is known."""
        record, rows = self.record, self.data.rows
        steps, known = record.moves.steps, record.known
        number = len(steps) + 1

        # After a move the clusters of the first look go on to be those of the rows left, and so does the effect of the
        # known; beside a background of which nothing was explained away each look finds its own.
        asked = record.is_joint or any(prior.has_effect for prior in record.priors)
        start = self.candidate(watch) if len(record.moves) and model.explains and asked else None
        with quiet_about_convergence():
            watch.tell(f"step {number}: looking for a view")
            problem = model.pose(rows, self._priors(known), self.data.reader)
            if start is None:
                candidate = model.look_for_clusters(
                    problem, ~known, watch, granularity=record.granularity, n_clusters=record.n_clusters
                )
            else:
                candidate = start.assign_sample(problem, ~known, self._with_labels(start))
            before = steps[-1].components if steps else None
            model.solve(
                problem,
                candidate=candidate,
                before=before,
                watch=None if model.verbose else watch.within(f"step {number}"),
            )
            if problem.with_known is not None:
                assert candidate is not None
                assert candidate.effect is not None
                problem = problem.given(candidate.effect)
        explained = _explained_by(problem, record.priors, rows.n_rows)
        views = tuple(
            View(
                optimum,
                problem.Z.mean,
                problem.Z.scale,
                unexplored=~known,
                set_aside=problem.set_aside,
                explained=explained,
                **self._tell_of(optimum, explained),
            )
            for optimum in model.optima_
        )
        step = Step(number, views, model.stop_reason_, read_back=model.read_back_)
        return Look(rows, problem, model.optima_[0], seed, candidate), step

    def _look_back(self, seed: int) -> tuple[Look, Step]:
        """Rows left that vary in too few directions for a view of their own, in that of the step before."""
        known, steps = self.record.known, self.record.moves.steps
        last, problem = steps[-1], self._pose(known)
        seen = Optimum(last.components, last.objective, last.kurtosis)
        told = self._tell_of(seen, last.explained)
        rows: dict[str, Any] = {"unexplored": ~known, "set_aside": problem.set_aside}
        view = View(seen, last.mean, last.scale, **rows, explained=last.explained, **told)
        axes = self.record.estimator.n_components
        words = f"The rows left do not vary in {axes} directions; this is the view of the step before."
        return Look(self.data.rows, problem, seen, seed), Step(len(steps) + 1, (view,), words)

    def _tell_of(self, optimum: Optimum, explained: Explained | None) -> dict[str, Any]:
        """What the picture of a view says of its axes and of what was known."""
        record, reader = self.record, self.data.reader
        return {
            "axes": tuple(axes_in_words(optimum.components, explained, record.priors, reader)),
            "known": known_in_a_line(record.priors, record.known_at_start, reader, explains=record.estimator.explains),
        }

    def _current_look(self, watch: Watch) -> Look:
        if self.look is None:
            self.look = self._look_for_view(clone(self.record.estimator), watch)[0]
        return self.look

    def _priors(self, known: Mask) -> list[Prior]:
        subset = [Subset(known, weight=self.record.subset_weight)] if known.any() else []
        return [*self.record.priors, *subset]

    def _pose(self, known: Mask, *, for_clusters: bool = False) -> Problem:
        """The problem of equation 2 whose rows to explore are those not in `known` (n,).

        `for_clusters` explains the known away (α = "auto") also where views weigh it by a number; α = 0 ignores it.
        """
        model = clone(self.record.estimator)
        if for_clusters and model.alpha != 0:
            model.set_params(alpha="auto")
        return model.pose(self.data.rows, self._priors(known), self.data.reader)

    # --- clusters -----------------------------------------------------------------------------------------------------

    def candidate(self, watch: Watch) -> SampleClusters:
        """The best clusters of the rows that were unexplored at the start, and the effect of the known given them."""
        start, record = self.start, self.record
        if start.candidate is None and not len(record.moves) and record.estimator.explains:
            start.candidate = self._current_look(watch).candidate
        if start.candidate is None:
            start.candidate = find_clusters(
                self._pose(record.known_at_start, for_clusters=True),
                ~record.known_at_start,
                granularity=record.granularity,
                n_clusters=record.n_clusters,
                progress=watch.tell,
            )
        return start.candidate

    def given(self, known: Mask, watch: Watch) -> tuple[Problem, Rows]:
        """The problem of the rows that are not in `known` (n,), less the effect of what was known at the start, and all
        rows with the labels beside them that it is read from.
        """
        problem = self._pose(known, for_clusters=True)
        if problem.with_known is None:
            return problem, self.data.rows
        candidate = self.candidate(watch)
        assert candidate.effect is not None
        return problem.given(candidate.effect), self._with_labels(candidate)

    def _with_labels(self, candidate: SampleClusters) -> Rows:
        """All rows, with the labels beside them that clusters are found given."""
        if candidate.effect is None:
            return self.data.rows
        return candidate.effect.joined(self.data.rows, labels_among(self.record.priors, self.record.moves.n_rows))

    def _partition(self, watch: Watch) -> Partition:
        """The clusters of the rows that were unexplored at the start."""
        if self.start.partition is None:
            candidate = self.candidate(watch)
            found = assign_rows(
                candidate,
                ~self.record.known_at_start,
                self._with_labels(candidate),
                min_cluster_size=self.record.min_cluster_size,
                progress=watch.tell,
            )
            column = candidate.determining_column(self.data.reader.columns or self.data.reader.names)
            if found.structure.is_taken and column:
                found = replace(found, structure=replace(found.structure, reason=f"{found.structure.reason}; {column}"))
            self.start.partition = self._with_numbers(found)
        return self.start.partition

    def _with_numbers(self, found: Partition) -> Partition:
        """The clusters with the numbers they have through the session; those that are not shown need none."""
        moves, shown = self.record.moves, found.n_clusters if self.record.shows(found.structure) else 0
        first, end = self.start.numbers or (0, -1)
        # Clusters of a session that an earlier version saved may be others now, and their numbers are taken.
        labels, taken = found.numbered(first).labels, moves.labels
        both = (taken >= first) & (taken < end) & (labels >= 0)
        if end - first != shown or (both.any() and np.mean(labels[both] == taken[both]) < 0.5):
            first = moves.next_number
            self.start.numbers, self.start.redoable = (first, first + shown), self.redoable
        return found.numbered(first)

    def _with_clusters_left(self, seen: View, watch: Watch) -> View:
        """A view with what is left of the clusters that were found at the start."""
        found, least = self._partition(watch), self.record.min_cluster_size
        left = seen.clustered if self.record.shows(found.structure) else np.zeros(self.record.moves.n_rows, dtype=bool)
        beside = self._with_labels(self.candidate(watch))
        labels = self._with_pieces(found.labels_of(left, beside, min_cluster_size=least), left)
        return self._current_look(watch).show(seen, labels, min_cluster_size=least, sample=found.sample)

    def _with_own_clusters(self, seen: View, watch: Watch) -> View:
        """A view with clusters of its own, whose numbers are those after the clusters taken, but no piece's."""
        look, moves = self._current_look(watch), self.record.moves
        seen = look.cluster(seen, self.record, watch)
        pieces = {number for number, _ in moves.pieces}
        first = 1 + max((cluster.number for move in moves for cluster in move.clusters), default=-1)
        free = (number for number in count(first) if number not in pieces)
        seen = replace(seen, found=seen.clustering.renumbered(free))
        apart = self._with_pieces(seen.clusters, seen.clustered)
        if np.array_equal(apart, seen.clusters):
            return seen
        return look.show(seen, apart, min_cluster_size=self.record.min_cluster_size, sample=seen.clustered)

    def _with_pieces(self, labels: Codes, left: Mask) -> Codes:
        """Labels (n,) in which the rows left of every piece that was split off have its number."""
        labels = labels.copy()
        for number, rows in self.record.moves.pieces:
            labels[rows[left[rows]]] = number
        return labels


def _explained_by(problem: Problem, priors: Sequence[Prior], n_rows: int) -> Explained | None:
    """What was taken from all rows of a session for the views of a problem; None where nothing was."""
    with_known = problem.with_known
    effect = None if with_known is None or problem.effect is None else with_known.shown(problem.effect)
    if with_known is None or effect is None:
        return None
    labels = tuple(labels_among((prior for prior in priors if not prior.erase), n_rows))
    centre = with_known.Z.mean[with_known.places[~with_known.erased & (with_known.places >= with_known.n_features)]]
    return Explained(effect, labels, centre)
