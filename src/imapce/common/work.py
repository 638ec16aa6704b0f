"""How work is done: on how many threads, who hears of it, and who may end it.

Threads of BLAS and OpenMP are useful on large matrices and harmful on small ones, where two spin for each other. Beside
other work on 2 cores the second one cost 10 to 100 times what it gained: an iteration of a mixture in the plane 4 ms
instead of 0.7 ms, an exploration of Adult (3,000 × 57) 889 s instead of 106 s, a fit of 2,000 × 9,000 178 s instead of
13 s; on a quiet machine one thread was slower at none of these sizes.

Long work tells what it does in words and, where that is known, which share of it is done, ten times a second at most.
It knows no screen: a terminal, a page and a notebook each bring their own callables (`common/progress.py`).

>>> with threads_for(2_000, 9_000):
...     Watch(progress=lambda words, share: print(words)).tell("fitting")
fitting
"""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from threadpoolctl import ThreadpoolController

from imapce.errors import CancelledError, InvalidTypeError

Tell = Callable[[str, float | None], None]

# Numbers in a table (n·d) from which threads share a pass. With two threads an exploration of 1,000,000 × 20 took 7.2 s
# and with one 7.4 s; beside another process 21 s and 7.5 s, since threads wait for each other.
LARGE = 100_000_000
# Small tables told of 42 rounds in 0.29 s, more than anybody reads and a page can draw.
SECONDS_BETWEEN_TELLINGS = 0.1


@contextmanager
def interrupt_held() -> Iterator[None]:
    """A block that Ctrl-C ends when it is over, not inside: what is raised in a function that C calls is lost.

    >>> with interrupt_held():
    ...     total = sum(range(3))
    """
    # Python hears signals in its main thread alone; a handler of C, which it does not know, stays.
    if threading.current_thread() is not threading.main_thread() or (before := signal.getsignal(signal.SIGINT)) is None:
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


@functools.cache
def _thread_pools() -> ThreadpoolController:
    # Looking for the BLAS libraries takes milliseconds, as long as a small fit; they do not change. The system calls it
    # back for each of them.
    with interrupt_held():
        return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """A block in which BLAS and OpenMP use one thread.

    >>> with one_thread():
    ...     total = sum(range(3))
    """
    return _thread_pools().limit(limits=1)


def a_core_left() -> AbstractContextManager[Any]:
    """A block in which BLAS and OpenMP leave one core to whatever else must answer meanwhile.

    >>> with a_core_left():
    ...     total = sum(range(3))
    """
    return _thread_pools().limit(limits=max(1, (os.cpu_count() or 1) - 1))


def threads_for(n_rows: int, n_columns: int) -> AbstractContextManager[Any]:
    """One thread for work on a table of few numbers, as many as there are beyond.

    >>> with threads_for(2_000, 9_000):
    ...     total = sum(range(3))
    """
    return one_thread() if n_rows * n_columns <= LARGE else nullcontext()


class Throttled:
    """A `progress(words, share)` that is called at once, then ten times a second at most, and when all is done.

    >>> times = iter([0.0, 0.05, 0.2, 0.21])
    >>> tell = Throttled(lambda words, share: print(words, share), clock=lambda: next(times))
    >>> for share in (0.0, 0.1, 0.2, 1.0):
    ...     tell("fitting", share)
    fitting 0.0
    fitting 0.2
    fitting 1.0
    """

    def __init__(self, progress: Tell, *, clock: Callable[[], float] = time.monotonic):
        self._progress, self._clock = progress, clock
        self._told: float | None = None

    def __call__(self, words: str, share: float | None) -> None:
        now = self._clock()
        if self._told is None or share == 1.0 or now - self._told >= SECONDS_BETWEEN_TELLINGS:
            self._told = now
            self._progress(words, share)


@dataclass(frozen=True)
class Watch:
    """Who is told of progress, `progress(words, share)`, and who may end the work, `cancel() -> bool`.

    Words come in their order and some are left out: `progress` is called ten times a second at most.

    >>> seen = []
    >>> Watch(progress=lambda words, share: seen.append(words)).tell("fitting")
    >>> seen
    ['fitting']
    """

    progress: Tell | None = None
    cancel: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        for name, given in (("progress", self.progress), ("cancel", self.cancel)):
            if given is not None and not callable(given):
                raise InvalidTypeError(name, "must be None or a function", f"{given!r:.80}")
        if self.progress is not None and not isinstance(self.progress, Throttled):
            object.__setattr__(self, "progress", Throttled(self.progress))

    def tell(self, words: str, share: float | None = None) -> None:
        """Say what is being done; raises CancelledError where the work is to end."""
        if self.cancel is not None and self.cancel():
            raise CancelledError(f"cancelled while {words}; nothing was changed.")
        if self.progress is not None:
            self.progress(words, share)

    def within(self, work: str) -> Watch:
        """The same, for a piece of larger work, which is said before its words.

        >>> Watch(progress=lambda words, share: print(words)).within("step 2").tell("looking for a view")
        step 2: looking for a view
        """
        tell = self.progress
        if tell is None:
            return self
        return Watch(lambda words, share: tell(f"{work}: {words}", share), self.cancel)


UNWATCHED = Watch()


@contextmanager
def quiet_about_convergence() -> Iterator[None]:
    """For callers that pass the stop reason on themselves.

    >>> from sklearn.exceptions import ConvergenceWarning
    >>> with quiet_about_convergence():
    ...     warnings.warn("stopped after 500 iterations", ConvergenceWarning)
    """
    # Here, since the help of a command needs progress and must not wait for scikit-learn.
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
