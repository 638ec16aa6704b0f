"""Tables with columns that say nothing beside the features, and wide ones. Nothing here imports imapce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from experiments.planted_tables import three_gaussians

Array = NDArray[np.float64]
Labels = NDArray[np.str_]

MISSING_SHARE = 0.05
WIDE = (200, 5_000)
# Of 5,000 columns a cluster has so many of its own, each so far from the others that PCA still tells 0.99 of the rows.
OWN_COLUMNS, OWN_SHIFT = 50, 0.95


def as_arrow(
    X: Array, further: Mapping[str, Any] | None = None, *, missing: NDArray[np.bool_] | None = None
) -> pa.Table:
    """Numbers as columns x0, x1, ... (no value where `missing`), and further columns; texts become categories.

    >>> as_arrow(np.zeros((2, 1)), {"kind": ["a", "b"]}).column_names
    ['x0', 'kind']
    """
    columns: dict[str, pa.Array] = {
        f"x{j}": pa.array(column, mask=None if missing is None else missing[:, j]) for j, column in enumerate(X.T)
    }
    for name, values in (further or {}).items():
        column = pa.array(values)
        columns[name] = column.dictionary_encode() if pa.types.is_string(column.type) else column
    return pa.table(columns)


def random_booleans(rng: np.random.Generator, n_rows: int, count: int) -> dict[str, Any]:
    return {f"yes{j}": rng.random(n_rows) < 0.5 for j in range(count)}


def random_categories(rng: np.random.Generator, n_rows: int, count: int) -> dict[str, Any]:
    """Categories of ten levels."""
    return {f"kind{j}": [f"level {level}" for level in rng.integers(0, 10, n_rows)] for j in range(count)}


def with_nuisance(X: Array, seed: int) -> pa.Table:
    """The table as it might come: two random booleans, a category, an id, a heavy tail, 5 % of the features missing.

    The id is shuffled: many of the files are sorted by class, and their row number would tell it.
    """
    rng = np.random.default_rng(seed)
    n = len(X)
    further = random_booleans(rng, n, 2) | random_categories(rng, n, 1)
    further |= {"id": 100_000 + rng.permutation(n), "amount": np.exp(2 * rng.standard_normal(n))}
    return as_arrow(X, further, missing=rng.random(X.shape) < MISSING_SHARE)


def nuisances(seed: int) -> dict[str, tuple[Any, Labels]]:
    """The planted table plain and with one kind of column that says nothing about its clusters, each at a time."""
    X, classes = three_gaussians(seed)
    rng = np.random.default_rng([seed, 1])
    n = len(X)
    made: dict[str, tuple[Any, Labels]] = {"plain": (as_arrow(X), classes)}
    for count in (1, 2, 5):
        title = f"{count} random boolean{'s' * (count > 1)}"
        made[title] = (as_arrow(X, random_booleans(rng, n, count)), classes)
    made["two categories of ten levels"] = (as_arrow(X, random_categories(rng, n, 2)), classes)
    made["an id"] = (as_arrow(X, {"id": np.arange(n)}), classes)
    bimodal = rng.standard_normal(n) + 8 * (rng.random(n) < 0.5)
    made["a bimodal column"] = (as_arrow(X, {"two humps": bimodal}), classes)
    return made


def wide_planted(seed: int) -> tuple[Array, Labels]:
    """200 rows of 5,000 columns, three clusters."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 3, WIDE[0])
    X = rng.standard_normal(WIDE)
    for one in range(3):
        X[np.ix_(classes == one, range(one * OWN_COLUMNS, (one + 1) * OWN_COLUMNS))] += OWN_SHIFT
    return X, classes.astype(str)


def wide_noise(seed: int) -> Array:
    """200 rows of 5,000 columns, no cluster."""
    return np.random.default_rng([seed, *WIDE]).standard_normal(WIDE)
