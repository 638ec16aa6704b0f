"""One line of a table: what the paper prints and what we measured over several runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Row:
    data: str
    score: str
    paper: float | None
    measured: Sequence[float]
    floor: str
    seconds: float

    def values(self) -> list[object]:
        return [
            self.data,
            self.score,
            self.paper,
            float(np.mean(self.measured)),
            float(np.std(self.measured)),
            self.floor,
            len(self.measured),
            self.seconds,
        ]

    def cells(self) -> list[str]:
        digits = 2 if abs(np.mean(self.measured)) > 100 else 3
        return [
            self.data,
            self.score,
            "–" if self.paper is None else f"{self.paper:g}",
            f"{np.mean(self.measured):.{digits}f} ± {np.std(self.measured):.{digits}f}",
            self.floor,
            str(len(self.measured)),
            f"{self.seconds:.3f}",
        ]
