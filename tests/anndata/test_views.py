"""Views of an AnnData: what is written, where, and by which names the known is told."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, balanced_accuracy_score, homogeneity_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

import imapce
from cells import anndata, made_cells
from imapce import IMAPCE, Attributes, Exploration, ImapceError, Labels, Samples, Subset
from imapce.anndata import embed, features, known

CELLS = made_cells()
QUICK: dict[str, Any] = {"alpha": 1.0, "mu": 1.0, "n_starts": 2, "random_state": 0}


def readable(view: np.ndarray, classes: Any) -> float:
    """How well 15 neighbours guess the class of a row they have not seen."""
    classes = np.asarray(classes, dtype=str)
    return balanced_accuracy_score(classes, cross_val_predict(KNeighborsClassifier(15), view, classes, cv=10))


@pytest.mark.parametrize("seed", range(4))
def test_with_the_batch_known_the_types_are_found_and_the_batch_can_hardly_be_read(seed: int) -> None:
    """The batch multiplies, so its effect on logarithms is not the same for every type: a type may come in two."""
    cells = made_cells(seed=seed)
    embed(cells, prior="batch", layer="log", random_state=0)
    exploration = Exploration.from_anndata(cells, prior="batch", layer="log", random_state=0).run()
    assert adjusted_rand_score(cells.obs["kind"], exploration.labels_) >= 0.85
    assert homogeneity_score(cells.obs["kind"], exploration.labels_) >= 0.95
    assert readable(cells.obsm["X_imapce"], cells.obs["batch"]) <= 0.6
    assert readable(cells.obsm["X_imapce"], cells.obs["kind"]) >= 0.95


@pytest.mark.parametrize("seed", range(4))
def test_with_the_batch_erased_nothing_linear_of_it_is_left(seed: int) -> None:
    cells = made_cells(seed=seed)
    embed(cells, prior=Labels("batch", erase=True), layer="log", random_state=0)
    first = (cells.obs["batch"] == "first").to_numpy()
    view = cells.obsm["X_imapce"]
    assert np.abs(view[first].mean(axis=0) - view[~first].mean(axis=0)).max() < 1e-9
    assert readable(view, cells.obs["kind"]) >= 0.95


def test_without_it_the_batch_is_read_from_the_view() -> None:
    cells = CELLS.copy()
    embed(cells, layer="log", random_state=0)
    assert readable(cells.obsm["X_imapce"], cells.obs["batch"]) >= 0.8


def test_without_it_the_batches_split_the_types() -> None:
    cells = made_cells(seed=1)
    exploration = Exploration.from_anndata(cells, layer="log", random_state=0).run()
    assert adjusted_rand_score(cells.obs["kind"], exploration.labels_) < 0.7


def test_what_is_written_and_that_a_file_can_hold_it(tmp_path: Path) -> None:
    cells = CELLS.copy()
    model = embed(cells, prior="batch", layer="log", **QUICK)
    np.testing.assert_array_equal(cells.obsm["X_imapce"], model.transform(features(cells, layer="log")))
    np.testing.assert_array_equal(cells.varm["imapce"], model.components_.T)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(again.obsm["X_imapce"], cells.obsm["X_imapce"])
    told = again.uns["imapce"]
    assert (told["alpha"], told["mu"], told["stop_reason"]) == (model.alpha_, model.mu_, model.stop_reason_)
    assert told["params"]["layer"] == "log"
    assert told["params"]["n_starts"] == 2


def test_an_endless_weight_and_unset_parameters_can_be_written(tmp_path: Path) -> None:
    cells = CELLS[:200].copy()
    cells.uns["imapce"] = "earlier"
    model = embed(cells, prior="batch", layer="log", n_starts=2)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    assert anndata.read_h5ad(tmp_path / "cells.h5ad").uns["imapce"]["alpha"] == model.alpha_


def test_a_known_label_takes_part_in_the_view_and_is_asked_for_of_new_cells(tmp_path: Path) -> None:
    cells, matrix = CELLS.copy(), features(CELLS, layer="log")
    model = embed(cells, prior="batch", layer="log")
    batch = CELLS.obs["batch"].astype(str).to_numpy()
    assert model.label_names == ("batch",)
    np.testing.assert_allclose(cells.obsm["X_imapce"], model.transform(matrix, labels=batch), atol=1e-10)
    with pytest.raises(ImapceError, match="labels must be given for the rows of X: the fit was given batch"):
        model.transform(matrix)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    told = anndata.read_h5ad(tmp_path / "cells.h5ad").uns["imapce"]
    assert told["alpha"] == np.inf
    assert dict(told["read_back"]) == model.read_back_


def test_a_representation_has_no_axes_of_variables() -> None:
    cells = CELLS.copy()
    cells.obsm["X_pca"] = np.asarray(cells.layers["log"][:, :8].todense())
    embed(cells, layer="log", key="own", **QUICK)
    assert "own" in cells.varm
    embed(cells, use_rep="X_pca", key="own", **QUICK)
    assert "own" not in cells.varm
    assert cells.obsm["X_own"].shape == (900, 2)
    assert cells.uns["own"]["params"]["use_rep"] == "X_pca"


def test_names_of_columns_stand_for_priors() -> None:
    matrix = features(CELLS, layer="log")
    control, other = np.asarray(CELLS.obs["control"]), CELLS[~CELLS.obs["control"].to_numpy()].copy()
    flipped = other[:, ::-1].copy()
    pairs: list[tuple[Any, Any]] = [
        ("batch", Labels(CELLS.obs["batch"].to_numpy())),
        (Labels("batch", erase=True), Labels(CELLS.obs["batch"].to_numpy(), erase=True)),
        (Subset("control", weight=2.0), Subset(control, weight=2.0)),
        (Samples(flipped, weight=0.5), Samples(other.layers["log"], weight=0.5)),
        (flipped, Samples(other.layers["log"])),
        (["batch", Attributes(["gene3"])], [Labels(CELLS.obs["batch"].to_numpy()), Attributes([3])]),
    ]
    for short, long in pairs:
        cells = CELLS.copy()
        embed(cells, prior=short, layer="log", **QUICK)
        expected = IMAPCE(**QUICK).fit(matrix, prior=long).transform(matrix)
        np.testing.assert_allclose(cells.obsm["X_imapce"], expected, atol=1e-8)


def test_many_numbered_categories_are_classes() -> None:
    cells = CELLS[:200].copy()
    cells.obs["donor"] = np.arange(200) % 30
    cells.obs["donor"] = cells.obs["donor"].astype("category")
    (labels,) = known(cells, "donor")
    assert isinstance(labels, Labels)
    assert set(labels.y) == {str(number) for number in range(30)}


def test_scanpy_draws_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scanpy = pytest.importorskip("scanpy", reason="scanpy, of the development tools, is not installed")
        cells = CELLS.copy()
        embed(cells, prior="batch", layer="log", **QUICK)
        imapce.anndata.write_clusters(cells, Exploration.from_anndata(cells, layer="log", random_state=0).run())
        figure = scanpy.pl.embedding(cells, "imapce", color=["kind", "imapce_cluster"], show=False, return_fig=True)
    panels = [ax for ax in figure.axes if ax.collections]
    assert len(panels) == 2
    assert sum(len(part.get_offsets()) for part in panels[0].collections) == 900


def test_sparse_cells_are_never_written_out() -> None:
    """150,000 x 3,000 counts are 3.6 GB written out."""
    rng = np.random.default_rng(0)
    counts = sparse.csr_array(sparse.random(150_000, 3_000, density=3e-4, random_state=rng, dtype=np.float32))
    cells = anndata.AnnData(sparse.csr_matrix(counts))
    cells.obs["batch"] = rng.integers(0, 2, 150_000).astype(str)
    assert features(cells).matrix is cells.X
    tracemalloc.start()
    try:
        embed(cells, prior="batch", alpha=1.0, mu=0.0, outliers="keep", n_starts=2, random_state=0)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sparse.issparse(cells.X)
    assert most < 500e6


def refused(words: str, **arguments: Any) -> None:
    cells = CELLS[:100].copy()
    before = (list(cells.obsm), list(cells.varm), list(cells.uns))
    with pytest.raises(ImapceError, match=words) as problem:
        embed(cells, **arguments)
    assert "\n" not in str(problem.value)
    assert (list(cells.obsm), list(cells.varm), list(cells.uns)) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"prior": "bach"}, "must name a column of obs or a variable, got 'bach': did you mean 'batch'"),
        ({"prior": Labels("gene3")}, r"for a variable pass Attributes\(\['gene3'\]\)"),
        ({"prior": Subset("kind")}, r"true or false in every row.*Subset\(adata.obs\['kind'\] == value\)"),
        ({"prior": 3}, "prior must be None"),
        ({"layer": "logs"}, "layer must be one of adata.layers, which holds 'log'; got 'logs'"),
        ({"use_rep": "X_pca"}, "use_rep must be one of adata.obsm"),
        ({"layer": "log", "use_rep": "X_pca"}, "two answers to one question"),
        ({"key": "a/b"}, "key must be a name without a slash"),
        ({"n_component": 3}, "got 'n_component'"),
        ({"n_components": 0}, "n_components must be"),
    ],
)
def test_what_cannot_be_used_is_refused_and_changes_nothing(arguments: dict[str, Any], words: str) -> None:
    refused(words, **arguments)


def test_an_anndata_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImapceError, match="adata must be an AnnData; got ndarray"):
        embed(np.eye(3))
    with pytest.raises(ImapceError, match=r"adata.X is empty; name another matrix by layer"):
        embed(anndata.AnnData(obs={"a": [1, 2, 3]}))
    CELLS.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(ImapceError, match=r"backed by 'cells.h5ad': use adata.to_memory\(\)"):
        embed(backed)
    backed.file.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twins = anndata.AnnData(np.eye(3, 2))
        twins.var_names = ["a", "a"]
    with pytest.raises(ImapceError, match="var_names_make_unique"):
        embed(twins)


def test_without_the_library_one_sentence_says_what_to_install() -> None:
    code = """
import sys
sys.modules["anndata"] = None
import imapce
try:
    imapce.anndata
except ImportError as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        'imapce.anndata needs anndata, which is not installed; run pip install "imapce[anndata]".'
    )
