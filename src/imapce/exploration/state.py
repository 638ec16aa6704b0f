"""What a session knows: its data and settings, what was known at the start, what was accepted since; undo, save, load.

The state is the list of moves: what was accepted and what was regrouped. Everything else (known rows, labels, the next
proposal) follows from it, so undo is to drop the last entry and a saved session is small.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.given import Candidate
from imapce.clusters.partition import Partition
from imapce.clusters.structure import Structure
from imapce.common.checks import require_count, require_seed
from imapce.common.threads import threads_for
from imapce.common.words import counted
from imapce.errors import InvalidValueError
from imapce.estimators.imapce import IMAPCE
from imapce.estimators.model_file import plain_parameters
from imapce.exploration.choices import names_of_rows, size_of_clusters
from imapce.exploration.clustering import settings_of
from imapce.exploration.ending import end_of
from imapce.exploration.knowledge import knowledge_beside, knowledge_in_words, known_names
from imapce.exploration.own_file import OwnFile, require_new
from imapce.exploration.record import (
    AcceptedStep,
    DataPrint,
    Move,
    Record,
    Regrouping,
    TakenCluster,
    clusters_after,
    free_number,
    origins_after,
)
from imapce.exploration.shown import ShownExploration
from imapce.exploration.steps import Look, Step
from imapce.exploration.stopping import StructureTest
from imapce.exploration.verdict import require_clusters_as_asked, require_granularity, require_number_of_clusters
from imapce.priors.base import Prior
from imapce.priors.kinds import Subset, as_list
from imapce.priors.problem import require_shape
from imapce.rows.base import Rows
from imapce.rows.open import open_rows
from imapce.tables.encode import is_table
from imapce.tables.reader import Reader

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Share of the rows and least number of them in a cluster. A mixture of one view leaves fragments of 1 %; clusters that
# were found in all directions and have a valley around them do not come by chance.
VIEW_SIZE, JOINT_SIZE = (0.02, 10), (0.01, 5)


class Session(ShownExploration):
    """The state of an exploration and all that follows from it without looking; `Exploration` looks and moves."""

    def __init__(
        self,
        X: Any,
        *,
        prior: Any = None,
        estimator: IMAPCE | None = None,
        min_cluster_size: int | str = "auto",
        max_clusters: int = 5,
        random_state: int | None = None,
        row_ids: Any = None,
        method: str = "auto",
        clusterer: str = "auto",
        refine: bool | None = None,
        granularity: str = "auto",
        n_clusters: int | None = None,
        path: str | os.PathLike[str] | None = None,
    ):
        self._model, self.clusterer, self.refine = settings_of(method, estimator, clusterer, refine)
        self._model.check_parameters()
        self.method = method
        self._reader, matrix = Reader.learn(X, missing=self._model.missing)
        require_shape(matrix.shape, self._model.n_components)
        with threads_for(*matrix.shape), np.errstate(over="ignore", invalid="ignore"):
            self._rows: Rows = open_rows(matrix, engine=self._model.engine, n_components=self._model.n_components)
        n = self._rows.n_rows
        self._table = X if is_table(X) else None
        self.row_ids = names_of_rows(row_ids, X, n)
        self.max_clusters = require_count("max_clusters", max_clusters)
        self.granularity = require_granularity(granularity)
        self.n_clusters = require_number_of_clusters(n_clusters)
        # Whether clusters are shown and taken that are no more than chance.
        self.ignores_structure = False
        seed = require_seed(random_state)
        # Drawn once where none is given, so that the session can be saved and go on as it was.
        self.random_state = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        require_new(path)
        self._own_file = None if path is None else OwnFile(path)
        self._know(prior)
        smallest = JOINT_SIZE if self.is_joint else VIEW_SIZE
        self.min_cluster_size = size_of_clusters(min_cluster_size, n, share=smallest[0], least=smallest[1])
        self._require_clusters_as_asked()
        self._moves: list[Move] = []
        self._undone: list[Move] = []
        self._set_aside = np.zeros(n, dtype=bool)
        self._proposal: Step | None = None
        self._look: Look | None = None
        self._candidate: Candidate | None = None
        self._partition: Partition | None = None
        # The numbers of the clusters found at the start, from the first to the one after the last, and how many of the
        # moves that were undone had theirs before.
        self._numbers: tuple[int, int] | None = None
        self._numbered_before = 0
        self._flat = False
        self._by_chance: float | None = None
        self._structure_test = StructureTest(self.random_state)

    @property
    def path(self) -> str | os.PathLike[str] | None:
        """The file that is rewritten after every accept and undo; None where there is none."""
        return None if self._own_file is None else self._own_file.path

    # --- where the session stands -------------------------------------------------------------------------------------

    @property
    def moves(self) -> list[Move]:
        """What was accepted and regrouped so far, first to last: what `undo` takes back."""
        return list(self._moves)

    @property
    def steps(self) -> list[AcceptedStep]:
        """What was accepted so far, first to last."""
        return [move for move in self._moves if isinstance(move, AcceptedStep)]

    @property
    def regroupings(self) -> list[Regrouping]:
        """What was split, merged or consolidated so far, first to last."""
        return [move for move in self._moves if isinstance(move, Regrouping)]

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns as the views use them, a category as one name for each of its values."""
        return self._reader.names

    @property
    def has_looked(self) -> bool:
        """Whether there is a proposal with its clusters, which asking for it need not compute."""
        return self._proposal is not None and self._proposal.views[0].looked_at

    @property
    def is_joint(self) -> bool:
        """Whether clusters are found once and in all directions; beside a background they are found view by view."""
        background = any(prior.is_background for prior in self._other_priors)
        return self.clusterer == "joint" or (self.clusterer == "auto" and not background)

    @property
    def structure(self) -> Structure | None:
        """Whether the rows are more than one group, with the best split where it was looked at in this session; None
        where clusters are found view by view, or not yet.
        """
        if self._partition is not None:
            return self._partition.structure
        return next((step.structure for step in reversed(self.steps) if step.structure is not None), None)

    @property
    def labels_(self) -> NDArray[np.intp]:
        """(n,), the number of the accepted cluster of every row, -1 where it was not taken.

        A cluster has the number it was shown with before it was taken, so numbers need not follow each other.
        """
        labels = np.full(self._rows.n_rows, -1)
        for cluster in self.clusters_:
            labels[cluster.rows] = cluster.number
        return labels

    @property
    def clusters_(self) -> list[TakenCluster]:
        """The clusters as they were accepted, and regrouped since, in the order of their numbers; each has its own."""
        return clusters_after(self._moves)

    @property
    def origins_(self) -> list[int | None]:
        """For each of the clusters the number of the step that took it as it is; None where it was regrouped since."""
        return origins_after(self._moves)

    @property
    def known(self) -> Mask:
        """Rows known at the start or in a cluster."""
        return self._known_at_start | (self.labels_ >= 0)

    @property
    def known_in_words(self) -> list[str]:
        """What was known at the start, a sentence each; empty where nothing was."""
        return knowledge_in_words(self._other_priors, self._known_at_start, self._reader)

    def known_beside(self, columns: Sequence[str]) -> list[str]:
        """What was known at the start besides these columns and labels, a sentence each."""
        others = knowledge_beside(columns, self._other_priors, self._reader)
        return knowledge_in_words(others, self._known_at_start, self._reader)

    @property
    def known_names(self) -> list[str]:
        """What the columns and labels that are known are called; a category is one column, as it was given."""
        return known_names(self._other_priors, self._reader)

    @property
    def priors(self) -> list[Prior]:
        """What is known besides what was taken: columns, labels and a background, then known rows as one Subset."""
        rows = [Subset(self._known_at_start, weight=self._subset_weight)] if self._known_at_start.any() else []
        return [*self._other_priors, *rows]

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings of the estimator that looks for views, alpha and mu among them."""
        return plain_parameters(self._model)

    @property
    def done(self) -> bool:
        """Whether the exploration is over, as far as it is known: nothing is computed to tell."""
        return self.stop_reason is not None

    @property
    def stop_reason(self) -> str | None:
        """Why the exploration is over, in words; None while it is not, or while it takes a look to tell."""
        end = self._end
        return None if end is None else end[0]

    @property
    def _end(self) -> tuple[str, str] | None:
        """Why the exploration is over, in a sentence, and in a few words for each row left."""
        axes = self._model.n_components
        return end_of(self, n_components=axes, is_flat=self._flat, by_chance=self._by_chance)

    @property
    def set_aside(self) -> Mask:
        """(n,), the gross outliers of the rows, as far as it was looked."""
        return self._set_aside

    def shows(self, structure: Structure) -> bool:
        """Whether clusters with this verdict are shown and taken: by itself, or because they were asked for."""
        return structure.is_taken or self.ignores_structure or self.n_clusters is not None

    @property
    def proposal(self) -> Step | None:
        """The step that was proposed since the last move, as far as it was looked at; None where nobody looked."""
        return self._proposal

    @property
    def redoable(self) -> int:
        """How many moves `redo` can go forward."""
        return len(self._undone)

    # --- going back and forth ----------------------------------------------------------------------------------------

    def undo(self, steps: int = 1) -> Self:
        """Take back the last moves: steps that were accepted, clusters that were regrouped."""
        steps = require_count("steps", steps)
        if steps > len(self._moves):
            raise InvalidValueError(f"undo(steps) can go back {counted(len(self._moves), 'step')}; got {steps}.")
        kept = len(self._moves) - steps
        self._commit(self._moves[:kept], [*self._undone, *reversed(self._moves[kept:])])
        return self

    def redo(self, steps: int = 1) -> Self:
        """Do again what `undo` took back."""
        steps = require_count("steps", steps)
        if steps > len(self._undone):
            raise InvalidValueError(f"redo(steps) can go forward {counted(len(self._undone), 'step')}; got {steps}.")
        kept = len(self._undone) - steps
        if kept < self._numbered_before:
            # These clusters have their numbers, so those that are only shown get others.
            self._partition, self._numbers, self._proposal, self._numbered_before = None, None, None, 0
        self._commit([*self._moves, *reversed(self._undone[kept:])], self._undone[:kept])
        return self

    # --- as plain data ------------------------------------------------------------------------------------------------

    def record(self) -> Record:
        """The whole session as plain data; a background is in the encoding of X."""
        means, missing = self._print.mean, self._model.missing
        priors = (prior.encode(self._reader, means=means, missing=missing) for prior in self._other_priors)
        return Record(
            self._print,
            tuple(self._moves),
            self._known_at_start,
            priors=tuple(priors),
            subset_weight=self._subset_weight,
            parameters=plain_parameters(self._model),
            min_cluster_size=self.min_cluster_size,
            max_clusters=self.max_clusters,
            random_state=self.random_state,
            method=self.method,
            clusterer=self.clusterer,
            refine=self.refine,
            granularity=self.granularity,
            n_clusters=self.n_clusters,
            ignores_structure=self.ignores_structure,
            # Where none of them was given yet, the next look finds the same.
            numbers=self._numbers if self._numbers and free_number(self._moves) > self._numbers[0] else None,
        )

    @classmethod
    def of_record(cls, record: Record, X: Any, *, row_ids: Any = None) -> Self:
        """The session of a record on its data."""
        known = record.known_at_start
        # A prior refuses a weight that is no positive number, so an unusable one is found here, not at the next step.
        subset = Subset(known, weight=record.subset_weight)
        session = cls(
            X,
            estimator=IMAPCE(**record.estimator_parameters),
            min_cluster_size=record.min_cluster_size,
            max_clusters=record.max_clusters,
            random_state=record.random_state,
            method=record.method,
            clusterer=record.clusterer,
            refine=record.refine,
            row_ids=row_ids,
        )
        session.granularity = require_granularity(record.granularity)
        session.n_clusters = require_number_of_clusters(record.n_clusters)
        session.ignores_structure = record.ignores_structure
        record.data.require_same(session._print)
        session._other_priors = list(record.priors)
        session._subset_weight, session._known_at_start = float(subset.weight), known
        session._moves, session._numbers = list(record.steps), record.numbers
        return session

    def _know(self, prior: Any) -> None:
        """Take priors apart: rows of X join those accepted later, the others act on every view."""
        priors, n = as_list(prior), self._rows.n_rows
        for known in priors:
            known.require_same_index(self._table)
        # Labels are read here, so that those which cannot be used are refused before the first look.
        self._other_priors = [known.resolve(n) for known in priors if not known.names_rows]
        self._subset_weight = max((float(known.weight) for known in priors if known.names_rows), default=1.0)
        self._known_at_start = np.logical_or.reduce([np.zeros(n, dtype=bool), *(known.row_mask(n) for known in priors)])

    def _require_clusters_as_asked(self) -> None:
        require_clusters_as_asked(
            self.granularity,
            self.n_clusters,
            is_joint=self.is_joint,
            n_rows=int((~self._known_at_start).sum()),
            least=self.min_cluster_size,
        )

    @cached_property
    def _print(self) -> DataPrint:
        return DataPrint.of(self._rows, self.feature_names)

    @property
    def _pieces(self) -> list[tuple[int, NDArray[np.intp]]]:
        """The number and the rows of groups that proposals keep apart, in the order in which they were made."""
        return [piece for move in self.regroupings for piece in zip(move.numbers, move.pieces, strict=True)]

    @property
    def _free_number(self) -> int:
        """The lowest number above all that a cluster has or had."""
        return max(free_number(self._moves), 0 if self._numbers is None else self._numbers[1])

    def _commit(self, moves: Sequence[Move], undone: Sequence[Move]) -> None:
        """Make a new state current; where it cannot be saved, the old one stays."""
        before = dict(self.__dict__)
        known, n_steps, n_pieces = self.known, len(self.steps), len(self._pieces)
        self._moves, self._undone = list(moves), list(undone)
        if len(self.steps) != n_steps or not np.array_equal(self.known, known):
            self._proposal, self._look, self._flat, self._by_chance = None, None, False, None
        elif self._proposal is not None and len(self._pieces) != n_pieces:
            # The same rows are left, so the views are those found; what is to be kept apart in them is not.
            views = tuple(replace(view, found=None) for view in self._proposal.views)
            self._proposal = replace(self._proposal, views=views, features=())
        if self._own_file is None:
            return
        try:
            self._own_file.write(self.record())
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def __getstate__(self) -> dict[str, Any]:
        # Both hold products with the rows, which no pickle can hold; it is looked again where they are needed.
        return {**self.__dict__, "_look": None, "_candidate": None}
