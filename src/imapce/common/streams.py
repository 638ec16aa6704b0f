"""Rows that are larger than memory: a matrix that can only be read from its beginning to its end, again and again."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Stream(ABC):
    """A matrix of numbers, read block by block in a fixed order; every call of `blocks` is one pass."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @abstractmethod
    def blocks(self, columns: NDArray[np.intp] | None = None) -> Iterator[Array]:
        """The rows as float64, some megabytes at a time, or some of their columns; a block may be overwritten by the
        next.
        """


def is_scan(X: Any) -> bool:
    """Whether `X` is what `imapce.scan` returns; who never scanned a file need not import what reads them.

    >>> is_scan([[1.0]])
    False
    """
    module = sys.modules.get("imapce.tables.scan")
    return module is not None and isinstance(X, module.Scan)
