"""A linear view of a table, whoever finds its axes: `transform`, pictures, loadings and shares of rows.

A view is mean_, scale_ and components_ (k, d): a row x is shown at ((x − mean_)/scale_)·components_ᵀ. IMAPCE and the
linear baselines differ only in how they choose components_ from second moments and, for some, a kurtosis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from imapce.common.arrays import Array
from imapce.common.checks import random_generator
from imapce.common.gpu_arrays import on_host
from imapce.common.words import axis_names
from imapce.errors import InvalidValueError
from imapce.estimators.linear_rows import LinearRows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.search.objective import shares_of_kurtosis, stacked_product
from imapce.tables.encode import frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# A d×d matrix of 512 MiB: what decomposes one whole takes minutes there and hours beyond.
MOST_COLUMNS = 8192


class LinearView(LinearRows):
    """What every linear view shares; a subclass chooses the axes in `_fit_rows` and hands them to `_keep_view`."""

    components_: Array

    @property
    def _shown_axes(self) -> Array:
        return self.components_

    def _entries(self, form: QuadraticForm) -> Array:
        """The d×d matrix itself, for methods that decompose it whole."""
        if form.matrix is not None:
            return form.matrix
        if form.size > MOST_COLUMNS:
            raise InvalidValueError(
                "X",
                f"must have at most {MOST_COLUMNS} columns for {type(self).__name__}, which decomposes a matrix of "
                f"columns by columns; got {form.size}. Reduce it first, for example with PCA.",
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
        self.encoded_feature_names_ = self.reader_.names

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
        return self._with_labels(self._shown(X, self.components_), self.components_, labels)

    def plot(self, X: Any, *, color: Any = None, labels: Any = None, **settings: Any) -> Figure:
        """The picture of the rows in the view; `color` and `settings` are those of `plotting.plot_embedding`, `labels`
        those of `IMAPCE.transform`.

        >>> from imapce import IMAPCE
        >>> X = np.random.default_rng(0).normal(size=(60, 4))
        >>> IMAPCE(alpha=0.0, mu=1.0, random_state=0).fit(X).plot(X, color=np.arange(60) % 2)
        <Figure size 760x560 with 1 Axes>
        """
        from imapce.plotting.scatter import plot_embedding

        settings.setdefault("axis_names", self.get_feature_names_out().tolist())
        return plot_embedding(self._view(X, labels), color=color, **settings)

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

    def _generator(self) -> np.random.RandomState:
        return random_generator(self.random_state)
