"""Progress on stderr: a moving line where someone watches, a plain line every few seconds in a pipe or a log.

with progress(quiet=False, of="of the rows explored") as tell:
    exploration.run(progress=tell)        # imapce: 40 % of the rows explored, step 2: looking for a view; ...
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from imapce.common.watch import Tell
from imapce.common.words import counted, duration, roughly

if TYPE_CHECKING:
    from imapce.search.solution import Progress

SECONDS_BETWEEN_LINES = 5.0
# Below this share the time left would be a guess from almost nothing.
LEAST_SHARE = 0.03


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
        self._write = write or (lambda line: typer.echo(line, err=True))
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


@contextmanager
def progress(*, quiet: bool, of: str = "") -> Iterator[Tell]:
    """Somebody to tell of progress, `tell(words, share)`; `of` says what the share is a share of, if there is one."""
    console = Console(stderr=True)
    if quiet:
        yield _nobody
    elif not console.is_terminal:
        with PlainLines(of) as lines:
            yield lines.tell
    else:
        shares: tuple[ProgressColumn, ...] = (BarColumn(), TaskProgressColumn(), TextColumn(of)) if of else ()
        columns = (SpinnerColumn(), *shares, TextColumn("{task.description}"), TimeElapsedColumn())
        with ProgressBar(*columns, console=console, transient=True) as bar:
            task = bar.add_task("reading the rows", total=1.0)

            def tell(words: str, share: float | None = None) -> None:
                bar.update(task, completed=share or 0.0, description=words)

            yield tell


def _nobody(words: str, share: float | None = None) -> None:
    pass


def of_a_fit(tell: Tell) -> Callable[[Progress], None]:
    """What a fit takes as `verbose`; it makes several searches, each in rounds, and knows of no end before it."""
    search, last = 0, 0

    def watch(seen: Progress) -> None:
        nonlocal search, last
        search += seen.round <= last or not search
        last = seen.round
        running = counted(seen.running, "start")
        tell(f"search {search}, round {seen.round}, {running} running, best objective {seen.best:.8g}", None)

    return watch
