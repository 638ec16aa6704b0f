"""How many clusters a table has, and where: a mixture in all directions, its size by rows left out.

    f(z, v) = Σ_c π_c · N(z; m_c, S_c) · Π_b p_cb(v_b),     S_c = (n_c·Ŝ_c + r·W)/(n_c + r),    W = Σ_c n_c·Ŝ_c / n

z are the sphered numbers of a row and v_b its level of category b; a cell that is missing has no factor. Few rows of a
cluster cannot tell its q(q + 1)/2 covariances; W, what the clusters have in common, lends them r = q prior rows, or all
there are (r = ∞, one covariance for all: overlapping pairs that no other mixture sees). Levels lean on those of all
rows.

Mixtures begin at cuts of two trees, of the rows as they lie and of the rows sphered by their neighbourhoods. Gaps
between clusters open where every row is moved to the mean of its neighbours, and Ward's tree of those finds them. Thin
parallel sheets (crabs: size hides species and sex) are seen only in units of how rows differ from their neighbours.

The size is the fewest components with a `share` of the best gain over one component on rows left out of five folds, the
extreme tenth of the rows at either end left out: a few far rows decide the plain mean.

Nothing here is drawn from the seed of a session: explorations of one table are to find the same clusters.

>>> rows = np.random.default_rng(0).standard_normal((150, 3)) + 9 * np.eye(3)[np.arange(150) % 3]
>>> choose(Cells.of(rows), rows).mixture.means.shape
(3, 3)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, ward

from imapce.clusters.columns import Cells
from imapce.common.arrays import Array, Codes, Mask
from imapce.common.neighbours import nearest
from imapce.common.records import Comparable
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.common.work import UNWATCHED, Watch

DEFAULT = SETTINGS.clusters
NO_SHARE = 1e-9
# Rows whose densities are held at once.
BLOCK = 10_000


@dataclass(frozen=True, eq=False)
class Mixture(Comparable):
    """π (k,), m (k, q), roots (k or 1, q, q) with S_c⁻¹ = roots_c·roots_cᵀ; and of loose numbers and of levels, what
    each component expects: `centres` and `spreads` (k, h), `levels` (k, L).

    >>> gaussian = Mixture(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    >>> gaussian.log_joint(Cells.of(np.zeros((1, 2)))).round(3)
    array([[-1.838]])
    """

    weights: Array
    means: Array
    roots: Array
    _: KW_ONLY
    centres: Array | None = None
    spreads: Array | None = None
    levels: Array | None = None

    def log_joint(self, cells: Cells) -> Array:
        """ln π_c·f_c of every row, (n, k)."""
        Z, (k, q) = cells.axes, self.means.shape
        if len(self.roots) == 1:
            Y, M = Z @ self.roots[0], self.means @ self.roots[0]
            distance = np.einsum("nq,nq->n", Y, Y)[:, None] + np.einsum("kq,kq->k", M, M) - 2 * Y @ M.T
        else:
            U = Z @ self.roots.transpose(1, 0, 2).reshape(q, k * q)
            U -= np.einsum("cq,cqr->cr", self.means, self.roots).reshape(k * q)
            U = U.reshape(len(Z), k, q)
            # A third of the time of squaring and summing.
            distance = np.einsum("ncq,ncq->nc", U, U)
        volume = np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(axis=1)
        logs = np.log(self.weights) + volume - 0.5 * distance - 0.5 * q * np.log(2 * np.pi)
        if self.centres is not None and self.spreads is not None:
            seen, x = ~np.isnan(cells.loose), np.nan_to_num(cells.loose)
            inverse = 1 / self.spreads
            squares = x**2 @ inverse.T - 2 * x @ (self.centres * inverse).T + seen @ (self.centres**2 * inverse).T
            logs -= 0.5 * (squares + seen @ np.log(2 * np.pi * self.spreads).T)
        if self.levels is not None:
            logs += cells.flags @ np.log(self.levels).T
            if cells.tilt is not None:
                logs -= _of_tilts(cells, self.levels)[0]
        return np.asarray(logs)

    def shares(self, cells: Cells) -> Array:
        """The share of every component in every row (n, k)."""
        return _shares(self.log_joint(cells))[0]

    def log_density(self, cells: Cells) -> Array:
        """ln f of every row, (n,)."""
        return _shares(self.log_joint(cells))[1]


@dataclass(frozen=True)
class ChosenMixture:
    """The mixture chosen, the component of every row it was learned from, and what it was begun with: its size, the
    place of its tree and the prior rows of its covariances. `gain` is what it explains of rows left out beyond one
    component, in nats per row.
    """

    mixture: Mixture
    labels: Codes
    size: int = 1
    tree: int = 0
    prior_rows: float = 1.0
    gain: float = 0.0
    start: Array | None = None


def choose(
    cells: Cells,
    points: Array,
    watch: Watch = UNWATCHED,
    *,
    settings: ClusterSettings = DEFAULT,
    size: int | None = None,
) -> ChosenMixture:
    """The mixture of fewest components that explains most of what can be explained of rows left out.

    `points` (n, p) are the same rows, for trees, and `size` a number of components that is asked for. Every size is
    tried with both trees and both prior rows on one fold, larger ones with the two that were best before; the best is
    tried on the other folds.
    """
    n, folds = len(cells), settings.folds
    alone = np.ones((n, 1))
    sizes = [count for count in settings.sizes if 2 * settings.fewest * count <= n] if size is None else [size]
    if not sizes or cells.is_empty:
        return _alone(cells, settings)
    trees = [tree_of(points, settings, place) for place in (0, 1)]
    fold = folds_of(n, folds)
    logs = left_out(cells, alone, 1.0, fold, settings=settings)
    alone_there = logs[fold == 0], logs[fold > 0]
    gains: dict[tuple[int, int, float], float] = {}
    errors: dict[tuple[int, int, float], float] = {}
    q = cells.axes.shape[1]
    begun = [(place, prior_rows) for place in (0, 1) for prior_rows in ((float(q), np.inf) if q else (1.0,))]
    for done, count in enumerate(sizes):
        watch.tell("looking for clusters in all directions", done / len(sizes))
        starts = [cut(tree, count) for tree in trees]
        tried = {
            (count, place, prior_rows): left_out(cells, starts[place], prior_rows, fold, [0], settings)[fold == 0]
            - alone_there[0]
            for place, prior_rows in begun
        }
        ranked = sorted(tried, key=lambda start: -trimmed(tried[start], settings.trim))
        best = ranked[0]
        if done >= settings.patience:
            # What began badly so often will not be the best of many.
            begun = [start[1:] for start in ranked[:2]]
        others = left_out(cells, starts[best[1]], best[2], fold, range(1, folds), settings)[fold > 0]
        gained = np.append(tried[best], others - alone_there[1])
        gains[best], errors[best] = trimmed(gained, settings.trim), standard_error(gained, settings.trim)
        if max(list(gains.values())[-settings.patience :]) < max(gains.values()):
            break
    most = max(gains, key=lambda start: gains[start])
    highest = gains[most]
    if highest <= settings.surely * errors[most] and size is None:
        return _alone(cells, settings)
    enough = min(settings.share * highest, highest)
    simplest = min((start for start, gain in gains.items() if gain >= enough), key=lambda start: start[0])
    count, place, prior_rows = simplest
    begin = cut(trees[place], count)
    mixture, shares = fit_mixture(cells, begin, prior_rows, settings=settings)
    return ChosenMixture(mixture, shares.argmax(axis=1), count, place, prior_rows, gains[simplest], begin)


def _alone(cells: Cells, settings: ClusterSettings) -> ChosenMixture:
    """One component."""
    mixture, shares = fit_mixture(cells, np.ones((len(cells), 1)), 1.0, settings=settings)
    return ChosenMixture(mixture, shares.argmax(axis=1))


# --- where mixtures begin ---------------------------------------------------------------------------------------------


def sphering(Z: Array) -> Array:
    """(p, q): from the deviations of rows (n, p) from their mean to axes of unit variance, those that vary.

    >>> rows = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 6.0], [2.0, 6.0]])
    >>> ((rows - rows.mean(axis=0)) @ sphering(rows)).var(axis=0)
    array([1., 1.])
    """
    Z = Z - Z.mean(axis=0)
    values, axes = np.linalg.eigh(Z.T @ Z / max(1, len(Z)))
    kept = values > 1e-10 * max(float(values.max(initial=0.0)), np.finfo(np.float64).tiny)
    return np.asarray(axes[:, kept] / np.sqrt(values[kept]))


def sphered(Z: Array) -> Array:
    """Rows (n, p) in axes of unit variance, centred."""
    return (Z - Z.mean(axis=0)) @ sphering(Z)


def locally_sphered(S: Array, settings: ClusterSettings = DEFAULT) -> Array:
    """Rows (n, q) in units of how they differ from the mean of their neighbours."""
    n, q = S.shape
    for _ in range(settings.rounds if n >= 2 * settings.nearest and q > 1 else 0):
        away = S - S[nearest(S, min(settings.nearest, n // 5))].mean(axis=1)
        C = away.T @ away / n
        C = (n * C + np.trace(C) * np.eye(q)) / (n + q)
        values, axes = np.linalg.eigh(C)
        S = S @ (axes / np.sqrt(np.maximum(values, np.finfo(np.float64).tiny ** 0.5)))
    return S


def tree_of(Z: Array, settings: ClusterSettings = DEFAULT, place: int = 0) -> Array:
    """Ward's tree of rows (n, p) that were moved to the mean of themselves and their nearest, again and again; at
    `place` 1 of the rows sphered by their neighbourhoods.
    """
    Z = locally_sphered(sphered(Z), settings) if place else Z
    k = min(settings.neighbours, len(Z) // 5)
    if k >= 1 and Z.shape[1]:
        near = nearest(Z, k)
        for _ in range(settings.smoothings):
            Z = (Z + Z[near].sum(axis=1)) / (k + 1)
    return np.asarray(ward(Z if Z.shape[1] else np.zeros((len(Z), 1))))


def cut(tree: Array, size: int) -> Array:
    """The shares (n, ≤ size) of a tree cut at `size` branches."""
    labels = fcluster(tree, size, "maxclust")
    return (labels[:, None] == np.unique(labels)).astype(np.float64)


# --- rows left out ----------------------------------------------------------------------------------------------------


def folds_of(n: int, folds: int, seed: int = 1) -> Codes:
    """(n,): the fold of every row, at random and always the same."""
    return np.random.default_rng(seed).permutation(n) % folds


def left_out(
    cells: Cells,
    start: Array,
    prior_rows: float,
    fold: Codes,
    folds: Iterable[int] | None = None,
    settings: ClusterSettings = DEFAULT,
) -> Array:
    """ln f of the rows of some folds, or of all, by mixtures learned without them, NaN for other rows."""
    logs = np.full(len(cells), np.nan)
    for f in np.unique(fold) if folds is None else folds:
        train = fold != f
        part, _ = fit_mixture(
            cells.some(train), start[train], prior_rows, iterations=settings.few_iterations, settings=settings
        )
        logs[~train] = part.log_density(cells.some(~train))
    return logs


def trimmed(values: Array, share: float) -> float:
    """The mean without so large a share of the values at either end.

    >>> trimmed(np.array([-99.0, 1.0, 2.0, 3.0, 99.0]), 0.2)
    2.0
    """
    values = np.sort(values)
    off = int(share * len(values))
    return float(values[off : len(values) - off].mean())


def standard_error(values: Array, share: float) -> float:
    """That of the trimmed mean, by the values that it leaves at the ends where they are cut off.

    >>> round(standard_error(np.arange(100.0), 0.0), 2)
    2.89
    """
    low, high = np.quantile(values, [share, 1 - share])
    return float(np.clip(values, low, high).std() / ((1 - 2 * share) * np.sqrt(len(values))))


# --- the fit ----------------------------------------------------------------------------------------------------------


def fit_mixture(
    cells: Cells,
    shares: Array,
    prior_rows: float,
    *,
    iterations: int | None = None,
    settings: ClusterSettings = DEFAULT,
) -> tuple[Mixture, Array]:
    """The mixture begun at the shares (n, k) of components in rows, and the shares it ends with."""
    before = -np.inf
    mixture: Mixture | None = None
    for _ in range(settings.iterations if iterations is None else iterations):
        sizes = shares.sum(axis=0)
        enough = (sizes >= settings.fewest) | (sizes == sizes.max())
        if not enough.all():
            shares = shares[:, enough]
            shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
            mixture = None
        mixture = mixture_of(cells, shares, prior_rows, before=mixture, settings=settings)
        shares, logs = _shares(mixture.log_joint(cells))
        now = float(logs.mean())
        if now - before < 1e-4:
            break
        before = now
    assert mixture is not None
    return mixture, shares


def mixture_of(
    cells: Cells,
    shares: Array,
    prior_rows: float,
    *,
    before: Mixture | None = None,
    settings: ClusterSettings = DEFAULT,
) -> Mixture:
    """The mixture of components with these shares (n, k) in the rows; `before` is that of the round before, if any."""
    Z, n = cells.axes, len(cells)
    sizes = np.maximum(shares.sum(axis=0), 1e-12)
    means = (shares.T @ Z) / sizes[:, None]
    covariances = _covariances(Z, shares, means, prior_rows, settings.ridge)
    roots = np.linalg.inv(np.linalg.cholesky(covariances)).transpose(0, 2, 1)
    centres = spreads = levels = None
    if cells.loose.shape[1]:
        seen, x = (~np.isnan(cells.loose)).astype(np.float64), np.nan_to_num(cells.loose)
        # One row of all rows' mean and spread: a component may have no row with a value.
        weight, n_seen = shares.T @ seen, np.maximum(seen.sum(axis=0), 1)
        middle = x.sum(axis=0) / n_seen
        centres = (shares.T @ x + middle) / (weight + 1)
        inside = shares.T @ x**2 - 2 * centres * (shares.T @ x) + centres**2 * weight
        common = inside.sum(axis=0) / n_seen
        spreads = (inside + common) / (weight + 1) + settings.ridge * (x**2).sum(axis=0) / n_seen
        # Of a number that none of these rows has nothing is known but its unit.
        spreads = np.where(spreads > 0, spreads, 1.0)
    if cells.flags.shape[1]:
        levels = _levels(cells, shares, None if before is None else before.levels, settings.leaning)
    return Mixture(sizes / n, means, roots, centres=centres, spreads=spreads, levels=levels)


def _covariances(Z: Array, shares: Array, means: Array, prior_rows: float, ridge: float) -> Array:
    """S_c (k, q, q), or the one of all components (1, q, q)."""
    n, q = Z.shape
    sizes = np.maximum(shares.sum(axis=0), 1e-12)
    unit = ridge * np.eye(q)
    if np.isinf(prior_rows):
        return ((Z.T @ Z - (means.T * sizes) @ means) / n + unit)[None]
    scatter = np.empty((len(sizes), q, q))
    for c, mean in enumerate(means):
        # Most rows have no share in most components; leaving them out takes a sixth of the time.
        inside = np.flatnonzero(shares[:, c] > NO_SHARE)
        deviation = Z[inside] - mean
        scatter[c] = (deviation.T * shares[inside, c]) @ deviation
    return np.asarray((scatter + prior_rows * scatter.sum(axis=0) / n) / (sizes + prior_rows)[:, None, None] + unit)


def _levels(cells: Cells, shares: Array, before: Array | None, leaning: float) -> Array:
    """p_cb (k, L), which lean by `leaning` rows on the shares of all rows.

    With a tilt the mean number of rows that have a level must be that expected: p ← rows / Σ_i shares·tilt/normaliser,
    one step of scaling in each round of EM.
    """
    flags, blocks = cells.flags, cells.blocks
    in_block = (blocks[:, None] == np.arange(blocks.max() + 1)).astype(np.float64)
    total = flags.sum(axis=0)
    overall = total / np.maximum(in_block @ (in_block.T @ total), 1e-12)
    counts = shares.T @ flags + leaning * overall
    if cells.tilt is not None and before is not None:
        per_row = _of_tilts(cells, before)[1]
        expected = np.stack([own @ (cells.tilt * (per_row[:, c] @ in_block.T)) for c, own in enumerate(shares.T)])
        counts = counts / np.maximum(expected + leaning, 1e-12)
    totals = counts @ in_block @ in_block.T
    return np.maximum(counts / np.maximum(totals, 1e-300), 1e-6)


def _of_tilts(cells: Cells, levels: Array) -> tuple[Array, Array]:
    """Σ_b ln Σ_v p_cb(v)·tilt_i(v) of the categories that a row has (n, k), and what each row counts (n, k, B)."""
    assert cells.tilt is not None
    n_blocks = int(cells.blocks.max()) + 1
    per_row = np.empty((len(cells), len(levels), n_blocks))
    logs = np.zeros((len(cells), len(levels)))
    for b in range(n_blocks):
        own = cells.blocks == b
        norm = cells.tilt[:, own] @ levels[:, own].T
        has = cells.flags[:, own].sum(axis=1) > 0
        logs += has[:, None] * np.log(np.maximum(norm, 1e-300))
        per_row[:, :, b] = has[:, None] / np.maximum(norm, 1e-300)
    return logs, per_row


def component_of(mixture: Mixture, cells: Cells, allowed: Mask, block: int = BLOCK) -> Codes:
    """The component, of those allowed (k,), that explains each row best."""
    best = np.empty(len(cells), dtype=np.intp)
    for first in range(0, len(cells), block):
        logs = mixture.log_joint(cells.some(slice(first, first + block)))
        best[first : first + block] = np.where(allowed, logs, -np.inf).argmax(axis=1)
    return best


def _shares(logs: Array) -> tuple[Array, Array]:
    """The share of every component in every row, and ln f of the row."""
    top = logs.max(axis=1, keepdims=True)
    shares = np.exp(logs - top)
    total = shares.sum(axis=1, keepdims=True)
    shares /= total
    return shares, (top + np.log(total))[:, 0]
