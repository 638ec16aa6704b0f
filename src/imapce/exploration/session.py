"""Algorithm 1 of the paper as a session that can be steered: propose a view, accept clusters, undo, save, go on.

While more than s rows are unexplored: fit with the known rows as prior, cluster the view of the others, take the most
distinct cluster(s) into the known, look again. Row identity is by position; no labels are needed. What the session
knows is in `state`; here it looks and moves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from imapce.common.checks import is_whole
from imapce.common.watch import Tell, Watch
from imapce.common.words import counted
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.imapce import IMAPCE
from imapce.exploration.choices import name_of_cluster, named_clusters, named_rows
from imapce.exploration.record import AcceptedStep, Feature, TakenCluster
from imapce.exploration.regrouped import Regrouped
from imapce.exploration.steps import Step, View, features_apart
from imapce.exploration.stopping import require_significance
from imapce.exploration.verdict import require_rule
from imapce.priors.problem import FlatRowsError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Cancel = Callable[[], bool]


class Exploration(Regrouped):
    """An exploration of `X` that starts from what is known and ends when nothing distinct is left.

    Parameters
    ----------
    X : array, sparse matrix or table, as for IMAPCE.
    prior : what is known at the start; the rows of a Subset join the rows that are accepted later. Columns are erased
        over all rows: later steps are drawn in the scale of the rows left, among which a trace of them can be read
        (R² of 0.006 at most on the synthetic set).
    estimator : the IMAPCE to fit at every step (its parameters are copied); default
        IMAPCE(outliers="keep"), all automatic: a row that is set aside could never be taken.
    min_cluster_size : the s of the paper; "auto" is 1 % of the rows, at least 5, and 2 %, at least 10, where clusters
        are found view by view.
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

    # --- looking ------------------------------------------------------------------------------------------------------

    def cluster(self, view: int = 0, *, progress: Tell | None = None, cancel: Cancel | None = None) -> View:
        """The clusters of one of the views of the current step; they stay with it."""
        watch = Watch(progress, cancel)
        self._view(self.propose(clusters=False, progress=progress, cancel=cancel), view)
        return self._clustered(view, watch)

    def test(self, *, progress: Tell | None = None, cancel: Cancel | None = None) -> float:
        """How often one Gaussian would look as split as the unexplored rows do; it stays with the step as `p_value`."""
        step = self.propose(clusters=False, progress=progress, cancel=cancel)
        if step.p_value is None:
            look = self._current_look(Watch(progress, cancel))
            p_value = self._structure_test.of_step(look.problem.Z, look.axes, Watch(progress, cancel))
            self._proposal = step = replace(step, p_value=p_value)
        assert step.p_value is not None
        return step.p_value

    def describe(self, rows: Any, *, against: Any = None) -> tuple[Feature, ...]:
        """The features that set rows apart, strongest first: the difference of their means to those of the others.

        Both are masks or positions; `against` is all other rows unless it is given. Loadings are those of the current
        view, zero where there is none; what it, or the last step, explained away is left out.

        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(50, 3)) + 9 * (np.arange(50) < 20)[:, None] * np.eye(1, 3))
        >>> exploration.describe(np.arange(20))[0].name
        'x0'
        """
        inside = named_rows(rows, self._table, self._rows.n_rows, argument="rows")
        outside = ~inside
        if against is not None:
            outside = named_rows(against, self._table, self._rows.n_rows, argument="against")
        seen = None if self._proposal is None else self._proposal.views[0]
        return features_apart(
            self._rows,
            inside,
            outside,
            names=self.feature_names,
            set_aside=None if seen is None else seen.set_aside,
            components=None if seen is None else seen.components,
            explained=self._explained_last,
        )

    # --- the four moves -----------------------------------------------------------------------------------------------

    def accept(
        self,
        clusters: int | Sequence[int] | None = None,
        *,
        mask: Any = None,
        view: int = 0,
        name: str | None = None,
        number: int | None = None,
        progress: Tell | None = None,
        cancel: Cancel | None = None,
    ) -> AcceptedStep:
        """Take clusters of the current proposal into the known: the most distinct, named ones, or any rows by `mask`.

        `view` chooses among `propose().views`; `mask` may be a lasso: a boolean mask or positions of unexplored rows.
        `name` is what the cluster is called from then on. A cluster of the proposal keeps its number, also where its
        rows are those of `mask`; other rows get the next free one, or `number` where it is given and no cluster has it.
        """
        watch = Watch(progress, cancel)
        if clusters is not None and mask is not None:
            raise InvalidValueError("accept takes clusters or mask, not both; call it twice.")
        name = name_of_cluster(name)
        self._require_free(number, mask)
        left = self._rows.n_rows - int(self.known.sum())
        if left <= self._model.n_components:
            few = counted(left, "row is", "rows are")
            raise InvalidValueError(f"nothing can be accepted: {few} unexplored. Use undo() to go back.")
        step = self.propose(clusters=False, progress=progress, cancel=cancel)
        seen = self._view(step, view)
        if mask is not None:
            rows = self._unexplored_rows(mask)
            number = self._number_for(rows, seen) if number is None else number
            chosen: list[tuple[int, NDArray[np.intp], float | None]] = [(number, rows, None)]
        else:
            seen = self._clustered(view, watch)
            distinctness = dict(zip(seen.numbers.tolist(), seen.distinctness.tolist(), strict=True))
            chosen = [(c, np.flatnonzero(seen.clusters == c), distinctness[c]) for c in named_clusters(clusters, seen)]
        who = "automatic" if clusters is None and mask is None else "hand"
        watch.tell("describing what was taken")
        accepted = AcceptedStep(
            tuple(
                TakenCluster(
                    rows,
                    apart,
                    self._features(rows, seen),
                    number=c,
                    chosen=who,
                    name=name,
                    stability=self._stability_of(c) if apart is not None else None,
                )
                for c, rows, apart in chosen
            ),
            seen.components,
            mean=seen.mean,
            scale=seen.scale,
            objective=seen.objective,
            kurtosis=seen.kurtosis,
            view=int(view),
            p_value=step.p_value,
            structure=self.structure if self.is_joint else None,
            explained=seen.explained,
            read_back=step.read_back,
        )
        watch.tell("keeping what was taken")
        self._commit([*self._moves, accepted], [])
        return accepted

    def run(
        self,
        max_steps: int | None = None,
        callback: Callable[[Step, AcceptedStep], None] | None = None,
        *,
        significance: float | None = None,
        structure: str | None = None,
        progress: Tell | None = None,
        cancel: Cancel | None = None,
    ) -> Self:
        """Propose and accept the most distinct cluster(s) until the end, or for `max_steps` steps.

        Clusters that are no more than chance are not taken: structure="heed", as every session begins. "ignore" takes
        the best split there is, from now on and in the session's file; None goes on as before.

        `callback(step, accepted)` is called after every step and may raise to stop; what was accepted stays, as it does
        when `cancel()` returns True. `progress(words, share)` is told the share of the rows that are explored. With a
        `significance` every step is tested for structure, and the run ends where `Step.p_value` is above it.
        """
        require_significance(significance)
        if max_steps is not None and not (is_whole(max_steps) and max_steps >= 0):
            raise InvalidValueError(f"max_steps must be None or a whole number, not negative; got {max_steps!r}.")
        Watch(progress, cancel)
        if callback is not None and not callable(callback):
            raise InvalidTypeError(f"callback must be None or a function; got {callback!r:.80}.")
        ignore, ignored = None if structure is None else require_rule(structure), self.ignores_structure
        told = self._told_of_rows(progress)
        self._by_chance = None
        count = len(self._moves)
        if ignore is not None:
            self._ignore_structure(ignore)
        try:
            self._run(max_steps, callback, significance, told, cancel)
            if len(self._moves) == count and self.ignores_structure != ignored:
                self._commit(self._moves, self._undone)
        except BaseException:
            # Without a step there is nothing in the file that was made by the other rule.
            if len(self._moves) == count:
                self._ignore_structure(ignored)
            raise
        return self

    def _run(
        self,
        max_steps: int | None,
        callback: Callable[[Step, AcceptedStep], None] | None,
        significance: float | None,
        told: Tell | None,
        cancel: Cancel | None,
    ) -> None:
        count = 0
        while not self.done and (max_steps is None or count < max_steps):
            try:
                step = self.propose(progress=told, cancel=cancel)
            except FlatRowsError:
                break
            if significance is not None and not self.done:
                p_value = self.test(progress=told, cancel=cancel)
                self._by_chance = p_value if p_value > significance else None
                step = self.propose()
            if self.done:
                break
            accepted = self.accept(progress=told, cancel=cancel)
            count += 1
            if callback is not None:
                callback(step, accepted)

    # --- results ------------------------------------------------------------------------------------------------------

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        labels: Any = None,
        label_name: str | None = None,
        title: str = "Exploration",
        hover: Sequence[str] | None = None,
    ) -> None:
        """One self-contained HTML page: all clusters side by side, and each with what it is and where it was seen."""
        from imapce.plotting.reports.exploration import write_exploration_report

        write_exploration_report(self, path, labels=labels, label_name=label_name, title=title, hover=hover)

    def app(self, *, table: Any = None, color: str | None = None) -> Any:
        """The page of `imapce app` as a widget of a notebook, over this very session; needs the extra `app`.

        `table` holds further columns of the same rows to colour by and to show, `color` names the first one.
        """
        from imapce.app.widget import Explorer

        return Explorer(self, table=self._table if table is None else table, color=color)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _unexplored_rows(self, mask: Any) -> NDArray[np.intp]:
        chosen = named_rows(mask, self._table, self._rows.n_rows, argument="mask")
        again = np.flatnonzero(chosen & self.known)
        if len(again):
            raise InvalidValueError(
                f"mask must name unexplored rows only; {len(again)} are known already, the first is row {again[0]}."
            )
        return np.flatnonzero(chosen)

    def _number_for(self, rows: NDArray[np.intp], seen: View) -> int:
        """The number of the cluster that some rows are in the view in sight, or the next free one."""
        if seen.looked_at:
            numbers = np.unique(seen.clusters[rows])
            if len(numbers) == 1 and numbers[0] >= 0 and np.count_nonzero(seen.clusters == numbers[0]) == len(rows):
                return int(numbers[0])
        return self._free_number

    def _stability_of(self, number: int) -> float | None:
        """How stable a cluster of the proposal is; None for pieces that were split off, and view by view."""
        if self._partition is None or not self.is_joint or any(number == piece for piece, _ in self._pieces):
            return None
        return self._partition.stability.get(number)

    def _require_free(self, number: Any, mask: Any) -> None:
        """Refuse a number for a cluster that is none, that another has, or that is given to clusters which have one."""
        if number is None:
            return
        if mask is None:
            raise InvalidValueError("number is for rows by mask; clusters of the proposal have theirs: leave it out.")
        if not is_whole(number) or number < 0 or any(cluster.number == number for cluster in self.clusters_):
            raise InvalidValueError(
                f"number must be a whole number, not negative, that no accepted cluster has; got {number!r:.80}."
            )

    def _told_of_rows(self, progress: Tell | None) -> Tell | None:
        """Progress of a whole run: of the rows explored, whatever the share of the work in hand."""
        if progress is None:
            return None
        return lambda words, share: progress(words, float(self.known.mean()))
