"""IMAPCE as a scikit-learn transformer: checks the input, poses the problem, keeps what the search found."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from imapce.choice.leakage import measure_leakage
from imapce.choice.path import PathSearch, solve_at
from imapce.clusters.clustering import SampleClusters, find_clusters
from imapce.common.arrays import Array, Mask, is_dask, on_host
from imapce.common.checks import (
    is_whole,
    random_generator,
    require_choice,
    require_count,
    require_number,
    require_number_or_rule,
    require_verbose,
)
from imapce.common.progress import watching
from imapce.common.settings import SETTINGS, Settings
from imapce.common.words import counted, listing
from imapce.common.work import UNWATCHED, Tell, Watch
from imapce.errors import InvalidValueError
from imapce.estimators.base import (
    LinearView,
    check_common,
    keep_view,
    place,
    pose_for,
    read_rows,
    show,
    show_side_by_side,
)
from imapce.estimators.given import less_labels, numbers_in
from imapce.estimators.stability import HalvedFits
from imapce.priors.base import Prior
from imapce.priors.problem import FlatRowsError, Problem
from imapce.rows.base import Rows
from imapce.rows.open import ENGINES, open_rows
from imapce.search.descent import canonical_frame
from imapce.search.race import Optimum, Progress, Solution, Trace, Views
from imapce.tables.columns import Unknown
from imapce.tables.reader import Reader

OUTLIERS = ("auto", "keep", "trim")
LARGEST_TERM = 1e150


class IMAPCE(HalvedFits, LinearView):
    """A linear view that keeps variance, drops what is known and pulls apart the clusters of the rest.

    Minimises ‖X − XVVᵀ‖² − α‖Y − YVVᵀ‖² + μ·κ(ZV) over orthonormal V (d, k): X the data, Y what is known, Z the rows
    that are not known yet, κ Mardia's kurtosis. By default known columns and labels are explained away: X and Z are the
    rows less their effect, X° = X − LB, estimated given the clusters, and equation 2 says nothing else of them. To be
    erased (`erase=True`) they bind the axes instead, so that nothing linear of them is left.

    Parameters
    ----------
    n_components : axes of the view, usually 2 or 3.
    alpha : weight of the known. "auto" explains known columns and labels away (∞, which may be given as well), weighs
        known rows as much as the data and tries a few weights for a background. A number weighs all that is known as
        the paper does (0 ignores it, 1 is the paper's), and explains nothing away.
    mu : weight of the kurtosis; a number (below 0 shows parts of less than 21 % of the rows), or "paper" for the
        paper's rule (one to two orders of magnitude below the reconstruction error of contrastive PCA). "auto" tries 0
        (PCA's plane), 0.1, 1, 10 and 100 times that and, where a cluster is a minority, −1 and −10 times, and shows the
        optimum in which the clusters are seen best; beside a background, the one that falls apart most clearly.
    standardize : scale every column to unit variance (a categorical column as a whole); False only centres.
    n_starts : starting points tried at once; the first four are closed-form, the rest random.
    tol : relative size of the gradient at which a start has converged.
    max_iter : iterations after which a start is stopped.
    outliers : "trim" sets gross outliers aside: no mean, scale or moment counts them; `transform` still places them.
        "keep" uses every row. "auto" trims where α or μ is automatic and keeps where both are given. Missing values are
        filled before, with means that count every row.
    missing : "error" refuses missing values; "mean" fills them with the means (of a category: shares) seen in `fit`.
    engine : "auto", "dense", "sparse", "moment_tensor", "files", "dask" or "cuda"; how rows are reduced, never what
        comes out. Arrays of a card (CuPy, PyTorch, JAX) are reduced there, and "cuda" brings those of the host and of
        files there (`imapce[gpu]`), in parts where they are larger than the card. `engine_` tells which it was.
    random_state : seed of the random starts where α and μ are given; an automatic fit is the same whatever it is.
    verbose : True shows a bar and says which engine was taken; a function is called with words and the share that is
        done (None: nobody knows), ten times a second at most, and may raise to cancel. As `progress` elsewhere.

    Fitted: `alpha_` and `mu_` as used (α = ∞: nothing was weighed), `optima_` (distinct optima of equation 2, the view
    first), `effect_` (B, what the known does to the rows; None where nothing was explained away), `outliers_`
    (positions of the rows set aside), `read_back_` (how well the known is read from the view and from the clusters, and
    chance; None where no column or label is known), `n_clusters_` (how many clusters were found; None where none were
    looked for) and, where α or μ is automatic, `path_`, every optimum tried with its scores. `alpha_` and `mu_` may be
    given again: they lead to the same view.

    Examples
    --------
    >>> from imapce import IMAPCE, Attributes, datasets
    >>> X = datasets.make_synthetic(300).X
    >>> IMAPCE().fit_transform(X, prior=Attributes([0, 1, 2, 3])).shape
    (300, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha: float | str = "auto",
        mu: float | str = "auto",
        standardize: bool = True,
        n_starts: int = 10,
        tol: float = 1e-6,
        max_iter: int = 500,
        outliers: Literal["auto", "keep", "trim"] = "auto",
        missing: Literal["error", "mean"] = "error",
        engine: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | Tell = False,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.mu = mu
        self.standardize = standardize
        self.n_starts = n_starts
        self.tol = tol
        self.max_iter = max_iter
        self.outliers = outliers
        self.missing = missing
        self.engine = engine
        self.random_state = random_state
        self.verbose = verbose

    # What decides automatic results; see `imapce.common.settings`.
    settings: ClassVar[Settings] = SETTINGS

    alpha_: float
    mu_: float
    objective_: float
    kurtosis_: float
    optima_: list[Optimum]
    path_: list[Optimum]
    read_back_: dict[str, float | None] | None
    n_iter_: int
    n_evaluations_: int
    stop_reason_: str
    n_clusters_: int | None
    trace_: Trace
    engine_: str

    def _open(self, matrix: Any) -> Rows:
        with np.errstate(over="ignore", invalid="ignore"):
            rows = open_rows(matrix, engine=self.engine, n_components=self.n_components)
        if self.verbose and not callable(self.verbose):
            print(f"engine {rows.engine}: {rows.because}")
        return rows

    def _fit_rows(self, rows: Rows, priors: list[Prior]) -> None:
        self.solve(self.pose(rows, priors, self.reader_))

    def pose(self, rows: Rows, priors: list[Prior], reader: Reader) -> Problem:
        """X, Y and Z of rows that are open already, with gross outliers set aside where `outliers` says so."""
        self.reader_ = reader
        trim = self.outliers == "trim" or (self.outliers == "auto" and self._walks)
        rules = self.settings.outliers if trim else None
        return pose_for(self, rows, priors, trim=rules, explain=self.explains)

    @property
    def explains(self) -> bool:
        """Whether known columns and labels are explained away, and not weighed."""
        return self.alpha in ("auto", np.inf)

    @property
    def _walks(self) -> bool:
        """Whether a path is walked: where a weight is automatic, or is one that only a path finds views at (α = ∞,
        μ < 0), so that `alpha_` and `mu_` of a fitted model lead to its view again.
        """
        return self.explains or self.mu == "auto" or (not isinstance(self.mu, str) and self.mu < 0)

    def look_for_clusters(
        self,
        problem: Problem,
        unexplored: Mask | None = None,
        watch: Watch = UNWATCHED,
        *,
        granularity: str = "auto",
        n_clusters: int | None = None,
    ) -> SampleClusters | None:
        """The clusters that choose the view and that the known is explained given; None where neither is asked for.

        `unexplored` (n,) are the rows to explore among all of the table, where a subset is known. `granularity` and
        `n_clusters` are what an exploration asks of its clusters.
        """
        if problem.with_known is None and (problem.Y.is_background or not self._walks):
            return None
        if unexplored is None:
            unexplored = np.ones(len(problem.set_aside), dtype=bool)
            if problem.Y.known is not None:
                unexplored[~problem.set_aside] = ~problem.Y.known
        return find_clusters(
            problem,
            unexplored,
            granularity=granularity,
            n_clusters=n_clusters,
            settings=self.settings.clusters,
            progress=watch.tell,
        )

    def solve(
        self,
        problem: Problem,
        *,
        candidate: SampleClusters | None = None,
        before: Array | None = None,
        watch: Watch | None = None,
    ) -> None:
        """Fit to a problem that is posed already, as every step of an `Exploration` does; `fit` ends here too.

        A `candidate` are the clusters of its rows, and what the known does to them, where they were found before, and
        `before` the axes of the view of the step before. The `watch` is told instead of whom `verbose` says.
        """
        if watch is None and self.verbose:
            with watching(self.verbose) as shown:
                self.solve(problem, candidate=candidate, before=before, watch=shown)
            return
        watch = watch or UNWATCHED
        if int(problem.Z.informative.sum()) < self.n_components:
            raise FlatRowsError.of_views(self.n_components)
        # Steps of an exploration have clusters, whose verdict names such a column.
        names_column = candidate is None
        candidate = self.look_for_clusters(problem, watch=watch) if candidate is None else candidate
        if problem.with_known is not None:
            assert candidate is not None
            assert candidate.effect is not None
            problem = problem.given(candidate.effect)
            if int(problem.Z.informative.sum()) < self.n_components:
                raise FlatRowsError.of_views(self.n_components)
        if problem.Y.erased is not None:
            problem.directions()
            if problem.directions_left().size < self.n_components:
                raise FlatRowsError.of_views(self.n_components)
        self._require_range_of_weights(problem)
        solution = self._solution(problem, candidate, before, None if watch is UNWATCHED else told_in_rounds(watch))
        self._keep(solution, problem, candidate, names_column=names_column)
        if problem.remarks and self.verbose and not callable(self.verbose):
            print(*problem.remarks)

    def _require_range_of_weights(self, problem: Problem) -> None:
        """The terms of the gradient are squared, and their squares must fit in a float."""
        known = max((weight * form.trace for weight, form in problem.Y.second_moments), default=0.0)
        for name, value, size in (("alpha", self.alpha, known), ("mu", self.mu, float(problem.Z.n_rows))):
            if isinstance(value, str) or value == np.inf or abs(float(value)) <= LARGEST_TERM / max(size, 1.0):
                continue
            raise InvalidValueError(
                name,
                f"must not exceed {LARGEST_TERM / max(size, 1.0):.0e} in size with these rows and priors, or "
                f"squares overflow; got {value!r}.",
            )

    def _solution(
        self,
        problem: Problem,
        candidate: SampleClusters | None,
        before: Array | None,
        callback: Callable[[Progress], None] | None,
    ) -> Solution:
        """The search at the settings given, or along the path where one of them is to be chosen."""
        if self._walks:
            search = PathSearch(
                problem,
                # A background tells what else could split the rows, and clusters of all directions know nothing of it.
                candidate=None if problem.Y.is_background else candidate,
                before=before,
                alpha=self.alpha,
                mu=self.mu,
                n_starts=self.n_starts,
                tol=self.tol,
                max_iter=self.max_iter,
                callback=callback,
                settings=self.settings,
            )
            solution = search.run()
            if search.islands:
                columns = self.reader_.columns or self.reader_.names
                names = " and ".join(repr(columns[source]) for source in search.islands)
                words = f"{solution.stop_reason} The islands of this view are the levels of {names}."
                solution = replace(solution, stop_reason=words)
        else:
            solution = solve_at(
                problem,
                float(self.alpha) if problem.Y.any_known else 0.0,
                "paper" if isinstance(self.mu, str) else self.mu,
                n_starts=self.n_starts,
                seed=int(random_generator(self.random_state).randint(2**31 - 1)),
                tol=self.tol,
                max_iter=self.max_iter,
                callback=callback,
            )
        return solution

    def _keep(
        self, solution: Solution, problem: Problem, candidate: SampleClusters | None, *, names_column: bool
    ) -> None:
        """Fitted attributes, in the canonical rotation and sign."""
        C_X = problem.X.second_moment
        self.optima_ = Views(
            replace(one, components=canonical_frame(one.V, C_X @ one.V).T.copy()) for one in solution.optima
        )
        self.path_ = Views(solution.path)
        prior, settings = self._known_in_words(problem), self.settings.clusters
        leakage = measure_leakage(problem, self.optima_[0].V, candidate, prior=prior, settings=settings)
        self.read_back_ = None if leakage is None else leakage.to_dict()
        self.n_clusters_ = None if candidate is None else len(np.unique(candidate.labels))
        self.effect_ = (
            None if problem.with_known is None or problem.effect is None else problem.with_known.shown(problem.effect)
        )
        best = self.optima_[0]
        self.alpha_, self.mu_ = best.alpha, best.mu
        self.objective_, self.kurtosis_ = best.objective, best.kurtosis
        self.outliers_ = np.flatnonzero(problem.set_aside)
        self.engine_ = problem.X.rows.engine
        keep_view(self, best.components, problem.X)
        self.n_iter_ = max(1, solution.n_iterations)
        self.n_evaluations_ = solution.n_evaluations
        column, names = "", self.reader_.columns or self.reader_.names
        if candidate is not None and names_column:
            hidden = np.unique(problem.sources[problem.hidden_columns]).tolist()
            column = candidate.determining_column(names, hidden)
        remarks = [*([f"{column[0].upper()}{column[1:]}."] if column else []), *problem.remarks]
        messages = [solution.stop_reason, *([] if leakage is None else [leakage.message]), *remarks]
        self.stop_reason_ = " ".join(messages)
        self.trace_ = solution.trace
        if not solution.converged:
            warnings.warn(self.stop_reason_, ConvergenceWarning, stacklevel=7)

    def _known_in_words(self, problem: Problem) -> str:
        """The known columns and labels by their names, the first three."""
        columns = self.reader_.columns or self.reader_.names
        names = [columns[source] for source in np.unique(problem.sources[problem.hidden_columns])]
        codes = () if problem.Y.labels is None else problem.Y.labels.codes
        return listing([*names, *(code.title or "labels" for code in codes)], 3)

    def transform(self, X: Any, labels: Any = None, *, view: int = 0, unknown: Unknown | None = None) -> Array:
        """given(X)·components_ᵀ, row by row: a row's place depends on no other row.

        `labels` are those of the rows of X where labels were known in `fit` and not erased (a list of them where these
        were several); None among them is a row whose label is not known, from which nothing is taken. `view` chooses
        among `optima_`; `unknown` is "error" or "ignore": refuse categories that `fit` did not see (the default), or
        name them in a warning and take them for none.

        >>> X = np.random.default_rng(0).normal(size=(50, 4))
        >>> model = IMAPCE(mu=10.0, alpha=0.0, random_state=0).fit(X)
        >>> model.transform(X, view=0).shape
        (50, 2)
        """
        check_is_fitted(self)
        components = self._optimum(view).components
        return less_labels(self, show(self, X, components, unknown), components, labels)

    def transform_all(
        self, X: Any, labels: Any = None, *, most: int | None = None, unknown: Unknown | None = None
    ) -> Array:
        """(m, n, k): the rows in each of the first `most` of `optima_`, read once; the rest as in `transform`.

        >>> X = np.random.default_rng(0).normal(size=(50, 4))
        >>> model = IMAPCE(mu=10.0, alpha=0.0, random_state=0).fit(X)
        >>> bool(np.allclose(model.transform_all(X)[0], model.transform(X)))
        True
        """
        check_is_fitted(self)
        if most is not None:
            require_count("most", most)
        axes = [one.components for one in self.optima_[:most]]
        if is_dask(X):
            views = show_side_by_side(self, X, axes, unknown)
            if not self.label_names and labels is None:
                return views
            return np.stack([less_labels(self, view, one, labels) for view, one in zip(views, axes, strict=True)])
        matrix = read_rows(self, X, unknown)
        return np.stack([less_labels(self, on_host(place(self, matrix, one)), one, labels) for one in axes])

    def _optimum(self, view: Any) -> Optimum:
        if not is_whole(view) or not 0 <= view < len(self.optima_):
            raise InvalidValueError(
                f"view must be from 0 to {len(self.optima_) - 1}, a place in optima_; got {view!r}."
            )
        return self.optima_[view]

    def inverse_transform(self, X: Any) -> Array:
        """The (encoded) data a view stands for, X·components_·scale_ + mean_, in the units of the table."""
        check_is_fitted(self)
        width = len(self.components_)
        embedding = numbers_in(X, width, one_for="column per axis", columns="one column per axis")
        return self.reader_.to_units((embedding @ self.components_) * self.scale_ + self.mean_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to `path` (JSON and .npy in one zip, no pickle); `IMAPCE.load` reads it."""
        # The file knows the model it restores, so the model looks it up when it is needed.
        from imapce.estimators.model_file import write_model

        check_is_fitted(self)
        write_model(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> IMAPCE:
        """The model that `save` wrote, as `load_model` reads it.

        >>> X = np.random.default_rng(0).normal(size=(50, 4))
        >>> IMAPCE(mu=10.0, alpha=0.0, random_state=0).fit(X).save("view.imapce")
        >>> IMAPCE.load("view.imapce").transform(X).shape
        (50, 2)
        """
        from imapce.estimators.model_file import load_model

        return load_model(path)

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        check_common(self, "n_starts", "max_iter")
        require_number_or_rule("alpha", self.alpha, ("auto",), infinite=True)
        require_number("tol", self.tol)
        require_number_or_rule("mu", self.mu, ("auto", "paper"), negative=True)
        require_choice("outliers", self.outliers, OUTLIERS)
        require_verbose(self.verbose)
        require_choice("engine", self.engine, ENGINES)


def told_in_rounds(watch: Watch) -> Callable[[Progress], None]:
    """What a search is told by; a fit makes several, each in rounds, and knows of no end before it.

    >>> tell = told_in_rounds(Watch(progress=lambda words, share: print(words)))
    >>> tell(Progress(round=1, running=4, best=0.5))
    looking for a view, search 1, round 1, 4 starts running, best objective 0.5
    """
    search, last = 0, 0

    def tell(seen: Progress) -> None:
        nonlocal search, last
        search += seen.round <= last or not search
        last = seen.round
        where = f"search {search}, round {seen.round}, {counted(seen.running, 'start')} running"
        watch.tell(f"looking for a view, {where}, best objective {seen.best:.8g}")

    return tell
