"""Rows less the effect of the known, x° = x − Bᵀl: on the axes of a view, and in all columns as a transformer.

Known columns come with a row. Labels stand beside it, so those of new rows are asked for; a row without one has nothing
taken from it on their account.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from imapce.choice.leakage import measure_leakage
from imapce.clusters.clustering import find_clusters
from imapce.common.arrays import Array, Codes, as_array, is_dask, put_beside, shifted
from imapce.common.checks import require_choice, require_truth
from imapce.common.settings import SETTINGS
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.base import LinearRows, pose_for, show, shown_axes
from imapce.priors.base import Prior, labels_among
from imapce.priors.effect import Effect
from imapce.priors.kinds import labels_of_new_rows
from imapce.priors.labels import LabelCode, ReadLabels
from imapce.rows.base import Rows
from imapce.rows.open import ENGINES, open_rows
from imapce.tables.columns import Unknown


class ExplainedRows(LinearRows):
    """Rows with `effect_` taken from them before they are placed; None takes nothing."""

    effect_: Effect | None
    outliers_: Codes

    def given(self, X: Any, labels: Any = None) -> Array:
        """(n, d): the standardised rows less the effect of the known, X° = X − LB; `labels` as in `transform`.

        Columns that are known, and those that the known tells wholly, are 0.

        >>> from imapce import IMAPCE
        >>> rng, run = np.random.default_rng(0), np.arange(60) % 2
        >>> X = rng.normal(size=(60, 3)) + 5 * run[:, None]
        >>> left = IMAPCE().fit(X, prior=run).given(X, labels=run)
        >>> bool(np.abs(left[run == 0].mean(axis=0) - left[run == 1].mean(axis=0)).max() < 0.1)
        True
        """
        check_is_fitted(self)
        every = np.eye(len(self.scale_))
        return self._with_labels(show(self, X, every, names=self.reader_.names), every, labels)

    @property
    def label_names(self) -> tuple[str, ...]:
        """What the labels are called that `transform` needs of every row, in their order; none where it needs none.

        >>> from imapce import IMAPCE
        >>> X = np.random.default_rng(0).normal(size=(60, 3))
        >>> IMAPCE().fit(X, prior=np.arange(60) % 2).label_names
        ('labels',)
        """
        return tuple(code.title or "labels" for code in self._codes)

    @property
    def _codes(self) -> tuple[LabelCode, ...]:
        return () if self.effect_ is None else self.effect_.codes

    def _read_labels(self, labels: Any, n_rows: int | None = None) -> list[ReadLabels] | None:
        return labels_for(self, labels, n_rows) if self._codes else super()._read_labels(labels, n_rows)

    def _with_labels(self, view: Any, components: Array, labels: Any) -> Any:
        return less_labels(self, view, components, labels)

    def _axes_of_columns(self, components: Array) -> Array:
        if self.effect_ is None:
            return components
        return self.effect_.frame(components, self.scale_)[:, : len(self.scale_)]

    def _takes_part(self, prior: Prior) -> bool:
        """Whether what is known in `fit` is among what is taken from the rows."""
        return not prior.erase

    def _with_known_labels(self, view: Any, priors: list[Prior]) -> Any:
        if not self._codes:
            return view
        read = labels_among(one for one in priors if self._takes_part(one))
        counted = np.ones(len(read[0]), dtype=bool)
        counted[self.outliers_] = False
        # Without the rows set aside a label may say nothing; a class that only they have says nothing of them.
        varying = [one for one in read if one.of_rows(counted).varies]
        told = [one.only(code.names) for one, code in zip(varying, self._codes, strict=True)]
        return self._with_labels(view, shown_axes(self), told)


def labels_for(model: ExplainedRows, labels: Any, n_rows: int | None = None) -> list[ReadLabels]:
    """Labels of the rows to place, one for each that takes part in a model."""
    names = ", ".join(model.label_names)
    if labels is None:
        raise InvalidValueError(
            "labels",
            f"must be given for the rows of X: the fit was given {names}, whose effect is taken from every "
            "row. Pass labels=..., None for a row whose label is not known; a view fitted with Labels(y, "
            "erase=True) needs none.",
        )
    return labels_of_new_rows(labels, model._codes, n_rows)


def less_labels(model: ExplainedRows, view: Any, components: Array, labels: Any) -> Any:
    """Rows in the view with these axes less what is known of them beside their columns."""
    read = model._read_labels(labels, None if is_dask(view) else len(view))
    if read is None or model.effect_ is None:
        return view
    shift = model.effect_.beside(read) @ model.effect_.frame(components, model.scale_)[:, len(model.scale_) :].T
    if is_dask(view):
        return shifted(view, shift)
    return view + put_beside(view, shift)


def numbers_in(X: Any, width: int, *, one_for: str, columns: str) -> Any:
    """X (n, width) as numbers, a Dask collection as it is; refused with what its columns must be otherwise."""
    try:
        rows = as_array(X) if is_dask(X) else np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError("X", f"must hold numbers, one {one_for}; {error}.") from error
    if rows.ndim != 2 or rows.shape[1] != width:
        raise InvalidValueError("X", f"must have {columns} ({width}); got an array of shape {rows.shape}.")
    return rows


class Given(ExplainedRows):
    """Rows less the effect of known columns and labels, in all columns: for whatever looks at them next.

    x° = x − Bᵀl, with l the known columns and labels of a row. B is estimated given the clusters of the rows, so that
    what belongs to them is not taken: batches that hold cell types in unlike shares meet within each type. It is what
    `IMAPCE` looks at, and `IMAPCE().fit(X, prior=prior).given(X)` is the same.

    Parameters
    ----------
    prior : what is known of the rows of `fit`, as there: the name of a column, Attributes(columns), Labels(y), labels
        themselves, or a list of them. With erase=True all that they explain linearly is taken, whatever the clusters
        are. None takes nothing.
    standardize : scale every column to unit variance (a categorical column as a whole); False only centres.
    outliers : "trim" sets gross outliers aside: no mean, scale or effect counts them; `transform` still corrects them.
        "keep" uses every row.
    missing : "error" refuses missing values; "mean" fills them with the means (of a category: shares) seen in `fit`.
    engine : "auto", "dense", "sparse", "moment_tensor", "files", "dask" or "cuda": how rows are reduced, never what
        comes out.

    Fitted: `effect_` (B, what the known does to the rows; None where nothing is known), `read_back_` (how well the
    known is read from the clusters, and chance; "view" is None, for there is none), `mean_`, `scale_`, `outliers_`.

    Examples
    --------
    >>> rng, run = np.random.default_rng(0), np.arange(60) % 2
    >>> X = rng.normal(size=(60, 3)) + 5 * run[:, None]
    >>> left = Given(run).fit_transform(X)
    >>> left.shape, bool(np.abs(left[run == 0].mean(axis=0) - left[run == 1].mean(axis=0)).max() < 0.1)
    ((60, 3), True)
    """

    # Rows that vary in one direction can be corrected.
    n_components = 1
    random_state = None

    def __init__(
        self,
        prior: Any = None,
        *,
        standardize: bool = True,
        outliers: Literal["trim", "keep"] = "trim",
        missing: Literal["error", "mean"] = "error",
        engine: str = "auto",
    ):
        self.prior = prior
        self.standardize = standardize
        self.outliers = outliers
        self.missing = missing
        self.engine = engine

    read_back_: dict[str, float | None] | None
    engine_: str

    @property
    def _shown_axes(self) -> Array:
        return np.eye(len(self.scale_))

    def _open(self, matrix: Any) -> Rows:
        with np.errstate(over="ignore", invalid="ignore"):
            return open_rows(matrix, engine=self.engine, n_components=self.n_components)

    def _priors(self, prior: Any, X: Any) -> list[Prior]:
        """What is known: what `fit` is told, else what the constructor was."""
        priors = super()._priors(self.prior if prior is None else prior, X)
        for one in priors:
            if not one.has_effect:
                raise InvalidTypeError(
                    "prior must be Attributes(columns), Labels(y) or a list of them, whose effect is taken from the "
                    f"rows; got {type(one).__name__}, which has none: pass it to IMAPCE, whose views it weighs on."
                )
        return priors

    def _fit_rows(self, rows: Rows, priors: list[Prior]) -> None:
        trim = SETTINGS.outliers if self.outliers == "trim" else None
        problem = pose_for(self, rows, priors, trim=trim, explain=True)
        self.effect_ = self.read_back_ = None
        if problem.with_known is not None:
            candidate = find_clusters(problem, np.ones(len(problem.set_aside), dtype=bool))
            self.effect_ = candidate.effect
            assert candidate.effect is not None
            # The sample of the clusters is that of the rows with their labels beside them.
            leakage = measure_leakage(problem.given(candidate.effect), None, candidate)
            self.read_back_ = None if leakage is None else leakage.to_dict()
        self.mean_, self.scale_ = problem.X.mean, problem.X.scale
        self.outliers_ = np.flatnonzero(problem.set_aside)
        self.engine_ = problem.X.rows.engine
        self.encoded_feature_names_ = self.reader_.names

    def _takes_part(self, prior: Prior) -> bool:
        return True

    def transform(self, X: Any, labels: Any = None, *, unknown: Unknown | None = None) -> Array:
        """(n, d): the standardised rows less the effect of the known, row by row.

        `labels` are those of the rows of X where labels were known in `fit` (a list of them where these were several);
        None among them is a row whose label is not known, from which nothing is taken. `unknown` is "error" or
        "ignore": refuse categories that `fit` did not see (the default), or name them in a warning and take them for
        none. Of a sparse matrix it is an array: what is left of a zero is seldom zero.

        >>> rng, run = np.random.default_rng(0), np.arange(60) % 2
        >>> X = rng.normal(size=(60, 3)) + 5 * run[:, None]
        >>> Given(run).fit(X).transform(X[:2], labels=[0, 1]).shape
        (2, 3)
        """
        check_is_fitted(self)
        return self._with_labels(show(self, X, self._shown_axes, unknown, self._names_out()), self._shown_axes, labels)

    def inverse_transform(self, X: Any) -> Array:
        """Corrected rows in the units of the table, X·scale_ + mean_; a known column is its mean.

        >>> rng, run = np.random.default_rng(0), np.arange(60) % 2
        >>> X = rng.normal(size=(60, 3)) + 5 * run[:, None]
        >>> model = Given(run)
        >>> model.inverse_transform(model.fit_transform(X)).mean().round(3) == X.mean().round(3)
        np.True_
        """
        check_is_fitted(self)
        rows = numbers_in(X, len(self.scale_), one_for="for each column of fit", columns="the columns of transform")
        return self.reader_.to_units(rows * self.scale_ + self.mean_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The columns; those of a category are called category=value."""
        check_is_fitted(self)
        names = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        return names if len(names) == len(self.scale_) else np.asarray(self.encoded_feature_names_, dtype=object)

    def _names_out(self) -> list[str]:
        return [str(name) for name in self.get_feature_names_out()]

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        require_choice("missing", self.missing, ("error", "mean"))
        require_truth("standardize", self.standardize)
        require_choice("outliers", self.outliers, ("trim", "keep"))
        require_choice("engine", self.engine, ENGINES)
