"""One process at a time writes a file: whoever holds it is named to the next, and a dead holder holds nothing.

The lock is that of the library `filelock`, on a small file beside the one it guards, since that one is replaced at
every write. The system drops it with the process, however it ends, so a lock file left behind by a kill is nobody's.
"""

from __future__ import annotations

import os
import socket
import weakref
from contextlib import suppress
from pathlib import Path

import filelock

from imapce.errors import InvalidValueError, Phrase


class FileLock:
    """The right of this process to write a session at `place`, held until the last of those who asked for it is gone.

    `path` is what the user calls the file. Those of one process share the right; which of them may write is for them to
    settle. Where the folder cannot be written or its disk knows no locks, nothing is held and nothing is refused.

    >>> lock = FileLock("session.imapce")
    >>> lock.holds, sorted(entry.name for entry in Path().iterdir())
    (True, ['.session.imapce.lock'])
    >>> del lock
    >>> list(Path().iterdir())
    []
    """

    def __init__(self, place: str | os.PathLike[str], path: str | os.PathLike[str] | None = None) -> None:
        place = Path(place).resolve()
        beside = place.with_name(f".{place.name}.lock")
        # Whoever drops the last hold may be another thread than took it.
        self._lock = filelock.FileLock(beside, thread_local=False, is_singleton=True, fallback_to_soft=False)
        try:
            # Not at once: a holder that has just let go removes the file under whoever opened it meanwhile.
            self._lock.acquire(timeout=0.1, poll_interval=0.02)
        except OSError as problem:
            if isinstance(problem, filelock.Timeout) and beside.exists():
                raise InvalidValueError(
                    "path",
                    f"must be a session that no other process writes, and {str(path or place)!r} is being written by "
                    f"{_holder(beside)}",
                    way_out=Phrase(
                        "held session", "end that process, choose another file, or only read it with autosave=False"
                    ),
                ) from None
            # Whoever cannot write beside the file cannot write the file either, and is told so when it is tried.
            return
        weakref.finalize(self, _let_go, self._lock, beside)
        # On a full disk the holder has no name, and holds all the same.
        with suppress(OSError):
            beside.write_text(f"process {os.getpid()} on {socket.gethostname()}")

    @property
    def holds(self) -> bool:
        """Whether the file is guarded by a lock at all."""
        return self._lock.is_locked


def _holder(beside: Path) -> str:
    # The holder may not have written its name yet, or be gone by now.
    with suppress(OSError):
        return beside.read_text(errors="replace")[:300] or "another process"
    return "another process"


def _let_go(lock: filelock.BaseFileLock, beside: Path) -> None:
    # Removed while it is still locked: whoever opened it meanwhile sees that it is gone and begins again.
    if lock.lock_counter == 1:
        with suppress(OSError):
            beside.unlink()
    lock.release()
