"""Where the rows of a card come from: an array of the card or of the host, or files; read in order and never changed.

Batches of the host go up through pinned memory, so that the next one is brought while the card works on the last. One
pass over them tells means, ranges and second moments in float64 before the rows are encoded. It touches memory as
seldom as can be: of 2,000,000 × 784 rows on an H200 it and the encoding take 0.08 s, with CuPy's own reductions and
expressions 0.65 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from imapce.common.arrays import Array, Codes, Mask, is_on_card
from imapce.common.streams import Portion, Stream, in_order, mask_within
from imapce.rows.base import Moments, scatter_is_affordable

BATCH_BYTES = 128 << 20  # of what is read at once from the source
_RANGES = r"""
extern "C" __global__ void column_ranges(const double* x, long long n, int d, int rows, double* out) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= d) return;
  double sum = 0, low = 1.0 / 0.0, high = -1.0 / 0.0;
  const long long first = (long long)blockIdx.y * rows, last = min(first + rows, n);
  for (long long i = first; i < last; i++) {
    const double v = x[i * d + column];
    sum += v; low = min(low, v); high = max(high, v);
  }
  double* to = out + (long long)blockIdx.y * 3 * d + column;
  to[0] = sum; to[d] = low; to[2 * d] = high;
}"""
ROWS_OF_BLOCK = 128


@dataclass(frozen=True)
class ArraySource:
    """An array of the host or of the card, or some of its rows; `xp` computes with them: CuPy, or NumPy on no card.

    >>> source = ArraySource(np, np.eye(5)).subset(np.arange(5) != 1)
    >>> source.shape, [len(part) for part in source.batches(start=1)]
    ((4, 5), [3])
    """

    xp: Any
    array: Any
    index: Codes | None = None

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.array.shape
        return (n if self.index is None else len(self.index)), d

    @property
    def lies_on_card(self) -> bool:
        """Whether the rows take the card's memory already, so that there is nowhere else to read them from."""
        return is_on_card(self.array)

    def batches(self, *, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        """The rows from `start` to `stop`, in order, where they are computed with; one may overwrite the last."""
        n, d = self.shape
        step = max(1, BATCH_BYTES // (d * self.array.dtype.itemsize))
        stop = n if stop is None else stop
        slices = (slice(first, min(first + step, stop)) for first in range(start, stop, step))
        return _one_ahead(self.xp, (self._part(here) for here in slices))

    def _part(self, here: slice) -> Any:
        if self.index is None:
            return self.array[here]
        places = self.index[here]
        return self.array[self.xp.asarray(places) if self.lies_on_card else places]

    def subset(self, mask: Mask) -> ArraySource:
        chosen = np.flatnonzero(mask)
        return ArraySource(self.xp, self.array, chosen if self.index is None else self.index[chosen])


@dataclass(frozen=True)
class StreamSource:
    """Files, or some of their rows: every call of `batches` reads them from their beginning.

    >>> from imapce.common.streams import Portion, Stream
    >>> class Twice(Stream):
    ...     shape = (4, 1)
    ...     def portions(self, columns=None):
    ...         for X in ([[1.0], [2.0]], [[3.0], [4.0]]):
    ...             yield Portion(2, lambda places, X=np.array(X): iter([X if places is None else X[places]]))
    >>> [part.tolist() for part in StreamSource(np, Twice()).batches(start=1)]
    [[[2.0]], [[3.0], [4.0]]]
    """

    xp: Any
    stream: Stream
    mask: Mask | None = None

    lies_on_card = False

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.stream.shape
        return (n if self.mask is None else int(self.mask.sum())), d

    def batches(self, *, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        stop = self.shape[0] if stop is None else stop
        # Threads make numbers of the portions; the card waits for the disk and for them, not for copies.
        return _one_ahead(self.xp, in_order(_array_of, self._wanted(start, stop)))

    def _wanted(self, start: int, stop: int) -> Iterator[tuple[Portion, Codes, int]]:
        """Every portion that holds some of the rows from `start` to `stop`, and which of its own those are."""
        read = taken = 0
        n, d = self.shape
        for portion in self.stream.portions():
            here = slice(read, read + portion.n_rows)
            places = np.arange(portion.n_rows) if self.mask is None else np.flatnonzero(self.mask[here])
            inside = places[max(start - taken, 0) : max(stop - taken, 0)]
            read, taken = read + portion.n_rows, taken + len(places)
            if len(inside):
                yield portion, inside, d
            # What is read to its end is checked there: whether files were changed, or hold other rows than they said.
            if stop < n and taken >= stop:
                return

    def subset(self, mask: Mask) -> StreamSource:
        return StreamSource(self.xp, self.stream, mask_within(self.mask, mask))


CardSource = ArraySource | StreamSource


def _array_of(wanted: tuple[Portion, Codes, int]) -> Any:
    """The rows asked for of a portion, whose own blocks may overwrite each other."""
    portion, inside, d = wanted
    array, filled = np.empty((len(inside), d)), 0
    for block in portion.blocks(None if len(inside) == portion.n_rows else inside):
        array[filled : filled + len(block)] = block
        filled += len(block)
    return array


def _one_ahead(xp: Any, parts: Iterator[Any]) -> Iterator[Any]:
    """The parts on the card, each brought there while the one before is worked on: such copies do not wait for it."""
    ahead = None
    for part in parts:
        now, ahead = ahead, _on_card(xp, part)
        if now is not None:
            yield now
    if ahead is not None:
        yield ahead


def _on_card(xp: Any, part: Any) -> Any:
    if xp is np or is_on_card(part):
        return part
    pinned = xp.cuda.alloc_pinned_memory(part.nbytes)
    held = np.frombuffer(pinned, part.dtype, part.size).reshape(part.shape)
    np.copyto(held, part)
    on_card = xp.empty(part.shape, dtype=part.dtype)
    on_card.set(held)
    return on_card


# --- what one pass tells ----------------------------------------------------------------------------------------------


def survey(xp: Any, shape: tuple[int, int], batches: Iterator[Any]) -> tuple[Moments, Array]:
    """The moments of the rows, and the largest deviation from its mean in every column."""
    n, d = shape
    form_scatter = scatter_is_affordable(d, n * d * 4)
    total, squares = xp.zeros(d), xp.zeros((d, d) if form_scatter else d)
    low, high = xp.full(d, np.inf), xp.full(d, -np.inf)
    about = None
    for batch in batches:
        if about is None:
            # The sums then cancel by no more than the data's own spread.
            about = batch[:1000].astype(np.float64).mean(axis=0)
        values = batch - about if xp is np else _kernels(xp)[0](batch, about)
        sums, least, most = _column_ranges(xp, values)
        total += sums
        squares += values.T @ values if form_scatter else xp.einsum("ij,ij->j", values, values)
        low, high = xp.minimum(low, least), xp.maximum(high, most)
    delta = total / n
    squares -= n * (xp.outer(delta, delta) if form_scatter else delta**2)
    parts = (about + delta, xp.maximum(high - delta, delta - low), squares)
    mean, largest, squares = (part if xp is np else part.get() for part in parts)
    variance = np.maximum((np.diagonal(squares) if form_scatter else squares) / n, 0.0)
    return Moments(n, mean, variance, squares if form_scatter else None), largest


def scale_batch(xp: Any, batch: Any, origin: Any, scale: Any) -> Any:
    """(x − origin)·scale, computed in float64 and rounded to float32 once."""
    return ((batch - origin) * scale).astype(np.float32) if xp is np else _kernels(xp)[1](batch, origin, scale)


def _column_ranges(xp: Any, values: Any) -> tuple[Any, Any, Any]:
    """Sum, least and largest of every column, in one pass."""
    if xp is np:
        return values.sum(axis=0), values.min(axis=0), values.max(axis=0)
    n, d = values.shape
    parts = xp.empty((-(-n // ROWS_OF_BLOCK), 3, d))
    # A grid has at most 65,535 blocks along its second axis; batches are far smaller.
    grid, sizes = (-(-d // 128), len(parts)), (np.int64(n), np.int32(d), np.int32(ROWS_OF_BLOCK))
    _kernels(xp)[2](grid, (128,), (values, *sizes, parts))
    return parts[:, 0].sum(axis=0), parts[:, 1].min(axis=0), parts[:, 2].max(axis=0)


@cache
def _kernels(cupy: Any) -> tuple[Any, Any, Any]:
    shift = cupy.ElementwiseKernel("T x, float64 m", "float64 z", "z = (double)x - m", "imapce_shift")
    scale = cupy.ElementwiseKernel(
        "T x, float64 m, float64 c", "float32 z", "z = (float)(((double)x - m) * c)", "imapce_scale"
    )
    return shift, scale, cupy.RawKernel(_RANGES, "column_ranges")
