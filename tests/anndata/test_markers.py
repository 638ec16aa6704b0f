"""What sets groups of cells apart, where scanpy looks for it: its own functions read it, and agree where both tell."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cells import anndata, made_cells
from imapce import Exploration, ImapceError
from imapce.anndata import write_clusters, write_markers


@pytest.fixture(scope="module")
def sc() -> Any:
    with warnings.catch_warnings():
        # What scanpy warns of as it is imported is its own.
        warnings.simplefilter("ignore")
        return pytest.importorskip("scanpy", reason="scanpy, of the development tools, is not installed")


@pytest.fixture(scope="module")
def logged(sc: Any) -> anndata.AnnData:
    """Cells as scanpy prepares them, with groups of their own."""
    cells = made_cells(300, 40)
    del cells.layers["log"]
    sc.pp.normalize_total(cells)
    sc.pp.log1p(cells)
    return cells


def test_scores_are_differences_to_all_other_cells_in_standard_deviations(logged: anndata.AnnData) -> None:
    cells = logged.copy()
    write_markers(cells, "kind")
    told, X = cells.uns["kind_markers"], pd.DataFrame(cells.X.toarray().astype(float), columns=cells.var_names)
    for kind in ("B", "NK", "T"):
        inside = (cells.obs["kind"] == kind).to_numpy()
        expected = (X[inside].mean() - X[~inside].mean()) / X.std(ddof=0)
        ours = pd.Series(told["scores"][kind], index=told["names"][kind])
        pd.testing.assert_series_equal(ours.sort_index(), expected.sort_index(), check_dtype=False, rtol=1e-5)
        assert (np.diff(ours) <= 0).all()
        np.testing.assert_allclose(told["means"][kind], X[inside].mean(), rtol=1e-5)
        np.testing.assert_allclose(told["means_rest"][kind], X[~inside].mean(), rtol=1e-5)
    assert set(told["names"]["T"][:10]) == {f"gene{place}" for place in range(10)}


def test_they_are_the_numbers_of_a_report(logged: anndata.AnnData) -> None:
    cells = logged.copy()
    exploration = Exploration.from_anndata(cells, prior="batch", random_state=0).run()
    write_clusters(cells, exploration)
    told, described = cells.uns["imapce_cluster_markers"], exploration.description()
    assert len(described.features) > 5
    for number, differences in zip(described.numbers, described.differences, strict=True):
        ours = pd.Series(told["scores"][str(number)], index=told["names"][str(number)])
        np.testing.assert_allclose(ours[list(described.features)], differences, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("base", [None, 2])
def test_fold_changes_are_those_of_scanpy_where_the_cells_are_logarithms(sc: Any, base: float | None) -> None:
    cells = made_cells(200, 30)
    sc.pp.normalize_total(cells)
    sc.pp.log1p(cells, base=base)
    write_markers(cells, "kind")
    sc.tl.rank_genes_groups(cells, "kind", method="t-test")
    ours, theirs = (
        sc.get.rank_genes_groups_df(cells, None, key=key).set_index(["group", "names"])["logfoldchanges"]
        for key in ("kind_markers", "rank_genes_groups")
    )
    np.testing.assert_allclose(ours, theirs.loc[ours.index], rtol=1e-4)


def test_what_is_not_computed_is_missing_and_not_made_up(sc: Any) -> None:
    cells = made_cells(200, 30)
    write_markers(cells, "kind")
    table = sc.get.rank_genes_groups_df(cells, "T", key="kind_markers")
    assert table[["logfoldchanges", "pvals", "pvals_adj"]].isna().all(axis=None)
    assert sc.get.rank_genes_groups_df(cells, "T", key="kind_markers", pval_cutoff=0.05).empty
    write_markers(cells, "kind", layer="log", key="of_logs")
    assert cells.uns["of_logs"]["params"]["layer"] == "log"


def test_scanpy_reads_them_from_a_file(sc: Any, logged: anndata.AnnData, tmp_path: Path) -> None:
    before = logged.copy()
    write_clusters(before, Exploration.from_anndata(before, prior="batch", random_state=0).run())
    before.write_h5ad(tmp_path / "cells.h5ad")
    cells, key = anndata.read_h5ad(tmp_path / "cells.h5ad"), "imapce_cluster_markers"
    pd.testing.assert_frame_equal(
        sc.get.rank_genes_groups_df(cells, None, key=key), sc.get.rank_genes_groups_df(before, None, key=key)
    )
    sc.tl.rank_genes_groups(cells, "imapce_cluster")
    for name, source in (("theirs", "rank_genes_groups"), ("ours", key)):
        sc.tl.filter_rank_genes_groups(cells, key=source, key_added=name, max_out_group_fraction=0.9)
    for group in cells.obs["imapce_cluster"].cat.categories:
        ours, theirs = (set(pd.Series(cells.uns[name]["names"][group]).dropna()) for name in ("ours", "theirs"))
        assert ours == theirs
        assert ours
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        panels = sc.pl.rank_genes_groups(cells, key=key, n_genes=5, show=False)
        assert [ax.get_title() for ax in panels] == [f"{number} vs. rest" for number in range(len(panels))]
        assert sc.pl.rank_genes_groups_dotplot(cells, key=key, n_genes=3, dendrogram=False, show=False)


def test_cells_of_no_group_are_others_and_unused_groups_are_none() -> None:
    cells = made_cells(200, 30)
    cells.obs["some"] = pd.Categorical(cells.obs["kind"].where(cells.obs["kind"] != "B"), ["T", "NK", "unused"])
    write_markers(cells, "some")
    write_markers(cells, "kind")
    assert cells.uns["some_markers"]["names"].dtype.names == ("T", "NK")
    np.testing.assert_array_equal(cells.uns["some_markers"]["scores"]["T"], cells.uns["kind_markers"]["scores"]["T"])


def test_missing_values_count_on_no_side_and_what_does_not_vary_scores_nothing() -> None:
    X = np.array([[1.0, 5.0], [np.nan, 5.0], [3.0, 5.0], [5.0, 5.0]])
    cells = anndata.AnnData(X, obs={"kind": ["a", "a", "b", "b"]})
    write_markers(cells, "kind")
    told = cells.uns["kind_markers"]
    assert told["means"].to_numpy().tolist() == [[1.0, 4.0], [5.0, 5.0]]
    assert dict(zip(told["names"]["b"], told["scores"]["b"], strict=True)) == {
        "0": pytest.approx(3 / np.std([1, 3, 5])),
        "1": 0.0,
    }


@pytest.mark.parametrize(
    ("groupby", "arguments", "words"),
    [
        ("kinds", {}, "groupby must name a column of obs, got 'kinds': did you mean 'kind'"),
        (3, {}, "groupby must name a column of obs, got 3: pass its name"),
        ("empty", {}, "groupby must name a column of obs with groups; 'empty' is missing in every cell"),
        ("kind", {"key": "a/b"}, "key must be a name without a slash"),
        ("kind", {"layer": "logs"}, "layer must be one of adata.layers"),
    ],
)
def test_what_cannot_be_ranked_is_refused(groupby: Any, arguments: dict[str, str], words: str) -> None:
    cells = made_cells(60, 30)
    cells.obs["empty"] = pd.Categorical([None] * 60, ["a"])
    with pytest.raises(ImapceError, match=words):
        write_markers(cells, groupby, **arguments)
    assert not cells.uns
