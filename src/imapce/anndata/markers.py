"""Which variables set groups of cells apart, in the shape of scanpy's `rank_genes_groups`.

A score is the difference of a variable's mean in a group to its mean in all other cells, in standard deviations of all
cells: the number of our reports. Groups that were found in the cells cannot be tested on the same cells, so there is no
p-value; a fold change is told of logarithms alone, as scanpy tells it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from imapce.anndata.names import require_column, require_key
from imapce.common.arrays import Array, Codes
from imapce.errors import InvalidValueError
from imapce.tables.named import NamedMatrix, features

METHOD = "imapce: difference of the means in standard deviations of all cells"
# What scanpy adds to both means, so that a fold change over nothing is a number.
LEAST_MEAN = 1e-9
# Cells that are written out at once: 240 MB of 30,000 variables.
BLOCK_CELLS = 1_000


def write_markers(adata: Any, groupby: str, *, layer: str | None = None, key: str | None = None) -> None:
    """Rank the variables by how far their mean in each group of obs[groupby] lies above that of all other cells.

    Written is uns["<groupby>_markers"], or uns[key], in the shape of `sc.tl.rank_genes_groups`, so that
    `sc.get.rank_genes_groups_df(adata, "0", key=...)` and `sc.pl.rank_genes_groups(adata, key=...)` read it: "names"
    and "scores" (difference of the means in standard deviations of all cells, largest first) for each group,
    "logfoldchanges" as scanpy computes them where X is logarithms (uns["log1p"], which `sc.pp.log1p` leaves) and NaN
    elsewhere, "pvals" and "pvals_adj" NaN: nothing is tested. "means" and "means_rest" are the means in the units of
    the matrix, a row for each variable. `layer` names another matrix than X.

    >>> from anndata import AnnData
    >>> kind = np.repeat(["B", "T"], 30)
    >>> cells = AnnData(np.random.default_rng(0).poisson(1.0 + 5.0 * (kind == "T")[:, None] * np.eye(1, 3)))
    >>> cells.obs["kind"] = kind
    >>> write_markers(cells, "kind")
    >>> cells.uns["kind_markers"]["names"]["T"].tolist()[0]
    '0'
    """
    key = f"{groupby}_markers" if key is None else key
    require_key(key)
    values = require_column(adata, groupby, "groupby")
    if values.dtype.kind == "f":
        raise InvalidValueError(f"groupby must name a column of obs with groups; {groupby!r} holds numbers: bin them.")
    values = values.astype("category").cat.remove_unused_categories()
    adata.uns[key] = markers_of(adata, values, layer=layer)


def markers_of(adata: Any, groups: Any, *, layer: str | None = None) -> dict[str, Any]:
    """What `write_markers` writes of groups, a pandas Series of categories with a name.

    >>> import pandas as pd
    >>> from anndata import AnnData
    >>> sorted(markers_of(AnnData(np.eye(2)), pd.Series(["a", "b"], name="kind", dtype="category"))["params"])
    ['groupby', 'method', 'reference', 'use_raw']
    """
    names = [str(name) for name in groups.cat.categories]
    if not names:
        raise InvalidValueError(
            f"groupby must name a column of obs with groups; {groups.name!r} is missing in every cell."
        )
    if "" in names:
        raise InvalidValueError(
            f"groupby must name a column of obs whose groups have names; one of {groups.name!r} is empty: rename it."
        )
    matrix = features(adata, layer=layer)
    # What sc.pp.log1p leaves, of X alone; no base is that of natural logarithms.
    noted = adata.uns.get("log1p") if layer is None else None
    base = None if noted is None else float(dict(noted).get("base") or np.e)
    told = ranked(matrix, groups.cat.codes.to_numpy(), names, base=base)
    params = {"groupby": str(groups.name), "reference": "rest", "method": METHOD, "use_raw": False}
    return {**told, "params": params if layer is None else {**params, "layer": layer}}


def ranked(matrix: NamedMatrix, groups: Codes, names: list[str], *, base: float | None = None) -> dict[str, Any]:
    """The tables of `write_markers` for groups (n,), -1 for none of them; `base` is that of logarithms, if they are.

    >>> genes = NamedMatrix(np.array([[0.0, 1.0], [0.0, 1.0], [4.0, 1.0], [4.0, 1.0]]), ("CD4", "ACTB"))
    >>> told = ranked(genes, np.array([0, 0, 1, 1]), ["B", "T"])
    >>> told["names"]["T"].tolist(), told["scores"]["T"].tolist()
    (['CD4', 'ACTB'], [2.0, 0.0])
    """
    import pandas

    inside, outside, spread = _means(matrix.matrix, groups, len(names))
    gap = inside - outside
    scores = np.divide(gap, spread, out=np.zeros_like(gap), where=spread > 0)
    changes = np.full_like(gap, np.nan) if base is None else _fold_changes(inside, outside, base)
    order = np.argsort(-scores, axis=1, kind="stable")
    labels = np.asarray(matrix.names, dtype=object)
    unknown = np.full_like(gap, np.nan)

    def table(values: Array, kind: str) -> Any:
        sorted_ = np.take_along_axis(values, order, axis=1)
        return np.rec.fromarrays(list(sorted_), dtype=[(name, kind) for name in names])

    def frame(values: Array) -> Any:
        return pandas.DataFrame(values.T, index=labels.astype(str), columns=names)

    return {
        "names": table(np.broadcast_to(labels, gap.shape), "O"),
        "scores": table(scores, "f4"),
        "logfoldchanges": table(changes, "f4"),
        "pvals": table(unknown, "f8"),
        "pvals_adj": table(unknown, "f8"),
        "means": frame(inside),
        "means_rest": frame(outside),
    }


def _means(matrix: Any, groups: Codes, n_groups: int) -> tuple[Array, Array, Array]:
    """(g, d) twice, the means in every group and in all other cells, and (d,) the standard deviation of all cells.

    Values that are missing count on no side.
    """
    # Cells of no group are a group more: they are others to all groups.
    of_cell = np.where(groups < 0, n_groups, groups)
    n_cells, width = matrix.shape
    members = sparse.csc_array((np.ones(n_cells), (of_cell, np.arange(n_cells))), shape=(n_groups + 1, n_cells))
    matrix = sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix
    # About values of the first cells, so that squares of what lies far from zero do not cancel.
    centre = np.nan_to_num(_dense(matrix[:BLOCK_CELLS])).mean(axis=0)
    counts, sums, squares = np.zeros((3, n_groups + 1, width))
    for start in range(0, n_cells, BLOCK_CELLS):
        block, inside = _dense(matrix[start : start + BLOCK_CELLS]), members[:, start : start + BLOCK_CELLS]
        seen = np.isfinite(block)
        block = np.where(seen, block - centre, 0.0)
        counts += inside @ seen.astype(np.float64)
        sums += inside @ block
        squares += inside @ np.square(block, out=block)
    total, seen_cells = sums.sum(axis=0), np.maximum(counts.sum(axis=0), 1.0)

    def mean(part: Array, of: Array) -> Array:
        return (centre + np.divide(part, of, out=np.full_like(part, np.nan), where=of > 0))[:n_groups]

    variance = squares.sum(axis=0) / seen_cells - (total / seen_cells) ** 2
    return mean(sums, counts), mean(total - sums, counts.sum(axis=0) - counts), np.sqrt(np.maximum(variance, 0.0))


def _dense(part: Any) -> Array:
    return np.asarray(part.toarray() if sparse.issparse(part) else part, dtype=np.float64)


def _fold_changes(inside: Array, outside: Array, base: float) -> Array:
    """log2 of the ratio of the means, taken back from log(1 + x): scanpy's formula."""
    here, there = (np.expm1(means * np.log(base)) + LEAST_MEAN for means in (inside, outside))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log2(here / there)
