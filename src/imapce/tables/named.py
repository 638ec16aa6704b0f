"""A matrix whose columns have names: numbers alone, dense or sparse, never copied into a table to be told apart.

A table of text formats has a type for each column; 30,000 genes have one for all of them, and most of their values are
zero. Names travel beside the matrix here, and sparse stays sparse.

>>> genes = NamedMatrix(np.eye(3), ("CD4", "CD8A", "MS4A1"))
>>> genes.select(["MS4A1", "CD4"]).matrix[0].tolist()
[0.0, 1.0]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from imapce.common.words import close_matches, listing
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.tables.encoding import Encoding, Kind


@dataclass(frozen=True, eq=False)
class NamedMatrix:
    """Numbers in rows and columns, an array or a SciPy sparse matrix, and a name for each column.

    `IMAPCE.fit`, `Exploration` and `Samples` take it as they take a table: columns are matched by name, and loadings
    and descriptions use the names. `about_rows` may hold a table with one row for each row, which is no feature.

    >>> from imapce import IMAPCE
    >>> counts = NamedMatrix(np.random.default_rng(0).poisson(3.0, size=(60, 3)), ("a", "b", "c"))
    >>> IMAPCE(alpha=0.0, mu=0.0).fit(counts).feature_names_in_.tolist()
    ['a', 'b', 'c']
    """

    matrix: Any
    names: Sequence[str]
    about_rows: Any = None

    def __post_init__(self) -> None:
        shape = getattr(self.matrix, "shape", None)
        if shape is None or len(shape) != 2:
            raise InvalidTypeError(
                f"NamedMatrix(matrix) must be a 2-D array or a sparse matrix; got {type(self.matrix).__name__} of "
                f"shape {shape}."
            )
        names = tuple(str(name) for name in self.names)
        if len(names) != shape[1]:
            raise InvalidValueError(
                f"NamedMatrix(names) must have one name for each of the {shape[1]} columns; got {len(names)}."
            )
        if repeats := [name for name, count in Counter(names).items() if count > 1]:
            raise InvalidValueError(
                f"NamedMatrix(names) must have a different name for each column, got {listing(map(repr, repeats))} "
                "more than once: rename the repeats (of an AnnData by adata.var_names_make_unique())."
            )
        if self.about_rows is not None and len(self.about_rows) != shape[0]:
            raise InvalidValueError(
                f"NamedMatrix(about_rows) must have one row for each of the {shape[0]} rows; got "
                f"{len(self.about_rows)}."
            )
        object.__setattr__(self, "names", names)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, as of the matrix.

        >>> NamedMatrix(np.eye(2), ("a", "b")).shape
        (2, 2)
        """
        return self.matrix.shape

    def select(self, names: Sequence[str], what: str = "the matrix") -> NamedMatrix:
        """These columns in this order; the matrix itself where they are its own. `what` is what messages call it.

        >>> NamedMatrix(np.eye(2), ("a", "b")).select(["b"]).matrix.ravel().tolist()
        [0.0, 1.0]
        """
        if tuple(names) == self.names:
            return self
        place = {name: position for position, name in enumerate(self.names)}
        if absent := [name for name in names if name not in place]:
            raise InvalidValueError(
                f"{what} must have the columns asked for, and it lacks {listing(map(repr, absent), 10)}: "
                f"{close_matches(absent[0], list(self.names))}"
            )
        positions = [place[name] for name in names]
        # Columns of a sparse matrix are picked in its own format; an array of rows is cut along its second axis.
        picked = self.matrix[:, positions] if not sparse.issparse(self.matrix) else by_columns(self.matrix, positions)
        return NamedMatrix(picked, tuple(names), self.about_rows)

    def of_rows(self, rows: Any) -> NamedMatrix:
        """These rows, by mask or positions, without what is told of them.

        >>> NamedMatrix(np.eye(3), ("a", "b", "c")).of_rows([2]).matrix.tolist()
        [[0.0, 0.0, 1.0]]
        """
        matrix = sparse.csr_array(self.matrix) if sparse.issparse(self.matrix) else np.asarray(self.matrix)
        return NamedMatrix(matrix[rows], self.names)

    def encoding(self, means: NDArray[np.float64]) -> Encoding:
        """The columns as a table of numbers with these means would have them.

        >>> NamedMatrix(np.eye(2), ("a", "b")).encoding(np.zeros(2)).kinds
        ('number', 'number')
        """
        kinds: tuple[Kind, ...] = tuple("number" for _ in self.names)
        return Encoding(tuple(self.names), kinds, ((),) * len(kinds), fill=tuple(means.tolist()))


def by_columns(matrix: Any, positions: Sequence[int]) -> Any:
    """Columns of a sparse matrix, sparse; formats that know no slices (COO, DIA) are rewritten by row first.

    >>> by_columns(sparse.eye_array(3, format="coo"), [2]).toarray().ravel().tolist()
    [0.0, 0.0, 1.0]
    """
    return (matrix if matrix.format in ("csr", "csc") else matrix.tocsr())[:, positions]


def column_means(matrix: Any) -> NDArray[np.float64]:
    """The mean of each column, of a sparse matrix too.

    >>> column_means(sparse.csr_array([[1.0, 0.0], [3.0, 0.0]])).tolist()
    [2.0, 0.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()
    # Values near 1e308 overflow their sum; a fill value must be a number all the same.
    return np.nan_to_num(means)
