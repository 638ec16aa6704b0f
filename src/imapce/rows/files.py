"""Rows that stay on disk: every reduction is one pass over the files, and what is small is kept in memory.

A pass is read by one thread and reduced by several, a portion each; what they leave is added in the order of the rows,
so that sums do not depend on which thread was faster. A sample of the rows, which the choice of a view asks for again
and again, is gathered in one pass and then lies in memory; a large part of them is a mask, and read past.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from functools import reduce as reduced
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from imapce.common.streams import Mask, Portion, Stream, in_order, mask_within
from imapce.common.threads import one_thread
from imapce.rows.base import Array, Moments, Quartic, Rows
from imapce.rows.blocks import BlockRows, fourth_powers_of, moments_of, quartic_of, scatter_product_of
from imapce.rows.dense import DenseRows

Result = TypeVar("Result")
Blocks = Callable[[], Iterator[Array]]

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

    def __init__(
        self,
        stream: Stream,
        *,
        origin: Array | None = None,
        mask: Mask | None = None,
        moments: Moments | None = None,
    ):
        self._stream, self._mask = stream, mask
        self._kept_moments = moments
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
        if not moments.is_far_from_zero:
            return rows
        about_mean = replace(moments, mean=np.zeros_like(moments.mean))
        return cls(stream, origin=moments.mean, mask=mask, moments=about_mean)

    # --- one pass -----------------------------------------------------------------------------------------------------

    def _portions(self, columns: NDArray[np.intp] | None = None) -> Iterator[Blocks]:
        """The blocks of every portion, in the coordinates of these rows; what is not chosen is read past."""
        origin = self.origin if columns is None else self.origin[columns]
        start = 0
        for portion in self._stream.portions(columns):
            chosen = None if self._mask is None else self._mask[start : start + portion.n_rows]
            start += portion.n_rows
            if chosen is None or chosen.any():
                yield partial(_chosen_blocks, portion, origin, chosen)

    def _of_each(self, reduce: Callable[[Blocks], Result], columns: NDArray[np.intp] | None = None) -> Iterator[Result]:
        # BLAS threads of their own would wait for each other, and for these.
        with one_thread():
            yield from in_order(reduce, self._portions(columns))

    def _compute_moments(self) -> Moments:
        form_scatter = self._forms_scatter
        return reduced(Moments.joined, self._of_each(lambda blocks: moments_of(blocks(), form_scatter=form_scatter)))

    def quartic(self, W: Array, offset: Array) -> Quartic:
        parts = self._of_each(lambda blocks: quartic_of(blocks(), W, offset))
        return reduced(lambda one, other: Quartic(one.weighted + other.weighted, one.total + other.total), parts)

    def fourth_powers(self, W: Array, centre: Array) -> Array:
        return reduced(np.add, self._of_each(lambda blocks: fourth_powers_of(blocks(), W, centre)))

    def scatter_product(self, W: Array, offset: Array) -> Array:
        return reduced(np.add, self._of_each(lambda blocks: scatter_product_of(blocks(), W, offset)))

    def project(self, W: Array, offset: Array) -> Array:
        result, start = np.empty((self.n_rows, W.shape[1])), 0
        for part in self._of_each(lambda blocks: np.concatenate([block @ W for block in blocks()])):
            np.subtract(part, offset, out=result[start : start + len(part)])
            start += len(part)
        return result

    def blocks(self, columns: NDArray[np.intp] | None = None) -> Iterator[Array]:
        for blocks in self._portions(columns):
            yield from blocks()

    def reduce_blocks(self, reduce: Callable[[Any], Any], columns: NDArray[np.intp] | None = None) -> Iterator[Any]:
        for results in self._of_each(lambda blocks: [reduce(block) for block in blocks()], columns):
            yield from results

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
            return DenseRows.centred_if_far(self._array_of(~mask))
        return FileRows.centred_if_far(self._stream, mask=mask_within(self._mask, ~mask))

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


def _chosen_blocks(portion: Portion, origin: Array, chosen: Mask | None) -> Iterator[Array]:
    shifted = bool(origin.any())
    for block in portion.blocks(None if chosen is None else np.flatnonzero(chosen)):
        yield block - origin if shifted else block
