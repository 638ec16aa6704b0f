"""The clusters of an exploration in an AnnData, whole: who is in which, in which colour, seen in which views, and what
each of them is.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy.sparse import issparse

from imapce.anndata.markers import markers_of
from imapce.anndata.names import require_key
from imapce.anndata.results import variable_weights, write_corrected
from imapce.common.words import listing
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.given import Given
from imapce.exploration.knowledge import WEIGHED
from imapce.exploration.session import Exploration
from imapce.exploration.traits import overlap_in_a_word
from imapce.plotting.steps import OTHER_GREY, cluster_hue
from imapce.tables.named import NamedMatrix, column_means, features, named_members, require_in_memory

# Bytes of corrected cells that are written where the cells themselves are sparse.
MOST_CORRECTED = 2 * 10**9


def write_clusters(
    adata: Any, exploration: Exploration, *, key: str = "imapce_cluster", rest: str | None = None
) -> None:
    """Write the accepted clusters to obs[key], as categories "0", "1", ...: the numbers they have in `labels_`.

    Rows of no cluster are missing values (scanpy draws them grey), or the category `rest` where that is given;
    obs["<key>_reason"] tells why they are in none. Besides are written, for scanpy and for files:

    - uns["<key>_colors"], the colours of the clusters in our figures
    - obsm["X_<key>"], all cells in the view in which all clusters are seen best, for sc.pl.embedding(adata, "<key>"),
      and its axes in varm[key] (not of a representation, whose columns are no variables)
    - obsm["X_<key>_step1"], ...: the cells in the view of every step
    - uns["<key>_markers"], what sets every cluster apart, by `write_markers` of the matrix that was explored, or of X
      where that was a representation
    - uns[key], where "clusters" is a table of their names, sizes, steps, overlaps and stability, "known" tells what was
      known, "structure" whether there is any, and "stop_reason" why the exploration ended

    The cells must be those of the exploration, in its order; one from `Exploration.from_anndata` is held to their
    names. What an earlier exploration left under the same key is replaced.

    >>> from anndata import AnnData
    >>> X = np.random.default_rng(0).normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]
    >>> cells = AnnData(X)
    >>> write_clusters(cells, Exploration.from_anndata(cells, random_state=0).run())
    >>> cells.obs["imapce_cluster"].value_counts().tolist(), cells.uns["imapce_cluster_colors"][0]
    ([50, 50, 50], '#0072B2')
    """
    import pandas

    require_key(key)
    if not isinstance(exploration, Exploration):
        raise InvalidTypeError(f"exploration must be an Exploration; got {type(exploration).__name__}.")
    names = [str(cluster.number) for cluster in exploration.clusters_]
    if rest is not None and (not isinstance(rest, str) or not rest or rest in names):
        raise InvalidValueError(f"rest must be None or a name that is no number of a cluster; got {rest!r}.")
    _require_same_cells(adata, exploration)
    told = _facts(exploration)
    views = {f"X_{key}_step{number}": exploration.coordinates(step) for number, step in enumerate(exploration.steps, 1)}
    overview = exploration.overview() if names else None
    axes = None if overview is None else variable_weights(adata, exploration.feature_names, overview.components)
    codes = np.full(adata.n_obs, -1)
    for place, cluster in enumerate(exploration.clusters_):
        codes[cluster.rows] = place
    values = pandas.Categorical.from_codes(codes, categories=names)
    hues = [cluster_hue(cluster.number) for cluster in exploration.clusters_]
    if rest is not None:
        values, hues = values.add_categories([rest]).fillna(rest), [*hues, OTHER_GREY]
    layer = _explored_layer(adata, exploration)
    has_matrix = layer is not None or adata.X is not None
    markers = markers_of(adata, pandas.Series(values, name=key), layer=layer) if names and has_matrix else None

    _forget(adata, key)
    adata.obs[key] = values
    if (codes < 0).any():
        adata.obs[f"{key}_reason"] = pandas.Categorical(np.where(codes < 0, exploration.reasons_, ""))
    if overview is not None:
        adata.obsm[f"X_{key}"] = overview.embedding
    if axes is not None:
        adata.varm[key] = axes
    for name, places in views.items():
        adata.obsm[name] = places
    adata.uns[key] = told
    if names:
        adata.uns[f"{key}_colors"] = np.array(hues, dtype=object)
    if markers is not None:
        adata.uns[f"{key}_markers"] = markers


def write_explored(adata: Any, exploration: Exploration, matrix: NamedMatrix) -> str | None:
    """Write all that an exploration of `matrix`, the cells of `adata`, came to: its clusters by `write_clusters` and,
    where the effect of something known was taken from the cells, these as `correct` writes them, in obsm["X_given"].

    Returned is a sentence on what was left out, or None: where the matrix is sparse, the corrected cells, which are
    not, may be too many numbers to write.

    >>> from anndata import AnnData
    >>> from imapce import Labels
    >>> cells = AnnData(np.random.default_rng(0).normal(size=(60, 5)))
    >>> matrix = features(cells)
    >>> write_explored(cells, Exploration(matrix, prior=Labels(np.arange(60) % 2), random_state=0).run(), matrix)
    >>> cells.obsm["X_given"].shape
    (60, 5)
    """
    write_clusters(adata, exploration)
    if all(exploration.came_of(name) == WEIGHED for name in exploration.known_names):
        return None
    size = 8 * matrix.shape[0] * matrix.shape[1]
    if issparse(matrix.matrix) and size > MOST_CORRECTED:
        return (
            f"the cells less the effect of {listing(exploration.known_names)} would be {size / 1e9:,.1f} GB, written "
            "out in all variables, and are left out: explore fewer variables, or correct a representation by "
            "imapce.anndata.correct(adata, use_rep=...)."
        )
    settings = {name: exploration.parameters[name] for name in ("standardize", "outliers", "missing")}
    priors, model = [prior for prior in exploration.priors if prior.has_effect], Given(**settings)
    left = np.asarray(model.fit_transform(matrix, prior=priors))
    write_corrected(adata, model, left, priors=priors)
    return None


def _require_same_cells(adata: Any, exploration: Exploration) -> None:
    """Refuse cells that are not those of an exploration, as far as that can be told."""
    if not (hasattr(adata, "obs_names") and hasattr(adata, "var_names")):
        raise InvalidTypeError(f"adata must be an AnnData; got {type(adata).__name__}.")
    require_in_memory(adata)
    n_rows = len(exploration.row_ids)
    if n_rows != adata.n_obs:
        raise InvalidValueError(
            f"adata must have the {n_rows:,} rows of the exploration; got {adata.n_obs:,}: explore this AnnData."
        )
    if exploration.row_ids.dtype.kind in "OUT" and not np.array_equal(exploration.row_ids, adata.obs_names):
        raise InvalidValueError(
            "adata must have the rows of the exploration in the same order, and their names differ: reorder it, or "
            "explore this AnnData."
        )


def _forget(adata: Any, key: str) -> None:
    """Take away what an earlier exploration left under this key: it would be read as this one's."""
    for name in [name for name in adata.obsm if re.fullmatch(rf"X_{re.escape(key)}(_step\d+)?", name)]:
        del adata.obsm[name]
    adata.varm.pop(key, None)
    for name in (key, f"{key}_colors", f"{key}_markers"):
        adata.uns.pop(name, None)
    if f"{key}_reason" in adata.obs:
        del adata.obs[f"{key}_reason"]


def _explored_layer(adata: Any, exploration: Exploration) -> str | None:
    """The layer that was explored, told by the means of its variables; None for X, and where none is it."""
    names = exploration.feature_names
    if not set(names) <= set(adata.var_names):
        return None
    rows = exploration.found.data.rows
    means = rows.moments().mean + rows.origin
    for layer in (None, *named_members(adata.layers)):
        if layer is None and adata.X is None:
            continue
        matrix = features(adata, layer=layer).select(names).matrix
        if np.allclose(column_means(matrix), means, rtol=1e-6, atol=1e-12):
            return layer
    return None


def _facts(exploration: Exploration) -> dict[str, Any]:
    """What is told of an exploration and its clusters, in kinds of values that an .h5ad file holds."""
    import pandas

    clusters, structure = exploration.clusters_, exploration.structure
    overlaps = [cluster.overlap for cluster in clusters]
    table = pandas.DataFrame(
        {
            "name": np.array([cluster.name or cluster.words for cluster in clusters], dtype=object),
            "cells": np.array([cluster.size for cluster in clusters], dtype=np.int64),
            # 0 where clusters were regrouped after they were taken.
            "step": np.array([step or 0 for step in exploration.origins_], dtype=np.int64),
            "distinctness": np.array(["" if one is None else overlap_in_a_word(one) for one in overlaps], dtype=object),
            "overlap": np.array([np.nan if one is None else one for one in overlaps], dtype=np.float64),
            "stability": exploration.stability_,
        },
        index=[str(cluster.number) for cluster in clusters],
    )
    return {
        "clusters": table,
        "known": np.array(exploration.known_in_words, dtype=object),
        "structure": "" if structure is None else structure.verdict,
        "stop_reason": str(exploration.stop_reason or ""),
    }
