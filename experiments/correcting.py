"""What people do without us where a batch is known: class means, Harmony, ComBat, regression; on standardised rows.

Nothing here imports imapce, so that finished cells outlive every change of ours. What is not installed is left out, and
`missing` says in a sentence what it is and how it is had.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.plain_rows import MOST_AXES, principal_axes

Array = NDArray[np.float64]

NOTHING, MEANS, HARMONY, COMBAT, REGRESS = "nothing", "class means", "Harmony", "ComBat", "regress_out"
NEEDS = {HARMONY: ("harmonypy", "pandas"), COMBAT: ("scanpy", "anndata"), REGRESS: ("scanpy", "anndata")}


@dataclass(frozen=True, eq=False)
class Corrected:
    """Rows without their batch: `space` to look for neighbours in, `columns` (n, d) where the way gives them at all."""

    space: Array
    columns: Array | None


def standardised(X: Array) -> Array:
    """Columns of mean 0 and variance 1; those that do not vary are left out.

    >>> standardised(np.array([[0.0, 7.0], [2.0, 7.0]])).tolist()
    [[-1.0], [1.0]]
    """
    spread = X.std(axis=0)
    varies = spread > 1e-12 * np.maximum(1.0, np.abs(X).max(axis=0))
    return np.asarray((X[:, varies] - X[:, varies].mean(axis=0)) / spread[varies])


def in_axes(columns: Array, most: int) -> Array:
    """The columns, centred; their leading principal axes where there are more than `most`."""
    centred = columns - columns.mean(axis=0)
    return principal_axes(centred, most) if columns.shape[1] > most else centred


def without_means(Z: Array, batch: Any) -> Array:
    """Every row less the mean of its class.

    >>> without_means(np.array([[1.0], [3.0], [10.0]]), ["a", "a", "b"]).ravel().tolist()
    [-1.0, 1.0, 0.0]
    """
    codes = np.unique(np.asarray(batch), return_inverse=True)[1]
    means = np.stack([Z[codes == one].mean(axis=0) for one in range(codes.max() + 1)])
    return np.asarray(Z - means[codes])


def harmony(space: Array, batch: Any) -> Array:
    """Harmony of rows in a few axes, with its own settings."""
    import harmonypy
    import pandas

    logging.getLogger("harmonypy").setLevel(logging.WARNING)
    told = pandas.DataFrame({"batch": np.asarray(batch).astype(str)})
    found = np.asarray(harmonypy.run_harmony(space, told, ["batch"], verbose=False, random_state=0).Z_corr)
    # Some versions give rows, others columns.
    return found if found.shape == space.shape else found.T


def _in_scanpy(Z: Array, batch: Any, correct: Callable[[Any, Any], None]) -> Array:
    with warnings.catch_warnings():
        # Old names of pandas and numba, none of which concerns the rows.
        warnings.simplefilter("ignore")
        import anndata
        import pandas
        import scanpy

        index = [str(i) for i in range(len(Z))]
        told = pandas.DataFrame({"batch": pandas.Categorical(np.asarray(batch).astype(str))}, index=index)
        data = anndata.AnnData(Z.copy(), obs=told)
        correct(scanpy, data)
        return np.asarray(data.X, dtype=np.float64)


def combat(Z: Array, batch: Any) -> Array:
    return _in_scanpy(Z, batch, lambda scanpy, data: scanpy.pp.combat(data, key="batch"))


def regressed(Z: Array, batch: Any) -> Array:
    return _in_scanpy(Z, batch, lambda scanpy, data: scanpy.pp.regress_out(data, "batch", n_jobs=1))


COLUMNS: dict[str, Callable[[Array, Any], Array]] = {
    NOTHING: lambda Z, batch: Z,
    MEANS: without_means,
    COMBAT: combat,
    REGRESS: regressed,
}
METHODS = (MEANS, HARMONY, COMBAT, REGRESS, NOTHING)


def is_installed(method: str) -> bool:
    return all(importlib.util.find_spec(library) is not None for library in NEEDS.get(method, ()))


def missing(methods: tuple[str, ...] = METHODS) -> str:
    """A sentence on what is not installed; empty where all is there."""
    lacking = sorted({one for method in methods for one in NEEDS.get(method, ()) if not importlib.util.find_spec(one)})
    if not lacking:
        return ""
    ways = " and ".join(method for method in methods if not is_installed(method))
    return (
        f'{ways} left out: {", ".join(lacking)} not installed; `pip install "imapce[batches]"` brings what is needed.'
    )


def corrected(method: str, X: Array, batch: Any, most: int = MOST_AXES) -> Corrected:
    """The rows of a table corrected in one way; Harmony is given its axes, all others its standardised columns.

    >>> Z = np.random.default_rng(0).standard_normal((40, 3)) + 5 * (np.arange(40) % 2)[:, None]
    >>> found = corrected(MEANS, Z, np.arange(40) % 2)
    >>> bool(np.abs(found.space[::2].mean(axis=0)).max() < 1e-9), found.columns.shape
    (True, (40, 3))
    """
    Z = standardised(X)
    if method == HARMONY:
        return Corrected(harmony(in_axes(Z, most), batch), None)
    columns = COLUMNS[method](Z, batch)
    return Corrected(in_axes(columns, most), columns)


@cache
def warm_up(method: str) -> None:
    """Import and compile what a way needs, so that the seconds of its first table are its own."""
    rng = np.random.default_rng(0)
    corrected(method, rng.standard_normal((60, 4)), np.arange(60) % 2)


def plane(method: str, X: Array, batch: Any) -> Array:
    """The first two principal axes of the corrected rows."""
    space = corrected(method, X, batch).space
    return principal_axes(space - space.mean(axis=0), 2)
