"""Gross outliers: rows so far out, and so few, that they would decide a view on their own.

One row a hundred standard deviations out weighs as much in a variance as ten thousand others, and in a kurtosis as a
hundred million. Which rows these are is told from quantiles, which 1 % of the rows cannot move, column by column:

    u_ij = (x_ij − med_j)/q_j,    q_j the 90 % quantile of |x_ij − med_j| among the rows that differ from med_j at all
    far:  |u_ij| > max(5, (q_j/h_j)^2.5) for some j,  or the same of ‖u_i‖;    h_j the median beside that quantile

The power goes on with the tail from where it is known: the fence is at 15 standard deviations of a Gaussian, at 26
of a Student t with five degrees of freedom and at 150 for the exponential of a Gaussian. A rare category differs from
the most frequent one by no more than the others that do.

Far rows are outliers where they are scattered. A hundredth of the rows or more that lie close to one another in
excess = sign(u)·(|u| − 1)₊ are a cluster, however far away; and where more than a twentieth of the rows is far, these
are the columns' own tails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from imapce.rows import Rows

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SAMPLED_ROWS, FEWEST_SAMPLED = 2000, 256
SAMPLE_BYTES = 64 << 20
# Rows that deviate, among those sampled, from which a column's quantiles mean something.
FEWEST_DEVIATING = 30
GROSS, TAIL = 5.0, 2.5
SMALLEST_CLUSTER, FEWEST_IN_CLUSTER = 0.01, 10
MOST_FAR, MOST_OUTLYING = 0.1, 0.05
# A neighbour is a row within this share of the excess: scattered rows are farther apart than they are out.
CLOSE = 0.5
COMPARED_ROWS = 2000


@dataclass(frozen=True)
class Fences:
    """Where a row is far: med_j, q_j and the fence of |u_j| for the columns that can be judged, and that of ‖u‖."""

    columns: NDArray[np.intp]
    centre: Array
    unit: Array
    reach: Array
    distance: float

    @classmethod
    def of_sample(cls, sample: Array, origin: Array) -> Fences:
        """The fences told by some rows (m, d), given less their origin.

        >>> Fences.of_sample(np.random.default_rng(0).normal(size=(2000, 3)), np.zeros(3)).unit.round(1)
        array([1.6, 1.7, 1.6])
        """
        # Where fewer rows than can be judged are not zero, the median is zero and nothing need be sorted: most of the
        # columns of a sparse matrix.
        columns = np.flatnonzero(np.count_nonzero(sample, axis=0) >= FEWEST_DEVIATING)
        values = sample[:, columns]
        centre = np.median(values, axis=0)
        values -= centre
        deviation = np.abs(values)
        # What is a constant column to the standardisation (8 rounding errors) does not deviate here either.
        deviation[deviation <= 8 * np.finfo(np.float64).eps * np.abs(centre + origin[columns])] = 0.0
        deviation.sort(axis=0)
        deviating = np.count_nonzero(deviation, axis=0)
        judged = deviating >= FEWEST_DEVIATING
        columns, centre, values = columns[judged], centre[judged], values[:, judged]
        half, unit = (_upper_quantile(deviation[:, judged], deviating[judged], p) for p in (0.5, 0.9))
        sizes = np.sort(np.linalg.norm(values / unit, axis=1))
        counted = np.array([np.count_nonzero(sizes)])
        middle, ordinary = (float(_upper_quantile(sizes[:, None], counted, p)[0]) for p in (0.5, 0.9))
        return cls(columns, centre, unit, _reach(unit / half), ordinary * float(_reach(ordinary / middle)))


def _upper_quantile(ascending: Array, counts: NDArray[np.intp], share: float) -> Array:
    """The quantile of the last `counts` entries of every column: of those that are not zero."""
    place = len(ascending) - counts + (share * (counts - 1)).astype(np.intp)
    return np.take_along_axis(ascending, place[None, :], axis=0)[0]


def _reach(ratio: Array | float) -> Array:
    return np.maximum(GROSS, np.asarray(ratio) ** TAIL)


def outlying_rows(rows: Rows) -> Mask:
    """(n,), true for gross outliers; two passes over the rows, of which the first reads a sample.

    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> X[7, 2] = 60.0
    >>> np.flatnonzero(outlying_rows(open_rows(X)))           # doctest: +SKIP
    array([7])
    """
    rows = rows.unfolded
    n, none = rows.n_rows, np.zeros(rows.n_rows, dtype=bool)
    if n < FEWEST_DEVIATING:
        return none
    sample = _sample(rows)
    fences = Fences.of_sample(sample, rows.origin)
    del sample
    if not len(fences.columns):
        return none
    far: list[NDArray[np.intp]] = []
    excesses: list[Array] = []
    start = count = 0
    for block in rows.blocks(fences.columns):
        scaled = (block - fences.centre) / fences.unit
        size = np.abs(scaled)
        distance = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        chosen = np.flatnonzero((size > fences.reach).any(axis=1) | (distance > fences.distance))
        far.append(start + chosen)
        excesses.append(np.copysign(np.maximum(size[chosen] - 1.0, 0.0), scaled[chosen]))
        start += len(block)
        count += len(chosen)
        # So many are no exception to the 90 % quantiles, and this bounds what is kept of them.
        if count > MOST_FAR * n:
            return none
    found = np.concatenate(far)
    scattered = ~_in_cluster(np.concatenate(excesses), n)
    if scattered.sum() > MOST_OUTLYING * n:
        return none
    none[found[scattered]] = True
    return none


def _sample(rows: Rows) -> Array:
    """Some of the rows, the same whenever asked; all of them where they are few."""
    most = min(SAMPLED_ROWS, max(FEWEST_SAMPLED, SAMPLE_BYTES // (8 * rows.n_features)))
    chosen = np.ones(rows.n_rows, dtype=bool)
    if rows.n_rows > most:
        chosen[:] = False
        chosen[np.random.default_rng(0).choice(rows.n_rows, most, replace=False)] = True
    return np.concatenate([block.copy() for block in rows.subset(chosen).blocks()])


def _in_cluster(excess: Array, n_rows: int) -> Mask:
    """Which far rows have a cluster's worth of others close by."""
    needed = max(FEWEST_IN_CLUSTER, int(np.ceil(SMALLEST_CLUSTER * n_rows)))
    m = len(excess)
    if m < needed:
        return np.zeros(m, dtype=bool)
    compared = excess
    if m > COMPARED_ROWS:
        compared = excess[np.random.default_rng(0).choice(m, COMPARED_ROWS, replace=False)]
        needed = max(FEWEST_IN_CLUSTER, needed * COMPARED_ROWS // m)
    # A row is its own nearest neighbour where it is compared.
    distances, _ = NearestNeighbors(n_neighbors=min(needed, len(compared))).fit(compared).kneighbors(excess)
    return distances[:, -1] <= CLOSE * np.linalg.norm(excess, axis=1)
