"""Rows on a Dask cluster: every reduction goes to the chunks, and only what it leaves comes back.

Each chunk is reduced where it lies by the dense engine, all frames in one round. Partial results are added in float64
in a tree whose shape depends on the number of chunks alone, so that sums do not depend on which worker was faster; a
worker that dies takes chunks with it that Dask makes again, and the sums are the same.

A round is a graph written out by hand: of 200 chunks it takes 0.1 ms, of delayed calls 26 ms.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from imapce.common.arrays import Array, Codes, Mask
from imapce.common.work import one_thread
from imapce.rows.base import AnyArray, Moments, Rows
from imapce.rows.dense import BlockRows, Blocks, DenseRows, Sums, add_sums

# Rows that may be brought to where the search runs: a sample, as the choice of a view asks for, never the table.
GATHERED_ROWS, GATHERED_BYTES = 20_000, 256 << 20
# Partial results added by one task: pairs would double the number of tasks, and what many tasks cost is the scheduler.
ADDED_AT_ONCE = 8


class ChunksLike(Protocol):
    """A matrix in delayed parts; `chosen` makes another one of the same kind."""

    def chosen(self, parts: tuple[Any, ...], lengths: tuple[int, ...]) -> ChunksLike: ...

    @property
    def parts(self) -> tuple[Any, ...]: ...
    @property
    def lengths(self) -> tuple[int, ...]: ...
    @property
    def n_features(self) -> int: ...


@dataclass(frozen=True)
class Round:
    """What all chunks are asked in a round, sent once and not in each task: reduce(rows, what is the chunk's own)."""

    origin: Array
    reduce: Callable[..., Any]


class DaskRows(BlockRows):
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
        self._source = {key: task for part in chunks.parts for key, task in dict(part.dask).items()}

    # --- one round to the cluster -------------------------------------------------------------------------------------

    def _tasks(self, reduce: Callable[..., Any], own: Sequence[Any] | None = None) -> tuple[dict[Any, Any], list[str]]:
        """A graph that reduces every chunk, and the names of its results; `own` is what each chunk is told besides."""
        name = f"imapce_reduced-{uuid.uuid4().hex}"
        asked = f"{name}-round"
        graph = {**self._source, asked: Round(self.origin, reduce)}
        keys = [f"{name}-{i}" for i in range(len(self._chunks.parts))]
        for i, (key, part) in enumerate(zip(keys, self._chunks.parts, strict=True)):
            graph[key] = (_on_chunk, part.key, asked, *([] if own is None else [own[i]]))
        return graph, keys

    def _each(self, reduce: Callable[..., Any], own: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """What `reduce` makes of the rows of every chunk, in order."""
        return _compute(*self._tasks(reduce, own))

    def _add_up(
        self,
        reduce: Callable[..., Any],
        own: Sequence[Any] | None = None,
        add: Callable[[Any, Any], Any] = add_sums,
    ) -> Any:
        """What `reduce` makes of the rows of every chunk, added in a tree on the cluster."""
        graph, keys = self._tasks(reduce, own)
        name = f"imapce_added-{uuid.uuid4().hex}"
        while len(keys) > 1:
            groups = [keys[i : i + ADDED_AT_ONCE] for i in range(0, len(keys), ADDED_AT_ONCE)]
            keys = [f"{name}-{len(groups)}-{i}" for i in range(len(groups))]
            graph.update({key: (functools.reduce, add, group) for key, group in zip(keys, groups, strict=True)})
        (result,) = _compute(graph, keys)
        return result

    # --- the contract -------------------------------------------------------------------------------------------------

    def _sum(self, reduce: Callable[[Blocks], Sums]) -> Sums:
        return self._add_up(partial(_reduce_rows, reduce))

    def _compute_moments(self) -> Moments:
        return self._add_up(DenseRows.moments, add=Moments.join)

    def project_some(self, W: Array, offset: Array, mask: Mask) -> Array:
        # Where they lie: a view of a row is smaller than the row.
        return np.concatenate(self._each(partial(_project_some, W, offset), self._cut_places(mask)))

    def subset(self, mask: Mask) -> Rows:
        if self._is_sample(mask):
            return DenseRows(self._gather(mask), origin=self.origin)
        return DaskRows(self._where(mask), origin=self.origin)

    def without(self, mask: Mask) -> Rows:
        if self._is_sample(~mask):
            return DenseRows(self._gather(~mask)).centre_if_far()
        return DaskRows(self._where(~mask)).centre_if_far()

    def blocks(self, columns: Codes | None = None) -> Iterator[Array]:
        """Chunk by chunk, for what cannot be done where they lie: a baseline's own loop, never a fit."""
        graph, keys = self._tasks(partial(_each_block, np.copy, columns))
        for key in keys:
            yield np.concatenate(_compute(graph, [key])[0])

    def reduce_blocks(self, reduce: Callable[[Array], Any], columns: Codes | None = None) -> Iterator[Any]:
        return chain.from_iterable(self._each(partial(_each_block, reduce, columns)))

    def add_blocks(self, reduce: Callable[..., tuple[Any, ...]], *, beside: AnyArray | None = None) -> tuple[Any, ...]:
        return self._add_up(partial(_add_blocks, reduce), None if beside is None else self._cut(beside))

    def digest(self) -> str:
        """Sums over rows of a hash of their numbers and their place: the same wherever chunks begin and end."""
        starts = [int(stop) - length for stop, length in zip(self._ends, self._chunks.lengths, strict=True)]
        # Less no origin: a mean differs in its last bits with the chunks it was added from.
        (words,) = DaskRows(self._chunks)._add_up(_digest, starts)
        return str(words.astype("<u8").tobytes().hex())

    # --- some of the rows ---------------------------------------------------------------------------------------------

    def _is_sample(self, mask: Mask) -> bool:
        count = int(mask.sum())
        return count <= GATHERED_ROWS and count * self.n_features * 8 <= GATHERED_BYTES

    def _cut(self, beside: AnyArray) -> list[Any]:
        return [beside[stop - length : stop] for stop, length in zip(self._ends, self._chunks.lengths, strict=True)]

    def _cut_places(self, mask: Mask) -> list[NDArray[Any]]:
        """Which rows of every chunk, as it is sent: places of few rows are smaller than a mask of all."""
        places = [(np.flatnonzero(cut), cut) for cut in self._cut(mask)]
        return [chosen if 8 * len(chosen) < len(cut) else cut for chosen, cut in places]

    def _parts_of(self, mask: Mask) -> tuple[list[Any], tuple[int, ...]]:
        """The chosen rows of every chunk that has some, delayed, and how many they are."""
        from dask.delayed import Delayed

        name = f"imapce_taken-{uuid.uuid4().hex}"
        parts, lengths = [], []
        counts = [int(cut.sum()) for cut in self._cut(mask)]
        for i, (part, chosen) in enumerate(zip(self._chunks.parts, self._cut_places(mask), strict=True)):
            if counts[i]:
                key = f"{name}-{i}"
                parts.append(Delayed(key, {**dict(part.dask), key: (_take_rows, part.key, chosen)}))
                lengths.append(counts[i])
        return parts, tuple(lengths)

    def _gather(self, mask: Mask) -> AnyArray:
        import dask

        parts, _ = self._parts_of(mask)
        return np.concatenate(dask.compute(*parts, optimize_graph=False)) if parts else np.empty((0, self.n_features))

    def _where(self, mask: Mask) -> ChunksLike:
        """The chosen rows as chunks of their own, held by the cluster."""
        import dask

        parts, lengths = self._parts_of(mask)
        return self._chunks.chosen(tuple(dask.persist(*parts, optimize_graph=False)), lengths)


def _compute(graph: dict[Any, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    from dask.delayed import Delayed

    import dask

    # Chunks share the cores: where they are reduced by threads of this process, each is to have one. Workers of their
    # own have one by Dask's own settings.
    with one_thread():
        return tuple(dask.compute(*[Delayed(key, graph) for key in keys], optimize_graph=False))


# --- what is done to a chunk, where it lies ---------------------------------------------------------------------------


def _on_chunk(chunk: Any, asked: Round, *own: Any) -> Any:
    return asked.reduce(DenseRows(np.asarray(chunk), origin=asked.origin), *own)


def _reduce_rows(reduce: Callable[[Blocks], Sums], rows: DenseRows) -> Sums:
    return reduce(rows.blocks())


def _each_block(reduce: Callable[[Array], Any], columns: Codes | None, rows: DenseRows) -> list[Any]:
    return [reduce(block) for block in rows.blocks(columns)]


def _add_blocks(reduce: Callable[..., tuple[Any, ...]], rows: DenseRows, beside: Any = None) -> tuple[Any, ...]:
    return rows.add_blocks(reduce, beside=beside)


def _project_some(W: Array, offset: Array, rows: DenseRows, chosen: NDArray[Any]) -> Array:
    mask = np.zeros(rows.n_rows, dtype=bool)
    mask[chosen] = True
    return rows.subset(mask).project(W, offset)


def _take_rows(chunk: Any, chosen: NDArray[Any]) -> Any:
    return np.asarray(chunk)[chosen]


def _digest(rows: DenseRows, start: int) -> tuple[NDArray[np.uint64]]:
    """Two words of 64 bits, modulo which everything is computed."""
    rng = np.random.default_rng(0)
    # Odd factors lose no bit; two sets of them, for two hashes of a row.
    weights = rng.integers(1 << 63, size=(2, rows.n_features), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    words = np.zeros(2, dtype=np.uint64)
    for block in rows.blocks():
        # Adding zero turns -0.0 into 0.0, which are equal numbers with different bits.
        bits = np.ascontiguousarray(block + 0.0).view(np.uint64)
        places = np.arange(start, start + len(bits), dtype=np.uint64)
        start += len(bits)
        hashes = (_scramble((bits * weight).sum(axis=1)) for weight in weights)
        # Sums of arrays wrap; those of numbers would warn.
        words += np.array([_scramble(hashed + places).sum() for hashed in hashes])
    return (words,)


def _scramble(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of a value in all bits of the result (the last steps of splitmix64), one to one."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
