"""Algorithm 1 of the paper as a session that can be steered: propose a view, accept clusters, undo, save, go on.

While more than s rows are unexplored: fit with the known rows as prior, cluster the view of the others, take the most
distinct cluster(s) into the known, look again. Row identity is by position; no labels are needed.

What the session is made of is a `Record` (`record.py`), what follows from it is `Findings` (`look.py`); here is what
people call. Every move makes a new record, which is in the session's file before it is the current one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from imapce.common.checks import is_whole, require_count
from imapce.common.progress import Progress, working
from imapce.common.words import counted
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.imapce import IMAPCE
from imapce.exploration import regroup
from imapce.exploration.accept import accept, take_steps
from imapce.exploration.data import Data, used_columns
from imapce.exploration.knowledge import known_from
from imapce.exploration.look import Findings, Start
from imapce.exploration.own_file import OwnFile, write_elsewhere
from imapce.exploration.record import (
    SETTINGS,
    AcceptedStep,
    Move,
    Moves,
    Record,
    Regrouping,
    checked_settings,
    require_granularity,
    require_number_of_clusters,
    require_rule,
)
from imapce.exploration.results import Results
from imapce.exploration.session_file import not_whole, read_session
from imapce.exploration.steps import Step, View
from imapce.exploration.stopping import require_significance
from imapce.priors.kinds import Subset, as_list
from imapce.priors.names import named_columns, with_names_read

Cancel = Callable[[], bool]


class Exploration(Results):
    """An exploration of `X` that starts from what is known and ends when nothing distinct is left.

    Parameters
    ----------
    X : array, sparse matrix or table, as for IMAPCE.
    prior : what is known at the start, as for IMAPCE: names of columns, Attributes, Labels, ...; the rows of a Subset
        join the rows that are accepted later. Columns are erased over all rows: later steps are drawn in the scale of
        the rows left, among which a trace of them can be read (R² of 0.006 at most on the synthetic set).
    estimator : the IMAPCE to fit at every step (its parameters are copied); default IMAPCE(outliers="keep"), all
        automatic: a row that is set aside could never be taken.
    min_cluster_size : the s of the paper; "auto" is 1 % of the rows, 5 to 30 of them, or view by view 2 %, at least 10.
    max_clusters : most clusters looked for in one view, where they are found view by view.
    random_state : seed of everything random.
    row_ids : names of the rows in results; default the table's index or 0, 1, ...
    method : "paper" is Algorithm 1 as published: views at IMAPCE(alpha=1.0, mu="paper", outliers="keep") unless an
        estimator is given, their clusters by a Dirichlet mixture of the view, and the one farthest from all others
        together is taken (two clusters: both). "auto", the default, finds clusters as `clusterer` says.
    clusterer : where clusters are looked for. "joint" finds them once, in all directions, given what is known at the
        start, and every step shows those that are left, with the numbers they have from the first look on; they do not
        depend on random_state, and where they are no more than chance there are none (`structure`), unless `run` is
        told to ignore that. "dpgmm" (a Dirichlet-process mixture) looks for them view by view, and numbers them when
        they are seen. "auto" is "joint", beside a background (Samples) "dpgmm".
    refine : for "dpgmm", whose clusters are shadows in a view: True carries them into all directions and takes the one
        farthest from its nearest neighbour; False takes the view's own, the farthest from all others together. By
        default True, with method="paper" False.
    granularity : "coarser" or "finer" asks for fewer or more clusters than "auto" finds in all directions.
    n_clusters : so many clusters in all directions, taken whatever `structure` says of them; None finds their number.
    missing : "error" or "mean", as for IMAPCE; None is that of the estimator, otherwise what is said here counts.
    transform : "log" or "rank" looks at strongly skewed columns on that scale, {"income": "log"} at these.
    path : a new file for the session, rewritten after every accept and undo. While the session lives no other process
        may write it; a copy (pickled, forked) keeps the path and writes there only what nobody changed since.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]
    >>> exploration = Exploration(X, random_state=0)
    >>> step = exploration.propose()
    >>> exploration.accept().clusters[0].size
    50
    >>> exploration.undo().steps
    []
    """

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
        missing: str | None = None,
        path: str | os.PathLike[str] | None = None,
        transform: Any = None,
    ):
        settings = checked_settings(
            method=method,
            estimator=estimator,
            clusterer=clusterer,
            refine=refine,
            max_clusters=max_clusters,
            random_state=random_state,
            granularity=granularity,
            n_clusters=n_clusters,
            missing=missing,
        )
        prior = as_list(with_names_read(prior, X))
        data = Data.read(X, settings["estimator"], row_ids, transform=transform, named=named_columns(prior))
        known = known_from(prior, data)
        record = Record(Moves(data.n_rows), **known, **settings, min_cluster_size=1).of_size(min_cluster_size)
        record.require_clusters_as_asked()
        self._begin(record, data, None if path is None else OwnFile.new(path))

    def _begin(self, record: Record, data: Data, own_file: OwnFile | None) -> None:
        nobody = np.zeros(data.n_rows, dtype=bool)
        self.found = Findings(record, data, nobody, start=Start(numbers=record.numbers))
        self._undone: tuple[Move, ...] = ()
        self._own_file = own_file

    @classmethod
    def from_anndata(
        cls, adata: Any, *, prior: Any = None, layer: str | None = None, use_rep: str | None = None, **settings: Any
    ) -> Self:
        """An exploration of the cells of an AnnData, with its names of rows and variables; sparse stays sparse.

        `prior` is as for `imapce.anndata.embed` (the name of a column of obs, another AnnData as background, ...),
        `layer` and `use_rep` choose the matrix, `settings` are those of Exploration; a representation has a scale of
        its own and is not standardised unless an estimator is given that does. `imapce.anndata.write_clusters` writes
        what was accepted to obs.

        >>> from anndata import AnnData
        >>> cells = AnnData(np.random.default_rng(0).normal(size=(60, 4)))
        >>> Exploration.from_anndata(cells, random_state=0).row_ids[:2].tolist()
        ['0', '1']
        """
        from imapce.anndata import features, known

        matrix = features(adata, layer=layer, use_rep=use_rep)
        settings.setdefault("row_ids", np.asarray(adata.obs_names, dtype=object))
        if use_rep is not None:
            settings.setdefault("estimator", IMAPCE(outliers="keep", standardize=False))
        return cls(matrix, prior=known(adata, prior, layer=layer, use_rep=use_rep), **settings)

    @property
    def path(self) -> str | os.PathLike[str] | None:
        """The file that is rewritten after every accept and undo; None where there is none."""
        return None if self._own_file is None else self._own_file.path

    @property
    def redoable(self) -> int:
        """How many moves `redo` can go forward."""
        return len(self._undone)

    # --- looking ------------------------------------------------------------------------------------------------------

    def propose(self, *, clusters: bool = True, progress: Progress = None, cancel: Cancel | None = None) -> Step:
        """The next view of the unexplored rows and its clusters; asking again gives the same step.

        With clusters=False the view comes without them, for those who want to see it first; `cluster` finds them.
        `progress(words, share)` is told what is being done, ten times a second at most, and True shows a bar;
        `cancel()` may return True to end it: then CancelledError is raised and the session is as it was.
        """
        with working(self.found.data.shape, progress, cancel) as watch:
            return self.found.propose(watch, clusters=clusters)

    def cluster(self, view: int = 0, *, progress: Progress = None, cancel: Cancel | None = None) -> View:
        """The clusters of one of the views of the current step; they stay with it."""
        with working(self.found.data.shape, progress, cancel) as watch:
            return self.found.cluster(view, watch)

    def test(self, *, progress: Progress = None, cancel: Cancel | None = None) -> float:
        """How often one Gaussian would look as split as the unexplored rows do; it stays with the step as `p_value`.

        Where so few rows are left that there is no view of them, nothing of them is split: 1.
        """
        with working(self.found.data.shape, progress, cancel) as watch:
            return self.found.test(watch)

    def look(
        self,
        *,
        n_components: int | None = None,
        alpha: float | str | None = None,
        mu: float | str | None = None,
        progress: Progress = None,
        cancel: Cancel | None = None,
    ) -> View:
        """A view of the unexplored rows with other settings than those of the session, which it leaves as it is.

        With alpha=0 and mu=0 it shows the directions of most variance, whatever is known.

        >>> exploration = Exploration(np.random.default_rng(0).normal(size=(60, 5)), random_state=0)
        >>> exploration.look(n_components=3).embedding.shape
        (60, 3)
        """
        given = {"n_components": n_components, "alpha": alpha, "mu": mu}
        parameters = {name: value for name, value in given.items() if value is not None}
        with working(self.found.data.shape, progress, cancel) as watch:
            return self.found.look_with(watch, **parameters)

    def overview(self, *, progress: Progress = None, cancel: Cancel | None = None) -> View:
        """All rows in one view, that in which all accepted clusters are seen best, with these clusters; it stays until
        the next move.

        It is one of the optima of the first look, at all rows that were not known at the start; of a session that was
        loaded that look is taken again. Before anything is accepted it is the view proposed, with its clusters.

        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]).run()
        >>> exploration.overview().embedding.shape, exploration.overview().numbers.tolist()
        ((150, 2), [0, 1, 2])
        """
        with working(self.found.data.shape, progress, cancel) as watch:
            return self.found.see_all(watch)

    # --- moves --------------------------------------------------------------------------------------------------------

    def accept(
        self,
        clusters: int | Sequence[int] | None = None,
        *,
        mask: Any = None,
        view: int = 0,
        name: str | None = None,
        number: int | None = None,
        progress: Progress = None,
        cancel: Cancel | None = None,
    ) -> AcceptedStep:
        """Take clusters of the current proposal into the known: the most distinct, named ones, or any rows by `mask`.

        `view` chooses among `propose().views`; `mask` may be a lasso: a boolean mask or positions of unexplored rows.
        `name` is what the cluster is called from then on. A cluster of the proposal keeps its number, also where its
        rows are those of `mask`; other rows get the next free one, or `number` where it is given and no cluster has it.
        """
        with working(self.found.data.shape, progress, cancel) as watch:
            step = accept(self.found, clusters, mask=mask, view=view, name=name, number=number, watch=watch)
            watch.tell("keeping what was taken")
            self._commit(self.found.record.moves.then(step))
        return step

    def run(
        self,
        max_steps: int | None = None,
        callback: Callable[[Step, AcceptedStep], None] | None = None,
        *,
        significance: float | None = None,
        structure: str | None = None,
        progress: Progress = None,
        cancel: Cancel | None = None,
    ) -> Self:
        """Propose and accept the most distinct cluster(s) until the end, or for `max_steps` steps.

        Clusters that are no more than chance are not taken: structure="heed", as every session begins. "ignore" takes
        the best split there is, from now on and in the session's file; None goes on as before.

        `callback(step, accepted)` is called after every step and may raise to stop; what was accepted stays, as it does
        when `cancel()` returns True. `progress(words, share)` is told the share of the rows that are explored. With a
        `significance` every step is tested for structure, and the run ends where `Step.p_value` is above it.
        """
        if significance is not None:
            require_significance(significance)
        if max_steps is not None and not (is_whole(max_steps) and max_steps >= 0):
            raise InvalidValueError(f"max_steps must be None or a whole number, not negative; got {max_steps!r}.")
        if callback is not None and not callable(callback):
            raise InvalidTypeError(f"callback must be None or a function; got {callback!r:.80}.")
        before = self.found.record
        if structure is not None:
            self.found = self.found.ignoring_structure(require_rule(structure))
        self.found.by_chance = None
        try:
            with working(self.found.data.shape, progress, cancel, of="of the rows explored") as watch:
                take_steps(self, max_steps, callback, significance, watch)
            now = self.found.record
            if len(now.moves) == len(before.moves) and now.ignores_structure != before.ignores_structure:
                self._commit(now.moves, self._undone)
        except BaseException:
            # Without a step there is nothing in the file that was made by the other rule.
            if len(self.found.record.moves) == len(before.moves):
                self.found = self.found.ignoring_structure(before.ignores_structure)
            raise
        return self

    def split(
        self,
        cluster: int,
        *,
        proposed: bool = False,
        view: int = 0,
        structure: str = "heed",
        progress: Progress = None,
        cancel: Cancel | None = None,
    ) -> Regrouping:
        """Split one accepted cluster, by its number in `labels_`, in the pieces it falls into best.

        The largest piece keeps the number, the others get the next free ones. With `proposed` the number is that of a
        cluster in a view of the current proposal, and proposals show its pieces from then on. Pieces that are no more
        than chance are refused; structure="ignore" takes the best split there is. `words` of the regrouping says which.

        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3])
        >>> _ = exploration.accept(mask=np.arange(150) % 3 != 0)
        >>> [(piece.number, piece.size) for piece in exploration.split(0).clusters]
        [(0, 50), (1, 50)]
        """
        ignore = require_rule(structure)
        with working(self.found.data.shape, progress, cancel) as watch:
            move = regroup.split(self.found, cluster, view=view if proposed else None, ignore=ignore, watch=watch)
        self._commit(self.found.record.moves.then(move))
        return move

    def merge(self, clusters: Sequence[int]) -> Regrouping:
        """Make one of two or more accepted clusters, by their numbers in `labels_`; it has the lowest of them.

        Where one of them has a name, or all the same, it keeps it.

        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]).run()
        >>> exploration.merge([0, 2]).clusters[0].size, len(exploration.clusters_)
        (100, 2)
        """
        move = regroup.merge(self.found, clusters)
        self._commit(self.found.record.moves.then(move))
        return move

    def consolidate(self, *, progress: Progress = None, cancel: Cancel | None = None) -> Regrouping:
        """Compare all accepted clusters in all directions: those that overlap become one, and rows left over go to the
        cluster they clearly belong to. Where there is nothing to tell, nothing is recorded.

        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(160, 4)) + 9 * np.eye(2, 4)[np.arange(160) % 2])
        >>> for part in range(4):
        ...     _ = exploration.accept(mask=np.arange(160) % 4 == part)
        >>> exploration.consolidate().words
        'Consolidated 4 clusters into 2: 0 with 2, 1 with 3.'
        """
        with working(self.found.data.shape, progress, cancel) as watch:
            move, says_something = regroup.consolidate(self.found, watch)
        if says_something:
            self._commit(self.found.record.moves.then(move))
        return move

    def undo(self, steps: int = 1) -> Self:
        """Take back the last moves: steps that were accepted, clusters that were regrouped."""
        steps, moves = require_count("steps", steps), self.found.record.moves
        if steps > len(moves):
            raise InvalidValueError(f"undo(steps) can go back {counted(len(moves), 'step')}; got {steps}.")
        kept = len(moves) - steps
        self._commit(moves.first(kept), (*self._undone, *reversed(moves.made[kept:])))
        return self

    def redo(self, steps: int = 1) -> Self:
        """Do again what `undo` took back."""
        steps = require_count("steps", steps)
        if steps > len(self._undone):
            raise InvalidValueError(f"redo(steps) can go forward {counted(len(self._undone), 'step')}; got {steps}.")
        kept, found = len(self._undone) - steps, self.found
        if kept < found.start.redoable:
            # These clusters have their numbers, so those that are only shown get others.
            found = found.with_other_numbers()
        moves = found.record.moves.then(*reversed(self._undone[kept:]))
        self._commit(moves, self._undone[:kept], found)
        return self

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

        >>> from imapce import Attributes
        >>> exploration = Exploration(np.random.default_rng(0).normal(size=(60, 5)), random_state=0)
        >>> exploration.go_on_with(prior=Attributes([0])).known_in_words
        ['The column x0 was known: its effect is explained away, given the clusters.']
        """
        found, changes = self.found, dict[str, Any]()
        if weights := {name: value for name, value in {"alpha": alpha, "mu": mu}.items() if value is not None}:
            changes["estimator"] = clone(found.record.estimator).set_params(**weights)
            changes["estimator"].check_parameters()
        if prior is not None:
            changes |= known_from(with_names_read(prior, found.data.table), found.data)
            for known in changes["priors"]:
                known.column_mask(found.data.reader)
        if granularity is not None:
            changes["granularity"] = require_granularity(granularity)
        if n_clusters is not None:
            changes["n_clusters"] = None if n_clusters == "auto" else require_number_of_clusters(n_clusters)
        if changes or structure is None:
            found = found.anew(replace(found.record, **changes))
            found.record.require_clusters_as_asked()
        if structure is not None:
            found = found.ignoring_structure(require_rule(structure))
        self._commit(found.record.moves, self._undone, found)
        return self

    def _commit(self, moves: Moves, undone: tuple[Move, ...] = (), found: Findings | None = None) -> None:
        """Make a new record current once it is in the file; where it cannot be written, the old one stays."""
        found = self.found if found is None else found
        after = found.after(replace(found.record, moves=moves), len(undone))
        if self._own_file is not None:
            self._own_file.write(after.plain_record())
        self.found, self._undone = after, undone

    def app(self, *, table: Any = None, color: str | None = None) -> Any:
        """The page of `imapce app` as a widget of a notebook, over this very session; needs the extra `app`.

        `table` holds further columns of the same rows to colour by and to show, `color` names the first one.
        """
        from imapce.app.widget import Explorer

        return Explorer(self, table=self.found.data.table if table is None else table, color=color)

    # --- on disk ------------------------------------------------------------------------------------------------------

    def record(self) -> Record:
        """The whole session as plain data; a background is in the encoding of X."""
        return self.found.plain_record()

    @classmethod
    def of_record(cls, record: Record, X: Any, *, row_ids: Any = None) -> Self:
        """The session of a record on its data."""
        settings = checked_settings(**{name: getattr(record, name) for name in SETTINGS})
        # A prior refuses a weight that is no positive number, so an unusable one is found here, not at the next step.
        weight = float(Subset(record.known_at_start, weight=record.subset_weight).weight)
        data = Data.read(X, settings["estimator"], row_ids, transform=record.transform, named=used_columns(record.data))
        record = replace(record, **settings, subset_weight=weight).of_size(record.min_cluster_size)
        if record.data is not None:
            record.data.require_same(data.print)
        session = cls.__new__(cls)
        session._begin(replace(record, data=None), data, None)
        return session

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the session (JSON and .npy in one zip), whole or not at all; not where another process writes."""
        if self._own_file is not None and self._own_file.is_at(path):
            self._own_file.write(self.record())
        else:
            write_elsewhere(path, self.record())

    def keep_in(self, path: str | os.PathLike[str] | None) -> None:
        """From now on keep the session in this new file, rewritten after every move; None keeps it in none.

        >>> exploration = Exploration(np.random.default_rng(0).normal(size=(50, 4)), random_state=0)
        >>> exploration.keep_in("session.imapce")
        >>> exploration.path
        'session.imapce'
        """
        self._own_file = None if path is None else OwnFile.new(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], X: Any, *, autosave: bool = True, row_ids: Any = None) -> Self:
        """A saved session on the same data; other data is refused by the name of what differs.

        With `autosave` the file goes on being rewritten after every accept and undo, and while the session lives no
        other process may do the same; a session of this process that finds it changed is refused. Names of rows come
        with the data, not from the file: from `row_ids` or the table's index.
        """
        # Claimed before it is read: what is read is then what the next write replaces.
        own_file = OwnFile(path) if autosave and path is not None else None
        record = read_session(path)
        try:
            session = cls.of_record(record, X, row_ids=row_ids)
        except InvalidValueError:
            raise
        except (TypeError, ValueError) as error:
            # The same kinds of error come from an X that cannot be read, and that is not the file's fault.
            Data.read(X, IMAPCE(missing="mean"))
            raise not_whole(path, error) from error
        session._own_file = own_file
        return session
