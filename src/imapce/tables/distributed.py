"""Dask's arrays and tables as chunks of a matrix that stay where they are: what is learned of them comes back small.

>>> import dask.array as da
>>> encoding, chunks = learn_on_cluster(da.ones((6, 2), chunks=(3, 2)))
>>> chunks.lengths, chunks.shape
((6,), (6, 2))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from imapce.errors import InvalidTypeError, InvalidValueError, needs
from imapce.tables.columns import Unknown
from imapce.tables.encode import column_names, encode, summarize
from imapce.tables.learn import Encoding, Missing, Summary, encoding_of
from imapce.tables.reader import fill_gaps, require_numbers_in_rows

Array = NDArray[np.float64]

# Chunks are put together until they hold so many bytes: a task costs the scheduler 0.2 to 1 ms, and the rows of 32 MiB
# an evaluation of ten starts 20 to 40 ms. Of very many rows they are larger, so that there are about `MANY` of them.
SMALLEST_CHUNK, LARGEST_CHUNK, MANY = 32 << 20, 256 << 20, 256


@dataclass(frozen=True)
class Chunks:
    """A matrix in parts (rows, columns), delayed NumPy arrays that the cluster holds, in the order of the rows."""

    parts: tuple[Any, ...]
    lengths: tuple[int, ...]
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return sum(self.lengths), self.n_features

    def chosen(self, parts: tuple[Any, ...], lengths: tuple[int, ...]) -> Chunks:
        """Other parts with the same columns."""
        return replace(self, parts=parts, lengths=lengths)


def learn_on_cluster(X: Any, *, missing: Missing = "error") -> tuple[Encoding | None, Chunks]:
    """The encoding of a table (None for an array) and its chunks, held by the cluster from now on."""
    with needs("Reading Dask collections", "imapce[dask]"):
        import dask
    if not is_dask_table(X):
        return None, _chunks_of_array(X, "X", missing, None)
    column_names(outline(X))
    summaries = dask.compute(*[dask.delayed(summarize)(part) for part in X.to_delayed()])
    encoding = encoding_of(_join(summaries, "X"), missing=missing)
    return encoding, encode_on_cluster(X, encoding, missing=missing)


def encode_on_cluster(
    X: Any,
    encoding: Encoding | None,
    *,
    missing: Missing = "error",
    unknown: Unknown = "error",
    extra: Literal["error", "ignore"] = "error",
    means: Array | None = None,
    name: str = "X",
) -> Chunks:
    """The chunks of new rows, their columns as they were learned; `means` fill the gaps of an array."""
    if (encoding is None) == is_dask_table(X):
        here, there = ("a dask.dataframe", "an array") if is_dask_table(X) else ("a dask.array", "a table")
        raise InvalidTypeError(f"{name} must be {there}, as in fit; got {here}.")
    if encoding is None:
        return _chunks_of_array(X, name, missing, means)
    import dask

    make = dask.delayed(_encode_part, pure=False)
    settings = {"encoding": encoding, "missing": missing, "unknown": unknown, "extra": extra, "name": name}
    parts = dask.persist(*[make(part, settings) for part in X.to_delayed()])
    lengths = dask.compute(*[dask.delayed(len)(part) for part in parts])
    return _hold(parts, lengths, (len(encoding.feature_names), 8), name)


def is_dask_table(X: Any) -> bool:
    """Whether a Dask collection has named columns."""
    return hasattr(X, "columns")


def outline(X: Any) -> Any:
    """A pandas table with the columns of a dask.dataframe and none of its rows; an array as it is."""
    if not is_dask_table(X):
        return X
    from dask.dataframe.dispatch import make_meta

    return make_meta(X)


def each_part(X: Any, function: Callable[[Any], Array], names: Sequence[str], *, frame: bool = False) -> Any:
    """`function` of every part of X, lazily: a dask.array with a column for each of the names, or a dask.dataframe."""
    if not is_dask_table(X):
        rows = _whole_rows(X)
        chunks = (rows.chunks[0], (len(names),))
        made = rows.map_blocks(function, chunks=chunks, dtype=np.float64, meta=np.empty((0, 0)), token="imapce_view")
        if not frame:
            return made
        import dask.dataframe as dd

        return dd.from_dask_array(made, columns=list(names))
    import pandas as pd

    empty = pd.DataFrame(np.empty((0, len(names))), columns=list(names), index=outline(X).index)
    made = X.map_partitions(AsFrame(function, tuple(names)), meta=empty, enforce_metadata=False)
    return made if frame else made.to_dask_array()


def side_by_side(made: Any, count: int) -> Any:
    """(n, count·k) as (count, n, k), lazily; the rows may be any number."""
    import dask.array as da

    width = made.shape[1] // count
    parts = [made[:, i * width : (i + 1) * width] for i in range(count)]
    return da.stack(parts, allow_unknown_chunksizes=True)


@dataclass(frozen=True)
class AsFrame:
    """What a function makes of a pandas table, as one with its index."""

    function: Callable[[Any], Array]
    names: tuple[str, ...]

    def __call__(self, part: Any) -> Any:
        import pandas as pd

        return pd.DataFrame(self.function(part), index=part.index, columns=list(self.names))


# --- arrays -----------------------------------------------------------------------------------------------------------


def _whole_rows(X: Any) -> Any:
    return X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X


def _chunks_of_array(X: Any, name: str, missing: Missing, means: Array | None) -> Chunks:
    import dask

    require_numbers_in_rows(X, name)
    if X.dtype.kind not in "fiub":
        raise InvalidTypeError(
            f"{name} must hold real numbers; got a dask.array of {X.dtype}. Convert it, for example with "
            "X.astype(float)."
        )
    if np.isnan(X.shape[1]):
        raise InvalidValueError(
            f"{name} must have a known number of columns; got a dask.array of shape {X.shape}. Call "
            "X.compute_chunk_sizes() first."
        )
    parts = dask.persist(*_whole_rows(X).to_delayed().ravel())
    names = [f"x{i}" for i in range(X.shape[1])]
    summaries = dask.compute(*[dask.delayed(_summary_of_chunk)(part, names, name) for part in parts])
    summary = _join(summaries, name)
    if means is None:
        # A column of nothing but NaN has no mean to be filled with.
        summary.require_usable(name)
    summary.require_finite(name)
    if missing == "error":
        summary.require_whole(name)
    if summary.gaps:
        fill = dask.delayed(fill_gaps, pure=False)
        parts = dask.persist(*[fill(part, summary.means if means is None else means) for part in parts])
    return _hold(parts, [part.n_rows for part in summaries], (X.shape[1], X.dtype.itemsize), name)


def _summary_of_chunk(part: Any, names: list[str], name: str) -> Summary:
    if not isinstance(part, np.ndarray):
        raise InvalidTypeError(
            f"{name} must be made of NumPy arrays; got chunks that are {type(part).__name__}. Convert them, for "
            "example with X.map_blocks(lambda chunk: chunk.toarray())."
        )
    require_numbers_in_rows(part, name)
    return Summary.of_matrix(names, part)


# --- tables -----------------------------------------------------------------------------------------------------------


def _encode_part(part: Any, settings: dict[str, Any]) -> Any:
    if not len(part):
        return np.empty((0, len(settings["encoding"].feature_names)))
    return encode(part, **settings).matrix


# --- both -------------------------------------------------------------------------------------------------------------


def _join(summaries: Sequence[Summary], name: str) -> Summary:
    """What all parts tell of their columns."""
    summary = reduce(Summary.join, summaries)
    _require_rows(summary.n_rows, name)
    return summary


def _require_rows(n_rows: int, name: str) -> None:
    if not n_rows:
        raise InvalidValueError(f"{name} must have rows, and every part of it is empty; check the step that made it.")


def _hold(parts: Any, lengths: Sequence[int], width: tuple[int, int], name: str) -> Chunks:
    """The parts that have rows, small ones put together; how, depends on the lengths alone."""
    import dask

    n_features, itemsize = width
    full = [(part, int(length)) for part, length in zip(parts, lengths, strict=True) if length]
    n_rows = sum(length for _, length in full)
    _require_rows(n_rows, name)
    row = max(1, n_features * itemsize)
    wanted = min(max(n_rows * row // MANY, SMALLEST_CHUNK), LARGEST_CHUNK) // row
    groups: list[list[tuple[Any, int]]] = [[]]
    for part, length in full:
        if groups[-1] and sum(rows for _, rows in groups[-1]) + length > wanted:
            groups.append([])
        groups[-1].append((part, length))
    together = dask.delayed(np.concatenate, pure=False)
    made = [group[0][0] if len(group) == 1 else together([part for part, _ in group]) for group in groups]
    held = dask.persist(*made) if len(groups) < len(full) else made
    return Chunks(tuple(held), tuple(sum(length for _, length in group) for group in groups), n_features)
