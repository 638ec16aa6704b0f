"""One data set: rows, the labels that are known of them, and where they come from, checked to fit together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imapce.errors import InvalidValueError

Labels = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows, what is known about them, and where they come from.

    ``labels`` maps a label's name to one value per row. ``background`` holds rows of a prior that are not in
    ``X`` but have its columns, and ``background_labels`` what is known about those.

    >>> Dataset("two points", np.eye(2), ("x", "y"), {"side": np.array([0, 1])}, "made up", "none")
    Dataset(two points: 2 rows x 2 columns of float64; labels side (2))
    """

    name: str
    X: np.ndarray
    feature_names: tuple[str, ...]
    labels: Labels
    source: str
    licence: str
    background: np.ndarray | None = None
    background_labels: Labels | None = None

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


def class_labels(numbers: np.ndarray, names: Sequence[str] | np.ndarray) -> Labels:
    """The labels of a set with classes, by number and by name.

    >>> class_labels(np.array([1, 0]), ["cat", "dog"])["class_name"].tolist()
    ['dog', 'cat']
    """
    numbers = np.asarray(numbers).astype(np.int64)
    return {"class": numbers, "class_name": np.asarray(names, dtype=str)[numbers]}


def _check_one_label_per_row(name: str, labels: Labels, n_rows: int) -> None:
    for key, values in labels.items():
        if len(values) != n_rows:
            raise InvalidValueError(
                f"{name}[{key!r}] must have one value for each of {n_rows} rows, got {len(values)}: pass one per row."
            )
