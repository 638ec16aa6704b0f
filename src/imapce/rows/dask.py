"""Rows on a Dask cluster: every reduction goes to the chunks, and only what it leaves comes back.

Each chunk is reduced where it lies by the dense engine, all frames in one round. Partial results are added in float64
in a tree whose shape depends on the number of chunks alone, so that sums do not depend on which worker was faster; a
worker that dies takes chunks with it that Dask makes again, and the sums are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from imapce.common.threads import one_thread
from imapce.rows.base import Array, Moments, Quartic, Rows
from imapce.rows.dense import FAR_FROM_ORIGIN, DenseRows

Mask = NDArray[np.bool_]

# Rows that may be brought to where the search runs: a sample, never a chunk.
GATHERED_BYTES = 64 << 20


class ChunksLike(Protocol):
    """A matrix in delayed parts; `chosen` makes another one of the same kind."""

    def chosen(self, parts: tuple[Any, ...], lengths: tuple[int, ...]) -> ChunksLike: ...

    @property
    def parts(self) -> tuple[Any, ...]: ...
    @property
    def lengths(self) -> tuple[int, ...]: ...
    @property
    def n_features(self) -> int: ...


class DaskRows(Rows):
    """Chunks of rows that a cluster holds, on whatever scheduler is the user's.

    >>> import dask
    >>> from types import SimpleNamespace
    >>> parts = tuple(dask.delayed(np.asarray)([[x, 1.0], [x, 3.0]]) for x in (0.0, 2.0))
    >>> DaskRows(SimpleNamespace(parts=parts, lengths=(2, 2), n_features=2)).moments().mean
    array([1., 2.])
    """

    engine = "dask"
    because = "rows lie on a Dask cluster and stay there"

    def __init__(self, chunks: ChunksLike, *, origin: Array | None = None):
        self._chunks = chunks
        self.n_rows, self.n_features = sum(chunks.lengths), chunks.n_features
        self.origin = np.zeros(self.n_features) if origin is None else origin
        self._ends = np.cumsum(chunks.lengths)

    @classmethod
    def centred_if_far(cls, chunks: ChunksLike) -> DaskRows:
        """The rows with their mean as origin where a column lies far from zero, else unchanged."""
        rows = cls(chunks)
        moments = rows.moments()
        spread = np.sqrt(moments.variance)
        if not np.any((spread > 0) & (np.abs(moments.mean) > FAR_FROM_ORIGIN * spread)):
            return rows
        return cls(chunks, origin=moments.mean)

    # --- one round to the cluster -------------------------------------------------------------------------------------

    def _added(self, reduce: Callable[..., Any], *given: Any, add: Callable[[Any, Any], Any]) -> Any:
        """reduce(rows of a chunk, *given) of every chunk, added in a tree on the cluster."""
        import dask

        (result,) = dask.compute(_tree(self._tasks(reduce, given), dask.delayed(add, pure=False)), optimize_graph=False)
        return result

    def _tasks(self, reduce: Callable[..., Any], given: Sequence[Any], more: Sequence[Any] | None = None) -> list[Any]:
        import dask

        run = dask.delayed(_on_chunk, pure=False)
        # What every chunk is given is one node of the graph, not a copy in each task.
        shared = [dask.delayed(value, pure=False) for value in (self.origin, *given)]
        each = [()] * len(self._chunks.parts) if more is None else [(one,) for one in more]
        return [run(reduce, part, *shared, *own) for part, own in zip(self._chunks.parts, each, strict=True)]

    def _each(self, reduce: Callable[..., Any], *given: Any, more: Sequence[Any] | None = None) -> tuple[Any, ...]:
        import dask

        return tuple(dask.compute(*self._tasks(reduce, given, more), optimize_graph=False))

    # --- the contract -------------------------------------------------------------------------------------------------

    def _compute_moments(self) -> Moments:
        return self._added(_moments, add=Moments.joined)

    def quartic(self, W: Array, offset: Array) -> Quartic:
        weighted, total = self._added(_quartic, W, offset, add=_sums)
        return Quartic(weighted, total)

    def scatter_product(self, W: Array, offset: Array) -> Array:
        return self._added(_scatter_product, W, offset, add=_sum)

    def project(self, W: Array, offset: Array) -> Array:
        return np.concatenate(self._each(_project, W, offset))

    def lazily_projected(self, W: Array) -> Any:
        """(x − origin)ᵀW as a dask.array, computed where and when it is asked for."""
        import dask.array as da

        pieces = zip(self._tasks(_project, (W, np.zeros(W.shape[1]))), self._chunks.lengths, strict=True)
        return da.concatenate([da.from_delayed(one, (n, W.shape[1]), dtype=np.float64) for one, n in pieces])

    def subset(self, mask: Mask) -> Rows:
        if int(mask.sum()) * self.n_features * 8 <= GATHERED_BYTES:
            return DenseRows(self._gathered(mask), origin=self.origin)
        return DaskRows(self._where(mask), origin=self.origin)

    def without(self, mask: Mask) -> Rows:
        if int((~mask).sum()) * self.n_features * 8 <= GATHERED_BYTES:
            return DenseRows.centred_if_far(self._gathered(~mask))
        return DaskRows.centred_if_far(self._where(~mask))

    def blocks(self, columns: NDArray[np.intp] | None = None) -> Iterator[Array]:
        """Chunk by chunk, for what cannot be done where they lie: a baseline's own loop, never a fit."""
        import dask

        for task in self._tasks(_block, (columns,)):
            (block,) = dask.compute(task, optimize_graph=False)
            yield block

    def reduce_blocks(self, reduce: Callable[[Array], Any], columns: NDArray[np.intp] | None = None) -> Iterator[Any]:
        yield from self._each(_reduced, reduce, columns)

    def digest(self) -> str:
        """Of the chunks' own digests, taken where they lie: it tells this data apart in these chunks."""
        whole = hashlib.blake2b(digest_size=16)
        for own in self._each(_digest):
            whole.update(own)
        return whole.hexdigest()

    def _gathered(self, mask: Mask) -> Array:
        return np.concatenate(self._each(_chosen, more=self._cut(mask)))

    def _cut(self, mask: Mask) -> list[Any]:
        return [mask[stop - length : stop] for stop, length in zip(self._ends, self._chunks.lengths, strict=True)]

    def _where(self, mask: Mask) -> ChunksLike:
        """The chosen rows as chunks of their own, held by the cluster."""
        import dask

        cuts = self._cut(mask)
        take = dask.delayed(_taken, pure=False)
        parts = dask.persist(*[take(part, cut) for part, cut in zip(self._chunks.parts, cuts, strict=True)])
        kept = [(part, int(cut.sum())) for part, cut in zip(parts, cuts, strict=True) if cut.any()]
        return self._chunks.chosen(tuple(p for p, _ in kept), tuple(n for _, n in kept))


def _tree(tasks: list[Any], add: Any) -> Any:
    while len(tasks) > 1:
        tasks = [add(*tasks[i : i + 2]) if i + 1 < len(tasks) else tasks[i] for i in range(0, len(tasks), 2)]
    return tasks[0]


def _on_chunk(reduce: Callable[..., Any], chunk: Any, origin: Array, *given: Any) -> Any:
    with one_thread():
        return reduce(DenseRows(np.asarray(chunk), origin=origin), *given)


def _moments(rows: DenseRows) -> Moments:
    return rows.moments()


def _quartic(rows: DenseRows, W: Array, offset: Array) -> tuple[Array, Array]:
    result = rows.quartic(W, offset)
    return result.weighted, result.total


def _sums(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    return one[0] + other[0], one[1] + other[1]


def _sum(one: Array, other: Array) -> Array:
    return one + other


def _scatter_product(rows: DenseRows, W: Array, offset: Array) -> Array:
    return rows.scatter_product(W, offset)


def _project(rows: DenseRows, W: Array, offset: Array) -> Array:
    return rows.project(W, offset)


def _block(rows: DenseRows, columns: NDArray[np.intp] | None) -> Array:
    return np.concatenate([block.copy() for block in rows.blocks(columns)])


def _reduced(rows: DenseRows, reduce: Callable[[Array], Any], columns: NDArray[np.intp] | None) -> Any:
    return reduce(_block(rows, columns))


def _chosen(rows: DenseRows, mask: Mask) -> Array:
    found = [block.copy() for block in rows.subset(mask).blocks()] if mask.any() else []
    return np.concatenate(found) + rows.origin if found else np.empty((0, rows.n_features))


def _digest(rows: DenseRows) -> bytes:
    return bytes.fromhex(rows.digest())


def _taken(chunk: Any, mask: Mask) -> Any:
    return np.asarray(chunk)[mask]
