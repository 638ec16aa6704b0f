"""Projection pursuit by kurtosis alone: the view with the least Mardia kurtosis, whatever its variance.

In whitened coordinates w (mean 0, covariance I) a view is an orthonormal V (q, k) and

    κ(V) = (1/n) Σ sᵢ²,   sᵢ = ‖Vᵀwᵢ‖²,   ∇κ = 4 B(V) V,   B(V) = (1/n) Σ sᵢ wᵢwᵢᵀ.

The quasi-power step (Hou and Wentzell 2011, for one axis) is V ← orth(B(V)⁻¹V). It stays where it is exactly where B V
lies in the span of V, that is where the gradient has no tangent part. With G = (VᵀB⁻¹V)⁻¹ the step moves along
E = B⁻¹VG − V, and the slope of κ along E is 4(tr G − tr VᵀBV) ≤ 0: a step that overshoots is halved until κ falls.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from imapce.baselines.cpca import entries_of
from imapce.common.arrays import Array, Codes, Mask
from imapce.common.checks import random_generator, require_number, require_verbose
from imapce.common.progress import watching
from imapce.common.words import counted
from imapce.common.work import UNWATCHED, Tell, Watch
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.base import LinearView, check_common, data_of, keep_view
from imapce.priors.base import Prior
from imapce.rows.base import Rows
from imapce.rows.standardized import StandardizedRows
from imapce.search.descent import canonical_frame, random_frames, tangent, transpose

# Directions with less variance than this share of the largest are rounding, and their kurtosis too.
NEGLIGIBLE = 1e-10
# A step must keep this share of the fall its slope promises.
SUFFICIENT = 1e-4
SHORTEST_STEP = 1e-6
STEPS = (0.1, 4.0)
RIDGE = 1e-12


class KurtosisPursuit(LinearView):
    """The view of least kurtosis κ(ZV), that is of the clearest clusters, without regard to variance.

    Z is X, or with Subset(rows) the rows that are not known; with Attributes(columns) the search leaves those columns
    out. A background says nothing about kurtosis, so Samples is refused.

    Parameters
    ----------
    n_components : axes of the view.
    n_starts : starting views: both ends of the kurtosis matrix Σ‖w‖²wwᵀ, then random ones.
    max_iter : iterations after which a start is stopped; each is a pass over the rows in n·d² for every start.
    tol : size of the tangent gradient, relative to the whole, at which a start has converged.
    standardize, missing : as for IMAPCE (standardising changes nothing but rounding and the scale of the axes).
    random_state : seed of the random starts.
    verbose : True shows a bar; a function is called with words, and may raise to cancel.

    Fitted: `kurtosis_`, `kurtoses_` (of all starts), `n_iter_` and what every view has. `components_` is orthonormal in
    standardised space; with Subset that is the space of all rows, where κ of the unknown rows is the same.

    Examples
    --------
    >>> from imapce.baselines import KurtosisPursuit
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> view = KurtosisPursuit(random_state=0).fit_transform(X)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_starts: int = 10,
        max_iter: int = 500,
        tol: float = 1e-6,
        standardize: bool = True,
        missing: Literal["error", "mean"] = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | Tell = False,
    ):
        self.n_components = n_components
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.standardize = standardize
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _fit_rows(self, rows: Rows, priors: list[Prior]) -> None:
        Xs = data_of(self, rows)
        Z, searched = self._searched(priors, Xs)
        whitening = self._whitening(Z, searched)
        seed = int(random_generator(self.random_state).randint(2**31 - 1))
        whitened = WhitenedRows(Z, whitening)
        starts = _starting_frames(whitened, self.n_starts, self.n_components, np.random.default_rng(seed))
        with watching(self.verbose) as watch:
            outcome = pursue(whitened, starts, tol=self.tol, max_iter=self.max_iter, watch=watch)
        best = int(np.argmin(outcome.kurtosis))
        # Z has its own scale: the same direction of the raw columns, in the scale of X, is what `transform` shows.
        rescale = np.divide(Xs.scale, Z.scale, out=np.zeros_like(Xs.scale), where=Z.scale > 0)
        V = np.zeros((Xs.n_features, self.n_components))
        V[searched] = np.linalg.qr((rescale[:, None] * (whitening @ outcome.V[best]))[searched])[0]
        self.kurtosis_ = float(outcome.kurtosis[best])
        self.kurtoses_ = outcome.kurtosis
        self.n_iter_ = outcome.n_iterations
        keep_view(self, canonical_frame(V, Xs.second_moment @ V).T.copy(), Xs)
        if not outcome.converged[best]:
            warnings.warn(
                f"the best start had not converged to tol={self.tol:g} after max_iter={self.max_iter} iterations; "
                "raise max_iter.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _searched(self, priors: list[Prior], Xs: StandardizedRows) -> tuple[StandardizedRows, Mask]:
        """Z, and the columns the search may use."""
        left_out = np.zeros(Xs.n_features, dtype=bool)
        known = np.zeros(Xs.n_rows, dtype=bool)
        for prior in priors:
            if prior.is_background:
                raise InvalidTypeError(
                    "prior must be Attributes or Subset for KurtosisPursuit; got Samples(background), whose variance "
                    "plays no part in a kurtosis. Use IMAPCE or CPCA for a background."
                )
            if prior.read_labels(Xs.n_rows) is not None:
                raise InvalidTypeError(
                    "prior must be Attributes or Subset for KurtosisPursuit; got Labels(y), which are no columns of X "
                    "that the search could leave out. Use IMAPCE or LEACE for labels."
                )
            left_out |= prior.column_mask(self.reader_)
            known |= prior.row_mask(Xs.n_rows)
        Z = Xs
        if known.any() and not known.all():
            rest = Xs.rows.subset(~known)
            Z = StandardizedRows(rest, groups=self.reader_.groups, standardize=self.standardize)
        if known.all() or Z.n_rows <= self.n_components:
            raise InvalidValueError(
                f"Subset(rows) leaves {int((~known).sum())} of {Xs.n_rows} rows to explore, and more than "
                f"n_components={self.n_components} are needed; name fewer rows as known."
            )
        return Z, Z.informative & ~left_out

    def _whitening(self, Z: StandardizedRows, columns: Mask) -> Array:
        """F (d, q) with w = Fᵀz of unit covariance, zero on the columns that are left out."""
        C = entries_of(self, Z.second_moment)[np.ix_(columns, columns)] / Z.n_rows
        values, vectors = np.linalg.eigh(C) if columns.any() else (np.zeros(0), np.zeros((0, 0)))
        kept = values > NEGLIGIBLE * values.max(initial=0.0)
        if int(kept.sum()) < self.n_components:
            raise InvalidValueError(
                f"X must vary in at least n_components={self.n_components} directions among the rows and columns to "
                f"explore; got {int(kept.sum())}. Lower n_components or name less as known."
            )
        F = np.zeros((Z.n_features, int(kept.sum())))
        F[columns] = vectors[:, kept] / np.sqrt(values[kept])
        return F

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        check_common(self, "n_starts", "max_iter")
        require_number("tol", self.tol)
        require_verbose(self.verbose)


class WhitenedRows:
    """Rows in whitened coordinates, reduced to B(V) = (1/n) Σ ‖Vᵀw‖² wwᵀ for a stack of frames in one pass."""

    def __init__(self, Z: StandardizedRows, whitening: Array):
        self._Z, self._whitening = Z, whitening
        self.n_dimensions = whitening.shape[1]

    def weighted_moments(self, V: Array) -> Array:
        """B(V) (R, q, q) for frames V (R, q, k)."""
        n_frames, q, k = V.shape
        flat = np.ascontiguousarray(V.transpose(1, 0, 2)).reshape(q, n_frames * k)
        result = np.zeros((n_frames, q, q))
        for block in self._Z.blocks():
            w = block @ self._whitening
            s = np.sum((w @ flat).reshape(-1, n_frames, k) ** 2, axis=2)
            for r in range(n_frames):
                # √s on both sides: the product of a matrix with its own transpose costs half and is symmetric.
                scaled = w * np.sqrt(s[:, r, None])
                result[r] += scaled.T @ scaled
        return result / self._Z.n_rows


@dataclass(frozen=True)
class Pursuit:
    """Where the starts ended: frames (R, q, k) in whitened coordinates, κ and whether each converged."""

    V: Array
    kurtosis: Array
    converged: Mask
    n_iterations: int


@dataclass
class _State:
    """The starts on their way: frames, B, κ and the step each will try first."""

    V: Array
    B: Array
    kurtosis: Array
    step: Array


def pursue(rows: WhitenedRows, V: Array, *, tol: float, max_iter: int, watch: Watch = UNWATCHED) -> Pursuit:
    """Quasi-power iterations of all starts V (R, q, k) side by side; those that have converged are left alone."""
    B = rows.weighted_moments(V)
    state = _State(V.copy(), B, _kurtosis(V, B), np.ones(len(V)))
    converged = np.zeros(len(V), dtype=bool)
    iteration = 0
    while True:
        running = np.flatnonzero(~converged)
        BV = np.matmul(state.B[running], state.V[running])
        slack = np.linalg.norm(tangent(state.V[running], BV), axis=(1, 2))
        done = slack <= tol * np.linalg.norm(BV, axis=(1, 2))
        converged[running[done]] = True
        running = running[~done]
        if not len(running) or iteration == max_iter:
            return Pursuit(state.V, state.kurtosis, converged, max(1, iteration))
        iteration += 1
        # κ falls no further in floating point: as good as converged, whatever the gradient's last digits say.
        converged[_stuck_after_step(rows, state, running)] = True
        least = f"least kurtosis {state.kurtosis.min():.8g}"
        watch.tell(f"iteration {iteration}, {counted(len(running), 'start')} running, {least}")


def _stuck_after_step(rows: WhitenedRows, state: _State, running: Codes) -> Codes:
    """One guarded step of the `running` starts, in place; returns those that no step could improve."""
    V, B, q = state.V[running], state.B[running], rows.n_dimensions
    # B is singular where many rows lie in the middle of a view (s = 0). A ridge moves no fixed point: (B + εI)V lies in
    # the span of V exactly where BV does.
    ridge = RIDGE * np.trace(B, axis1=1, axis2=2) / q
    X = np.linalg.solve(B + ridge[:, None, None] * np.eye(q), V)
    E = np.matmul(X, np.linalg.inv(np.matmul(transpose(V), X))) - V
    slope = 4 * np.einsum("rdk,rdk->r", E, np.matmul(B, V))
    pending = np.arange(len(running))
    stuck = np.zeros(len(running), dtype=bool)
    while len(pending):
        chosen = running[pending]
        step, promised = state.step[chosen], state.step[chosen] * slope[pending]
        trial = np.linalg.qr(V[pending] + step[:, None, None] * E[pending])[0]
        moments = rows.weighted_moments(trial)
        value = _kurtosis(trial, moments)
        rise = value - state.kurtosis[chosen]
        fallen = rise <= SUFFICIENT * promised
        # The step a parabola through both ends would have taken. Where clusters are clear the whole step overshoots to
        # the mirror image of where it began (one axis, s ≈ 1: the error changes sign) and 500 iterations do not end.
        bend = rise - promised
        best = np.divide(-0.5 * step * promised, bend, out=2 * step, where=bend > 0)
        accepted = chosen[fallen]
        state.V[accepted], state.B[accepted], state.kurtosis[accepted] = trial[fallen], moments[fallen], value[fallen]
        state.step[accepted] = np.clip(best[fallen], *STEPS)
        pending, shorter = pending[~fallen], np.clip(best[~fallen], 0.1 * step[~fallen], 0.5 * step[~fallen])
        stuck[pending[shorter < SHORTEST_STEP]] = True
        state.step[running[pending]] = shorter
        pending = pending[shorter >= SHORTEST_STEP]
    return running[stuck]


def _kurtosis(V: Array, B: Array) -> Array:
    """κ = tr VᵀB(V)V of each frame."""
    return np.einsum("rdk,rdk->r", V, np.matmul(B, V))


def _starting_frames(rows: WhitenedRows, n_starts: int, k: int, rng: np.random.Generator) -> Array:
    """Both ends of the kurtosis matrix Σ‖w‖²wwᵀ (low: balanced clusters; high: minorities), then random frames."""
    q = rows.n_dimensions
    _, axes = np.linalg.eigh(rows.weighted_moments(np.eye(q)[None])[0])
    closed = np.stack([axes[:, :k], axes[:, q - k :]])[:n_starts]
    return np.concatenate([closed, random_frames(n_starts - len(closed), q, k, rng)])
