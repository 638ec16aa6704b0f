"""From a column of labels to what is drawn: which rows share a colour or a marker, and which have none.

>>> DrawnLabels.read(["a", "b", None], "color", 3, most=12).names
['a', 'b']
"""

from __future__ import annotations

import numbers
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from imapce.common.checks import are_classes, is_missing
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.tables.columns import Column

MISSING = -1
# As many values have a colour each, however few rows have them.
MOST_COLOURED = 12


@dataclass(frozen=True)
class DrawnLabels:
    """One label per row: either `values` on a scale (then `names` is empty) or `codes` into `names`.

    `codes` holds `MISSING` where a row has no label; `values` holds NaN there.
    """

    names: list[str]
    codes: NDArray[np.intp]
    values: NDArray[np.float64] | None

    @property
    def continuous(self) -> bool:
        """Whether the labels are numbers on a scale rather than categories."""
        return self.values is not None

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which rows have no label."""
        return np.isnan(self.values) if self.values is not None else self.codes == MISSING

    def column(self, name: str) -> Column:
        """The same as a column that can be described or hovered."""
        if self.values is not None:
            return Column(name, values=self.values)
        return Column(name, codes=self.codes, levels=tuple(self.names))

    @classmethod
    def read(cls, labels: ArrayLike, argument: str, n_rows: int, *, most: int) -> DrawnLabels:
        """Read labels of any kind; beyond `most` categories the largest keep their name, the rest is 'other'.

        Numbers that are no classes are read as a scale, where an infinite value counts as missing.

        >>> DrawnLabels.read(["a", "b", "b", "c"], "color", 4, most=2).names
        ['b', 'other (2 more)']
        """
        column = _one_column(labels, argument, n_rows)
        absent = np.zeros(n_rows, dtype=bool)
        # Text is never missing, and a page reads the same labels for every figure.
        if not set(map(type, column)) <= {str, int, bool}:
            absent = np.fromiter((is_missing(value) for value in column), dtype=bool, count=n_rows)
        kinds = set(map(type, column[~absent]))
        numeric = all(issubclass(kind, numbers.Real) and not issubclass(kind, bool | np.bool_) for kind in kinds)
        for kind in kinds:
            if kind.__hash__ is None:
                raise InvalidTypeError(
                    f"{argument} must hold texts, numbers or dates; got values of type {kind.__name__}."
                )
        # A count before any sorting: labels of mixed kinds can be counted but not ordered.
        counts = Counter(column[~absent].tolist())
        if numeric and not are_drawn_as_classes(len(counts), counts.total()):
            values = np.full(n_rows, np.nan)
            values[~absent] = column[~absent].astype(float)
            values[~np.isfinite(values)] = np.nan
            return cls([], np.full(n_rows, MISSING, dtype=np.intp), values)
        ordered = sorted(counts) if numeric else sorted(counts, key=lambda label: (str(label), repr(label)))
        names = [_label_name(label) for label in ordered]
        if len(ordered) > most:
            kept = set(sorted(ordered, key=lambda label: -counts[label])[: most - 1])
            names = [_label_name(label) for label in ordered if label in kept]
            names.append(f"other ({len(ordered) - len(kept)} more)")
            ordered = [label for label in ordered if label in kept]
        position = {label: code for code, label in enumerate(ordered)}
        codes = np.full(n_rows, MISSING, dtype=np.intp)
        lookup = {label: position.get(label, len(ordered)) for label in counts}
        codes[~absent] = list(map(lookup.__getitem__, column[~absent].tolist()))
        return cls(names, codes, None)


def are_drawn_as_classes(n_values: int, n_rows: int) -> bool:
    """Whether numbers of so many different values in so many rows are drawn as classes, and not on a scale.

    >>> are_drawn_as_classes(15, 300), are_drawn_as_classes(15, 60), are_drawn_as_classes(3, 3)
    (True, False, True)
    """
    return n_values <= MOST_COLOURED or are_classes(n_values, n_rows)


def _one_column(labels: ArrayLike, argument: str, n_rows: int) -> NDArray[np.object_]:
    """Give the labels as one Python object per row, or say what is wrong with their shape."""
    if isinstance(labels, str) or not hasattr(labels, "__len__"):
        raise InvalidValueError(
            f"{argument} must hold one label per row, got {labels!r}; pass the column itself, not its name."
        )
    array = np.asarray(labels, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) != n_rows:
        raise InvalidValueError(
            f"{argument} must hold one label for each of the {n_rows} rows, got shape {array.shape}; "
            "pass the labels of exactly the rows that are drawn."
        )
    return array


def _label_name(label: object) -> str:
    """Write whole numbers without a decimal point: class labels often went through a float column."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)
