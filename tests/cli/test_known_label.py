"""`--known-label` and several `--labels`: what is known beside the features, and what colours the pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import FEATURES, QUICK, files_beside, refusal, run, succeed
from imapce import Exploration, Labels, load_model
from imapce.metrics import residual_predictability
from imapce.tables.files import read_table, write_table


def test_a_known_label_leaves_the_features_and_cannot_be_read_from_the_view(rows: Path, tmp_path: Path) -> None:
    told = succeed(
        *("embed", rows, "--known-label", "batch", "--labels", "celltype,batch", "--drop", "number"),
        *("--save", tmp_path / "view.imapce", "-o", tmp_path / "view.parquet", "--plot", tmp_path / "view.png"),
        *("--report", tmp_path / "view.html"),
    )
    assert "the label batch is known" in told
    model, table = load_model(tmp_path / "view.imapce"), read_table(tmp_path / "view.parquet")
    assert list(model.feature_names_in_) == FEATURES
    assert "The known is read back" in model.stop_reason_
    view = np.column_stack([table.column(f"imapce{axis}") for axis in range(2)])
    read = residual_predictability(view, table.column("batch").to_numpy())
    assert read["score"] - read["chance"] < 0.15
    # Both columns colour the picture, and the page says which of them was used.
    page = (tmp_path / "view.html").read_text()
    assert "What is known colours it too: batch was explained away; the other labels that colour it were not" in page


def test_explore_goes_on_with_the_label_of_its_session(rows: Path, tmp_path: Path) -> None:
    asked = ("explore", rows, "--known-label", "batch", "--drop", "number", "--labels", "celltype", *QUICK)
    told = succeed(*asked, "--session", tmp_path / "s.imapce", "--max-steps", 1)
    assert "the label batch is known" in told
    succeed(*asked, "--session", tmp_path / "s.imapce", "--resume", "-o", tmp_path / "clusters.csv")
    features = read_table(rows).select(FEATURES)
    prior = Exploration.load(tmp_path / "s.imapce", features).record().priors[0]
    assert isinstance(prior, Labels)
    assert prior.y.title == "batch"
    assert "celltype" in read_table(tmp_path / "clusters.csv").column_names


def test_the_report_of_an_exploration_says_which_of_several_labels_colours_it(rows: Path, tmp_path: Path) -> None:
    result = run(
        *("explore", rows, "--labels", "celltype,batch", "--drop", "number", "--max-steps", 1, *QUICK),
        *("--report", tmp_path / "page.html"),
    )
    assert result.exit_code == 0
    assert result.stderr == "imapce: note: the report is coloured by 'celltype', the first of --labels.\n"


def test_compare_scores_the_known_label_and_colours_by_all_labels(rows: Path, tmp_path: Path) -> None:
    told = succeed(
        *("compare", rows, "--known-label", "batch", "--labels", "celltype,batch", "--drop", "number"),
        *("--methods", "IMAPCE,PCA,KurtosisPursuit", "-o", tmp_path / "comparison"),
    )
    assert "It can be told of known columns and known rows, not of known labels." in " ".join(told.split())
    scores = read_table(tmp_path / "comparison" / "scores.csv").to_pylist()
    assert scores[0]["prior_chance"] == 0.5
    assert scores[0]["prior_knn"] < scores[1]["prior_knn"]


def test_a_known_column_that_is_a_feature_may_colour_as_well(rows: Path, tmp_path: Path) -> None:
    succeed(
        *("embed", rows, "--attributes", "batch", "--labels", "batch,celltype,number", "--plot", tmp_path / "v.png"),
        *("--save", tmp_path / "view.imapce", *QUICK),
    )
    assert list(load_model(tmp_path / "view.imapce").feature_names_in_) == [*FEATURES, "batch"]


REFUSED = {
    "no such column": (("--known-label", "btch"), "--known-label must name a column of DATA, got 'btch': did you mean"),
    "also a feature": (("--known-label", "batch", "--attributes", "batch"), "'batch' is a label, known or dropped"),
    "an id": (("--known-label", "name"), "--known-label must be classes of several rows, or numbers; got 120 classes"),
    "one class": (
        ("--known-label", "same"),
        "--known-label is 'x' for every row, so nothing is known; leave the option",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_known_label_is_refused_in_one_line(case: str, tmp_path: Path, columns: dict[str, Any]) -> None:
    path = tmp_path / "rows.csv"
    write_table({**columns, "name": [f"row {place}" for place in range(120)], "same": ["x"] * 120}, path)
    words, told = REFUSED[case]
    features = ("--columns", ",".join(FEATURES))
    assert told in refusal("embed", path, *words, *features, "-o", tmp_path / "view.csv")
    assert files_beside(path) == ["rows.csv"]


def test_a_file_without_names_has_no_known_label(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(30, 4)))
    assert "--known-label needs column names" in refusal("embed", tmp_path / "rows.npy", "--known-label", "batch")
