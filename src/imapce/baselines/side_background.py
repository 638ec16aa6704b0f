"""What SIDE's user already knows, as a distribution: each row i ~ N(μᵢ, Σᵢ), as close to N(0, I) as that allows.

A statement names rows I and unit vectors w and fixes, in expectation, what was observed (zᵢ = wᵀxᵢ, z̄ its mean in I):

    linear      E Σ_{i∈I} wᵀxᵢ        = Σ zᵢ
    quadratic   E Σ_{i∈I} (wᵀxᵢ − z̄)² = Σ (zᵢ − z̄)²

Among all distributions that do, the background is the one closest in KL to N(0, I) (Puolamäki et al. 2020). Rows in
the same statements share μ and Σ, so the parameters number one (μ, Σ) per group of rows, however many rows there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from imapce.common.arrays import Array, Codes, Mask
from imapce.common.checks import as_matrix, random_generator
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.priors.kinds import Subset

# A direction in which the rows of a statement do not vary gets this share of the mean column variance as its target:
# with a target of 0 its multiplier grows without end and whitening divides by zero.
FLOOR = 1e-6
# Far from the root a step doubles 1 + λc, so this reaches any target a float can hold.
MOST_NEWTON_STEPS = 2000


@dataclass(frozen=True)
class Gaussian:
    """N(mean, axes·diag(variances)·axesᵀ), the distribution of every row of one group."""

    mean: Array
    variances: Array
    axes: Array

    @property
    def covariance(self) -> Array:
        return (self.axes * self.variances) @ self.axes.T

    def whiten(self, X: Array) -> Array:
        """Σ^(−1/2)(x − μ) with the symmetric root: another root would turn each group by an angle of its own."""
        return ((X - self.mean) @ self.axes / np.sqrt(self.variances)) @ self.axes.T

    def sample(self, n_rows: int, generator: np.random.RandomState) -> Array:
        return self.mean + generator.standard_normal((n_rows, len(self.mean))) @ (self.axes * np.sqrt(self.variances)).T


@dataclass(frozen=True)
class Statement:
    """One thing said about the rows I: their sums and spreads along orthonormal `axes` (d, m)."""

    rows: Mask
    axes: Array
    totals: Array
    squares: Array
    floored: Mask
    # Whether the axes are those of the rows' own covariance, all d of them: μ and Σ of these rows are then settled.
    settles: bool

    @cached_property
    def size(self) -> int:
        return int(self.rows.sum())

    @cached_property
    def centres(self) -> Array:
        return self.totals / self.size

    @cached_property
    def gaussian(self) -> Gaussian:
        """The observed mean and the observed variances along the axes: what a statement about a whole group fixes."""
        return Gaussian(self.axes @ self.centres, self.squares / self.size, self.axes)


class Background:
    """The maximum-entropy background of the rows X (n, d), built up statement by statement, then `fit`.

    X should have zero means and unit variances, since the start is N(0, I) for every row.

    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> background = Background(X).margin().cluster(X[:, 0] > 1).fit()
    >>> round(float(background.whiten(X).std()), 1)
    1.0
    """

    def __init__(self, X: Any):
        self._X = as_matrix("X", X)
        self.n_rows, self.n_features = self._X.shape
        with np.errstate(over="ignore"):
            variance = float(self._X.var(axis=0).mean())
        if not 1e-9 < variance < 1e9:
            raise InvalidValueError(
                "X must be standardised, since the background starts from N(0, I); its columns have a mean variance "
                f"of {variance:.3g}. Divide them by their standard deviations."
            )
        self._floor = FLOOR * variance
        self.statements: list[Statement] = []

    # --- statements ----------------------------------------------------------------------------------------------

    def margin(self) -> Self:
        """The mean and the variance of each column are known."""
        return self._state(np.ones(self.n_rows, dtype=bool), np.eye(self.n_features), settles=False)

    def cluster(self, rows: Any) -> Self:
        """These rows (a mask or positions) are a cluster: their mean and covariance are known.

        The unit vectors are the eigenvectors of their covariance, in order of falling variance.
        """
        chosen = Subset.of(rows).row_mask(self.n_rows)
        return self._state(chosen, principal_axes(self._X[chosen]), settles=True)

    def _state(self, rows: Mask, axes: Array, *, settles: bool) -> Self:
        Z = self._X[rows] @ axes
        squares = Z.var(axis=0) * len(Z)
        floor = len(Z) * self._floor
        self.statements.append(
            Statement(rows, axes, Z.sum(axis=0), np.maximum(squares, floor), squares < floor, settles)
        )
        return self

    # --- fitting -------------------------------------------------------------------------------------------------

    def fit(
        self,
        *,
        max_sweeps: int = 1000,
        tol: float = 1e-6,
        closed_form: bool = True,
        callback: Callable[[int, float], None] | None = None,
    ) -> Self:
        """Solve for μ and Σ of every group: in closed form where there is one, else sweep over the constraints.

        A sweep meets one constraint after the other exactly and thereby disturbs the earlier ones; it ends when
        `residual`, the largest |E − observed|/|I| of all constraints after a whole sweep, is below `tol`. `callback`
        is called with the sweep and its residual, and may raise to cancel.
        """
        groups, first = self._grouped()
        settled = self._closed_form() if closed_form else None
        sweeps = 0
        if settled is not None:
            gaussians = [next(gaussian for rows, gaussian in settled if rows[row]) for row in first]
            residual = largest_residual(
                self.statements,
                groups,
                [gaussian.mean for gaussian in gaussians],
                lambda g, axes: gaussians[g].variances @ (gaussians[g].axes.T @ axes) ** 2,
            )
        else:
            solution = _Sweeps(self.statements, groups, self.n_features)
            residual = np.inf
            while residual >= tol and sweeps < max_sweeps:
                solution.sweep()
                sweeps += 1
                residual = solution.residual()
                if callback is not None:
                    callback(sweeps, residual)
            if residual >= tol:
                warnings.warn(
                    f"the background stopped after {sweeps} sweeps with a residual of {residual:.2g}, above "
                    f"tol={tol:g}; raise max_sweeps or accept it.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            gaussians = solution.gaussians()
        self.groups, self.gaussians = groups, gaussians
        self.n_sweeps, self.residual = sweeps, residual
        return self

    def _grouped(self) -> tuple[Codes, Codes]:
        """The group of each row, rows with the same statements being one, and the first row of each group."""
        if not self.statements:
            return np.zeros(self.n_rows, dtype=np.intp), np.zeros(1, dtype=np.intp)
        pattern = np.packbits(np.stack([statement.rows for statement in self.statements]), axis=0)
        _, first, groups = np.unique(pattern, axis=1, return_index=True, return_inverse=True)
        return groups.reshape(-1), first

    def _closed_form(self) -> list[tuple[Mask, Gaussian]] | None:
        """The solution where disjoint clusters settle their rows and nothing else bears on both them and the rest.

        With multipliers of 0 for all else, a cluster's rows take the observed μ and Σ; a statement about a union of
        clusters is then met already, and by uniqueness this is the solution. Covered: margins only, all rows as one
        cluster, a partition (a label prior) with or without margins, disjoint clusters without margins. Not covered:
        clusters that leave rows over and margins, whose multipliers for the rest would turn the clusters' Σ.
        """
        family: list[Statement] = []
        taken = np.zeros(self.n_rows, dtype=bool)
        for statement in sorted((s for s in self.statements if s.settles), key=lambda s: s.size):
            if not (taken & statement.rows).any():
                family.append(statement)
                taken |= statement.rows
        others = [s for s in self.statements if not any(s is member for member in family)]
        for member in family:
            if any(0 < int((s.rows & member.rows).sum()) < member.size for s in others):
                return None
        settled = [(member.rows, member.gaussian) for member in family]
        rest = ~taken
        if not rest.any():
            return settled
        bearing = [s for s in others if (s.rows & rest).any()]
        if not bearing:
            d = self.n_features
            return [*settled, (rest, Gaussian(np.zeros(d), np.ones(d), np.eye(d)))]
        if len(bearing) > 1 or bearing[0].axes.shape[1] < self.n_features or not np.array_equal(bearing[0].rows, rest):
            return None
        return [*settled, (rest, bearing[0].gaussian)]

    # --- what the fitted background gives ------------------------------------------------------------------------

    def whiten(self, X: Any, groups: Any = None) -> Array:
        """Y with yᵢ = Σ^(−1/2)(xᵢ − μ) of the row's group; if all there is to see were known, Y would be N(0, I) noise.

        `groups` are those of the fitted rows unless given.
        """
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise InvalidValueError(f"X must have the {self.n_features} columns of fit; got shape {X.shape}.")
        places = self._places(groups, len(X))
        whitened = np.empty_like(X)
        for g, gaussian in enumerate(self.gaussians):
            whitened[places == g] = gaussian.whiten(X[places == g])
        return whitened

    def sample(self, random_state: int | np.random.RandomState | None = None, groups: Any = None) -> Array:
        """One row drawn for each row of X from what is known about it, to be drawn beside the data."""
        generator = random_generator(random_state)
        places = self._places(groups, self.n_rows if groups is None else len(groups))
        drawn = np.empty((len(places), self.n_features))
        for g, gaussian in enumerate(self.gaussians):
            drawn[places == g] = gaussian.sample(int((places == g).sum()), generator)
        return drawn

    def floored_shares(self) -> tuple[Array, Array]:
        """Directions (d, d) and for each the share of the rows known not to vary along it, least first.

        The eigenvectors and eigenvalues of Σ (|I|/n) P_I, P_I the projector on the directions of a statement whose
        target was raised to the floor. A column that labels the clusters is floored for all rows.
        """
        total = np.zeros((self.n_features, self.n_features))
        for statement in self.statements:
            fixed = statement.axes[:, statement.floored]
            total += (statement.size / self.n_rows) * (fixed @ fixed.T)
        shares, directions = eigh(total)
        return directions, np.clip(shares, 0.0, 1.0)

    def _places(self, groups: Any, n_rows: int) -> Codes:
        if not hasattr(self, "gaussians"):
            raise InvalidValueError("the background is not fitted yet; call fit() after the last statement.")
        places = self.groups if groups is None else np.asarray(groups)
        if places.shape != (n_rows,):
            raise InvalidValueError(
                f"groups must name one group for each of {n_rows} rows; got shape {places.shape}. Rows that were not "
                "fitted need groups=."
            )
        if places.dtype.kind not in "iu":
            raise InvalidTypeError(f"groups must be whole numbers; got values of type {places.dtype}.")
        if places.min() < 0 or places.max() >= len(self.gaussians):
            raise InvalidValueError(f"groups must lie between 0 and {len(self.gaussians) - 1}; got {places.max()}.")
        return places


class _Sweeps:
    """Cyclic exact updates of μ and Σ of every group g, one constraint after the other.

    A linear one adds λw to Σ⁻¹μ: μ += λb with b = Σw. A quadratic one adds λwwᵀ to Σ⁻¹ and λz̄w to Σ⁻¹μ, which with
    c = wᵀb gives Σ −= λ/(1 + λc) bbᵀ and μ += λ(z̄ − wᵀμ)/(1 + λc) b.
    """

    def __init__(self, statements: list[Statement], groups: Codes, n_features: int):
        n_groups = int(groups.max()) + 1
        self.statements = statements
        self.groups = groups
        self.inside = [np.bincount(groups[s.rows], minlength=n_groups) for s in statements]
        self.mean = np.zeros((n_groups, n_features))
        self.covariance = np.tile(np.eye(n_features), (n_groups, 1, 1))

    def sweep(self) -> None:
        for statement, inside in zip(self.statements, self.inside, strict=True):
            members = np.flatnonzero(inside)
            counts = inside[members].astype(np.float64)
            for axis, w in enumerate(statement.axes.T):
                b = self.covariance[members] @ w
                c = b @ w
                self.mean[members] += (statement.totals[axis] - counts @ (self.mean[members] @ w)) / (counts @ c) * b
                offsets = self.mean[members] @ w - statement.centres[axis]
                multiplier = quadratic_multiplier(counts, c, offsets, statement.squares[axis])
                shrink = multiplier / (1 + multiplier * c)
                self.mean[members] -= (shrink * offsets)[:, None] * b
                self.covariance[members] -= shrink[:, None, None] * b[:, :, None] * b[:, None, :]

    def residual(self) -> float:
        """How far the distribution still is from the means and variances it is to have, at most over all statements.

        The sweeps of `fit` end where this falls below their tolerance.
        """
        return largest_residual(
            self.statements,
            self.groups,
            list(self.mean),
            # Its variance along the axes of a statement: aᵀΣa.
            lambda g, axes: np.einsum("im,im->m", axes, self.covariance[g] @ axes),
        )

    def gaussians(self) -> list[Gaussian]:
        decomposed = [eigh(covariance) for covariance in self.covariance]
        return [Gaussian(mean, values, axes) for mean, (values, axes) in zip(self.mean, decomposed, strict=True)]


def quadratic_multiplier(counts: Array, c: Array, offsets: Array, target: float) -> float:
    """λ with F(λ) = Σ n_g [c_g/(1 + λc_g) + (offset_g/(1 + λc_g))²] = target, by Newton's method from 0.

    F is convex and falling on λ > −1/max c, so one step lands left of the root and the rest climb to it. The first may
    land beyond the pole: it is held where the group of largest c alone exceeds the target.

    >>> quadratic_multiplier(np.array([4.0]), np.array([1.0]), np.array([0.0]), 2.0)
    1.0
    """
    widest = int(np.argmax(c))
    least = (0.5 * min(1.0, counts[widest] * c[widest] / target) - 1) / c[widest]
    multiplier = 0.0
    for _ in range(MOST_NEWTON_STEPS):
        shrunk = c / (1 + multiplier * c)
        squares = (offsets / (1 + multiplier * c)) ** 2
        excess = counts @ (shrunk + squares) - target
        step = max(float(excess / (counts @ (shrunk * (shrunk + 2 * squares)))), least - multiplier)
        multiplier += step
        if abs(step) <= 1e-14 * (abs(multiplier) + 1 / c[widest]):
            break
    return multiplier


def largest_residual(
    statements: list[Statement],
    groups: Codes,
    means: list[Array],
    variance_along: Callable[[int, Array], Array],
) -> float:
    """max |E − observed|/|I| over every constraint; `variance_along(g, axes)` is wᵀΣ_g w for each axis."""
    worst = 0.0
    for statement in statements:
        inside = np.bincount(groups[statement.rows], minlength=len(means))
        linear, quadratic = -statement.totals, -statement.squares
        for g in np.flatnonzero(inside):
            e = means[g] @ statement.axes
            spread = variance_along(int(g), statement.axes) + (e - statement.centres) ** 2
            linear, quadratic = linear + inside[g] * e, quadratic + inside[g] * spread
        worst = max(worst, float(np.abs([linear, quadratic]).max()) / statement.size)
    return worst


def principal_axes(X: Array) -> Array:
    """The eigenvectors of the covariance of X as columns, in order of falling variance."""
    centred = X - X.mean(axis=0)
    return eigh(centred.T @ centred)[1][:, ::-1]
