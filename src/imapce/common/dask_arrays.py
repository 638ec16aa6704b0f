"""Collections of Dask: rows that lie on a cluster, or are made when they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.streams import is_scan
from imapce.errors import InvalidTypeError


def is_dask(X: Any) -> bool:
    """Whether `X` is a dask.array or a dask.dataframe.

    >>> is_dask([[1.0]])
    False
    """
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def as_array(X: Any) -> Any:
    """A Dask collection as a dask.array, nothing computed.

    >>> import dask.array as da
    >>> as_array(da.ones((2, 1))).shape
    (2, 1)
    """
    return X.to_dask_array() if hasattr(X, "to_dask_array") else X


def shifted(view: Any, shift: NDArray[np.float64]) -> Any:
    """A dask.array or dask.dataframe of n rows plus an array (n, k) of this machine, nothing computed but lengths.

    >>> import dask.array as da
    >>> shifted(da.ones((2, 1)), np.array([[1.0], [2.0]])).compute().ravel()
    array([2., 3.])
    """
    import dask.array as da

    if hasattr(view, "to_dask_array"):
        moved = shifted(view.to_dask_array(lengths=True), shift)
        index = view.index
        return moved.to_dask_dataframe(columns=list(view.columns), index=index)
    if np.isnan(view.shape[0]):
        view = view.compute_chunk_sizes()
    return view + da.from_array(shift, chunks=view.chunks)


def require_in_memory(X: Any, what: str) -> None:
    """Refuse rows that lie on a cluster or on disk, where `what` needs them all at once.

    >>> require_in_memory([[1.0]], "t-SNE")
    """
    if is_dask(X) or is_scan(X):
        where, how = ("a cluster", ".compute() brings") if is_dask(X) else ("disk", "imapce.tables.read_table reads")
        raise InvalidTypeError(
            f"X must be in memory for {what}, and its rows lie on {where}; pass a sample of them, which {how} here."
        )
