"""Arrays: what they are called in signatures, where they lie (memory, a graphics card, a cluster, disk), and which of
their rows stand for many.

Arrays of a card are met through DLPack and never copied, whoever made them: CuPy, PyTorch or JAX.

>>> codes: Codes = np.array([0, 1, 0])
>>> is_on_card(codes), is_dask(codes), is_scan(codes)
(False, False, False)
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.errors import InvalidTypeError, InvalidValueError, needs

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.intp]

CUDA_DEVICES = (2, 13)  # kDLCUDA and kDLCUDAManaged of DLPack


def seeded_sample(n_rows: int, most: int) -> Mask:
    """A mask of at most `most` rows, the same whenever asked: two fits of the same rows ask the same ones.

    >>> int(seeded_sample(50, 10).sum()), int(seeded_sample(5, 10).sum())
    (10, 5)
    """
    mask = np.ones(n_rows, dtype=bool)
    if n_rows > most:
        mask[:] = False
        mask[np.random.default_rng(0).choice(n_rows, most, replace=False)] = True
    return mask


# --- on disk, on a cluster --------------------------------------------------------------------------------------------


def is_scan(X: Any) -> bool:
    """Whether `X` is what `imapce.scan` returns; who never scanned a file need not import what reads them.

    >>> is_scan([[1.0]])
    False
    """
    module = sys.modules.get("imapce.tables.scan")
    return module is not None and isinstance(X, module.Scan)


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


def shifted(view: Any, shift: Array) -> Any:
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
            "X", f"must be in memory for {what}, and its rows lie on {where}; pass a sample of them, which {how} here."
        )


# --- on a graphics card -----------------------------------------------------------------------------------------------


def is_on_card(X: Any) -> bool:
    """Whether `X` is an array in the memory of a CUDA card.

    >>> is_on_card(np.eye(2)), is_on_card("table.csv")
    (False, False)
    """
    if isinstance(X, type) or not hasattr(X, "__dlpack_device__"):
        return False
    try:
        return int(X.__dlpack_device__()[0]) in CUDA_DEVICES
    except Exception:  # an array that cannot say where it lies (a tensor of another backend) lies on no card of ours
        return False


def cupy_module() -> Any:
    """CuPy with a card that answers, or one sentence: what is missing, and the way out."""
    with needs("Computing on a GPU", "imapce[gpu]"):
        import cupy
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise InvalidValueError(
            f"engine='cuda' needs an NVIDIA driver, and none answers here ({' '.join(str(error).split())}); "
            "use engine='auto'."
        ) from error
    if not count:
        raise InvalidValueError("engine='cuda' needs an NVIDIA card, and there is none here; use engine='auto'.")
    return cupy


def card_answers() -> bool:
    """Whether CuPy is installed and a card answers.

    >>> isinstance(card_answers(), bool)
    True
    """
    try:
        cupy_module()
    except (ImportError, ValueError):
        return False
    return True


def as_cupy(X: Any) -> Any:
    """The array as CuPy sees it, in the same memory."""
    cupy = cupy_module()
    if isinstance(X, cupy.ndarray):
        return X
    try:
        return cupy.from_dlpack(X.detach() if hasattr(X, "detach") else X)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise InvalidTypeError(
            "X",
            f"must be a dense array of plain numbers on the card; got {type(X).__name__} "
            f"({' '.join(str(error).split())}). Convert it to float32 first.",
        ) from error


def in_kind_of(X: Any, view: Any) -> Any:
    """A CuPy array as the library that made `X` holds its own; what is on the host stays as it is.

    >>> in_kind_of(np.eye(2), np.ones(2))
    array([1., 1.])
    """
    if not is_on_card(view):
        return view
    library = type(X).__module__.partition(".")[0]
    if library == "torch":
        import torch

        return torch.from_dlpack(view)
    if library in ("jax", "jaxlib"):
        import jax

        return jax.dlpack.from_dlpack(view)
    return view


def on_host(array: Any) -> Any:
    """A NumPy array of what may lie on a card.

    >>> on_host(np.eye(1))
    array([[1.]])
    """
    return array.get() if hasattr(array, "get") and is_on_card(array) else array


def put_beside(array: Any, values: Array) -> Any:
    """An array of the host where `array` lies, and of its kind, so that both can be added.

    >>> put_beside(np.eye(2), np.ones(2))
    array([1., 1.])
    """
    return in_kind_of(array, cupy_module().asarray(values)) if is_on_card(array) else values


def array_module(array: Any) -> Any:
    """NumPy, or CuPy for an array of a card.

    >>> array_module(np.eye(1)) is np
    True
    """
    return cupy_module() if is_on_card(array) else np
