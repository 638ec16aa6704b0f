"""Cells less what the known does to them: what is written, where, and that neighbours of it tell types, not batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

from cells import anndata, made_cells
from imapce import IMAPCE, Attributes, Exploration, Given, ImapceError, Labels, Subset
from imapce.anndata import correct, embed, features

CELLS = made_cells()
REPRESENTATION = np.linalg.svd(
    np.asarray(CELLS.layers["log"].todense()) - np.asarray(CELLS.layers["log"].mean(axis=0)), full_matrices=False
)
CELLS.obsm["X_pca"] = REPRESENTATION[0][:, :20] * REPRESENTATION[1][:20]


def readable(rows: np.ndarray, classes: Any) -> float:
    """How well 15 neighbours guess the class of a row they have not seen."""
    classes = np.asarray(classes, dtype=str)
    return balanced_accuracy_score(classes, cross_val_predict(KNeighborsClassifier(15), rows, classes, cv=10))


@pytest.mark.parametrize("matrix", [{"layer": "log"}, {"use_rep": "X_pca"}], ids=["all genes", "components"])
def test_neighbours_tell_the_type_and_not_the_batch(matrix: dict[str, str]) -> None:
    cells = CELLS.copy()
    correct(cells, prior="batch", **matrix)
    left, before = cells.obsm["X_given"], features(cells, **matrix).matrix
    before = np.asarray(before.todense()) if hasattr(before, "todense") else before
    assert left.shape == before.shape
    assert readable(before, cells.obs["batch"]) > 0.85
    assert readable(left, cells.obs["batch"]) < 0.6
    assert readable(left, cells.obs["kind"]) >= readable(before, cells.obs["kind"]) - 0.01


def test_what_is_written_and_that_a_file_can_hold_it(tmp_path: Path) -> None:
    cells = CELLS.copy()
    model = correct(cells, prior="batch", layer="log")
    batch = CELLS.obs["batch"].astype(str).to_numpy()
    expected = Given(Labels(batch)).fit_transform(features(cells, layer="log"))
    np.testing.assert_allclose(cells.obsm["X_given"], expected, atol=1e-12)
    np.testing.assert_allclose(
        model.transform(features(cells, layer="log"), labels=batch), cells.obsm["X_given"], atol=1e-12
    )
    cells.write_h5ad(tmp_path / "cells.h5ad")
    told = anndata.read_h5ad(tmp_path / "cells.h5ad").uns["given"]
    assert list(told["known"]) == ["batch"]
    assert not told["erased"]
    assert told["read_back"]["clusters"] == model.read_back_["clusters"]  # type: ignore[index]
    assert told["read_back"]["chance"] == 0.5
    assert "view" not in told["read_back"]
    assert told["params"]["layer"] == "log"
    assert told["params"]["standardize"]
    assert "varm" not in told
    assert "prior" not in told["params"]


def test_several_known_and_another_name() -> None:
    cells = CELLS.copy()
    correct(cells, prior=["batch", Attributes(["gene3"]), Labels("control", erase=True)], layer="log", key="left")
    assert list(cells.uns["left"]["known"]) == ["gene3", "batch", "control"]
    assert cells.uns["left"]["erased"]
    assert np.abs(cells.obsm["X_left"][:, 3]).max() < 1e-9
    assert "X_given" not in cells.obsm


def test_a_representation_keeps_its_scale() -> None:
    """Standardised, the last of twenty principal components would weigh as much as the first."""
    cells = CELLS.copy()
    spread = CELLS.obsm["X_pca"].std(axis=0)
    model = correct(cells, prior="batch", use_rep="X_pca")
    assert np.all(model.scale_ == 1.0)
    assert not cells.uns["given"]["params"]["standardize"]
    # What clusters get back may widen a column a little.
    assert np.all(cells.obsm["X_given"].std(axis=0) <= 1.05 * spread)
    view = embed(cells, prior="batch", use_rep="X_pca")
    assert np.all(view.scale_ == 1.0)
    exploration = Exploration.from_anndata(cells, prior="batch", use_rep="X_pca")
    np.testing.assert_array_equal(exploration.propose().views[0].scale, 1.0)
    assert np.all(embed(cells, use_rep="X_pca", standardize=True, alpha=0.0, mu=0.0).scale_ != 1.0)
    assert np.all(correct(cells, prior="batch", use_rep="X_pca", standardize=True).scale_ != 1.0)
    own = Exploration.from_anndata(cells, use_rep="X_pca", estimator=IMAPCE(alpha=0.0, mu=0.0))
    assert np.all(own.propose().views[0].scale != 1.0)
    genes = Exploration.from_anndata(cells, layer="log", estimator=IMAPCE(alpha=0.0, mu=0.0))
    assert np.all(genes.propose().views[0].scale != 1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"prior": None}, "prior must tell what is known"),
        ({"prior": "bach"}, "must name a column of obs or a variable, got 'bach': did you mean 'batch'"),
        ({"prior": Subset("control")}, "prior must be Attributes.*got Subset"),
        ({"prior": "batch", "key": "a/b"}, "key must be a name without a slash"),
        ({"prior": "batch", "n_components": 3}, "correct takes prior, layer, use_rep, key and .*got 'n_components'"),
        ({"prior": "batch", "layer": "logs"}, "layer must be one of adata.layers"),
        ({"prior": "batch", "outliers": "auto"}, "outliers must be one of"),
    ],
)
def test_what_cannot_be_used_is_refused_and_changes_nothing(arguments: dict[str, Any], words: str) -> None:
    cells = CELLS[:100].copy()
    before = (list(cells.obsm), list(cells.varm), list(cells.uns))
    with pytest.raises(ImapceError, match=words) as problem:
        correct(cells, **arguments)
    assert "\n" not in str(problem.value)
    assert (list(cells.obsm), list(cells.varm), list(cells.uns)) == before
