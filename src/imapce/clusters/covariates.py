"""The effect of covariates, estimated given the clusters.

    x_i = m_c(i) + Bᵀ l_i + e_i          l_i covariates (columns and labels given as prior), c(i) the cluster of row i
    B = regression of X on [r, L]        r probabilities of the clusters; shrunk towards the regression on L without r

Estimated without clusters, the effect would remove differences between clusters: of two runs that contain one cell
type each, the difference between the types. Clusters and effect are estimated in turns from several starts (none or
all of the effect estimated without clusters); the start with the best penalized likelihood is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from imapce.clusters.axes import CoordinateMap, Sample, leading_axes, sphering
from imapce.clusters.merging import merge_confounded_clusters
from imapce.clusters.mixture import fit_mixtures, posteriors
from imapce.clusters.selection import Selection, folds, held_out, select_mixture
from imapce.common.arrays import Array, Codes
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.common.work import UNWATCHED, Tell
from imapce.priors.effect import Effect
from imapce.priors.problem import Problem

# Shares of the effect estimated without clusters at which the estimation starts.
STARTS = (1.0, 0.0)


def estimate_effect(
    covariates: Array,
    products: Callable[[Array], Array],
    resp: Array | None = None,
    settings: ClusterSettings = SETTINGS.clusters,
) -> Array:
    """Return B (p, c) of values (m, c) ≈ resp·m + covariates·B, by least squares; without `resp`, of one cluster.

    `products(D)` is Dᵀ·values for D (m, r). The covariates enter as an orthonormal basis of their span, so the result
    does not depend on their encoding. What clusters and covariates explain equally well is ascribed to the covariates.
    """
    to_basis = sphering(covariates)
    L = covariates @ to_basis
    effect = np.zeros((L.shape[1], 1))
    steps = [(np.ones((len(L), 1)), 0.0)] if resp is None else [(np.ones((len(L), 1)), 0.0), (resp, settings.leaning)]
    for groups, ridge in steps:
        design = np.column_stack([groups, L])
        prior = np.append(np.full(groups.shape[1], 1e-6), np.full(L.shape[1], ridge))
        right = products(design) - design.T @ L @ effect
        effect = effect + np.linalg.solve(design.T @ design + np.diag(prior), right)[groups.shape[1] :]
    return np.asarray(to_basis @ effect)


def cluster_probabilities(resp: Array, clusters: Codes) -> Array:
    """Return the probabilities (m, c) of clusters from those of their components (m, k)."""
    return resp @ (clusters[:, None] == np.arange(int(clusters.max()) + 1)).astype(np.float64)


def clusters_of_components(resp: Array, sample: Sample, rows: Codes | slice, *, is_fixed: bool) -> Codes:
    """Return the cluster (k,) of each component by its probabilities (m, k) for some rows of a sample, -1 without rows.

    Each component is a cluster, unless covariates cannot be separated from it and the number of clusters `is_fixed`.
    """
    nearest, clusters = resp.argmax(axis=1), np.full(resp.shape[1], -1)
    labels = np.unique(nearest, return_inverse=True)[1]
    if sample.covariates.shape[1] and not is_fixed:
        views = [sample.points[rows], (sample.values @ sample.leading)[rows]]
        labels = merge_confounded_clusters(labels, sample.covariates[rows], views, sample.settings)
    clusters[nearest] = labels
    return clusters


def adjust_sample(
    sample: Sample, n_components: int | None = None, progress: Tell = UNWATCHED.tell
) -> tuple[Sample, Selection]:
    """Return the sample minus the effect of the covariates given its clusters, and its mixture.

    The start with the best held-out likelihood of the original rows, penalized by the volume of the residuals, wins.
    """
    full = estimate_effect(sample.covariates, lambda D: D.T @ sample.values)
    counts, basis, adjusted = sample.axis_counts, leading_axes(sample.values, sample.axis_counts[0]), []
    for fraction in STARTS:
        progress("estimating the effect of the prior", None)
        start = replace(sample, effect=fraction * full)
        found = select_mixture(start.coordinates, start.points, counts, sample.settings, n_components=n_components)
        # The number of axes is selected once.
        counts = [found.n_axes]
        adjusted.append(_take_turns(start, found, full, basis, is_fixed=n_components is not None))
    sample = max(adjusted, key=lambda pair: pair[0])[1]
    return sample, select_mixture(sample.coordinates, sample.points, counts, sample.settings, n_components=n_components)


def _take_turns(sample: Sample, found: Selection, full: Array, basis: Array, *, is_fixed: bool) -> tuple[float, Sample]:
    """Estimate clusters and effect in turns; return the penalized likelihood and the adjusted sample."""
    settings, q, resp, values = sample.settings, found.n_axes, found.resp, sample.values
    everything, fold = np.ones((1, len(resp)), dtype=bool), folds(len(resp), settings.folds, settings.seed)
    for _ in range(settings.turns):
        given = cluster_probabilities(resp, clusters_of_components(resp, sample, slice(None), is_fixed=is_fixed))
        sample = replace(sample, effect=estimate_effect(sample.covariates, lambda D: D.T @ values, given, settings))
        logs = fit_mixtures(sample.coordinates(q), resp[None], everything, settings, steps=2)[1]
        resp = posteriors(logs)[0][0]
    single = held_out(sample.coordinates(q), np.ones((1, len(resp), 1)), fold, settings)[0]
    gain = float((held_out(sample.coordinates(q), resp[None], fold, settings)[0] - single).mean())
    if gain <= 0:
        # Without clusters the effect is that estimated without clusters.
        sample = replace(sample, effect=full)
    deviation = (sample.residuals - sample.residuals.mean(axis=0)) @ basis
    variances = np.linalg.eigvalsh(deviation.T @ deviation / len(deviation))
    return gain - 0.5 * float(np.log(np.maximum(variances, 1e-3 * variances.max(initial=0.0))).sum()), sample


def effect_on_columns(problem: Problem, sample: Sample, found: Selection, clusters: Codes) -> Effect:
    """Estimate B for each column from at most `many_rows` rows, given the clusters (k,) of the components."""
    with_known = problem.with_known
    assert with_known is not None
    Z, d = with_known.Z, with_known.n_features
    rows = Z.content_mask(sample.settings.many_rows)
    chosen = Z.rows.unfolded.subset(rows)
    resp = posteriors(found.mixture.score_rows(CoordinateMap.from_sample(sample, found.n_axes)(chosen))[0])[0]
    covariates = with_known.rest.known(rows)
    inverse = np.divide(1.0, Z.scale, out=np.zeros_like(Z.scale), where=Z.scale > 0)

    def products(D: Array) -> Array:
        total = chosen.cross(D) - np.outer(Z.mean - Z.rows.origin, D.sum(axis=0))
        return (inverse[:, None] * total)[:d].T

    B = estimate_effect(covariates, products, cluster_probabilities(resp, clusters), sample.settings)
    # Erased columns and labels constrain the axes of views; clusters are adjusted for their whole effect. So is a
    # column that the covariates determine, such as a covariate itself, whatever the clusters are.
    without_clusters = estimate_effect(covariates, products)
    B = np.where(with_known.erased[:, None] | ~with_known.rest.informative, without_clusters, B)
    return with_known.effect(inverse[with_known.places][:, None] * B * Z.scale[:d])
