"""What a session is made of: the steps accepted and what they took, the settings, and the data they belong to.

Everything here is plain: arrays, numbers and words, which can be saved, sent to a browser and compared.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.records import Comparable
from imapce.errors import InvalidValueError
from imapce.exploration.structure import Structure
from imapce.priors.kinds import Attributes, Samples
from imapce.rows.base import Rows

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Feature:
    """Why rows stand apart: a feature, its standardised mean difference to other rows, its loading in the view.

    >>> Feature("petal length", -1.3, 0.7).name
    'petal length'
    """

    name: str
    difference: float
    loading: float


@dataclass(frozen=True, eq=False)
class TakenCluster(Comparable):
    """A cluster that was accepted: which rows, how distinct, what sets it apart and who chose it.

    >>> TakenCluster(np.arange(3), 2.5, chosen="hand").size
    3
    """

    rows: NDArray[np.intp]
    distinctness: float | None
    features: tuple[Feature, ...] = ()
    _: KW_ONLY
    chosen: str

    @property
    def size(self) -> int:
        """How many rows it has."""
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class AcceptedStep(Comparable):
    """What was accepted in one go, with the view it was seen in; `p_value` is None where nobody asked for it.

    >>> taken = TakenCluster(np.arange(3), None, chosen="hand")
    >>> step = AcceptedStep((taken,), np.eye(2, 4), mean=np.zeros(4), scale=np.ones(4), objective=1.0, kurtosis=8.0)
    >>> step.view, step.p_value
    (0, None)
    """

    clusters: tuple[TakenCluster, ...]
    components: Array
    _: KW_ONLY
    mean: Array
    scale: Array
    objective: float
    kurtosis: float
    view: int = 0
    p_value: float | None = None
    structure: Structure | None = None


@dataclass(frozen=True, eq=False)
class DataPrint(Comparable):
    """What tells data apart without keeping it: rows, column names, means, variances, and a hash of all values."""

    n_rows: int
    columns: tuple[str, ...]
    mean: Array
    variance: Array
    digest: str

    @classmethod
    def of(cls, rows: Rows, names: list[str]) -> DataPrint:
        """
        >>> from imapce.rows.dense import DenseRows
        >>> one, other = (DataPrint.of(DenseRows(X), ["a"]) for X in (np.zeros((2, 1)), np.ones((2, 1))))
        >>> one.digest == other.digest
        False
        """
        moments = rows.moments()
        return cls(rows.n_rows, tuple(names), moments.mean + rows.origin, moments.variance, rows.digest())

    def require_same(self, other: DataPrint) -> None:
        """Refuse other data than this by the name of what differs."""
        if other.n_rows != self.n_rows:
            raise InvalidValueError(
                f"X must be the data of the session; it has {other.n_rows} rows and the session {self.n_rows}."
            )
        if len(other.columns) != len(self.columns):
            raise InvalidValueError(
                f"X must be the data of the session; it has {len(other.columns)} columns and the session "
                f"{len(self.columns)}."
            )
        for here, there in zip(other.columns, self.columns, strict=True):
            if here != there:
                raise InvalidValueError(
                    f"X must be the data of the session; it has column {here!r} where the session has {there!r}."
                )
        if other.digest == self.digest:
            return
        close = np.isclose(other.mean, self.mean, rtol=1e-9, atol=1e-300)
        close &= np.isclose(other.variance, self.variance, rtol=1e-7, atol=1e-300)
        if close.all():
            raise InvalidValueError(
                "X must be the data of the session, in the same order; its columns have the same means and spreads, so "
                "the rows are in another order or a few values differ."
            )
        different = [self.columns[i] for i in np.flatnonzero(~close)]
        more = f" and {len(different) - 3} more" if len(different) > 3 else ""
        raise InvalidValueError(
            f"X must be the data of the session; the values of {', '.join(map(repr, different[:3]))}{more} differ."
        )


@dataclass(frozen=True, eq=False)
class Record(Comparable):
    """A whole session: its settings, what was known at the start, what was accepted since, and of which data.

    `priors` are those that are no rows of X, a background in the encoding of X; `parameters` those of the estimator.
    """

    data: DataPrint
    steps: tuple[AcceptedStep, ...]
    known_at_start: Mask
    _: KW_ONLY
    priors: tuple[Attributes | Samples, ...]
    subset_weight: float
    parameters: dict[str, Any]
    min_cluster_size: int
    max_clusters: int
    random_state: int
    clusterer: str
    refine: bool
