"""The file a session keeps itself in: one writer at a time, and nothing of another writer is overwritten.

While a session lives, its process holds the file with a lock of the library `filelock`, and a second process is refused
by name. The lock lies on a small file beside it, since the file itself is replaced at every write. The system drops it
with the process, however it ends, so a lock file left behind by a kill is nobody's.

What the lock cannot see (another session of the same process, a copy put in its place) the revision does: a hash of
the file as this session last read or wrote it, compared before every write.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import socket
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import filelock

from imapce.common.whole_files import NotWritableError, as_path, whole_file, writable_target
from imapce.errors import InvalidValueError, Phrase, Sentence
from imapce.exploration.record import Record
from imapce.exploration.session_file import session_bytes


class OwnFile:
    """`path` as the file of one session; claimed when it is made.

    A copy of a session, pickled or forked, has the same file and no claim yet: it claims the file at its first write,
    and is refused where another process holds it or another session wrote to it meanwhile.

    >>> own = OwnFile("session.imapce")
    >>> own.revision is None
    True
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        # Relative names are meant where the session began, wherever the process goes later.
        self.place = as_path(path).resolve()
        self._turn = threading.Lock()
        self._lock = FileLock(self.place, self.path)
        self.revision = revision_of(self.place)

    @classmethod
    def new(cls, path: str | os.PathLike[str]) -> Self:
        """A file that a session begins; one that exists, which it would overwrite, is refused."""
        if writable_target(path).is_file():
            raise InvalidValueError(
                "path",
                Sentence(
                    f"must be a new file, and {str(path)!r} exists; ",
                    Phrase("resume", "go on with it by Exploration.load(path, X)"),
                    ", or choose another name.",
                ),
            )
        return cls(path)

    def write(self, record: Record) -> None:
        """Replace the file by this state of the session, or say who wrote to it since and leave it as it is."""
        # One thread at a time, or the second would take the first's revision for that of somebody else.
        with self._turn:
            self._lock = FileLock(self.place, self.path)
            found = revision_of(self.place)
            if found is not None and found != self.revision:
                raise InvalidValueError(
                    "path",
                    f"must be as this session left it, and {str(self.path)!r} was changed since by "
                    f"{self._changer(found)}",
                    way_out=Phrase(
                        "changed session",
                        "go on from there with load(path, X), or keep this state with save(path) under another name",
                    ),
                )
            content = session_bytes(record)
            try:
                with whole_file(self.place) as stream:
                    stream.write(content)
            except NotWritableError as problem:
                raise NotWritableError(self.path, problem.reason) from problem
            self.revision = _written_here[self.place] = _revision(content)

    def is_at(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path is another name of this file."""
        return as_path(path).resolve() == self.place

    def _changer(self, revision: str) -> str:
        if _written_here.get(self.place) == revision:
            return f"another session of this process ({os.getpid()})"
        told = self.place.stat()
        when = datetime.datetime.fromtimestamp(told.st_mtime).isoformat(" ", "seconds")
        try:
            return f"{self.place.owner()} at {when}"
        except (KeyError, NotImplementedError, OSError):
            return f"somebody at {when}"

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "place": self.place, "revision": self.revision}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _turn=threading.Lock(), _lock=None)


# The last revision of each file that this process wrote: it tells a session of this process from another writer.
_written_here: dict[Path, str] = {}


def write_elsewhere(path: str | os.PathLike[str], record: Record) -> None:
    """Save a session to a file that is not its own, unless another process writes that one."""
    place = as_path(path).resolve()
    lock = FileLock(place, path)
    content = session_bytes(record)
    with whole_file(path) as stream:
        stream.write(content)
    _written_here[place] = _revision(content)
    del lock


def revision_of(place: Path) -> str | None:
    """The hash of a file's contents; None where there is no file."""
    try:
        with open(place, "rb") as stream:
            return hashlib.file_digest(stream, "blake2b").hexdigest()
    except OSError:
        return None


def _revision(content: bytes) -> str:
    return hashlib.blake2b(content).hexdigest()


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
