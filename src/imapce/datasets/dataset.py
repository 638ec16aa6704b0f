"""One data set in memory: rows, labels, perhaps a background, and where they come from.

>>> Dataset("two points", np.eye(2), ("a", "b"), labels={"kind": np.array([0, 1])}, source="made up", licence="none")
Dataset(two points: 2 rows x 2 columns of float64; labels kind (2))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from imapce.errors import InvalidValueError

LabelColumns = dict[str, np.ndarray]
DIGIT_NAMES = tuple(str(digit) for digit in range(10))


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows, what is known about them, and where they come from.

    ``labels`` maps a label's name to one value per row. ``background`` holds rows of a prior that are not in
    ``X`` but have its columns, and ``background_labels`` what is known about those.

    >>> from imapce.datasets import load_digits
    >>> digits = load_digits()
    >>> digits.X.shape, digits.labels["class"][:3]
    ((1797, 64), array([0, 1, 2]))
    """

    name: str
    X: np.ndarray
    feature_names: tuple[str, ...]
    _: KW_ONLY
    labels: LabelColumns
    source: str
    licence: str
    background: np.ndarray | None = None
    background_labels: LabelColumns | None = None

    def __post_init__(self) -> None:
        if self.X.ndim != 2 or self.X.shape[1] != len(self.feature_names):
            raise InvalidValueError(
                f"X must have one column for each of the {len(self.feature_names)} feature_names, got shape "
                f"{self.X.shape}: give both from the same table."
            )
        _check_one_label_per_row("labels", self.labels, len(self.X))
        if self.background is not None and self.background.shape[1:] != self.X.shape[1:]:
            raise InvalidValueError(
                f"background must have the {self.X.shape[1]} columns of X, got shape "
                f"{self.background.shape}: give rows of the same features."
            )
        rows_of_background = 0 if self.background is None else len(self.background)
        _check_one_label_per_row("background_labels", self.background_labels or {}, rows_of_background)

    def __repr__(self) -> str:
        parts = [f"{self.name}: {self.X.shape[0]} rows x {self.X.shape[1]} columns of {self.X.dtype}"]
        if self.labels:
            counted = (f"{name} ({len(np.unique(values))})" for name, values in self.labels.items())
            parts.append("labels " + ", ".join(counted))
        if self.background is not None:
            parts.append(f"background of {len(self.background)} rows")
        return f"Dataset({'; '.join(parts)})"


def numbered_classes(numbers: np.ndarray, names: Sequence[str] | np.ndarray) -> LabelColumns:
    """The labels ``class``, a number for each row, and ``class_name``, the name of that number.

    >>> numbered_classes(np.array([1, 0]), ["cat", "dog"])
    {'class': array([1, 0]), 'class_name': array(['dog', 'cat'], dtype='<U3')}
    """
    numbers = np.asarray(numbers).astype(np.int64)
    return {"class": numbers, "class_name": np.asarray(names, dtype=str)[numbers]}


def _check_one_label_per_row(name: str, labels: LabelColumns, n_rows: int) -> None:
    for key, values in labels.items():
        if len(values) != n_rows:
            raise InvalidValueError(
                f"{name}[{key!r}] must have one value for each of {n_rows} rows, got {len(values)}: pass one per row."
            )
