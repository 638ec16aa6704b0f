"""How many clusters a table has, and where: a mixture in all directions, its size by rows left out.

    f(z, v) = Σ_c π_c · N(z; m_c, S_c) · Π_b p_cb(v_b),     S_c = (n_c·Ŝ_c + κ·W)/(n_c + κ),    W = Σ_c n_c·Ŝ_c / n

z are the sphered numbers of a row and v_b its level of category b; a cell that is missing has no factor. Few rows of a
cluster cannot tell its q(q + 1)/2 covariances; W, what the clusters have in common, lends them κ = q rows, or all there
are (κ = ∞, one covariance for all: overlapping pairs that no other mixture sees). Levels lean on those of all rows.

The size is the fewest components with SHARE of the best gain over one component on rows left out of five folds, the
extreme tenth of the rows at either end left out: a few far rows decide the plain mean.

Nothing here is drawn from the seed of a session: explorations of one table are to find the same clusters.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.cells import Cells
from imapce.clusters.settings import SETTINGS, Settings
from imapce.clusters.trees import cut, locally_sphered, sphered, tree_of
from imapce.common.records import Comparable
from imapce.common.watch import UNWATCHED, Watch

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

SIZES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20)
FOLDS = 5
# Standard errors by which several components must explain rows left out better than one.
SURE = 2.0
# Sizes in a row that gain less than the best before no larger one is tried.
PATIENCE = 4
ITERATIONS, FOLD_ITERATIONS = 30, 10
FEWEST = 3.0  # rows below which a component gives way
RIDGE = 1e-3  # of the variance of all rows in every direction
# Rows' worth of the shares of all rows that the levels of a component lean on. With 0.5 or 3 the mean NMI of six mixed
# tables differs by 0.01.
LEANING = 1.0
NO_SHARE = 1e-9
BLOCK = 10_000


@dataclass(frozen=True, eq=False)
class Mixture(Comparable):
    """π (k,), m (k, q), roots (k or 1, q, q) with S_c⁻¹ = roots_c·roots_cᵀ; and of loose numbers and of levels, what
    each component expects: `centres` and `spreads` (k, h), `levels` (k, L).

    >>> one = Mixture(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    >>> one.log_joint(Cells.of(np.zeros((1, 2)))).round(3)
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
class Choice:
    """The mixture chosen, the component of every row it was learned from, and what it was begun with: its size, the
    place of its tree and κ. `gain` is what it explains of rows left out beyond one component, in nats per row.
    """

    mixture: Mixture
    labels: Labels
    size: int = 1
    tree: int = 0
    kappa: float = 1.0
    gain: float = 0.0
    start: Array | None = None


def choose(
    cells: Cells,
    points: Array,
    watch: Watch = UNWATCHED,
    *,
    settings: Settings = SETTINGS,
    share: float | None = None,
    size: int | None = None,
) -> Choice:
    """The mixture of fewest components that explains most of what can be explained of rows left out.

    `points` (n, p) are the same rows, for trees; `share` is that of the best gain to be reached, and `size` a number of
    components that is asked for. Every size is tried with both trees and leanings on one fold, larger ones with the two
    that were best before; the best is tried on the other folds.

    >>> rows = np.random.default_rng(0).standard_normal((150, 3)) + 9 * np.eye(3)[np.arange(150) % 3]
    >>> choose(Cells.of(rows), rows).mixture.means.shape
    (3, 3)
    """
    n = len(cells)
    alone = np.ones((n, 1))
    sizes = [one for one in SIZES if 2 * FEWEST * one <= n] if size is None else [size]
    if not sizes or not (cells.axes.shape[1] or not cells.are_numbers):
        return Choice(*_labelled(fit_mixture(cells, alone, kappa=1.0)))
    trees = trees_of(points)
    fold = folds_of(n, FOLDS)
    logs = left_out(cells, alone, 1.0, fold, range(FOLDS))
    alone_there = logs[fold == 0], logs[fold > 0]
    gains: dict[tuple[int, int, float], float] = {}
    errors: dict[tuple[int, int, float], float] = {}
    begun = [(place, kappa) for place in range(len(trees)) for kappa in leanings(cells)]
    for done, count in enumerate(sizes):
        watch.tell("looking for clusters in all directions", done / len(sizes))
        starts = [cut(tree, count) for tree in trees]
        tried = {
            (count, place, kappa): left_out(cells, starts[place], kappa, fold, [0])[fold == 0] - alone_there[0]
            for place, kappa in begun
        }
        ranked = sorted(tried, key=lambda one: -trimmed(tried[one], settings.trim))
        best = ranked[0]
        if done >= PATIENCE:
            # What began badly so often will not be the best of many.
            begun = [one[1:] for one in ranked[:2]]
        others = left_out(cells, starts[best[1]], best[2], fold, range(1, FOLDS))[fold > 0] - alone_there[1]
        gained = np.append(tried[best], others)
        gains[best], errors[best] = trimmed(gained, settings.trim), standard_error(gained, settings.trim)
        if max(list(gains.values())[-PATIENCE:]) < max(gains.values()):
            break
    most = max(gains, key=lambda one: gains[one])
    highest = gains[most]
    if highest <= SURE * errors[most] and size is None:
        return Choice(*_labelled(fit_mixture(cells, alone, kappa=1.0)))
    enough = min((settings.share if share is None else share) * highest, highest)
    simplest = min((one for one, gain in gains.items() if gain >= enough), key=lambda one: one[0])
    return _chosen(cells, trees, simplest, gains[simplest])


def trees_of(points: Array, only: int | None = None) -> list[Array]:
    """Of the rows as they lie, and sphered by their neighbourhoods; or `only` one of them, by its place."""
    places = (0, 1) if only is None else (only,)
    return [tree_of(locally_sphered(sphered(points)) if place else points) for place in places]


def leanings(cells: Cells) -> tuple[float, ...]:
    """The κ that are tried: as many rows as axes, and infinitely many."""
    q = cells.axes.shape[1]
    return (float(max(q, 1)), np.inf) if q else (1.0,)


def _chosen(cells: Cells, trees: list[Array], begun: tuple[int, int, float], gain: float) -> Choice:
    size, place, kappa = begun
    start = cut(trees[place], size)
    return Choice(*_labelled(fit_mixture(cells, start, kappa=kappa)), size, place, kappa, gain, start)


def _labelled(fitted: tuple[Mixture, Array]) -> tuple[Mixture, Labels]:
    return fitted[0], fitted[1].argmax(axis=1)


def left_out(cells: Cells, start: Array, kappa: float, fold: Labels, folds: range | list[int]) -> Array:
    """ln f of the rows of some folds by mixtures learned without them, NaN for other rows."""
    logs = np.full(len(cells), np.nan)
    for f in folds:
        train = fold != f
        part, _ = fit_mixture(cells.some(train), start[train], kappa=kappa, iterations=FOLD_ITERATIONS)
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


def fit_mixture(cells: Cells, shares: Array, *, kappa: float, iterations: int = ITERATIONS) -> tuple[Mixture, Array]:
    """The mixture begun at the shares (n, k) of components in rows, and the shares it ends with.

    >>> rows = np.repeat([[0.0], [9.0]], 5, axis=0) + 0.1 * np.arange(10)[:, None]
    >>> fit_mixture(Cells.of(rows), np.repeat(np.eye(2), 5, axis=0), kappa=1.0)[0].weights
    array([0.5, 0.5])
    """
    before = -np.inf
    mixture: Mixture | None = None
    for _ in range(iterations):
        sizes = shares.sum(axis=0)
        enough = (sizes >= FEWEST) | (sizes == sizes.max())
        if not enough.all():
            shares = shares[:, enough]
            shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
            mixture = None
        mixture = mixture_of(cells, shares, kappa=kappa, before=mixture)
        shares, logs = _shares(mixture.log_joint(cells))
        now = float(logs.mean())
        if now - before < 1e-4:
            break
        before = now
    assert mixture is not None
    return mixture, shares


def mixture_of(cells: Cells, shares: Array, *, kappa: float, before: Mixture | None = None) -> Mixture:
    """The mixture of components with these shares (n, k) in the rows; `before` is that of the round before, if any.

    >>> mixture_of(Cells.of(np.array([[0.0], [2.0], [9.0]])), np.eye(2)[[0, 0, 1]], kappa=1.0).means.tolist()
    [[1.0], [9.0]]
    """
    Z, n = cells.axes, len(cells)
    sizes = np.maximum(shares.sum(axis=0), 1e-12)
    means = (shares.T @ Z) / sizes[:, None]
    roots = np.linalg.inv(np.linalg.cholesky(_covariances(Z, shares, sizes, means, kappa))).transpose(0, 2, 1)
    centres = spreads = levels = None
    if cells.loose.shape[1]:
        seen, x = (~np.isnan(cells.loose)).astype(np.float64), np.nan_to_num(cells.loose)
        # One row of all rows' mean and spread: a component may have no row with a value.
        weight = shares.T @ seen
        middle = x.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        centres = (shares.T @ x + middle) / (weight + 1)
        inside = shares.T @ x**2 - 2 * centres * (shares.T @ x) + centres**2 * weight
        common = inside.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        spreads = (inside + common) / (weight + 1) + RIDGE * (x**2).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    if cells.flags.shape[1]:
        levels = _levels(cells, shares, None if before is None else before.levels)
    return Mixture(sizes / n, means, roots, centres=centres, spreads=spreads, levels=levels)


def _covariances(Z: Array, shares: Array, sizes: Array, means: Array, kappa: float) -> Array:
    """S_c (k, q, q), or the one of all components (1, q, q)."""
    n, q = Z.shape
    ridge = RIDGE * np.eye(q)
    if np.isinf(kappa):
        return ((Z.T @ Z - (means.T * sizes) @ means) / n + ridge)[None]
    scatter = np.empty((len(sizes), q, q))
    for c, mean in enumerate(means):
        # Most rows have no share in most components; leaving them out takes a sixth of the time.
        inside = np.flatnonzero(shares[:, c] > NO_SHARE)
        deviation = Z[inside] - mean
        scatter[c] = (deviation.T * shares[inside, c]) @ deviation
    return np.asarray((scatter + kappa * scatter.sum(axis=0) / n) / (sizes + kappa)[:, None, None] + ridge)


def _levels(cells: Cells, shares: Array, before: Array | None) -> Array:
    """p_cb (k, L), which lean by LEANING rows on the shares of all rows.

    With a tilt the mean number of rows that have a level must be that expected: p ← rows / Σ_i shares·tilt/normaliser,
    one step of scaling in each round of EM.
    """
    flags, blocks = cells.flags, cells.blocks
    in_block = (blocks[:, None] == np.arange(blocks.max() + 1)).astype(np.float64)
    total = flags.sum(axis=0)
    overall = total / np.maximum(in_block @ (in_block.T @ total), 1e-12)
    counts = shares.T @ flags + LEANING * overall
    if cells.tilt is not None and before is not None:
        per_row = _of_tilts(cells, before)[1]
        expected = np.stack([own @ (cells.tilt * (per_row[:, c] @ in_block.T)) for c, own in enumerate(shares.T)])
        counts = counts / np.maximum(expected + LEANING, 1e-12)
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


def component_of(mixture: Mixture, cells: Cells, allowed: NDArray[np.bool_]) -> Labels:
    """The component, of those allowed (k,), that explains each row best.

    >>> one = Mixture(np.full(2, 0.5), np.array([[0.0], [9.0]]), np.ones((2, 1, 1)))
    >>> component_of(one, Cells.of(np.array([[1.0], [8.0]])), np.array([True, True]))
    array([0, 1])
    """
    best = np.empty(len(cells), dtype=np.intp)
    for first in range(0, len(cells), BLOCK):
        logs = mixture.log_joint(cells.some(slice(first, first + BLOCK)))
        best[first : first + BLOCK] = np.where(allowed, logs, -np.inf).argmax(axis=1)
    return best


def folds_of(n: int, folds: int, seed: int = 1) -> Labels:
    """(n,): the fold of every row, at random and always the same.

    >>> np.bincount(folds_of(10, 5))
    array([2, 2, 2, 2, 2])
    """
    return np.random.default_rng(seed).permutation(n) % folds


def _shares(logs: Array) -> tuple[Array, Array]:
    """The share of every component in every row, and ln f of the row."""
    top = logs.max(axis=1, keepdims=True)
    shares = np.exp(logs - top)
    total = shares.sum(axis=1, keepdims=True)
    shares /= total
    return shares, (top + np.log(total))[:, 0]
