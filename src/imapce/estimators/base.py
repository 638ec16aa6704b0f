"""What every estimator here shares: a fit that is whole or not at all, reading, scikit-learn's books of columns, and
rows of a table on axes, whoever finds these.

A row x is shown at ((x − mean_)/scale_)·axesᵀ. A view has few axes, components_ (k, d), and IMAPCE and the linear
baselines differ only in how they choose them from second moments and, for some, a kurtosis; the rows given the known
have all of them (`given.py`).
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from imapce.common.arrays import Array, as_array, in_kind_of, is_dask, is_on_card, is_scan, on_host
from imapce.common.checks import random_generator, require_count, require_truth
from imapce.common.settings import OutlierSettings
from imapce.common.words import axis_names, counted
from imapce.common.work import one_thread, threads_for
from imapce.errors import InvalidTypeError, InvalidValueError, Sentence, one_line
from imapce.estimators.lazily import PlacedPart, left_lazy
from imapce.priors.base import Prior, stand_in_notes
from imapce.priors.kinds import as_list
from imapce.priors.labels import ReadLabels
from imapce.priors.names import named_columns, with_names_read
from imapce.priors.problem import Problem, pose, require_shape, standardized_data
from imapce.rows.base import Rows
from imapce.rows.open import open_rows, project_matrix
from imapce.rows.standardized import StandardizedRows
from imapce.search.objective import shares_of_kurtosis, stacked_product
from imapce.tables.columns import Unknown
from imapce.tables.encode import Table, column_names, frame, is_table, native_table
from imapce.tables.named import NamedMatrix
from imapce.tables.reader import Reader, require_numbers_in_rows
from imapce.tables.reading import as_read, column_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TableEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator that reads tables; a subclass fits in `_fit` and checks its arguments in `check_parameters`."""

    n_components: int
    standardize: bool
    missing: Literal["error", "mean"]
    random_state: int | np.random.RandomState | None
    reader_: Reader
    notes_: list[str]
    feature_names_in_: NDArray
    n_features_in_: int

    def fit(self, X: Any, y: Any = None, *, prior: Any = None) -> Self:
        """Fit to `X` given what is known.

        `prior` is None, the name of a column ("batch"), Attributes(columns), Labels(y), Samples(background),
        Subset(rows) or a list of these; an array or Series of one label per row means Labels. X may be an array, a
        SciPy sparse matrix, a pandas, polars or Arrow table, or a dask.array or dask.dataframe, whose rows stay where
        they are; it is never changed. A fit that is refused or cancelled leaves the estimator as it was.
        """
        self._fit_whole(X, prior)
        return self

    def _fit_whole(self, X: Any, prior: Any) -> Any:
        """What `_fit` returns; where it raises, the estimator is as it was before."""
        before = dict(self.__dict__)
        try:
            return self._fit(X, None if prior is None else with_names_read(prior, X))
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    @abstractmethod
    def _fit(self, X: Any, prior: Any) -> Any:
        """The fit itself, which may raise at any point; returns X as it was read."""

    @abstractmethod
    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "mean"
        return tags

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in {"transform", "fit_transform"} & set(cls.__dict__):
            setattr(cls, name, left_lazy(cls.__dict__[name]))

    @property
    def _wants_frame(self) -> bool:
        """Whether `set_output` asks for tables; of a Dask collection they are Dask's."""
        own = getattr(self, "_sklearn_output_config", {}).get("transform")
        wanted = own or get_config()["transform_output"]
        if wanted not in ("default", "pandas"):
            raise InvalidValueError(
                f'set_output(transform=...) must be "default" or "pandas" for Dask collections; got {wanted!r}.'
            )
        return wanted == "pandas"

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def input_columns(self) -> tuple[str, ...] | None:
        """The table columns the model reads, in their order; None for one fitted on an array."""
        check_is_fitted(self)
        return self.reader_.columns

    def _keep_books(self, X: Any, *, learning: bool) -> None:
        """n_features_in_ and feature_names_in_: set while learning, held against X afterwards."""
        if isinstance(X, NamedMatrix):
            self._check_names(list(X.names), learning=learning)
            return
        if is_dask(X):
            from imapce.tables.distributed import outline

            X = outline(X)
        if is_scan(X):
            self._check_names(list(X.columns) if learning else list(self.feature_names_in_), learning=learning)
            return
        X = native_table(X)
        if is_table(X) and not type(X).__module__.startswith("pandas"):
            self._check_names(column_names(X), learning=learning)
            return
        if not is_table(X):
            require_numbers_in_rows(X)
        try:
            validate_data(self, X, reset=learning, skip_check_array=True)
        except (TypeError, ValueError, IndexError) as error:
            if is_table(X):
                # Word for word, line breaks included: scikit-learn's own checks hold estimators to this message.
                raise InvalidValueError(str(error)) from error
            kind = InvalidTypeError if isinstance(error, TypeError) else InvalidValueError
            raise kind("X", Sentence("cannot be used: ", one_line(error))) from error

    def _check_names(self, names: list[str], *, learning: bool) -> None:
        """Column names of a table scikit-learn does not know, held to those of fit, in any order."""
        if learning:
            self.feature_names_in_ = np.asarray(names, dtype=object)
            self.n_features_in_ = len(names)
        else:
            self.reader_.require_names(names)


class LinearRows(TableEstimator):
    """What everything that places rows on axes shares; a subclass finds the axes in `_fit_rows`."""

    mean_: Array
    scale_: Array

    @property
    @abstractmethod
    def _shown_axes(self) -> Array:
        """The axes (m, d) that rows are shown on, in standardised space."""

    def _fit(self, X: Any, prior: Any) -> Any:
        self.check_parameters()
        priors = self._priors(prior, X)
        for one in priors:
            one.require_same_index(X)
        X = as_read(X, named=named_columns(priors))
        matrix = learn_for_view(self, X)
        priors = [one.resolve(matrix.shape[0]) if one.has_effect else one for one in priors]
        # On a card, threads of the host wait for each other: 0.32 s instead of 0.40 s for 2,000,000 × 784.
        with one_thread() if is_on_card(matrix) else threads_for(*matrix.shape):
            self._fit_rows(self._open(matrix), priors)
        self.notes_ += stand_in_notes(X, priors, self.reader_) if priors else []
        return matrix

    @abstractmethod
    def _fit_rows(self, rows: Rows, priors: list[Prior]) -> Any:
        """The fit itself: what `rows` and the priors tell becomes fitted attributes."""

    def _open(self, matrix: Any) -> Rows:
        with np.errstate(over="ignore", invalid="ignore"):
            return open_rows(matrix, n_components=self.n_components)

    def fit_transform(self, X: Any, y: Any = None, *, prior: Any = None) -> Array:
        """`fit`, then `transform` of the same rows, which are read once for both (but where they lie on a cluster)."""
        matrix = self._fit_whole(X, prior)
        if is_dask(X):
            view = self._shown_lazily(X, self._shown_axes, names=self.get_feature_names_out().tolist())
        else:
            view = in_kind_of(X, place(self, matrix, self._shown_axes))
        return self._with_known_labels(view, self._priors(prior, X))

    def _priors(self, prior: Any, X: Any) -> list[Prior]:
        """What is known of the rows of X."""
        return [] if prior is None else as_list(with_names_read(prior, X))

    def _with_known_labels(self, view: Any, priors: list[Prior]) -> Any:
        """The view of the rows of `fit` where their labels take part in it."""
        return view

    def transform_to(
        self, path: str | os.PathLike[str], X: Any, *, columns: Sequence[str] | None = None, **settings: Any
    ) -> int:
        """Write `transform` of X to a .parquet, .arrow, .csv or .tsv file, whole or not at all, and tell how many rows.

        X is read some rows at a time, so that a `scan` and what comes of it need not fit in memory. The file has
        `columns` of X (all of them by default, [] for none), the number of the row and the axes; `settings` are those
        of `transform` (labels=, view=, unknown=).

        >>> from imapce import IMAPCE
        >>> X = np.random.default_rng(0).normal(size=(60, 4))
        >>> IMAPCE(alpha=0.0, mu=1.0, random_state=0).fit(X).transform_to("view.parquet", X)
        60
        """
        # What writes tables takes a tenth of a second to import, which few who fit need.
        from imapce.estimators.view_file import write_view

        check_is_fitted(self)
        # Rows come some at a time, and their labels all at once.
        labels = self._read_labels(settings.pop("labels", None))

        def placed(rows: Any, start: int) -> Array:
            if labels is None:
                return on_host(self.transform(rows, **settings))
            some = [one.of_rows(slice(start, start + len(rows))) for one in labels]
            return on_host(self.transform(rows, labels=some, **settings))  # type: ignore[call-arg]

        return write_view(
            path,
            X,
            placed,
            axes=self.get_feature_names_out().tolist(),
            reads=self.input_columns,
            columns=columns,
        )

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """The rows on the axes."""

    def _read_labels(self, labels: Any, n_rows: int | None = None) -> list[ReadLabels] | None:
        """Labels of the rows to place, one for each that takes part; None where none does."""
        if labels is not None:
            raise InvalidValueError(
                "labels", "must be None: no labels were known in fit, so none take part in the view."
            )
        return None

    def _with_labels(self, view: Any, components: Array, labels: Any) -> Any:
        """Rows in the view with these axes, where what is known of them beside their columns takes part in it."""
        self._read_labels(labels)
        return view

    def _shown_lazily(
        self, X: Any, components: Array, unknown: Unknown | None = None, names: Sequence[str] | None = None
    ) -> Any:
        from imapce.tables.distributed import each_part

        self.reader_.require_table_for_categories(X)
        self._keep_books(X, learning=False)
        place = PlacedPart(self.reader_, self._column_weights(components), self.mean_, self.missing, unknown)
        names = names or axis_names(len(components), type(self).__name__.lower())
        return each_part(X, place, names, frame=self._wants_frame)

    def _axes_of_columns(self, components: Array) -> Array:
        """Axes (m, d) as they act on the standardised columns of a row."""
        return components

    def _column_weights(self, components: Array) -> Array:
        """Axes (m, d) as weights (d, m) of the columns in their own units."""
        inverse = np.divide(1.0, self.scale_, out=np.zeros_like(self.scale_), where=self.scale_ > 0)
        return (self._axes_of_columns(components) * inverse).T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LinearView(LinearRows):
    """What every linear view shares; a subclass chooses the axes in `_fit_rows` and hands them to `_keep_view`."""

    components_: Array

    @property
    def _shown_axes(self) -> Array:
        return self.components_

    @property
    def _n_features_out(self) -> int:
        """What scikit-learn names the columns of a view by."""
        return len(self.components_)

    def transform(self, X: Any) -> Array:
        """((x − mean_)/scale_)·components_ᵀ, row by row: a row's place depends on no other row.

        Of a Dask collection it is a dask.array (with set_output "pandas" a dask.dataframe), and nothing is computed
        before it is asked for.
        """
        return self._view(X)

    def _view(self, X: Any, labels: Any = None) -> Array:
        check_is_fitted(self)
        return self._with_labels(show(self, X, self.components_), self.components_, labels)

    def plot(self, X: Any, *, color: Any = None, labels: Any = None, **settings: Any) -> Figure:
        """The picture of the rows in the view; `color` and `settings` are those of `plotting.plot_embedding`, `labels`
        those of `IMAPCE.transform`. `color` may be the name of a column of X; of more than three axes the first two
        are drawn.

        >>> from imapce import IMAPCE
        >>> X = np.random.default_rng(0).normal(size=(60, 4))
        >>> IMAPCE(alpha=0.0, mu=1.0, random_state=0).fit(X).plot(X, color=np.arange(60) % 2)
        <Figure size 760x560 with 1 Axes>
        """
        from imapce.plotting.scatter import first_axes, plot_embedding, words_of_view

        view = first_axes(self._view(X, labels))
        told = words_of_view(self, f"{counted(len(view), 'row')} in the view of {type(self).__name__}")
        if isinstance(color, str):
            color = {color: column_of(X, color, "color")}
        return plot_embedding(view, color=color, **(told | settings))

    def influence(self, X: Any, *, labels: Any = None) -> Array:
        """How much of the view each row decides: n·max(‖qᵢ‖²/Σ‖q‖², sᵢ²/Σs²) with q = XV and s = qᵀ(Σqqᵀ)⁻¹q.

        The first is the row's share of the variance kept, ‖XV‖², the second its share of the kurtosis, both among the
        rows given; 1 is an average row. A row that was set aside in `fit` counts here like any other.

        >>> from imapce import IMAPCE
        >>> X = np.random.default_rng(0).normal(size=(60, 4))
        >>> X[7] *= 9
        >>> int(np.argmax(IMAPCE(alpha=0.0, mu=0.0).fit(X).influence(X)))
        7
        """
        check_is_fitted(self)
        # The shares are among all rows, so those of a cluster come here: two numbers for each.
        view = np.array(on_host(self._view(X, labels)))
        # In the largest value's units, whose fourth powers fit in a float.
        view /= max(float(np.abs(view).max(initial=0.0)), np.finfo(np.float64).tiny)
        variance = np.einsum("ik,ik->i", view, view)
        total = max(float(variance.sum()), np.finfo(np.float64).tiny)
        return len(view) * np.maximum(variance / total, shares_of_kurtosis(view))

    def loadings(self) -> Any:
        """A table of features, those that shape the view most first.

        For every axis of `get_feature_names_out`, such as imapce0, its weight there, and in imapce0_correlation the
        correlation of the feature with that axis; `contribution` is the feature's share of the view (the weights
        squared, averaged over the axes).
        """
        check_is_fitted(self)
        share = np.mean(self.components_**2, axis=0)
        order = np.argsort(-share, kind="stable")
        columns: dict[str, NDArray] = {"feature": np.asarray(self.encoded_feature_names_, dtype=object)[order]}
        names = axis_names(len(self.components_), type(self).__name__.lower())
        for name, axis, correlation in zip(names, self.components_, self.axis_correlation_, strict=True):
            columns[name] = axis[order]
            columns[f"{name}_correlation"] = correlation[order]
        columns["contribution"] = share[order]
        return frame(columns)


# --- for those who write an estimator ---------------------------------------------------------------------------------


def check_common(estimator: TableEstimator, *whole_numbers: str) -> None:
    """The parameters every estimator has; `whole_numbers` names those that must be at least 1."""
    for name in ("n_components", *whole_numbers):
        require_count(name, getattr(estimator, name))
    if estimator.missing not in ("error", "mean"):
        raise InvalidValueError(f'missing must be "error" or "mean"; got {estimator.missing!r}.')
    require_truth("standardize", estimator.standardize)
    random_generator(estimator.random_state)


def learn(estimator: TableEstimator, X: Any, *, named: Collection[str] | None = ()) -> Any:
    """X as a finite matrix; `reader_` remembers its columns. `named` are columns named in a prior."""
    X = as_read(X, named=named)
    estimator.reader_, matrix = Reader.learn(X, missing=estimator.missing)
    estimator.notes_ = list(X.notes) if isinstance(X, Table) else []
    estimator._keep_books(X, learning=True)
    return matrix


def read_rows(estimator: TableEstimator, X: Any, unknown: Unknown | None = None) -> Any:
    """New rows as a finite matrix, held to the columns of `fit`; `unknown` is that of `Reader.read`."""
    estimator.reader_.require_table_for_categories(X)
    X = estimator.reader_.held_to_columns(X)
    estimator._keep_books(X, learning=False)
    return estimator.reader_.read(
        X, means=getattr(estimator, "mean_", None), missing=estimator.missing, unknown=unknown
    )


def learn_for_view(estimator: LinearRows, X: Any) -> Any:
    """X as it was read, large enough for a view."""
    matrix = learn(estimator, X)
    require_shape(matrix.shape, estimator.n_components)
    return matrix


def data_of(estimator: LinearRows, rows: Rows) -> StandardizedRows:
    """X in standardised form, for methods that need neither Y nor Z."""
    return standardized_data(
        rows, estimator.reader_, n_components=estimator.n_components, standardize=estimator.standardize
    )


def pose_for(
    estimator: LinearRows,
    rows: Rows,
    priors: list[Prior],
    *,
    trim: OutlierSettings | None = None,
    explain: bool = False,
) -> Problem:
    """X, Y and Z as this estimator's parameters want them."""
    return pose(
        rows,
        priors,
        estimator.reader_,
        n_components=estimator.n_components,
        standardize=estimator.standardize,
        missing=estimator.missing,
        trim=trim,
        explain=explain,
    )


def show(
    estimator: LinearRows, X: Any, components: Array, unknown: Unknown | None = None, names: Sequence[str] | None = None
) -> Any:
    """New rows in the view with these axes (m, d), called `names` where they are columns; where and as X is."""
    if is_dask(X):
        return estimator._shown_lazily(X, components, unknown, names)
    return in_kind_of(X, place(estimator, read_rows(estimator, X, unknown), components))


def show_side_by_side(estimator: LinearRows, X: Any, axes: list[Array], unknown: Unknown | None) -> Any:
    """(m, n, k): a Dask collection in several views, read once for all."""
    from imapce.tables.distributed import side_by_side

    return side_by_side(as_array(estimator._shown_lazily(X, np.concatenate(axes), unknown)), len(axes))


def place(estimator: LinearRows, matrix: Any, components: Array) -> Array:
    """Rows as they were read, in the view with these axes (m, d)."""
    with threads_for(*matrix.shape):
        return project_matrix(matrix, estimator._column_weights(components), estimator.mean_)


def keep_view(estimator: LinearView, components: Array, Xs: StandardizedRows) -> None:
    """The fitted attributes every view has; `components` is (k, d) in standardised space."""
    estimator.components_ = components
    estimator.mean_, estimator.scale_ = Xs.mean, Xs.scale
    V = components.T
    CV = stacked_product(Xs.second_moment, V[None])[0]
    axis_variance = np.einsum("dk,dk->k", V, CV) / Xs.n_rows
    spread = np.sqrt(np.outer(axis_variance, Xs.variance))
    estimator.axis_correlation_ = np.divide(CV.T / Xs.n_rows, spread, out=np.zeros_like(spread), where=spread > 0)
    estimator.explained_variance_ratio_ = axis_variance * Xs.n_rows / Xs.second_moment.trace
    estimator.encoded_feature_names_ = estimator.reader_.names


def shown_axes(estimator: LinearRows) -> Array:
    """The axes (m, d) that rows are shown on, in standardised space."""
    return estimator._shown_axes


def open_for(estimator: LinearRows, matrix: Any) -> Rows:
    """The rows of a matrix, opened as the parameters say."""
    return estimator._open(matrix)
