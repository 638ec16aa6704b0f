"""Algorithm 1 of the paper as a session that can be steered: propose a view, accept clusters, undo, save, go on.

While more than s rows are unexplored: fit with the known rows as prior, cluster the view of the others, take the most
distinct cluster(s) into the known, look again. Row identity is by position; no labels are needed.

The state is the list of what was accepted. Everything else (known rows, labels, the next proposal) follows from it, so
undo is to drop the last entry and a saved session is small.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import cache, cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from sklearn.base import clone

from imapce import tables
from imapce.errors import ImapceError, InvalidTypeError, InvalidValueError
from imapce.estimators.imapce import IMAPCE, FlatRowsError, quiet_about_convergence
from imapce.exploration import session_file
from imapce.exploration.clustering import METHODS, Clustering, cluster_view
from imapce.exploration.record import AcceptedStep, Feature, TakenCluster
from imapce.exploration.refinement import refined, space_left
from imapce.exploration.steps import Step, View
from imapce.exploration.stopping import StructureTest, check_significance
from imapce.priors.kinds import Prior, Subset, as_list, known_rows, require_same_index
from imapce.rows.base import Rows

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

N_FEATURES = 10


class Exploration:
    """An exploration of `X` that starts from what is known and ends when nothing distinct is left.

    Parameters
    ----------
    X : array, sparse matrix or table, as for IMAPCE.
    prior : what is known at the start; the rows of a Subset join the rows that are accepted later. Columns are erased
        over all rows: later steps are drawn in the scale of the rows left, among which a trace of them can be read
        (R² of 0.006 at most on the synthetic set).
    estimator : the IMAPCE to fit at every step (its parameters are copied); default
        IMAPCE(outliers="keep"), all automatic: a row that is set aside could never be taken.
    min_cluster_size : the s of the paper; "auto" is 2 % of the rows, at least 10.
    max_clusters : most clusters looked for in one view.
    random_state : seed of everything random.
    row_ids : names of the rows in results; default the table's index or 0, 1, ...
    clusterer : "dpgmm" (the paper's Dirichlet-process mixture) or "hdbscan".
    refine : True carries the clusters of a view into all directions and takes the one farthest from its nearest
        neighbour; False takes the view's own, the farthest from all others together (two clusters: both), which with
        IMAPCE(alpha=1.0, mu="paper") is the paper's algorithm.
    path : a new file for the session, rewritten after every accept and undo.

    Examples
    --------
    >>> exploration = Exploration(X, random_state=0)                 # doctest: +SKIP
    >>> step = exploration.propose()                                 # doctest: +SKIP
    >>> exploration.accept()                                         # doctest: +SKIP
    >>> exploration.run().labels_                                    # doctest: +SKIP
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
        clusterer: str = "dpgmm",
        refine: bool = True,
        path: str | os.PathLike[str] | None = None,
    ):
        if estimator is not None and not isinstance(estimator, IMAPCE):
            raise InvalidTypeError(f"estimator must be an IMAPCE; got {estimator!r:.80}.")
        self._model = clone(estimator) if estimator is not None else IMAPCE(outliers="keep")
        self._model._check_parameters()
        self._rows: Rows = self._model._open(X)
        n = self._rows.n_rows
        self._like = X
        self.row_ids = _row_ids(row_ids, X, n)
        self.min_cluster_size = _cluster_size(min_cluster_size, n)
        self.max_clusters = _whole("max_clusters", max_clusters)
        if clusterer not in METHODS:
            raise InvalidValueError(f"clusterer must be one of {', '.join(map(repr, METHODS))}; got {clusterer!r}.")
        self.clusterer = clusterer
        if not isinstance(refine, (bool, np.bool_)):
            raise InvalidTypeError(f"refine must be True or False; got {refine!r}.")
        self.refine = bool(refine)
        if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer, type(None))):
            raise InvalidTypeError(f"random_state must be None or a whole number; got {random_state!r}.")
        if random_state is not None and random_state < 0:
            raise InvalidValueError(f"random_state must not be negative; got {random_state}.")
        # A seed is drawn once where none is given, so that the session can be saved and go on as it was.
        drawn = int(np.random.default_rng().integers(2**31)) if random_state is None else int(random_state)
        self.random_state = drawn
        if path is not None and os.path.isfile(path):
            raise InvalidValueError(
                f"path must be a new file, and {str(path)!r} exists; go on with it by Exploration.load(path, X), or "
                "choose another name."
            )
        self.path = path
        priors = as_list(prior)
        subsets = [one for one in priors if isinstance(one, Subset)]
        self._other_priors: list[Prior] = [one for one in priors if not isinstance(one, Subset)]
        self._subset_weight = max((float(one.weight) for one in subsets), default=1.0)
        self._known_at_start = np.zeros(n, dtype=bool)
        for one in subsets:
            require_same_index(one, X)
            self._known_at_start |= known_rows(one, n)
        self._accepted: list[AcceptedStep] = []
        self._undone: list[AcceptedStep] = []
        self._proposal: Step | None = None
        self._flat = False
        self._by_chance: float | None = None
        self._structure_test = StructureTest(self.random_state)

    # --- where the session stands -------------------------------------------------------------------------------------

    @property
    def steps(self) -> list[AcceptedStep]:
        """What was accepted so far, first to last."""
        return list(self._accepted)

    @property
    def labels_(self) -> NDArray[np.intp]:
        """(n,), the number of the accepted cluster of every row, -1 where it was not taken."""
        labels = np.full(self._rows.n_rows, -1)
        for number, cluster in enumerate(self.clusters_):
            labels[cluster.rows] = number
        return labels

    @property
    def clusters_(self) -> list[TakenCluster]:
        """The accepted clusters by number."""
        return [cluster for step in self._accepted for cluster in step.clusters]

    @property
    def known(self) -> Mask:
        """Rows known at the start or accepted since."""
        return self._known_at_start | (self.labels_ >= 0)

    @property
    def done(self) -> bool:
        return self.stop_reason is not None

    @property
    def stop_reason(self) -> str | None:
        """Why the exploration is over, in words; None while it is not (or while that takes a new view to tell)."""
        left = self._rows.n_rows - int(self.known.sum())
        if left == 0:
            return "Every row is taken."
        if left <= self.min_cluster_size:
            return f"{left} rows are left, no more than min_cluster_size={self.min_cluster_size}; they are outliers."
        if left <= self._model.n_components:
            return f"{left} rows are left, too few for a view of {self._model.n_components} axes; they are outliers."
        if self._flat:
            return f"The {left} rows left do not vary in {self._model.n_components} directions; they stay as outliers."
        if self._proposal is not None and not self._proposal.most_distinct:
            return f"No cluster of at least {self.min_cluster_size} rows is in the view; {left} rows stay as outliers."
        if self._by_chance is not None:
            return (
                f"No structure is left that one Gaussian would not show (p = {self._by_chance:.2g}); the {left} rows "
                "left are not split further."
            )
        return None

    @cached_property
    def _fingerprint(self) -> str:
        return session_file.fingerprint(self._rows)

    # --- the four moves -----------------------------------------------------------------------------------------------

    def propose(self) -> Step:
        """The next view of the unexplored rows and its clusters; asking again gives the same step."""
        if self._proposal is None:
            try:
                self._proposal = self._next_step()
            except FlatRowsError:
                self._flat = True
                raise
        return self._proposal

    def accept(self, clusters: int | Sequence[int] | None = None, *, mask: Any = None, view: int = 0) -> AcceptedStep:
        """Take clusters of the current proposal into the known: the most distinct, named ones, or any rows by `mask`.

        `view` chooses among `propose().views`; `mask` may be a lasso: a boolean mask or positions of unexplored rows.
        """
        if clusters is not None and mask is not None:
            raise InvalidValueError("accept takes clusters or mask, not both; call it twice.")
        left = self._rows.n_rows - int(self.known.sum())
        if left <= self._model.n_components:
            raise InvalidValueError(f"nothing can be accepted: {left} rows are unexplored. Use undo() to go back.")
        step = self.propose()
        if not isinstance(view, (int, np.integer)) or not 0 <= view < len(step.views):
            raise InvalidValueError(f"view must be from 0 to {len(step.views) - 1} in this step; got {view!r}.")
        seen = step.views[view]
        if mask is not None:
            chosen: list[tuple[NDArray[np.intp], float | None]] = [(self._rows_of_mask(mask), None)]
        else:
            chosen = [(np.flatnonzero(seen.clusters == c), float(seen.distinctness[c])) for c in _named(clusters, seen)]
        who = "automatic" if clusters is None and mask is None else "hand"
        taken = tuple(
            TakenCluster(rows, distinctness, self._features(rows, step, seen), who) for rows, distinctness in chosen
        )
        accepted = AcceptedStep(
            taken,
            seen.components,
            step.mean,
            step.scale,
            seen.objective,
            seen.kurtosis,
            int(view),
            step.p_value_if_asked,
        )
        self._commit([*self._accepted, accepted], [])
        return accepted

    def undo(self, steps: int = 1) -> Self:
        """Take back the last accepted steps."""
        steps = _whole("steps", steps)
        if steps > len(self._accepted):
            raise InvalidValueError(f"undo(steps) can go back {len(self._accepted)} steps; got {steps}.")
        kept = len(self._accepted) - steps
        self._commit(self._accepted[:kept], [*self._undone, *reversed(self._accepted[kept:])])
        return self

    def redo(self, steps: int = 1) -> Self:
        """Accept again what `undo` took back."""
        steps = _whole("steps", steps)
        if steps > len(self._undone):
            raise InvalidValueError(f"redo(steps) can go forward {len(self._undone)} steps; got {steps}.")
        again = self._undone[len(self._undone) - steps :]
        self._commit([*self._accepted, *reversed(again)], self._undone[: len(self._undone) - steps])
        return self

    def run(
        self,
        max_steps: int | None = None,
        callback: Callable[[Step, AcceptedStep], None] | None = None,
        *,
        progress: bool = False,
        significance: float | None = None,
    ) -> Self:
        """Propose and accept the most distinct cluster(s) until the end, or for `max_steps` steps.

        `callback(step, accepted)` is called after every step and may raise to stop; what was accepted stays. With a
        `significance` every step is tested for structure, and the run ends where `Step.p_value` is above it.
        """
        check_significance(significance)
        if max_steps is not None and not (isinstance(max_steps, (int, np.integer)) and max_steps >= 0):
            raise InvalidValueError(f"max_steps must be None or a whole number, not negative; got {max_steps!r}.")
        self._by_chance = None
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("rows explored"))
        bar = Progress(*columns, console=Console(stderr=True), transient=True) if progress else None
        with bar if bar is not None else nullcontext():
            task = bar.add_task("exploring", total=self._rows.n_rows) if bar is not None else None
            count = 0
            while not self.done and (max_steps is None or count < max_steps):
                try:
                    step = self.propose()
                except FlatRowsError:
                    break
                if significance is not None and not self.done and step.p_value > significance:
                    self._by_chance = step.p_value
                if self.done:
                    break
                accepted = self.accept()
                count += 1
                if bar is not None and task is not None:
                    bar.update(task, completed=int(self.known.sum()), description=f"step {len(self._accepted)}")
                if callback is not None:
                    callback(step, accepted)
        return self

    # --- results ------------------------------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """A table: row id, cluster, step, distinctness, and the coordinates of the row in every accepted view."""
        labels = self.labels_
        step_of = np.full(len(labels), -1)
        distinctness = np.full(len(labels), np.nan)
        for number, step in enumerate(self._accepted):
            for cluster in step.clusters:
                step_of[cluster.rows] = number
                distinctness[cluster.rows] = np.nan if cluster.distinctness is None else cluster.distinctness
        columns: dict[str, NDArray] = {
            "row": self.row_ids,
            "cluster": labels,
            "step": step_of,
            "distinctness": distinctness,
        }
        for number, step in enumerate(self._accepted):
            coordinates = self.coordinates(step)
            for axis in range(coordinates.shape[1]):
                columns[f"step{number}_axis{axis}"] = coordinates[:, axis]
        return tables.frame(columns, like=self._like if tables.is_table(self._like) else None)

    def coordinates(self, step: AcceptedStep) -> Array:
        """(n, k): all rows in the view of an accepted step."""
        return self._projected(step.components, step.mean, step.scale)

    def report(self, path: str | os.PathLike[str], *, labels: Any = None, title: str = "Exploration") -> None:
        """One self-contained HTML page: every step as a triptych, what sets its clusters apart, and a summary."""
        from imapce.plotting.reports.exploration import write_exploration_report

        write_exploration_report(self, path, labels=labels, title=title)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the session (JSON and .npy in one zip), atomically."""
        session_file.write_session(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], X: Any, *, autosave: bool = True, row_ids: Any = None) -> Self:
        """A saved session on the same data; other data is refused by the name of what differs.

        With `autosave` the file goes on being rewritten after every accept and undo. Names of rows come with the data,
        not from the file: from `row_ids` or the table's index.
        """
        return session_file.read_session(cls, path, X, autosave=autosave, row_ids=row_ids)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _next_step(self) -> Step:
        known = self.known
        unexplored = ~known
        left = int(unexplored.sum())
        if left <= self._model.n_components:
            raise InvalidValueError(f"nothing can be proposed: {left} rows are unexplored. Use undo() to go back.")
        number = len(self._accepted)
        # The seed depends on the step alone, so a step that is undone and asked for again is the same.
        seed = int(np.random.SeedSequence([self.random_state, number]).generate_state(1)[0] % 2**31)
        model = clone(self._model).set_params(random_state=seed)
        model._encoding = self._model._encoding
        priors = list(self._other_priors)
        if known.any():
            priors.append(Subset(known, weight=self._subset_weight))
        with quiet_about_convergence():
            Z = model._fit_rows(self._rows, priors)
        mean, scale = Z.mean, Z.scale
        set_aside = np.zeros(len(known), dtype=bool)
        set_aside[model.outliers_] = True

        # The rows are standardised once for all views of the step and its test, when one of them asks.
        space = cache(lambda: space_left(model, self._rows, priors))

        def clusters(coordinates: Array) -> Clustering:
            found = cluster_view(
                coordinates,
                min_cluster_size=self.min_cluster_size,
                max_clusters=self.max_clusters,
                method=self.clusterer,
                seed=seed,
            )
            if not self.refine:
                return found
            return refined(found, coordinates, space(), min_cluster_size=self.min_cluster_size, seed=seed)

        views = [
            View(
                optimum.components,
                optimum.objective,
                optimum.kurtosis,
                optimum.starts,
                unexplored,
                set_aside,
                lambda components: self._projected(components, mean, scale),
                clusters,
            )
            for optimum in model.optima_
        ]
        return Step(
            number,
            views,
            mean,
            scale,
            model.stop_reason_,
            lambda: self._structure_test.of_step(*space()),
        )

    def _projected(self, components: Array, mean: Array, scale: Array) -> Array:
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        W = (components * inverse).T
        return self._rows.project(W, (mean - self._rows.origin) @ W)

    def _features(self, rows: NDArray[np.intp], step: Step, view: View) -> tuple[Feature, ...]:
        """The features that differ most, in standard deviations, between the cluster and the other unexplored rows."""
        inside = np.zeros(self._rows.n_rows, dtype=bool)
        inside[rows] = True
        outside = view.clustered & ~inside
        here = self._rows.subset(inside).moments().mean
        there = self._rows.subset(outside).moments().mean if outside.any() else step.mean - self._rows.origin
        used = self._rows.unfolded.without(view.set_aside) if view.set_aside.any() else self._rows
        spread = np.sqrt(used.moments().variance)
        difference = np.divide(here - there, spread, out=np.zeros_like(spread), where=spread > 0)
        names = self._model._encoded_names(self._rows.n_features)
        loading = np.sqrt((view.components**2).sum(axis=0))
        strongest = np.argsort(-np.abs(difference), kind="stable")[:N_FEATURES]
        return tuple(Feature(names[j], float(difference[j]), float(loading[j])) for j in strongest)

    def _rows_of_mask(self, mask: Any) -> NDArray[np.intp]:
        try:
            require_same_index(Subset(mask), self._like)
            chosen = known_rows(Subset(mask), self._rows.n_rows)
        except ImapceError as error:
            # A mask follows the rules of Subset(rows), and the sentence must name the argument that was given.
            raise type(error)(
                str(error)
                .replace("Subset(rows)", "mask")
                .replace("mask as a mask", "mask")
                .replace("; pass prior=None or", ";")
            ) from error
        again = np.flatnonzero(chosen & self.known)
        if len(again):
            raise InvalidValueError(
                f"mask must name unexplored rows only; {len(again)} are known already, the first is row {again[0]}."
            )
        return np.flatnonzero(chosen)

    def _commit(self, accepted: list[AcceptedStep], undone: list[AcceptedStep]) -> None:
        """Make a new state current; where it cannot be saved, the old one stays."""
        before = self._accepted, self._undone, self._proposal, self._flat, self._by_chance
        self._accepted, self._undone, self._proposal, self._flat, self._by_chance = accepted, undone, None, False, None
        if self.path is None:
            return
        try:
            self.save(self.path)
        except BaseException:
            self._accepted, self._undone, self._proposal, self._flat, self._by_chance = before
            raise


def _named(clusters: int | Sequence[int] | None, view: View) -> list[int]:
    n_clusters = len(view.distinctness)
    if clusters is None:
        if not view.most_distinct:
            raise InvalidValueError("no cluster of this view is large enough; lower min_cluster_size or pass a mask.")
        return list(view.most_distinct)
    numbers = list(clusters) if isinstance(clusters, Iterable) else [clusters]
    for number in numbers:
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or not 0 <= number < n_clusters:
            raise InvalidValueError(
                f"clusters must be numbers from 0 to {n_clusters - 1} of this view; got {number!r}."
            )
    if not numbers or len(set(numbers)) != len(numbers):
        raise InvalidValueError(f"clusters must name at least one cluster and none twice; got {clusters!r}.")
    return [int(number) for number in numbers]


def _row_ids(row_ids: Any, X: Any, n_rows: int) -> NDArray:
    if row_ids is None:
        index = getattr(X, "index", None) if tables.is_table(X) else None
        return np.arange(n_rows) if index is None else np.asarray(index)
    ids = np.asarray(row_ids)
    if ids.shape != (n_rows,):
        raise InvalidValueError(f"row_ids must have one entry per row of X ({n_rows}); got shape {ids.shape}.")
    return ids


def _cluster_size(value: int | str, n_rows: int) -> int:
    if isinstance(value, str):
        if value != "auto":
            raise InvalidValueError(f'min_cluster_size must be a whole number or "auto"; got {value!r}.')
        return max(10, int(np.ceil(0.02 * n_rows)))
    return _whole("min_cluster_size", value)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidTypeError(f"{name} must be a whole number; got {value!r}.")
    if value < 1:
        raise InvalidValueError(f"{name} must be at least 1; got {value}.")
    return int(value)
