"""Gross outliers: rows so far out, and so few, that they would decide a view on their own.

One row a hundred standard deviations out weighs as much in a variance as ten thousand others, and in a kurtosis as a
hundred million. Which rows these are is told from quantiles, which 1 % of the rows cannot move, column by column:

    u_ij = (x_ij − med_j)/q_j,    q_j the 90 % quantile of |x_ij − med_j| among the rows that differ from med_j at all
    far:  |u_ij| > max(5, (q_j/h_j)^2.5) for some j,  or the same of ‖u_i‖;    h_j the median beside that quantile

The power goes on with the tail from where it is known: |x − med| may reach 15 for a standard Gaussian, 26 for Student's
t with five degrees of freedom and 100 for the exponential of a standard Gaussian. A rare category differs from the most
frequent one by no more than the others that do.

Far rows are outliers where they are scattered. A hundredth of the rows or more that lie close to one another in
excess = sign(u)·(|u| − 1)₊ are a cluster, however far away; and where more than a fiftieth of the rows is far, these
are the columns' own tails. Outliers vary in size: where some are found, scattered rows beyond an inner fence,
max(3, (q/h)²), go with them, unless they outnumber them; then what lies between the fences is a tail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.arrays import Array, Mask, array_module, on_host, seeded_sample
from imapce.common.settings import SETTINGS, OutlierSettings
from imapce.rows.base import Rows

# What is farther out than so many units is not squared.
FARTHEST = 1e100


@dataclass(frozen=True)
class Fence:
    """A row is beyond it where |u_j| > max(gross, (q_j/h_j)^tail) for some j, or where ‖u‖ is, in its own q and h.

    >>> Fence(5.0, 2.5).reach(np.array([2.0, 4.0]))
    array([ 5.65685425, 32.        ])
    """

    gross: float
    tail: float

    def reach(self, ratio: Array | float) -> Array:
        """In units of q, from q/h."""
        with np.errstate(over="ignore"):
            return np.maximum(self.gross, np.asarray(ratio) ** self.tail)


@dataclass(frozen=True)
class Bulk:
    """What is ordinary: med_j, q_j and q_j/h_j of the columns that can be judged, and q and q/h of ‖u‖."""

    columns: NDArray[np.intp]
    centre: Array
    unit: Array
    ratio: Array
    distance: float
    distance_ratio: float

    @classmethod
    def of_sample(cls, sample: Array, origin: Array, fewest: int = SETTINGS.outliers.fewest_deviating) -> Bulk:
        """As told by some rows (m, d), given less their origin; of columns in which at least `fewest` rows deviate.

        >>> Bulk.of_sample(np.random.default_rng(0).normal(size=(2000, 3)), np.zeros(3)).unit.round(1)
        array([1.7, 1.6, 1.6])
        """
        # Where fewer rows than can be judged are not zero, the median is zero and nothing need be sorted: most of the
        # columns of a sparse matrix.
        columns = np.flatnonzero(np.count_nonzero(sample, axis=0) >= fewest)
        values = sample[:, columns]
        centre = np.median(values, axis=0)
        values -= centre
        deviation = np.abs(values)
        # What is a constant column to the standardisation (8 rounding errors) does not deviate here either.
        deviation[deviation <= 8 * np.finfo(np.float64).eps * np.abs(centre + origin[columns])] = 0.0
        deviation.sort(axis=0)
        deviating = np.count_nonzero(deviation, axis=0)
        judged = deviating >= fewest
        half, unit = (_quantile_of_deviating(deviation[:, judged], deviating[judged], p) for p in (0.5, 0.9))
        distances = np.linalg.norm(_scaled(values[:, judged], unit), axis=1)
        distances = distances[distances > 0]
        middle, ordinary = np.quantile(distances, (0.5, 0.9)) if len(distances) else (1.0, 1.0)
        with np.errstate(over="ignore"):
            ratio = unit / half
        return cls(columns[judged], centre[judged], unit, ratio, float(ordinary), float(ordinary / middle))


def _quantile_of_deviating(ascending: Array, counts: NDArray[np.intp], share: float) -> Array:
    """The quantile of the last `counts` entries of every column: of those that are not zero."""
    place = len(ascending) - counts + (share * (counts - 1)).astype(np.intp)
    return np.take_along_axis(ascending, place[None, :], axis=0)[0]


def _scaled(deviation: Array, unit: Array) -> Array:
    """u, cut off where its squares would overflow: 1e70 in a column of 1e-100 is as far as can be."""
    with np.errstate(over="ignore"):
        return (deviation / unit).clip(-FARTHEST, FARTHEST)


def outlying_rows(rows: Rows, settings: OutlierSettings = SETTINGS.outliers) -> Mask:
    """(n,), true for gross outliers; one pass over a sample and one over the rows, two where there are outliers.

    >>> from imapce.rows.dense import DenseRows
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> X[7, 2] = 60.0
    >>> np.flatnonzero(outlying_rows(DenseRows(X)))
    array([7])
    """
    rows, outlying = rows.unfolded, np.zeros(rows.n_rows, dtype=bool)
    bulk = Bulk.of_sample(_sample(rows, settings), rows.origin, settings.fewest_deviating)
    # So many are no exception to the 90 % quantiles, and this bounds what is kept of them.
    most = settings.most_far * rows.n_rows
    far = _beyond(Fence(*settings.outer), bulk, rows, most) if len(bulk.columns) else None
    if far is None or not len(far.positions):
        return outlying
    # A cluster may lie across the outer fence, so its rows are looked for on both sides.
    suspect = _beyond(Fence(*settings.inner), bulk, rows, most) or far
    scattered = suspect.positions[~_in_cluster(suspect.excess, rows.n_rows, settings)]
    beyond_doubt = np.isin(scattered, far.positions)
    chosen = scattered if 2 * beyond_doubt.sum() >= len(scattered) else scattered[beyond_doubt]
    if len(chosen) <= settings.most_outlying * rows.n_rows:
        outlying[chosen] = True
    return outlying


@dataclass(frozen=True)
class FarRows:
    """Rows beyond a fence: where they are, and sign(u)·(|u| − 1)₊."""

    positions: NDArray[np.intp]
    excess: Array


def _beyond(fence: Fence, bulk: Bulk, rows: Rows, most: float) -> FarRows | None:
    """The rows beyond the fence; None where they are more than so many."""
    positions: list[NDArray[np.intp]] = []
    excesses: list[Array] = []
    start = count = 0
    for length, places, excess in rows.reduce_blocks(BlockFence(fence, bulk, most), bulk.columns):
        count += len(places)
        if count > most:
            return None
        positions.append(start + places)
        excesses.append(excess)
        start += length
    return FarRows(np.concatenate(positions), np.concatenate(excesses))


@dataclass(frozen=True)
class BlockFence:
    """The rows of one block that are beyond a fence: how many rows it has, where these are, and their excess."""

    fence: Fence
    bulk: Bulk
    most: float

    def __call__(self, block: Any) -> tuple[int, NDArray[np.intp], Array]:
        xp, bulk = array_module(block), self.bulk
        reach = self.fence.reach(bulk.ratio)
        farthest = bulk.distance * float(self.fence.reach(bulk.distance_ratio))
        with np.errstate(over="ignore", divide="ignore"):
            # A column whose squares vanish counts as constant elsewhere; here it must only not be infinite.
            weight = np.minimum(1.0 / bulk.unit**2, FARTHEST)
        centre, limit, weight = (xp.asarray(one) for one in (bulk.centre, reach * bulk.unit, weight))
        # Most blocks have no such row, and their least and largest values tell: no row is farther out than all columns'
        # largest deviations together. A third of the time of a sum over the columns of every row.
        most = xp.maximum(block.max(axis=0) - centre, centre - block.min(axis=0))
        beyond = bool((most > limit).any())
        with np.errstate(over="ignore"):
            if not beyond and float((most * most) @ weight) < farthest**2 * (1 - 1e-9):
                return len(block), np.empty(0, dtype=np.intp), np.empty((0, len(bulk.columns)))
            deviation = block - centre
            suspect = (deviation * deviation) @ weight >= farthest**2 * (1 - 1e-9)
        if beyond:
            suspect |= (abs(deviation) > limit).any(axis=1)
        near = xp.flatnonzero(suspect)
        scaled = _scaled(on_host(deviation[near]), bulk.unit)
        size = np.abs(scaled)
        chosen = (size > reach).any(axis=1) | (np.linalg.norm(scaled, axis=1) > farthest)
        excess = np.copysign(np.maximum(size[chosen] - 1.0, 0.0), scaled[chosen])
        return len(block), on_host(near)[chosen], excess if len(excess) <= self.most else excess[:0]


def _sample(rows: Rows, settings: OutlierSettings) -> Array:
    """Some of the rows, the same whenever asked; all of them where they are few."""
    most = min(settings.rows, max(settings.fewest_rows, settings.sample_bytes // (8 * rows.n_features)))
    return np.concatenate([block.copy() for block in rows.subset(seeded_sample(rows.n_rows, most)).blocks()])


def _in_cluster(excess: Array, n_rows: int, settings: OutlierSettings) -> Mask:
    """Which far rows have a cluster's worth of others close by."""
    needed = max(settings.smallest_rows, int(np.ceil(settings.smallest_share * n_rows)))
    m = len(excess)
    if m < needed:
        return np.zeros(m, dtype=bool)
    compared = excess
    if m > settings.rows:
        compared = excess[np.random.default_rng(0).choice(m, settings.rows, replace=False)]
        needed = max(settings.smallest_rows, needed * settings.rows // m)
    within = settings.close * np.linalg.norm(excess, axis=1)

    def close_by(distances: Array, start: int) -> NDArray[np.intp]:
        return np.count_nonzero(distances <= within[start : start + len(distances), None], axis=1)

    # scikit-learn's metrics take as long to import as the rest of this package, and few tables have rows to compare.
    from sklearn.metrics import pairwise_distances_chunked

    counts = np.concatenate(list(pairwise_distances_chunked(excess, compared, reduce_func=close_by)))
    return counts >= needed


def set_aside(outlying: Mask, what: str) -> str:
    """What a fit tells of them, in one sentence.

    >>> set_aside(np.array([True, False, True, False]), "rows")
    '2 of 4 rows are gross outliers and were set aside; outliers="keep" uses them.'
    """
    count = int(outlying.sum())
    are, were, them = ("are gross outliers", "were", "them") if count > 1 else ("is a gross outlier", "was", "it")
    return f'{count:,} of {len(outlying):,} {what} {are} and {were} set aside; outliers="keep" uses {them}.'
