"""Rows as a mixture reads them: axes of the numbers, numbers with holes, and the levels of categories.

axes (n, q)   sphered numbers, of which components have covariances
loose (n, h)  numbers that some rows lack, NaN there; independent within a component
flags (n, L)  1 where a row has a level, the levels of category b at `blocks` = b; all 0 where it lacks one
tilt (n, L)   P(level | known) / P(level), what the known does to a category; None where nothing is known
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows as a mixture reads them; see the head of the file.

    >>> len(Cells.of(np.zeros((5, 2))).some(np.arange(3)))
    3
    """

    axes: Array
    loose: Array
    flags: Array
    blocks: Labels
    tilt: Array | None = None

    @classmethod
    def of(cls, axes: Array) -> Cells:
        """Rows (n, q) of numbers alone."""
        nothing = np.zeros((len(axes), 0))
        return cls(np.asarray(axes, dtype=np.float64), nothing, nothing, np.zeros(0, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.axes)

    def some(self, rows: NDArray | slice) -> Cells:
        """Some of the rows, by mask, position or slice."""
        tilt = None if self.tilt is None else self.tilt[rows]
        return replace(self, axes=self.axes[rows], loose=self.loose[rows], flags=self.flags[rows], tilt=tilt)

    @property
    def are_numbers(self) -> bool:
        """Whether all is in the axes."""
        return not (self.flags.shape[1] or self.loose.shape[1])
