"""Labels that are only looked at, by their names: a column of the table, labels themselves, or several of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from imapce.errors import InvalidTypeError
from imapce.plotting.key import column_name

if TYPE_CHECKING:
    from imapce.exploration.session import Exploration
    from imapce.tables.columns import Column


def labels_by_name(exploration: Exploration, labels: Any, label_name: str | None = None) -> dict[str, Any]:
    """What `labels` means to an exploration: {"sex": values} of a column "sex", of a mapping, of labels called so.

    >>> from imapce import Exploration
    >>> exploration = Exploration(np.random.default_rng(0).normal(size=(50, 3)))
    >>> list(labels_by_name(exploration, "x1")), list(labels_by_name(exploration, np.arange(50), "age"))
    (['x1'], ['age'])
    """
    if labels is None:
        return {}
    if isinstance(labels, str):
        return {labels: values_of(exploration.column(labels))}
    if isinstance(labels, Mapping):
        if strange := [name for name in labels if not isinstance(name, str)]:
            raise InvalidTypeError(f"labels must have a text as the name of every column; got {strange[0]!r:.80}.")
        return dict(labels)
    return {label_name or column_name(labels) or "label": labels}


def values_of(column: Column) -> np.ndarray:
    """The values of a column as labels: numbers, or the names of levels with None where one is missing.

    >>> from imapce.tables.columns import Column
    >>> values_of(Column("sex", codes=np.array([0, -1]), levels=("f", "m"))).tolist()
    ['f', None]
    """
    if column.values is not None:
        return column.values
    assert column.codes is not None
    return np.array([*column.levels, None], dtype=object)[column.codes]
