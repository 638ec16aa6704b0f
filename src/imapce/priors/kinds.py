"""What is already known, in its four kinds: attributes (columns), labels (beside X), samples (a background), a subset.

Attributes and labels are explained away: their effect is taken from the rows. To be erased they bind the axes instead,
vᵀ C_X[:, A] = 0 and vᵀXᵀL = 0. A background and a subset become a second moment YᵀY that the view should not keep, as
all that is known does where α is a number; a subset also leaves the rows whose clusters are looked for. They combine:
M = XᵀX − α Σ wⱼ YⱼᵀYⱼ, and Z is what no subset covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.checks import require_truth, require_weight
from imapce.errors import InvalidTypeError, InvalidValueError, Phrase, Sentence
from imapce.priors.labels import ReadLabels
from imapce.tables.reader import Reader

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Of rows or columns that were named: how, and the way out where they are none.
AS_A_MASK = Phrase("as a mask", "as a mask ")
LEAVE_OUT_OR = Phrase("leave out or", "pass prior=None or ")


@dataclass(frozen=True, eq=False)
class Attributes:
    """Known columns, by name or position. IMAPCE explains them away: their effect on the others is taken from the rows.

    Where α is a number they are weighed as in the paper: Y is X with every other column set to zero. With erase=True
    they are a constraint instead, and neither α nor the weight acts on them: every axis v satisfies vᵀ C_X[:, A] = 0,
    C_X the second moment of all rows of X, so that nothing linear of these columns can be read from the view of X. What
    is not linear can stay (a class may still spread wider than another). The columns may keep a weight in the view: it
    takes out of the others what they share with the known. IMAPCE, CPCA and GCPCA erase; to other methods these are
    known columns like any.

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


@dataclass(frozen=True, eq=False)
class Labels:
    """A class or a number known of each row that is no column of X: an array, a list or a Series, in X's order.

    With L (n, q) the labels as centred columns (0/1 for each class; the number itself), IMAPCE explains them away: the
    view is one of X° = X − LB, with B their effect given the clusters, and `transform` needs the labels of new rows.
    Where α is a number they are weighed: Y = L(LᵀL)⁺LᵀX is what they explain of X, the means of the classes or the
    regression on the number, and α = 1 leaves the scatter within classes. With erase=True the axes are free of all with
    vᵀXᵀL ≠ 0, whatever α is; what is not linear can stay, and new rows need no label. Numbers are classes where they
    take at most 20 different values (and five rows or more for each), else a measurement, and so are dates: write
    classes that are numbered higher as text. A row whose label is missing says nothing. `prior=y` means Labels(y).

    >>> Labels(["a", "b", "a"], weight=2.0)
    Labels(3 labels, weight=2.0, erase=False)
    """

    y: Any
    _: KW_ONLY
    weight: float = 1.0
    erase: bool = False

    def __post_init__(self) -> None:
        require_weight("Labels", self.weight)
        require_truth("Labels(erase=...)", self.erase)

    def __repr__(self) -> str:
        count = f"{len(self.y):,} labels" if hasattr(self.y, "__len__") else repr(self.y)
        return f"Labels({count}, weight={self.weight}, erase={self.erase})"


Prior = Attributes | Samples | Subset | Labels
KINDS = (Attributes, Samples, Subset, Labels)


def as_list(prior: Any) -> list[Prior]:
    """None, one prior or a sequence of priors, as a list; labels themselves, one per row, are Labels.

    >>> [type(one).__name__ for one in as_list([Subset([0]), np.array(["a", "b"])])]
    ['Subset', 'Labels']
    """
    if prior is None:
        return []
    many = isinstance(prior, (list, tuple)) and (not prior or not all(map(_is_label, prior)))
    candidates = list(prior) if many else [prior]
    listed: list[Prior] = []
    for one in candidates:
        if not isinstance(one, KINDS):
            if isinstance(one, (str, bytes, dict, set, frozenset, type)) or not hasattr(one, "__len__"):
                raise InvalidTypeError(
                    "prior must be None, Attributes(columns), Labels(y), Samples(background), Subset(rows), a list of "
                    f"them, or labels, one for each row; got {type(one).__name__}."
                )
            one = Labels(one)
        listed.append(one)
    return listed


def _is_label(entry: Any) -> bool:
    """Whether an entry of a plain list is one row's label, not a prior or the labels of all rows."""
    return isinstance(entry, str) or not (isinstance(entry, KINDS) or hasattr(entry, "__len__"))


def known_labels(labels: Labels, n_rows: int | None = None) -> ReadLabels:
    """The labels of n rows, or of as many as there are, as they are understood."""
    return ReadLabels.read(labels.y, n_rows)


def known_rows(subset: Subset, n_rows: int) -> Mask:
    """The subset as a boolean mask over the n rows of X."""
    values = np.asarray(subset.rows)
    if values.ndim != 1:
        raise InvalidValueError(
            "Subset(rows)", f"must be one-dimensional, a mask or positions; got an array of shape {values.shape}."
        )
    if values.dtype == bool:
        if len(values) != n_rows:
            raise InvalidValueError(
                "Subset(rows)", Sentence(AS_A_MASK, f"must have one entry per row of X ({n_rows})"), str(len(values))
            )
        mask = values.copy()
    elif np.issubdtype(values.dtype, np.integer) or values.size == 0:
        if len(values) == n_rows > 2 and np.isin(values, (0, 1)).all():
            raise InvalidValueError(
                "Subset(rows)",
                f"has {n_rows} entries that are all 0 or 1, which reads as the positions 0 and 1; a mask "
                "must be boolean, pass it as .astype(bool).",
            )
        outside = values[(values < -n_rows) | (values >= n_rows)]
        if outside.size:
            raise InvalidValueError(
                "Subset(rows)", f"as positions must lie within the {n_rows} rows of X", str(int(outside[0]))
            )
        mask = np.zeros(n_rows, dtype=bool)
        mask[values.astype(np.intp)] = True
    else:
        raise InvalidTypeError(
            "Subset(rows)", f"must be a boolean mask or integer positions; got values of type {values.dtype}."
        )
    if not mask.any():
        raise InvalidValueError(
            "Subset(rows)", Sentence("is empty, so nothing is known; ", LEAVE_OUT_OR, "name some rows.")
        )
    return mask


def require_same_index(prior: Prior, X: Any) -> None:
    """Refuse a pandas mask or labels whose index is not that of the pandas table: by position they mean other rows."""
    if not isinstance(prior, (Subset, Labels)):
        return
    values = prior.rows if isinstance(prior, Subset) else prior.y
    index: Any = getattr(values, "index", None)
    table_index: Any = getattr(X, "index", None)
    if not (hasattr(index, "equals") and hasattr(table_index, "equals")):
        return
    by_row = isinstance(prior, Labels) or getattr(getattr(values, "dtype", None), "kind", None) == "b"
    if by_row and len(index) == len(table_index) and not index.equals(table_index):
        is_subset = isinstance(prior, Subset)
        argument, what, name = ("Subset(rows)", "is a mask", "mask") if is_subset else ("Labels(y)", "has labels", "y")
        raise InvalidValueError(
            argument,
            f"{what} with another index than X, so it is not clear which rows it means; reindex it with "
            f"{name}.reindex(X.index), or pass {name}.to_numpy() to go by position.",
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
        raise InvalidTypeError("Attributes(columns)", f"must be names, positions or a mask; got {listed!r}.")
    values = np.asarray(listed)
    if values.ndim == 1 and values.dtype == bool:
        if len(values) != n_features:
            raise InvalidValueError(
                "Attributes(columns)", f"as a mask must have one entry per column ({n_features}); got {len(values)}."
            )
        listed = np.flatnonzero(values).tolist()
    mask = np.zeros(n_features, dtype=bool)
    for column in listed:
        mask[reader.columns_of(column)] = True
    if not mask.any():
        raise InvalidValueError(
            "Attributes(columns)", Sentence("is empty, so nothing is known; ", LEAVE_OUT_OR, "name some columns.")
        )
    if mask.all():
        raise InvalidValueError(
            "Attributes(columns)", f"names all {n_features} columns, so nothing is left to show; leave some out."
        )
    return mask


def without_rows(priors: Sequence[Prior], dropped: Mask) -> list[Prior]:
    """The priors of the table that lacks some rows; a subset of nothing but these is gone with them, as are labels that
    are all the same without them.

    >>> without_rows([Subset([0, 2]), Subset([1])], np.array([False, True, False]))[0].rows
    array([ True,  True])
    """
    kept: list[Prior] = []
    for prior in priors:
        if isinstance(prior, Subset):
            rows = known_rows(prior, len(dropped))[~dropped]
            if rows.any():
                kept.append(Subset(rows, weight=prior.weight))
        elif isinstance(prior, Labels):
            labels = known_labels(prior, len(dropped)).of_rows(~dropped)
            if labels.varies:
                kept.append(Labels(labels, weight=prior.weight, erase=prior.erase))
        else:
            kept.append(prior)
    return kept
