"""Files appear whole or not at all: written beside their place, flushed to disk, then renamed into it."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from imapce.errors import InvalidTypeError, InvalidValueError

# What only writing raises: disk or quota full, a file larger than allowed, a disk that fails or is read only.
OF_WRITING = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS))


class NotWritableError(InvalidValueError):
    """A place that turned out not to hold what was to be written there; what it held before is as it was."""

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(
            "path",
            "must be a place that can be written",
            f"{str(path)!r} ({reason})",
            way_out="free it or choose another",
        )
        self.reason = reason


def as_path(path: str | os.PathLike[str]) -> Path:
    """A path as an argument, or one sentence where it is none.

    >>> as_path(None)
    Traceback (most recent call last):
    imapce.errors.InvalidTypeError: path must be the name of a file, got None: write it as a text or a Path.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(
            "path", "must be the name of a file", f"{path!r:.80}", way_out="write it as a text or a Path"
        )
    return Path(path)


def writable_target(path: str | os.PathLike[str]) -> Path:
    """The file that writing to `path` replaces (a link stays a link), or one sentence on why it cannot be written.

    >>> writable_target("no such folder/notes.txt")
    Traceback (most recent call last):
    imapce.errors.InvalidValueError: path must lie in an existing folder, got 'no such folder/notes.txt': make the ...
    """
    with _sentence_on_failure(path):
        target = as_path(path).resolve()
        has_folder, is_folder = target.parent.is_dir(), target.is_dir()
    if not has_folder:
        parent = str(Path(path).parent)
        way = (
            f"{parent!r} is a file, choose a folder."
            if target.parent.is_file()
            else f"make the folder {parent!r} first."
        )
        raise InvalidValueError("path", f"must lie in an existing folder, got {str(path)!r}: {way}")
    if is_folder:
        raise InvalidValueError("path", "must name a file", f"the folder {str(path)!r}", way_out="add a file name")
    # A file is replaced by a rename, so it is the folder that must be writable.
    if not os.access(target.parent, os.W_OK):
        raise InvalidValueError(
            "path", "must lie in a folder that can be written", repr(str(path)), way_out="choose another folder"
        )
    return target


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose contents become the file `path` if the block ends well, and vanish if it does not.

    >>> with whole_file("notes.txt") as stream:
    ...     _ = stream.write(b"all or nothing")
    >>> Path("notes.txt").read_text()
    'all or nothing'
    """
    target = writable_target(path)
    beside = target.parent / f".{secrets.token_hex(8)}.part"
    try:
        with _sentence_on_failure(path):
            stream = open(beside, "xb")  # noqa: SIM115 - closed below, before the rename
        # What the block raises of its own (a broken download, say) passes through unchanged.
        with _sentence_on_failure(path, only=OF_WRITING), stream:
            yield stream
            with _sentence_on_failure(path):
                stream.flush()
                # Without it a power cut after the rename can leave the new name with no contents.
                os.fsync(stream.fileno())
        with _sentence_on_failure(path):
            os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def folder_target(path: str | os.PathLike[str], own_names: Collection[str]) -> Path:
    """The folder that `whole_folder` would write: new, empty, or with no other files than those of `own_names`.

    >>> folder_target("results", {"scores.csv"}).name
    'results'
    """
    with _sentence_on_failure(path):
        target = as_path(path).resolve()
        is_folder, is_there = target.is_dir(), target.exists()
        foreign = sorted(entry.name for entry in target.iterdir() if entry.name not in own_names) if is_folder else []
    if is_there and not is_folder:
        raise InvalidValueError("path", "must name a folder", f"the file {str(path)!r}", way_out="choose another name")
    if foreign:
        raise InvalidValueError(
            "path",
            f"must be a new folder, an empty one or one with earlier results, and {str(path)!r} holds "
            f"{foreign[0]!r}: choose another name.",
        )
    if not is_folder:
        writable_target(path)
    elif not os.access(target.parent, os.W_OK):
        raise InvalidValueError(
            "path", "must be a folder that can be replaced", repr(str(path)), way_out="choose another"
        )
    return target


@contextmanager
def whole_folder(path: str | os.PathLike[str], own_names: Collection[str]) -> Iterator[Path]:
    """A folder to write into that takes the place of `path` if the block ends well, and vanishes if it does not.

    >>> with whole_folder("results", {"notes.txt"}) as folder:
    ...     _ = (folder / "notes.txt").write_text("all or nothing")
    >>> [file.name for file in Path("results").iterdir()]
    ['notes.txt']
    """
    target = folder_target(path, own_names)
    beside = target.parent / f".{secrets.token_hex(8)}.part"
    before = target.parent / f".{secrets.token_hex(8)}.old"
    try:
        with _sentence_on_failure(path):
            beside.mkdir()
        try:
            yield beside
        except NotWritableError as problem:
            # The file named there lies in the folder beside, of which nobody else has heard.
            raise NotWritableError(path, problem.reason) from problem
        with _sentence_on_failure(path):
            # No system replaces a folder with files in it by a rename, so the earlier one steps aside first.
            if target.exists():
                os.replace(target, before)
            os.replace(beside, target)
    finally:
        if before.exists() and not target.exists():
            os.replace(before, target)
        shutil.rmtree(before, ignore_errors=True)
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _sentence_on_failure(path: str | os.PathLike[str], only: Collection[int] | None = None) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        if only is not None and problem.errno not in only:
            raise
        raise NotWritableError(path, problem.strerror or str(problem)) from problem
