"""Rows that are larger than memory: a matrix that can only be read from its beginning to its end, again and again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

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
