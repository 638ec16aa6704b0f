"""The one place that picks an engine: by the kind of matrix, its size, and how often it will be read.

sparse matrix → sparse        Dask collection → dask        on a card, or large where a card answers → cuda
scan(path) → files            any other array → dense       few columns → moment_tensor, on top of any of these
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from imapce.common.arrays import Array, card_answers, is_on_card
from imapce.common.checks import require_choice
from imapce.common.streams import Stream
from imapce.errors import InvalidTypeError
from imapce.rows.base import Rows
from imapce.rows.cuda import CudaRows, project_on_card
from imapce.rows.dask import DaskRows
from imapce.rows.dense import DenseRows
from imapce.rows.files import FileRows
from imapce.rows.moment_tensor import MomentTensorRows, moment_tensor_pays
from imapce.rows.sparse import SparseRows

# Numbers: 0.4 GB of float64, 0.05 s of copying against seconds of a search on the host.
LARGE = 50_000_000
ENGINES = ("auto", "dense", "sparse", "moment_tensor", "files", "dask", "cuda")


def open_rows(matrix: Any, *, engine: str = "auto", n_components: int = 2) -> Rows:
    """The engine for a search over `matrix`.

    "auto" goes by what the matrix is: sparse, on a card, on a cluster, on disk or in memory; of the last two it takes a
    card where one answers and the matrix is large. Where columns are few, the rows are folded into fourth moments.
    """
    require_choice("engine", engine, ENGINES)
    rows = _opened(matrix, engine, n_components)
    # A fold costs as much as some hundred passes of few frames do, and needs one pass.
    fold = engine == "auto" and moment_tensor_pays(rows.n_rows, rows.n_features, n_components)
    return MomentTensorRows(rows) if fold or engine == "moment_tensor" else rows


def _opened(matrix: Any, engine: str, n_components: int) -> Rows:
    """The rows where they lie, not folded."""
    if hasattr(matrix, "parts") or engine == "dask":
        return _on_cluster(matrix, engine)
    if engine == "files":
        return _on_disk(matrix, engine)
    # Files are read twice to fill a card, and a dozen times where there is none.
    if engine == "cuda" or is_on_card(matrix) or (engine == "auto" and _worth_a_card(matrix, n_components)):
        return _on_card(matrix, engine)
    if isinstance(matrix, Stream):
        return _on_disk(matrix, engine)
    is_sparse = issparse(matrix)
    if engine == "dense" and is_sparse:
        raise InvalidTypeError(
            "engine='dense' reads arrays and X is sparse; use engine='auto' or 'sparse', or pass X.toarray()."
        )
    return SparseRows(matrix) if is_sparse or engine == "sparse" else DenseRows(matrix).centre_if_far()


def _on_disk(matrix: Any, engine: str) -> Rows:
    if not isinstance(matrix, Stream):
        raise InvalidTypeError(f"engine='files' reads imapce.scan(path), and X is {type(matrix).__name__}; use 'auto'.")
    if engine not in ("auto", "files", "moment_tensor"):
        raise InvalidTypeError(
            f"engine={engine!r} does not read files and X is imapce.scan(path); use engine='auto', 'files' or 'cuda'."
        )
    return FileRows(matrix).centre_if_far()


def _on_cluster(matrix: Any, engine: str) -> Rows:
    if isinstance(matrix, Stream):
        raise InvalidTypeError(
            "engine='dask' reads Dask collections and X is imapce.scan(path); use engine='auto' or 'files', or pass "
            "dask.dataframe.read_parquet(path)."
        )
    if not hasattr(matrix, "parts"):
        raise InvalidTypeError(f"engine='dask' reads Dask collections, and X is {type(matrix).__name__}; use 'auto'.")
    if engine not in ("auto", "dask", "moment_tensor"):
        raise InvalidTypeError(f"engine={engine!r} reads arrays and X lies on a cluster; use engine='auto' or 'dask'.")
    return DaskRows(matrix).centre_if_far()


def _worth_a_card(matrix: Any, n_components: int) -> bool:
    """Whether a search is worth the way to a card: the copy is a read or two, a search some hundred."""
    n, d = matrix.shape
    large = not issparse(matrix) and n * d >= LARGE
    return large and not moment_tensor_pays(n, d, n_components) and card_answers()


def _on_card(matrix: Any, engine: str) -> CudaRows:
    if issparse(matrix):
        raise InvalidTypeError("engine='cuda' reads dense arrays and X is sparse; use engine='auto' or 'sparse'.")
    if engine in ("dense", "sparse"):
        raise InvalidTypeError(
            f"engine={engine!r} reads arrays of the host and X lies on a card; use engine='auto' or 'cuda'."
        )
    return CudaRows.open(matrix)


def project_matrix(matrix: Any, W: Array, mean: NDArray) -> Array:
    """(x − mean)ᵀW for every row of `matrix`, read once: a row's place depends on no other row."""
    if issparse(matrix):
        return SparseRows(matrix).project(W, mean @ W)
    if is_on_card(matrix):
        return project_on_card(matrix, W, mean)
    if isinstance(matrix, Stream):
        return FileRows(matrix, origin=mean).project(W, np.zeros(W.shape[1]))
    return DenseRows(matrix, origin=mean).project(W, np.zeros(W.shape[1]))
