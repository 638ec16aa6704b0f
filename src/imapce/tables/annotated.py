"""AnnData as rows and columns: the matrix with the names of its variables, and what `obs` tells of the rows.

Cells are rows, genes are columns, most counts are zero: the matrix goes on as it is, sparse or not, beside its names.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from imapce.common.whole_files import writable_target
from imapce.common.words import listing
from imapce.errors import InvalidTypeError, InvalidValueError, needs
from imapce.tables.binary import Limit, numeric_matrix
from imapce.tables.named import NamedMatrix

EXTRA = "imapce[anndata]"
SUFFIX = ".h5ad"


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
    if adata.isbacked:
        raise InvalidValueError(
            name, f"must be in memory, and it is backed by {Path(adata.filename).name!r}: use adata.to_memory()."
        )
    if use_rep is not None:
        held = _member(adata.obsm, use_rep, "use_rep", f"{name}.obsm")
        columns = getattr(held, "columns", None)
        names = [f"{use_rep}{place}" for place in range(held.shape[1])] if columns is None else [*map(str, columns)]
        return NamedMatrix(_numbers(held, f"{name}.obsm[{use_rep!r}]"), names)
    if layer is not None:
        held = _member(adata.layers, layer, "layer", f"{name}.layers")
        return NamedMatrix(_numbers(held, f"{name}.layers[{layer!r}]"), tuple(adata.var_names))
    if adata.X is None:
        raise InvalidValueError(
            f"{name}.X is empty; name another matrix by layer ({listing(map(repr, adata.layers))}) or use_rep "
            f"({listing(map(repr, adata.obsm))})."
        )
    return NamedMatrix(_numbers(adata.X, f"{name}.X"), tuple(adata.var_names))


def read_h5ad(file: Path, limit: Limit) -> NamedMatrix:
    """`X` of an .h5ad file with the names of its variables; `obs` beside it as an Arrow table, the names of rows first.

    >>> from anndata import AnnData
    >>> AnnData(np.eye(3, 2)).write_h5ad("cells.h5ad")
    >>> read_h5ad(Path("cells.h5ad"), lambda size: None).shape
    (3, 2)
    """
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
    """Whether a path names an .h5ad file.

    >>> is_h5ad("cells.H5AD"), is_h5ad("cells.csv"), is_h5ad(None)
    (True, False, False)
    """
    return path is not None and Path(path).name.lower().endswith(SUFFIX)


def h5ad_target(path: str | os.PathLike[str], source: str | None) -> Path:
    """Where a copy of the AnnData in `source` would be written, or one sentence on why it could not.

    >>> h5ad_target("out.h5ad", "cells.csv")
    Traceback (most recent call last):
    imapce.errors.InvalidValueError: path can be .h5ad where rows to embed or explore come from one, got 'out.h5ad': ...
    """
    if not is_h5ad(source):
        raise InvalidValueError(
            "path",
            f"can be .h5ad where rows to embed or explore come from one, got {str(path)!r}: use .parquet or .csv.",
        )
    return writable_target(path)


def about_cells(adata: Any) -> pa.Table:
    """`obs` as an Arrow table, the names of the rows as its first column.

    >>> from anndata import AnnData
    >>> about_cells(AnnData(np.eye(2)))["obs_names"].to_pylist()
    ['0', '1']
    """
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
            argument, f"must be one of {where}, which holds {listing(map(repr, mapping))}; got {key!r}."
        )
    return mapping[key]


def _numbers(values: Any, what: str) -> Any:
    """A matrix of numbers, sparse or not, as it is; a view of an AnnData becomes a plain array."""
    matrix = values if sparse.issparse(values) else np.asarray(values)
    try:
        return matrix if sparse.issparse(matrix) and matrix.dtype.kind in "biuf" else numeric_matrix(matrix)
    except ValueError as problem:
        raise InvalidTypeError(f"{what} must hold numbers; {problem}.") from problem
