"""The effect of covariates, estimated given the clusters.

    x_i = m_c(i) + Bᵀ l_i + e_i          l_i covariates (columns and labels given as prior), c(i) the cluster of row i
    B = regression of X on [r, L]        r the probabilities of the clusters; shrunk towards the regression on L alone

Estimated without clusters, the effect would remove differences between clusters: of two runs that contain one cell
type each, the difference between the types. Clusters and effect are estimated in turns from several starts (none or
all of the effect estimated without clusters); the start with the best penalized likelihood is used.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from imapce.clusters.axes import CoordinateMap, Sample, leading_axes
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
    m = len(covariates)
    variances, axes = np.linalg.eigh(covariates.T @ covariates / m)
    varying = variances > 1e-10 * max(float(variances[-1]), np.finfo(np.float64).tiny)
    to_basis = axes[:, varying] / np.sqrt(variances[varying])
    L = covariates @ to_basis

    def regression(design: Array, prior_rows: float, right: Array) -> Array:
        n_others = design.shape[1] - L.shape[1]
        prior = np.append(np.full(n_others, 1e-6), np.full(L.shape[1], prior_rows))
        return np.asarray(np.linalg.solve(design.T @ design + np.diag(prior), right)[n_others:])

    design = np.column_stack([np.ones(m), L])
    alone = regression(design, 0.0, products(design))
    if resp is None:
        return np.asarray(to_basis @ alone)
    design = np.column_stack([resp, L])
    return np.asarray(
        to_basis @ (alone + regression(design, settings.leaning, products(design) - design.T @ L @ alone))
    )


def cluster_probabilities(resp: Array, labels: Codes) -> Array:
    """Return probabilities (m, c) of clusters by those of components (m, k) and the cluster of each component (k,)."""
    member = labels[:, None] == np.arange(int(labels.max()) + 1)
    return resp @ member.astype(np.float64)


def merged_labels(resp: Array, sample: Sample, rows: Codes | slice, *, is_fixed: bool) -> Codes:
    """Return the cluster 0, 1, ... of some rows of a sample from the probabilities (m, k) of their components."""
    labels = np.unique(resp.argmax(axis=1), return_inverse=True)[1]
    if is_fixed or not sample.covariates.shape[1]:
        return labels
    views = [sample.points[rows], (sample.values @ sample.leading)[rows]]
    return merge_confounded_clusters(labels, sample.covariates[rows], views, sample.settings)


def cluster_of_components(resp: Array, labels: Codes) -> Codes:
    """Return the cluster (k,) of each component by the labels of its rows, -1 without rows."""
    clusters = np.full(resp.shape[1], -1)
    clusters[resp.argmax(axis=1)] = labels
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
        start = sample.with_effect(fraction * full)
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
        clusters = cluster_of_components(resp, merged_labels(resp, sample, slice(None), is_fixed=is_fixed))
        given = cluster_probabilities(resp, clusters)
        sample = sample.with_effect(estimate_effect(sample.covariates, lambda D: D.T @ values, given, settings))
        logs = fit_mixtures(sample.coordinates(q), resp[None], everything, settings, steps=2)[1]
        resp = posteriors(logs)[0][0]
    single = held_out(sample.coordinates(q), np.ones((1, len(resp), 1)), fold, settings)[0]
    gain = float((held_out(sample.coordinates(q), resp[None], fold, settings)[0] - single).mean())
    if gain <= 0:
        # Without clusters the effect is that estimated without clusters.
        sample = sample.with_effect(full)
    deviation = (sample.residuals - sample.residuals.mean(axis=0)) @ basis
    variances = np.linalg.eigvalsh(deviation.T @ deviation / len(deviation))
    return gain - 0.5 * float(np.log(np.maximum(variances, 1e-3 * variances.max(initial=0.0))).sum()), sample


def effect_on_columns(problem: Problem, sample: Sample, found: Selection, clusters: Codes) -> Effect:
    """Estimate B for every column from at most `many_rows` rows, given the clusters (k,) of the components."""
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
    # Erased columns and labels constrain the axes of views; clusters are adjusted for all they explain. So is a
    # column that the covariates determine, such as a covariate itself, whatever the clusters are.
    alone = estimate_effect(covariates, products)
    B = np.where(with_known.erased[:, None] | ~with_known.rest.informative, alone, B)
    return with_known.effect(inverse[with_known.places][:, None] * B * Z.scale[:d])
