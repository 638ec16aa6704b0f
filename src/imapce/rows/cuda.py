"""Rows on a graphics card: encoded once, then every evaluation is one read of the card's memory.

The origin is always subtracted: columns far from zero would lose their digits in float32. Moments are float64, taken in
the pass that finds the columns' ranges (`rows/cuda_source.py`); the rows are then written as z' = (x − origin)·c, c a
power of two for every column. What does not fit the card stays where it is, on the host or in files, and is encoded
again whenever it is read.

All of it runs by plain products, `plain_quartic`, with CuPy on any card and with NumPy on none. Cards of compute
capability 9.0 and later hold pairs of fp16 instead, which a kernel of ours reduces (`rows/cuda_kernel.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from imapce.common.arrays import Array, Codes, Mask, cupy_module, on_host
from imapce.common.streams import Stream
from imapce.errors import InvalidValueError
from imapce.rows.base import Moments, Quartic, Rows
from imapce.rows.cuda_kernel import (
    CHUNK_BYTES,
    ROOM_FOR_FRAME,
    HalvesStore,
    column_scale,
    frame_lift,
    kernel_runs,
)
from imapce.rows.cuda_source import ArraySource, CardSource, StreamSource, scale_batch, survey

PART_BYTES = 1 << 30  # of encoded rows that are read again in every pass
ROOM = 0.85  # of the card's free memory, for encoded rows; the rest is for what is multiplied


class PlainStore:
    """Some rows as float32, on any card, and in NumPy where `xp` is that."""

    def __init__(self, xp: Any, n_rows: int, n_columns: int):
        self._xp, self.n_rows, self.n_columns = xp, n_rows, n_columns
        self._rows = xp.empty((n_rows, n_columns), dtype=np.float32)

    def write(self, first: int, scaled: Any) -> None:
        """Rows from `first` on, float32 on the card."""
        self._rows[first : first + len(scaled)] = scaled

    def chunks(self) -> Iterator[Any]:
        """All rows in order, as float32 on the card."""
        step = max(1, CHUNK_BYTES // (4 * self.n_columns))
        for first in range(0, self.n_rows, step):
            yield self._rows[first : first + step]

    def chosen(self, index: Any) -> PlainStore:
        """The rows at the given places (int64 on the card), in a store of their own."""
        store = PlainStore(self._xp, len(index), self.n_columns)
        store._rows[:] = self._rows[index]
        return store


Store = PlainStore | HalvesStore


def plain_quartic(xp: Any, chunks: Iterator[Any], frames: Array, offset: Array) -> tuple[Array, Array]:
    """The reduction by float32 products of some 65,000 rows, whose sums are added in float64; any k."""
    n_frames, d, k = frames.shape
    lift = frame_lift(frames)
    # u = (z, 1)·(W; −offset), frame by frame and axis by axis: then s of a frame is a sum of k rows of a matrix.
    columns = (frames * lift[:, None, None]).transpose(0, 2, 1).reshape(-1, d)
    W, shift = xp.asarray(columns.astype(np.float32)), xp.asarray((offset * lift[:, None]).reshape(-1, 1), dtype="f4")
    weighted, total = xp.zeros((n_frames * k, d)), xp.zeros(n_frames * k)
    for chunk in chunks:
        for first in range(0, len(chunk), 1 << 16):
            Z = chunk[first : first + (1 << 16)]
            u = W @ Z.T
            u -= shift
            per_frame = u.reshape(n_frames, k, -1)
            per_frame *= xp.einsum("rkn,rkn->rn", per_frame, per_frame)[:, None]
            weighted += u @ Z
            total += u.sum(axis=1, dtype=np.float64)
    back = 1.0 / lift**3
    moved = on_host(weighted).reshape(n_frames, k, d).transpose(0, 2, 1) * back[:, None, None]
    return moved, on_host(total).reshape(n_frames, k) * back[:, None]


class CudaRows(Rows):
    """Rows of an array of the card, or of the host or of files, brought there.

    >>> rows = CudaRows.open(np.array([[0.0, 1.0], [2.0, 1.0]]), xp=np)    # the same steps, computed by NumPy
    >>> rows.origin, rows.moments().variance
    (array([1., 1.]), array([1., 0.]))
    """

    engine = "cuda"
    because = "rows lie on a graphics card"

    # κ and the gradient are good to about 5e-7, most of it the same at neighbouring points of a search.
    precision = 1e-7
    resolution = 1e-7

    def __init__(
        self,
        source: CardSource,
        origin: Array,
        scale: Array,
        held: list[Store],
        *,
        moments: Moments | None = None,
    ):
        self._source, self.held, self._kept_moments = source, held, moments
        self.xp = source.xp
        self.origin, self.scale = origin, scale
        self.n_rows, self.n_features = source.shape

    @classmethod
    def open(cls, matrix: Any, *, xp: Any = None) -> CudaRows:
        """Read once for moments and ranges, once more to be encoded."""
        xp = cupy_module() if xp is None else xp
        return cls._of(StreamSource(xp, matrix) if isinstance(matrix, Stream) else ArraySource(xp, matrix))

    @classmethod
    def _of(cls, source: CardSource) -> CudaRows:
        moments, largest = survey(source.xp, source.shape, source.batches())
        about_mean = replace(moments, mean=np.zeros_like(moments.mean))
        rows = cls(source, moments.mean, column_scale(largest), [], moments=about_mean)
        rows._write()
        return rows

    def _write(self) -> None:
        """Encode as many rows as the card has room for; the others are encoded when they are read."""
        count = self._room()
        if count < self.n_rows and self._source.lies_on_card:
            need = HalvesStore.bytes_of(self.n_rows - count, self.n_features) / 2**30
            raise InvalidValueError(
                f"engine='cuda' needs another {need:.1f} GiB on the card for X, and it is full; pass X as an array of "
                "the host, which is then read in parts, or fewer rows."
            )
        self.held = list(self._encode(0, count, step=count))

    def _room(self) -> int:
        """How many rows to hold."""
        if self.xp is np:
            return self.n_rows
        self.xp.get_default_memory_pool().free_all_blocks()
        free = self.xp.cuda.Device().mem_info[0]
        return min(self.n_rows, int(ROOM * free) // HalvesStore.bytes_of(1, self.n_features))

    def _store(self, n_rows: int) -> Store:
        if self.xp is not np and kernel_runs(self.xp):
            return HalvesStore(self.xp, n_rows, self.n_features)
        return PlainStore(self.xp, n_rows, self.n_features)

    def _encode(self, start: int, stop: int, *, step: int) -> Iterator[Store]:
        """The rows from `start` to `stop`, read once, in stores of `step` rows."""
        if start == stop:
            return
        origin, scale = self.xp.asarray(self.origin), self.xp.asarray(self.scale)
        store, filled = self._store(min(step, stop - start)), 0
        for batch in self._source.batches(start=start, stop=stop):
            while len(batch):
                part, batch = batch[: store.n_rows - filled], batch[store.n_rows - filled :]
                store.write(filled, scale_batch(self.xp, part, origin, scale))
                filled += len(part)
                start += len(part)
                if filled == store.n_rows:
                    yield store
                    if start < stop:
                        store, filled = self._store(min(step, stop - start)), 0

    def _stores(self) -> Iterator[Store]:
        """Every row in order; those that are not held are read and encoded now, a gigabyte at a time."""
        yield from self.held
        first = sum(store.n_rows for store in self.held)
        yield from self._encode(first, self.n_rows, step=max(1, PART_BYTES // (4 * self.n_features)))

    def _compute_moments(self) -> Moments:
        """Of a subset, from the rows as they are held, in the coordinates of all."""
        return survey(self.xp, (self.n_rows, self.n_features), self.native_blocks())[0]

    def quartic(self, W: Array, offset: Array) -> Quartic:
        inside = W / self.scale[:, None]
        weighted, total = np.zeros(W.shape), np.zeros(offset.shape)
        for store in self._stores():
            if isinstance(store, HalvesStore) and W.shape[2] in ROOM_FOR_FRAME:
                more, sums = store.quartic(inside, offset)
            else:
                more, sums = plain_quartic(self.xp, store.chunks(), inside, offset)
            weighted += more
            total += sums
        return Quartic(weighted / self.scale[:, None], total)

    def scatter_product(self, W: Array, offset: Array) -> Array:
        inside, shift = self.xp.asarray(W / self.scale[:, None]), self.xp.asarray(offset)
        result = self.xp.zeros((self.n_features, W.shape[1]))
        for chunk in self._chunks():
            Z = chunk.astype(np.float64)
            result += Z.T @ (Z @ inside - shift)
        return on_host(result) / self.scale[:, None]

    def project_exactly(self, W: Array, offset: Array) -> Array:
        # From the rows as they came: of 30,000 of them 22 bits told a few pairs in another order than float64 does.
        return on_host(_project_source(self._source, W, self.origin)) - offset

    def project(self, W: Array, offset: Array) -> Array:
        inside, shift = self.xp.asarray(W / self.scale[:, None]), self.xp.asarray(offset)
        return on_host(self.xp.concatenate([chunk.astype(np.float64) @ inside - shift for chunk in self._chunks()]))

    def subset(self, mask: Mask) -> CudaRows:
        source = self._source.subset(mask)
        if sum(store.n_rows for store in self.held) < self.n_rows:
            rows = CudaRows(source, self.origin, self.scale, [])
            rows._write()
            return rows
        held, first = [], 0
        for store in self.held:
            chosen = np.flatnonzero(mask[first : first + store.n_rows])
            first += store.n_rows
            if len(chosen):
                held.append(store.chosen(self.xp.asarray(chosen)))
        return CudaRows(source, self.origin, self.scale, held)

    def without(self, mask: Mask) -> CudaRows:
        return CudaRows._of(self._source.subset(~mask))

    def blocks(self, columns: Codes | None = None) -> Iterator[Array]:
        return map(on_host, self.native_blocks(columns))

    def native_blocks(self, columns: Codes | None = None) -> Iterator[Any]:
        chosen = None if columns is None else self.xp.asarray(columns)
        back = self.xp.asarray(1.0 / self.scale if columns is None else 1.0 / self.scale[columns])
        for chunk in self._chunks():
            yield (chunk if chosen is None else chunk[:, chosen]) * back

    def _chunks(self) -> Iterator[Any]:
        for store in self._stores():
            yield from store.chunks()


def project_on_card(matrix: Any, W: Array, mean: Array, *, xp: Any = None) -> Any:
    """(x − mean)ᵀW of every row, in float64 and left on the card."""
    return _project_source(ArraySource(cupy_module() if xp is None else xp, matrix), W, mean)


def _project_source(source: CardSource, W: Array, centre: Array) -> Any:
    frames, middle = source.xp.asarray(W), source.xp.asarray(centre)
    return source.xp.concatenate([(batch - middle) @ frames for batch in source.batches()])
