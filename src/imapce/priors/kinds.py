"""What is already known, in its three kinds: attributes (columns), samples (a background table), a subset (rows).

Each prior turns into a second moment YᵀY that the view should not keep; a subset also leaves the rows whose clusters
are looked for. Priors combine: M = XᵀX − α Σ wⱼ YⱼᵀYⱼ, and Z is what no subset covers. Attributes that are to be erased
add no term: they bind the axes, vᵀ C_X[:, A] = 0, as α = ∞ would.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.checks import require_truth, require_weight
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.tables.reader import Reader

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Attributes:
    """Known columns, by name or position: Y is X with every other column set to zero.

    With erase=True they are a constraint instead, and neither α nor the weight acts on them: every axis v satisfies
    vᵀ C_X[:, A] = 0, C_X the second moment of all rows of X, so that nothing linear of these columns can be read from
    the view of X. What is not linear can stay (a class may still spread wider than another). The columns may keep a
    weight in the view: it takes out of the others what they share with the known. IMAPCE, CPCA and GCPCA erase; to
    other methods these are known columns like any.

    >>> Attributes(["batch"], weight=2.0)
    Attributes(columns=['batch'], weight=2.0, erase=False)
    """

    columns: Any
    weight: float = 1.0
    erase: bool = False

    def __post_init__(self) -> None:
        require_weight("Attributes", self.weight)
        require_truth("Attributes(erase=...)", self.erase)


@dataclass(frozen=True, eq=False)
class Samples:
    """A background table with X's columns (matched by name where both have names); its rows need not be in X.

    >>> Samples(np.zeros((3, 2))).weight
    1.0
    """

    background: Any
    weight: float = 1.0

    def __post_init__(self) -> None:
        require_weight("Samples", self.weight)


@dataclass(frozen=True, eq=False)
class Subset:
    """Rows of X that are already understood, as a boolean mask or as positions; the rest is pulled apart.

    >>> Subset([0, 1, 2]).weight
    1.0
    """

    rows: Any
    weight: float = 1.0

    def __post_init__(self) -> None:
        require_weight("Subset", self.weight)


Prior = Attributes | Samples | Subset


def as_list(prior: Any) -> list[Prior]:
    """None, one prior or a sequence of priors, as a list."""
    if prior is None:
        return []
    candidates = list(prior) if isinstance(prior, (list, tuple)) else [prior]
    for one in candidates:
        if not isinstance(one, (Attributes, Samples, Subset)):
            raise InvalidTypeError(
                "prior must be None, Attributes(columns), Samples(background), Subset(rows) or a list of them; "
                f"got {type(one).__name__}."
            )
    return candidates


def known_rows(subset: Subset, n_rows: int) -> Mask:
    """The subset as a boolean mask over the n rows of X."""
    values = np.asarray(subset.rows)
    if values.ndim != 1:
        raise InvalidValueError(
            f"Subset(rows) must be one-dimensional, a mask or positions; got an array of shape {values.shape}."
        )
    if values.dtype == bool:
        if len(values) != n_rows:
            raise InvalidValueError(
                f"Subset(rows) as a mask must have one entry per row of X ({n_rows}); got {len(values)}."
            )
        mask = values.copy()
    elif np.issubdtype(values.dtype, np.integer) or values.size == 0:
        if len(values) == n_rows > 2 and np.isin(values, (0, 1)).all():
            raise InvalidValueError(
                f"Subset(rows) has {n_rows} entries that are all 0 or 1, which reads as the positions 0 and 1; a mask "
                "must be boolean, pass it as .astype(bool)."
            )
        outside = values[(values < -n_rows) | (values >= n_rows)]
        if outside.size:
            raise InvalidValueError(
                f"Subset(rows) as positions must lie within the {n_rows} rows of X; got {int(outside[0])}."
            )
        mask = np.zeros(n_rows, dtype=bool)
        mask[values.astype(np.intp)] = True
    else:
        raise InvalidTypeError(
            f"Subset(rows) must be a boolean mask or integer positions; got values of type {values.dtype}."
        )
    if not mask.any():
        raise InvalidValueError("Subset(rows) is empty, so nothing is known; pass prior=None or name some rows.")
    return mask


def require_same_index(subset: Subset, X: Any) -> None:
    """Refuse a pandas mask whose index is not that of the pandas table: by position it would name other rows."""
    mask_index: Any = getattr(subset.rows, "index", None)
    table_index: Any = getattr(X, "index", None)
    if not (hasattr(mask_index, "equals") and hasattr(table_index, "equals")):
        return
    is_mask = getattr(getattr(subset.rows, "dtype", None), "kind", None) == "b"
    if is_mask and len(mask_index) == len(table_index) and not mask_index.equals(table_index):
        raise InvalidValueError(
            "Subset(rows) is a mask with another index than X, so it is not clear which rows it means; reindex it with "
            "mask.reindex(X.index), or pass mask.to_numpy() to go by position."
        )


def known_columns(attributes: Attributes, reader: Reader) -> Mask:
    """The attributes as a boolean mask over the encoded columns of X.

    >>> known_columns(Attributes([0, -1]), Reader(4))
    array([ True, False, False,  True])
    """
    n_features = reader.n_features
    listed = attributes.columns
    if isinstance(listed, (str, int, np.integer)) and not isinstance(listed, bool):
        listed = [listed]
    if isinstance(listed, bool) or not isinstance(listed, Iterable):
        raise InvalidTypeError(f"Attributes(columns) must be names, positions or a mask; got {listed!r}.")
    values = np.asarray(listed)
    if values.ndim == 1 and values.dtype == bool:
        if len(values) != n_features:
            raise InvalidValueError(
                f"Attributes(columns) as a mask must have one entry per column ({n_features}); got {len(values)}."
            )
        listed = np.flatnonzero(values).tolist()
    mask = np.zeros(n_features, dtype=bool)
    for column in listed:
        mask[reader.columns_of(column)] = True
    if not mask.any():
        raise InvalidValueError(
            "Attributes(columns) is empty, so nothing is known; pass prior=None or name some columns."
        )
    if mask.all():
        raise InvalidValueError(
            f"Attributes(columns) names all {n_features} columns, so nothing is left to show; leave some out."
        )
    return mask


def without_rows(priors: Sequence[Prior], dropped: Mask) -> list[Prior]:
    """The priors of the table that lacks some rows; a subset of nothing but these is gone with them.

    >>> without_rows([Subset([0, 2]), Subset([1])], np.array([False, True, False]))[0].rows
    array([ True,  True])
    """
    kept: list[Prior] = []
    for prior in priors:
        if isinstance(prior, Subset):
            rows = known_rows(prior, len(dropped))[~dropped]
            if rows.any():
                kept.append(Subset(rows, weight=prior.weight))
        else:
            kept.append(prior)
    return kept
