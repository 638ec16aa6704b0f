"""The n-body sums of t-SNE: F_S(i) = Σ_{j∈S, j≠i} t²ᵢⱼ (yᵢ − yⱼ) and Z_S = Σ_{i≠j∈S} tᵢⱼ, tᵢⱼ = 1/(1 + |yᵢ − yⱼ|²).

Directly (Numba, exact), through openTSNE's trees or through its interpolation on a grid; and the attraction along the
edges of P. openTSNE keeps these routines private: this is the only module that knows them, and its tests hold each
one against the plain double sum.

>>> direct_sums(np.array([[0.0, 0.0], [0.0, 1.0]]), np.array([0, 2]))[1]
1.0
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from joblib import cpu_count
from scipy import sparse

from imapce.common.arrays import Array, Codes
from imapce.errors import needs

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
