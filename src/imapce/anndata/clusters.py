"""The clusters of an exploration as a column of `obs`."""

from __future__ import annotations

from typing import Any

import numpy as np

from imapce.anndata.views import require_key
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.exploration.session import Exploration


def write_clusters(
    adata: Any, exploration: Exploration, *, key: str = "imapce_cluster", rest: str | None = None
) -> None:
    """Write the accepted clusters to obs[key], as categories "0", "1", ...: the numbers they have in `labels_`.

    Rows of no cluster are missing values (scanpy draws them grey), or the category `rest` where that is given. The
    cells must be those of the exploration, in its order; one from `Exploration.from_anndata` is held to their names.

    >>> from anndata import AnnData
    >>> X = np.random.default_rng(0).normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]
    >>> cells = AnnData(X)
    >>> write_clusters(cells, Exploration.from_anndata(cells, random_state=0).run())
    >>> cells.obs["imapce_cluster"].value_counts().tolist()
    [50, 50, 50]
    """
    import pandas

    require_key(key)
    if not isinstance(exploration, Exploration):
        raise InvalidTypeError(f"exploration must be an Exploration; got {type(exploration).__name__}.")
    numbers = exploration.labels_
    names = [str(cluster.number) for cluster in exploration.clusters_]
    if rest is not None and (not isinstance(rest, str) or rest in names):
        raise InvalidValueError(f"rest must be None or a name that is no number of a cluster; got {rest!r}.")
    if len(numbers) != adata.n_obs:
        raise InvalidValueError(
            f"adata must have the {len(numbers):,} rows of the exploration; got {adata.n_obs:,}: explore this AnnData."
        )
    if exploration.row_ids.dtype.kind in "OUT" and not np.array_equal(exploration.row_ids, adata.obs_names):
        raise InvalidValueError(
            "adata must have the rows of the exploration in the same order, and their names differ: reorder it, or "
            "explore this AnnData."
        )
    codes = np.full(len(numbers), -1)
    for place, cluster in enumerate(exploration.clusters_):
        codes[cluster.rows] = place
    values = pandas.Categorical.from_codes(codes, categories=names)
    if rest is not None:
        values = values.add_categories([rest]).fillna(rest)
    adata.obs[key] = values
