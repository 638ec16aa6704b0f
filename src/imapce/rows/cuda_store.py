"""Rows in the memory of a card: as pairs of fp16 for the kernel, or as plain float32 where a card cannot run it.

A store holds z' = (x − origin)·c of some rows, c a power of two for every column, and is only ever read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from imapce.rows.cuda_kernel import FRAME_COLUMNS, ROOM_FOR_FRAME, WIDEST_PANEL, Shape, kernel
from imapce.rows.halves import frame_lift, padded, peak_fit

Array = NDArray[np.float64]

SOME_ROWS = 512
CHUNK_BYTES = 256 << 20  # of float32, for what is decoded to be multiplied
OVERFLOW, TOO_LOW = 60_000.0, 2.0**-6  # of |s·u| as fp16 sees it; between them no bit is lost


class Store(Protocol):
    """Some rows on the card."""

    n_rows: int
    n_columns: int

    def write(self, first: int, scaled: Any) -> None:
        """Rows from `first` on, float32 on the card."""

    def chunks(self) -> Iterator[Any]:
        """All rows in order, as float32 on the card."""

    def chosen(self, index: Any) -> Store:
        """The rows at the given places (int64 on the card), in a store of their own."""

    def quartic(self, frames: Array, offset: Array) -> tuple[Array, Array]:
        """Σ s z' uᵀ (R, d, k) and Σ s u (R, k)."""


class PlainStore:
    """Float32 rows and plain products: any card, and NumPy where `xp` is that.

    >>> store = PlainStore(np, 2, 3)
    >>> store.write(0, np.eye(2, 3, dtype=np.float32))
    >>> store.quartic(np.ones((1, 3, 1)), np.zeros((1, 1)))[0].ravel()
    array([1., 1., 0.])
    """

    def __init__(self, xp: Any, n_rows: int, n_columns: int):
        self._xp, self.n_rows, self.n_columns = xp, n_rows, n_columns
        self._rows = xp.empty((n_rows, n_columns), dtype=np.float32)

    def write(self, first: int, scaled: Any) -> None:
        self._rows[first : first + len(scaled)] = scaled

    def chunks(self) -> Iterator[Any]:
        step = max(1, CHUNK_BYTES // (4 * self.n_columns))
        for first in range(0, self.n_rows, step):
            yield self._rows[first : first + step]

    def chosen(self, index: Any) -> PlainStore:
        store = PlainStore(self._xp, len(index), self.n_columns)
        store._rows[:] = self._rows[index]
        return store

    def quartic(self, frames: Array, offset: Array) -> tuple[Array, Array]:
        return plain_quartic(self._xp, self.chunks(), frames, offset)


def plain_quartic(xp: Any, chunks: Iterator[Any], frames: Array, offset: Array) -> tuple[Array, Array]:
    """The reduction by float32 products of some 65,000 rows, whose sums are added in float64; any k.

    >>> plain_quartic(np, iter([np.eye(2, dtype=np.float32)]), np.ones((1, 2, 1)), np.zeros((1, 1)))[1]
    array([[2.]])
    """
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
    moved = _to_host(weighted).reshape(n_frames, k, d).transpose(0, 2, 1) * back[:, None, None]
    return moved, _to_host(total).reshape(n_frames, k) * back[:, None]


def _to_host(array: Any) -> Array:
    return array.get() if hasattr(array, "get") else array


class HalvesStore:
    """Pairs of fp16 in panels of at most 784 columns, reduced by `quartic.cu` in one read, or two of several panels."""

    def __init__(self, cupy: Any, n_rows: int, n_columns: int):
        self._cupy, self.n_rows, self.n_columns = cupy, n_rows, n_columns
        n_panels = -(-n_columns // WIDEST_PANEL)
        # Panels of one width, so that one kernel serves all; a multiple of 16 where there are several.
        self.width = n_columns if n_panels == 1 else -(-n_columns // n_panels // 16) * 16
        self.shape = Shape.of(self.width)
        self.codes = [cupy.empty((n_rows, self.shape.D), dtype=np.uint32) for _ in range(n_panels)]

    @staticmethod
    def bytes_of(n_rows: int, n_columns: int) -> int:
        """What the rows take on the card."""
        return 4 * n_rows * padded(n_columns)

    def _panels(self) -> Iterator[tuple[Any, slice]]:
        for place, code in enumerate(self.codes):
            yield code, slice(place * self.width, min((place + 1) * self.width, self.n_columns))

    def write(self, first: int, scaled: Any) -> None:
        scaled = self._cupy.ascontiguousarray(scaled)
        stride = np.int64(self.n_columns)
        for code, columns in self._panels():
            part, width = scaled[:, columns.start :], np.int32(columns.stop - columns.start)
            args = (part.data.ptr, stride, width, code, np.int64(first), np.int32(len(scaled)))
            kernel(self._cupy, self.shape, 2).encode((132 * 8,), (256,), args)

    def chunks(self) -> Iterator[Any]:
        step = max(1, CHUNK_BYTES // (4 * self.n_columns))
        for first in range(0, self.n_rows, step):
            yield self._decoded(first, min(step, self.n_rows - first))

    def _decoded(self, first: int, count: int) -> Any:
        rows = self._cupy.empty((count, self.n_columns), dtype=np.float32)
        stride = np.int64(self.n_columns)
        for code, columns in self._panels():
            part, width = rows[:, columns.start :], np.int32(columns.stop - columns.start)
            args = (code, np.int64(first), np.int32(count), part.data.ptr, stride, width)
            kernel(self._cupy, self.shape, 2).decode((132 * 8,), (256,), args)
        return rows

    def chosen(self, index: Any) -> HalvesStore:
        store = HalvesStore(self._cupy, len(index), self.n_columns)
        for code, to in zip(self.codes, store.codes, strict=True):
            args = (code, index, np.int32(len(index)), to)
            kernel(self._cupy, self.shape, 2).gather((132 * 8,), (256,), args)
        return store

    def quartic(self, frames: Array, offset: Array) -> tuple[Array, Array]:
        n_frames, d, k = frames.shape
        if k not in ROOM_FOR_FRAME:
            return plain_quartic(self._cupy, self.chunks(), frames, offset)
        at_once = FRAME_COLUMNS // ROOM_FOR_FRAME[k]
        weighted, total = np.empty((n_frames, d, k)), np.empty((n_frames, k))
        for first in range(0, n_frames, at_once):
            now = slice(first, first + at_once)
            weighted[now], total[now] = self._pass(frames[now], offset[now])
        return weighted, total

    @cached_property
    def desk(self) -> Desk:
        """Where evaluations put their frames and find their sums; made when the first one asks."""
        return Desk(self._cupy, self.shape, len(self.codes), self._some_rows())

    def _some_rows(self) -> Any:
        """Rows that stand for all (m, c) in the columns of the frames, evenly spaced."""
        places = np.linspace(0, self.n_rows - 1, min(SOME_ROWS, self.n_rows)).astype(np.int64)
        chosen = self.chosen(self._cupy.asarray(places))._decoded(0, len(places))
        some = self._cupy.zeros((len(places), len(self.codes), self.shape.padded_columns), dtype=np.float32)
        for place, (_, columns) in enumerate(self._panels()):
            some[:, place, : columns.stop - columns.start] = chosen[:, columns]
        return some.reshape(len(places), -1)

    def _pass(self, frames: Array, offset: Array) -> tuple[Array, Array]:
        """One pass for as many frames as fit; again with another scale where |s·u| left the range of fp16."""
        n_frames, _, k = frames.shape
        room, desk = ROOM_FOR_FRAME[k], self.desk
        lift = frame_lift(frames)
        held = desk.columns.reshape(len(self.codes), self.shape.padded_columns, -1, room)
        desk.clear()
        for place, (_, columns) in enumerate(self._panels()):
            part = frames[:, columns].transpose(1, 0, 2) * lift[:, None]
            held[place, : columns.stop - columns.start, :n_frames, :k] = part
        desk.offsets.reshape(-1, room)[:n_frames, :k] = offset * lift[:, None]
        peaks = self._launched(k)
        if not ((peaks <= OVERFLOW) & ((peaks >= TOO_LOW) | (peaks == 0))).all() and np.isfinite(peaks).all():
            # Peaks are taken before they are rounded to fp16, so they are right even where that overflowed.
            found = peaks / desk.scales
            if k == 3:
                found = np.repeat(found.reshape(-1, 2).max(axis=1), 2)
            self._launched(k, np.where(found > 0, [peak_fit(float(one)) for one in found], 1.0))
        back = 1.0 / (np.repeat(desk.scales, 2).reshape(-1, room)[:n_frames, :k] * lift[:, None] ** 3)
        sums = desk.sums.reshape(len(self.codes), self.shape.padded_columns + 8, -1, room)[:, :, :n_frames, :k]
        panels = [sums[i, : part.stop - part.start] for i, (_, part) in enumerate(self._panels())]
        weighted = np.concatenate(panels).transpose(1, 0, 2) * back[:, None]
        # Every panel adds up Σ s u; the first one's counts.
        return weighted, sums[0, self.shape.padded_columns :].sum(axis=0) * back

    def _launched(self, k: int, scales: Array | None = None) -> Array:
        """What is on the desk sent to the card, and the sums brought back; the peaks (12,)."""
        desk = self.desk
        desk.send(scales)
        fused = kernel(self._cupy, self.shape, k)
        fused.encode_frames(desk.columns_there, desk.words)
        if scales is None:
            fused.choose_scale(desk.some, desk.columns_there, desk.small_there)
        self.reduce_on_card(k)
        return desk.fetch()

    def reduce_on_card(self, k: int) -> None:
        """The kernels of one evaluation, of what was sent last; their sums stay on the card."""
        desk, cupy = self.desk, self._cupy
        if len(self.codes) == 1:
            fused = kernel(cupy, self.shape, k)
            fused.run(self.codes[0], self.n_rows, desk.words[0], desk.small_there, desk.sums_there[0])
            return
        if desk.U is None:
            desk.U = cupy.empty((self.n_rows, FRAME_COLUMNS), dtype=np.float32)
        for stage in (1, 2):
            for place, code in enumerate(self.codes):
                own = (code, self.n_rows, desk.words[place], desk.small_there, desk.sums_there[place], desk.U)
                kernel(cupy, self.shape, k, stage).run(*own, first_panel=place == 0)


class Desk:
    """Buffers of an evaluation, on the host (pinned, so that copies do not wait) and on the card, used again and again.

    The host's `columns` (panels · padded columns, 24) and `small` (24 offsets, 12 scales, 12 peaks) go up in one copy.
    """

    def __init__(self, cupy: Any, shape: Shape, n_panels: int, some: Any):
        self._cupy, self.some, self.U = cupy, some, None
        size, n_sums = n_panels * shape.padded_columns * FRAME_COLUMNS, n_panels * shape.partial
        up, self._up_there = self._pinned(size + 48, np.float32), cupy.empty(size + 48, dtype=np.float32)
        self._up, self.columns, self._small = up, up[:size].reshape(-1, FRAME_COLUMNS), up[size:]
        self.offsets, self.scales = self._small[:24], np.ones(12)
        self.columns_there = self._up_there[:size].reshape(-1, FRAME_COLUMNS)
        self.small_there = self._up_there[size:]
        self.words = cupy.empty((n_panels, shape.padded_columns // 2, FRAME_COLUMNS, 2), dtype=np.uint32)
        self.sums_there = cupy.empty((n_panels, shape.partial))
        self.sums, self._small_back = self._pinned(n_sums, np.float64), self._pinned(48, np.float32)

    def _pinned(self, count: int, dtype: Any) -> Any:
        memory = self._cupy.cuda.alloc_pinned_memory(count * np.dtype(dtype).itemsize)
        return np.frombuffer(memory, dtype, count)

    def clear(self) -> None:
        self._up[:] = 0.0

    def send(self, scales: Array | None) -> None:
        """Frames, offsets and, where they are known, scales; the peaks are zero."""
        self._small[24:36] = 1.0 if scales is None else scales
        self._small[36:] = 0.0
        self._up_there.set(self._up)

    def fetch(self) -> Array:
        """The sums to the host, and the scales that were used; the peaks (12,)."""
        self.sums_there.get(out=self.sums.reshape(self.sums_there.shape))
        self.small_there.get(out=self._small_back)
        self.scales = self._small_back[24:36].astype(np.float64)
        return self._small_back[36:].astype(np.float64)
