"""Records of arrays that compare by value and print on a line: what can be saved, sent and held against another."""

from __future__ import annotations

from typing import Any

import numpy as np


class Comparable:
    """Equality field by field, arrays by their values (NaN equals NaN), for frozen dataclasses with `eq=False`; printed
    with the shapes of arrays instead of their values.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Points(Comparable):
    ...     places: np.ndarray
    >>> Points(np.zeros(2)) == Points(np.zeros(2)), Points(np.zeros(2)) == Points(np.ones(2))
    (True, False)
    >>> Points(np.zeros(2))
    Points(places=float64(2))
    """

    __hash__ = None  # type: ignore[assignment]

    def __init_subclass__(cls) -> None:
        # In the class itself, where `dataclass` would else put one that writes out every array.
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        fields = (f"{name}={_brief(getattr(self, name))}" for name in self.__dataclass_fields__)  # type: ignore[attr-defined]
        return f"{type(self).__name__}({', '.join(fields)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)  # type: ignore[attr-defined]


def _brief(value: Any) -> str:
    """A value in a few words, whatever its size."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}({' × '.join(map(str, value.shape))})"
    if isinstance(value, (list, tuple, dict)):
        return f"{len(value)} item{'' if len(value) == 1 else 's'}"
    if isinstance(value, float):
        return f"{value:.6g}"
    words = repr(value) if isinstance(value, (str, int, type(None))) else type(value).__name__
    return words if len(words) <= 60 else f"{words[:59]}…"


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        one, other = np.asarray(one), np.asarray(other)
        return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other)
    return bool(one == other)
