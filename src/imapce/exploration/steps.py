"""What a step of an exploration offers, views of the unexplored rows and their clusters: plain arrays, told in a line.

What it takes to look further (other views, their clusters, a test) is the `Look`.

Nothing is computed to tell: a picture is drawn of what was looked at already. The drawing is reached for when someone
asks to see it.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from imapce.choice.path import search_axes
from imapce.clusters.axes import project_rows
from imapce.clusters.clustering import SampleClusters
from imapce.clusters.significance import Structure
from imapce.common.arrays import Array, Mask
from imapce.common.records import Comparable
from imapce.common.settings import SETTINGS
from imapce.common.work import Watch, threads_for
from imapce.errors import InvalidValueError
from imapce.exploration.clustering import (
    REFINED_ROWS,
    Clustering,
    cluster_view,
    number_clusters,
    refine_clusters,
)
from imapce.exploration.record import Feature, Record, features_in_words
from imapce.exploration.verdict import caveat
from imapce.priors.effect import Explained
from imapce.priors.problem import Problem
from imapce.rows.base import Rows
from imapce.search.race import Optimum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SIZES = 8
PICTURE_DPI = 80.0


@dataclass(frozen=True, eq=False)
class View(Comparable):
    """One optimum of a step: its axes and, once it was looked at, the coordinates of all rows and their clusters.

    `set_aside` are the gross outliers of X. They are not clustered: a mixture would spend its components on them.
    `axes` says what its axes are made of and `known` what was known at the start, for its picture.

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
    axes: tuple[str, ...] = ()
    known: str = ""

    def __repr__(self) -> str:
        return f"View({_view_in_words(self)}; {self.optimum!r})"

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
    def overlap(self) -> Array:
        """(c,), how much of each cluster its nearest neighbour shares, from 0 to 1; NaN where there is only one."""
        return self.clustering.overlap

    @property
    def most_distinct(self) -> tuple[int, ...]:
        """The number of the cluster that `accept` takes by itself; none where none is large enough."""
        return self.clustering.most_distinct


@dataclass(frozen=True, eq=False)
class Step(Comparable):
    """A proposal: the best view first in `views`, the other distinct optima after it; nothing is changed by it.

    `p_value` tells how often one Gaussian would look as split as the unexplored rows do; None where nobody asked
    (`Exploration.test`). `structure` tells whether the rows that were unexplored at the start are more than one group,
    clear, possible or none; None where clusters are found view by view, or not yet. `features` set the most distinct
    cluster apart from all other rows, those first that its sentence tells. `number` counts from 1. `read_back` tells
    how well the known columns and labels are read from the best view and from the clusters; None where none are known.

    >>> rows = np.ones(5, dtype=bool)
    >>> view = View(Optimum(np.eye(2, 4), 1.0), np.zeros(4), np.ones(4), unexplored=rows, set_aside=~rows)
    >>> Step(1, (view,), "Converged.")
    Step 1: 5 unexplored rows, clusters not looked for
    """

    number: int
    views: tuple[View, ...]
    stop_reason: str
    _: KW_ONLY
    p_value: float | None = None
    structure: Structure | None = None
    features: tuple[Feature, ...] = ()
    read_back: dict[str, float | None] | None = None

    def __repr__(self) -> str:
        seen = self.views[0]
        line = f"Step {self.number}: {_view_in_words(seen)}"
        if seen.found is None or not seen.most_distinct:
            return line
        why, but = features_in_words(self.features), caveat(self.structure)
        most = " and ".join(map(str, seen.most_distinct))
        return f"{line}; most distinct {most}" + (f": {why}" if why else "") + (f". {but}" if but else "")

    def _repr_html_(self) -> str:
        return with_picture(repr(self), self.plot if self.views[0].looked_at else None)

    def plot(self, *, view: int = 0) -> Figure:
        """The picture of one of its views with its clusters, the most distinct encircled."""
        from imapce.plotting.steps import plot_proposal

        return plot_proposal(self, view=view)

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
    def overlap(self) -> Array:
        """(c,), how much of each cluster of the best view its nearest neighbour shares, in the order of `numbers`."""
        return self.views[0].overlap

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


class Placeable(Protocol):
    """A view that rows can be placed in: its axes, and what is taken from the rows before."""

    @property
    def components(self) -> Array: ...
    @property
    def mean(self) -> Array: ...
    @property
    def scale(self) -> Array: ...
    @property
    def explained(self) -> Explained | None: ...


def place_rows(rows: Rows, view: Placeable, chosen: Mask | None = None) -> Array:
    """(n, k): the rows of a session in a view, or those in `chosen`."""
    explained = view.explained
    if chosen is not None:
        rows = rows.unfolded.subset(chosen)
        explained = None if explained is None else explained.of_rows(chosen)
    if explained is None:
        return project_rows(rows, view.components.T, view.mean, view.scale)
    return explained.placed(rows, view.components, view.mean, view.scale)


@dataclass(eq=False)
class Look:
    """What a step looks at: the rows, the problem posed of them, and the view found; computed once for all questions.

    `seed` is the step's own, so a step that is undone and asked for again is the same.
    """

    rows: Rows
    problem: Problem
    chosen: Optimum
    seed: int
    candidate: SampleClusters | None = None

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
        return search_axes(problem, excluded=np.column_stack([units, labels]))

    @cached_property
    def points(self) -> Array:
        """The unexplored rows along the leading axes; none of very many rows, whose coordinates would outweigh them."""
        axes = self.axes[:, : SETTINGS.clusters.axes[0]] if self.problem.Z.n_rows <= REFINED_ROWS else self.axes[:, :0]
        return self.problem.Z.project(axes)

    def place(self, view: View) -> View:
        """The view with the coordinates of all rows."""
        if view.coordinates is not None:
            return view
        with threads_for(self.rows.n_rows, self.rows.n_features):
            return replace(view, coordinates=place_rows(self.rows, view))

    def cluster(self, view: View, record: Record, watch: Watch) -> View:
        """The view with the clusters of its unexplored rows as it shows them."""
        view = self.place(view)
        watch.tell("clustering the view")
        shown = view.embedding[view.clustered]
        found = cluster_view(
            shown,
            min_cluster_size=record.min_cluster_size,
            max_clusters=record.max_clusters,
            seed=self.seed,
        )
        if record.refine:
            watch.tell("carrying the clusters into all directions")
            found = refine_clusters(
                found, shown, self.points, min_cluster_size=record.min_cluster_size, seed=self.seed, watch=watch
            )
        return replace(view, found=found)

    def show(self, view: View, labels: NDArray[np.intp], *, min_cluster_size: int, sample: Mask) -> View:
        """The view with clusters found elsewhere: labels (n,) of all rows, learned from those in `sample`.

        The clusters keep the numbers that the labels hold.
        """
        view = self.place(view)
        inside = view.clustered
        sampled = int((sample & inside).sum())
        found = number_clusters(
            labels[inside], view.embedding[inside], min_cluster_size, sampled=sampled, as_they_are=True
        )
        if len(found.numbers) == 2:
            # As in the paper: the last two are told apart by each other.
            found = replace(found, most_distinct=tuple(found.numbers.tolist()))
        return replace(view, found=found)


def sizes_in_words(sizes: Sequence[int], numbers: Sequence[int]) -> str:
    """How many clusters, and how many rows each has; their numbers too where these are not 0, 1, ...

    >>> sizes_in_words([62, 50, 38], [0, 1, 2]), sizes_in_words([62, 38], [0, 2])
    ('3 clusters (62, 50, 38)', '2 clusters (0: 62, 2: 38)')
    """
    plain = list(numbers) == list(range(len(sizes)))
    texts = [f"{size:,}" if plain else f"{number}: {size:,}" for number, size in zip(numbers, sizes, strict=True)]
    listed = ", ".join(texts[:MOST_SIZES]) + (", …" if len(sizes) > MOST_SIZES else "")
    return f"{len(sizes)} cluster{'' if len(sizes) == 1 else 's'}" + (f" ({listed})" if len(sizes) else "")


def _view_in_words(view: View) -> str:
    if view.found is None:
        return f"{int(view.unexplored.sum()):,} unexplored rows, clusters not looked for"
    outliers = int(view.clustered.sum() - view.found.sizes.sum())
    beside = f", {outliers:,} rows in none" if outliers else ""
    return sizes_in_words(view.found.sizes.tolist(), view.numbers.tolist()) + beside


def with_picture(line: str, plot: Callable[[], Figure] | None) -> str:
    """A line and, where there is something to draw, its picture, as HTML that needs no other file."""
    text = f"<p>{html.escape(line)}</p>"
    if plot is None:
        return text
    from imapce.plotting.figure import figure_bytes, for_a_file

    with for_a_file():
        image = base64.b64encode(figure_bytes(plot(), ".png", PICTURE_DPI)).decode()
    return f'{text}<img alt="{html.escape(line)}" src="data:image/png;base64,{image}">'
