"""AnnData files on the command line: variables are the features, `obs` tells of the rows, -o may be a copy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from cells import anndata, made_cells
from commands import QUICK, refusal, run, succeed
from imapce import Exploration, load_model
from imapce.anndata import correct, write_clusters
from imapce.tables.files import read_table


@pytest.fixture(scope="module")
def made() -> anndata.AnnData:
    cells = made_cells(300, 60)
    cells.X = cells.layers["log"]
    cells.obs["half"] = np.arange(300) % 2 == 0
    return cells


@pytest.fixture
def cells(made: anndata.AnnData, tmp_path: Path) -> Path:
    path = tmp_path / "cells.h5ad"
    made.write_h5ad(path)
    return path


def test_a_view_of_cells_goes_into_a_copy(cells: Path, tmp_path: Path) -> None:
    before = cells.read_bytes()
    told = succeed(
        *("embed", cells, "--known", "batch", "--labels", "kind,batch", "--save", tmp_path / "view.imapce"),
        *("-o", tmp_path / "out.h5ad", "--plot", tmp_path / "view.png", "--report", tmp_path / "view.html", *QUICK),
    )
    assert "the label batch is known" in told
    model, written = load_model(tmp_path / "view.imapce"), anndata.read_h5ad(tmp_path / "out.h5ad")
    assert list(model.feature_names_in_) == [f"gene{place}" for place in range(60)]
    assert written.obsm["X_imapce"].shape == (300, 2)
    np.testing.assert_array_equal(written.varm["imapce"], model.components_.T)
    assert written.uns["imapce"]["stop_reason"] == model.stop_reason_
    assert written.obs["kind"].tolist() == anndata.read_h5ad(cells).obs["kind"].tolist()
    assert cells.read_bytes() == before
    # The label is one of obs in new files too.
    succeed("transform", tmp_path / "view.imapce", cells, "-o", tmp_path / "again.csv")
    again = np.asarray(read_table(tmp_path / "again.csv")["imapce0"])
    np.testing.assert_allclose(again, written.obsm["X_imapce"][:, 0], atol=1e-6)


def test_only_the_variables_asked_for_are_features(cells: Path, tmp_path: Path) -> None:
    succeed(
        *("embed", cells, "--columns", "gene1,gene2,gene3,gene4", "--known", "gene0", "--drop", "gene9"),
        *("--known-rows", "half=True", "-o", tmp_path / "out.h5ad", *QUICK),
    )
    weights = anndata.read_h5ad(tmp_path / "out.h5ad").varm["imapce"]
    assert np.flatnonzero(np.abs(weights).sum(axis=1)).max() == 4


def test_a_table_carries_what_is_told_of_the_cells(cells: Path, tmp_path: Path) -> None:
    succeed("embed", cells, "-o", tmp_path / "view.csv", "--save", tmp_path / "view.imapce", *QUICK)
    table = read_table(tmp_path / "view.csv")
    assert table.column_names == ["obs_names", "batch", "kind", "control", "half", "row", "imapce0", "imapce1"]
    assert table["obs_names"][7].as_py() == "cell7"
    succeed("transform", tmp_path / "view.imapce", cells, "-o", tmp_path / "again.csv")
    again = read_table(tmp_path / "again.csv")
    np.testing.assert_allclose(again["imapce0"].to_numpy(), table["imapce0"].to_numpy())


def test_a_background_of_cells(cells: Path, made: anndata.AnnData, tmp_path: Path) -> None:
    made[made.obs["control"].to_numpy()].copy()[:, ::-1].copy().write_h5ad(tmp_path / "controls.h5ad")
    assert "background rows are known" in succeed(
        "embed", cells, "--background", tmp_path / "controls.h5ad", "-o", tmp_path / "out.h5ad", *QUICK
    )


def test_all_that_was_found_goes_into_a_copy(cells: Path, made: anndata.AnnData, tmp_path: Path) -> None:
    told = succeed("explore", cells, "--known", "batch", "-o", tmp_path / "out.h5ad", "--labels", "kind")
    assert "in 3 clusters" in told
    written = anndata.read_h5ad(tmp_path / "out.h5ad")
    assert adjusted_rand_score(written.obs["kind"], written.obs["imapce_cluster"].astype(str)) > 0.9
    in_python = made.copy()
    write_clusters(in_python, Exploration.from_anndata(in_python, prior="batch", random_state=0).run())
    correct(in_python, prior="batch", outliers="keep")
    assert sorted(written.obsm) == sorted(in_python.obsm)
    for name, values in in_python.obsm.items():
        np.testing.assert_allclose(written.obsm[name], values, atol=1e-8)
    assert written.obs["imapce_cluster"].tolist() == in_python.obs["imapce_cluster"].tolist()
    assert sorted(written.uns) == sorted(in_python.uns)
    assert written.uns["imapce_cluster_colors"].tolist() == in_python.uns["imapce_cluster_colors"].tolist()
    for name in ("names", "scores"):
        ours, theirs = (one.uns["imapce_cluster_markers"][name] for one in (written, in_python))
        assert ours.tolist() == theirs.tolist()
    assert list(written.uns["given"]["known"]) == ["batch"]


def test_cells_of_which_nothing_is_known_are_not_corrected(cells: Path, tmp_path: Path) -> None:
    succeed("explore", cells, "-o", tmp_path / "out.h5ad", "--max-steps", 1)
    written = anndata.read_h5ad(tmp_path / "out.h5ad")
    assert "X_given" not in written.obsm
    assert written.obs["imapce_cluster_reason"].notna().all()


def test_corrected_cells_that_are_too_many_numbers_are_left_out_and_named(
    cells: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("imapce.anndata.clusters.MOST_CORRECTED", 8 * 300 * 60 - 1)
    done = run("explore", cells, "--known", "batch", "-o", tmp_path / "out.h5ad")
    assert done.exit_code == 0
    assert "the cells less the effect of batch would be 0.0 GB, written out in all variables" in done.stderr
    assert "X_given" not in anndata.read_h5ad(tmp_path / "out.h5ad").obsm


def test_methods_are_compared_on_cells(cells: Path, tmp_path: Path) -> None:
    succeed(
        *("compare", cells, "--known", "batch", "--labels", "kind", "--methods", "IMAPCE,PCA,LEACE"),
        *("-o", tmp_path / "comparison", "--max-rows", 200),
    )
    assert (tmp_path / "comparison" / "report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--known", "bach"), "--known must name a column of DATA, got 'bach': did you mean 'batch'?"),
        (("--labels", "gene0"), "--labels must name columns of obs, and 'gene0' is a variable: leave it out."),
        (("--drop", "batch"), "--drop must name variables, and 'batch' is a column of obs: leave it out."),
        (("--known", "gene0", "--drop", "gene0"), "--drop must name no variable that is known, and 'gene0' is"),
        (("--columns", "gene0", "--drop", "gene0"), "--columns must name columns that are features"),
        (("-o", "cells.h5ad"), "must not replace a file that is read"),
    ],
)
def test_what_does_not_fit_is_told(
    arguments: tuple[str, ...], words: str, cells: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cells.parent)
    assert words in refusal("embed", cells, *arguments)
    assert [path.name for path in cells.parent.iterdir()] == ["cells.h5ad"]


def test_a_copy_needs_cells(plain: Path, tmp_path: Path) -> None:
    assert "can be .h5ad where rows to embed or explore come from one" in refusal(
        "embed", plain, "-o", tmp_path / "out.h5ad"
    )


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "cells.h5ad").write_bytes(b"no HDF5 at all")
    assert "must name a whole .h5ad file" in refusal("embed", tmp_path / "cells.h5ad")


def test_words_in_place_of_numbers_are_told(tmp_path: Path) -> None:
    anndata.AnnData(obs={"a": [1, 2, 3]}).write_h5ad(tmp_path / "cells.h5ad")
    assert "X is empty" in refusal("embed", tmp_path / "cells.h5ad")
