"""Rows as pairs of fp16, and the kernel of `quartic.cu` that reduces them in one read of the card's memory.

    z·c = hi + lo,    hi = fp16(z·c),  lo = fp16(z·c − hi),    c = 2^(14 − ⌈log₂ max|z|⌉) of the column

hi and lo have 11 bits each, so the pair keeps 22 to 23 of float32's 24 bits in the same four bytes, and tensor cores
multiply it as hi·hi + hi·lo + lo·hi. The scale is a power of two and costs no bit; it lifts every column to the upper
end of fp16, so that lo vanishes only where a value is 2⁻²⁴ of the largest.

Eight columns of a row lie as 16 bytes of hi, then 16 bytes of lo. The 16-byte chunks of a row are XORed by its number:
eight neighbouring rows then use different banks of shared memory, whether they are read along rows or along columns.
`tests/halves.py` writes all of this in NumPy.

Measured on an H200 with ten frames of two axes (ratio to one plain read of the same bytes): benchmarks/README.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from imapce.common.arrays import Array

FRAME_COLUMNS = 24
ROOM_FOR_FRAME = {1: 1, 2: 2, 3: 4}  # columns a frame of k axes takes
SHARED_BYTES = 232_448  # what one block may use of a multiprocessor's shared memory, compute capability 9.0
NARROW, WIDEST_PANEL = 208, 784  # columns: one warp holds the sums of 13 blocks of 16, seven warps of 7 each
MOST_TILES = 1024  # added to one float32 sum
CAPABILITY = 90
SOME_ROWS = 512
CHUNK_BYTES = 256 << 20  # of float32, for what is decoded to be multiplied
OVERFLOW, TOO_LOW = 60_000.0, 2.0**-6  # of |s·u| as fp16 sees it; between them no bit is lost
# Powers of two below which the largest value of a column, entry of a frame and |s·u| are brought: sums of a few columns
# still fit fp16's 65,504, hi and lo keep all bits of a frame, and |s·u| has room for 32 times as much.
COLUMN_TOP, FRAME_TOP, PEAK_TOP = 14, 10, 11


def padded(n_columns: int) -> int:
    """Columns a row has room for: whole chunks of eight."""
    return -(-n_columns // 8) * 8


def column_scale(largest: Array) -> Array:
    """c of columns whose largest |z| is given; 1 where there is nothing but zeros."""
    return _power_of_two(COLUMN_TOP, largest)


def frame_lift(frames: Array) -> Array:
    """The power of two that brings the largest entry of each frame (R, d, k) below 2^10; hi and lo keep its bits."""
    return _power_of_two(FRAME_TOP, np.abs(frames).max(axis=(1, 2), initial=0.0))


def peak_fit(peaks: Array) -> Array:
    """The power of two that brings the largest |s·u| of each pair of frame columns to 2^11."""
    return _power_of_two(PEAK_TOP, peaks)


def _power_of_two(top: int, largest: Array) -> Array:
    usable = (largest > 0) & np.isfinite(largest)
    return np.where(usable, np.exp2(top - np.ceil(np.log2(np.where(usable, largest, 1.0)))), 1.0)


@dataclass(frozen=True)
class Shape:
    """How a block of threads shares the work on rows of D columns; the names are those of `quartic.cu`.

    >>> Shape.of(64).WARPS, Shape.of(784).WIDE, Shape.of(784).shared_bytes <= SHARED_BYTES
    (8, 1, True)
    """

    D: int
    WIDE: int
    WARPS: int
    BLOCKS: int
    GROUPS: int
    SLOTS: int
    HELD: int

    @classmethod
    def of(cls, n_columns: int) -> Shape:
        """For rows of so many columns, at most WIDEST_PANEL."""
        D = padded(n_columns)
        blocks = -(-D // 16)
        if D <= NARROW:
            held = int(blocks <= 4)
            for warps in (8, 7, 6, 5, 4):
                fixed = 256 + warps * 1536 + (0 if held else blocks * 1536)
                slots = min(8, (SHARED_BYTES - fixed) // (warps * (64 * D + 8)))
                if slots >= 2:
                    return cls(D, 0, warps, blocks, 1, slots, held)
        best = cls(D, 1, 7, -(-blocks // 7), 1, 2, 1)
        for warps in range(2, 9):
            plain = cls(D, 1, warps, -(-blocks // warps), 1, 2, 1)
            for groups in range(1, 5):
                registers = 65536 // (32 * (warps * groups + 1))
                # Beyond a row lie the next one's columns, beyond the last 256 bytes of zeros: 64 columns of padding.
                if plain.padded_columns - D > 64 or plain.BLOCKS > 7 or min(255, registers) < 24 * plain.BLOCKS + 72:
                    continue
                slots = min(5, (SHARED_BYTES - 256) // groups // (64 * D + 16 + 1))
                while slots > 2 and cls(D, 1, warps, plain.BLOCKS, groups, slots, 1).shared_bytes > SHARED_BYTES:
                    slots -= 1
                shape = cls(D, 1, warps, plain.BLOCKS, groups, slots, 1)
                if slots >= 3 and shape.shared_bytes <= SHARED_BYTES and shape._worth > best._worth:
                    best = shape
        return best

    @property
    def _worth(self) -> tuple[int, int]:
        """More bytes on their way is better, then fewer columns that are padding."""
        return self.GROUPS * self.SLOTS * self.D, -self.WARPS * self.BLOCKS

    @property
    def shared_bytes(self) -> int:
        """What a block keeps in shared memory: tiles, a row of zeros, U and G or W, and barriers."""
        tile, plane = 64 * self.D, 16 * FRAME_COLUMNS * 2
        if self.WIDE:
            group = self.SLOTS * tile + 4 * 2 * self.WARPS * 16 * FRAME_COLUMNS + 4 * plane + 16 * self.SLOTS
            return self.GROUPS * group + 256
        w = 0 if self.HELD else self.BLOCKS * 96 * 16
        return self.WARPS * (self.SLOTS * (tile + 8) + 2 * plane) + 256 + w

    @property
    def threads(self) -> int:
        return 32 * (self.WARPS * self.GROUPS + 1 if self.WIDE else self.WARPS)

    @property
    def padded_columns(self) -> int:
        return (self.WARPS if self.WIDE else 1) * self.BLOCKS * 16

    @property
    def partial(self) -> int:
        """Numbers of one partial sum: the padded columns and eight rows of totals, by the frame columns."""
        return (self.padded_columns + 8) * FRAME_COLUMNS

    @property
    def groups_of_block(self) -> int:
        """Partial sums a block of threads writes."""
        return self.GROUPS if self.WIDE else self.WARPS


class Kernel:
    """One shape of `quartic.cu`, compiled for frames of k axes; `stage` as there."""

    def __init__(self, cupy: Any, shape: Shape, k: int, stage: int):
        self._cupy, self.shape, self._stage = cupy, shape, stage
        values = {**vars(shape), "K": k, "STAGE": stage}
        options = ("--std=c++17", *(f"-D{name}={value}" for name, value in values.items()))
        module = cupy.RawModule(code=source(), options=options)
        self._quartic, self._reduce = module.get_function("quartic"), module.get_function("reduce")
        self.encode, self.decode = module.get_function("encode"), module.get_function("decode")
        self.gather, self._encode_frames = module.get_function("gather"), module.get_function("encode_frames")
        self._quartic.max_dynamic_shared_size_bytes = shape.shared_bytes
        self._choose_scale = module.get_function("choose_scale")
        self._columns_of_frame = 4 if k == 3 else 2
        self._grid = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
        self._parts: Any = None

    def encode_frames(self, columns: Any, words: Any) -> None:
        """Columns of frames on the card (c, 24) as the kernel's words (c/2, 24, 2)."""
        pairs = columns.size // (2 * FRAME_COLUMNS)
        self._encode_frames((-(-pairs * FRAME_COLUMNS // 256),), (256,), (columns, words, np.int32(pairs)))

    def choose_scale(self, some: Any, columns: Any, small: Any) -> None:
        """The scales of s·u, written to `small`, from some rows (m, c) and the frames (c, 24)."""
        args = (some, np.int32(len(some)), np.int32(some.shape[1]), columns, small[:24], small[24:36])
        self._choose_scale((FRAME_COLUMNS // self._columns_of_frame,), (512,), args)

    def run(self, code: Any, n: int, words: Any, small: Any, out: Any, U: Any = 0, *, first_panel: bool = True) -> None:
        """One pass over `n` rows into `out`, (padded columns + 8, 24) of float64 on the card.

        `small` holds 24 offsets and 12 scales as float32, then room for 12 peaks.
        """
        tiles, groups = -(-n // 16), self._grid * self.shape.groups_of_block
        n_flushes = max(1, -(-tiles // (groups * MOST_TILES)))
        n_parts = n_flushes * groups
        if self._parts is None or len(self._parts) < n_parts:
            self._parts = self._cupy.empty((n_parts, self.shape.partial), dtype=np.float32)
        args = (code, np.int32(n), words, small[:24], small[24:36], small[36:48], self._parts)
        more = (np.int32(MOST_TILES), np.int32(n_flushes), U, np.int32(first_panel))
        self._quartic((self._grid,), (self.shape.threads,), (*args, *more), shared_mem=self.shape.shared_bytes)
        if self._stage != 1:
            self._reduce((-(-self.shape.partial // 32),), (32, 32), (self._parts, out, np.int32(n_parts)))


@cache
def source() -> str:
    """Both files as one text: the compiler of a running program finds no folder to include from."""
    here = files("imapce.rows")
    return (here / "quartic.cu").read_text().replace('#include "halves.cuh"', (here / "halves.cuh").read_text())


_kernels: dict[tuple[Any, ...], Kernel] = {}


def kernel(cupy: Any, shape: Shape, k: int, stage: int = 0) -> Kernel:
    """The compiled kernel, half a second the first time."""
    key = (int(cupy.cuda.Device().id), shape, k, stage)
    if key not in _kernels:
        _kernels[key] = Kernel(cupy, shape, k, stage)
    return _kernels[key]


def kernel_runs(cupy: Any) -> bool:
    """Whether this card has bulk copies: compute capability 9.0 (Hopper) or later."""
    return int(cupy.cuda.Device().compute_capability) >= CAPABILITY


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
            yield self._decode(first, min(step, self.n_rows - first))

    def _decode(self, first: int, count: int) -> Any:
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
        """Σ s z' uᵀ (R, d, k) and Σ s u (R, k), of frames of up to three axes."""
        n_frames, d, k = frames.shape
        at_once = FRAME_COLUMNS // ROOM_FOR_FRAME[k]
        weighted, total = np.empty((n_frames, d, k)), np.empty((n_frames, k))
        for first in range(0, n_frames, at_once):
            now = slice(first, first + at_once)
            weighted[now], total[now] = self._pass(frames[now], offset[now])
        return weighted, total

    @cached_property
    def buffers(self) -> Buffers:
        """Where evaluations put their frames and find their sums; made when the first one asks."""
        return Buffers(self._cupy, self.shape, len(self.codes), self._some_rows())

    def _some_rows(self) -> Any:
        """Evenly spaced rows (m, c), laid out as the frames are, to guess the scale of a pass from."""
        places = np.linspace(0, self.n_rows - 1, min(SOME_ROWS, self.n_rows)).astype(np.int64)
        chosen = self.chosen(self._cupy.asarray(places))._decode(0, len(places))
        some = self._cupy.zeros((len(places), len(self.codes), self.shape.padded_columns), dtype=np.float32)
        for place, (_, columns) in enumerate(self._panels()):
            some[:, place, : columns.stop - columns.start] = chosen[:, columns]
        return some.reshape(len(places), -1)

    def _pass(self, frames: Array, offset: Array) -> tuple[Array, Array]:
        """One pass for as many frames as fit; again with another scale where |s·u| left the range of fp16."""
        n_frames, _, k = frames.shape
        room, buffers = ROOM_FOR_FRAME[k], self.buffers
        lift = frame_lift(frames)
        held = buffers.columns.reshape(len(self.codes), self.shape.padded_columns, -1, room)
        buffers.clear()
        for place, (_, columns) in enumerate(self._panels()):
            part = frames[:, columns].transpose(1, 0, 2) * lift[:, None]
            held[place, : columns.stop - columns.start, :n_frames, :k] = part
        buffers.offsets.reshape(-1, room)[:n_frames, :k] = offset * lift[:, None]
        peaks = self._launch(k)
        if not ((peaks <= OVERFLOW) & ((peaks >= TOO_LOW) | (peaks == 0))).all() and np.isfinite(peaks).all():
            # Peaks are taken before they are rounded to fp16, so they are right even where that overflowed.
            found = peaks / buffers.scales
            if k == 3:
                found = np.repeat(found.reshape(-1, 2).max(axis=1), 2)
            self._launch(k, peak_fit(found))
        back = 1.0 / (np.repeat(buffers.scales, 2).reshape(-1, room)[:n_frames, :k] * lift[:, None] ** 3)
        sums = buffers.sums.reshape(len(self.codes), self.shape.padded_columns + 8, -1, room)[:, :, :n_frames, :k]
        panels = [sums[i, : part.stop - part.start] for i, (_, part) in enumerate(self._panels())]
        weighted = np.concatenate(panels).transpose(1, 0, 2) * back[:, None]
        # Every panel adds up Σ s u; the first one's counts.
        return weighted, sums[0, self.shape.padded_columns :].sum(axis=0) * back

    def _launch(self, k: int, scales: Array | None = None) -> Array:
        """What is in the buffers sent to the card, and the sums brought back; the peaks (12,)."""
        buffers = self.buffers
        buffers.send(scales)
        fused = kernel(self._cupy, self.shape, k)
        fused.encode_frames(buffers.columns_there, buffers.words)
        if scales is None:
            fused.choose_scale(buffers.some, buffers.columns_there, buffers.small_there)
        self.reduce_on_card(k)
        return buffers.fetch()

    def reduce_on_card(self, k: int) -> None:
        """The kernels of one evaluation, of what was sent last; their sums stay on the card."""
        buffers, cupy = self.buffers, self._cupy
        if len(self.codes) == 1:
            fused = kernel(cupy, self.shape, k)
            fused.run(self.codes[0], self.n_rows, buffers.words[0], buffers.small_there, buffers.sums_there[0])
            return
        if buffers.U is None:
            buffers.U = cupy.empty((self.n_rows, FRAME_COLUMNS), dtype=np.float32)
        for stage in (1, 2):
            for place, code in enumerate(self.codes):
                own = (code, self.n_rows, buffers.words[place], buffers.small_there, buffers.sums_there[place])
                kernel(cupy, self.shape, k, stage).run(*own, buffers.U, first_panel=place == 0)


class Buffers:
    """Memory of an evaluation, on the host (pinned, so that copies do not wait) and on the card, used again and again.

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
