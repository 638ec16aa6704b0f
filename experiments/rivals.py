"""What people do without us: plain clusterings of a table, none of which sees a label.

All get standardised columns, in their first 30 principal axes where there are more, a mixed table as dummies with means
for holes; only k-prototypes gets it as it is. Two are told how many clusters there are, and say so by their names.
Nothing here imports imapce, so that finished cells outlive every change of ours; a rival's cells are those of the
module its function is in, so that they outlive other rivals too.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from experiments.plain_rows import plain_matrix, standard_axes
from experiments.rival_graphs import hdbscan, leiden, umap_hdbscan
from experiments.rival_mixtures import best_of_four, dirichlet_mixture, mixture_by_bic
from experiments.rival_prototypes import kmeans_told, prototypes_told

Labels = NDArray[np.intp]
# Rows in standard axes (k-prototypes: the table), the number of classes for those who are told, a seed.
Clusterer = Callable[[Any, int, int], Labels]

TOLD = "k-means told k"
PROTOTYPES = "k-prototypes told k"
BIC = "mixture by BIC"
CLUSTERERS: dict[str, Clusterer] = {
    TOLD: kmeans_told,
    PROTOTYPES: prototypes_told,
    BIC: mixture_by_bic,
    "best of four by BIC": best_of_four,
    "Dirichlet mixture": dirichlet_mixture,
    "HDBSCAN": hdbscan,
    "UMAP + HDBSCAN": umap_hdbscan,
    "Leiden": leiden,
}
TOLD_K = (TOLD, PROTOTYPES)
OF_MIXED = (PROTOTYPES,)
NEEDS = {"Leiden": ("igraph", "leidenalg"), "UMAP": ("umap",), "UMAP + HDBSCAN": ("umap",)}


def is_installed(rival: str) -> bool:
    return all(importlib.util.find_spec(library) is not None for library in NEEDS.get(rival, ()))


def rivals_of(mixed: bool) -> list[str]:
    """Those that are installed and can cluster such a table.

    >>> PROTOTYPES in rivals_of(mixed=True), PROTOTYPES in rivals_of(mixed=False)
    (True, False)
    """
    return [one for one in CLUSTERERS if is_installed(one) and (mixed or one not in OF_MIXED)]


def code_of(rival: str) -> str:
    """The module that computes a rival.

    >>> code_of("Leiden")
    'experiments.rival_graphs'
    """
    return CLUSTERERS[rival].__module__


def clustered(rival: str, table: Any, n_classes: int, seed: int) -> Labels:
    """The labels a rival gives to the rows of an array or of an Arrow table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if rival in OF_MIXED:
            return CLUSTERERS[rival](table, n_classes, seed)
        X = plain_matrix(table) if isinstance(table, pa.Table) else table
        return CLUSTERERS[rival](standard_axes(X), n_classes, seed)
