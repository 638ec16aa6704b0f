"""A matrix whose columns have names: numbers alone, dense or sparse, never copied into a table; an AnnData as one.

A table of text formats has a type for each column; 30,000 genes have one for all of them, and most of their values are
zero. Names travel beside the matrix here, and sparse stays sparse.

>>> genes = NamedMatrix(np.eye(3), ("CD4", "CD8A", "MS4A1"))
>>> genes.select(["MS4A1", "CD4"]).matrix[0].tolist()
[0.0, 1.0]
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from imapce.common.whole_files import writable_target
from imapce.common.words import close_matches, listing
from imapce.errors import InvalidTypeError, InvalidValueError, needs
from imapce.tables.columns import Kind
from imapce.tables.learn import Encoding

EXTRA = "imapce[anndata]"
SUFFIX = ".h5ad"
# Called with a size in bytes; raises where it is beyond the limit.
Limit = Callable[[int], None]


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
                "more than once: rename the repeats."
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
                f"{close_matches(absent[0], [name for name in self.names if name not in names])}"
            )
        positions = [place[name] for name in names]
        # Formats that know no slices (COO, DIA) are rewritten by row first.
        sliced = not sparse.issparse(self.matrix) or self.matrix.format in ("csr", "csc")
        matrix = self.matrix if sliced else self.matrix.tocsr()
        return NamedMatrix(matrix[:, positions], tuple(names), self.about_rows)

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


def column_means(matrix: Any) -> NDArray[np.float64]:
    """The mean of each column, of a sparse matrix too."""
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()
    # Values near 1e308 overflow their sum; a fill value must be a number all the same.
    return np.nan_to_num(means)


def numeric_matrix(values: np.ndarray) -> np.ndarray:
    """The array itself, if it is 2-D and of numbers."""
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise ValueError(f"it must hold a 2-D array of numbers, not {values.ndim}-D {values.dtype}")
    return values


def features(adata: Any, *, layer: str | None = None, use_rep: str | None = None, name: str = "adata") -> NamedMatrix:
    """The rows of an AnnData as `IMAPCE.fit` and `Exploration` take them; nothing is copied, sparse stays sparse.

    They are `X` under the names of the variables, a `layer` under the same names, or with `use_rep` the columns of
    `obsm[use_rep]`, which are no variables: X_pca becomes X_pca0, X_pca1, ... `name` is what messages call the AnnData.

    >>> from anndata import AnnData
    >>> adata = AnnData(np.eye(3, 2))
    >>> adata.var_names = ["CD4", "CD8A"]
    >>> features(adata).names
    ('CD4', 'CD8A')
    """
    if layer is not None and use_rep is not None:
        raise InvalidValueError(f"layer={layer!r} and use_rep={use_rep!r} are two answers to one question: pass one.")
    if not (hasattr(adata, "obs_names") and hasattr(adata, "var_names")):
        raise InvalidTypeError(name, f"must be an AnnData; got {type(adata).__name__}.")
    require_in_memory(adata, name)
    if use_rep is not None:
        held = _member(adata.obsm, use_rep, "use_rep", f"{name}.obsm")
        columns = getattr(held, "columns", None)
        names = [f"{use_rep}{place}" for place in range(held.shape[1])] if columns is None else [*map(str, columns)]
        return NamedMatrix(_numbers(held, f"{name}.obsm[{use_rep!r}]"), names)
    if not adata.var_names.is_unique:
        repeats = [repr(str(one)) for one in adata.var_names[adata.var_names.duplicated()].unique()]
        raise InvalidValueError(
            f"{name}.var_names",
            f"must have a different name for each variable, got {listing(repeats)} more than once: "
            "call adata.var_names_make_unique().",
        )
    if layer is not None:
        held = _member(adata.layers, layer, "layer", f"{name}.layers")
        return NamedMatrix(_numbers(held, f"{name}.layers[{layer!r}]"), tuple(adata.var_names))
    if adata.X is None:
        raise InvalidValueError(
            f"{name}.X is empty; name another matrix by layer ({listing(map(repr, named_members(adata.layers)))}) or "
            f"use_rep ({listing(map(repr, adata.obsm))})."
        )
    return NamedMatrix(_numbers(adata.X, f"{name}.X"), tuple(adata.var_names))


def named_members(mapping: Any) -> list[str]:
    """What the layers or representations of an AnnData are called; from anndata 0.13 on, X is a layer without a name.

    >>> from anndata import AnnData
    >>> named_members(AnnData(np.eye(2), layers={"log": np.eye(2)}).layers)
    ['log']
    """
    return [name for name in mapping if name is not None]


def require_in_memory(adata: Any, name: str = "adata") -> None:
    """Refuse an AnnData whose matrix lies in its file, which nothing here reads piece by piece.

    >>> from anndata import AnnData
    >>> require_in_memory(AnnData(np.eye(2)))
    """
    if adata.isbacked:
        raise InvalidValueError(
            name, f"must be in memory, and it is backed by {Path(adata.filename).name!r}: use adata.to_memory()."
        )


def read_h5ad(file: Path, limit: Limit) -> NamedMatrix:
    """`X` of an .h5ad file with the names of its variables, and `obs` beside it, the names of rows first."""
    with needs("An .h5ad file", EXTRA):
        import anndata
        import h5py
    sizes: list[int] = []
    with h5py.File(file) as whole:
        whole.visititems(lambda _, item: sizes.append(item.nbytes) if isinstance(item, h5py.Dataset) else None)
    limit(sum(sizes))
    adata = anndata.read_h5ad(file)
    matrix = features(adata, name="the file")
    if sparse.issparse(matrix.matrix) and matrix.matrix.format in ("csr", "csc"):
        # Indices beyond the shape would be followed beyond the end of memory by every later product.
        matrix.matrix.check_format(full_check=True)
    return NamedMatrix(matrix.matrix, matrix.names, about_cells(adata))


def is_h5ad(path: str | os.PathLike[str] | None) -> bool:
    """Whether a path names an .h5ad file."""
    return path is not None and Path(path).name.lower().endswith(SUFFIX)


def h5ad_target(path: str | os.PathLike[str], source: str | None) -> Path:
    """Where a copy of the AnnData in `source` would be written, or one sentence on why it could not."""
    if not is_h5ad(source):
        raise InvalidValueError(
            "path",
            f"can be .h5ad where rows to embed or explore come from one, got {str(path)!r}: use .parquet or .csv.",
        )
    return writable_target(path)


def about_cells(adata: Any) -> pa.Table:
    """`obs` as an Arrow table, the names of the rows as its first column."""
    columns = {str(adata.obs.index.name or "obs_names"): pa.array([str(name) for name in adata.obs_names], pa.string())}
    for name, values in adata.obs.items():
        try:
            columns[str(name)] = pa.array(values, from_pandas=True)
        except pa.ArrowException:
            # pandas holds columns of several types at once, which Arrow does not.
            texts = [None if missing else str(value) for value, missing in zip(values, values.isna(), strict=True)]
            columns[str(name)] = pa.array(texts, pa.string())
    return pa.table(columns)


def _member(mapping: Any, key: str, argument: str, where: str) -> Any:
    if key not in mapping:
        raise InvalidValueError(
            argument, f"must be one of {where}, which holds {listing(map(repr, named_members(mapping)))}; got {key!r}."
        )
    return mapping[key]


def _numbers(values: Any, what: str) -> Any:
    """A matrix of numbers, sparse or not, as it is; a view of an AnnData becomes a plain array."""
    matrix = values if sparse.issparse(values) else np.asarray(values)
    try:
        return matrix if sparse.issparse(matrix) and matrix.dtype.kind in "biuf" else numeric_matrix(matrix)
    except ValueError as problem:
        raise InvalidTypeError(f"{what} must hold numbers; {problem}.") from problem
