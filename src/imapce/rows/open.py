"""The one place that picks an engine for a matrix.

>>> open_rows(np.eye(3), engine="dense").n_features
3
"""

from __future__ import annotations

from typing import Any

from scipy.sparse import issparse

from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.rows.base import Rows
from imapce.rows.dense import DenseRows
from imapce.rows.moment_tensor import MomentTensorRows, moment_tensor_pays
from imapce.rows.sparse import SparseRows

ENGINES = ("auto", "dense", "sparse", "moment_tensor")


def open_rows(matrix: Any, *, engine: str = "auto", n_components: int = 2) -> Rows:
    """The engine for `matrix`: "auto" takes sparse for sparse input, fourth moments where they pay, else dense.

    >>> open_rows(np.eye(3), engine="dense").n_features
    3
    """
    if engine not in ENGINES:
        raise InvalidValueError(f"engine must be one of {', '.join(map(repr, ENGINES))}; got {engine!r}.")
    is_sparse = issparse(matrix)
    if engine == "dense" and is_sparse:
        raise InvalidTypeError(
            "engine='dense' reads arrays and X is sparse; use engine='auto' or 'sparse', or pass X.toarray()."
        )
    rows: Rows = SparseRows(matrix) if is_sparse or engine == "sparse" else DenseRows.centred_if_far(matrix)
    fold = engine == "auto" and moment_tensor_pays(rows.n_rows, rows.n_features, n_components)
    return MomentTensorRows(rows) if fold or engine == "moment_tensor" else rows
