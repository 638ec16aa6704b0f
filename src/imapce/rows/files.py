"""Rows that stay on disk: every reduction is one pass over the files, and what is small is kept in memory.

A sample of the rows, which the choice of a view asks for again and again, is gathered in one pass and then lies in
memory; a large part of them is a mask, and read past.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from imapce.common.streams import Stream
from imapce.rows.base import Array, Rows
from imapce.rows.blocks import BlockRows
from imapce.rows.dense import FAR_FROM_ORIGIN, DenseRows

Mask = NDArray[np.bool_]

# Rows gathered from disk that may lie in memory: 160 MB, four times the 20,000 rows of 250 columns a search looks at.
GATHERED_BYTES = 160 << 20
GATHERED_SAMPLES = 4


class FileRows(BlockRows):
    """The rows of a stream, or those where `mask` is true.

    >>> from imapce.common.streams import Stream
    >>> class Twice(Stream):
    ...     shape = (4, 1)
    ...     def blocks(self, columns=None):
    ...         yield np.array([[1.0], [2.0]])
    ...         yield np.array([[3.0], [4.0]])
    >>> FileRows(Twice()).moments().mean, FileRows(Twice(), mask=np.array([True, False, False, True])).n_rows
    (array([2.5]), 2)
    """

    engine = "files"
    because = "rows are larger than memory and are read from disk, pass by pass"
    itemsize = 4

    def __init__(self, stream: Stream, *, origin: Array | None = None, mask: Mask | None = None):
        self._stream, self._mask = stream, mask
        n, self.n_features = stream.shape
        self.n_rows = n if mask is None else int(mask.sum())
        self.origin = np.zeros(self.n_features) if origin is None else origin
        # By what was asked for: the same sample is asked for by every part of a fit.
        self._gathered: OrderedDict[bytes, DenseRows] = OrderedDict()

    @classmethod
    def centred_if_far(cls, stream: Stream, *, mask: Mask | None = None) -> FileRows:
        """The rows with their mean as origin where a column lies far from zero, else unchanged; the moments are kept.

        Centring moves means and nothing else, so one pass tells both.
        """
        rows = cls(stream, mask=mask)
        moments = rows.moments()
        spread = np.sqrt(moments.variance)
        if not np.any((spread > 0) & (np.abs(moments.mean) > FAR_FROM_ORIGIN * spread)):
            return rows
        return cls(stream, origin=moments.mean, mask=mask)

    def blocks(self, columns: NDArray[np.intp] | None = None) -> Iterator[Array]:
        shifted = bool(self.origin.any())
        origin = self.origin if columns is None else self.origin[columns]
        start = 0
        for block in self._stream.blocks(columns):
            stop = start + len(block)
            if self._mask is not None:
                block = block[self._mask[start:stop]]
            start = stop
            if len(block):
                yield block - origin if shifted else block

    def subset(self, mask: Mask) -> Rows:
        if not self._fits(int(mask.sum())):
            return FileRows(self._stream, origin=self.origin, mask=self._within(mask))
        key = hashlib.blake2b(np.packbits(mask).tobytes(), digest_size=16).digest()
        if key not in self._gathered:
            self._gathered[key] = DenseRows(self._array_of(mask), origin=self.origin)
            if len(self._gathered) > GATHERED_SAMPLES:
                self._gathered.popitem(last=False)
        self._gathered.move_to_end(key)
        return self._gathered[key]

    def without(self, mask: Mask) -> Rows:
        if self._fits(int((~mask).sum())):
            return DenseRows.centred_if_far(self._array_of(~mask))
        return FileRows.centred_if_far(self._stream, mask=self._within(~mask))

    def _within(self, mask: Mask) -> Mask:
        """A mask of these rows as one of the stream's."""
        if self._mask is None:
            return mask
        whole = np.zeros(len(self._mask), dtype=bool)
        whole[np.flatnonzero(self._mask)[mask]] = True
        return whole

    def _fits(self, n_rows: int) -> bool:
        return n_rows * self.n_features * 8 <= GATHERED_BYTES // GATHERED_SAMPLES

    def _array_of(self, mask: Mask) -> Array:
        """The chosen rows as they are on disk, gathered in one pass."""
        array, whole = np.empty((int(mask.sum()), self.n_features)), self._within(mask)
        start = filled = 0
        for block in self._stream.blocks():
            stop = start + len(block)
            chosen = block[whole[start:stop]]
            array[filled : filled + len(chosen)] = chosen
            start, filled = stop, filled + len(chosen)
        return array
