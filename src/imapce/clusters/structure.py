"""Are the clusters found more than what a table of one group shows? Two ways to say yes, and either is enough.

1. A valley. Along the discriminant of one cluster against all other rows, learned on other folds, the density of all
   rows has a valley:  z = √2·(√peak − √valley),  both in rows within a kernel's width, is about standard normal where
   there is none. No cloud with one peak has one, whatever its tails or its skewness.
2. Dependence beyond a Gaussian copula. Tables are drawn with the same values in every column and the same correlations
   of their normal scores, and nothing else; the mixture's gain over one Gaussian on rows left out (mean of the middle
   half of the rows) must lie z standard deviations above theirs.

Of 176 tables of noise (Gaussian, uniform, lognormal, t(3); 200×6 to 2,000×30) one was clear, lognormal 200×6; all of 14
labelled tables were, eight by a valley and six by their dependence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import ward
from scipy.ndimage import gaussian_filter1d
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from imapce.clusters.mixture import FOLD_ITERATIONS, Choice, fit_mixture, folds_of, start, tree_of
from imapce.common.records import Comparable
from imapce.common.watch import UNWATCHED, Watch
from imapce.common.words import counted

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

# z from which each is no chance. Valleys of 370 tables of noise reached 2.8; the dependence of 1 of 176 was above 4.5.
CLEAR_VALLEY, CLEAR_DEPENDENCE = 3.5, 4.5
DRAWS = 9
# Nats per row: so small a gain is no structure, however little the drawn tables vary.
LEAST_GAIN = 0.05
VERY_CLEAR, FIRST_DRAWS = 25.0, 5
FOLDS, FOLDS_OF_GAIN = 5, 3
PERHAPS = 3.0
MOST_SIZES = 8


Verdict = Literal["clear", "perhaps", "none"]
ONE_PEAK, SAME_COLUMNS = "one peak", "the same columns and correlations"


@dataclass(frozen=True)
class Evidence:
    """One test of whether rows are one group: what it was tested against, in words, its z-score and its p-value.

    >>> Evidence("one peak", 4.0, 3e-5).z
    4.0
    """

    against: str
    z: float
    p_value: float

    @classmethod
    def of(cls, against: str, z: float) -> Evidence:
        """The evidence of a z-score that is standard normal where there is no structure.

        >>> Evidence.of("one peak", 0.0).p_value
        0.5
        """
        return cls(against, z, float(ndtr(-z)))


@dataclass(frozen=True, eq=False)
class Split(Comparable):
    """The best split of rows, whether or not it is more than chance: labels (n,) of all rows, -1 for none.

    >>> Split(np.array([0, 0, 1, -1])).words
    '2 groups of 2 and 1 rows'
    """

    labels: Labels

    @property
    def n_clusters(self) -> int:
        """How many groups there are."""
        return len(self.sizes)

    @property
    def sizes(self) -> list[int]:
        """How many rows each group has, the largest first."""
        counts = np.unique(self.labels[self.labels >= 0], return_counts=True)[1]
        return sorted(counts.tolist(), reverse=True)

    @property
    def words(self) -> str:
        """How many groups of how many rows."""
        *most, last = (f"{size:,}" for size in self.sizes[:MOST_SIZES]) if self.sizes else ("0",)
        if len(self.sizes) > MOST_SIZES:
            sizes = ", ".join([*most, last, "…"])
        else:
            sizes = f"{', '.join(most)} and {last}" if most else last
        return f"{counted(self.n_clusters, 'group')} of {sizes} rows"


@dataclass(frozen=True)
class Structure:
    """Whether rows are more than one group: a verdict, why in words, the tests, and the best split there is.

    "clear" and "perhaps" are taken as clusters, "none" is not more than chance. `words` is a clause.

    >>> Structure("perhaps", "the valley is shallow").is_taken
    True
    """

    verdict: Verdict
    words: str
    evidence: tuple[Evidence, ...] = ()
    candidate: Split | None = field(default=None, compare=False, repr=False)

    @property
    def is_taken(self) -> bool:
        """Whether its groups are taken as clusters without being asked for."""
        return self.verdict != "none"


def is_structure(
    Z: Array,
    found: Choice,
    labels: Labels,
    *,
    columns: Array,
    coordinates: Callable[[Array], Array],
    valleys: bool = True,
    watch: Watch = UNWATCHED,
) -> Structure:
    """Whether the mixture found in rows (n, q) and the clusters made of it are more than chance.

    `columns` (n, d) are the same rows as columns, and `coordinates(columns*)` leads from a table drawn in their place
    to its rows in the q axes. Without `valleys` only the dependence counts: between the few values of columns that
    share nothing there is always a valley (random true/false columns, 300×5: z above 3.5 in 12 of 12 tables).

    >>> from imapce.clusters.mixture import choose
    >>> rows = np.random.default_rng(0).standard_normal((200, 3))
    >>> rows[:100] += 9
    >>> found = choose(rows)
    >>> is_structure(rows, found, found.labels, columns=rows, coordinates=lambda drawn: drawn).verdict
    'clear'
    """
    if len(np.unique(found.labels)) == 1:
        return Structure("none", "one Gaussian explains rows left out best")
    valley = deepest_valley(Z, found.labels)
    if 1 < len(np.unique(labels)) < len(np.unique(found.labels)):
        valley = max(valley, deepest_valley(Z, labels))
    told: tuple[Evidence, ...] = (Evidence.of(ONE_PEAK, valley),)
    if len(np.unique(labels)) == 1:
        return Structure("none", f"no valley separates any two groups, z = {valley:.1f}", told)
    if valleys and valley >= CLEAR_VALLEY:
        words = f"a valley separates clusters, z = {valley:.1f} (by chance below {CLEAR_VALLEY})"
        return Structure("clear", words, told)
    dependence = _dependence(Z, found, columns, coordinates, watch)
    told = (*told, Evidence.of(SAME_COLUMNS, dependence))
    if dependence < PERHAPS:
        return Structure("none", f"valley z = {valley:.1f}, dependence z = {dependence:.1f}", told)
    words = f"columns depend on each other as clusters do, z = {dependence:.1f} (by chance below {CLEAR_DEPENDENCE})"
    return Structure("clear" if dependence >= CLEAR_DEPENDENCE else "perhaps", words, told)


def deepest_valley(Z: Array, labels: Labels) -> float:
    """The largest z of a valley along discriminants of each cluster, and each branch of clusters, against all others.

    >>> rows = np.random.default_rng(0).standard_normal((300, 2))
    >>> cut = (rows[:, 0] > 0).astype(int)
    >>> deepest_valley(rows, cut) < 3, deepest_valley(rows + 9 * cut[:, None], cut) > 9
    (True, True)
    """
    names, n = np.unique(labels), len(Z)
    if len(names) < 2:
        return 0.0
    groups = [labels == c for c in names][: None if len(names) > 2 else 1]
    if len(names) > 3:
        members = [[c] for c in names]
        for a, b, _, _ in ward(np.stack([Z[labels == c].mean(axis=0) for c in names]))[:-1]:
            members.append(members[int(a)] + members[int(b)])
            groups.append(np.isin(labels, members[-1]))
    fold = folds_of(n, FOLDS, 3)
    held = [(Z[fold == f].sum(axis=0), Z[fold == f].T @ Z[fold == f], float((fold == f).sum())) for f in range(FOLDS)]
    total = (sum(one[0] for one in held), sum(one[1] for one in held), float(n))
    outside = [tuple(whole - part for whole, part in zip(total, one, strict=True)) for one in held]
    best = 0.0
    for inside in groups:
        if min(inside.sum(), n - inside.sum()) < FOLDS:
            continue
        scores = _scores(Z, inside, fold, outside)
        best = max(best, valley_z(scores)) if scores is not None else best
    return best


def _scores(Z: Array, inside: NDArray[np.bool_], fold: Labels, outside: list[tuple]) -> Array | None:
    """All rows along the discriminant of those inside against the others, learned without their fold."""
    q = Z.shape[1]
    x = np.empty(len(Z))
    for f, (s, p, m) in enumerate(outside):
        part = Z[inside & (fold != f)]
        count = float(len(part))
        if count < 2 or m - count < 2:
            return None
        ma = part.mean(axis=0)
        mb = (s - count * ma) / (m - count)
        W = (p - count * np.outer(ma, ma) - (m - count) * np.outer(mb, mb)) / m
        lean = q / (m + q)
        level = max(float(np.trace(W)) / q, np.finfo(np.float64).tiny ** 0.5)
        W = (1 - lean) * W + (lean + 1e-6) * level * np.eye(q)
        w = np.linalg.solve(W, ma - mb)
        here = fold == f
        x[here] = (Z[here] @ w - (ma + mb) @ w / 2) / max(float((ma - mb) @ w) / 2, 1e-12)
    return x


def valley_z(x: Array) -> float:
    """How far the deepest valley of the density of scores (n,) lies below its lower peak, in standard errors.

    >>> valley_z(np.random.default_rng(0).standard_normal(500)) < 3
    True
    """
    n, spread = len(x), float(x.std())
    quarter = float(np.subtract(*np.percentile(x, [75, 25]))) / 1.34
    h = 0.9 * min(spread, quarter + 1e-9) * n**-0.2
    middle = float(np.median(x))
    low, high = max(float(x.min()), middle - 12 * spread), min(float(x.max()), middle + 12 * spread)
    if not (h > 0 and high > low):
        return 0.0
    cells = int(np.clip((high - low) / (h / 4), 50, 4000))
    width = (high - low) / cells
    counts = np.bincount(np.clip((x - low) / width, 0, cells - 1).astype(np.intp), minlength=cells).astype(np.float64)
    c = gaussian_filter1d(counts, h / width, mode="constant") / width * h * 2 * np.sqrt(np.pi)
    peak = np.minimum(np.maximum.accumulate(c), np.maximum.accumulate(c[::-1])[::-1])
    # √(c + 3/8) of a count has the standard error ½ whatever c is.
    return float((np.sqrt(2) * (np.sqrt(peak + 0.375) - np.sqrt(c + 0.375))).max())


class SameColumns:
    """Tables with the values of every column of X (n, d) and its normal-score correlations, and no other dependence.

    >>> X = np.random.default_rng(0).lognormal(size=(50, 2))
    >>> bool(np.all(np.sort(SameColumns(X).draw(0), axis=0) == np.sort(X, axis=0)))
    True
    """

    def __init__(self, X: Array):
        n = len(X)
        scores = ndtri((rankdata(X, axis=0) - 0.5) / n)
        scores /= np.maximum(scores.std(axis=0), 1e-12)
        values, axes = np.linalg.eigh(scores.T @ scores / n)
        self._root = (axes * np.sqrt(np.maximum(values, 0.0))).T
        self._sorted = np.sort(X, axis=0)

    def draw(self, number: int) -> Array:
        """The table with this number, always the same."""
        drawn = np.random.default_rng([7, number]).standard_normal(self._sorted.shape) @ self._root
        return np.take_along_axis(self._sorted, drawn.argsort(axis=0).argsort(axis=0), axis=0)


def middle_gain(Z: Array, size: int, kappa: float) -> float:
    """ln f of rows left out with `size` components above that with one, mean over the middle half of the rows.

    The middle half: a few far rows decide the mean, and t(3) noise then lies 4 standard deviations from its copula.
    """
    tree, fold = tree_of(Z), folds_of(len(Z), FOLDS_OF_GAIN)
    gain = np.empty(len(Z))
    for f in range(FOLDS_OF_GAIN):
        train = fold != f
        many, one = (
            fit_mixture(Z[train], start(tree, k)[train], kappa=kappa, iterations=FOLD_ITERATIONS)[0] for k in (size, 1)
        )
        gain[~train] = many.log_density(Z[~train]) - one.log_density(Z[~train])
    gain.sort()
    return float(gain[len(gain) // 4 : len(gain) - len(gain) // 4].mean())


def _dependence(Z: Array, found: Choice, columns: Array, coordinates: Callable[[Array], Array], watch: Watch) -> float:
    """z of the mixture's gain among the gains in tables that have nothing but the columns and their correlations."""
    gain = middle_gain(Z, found.size, found.kappa)
    if gain < LEAST_GAIN:
        return 0.0
    tables, drawn, beyond = SameColumns(columns), [], 0.0
    for number in range(DRAWS):
        watch.tell("asking whether it is structure", number / DRAWS)
        drawn.append(middle_gain(coordinates(tables.draw(number)), found.size, found.kappa))
        if number < 2:
            continue
        beyond = (gain - float(np.mean(drawn))) / max(float(np.std(drawn, ddof=1)), 1e-12)
        # Nine draws are for those in between.
        if beyond < 1.0 or (len(drawn) == FIRST_DRAWS and beyond >= VERY_CLEAR):
            break
    return beyond
