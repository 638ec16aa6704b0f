"""Float32 rows as pairs of fp16, the way the card's kernel reads them; here in NumPy, as its reference.

    z·c = hi + lo,    hi = fp16(z·c),  lo = fp16(z·c − hi),    c = 2^(14 − ⌈log₂ max|z|⌉) of the column

hi and lo have 11 bits each, so the pair keeps 22 to 23 of float32's 24 bits in the same four bytes, and tensor cores
multiply it as hi·hi + hi·lo + lo·hi. The scale is a power of two and costs no bit; it lifts every column to the upper
end of fp16, so that lo vanishes only where a value is 2⁻²⁴ of the largest.

Eight columns of a row lie as 16 bytes of hi, then 16 bytes of lo. The 16-byte chunks of a row are XORed by its number:
eight neighbouring rows then use different banks of shared memory, whether they are read along rows or along columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TOP = 14  # the largest value of a column lies below 2^14: sums of a few still fit fp16's 65,504
EIGHT = 8  # columns of a chunk

Array = NDArray[np.float64]


def padded(n_columns: int) -> int:
    """Columns a row has room for: whole chunks of eight.

    >>> padded(5), padded(16)
    (8, 16)
    """
    return -(-n_columns // EIGHT) * EIGHT


def column_scale(largest: Array) -> Array:
    """c of columns whose largest |z| is given; 1 where there is nothing but zeros.

    >>> column_scale(np.array([1.0, 3.0, 0.0])).tolist()
    [16384.0, 4096.0, 1.0]
    """
    some = largest > 0
    return np.where(some, np.exp2(TOP - np.ceil(np.log2(np.where(some, largest, 1.0)))), 1.0)


def split(z: NDArray[np.float32]) -> tuple[NDArray[np.float16], NDArray[np.float16]]:
    """hi and lo of scaled values.

    >>> hi, lo = split(np.array([1.0 + 2.0**-13], dtype=np.float32))
    >>> float(hi[0]), float(lo[0]) == 2.0**-13
    (1.0, True)
    """
    hi = z.astype(np.float16)
    return hi, (z - hi.astype(np.float32)).astype(np.float16)


def swizzle(rows: NDArray[np.intp], n_columns: int) -> NDArray[np.intp]:
    """What the chunk numbers of each row are XORed by; `n_columns` is padded.

    >>> swizzle(np.arange(4), 32).tolist(), swizzle(np.arange(8), 8).tolist()
    ([0, 1, 2, 3], [0, 0, 0, 0, 1, 1, 1, 1])
    """
    if n_columns % 32 == 0:
        return rows & 7
    return (rows >> 1) & 3 if n_columns % 16 == 0 else (rows >> 2) & 1


def scaled(rows: Array, scale: Array) -> NDArray[np.float32]:
    """z·c as float32; multiplied before it is rounded, or columns of 1e-60 would vanish.

    >>> bool(scaled(np.array([[1e-60]]), column_scale(np.array([1e-60])))[0, 0] > 8192)
    True
    """
    return (rows * scale).astype(np.float32)


def encode(rows: Array, scale: Array) -> NDArray[np.float16]:
    """Rows (n, d) in the layout of the card: (n, 2·padded(d)) of fp16.

    >>> code = encode(np.ones((2, 3)), np.ones(3))
    >>> code.shape, code[0, :4].tolist()
    ((2, 16), [1.0, 1.0, 1.0, 0.0])
    """
    n, d = rows.shape
    width = padded(d)
    wide = np.zeros((n, width), dtype=np.float32)
    wide[:, :d] = scaled(rows, scale)
    hi, lo = split(wide)
    chunks = np.stack([hi.reshape(n, -1, EIGHT), lo.reshape(n, -1, EIGHT)], axis=2).reshape(n, -1, EIGHT)
    place = np.arange(chunks.shape[1]) ^ swizzle(np.arange(n), width)[:, None]
    code = np.empty_like(chunks)
    np.put_along_axis(code, place[:, :, None], chunks, axis=1)
    return code.reshape(n, -1)


def decode(code: NDArray[np.float16], scale: Array) -> Array:
    """The rows back.

    >>> z = np.random.default_rng(0).normal(size=(5, 3))
    >>> bool(np.abs(decode(encode(z, column_scale(np.ones(3) * 4)), column_scale(np.ones(3) * 4)) - z).max() < 1e-6)
    True
    """
    n = len(code)
    chunks = code.reshape(n, -1, EIGHT)
    width = chunks.shape[1] * EIGHT // 2
    place = np.arange(chunks.shape[1]) ^ swizzle(np.arange(n), width)[:, None]
    pairs = np.take_along_axis(chunks, place[:, :, None], axis=1).reshape(n, -1, 2, EIGHT).astype(np.float32)
    return (pairs.sum(axis=2).reshape(n, width)[:, : len(scale)]) / scale


def quartic_of_halves(rows: Array, scale: Array, frames: Array, offset: Array) -> tuple[Array, Array]:
    """Σ s z uᵀ (d, c) and Σ s u (c,) of one frame (d, c) with the kernel's numbers: U and ZᵀG from hi and lo.

    What the card computes but for the order of its float32 sums, which here are float64.
    """
    inside = frames / scale[:, None]
    lift = float(frame_lift(inside[None])[0])
    hi, lo = (part.astype(np.float64) for part in split(scaled(rows, scale)))
    w_hi, w_lo = (part.astype(np.float64) for part in split((inside * lift).astype(np.float32)))
    u = hi @ w_hi + hi @ w_lo + lo @ w_hi - offset * lift
    g = (u**2).sum(axis=1, keepdims=True) * u
    fit = peak_fit(float(np.abs(g).max()))
    g_hi, g_lo = (part.astype(np.float64) for part in split((g * fit).astype(np.float32)))
    weighted = hi.T @ g_hi + hi.T @ g_lo + lo.T @ g_hi
    return weighted / scale[:, None] / (fit * lift**3), g.sum(axis=0) / lift**3


WEIGHT_TOP, PEAK_TOP = 10, 11


def frame_lift(frames: Array) -> Array:
    """The power of two that brings the largest entry of each frame (R, d, k) below 2^10: hi and lo keep all its bits.

    >>> frame_lift(np.array([[[3.0]], [[0.0]]]))
    array([256.,   1.])
    """
    largest = np.abs(frames).max(axis=(1, 2), initial=0.0)
    usable = (largest > 0) & np.isfinite(largest)
    return np.where(usable, np.exp2(WEIGHT_TOP - np.ceil(np.log2(np.where(usable, largest, 1.0)))), 1.0)


def peak_fit(peak: float) -> float:
    """The power of two that brings the largest |s·u| to 2^11: room for 32 times as much before fp16 overflows.

    >>> peak_fit(1.0)
    2048.0
    """
    return float(np.exp2(PEAK_TOP - np.ceil(np.log2(peak)))) if 0 < peak < np.inf else 1.0
