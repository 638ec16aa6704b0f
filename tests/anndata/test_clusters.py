"""Clusters of an exploration and all that is told of them, and copies of .h5ad files with what was found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cells import anndata, made_cells
from imapce import Exploration, ImapceError
from imapce.anndata import write_clusters
from imapce.anndata.results import annotated_copy
from imapce.plotting.steps import cluster_hue
from imapce.tables.named import h5ad_target

CELLS = made_cells(300, 40)
FOUND = Exploration.from_anndata(CELLS, prior="batch", layer="log", random_state=0).run(max_steps=1)


def test_clusters_are_categories_and_other_rows_are_missing(tmp_path: Path) -> None:
    cells = CELLS.copy()
    write_clusters(cells, FOUND)
    column = cells.obs["imapce_cluster"]
    assert column.cat.categories.tolist() == [str(cluster.number) for cluster in FOUND.clusters_]
    np.testing.assert_array_equal(column.astype(float).fillna(-1), FOUND.labels_)
    assert column.isna().any()
    cells.write_h5ad(tmp_path / "cells.h5ad")
    assert anndata.read_h5ad(tmp_path / "cells.h5ad").obs["imapce_cluster"].isna().sum() == column.isna().sum()


def test_other_rows_may_be_called_by_a_name() -> None:
    cells = CELLS.copy()
    write_clusters(cells, FOUND, key="found", rest="rest")
    assert (cells.obs["found"] == "rest").sum() == (FOUND.labels_ < 0).sum()
    assert len(cells.uns["found_colors"]) == len(cells.obs["found"].cat.categories)
    assert set(cells.obs["found_reason"][FOUND.labels_ < 0]) == {"not looked at yet"}


def test_all_that_was_found_is_there_and_comes_back_from_a_file(tmp_path: Path) -> None:
    before = CELLS.copy()
    exploration = Exploration.from_anndata(before, prior="batch", layer="log", random_state=0).run()
    write_clusters(before, exploration)
    before.write_h5ad(tmp_path / "cells.h5ad")
    cells = anndata.read_h5ad(tmp_path / "cells.h5ad")
    numbers = [str(cluster.number) for cluster in exploration.clusters_]
    assert cells.obs["imapce_cluster"].cat.categories.tolist() == numbers
    assert cells.uns["imapce_cluster_colors"].tolist() == [cluster_hue(int(number)) for number in numbers]
    overview = exploration.overview()
    np.testing.assert_array_equal(cells.obsm["X_imapce_cluster"], overview.embedding)
    np.testing.assert_array_equal(cells.varm["imapce_cluster"], overview.components.T)
    for number, step in enumerate(exploration.steps, start=1):
        np.testing.assert_array_equal(cells.obsm[f"X_imapce_cluster_step{number}"], exploration.coordinates(step))
    told = cells.uns["imapce_cluster"]
    table, described = told["clusters"], exploration.description().clusters
    assert table.index.tolist() == numbers
    assert table["name"].tolist() == [profile.name for profile in described]
    assert table["cells"].tolist() == [cluster.size for cluster in exploration.clusters_]
    assert table["step"].min() == 1
    assert table["overlap"].between(0, 1).all()
    assert told["known"].tolist() == exploration.known_in_words
    assert (told["structure"], told["stop_reason"]) == ("clear", exploration.stop_reason)
    # The layer that was explored is known by its values.
    assert cells.uns["imapce_cluster_markers"]["params"]["layer"] == "log"
    assert "imapce_cluster_reason" not in cells.obs


def test_what_an_earlier_exploration_left_is_replaced() -> None:
    cells = CELLS.copy()
    cells.obsm["X_imapce_cluster_steps"] = np.zeros((300, 1))
    write_clusters(cells, Exploration.from_anndata(cells, prior="batch", layer="log", random_state=0).run())
    assert "X_imapce_cluster_step2" in cells.obsm
    write_clusters(cells, FOUND)
    assert sorted(cells.obsm) == ["X_imapce_cluster", "X_imapce_cluster_step1", "X_imapce_cluster_steps"]
    nothing = Exploration.from_anndata(cells, layer="log", random_state=0)
    write_clusters(cells, nothing)
    assert sorted(cells.obsm) == ["X_imapce_cluster_steps"]
    assert sorted(cells.uns) == ["imapce_cluster"]
    assert not len(cells.varm)
    assert cells.obs["imapce_cluster"].isna().all()
    assert set(cells.obs["imapce_cluster_reason"]) == {"not looked at yet"}


def test_of_a_representation_the_markers_are_of_the_variables() -> None:
    cells = CELLS.copy()
    cells.obsm["X_pca"] = np.asarray(cells.layers["log"].todense())[:, :25] @ np.eye(25, 8)
    exploration = Exploration.from_anndata(cells, prior="batch", use_rep="X_pca", random_state=0)
    exploration.accept(mask=cells.obs["kind"].to_numpy() == "T")
    write_clusters(cells, exploration)
    assert set(cells.uns["imapce_cluster_markers"]["names"]["0"]) == set(cells.var_names)
    assert cells.uns["imapce_cluster"]["clusters"]["distinctness"].tolist() == [""]
    assert "X_imapce_cluster" in cells.obsm
    assert not len(cells.varm)
    bare = anndata.AnnData(obs=cells.obs[["batch"]], obsm={"X_pca": cells.obsm["X_pca"]})
    write_clusters(bare, exploration)
    assert "imapce_cluster_markers" not in bare.uns
    assert bare.obs["imapce_cluster"].value_counts().tolist() == [exploration.clusters_[0].size]


def test_rows_and_variables_keep_their_names() -> None:
    assert FOUND.row_ids.tolist() == list(CELLS.obs_names)
    assert FOUND.feature_names == list(CELLS.var_names)
    assert FOUND.clusters_[0].features[0].name.startswith("gene")


@pytest.mark.parametrize("change", ["fewer", "other order"])
def test_other_cells_are_refused(change: str) -> None:
    cells = CELLS[:100].copy() if change == "fewer" else CELLS[::-1].copy()
    with pytest.raises(ImapceError, match="adata must have the"):
        write_clusters(cells, FOUND)
    assert "imapce_cluster" not in cells.obs


@pytest.mark.parametrize("rest", [str(FOUND.clusters_[0].number), 7, ""])
def test_a_name_for_the_rest_that_is_a_cluster_is_refused(rest: object) -> None:
    with pytest.raises(ImapceError, match="rest must be None or a name"):
        write_clusters(CELLS.copy(), FOUND, rest=rest)  # type: ignore[arg-type]


def test_a_copy_is_whole_or_not_there(tmp_path: Path) -> None:
    source, target = tmp_path / "cells.h5ad", tmp_path / "more.h5ad"
    CELLS.write_h5ad(source)
    before = source.read_bytes()

    with pytest.raises(ZeroDivisionError), annotated_copy(source, target) as cells:
        cells.obs["x"] = 1 / 0
    with pytest.raises(ImapceError, match="the cells can be written"), annotated_copy(source, target) as cells:
        cells.uns["what no file holds"] = object()
    assert [path.name for path in tmp_path.iterdir()] == ["cells.h5ad"]
    with annotated_copy(source, target) as cells:
        write_clusters(cells, FOUND)
    assert "imapce_cluster" in anndata.read_h5ad(target).obs
    assert source.read_bytes() == before


def test_a_copy_needs_a_source_of_its_kind(tmp_path: Path) -> None:
    with pytest.raises(ImapceError, match=r"path can be \.h5ad where rows to embed or explore come from one"):
        h5ad_target(str(tmp_path / "out.h5ad"), "rows.csv")
