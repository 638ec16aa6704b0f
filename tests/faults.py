"""Disks that are full, folders that are read only: what the tests of faults share."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# What stood in a file before, and must stand there after anything that failed.
OLD = b"work of yesterday"

needs_file_limit = pytest.mark.skipif(
    importlib.util.find_spec("resource") is None, reason="this system knows no limit on the size of files"
)


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A file system in memory on `folder`, or its options changed for the block; a skip where that is not permitted."""
    folder.mkdir(exist_ok=True)
    again = "remount" in options
    if shutil.which("mount") is None:
        pytest.skip("this system mounts no file systems")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"mounting a file system is not permitted here ({done.stderr.strip()})")
    try:
        yield folder
    finally:
        undo = ["mount", "-o", "remount,rw", str(folder)] if again else ["umount", str(folder)]
        subprocess.run(undo, check=True)
