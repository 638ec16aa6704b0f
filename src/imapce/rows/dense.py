"""Rows that are read as blocks of float64, and the engine whose blocks are parts of an array in memory.

Every reduction is a sum over blocks, each read once. A block is about 3 MB; what value and gradient cost, in plain
products Z·W, is measured by benchmarks/evaluation.py. Frames lie as rows (Rk × d), so that both products of a block are
BLAS calls on contiguous memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Self

import numpy as np

from imapce.common.arrays import Array, Codes, Mask
from imapce.rows.base import AnyArray, Moments, Quartic, Rows, scatter_is_affordable

BLOCK_BYTES = 3_000_000
# A subset larger than this is gathered block by block in each pass instead of being copied once.
COPY_LIMIT = 256 << 20
# What a core keeps at hand while it works on a part of a block.
CACHE_BYTES = 1 << 20
FEWEST_ROWS = 256
# Multiplications up to which OpenBLAS has kernels for small products: of 16 by 16 columns, 2,048 rows at a time, they
# took 0.45 of the time of symmetric products; with 4,096 rows, beyond them, nothing was gained.
SMALL_PRODUCT = 1_000_000

Blocks = Iterable[Array]
Sums = tuple[Array, ...]


class BlockRows(Rows):
    """Every reduction as a sum over `blocks`; a subclass reads them, and may add the sums of several portions.

    >>> DenseRows(np.eye(2)).scatter_product(np.ones((2, 1)), np.zeros(1)).ravel().tolist()
    [1.0, 1.0]
    """

    # Bytes of a number as it is stored, by which a d×d matrix is weighed against the data.
    itemsize: int = 8

    def _sum(self, reduce: Callable[[Blocks], Sums]) -> Sums:
        """The arrays that `reduce` makes of some blocks, added up over all."""
        return reduce(self.blocks())

    def centre_if_far(self) -> Self:
        """The rows with their mean as origin where a column lies far from zero, else unchanged."""
        moments = self.moments()
        return self.with_origin(moments.mean) if moments.is_far_from_zero else self

    @property
    def forms_scatter(self) -> bool:
        """Whether the moments hold the d×d scatter matrix."""
        return scatter_is_affordable(self.n_features, self.n_rows * self.n_features * self.itemsize)

    def _compute_moments(self) -> Moments:
        return moments_of(self.blocks(), form_scatter=self.forms_scatter)

    def quartic(self, W: Array, offset: Array) -> Quartic:
        return Quartic(*self._sum(partial(quartic_of, W=W, offset=offset)))

    def fourth_powers(self, W: Array, centre: Array) -> Array:
        return self._sum(partial(fourth_powers_of, W=W, centre=centre))[0]

    def scatter_product(self, W: Array, offset: Array) -> Array:
        return self._sum(partial(scatter_product_of, W=W, offset=offset))[0]


class DenseRows(BlockRows):
    """Any real 2-D array (float64, float32, integers, booleans, memory maps); converted block by block, never whole.

    >>> DenseRows(np.eye(3)).moments().mean
    array([0.33333333, 0.33333333, 0.33333333])
    """

    engine = "dense"
    because = "rows lie in memory and are read block by block"

    def __init__(self, array: AnyArray, *, origin: Array | None = None, index: Codes | None = None):
        self._array = array
        self._index = index
        self.itemsize = array.dtype.itemsize
        self.n_features = array.shape[1]
        self.n_rows = array.shape[0] if index is None else len(index)
        self.origin = np.zeros(self.n_features) if origin is None else origin
        self._block_rows = max(FEWEST_ROWS, BLOCK_BYTES // (8 * max(1, self.n_features)))

    def blocks(self, columns: Codes | None = None) -> Iterator[Array]:
        chosen = slice(None) if columns is None or len(columns) == self.n_features else columns
        origin = self.origin[chosen]
        in_place = self._array.dtype == np.float64 and self._index is None and not origin.any()
        buffer = np.empty((0 if in_place else min(self._block_rows, self.n_rows), len(origin)))
        for start in range(0, self.n_rows, self._block_rows):
            rows: Any = slice(start, start + self._block_rows)
            source: Any = self._array[rows if self._index is None else self._index[rows]][:, chosen]
            yield source if in_place else np.subtract(source, origin, out=buffer[: len(source)])

    def subset(self, mask: Mask) -> DenseRows:
        array, index = self._chosen(mask)
        return DenseRows(array, origin=self.origin, index=index)

    def without(self, mask: Mask) -> DenseRows:
        array, index = self._chosen(~mask)
        return DenseRows(array, index=index).centre_if_far()

    def _chosen(self, mask: Mask) -> tuple[AnyArray, Codes | None]:
        """The array and the places in it of the rows in `mask`: a copy, or where that is large the array as it is."""
        chosen = np.flatnonzero(mask)
        index = chosen if self._index is None else self._index[chosen]
        if len(index) * self.n_features * self._array.dtype.itemsize <= COPY_LIMIT:
            return self._array[index], None
        return self._array, index


# --- the sums over blocks, wherever these come from -------------------------------------------------------------------


def add_sums(sums: Sums, more: Sums) -> Sums:
    """Those of two portions as those of both."""
    return tuple(here + there for here, there in zip(sums, more, strict=True))


def moments_of(blocks: Blocks, *, form_scatter: bool) -> Moments:
    """n, mean, variance and, where asked for, Σ(z−m)(z−m)ᵀ."""
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


def quartic_of(blocks: Blocks, W: Array, offset: Array) -> Sums:
    """Σ s z uᵀ and Σ s u for every frame."""
    n_frames, d, k = W.shape
    weighted, total = np.zeros((k * n_frames, d)), np.zeros(k * n_frames)
    for block, u, s in _in_frames(blocks, W, offset):
        u *= s
        flat = u.reshape(k * n_frames, -1)
        weighted += flat @ block
        total += flat.sum(axis=1)
    return weighted.reshape(k, n_frames, d).transpose(1, 2, 0), total.reshape(k, n_frames).T


def fourth_powers_of(blocks: Blocks, W: Array, centre: Array) -> Sums:
    """Σ s² of every frame."""
    result = np.zeros(len(W))
    for _, _, s in _in_frames(blocks, W, np.zeros(W.shape[::2]), centre):
        # The scalar products of rows with themselves: one read of s, where a square and a sum are three.
        result += np.matmul(s[:, None, :], s[:, :, None]).ravel()
    return (result,)


def _in_frames(
    blocks: Blocks, W: Array, offset: Array, centre: Array | None = None
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
            s, square = (memory[: n_frames * m].reshape(-1, m) for memory in (of_s, of_square))
            np.matmul(frames, part.T, out=u)
            if shifted:
                u -= shift
            of_axis = u.reshape(k, n_frames, m)
            np.multiply(of_axis[0], of_axis[0], out=s)
            for axis in of_axis[1:]:
                s += np.multiply(axis, axis, out=square)
            yield part, of_axis, s


def scatter_product_of(blocks: Blocks, W: Array, offset: Array) -> Sums:
    """Σ z uᵀ with u = Wᵀz − offset."""
    frames = np.ascontiguousarray(W.T)
    result = np.zeros_like(frames)
    for block in blocks:
        result += (frames @ block.T - offset[:, None]) @ block
    return (result.T,)
