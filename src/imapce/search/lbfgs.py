"""TODO-DOC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

Rows = slice | NDArray[np.intp]


MEMORY = 8  # pairs kept by L-BFGS; 5 and 12 take about a tenth longer on Image Segmentation


_UPPER = np.triu(np.ones((MEMORY, MEMORY)))


@dataclass
class _Field:
    """The state of the running starts, one row each; rows leave by `keep`, so every array is always dense."""

    start: NDArray[np.intp]
    V: Array
    value: Array
    gradient: Array
    scale: Array
    direction: Array
    slope: Array
    step: Array
    iterations: NDArray[np.intp]
    refusals: NDArray[np.intp]
    mark: Array
    S: Array
    Y: Array
    PY: Array
    gamma: Array

    def keep(self, rows: NDArray[np.bool_]) -> _Field:
        return _Field(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})

    @classmethod
    def stack(cls, ones: list[_Field]) -> _Field:
        return cls(**{name: np.concatenate([getattr(one, name) for one in ones]) for name in cls.__dataclass_fields__})

    def relative_gradient(self) -> Array:
        norm = np.sqrt(np.einsum("rdk,rdk->r", self.gradient, self.gradient))
        return norm / np.maximum(self.scale, np.finfo(np.float64).tiny)
