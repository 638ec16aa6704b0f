"""The reductions of rows that are read as blocks of float64, wherever these come from: memory or files.

Frames lie as rows (Rk × d), so that both products of a block are BLAS calls on contiguous memory.
"""

from __future__ import annotations

import numpy as np

from imapce.rows.base import Array, Moments, Quartic, Rows, scatter_is_affordable


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
        for block in self.blocks():
            u = frames @ block.T
            u -= shift
            per_frame = u.reshape(n_frames, k, -1)
            s = per_frame[:, 0] * per_frame[:, 0]
            for axis in range(1, k):
                s += per_frame[:, axis] * per_frame[:, axis]
            per_frame *= s[:, None]
            weighted += u @ block
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
