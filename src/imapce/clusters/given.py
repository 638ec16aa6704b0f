"""The clusters of a sample of the rows given the known, and what the known explains of the rows given these clusters:

    x = m_c + Bᵀl + e,  e ~ N(0, S_c)

What is known has an effect on the rows, B, and what is left is rows less that effect, X° = X − LB. Clusters and effect
take turns, begun with all that the known explains alone:

    B = regression of X on L      →  clusters of X − LB, their number by rows left out
    B = regression of X on [shares of the clusters, L]  →  one step of EM in X − LB  →  …  until X° rests

What clusters explain better is given back to them: of two runs that hold one cell type each, the difference of the runs
is that of the types. Twelve stories of it, on development tables, are in experiments/README.md (`experiments known`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import connected_components

from imapce.clusters.mixture import ChosenMixture, choose, component_of, fit_mixture, sphered, sphering
from imapce.clusters.space import Space, effect_of
from imapce.clusters.valleys import merge_groups
from imapce.common.arrays import Array, Codes, Mask
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.common.work import UNWATCHED, Watch, one_thread
from imapce.priors.effect import Effect
from imapce.priors.problem import Problem
from imapce.rows.base import Rows


@dataclass(frozen=True)
class Candidate:
    """The best clusters of a sample of the rows to explore, given the known, whether or not they are more than chance.

    `labels` (m,) are those of the rows of `space`, after components of the mixture `found` without a valley between
    them were made one; `effect` is what the known does to the rows given these clusters, None where none is known.
    """

    space: Space
    found: ChosenMixture
    labels: Codes
    effect: Effect | None

    def among(self, problem: Problem, unexplored: Mask, rows: Rows) -> Candidate:
        """The same clusters of the rows that are still to explore, those of a later problem: `unexplored` (n,) of all
        `rows`, which have the known labels beside them where there are some.
        """
        if problem.with_known is not None and self.effect is not None:
            problem = problem.given(self.effect)
        space = Space.of(problem, unexplored, self.space.settings)
        some = np.zeros(len(unexplored), dtype=bool)
        some[space.places] = True
        cells = self.space.reading().cells(rows.subset(some)).some(space.places.argsort().argsort())
        mixture, k = self.found.mixture, len(self.found.mixture.weights)
        components = component_of(mixture, cells, np.ones(k, dtype=bool))
        labels = clusters_of(self.found.labels, self.labels, k)[components]
        return replace(self, space=space, labels=np.unique(labels, return_inverse=True)[1])


def candidate_of(
    problem: Problem,
    unexplored: Mask,
    *,
    granularity: str = "auto",
    n_clusters: int | None = None,
    settings: ClusterSettings = SETTINGS.clusters,
    watch: Watch = UNWATCHED,
) -> Candidate:
    """The best clusters of the rows to explore of a problem: those `unexplored` (n,) of all rows.

    `granularity` asks for "coarser" or "finer" ones, `n_clusters` for so many.
    """
    settings = replace(settings, share=getattr(settings, "share" if granularity == "auto" else granularity))
    with one_thread():
        watch.tell("looking for clusters in all directions", 0.0)
        space = Space.of(problem, unexplored, settings)
        if problem.effect is None:
            space, found = explain(space, n_clusters, watch)
        else:
            found = choose(space.cells, space.points, watch, settings=settings, size=n_clusters)
        final = groups_of(space, found.labels, n_clusters, watch=watch)
        effect = problem.effect
        if effect is None and problem.with_known is not None:
            effect = effect_on_columns(problem, space, found, final)
    return Candidate(space, found, final, effect)


def groups_of(
    space: Space,
    labels: Codes,
    n_clusters: int | None = None,
    *,
    rows: Mask | None = None,
    draws: int | None = None,
    watch: Watch = UNWATCHED,
) -> Codes:
    """Clusters 0, 1, ... made of components (m,) of all rows of a space, or of some: merged where no valley is.

    Between levels of categories there always is one, so there components are clusters; so they are where their number
    was asked for.
    """
    if space.columns.n_categories or n_clusters is not None:
        return np.unique(labels, return_inverse=True)[1]
    chosen = slice(None) if rows is None else rows
    points = space.points[chosen]
    found = merge_groups(sphered(points), labels, draws=draws, settings=space.settings, watch=watch)
    return held_together(found, space.known[chosen], (points, (space.values @ space.turn)[chosen]), space.settings)


def held_together(
    labels: Codes, known: Array, views: Sequence[Array], settings: ClusterSettings = SETTINGS.clusters
) -> Codes:
    """Clusters 0, 1, ... after those of classes of the known (n, q) that no cluster has in common were made one.

    Given clusters of one class each, any effect of the classes explains the rows as well. What the known can explain is
    the known's, so some cluster is to hold the classes together: the two that are nearest to each other in all `views`
    of the rows (n, ·), less the effect of the known and with it. The two sexes of two species of crabs are four
    clusters; with the species known males of both hold these together.

    >>> rows, species = np.array([[0.0], [9.0], [0.1], [9.5]]), np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> held_together(np.arange(4), species, [rows])
    array([0, 1, 0, 2])
    """
    classes = np.unique(known.round(6), axis=0, return_inverse=True)[1].ravel()
    n_classes = int(classes.max(initial=0)) + 1
    while 1 < n_classes <= settings.most_classes and labels.any():
        k = int(labels.max()) + 1
        counts = np.zeros((k, n_classes))
        np.add.at(counts, (labels, classes), 1.0)
        holds = (counts >= settings.holds * counts.sum(axis=1, keepdims=True)).astype(np.float64)
        part = connected_components(holds @ holds.T)[1]
        if not part.any():
            break
        apart = np.zeros((k, k))
        for view in views:
            means = np.stack([view[labels == c].mean(axis=0) for c in range(k)])
            means = means @ sphering(view - means[labels])
            apart += np.sum((means[:, None] - means) ** 2, axis=2)
        apart[part[:, None] == part] = np.inf
        a, b = sorted(int(place) for place in np.unravel_index(apart.argmin(), apart.shape))
        labels = np.unique(np.where(labels == b, a, labels), return_inverse=True)[1]
    return labels


def explain(space: Space, n_clusters: int | None = None, watch: Watch = UNWATCHED) -> tuple[Space, ChosenMixture]:
    """The mixture of the rows given the known, and the space of them less its effect."""
    settings = space.settings
    found = choose(space.cells, space.points, watch, settings=settings, size=n_clusters)
    if not space.known.shape[1]:
        return space, found
    for number in range(settings.choices):
        # What was taken too much blurs the clusters: given back, their number is asked for once more.
        if number:
            found = choose(space.cells, space.points, watch, settings=settings, size=n_clusters)
        if len(found.mixture.weights) > 1:
            space, found = _take_turns(space, found, n_clusters, watch)
    return space, found


def _take_turns(
    space: Space, found: ChosenMixture, n_clusters: int | None, watch: Watch
) -> tuple[Space, ChosenMixture]:
    """Clusters and effect, each given the other, until X° rests."""
    settings, shares = space.settings, found.mixture.shares(space.cells)
    for _ in range(settings.few_iterations):
        watch.tell("explaining the known given the clusters")
        labels = shares.argmax(axis=1)
        final = groups_of(space, labels, n_clusters, draws=1, watch=watch)
        before, space = space.points, space.given(_shares_of_clusters(shares, labels, final))
        if np.abs(space.points - before).mean() <= settings.rested * before.std():
            break
        _, shares = fit_mixture(space.cells, shares, found.prior_rows, iterations=1, settings=settings)
    # One more round, so that the mixture is that of the rows as they rest.
    mixture, shares = fit_mixture(space.cells, shares, found.prior_rows, iterations=1, settings=settings)
    return space, replace(found, mixture=mixture, labels=shares.argmax(axis=1), start=shares)


def clusters_of(labels: Codes, final: Codes, n_components: int) -> Codes:
    """(k,): the cluster of every component, by the `labels` of rows (m,) and their `final` clusters; -1 for none.

    >>> clusters_of(np.array([0, 1, 1]), np.array([0, 0, 0]), 3)
    array([ 0,  0, -1])
    """
    clusters = np.full(n_components, -1)
    for component in np.unique(labels):
        clusters[component] = np.bincount(final[labels == component]).argmax()
    return clusters


def _shares_of_clusters(shares: Array, labels: Codes, final: Codes) -> Array:
    """(m, c): the shares of clusters in rows, by those of components (m, k); see `clusters_of`."""
    belongs = clusters_of(labels, final, shares.shape[1])[:, None] == np.arange(int(final.max()) + 1)
    # A component that no row has most of belongs to none, and its shares are too small to matter.
    return shares @ belongs[:, belongs.any(axis=0)].astype(np.float64)


def effect_on_columns(problem: Problem, space: Space, found: ChosenMixture, final: Codes) -> Effect:
    """B on every column of the table, from all rows to explore or a sample of them, given the clusters `final` (m,) of
    the rows of `space`, each of some components of the mixture `found`.
    """
    with_known = problem.with_known
    assert with_known is not None
    Z, d = with_known.Z, with_known.n_features
    rows = Z.content_mask(space.settings.many_rows)
    chosen = Z.rows.unfolded.subset(rows)
    shares = found.mixture.shares(space.reading().cells(chosen))
    shares = _shares_of_clusters(shares, found.labels, final)
    known = with_known.rest.known(rows)
    # Σ l zᵀ of the rows asked: the one thing about all columns that B needs.

    def products(values: Array) -> Array:
        total = chosen.cross(values) - np.outer(Z.mean - Z.rows.origin, values.sum(axis=0))
        inverse = np.divide(1.0, Z.scale, out=np.zeros_like(Z.scale), where=Z.scale > 0)
        return (inverse[:, None] * total)[:d].T

    # The mean squares of these rows in the standardisation of all.
    moments = chosen.moments()
    away = moments.mean - (Z.mean - Z.rows.origin)
    squares = len(known) * ((moments.variance + away**2) / np.where(Z.scale > 0, Z.scale, np.inf) ** 2)[:d]
    B = effect_of(known, products, squares, shares, settings=space.settings)
    # Erased columns and labels bind the axes of views; clusters are free of all they explain. So is a column that the
    # known tells wholly, such as itself, whatever the clusters are.
    alone = effect_of(known, products, squares, whole=True)
    B = np.where(with_known.erased[:, None] | ~with_known.rest.informative, alone, B)
    inverse = np.divide(1.0, Z.scale[with_known.places], out=np.zeros(len(B)), where=Z.scale[with_known.places] > 0)
    return with_known.effect(inverse[:, None] * B * Z.scale[:d])
