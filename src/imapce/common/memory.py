"""How much memory there is: that of the machine, or what a container grants of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

# Where Linux tells the limit of a container, in its second and its first way.
LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_bytes() -> int | None:
    """The memory that this process may use, None where the system does not tell.

    >>> memory_bytes() is None or memory_bytes() > 1 << 20
    True
    """
    limits = []
    # Windows has no sysconf.
    with suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in LIMIT_FILES:
        try:
            limits.append(int(Path(file).read_text()))
        except (OSError, ValueError):
            # No such file, or "max" in it: no limit.
            continue
    return min(limits, default=None)


def size_in_words(n_bytes: float) -> str:
    """A size as one would say it.

    >>> size_in_words(2.56e9), size_in_words(3.2e7)
    ('2.6 GB', '32 MB')
    """
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{max(n_bytes / 1e6, 1):.0f} MB"
