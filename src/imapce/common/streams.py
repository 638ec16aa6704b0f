"""Rows that are larger than memory: a matrix that can only be read from its beginning to its end, again and again."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from imapce.common.arrays import Array, Codes, Mask

Item = TypeVar("Item")
Result = TypeVar("Result")

# Threads that reduce; each has a portion and what it makes of it in memory.
MOST_THREADS = 8


@dataclass(frozen=True)
class Portion:
    """Some rows of a stream as they were read; `blocks` makes those at some places, or all where None is given,
    float64, in pieces that fit in cache.

    Whoever calls it does that work, so that several threads may take a portion each. A block may be overwritten by the
    next one of its portion.

    >>> rows = np.eye(3)
    >>> portion = Portion(3, lambda places: iter([rows if places is None else rows[places]]))
    >>> [len(block) for block in portion.blocks(None)], [len(block) for block in portion.blocks(np.array([0, 2]))]
    ([3], [2])
    """

    n_rows: int
    blocks: Callable[[Codes | None], Iterator[Array]]


class Stream(ABC):
    """A matrix of numbers, read portion by portion in a fixed order; every call of `portions` is one pass."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @abstractmethod
    def portions(self, columns: Codes | None = None) -> Iterator[Portion]:
        """The rows, or some of their columns, some megabytes at a time."""


def mask_within(outer: Mask | None, mask: Mask) -> Mask:
    """A mask of the rows that `outer` chose, or of all where it is None, as one of all rows.

    >>> mask_within(np.array([True, False, True]), np.array([False, True]))
    array([False, False,  True])
    """
    if outer is None:
        return mask
    whole = np.zeros(len(outer), dtype=bool)
    whole[np.flatnonzero(outer)[mask]] = True
    return whole


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """work(item) of every item, in their order, by as many threads as there are cores; few items are held at a time.

    >>> list(in_order(abs, iter([-1, 2, -3])))
    [1, 2, 3]
    """
    threads = min(MOST_THREADS, os.cpu_count() or 1)
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                # NumPy's rules on overflow are the caller's here as well.
                waiting.append(pool.submit(copy_context().run, work, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()
