"""How many clusters a table has, and where: a mixture of Gaussians in all directions, its size by rows left out.

    f(z) = Σ_c π_c·N(z; m_c, S_c),     S_c = (n_c·Ŝ_c + κ·W)/(n_c + κ),     W = Σ_c n_c·Ŝ_c / n

Few rows of a cluster cannot tell its q(q + 1)/2 covariances; W, what the clusters have in common, lends them κ rows.
The number of components and κ are those under which the rows left out of five folds are most likely. Every mixture
begins at a cut of one tree: Ward's, of rows moved to the mean of their neighbours, where gaps between clusters open.

Nothing here is drawn from the seed of a session: explorations of one table are to find the same clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, ward
from scipy.spatial import cKDTree

from imapce.common.records import Comparable
from imapce.common.watch import UNWATCHED, Watch

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

SIZES = (1, 2, 3, 4, 5, 7, 10, 14, 20)
ROWS_PER_COMPONENT = 8
# κ in units of q. On 14 labelled tables either alone had NMI 0.58 and the better by rows left out 0.61; κ = ∞ (one
# covariance for all) added nothing.
LEANINGS = (1.0, 5.0)
# With four finalists NMI of 14 + 13 tables is the same to 0.01, and 15 planted groups of 24 rows come out as five.
FOLDS, FINALISTS = 5, 8
# Standard errors that the best may be ahead of a mixture of fewer components and count as no better. With 0.5
# three Gaussians had more components in 8 of 90 tables, with 1 in 2; NMI and ARI of the tables differ by 0.01.
HARDLY = 0.75
HOPELESS = 3.0
ITERATIONS, FOLD_ITERATIONS = 30, 10
NEIGHBOURS, SMOOTHINGS = 15, 4
FEWEST = 3.0  # rows below which a component gives way
RIDGE = 1e-3
NO_SHARE = 1e-9
BLOCK = 10_000


@dataclass(frozen=True, eq=False)
class Mixture(Comparable):
    """π (k,), m (k, q) and roots (k, q, q) with S_c⁻¹ = roots_c·roots_cᵀ.

    >>> Mixture(np.ones(1), np.zeros((1, 2)), np.eye(2)[None]).log_joint(np.zeros((1, 2))).round(3)
    array([[-1.838]])
    """

    weights: Array
    means: Array
    roots: Array

    def log_joint(self, Z: Array) -> Array:
        """ln π_c·N(z; m_c, S_c) of rows (n, q), (n, k)."""
        k, q = self.means.shape
        flat = self.roots.transpose(1, 0, 2).reshape(q, k * q)
        U = Z @ flat
        U -= np.einsum("cq,cqr->cr", self.means, self.roots).reshape(k * q)
        U = U.reshape(len(Z), k, q)
        # A third of the time of squaring and summing.
        distance = np.einsum("ncq,ncq->nc", U, U)
        volume = np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(axis=1)
        return np.log(self.weights) + volume - 0.5 * distance - 0.5 * q * np.log(2 * np.pi)

    def shares(self, Z: Array) -> Array:
        """The share of every component in every row (n, k)."""
        return _shares(self.log_joint(Z))[0]

    def log_density(self, Z: Array) -> Array:
        """ln f(z), (n,)."""
        return _shares(self.log_joint(Z))[1]


@dataclass(frozen=True)
class Choice:
    """The mixture chosen, the component of every row it was learned from, and the size and κ it was begun with."""

    mixture: Mixture
    labels: Labels
    size: int
    kappa: float


def choose(Z: Array, watch: Watch = UNWATCHED, *, fewest: int = 1, most: int = SIZES[-1]) -> Choice:
    """The mixture of rows (n, q), of `fewest` to `most` components, under which rows left out are most likely.

    Every size and κ is tried on one fold, the best few of them on the others.

    >>> rng = np.random.default_rng(0)
    >>> choose(rng.standard_normal((150, 3)) + 9 * np.eye(3)[np.arange(150) % 3]).mixture.means.shape
    (3, 3)
    """
    n, q = Z.shape
    fold = folds_of(n, FOLDS)
    sizes = [size for size in SIZES if max(2, fewest) <= size <= min(most, max(fewest, n // ROWS_PER_COMPONENT))]
    tree = tree_of(Z) if sizes and q else None
    starts = {size: start(tree, size) for size in sizes} if tree is not None else {}
    if fewest == 1 or not starts:
        starts = {1: np.ones((n, 1)), **starts}
    # κ does not matter to one component alone.
    tried = [(size, max(lean * q, 1.0)) for lean in LEANINGS for size in starts if size > 1 or lean == LEANINGS[0]]
    works, done = len(tried) + (FOLDS - 1) * min(FINALISTS, len(tried)), 0

    def left_out(size: int, kappa: float, f: int) -> Array:
        nonlocal done
        watch.tell("looking for clusters in all directions", done / works)
        done += 1
        train = fold != f
        part, _ = fit_mixture(Z[train], starts[size][train], kappa=kappa, iterations=FOLD_ITERATIONS)
        return part.log_density(Z[~train])

    held = {one: left_out(*one, 0) for one in tried} if len(tried) > 1 else {}
    held = dict(sorted(held.items(), key=lambda one: -float(one[1].mean()))[:FINALISTS])
    for f in range(1, FOLDS if held else 1):
        held = {one: np.append(logs, left_out(*one, f)) for one, logs in held.items()}
        best = max(held.values(), key=lambda logs: float(logs.mean()))
        held = {one: logs for one, logs in held.items() if _behind(logs, best) <= HOPELESS}
    size, kappa = _simplest(held) if held else tried[0]
    mixture, shares = fit_mixture(Z, starts[size], kappa=kappa)
    return Choice(mixture, shares.argmax(axis=1), size, kappa)


def _simplest(held: dict[tuple[int, float], Array]) -> tuple[int, float]:
    """The size and κ whose rows left out are most likely, or the fewest components that are hardly behind."""
    best = max(held.values(), key=lambda logs: float(logs.mean()))
    fewest = min(size for (size, _), logs in held.items() if _behind(logs, best) <= HARDLY)
    return max((one for one in held if one[0] == fewest), key=lambda one: float(held[one].mean()))


def _behind(logs: Array, best: Array) -> float:
    """How far the mean of ln f lies behind the best one, in standard errors of their difference row by row."""
    lost = best - logs
    return float(lost.mean()) / max(float(lost.std()) / np.sqrt(len(lost)), np.finfo(np.float64).tiny)


def fit_mixture(Z: Array, shares: Array, *, kappa: float, iterations: int = ITERATIONS) -> tuple[Mixture, Array]:
    """The mixture begun at the shares (n, k) of components in rows (n, q), and the shares it ends with.

    >>> rows = np.repeat([[0.0], [9.0]], 5, axis=0) + 0.1 * np.arange(10)[:, None]
    >>> fit_mixture(rows, np.repeat(np.eye(2), 5, axis=0), kappa=1.0)[0].weights
    array([0.5, 0.5])
    """
    ridge = _ridge(Z)
    before = -np.inf
    for _ in range(iterations):
        sizes = shares.sum(axis=0)
        enough = (sizes >= FEWEST) | (sizes == sizes.max())
        if not enough.all():
            shares = shares[:, enough]
            shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        mixture = _learned(Z, shares, kappa, ridge)
        shares, logs = _shares(mixture.log_joint(Z))
        now = float(logs.mean())
        if now - before < 1e-4:
            break
        before = now
    return mixture, shares


def gaussians_of(Z: Array, labels: Labels, *, kappa: float) -> Mixture:
    """The mixture whose components are the clusters 0, 1, ... of rows (n, q) as they are.

    >>> gaussians_of(np.array([[0.0], [2.0], [9.0]]), np.array([0, 0, 1]), kappa=1.0).means.tolist()
    [[1.0], [9.0]]
    """
    return _learned(Z, np.eye(int(labels.max()) + 1)[labels], kappa, _ridge(Z))


def component_of(mixture: Mixture, Z: Array, allowed: NDArray[np.bool_]) -> Labels:
    """The component, of those allowed (k,), that explains each row (n, q) best.

    >>> one = Mixture(np.full(2, 0.5), np.array([[0.0], [9.0]]), np.ones((2, 1, 1)))
    >>> component_of(one, np.array([[1.0], [8.0]]), np.array([True, True]))
    array([0, 1])
    """
    best = np.empty(len(Z), dtype=np.intp)
    for first in range(0, len(Z), BLOCK):
        logs = mixture.log_joint(Z[first : first + BLOCK])
        best[first : first + BLOCK] = np.where(allowed, logs, -np.inf).argmax(axis=1)
    return best


def tree_of(Z: Array) -> Array:
    """Ward's tree of rows that were moved to the mean of themselves and their nearest, again and again.

    Four times 15 neighbours: 0.61 on the tables; once 0.58, and 30 neighbours 0.58.
    """
    k = min(NEIGHBOURS, len(Z) // 5)
    if k >= 1:
        near = _nearest(Z, k)
        for _ in range(SMOOTHINGS):
            Z = (Z + Z[near].sum(axis=1)) / (k + 1)
    return ward(Z)


def start(tree: Array, size: int) -> Array:
    """The shares (n, ≤ size) of a tree cut at `size` branches.

    >>> start(tree_of(np.array([[0.0], [1.0], [9.0]])), 2)
    array([[1., 0.],
           [1., 0.],
           [0., 1.]])
    """
    labels = fcluster(tree, size, "maxclust")
    return (labels[:, None] == np.unique(labels)).astype(np.float64)


def folds_of(n: int, folds: int, seed: int = 1) -> Labels:
    """(n,): the fold of every row, at random and always the same.

    >>> np.bincount(folds_of(10, 5))
    array([2, 2, 2, 2, 2])
    """
    return np.random.default_rng(seed).permutation(n) % folds


def _nearest(Z: Array, k: int) -> Labels:
    """(n, k): the rows nearest to each."""
    if Z.shape[1] <= 6:
        return cKDTree(Z).query(Z, k + 1)[1][:, 1:]
    squared = np.einsum("ij,ij->i", Z, Z)
    D = squared[:, None] + squared - 2 * (Z @ Z.T)
    np.fill_diagonal(D, np.inf)
    return np.argpartition(D, k, axis=1)[:, :k]


def _shares(logs: Array) -> tuple[Array, Array]:
    """The share of every component in every row, and ln f of the row."""
    top = logs.max(axis=1, keepdims=True)
    shares = np.exp(logs - top)
    total = shares.sum(axis=1, keepdims=True)
    shares /= total
    return shares, (top + np.log(total))[:, 0]


def _ridge(Z: Array) -> float:
    return max(RIDGE * float(Z.var(axis=0).sum()) / max(1, Z.shape[1]), np.finfo(np.float64).tiny ** 0.5)


def _learned(Z: Array, shares: Array, kappa: float, ridge: float) -> Mixture:
    n, q = Z.shape
    sizes = np.maximum(shares.sum(axis=0), 1e-12)
    means = (shares.T @ Z) / sizes[:, None]
    scatter = np.empty((len(sizes), q, q))
    for c, mean in enumerate(means):
        # Most rows have no share in most components; leaving them out takes a sixth of the time.
        inside = np.flatnonzero(shares[:, c] > NO_SHARE)
        deviation = Z[inside] - mean
        scatter[c] = (deviation.T * shares[inside, c]) @ deviation
    common = scatter.sum(axis=0) / n
    S = (scatter + kappa * common) / (sizes + kappa)[:, None, None]
    S[:, np.arange(q), np.arange(q)] += ridge
    roots = np.linalg.inv(np.linalg.cholesky(S)).transpose(0, 2, 1)
    return Mixture(sizes / n, means, roots)
