"""A linear view of a table, whoever finds its axes: reading, priors and scaling on the way in, `transform` after.

A view is mean_, scale_ and components_ (k, d): a row x is shown at ((x − mean_)/scale_)·components_ᵀ. IMAPCE and the
linear baselines differ only in how they choose components_ from second moments and, for some, a kurtosis.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from imapce import tables
from imapce.common.checks import random_generator
from imapce.common.words import listed
from imapce.errors import InvalidValueError
from imapce.estimators.base import TableEstimator
from imapce.priors.kinds import Prior, Subset, as_list, require_same_index
from imapce.priors.terms import PriorTerms, prior_terms
from imapce.rows.base import Rows
from imapce.rows.dense import DenseRows
from imapce.rows.open import open_rows
from imapce.rows.sparse import SparseRows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.rows.subspace import Subspace
from imapce.search.objective import shares_of_kurtosis, stacked_product

Array = NDArray[np.float64]

# A d×d matrix of 512 MiB: what decomposes one whole takes minutes there and hours beyond.
MOST_COLUMNS = 8192


class LinearView(TableEstimator):
    """What every linear view shares; a subclass chooses the axes in `_fit_rows` and hands them to `_keep_view`."""

    components_: Array
    scale_: Array

    def _fit(self, X: Any, prior: Any) -> None:
        self._check_parameters()
        priors = as_list(prior)
        for one in priors:
            if isinstance(one, Subset):
                require_same_index(one, X)
        self._fit_rows(self._open(X), priors)

    @abstractmethod
    def _fit_rows(self, rows: Rows, priors: list[Prior]) -> Any:
        """The fit itself: choose the axes from `rows`, then `_keep_view`."""

    def _open(self, X: Any, engine: str = "auto") -> Rows:
        """Read X, learn how its columns are encoded and hand it to an engine; the rest of a fit needs only that."""
        matrix, self._encoding = self._read(X, fitting=True)
        self._check_shape(*matrix.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            return open_rows(matrix, engine=engine, n_components=self.n_components)

    def _standardized(self, rows: Rows) -> StandardizedRows:
        groups = None if self._encoding is None else self._encoding.groups
        return StandardizedRows(rows, groups=groups, standardize=self.standardize)

    def _data(self, rows: Rows) -> StandardizedRows:
        """X in standardised form, refused where it is too large for its squares or varies in too few columns."""
        with np.errstate(over="ignore", invalid="ignore"):
            Xs = self._standardized(rows)
        self._check_range(Xs, "X")
        if int(Xs.informative.sum()) < self.n_components:
            raise InvalidValueError(
                f"X must have at least n_components={self.n_components} columns that vary; got "
                f"{int(Xs.informative.sum())}, the others are constant (or below 1e-150, where squares vanish)."
            )
        return Xs

    def _prior_terms(self, priors: list[Prior], Xs: StandardizedRows) -> PriorTerms:
        """The second moments of what is known, each Y standardised on its own."""

        def open_background(table: Any) -> Rows:
            with np.errstate(over="ignore", invalid="ignore"):
                background = open_rows(self._read_background(table, Xs.mean))
                self._check_range(self._standardized(background), "Samples(background)")
            return self._background_used(background)

        return prior_terms(
            priors,
            Xs,
            columns_of=lambda column: self._columns_of(column, Xs.n_features),
            open_background=open_background,
            standardized=self._standardized,
            min_unexplored=self.n_components + 1,
        )

    def _background_used(self, background: Rows) -> Rows:
        """The rows of a background that count: all of them."""
        return background

    def _admissible(self, terms: PriorTerms, columns: NDArray[np.bool_]) -> Subspace:
        """The directions an axis may take: of `columns` alone, and orthogonal to all that is erased."""
        inside = Subspace(columns, terms.erased)
        if inside.n_erased and inside.size < self.n_components:
            raise InvalidValueError(
                f"Attributes(columns, erase=True) leaves {inside.size} of {int(columns.sum())} directions, and a view "
                f"needs n_components={self.n_components}; erase fewer columns or lower n_components."
            )
        return inside

    def _entries(self, form: QuadraticForm) -> Array:
        """The d×d matrix itself, for methods that decompose it whole."""
        if form.matrix is not None:
            return form.matrix
        if form.size > MOST_COLUMNS:
            raise InvalidValueError(
                f"X must have at most {MOST_COLUMNS} columns for {type(self).__name__}, which decomposes a matrix of "
                f"columns by columns; got {form.size}. Reduce it first, for example with PCA."
            )
        return form @ np.eye(form.size)

    def _keep_view(self, components: Array, Xs: StandardizedRows) -> None:
        """The fitted attributes every view has; `components` is (k, d) in standardised space."""
        self.components_ = components
        self.mean_, self.scale_ = Xs.mean, Xs.scale
        V = components.T
        CV = stacked_product(Xs.second_moment, V[None])[0]
        axis_variance = np.einsum("dk,dk->k", V, CV) / Xs.n_rows
        spread = np.sqrt(np.outer(axis_variance, Xs.variance))
        self.axis_correlation_ = np.divide(CV.T / Xs.n_rows, spread, out=np.zeros_like(spread), where=spread > 0)
        self.explained_variance_ratio_ = axis_variance * Xs.n_rows / Xs.second_moment.trace
        self.encoded_feature_names_ = self._encoded_names(len(self.mean_))
        self._n_features_out = len(components)

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

    def influence(self, X: Any) -> Array:
        """How much of the view each row decides: n·max(‖qᵢ‖²/Σ‖q‖², sᵢ²/Σs²) with q = XV and s = qᵀ(Σqqᵀ)⁻¹q.

        The first is the row's share of the variance kept, ‖XV‖², the second its share of the kurtosis, both among the
        rows given; 1 is an average row. A row that was set aside in `fit` counts here like any other.

        >>> np.argsort(-model.influence(X))[:10]                  # doctest: +SKIP
        """
        # A copy of numbers, whatever set_output makes of a view.
        view = np.array(self.transform(X), dtype=np.float64)
        # In the largest value's units, whose fourth powers fit in a float.
        view /= max(float(np.abs(view).max(initial=0.0)), np.finfo(np.float64).tiny)
        variance = np.einsum("ik,ik->i", view, view)
        total = max(float(variance.sum()), np.finfo(np.float64).tiny)
        return len(view) * np.maximum(variance / total, shares_of_kurtosis(view))

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- checks --------------------------------------------------------------------------------------------------

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
        return random_generator(self.random_state)
