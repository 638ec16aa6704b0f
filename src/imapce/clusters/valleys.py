"""Two groups are two only if something separates them: a valley in the density of rows along their discriminant.

    w = W⁻¹(m_b − m_a),     f = density of wᵀz,     peak(t) = min(max_{s ≤ t} f(s), max_{s ≥ t} f(s))
    z = max_t √2·(√peak(t) − √f(t)),  f in rows within a kernel's width: about standard normal where there is no valley

The discriminant is learned without the fold whose rows it scores: one learned on its own rows finds a valley in any
cloud. Components of a mixture without a valley between them are merged (`merge_groups`), and the deepest valley among
all rows is evidence that they are more than one group (`deepest_valley`).

>>> rows = np.random.default_rng(0).standard_normal((120, 2)) + 9 * (np.arange(120) < 60)[:, None]
>>> np.unique(merge_groups(rows, np.arange(120) // 30)).tolist()
[0, 1]
"""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import ward
from scipy.ndimage import gaussian_filter1d

from imapce.clusters.mixture import folds_of
from imapce.common.arrays import Array, Codes
from imapce.common.settings import SETTINGS, ClusterSettings
from imapce.common.work import UNWATCHED, Watch

DEFAULT = SETTINGS.clusters
CELLS = 200
# Standard deviations from the middle within which valleys and cuts are looked for: beyond lie a few far rows.
REACH = 12


def merge_groups(
    S: Array,
    labels: Codes,
    *,
    draws: int | None = None,
    settings: ClusterSettings = DEFAULT,
    watch: Watch = UNWATCHED,
) -> Codes:
    """Labels 0, 1, ... of sphered rows (n, q) after groups without a valley between them were made one, the two with
    the shallowest first. Valleys are averaged over so many `draws` of folds.
    """
    drawn = [_Groups(S, labels, settings.folds, 2 + draw) for draw in range(settings.draws if draws is None else draws)]
    rows = drawn[0].rows

    def depth(a: int, b: int) -> float:
        watch.tell("merging clusters that nothing separates")
        return float(np.mean([valley_between(*groups.scores(a, b)) for groups in drawn]))

    k = len(rows)
    apart = np.full((k, k), np.inf)
    for a in range(k):
        for b in range(a + 1, k):
            apart[a, b] = apart[b, a] = depth(a, b)
    while len(rows) > 1 and apart.min() < settings.valley:
        a, b = sorted(int(place) for place in np.unravel_index(apart.argmin(), apart.shape))
        for groups in drawn:
            groups.merge(a, b)
        apart = np.delete(np.delete(apart, b, 0), b, 1)
        for c in range(len(rows)):
            if c != a:
                apart[a, c] = apart[c, a] = depth(a, c)
    numbers = np.empty(len(S), dtype=np.intp)
    for number, inside in enumerate(rows):
        numbers[inside] = number
    return numbers


class _Groups:
    """Sums of every group outside each fold, so that the discriminant of any two costs no pass over the rows."""

    def __init__(self, S: Array, labels: Codes, folds: int, seed: int):
        self.S, self.q, self.folds = S, S.shape[1], folds
        self.fold = folds_of(len(S), folds, seed)
        self.rows = [np.flatnonzero(labels == c) for c in np.unique(labels)]
        self.sums = [self._outside(rows) for rows in self.rows]
        within = sum(np.cov(S[rows].T, bias=True).reshape(self.q, self.q) * len(rows) for rows in self.rows)
        # What all groups have in common, as many rows of it as axes, so that the scatter of any two has an inverse.
        self.common = self.q * (within / len(S) + 1e-9 * np.eye(self.q))

    def _outside(self, rows: Codes) -> tuple[Array, Array, Array]:
        parts = [self.S[rows[self.fold[rows] == f]] for f in range(self.folds)]
        n, s = np.array([float(len(z)) for z in parts]), np.array([z.sum(axis=0) for z in parts])
        p = np.array([z.T @ z for z in parts])
        return n.sum() - n, s.sum(axis=0) - s, p.sum(axis=0) - p

    def scores(self, a: int, b: int) -> tuple[Array, Array]:
        """Rows of a and of b along the discriminant learned without their fold; the means lie at −1 and 1."""
        (na, sa, pa), (nb, sb, pb) = self.sums[a], self.sums[b]
        ma, mb = sa / np.maximum(na, 1)[:, None], sb / np.maximum(nb, 1)[:, None]
        W = self.common + pa - na[:, None, None] * ma[:, :, None] * ma[:, None, :]
        W += pb - nb[:, None, None] * mb[:, :, None] * mb[:, None, :]
        W /= (na + nb + self.q)[:, None, None]
        w = np.linalg.solve(W, (mb - ma)[..., None])[..., 0]
        half = np.einsum("fi,fi->f", w, mb - ma) / 2
        w /= np.where(half > 0, half, 1.0)[:, None]
        middle = np.einsum("fi,fi->f", w, (ma + mb) / 2)
        first, second = (
            np.einsum("ij,ij->i", self.S[rows], w[self.fold[rows]]) - middle[self.fold[rows]]
            for rows in (self.rows[a], self.rows[b])
        )
        return first, second

    def merge(self, a: int, b: int) -> None:
        self.rows[a] = np.concatenate([self.rows[a], self.rows.pop(b)])
        n, s, p = (x + y for x, y in zip(self.sums[a], self.sums.pop(b), strict=True))
        self.sums[a] = (n, s, p)


def valley_between(a: Array, b: Array) -> float:
    """z of the valley between two groups of scores whose means lie near −1 and 1, both of the same weight."""
    spreads = [min(float(x.std()), 1e3) for x in (a, b)]
    # Cells at a fixed distance would heap the tails of overlapping clusters at both ends, and make a valley of that.
    low, high = -1 - 3 * spreads[0] - 0.1, 1 + 3 * spreads[1] + 0.1
    fewest = min(len(a), len(b))
    width = (high - low) / CELLS
    kernel = min(max(0.9 * max(min(spreads), 1e-3) * fewest**-0.2, 0.02), CELLS * width)
    counts = np.zeros(CELLS)
    for x in (a, b):
        # A density of the smaller group's weight.
        counts += fewest / len(x) * _counts(np.clip(x, low, high), low, width, CELLS)
    between = slice(int((-1 - low) / width), int((1 - low) / width) + 1)
    return _deepest(counts, kernel / width, between)


def deepest_valley(S: Array, labels: Codes, settings: ClusterSettings = DEFAULT) -> float:
    """The largest z of a valley along discriminants of each group, and each branch of groups, against all others."""
    names, best = np.unique(labels), 0.0
    sides = [labels == c for c in names][: None if len(names) > 2 else 1]
    if len(names) > 3:
        members = [[c] for c in names]
        for a, b, _, _ in ward(np.stack([S[labels == c].mean(axis=0) for c in names]))[:-1]:
            members.append(members[int(a)] + members[int(b)])
            sides.append(np.isin(labels, members[-1]))
    for inside in sides if len(names) > 1 else []:
        if min(inside.sum(), (~inside).sum()) >= 2 * settings.folds:
            groups = _Groups(S, inside.astype(np.intp), settings.folds, 3)
            best = max(best, valley_z(np.concatenate(groups.scores(0, 1))))
    return best


def valley_z(x: Array) -> float:
    """z of the deepest valley of the density of scores (n,)."""
    spread, middle = float(x.std()), float(np.median(x))
    quarter = float(np.subtract(*np.percentile(x, [75, 25]))) / 1.34
    kernel = 0.9 * min(spread, quarter + 1e-9) * len(x) ** -0.2
    low, high = max(float(x.min()), middle - REACH * spread), min(float(x.max()), middle + REACH * spread)
    if not (kernel > 0 and high > low):
        return 0.0
    cells = int(np.clip((high - low) / (kernel / 4), 50, 4000))
    width = (high - low) / cells
    return _deepest(_counts(x, low, width, cells), kernel / width)


def peaks_beside(density: Array) -> tuple[Array, Array]:
    """The highest of a density (..., cells) up to each cell from the left, and from the right."""
    return np.maximum.accumulate(density, axis=-1), np.maximum.accumulate(density[..., ::-1], axis=-1)[..., ::-1]


def _counts(x: Array, low: float, width: float, cells: int) -> Array:
    return np.bincount(np.clip((x - low) / width, 0, cells - 1).astype(np.intp), minlength=cells).astype(np.float64)


def _deepest(counts: Array, kernel: float, between: slice = slice(None)) -> float:
    """z of the deepest valley of counts in cells, smoothed by a kernel of so many of them."""
    rows = gaussian_filter1d(counts, kernel, mode="constant") * kernel * 2 * np.sqrt(np.pi)
    peak = np.minimum(*peaks_beside(rows))
    # √(c + 3/8) of a count has the standard error ½ whatever c is.
    return float((np.sqrt(2) * (np.sqrt(peak + 0.375) - np.sqrt(rows + 0.375)))[between].max())
