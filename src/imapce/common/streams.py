"""Rows that are larger than memory: a matrix that can only be read from its beginning to its end, again and again."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Portion:
    """Some rows of a stream as they were read; each call of `blocks` makes them float64, in pieces that fit in cache.

    Whoever calls it does that work, so that several threads may take a portion each. A block may be overwritten by the
    next one of its portion.

    >>> [len(block) for block in Portion(3, lambda: iter([np.eye(2), np.eye(1)])).blocks()]
    [2, 1]
    """

    n_rows: int
    blocks: Callable[[], Iterator[Array]]


class Stream(ABC):
    """A matrix of numbers, read portion by portion in a fixed order; every call of `portions` is one pass."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @abstractmethod
    def portions(self, columns: NDArray[np.intp] | None = None) -> Iterator[Portion]:
        """The rows, or some of their columns, some megabytes at a time."""


def is_scan(X: Any) -> bool:
    """Whether `X` is what `imapce.scan` returns; who never scanned a file need not import what reads them.

    >>> is_scan([[1.0]])
    False
    """
    module = sys.modules.get("imapce.tables.scan")
    return module is not None and isinstance(X, module.Scan)
