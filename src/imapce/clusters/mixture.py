"""A mixture of t components times multinomials, fitted by EM; many mixtures of one size at once.

    f(z, v) = Σ_c π_c · t_ν(z; m_c, S_c) · Π_h N(x_h; a_ch, s_ch) · Π_b p_cb(v_b)

    S_c = (n_c·Ŝ_c + r·q·S̄)/(n_c + r·q) + ridge,    S̄ = Σ_c n_c·Ŝ_c / n

z are the numeric coordinates of a row, x_h its partial columns and v_b its level of category b; missing values are left
out. Each covariance is shrunk towards the pooled one with the weight of r rows per axis; levels are shrunk by one row
towards the levels of all rows. All components share the degrees of freedom ν (ECME; Liu and Rubin 1995).

An EM step is a sum over rows: with the features φ = (1, z, zzᵀ) of a row, all distances are one matrix product and all
scatters another. The log densities of partial columns and categories are linear in (1, x, x², v).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from imapce.clusters.axes import Coordinates
from imapce.common.arrays import Array, Codes, Mask
from imapce.common.records import Comparable
from imapce.common.settings import SETTINGS, ClusterSettings

# Degrees of freedom that are compared, after this step. Until then EM must not stop: two groups of 97 and 3 % gained
# .16 with the tails of one group, and .27 with estimated tails.
TAILS, TAIL_STEP = np.array([4, 6, 10, 20, 100.0]), 3
# Features of rows that are computed at once.
BLOCK = 8_000_000


@dataclass(frozen=True, eq=False)
class Mixture(Comparable):
    """b mixtures of k components; each array has the axes (b, k, ...), and `dof` is (b,).

    `means` (b, k, q) and `precisions` (b, k, q, q) of the numeric axes, `partial_means` and `partial_variances`
    (b, k, h), `level_probabilities` (b, k, L).
    """

    weights: Array
    means: Array
    precisions: Array
    dof: Array
    partial_means: Array
    partial_variances: Array
    level_probabilities: Array

    def log_joint(self, rows: Coordinates) -> tuple[Array, Array]:
        """Return ln π_c f_c (b, n, k) of the rows, and their squared Mahalanobis distances (b, n, k) to the means."""
        (b, k, q), m, P = self.means.shape, self.means, self.precisions

        def product(features: NDArray, weights: Array) -> Array:
            values = features @ weights.reshape(b * k, -1).T.astype(features.dtype)
            return values.reshape(len(rows), b, k).transpose(1, 0, 2)

        (i, j), Pm = _pairs(q), (P @ m[..., None])[..., 0]
        twice = np.where(i == j, 1.0, 2.0)
        parts = (Pm * m).sum(axis=-1, keepdims=True), -2 * Pm, P[..., i, j] * twice
        distances = np.maximum(product(rows.pairs, np.concatenate(parts, axis=-1)), 0.0)
        dof = self.dof[:, None]
        with np.errstate(divide="ignore"):
            constant = np.log(self.weights) + np.linalg.slogdet(P)[1] / 2
        constant += gammaln((dof + q) / 2) - gammaln(dof / 2) - q / 2 * np.log(np.pi * dof)
        logs = constant[:, None, :] - (dof[..., None] + q) / 2 * np.log1p(distances / dof[..., None])
        if rows.linear.shape[1]:
            a, v = self.partial_means, self.partial_variances
            normal = -0.5 * (a**2 / v + np.log(2 * np.pi * v)), a / v, -0.5 / v
            logs += product(rows.linear, np.concatenate([*normal, np.log(self.level_probabilities)], axis=-1))
        for members, norm in _level_norms(rows, self.level_probabilities):
            logs -= rows.levels[:, members].sum(axis=1)[:, None] * np.log(norm)
        return logs, distances

    def joined(self, other: Mixture) -> Mixture:
        """Return the components of two mixtures with the same degrees of freedom."""
        arrays = [(name, getattr(self, name), getattr(other, name)) for name in vars(self) if name != "dof"]
        return replace(self, **{name: np.concatenate([a, b], axis=1) for name, a, b in arrays})

    def score_rows(self, rows: Coordinates) -> tuple[Array, Array]:
        """Return ln π_c f_c (n, k) and the squared distance (n,) to the nearest component, for a batch of one."""
        parts = [self.log_joint(block) for block in rows.in_blocks(BLOCK)]
        return np.concatenate([logs[0] for logs, _ in parts]), np.concatenate([d[0].min(axis=1) for _, d in parts])


def posteriors(logs: Array) -> tuple[Array, Array]:
    """Return the probabilities (..., k) of the components and the log densities (...)."""
    top = logs.max(axis=-1, keepdims=True)
    resp = np.exp(logs - top)
    total = resp.sum(axis=-1, keepdims=True)
    return resp / total, (top + np.log(total))[..., 0]


def em_sums(rows: Coordinates, resp: Array, scale: Array | float, mixture: Mixture | None) -> dict[str, Array]:
    """Return the sums over rows that an M step needs, for weights `resp` (b, n, k) and t weights `scale` (b, n, k)."""
    b, n, k = resp.shape

    def sums(weights: Array, values: NDArray) -> Array:
        products = weights.transpose(0, 2, 1).reshape(b * k, n).astype(values.dtype) @ values
        return products.reshape(b, k, -1).astype(np.float64)

    total = {"sizes": resp.sum(axis=1), "scatter": sums(resp * scale, rows.pairs), "linear": sums(resp, rows.linear)}
    if rows.tilt is not None and mixture is not None:
        total["expected"] = np.empty_like(mixture.level_probabilities)
        for members, norm in _level_norms(rows, mixture.level_probabilities):
            weights = resp * rows.levels[:, members].sum(axis=1)[:, None] / norm
            total["expected"][..., members] = sums(weights, rows.tilt[:, members])
    return total


def m_step(sums: dict[str, Array], dof: Array, blocks: Codes, settings: ClusterSettings) -> Mixture:
    """Return the mixtures with the sums of `em_sums`."""
    sizes, scatter = sums["sizes"] + 1e-9, sums["scatter"]
    q = int((np.sqrt(8 * scatter.shape[2] + 1) - 3) / 2)
    i, j = _pairs(q)
    n = sizes.sum(axis=1)[:, None]
    weight = scatter[..., :1] + 1e-9
    means, C = scatter[..., 1 : q + 1] / weight, np.empty((*sizes.shape, q, q))
    C[..., i, j] = C[..., j, i] = scatter[..., q + 1 :]
    C -= weight[..., None] * means[..., :, None] * means[..., None, :]
    unit, prior = settings.ridge * np.eye(q), settings.prior_rows * q
    pooled = C.sum(axis=1, keepdims=True) / n[..., None, None] + unit
    V = (C + sizes[..., None, None] * unit + prior * pooled) / (sizes + prior)[..., None, None]
    h = (sums["linear"].shape[2] - len(blocks)) // 3
    count, first, second, counts = np.split(sums["linear"], [h, 2 * h, 3 * h], axis=2)
    of_all = [part.sum(axis=1, keepdims=True) for part in (count, first, second)]
    n_all = np.maximum(of_all[0], 1)
    partial_means = (first + of_all[1] / n_all) / (count + 1)
    within = second - 2 * partial_means * first + partial_means**2 * count
    variances = (within + within.sum(axis=1, keepdims=True) / n_all) / (count + 1) + settings.ridge * of_all[2] / n_all
    # A column without any value in these rows has no variance.
    variances = np.where(variances > 0, variances, 1.0)
    same_block = (blocks[:, None] == blocks).astype(np.float64)
    total = counts.sum(axis=1, keepdims=True)
    counts = counts + settings.leaning * total / np.maximum(total @ same_block, 1e-12)
    if "expected" in sums:
        counts = counts / np.maximum(sums["expected"] + settings.leaning, 1e-12)
    probabilities = np.maximum(counts / np.maximum(counts @ same_block, 1e-300), 1e-6)
    return Mixture(sizes / n, means, np.linalg.inv(V), dof, partial_means, variances, probabilities)


def fit_mixtures(
    rows: Coordinates,
    resp: Array,
    training: Mask,
    settings: ClusterSettings = SETTINGS.clusters,
    *,
    steps: int | None = None,
) -> tuple[Mixture, Array]:
    """Fit b mixtures to the rows `training` (b, n), starting at probabilities `resp` (b, n, k); return log joints."""
    q, T, size = rows.numeric.shape[1], training[:, :, None].astype(np.float64), training.sum(axis=1)
    scale, dof, before = 1.0, np.full(len(resp), 10.0), np.full(len(resp), -np.inf)
    mixture = None
    for step in range(settings.iterations if steps is None else steps):
        mixture = m_step(em_sums(rows, resp * T, scale, mixture), dof, rows.blocks, settings)
        logs, distances = mixture.log_joint(rows)
        resp, density = posteriors(logs)
        likelihood = (density * T[..., 0]).sum(axis=1) / size
        if step > TAIL_STEP and (np.abs(likelihood - before) < settings.tolerance).all():
            break
        before = likelihood
        scale = (dof[:, None, None] + q) / (dof[:, None, None] + distances)
        if step == TAIL_STEP:
            dof = _degrees_of_freedom(logs, distances, dof, T[..., 0], q)
    assert mixture is not None
    return mixture, logs


def refine(mixture: Mixture, rows: Coordinates, settings: ClusterSettings = SETTINGS.clusters) -> Mixture:
    """Continue EM on many rows, in blocks, with the same degrees of freedom."""
    dof, q = mixture.dof[:, None, None], rows.numeric.shape[1]
    for _ in range(settings.refining_steps):
        total: dict[str, Array] = {}
        for block in rows.in_blocks(BLOCK):
            logs, distances = mixture.log_joint(block)
            sums = em_sums(block, posteriors(logs)[0], (dof + q) / (dof + distances), mixture)
            total = {name: total.get(name, 0.0) + value for name, value in sums.items()}
        mixture = m_step(total, mixture.dof, rows.blocks, settings)
    return mixture


def _degrees_of_freedom(logs: Array, distances: Array, dof: Array, T: Array, q: int) -> Array:
    """Return the ν (b,) of the grid with the largest likelihood of the rows T (b, n), all else as it is."""

    def tail(v: Array) -> Array:
        v = v[:, None, None]
        constant = gammaln((v + q) / 2) - gammaln(v / 2) - q / 2 * np.log(v)
        return constant - (v + q) / 2 * np.log1p(distances / v)

    without = logs - tail(dof)
    likelihoods = [(posteriors(without + tail(np.full(len(dof), v)))[1] * T).sum(axis=1) for v in TAILS]
    return TAILS[np.argmax(likelihoods, axis=0)]


def _level_norms(rows: Coordinates, probabilities: Array) -> Iterator[tuple[Mask, Array]]:
    """Yield the levels of each category and Σ_v p_cb(v)·tilt(v) (b, n, k); an empty iterator without a tilt."""
    if rows.tilt is None:
        return
    for block in np.unique(rows.blocks):
        members = rows.blocks == block
        yield members, np.einsum("nl,bkl->bnk", rows.tilt[:, members], probabilities[..., members])


@cache
def _pairs(q: int) -> tuple[Codes, Codes]:
    """Return the pairs i ≤ j of q axes."""
    return np.triu_indices(q)
