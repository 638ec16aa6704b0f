"""Cells made for tests: counts of three types in two batches, sparse, with what an AnnData of an experiment has."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

with warnings.catch_warnings():
    # What these libraries warn of as they are imported is theirs.
    warnings.simplefilter("ignore")
    anndata = pytest.importorskip("anndata", reason="the extra anndata is not installed")


def made_cells(n_cells: int = 900, n_genes: int = 100, seed: int = 0) -> Any:
    """Poisson counts: ten genes of each type fivefold, every gene of the second batch by a factor of its own.

    `layers["log"]` are counts per cell on a common scale, as logarithms.
    """
    rng = np.random.default_rng(seed)
    batch, kind = rng.integers(0, 2, n_cells), rng.integers(0, 3, n_cells)
    rate = np.tile(rng.gamma(2.0, 0.5, n_genes), (n_cells, 1))
    for number in range(3):
        rate[np.ix_(kind == number, np.arange(10 * number, 10 * number + 10))] *= 5.0
    rate[batch == 1] *= rng.lognormal(0.0, 0.5, n_genes)
    rate *= rng.lognormal(0.0, 0.2, (n_cells, 1))
    cells = anndata.AnnData(sparse.csr_matrix(rng.poisson(rate).astype(np.float32)))
    cells.obs_names = [f"cell{place}" for place in range(n_cells)]
    cells.var_names = [f"gene{place}" for place in range(n_genes)]
    cells.obs["batch"] = np.array(["first", "second"])[batch]
    cells.obs["batch"] = cells.obs["batch"].astype("category")
    cells.obs["kind"] = np.array(["T", "B", "NK"])[kind]
    cells.obs["control"] = batch == 0
    totals = np.asarray(cells.X.sum(axis=1)).ravel()
    scaled = sparse.csr_matrix(sparse.diags(np.median(totals) / totals) @ cells.X)
    scaled.data = np.log1p(scaled.data)
    cells.layers["log"] = scaled
    return cells
