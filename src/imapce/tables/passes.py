"""Passes over a table on disk: what they will take, told before, and how far one is, told while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from imapce.common.memory import size_in_words
from imapce.common.watch import Tell
from imapce.common.words import roughly

# What a fit reads a table for: its columns, its moments, two looks for outliers, one to four samples of rows to search
# in and to judge views by (one with a background, most with labels). Then come the evaluations on all rows.
PASSES_BEFORE = 6
# Measured: the process with all it imports, and what is kept of each row (masks; 2026-11-16). Labels take 90 more.
BASE_BYTES, BYTES_PER_ROW = 500_000_000, 4


@dataclass(frozen=True)
class Estimate:
    """What a fit of a table on disk will read, and the memory it will take.

    >>> str(Estimate(passes=6, bytes_per_pass=2_560_000_000, memory=900_000_000))
    'about 6 passes of 2.6 GB, in about 900 MB of memory'
    """

    passes: int
    bytes_per_pass: int
    memory: int

    def __str__(self) -> str:
        read = f"about {self.passes} passes of {size_in_words(self.bytes_per_pass)}"
        return f"{read}, in about {size_in_words(self.memory)} of memory"

    @classmethod
    def of_table(cls, n_rows: int, n_columns: int, *, n_bytes: int, evaluations: int) -> Estimate:
        """For so many rows and columns in files of so many bytes.

        >>> Estimate.of_table(1_000_000, 4, n_bytes=16_000_000, evaluations=1).passes
        7
        """
        # Samples of rows lie in memory for the search, and sums of columns by columns while they are made.
        memory = BASE_BYTES + BYTES_PER_ROW * n_rows + 8 * n_columns * min(n_rows, 100_000) + 64 * n_columns**2
        return cls(PASSES_BEFORE + evaluations, n_bytes, memory)


@dataclass
class Meter:
    """Tells how far a pass is: which it is, what was read, how fast, and the time left.

    >>> said = []
    >>> meter = Meter(lambda words, share: said.append(words), 2_000_000_000, clock=iter([0.0, 4.0]).__next__)
    >>> meter.begin()
    >>> meter.reached(0.5)
    >>> said
    ['pass 1: 1.0 GB of 2.0 GB read, 0.25 GB/s, a few seconds left']
    """

    tell: Tell
    n_bytes: int
    clock: Callable[[], float] = time.monotonic
    passes: int = 0
    _began: float = field(default=0.0, repr=False)

    def begin(self) -> None:
        """A pass begins."""
        self.passes += 1
        self._began = self.clock()

    def reached(self, share: float) -> None:
        """So much of the pass was read."""
        gone = max(self.clock() - self._began, 1e-9)
        rate = share * self.n_bytes / gone
        words = f"pass {self.passes}: {size_in_words(share * self.n_bytes)} of {size_in_words(self.n_bytes)} read"
        self.tell(f"{words}, {rate / 1e9:.2f} GB/s, {roughly(gone * (1 - share) / max(share, 1e-9))} left", share)
