"""Accepted clusters looked at once more, together and in all directions: which are one, which rows belong to them.

Steps take clusters one by one, by hand or in views, and what is accepted stays as it was seen. At the end all of them
can be compared: two without a valley between them are one (`merging`), and a row left over belongs to a cluster where

    P(c | z) ≥ SURE,    N(z; m_c, S_c) ≥ the density that all but a share OUTERMOST of the cluster's own rows have

that is where no other cluster explains it and it lies no farther out than the cluster's own rows do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.columns import Cells
from imapce.clusters.mixture import BLOCK, mixture_of, sphering
from imapce.clusters.space import Space
from imapce.clusters.valleys import merge_groups
from imapce.common.threads import one_thread
from imapce.common.watch import UNWATCHED, Watch
from imapce.exploration.clustering import OUTLIER
from imapce.rows.base import Rows

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Mask = NDArray[np.bool_]

SURE, OUTERMOST = 0.95, 0.05
FEWEST_COMPARED = 50


def consolidated(
    space: Space, labels: Labels, rows: Rows, *, left: Mask, watch: Watch = UNWATCHED
) -> tuple[Labels, Labels]:
    """The group 0, 1, ... of every cluster (k,) of labels (n,), and the group of every row `left` (n,) that has one.

    >>> from imapce.priors.problem import pose
    >>> from imapce.rows.open import open_rows
    >>> from imapce.tables.reader import Reader
    >>> rng = np.random.default_rng(0)
    >>> group = np.arange(160) % 2
    >>> reader, matrix = Reader.learn(rng.standard_normal((160, 3)) + 9 * group[:, None])
    >>> rows, everybody = open_rows(matrix), np.ones(160, dtype=bool)
    >>> labels = np.arange(160) % 4
    >>> labels[-20:] = -1
    >>> space = Space.of(pose(rows, [], reader, n_components=2), everybody)
    >>> groups, given = consolidated(space, labels, rows, left=labels < 0)
    >>> groups.tolist(), bool(np.all((given == group)[given >= 0]))
    ([0, 1, 0, 1], True)
    """
    n_clusters = int(labels.max()) + 1
    with one_thread():
        order = space.order_of(labels >= 0, rows)
        chosen = np.concatenate(
            [_some(order[labels[order] == c], space.settings.rows // n_clusters) for c in range(n_clusters)]
        )
        taken = np.zeros(len(labels), dtype=bool)
        taken[chosen] = True
        points = space.points_of(taken, rows)[chosen.argsort().argsort()]
        to_axes = sphering(points)
        points = points @ to_axes
        found = merge_groups(points, labels[chosen], watch=watch)
        groups = np.array([found[np.argmax(labels[chosen] == c)] for c in range(n_clusters)])
        # A group is known by the first of its clusters.
        _, firsts = np.unique(groups, return_index=True)
        groups = np.argsort(np.argsort(firsts))[groups]
        given = np.full(len(labels), OUTLIER)
        if left.any():
            watch.tell("giving the rows left to the clusters")
            sizes = np.bincount(groups[labels[labels >= 0]]).astype(np.float64)
            given[left] = _belonging(points, groups[labels[chosen]], space.points_of(left, rows) @ to_axes, sizes)
    return groups, given


def _some(rows: Labels, most: int) -> Labels:
    """At most so many of the rows, and at least FEWEST_COMPARED where there are, always the same."""
    most = max(most, FEWEST_COMPARED)
    return rows if len(rows) <= most else np.random.default_rng(0).choice(rows, most, replace=False)


def _belonging(points: Array, groups: Labels, others: Array, sizes: Array) -> Labels:
    """The group of each of the `others` (m, q) that belongs to one, OUTLIER for the rest."""
    shares = np.eye(len(sizes))[groups]
    mixture = mixture_of(Cells.of(points), shares, float(max(1, points.shape[1])))
    # Of large clusters some rows were compared, and their share in those is not their share.
    shift = np.log(sizes / sizes.sum()) - np.log(mixture.weights)
    own = mixture.log_joint(Cells.of(points))[np.arange(len(points)), groups]
    edge = np.array([np.quantile(own[groups == c], OUTERMOST) for c in range(len(sizes))])
    best = np.full(len(others), OUTLIER)
    for first in range(0, len(others), BLOCK):
        logs = mixture.log_joint(Cells.of(others[first : first + BLOCK]))
        within = logs >= edge
        logs = logs + shift
        top = logs.argmax(axis=1)
        share = 1 / np.exp(logs - logs.max(axis=1, keepdims=True)).sum(axis=1)
        clear = (share >= SURE) & within[np.arange(len(top)), top]
        best[first : first + BLOCK] = np.where(clear, top, OUTLIER)
    return best
