"""The clusters of all rows that are unexplored at the start, found once and in all directions; steps show what is left.

    columns → values up to their rounding → leading axes → mixture → merged where no valley is → structure, or one group

A view is a shadow: what it separates is apart, what it does not may be too. So clusters are found where all directions
that are free of the known are seen at once, from a sample of the rows, and a step takes them in the order in which its
views show them. What is accepted by hand restricts them. On 14 labelled tables NMI and ARI are 0.63 and 0.57; clusters
found view by view had 0.49 and 0.38.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from imapce.choice.neighbours import shared_weights
from imapce.choice.spaces import known_units, searched_axes
from imapce.common.records import Comparable
from imapce.common.threads import one_thread
from imapce.common.watch import UNWATCHED, Watch
from imapce.exploration.clustering import OUTLIER
from imapce.exploration.merging import merged
from imapce.exploration.mixture import Choice, Mixture, choose, component_of
from imapce.exploration.steps import coordinates
from imapce.exploration.structure import CLEAR_VALLEY, VERY_CLEAR, Structure, deepest_valley, is_structure
from imapce.priors.problem import Problem
from imapce.rows.base import Rows
from imapce.rows.ordering import key_directions, order_of_points

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]

SAMPLE = 1_500
AXES = 30
# Where nothing is found in all axes, it is looked for in so many: few rows cannot tell the covariances of 30. Among 360
# rows of 90 columns, 15 classes (movement_libras of KEEL), nothing was found, and in 15 axes an NMI of 0.63.
FEW_AXES = 15
# Beyond so many columns the leading axes stand for them, and a column's few values are not looked at.
WIDE = 500
FEW_VALUES = 10
ROUNDED = 9
ASSIGNED_AT_ONCE = 200_000


@dataclass(frozen=True, eq=False)
class Partition(Comparable):
    """Clusters of the rows that are unexplored at the start, OUTLIER for others, and what gives rows to them.

    `clusters` (k,) are those of the mixture's components, OUTLIER where a component has no row of the `sample`; the
    mixture lives in the directions `basis` (q, d) of the rows in the standardisation of the start.
    """

    labels: Labels
    clusters: Labels
    mixture: Mixture
    _: KW_ONLY
    basis: Array
    mean: Array
    scale: Array
    sample: Mask
    structure: Structure

    def among(self, left: Mask, rows: Rows, *, min_cluster_size: int) -> Labels:
        """Clusters of the rows left (n,), OUTLIER elsewhere; too small ones give way, the smallest first.

        Their rows go to the components of other clusters that explain them best; the last one's are outliers.
        """
        labels = np.where(left, self.labels, OUTLIER)
        while True:
            names, counts = np.unique(labels[labels != OUTLIER], return_counts=True)
            if not len(names) or counts.min() >= min_cluster_size:
                return labels
            gone = labels == names[counts.argmin()]
            allowed = np.isin(self.clusters, np.delete(names, counts.argmin()))
            labels[gone] = OUTLIER
            if allowed.any():
                labels[gone] = self.assigned(gone, rows, allowed)

    def assigned(self, some: Mask, rows: Rows, allowed: Mask) -> Labels:
        """The clusters of some rows, by the component, of those allowed (k,), that explains each best."""
        with one_thread():
            points = coordinates(rows.subset(some), self.basis, self.mean, self.scale)
            return self.clusters[component_of(self.mixture, points, allowed)]


def partition_of(
    problem: Problem,
    unexplored: Mask,
    rows: Rows,
    *,
    known_columns: bool = True,
    min_cluster_size: int = 1,
    watch: Watch = UNWATCHED,
) -> Partition:
    """The clusters of the rows to explore of a problem: those `unexplored` (n,) of all rows, gross outliers among them.

    `known_columns=False` leaves known columns in, for models that give what is known no weight.

    >>> from imapce.priors.problem import pose
    >>> from imapce.rows.open import open_rows
    >>> from imapce.tables.reader import Reader
    >>> rng = np.random.default_rng(0)
    >>> reader, matrix = Reader.learn(rng.standard_normal((150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3])
    >>> rows = open_rows(matrix)
    >>> found = partition_of(pose(rows, [], reader, n_components=2), np.ones(150, dtype=bool), rows)
    >>> np.bincount(found.labels), found.structure.clear
    (array([50, 50, 50]), True)
    """
    with one_thread():
        watch.tell("looking for clusters in all directions", 0.0)
        space = Space.of(problem, unexplored, known_columns)
        whole = _found_in(space, watch)
        if not whole.structure.clear and len(space.basis) > FEW_AXES:
            fewer = _found_in(space.leading(FEW_AXES), watch)
            # Who looks twice finds more by chance: lognormal noise, 400×30, was clear in 2 of 10 tables, z up to 7.
            surer = fewer.structure.dependence is None or fewer.structure.dependence >= VERY_CLEAR
            whole = fewer if fewer.structure.clear and surer else whole
    return _of_all_rows(whole, unexplored, rows, min_cluster_size=min_cluster_size, watch=watch)


def split_of(
    problem: Problem,
    inside: Mask,
    rows: Rows,
    *,
    known_columns: bool = True,
    min_cluster_size: int = 1,
    watch: Watch = UNWATCHED,
) -> Partition:
    """The pieces that the rows `inside` (n,), those to explore of a problem, fall into when they are to be several.

    They are found as clusters are; where no valley separates any of them, they are the two components that explain the
    rows best, and `structure` says so.

    >>> from imapce.priors.problem import pose
    >>> from imapce.rows.open import open_rows
    >>> from imapce.tables.reader import Reader
    >>> reader, matrix = Reader.learn(np.random.default_rng(0).standard_normal((150, 4)))
    >>> rows = open_rows(matrix)
    >>> pieces = split_of(pose(rows, [], reader, n_components=2), np.ones(150, dtype=bool), rows)
    >>> len(np.unique(pieces.labels)), pieces.structure.clear
    (2, False)
    """
    with one_thread():
        watch.tell("looking for pieces in all directions", 0.0)
        space = Space.of(problem, inside, known_columns)
        found = choose(space.points, watch, fewest=2)
        final = merged(space.points, found.labels, watch=watch)
        valley = deepest_valley(space.points, final)
        words = f"the deepest valley between them has z = {valley:.1f}"
        if not final.any():
            found = choose(space.points, watch, fewest=2, most=2)
            final = found.labels
            words = "no valley separates them; they are the two halves that explain the rows best"
        structure = Structure(valley >= CLEAR_VALLEY, valley, None, words)
    whole = _whole(space, found, final, structure)
    return _of_all_rows(whole, inside, rows, min_cluster_size=min_cluster_size, watch=watch)


@dataclass(frozen=True)
class Space:
    """Where clusters are looked for: a sample of the rows to explore of a problem, as columns and as points.

    `places` (m,) are those of the sample among `n_rows`, in an order that the values alone decide; `basis` (q, d) leads
    from rows in the standardisation `mean`, `scale` of the rows to explore to points.
    """

    places: Labels
    columns: _Columns
    basis: Array
    _: KW_ONLY
    n_rows: int
    mean: Array
    scale: Array
    valleys: bool

    @classmethod
    def of(cls, problem: Problem, unexplored: Mask, known_columns: bool = True) -> Space:
        Z = problem.Z
        learned = np.flatnonzero(unexplored & ~problem.set_aside)
        # The same rows for every seed and however the table is sorted, so that explorations of one table agree.
        drawn = Z.content_sample(SAMPLE)
        chosen = np.zeros(Z.n_rows, dtype=bool)
        chosen[drawn] = True
        basis, sources = _directions(problem, known_columns)
        values = Z.project(basis, chosen)[drawn.argsort().argsort()]
        shared = sources is None
        if sources is not None:
            agreed, shared = _agreed(values, sources)
            basis, values = basis[:, agreed], values[:, agreed]
        columns = _Columns.read(values)
        return cls(
            learned[drawn],
            columns,
            (basis @ columns.axes).T,
            n_rows=len(unexplored),
            mean=Z.mean,
            scale=Z.scale,
            # Between few values there is always a valley; it tells something where columns agree on it.
            valleys=shared or _mostly_continuous(columns.counts),
        )

    @cached_property
    def points(self) -> Array:
        """The rows of the sample (m, q)."""
        return self.columns.coordinates(self.columns.values)

    @property
    def sample(self) -> Mask:
        """Which of all rows (n,) are in the sample."""
        inside = np.zeros(self.n_rows, dtype=bool)
        inside[self.places] = True
        return inside

    def leading(self, axes: int) -> Space:
        """The same rows in their leading axes."""
        turn = _leading(self.points, axes)
        return replace(
            self, columns=replace(self.columns, turned=self.columns.turned @ turn), basis=turn.T @ self.basis
        )

    def points_of(self, some: Mask, rows: Rows) -> Array:
        """Some of all rows, the sample or not, in the same coordinates but for values up to their rounding."""
        return coordinates(rows.subset(some), self.basis, self.mean, self.scale)

    def order_of(self, some: Mask, rows: Rows) -> Labels:
        """The places of some of all rows in an order that their values alone decide."""
        keys = key_directions(len(self.basis)).T @ self.basis
        return np.flatnonzero(some)[order_of_points(coordinates(rows.subset(some), keys, self.mean, self.scale))]


def _found_in(space: Space, watch: Watch) -> Partition:
    """The partition of the sample by the mixture found in it, and whether it is more than chance."""
    found = choose(space.points, watch)
    final = merged(space.points, found.labels, watch=watch)
    structure = is_structure(
        space.points,
        found,
        final,
        columns=space.columns.values,
        coordinates=space.columns.coordinates,
        valleys=space.valleys,
        watch=watch,
    )
    return _whole(space, found, final, structure)


def _whole(space: Space, found: Choice, final: Labels, structure: Structure) -> Partition:
    """The partition of the sample: clusters `final` (m,) made of the components found."""
    clusters = np.full(len(found.mixture.weights), OUTLIER)
    for component in np.unique(found.labels):
        clusters[component] = np.bincount(final[found.labels == component]).argmax()
    labels = np.full(space.n_rows, OUTLIER)
    labels[space.places] = final
    return Partition(
        labels,
        clusters,
        found.mixture,
        basis=space.basis,
        mean=space.mean,
        scale=space.scale,
        sample=space.sample,
        structure=structure,
    )


def _of_all_rows(whole: Partition, unexplored: Mask, rows: Rows, *, min_cluster_size: int, watch: Watch) -> Partition:
    """The partition of all unexplored rows by that of their sample; none where it comes to one cluster."""
    labels = whole.labels
    # Rows of the sample are given anew where it is one, so that all rows are in the cluster that explains them best.
    others = np.flatnonzero(
        unexplored if whole.sample.sum() == SAMPLE < unexplored.sum() else unexplored & ~whole.sample
    )
    for first in range(0, len(others), ASSIGNED_AT_ONCE):
        watch.tell("giving all rows to the clusters", first / len(others))
        some = np.zeros(len(unexplored), dtype=bool)
        some[others[first : first + ASSIGNED_AT_ONCE]] = True
        labels[some] = whole.assigned(some, rows, whole.clusters != OUTLIER)
    labels = whole.among(unexplored, rows, min_cluster_size=min_cluster_size)
    # Where too small clusters left one, it is what was not to be told apart.
    alone = len(np.unique(labels[labels != OUTLIER])) < 2
    return replace(whole, labels=np.full_like(labels, OUTLIER) if alone else labels)


def _directions(problem: Problem, known_columns: bool) -> tuple[Array, Labels | None]:
    """(d, c): the columns less what the known ones tell of them, each with its source column in the table; or the
    leading axes of very many, which have no source.

    z_j − Σ_k β_kj·z_k, β the regression on the known columns k: what they tell of the others, they tell of every
    cluster that differs in them. Leaving out the directions that are correlated with them costs as many directions as
    columns are known: a minority of 3 to 10 % beside four was then found in 20 of 24 tables, so in 30 of 30. What is
    erased, and what labels explain, is left out so, as no trace of it may stay.
    """
    Z = problem.Z
    known = known_units(problem)[:, : None if known_columns else 0]
    labels = problem.label_directions[:, : None if known_columns else 0]
    if Z.n_features > WIDE:
        return searched_axes(problem, np.column_stack([known, problem.X.second_moment @ known, labels])), None
    told = Z.second_moment @ known
    regression = np.linalg.pinv(known.T @ told, rcond=1e-10, hermitian=True) @ told.T
    columns = Z.informative & problem.X.informative & ~known.any(axis=1)
    basis = (np.eye(Z.n_features) - known @ regression)[:, columns]
    if problem.Y.erased is not None or labels.shape[1]:
        inside = problem.directions_left(labels)
        free = inside.lift(np.eye(inside.size))
        basis = free @ (free.T @ basis)
    return basis, problem.sources[columns]


def _agreed(values: Array, sources: Labels) -> tuple[Mask, bool]:
    """Which columns (n, c) agree with others beyond chance, and whether any do; all where none does, or of very many.

    A cluster is what several columns agree on. A random true/false column, a category, an id or a single two-humped
    column would cut every cluster in pieces: of three clusters and two random categories of ten levels it made seven to
    eighteen, and with such columns left out three.
    """
    n, c = values.shape
    if 2 * c > n or not c:
        return np.ones(c, dtype=bool), True
    weights = shared_weights(values, np.unique(sources, return_inverse=True)[1])
    # Weights of one for all are given where no column shares anything: one that shares has less.
    return weights > 0, bool((weights[weights > 0] < 1.0).any())


@dataclass(frozen=True)
class _Columns:
    """Columns (n, c) of the rows learned from, how many values each has, and the axes (c, q) the mixture lives in."""

    values: Array
    counts: Labels
    stretch: Array
    turned: Array

    @classmethod
    def read(cls, values: Array) -> _Columns:
        # Columns that are not standardised may be in any unit, and no tolerance is to depend on it.
        unit = max(float(values.std()), np.finfo(np.float64).tiny) if values.size else 1.0
        # Rows read in another order differ in their last digits, which decide between equal distances.
        values = np.round(values / unit, ROUNDED)
        counts = 1 + (np.diff(np.sort(values, axis=0), axis=0) > 1e-12).sum(axis=0)
        spread, stretch = _up_to_rounding(values, counts)
        return cls(values, counts, stretch / unit, _leading(spread))

    @property
    def axes(self) -> Array:
        """(c, q) from columns as they are to the coordinates."""
        return self.stretch[:, None] * self.turned

    def coordinates(self, values: Array) -> Array:
        """(n, q) of columns like `values`, spread as those are."""
        return _up_to_rounding(values, self.counts)[0] @ self.turned


def _mostly_continuous(counts: Labels) -> bool:
    varying = counts[counts > 1]
    return bool(len(varying)) and float(np.mean(varying > FEW_VALUES)) >= 0.5


def _up_to_rounding(values: Array, counts: Labels) -> tuple[Array, Array]:
    """Columns (n, c) as they may have been before they were rounded, and what each was stretched by for it.

    A column counts as rounded where its values usually lie farther apart than the kernel is wide in which a valley is
    looked for, 0.9·σ·n^(−1/5): each would be a cluster of no width. Its values are spread evenly up to half the way to
    the next, or half the usual way where that is far, and the column keeps its variance. Three rounded Gaussians (600×4
    in steps of one standard deviation) were 11 to 15 clusters in four of six tables and are three in five. Between two
    values nothing was rounded: with those spread too, ionosphere falls from an NMI of 0.39 to 0.11.
    """
    n = len(values)
    spread, stretch = values.copy(), np.ones(values.shape[1])
    for j in np.flatnonzero((counts > 2) & (counts < n)):
        levels, place = np.unique(values[:, j], return_inverse=True)
        gaps = np.diff(levels)
        usual, deviation = float(np.median(gaps)), float(values[:, j].std())
        if usual < 0.9 * deviation * n**-0.2:
            continue
        gaps = np.minimum(gaps, usual) / 2
        below, above = np.append(gaps[0], gaps), np.append(gaps, gaps[-1])
        between = np.random.default_rng([5, int(j)]).random(n)
        spread[:, j] += between * (below + above)[place] - below[place]
        stretch[j] = deviation / float(spread[:, j].std())
        spread[:, j] *= stretch[j]
    return spread, stretch


def _leading(values: Array, most: int = AXES) -> Array:
    """(c, q): the columns themselves, or where they repeat each other or are more than `most` their leading axes."""
    deviation = values - values.mean(axis=0)
    variances, axes = np.linalg.eigh(deviation.T @ deviation / max(1, len(values)))
    varying = variances > 1e-10 * max(float(variances.max(initial=0.0)), np.finfo(np.float64).tiny)
    if varying.all() and len(variances) <= most:
        return np.eye(len(variances))
    return axes[:, varying][:, ::-1][:, :most]
