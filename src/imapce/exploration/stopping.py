"""Is there structure left? A Monte-Carlo test of H₀: the unexplored rows Z are one Gaussian, of any covariance.

Whether there is any at the start is judged where clusters are found (`clusters/structure.py`). This test is made where
it is asked for, of the rows that are left at a step, also beside a background, which that verdict knows nothing of.

    η_θ(p) = share of the variance of Zθ between its lowest share p of the rows and the others
    γ(p)   = the same of a Gaussian
    T      = max_{θ,p} (η_θ(p) − γ(p))/(1 − γ(p)),        s ≤ p ≤ 1 − s

T is how much of the variance that a Gaussian leaves unexplained one cut explains along the clearest direction, so two
halves and a minority of s = 3 % are measured alike. It is a function of the rows whitened in their principal axes, and
under H₀ these have the same law whatever the covariance: with n rows and q axes alone the null is known, and drawing
Gaussian tables and searching each in the same way gives an exact test (Barnard 1963), p = (1 + #{T* ≥ T})/(B + 1).

Heavy tails and outliers are no clusters. Centre and shape are those of an M-estimator, radii are replaced by those of a
Gaussian of the same rank, so that an elliptical cloud with any tails looks Gaussian; and along θ the outermost share s
on each side counts as lying where that share begins, so that fewer rows than that cannot make a cut.

Where the test rejects, what is left need not be clusters: a skewed cloud is no Gaussian either, nor are many rows whose
columns are heavy-tailed one by one. Of tables of 2,000×5 with Student's t(5) and t(3) in every column 5 of 30 and 16 of
20 were rejected at 0.05; with one radius for all columns these were 2 of 30 and none of 20.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import gammaincinv, ndtri

from imapce.clusters.axes import sphering
from imapce.common.arrays import Array, Mask
from imapce.common.checks import is_number
from imapce.common.work import UNWATCHED, Watch, one_thread
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.rows.standardized import StandardizedRows

SMALLEST_SHARE = 0.03  # s: fewer rows than that may be a tail
TESTED_ROWS = 2_000
DRAWS = 99
# So many draws at least as clear as the data tell that p is above 0.1; more only sharpen it (Besag and Clifford 1991).
ENOUGH = 10
REWEIGHTINGS = 3
LEADING_AXES = 8
KURTOSIS_AXES = 4  # from either end
ITERATIONS = 8


@dataclass(frozen=True)
class StructureTest:
    """The test with the draws of one seed.

    >>> StructureTest(0).p_value(np.random.default_rng(0).standard_normal((300, 5))) > 0.05
    True
    """

    seed: int

    def p_value(self, points: Array, watch: Watch = UNWATCHED) -> float:
        """p of rows (n, c) against one Gaussian; 1 where they do not vary."""
        with one_thread():
            whitened = ((points - points.mean(axis=0)) @ sphering(points))[:, ::-1]
            n, q = whitened.shape
            if q == 0:
                return 1.0
            # Rows too few for their axes are all alike once whitened, up to rounding, and are to count as ties.
            observed = clearest_cut(whitened) - 1e-9
            reached = 0
            for number in range(DRAWS):
                watch.tell("testing for structure", number / DRAWS)
                reached += clearest_cut_by_chance(self.seed, n, q, number) >= observed
                if reached == ENOUGH:
                    return reached / (number + 1)
        return (1 + reached) / (DRAWS + 1)

    def of_step(self, Z: StandardizedRows, basis: Array, watch: Watch = UNWATCHED) -> float:
        """p of the rows that a fitted model was to pull apart, or of a sample of them, in the axes it left."""
        sample: Mask | None = None
        if Z.n_rows > TESTED_ROWS:
            sample = np.zeros(Z.n_rows, dtype=bool)
            chosen = np.random.default_rng(self.seed).choice(Z.n_rows, TESTED_ROWS, replace=False)
            sample[Z.by_content(chosen)] = True
        return self.p_value(Z.project(basis, sample), watch)


# Later steps often have as many rows and axes as one before; a thousand numbers are all that is kept.
@functools.lru_cache(maxsize=1_000)
def clearest_cut_by_chance(seed: int, n: int, q: int, number: int) -> float:
    """T of the Gaussian table (n, q) with this number."""
    rng = np.random.default_rng([seed, n, q, number])
    points = rng.standard_normal((n, q))
    return clearest_cut(((points - points.mean(axis=0)) @ sphering(points))[:, ::-1])


def clearest_cut(whitened: Array) -> float:
    """T of whitened rows (n, q), the axis of most variance first."""
    rows = _with_gaussian_radii(whitened)
    projections = np.sort(rows @ _directions(rows), axis=0)
    gaussian = _gaussian_shares(len(rows))
    excess = (_explained_shares(projections) - gaussian) / np.maximum(1 - gaussian, np.finfo(np.float64).eps)
    return float(excess.max())


def _respread(rows: Array) -> Array:
    """C^(−½) of rows, which turns no axis further than it must: the leading ones stay the leading ones."""
    values, axes = np.linalg.eigh(rows.T @ rows / len(rows))
    return (axes / np.sqrt(np.maximum(values, 1e-10 * values[-1]))) @ axes.T


def _with_gaussian_radii(whitened: Array) -> Array:
    """The rows at the radii that Gaussian ones of the same rank have, about the centre and in the shape these give.

    Centre and shape are settled first and the radii moved once: moved about a centre that four rows of 300 in the plane
    had dragged away, the others looked split in 14 of 40 tables, and moved at the end in 2.
    """
    rows = whitened
    if rows.shape[1] == 1:
        # On a line every symmetric cloud is an elliptical one, two halves as well.
        return rows
    weights = _radial_weights(rows)
    for _ in range(REWEIGHTINGS):
        rows = rows - weights @ rows / weights.sum()
        rows = rows @ _respread(rows * weights[:, None])
        weights = _radial_weights(rows)
    moved = rows * weights[:, None]
    moved -= moved.mean(axis=0)
    return moved @ _respread(moved)


def _radial_weights(rows: Array) -> Array:
    n, q = rows.shape
    radii = np.linalg.norm(rows, axis=1)
    weights = np.empty(n)
    weights[np.argsort(radii, kind="stable")] = _gaussian_radii(n, q)
    return weights / np.maximum(radii, np.finfo(np.float64).tiny ** 0.5)


@lru_cache(maxsize=32)
def _gaussian_radii(n: int, q: int) -> Array:
    """√ of the quantiles of χ²_q at (i − ½)/n."""
    return np.sqrt(2.0 * gammaincinv(q / 2.0, (np.arange(n) + 0.5) / n))


def _directions(rows: Array) -> Array:
    """Unit vectors (q, m) along which kurtosis or skewness is extreme: θ ← E[x u³] − 3θ and θ ← E[x u²], u = θᵀx.

    These are the fixed points of FastICA (Hyvärinen 1999). Kurtosis is extreme where halves or small minorities lie
    apart and blind to a fifth beside four, where skewness tells. Both begin at the leading axes, where most clusters
    lie that are far apart, and at the ends of the kurtosis matrix: from sixteen of these alone halves 4 σ apart were
    found in 9 of 20 tables of 1,000×33, with the leading axes in all.
    """
    n, q = rows.shape
    squared_radii = np.einsum("ij,ij->i", rows, rows)
    axes = np.linalg.eigh((rows * squared_radii[:, None]).T @ rows)[1]
    ends = axes if q <= 2 * KURTOSIS_AXES else axes[:, np.r_[:KURTOSIS_AXES, q - KURTOSIS_AXES : q]]
    starts = np.column_stack([np.eye(q)[:, :LEADING_AXES], ends])
    width = starts.shape[1]
    directions = np.column_stack([starts, starts])
    for _ in range(ITERATIONS):
        u = rows @ directions
        contrast = u * u
        contrast[:, :width] *= u[:, :width]
        moved = rows.T @ contrast / n
        moved[:, :width] -= 3.0 * directions[:, :width]
        length = np.linalg.norm(moved, axis=0)
        # A direction without any skewness (points and their mirror images) has nowhere to go.
        directions = np.where(length > 1e-12, moved / np.maximum(length, 1e-12), directions)
    return directions


def _explained_shares(ordered: Array) -> Array:
    """η(p) of ordered columns (n, m), for every cut that leaves the share s on either side; ends drawn in to s."""
    n = len(ordered)
    fewest = int(np.ceil(SMALLEST_SHARE * n))
    inside = np.clip(ordered, ordered[fewest - 1], ordered[n - fewest])
    inside = inside - inside.mean(axis=0)
    variance = np.mean(inside**2, axis=0)
    share = np.arange(fewest, n - fewest + 1)[:, None] / n
    lower = np.cumsum(inside, axis=0)[fewest - 1 : n - fewest] / n
    between = lower**2 / (share * (1 - share))
    return np.divide(between, variance, out=np.zeros_like(between), where=variance > 1e-12)


@lru_cache(maxsize=32)
def _gaussian_shares(n: int) -> Array:
    """γ(p), from the quantiles of the normal at (i − ½)/n."""
    return _explained_shares(ndtri((np.arange(n) + 0.5) / n)[:, None])


def require_significance(value: Any) -> None:
    """Refuse a level that is neither None nor one that the test can reach.

    >>> require_significance(0.05)
    """
    if value is None:
        return
    if not is_number(value):
        raise InvalidTypeError(f"significance must be None or a number between 0 and 1; got {value!r}.")
    if not 0 < value < 1:
        raise InvalidValueError(f"significance must lie between 0 and 1, as 0.05 does; got {value!r}.")
    if value < 1 / (DRAWS + 1):
        raise InvalidValueError(
            f"significance must be at least {1 / (DRAWS + 1):g}, the smallest p-value that {DRAWS} draws can give; "
            f"got {value!r}."
        )
