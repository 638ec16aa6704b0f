"""The kernel of `quartic.cu` as Python calls it: which shape of it suits a width of rows, compiled once, launched.

Measured on an H200 with ten frames of two axes (ratio to one plain read of the same bytes): benchmarks/README.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from imapce.rows.halves import padded

FRAME_COLUMNS = 24
ROOM_FOR_FRAME = {1: 1, 2: 2, 3: 4}  # columns a frame of k axes takes
SHARED_BYTES = 232_448  # what one block may use of a multiprocessor's shared memory, compute capability 9.0
NARROW, WIDEST_PANEL = 208, 784  # columns: one warp holds the sums of 13 blocks of 16, seven warps of 7 each
MOST_TILES = 1024  # added to one float32 sum
CAPABILITY = 90


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
            one = cls(D, 1, warps, -(-blocks // warps), 1, 2, 1)
            for groups in range(1, 5):
                registers = 65536 // (32 * (warps * groups + 1))
                # Beyond a row lie the next one's columns, beyond the last 256 bytes of zeros: 64 columns of padding.
                if one.padded_columns - D > 64 or one.BLOCKS > 7 or min(255, registers) < 24 * one.BLOCKS + 72:
                    continue
                slots = min(5, (SHARED_BYTES - 256) // groups // (64 * D + 16 + 1))
                while slots > 2 and cls(D, 1, warps, one.BLOCKS, groups, slots, 1).shared_bytes > SHARED_BYTES:
                    slots -= 1
                shape = cls(D, 1, warps, one.BLOCKS, groups, slots, 1)
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
