"""The reductions of rows that are read as blocks of float64, wherever these come from: memory or files.

Frames lie as rows (Rk × d), so that both products of a block are BLAS calls on contiguous memory.
"""

from __future__ import annotations

import numpy as np

from imapce.rows.base import Array, Moments, Quartic, Rows, scatter_is_affordable


class Memory:
    """Arrays that are overwritten by every block of a pass instead of being made anew.

    Where memory goes back to the system as soon as it is free, as Dask asks its workers to do, arrays made anew cost as
    much as half of the products: 55 to 59 ms of a processor instead of 41 to 45 for 100,000 × 100 and ten starts.

    >>> memory = Memory()
    >>> memory.of("u", (2, 3)).base is memory.of("u", (2, 2)).base
    True
    """

    def __init__(self) -> None:
        self._held: dict[str, Array] = {}

    def of(self, name: str, shape: tuple[int, int]) -> Array:
        """An array of this shape, its values to be written."""
        size = shape[0] * shape[1]
        if name not in self._held or len(self._held[name]) < size:
            self._held[name] = np.empty(size)
        return self._held[name][:size].reshape(shape)


class BlockRows(Rows):
    """Every reduction as a sum over `blocks`; a subclass reads them.

    >>> from imapce.rows.dense import DenseRows
    >>> DenseRows(np.eye(2)).scatter_product(np.ones((2, 1)), np.zeros(1)).ravel().tolist()
    [1.0, 1.0]
    """

    # Bytes of a number as it is stored, by which a d×d matrix is weighed against the data.
    itemsize: int = 8

    def _compute_moments(self) -> Moments:
        d = self.n_features
        form_scatter = scatter_is_affordable(d, self.n_rows * d * self.itemsize)
        total = np.zeros(d)
        squares = np.zeros((d, d) if form_scatter else d)
        # The first block's mean as provisional centre: the sums then cancel by no more than the data's own spread.
        centre: Array | None = None
        for block in self.blocks():
            if centre is None:
                centre = block.mean(axis=0)
            shifted = block - centre
            total += shifted.sum(axis=0)
            if form_scatter:
                squares += shifted.T @ shifted
            else:
                squares += np.einsum("ij,ij->j", shifted, shifted)
        assert centre is not None
        delta = total / self.n_rows
        if form_scatter:
            scatter = squares - self.n_rows * np.outer(delta, delta)
            variance = np.diagonal(scatter) / self.n_rows
        else:
            scatter = None
            variance = squares / self.n_rows - delta**2
        return Moments(self.n_rows, centre + delta, np.maximum(variance, 0.0), scatter)

    def quartic(self, W: Array, offset: Array) -> Quartic:
        n_frames, d, k = W.shape
        frames = np.ascontiguousarray(W.transpose(0, 2, 1)).reshape(n_frames * k, d)
        shift = offset.reshape(-1, 1)
        weighted = np.zeros((n_frames * k, d))
        total = np.zeros(n_frames * k)
        memory = Memory()
        for block in self.blocks():
            u = memory.of("u", (n_frames * k, len(block)))
            np.matmul(frames, block.T, out=u)
            u -= shift
            per_frame = u.reshape(n_frames, k, -1)
            s, square = (memory.of(name, (n_frames, len(block))) for name in ("s", "square"))
            np.multiply(per_frame[:, 0], per_frame[:, 0], out=s)
            for axis in range(1, k):
                s += np.multiply(per_frame[:, axis], per_frame[:, axis], out=square)
            per_frame *= s[:, None]
            weighted += np.matmul(u, block, out=memory.of("product", (n_frames * k, d)))
            total += u.sum(axis=1)
        return Quartic(weighted.reshape(n_frames, k, d).transpose(0, 2, 1), total.reshape(n_frames, k))

    def scatter_product(self, W: Array, offset: Array) -> Array:
        result = np.zeros((W.shape[1], self.n_features))
        frames = np.ascontiguousarray(W.T)
        for block in self.blocks():
            result += (frames @ block.T - offset[:, None]) @ block
        return result.T

    def project(self, W: Array, offset: Array) -> Array:
        result = np.empty((self.n_rows, W.shape[1]))
        start = 0
        for block in self.blocks():
            np.matmul(block, W, out=result[start : start + len(block)])
            start += len(block)
        result -= offset
        return result
