"""What is left of the known: how well known columns and labels are read back from a view and from its clusters.

    view      by the 15 nearest rows in the view, each row left out
    clusters  by the rows of its cluster
    chance    what a reader without either would reach

Balanced accuracy where the known values have at most 20 different rows (chance 1/classes), else the best R² of the
means (chance 0). It is told, not chased: what is known is explained away, and what is left of it is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.choice.scores import FEWEST_ROWS
from imapce.clusters.clustering import SampleClusters
from imapce.common.arrays import Array, Codes, Mask
from imapce.common.neighbours import jittered, nearest, votes
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.common.words import listing
from imapce.errors import Phrase, Sentence
from imapce.priors.effect import explained_away
from imapce.priors.problem import Problem

# The phrase of `stop_reason_` on the known, which some tell in a place of its own.
READ_BACK = "known read back"


@dataclass(frozen=True)
class ReadBack:
    """How well the known is read from a view and from the clusters, and what chance would give.

    >>> ReadBack(0.36, 0.34, 1 / 3, "species").sentence
    'The known (species) is read back from the view with accuracy 0.36, from the clusters 0.34; chance 0.33.'
    """

    view: float
    clusters: float | None
    chance: float
    what: str = ""

    @classmethod
    def of(cls, numbers: Mapping[str, float | None], what: str = "") -> ReadBack:
        """What `read_back_` of a view tells.

        >>> ReadBack.of({"view": 0.36, "clusters": None, "chance": 0.25}, "make").sentence
        'The known (make) is read back from the view with accuracy 0.36; chance 0.25.'
        """
        view, chance = numbers["view"], numbers["chance"]
        assert view is not None
        assert chance is not None
        return cls(view, numbers["clusters"], chance, what)

    @property
    def numbers(self) -> dict[str, float | None]:
        """As `read_back_` tells it."""
        return {"view": self.view, "clusters": self.clusters, "chance": self.chance}

    @property
    def sentence(self) -> str:
        """In words, as every fit with known columns or labels tells it."""
        measure = "accuracy" if self.chance else "R²"
        of = f" ({self.what})" if self.what else ""
        clusters = "" if self.clusters is None else f", from the clusters {self.clusters:.2f}"
        read = f"read back from the view with {measure} {self.view:.2f}{clusters}"
        return f"The known{of} is {read}; chance {self.chance:.2f}."


def told_by(model: Any) -> ReadBack | None:
    """What `read_back_` of a fitted model tells, by the names of what was explained away; None where nothing is known.

    >>> from imapce import IMAPCE, Attributes
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> told_by(IMAPCE().fit(X, prior=Attributes([1]))).what
    'x1'
    """
    names = explained_away(model)
    return None if model.read_back_ is None else ReadBack.of(model.read_back_, listing(names, 5) if names else "")


def how_it_ended(model: Any) -> str:
    """`stop_reason_` without the sentence on the known, for those who tell that in a place of its own.

    >>> from imapce import IMAPCE, Attributes
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> "read back" in how_it_ended(IMAPCE().fit(X, prior=Attributes([1])))
    False
    """
    return Sentence(model.stop_reason_).rendered(
        lambda part: "" if isinstance(part, Phrase) and part.key == READ_BACK else str(part)
    )


class KnownReader:
    """Reads what is known of the rows (m, q) back from what else is told of them."""

    def __init__(self, known: Array, settings: ClusterSettings = SETTINGS.clusters):
        self.known, self.neighbours = known, settings.neighbours
        classes = np.unique(known.round(9), axis=0, return_inverse=True)[1].ravel()
        self.n_classes = int(classes.max()) + 1
        self.classes: Codes | None = classes if self.n_classes <= settings.most_classes else None

    @property
    def chance(self) -> float:
        return 0.0 if self.classes is None else 1.0 / self.n_classes

    def from_view(self, view: Array) -> float:
        """How well the known of each row is told by that of its nearest neighbours in a view (m, k)."""
        n = len(view)
        spread = view.std(axis=0)
        points = jittered((view - view.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
        near = nearest(points, min(self.neighbours, n - 1))
        if self.classes is None:
            return self._explained(self.known[near].mean(axis=1))
        return self._balanced(votes(near, self.classes, self.n_classes))

    def from_clusters(self, groups: Codes) -> float:
        """By the rows of its cluster, for rows in the clusters 0, 1, ... (m,)."""
        members = np.eye(int(groups.max()) + 1)[groups]
        values = self.known if self.classes is None else np.eye(self.n_classes)[self.classes]
        together = (members.T @ values)[groups]
        if self.classes is not None:
            return self._balanced(together)
        return self._explained(together / members.sum(axis=0)[groups][:, None])

    def _balanced(self, told: NDArray) -> float:
        assert self.classes is not None
        sizes = np.bincount(self.classes)
        right = np.argmax(told / sizes, axis=1) == self.classes
        return float(np.mean(np.bincount(self.classes, weights=right) / sizes))

    def _explained(self, guess: Array) -> float:
        error = np.sum((self.known - guess) ** 2, axis=0)
        total = np.sum((self.known - self.known.mean(axis=0)) ** 2, axis=0)
        return float(np.max(1 - error[total > 0] / total[total > 0]))


def read_back(
    problem: Problem,
    V: Array,
    candidate: SampleClusters | None = None,
    *,
    what: str = "",
    settings: ClusterSettings = SETTINGS.clusters,
) -> ReadBack | None:
    """How well the known is read from the view with the axes V (d, k) and from the clusters; None: nothing is known."""
    Z = problem.Z
    if not problem.hides or Z.n_rows < FEWEST_ROWS:
        return None
    sample = Z.content_mask(settings.many_rows)
    reader, stated = _reader_of(problem, sample, settings)
    view = reader.from_view(Z.project(V, stated))
    clusters = None
    if candidate is not None:
        labels = _labels_of(candidate, Z.n_rows)
        # Of few rows both look at all of them.
        same = np.array_equal(labels >= 0, sample)
        of_clusters, asked = (reader, stated) if same else _reader_of(problem, labels >= 0, candidate.sample.settings)
        clusters = of_clusters.from_clusters(labels[asked])
    return ReadBack(view, clusters, reader.chance, what)


def read_from_clusters(problem: Problem, candidate: SampleClusters) -> tuple[float, float] | None:
    """How well the known is read from the clusters alone, and what chance would give; None: nothing is known."""
    if not problem.hides or problem.Z.n_rows < FEWEST_ROWS:
        return None
    labels = _labels_of(candidate, problem.Z.n_rows)
    reader, asked = _reader_of(problem, labels >= 0, candidate.sample.settings)
    return reader.from_clusters(labels[asked]), reader.chance


def _labels_of(candidate: SampleClusters, n_rows: int) -> Codes:
    """(n,), the cluster of every row to explore, -1 for those that were not asked."""
    labels = np.full(n_rows, -1)
    labels[candidate.sample.indices] = candidate.labels
    return labels


def _reader_of(problem: Problem, sample: Mask, settings: ClusterSettings) -> tuple[KnownReader, Mask]:
    """The reader of what is known of some rows, and those of them that say it."""
    values, stated = problem.known_values(sample)
    if stated.sum() >= FEWEST_ROWS:
        sample = sample.copy()
        sample[np.flatnonzero(sample)[~stated]] = False
        values = values[stated]
    return KnownReader(values, settings), sample
