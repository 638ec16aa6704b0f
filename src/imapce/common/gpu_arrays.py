"""Arrays that lie on a graphics card, whoever made them: CuPy, PyTorch or JAX, met through DLPack and never copied."""

from __future__ import annotations

from typing import Any

import numpy
from numpy.typing import NDArray

from imapce.errors import InvalidTypeError, InvalidValueError, needs

CUDA_DEVICES = (2, 13)  # kDLCUDA and kDLCUDAManaged of DLPack


def is_on_card(X: Any) -> bool:
    """Whether `X` is an array in the memory of a CUDA card.

    >>> import numpy as np
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
            f"X must be a dense array of plain numbers on the card; got {type(X).__name__} "
            f"({' '.join(str(error).split())}). Convert it to float32 first."
        ) from error


def in_kind_of(X: Any, view: Any) -> Any:
    """A CuPy array as the library that made `X` holds its own; what is on the host stays as it is.

    >>> import numpy as np
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

    >>> import numpy as np
    >>> on_host(np.eye(1))
    array([[1.]])
    """
    return array.get() if hasattr(array, "get") and is_on_card(array) else array


def put_beside(array: Any, values: NDArray[numpy.float64]) -> Any:
    """An array of the host where `array` lies, and of its kind, so that both can be added.

    >>> import numpy as np
    >>> put_beside(np.eye(2), np.ones(2))
    array([1., 1.])
    """
    return in_kind_of(array, cupy_module().asarray(values)) if is_on_card(array) else values


def array_module(array: Any) -> Any:
    """NumPy, or CuPy for an array of a card.

    >>> import numpy as np
    >>> array_module(np.eye(1)) is np
    True
    """
    return cupy_module() if is_on_card(array) else numpy
