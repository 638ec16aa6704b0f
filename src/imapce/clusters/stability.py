"""How often a cluster comes back where a fifth of the rows is left out.

The rows left out are the folds by which the size of a mixture is chosen, of two draws: ten times 80 % of the rows. The
mixture is learned anew from where it began, and its components are merged anew. A cluster came back where of the rows
that are in it or in one of the groups found more than half are in both (Jaccard's index above ½).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.given import groups_of
from imapce.clusters.mixture import FOLD_ITERATIONS, FOLDS, Choice, fit_mixture, folds_of
from imapce.clusters.space import Space
from imapce.common.watch import UNWATCHED, Watch

Labels = NDArray[np.intp]

DRAWS = 2


def stability_of(space: Space, found: Choice, final: Labels, watch: Watch = UNWATCHED) -> dict[int, float]:
    """The share of the draws in which each of the clusters `final` (m,) of the mixture `found` came back."""
    back = np.zeros(int(final.max()) + 1)
    if found.start is None or len(back) < 2:
        return {}
    for draw in range(DRAWS):
        fold = folds_of(len(final), FOLDS, 1 + draw)
        for f in range(FOLDS):
            watch.tell("asking whether clusters come back", (draw * FOLDS + f) / (DRAWS * FOLDS))
            drawn = fold != f
            shares = fit_mixture(
                space.cells.some(drawn), found.start[drawn], kappa=found.kappa, iterations=FOLD_ITERATIONS
            )[1]
            labels = groups_of(space, shares.argmax(axis=1), rows=drawn, draws=1)
            back += came_back(final[drawn], labels, len(back))
    return {cluster: float(share) for cluster, share in enumerate(back / (DRAWS * FOLDS))}


def came_back(before: Labels, after: Labels, n_clusters: int) -> NDArray[np.bool_]:
    """(k,): whether a group of the labels `after` (n,) is each cluster of those `before`.

    >>> came_back(np.array([0, 0, 0, 1, 1, 1]), np.array([5, 5, 5, 5, 7, 7]), 2)
    array([ True,  True])
    """
    groups = np.unique(after, return_inverse=True)[1]
    both = np.zeros((n_clusters, int(groups.max()) + 1))
    np.add.at(both, (before, groups), 1)
    either = both.sum(axis=1, keepdims=True) + both.sum(axis=0) - both
    return np.asarray((both / np.maximum(either, 1)).max(axis=1) > 0.5)
