"""One view of all clusters together: of the views of the first look the one in which they are seen best.

The rule is that by which any view is chosen (`choice/scores.py`), with the clusters that were taken in the place of
those that were found; a cluster alone is told from the other rows to explore. Rows in none count for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from imapce.choice.scores import ViewScorer, best_view
from imapce.clusters.axes import draw_sample
from imapce.common.arrays import Codes, Mask
from imapce.exploration.clustering import number_clusters
from imapce.exploration.steps import View, place_rows
from imapce.priors.problem import Problem
from imapce.rows.base import Rows


def overview_of(views: Sequence[View], rows: Rows, problem: Problem, at_start: Mask, labels: Codes) -> View:
    """The view, of those given, in which the clusters `labels` (n,) are seen best, with all rows placed in it.

    `at_start` (n,) are the rows that were to explore at the start, and the problem is theirs.
    """
    sample = draw_sample(problem, at_start)
    clusters = labels[sample.positions]
    if len(np.unique(clusters[clusters >= 0])) == 1:
        clusters = (clusters >= 0).astype(np.intp)
    frames = np.concatenate([view.optimum.V for view in views], axis=1)
    scorer = ViewScorer(sample.project(problem.Z, frames), sample, clusters)
    scores = [scorer.score(W) for W in np.split(np.eye(frames.shape[1]), len(views), axis=1)]
    best = best_view(scores)
    accuracy, preservation = scores[best].cluster_accuracy, scores[best].computed_preservation
    optimum = replace(views[best].optimum, seen=accuracy, kept=preservation)
    # Somebody may have taken a gross outlier.
    view = replace(views[best], optimum=optimum, set_aside=views[best].set_aside & (labels < 0))
    view = replace(view, coordinates=place_rows(rows, view))
    inside = view.clustered
    found = number_clusters(labels[inside], view.embedding[inside], 1, sampled=int(inside.sum()), as_they_are=True)
    return replace(view, found=replace(found, most_distinct=()))
