"""Rows as pairs of fp16 written in NumPy: the layout and the numbers of the kernel, as its reference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from imapce.rows.cuda_kernel import frame_lift, padded, peak_fit

EIGHT = 8  # columns of a chunk

Array = NDArray[np.float64]


def split(z: NDArray[np.float32]) -> tuple[NDArray[np.float16], NDArray[np.float16]]:
    """hi and lo of scaled values."""
    hi = z.astype(np.float16)
    return hi, (z - hi.astype(np.float32)).astype(np.float16)


def swizzle(rows: NDArray[np.intp], n_columns: int) -> NDArray[np.intp]:
    """What the chunk numbers of each row are XORed by; `n_columns` is padded."""
    if n_columns % 32 == 0:
        return rows & 7
    return (rows >> 1) & 3 if n_columns % 16 == 0 else (rows >> 2) & 1


def scaled(rows: Array, scale: Array) -> NDArray[np.float32]:
    """z·c as float32; multiplied before it is rounded, or columns of 1e-60 would vanish."""
    return (rows * scale).astype(np.float32)


def encode(rows: Array, scale: Array) -> NDArray[np.float16]:
    """Rows (n, d) in the layout of the card: (n, 2·padded(d)) of fp16."""
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
    """The rows back."""
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
    fit = float(peak_fit(np.abs(g).max()))
    g_hi, g_lo = (part.astype(np.float64) for part in split((g * fit).astype(np.float32)))
    weighted = hi.T @ g_hi + hi.T @ g_lo + lo.T @ g_hi
    return weighted / scale[:, None] / (fit * lift**3), g.sum(axis=0) / lift**3
