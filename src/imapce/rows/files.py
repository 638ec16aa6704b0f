"""Rows that stay on disk: every reduction is one pass over the files, and what is small is kept in memory.

A pass is read by one thread and reduced by several, a portion each; what they leave is added in the order of the rows,
so that sums do not depend on which thread was faster. A sample of the rows, which the choice of a view asks for again
and again, is gathered in one pass and then lies in memory; a large part of them is a mask, and read past.
"""

from __future__ import annotations

import functools
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from imapce.common.arrays import Array, Codes, Mask
from imapce.common.streams import Portion, Stream, in_order, mask_within
from imapce.common.work import one_thread
from imapce.rows.base import Moments, Rows
from imapce.rows.dense import BlockRows, Blocks, DenseRows, Sums, add_sums, moments_of

Result = TypeVar("Result")

# Rows gathered from disk that may lie in memory: 160 MB, four times the 20,000 rows of 250 columns a search looks at.
GATHERED_BYTES = 160 << 20
GATHERED_SAMPLES = 4


class FileRows(BlockRows):
    """The rows of a stream, or those where `mask` is true.

    >>> from imapce.common.streams import Portion, Stream
    >>> class Twice(Stream):
    ...     shape = (4, 1)
    ...     def portions(self, columns=None):
    ...         for X in ([[1.0], [2.0]], [[3.0], [4.0]]):
    ...             yield Portion(2, lambda places, X=np.array(X): iter([X if places is None else X[places]]))
    >>> FileRows(Twice()).moments().mean, FileRows(Twice(), mask=np.array([True, False, False, False])).moments().mean
    (array([2.5]), array([1.]))
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

    def centre_if_far(self) -> FileRows:
        moments = self.moments()
        if not moments.is_far_from_zero:
            return self
        # Centring moves means and nothing else, and another pass over the files would be dear.
        return self.with_origin(moments.mean, replace(moments, mean=np.zeros(self.n_features)))

    # --- one pass -----------------------------------------------------------------------------------------------------

    def _portions(self, columns: Codes | None = None) -> Iterator[tuple[Portion, Mask | None]]:
        """Every portion that has rows of these, and which of its own they are; what is not chosen is read past."""
        start = 0
        for portion in self._stream.portions(columns):
            chosen = None if self._mask is None else self._mask[start : start + portion.n_rows]
            start += portion.n_rows
            if chosen is None or chosen.any():
                yield portion, chosen

    def _blocks_of(self, portion: Portion, chosen: Mask | None, columns: Codes | None) -> Iterator[Array]:
        origin = self.origin if columns is None else self.origin[columns]
        shifted = bool(origin.any())
        for block in portion.blocks(None if chosen is None else np.flatnonzero(chosen)):
            yield block - origin if shifted else block

    def _of_each(self, reduce: Callable[[Blocks], Result], columns: Codes | None = None) -> Iterator[Result]:
        # BLAS threads of their own would wait for each other, and for these.
        with one_thread():
            yield from in_order(lambda read: reduce(self._blocks_of(*read, columns)), self._portions(columns))

    def _sum(self, reduce: Callable[[Blocks], Sums]) -> Sums:
        return functools.reduce(add_sums, self._of_each(reduce))

    def _compute_moments(self) -> Moments:
        moments = functools.partial(moments_of, form_scatter=self.forms_scatter)
        return functools.reduce(Moments.join, self._of_each(moments))

    def blocks(self, columns: Codes | None = None) -> Iterator[Array]:
        return chain.from_iterable(self._blocks_of(*read, columns) for read in self._portions(columns))

    def reduce_blocks(self, reduce: Callable[[Any], Any], columns: Codes | None = None) -> Iterator[Any]:
        return chain.from_iterable(self._of_each(lambda blocks: [reduce(block) for block in blocks], columns))

    # --- some of the rows ---------------------------------------------------------------------------------------------

    def subset(self, mask: Mask) -> Rows:
        if not self._fits(int(mask.sum())):
            return FileRows(self._stream, origin=self.origin, mask=mask_within(self._mask, mask))
        key = hashlib.blake2b(np.packbits(mask).tobytes(), digest_size=16).digest()
        if key not in self._gathered:
            self._gathered[key] = DenseRows(self._array_of(mask), origin=self.origin)
            if len(self._gathered) > GATHERED_SAMPLES:
                self._gathered.popitem(last=False)
        self._gathered.move_to_end(key)
        return self._gathered[key]

    def without(self, mask: Mask) -> Rows:
        if self._fits(int((~mask).sum())):
            return DenseRows(self._array_of(~mask)).centre_if_far()
        return FileRows(self._stream, mask=mask_within(self._mask, ~mask)).centre_if_far()

    def _fits(self, n_rows: int) -> bool:
        return n_rows * self.n_features * 8 <= GATHERED_BYTES // GATHERED_SAMPLES

    def _array_of(self, mask: Mask) -> Array:
        """The chosen rows as they are on disk, gathered in one pass."""
        array, filled = np.empty((int(mask.sum()), self.n_features)), 0
        chosen = FileRows(self._stream, mask=mask_within(self._mask, mask))
        for part in chosen.reduce_blocks(np.copy):
            array[filled : filled + len(part)] = part
            filled += len(part)
        return array
