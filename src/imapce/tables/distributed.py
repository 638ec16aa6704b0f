"""Dask's arrays and tables as chunks of a matrix that stay where they are: what is learned of them comes back small.

>>> import dask.array as da
>>> encoding, chunks = learned_on_cluster(da.ones((6, 2), chunks=(3, 2)))
>>> chunks.lengths, chunks.shape
((3, 3), (6, 2))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from imapce.common.words import listed
from imapce.errors import InvalidTypeError, InvalidValueError, needs
from imapce.tables.columns import Unknown
from imapce.tables.encode import encode
from imapce.tables.encoding import Encoding
from imapce.tables.scanned import Column, encoding_of, require_usable

Missing = Literal["error", "mean"]


@dataclass(frozen=True)
class Chunks:
    """A matrix in parts (rows, columns), each a delayed NumPy array that the cluster holds; in the order of the rows.

    >>> import dask.array as da
    >>> learned_on_cluster(da.zeros((4, 1)) + np.arange(4)[:, None])[1].shape
    (4, 1)
    """

    parts: tuple[Any, ...]
    lengths: tuple[int, ...]
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return sum(self.lengths), self.n_features

    def chosen(self, parts: tuple[Any, ...], lengths: tuple[int, ...]) -> Chunks:
        """Other parts with the same columns."""
        return Chunks(parts, lengths, self.n_features)


def learned_on_cluster(X: Any, *, missing: Missing = "error") -> tuple[Encoding | None, Chunks]:
    """The encoding of a table (None for an array) and its chunks, held by the cluster from now on."""
    with needs("Reading Dask collections", "imapce[dask]"):
        import dask
    if not hasattr(X, "columns"):
        if missing == "mean":
            raise InvalidValueError(
                'missing="mean" fills tables; fill a dask.array by itself, or pass a dask.dataframe.'
            )
        return None, _of_array(X)
    parts = X.to_delayed()
    looked = dask.compute(*[dask.delayed(_looked_at)(part) for part in parts])
    columns, n_rows = looked[0][1], sum(length for length, _ in looked)
    require_usable(columns)
    for _, others in looked[1:]:
        columns = [one.joined(other) for one, other in zip(columns, others, strict=True)]
    encoding = encoding_of(columns, n_rows, missing=missing)
    chunks = encoded_on_cluster(X, encoding, missing=missing)
    return encoding, chunks


def encoded_on_cluster(
    X: Any, encoding: Encoding | None, *, missing: Missing = "error", unknown: Unknown = "error"
) -> Chunks:
    """The chunks of new rows, their columns as they were learned."""
    if (encoding is None) == hasattr(X, "columns"):
        raise InvalidTypeError("X must be what it was in fit: a dask.array there and here, or a table there and here.")
    if encoding is None:
        return _of_array(X)
    import dask

    make = dask.delayed(_encoded, pure=False)
    parts = dask.persist(*[make(part, encoding, missing, unknown) for part in X.to_delayed()])
    lengths = dask.compute(*[dask.delayed(len)(part) for part in parts])
    return _without_empty(parts, lengths, len(encoding.feature_names))


def _of_array(X: Any) -> Chunks:
    import dask

    if X.ndim != 2:
        raise InvalidValueError(f"X must have rows and columns; got a dask.array of {X.ndim} dimensions.")
    if X.dtype.kind not in "fiub":
        raise InvalidTypeError(f"X must hold real numbers; got a dask.array of {X.dtype}.")
    whole_rows = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
    parts = dask.persist(*whole_rows.to_delayed().ravel())
    seen = dask.compute(*[dask.delayed(_checked)(part) for part in parts])
    names = [f"x{i}" for i in range(X.shape[1])]
    for words, place in ((("no missing values", "NaN"), 1), (("finite values", "infinity"), 2)):
        bad = np.sum([one[place] for one in seen], axis=0) > 0
        if bad.any():
            raise InvalidValueError(
                f"X must have {words[0]}, and column {listed(names, bad)} has {words[1]}; drop those rows first."
            )
    return _without_empty(parts, [one[0] for one in seen], X.shape[1])


def _without_empty(parts: Any, lengths: Any, n_features: int) -> Chunks:
    full = [(part, int(length)) for part, length in zip(parts, lengths, strict=True) if length]
    if not full:
        raise InvalidValueError("X must have rows, and every part of it is empty.")
    return Chunks(tuple(part for part, _ in full), tuple(length for _, length in full), n_features)


def _checked(part: Any) -> tuple[int, Any, Any]:
    """Rows of a chunk, and how many values of each column are missing and endless."""
    if part.dtype.kind != "f":
        nothing = np.zeros(part.shape[1], dtype=np.intp)
        return len(part), nothing, nothing
    return len(part), np.isnan(part).sum(axis=0), np.isinf(part).sum(axis=0)


def _looked_at(part: Any) -> tuple[int, list[Column]]:
    import pyarrow as pa

    table = pa.Table.from_pandas(part, preserve_index=False)
    columns = [Column.of(field) for field in table.schema]
    for one, values in zip(columns, table.columns, strict=True):
        for chunk in values.chunks if not one.refused else ():
            one.look_at(chunk)
    return len(part), columns


def _encoded(part: Any, encoding: Encoding, missing: Missing, unknown: Unknown) -> Any:
    if not len(part):
        return np.empty((0, len(encoding.feature_names)))
    return encode(part, encoding=encoding, missing=missing, unknown=unknown, extra="ignore").matrix
