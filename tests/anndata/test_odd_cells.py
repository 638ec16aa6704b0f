"""Cells as they come: every kind of matrix, names twice, views, files that stay on disk, batches that say little."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cells import anndata, made_cells
from imapce import IMAPCE, Exploration, ImapceError
from imapce.anndata import correct, embed, features, write_clusters, write_markers

QUICK: dict[str, Any] = {"alpha": 1.0, "mu": 1.0, "n_starts": 2, "random_state": 0}


def cells_of(matrix: Any = None) -> Any:
    cells = made_cells(240, 36)
    cells.X = cells.layers.pop("log") if matrix is None else matrix
    return cells


def everything(cells: Any) -> Any:
    """The cells with all that can be written into them."""
    correct(cells, prior="batch")
    embed(cells, prior="batch", **QUICK)
    write_clusters(cells, Exploration.from_anndata(cells, prior="batch", random_state=0).run())
    return cells


PLAIN = everything(cells_of())


def require_same(cells: Any, other: Any = PLAIN) -> None:
    assert sorted(cells.obsm) == sorted(other.obsm)
    for name, values in other.obsm.items():
        np.testing.assert_allclose(cells.obsm[name], values, atol=1e-5)
    assert cells.obs["imapce_cluster"].tolist() == other.obs["imapce_cluster"].tolist()
    for group in other.uns["imapce_cluster_markers"]["names"].dtype.names:
        ours, theirs = (one.uns["imapce_cluster_markers"]["scores"][group] for one in (cells, other))
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("kind", [sparse.csc_matrix, sparse.csr_array, np.asfortranarray])
def test_every_kind_of_matrix_gives_the_same(kind: Any) -> None:
    plain = cells_of().X
    require_same(everything(cells_of(kind(plain.toarray() if kind.__module__.startswith("numpy") else plain))))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_whole_counts_are_numbers(dtype: Any) -> None:
    counts = made_cells(240, 36).X.toarray()
    with_floats, with_ints = cells_of(counts.astype(np.float64)), cells_of(counts.astype(dtype))
    correct(with_floats, prior="batch")
    correct(with_ints, prior="batch")
    np.testing.assert_allclose(with_ints.obsm["X_given"], with_floats.obsm["X_given"], atol=1e-9)
    write_markers(with_ints, "kind")
    assert with_ints.uns["kind_markers"]["means"]["T"].iloc[0] == pytest.approx(
        counts[(with_ints.obs["kind"] == "T").to_numpy(), 0].mean()
    )


def test_categories_that_no_cell_has_say_nothing() -> None:
    cells = cells_of()
    cells.obs["batch"] = (
        cells.obs["batch"].cat.add_categories(["third", "0"]).cat.reorder_categories(["third", "second", "0", "first"])
    )
    require_same(everything(cells))


def test_cells_may_share_a_name_and_variables_may_not(tmp_path: Path) -> None:
    cells = cells_of()
    with warnings.catch_warnings():
        # AnnData says itself that they repeat.
        warnings.filterwarnings("ignore", message="Observation names are not unique")
        cells.obs_names = ["one", "two"] * 120
        require_same(everything(cells))
    twins = cells_of()
    twins.obsm["X_rep"] = twins.X.toarray()[:, :20]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Variable names are not unique")
        twins.var_names = ["gene"] * 2 + list(twins.var_names[2:])
    correct(twins, prior="batch", use_rep="X_rep")
    exploration = Exploration.from_anndata(twins, prior="batch", use_rep="X_rep", random_state=0).run()
    before = (list(twins.obs), list(twins.uns), list(twins.obsm))
    words = r"adata.var_names must have a different name for each variable, got 'gene' more than once: call adata.var_n"
    for refused in (
        lambda: embed(twins, prior="batch"),
        lambda: write_markers(twins, "kind"),
        lambda: write_clusters(twins, exploration),
    ):
        with pytest.raises(ImapceError, match=words):
            refused()
    assert (list(twins.obs), list(twins.uns), list(twins.obsm)) == before


def test_a_view_of_cells_becomes_cells_of_its_own_and_the_others_stay_as_they_are() -> None:
    whole = cells_of()
    chosen = (whole.obs["kind"] != "B").to_numpy()
    view = whole[chosen]
    with warnings.catch_warnings():
        # AnnData says itself that the view is no view any more.
        warnings.simplefilter("ignore", anndata.ImplicitModificationWarning)
        everything(view)
    require_same(view, everything(cells_of()[chosen].copy()))
    assert not view.is_view
    assert not whole.uns
    assert not len(whole.obsm)
    assert "imapce_cluster" not in whole.obs


def test_cells_in_a_file_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    cells = cells_of()
    exploration = Exploration.from_anndata(cells, random_state=0).run(max_steps=1)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r+")
    for refused in (
        lambda: correct(backed, prior="batch"),
        lambda: write_markers(backed, "kind"),
        lambda: write_clusters(backed, exploration),
    ):
        with pytest.raises(ImapceError, match=r"backed by 'cells.h5ad': use adata.to_memory\(\)"):
            refused()
    assert not backed.uns
    assert list(backed.obs) == list(cells.obs)
    in_memory = backed.to_memory()
    backed.file.close()
    write_clusters(in_memory, exploration)
    assert "imapce_cluster_markers" in in_memory.uns


def test_variables_that_do_not_vary_are_nothing() -> None:
    X = cells_of().X.toarray()
    X[:, 3], X[:, 4] = 0.0, 7.0
    cells = everything(cells_of(X))
    assert np.abs(cells.obsm["X_given"][:, [3, 4]]).max() == 0.0
    assert np.abs(cells.varm["imapce"][[3, 4]]).max() == 0.0
    told = cells.uns["imapce_cluster_markers"]
    for group in told["names"].dtype.names:
        scores = dict(zip(told["names"][group], told["scores"][group], strict=True))
        assert scores["gene3"] == scores["gene4"] == 0.0


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (["one"] * 240, "prior='batch' is 'one' for every row, so nothing is known; pass prior=None."),
        ([None] * 240, "prior='batch' has no label, all are missing, so nothing is known; pass prior=None."),
        ([f"id{place}" for place in range(240)], "prior='batch' must be classes of several rows, or numbers; got 240"),
    ],
)
def test_a_batch_that_says_nothing_is_refused_by_its_name(batch: list[str | None], words: str) -> None:
    cells = cells_of()
    cells.obs["batch"] = pd.Categorical(batch)
    for refused in (correct, embed, Exploration.from_anndata):
        with pytest.raises(ImapceError) as problem:
            refused(cells, prior="batch")
        assert str(problem.value).startswith(words)
    assert not cells.uns


def test_a_batch_of_one_cell_changes_little_for_the_others() -> None:
    cells = cells_of()
    batch = cells.obs["batch"].astype(str).to_numpy()
    batch[0] = "lonely"
    cells.obs["batch"] = pd.Categorical(batch)
    everything(cells)
    before = PLAIN.obsm["X_given"][1:]
    assert np.sqrt(np.mean((cells.obsm["X_given"][1:] - before) ** 2)) < 0.05 * before.std()
    assert np.isfinite(cells.obsm["X_given"][0]).all()


@pytest.mark.parametrize("kind", ["category", "object", "string"])
def test_a_cell_whose_batch_is_missing_keeps_its_values(kind: str) -> None:
    cells = cells_of()
    batch = cells.obs["batch"].astype(object)
    batch.iloc[:12] = None
    cells.obs["batch"] = batch.astype(kind)
    model = correct(cells, prior="batch")
    standardised = (cells.X.toarray() - model.mean_) / model.scale_
    np.testing.assert_allclose(cells.obsm["X_given"][:12], standardised[:12], atol=1e-9)
    assert np.abs(cells.obsm["X_given"][12:] - standardised[12:]).max() > 0.1


def test_missing_values_that_may_be_filled_count_on_no_side_of_the_markers() -> None:
    X = cells_of().X.toarray().astype(float)
    X[:5, 0] = np.nan
    cells = cells_of(X)
    with pytest.raises(ImapceError, match="X must not hold missing values"):
        correct(cells, prior="batch")
    exploration = Exploration.from_anndata(
        cells, prior="batch", estimator=IMAPCE(outliers="keep", missing="mean"), random_state=0
    ).run()
    write_clusters(cells, exploration)
    told, (first, *_) = cells.uns["imapce_cluster_markers"], exploration.clusters_
    assert told["means"].loc["gene0", str(first.number)] == pytest.approx(np.nanmean(X[first.rows, 0]))


def test_features_of_a_view_are_plain_arrays() -> None:
    cells = cells_of()
    cells.X = cells.X.toarray()
    assert type(features(cells[10:20]).matrix) is np.ndarray


def test_a_layer_is_told_by_its_name_and_x_is_none() -> None:
    cells = made_cells(60, 36)
    with pytest.raises(ImapceError, match=r"layer must be one of adata.layers, which holds 'log'; got 'logs'"):
        features(cells, layer="logs")
    cells.X = None
    with pytest.raises(ImapceError, match=r"adata.X is empty; name another matrix by layer \('log'\) or use_rep"):
        features(cells)
