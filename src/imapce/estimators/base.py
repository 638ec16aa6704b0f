"""TODO-DOC."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from imapce.common.checks import random_generator, require_count
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.tables.reader import ReadsTables


class TableEstimator(ReadsTables, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What every estimator here shares: a fit that is whole or not at all, and the parameters all of them have."""

    n_components: int
    standardize: bool
    missing: Literal["error", "mean"]
    random_state: int | np.random.RandomState | None

    def fit(self, X: Any, y: Any = None, *, prior: Any = None) -> Self:
        """Fit to `X` given what is known.

        `prior` is None, Attributes(columns), Samples(background), Subset(rows) or a list of them; methods that go by
        labels also take an array with a class for each row. X may be an array, a SciPy sparse matrix or a pandas,
        polars or Arrow table; it is never changed. A fit that is refused or cancelled leaves the estimator as it was.
        """
        before = dict(self.__dict__)
        try:
            self._fit(X, prior)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    @abstractmethod
    def _fit(self, X: Any, prior: Any) -> None:
        """The fit itself; it may raise at any point."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""

    def _check_common(self, *whole_numbers: str) -> None:
        """The parameters every estimator has; `whole_numbers` names those that must be at least 1."""
        for name in ("n_components", *whole_numbers):
            require_count(name, getattr(self, name))
        if self.missing not in ("error", "mean"):
            raise InvalidValueError(f'missing must be "error" or "mean"; got {self.missing!r}.')
        if not isinstance(self.standardize, (bool, np.bool_)):
            raise InvalidTypeError(f"standardize must be True or False; got {self.standardize!r}.")
        random_generator(self.random_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "mean"
        return tags
