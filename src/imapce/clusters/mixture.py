"""A mixture of t components times multinomials, fitted by EM; many mixtures of one size at once.

    f(z, v) = Σ_c π_c · t_ν(z; m_c, S_c) · Π_h N(x_h; a_ch, s_ch) · Π_b p_cb(v_b)

    S_c = (n_c·Ŝ_c + r·q·S̄)/(n_c + r·q) + ridge,    S̄ = Σ_c n_c·Ŝ_c / n

z are the numeric coordinates of a row, x_h its partial columns and v_b its level of category b; missing values are left
out. Each covariance is shrunk towards the pooled one with the weight of r rows per axis; levels are shrunk by one row
towards the levels of all rows. All components share the degrees of freedom ν (ECME; Liu and Rubin 1995).

An EM step is a sum over rows: with the features φ = (1, z, zzᵀ) of a row, all distances are one matrix product and all
scatters another.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from scipy.special import gammaln

from imapce.clusters.axes import Coordinates
from imapce.common.arrays import Array, Codes, Mask
from imapce.common.records import Comparable
from imapce.common.settings import SETTINGS, ClusterSettings

# Degrees of freedom that are compared, after this step. Until then EM must not stop: two groups of 97 and 3 % gained
# .16 with the tails of one group, and .27 with their own, which three components with those tails did not.
TAILS, TAIL_STEP = np.array([4, 5, 7, 10, 15, 25, 50, 200.0]), 3
# Features or coordinates of rows that are computed at once.
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

    def take_components(self, kept: Mask) -> Mixture:
        """Return the mixture without some components."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: array if name == "dof" else array[:, kept] for name, array in arrays.items()}
        arrays["weights"] = arrays["weights"] / arrays["weights"].sum(axis=1, keepdims=True)
        return Mixture(**arrays)

    @property
    def n_components(self) -> int:
        """Return the number of components."""
        return self.weights.shape[1]

    def log_joint(self, rows: Coordinates) -> Array:
        """Return ln π_c f_c (b, n, k) of the rows."""
        return log_joint(self, rows, pair_features(rows.numeric))[0]

    def posteriors(self, rows: Coordinates) -> tuple[Array, Array]:
        """Return the probabilities (n, k) of the components and the log density (n,) of rows, for a batch of one."""
        resp, density = posteriors(self.log_joint(rows))
        return resp[0], density[0]


def pair_features(Z: Array) -> Array:
    """Return the features (1, z, z_i z_j for i ≤ j) of rows (n, q).

    >>> pair_features(np.array([[2.0, 3.0]]))
    array([[1., 2., 3., 4., 6., 9.]], dtype=float32)
    """
    Z = Z.astype(np.float32)
    # Products with one column at a time take half the time of all at once (100 columns).
    products = [Z[:, i : i + 1] * Z[:, i:] for i in range(Z.shape[1])]
    return np.concatenate([np.ones((len(Z), 1), dtype=np.float32), Z, *products], axis=1)


def squared_distances(mixture: Mixture, features: Array) -> Array:
    """Return the squared Mahalanobis distances (b, n, k) of rows to the means."""
    (b, k, q), m, P = mixture.means.shape, mixture.means, mixture.precisions
    i, j = np.triu_indices(q)
    Pm = np.einsum("bkij,bkj->bki", P, m)
    twice = np.where(i == j, 1.0, 2.0)
    weights = np.concatenate([(Pm * m).sum(axis=-1, keepdims=True), -2 * Pm, P[..., i, j] * twice], axis=-1)
    distances = features @ weights.reshape(b * k, -1).T.astype(features.dtype)
    return np.maximum(distances.reshape(len(features), b, k).transpose(1, 0, 2), 0.0)


def log_joint(mixture: Mixture, rows: Coordinates, features: Array) -> tuple[Array, Array]:
    """Return ln π_c f_c (b, n, k) and the squared distances."""
    q = mixture.means.shape[2]
    dof = mixture.dof[:, None, None]
    distances = squared_distances(mixture, features)
    with np.errstate(divide="ignore"):
        logs = np.broadcast_to(np.log(mixture.weights)[:, None, :], distances.shape)
    if q:
        constant = gammaln((dof + q) / 2) - gammaln(dof / 2) - q / 2 * np.log(np.pi * dof)
        volume = np.linalg.slogdet(mixture.precisions)[1] / 2
        logs = logs + constant + volume[:, None, :] - (dof + q) / 2 * np.log1p(distances / dof)
    b, k, h = mixture.partial_means.shape
    if h:
        has_value, x = ~np.isnan(rows.partial), np.nan_to_num(rows.partial)
        means, precision = mixture.partial_means.reshape(b * k, h), 1 / mixture.partial_variances.reshape(b * k, h)
        squares = x**2 @ precision.T - 2 * x @ (means * precision).T + has_value @ (means**2 * precision).T
        squares += has_value @ np.log(2 * np.pi / precision).T
        logs = logs - 0.5 * squares.reshape(len(x), b, k).transpose(1, 0, 2)
    if len(rows.blocks):
        p = mixture.level_probabilities.reshape(b * k, -1)
        of_levels = rows.levels @ np.log(p).T
        if rows.tilt is not None:
            of_levels -= sum(
                rows.levels[:, members].sum(axis=1)[:, None] * np.log(rows.tilt[:, members] @ p[:, members].T)
                for members in _categories(rows)
            )
        logs = logs + of_levels.reshape(len(rows), b, k).transpose(1, 0, 2)
    return logs, distances


def posteriors(logs: Array) -> tuple[Array, Array]:
    """Return the probabilities (..., k) of the components and the log densities (...)."""
    top = logs.max(axis=-1, keepdims=True)
    resp = np.exp(logs - top)
    total = resp.sum(axis=-1, keepdims=True)
    return resp / total, (top + np.log(total))[..., 0]


def em_sums(
    rows: Coordinates, features: Array, resp: Array, scale: Array | float, mixture: Mixture | None
) -> dict[str, Array]:
    """Return the sums over rows that an M step needs, for weights `resp` (b, n, k) and t weights `scale` (b, n, k)."""
    b, n, k = resp.shape

    def sums(weights: Array, values: Array) -> Array:
        return (
            (weights.transpose(0, 2, 1).reshape(b * k, n).astype(values.dtype) @ values)
            .reshape(b, k, -1)
            .astype(np.float64)
        )

    total = {"sizes": resp.sum(axis=1), "scatter": sums(resp * scale, features)}
    if rows.partial.shape[1]:
        x = np.nan_to_num(rows.partial)
        total["partial"] = sums(resp, np.column_stack([~np.isnan(rows.partial), x, x**2]))
    if len(rows.blocks):
        total["levels"] = sums(resp, rows.levels)
        if rows.tilt is not None and mixture is not None:
            p = mixture.level_probabilities
            expected = np.empty_like(p)
            for members in _categories(rows):
                norm = np.einsum("nl,bkl->bnk", rows.tilt[:, members], p[..., members])
                share = resp * rows.levels[:, members].sum(axis=1)[None, :, None] / norm
                expected[..., members] = sums(share, rows.tilt[:, members])
            total["expected"] = expected
    return total


def m_step(sums: dict[str, Array], dof: Array, blocks: Codes, settings: ClusterSettings) -> Mixture:
    """Return the mixtures with the sums of `em_sums`."""
    sizes, scatter = sums["sizes"] + 1e-9, sums["scatter"]
    b, k = sizes.shape
    q = int((np.sqrt(8 * scatter.shape[2] + 1) - 3) / 2)
    i, j = np.triu_indices(q)
    n = sizes.sum(axis=1)[:, None]
    weight = scatter[..., :1] + 1e-9
    means, C = scatter[..., 1 : q + 1] / weight, np.empty((b, k, q, q))
    C[..., i, j] = C[..., j, i] = scatter[..., q + 1 :]
    C -= weight[..., None] * means[..., :, None] * means[..., None, :]
    unit, prior = settings.ridge * np.eye(q), settings.prior_rows * q
    pooled = C.sum(axis=1, keepdims=True) / n[..., None, None] + unit
    V = (C + sizes[..., None, None] * unit + prior * pooled) / (sizes + prior)[..., None, None]
    partial_means = partial_variances = level_probabilities = np.zeros((b, k, 0))
    if "partial" in sums:
        count, first, second = np.split(sums["partial"], 3, axis=2)
        of_all = [part.sum(axis=1, keepdims=True) for part in (count, first, second)]
        n_all = np.maximum(of_all[0], 1)
        partial_means = (first + of_all[1] / n_all) / (count + 1)
        inside = second - 2 * partial_means * first + partial_means**2 * count
        partial_variances = (inside + inside.sum(axis=1, keepdims=True) / n_all) / (count + 1)
        partial_variances += settings.ridge * of_all[2] / n_all
        # A column without any value in these rows has no variance.
        partial_variances = np.where(partial_variances > 0, partial_variances, 1.0)
    if "levels" in sums:
        same_block = (blocks[:, None] == blocks).astype(np.float64)
        of_all = sums["levels"].sum(axis=1, keepdims=True)
        overall = of_all / np.maximum(of_all @ same_block, 1e-12)
        counts = sums["levels"] + settings.leaning * overall
        if "expected" in sums:
            counts = counts / np.maximum(sums["expected"] + settings.leaning, 1e-12)
        level_probabilities = np.maximum(counts / np.maximum(counts @ same_block, 1e-300), 1e-6)
    precisions = np.linalg.inv(V)
    precisions = (precisions + precisions.transpose(0, 1, 3, 2)) / 2
    return Mixture(sizes / n, means, precisions, dof, partial_means, partial_variances, level_probabilities)


def fit_mixtures(
    rows: Coordinates,
    resp: Array,
    training: Mask,
    settings: ClusterSettings = SETTINGS.clusters,
    *,
    steps: int | None = None,
    dof: float = 10.0,
    features: Array | None = None,
) -> tuple[Mixture, Array]:
    """Fit b mixtures to the rows `training` (b, n), starting at probabilities `resp` (b, n, k); return log joints."""
    features = pair_features(rows.numeric) if features is None else features
    b, q = len(resp), rows.numeric.shape[1]
    T = training[:, :, None].astype(np.float64)
    size, scale, nu = training.sum(axis=1), 1.0, np.full(b, dof)
    before, mixture = np.full(b, -np.inf), None
    for step in range(settings.iterations if steps is None else steps):
        sums = em_sums(rows, features, resp * T, scale, mixture)
        mixture = m_step(sums, nu, rows.blocks, settings)
        logs, distances = log_joint(mixture, rows, features)
        resp, density = posteriors(logs)
        likelihood = (density * T[..., 0]).sum(axis=1) / size
        if step > TAIL_STEP and (np.abs(likelihood - before) < settings.tolerance).all():
            break
        before = likelihood
        v = nu[:, None, None]
        scale = (v + q) / (v + distances)
        if step == TAIL_STEP:
            nu = _degrees_of_freedom(logs, distances, nu, T[..., 0], q)
    assert mixture is not None
    return mixture, logs


def refine(mixture: Mixture, rows: Coordinates, settings: ClusterSettings = SETTINGS.clusters) -> Mixture:
    """Continue EM on many rows, in blocks, with the same degrees of freedom."""
    v, q = mixture.dof[:, None, None], rows.numeric.shape[1]
    for _ in range(settings.refining_steps):
        total: dict[str, Array] = {}
        for some in rows.in_blocks(BLOCK):
            features = pair_features(some.numeric)
            logs, distances = log_joint(mixture, some, features)
            sums = em_sums(some, features, posteriors(logs)[0], (v + q) / (v + distances), mixture)
            total = {name: total.get(name, 0.0) + value for name, value in sums.items()}
        mixture = m_step(total, mixture.dof, rows.blocks, settings)
    return mixture


def _degrees_of_freedom(logs: Array, distances: Array, nu: Array, T: Array, q: int) -> Array:
    """Return the ν (b,) of the grid with the largest likelihood of the rows T (b, n), all else as it is."""

    def tail(v: Array) -> Array:
        v = v[:, None, None]
        constant = gammaln((v + q) / 2) - gammaln(v / 2) - q / 2 * np.log(v)
        return constant - (v + q) / 2 * np.log1p(distances / v)

    others = logs - tail(nu)
    found = [(posteriors(others + tail(np.full(len(nu), v)))[1] * T).sum(axis=1) for v in TAILS]
    return TAILS[np.argmax(found, axis=0)]


def _categories(rows: Coordinates) -> list[Mask]:
    """Return the levels of each category as masks."""
    return [rows.blocks == block for block in np.unique(rows.blocks)]
