"""What a session is made of: the steps accepted and what they took, the settings, and the data they belong to.

Everything here is plain: arrays, numbers and words, which can be saved, sent to a browser and compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.structure import Structure
from imapce.common.archive import in_json
from imapce.common.records import Comparable
from imapce.common.words import counted
from imapce.errors import InvalidValueError
from imapce.exploration.shown import taken_in_words
from imapce.priors.base import Prior
from imapce.priors.effect import Explained
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
    """A cluster that was accepted: which rows, how distinct, what sets it apart, who chose it and, perhaps, its name.

    `number` is what it is called in `labels_`, figures, reports and the app, and was called before it was taken.
    `stability` is the share of ten draws of 80 % of the rows in which it was found again; None where nobody knows, as
    for rows chosen by hand.

    >>> taken = TakenCluster(np.arange(3), 2.5, number=1, chosen="hand")
    >>> taken.size, taken.number
    (3, 1)
    """

    rows: NDArray[np.intp]
    distinctness: float | None
    features: tuple[Feature, ...] = ()
    _: KW_ONLY
    number: int
    chosen: str
    name: str | None = None
    stability: float | None = None

    def __repr__(self) -> str:
        return f"TakenCluster({taken_in_words(self)})"

    @property
    def size(self) -> int:
        """How many rows it has."""
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class AcceptedStep(Comparable):
    """What was accepted in one go, with the view it was seen in; `p_value` is None where nobody asked for it.

    `explained` was taken from the rows before the view, and `read_back` is that of the step: both None where nothing
    was.

    >>> taken = TakenCluster(np.arange(3), None, number=0, chosen="hand")
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
    explained: Explained | None = None
    read_back: dict[str, float | None] | None = None

    def __repr__(self) -> str:
        return f"AcceptedStep({'; '.join(map(taken_in_words, self.clusters[:3]))}{'; …' * (len(self.clusters) > 3)})"


@dataclass(frozen=True, eq=False)
class Regrouping(Comparable):
    """Rows that were grouped anew without a new view: the clusters `replaced`, by number, and those that came for them.

    A cluster that came has the number of one that went, or one that no cluster had before. `pieces` are the rows of
    groups that proposals keep apart until they are taken, `numbers` what each of these groups is called.

    >>> both = TakenCluster(np.arange(6), None, number=0, chosen="hand")
    >>> Regrouping("merge", (0, 1), (both,), words="Merged.").pieces
    ()
    """

    kind: str
    replaced: tuple[int, ...]
    clusters: tuple[TakenCluster, ...]
    _: KW_ONLY
    words: str
    pieces: tuple[NDArray[np.intp], ...] = ()
    numbers: tuple[int, ...] = ()


KINDS_OF_REGROUPING = ("split", "merge", "consolidate")
Move = AcceptedStep | Regrouping


def clusters_after(moves: Iterable[Move]) -> list[TakenCluster]:
    """The clusters after some moves, in the order of their numbers.

    >>> one, other = (TakenCluster(np.array([row]), None, number=row + 3, chosen="hand") for row in (0, 1))
    >>> step = AcceptedStep((one, other), np.eye(2), mean=np.zeros(2), scale=np.ones(2), objective=1.0, kurtosis=8.0)
    >>> both = TakenCluster(np.array([0, 1]), None, number=3, chosen="hand")
    >>> after = clusters_after([step, Regrouping("merge", (3, 4), (both,), words="")])
    >>> [(cluster.number, cluster.size) for cluster in after]
    [(3, 2)]
    """
    now: dict[int, TakenCluster] = {}
    for move in moves:
        if isinstance(move, Regrouping):
            now = {number: cluster for number, cluster in now.items() if number not in move.replaced}
        now |= {cluster.number: cluster for cluster in move.clusters}
    return [now[number] for number in sorted(now)]


def free_number(moves: Iterable[Move]) -> int:
    """The lowest number above all that clusters and pieces had in some moves.

    >>> free_number([])
    0
    """
    highest = -1
    for move in moves:
        pieces = move.numbers if isinstance(move, Regrouping) else ()
        highest = max(highest, *pieces, *(cluster.number for cluster in move.clusters))
    return highest + 1


def origins_after(moves: Iterable[Move]) -> list[int | None]:
    """For each cluster after some moves the number of the step that took it as it is; None where it was regrouped."""
    moves = list(moves)
    steps = [move for move in moves if isinstance(move, AcceptedStep)]
    took = {id(cluster): number for number, step in enumerate(steps) for cluster in step.clusters}
    return [took.get(id(cluster)) for cluster in clusters_after(moves)]


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
                "X",
                f"must be the data of the session; it has {counted(other.n_rows, 'row')} and the session "
                f"{self.n_rows:,}.",
            )
        if len(other.columns) != len(self.columns):
            raise InvalidValueError(
                "X",
                f"must be the data of the session; it has {counted(len(other.columns), 'column')} and the session "
                f"{len(self.columns)}.",
            )
        for here, there in zip(other.columns, self.columns, strict=True):
            if here != there:
                raise InvalidValueError(
                    "X", f"must be the data of the session; it has column {here!r} where the session has {there!r}."
                )
        if other.digest == self.digest:
            return
        close = np.isclose(other.mean, self.mean, rtol=1e-9, atol=1e-300)
        close &= np.isclose(other.variance, self.variance, rtol=1e-7, atol=1e-300)
        if close.all():
            raise InvalidValueError(
                "X",
                "must be the data of the session, in the same order; its columns have the same means and spreads, so "
                "the rows are in another order or a few values differ.",
            )
        different = [self.columns[i] for i in np.flatnonzero(~close)]
        more = f" and {len(different) - 3} more" if len(different) > 3 else ""
        raise InvalidValueError(
            "X", f"must be the data of the session; the values of {', '.join(map(repr, different[:3]))}{more} differ."
        )


@dataclass(frozen=True, eq=False)
class Record(Comparable):
    """A whole session: its settings, what was known at the start, what was accepted and regrouped since, of which data.

    `priors` are those that are no rows of X, a background in the encoding of X; `parameters` those of the estimator.
    `numbers` are the first of those that the clusters found at the start have, and the first one after them; None
    where clusters are found view by view, or nobody looked. With `ignores_structure` clusters are taken also where they
    are no more than chance.
    """

    data: DataPrint
    steps: tuple[Move, ...]
    known_at_start: Mask
    _: KW_ONLY
    priors: tuple[Prior, ...]
    subset_weight: float
    parameters: dict[str, Any]
    min_cluster_size: int
    max_clusters: int
    random_state: int
    method: str
    clusterer: str
    refine: bool
    granularity: str = "auto"
    n_clusters: int | None = None
    ignores_structure: bool = False
    numbers: tuple[int, int] | None = None

    @property
    def estimator_parameters(self) -> dict[str, Any]:
        """The parameters as the estimator takes them: a file has no infinity."""
        if self.parameters.get("alpha") != in_json(np.inf):
            return self.parameters
        return {**self.parameters, "alpha": np.inf}
