"""Collections of Dask: rows that lie on a cluster, or are made when they are asked for."""

from __future__ import annotations

from typing import Any

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


def require_in_memory(X: Any, what: str) -> None:
    """Refuse rows that lie on a cluster or on disk, where `what` needs them all at once.

    >>> require_in_memory([[1.0]], "t-SNE")
    """
    if is_dask(X) or is_scan(X):
        where, how = ("a cluster", ".compute() brings") if is_dask(X) else ("disk", "imapce.tables.read_table reads")
        raise InvalidTypeError(
            f"X must be in memory for {what}, and its rows lie on {where}; pass a sample of them, which {how} here."
        )
