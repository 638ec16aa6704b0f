"""The reductions of rows that are read as blocks of float64, wherever these come from: memory or files.

Frames lie as rows (Rk × d), so that both products of a block are BLAS calls on contiguous memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from imapce.rows.base import Array, Moments, Quartic, Rows, scatter_is_affordable

# What a core keeps at hand while it works on a part of a block.
CACHE_BYTES = 1 << 20
FEWEST_ROWS = 256
# Multiplications up to which OpenBLAS has kernels for small products: of 16 by 16 columns, 2,048 rows at a time, they
# took 0.45 of the time of symmetric products; with 4,096 rows, beyond them, nothing was gained.
SMALL_PRODUCT = 1_000_000


class BlockRows(Rows):
    """Every reduction as a sum over `blocks`; a subclass reads them.

    >>> from imapce.rows.dense import DenseRows
    >>> DenseRows(np.eye(2)).scatter_product(np.ones((2, 1)), np.zeros(1)).ravel().tolist()
    [1.0, 1.0]
    """

    # Bytes of a number as it is stored, by which a d×d matrix is weighed against the data.
    itemsize: int = 8

    @property
    def _forms_scatter(self) -> bool:
        return scatter_is_affordable(self.n_features, self.n_rows * self.n_features * self.itemsize)

    def _compute_moments(self) -> Moments:
        return moments_of(self.blocks(), form_scatter=self._forms_scatter)

    def quartic(self, W: Array, offset: Array) -> Quartic:
        return quartic_of(self.blocks(), W, offset)

    def fourth_powers(self, W: Array, centre: Array) -> Array:
        return fourth_powers_of(self.blocks(), W, centre)

    def scatter_product(self, W: Array, offset: Array) -> Array:
        return scatter_product_of(self.blocks(), W, offset)

    def project(self, W: Array, offset: Array) -> Array:
        result = np.empty((self.n_rows, W.shape[1]))
        start = 0
        for block in self.blocks():
            np.matmul(block, W, out=result[start : start + len(block)])
            start += len(block)
        result -= offset
        return result


def moments_of(blocks: Iterable[Array], *, form_scatter: bool) -> Moments:
    """n, mean, variance and, where asked for, Σ(z−m)(z−m)ᵀ.

    >>> moments_of([np.array([[1.0], [3.0]])], form_scatter=True).variance
    array([1.])
    """
    # The first block's mean as provisional centre: the sums then cancel by no more than the data's own spread.
    centre: Array | None = None
    for block in blocks:
        if centre is None:
            n, d, centre = 0, block.shape[1], block.mean(axis=0)
            total, squares = np.zeros(d), np.zeros((d, d) if form_scatter else d)
            add = _add_products if form_scatter else _add_squares
        n += len(block)
        add(block, centre, total, squares)
    assert centre is not None
    delta = total / n
    if form_scatter:
        scatter = squares - n * np.outer(delta, delta)
        variance = np.diagonal(scatter) / n
    else:
        scatter = None
        variance = squares / n - delta**2
    return Moments(n, centre + delta, np.maximum(variance, 0.0), scatter)


def _add_squares(block: Array, centre: Array, total: Array, squares: Array) -> None:
    shifted = block - centre
    total += shifted.sum(axis=0)
    squares += np.einsum("ij,ij->j", shifted, shifted)


def _add_products(block: Array, centre: Array, total: Array, products: Array) -> None:
    """Σ(z−c) and Σ(z−c)(z−c)ᵀ as one product of rows (z−c, 1): the ones are summed by the way."""
    d = len(centre)
    few = (d + 1) * d * FEWEST_ROWS <= SMALL_PRODUCT
    step = SMALL_PRODUCT // ((d + 1) * d) if few else len(block)
    extended = _empty_like(block, (min(step, len(block)), d + 1))
    extended[:, d] = 1.0
    for start in range(0, len(block), step):
        part = block[start : start + step]
        rows = extended[: len(part)]
        np.subtract(part, centre, out=rows[:, :d])
        # Of a matrix and itself NumPy makes one triangle, by a routine that takes twice the time if it is small.
        result = rows.T @ (rows[:, :d] if few else rows)
        products += result[:d, :d]
        total += result[d, :d]


def _empty_like(block: Array, shape: tuple[int, int]) -> Array:
    """New memory in which rows or columns lie in one run, as they do in a block."""
    return np.empty(shape, order="F" if block.strides[0] < block.strides[1] else "C")


def quartic_of(blocks: Iterable[Array], W: Array, offset: Array) -> Quartic:
    """Σ s z uᵀ and Σ s u for every frame.

    >>> quartic_of([np.eye(2)], np.ones((1, 2, 1)), np.zeros((1, 1))).total
    array([[2.]])
    """
    n_frames, d, k = W.shape
    weighted, total = np.zeros((k * n_frames, d)), np.zeros(k * n_frames)
    for block, u, s in _in_frames(blocks, W, offset):
        u *= s
        flat = u.reshape(k * n_frames, -1)
        weighted += flat @ block
        total += flat.sum(axis=1)
    return Quartic(weighted.reshape(k, n_frames, d).transpose(1, 2, 0), total.reshape(k, n_frames).T)


def fourth_powers_of(blocks: Iterable[Array], W: Array, centre: Array) -> Array:
    """Σ s² of every frame.

    >>> fourth_powers_of([np.eye(2)], np.ones((1, 2, 1)), np.zeros(2))
    array([2.])
    """
    result = np.zeros(len(W))
    for _, _, s in _in_frames(blocks, W, np.zeros(W.shape[::2]), centre):
        # The scalar products of rows with themselves: one read of s, where a square and a sum are three.
        result += np.matmul(s[:, None, :], s[:, :, None]).ravel()
    return result


def _in_frames(
    blocks: Iterable[Array], W: Array, offset: Array, centre: Array | None = None
) -> Iterator[tuple[Array, Array, Array]]:
    """Every block, in parts that fit in cache with what is made of them: u (k, R, m) and s = ‖u‖² (R, m).

    u = Wᵀ(z − centre) − offset; columns are fewer than the axes of all frames, where these are many.
    """
    n_frames, d, k = W.shape
    # First axes of all frames, then second ones: each lies in one run of memory, which halves the time of the squares.
    frames = np.ascontiguousarray(W.transpose(2, 0, 1)).reshape(k * n_frames, d)
    shift = offset.T.reshape(-1, 1)
    shifted = bool(shift.any())
    step = max(FEWEST_ROWS, CACHE_BYTES // (8 * (n_frames * (k + 2) + d)))
    # The same memory again and again: with new arrays a third of the speed was left (29 frames of 16 columns).
    of_u, of_s, of_square = np.empty(k * n_frames * step), np.empty(n_frames * step), np.empty(n_frames * step)
    of_part: Array | None = None
    for block in blocks:
        for start in range(0, len(block), step):
            part = block[start : start + step]
            m = len(part)
            if centre is not None:
                of_part = _empty_like(block, (step, d)) if of_part is None else of_part
                part = np.subtract(part, centre, out=of_part[:m])
            u = of_u[: k * n_frames * m].reshape(-1, m)
            s, square = (one[: n_frames * m].reshape(-1, m) for one in (of_s, of_square))
            np.matmul(frames, part.T, out=u)
            if shifted:
                u -= shift
            of_axis = u.reshape(k, n_frames, m)
            np.multiply(of_axis[0], of_axis[0], out=s)
            for axis in of_axis[1:]:
                s += np.multiply(axis, axis, out=square)
            yield part, of_axis, s


def scatter_product_of(blocks: Iterable[Array], W: Array, offset: Array) -> Array:
    """Σ z uᵀ with u = Wᵀz − offset.

    >>> scatter_product_of([np.eye(2)], np.ones((2, 1)), np.zeros(1)).ravel().tolist()
    [1.0, 1.0]
    """
    frames = np.ascontiguousarray(W.T)
    result = np.zeros_like(frames)
    for block in blocks:
        result += (frames @ block.T - offset[:, None]) @ block
    return result.T
