"""TODO-DOC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Feature:
    """Why a cluster stands apart: a feature, its standardised mean difference to the other rows, its loading."""

    name: str
    difference: float
    loading: float


@dataclass(frozen=True, eq=False)
class TakenCluster:
    """A cluster that was accepted: which rows, how distinct, what sets it apart and who chose it."""

    rows: NDArray[np.intp]
    distinctness: float | None
    features: tuple[Feature, ...]
    chosen: str

    @property
    def size(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class AcceptedStep:
    """What was accepted in one go, with the view it was seen in; `p_value` is None where nobody asked for it."""

    clusters: tuple[TakenCluster, ...]
    components: Array
    mean: Array
    scale: Array
    objective: float
    kurtosis: float
    view: int
    p_value: float | None = None
