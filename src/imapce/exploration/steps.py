"""What a step of an exploration offers, views of the unexplored rows and their clusters, and how it is made.

A `Step` and its `View`s are plain arrays. What it takes to look further (other views, a test) is the `Look` that the
session keeps while the step is the current one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.given import Candidate
from imapce.clusters.space import searched_axes
from imapce.clusters.structure import Structure
from imapce.common.records import Comparable
from imapce.common.settings import SETTINGS
from imapce.common.threads import threads_for
from imapce.common.watch import Watch
from imapce.errors import InvalidValueError
from imapce.estimators.base import quiet_about_convergence
from imapce.estimators.imapce import IMAPCE
from imapce.exploration.clustering import (
    REFINED_ROWS,
    Clustering,
    cluster_view,
    number_clusters,
    refine_clusters,
)
from imapce.exploration.placing import explained_by, placed
from imapce.exploration.record import Feature
from imapce.exploration.shown import ShownStep, clusters_of_view
from imapce.priors.base import Prior
from imapce.priors.effect import Explained
from imapce.priors.problem import Problem
from imapce.rows.base import Rows
from imapce.search.solution import Optimum, Progress
from imapce.tables.reader import Reader

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

N_FEATURES = 10


@dataclass(frozen=True, eq=False)
class View(Comparable):
    """One optimum of a step: its axes and, once it was looked at, the coordinates of all rows and their clusters.

    `set_aside` are the gross outliers of X. They are not clustered: a mixture would spend its components on them.

    >>> rows = np.ones(5, dtype=bool)
    >>> view = View(Optimum(np.eye(2, 4), 1.0), np.zeros(4), np.ones(4), unexplored=rows, set_aside=~rows)
    >>> view.components.shape, view.looked_at
    ((2, 4), False)
    """

    optimum: Optimum
    mean: Array
    scale: Array
    _: KW_ONLY
    unexplored: Mask
    set_aside: Mask
    explained: Explained | None = None
    coordinates: Array | None = None
    found: Clustering | None = None

    def __repr__(self) -> str:
        return f"View({clusters_of_view(self)}; {self.optimum!r})"

    @property
    def components(self) -> Array:
        """The axes (k, d), in standardised space."""
        return self.optimum.components

    @property
    def objective(self) -> float:
        """f of the view."""
        return self.optimum.objective

    @property
    def kurtosis(self) -> float:
        """κ of the view."""
        return self.optimum.kurtosis

    @property
    def starts(self) -> int:
        """How many starts of the search ended here."""
        return self.optimum.starts

    @property
    def looked_at(self) -> bool:
        """Whether its clusters are there."""
        return self.found is not None

    @property
    def embedding(self) -> Array:
        """(n, k), all rows, in the standardisation of the unexplored ones."""
        if self.coordinates is None:
            raise InvalidValueError(
                "the rows in this view were not computed; Exploration.cluster(view) does, or Exploration.coordinates."
            )
        return self.coordinates

    @property
    def clustering(self) -> Clustering:
        """The clusters of the rows that were clustered."""
        if self.found is None:
            raise InvalidValueError("the clusters of this view were not looked for; Exploration.cluster(view) does.")
        return self.found

    @property
    def clustered(self) -> Mask:
        """(n,), the rows that clusters are looked for among."""
        return self.unexplored & ~self.set_aside

    @property
    def clusters(self) -> NDArray[np.intp]:
        """(n,), the number of the cluster of every unexplored row; -1 for outliers and for rows already known."""
        labels = np.full(len(self.unexplored), -1)
        labels[self.clustered] = self.clustering.labels
        return labels

    @property
    def numbers(self) -> NDArray[np.intp]:
        """(c,), the numbers of its clusters, ascending: those they have through the session."""
        return self.clustering.numbers

    @property
    def distinctness(self) -> Array:
        """(c,), how far each cluster stands apart, in the order of `numbers`."""
        return self.clustering.distinctness

    @property
    def most_distinct(self) -> tuple[int, ...]:
        """The number of the cluster that `accept` takes by itself; none where none is large enough."""
        return self.clustering.most_distinct


@dataclass(frozen=True, eq=False)
class Step(ShownStep, Comparable):
    """A proposal: the best view first in `views`, the other distinct optima after it; nothing is changed by it.

    `p_value` tells how often one Gaussian would look as split as the unexplored rows do; None where nobody asked
    (`Exploration.test`). `structure` tells whether the rows that were unexplored at the start are more than one group,
    clearly, perhaps or not; None where clusters are found view by view, or not yet. `features` set the most distinct
    cluster apart from the other unexplored rows, strongest first. `read_back` tells how well the known columns and
    labels are read from the best view and from the clusters; None where none are known.

    >>> rows = np.ones(5, dtype=bool)
    >>> view = View(Optimum(np.eye(2, 4), 1.0), np.zeros(4), np.ones(4), unexplored=rows, set_aside=~rows)
    >>> Step(0, (view,), "Converged.")
    Step 0: 5 unexplored rows, clusters not looked for
    """

    number: int
    views: tuple[View, ...]
    stop_reason: str
    _: KW_ONLY
    p_value: float | None = None
    structure: Structure | None = None
    features: tuple[Feature, ...] = ()
    read_back: dict[str, float | None] | None = None

    @property
    def embedding(self) -> Array:
        """(n, k), all rows in the best view."""
        return self.views[0].embedding

    @property
    def unexplored(self) -> Mask:
        """(n,), the rows that are not known."""
        return self.views[0].unexplored

    @property
    def clusters(self) -> NDArray[np.intp]:
        """(n,), the cluster of every unexplored row in the best view; -1 for outliers and for rows already known."""
        return self.views[0].clusters

    @property
    def distinctness(self) -> Array:
        """(c,), how far each cluster of the best view stands apart, in the order of `numbers`."""
        return self.views[0].distinctness

    @property
    def numbers(self) -> NDArray[np.intp]:
        """(c,), the numbers of the clusters in the best view, ascending."""
        return self.views[0].numbers

    @property
    def most_distinct(self) -> tuple[int, ...]:
        """The number of the cluster that `accept` takes by itself; none where none is large enough."""
        return self.views[0].most_distinct

    @property
    def components(self) -> Array:
        """The axes (k, d) of the best view."""
        return self.views[0].components

    @property
    def mean(self) -> Array:
        """The means (d,) of the unexplored rows, about which the views are drawn."""
        return self.views[0].mean

    @property
    def scale(self) -> Array:
        """The scales (d,) of the unexplored rows, in whose units the views are drawn."""
        return self.views[0].scale

    @property
    def clustered_from(self) -> str:
        """In words, how the clusters were found."""
        total, sampled = int(self.views[0].clustered.sum()), self.views[0].clustering.sampled
        aside = int(self.unexplored.sum()) - total
        but = f" but {aside:,} gross outlier{'s' if aside > 1 else ''}" if aside else ""
        if sampled == total:
            return f"Clustered all {total + aside:,} unexplored rows{but}."
        return (
            f"Clustered a seeded sample of {sampled:,} of {total + aside:,} unexplored rows{but} and assigned the rest."
        )

    def with_view(self, place: int, view: View) -> Step:
        """The same step with one of its views replaced."""
        return replace(self, views=(*self.views[:place], view, *self.views[place + 1 :]))


@dataclass(eq=False)
class Look:
    """What a step looks at: the rows, the problem posed of them, and the view found; computed once for all questions.

    `seed` is the step's own, so a step that is undone and asked for again is the same.
    """

    rows: Rows
    problem: Problem
    chosen: Optimum
    seed: int
    candidate: Candidate | None = None

    @classmethod
    def at(
        cls,
        rows: Rows,
        reader: Reader,
        model: IMAPCE,
        *,
        priors: Sequence[Prior],
        known: Mask,
        number: int,
        seed: int,
        watch: Watch,
        start: tuple[Candidate, Rows] | None = None,
        before: Array | None = None,
        granularity: str = "auto",
        n_clusters: int | None = None,
    ) -> tuple[Look, Step]:
        """Fit `model` to the rows given what is known; the look and the step with its views, none looked at yet.

        `start` are the clusters of an earlier look, which go on to be those of the rows left, and all rows with the
        labels beside them that these are told by; `before` are the axes of the view of the step before. `granularity`
        and `n_clusters` are what is asked of the clusters otherwise.
        """
        model.set_params(random_state=seed)

        def tell(progress: Progress) -> None:
            watch.tell(f"step {number}: looking for a view, round {progress.round}")

        with threads_for(rows.n_rows, rows.n_features), quiet_about_convergence():
            watch.tell(f"step {number}: looking for a view")
            problem = model.pose(rows, list(priors), reader)
            if start is None:
                candidate = model.look_for_clusters(
                    problem, ~known, watch, granularity=granularity, n_clusters=n_clusters
                )
            else:
                candidate = start[0].among(problem, ~known, start[1])
            model.solve(problem, candidate=candidate, before=before, callback=None if model.verbose else tell)
            if problem.told is not None:
                assert candidate is not None
                assert candidate.effect is not None
                problem = problem.given(candidate.effect)
        explained = explained_by(problem, priors, rows.n_rows)
        views = tuple(
            View(
                one,
                problem.Z.mean,
                problem.Z.scale,
                unexplored=~known,
                set_aside=problem.set_aside,
                explained=explained,
            )
            for one in model.optima_
        )
        step = Step(number, views, model.stop_reason_, read_back=model.read_back_)
        return cls(rows, problem, model.optima_[0], seed, candidate), step

    @cached_property
    def axes(self) -> Array:
        """B (d, q): the leading axes in which the clusters of a view may differ: those free of what is known.

        What was explained away has left the rows. Columns and labels that are weighed as in the paper have not, and
        a binary column alone would be two clusters: what is correlated with labels is left out, and the columns are.
        """
        problem, weighed = self.problem, np.flatnonzero(self.problem.known_columns & (self.chosen.alpha > 0))
        units = np.zeros((problem.X.n_features, len(weighed)))
        units[weighed, np.arange(len(weighed))] = 1.0
        labels = problem.label_directions[:, : None if self.chosen.alpha > 0 else 0]
        return searched_axes(problem, np.column_stack([units, labels]))

    @cached_property
    def points(self) -> Array:
        """The unexplored rows along the leading axes; none of very many rows, whose coordinates would outweigh them."""
        axes = self.axes[:, : SETTINGS.clusters.axes] if self.problem.Z.n_rows <= REFINED_ROWS else self.axes[:, :0]
        return self.problem.Z.project(axes)

    def placed(self, view: View) -> View:
        """The view with the coordinates of all rows."""
        if view.coordinates is not None:
            return view
        with threads_for(self.rows.n_rows, self.rows.n_features):
            return replace(view, coordinates=placed(self.rows, view))

    def clustered(self, view: View, *, min_cluster_size: int, max_clusters: int, refine: bool, watch: Watch) -> View:
        """The view with the clusters of its unexplored rows."""
        if view.looked_at:
            return view
        view = self.placed(view)
        watch.tell("clustering the view")
        shown = view.embedding[view.clustered]
        found = cluster_view(
            shown,
            min_cluster_size=min_cluster_size,
            max_clusters=max_clusters,
            seed=self.seed,
        )
        if refine:
            watch.tell("carrying the clusters into all directions")
            found = refine_clusters(
                found, shown, self.points, min_cluster_size=min_cluster_size, seed=self.seed, watch=watch
            )
        return replace(view, found=found)

    def showing(self, view: View, labels: NDArray[np.intp], *, min_cluster_size: int, sample: Mask) -> View:
        """The view with clusters found elsewhere: labels (n,) of all rows, learned from those in `sample`.

        The clusters keep the numbers that the labels hold.
        """
        view = self.placed(view)
        inside = view.clustered
        sampled = int((sample & inside).sum())
        found = number_clusters(
            labels[inside], view.embedding[inside], min_cluster_size, sampled=sampled, as_they_are=True
        )
        if len(found.numbers) == 2:
            # As in the paper: the last two are told apart by each other.
            found = replace(found, most_distinct=tuple(found.numbers.tolist()))
        return replace(view, found=found)


def features_apart(
    rows: Rows,
    inside: Mask,
    outside: Mask,
    *,
    names: Sequence[str],
    set_aside: Mask | None = None,
    components: Array | None = None,
    mean: Array | None = None,
    explained: Explained | None = None,
) -> tuple[Feature, ...]:
    """The features that differ most, in standard deviations of all rows used, between the rows inside and outside.

    Where nobody is outside, `mean` takes their place, or the mean of all rows. Loadings are those of `components`.
    Where something was `explained` away, it is told what else differs: known columns are left out, and of the others
    what the known explains.

    >>> from imapce.rows.dense import DenseRows
    >>> first = np.array([True, True, False, False])
    >>> rows = DenseRows(np.array([[0.0, 5.0], [0.0, 6.0], [1.0, 5.0], [1.0, 6.0]]))
    >>> features_apart(rows, first, ~first, names=["a", "b"])[0]
    Feature(name='a', difference=-2.0, loading=0.0)
    """
    # Means alone: the moments of rows hold d×d numbers.
    sides = np.column_stack([inside, outside]).astype(np.float64)
    here, there = (rows.unfolded.cross(sides) / np.maximum(sides.sum(axis=0), 1.0)).T
    if not outside.any():
        there = rows.moments().mean if mean is None else mean - rows.origin
    gap = here - there
    if explained is not None and outside.any():
        gap = gap - explained.between(rows, inside, outside)
    used = rows.unfolded.without(set_aside) if set_aside is not None and set_aside.any() else rows
    spread = np.sqrt(used.moments().variance)
    difference = np.divide(gap, spread, out=np.zeros_like(spread), where=spread > 0)
    loading = np.zeros(len(spread)) if components is None else np.sqrt((components**2).sum(axis=0))
    strongest = np.argsort(-np.abs(difference), kind="stable")
    if explained is not None:
        strongest = strongest[~np.isin(strongest, explained.effect.columns)]
    strongest = strongest[:N_FEATURES]
    return tuple(Feature(names[j], float(difference[j]), float(loading[j])) for j in strongest)
