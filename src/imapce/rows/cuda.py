"""Rows on a graphics card: encoded once, then every evaluation is one read of the card's memory.

The origin is always subtracted: columns far from zero would lose their digits in float32. Moments are float64, taken in
the pass that finds the columns' ranges; the rows are then written as z' = (x − origin)·c (`rows/halves.py`). What does
not fit the card stays where it is and is encoded again whenever it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.cards import cupy_module, is_on_card
from imapce.errors import InvalidValueError
from imapce.rows.base import Array, Moments, Quartic, Rows
from imapce.rows.cuda_kernel import kernel_runs
from imapce.rows.cuda_store import HalvesStore, PlainStore, Store
from imapce.rows.cuda_survey import Survey, scaled_batch
from imapce.rows.halves import column_scale

Mask = NDArray[np.bool_]
Places = NDArray[np.intp]

BATCH_BYTES = 128 << 20  # of what is read at once from the source
ROOM = 0.85  # of the card's free memory, for encoded rows; the rest is for what is multiplied


@dataclass(frozen=True)
class Source:
    """Where rows come from: an array of the host or of the card, or some of its rows; never changed.

    >>> [len(part) for part in Source(np, np.eye(5)).batches(rows=2)]
    [2, 2, 1]
    """

    xp: Any
    array: Any
    index: Places | None = None

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.array.shape
        return (n if self.index is None else len(self.index)), d

    def batches(self, *, start: int = 0, stop: int | None = None, rows: int | None = None) -> Iterator[Any]:
        """The rows from `start` to `stop`, in order, where they are computed with."""
        n, d = self.shape
        step = rows or max(1, BATCH_BYTES // (d * self.array.dtype.itemsize))
        stop = n if stop is None else stop
        ahead = None
        for first in range(start, stop, step):
            here = slice(first, min(first + step, stop))
            part = self.array[here] if self.index is None else self.array[self._places(here)]
            # While the card works on one batch the host brings the next: copies from the host do not wait for it.
            now, ahead = ahead, self._on_card(part)
            if now is not None:
                yield now
        if ahead is not None:
            yield ahead

    def _places(self, here: slice) -> Any:
        assert self.index is not None
        places = self.index[here]
        return self.xp.asarray(places) if is_on_card(self.array) else places

    def _on_card(self, part: Any) -> Any:
        if self.xp is np or is_on_card(part):
            return part
        pinned = self.xp.cuda.alloc_pinned_memory(part.nbytes)
        held = np.frombuffer(pinned, part.dtype, part.size).reshape(part.shape)
        np.copyto(held, part)
        on_card = self.xp.empty(part.shape, dtype=part.dtype)
        on_card.set(held)
        return on_card

    def subset(self, mask: Mask) -> Source:
        """The rows where `mask` is true."""
        chosen = np.flatnonzero(mask)
        return Source(self.xp, self.array, chosen if self.index is None else self.index[chosen])


class CudaRows(Rows):
    """Rows of an array of the card, or of the host brought there.

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
        source: Source,
        origin: Array,
        scale: Array,
        parts: list[tuple[int, int, Store | None]],
        *,
        moments: Moments | None = None,
    ):
        self._source, self._parts, self._kept_moments = source, parts, moments
        self.xp = source.xp
        self.origin, self.scale = origin, scale
        self.n_rows, self.n_features = source.shape

    @classmethod
    def open(cls, array: Any, *, index: Places | None = None, xp: Any = None) -> CudaRows:
        """Read once for moments and ranges, once more to be encoded."""
        source = Source(cupy_module() if xp is None else xp, array, index)
        survey = Survey.of(source.xp, source.shape, source.batches())
        about_mean = Moments(survey.n_rows, np.zeros(source.shape[1]), survey.variance, survey.scatter)
        rows = cls(source, survey.mean, column_scale(survey.largest), [], moments=about_mean)
        rows._write()
        return rows

    def _write(self) -> None:
        """Encode as many rows as the card has room for; the others are encoded when they are read."""
        start = 0
        for count in self._room():
            store = self._store(count)
            self._fill(store, start)
            self._parts.append((start, start + count, store))
            start += count
        if start == self.n_rows:
            return
        if is_on_card(self._source.array):
            need = HalvesStore.bytes_of(self.n_rows - start, self.n_features) / 2**30
            raise InvalidValueError(
                f"engine='cuda' needs another {need:.1f} GiB on the card for X, and it is full; pass X as an array of "
                "the host, which is then read in parts, or fewer rows."
            )
        step = max(1, 8 * BATCH_BYTES // (4 * self.n_features))
        self._parts += [(first, min(first + step, self.n_rows), None) for first in range(start, self.n_rows, step)]

    def _room(self) -> list[int]:
        """How many rows to hold, in pieces."""
        if self.xp is np:
            return [self.n_rows]
        self.xp.get_default_memory_pool().free_all_blocks()
        free = self.xp.cuda.Device().mem_info[0]
        most = int(ROOM * free) // HalvesStore.bytes_of(1, self.n_features)
        return [self.n_rows] if self.n_rows <= most else [most] if most > 0 else []

    def _store(self, n_rows: int) -> Store:
        if self.xp is not np and kernel_runs(self.xp):
            return HalvesStore(self.xp, n_rows, self.n_features)
        return PlainStore(self.xp, n_rows, self.n_features)

    def _fill(self, store: Store, start: int) -> None:
        origin, scale = self.xp.asarray(self.origin), self.xp.asarray(self.scale)
        first = 0
        for batch in self._source.batches(start=start, stop=start + store.n_rows):
            store.write(first, scaled_batch(self.xp, batch, origin, scale))
            first += len(batch)

    def _stores(self) -> Iterator[Store]:
        """Every part in order; one that is not held is encoded now."""
        for start, stop, held in self._parts:
            store = held
            if store is None:
                store = self._store(stop - start)
                self._fill(store, start)
            yield store

    @property
    def held(self) -> list[Store]:
        """The parts that lie on the card."""
        return [store for _, _, store in self._parts if store is not None]

    def _compute_moments(self) -> Moments:
        """Of a subset, from the rows as they are held, in the coordinates of all."""
        survey = Survey.of(self.xp, (self.n_rows, self.n_features), self.native_blocks())
        return Moments(self.n_rows, survey.mean, survey.variance, survey.scatter)

    def quartic(self, W: Array, offset: Array) -> Quartic:
        inside = W / self.scale[:, None]
        weighted, total = np.zeros(W.shape), np.zeros(offset.shape)
        for store in self._stores():
            more, sums = store.quartic(inside, offset)
            weighted += more
            total += sums
        return Quartic(weighted / self.scale[:, None], total)

    def scatter_product(self, W: Array, offset: Array) -> Array:
        inside, shift = self.xp.asarray(W / self.scale[:, None]), self.xp.asarray(offset)
        result = self.xp.zeros((self.n_features, W.shape[1]))
        for chunk in self._chunks():
            Z = chunk.astype(np.float64)
            result += Z.T @ (Z @ inside - shift)
        return self._get(result) / self.scale[:, None]

    def project(self, W: Array, offset: Array) -> Array:
        return self._get(self.projected(W, offset))

    def projected(self, W: Array, offset: Array) -> Any:
        """`project`, left on the card."""
        inside, shift = self.xp.asarray(W / self.scale[:, None]), self.xp.asarray(offset)
        return self.xp.concatenate([chunk.astype(np.float64) @ inside - shift for chunk in self._chunks()])

    def subset(self, mask: Mask) -> CudaRows:
        source = self._source.subset(mask)
        if any(held is None for _, _, held in self._parts):
            rows = CudaRows(source, self.origin, self.scale, [])
            rows._write()
            return rows
        parts: list[tuple[int, int, Store | None]] = []
        first = 0
        for start, stop, held in self._parts:
            assert held is not None
            chosen = np.flatnonzero(mask[start:stop])
            if len(chosen):
                store = held.chosen(self.xp.asarray(chosen))
                parts.append((first, first + len(chosen), store))
                first += len(chosen)
        return CudaRows(source, self.origin, self.scale, parts)

    def without(self, mask: Mask) -> CudaRows:
        source = self._source.subset(~mask)
        return CudaRows.open(source.array, index=source.index, xp=self.xp)

    def blocks(self, columns: Places | None = None) -> Iterator[Array]:
        for block in self.native_blocks(columns):
            yield self._get(block)

    def native_blocks(self, columns: Places | None = None) -> Iterator[Any]:
        chosen = None if columns is None else self.xp.asarray(columns)
        back = self.xp.asarray(1.0 / self.scale if columns is None else 1.0 / self.scale[columns])
        for chunk in self._chunks():
            yield (chunk if chosen is None else chunk[:, chosen]) * back

    def _chunks(self) -> Iterator[Any]:
        for store in self._stores():
            yield from store.chunks()

    def _get(self, array: Any) -> Array:
        return array if self.xp is np else array.get()


def projected_on_card(matrix: Any, W: Array, mean: Array, *, xp: Any = None) -> Any:
    """(x − mean)ᵀW of every row, in float64 and left on the card.

    >>> projected_on_card(np.eye(2), np.array([[2.0], [0.0]]), np.zeros(2), xp=np).ravel().tolist()
    [2.0, 0.0]
    """
    xp = cupy_module() if xp is None else xp
    frames, centre = xp.asarray(W), xp.asarray(mean)
    return xp.concatenate([(batch - centre) @ frames for batch in Source(xp, matrix).batches()])
