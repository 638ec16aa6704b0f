"""What a session is made of: its settings, what is known, and its moves; and what these moves come to.

A `Record` is frozen: a move makes a new one, and one that fails changes nothing. It is the same in memory and on disk,
where `data` tells which rows it belongs to. Everything here is plain: arrays, numbers and words, to be saved, sent to a
browser and compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.significance import Structure
from imapce.common.arrays import Array, Mask
from imapce.common.checks import is_whole, require_choice, require_count, require_seed
from imapce.common.records import Comparable
from imapce.common.words import counted
from imapce.errors import Argument, InvalidValueError, Phrase, Sentence
from imapce.estimators.imapce import IMAPCE
from imapce.estimators.model_file import plain_parameters
from imapce.exploration.clustering import settings_of
from imapce.exploration.data import DataPrint
from imapce.exploration.traits import NOTHING_APART, overlap_in_words
from imapce.priors.base import Prior
from imapce.priors.effect import Explained

# Share of the rows and least number of them in a cluster. A mixture of one view leaves fragments of 1 %. In all
# directions a component can be estimated from the largest size, so rare groups of many rows are not too small.
VIEW_SIZE, JOINT_SIZE, LARGEST_SIZE = (0.02, 10), (0.01, 5), 30

GRANULARITIES = ("coarser", "auto", "finer")
RULES = ("heed", "ignore")


@dataclass(frozen=True)
class Feature:
    """A column that sets rows apart from all others, in the units of the table and of observed cells only.

    `inside` and `outside` are the means of a number, or the shares of a category's `level`; where `is_missing`, the
    shares of the rows in which the column is missing. `difference` is theirs, of a number in standard deviations of all
    rows. `strength` is the share of the rows that would have to move for both sides to look alike. Features that are
    `told` make the sentence of a cluster.

    >>> Feature("petal length", "petal length low (1.5 against 4.9)", inside=1.5, outside=4.9)
    petal length low (1.5 against 4.9)
    """

    name: str
    words: str
    _: KW_ONLY
    inside: float
    outside: float
    level: str | None = None
    is_missing: bool = False
    difference: float = 0.0
    strength: float = 0.0
    told: bool = False

    def __repr__(self) -> str:
        return self.words


@dataclass(frozen=True, eq=False)
class TakenCluster(Comparable):
    """A cluster that was accepted: which rows, what sets it apart, who chose it and, perhaps, its name.

    `number` is what it is called in `labels_`, figures, reports and the app, and was called before it was taken.
    `overlap` is how much of it its nearest neighbour in the view shares, from 0 to 1; None for rows chosen by hand, and
    where it was alone there. `distinctness` is what the most distinct cluster has most of. `features` set it apart from
    all other rows, those first that its sentence tells.
    `stability` is the share of ten resamples of 80 % of the rows in which it reappears, and clusters with the same
    `group` overlap in the mixture; None where nobody knows, as for rows chosen by hand.

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
    group: int | None = None
    overlap: float | None = None

    def __repr__(self) -> str:
        return f"TakenCluster({taken_in_words(self)})"

    @property
    def words(self) -> str:
        """What sets it apart from all other rows, as in every table and on every page; empty where nobody knows."""
        return features_in_words(self.features)

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


def features_in_words(features: Sequence[Feature]) -> str:
    """What sets rows apart, as "petal length low (1.5 against 4.9), 58 % Bachelors (12 % elsewhere)"."""
    if not features:
        return ""
    return ", ".join(feature.words for feature in features if feature.told) or NOTHING_APART


def taken_in_words(cluster: TakenCluster) -> str:
    """An accepted cluster on one line, as "50 rows: petal length low (1.5 against 4.9); very distinct"."""
    called = f"{cluster.name}, " if cluster.name else ""
    why, apart = (f": {cluster.words}" if cluster.words else ""), overlap_in_words(cluster.overlap)
    return f"{called}{counted(cluster.size, 'row')}{why}" + (f"; {apart}" if apart else "")


def clusters_after(moves: Iterable[Move]) -> list[TakenCluster]:
    """The clusters after some moves, in the order of their numbers."""
    now: dict[int, TakenCluster] = {}
    for move in moves:
        if isinstance(move, Regrouping):
            now = {number: cluster for number, cluster in now.items() if number not in move.replaced}
        now |= {cluster.number: cluster for cluster in move.clusters}
    return [now[number] for number in sorted(now)]


@dataclass(frozen=True, eq=False)
class Moves(Comparable):
    """What was accepted and regrouped of n rows, first to last, and what it comes to: each answer is computed once.

    >>> taken = TakenCluster(np.array([0, 2]), None, number=4, chosen="hand")
    >>> step = AcceptedStep((taken,), np.eye(2), mean=np.zeros(2), scale=np.ones(2), objective=1.0, kurtosis=8.0)
    >>> Moves(3, (step,)).labels, Moves(3, (step,)).next_number
    (array([ 4, -1,  4]), 5)
    """

    n_rows: int
    made: tuple[Move, ...] = ()

    def __iter__(self) -> Iterator[Move]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)

    def then(self, *moves: Move) -> Moves:
        """These moves and more after them."""
        return Moves(self.n_rows, (*self.made, *moves))

    def first(self, count: int) -> Moves:
        """So many of these moves, from the first on."""
        return Moves(self.n_rows, self.made[:count])

    @cached_property
    def steps(self) -> tuple[AcceptedStep, ...]:
        """What was accepted."""
        return tuple(move for move in self.made if isinstance(move, AcceptedStep))

    @cached_property
    def regroupings(self) -> tuple[Regrouping, ...]:
        """What was split, merged or consolidated."""
        return tuple(move for move in self.made if isinstance(move, Regrouping))

    @cached_property
    def clusters(self) -> tuple[TakenCluster, ...]:
        """The clusters after all moves, in the order of their numbers."""
        return tuple(clusters_after(self.made))

    @cached_property
    def by_number(self) -> dict[int, TakenCluster]:
        """The same clusters by their numbers."""
        return {cluster.number: cluster for cluster in self.clusters}

    @cached_property
    def labels(self) -> NDArray[np.intp]:
        """(n,), the number of the cluster of every row, -1 for none."""
        labels = np.full(self.n_rows, -1)
        for cluster in self.clusters:
            labels[cluster.rows] = cluster.number
        return labels

    def cluster_of(self, rows: Mask) -> TakenCluster | None:
        """The cluster that is just these rows (n,); None where none is."""
        places = np.flatnonzero(rows)
        return next((one for one in self.clusters if np.array_equal(np.sort(one.rows), places)), None)

    @cached_property
    def origins(self) -> tuple[int | None, ...]:
        """For each of the clusters the number of the step that took it as it is, from 1; None where it was regrouped
        since.
        """
        took = {id(cluster): number for number, step in enumerate(self.steps, 1) for cluster in step.clusters}
        return tuple(took.get(id(cluster)) for cluster in self.clusters)

    @cached_property
    def pieces(self) -> tuple[tuple[int, NDArray[np.intp]], ...]:
        """The number and the rows of groups that proposals keep apart, in the order in which they were made."""
        return tuple(piece for move in self.regroupings for piece in zip(move.numbers, move.pieces, strict=True))

    @cached_property
    def next_number(self) -> int:
        """The lowest number above all that clusters and pieces had in these moves."""
        numbers = [cluster.number for move in self.made for cluster in move.clusters]
        return 1 + max([*numbers, *(number for number, _ in self.pieces)], default=-1)


SETTINGS = (
    *("method", "estimator", "clusterer", "refine", "max_clusters", "random_state", "granularity"),
    "n_clusters",
)


def checked_settings(
    *,
    method: str,
    estimator: IMAPCE | None,
    clusterer: str,
    refine: bool | None,
    max_clusters: int,
    random_state: int | None,
    granularity: str,
    n_clusters: int | None,
    missing: str | None = None,
) -> dict[str, Any]:
    """The settings of a session as a `Record` has them; what is none is refused by its name."""
    model, clusterer, refines = settings_of(method, estimator, clusterer, refine)
    if missing is not None:
        model.set_params(missing=missing)
    model.check_parameters()
    seed = require_seed(random_state)
    return {
        "method": method,
        "estimator": model,
        "clusterer": clusterer,
        "refine": refines,
        "max_clusters": require_count("max_clusters", max_clusters),
        # Drawn once where none is given, so that the session can be saved and go on as it was.
        "random_state": int(np.random.default_rng().integers(2**31)) if seed is None else seed,
        "granularity": require_granularity(granularity),
        "n_clusters": require_number_of_clusters(n_clusters),
    }


@dataclass(frozen=True, eq=False)
class Record(Comparable):
    """A whole session: its moves, what was known at the start, and its settings.

    `priors` are those that are no rows of X; `estimator` is fitted at every step. `numbers` are the first of those that
    the clusters found at the start have, and the first one after them; None where clusters are found view by view, or
    none of them was taken. With `ignores_structure` clusters are taken also where they are no more than chance. `data`
    tells which rows it belongs to where it leaves memory, and backgrounds are in the encoding of X there.
    """

    moves: Moves
    known_at_start: Mask
    _: KW_ONLY
    estimator: IMAPCE
    min_cluster_size: int
    random_state: int
    priors: tuple[Prior, ...] = ()
    subset_weight: float = 1.0
    max_clusters: int = 5
    method: str = "auto"
    clusterer: str = "auto"
    refine: bool = True
    granularity: str = "auto"
    n_clusters: int | None = None
    ignores_structure: bool = False
    numbers: tuple[int, int] | None = None
    data: DataPrint | None = None

    def __eq__(self, other: object) -> bool:
        # Estimators do not compare by their parameters.
        if not isinstance(other, Record) or self.parameters != other.parameters:
            return False
        return super(Record, replace(self, estimator=other.estimator)).__eq__(other)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the estimator, as a file holds them."""
        return plain_parameters(self.estimator)

    @property
    def transform(self) -> dict[str, str] | None:
        """The columns of its data that are on another scale, where it left memory; None where there are none."""
        return None if self.data is None else dict(self.data.transform) or None

    @cached_property
    def known(self) -> Mask:
        """(n,), the rows known at the start or in a cluster."""
        return self.known_at_start | (self.moves.labels >= 0)

    @property
    def n_left(self) -> int:
        """How many rows are unexplored."""
        return self.moves.n_rows - int(self.known.sum())

    @property
    def is_joint(self) -> bool:
        """Whether clusters are found once and in all directions; beside a background they are found view by view."""
        background = any(prior.is_background for prior in self.priors)
        return self.clusterer == "joint" or (self.clusterer == "auto" and not background)

    def of_size(self, min_cluster_size: int | str) -> Record:
        """The same with the s of the paper, where "auto" is a share of the rows, and not less than a few."""
        if not isinstance(min_cluster_size, str):
            return replace(self, min_cluster_size=require_count("min_cluster_size", min_cluster_size))
        if min_cluster_size != "auto":
            raise InvalidValueError(f'min_cluster_size must be a whole number or "auto"; got {min_cluster_size!r}.')
        share, least = JOINT_SIZE if self.is_joint else VIEW_SIZE
        size = max(least, int(np.ceil(share * self.moves.n_rows)))
        return replace(self, min_cluster_size=min(size, LARGEST_SIZE) if self.is_joint else size)

    def shows(self, structure: Structure) -> bool:
        """Whether clusters with this verdict are shown and taken: by itself, or because they were asked for."""
        return structure.is_taken or self.ignores_structure or self.n_clusters is not None

    def require_clusters_as_asked(self) -> None:
        """Refuse to ask of clusters found view by view what is for those in all directions, and for too many."""
        asked = {"granularity": None if self.granularity == "auto" else self.granularity, "n_clusters": self.n_clusters}
        for name, value in asked.items():
            if value is not None and not self.is_joint:
                raise InvalidValueError(
                    name,
                    f"is for clusters found in all directions, and here they are found view by view; got {value!r}",
                    way_out=Sentence("use ", Argument("clusterer", "joint"), ", or leave it out"),
                )
        n_rows, least = int((~self.known_at_start).sum()), self.min_cluster_size
        if self.n_clusters is not None and self.n_clusters * least > n_rows:
            rest = f" or more of {counted(n_rows, 'row')} for each cluster; got {self.n_clusters}"
            raise InvalidValueError(
                "n_clusters",
                Sentence("must leave ", Argument("min_cluster_size", least), rest),
                way_out=Sentence("ask for fewer, or lower ", Argument("min_cluster_size")),
            )


def require_granularity(value: Any) -> str:
    """Refuse what is no granularity."""
    require_choice("granularity", value, GRANULARITIES)
    return str(value)


def require_rule(value: Any) -> bool:
    """Whether clusters are shown that are no more than chance, by "heed" or "ignore"."""
    require_choice("structure", value, RULES)
    return bool(value == "ignore")


def require_number_of_clusters(value: Any) -> int | None:
    """Refuse a number of clusters that none can be made of."""
    if value is None:
        return None
    if not is_whole(value) or value < 2:
        rule = Sentence("must be ", Phrase("or None", "None or "), "a whole number of at least 2")
        raise InvalidValueError("n_clusters", rule, f"{value!r:.80}")
    return int(value)
