"""Stability: the share of resamples in which a cluster reappears.

Each resample has 80 % of the rows. The mixture is fitted again from a start that is computed again, with the selected
axes and number of components. A cluster reappears if a cluster of the resample has a Jaccard index of at least 0.75.
"""

from __future__ import annotations

import numpy as np

from imapce.clusters.axes import Sample
from imapce.clusters.covariates import clusters_of_components
from imapce.clusters.mixture import fit_mixtures, posteriors
from imapce.clusters.selection import Selection, Starts, leading_points
from imapce.common.arrays import Array, Codes, Mask
from imapce.common.work import UNWATCHED, Tell


def stability_of(
    sample: Sample, found: Selection, labels: Codes, *, is_fixed: bool, progress: Tell = UNWATCHED.tell
) -> Array:
    """Return the stability (c,) of the clusters `labels` (m,); confounded ones are merged unless k `is_fixed`."""
    settings, m, counts = sample.settings, len(labels), np.zeros(int(labels.max()) + 1)
    rows = sample.coordinates(found.n_axes)
    points = leading_points(sample.points, rows, found.n_axes)
    for number in range(settings.resamples):
        progress("computing the stability of clusters", number / settings.resamples)
        resample = np.random.default_rng([6, number]).permutation(m)[: round(settings.resample_share * m)]
        starts = Starts(points[resample], settings, found.two_starts)(found.n_components)[0]
        everything = np.ones((len(starts), len(resample)), dtype=bool)
        resp, density = posteriors(fit_mixtures(rows.take(resample), starts, everything, settings)[1])
        best = resp[density.mean(axis=1).argmax()]
        after = clusters_of_components(best, sample, resample, is_fixed=is_fixed)[best.argmax(axis=1)]
        counts += reappears(labels[resample], after, len(counts), settings.same_cluster)
    return counts / settings.resamples


def reappears(before: Codes, after: Codes, n_clusters: int, threshold: float = 0.75) -> Mask:
    """Return whether each cluster (c,) of the labels `before` (n,) is found in the labels `after`."""
    groups = np.unique(after, return_inverse=True)[1]
    both = np.zeros((n_clusters, int(groups.max()) + 1))
    np.add.at(both, (before, groups), 1)
    either = both.sum(axis=1, keepdims=True) + both.sum(axis=0) - both
    return np.asarray((both / np.maximum(either, 1)).max(axis=1) >= threshold)
