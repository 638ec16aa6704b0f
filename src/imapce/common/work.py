"""How work is done: on how many threads, who hears of it, and who may end it.

Threads of BLAS and OpenMP are useful on large matrices and harmful on small ones, where two spin for each other. Beside
other work on 2 cores the second one cost 10 to 100 times what it gained: an iteration of a mixture in the plane 4 ms
instead of 0.7 ms, an exploration of Adult (3,000 × 57) 889 s instead of 106 s, a fit of 2,000 × 9,000 178 s instead of
13 s; on a quiet machine one thread was slower at none of these sizes.

Long work tells what it does in words and, where that is known, which share of it is done. It knows no screen: a
terminal, a page and a notebook each bring their own callables.

>>> with threads_for(2_000, 9_000):
...     Watch(progress=lambda words, share: print(words)).tell("fitting")
fitting
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from threadpoolctl import ThreadpoolController

from imapce.errors import CancelledError, InvalidTypeError

Tell = Callable[[str, float | None], None]

# Numbers in a table (n·d) from which a pass over it is long enough for threads to share; of a tall table, whose passes
# are long products, fewer: 100,000 × 50 fitted with two threads took 0.5 s and with one 0.8 s, on a quiet machine.
LARGE = 30_000_000
TALL, LARGE_IF_TALL = 50_000, 2_000_000


@functools.cache
def _thread_pools() -> ThreadpoolController:
    # Looking for the BLAS libraries takes milliseconds, as long as a small fit; they do not change.
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
    most = LARGE_IF_TALL if n_rows >= TALL else LARGE
    return one_thread() if n_rows * n_columns <= most else nullcontext()


@dataclass(frozen=True)
class Watch:
    """Who is told of progress, `progress(words, share)`, and who may end the work, `cancel() -> bool`.

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

    def tell(self, words: str, share: float | None = None) -> None:
        """Say what is being done; raises CancelledError where the work is to end."""
        if self.cancel is not None and self.cancel():
            raise CancelledError(f"cancelled while {words}; nothing was changed.")
        if self.progress is not None:
            self.progress(words, share)


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
