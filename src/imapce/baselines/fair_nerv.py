"""Fair-NeRV and Fair-t-NeRV: maps that keep neighbours and mix the classes that are known.

After "Fair Neighbor Embedding" (ICML 2023). Neighbourhoods p_ij of the rows and q_ij of
their places are compared both ways (recall and precision, other weights for pairs of one class than for pairs of two),
and the mix of classes r_i around each point is drawn to a wanted mix ρ_i.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
from joblib import effective_n_jobs
from sklearn.decomposition import PCA

from imapce.baselines.embedding import Embedding, tell_iteration
from imapce.baselines.fair_nerv_kernel import evaluate, neighbourhoods
from imapce.common.arrays import Array, Codes
from imapce.common.checks import is_whole, require_number, require_verbose
from imapce.common.work import UNWATCHED, Tell, Watch
from imapce.errors import InvalidValueError
from imapce.estimators.base import check_common

# log P of this many rows takes 6 GiB in single precision.
MOST_ROWS = 40_000
# The cost is compared with the one this many iterations before, and not before momentum has risen.
_STEADY_OVER, _MOMENTUM_RISES_AT = 50, 250
# Rows are summed in parts whose number depends on nothing but n, so that threads cannot change the order of a sum.
_MOST_PARTS, _ROWS_IN_A_PART = 64, 32


@dataclass(frozen=True)
class Weights:
    """τ_in, τ_out, β, γ and ω of the cost."""

    tau_in: float
    tau_out: float
    beta: float
    gamma: float
    omega: float

    def cost(self, parts: Array) -> float:
        """C from the sums of recall and precision (one class, two classes), KL(ρ‖r) and KL(r‖ρ)."""
        recall_in, precision_in, recall_out, precision_out, wanted, got = parts
        neighbours = self.tau_in * recall_in + (1 - self.tau_in) * precision_in
        neighbours += self.tau_out * recall_out + (1 - self.tau_out) * precision_out
        return self.beta * neighbours + (1 - self.beta) * (self.gamma * wanted + (1 - self.gamma) * got)


class FairCost:
    """C(Y) and dC/dY for the rows X of the classes `labels`; holds log P, the only thing of size n².

    >>> X, labels = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 2
    >>> weights = Weights(0.5, 0.5, 0.5, 0.5, 0.5)
    >>> gradient, sums = FairCost(X, labels, weights, n_neighbors=5).evaluate(X[:, :2])
    >>> gradient.shape, bool(weights.cost(sums) > 0)
    ((30, 2), True)
    """

    def __init__(
        self,
        X: Array,
        labels: Codes,
        weights: Weights,
        *,
        n_neighbors: int,
        student: bool = False,
        precision: Literal["single", "double"] = "single",
        n_threads: int | None = None,
    ):
        n = len(X)
        # Rows of one class stand together; places come in and gradients go out in the caller's order.
        self._order = np.argsort(labels, kind="stable")
        counts = np.bincount(labels)
        self._bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        # With one class every point has the mix it can have, and β would only be a factor of the whole cost.
        self.weights = weights if len(counts) > 1 else Weights(weights.tau_in, weights.tau_out, 1.0, 0.0, 0.0)
        self._student = student
        self._type = np.float32 if precision == "single" else np.float64
        n_parts = min(_MOST_PARTS, math.ceil(n / _ROWS_IN_A_PART))
        self._cuts = np.linspace(0, n, n_parts + 1).astype(np.intp)
        self._n_threads = min(n_parts, n_threads or effective_n_jobs(-1))
        self._pool = ThreadPoolExecutor(self._n_threads)
        self._log_p = np.empty((n, n), self._type)
        self._S, tied = np.empty(n), np.zeros(n, dtype=np.bool_)
        rows, cuts = np.ascontiguousarray(X[self._order]), self._cuts
        self._share(
            lambda first, last: neighbourhoods(rows, n_neighbors, cuts[first], cuts[last], self._log_p, self._S, tied)
        )
        self.n_tied = int(tied.sum())

    @property
    def scales(self) -> Array:
        """S_i in the caller's order."""
        return self._in_callers_order(self._S)

    @property
    def log_neighbourhoods(self) -> Array:
        """log p_ij in the caller's order, a copy; the diagonal means nothing."""
        result = np.empty_like(self._log_p)
        result[np.ix_(self._order, self._order)] = self._log_p
        return result

    def evaluate(self, Y: Array, factor: float = 1.0) -> tuple[Array, Array]:
        """dC/dY (n, m) with `factor`·P for P, and the six sums `Weights.cost` takes."""
        n, m = Y.shape
        places = np.ascontiguousarray((Y - Y.mean(axis=0))[self._order].T, dtype=self._type)
        w = self.weights
        weights = (float(w.tau_in), float(w.tau_out), float(w.beta), float(w.gamma), float(w.omega))
        gradient, sums = np.empty((m, n)), np.empty((n, 6))
        columns = np.empty((len(self._cuts) - 1, m, n), self._type)
        known = (places, self._log_p, float(factor), self._S, self._bounds, self._student, weights, self._cuts)
        self._share(lambda first, last: evaluate(*known, first, last, gradient, columns, sums))
        gradient += columns.sum(axis=0, dtype=np.float64)
        return self._in_callers_order(gradient.T), sums.sum(axis=0)

    def _in_callers_order(self, sorted_rows: Array) -> Array:
        result = np.empty_like(sorted_rows)
        result[self._order] = sorted_rows
        return result

    def _share(self, parts: Callable[[int, int], None]) -> None:
        """`parts(first, last)` for all parts of the rows, in several threads."""
        n_parts = len(self._cuts) - 1
        if self._n_threads == 1:
            parts(0, n_parts)
            return
        # Two tasks for each thread: one that falls behind then has less to catch up with.
        ends = np.linspace(0, n_parts, min(n_parts, 2 * self._n_threads) + 1).astype(int)
        for task in [self._pool.submit(parts, *pair) for pair in pairwise(ends)]:
            task.result()


def descend(
    fair: FairCost,
    start: Array,
    *,
    n_iter: int = 1000,
    exaggeration: float = 8.0,
    exaggeration_iter: int = 100,
    max_seconds: float | None = None,
    tol: float | None = None,
    watch: Watch = UNWATCHED,
) -> tuple[Array, float, int, str]:
    """The map, its cost, how many iterations it took and why it ended.

    Gradient descent with momentum and a gain for each coordinate, from `start`; ‖gradient‖ is cut to 1.

    Each coordinate's gain grows by 0.15 while gradient and velocity disagree in sign and shrinks by 0.85 otherwise.
    """
    begun = time.monotonic()
    Y = np.array(start, dtype=np.float64)
    velocity, gain = np.zeros_like(Y), np.ones_like(Y)
    costs: list[float] = []
    stop_reason = f"all {n_iter} iterations were done"
    for t in range(n_iter):
        gradient, sums = fair.evaluate(Y, exaggeration if t < exaggeration_iter else 1.0)
        costs.append(fair.weights.cost(sums))
        gradient /= max(1.0, float(np.linalg.norm(gradient)))
        gain = np.where(np.sign(gradient) != np.sign(velocity), gain + 0.15, gain * 0.85)
        np.maximum(gain, 0.01, out=gain)
        velocity = (0.5 if t < _MOMENTUM_RISES_AT else 0.8) * velocity - gain * gradient
        Y += velocity
        Y -= Y.mean(axis=0)
        tell_iteration(watch, t + 1, n_iter, costs[-1])
        if max_seconds is not None and time.monotonic() - begun >= max_seconds:
            stop_reason = f"max_seconds={max_seconds:g} have passed"
            break
        if tol is not None and t >= max(_MOMENTUM_RISES_AT, exaggeration_iter) + _STEADY_OVER:
            before = costs[t - _STEADY_OVER]
            if abs(before - costs[t]) < tol * abs(before):
                stop_reason = f"the cost changed by less than tol={tol:g} in {_STEADY_OVER} iterations"
                break
    return Y, fair.weights.cost(fair.evaluate(Y)[1]), len(costs), stop_reason


class FairNeRV(Embedding):
    """A map that keeps neighbours and mixes the known classes: q_ij = exp(−‖yᵢ − yⱼ‖²/S_i)/Σ_k exp(−‖yᵢ − y_k‖²/S_i).

    Minimises β Σ_ij [τ_ij (p log(p/q) + q − p) + (1 − τ_ij)(q log(q/p) + p − q)]
    + (1 − β) Σ_i [γ KL(ρ_i‖r_i) + (1 − γ) KL(r_i‖ρ_i)] over the places y, where p_ij = exp(−‖xᵢ − xⱼ‖²/S_i)/Z_i are
    the neighbourhoods of the rows (S_i such that the entropy of p_i is log n_neighbors), τ_ij is τ_in for two rows of
    one class and τ_out otherwise, r_i(c) = Σ_j∈c q_ij is the mix of classes around point i and ρ_i the wanted one:
    1 − ω of i's own class, ω shared by the others in proportion to their size. Without a prior there is one class,
    nothing to mix, and β counts as 1: a map by τ_in alone.

    Time grows like n²: 1,000 iterations of 6,000 rows take about a minute on two cores. Memory is log P, 4n² bytes (8n²
    in double precision); more than 40,000 rows (28,284) are refused. The result does not depend on the number of
    threads, for which joblib is asked (LOKY_MAX_CPU_COUNT limits it).

    Parameters
    ----------
    n_components : axes of the map.
    tau_in, tau_out : weight of recall (neighbours kept) against precision (no false neighbours) for pairs of one class
        and of two; tau_in < tau_out ≤ 1.
    beta : weight of neighbours against mixing. Only small values mix: above about 0.3 the classes stay apart.
    gamma : weight of KL(ρ‖r) against KL(r‖ρ).
    omega : the wanted share of neighbours of other classes.
    n_neighbors : effective size of a neighbourhood.
    n_iter : iterations.
    exaggeration, exaggeration_iter : p is multiplied by the first for as many iterations as the second says.
    max_seconds : stop after this time.
    tol : stop when 50 iterations change the cost by a smaller share; None runs all iterations.
    initialization : "random" or "pca", each with unit variance.
    precision : "single" sums pairs in single precision, five times faster; its gradient was within 2e-6 of that of
        "double" early in a descent and within 2e-4 at its end, where the gradient almost vanishes (1,500 rows).
    standardize : scale every column to unit variance (a categorical column as a whole); False only centres.
    missing : "error" refuses missing values; "mean" fills them with the means seen in `fit`.
    random_state : seed of the random start.
    verbose : as in CTSNE.

    Examples
    --------
    >>> from imapce.baselines import FairNeRV
    >>> X, batch = np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) % 2
    >>> FairNeRV(n_neighbors=5, n_iter=50, random_state=0).fit_transform(X, prior=batch).shape
    (40, 2)
    """

    _student: ClassVar[bool] = False

    def __init__(
        self,
        n_components: int = 2,
        *,
        tau_in: float = 0.54,
        tau_out: float = 0.91,
        beta: float = 0.04,
        gamma: float = 0.69,
        omega: float = 0.91,
        n_neighbors: int = 20,
        n_iter: int = 1000,
        exaggeration: float = 8.0,
        exaggeration_iter: int = 100,
        max_seconds: float | None = None,
        tol: float | None = None,
        initialization: Literal["random", "pca"] = "random",
        precision: Literal["single", "double"] = "single",
        standardize: bool = True,
        missing: Literal["error", "mean"] = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | Tell = False,
    ):
        self.n_components = n_components
        self.tau_in = tau_in
        self.tau_out = tau_out
        self.beta = beta
        self.gamma = gamma
        self.omega = omega
        self.n_neighbors = n_neighbors
        self.n_iter = n_iter
        self.exaggeration = exaggeration
        self.exaggeration_iter = exaggeration_iter
        self.max_seconds = max_seconds
        self.tol = tol
        self.initialization = initialization
        self.precision = precision
        self.standardize = standardize
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _layout(self, X: Array, labels: Codes, generator: np.random.RandomState, watch: Watch) -> Array:
        self._check_size(len(X))
        fair = FairCost(
            X,
            labels,
            Weights(self.tau_in, self.tau_out, self.beta, self.gamma, self.omega),
            n_neighbors=self.n_neighbors,
            student=self._student,
            precision=self.precision,
        )
        if fair.n_tied:
            warnings.warn(
                f"{fair.n_tied} rows of X have n_neighbors={self.n_neighbors} or more nearest rows at one distance (as "
                "duplicates are), so their neighbourhoods are larger; drop duplicates or raise n_neighbors.",
                UserWarning,
                stacklevel=5,
            )
        Y, self.cost_, self.n_iter_, self.stop_reason_ = descend(
            fair,
            self._start(X, generator),
            n_iter=self.n_iter,
            exaggeration=self.exaggeration,
            exaggeration_iter=self.exaggeration_iter,
            max_seconds=self.max_seconds,
            tol=self.tol,
            watch=watch,
        )
        return Y

    def _start(self, X: Array, generator: np.random.RandomState) -> Array:
        if self.initialization == "random":
            return generator.standard_normal((len(X), self.n_components))
        if self.n_components > min(X.shape):
            raise InvalidValueError(
                f'initialization="pca" needs n_components at most min(rows, columns)={min(X.shape)}; got '
                f'n_components={self.n_components}, use initialization="random".'
            )
        scores = PCA(self.n_components, random_state=generator).fit_transform(X)
        return scores / np.maximum(scores.std(axis=0), np.finfo(np.float64).tiny)

    # --- checks --------------------------------------------------------------------------------------------------

    def _check_size(self, n_rows: int) -> None:
        if self.n_neighbors >= n_rows - 1:
            raise InvalidValueError(
                f"n_neighbors must be smaller than the number of rows less one; got n_neighbors={self.n_neighbors} and "
                f"{n_rows} sample(s)."
            )
        most, size = (MOST_ROWS, 4) if self.precision == "single" else (int(MOST_ROWS / math.sqrt(2)), 8)
        if n_rows > most:
            raise InvalidValueError(
                f"X must have at most {most:,} rows for {type(self).__name__}, which holds a number for each pair of "
                f"rows; got {n_rows:,} rows, {size * n_rows**2 / 2**30:.1f} GiB. Fit a sample of the rows."
            )

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        check_common(self, "n_neighbors", "n_iter")
        for name in ("tau_in", "tau_out", "beta", "gamma", "omega"):
            value = getattr(self, name)
            require_number(name, value)
            if value > 1:
                raise InvalidValueError(f"{name} must lie between 0 and 1; got {value!r}.")
        if self.tau_out <= self.tau_in:
            raise InvalidValueError(
                f"tau_out must be larger than tau_in; got tau_in={self.tau_in!r} and tau_out={self.tau_out!r}."
            )
        require_number("exaggeration", self.exaggeration)
        if self.exaggeration < 1:
            raise InvalidValueError(f"exaggeration must be at least 1, which is none; got {self.exaggeration!r}.")
        if not (is_whole(self.exaggeration_iter) and self.exaggeration_iter >= 0):
            raise InvalidValueError(
                f"exaggeration_iter must be a whole number, 0 for none; got {self.exaggeration_iter!r}."
            )
        for name in ("max_seconds", "tol"):
            if getattr(self, name) is not None:
                require_number(name, getattr(self, name))
        for name, choices in (("initialization", ("random", "pca")), ("precision", ("single", "double"))):
            if getattr(self, name) not in choices:
                raise InvalidValueError(
                    f'{name} must be "{choices[0]}" or "{choices[1]}"; got {getattr(self, name)!r}.'
                )
        require_verbose(self.verbose)


class FairTNeRV(FairNeRV):
    """Fair-NeRV with q_ij = (1 + ‖yᵢ − yⱼ‖²)⁻¹/Σ_k (1 + ‖yᵢ − y_k‖²)⁻¹, whose places spread out further.

    >>> X, batch = np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) % 2
    >>> FairTNeRV(n_neighbors=5, n_iter=50, random_state=0).fit_transform(X, prior=batch).shape
    (40, 2)
    """

    _student: ClassVar[bool] = True
