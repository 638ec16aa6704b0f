"""The one place that picks an engine: by the kind of matrix, its size, and how often it will be read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from imapce.common.checks import require_choice
from imapce.errors import InvalidTypeError
from imapce.rows.base import Array, Rows
from imapce.rows.dense import DenseRows
from imapce.rows.moment_tensor import MomentTensorRows, moment_tensor_pays
from imapce.rows.sparse import SparseRows

ENGINES = ("auto", "dense", "sparse", "moment_tensor")


def open_rows(matrix: Any, *, engine: str = "auto", n_components: int = 2) -> Rows:
    """The engine for a search over `matrix`: "auto" takes sparse for sparse input, fourth moments where they pay, else
    dense.

    >>> open_rows(np.eye(3), engine="dense").n_features
    3
    """
    require_choice("engine", engine, ENGINES)
    is_sparse = issparse(matrix)
    if engine == "dense" and is_sparse:
        raise InvalidTypeError(
            "engine='dense' reads arrays and X is sparse; use engine='auto' or 'sparse', or pass X.toarray()."
        )
    rows: Rows = SparseRows(matrix) if is_sparse or engine == "sparse" else DenseRows.centred_if_far(matrix)
    fold = engine == "auto" and moment_tensor_pays(rows.n_rows, rows.n_features, n_components)
    return MomentTensorRows(rows) if fold or engine == "moment_tensor" else rows


def projected(matrix: Any, W: Array, mean: NDArray) -> Array:
    """(x − mean)ᵀW for every row of `matrix`, read once: a row's place depends on no other row.

    >>> projected(np.eye(2), np.array([[2.0], [0.0]]), np.zeros(2)).ravel().tolist()
    [2.0, 0.0]
    """
    if issparse(matrix):
        return SparseRows(matrix).project(W, mean @ W)
    return DenseRows(matrix, origin=mean).project(W, np.zeros(W.shape[1]))
