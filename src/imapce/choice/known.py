"""Is the known gone? How well known columns and labels are read back from a view, and the view that hides them.

    read back   by the 15 nearest rows in the view, each row left out: balanced accuracy where the known values have at
                most 20 different rows (chance 1/classes), else the best R² of the neighbours' means (chance 0)
    leak        = (read back − chance)₊ + max ρ²,      ρ the canonical correlations of the view and what is known
    worth       = kept·(1 − (read back − chance)₊/(1 − chance))·(1 − max ρ²)

More is given up, stage by stage (`choice/planes.py`), only while no view has leak ≤ 0.06: to be uncorrelated with the
known is not to be free of it. On tables of discrete columns an erased view shifts the dots of each class by its own
little amount, and the known is read from the dots (Adult, gender: 0.41 beyond chance); where classes spread unlike
(vowel) erasing their means leaves 0.24 to 0.38.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from imapce.choice.neighbours import SMALLEST, TIE, clearly_better
from imapce.choice.planes import PRINCIPAL, Planes
from imapce.choice.score import Leakage
from imapce.choice.spaces import searched_axes
from imapce.priors.problem import Problem
from imapce.search.solution import Optimum

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]

MOST_CLASSES = 20
READ_ROWS = 8_000  # of fewer, the rare classes of a category are noise
GONE = 0.06
FEWEST_ROWS = 4


@dataclass(frozen=True)
class ReadBack:
    """How well the known is read from a view, and what chance would give.

    >>> ReadBack(0.36, 1 / 3).sentence
    'The known columns are read back from the view with accuracy 0.36 by the 15 nearest rows; chance 0.33.'
    """

    score: float
    chance: float
    of: str = "columns are"

    @property
    def beyond(self) -> float:
        """read back − chance, not below 0."""
        return max(0.0, self.score - self.chance)

    @property
    def sentence(self) -> str:
        """In words, as every fit with known columns or labels tells it."""
        measure = "accuracy" if self.chance else "R²"
        return (
            f"The known {self.of} read back from the view with {measure} {self.score:.2f} by the 15 nearest rows; "
            f"chance {self.chance:.2f}."
        )


class NearestReader:
    """Reads what is known of the rows (m, q) back from views of them.

    >>> rng = np.random.default_rng(0)
    >>> known = rng.integers(0, 2, (300, 1)).astype(float)
    >>> reader = NearestReader(known)
    >>> reader.read(np.column_stack([known, known])).score, round(reader.read(rng.normal(size=(300, 2))).score, 1)
    (1.0, 0.5)
    """

    def __init__(self, known: Array):
        self.known = known
        classes = np.unique(known.round(9), axis=0, return_inverse=True)[1].ravel()
        self.n_classes = int(classes.max()) + 1
        self.classes: Ints | None = classes if self.n_classes <= MOST_CLASSES else None

    def read(self, view: Array) -> ReadBack:
        """From the rows of a view (n, k)."""
        n = len(view)
        spread = view.std(axis=0)
        points = (view - view.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        points = points + TIE * np.random.default_rng(0).standard_normal(points.shape)
        near = cKDTree(points).query(points, min(SMALLEST, n - 1) + 1)[1][:, 1:]
        if self.classes is None:
            guess = self.known[near].mean(axis=1)
            error = np.sum((self.known - guess) ** 2, axis=0)
            total = np.sum((self.known - self.known.mean(axis=0)) ** 2, axis=0)
            return ReadBack(float(np.max(1 - error[total > 0] / total[total > 0])), 0.0)
        sizes = np.bincount(self.classes)
        places = (np.arange(n)[:, None] * self.n_classes + self.classes[near]).ravel()
        votes = np.bincount(places, minlength=n * self.n_classes).reshape(n, self.n_classes)
        right = np.argmax(votes / sizes, axis=1) == self.classes
        return ReadBack(float(np.mean(np.bincount(self.classes, weights=right) / sizes)), 1.0 / self.n_classes)


@dataclass(frozen=True)
class Judged:
    """A view: its name, its axes (d, k), what it keeps for every row asked, and what it shows of the known.

    `optimum` is None for a plane that is no optimum of equation 2.
    """

    name: str
    V: Array
    kept: Array
    optimum: Optimum | None = None
    read_back: ReadBack = ReadBack(0.0, 0.0)
    correlation: float = 0.0

    @property
    def mean(self) -> float:
        """What is kept, over all rows asked."""
        return float(self.kept.mean())

    @property
    def leak(self) -> float:
        """What readers see, by neighbours and by a line."""
        return self.read_back.beyond + self.correlation

    @property
    def worth(self) -> Array:
        """What is kept as far as the known is not, for every row asked."""
        room = max(1.0 - self.read_back.chance, 1e-9)
        return self.kept * max(0.0, 1.0 - self.read_back.beyond / room) * (1.0 - self.correlation)


class Hiding:
    """Views of a problem with known columns or labels, judged by what they keep and what they leak."""

    def __init__(self, planes: Planes):
        problem = planes.problem
        self.planes, self.Z = planes, problem.Z
        self.sample, self.reader = known_rows_read(problem)
        self._leakage = Leakage(problem.X.second_moment, problem.hidden_columns, problem.Y.labels)

    def judged(self, name: str, V: Array, optimum: Optimum | None = None) -> Judged:
        """A view with all that decides about it."""
        read_back = self.reader.read(self.Z.project(V, self.sample))
        return Judged(name, V, self.planes.kept(V), optimum, read_back, self._leakage.largest(V))

    def at(self, stage: int) -> list[Judged]:
        """The planes of a stage, judged."""
        if stage < 3:
            return [self.judged(name, V) for name, V in self.planes.at(stage)]
        return list(self._alike())

    def _alike(self) -> Iterator[Judged]:
        """Planes of the axes along which classes spread alike, of as many axes as still hide them: found by halving."""
        known, stated = self.planes.known_values()
        classes = NearestReader(known[stated]).classes
        if classes is None:
            return
        every = np.full(len(known), -1, dtype=np.intp)
        every[stated] = classes
        D = self.planes.alike(every)
        fewest, most = self.planes.k, D.shape[1]
        while fewest < most:
            count = (fewest + most) // 2
            views = [self.judged(name, V) for name, V in self.planes.within(D[:, :count])]
            yield from views
            if any(one.leak <= GONE for one in views):
                fewest = count + 1
            else:
                most = count


def known_rows_read(problem: Problem) -> tuple[Mask, NearestReader]:
    """The rows (a mask of those to explore) that the known is read back from, and the reader of what it says."""
    sample = problem.Z.content_mask(READ_ROWS)
    values, stated = problem.known_values(sample)
    if stated.sum() >= FEWEST_ROWS:
        sample[np.flatnonzero(sample)[~stated]] = False
        values = values[stated]
    return sample, NearestReader(values)


def read_back(problem: Problem, V: Array) -> ReadBack | None:
    """How well the known is read from the view with the axes V (d, k); None where none is known."""
    if not problem.hides or problem.Z.n_rows < FEWEST_ROWS:
        return None
    sample, reader = known_rows_read(problem)
    columns, labels = problem.hidden_columns.any(), problem.Y.labels is not None
    words = "columns and labels are" if columns and labels else "labels are" if labels else "columns are"
    return replace(reader.read(problem.Z.project(V, sample)), of=words)


STAGE_WORDS = (
    "without weight on {known}",
    "without what is correlated with {known}",
    "with {known} erased",
    "with {known} erased and without the directions along which their classes spread unlike",
)
UNSEEN = "in which {known} do not show"
UNCORRELATED = 1e-9
NOT_HIDDEN = "which shows least of {known}, though none of the views hides them"


def hidden(planes: Planes, optima: Sequence[Optimum]) -> tuple[list[Judged], str]:
    """Views of a problem with known columns or labels, the chosen one first, then by what they keep; and how it hides
    them.
    """
    hiding = Hiding(planes)
    views = [hiding.judged("", one.V, one) for one in optima]
    known = "the known columns" if planes.known.any() else "the known labels"
    # What is to be erased binds every axis from the start.
    for stage in range(0 if planes.problem.Y.erased is None else 1, len(STAGE_WORDS)):
        views += hiding.at(stage)
        free = [one for one in views if one.leak <= GONE]
        if free:
            chosen = worthiest(free)
            if stage == 0 and not planes.known.any():
                words = STAGE_WORDS[1] if chosen.correlation < UNCORRELATED else UNSEEN
                return chosen_first(views, chosen), words.format(known=known)
            return chosen_first(views, chosen), STAGE_WORDS[stage].format(known=known)
    return chosen_first(views, min(views, key=lambda one: one.leak)), NOT_HIDDEN.format(known=known)


def worthiest(views: list[Judged]) -> Judged:
    """The view of most worth; an optimum only where it is worth clearly more than the best plane.

    Optima depend on the seed, planes do not (Adult, race known: 15-NN accuracy of income 0.82 and 0.81 without this).
    """
    ranked = sorted(views, key=lambda one: (one.optimum is not None, -float(one.worth.mean())))
    return ranked[clearly_better([one.worth for one in ranked])]


def chosen_first(views: list[Judged], chosen: Judged) -> list[Judged]:
    """The chosen view, then the others, those that keep most first."""
    return [chosen, *sorted((one for one in views if one is not chosen), key=lambda one: -one.mean)]


def keeping(planes: Planes, optima: Sequence[Optimum]) -> tuple[list[Judged], str]:
    """Views of a problem with nothing to hide: the plane of neighbours first, or one that keeps clearly more.

    Between views that keep as much the plane of neighbours has shown the groups best (14 tables: 0.77 alone).
    """
    views = [Judged(name, V, planes.kept(V)) for name, V in planes.at(0)][::-1]
    views += [Judged("", one.V, planes.kept(one.V), one) for one in optima]
    return chosen_first(views, views[clearly_better([one.kept for one in views])]), ""


def said(views: Sequence[Judged], how: str) -> str:
    """Which kind of view was chosen, how it hides the known and what it keeps, in words."""
    chosen, *others = views
    name = chosen.name
    if chosen.optimum is not None:
        name = f"the one at alpha {chosen.optimum.alpha:.4g}, mu {chosen.optimum.mu:.4g}"
    beside = max(
        (one.mean for one in others if one.name == PRINCIPAL and one.leak <= max(GONE, chosen.leak)), default=None
    )
    also = "" if beside is None else f", {PRINCIPAL} {beside:.2f}"
    verb = "is shown" if how else "keeps most" if chosen.mean >= max(one.mean for one in views) else "is shown"
    aside = f" ({how})" if how else ""
    return f"{name}{aside} {verb}: {chosen.mean:.2f} of the neighbourhoods{also}; chance 0"


def by_neighbours(problem: Problem, optima: list[Optimum]) -> list[Optimum]:
    """Optima of one (α, μ), those that keep most of the neighbourhoods first."""
    if problem.Z.n_rows < FEWEST_ROWS:
        return optima
    planes = Planes(problem, searched_axes(problem, np.zeros((problem.X.n_features, 0))))
    scored = [replace(one, kept=float(planes.kept(one.V).mean())) for one in optima]
    return sorted(scored, key=lambda one: -one.kept)
