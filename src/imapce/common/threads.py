"""BLAS and OpenMP threads: useful on large matrices, harmful on small ones."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from threadpoolctl import ThreadpoolController


@functools.cache
def _thread_pools() -> ThreadpoolController:
    # Looking for the BLAS libraries takes milliseconds, as long as a small fit; they do not change.
    return ThreadpoolController()


def single_thread_if(small: bool) -> AbstractContextManager[Any]:
    """One thread while matrices are small: two threads spin for each other.

    Seen on 2 cores with other load: a fit of Image Segmentation 76 ms with one thread and 1,056 ms with two, an
    iteration of a 2-D mixture 0.7 ms and 4 ms.
    """
    return _thread_pools().limit(limits=1) if small else nullcontext()
