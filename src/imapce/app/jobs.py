"""Long work beside the talk: one thread at a time, told of and ended from outside.

Work that the page did not ask for in so many words (colouring a view, the test) gives way to what it asks for next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from imapce.common.watch import Tell
from imapce.errors import CancelledError, InvalidValueError


@dataclass(eq=False)
class Job:
    """One piece of work: its words, whether it gives way, and the event that ends it.

    >>> job = Job("fitting")
    >>> job.cancelled()
    False
    """

    words: str
    gives_way: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    def cancelled(self) -> bool:
        """Whether it was asked to end."""
        return self.stop.is_set()


class Jobs:
    """The work of one session, one job after another.

    `ended(job, error)` is called in the thread of the work when it is over; error is None where all went well.
    """

    def __init__(self, ended: Callable[[Job, Exception | None], None]):
        self._ended = ended
        self._lock = threading.Lock()
        self._current: Job | None = None

    @property
    def current(self) -> Job | None:
        """The work that runs, None where nothing does."""
        return self._current

    def start(self, words: str, work: Callable[[Job], None], *, gives_way: bool = False) -> Job:
        """Do `work(job)` in a thread; refused while other work runs that does not give way."""
        job = Job(words, gives_way)
        with self._lock:
            self.require_way()
            before = self._current
            if before is not None:
                before.stop.set()
            self._current = job
        threading.Thread(target=self._run, args=(job, before, work), name=f"imapce {words}", daemon=True).start()
        return job

    def require_way(self) -> None:
        """Refuse to begin while other work runs that does not give way."""
        job = self._current
        if job is not None and not job.gives_way:
            raise InvalidValueError(f"one thing at a time: still {job.words}; wait for it or cancel it.")

    def cancel(self) -> bool:
        """Ask the work that runs to end; whether there was any."""
        job = self._current
        if job is not None:
            job.stop.set()
        return job is not None

    def close(self) -> None:
        """End the work that runs and tell nobody: a session and its jobs that held each other would stay in memory."""
        self.cancel()
        self._ended = _untold

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs; whether that came in time."""
        job = self._current
        return True if job is None else job.done.wait(timeout)

    def _run(self, job: Job, before: Job | None, work: Callable[[Job], None]) -> None:
        if before is not None:
            before.done.wait()
        error: Exception | None = None
        try:
            if job.cancelled():
                raise CancelledError(f"cancelled before {job.words}; nothing was changed.")
            work(job)
        except Exception as problem:
            error = problem
        with self._lock:
            if self._current is job:
                self._current = None
        try:
            self._ended(job, error)
        finally:
            job.done.set()


def _untold(job: Job, error: Exception | None) -> None:
    """What became of work that nobody waits for."""


def told_at_most(tell: Tell, seconds: float, clock: Callable[[], float]) -> Tell:
    """A `tell` that passes on at most one message in so many seconds, and every change of words.

    >>> seen = []
    >>> tell = told_at_most(lambda words, share: seen.append(share), 1.0, iter([0.0, 0.5, 1.5]).__next__)
    >>> for share in (0.1, 0.2, 0.3):
    ...     tell("fitting", share)
    >>> seen
    [0.1, 0.3]
    """
    last: list[float | str | None] = [None, None]

    def throttled(words: str, share: float | None) -> None:
        now = clock()
        if last[0] is None or words != last[1] or now - float(last[0]) >= seconds:
            last[:] = [now, words]
            tell(words, share)

    return throttled
