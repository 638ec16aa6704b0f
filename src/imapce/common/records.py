"""Records of arrays that compare by value: what can be saved, sent to a browser and held against another."""

from __future__ import annotations

from typing import Any

import numpy as np


class Comparable:
    """Equality field by field, arrays by their values (NaN equals NaN), for frozen dataclasses with `eq=False`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Points(Comparable):
    ...     places: np.ndarray
    >>> Points(np.zeros(2)) == Points(np.zeros(2)), Points(np.zeros(2)) == Points(np.ones(2))
    (True, False)
    """

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)  # type: ignore[attr-defined]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        one, other = np.asarray(one), np.asarray(other)
        return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other)
    return bool(one == other)
