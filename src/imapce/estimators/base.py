"""What every estimator here shares: a fit that is whole or not at all, reading, and scikit-learn's books of columns."""

from __future__ import annotations

import functools
import inspect
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from imapce.common.arrays import is_dask, is_scan
from imapce.common.checks import random_generator, require_count, require_truth
from imapce.errors import InvalidTypeError, InvalidValueError, Sentence, one_line
from imapce.tables.columns import Unknown
from imapce.tables.encode import column_names, is_table
from imapce.tables.named import NamedMatrix
from imapce.tables.reader import Reader, require_numbers_in_rows


@contextmanager
def quiet_about_convergence() -> Iterator[None]:
    """For callers that pass the stop reason on themselves.

    >>> from imapce import IMAPCE
    >>> with quiet_about_convergence():
    ...     model = IMAPCE(alpha=0.0, mu=1.0, max_iter=1).fit(np.random.default_rng(0).normal(size=(20, 4)))
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _left_lazy(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose result scikit-learn puts into the container of `set_output`, but for Dask collections: pandas
    would compute them and bring them here.
    """
    plain = inspect.unwrap(method)

    @functools.wraps(method)
    def chosen(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        return (plain if is_dask(X) else method)(self, X, *args, **kwargs)

    return chosen


class TableEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator that reads tables; a subclass fits in `_fit` and checks its arguments in `check_parameters`."""

    n_components: int
    standardize: bool
    missing: Literal["error", "mean"]
    random_state: int | np.random.RandomState | None
    reader_: Reader
    feature_names_in_: NDArray
    n_features_in_: int

    def fit(self, X: Any, y: Any = None, *, prior: Any = None) -> Self:
        """Fit to `X` given what is known.

        `prior` is None, Attributes(columns), Labels(y), Samples(background), Subset(rows) or a list of them; an array
        or Series of one label per row means Labels. X may be an array, a SciPy sparse matrix, a pandas, polars or Arrow
        table, or a dask.array or dask.dataframe, whose rows stay where they are; it is never changed. A fit that is
        refused or cancelled leaves the estimator as it was.
        """
        self._fit_whole(X, prior)
        return self

    def _fit_whole(self, X: Any, prior: Any) -> Any:
        """What `_fit` returns; where it raises, the estimator is as it was before."""
        before = dict(self.__dict__)
        try:
            return self._fit(X, prior)
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

    def _check_common(self, *whole_numbers: str) -> None:
        """The parameters every estimator has; `whole_numbers` names those that must be at least 1."""
        for name in ("n_components", *whole_numbers):
            require_count(name, getattr(self, name))
        if self.missing not in ("error", "mean"):
            raise InvalidValueError(f'missing must be "error" or "mean"; got {self.missing!r}.')
        require_truth("standardize", self.standardize)
        random_generator(self.random_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "mean"
        return tags

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in {"transform", "fit_transform"} & set(cls.__dict__):
            setattr(cls, name, _left_lazy(cls.__dict__[name]))

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

    def _learn(self, X: Any) -> Any:
        """X as a finite matrix; `reader_` remembers its columns."""
        self.reader_, matrix = Reader.learn(X, missing=self.missing)
        self._keep_books(X, learning=True)
        return matrix

    def _read(self, X: Any, unknown: Unknown | None = None) -> Any:
        """New rows as a finite matrix, held to the columns of `fit`; `unknown` is that of `Reader.read`."""
        self.reader_.require_table_for_categories(X)
        self._keep_books(X, learning=False)
        return self.reader_.read(X, means=getattr(self, "mean_", None), missing=self.missing, unknown=unknown)

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
        """Column names of a table scikit-learn does not know, held to its rules."""
        if learning:
            self.feature_names_in_ = np.asarray(names, dtype=object)
            self.n_features_in_ = len(names)
        elif hasattr(self, "feature_names_in_") and list(self.feature_names_in_) != names:
            raise InvalidValueError(
                "The feature names should match those that were passed during fit, in the same order; "
                f"fit saw {list(self.feature_names_in_)[:5]}..., X has {names[:5]}..."
            )
