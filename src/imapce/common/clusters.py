"""Collections of Dask: rows that lie on a cluster, or are made when they are asked for."""

from __future__ import annotations

from typing import Any


def is_dask(X: Any) -> bool:
    """Whether `X` is a dask.array or a dask.dataframe.

    >>> is_dask([[1.0]])
    False
    """
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")
