"""IMAPCE as a scikit-learn transformer: checks the input, wires rows, priors, objective and solver; no formula."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from imapce.choice.path import SKETCH, PathSearch, by_separation
from imapce.choice.score import Candidate
from imapce.choice.trace_ratio import weight_by_ratio
from imapce.common.checks import require_number
from imapce.common.threads import single_thread_if
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.linear_view import LinearView
from imapce.priors.kinds import Prior, Subset, known_rows, without_rows
from imapce.priors.terms import PriorTerms
from imapce.rows.base import Rows
from imapce.rows.open import ENGINES
from imapce.rows.outliers import outlying_rows, set_aside
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.rows.subspace import RowsWithin, Subspace
from imapce.search.closed_form import contrastive_axes
from imapce.search.objective import Objective, paper_mu, reconstruction_error
from imapce.search.race import minimize
from imapce.search.solution import LocalOptimum, Progress, Solution
from imapce.search.starts import starting_frames
from imapce.search.stiefel import canonical_frame

Array = NDArray[np.float64]

RANKS = ("auto", "separation", "objective")
CAPPED = " What is known does not vary along the best ratio, so alpha is as large as its ridge allows."
OUTLIERS = ("auto", "keep", "trim")


@dataclass(frozen=True)
class Optimum:
    """One distinct solution of a fit: its axes (k, d), objective, kurtosis and the number of starts that reached it."""

    components: Array
    objective: float
    kurtosis: float
    starts: int


class FlatRowsError(InvalidValueError):
    """The rows to explore vary in fewer directions than a view has axes."""


class IMAPCE(LinearView):
    """A linear view that keeps variance, drops what is known and pulls apart the clusters of the rest.

    Minimises ‖X − XVVᵀ‖² − α‖Y − YVVᵀ‖² + μ·κ(ZV) over orthonormal V (d, k): X the data, Y what is known, Z the rows
    that are not known yet, κ Mardia's kurtosis. With Attributes(columns, erase=True) the search runs over V = NṼ, N the
    directions that carry nothing linear of these columns.

    Parameters
    ----------
    n_components : axes of the view, usually 2 or 3.
    alpha : weight of the known structure; 0 or no prior ignores it, 1 is the paper's. "auto" keeps known columns out
        of the view (α = ∞), with all that is correlated with them where they would still show, and tries a few
        weights for a background or known rows. "ratio" is gcPCA's, α = max tr(VᵀXᵀXV)/tr(VᵀYᵀYV), at which the best
        view shows as much of the known as of the data; a direction in which Y does not vary counts as one with a
        hundredth of its mean variance, which bounds α (`stop_reason_` says where it does).
    mu : weight of the kurtosis; a number, or "paper" for the paper's rule (one to two orders of magnitude below the
        reconstruction error of contrastive PCA). "auto" tries 1, 10 and 100 times that and, where no split in two is
        clear, −1 and −10 times: a high kurtosis shows clusters of less than 21 % of the rows.
    rank : which of the optima is the view: the best "objective", or the one with the clearest "separation", that is the
        largest share of variance explained by a cut in two, less what the known explains. "auto" is
        "separation" where α or μ is automatic and "objective" where both are given. Points of a path can only be
        compared by separation; "objective" then keeps one optimum of each.
    standardize : scale every column to unit variance (a categorical column as a whole); False only centres.
    n_starts : starting points tried at once; the first four are closed-form, the rest random.
    tol : relative size of the gradient at which a start has converged.
    max_iter : iterations after which a start is stopped.
    outliers : "trim" sets gross outliers aside: no mean, scale or moment counts them; `transform` still places them.
        "keep" uses every row. "auto" trims where α or μ is automatic and keeps where both are given. Missing values are
        filled before, with means that count every row.
    missing : "error" refuses missing values; "mean" fills them with the means (of a category: shares) seen in `fit`.
    engine : "auto", "dense", "sparse" or "moment_tensor"; how rows are reduced, never what comes out.
    random_state : seed of the random starts.
    verbose : True prints progress; a function is called with a `Progress` after every round and may raise to cancel.

    Fitted: `alpha_` and `mu_` as used, `optima_` (distinct views, best first), `outliers_` (positions of the rows set
    aside) and, where α or μ is automatic, `path_`, every view tried with its (α, μ) and its scores.

    Examples
    --------
    >>> from imapce import IMAPCE, Attributes
    >>> view = IMAPCE(random_state=0).fit_transform(X, prior=Attributes(["batch"]))   # doctest: +SKIP
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha: float | str = "auto",
        mu: float | str = "auto",
        rank: Literal["auto", "separation", "objective"] = "auto",
        standardize: bool = True,
        n_starts: int = 10,
        tol: float = 1e-6,
        max_iter: int = 500,
        outliers: Literal["auto", "keep", "trim"] = "auto",
        missing: Literal["error", "mean"] = "error",
        engine: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | Callable[[Progress], None] = False,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.mu = mu
        self.rank = rank
        self.standardize = standardize
        self.n_starts = n_starts
        self.tol = tol
        self.max_iter = max_iter
        self.outliers = outliers
        self.missing = missing
        self.engine = engine
        self.random_state = random_state
        self.verbose = verbose

    path_: list[Candidate]
    outliers_: NDArray[np.intp]
    stop_reason_: str
    _kurtoses: Array
    _told: list[str]

    def _open(self, X: Any, engine: str = "auto") -> Rows:
        return super()._open(X, self.engine)

    def _fit_rows(self, rows: Rows, priors: list[Prior]) -> StandardizedRows:
        """The fit itself; returns Z, whose own standardisation is what the kurtosis saw."""
        Xs = self._data(rows)
        outlying = self._outlying(rows, priors)
        self.outliers_ = np.flatnonzero(outlying)
        self._told = []
        if len(self.outliers_):
            self._told.append(set_aside(outlying, "rows"))
            rows, priors = rows.without(outlying), without_rows(priors, outlying)
            Xs = self._data(rows)
        terms = self._prior_terms(priors, Xs)
        Z = Xs if terms.known is None else self._standardized(rows.subset(~terms.known))
        if int(Z.informative.sum()) < self.n_components:
            raise self._flat_rows()
        inside = self._inside(terms, Xs, Z)
        alpha, remark = self.alpha, ""
        if alpha == "ratio":
            ratio = weight_by_ratio(Xs, Z, terms, self.n_components)
            alpha, remark = ratio.alpha, CAPPED if ratio.capped else ""
        if "auto" in (alpha, self.mu):
            solution = self._choose(alpha, Xs, Z, terms)
        else:
            self.path_ = []
            self.alpha_ = float(alpha) if terms.any_known else 0.0
            known = [(-self.alpha_ * weight, form) for weight, form in terms.second_moments]
            M = QuadraticForm.combine([(1.0, Xs.second_moment), *known])
            solution = self._solve_within(inside, M, Xs.second_moment, Z)
            if self.rank == "separation":
                order = by_separation([optimum.V for optimum in solution.optima], Xs, Z, terms)
                self._kurtoses = self._kurtoses[order]
                solution = replace(solution, optima=[solution.optima[i] for i in order])
        self._keep(replace(solution, stop_reason=solution.stop_reason + remark), Xs)
        told = self.__dict__.pop("_told")
        self.stop_reason_ = " ".join([self.stop_reason_, *told])
        if told and self.verbose and not callable(self.verbose):
            print(*told)
        return Z

    @property
    def _trims(self) -> bool:
        return self.outliers == "trim" or (self.outliers == "auto" and "auto" in (self.alpha, self.mu))

    def _background_used(self, background: Rows) -> Rows:
        if not self._trims:
            return background
        outlying = outlying_rows(background)
        if not outlying.any():
            return background
        self._told.append(set_aside(outlying, "background rows"))
        return background.without(outlying)

    def _outlying(self, rows: Rows, priors: list[Prior]) -> NDArray[np.bool_]:
        """The rows to set aside, as a mask; none where too few to explore would be left."""
        none = np.zeros(rows.n_rows, dtype=bool)
        if not self._trims:
            return none
        outlying = outlying_rows(rows)
        unexplored = ~outlying
        for prior in priors:
            if isinstance(prior, Subset):
                unexplored &= ~known_rows(prior, rows.n_rows)
        return outlying if int(unexplored.sum()) > self.n_components else none

    def _choose(self, alpha: float | str, Xs: StandardizedRows, Z: StandardizedRows, terms: PriorTerms) -> Solution:
        """The path over (α, μ), and the view chosen from it."""
        seed = int(self._generator().randint(2**31 - 1))
        search = PathSearch(
            Xs,
            Z,
            terms,
            n_components=self.n_components,
            alpha=alpha,
            mu=self.mu,
            n_starts=self.n_starts,
            tol=self.tol,
            max_iter=self.max_iter,
            every_optimum=self.rank != "objective",
            callback=self._callback(),
        )
        path = search.run(np.random.default_rng(seed))
        if path is None or not np.isfinite(path.kurtosis):
            raise self._flat_rows()
        self.path_ = path.candidates
        chosen, *others = path.distinct
        self.alpha_, self.mu_ = chosen.alpha, chosen.mu
        self.n_evaluations_ = path.n_evaluations
        frames = [path.V, *(one.components.T for one in others)]
        values, self._kurtoses = self._evaluated(frames, [chosen, *others], Xs, Z, terms)
        best = replace(path.solution.optima[0], V=path.V, objective=values[0], starts=chosen.starts)
        rest = [
            LocalOptimum(frame, value, one.starts, True, SKETCH)
            for frame, value, one in zip(frames[1:], values[1:], others, strict=True)
        ]
        solution = replace(path.solution, optima=[best, *rest], trace=path.trace)
        if solution.converged:
            reason = f"Converged: the clearest of {len(path.candidates)} views on a path over alpha and mu"
            solution = replace(solution, stop_reason=f"{reason}; alpha {self.alpha_:.4g}, mu {self.mu_:.4g}.")
        return solution

    @staticmethod
    def _evaluated(
        frames: list[Array], found_at: list[Candidate], Xs: StandardizedRows, Z: StandardizedRows, terms: PriorTerms
    ) -> tuple[list[float], Array]:
        """Equation 2 and κ of views of the path on all columns and rows, each at its own α and μ.

        The path counts only the variance of the space it searches; α = ∞ leaves its constant term out.
        """
        kurtoses = Objective(Xs.second_moment, Z, 1.0).kurtosis(np.stack(frames))
        values = []
        for V, one, kurtosis in zip(frames, found_at, kurtoses, strict=True):
            error = reconstruction_error(Xs.second_moment, V)
            if np.isfinite(one.alpha):
                known = sum(weight * reconstruction_error(form, V) for weight, form in terms.second_moments)
                error -= one.alpha * known
            values.append(float(error + one.mu * kurtosis))
        return values, kurtoses

    def _inside(self, terms: PriorTerms, Xs: StandardizedRows, Z: StandardizedRows) -> Subspace | None:
        """The directions an erased prior leaves; None where nothing is erased."""
        if terms.erased is None:
            return None
        inside = self._admissible(terms, Xs.informative)
        if not Z.informative[Xs.informative].all():
            inside = Subspace(Xs.informative & Z.informative, terms.erased)
            if inside.size < self.n_components:
                raise self._flat_rows()
        return inside

    def _solve_within(
        self, inside: Subspace | None, M: QuadraticForm, C_X: QuadraticForm, Z: StandardizedRows
    ) -> Solution:
        """The search at one (α, μ), in the directions that are admitted."""
        if inside is None:
            return self._solve(M, C_X, Z)
        within = RowsWithin(Z, inside)
        M_within = within.second_moment if M is Z.second_moment else inside.form(M)
        solution = self._solve(M_within, inside.form(C_X), within)
        return replace(solution, optima=[replace(one, V=inside.lift(one.V)) for one in solution.optima])

    def _solve(self, M: QuadraticForm, C_X: QuadraticForm, Z: StandardizedRows) -> Solution:
        axes = contrastive_axes(M, self.n_components)
        self.mu_ = paper_mu(M, C_X, axes) if isinstance(self.mu, str) else float(self.mu)
        seed = int(self._generator().randint(2**31 - 1))
        # Without kurtosis the closed form is the answer and no other start can add to it.
        n_starts = 1 if self.mu_ == 0 else self.n_starts
        objective = Objective(M, Z, self.mu_)
        starts = objective.within_range(starting_frames(axes, Z, n_starts, np.random.default_rng(seed)))
        with single_thread_if(Z.rows.folded):
            solution = minimize(
                objective,
                starts,
                tol=self.tol,
                max_iter=self.max_iter,
                preconditioner=objective.preconditioner(self.n_components),
                newton=Z.rows.folded,
                callback=self._callback(),
            )
        frames = np.stack([optimum.V for optimum in solution.optima])
        self._kurtoses = objective.kurtosis(frames)
        if not np.isfinite(self._kurtoses[0]):
            raise self._flat_rows()
        self.n_evaluations_ = objective.n_evaluations
        return solution

    def _flat_rows(self) -> FlatRowsError:
        return FlatRowsError(
            f"X must vary in at least n_components={self.n_components} directions among the rows to explore, and "
            "it does not: columns repeat each other (or what is erased), rows are too few, or a few lie so far out "
            'that nothing varies beside them (outliers="trim" sets these aside); lower n_components or add data.'
        )

    def _keep(self, solution: Solution, Xs: StandardizedRows) -> None:
        """Fitted attributes, in the canonical rotation and sign."""
        self.optima_ = []
        for optimum, kurtosis in zip(solution.optima, self.__dict__.pop("_kurtoses"), strict=True):
            V = canonical_frame(optimum.V, Xs.second_moment @ optimum.V)
            self.optima_.append(Optimum(V.T.copy(), optimum.objective, float(kurtosis), optimum.starts))
        best = self.optima_[0]
        self.objective_, self.kurtosis_ = best.objective, best.kurtosis
        self._keep_view(best.components, Xs)
        self.n_iter_ = max(1, solution.n_iterations)
        self.stop_reason_ = solution.stop_reason
        self.trace_ = solution.trace
        if not solution.converged:
            warnings.warn(solution.stop_reason, ConvergenceWarning, stacklevel=5)

    def inverse_transform(self, X: Any) -> Array:
        """The (encoded) data a view stands for: X·components_·scale_ + mean_."""
        check_is_fitted(self)
        try:
            embedding = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidTypeError(f"X must hold numbers, one column per axis; {error}.") from error
        if embedding.ndim != 2 or embedding.shape[1] != len(self.components_):
            raise InvalidValueError(
                f"X must have one column per axis ({len(self.components_)}); got an array of shape {embedding.shape}."
            )
        return (embedding @ self.components_) * self.scale_ + self.mean_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to `path` (JSON and .npy in one zip, no pickle); `load_model` reads it."""
        check_is_fitted(self)
        from imapce.estimators.model_file import write_model

        write_model(path, self)

    # --- checks --------------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        self._check_common("n_starts", "max_iter")
        if isinstance(self.alpha, str):
            if self.alpha not in ("auto", "ratio"):
                raise InvalidValueError(f'alpha must be a number, "auto" or "ratio"; got {self.alpha!r}.')
        else:
            require_number("alpha", self.alpha)
        if self.rank not in RANKS:
            raise InvalidValueError(f"rank must be one of {', '.join(map(repr, RANKS))}; got {self.rank!r}.")
        require_number("tol", self.tol)
        if isinstance(self.mu, str):
            if self.mu not in ("auto", "paper"):
                raise InvalidValueError(f'mu must be a number, "auto" or "paper"; got {self.mu!r}.')
        else:
            require_number("mu", self.mu)
        if self.outliers not in OUTLIERS:
            raise InvalidValueError(f"outliers must be one of {', '.join(map(repr, OUTLIERS))}; got {self.outliers!r}.")
        if not (callable(self.verbose) or isinstance(self.verbose, (bool, np.bool_, int))):
            raise InvalidTypeError(f"verbose must be True, False or a function; got {self.verbose!r}.")
        if self.engine not in ENGINES:
            raise InvalidValueError(f"engine must be one of {', '.join(map(repr, ENGINES))}; got {self.engine!r}.")

    def _callback(self) -> Callable[[Progress], None] | None:
        if callable(self.verbose):
            return self.verbose
        return _print_progress if self.verbose else None


@contextmanager
def quiet_about_convergence() -> Iterator[None]:
    """For callers that pass the stop reason on themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _print_progress(progress: Progress) -> None:
    if progress.round % 10 == 1:
        print(f"round {progress.round:4d}  {progress.running:3d} starts running  best objective {progress.best:.8g}")
