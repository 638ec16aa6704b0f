"""The low-dimensional side of ct-SNE: its objective, its gradient and the descent, with t-SNE as the case w = 1.

tᵢⱼ = 1/(1 + |yᵢ − yⱼ|²) and rᵢⱼ = wᵢⱼ tᵢⱼ/Z with Z = Σ w t, where wᵢⱼ is α′ for rows of one class and β′ ≤ α′ for
others: pairs of different classes repel each other less, so that classes need not lie apart.

C(Y) = KL(P‖R) = Σ p log(p/t) − Σ p log w + log Z and ∂C/∂yᵢ = 4 Σⱼ (pᵢⱼ − rᵢⱼ) tᵢⱼ (yᵢ − yⱼ) = 4 (Aᵢ − Rᵢ).

The sums over pairs, F_S(i) = Σ_{j∈S, j≠i} t²ᵢⱼ (yᵢ − yⱼ) and Z_S = Σ_{i≠j∈S} tᵢⱼ, are taken directly (Numba, exact),
through openTSNE's trees or through its interpolation on a grid. openTSNE keeps these routines private: this is the only
module that knows them, and its tests hold each one against the plain double sum.

>>> from imapce.baselines.tsne_affinities import gaussian_affinities
>>> X, labels = np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) % 2
>>> P, start = gaussian_affinities(X, 5), 1e-4 * X[:, :2]
>>> maps = [layout(P, start, labels=labels, beta=b, n_iter=50) for b in (1e-2, 1e-4)]
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
from joblib import cpu_count
from scipy import sparse

from imapce.baselines.embedding import tell_iteration
from imapce.baselines.tsne_affinities import principal_axes, same_label_share
from imapce.common.arrays import Array, Codes
from imapce.common.work import UNWATCHED, Watch
from imapce.errors import InvalidValueError, needs

with needs("t-SNE", "imapce[baselines]"):
    import numba
    from openTSNE import _tsne
    from openTSNE.quad_tree import QuadTree


# openTSNE's own accuracy of the grid: 3 nodes a cell, cells of one unit, at least 50 of them.
GRID: dict[str, Any] = {"n_interpolation_points": 3, "min_num_intervals": 50, "ints_in_interval": 1.0}
# Below this a sum takes 3 ms, and starting threads is not worth it.
THREADS_FROM = 3_000
# What openTSNE adds to Z before it divides by it.
OPENTSNE_EPSILON = float(np.finfo(np.float64).eps)


@numba.njit(cache=True, fastmath=True, error_model="numpy", inline="never")
def _sums_at(a: float, b: float, x: Array, y: Array) -> tuple[float, float, float]:  # pragma: no cover - compiled
    # Slices, not index bounds: with bounds Numba guards against negative ones and LLVM leaves SIMD off (3× slower).
    fx, fy, z = 0.0, 0.0, 0.0
    for j in range(x.size):
        dx, dy = a - x[j], b - y[j]
        t = 1.0 / (1.0 + dx * dx + dy * dy)
        z += t
        fx += t * t * dx
        fy += t * t * dy
    return fx, fy, z


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _direct(
    x: Array, y: Array, first: Codes, last: Codes, inside: float, outside: float, rows: tuple[int, int], sums: Array
) -> None:  # pragma: no cover - compiled
    for i in range(rows[0], rows[1]):
        a, b, lo, hi = x[i], y[i], first[i], last[i]
        fx, fy, z = _sums_at(a, b, x[lo:hi], y[lo:hi])
        fx, fy, z = inside * fx, inside * fy, inside * (z - 1.0)
        if outside != 0.0:
            bx, by, bz = _sums_at(a, b, x[:lo], y[:lo])
            ax, ay, az = _sums_at(a, b, x[hi:], y[hi:])
            fx, fy, z = fx + outside * (bx + ax), fy + outside * (by + ay), z + outside * (bz + az)
        sums[i, 0], sums[i, 1], sums[i, 2] = fx, fy, z


def direct_sums(Y: Array, starts: Codes, inside: float = 1.0, outside: float = 0.0) -> tuple[Array, float]:
    """Σⱼ wᵢⱼ t²ᵢⱼ (yᵢ − yⱼ) (n, k) and Σ w t over all pairs: w is `inside` within a group and `outside` between groups.

    Group l is the rows starts[l] to starts[l+1] − 1; k is 1 or 2. 6,000 points, all pairs, take 13 ms in double
    precision on one core, whatever the groups; openTSNE's tree takes 15 ms on two cores and its grid 100.
    """
    n, sizes = len(Y), np.diff(starts)
    x, y = np.ascontiguousarray(Y[:, 0]), np.ascontiguousarray(Y[:, 1]) if Y.shape[1] > 1 else np.zeros(n)
    first, last = np.repeat(starts[:-1], sizes), np.repeat(starts[1:], sizes)
    sums = np.empty((n, 3))

    def rows_between(start: int, stop: int) -> None:
        _direct(x, y, first, last, float(inside), float(outside), (start, stop), sums)

    # Plain threads that sleep while they wait: OpenMP's spin, and on a busy machine that made a sum eight times slower.
    n_threads = 1 if n < THREADS_FROM else cpu_count()
    if n_threads == 1:
        rows_between(0, n)
    else:
        edges = np.linspace(0, n, n_threads + 1).astype(int)
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(rows_between, edges[:-1], edges[1:]))
    return np.ascontiguousarray(sums[:, : Y.shape[1]]), float(sums[:, 2].sum())


def grid_sums(Y: Array) -> tuple[Array, float]:
    """F and Z of all points by interpolation on a grid and FFT; forces to about 4 %, Z to about 1 %."""
    # openTSNE finds the bounding box with "if smaller … else if larger", which never sees a maximum in the very first
    # coordinate: the box is then too small (or NaN, for falling coordinates). Mirrored, that coordinate is the minimum.
    sign = -1.0 if Y[0, 0] >= Y.max() else 1.0
    points = np.ascontiguousarray(sign * Y)
    gradient = np.zeros_like(points)
    if Y.shape[1] == 1:
        Z = _tsne.estimate_negative_gradient_fft_1d(points.ravel(), gradient.ravel(), **GRID)
    else:
        Z = _tsne.estimate_negative_gradient_fft_2d(points, gradient, **GRID)
    return gradient * (-sign * (Z + OPENTSNE_EPSILON)), float(Z)


def tree_sums(Y: Array, theta: float) -> tuple[Array, float]:
    """F and Z of all points by Barnes and Hut: a cell counts as one point where side/distance < θ.

    Exactly coincident points do not repel each other here, so a start must not hold any.
    """
    points = np.ascontiguousarray(Y)
    gradient = np.zeros_like(points)
    Z = _tsne.estimate_negative_gradient_bh(QuadTree(points), points, gradient, theta=theta)
    return gradient * -(Z + OPENTSNE_EPSILON), float(Z)


def attraction(P: sparse.csr_matrix, Y: Array, *, with_divergence: bool = False) -> tuple[Array, float]:
    """Aᵢ = Σⱼ pᵢⱼ tᵢⱼ (yᵢ − yⱼ) over the edges of P and, where asked for, Σ p log(p/t) (0 otherwise)."""
    points = np.ascontiguousarray(Y)
    gradient = np.zeros_like(points)
    _, divergence = _tsne.estimate_positive_gradient_nn(
        P.indices,
        P.indptr,
        P.data,
        points,
        points,
        gradient,
        should_eval_error=with_divergence,
    )
    return gradient, float(divergence)


Summation = Literal["auto", "exact", "barnes_hut", "fft"]

# Measured, all pairs on two cores: 6,000 points 7 ms, 12,000 points 25 ms, growing with n²; the grid took 75 to 100 ms
# for 1,500 to 6,000 points, as it grows with the map's extent first. By this the two meet a little above 20,000.
MOST_DIRECT = 20_000
# By the same figures 5 ms for a class, where a grid of its own would take 80.
MOST_DIRECT_IN_CLASS = 5_000
MOMENTUM_EXAGGERATED, MOMENTUM = 0.5, 0.8
LONGEST_STEP = 5.0
CHECK_EVERY = 50
START_SPREAD = 1e-4


def pair_weights(labels: Codes, beta: float) -> tuple[float, float]:
    """(α′, β′) with α′ρ + β′(1 − ρ) = 1, so that the mean of w over pairs is 1; both 1 where classes tell nothing.

    >>> pair_weights(np.array([0, 0, 1, 1]), 0.25)
    (2.5, 0.25)
    """
    rho = same_label_share(labels)
    # With one class, or as many as rows, every pair is alike; with β′ = 1 rounding would leave α′ a hair off.
    if rho in (0.0, 1.0) or beta == 1.0:
        return 1.0, 1.0
    return (1.0 - beta * (1.0 - rho)) / rho, beta


class ConditionedDivergence:
    """KL(P‖R) of a map Y (n, k) and its gradient; rows keep the caller's order.

    Repulsion splits into all pairs and pairs of one class, Σⱼ wᵢⱼ t²ᵢⱼ(yᵢ − yⱼ) = β′ F_all(i) + (α′ − β′) F_class(i), Z
    likewise. Nothing cancels, as α′ ≥ β′. Classes are numbered by their first row, so their names do not matter.
    """

    def __init__(
        self,
        P: sparse.csr_matrix,
        labels: Codes | None = None,
        beta: float = 1.0,
        *,
        method: Summation = "auto",
        theta: float = 0.5,
    ):
        self.P = P
        n = P.shape[0]
        labels = np.zeros(n, dtype=np.intp) if labels is None else labels
        self.same, self.other = pair_weights(labels, beta)
        if self.same == self.other:
            labels = np.zeros(n, dtype=np.intp)
        self.method = method if method != "auto" else ("exact" if n <= MOST_DIRECT else "fft")
        self.theta = theta
        _, first_row, codes = np.unique(labels, return_index=True, return_inverse=True)
        sizes = np.bincount(codes)
        # Small classes first: one call sums all of them directly.
        rank = np.empty(len(sizes), dtype=np.intp)
        rank[np.lexsort((first_row, sizes > MOST_DIRECT_IN_CLASS))] = np.arange(len(sizes))
        self._order = np.argsort(rank[codes], kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(rank[codes]))]).astype(np.intp)
        edges = P.tocoo()
        inside = float(edges.data[labels[edges.row] == labels[edges.col]].sum())
        self._mean_log_weight = inside * np.log(self.same) + (float(P.data.sum()) - inside) * np.log(self.other)

    def repulsion(self, Y: Array) -> tuple[Array, float]:
        """Σⱼ wᵢⱼ t²ᵢⱼ (yᵢ − yⱼ) and Z; R is the first divided by the second."""
        points = Y[self._order]
        forces, Z = self._direct(points) if self.method == "exact" else self._approximate(points)
        unsorted = np.empty_like(forces)
        unsorted[self._order] = forces
        return unsorted, Z

    def _direct(self, points: Array) -> tuple[Array, float]:
        return direct_sums(points, self._starts, self.same, self.other)

    def _all_pairs(self, points: Array) -> tuple[Array, float]:
        return tree_sums(points, self.theta) if self.method == "barnes_hut" else grid_sums(points)

    def _approximate(self, points: Array) -> tuple[Array, float]:
        forces, Z = self._all_pairs(points)
        forces, Z = self.other * forces, self.other * Z
        extra = self.same - self.other
        if extra == 0.0:
            return forces, Z
        starts = self._starts
        large = np.diff(starts) > MOST_DIRECT_IN_CLASS
        n_small = int((~large).sum())
        if n_small:
            small = slice(0, starts[n_small])
            within, Z_within = direct_sums(points[small], starts[: n_small + 1])
            forces[small] += extra * within
            Z += extra * Z_within
        for first, last in zip(starts[n_small:-1], starts[n_small + 1 :], strict=True):
            within, Z_within = self._all_pairs(points[first:last])
            forces[first:last] += extra * within
            Z += extra * Z_within
        return forces, Z

    def gradient(self, Y: Array, exaggeration: float = 1.0) -> Array:
        """c·A − R, a quarter of the gradient of c Σ p log(1 + |yᵢ − yⱼ|²) + log Z: the unit of learning rates."""
        forces, Z = self.repulsion(Y)
        return exaggeration * attraction(self.P, Y)[0] - forces / Z

    def value(self, Y: Array) -> float:
        """C(Y), the terms without Y included; Z is exact where n allows it."""
        # The grid is about 1 % off in Z, more than maps differ by.
        Z = self._direct(Y[self._order])[1] if len(Y) <= MOST_DIRECT else self.repulsion(Y)[1]
        divergence = attraction(self.P, Y, with_divergence=True)[1]
        return float(divergence - self._mean_log_weight + np.log(Z))


def starting_map(X: Array, n_components: int, initialization: str, generator: np.random.RandomState) -> Array:
    """Where the descent begins: the leading principal axes, or noise, with a deviation of 1e-4 on the first axis.

    The principal axes get 1 % of noise: equal rows would share a place forever, and a tree does not part them.
    """
    noise = START_SPREAD * generator.standard_normal((len(X), n_components))
    if initialization == "random":
        return noise
    axes = principal_axes(X, min(n_components, min(X.shape)))[:, :n_components]
    axes = axes - axes.mean(axis=0)
    spread = float(axes[:, 0].std())
    start = 0.01 * noise
    if spread > 0:
        start[:, : axes.shape[1]] += axes * (START_SPREAD / spread)
    return start


def layout(
    P: sparse.csr_matrix,
    start: Array,
    *,
    labels: Codes | None = None,
    beta: float = 1.0,
    method: Summation = "auto",
    theta: float = 0.5,
    n_iter: int = 1000,
    early_exaggeration: float = 12.0,
    exaggeration_iter: int = 250,
    learning_rate: float | Literal["auto"] = "auto",
    watch: Watch = UNWATCHED,
) -> tuple[Array, float]:
    """A map (n, k) and KL(P‖R) there, by descent from `start` with momentum and a gain for each coordinate.

    β′ = 1 or one class is t-SNE.

    P exaggerated and momentum 0.5 for `exaggeration_iter` iterations, then P as it is and momentum 0.8. "auto" is a
    rate of max(200, n/12). The `watch` is told of every iteration, with the cost of every fiftieth,
    and may end it. P may serve many maps: it is not changed.
    """
    objective = ConditionedDivergence(P, labels, beta, method=method, theta=theta)
    rate = max(200.0, len(start) / 12) if learning_rate == "auto" else float(learning_rate)
    Y, update, gains = start - start.mean(axis=0), np.zeros_like(start), np.ones_like(start)
    for iteration in range(1, n_iter + 1):
        exaggerated = iteration <= exaggeration_iter
        gradient = objective.gradient(Y, early_exaggeration if exaggerated else 1.0)
        turned = np.sign(gradient) != np.sign(update)
        gains = np.maximum(np.where(turned, gains + 0.2, 0.8 * gains), 0.01)
        with np.errstate(over="ignore", invalid="ignore"):
            update = (MOMENTUM_EXAGGERATED if exaggerated else MOMENTUM) * update - rate * gains * gradient
            length = np.sqrt(np.einsum("ik,ik->i", update, update))
            update *= np.minimum(1.0, LONGEST_STEP / np.maximum(length, LONGEST_STEP))[:, None]
            Y = Y + update
            Y -= Y.mean(axis=0)
        checked = iteration % CHECK_EVERY == 0 or iteration == n_iter
        if checked and not np.isfinite(Y).all():
            raise InvalidValueError(
                f"learning_rate must keep the map finite; with {rate:g} it was not after {iteration} iterations, so "
                "lower it."
            )
        cost = objective.value(Y) if checked and watch.progress is not None else None
        tell_iteration(watch, iteration, n_iter, cost)
    return Y, objective.value(Y)
