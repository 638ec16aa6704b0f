"""The contract of an engine: rows that can be reduced to small matrices, and are never looked at.

The mathematics asks for sums over all rows z, given small matrices W, and gets small matrices back. Whoever answers is
an engine, whether its rows lie in memory, in files, on a card or on a cluster:

    must have       moments (by `_compute_moments`), quartic, scatter_product, subset, without, blocks
    may do better   fourth_powers, project, project_some, project_exactly, cross, reduce_blocks, add_blocks, digest
    says of itself  engine, because, folded, precision, resolution, xp, origin

An engine that reads its rows as blocks of float64 inherits the sums from `BlockRows` (`rows/dense.py`) and writes
`blocks`, `subset` and `without`.

Rows are read as z − origin, and every result is in these coordinates. The origin is zero unless a column lies so far
from it that sums would cancel (a column of years: mean 2000, spread 5).
"""

from __future__ import annotations

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from imapce.common.arrays import Array, Codes, Mask

AnyArray = NDArray[np.generic]

FAR_FROM_ORIGIN = 1e3  # the ratio of mean to spread beyond which rows are read less their mean
LEAST_REMAINDER = 1e-4  # the share of a variance that must remain in a difference


@dataclass(frozen=True)
class Moments:
    """First and second moments of the rows: n, m, the column variances and Σ(z−m)(z−m)ᵀ.

    `scatter` is None where a d×d matrix would outweigh the data; then `Rows.scatter_product` takes its place.

    >>> from imapce.rows.dense import DenseRows
    >>> DenseRows(np.array([[0.0, 1.0], [2.0, 1.0]])).moments().scatter
    array([[2., 0.],
           [0., 0.]])
    """

    n_rows: int
    mean: Array
    variance: Array
    scatter: Array | None

    @property
    def is_far_from_zero(self) -> bool:
        """Whether a column lies so far from zero that sums of its products lose more than three digits."""
        spread = np.sqrt(self.variance)
        return bool(np.any((spread > 0) & (np.abs(self.mean) > FAR_FROM_ORIGIN * spread)))

    def join(self, other: Moments) -> Moments:
        """Of both rows together, each about its own mean: nothing cancels (Chan, Golub and LeVeque 1979)."""
        n = self.n_rows + other.n_rows
        apart = other.mean - self.mean
        weight = self.n_rows * other.n_rows / n
        scatter = None
        if self.scatter is not None and other.scatter is not None:
            scatter = self.scatter + other.scatter + weight * np.outer(apart, apart)
        variance = (self.variance * self.n_rows + other.variance * other.n_rows + weight * apart**2) / n
        return Moments(n, self.mean + apart * (other.n_rows / n), variance, scatter)

    def minus(self, part: Moments) -> Moments | None:
        """Return the moments without those of a part of the rows; None if more than four digits would cancel."""
        n = self.n_rows - part.n_rows
        shift = part.mean - self.mean
        weight = self.n_rows * part.n_rows / max(n, 1)
        variance = (self.variance * self.n_rows - part.variance * part.n_rows - weight * shift**2) / max(n, 1)
        cancels = (variance <= LEAST_REMAINDER * self.variance) & (self.variance > 0)
        if self.scatter is None or part.scatter is None or cancels.any():
            return None
        scatter = self.scatter - part.scatter - weight * np.outer(shift, shift)
        return Moments(n, self.mean - shift * (part.n_rows / n), np.maximum(variance, 0.0), scatter)


@dataclass(frozen=True)
class Quartic:
    """What one pass over Z leaves behind, for R frames W at once, with u = Wᵀz − offset and s = ‖u‖².

    `weighted` (R, d, k) is Σ s z uᵀ and `total` (R, k) is Σ s u. The kurtosis needs no more: Σ s uuᵀ is
    Wᵀ·weighted − offset·total, and Σ s² is its trace.

    >>> from imapce.rows.dense import DenseRows
    >>> DenseRows(np.eye(3)).quartic(np.ones((1, 3, 1)), np.zeros((1, 1))).weighted[0].ravel()
    array([1., 1., 1.])
    """

    weighted: Array
    total: Array


class Rows(ABC):
    """Rows of a table that can only be reduced, never looked at.

    >>> from imapce.rows.dense import DenseRows
    >>> R, d, k = 5, 3, 2
    >>> DenseRows(np.eye(d)).quartic(np.ones((R, d, k)), np.zeros((R, k))).weighted.shape == (R, d, k)
    True
    """

    n_rows: int
    n_features: int
    origin: Array
    # The engine's name, and in words when it is the one to take.
    engine: str
    because: str
    # Whether an evaluation costs nothing in n, so that the solver may ask for hundreds of frames at once.
    folded: bool = False
    # The relative size of what rounding does to an evaluation: float64 sums, unless the engine says otherwise.
    precision: float = 1e-13
    # The least variance of a direction, relative to the mean column's, whose fourth moment is more than rounding.
    resolution: float = 1e-10
    # The library that computes with the rows where they lie: NumPy, or CuPy for those on a card.
    xp: Any = np

    # --- what every engine answers ------------------------------------------------------------------------------------

    # Not a cached_property: before Python 3.12 that holds one lock for all rows, and chunks reduced by other threads
    # while a sum over them is asked for would wait for each other.
    _kept_moments: Moments | None = None
    _kept_cross: tuple[bytes, Array] | None = None

    def moments(self) -> Moments:
        """n, column means and variances and, where it is affordable, the d×d scatter matrix; computed once."""
        if self._kept_moments is None:
            self._kept_moments = self._compute_moments()
        return self._kept_moments

    @abstractmethod
    def _compute_moments(self) -> Moments: ...

    @abstractmethod
    def quartic(self, W: Array, offset: Array) -> Quartic:
        """One pass: Σ s z uᵀ and Σ s u for every frame of W (R, d, k) with its offset (R, k)."""

    @abstractmethod
    def scatter_product(self, W: Array, offset: Array) -> Array:
        """Σ z uᵀ (d, c) with u = Wᵀz − offset, for W (d, c): a product with the scatter matrix that was not formed."""

    @abstractmethod
    def subset(self, mask: Mask) -> Rows:
        """The rows where `mask` is true, with the same origin."""

    @abstractmethod
    def without(self, mask: Mask) -> Rows:
        """The rows where `mask` is false, as if the others had never been there: nothing learned from them is left."""

    @abstractmethod
    def blocks(self, columns: Codes | None = None) -> Iterator[Array]:
        """The rows as float64 blocks that fit in cache, in order, or some of their columns; not to be written to."""

    def with_origin(self, origin: Array, moments: Moments | None = None) -> Self:
        """The same rows read less another origin; `moments` are those about it, where they are known already."""
        rows = copy.copy(self)
        rows.origin, rows._kept_moments = origin, moments
        return rows

    # --- what can be made of that, and some engines do better ---------------------------------------------------------

    def split(self, mask: Mask) -> tuple[Rows, Rows]:
        """Return the rows in `mask` and the others; moments of the larger part are those of all minus the smaller's."""
        return self.share_moments(self.subset(mask), self.subset(~mask))

    def share_moments(self, part: Rows, rest: Rows) -> tuple[Rows, Rows]:
        """Return two parts of the rows after subtracting moments for the larger one."""
        smaller, larger = sorted((part, rest), key=lambda rows: rows.n_rows)
        if not self.folded and smaller.n_rows and larger._kept_moments is None:
            larger._kept_moments = self.moments().minus(smaller.moments())
        return part, rest

    @property
    def unfolded(self) -> Rows:
        """The rows themselves, where what is asked for is another reduction than the one they were folded for."""
        return self

    def fourth_powers(self, W: Array, centre: Array) -> Array:
        """One pass: Σ s² of every frame, with u = Wᵀ(z − centre), where no gradient is asked for."""
        offset = centre @ W
        result = self.quartic(W, offset)
        return np.einsum("rdk,rdk->r", W, result.weighted) - np.einsum("rk,rk->r", offset, result.total)

    def project(self, W: Array, offset: Array) -> Array:
        """The n × c matrix of Wᵀz − offset."""
        result, start = np.empty((self.n_rows, W.shape[1])), 0
        for part in self.reduce_blocks(partial(_product, W=W)):
            np.subtract(part, offset, out=result[start : start + len(part)])
            start += len(part)
        return result

    def project_some(self, W: Array, offset: Array, mask: Mask) -> Array:
        """`project` of the rows where `mask` is true."""
        return self.subset(mask).project(W, offset)

    def project_exactly(self, W: Array, offset: Array) -> Array:
        """`project` to rounding of float64, where the order of the results is what is asked for."""
        return self.project(W, offset)

    def cross(self, values: Array) -> Array:
        """Return Σ z lᵀ (d, q), l the values (n, q) beside the rows; the last result is kept for later steps."""
        key = hashlib.blake2b(np.ascontiguousarray(values).data).digest()
        if self._kept_cross is None or self._kept_cross[0] != key:
            (result,) = self.add_blocks(_cross, beside=values)
            self._kept_cross = key, result
        return self._kept_cross[1]

    def native_blocks(self, columns: Codes | None = None) -> Iterator[Any]:
        """`blocks` as arrays of `xp`: those on a card need not leave it."""
        return self.blocks(columns)

    def reduce_blocks(self, reduce: Callable[[Any], Any], columns: Codes | None = None) -> Iterator[Any]:
        """What `reduce` makes of each block, in order, computed where the rows lie; for what is not in the contract.

        It must not depend on where one block ends and the next begins, and be a function that can be sent.
        """
        return map(reduce, self.native_blocks(columns))

    def add_blocks(self, reduce: Callable[..., tuple[Any, ...]], *, beside: AnyArray | None = None) -> tuple[Any, ...]:
        """The sums over all blocks of the arrays that `reduce` makes of each, added where the rows lie.

        With `beside` (n, ...) it is called with a block and with what stands beside its rows.
        """
        total: tuple[Any, ...] = ()
        start = 0
        for block in self.native_blocks() if beside is None else self.blocks():
            stop = start + len(block)
            part = reduce(block) if beside is None else reduce(block, beside[start:stop])
            start = stop
            if not total:
                total = part
                continue
            for sum_, more in zip(total, part, strict=True):
                sum_ += more
        return total

    def digest(self) -> str:
        """What tells these numbers, in this order, from any others."""
        digest = hashlib.blake2b(digest_size=16)
        for block in self.blocks():
            # Adding zero turns -0.0 into 0.0, which are equal numbers with different bytes.
            digest.update(np.ascontiguousarray(block + 0.0).tobytes())
        return digest.hexdigest()


def _product(block: Array, W: Array) -> Array:
    return block @ W


def _cross(block: Array, values: Array) -> tuple[Array]:
    return (block.T @ values,)


def scatter_is_affordable(n_features: int, n_bytes: int) -> bool:
    """Whether to form d×d: when it stays under 64 MiB or an eighth of the data, whichever is more."""
    return 8 * n_features**2 <= max(64 << 20, n_bytes // 8)
