"""One process at a time writes a file: whoever holds it is named to the next, and a dead holder holds nothing.

The lock lies on a small file beside the one it guards, since that one is replaced at every write. The system drops it
with the process, however it ends, so a lock file that was left behind by a kill is nobody's. Within a process the
holders of one file share its lock; which of them may write is for them to settle.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from imapce.errors import InvalidValueError

# What a system says of a lock that another process has.
_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


class HeldElsewhereError(InvalidValueError):
    """Another process writes this file; `holder` says which, in words."""

    def __init__(self, path: str | os.PathLike[str], holder: str) -> None:
        super().__init__(
            f"path must be a file that no other process writes, and {str(path)!r} is being written by {holder}: "
            "end that process, or choose another file."
        )
        self.holder = holder


class FileLock:
    """The right of this process to write `path`, held until the last of those who asked for it is gone or lets go.

    Where the folder cannot be written or its disk knows no locks, nothing is held and nothing is refused. A child
    that is forked holds nothing of what its parent holds.

    >>> lock = FileLock.of("session.imapce")
    >>> lock.holds, sorted(entry.name for entry in Path().iterdir())
    (True, ['.session.imapce.lock'])
    >>> del lock
    >>> list(Path().iterdir())
    []
    """

    _held: ClassVar[weakref.WeakValueDictionary[Path, FileLock]] = weakref.WeakValueDictionary()
    _turn = threading.RLock()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.beside = path.with_name(f".{path.name}.lock")
        self._descriptor: int | None = None

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> FileLock:
        """The lock of this process on a file, taken now or already; HeldElsewhereError where another process has it."""
        place = Path(path).resolve()
        with cls._turn:
            lock = cls._held.get(place)
            if lock is None or not lock.holds:
                lock = cls(place)
                lock._take(path)
                if lock._descriptor is not None:
                    weakref.finalize(lock, _let_go, lock._descriptor, lock.beside, os.getpid())
                cls._held[place] = lock
            return lock

    @property
    def holds(self) -> bool:
        """Whether the file is guarded by a lock at all; somebody may have removed what it lies on."""
        return self._descriptor is not None and _is_still(self._descriptor, self.beside)

    def _take(self, path: str | os.PathLike[str]) -> None:
        while True:
            try:
                descriptor = os.open(self.beside, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError:
                # Whoever cannot write beside the file cannot write the file either, and is told so when it is tried.
                return
            try:
                _lock(descriptor)
            except OSError as problem:
                holder = _holder(descriptor)
                os.close(descriptor)
                if problem.errno in _TAKEN:
                    raise HeldElsewhereError(path, holder) from None
                return
            if _is_still(descriptor, self.beside):
                break
            # The last holder removed the file between the opening and the locking of it.
            os.close(descriptor)
        self._descriptor = descriptor
        # On a full disk the holder has no name, and holds all the same.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())

    @classmethod
    def _forget_in_child(cls) -> None:
        # An open descriptor would keep the parent's lock alive after the parent.
        cls._turn = threading.RLock()
        for lock in list(cls._held.values()):
            if lock._descriptor is not None:
                with suppress(OSError):
                    os.close(lock._descriptor)
                lock._descriptor = None
        cls._held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=FileLock._forget_in_child)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        # Far beyond its contents: what is locked there cannot be read, and the holder's name should be.
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holder(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    # The holder may not have written its name yet.
    return os.read(descriptor, 300).decode(errors="replace") or "another process"


def _is_still(descriptor: int, place: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(place))
    except OSError:
        return False


def _let_go(descriptor: int, beside: Path, owner: int) -> None:
    # A forked child runs this too, and the file is its parent's.
    if os.getpid() != owner:
        return
    # Removed while it is still locked: whoever opened it meanwhile sees that it is gone and begins again.
    with suppress(OSError):
        if _is_still(descriptor, beside):
            beside.unlink()
    with suppress(OSError):
        os.close(descriptor)
