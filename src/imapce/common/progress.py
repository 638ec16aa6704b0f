"""Progress that a person sees: a moving line where someone watches, a plain line every few seconds in a pipe or a log.

Whatever takes long takes `progress`, estimators `verbose`: a function of words and the share that is done (None where
nobody knows it), or True for a bar.

>>> with watching(lambda words, share: print(words, share)) as watch:
...     watch.tell("fitting", 0.25)
fitting 0.25
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from imapce.common.words import duration, roughly
from imapce.common.work import Tell, Watch, threads_for
from imapce.errors import InvalidTypeError

Progress = bool | Tell | None

SECONDS_BETWEEN_LINES = 5.0
# Below this share of the work the time left would be a guess from almost nothing.
LEAST_SHARE = 0.03


@contextmanager
def watching(progress: Progress, cancel: Callable[[], bool] | None = None, *, of: str = "") -> Iterator[Watch]:
    """The watch of a piece of work: `progress` is told, or a bar shown where it is True; gone when the work ends.

    `of` says what the share is a share of.

    >>> with watching(None, cancel=lambda: True) as watch:
    ...     watch.tell("fitting")
    Traceback (most recent call last):
    imapce.errors.CancelledError: cancelled while fitting; nothing was changed.
    """
    if callable(progress):
        yield Watch(progress, cancel)
    elif not isinstance(progress, (bool, int, np.bool_, type(None))):
        raise InvalidTypeError("progress", "must be None, True or a function of words and a share", f"{progress!r:.80}")
    elif not progress:
        yield Watch(None, cancel)
    else:
        with showing(of=of) as tell:
            yield Watch(tell, cancel)


@contextmanager
def working(
    shape: tuple[int, int], progress: Progress, cancel: Callable[[], bool] | None, *, of: str = ""
) -> Iterator[Watch]:
    """Watch a piece of work on a table of this shape, with as many threads as suit it."""
    with threads_for(*shape), watching(progress, cancel, of=of) as watch:
        yield watch


@contextmanager
def showing(*, quiet: bool = False, of: str = "") -> Iterator[Tell]:
    """Somebody to tell of progress, `tell(words, share)`; `of` says what the share is a share of, if there is one."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield _nobody
    elif not (console.is_terminal or console.is_jupyter):
        with PlainLines(of) as lines:
            yield lines.tell
    else:
        with _bar(console, of) as tell:
            yield tell


@contextmanager
def _bar(console: Any, of: str) -> Iterator[Tell]:
    from rich.progress import (
        BarColumn,
        ProgressColumn,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.progress import Progress as ProgressBar

    shares: tuple[ProgressColumn, ...] = (BarColumn(), TaskProgressColumn(), TextColumn(of)) if of else ()
    columns = (SpinnerColumn(), *shares, TextColumn("{task.description}"), TimeElapsedColumn())
    with ProgressBar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading the rows", total=1.0)

        def tell(words: str, share: float | None = None) -> None:
            bar.update(task, completed=share or 0.0, description=words)

        yield tell


class PlainLines:
    """A line after every `seconds` of work with the words told last, how much is done, and the time gone and left.

    A thread writes them, since one piece of work may take minutes and tell nothing.

    >>> lines = PlainLines("of the rows explored", clock=iter([0.0, 30.0]).__next__)
    >>> lines.tell("step 2", 0.6)
    >>> lines.line()
    'imapce: 60 % of the rows explored, step 2; 30 seconds so far, about 20 seconds left'
    """

    def __init__(
        self,
        of: str,
        *,
        seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        write: Callable[[str], None] | None = None,
    ) -> None:
        self.of, self.seconds = of, SECONDS_BETWEEN_LINES if seconds is None else seconds
        self._clock = clock
        self._write = write or _to_stderr
        self._began = clock()
        self._last: tuple[str, float | None] = ("at work", None)
        self._over = threading.Event()

    def tell(self, words: str, share: float | None = None) -> None:
        """What is being done and, where it is known, the share that is done."""
        self._last = (words, share)

    def line(self) -> str:
        """Where the work stands."""
        words, share = self._last
        gone = self._clock() - self._began
        done = f"{100 * share:.0f} % {self.of}, " if share is not None else ""
        left = ""
        if share is not None and LEAST_SHARE <= share < 1:
            left = f", {roughly(gone * (1 - share) / share)} left"
        return f"imapce: {done}{words}; {duration(gone)} so far{left}"

    def __enter__(self) -> PlainLines:
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(self.seconds):
            self._write(self.line())


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _nobody(words: str, share: float | None = None) -> None:
    pass
