"""Methods that are quick, or that fail as told, for tests of the comparison."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from imapce.comparison.methods import EVERY_KIND, OF_ROWS, Method
from imapce.tables.encode import encode, is_table


class FirstColumns:
    """Shows two columns of X as they are, and keeps what it was given."""

    given: Any = None

    settings: Any = None

    def __init__(self, columns: tuple[int, int] = (0, 1), shown: Any = None, **settings: Any) -> None:
        self.columns, self.shown = list(columns), shown
        FirstColumns.settings = settings

    def fit_transform(self, X: Any, prior: Any = None) -> np.ndarray:
        FirstColumns.given = prior
        X = X if self.shown is None else self.shown
        matrix = encode(X).matrix if is_table(X) else X.toarray() if sparse.issparse(X) else np.asarray(X)
        return matrix[:, self.columns]


class Raises:
    """Raises what it is told to when it is fitted."""

    def __init__(self, problem: BaseException, **settings: Any) -> None:
        self.problem = problem

    def fit_transform(self, X: Any, prior: Any = None) -> np.ndarray:
        raise self.problem


class Warns(FirstColumns):
    def fit_transform(self, X: Any, prior: Any = None) -> np.ndarray:
        warnings.warn("stopped early", UserWarning, stacklevel=2)
        return super().fit_transform(X, prior)


def shows(title: str = "columns 0, 1", columns: tuple[int, int] = (0, 1), shown: Any = None, **facts: Any) -> Method:
    return Method(title, FirstColumns, parameters={"columns": columns, "shown": shown}, **{"uses": EVERY_KIND, **facts})


def labelled(title: str = "labelled", **facts: Any) -> Method:
    return Method(title, FirstColumns, uses=OF_ROWS, by_labels=True, **facts)


def fails(problem: BaseException, title: str = "broken") -> Method:
    return Method(title, Raises, parameters={"problem": problem})


def warns() -> Method:
    return Method("loud", Warns)
