"""IMAPCE as a scikit-learn transformer: checks the input, wires rows, priors, objective and solver; no formula."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from imapce import storage, tables
from imapce.errors import FileFormatError, InvalidTypeError, InvalidValueError
from imapce.objective import Objective, paper_mu, stacked_product
from imapce.priors import Prior, Subset, as_list, prior_terms, require_same_index
from imapce.reading import ReadsTables, listed
from imapce.rows import ENGINES, DenseRows, QuadraticForm, Rows, SparseRows, StandardizedRows, open_rows
from imapce.solver import Progress, Solution, Trace, minimize
from imapce.starts import contrastive_axes, starting_frames
from imapce.stiefel import canonical_frame
from imapce.tables import Encoding
from imapce.threads import single_thread_if

Array = NDArray[np.float64]

MODEL_VERSION = 1


@dataclass(frozen=True)
class Optimum:
    """One distinct solution of a fit: its axes (k, d), objective, kurtosis and the number of starts that reached it."""

    components: Array
    objective: float
    kurtosis: float
    starts: int


class FlatRowsError(InvalidValueError):
    """The rows to explore vary in fewer directions than a view has axes."""


class IMAPCE(ReadsTables, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A linear view that keeps variance, drops what is known and pulls apart the clusters of the rest.

    Minimises ‖X − XVVᵀ‖² − α‖Y − YVVᵀ‖² + μ·κ(ZV) over orthonormal V (d, k): X the data, Y what is known, Z the rows
    that are not known yet, κ Mardia's kurtosis.

    Parameters
    ----------
    n_components : axes of the view, usually 2 or 3.
    alpha : weight of the known structure; 0 or no prior ignores it.
    mu : weight of the kurtosis; a number, or "paper" for the paper's rule (one to two orders of magnitude below the
        reconstruction error of contrastive PCA). "auto" is the same rule.
    standardize : scale every column to unit variance (a categorical column as a whole); False only centres.
    n_starts : starting points tried at once; the first four are closed-form, the rest random.
    tol : relative size of the gradient at which a start has converged.
    max_iter : iterations after which a start is stopped.
    missing : "error" refuses missing values; "mean" fills them with the means (of a category: shares) seen in `fit`.
    engine : "auto", "dense", "sparse" or "moment_tensor"; how rows are reduced, never what comes out.
    random_state : seed of the random starts.
    verbose : True prints progress; a function is called with a `Progress` after every round and may raise to cancel.

    Examples
    --------
    >>> from imapce import IMAPCE, Attributes
    >>> view = IMAPCE(random_state=0).fit_transform(X, prior=Attributes(["batch"]))   # doctest: +SKIP
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha: float = 1.0,
        mu: float | str = "auto",
        standardize: bool = True,
        n_starts: int = 10,
        tol: float = 1e-6,
        max_iter: int = 500,
        missing: Literal["error", "mean"] = "error",
        engine: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | Callable[[Progress], None] = False,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.mu = mu
        self.standardize = standardize
        self.n_starts = n_starts
        self.tol = tol
        self.max_iter = max_iter
        self.missing = missing
        self.engine = engine
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, prior: Any = None) -> Self:
        """Find the view of `X` given what is known.

        `prior` is None, Attributes(columns), Samples(background), Subset(rows) or a list of them. X may be an array,
        a SciPy sparse matrix or a pandas, polars or Arrow table; it is never changed. A fit that is refused or
        cancelled leaves the estimator as it was.
        """
        before = dict(self.__dict__)
        try:
            self._fit(X, prior)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _fit(self, X: Any, prior: Any) -> None:
        self._check_parameters()
        priors = as_list(prior)
        for one in priors:
            if isinstance(one, Subset):
                require_same_index(one, X)
        rows = self._open(X)
        self._fit_rows(rows, priors)

    def _open(self, X: Any) -> Rows:
        """Read X, learn how its columns are encoded and hand it to an engine; the rest of a fit needs only that."""
        matrix, self._encoding = self._read(X, fitting=True)
        self._check_shape(*matrix.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            return open_rows(matrix, engine=self.engine, n_components=self.n_components)

    def _fit_rows(self, rows: Rows, priors: list[Prior]) -> StandardizedRows:
        """The fit itself; returns Z, whose own standardisation is what the kurtosis saw."""
        n_features = rows.n_features
        groups = None if self._encoding is None else self._encoding.groups

        def standardized(rows: Rows) -> StandardizedRows:
            return StandardizedRows(rows, groups=groups, standardize=self.standardize)

        with np.errstate(over="ignore", invalid="ignore"):
            Xs = standardized(rows)
        self._check_range(Xs, "X")
        if int(Xs.informative.sum()) < self.n_components:
            raise InvalidValueError(
                f"X must have at least n_components={self.n_components} columns that vary; got "
                f"{int(Xs.informative.sum())}, the others are constant (or below 1e-150, where squares vanish)."
            )

        def open_background(table: Any) -> Rows:
            with np.errstate(over="ignore", invalid="ignore"):
                background = open_rows(self._read_background(table, Xs.mean))
                self._check_range(standardized(background), "Samples(background)")
            return background

        terms = prior_terms(
            priors,
            Xs,
            columns_of=lambda column: self._columns_of(column, n_features),
            open_background=open_background,
            standardized=standardized,
            min_unexplored=self.n_components + 1,
        )
        Z = Xs if terms.known is None else standardized(rows.subset(~terms.known))
        if int(Z.informative.sum()) < self.n_components:
            raise self._flat_rows()
        self.alpha_ = float(self.alpha) if terms.any_known else 0.0
        known = [(-self.alpha_ * weight, form) for weight, form in terms.second_moments]
        M = QuadraticForm.combine([(1.0, Xs.second_moment), *known])
        solution = self._solve(M, Xs.second_moment, Z)
        self._keep(solution, Xs)
        return Z

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
            "it does not: columns repeat each other or rows are too few; lower n_components or add data."
        )

    def _keep(self, solution: Solution, Xs: StandardizedRows) -> None:
        """Fitted attributes, in the canonical rotation and sign."""
        self.optima_ = []
        for optimum, kurtosis in zip(solution.optima, self.__dict__.pop("_kurtoses"), strict=True):
            V = canonical_frame(optimum.V, Xs.second_moment @ optimum.V)
            self.optima_.append(Optimum(V.T.copy(), optimum.objective, float(kurtosis), optimum.starts))
        best = self.optima_[0]
        self.components_ = best.components
        self.objective_, self.kurtosis_ = best.objective, best.kurtosis
        self.mean_, self.scale_ = Xs.mean, Xs.scale
        V = best.components.T
        CV = stacked_product(Xs.second_moment, V[None])[0]
        axis_variance = np.einsum("dk,dk->k", V, CV) / Xs.n_rows
        spread = np.sqrt(np.outer(axis_variance, Xs.variance))
        self.axis_correlation_ = np.divide(CV.T / Xs.n_rows, spread, out=np.zeros_like(spread), where=spread > 0)
        self.explained_variance_ratio_ = axis_variance * Xs.n_rows / Xs.second_moment.trace
        self.n_iter_ = max(1, solution.n_iterations)
        self.stop_reason_ = solution.stop_reason
        self.trace_ = solution.trace
        self.encoded_feature_names_ = self._encoded_names(len(self.mean_))
        self._n_features_out = len(best.components)
        if not solution.converged:
            warnings.warn(solution.stop_reason, ConvergenceWarning, stacklevel=5)

    def transform(self, X: Any) -> Array:
        """((x − mean_)/scale_)·components_ᵀ, row by row: a row's place depends on no other row."""
        check_is_fitted(self)
        matrix, _ = self._read(X, fitting=False)
        inverse = np.divide(1.0, self.scale_, out=np.zeros_like(self.scale_), where=self.scale_ > 0)
        W = (self.components_ * inverse).T
        if sparse.issparse(matrix):
            return SparseRows(matrix).project(W, self.mean_ @ W)
        return DenseRows(matrix, origin=self.mean_).project(W, np.zeros(W.shape[1]))

    def fit_transform(self, X: Any, y: Any = None, *, prior: Any = None) -> Array:
        """`fit`, then the view of the same rows."""
        return self.fit(X, y, prior=prior).transform(X)

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

    def loadings(self) -> Any:
        """A table of features, those that shape the view most first.

        `axis_j` is the weight in the view, `correlation_j` the correlation of the feature with that axis, and
        `contribution` the feature's share of the view (the weights squared, averaged over the axes).
        """
        check_is_fitted(self)
        share = np.mean(self.components_**2, axis=0)
        order = np.argsort(-share, kind="stable")
        columns: dict[str, NDArray] = {"feature": np.asarray(self.encoded_feature_names_, dtype=object)[order]}
        for j, (axis, correlation) in enumerate(zip(self.components_, self.axis_correlation_, strict=True)):
            columns[f"axis_{j}"] = axis[order]
            columns[f"correlation_{j}"] = correlation[order]
        columns["contribution"] = share[order]
        return tables.frame(columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to `path` (JSON and .npy in one zip, no pickle); `load_model` reads it."""
        check_is_fitted(self)
        header = {
            "parameters": plain_parameters(self),
            "alpha_": self.alpha_,
            "mu_": self.mu_,
            "n_iter_": self.n_iter_,
            "n_evaluations_": self.n_evaluations_,
            "stop_reason_": self.stop_reason_,
            "n_features_in_": self.n_features_in_,
            "feature_names_in_": [str(n) for n in self.feature_names_in_] if self._named() else None,
            "encoding": None if self._encoding is None else self._encoding.to_json(),
            "optima": [{"objective": o.objective, "kurtosis": o.kurtosis, "starts": o.starts} for o in self.optima_],
            "outcomes": self.trace_.outcomes,
            "evaluations": self.trace_.evaluations,
        }
        running = np.isfinite(self.trace_.objectives)
        arrays = {
            "components": np.stack([optimum.components for optimum in self.optima_]),
            "mean": self.mean_,
            "scale": self.scale_,
            "axis_correlation": self.axis_correlation_,
            "explained_variance_ratio": self.explained_variance_ratio_,
            "trace_objectives": np.where(running, self.trace_.objectives, 0.0),
            "trace_running": running,
        }
        storage.write_archive(path, "model", MODEL_VERSION, header, arrays)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mean"
        return tags

    # --- checks --------------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        for name in ("n_components", "n_starts", "max_iter"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise InvalidTypeError(f"{name} must be a whole number; got {value!r}.")
            if value < 1:
                raise InvalidValueError(f"{name} must be at least 1; got {value}.")
        _require_number("alpha", self.alpha)
        _require_number("tol", self.tol)
        if isinstance(self.mu, str):
            if self.mu not in ("auto", "paper"):
                raise InvalidValueError(f'mu must be a number, "auto" or "paper"; got {self.mu!r}.')
        else:
            _require_number("mu", self.mu)
        if self.missing not in ("error", "mean"):
            raise InvalidValueError(f'missing must be "error" or "mean"; got {self.missing!r}.')
        if not isinstance(self.standardize, (bool, np.bool_)):
            raise InvalidTypeError(f"standardize must be True or False; got {self.standardize!r}.")
        if not (callable(self.verbose) or isinstance(self.verbose, (bool, np.bool_, int))):
            raise InvalidTypeError(f"verbose must be True, False or a function; got {self.verbose!r}.")
        if self.engine not in ENGINES:
            raise InvalidValueError(f"engine must be one of {', '.join(map(repr, ENGINES))}; got {self.engine!r}.")

    def _check_shape(self, n_rows: int, n_features: int) -> None:
        if self.n_components > n_features:
            raise InvalidValueError(
                f"n_components must be at most the number of columns; got n_components={self.n_components} and "
                f"{n_features} feature(s)."
            )
        if n_rows <= self.n_components:
            raise InvalidValueError(
                f"X must have more rows than n_components={self.n_components}; got {n_rows} sample(s)."
            )

    def _check_range(self, Xs: StandardizedRows, argument: str) -> None:
        # Fourth powers of the raw deviations must fit in a float: 1e75 is far beyond any unit of measurement.
        with np.errstate(over="ignore", invalid="ignore"):
            too_large = ~(np.abs(Xs.mean) + Xs.scale < 1e75) | ~np.isfinite(Xs.variance)
        if too_large.any():
            names = self._encoded_names(Xs.n_features)
            raise InvalidValueError(
                f"{argument} must have values below about 1e75, or their squares overflow; "
                f"column {listed(names, too_large)} has larger ones. Rescale it."
            )

    def _generator(self) -> np.random.RandomState:
        try:
            return check_random_state(self.random_state)
        except (TypeError, ValueError) as error:
            raise InvalidValueError(
                f"random_state must be None, a whole number from 0 to 2**32 - 1 or a RandomState; "
                f"got {self.random_state!r}."
            ) from error

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


def _require_number(name: str, value: Any) -> None:
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidTypeError(f"{name} must be a number; got {value!r}.")
    if not (np.isfinite(value) and value >= 0):
        raise InvalidValueError(f"{name} must be finite and not negative; got {value!r}.")


def plain_parameters(model: IMAPCE) -> dict[str, Any]:
    """The constructor's parameters as JSON types; a generator or a function cannot be written and is left out."""
    parameters = model.get_params()
    parameters["verbose"] = bool(parameters["verbose"])
    if isinstance(parameters["random_state"], np.random.RandomState):
        parameters["random_state"] = None
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}


def load_model(path: str | os.PathLike[str]) -> IMAPCE:
    """A model written by `IMAPCE.save`; damaged, foreign and hostile files are refused with one sentence.

    >>> load_model("view.imapce").transform(new_rows)         # doctest: +SKIP
    """
    header, arrays = storage.read_archive(path, "model", MODEL_VERSION)
    try:
        return _restored(header, arrays)
    except FileFormatError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise FileFormatError(f"{str(path)!r} does not hold a whole imapce model ({reason}); save it again.") from error


def _restored(header: dict[str, Any], arrays: dict[str, NDArray]) -> IMAPCE:
    model = IMAPCE(**header["parameters"])
    model._check_parameters()
    components = arrays["components"].astype(np.float64)
    n_optima, k, d = components.shape
    shapes = {"mean": (d,), "scale": (d,), "axis_correlation": (k, d), "explained_variance_ratio": (k,)}
    shapes["trace_running"] = arrays["trace_objectives"].shape
    if strangers := set(arrays) - {"components", "trace_objectives", *shapes}:
        raise ValueError(f"array {sorted(strangers)[0]!r} is not part of a model")
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"array {name!r} has shape {arrays[name].shape}, not {shape}")
    if k != model.n_components or n_optima != len(header["optima"]) or n_optima == 0:
        raise ValueError("the components do not fit the parameters")
    model.optima_ = [
        Optimum(frame, float(one["objective"]), float(one["kurtosis"]), int(one["starts"]))
        for frame, one in zip(components, header["optima"], strict=True)
    ]
    model.components_ = components[0]
    model.objective_, model.kurtosis_ = model.optima_[0].objective, model.optima_[0].kurtosis
    model.mean_, model.scale_ = arrays["mean"].astype(np.float64), arrays["scale"].astype(np.float64)
    model.axis_correlation_ = arrays["axis_correlation"]
    model.explained_variance_ratio_ = arrays["explained_variance_ratio"]
    model.alpha_, model.mu_ = float(header["alpha_"]), float(header["mu_"])
    model.n_iter_, model.n_evaluations_ = int(header["n_iter_"]), int(header["n_evaluations_"])
    model.stop_reason_ = str(header["stop_reason_"])
    objectives = np.where(arrays["trace_running"], arrays["trace_objectives"], np.nan)
    model.trace_ = Trace([int(e) for e in header["evaluations"]], objectives, [str(o) for o in header["outcomes"]])
    if objectives.shape != (len(model.trace_.evaluations), len(model.trace_.outcomes)):
        raise ValueError("the trace does not fit its outcomes")
    model._encoding = None if header["encoding"] is None else Encoding.from_json(header["encoding"])
    model.n_features_in_ = int(header["n_features_in_"])
    if model.n_features_in_ != (d if model._encoding is None else len(model._encoding.columns)):
        raise ValueError("the number of features does not fit the components")
    names = header["feature_names_in_"]
    if names is not None:
        if len(names) != model.n_features_in_ or not all(isinstance(name, str) for name in names):
            raise ValueError("the feature names do not fit the number of features")
        model.feature_names_in_ = np.asarray(names, dtype=object)
    model.encoded_feature_names_ = model._encoded_names(d)
    if len(model.encoded_feature_names_) != d:
        raise ValueError("the encoding does not fit the components")
    model._n_features_out = k
    return model
