"""What the known explains of the rows, given their clusters: x = m_c + Bᵀl + e,  e ~ N(0, S_c).

What is known has an effect on the rows, B, and what is left is rows less that effect, X° = X − LB. Clusters and effect
take turns, begun with all that the known explains alone:

    B = regression of X on L      →  clusters of X − LB, their number by rows left out
    B = regression of X on [shares of the clusters, L]  →  one step of EM in X − LB  →  …  until X° rests

What clusters explain better is given back to them: of two runs that hold one cell type each, the difference of the runs
is that of the types. On twelve stories (`experiments known`, development tables) views show the other label with an
accuracy of 15 neighbours of 0.85.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from imapce.clusters.mixture import Choice, choose, fit_mixture
from imapce.clusters.settings import SETTINGS, Settings
from imapce.clusters.space import Space, effect_of
from imapce.clusters.trees import sphered, sphering
from imapce.clusters.valleys import DRAWS, merged
from imapce.common.watch import UNWATCHED, Watch
from imapce.priors.effect import Effect
from imapce.priors.problem import Problem
from imapce.rows.base import Moments
from imapce.rows.standardized import StandardizedRows

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]

# How often the number of clusters is asked for. Asked twice, the clusters of twelve stories have an NMI of 0.62 with
# the other label, once 0.60 (development tables).
CHOICES = 2
TURNS = 10
# Mean change of X°, in its spread, below which it rests.
RESTED = 1e-3
# Classes of the known up to which clusters are to hold them together, and the share from which a cluster holds one.
MOST_CLASSES, HOLDS = 20, 0.1
# Rows that B is learned from, a sample of more: a class of 1 % of them has its mean to 0.07 standard deviations.
LEARNED_ROWS = 20_000


@dataclass(frozen=True)
class Asked:
    """What is asked of clusters: the share of the best gain that their mixture is to reach, or so many of them."""

    share: float = SETTINGS.share
    n_clusters: int | None = None
    settings: Settings = SETTINGS

    def choose(self, space: Space, watch: Watch) -> Choice:
        """The mixture of the rows of a space."""
        return choose(space.cells, space.points, watch, settings=self.settings, share=self.share, size=self.n_clusters)


ASKED = Asked()


def groups_of(
    space: Space,
    labels: Labels,
    asked: Asked = ASKED,
    *,
    rows: Mask | None = None,
    draws: int = DRAWS,
    watch: Watch = UNWATCHED,
) -> Labels:
    """Clusters 0, 1, ... made of components (m,) of all rows of a space, or of some: merged where no valley is.

    Between levels of categories there always is one, so there components are clusters; so they are where their number
    was asked for.
    """
    if space.columns.n_categories or asked.n_clusters is not None:
        return np.unique(labels, return_inverse=True)[1]
    chosen = slice(None) if rows is None else rows
    points = space.points[chosen]
    found = merged(sphered(points), labels, draws=draws, settings=asked.settings, watch=watch)
    return held_together(found, space.known[chosen], (points, (space.values @ space.turn)[chosen]))


def held_together(labels: Labels, known: Array, views: Sequence[Array]) -> Labels:
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
    while 1 < n_classes <= MOST_CLASSES and labels.any():
        k = int(labels.max()) + 1
        counts = np.zeros((k, n_classes))
        np.add.at(counts, (labels, classes), 1.0)
        holds = (counts >= HOLDS * counts.sum(axis=1, keepdims=True)).astype(np.float64)
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


def explained(space: Space, asked: Asked = ASKED, watch: Watch = UNWATCHED) -> tuple[Space, Choice]:
    """The mixture of the rows given the known, and the space of them less its effect.

    >>> from imapce.priors.kinds import Labels
    >>> from imapce.priors.problem import pose
    >>> from imapce.rows.open import open_rows
    >>> from imapce.tables.reader import Reader
    >>> rng, kind, run = np.random.default_rng(0), np.arange(300) % 2, np.arange(300) // 150
    >>> X = rng.standard_normal((300, 3)) + 9 * np.column_stack([kind, kind, run])
    >>> reader, matrix = Reader.learn(X)
    >>> problem = pose(open_rows(matrix), [Labels(run)], reader, n_components=2, explain=True)
    >>> space, found = explained(Space.of(problem, np.ones(300, dtype=bool)))
    >>> [np.unique(kind[space.places][found.labels == c]).tolist() for c in (0, 1)]
    [[0], [1]]
    """
    found = asked.choose(space, watch)
    if not space.known.shape[1]:
        return space, found
    for number in range(CHOICES):
        # What was taken too much blurs the clusters: given back, their number is asked for once more.
        found = asked.choose(space, watch) if number else found
        if len(found.mixture.weights) > 1:
            space, found = _in_turns(space, found, asked, watch)
    return space, found


def _in_turns(space: Space, found: Choice, asked: Asked, watch: Watch) -> tuple[Space, Choice]:
    """Clusters and effect, each given the other, until X° rests."""
    mixture, shares = found.mixture, found.mixture.shares(space.cells)
    for _ in range(TURNS):
        watch.tell("explaining the known given the clusters")
        labels = shares.argmax(axis=1)
        final = groups_of(space, labels, asked, draws=1, watch=watch)
        before, space = space.points, space.given(shares @ clusters_of_components(labels, final, shares.shape[1]))
        if np.abs(space.points - before).mean() <= RESTED * before.std():
            break
        mixture, shares = fit_mixture(space.cells, shares, kappa=found.kappa, iterations=1)
    # One more round, so that the mixture is that of the rows as they rest.
    mixture, shares = fit_mixture(space.cells, shares, kappa=found.kappa, iterations=1)
    return space, replace(found, mixture=mixture, labels=shares.argmax(axis=1), start=shares)


def clusters_of_components(labels: Labels, final: Labels, n_components: int) -> Array:
    """(k, c): 1 where a component, by the `labels` of rows (m,), belongs to a cluster, by their `final` ones.

    >>> clusters_of_components(np.array([0, 1, 2]), np.array([0, 0, 1]), 3).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    belongs = np.zeros((n_components, int(final.max()) + 1))
    for component in np.unique(labels):
        belongs[component, np.bincount(final[labels == component]).argmax()] = 1.0
    # A component that no row has most of belongs to none, and its shares are too small to matter.
    return belongs[:, belongs.any(axis=0)]


def effect_on_columns(problem: Problem, space: Space, found: Choice, final: Labels) -> Effect:
    """B on every column of the table, from all rows to explore or a sample of them, given the clusters `final` (m,) of
    the rows of `space`, each of some components of the mixture `found`.
    """
    told = problem.told
    assert told is not None
    Z, d = told.Z, told.n_features
    rows = Z.content_mask(LEARNED_ROWS)
    chosen = Z.rows.unfolded.subset(rows)
    shares = found.mixture.shares(space.reading().cells(chosen))
    shares = shares @ clusters_of_components(found.labels, final, shares.shape[1])
    known = told.rest.known(rows)
    # Σ l zᵀ of the rows asked: the one thing about all columns that B needs.

    def products(values: Array) -> Array:
        total = chosen.cross(values) - np.outer(Z.mean - Z.rows.origin, values.sum(axis=0))
        inverse = np.divide(1.0, Z.scale, out=np.zeros_like(Z.scale), where=Z.scale > 0)
        return (inverse[:, None] * total)[:d].T

    squares = len(known) * _squares(chosen.moments(), Z)[:d]
    B = effect_of(known, products, squares, shares)
    # Erased columns and labels bind the axes of views; clusters are free of all they explain. So is a column that the
    # known tells wholly, such as itself, whatever the clusters are.
    alone = effect_of(known, products, squares, whole=True)
    B = np.where(told.erased[:, None] | ~told.rest.informative, alone, B)
    inverse = np.divide(1.0, Z.scale[told.places], out=np.zeros(len(B)), where=Z.scale[told.places] > 0)
    return told.effect(inverse[:, None] * B * Z.scale[:d])


def _squares(moments: Moments, Z: StandardizedRows) -> Array:
    """The mean squares of some rows in the standardisation of all."""
    away = moments.mean - (Z.mean - Z.rows.origin)
    scale = np.where(Z.scale > 0, Z.scale, np.inf)
    return (moments.variance + away**2) / scale**2
