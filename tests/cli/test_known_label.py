"""`--known-label` and several `--labels`: what is known beside the features, and what colours the pictures."""

from __future__ import annotations

import json
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
    assert "is read back from the view" in model.stop_reason_
    view = np.column_stack([table.column(f"imapce{axis}") for axis in range(2)])
    read = residual_predictability(view, table.column("batch").to_numpy())
    assert read["score"] - read["chance"] < 0.15
    # Both columns colour the picture, and the page says which of them was used.
    page = (tmp_path / "view.html").read_text()
    assert "What is known colours it too: batch was explained away; the other labels that colour it were not" in page


def test_the_summary_and_the_object_say_what_is_left_of_the_label(rows: Path) -> None:
    asked = ("embed", rows, "--known-label", "batch", "--labels", "celltype", "--drop", "number", *QUICK)
    told = " ".join(succeed(*asked).split())
    assert "explained away batch known read back The known (batch) is read back from the view with accuracy" in told
    assert "strongest features given batch" in told
    # The sentence on the search does not repeat it.
    assert told.count("read back from the view") == 1
    assert "alpha nothing is weighed (rule 'auto')" in told
    fitted = json.loads(succeed(*asked, "--json"))["model"]["fitted"]
    assert fitted["explained_away"] == ["batch"]
    assert set(fitted["read_back"]) == {"view", "clusters", "chance"}
    assert fitted["read_back"]["chance"] == 0.5
    assert (
        f"accuracy {fitted['read_back']['view']:.2f}, from the clusters {fitted['read_back']['clusters']:.2f};" in told
    )
    assert fitted["clusters"] > 1


def test_known_columns_are_no_strongest_features(rows: Path) -> None:
    asked = ("embed", rows, "--attributes", "d_0,d_1,d_2,d_3", "--drop", "batch,celltype,number", *QUICK)
    assert "strongest features given d_0, d_1, d_2, and 1 more" in succeed(*asked)
    told = json.loads(succeed(*asked, "--json"))["model"]
    names = [entry["feature"] for entry in told["strongest_features"]]
    assert sorted(names) == FEATURES[4:]
    assert all(np.isfinite(optimum["seen"]) for optimum in told["optima"])


def test_what_alpha_weighs_is_not_said_to_be_explained_away(rows: Path, tmp_path: Path) -> None:
    told = succeed(
        *("embed", rows, "--known-label", "batch", "--labels", "batch", "--drop", "number,celltype", "--alpha", 1),
        *(*QUICK, "--report", tmp_path / "view.html", "-o", tmp_path / "view.csv"),
    )
    assert "explained away" not in told
    page = (tmp_path / "view.html").read_text()
    assert "explained away" not in page
    assert "What is known colours it too: batch was known." in page


def test_an_erased_column_is_said_to_be_erased(rows: Path, tmp_path: Path) -> None:
    told = succeed(
        *("embed", rows, "--erase", "batch", "--labels", "batch,celltype", "--drop", "number", *QUICK),
        *("--report", tmp_path / "view.html"),
    )
    assert "1 column is erased: batch" in told
    assert "known read back" in told
    page = (tmp_path / "view.html").read_text()
    assert "What is known colours it too: batch was erased; the other labels that colour it were not used." in page
    assert "The known is read back from the view with accuracy" in page


def test_the_report_of_an_exploration_says_that_its_label_was_explained_away(rows: Path, tmp_path: Path) -> None:
    asked = ("explore", rows, "--drop", "number", "--max-steps", 1, *QUICK, "--report", tmp_path / "page.html")
    known = ("--known-label", "batch"), ("--attributes", "batch"), ("--erase", "batch"), ()
    for words, came in zip(known, ("explained away", "explained away", "erased", "not used"), strict=True):
        result = run(*asked, *words, "--labels", "batch")
        assert result.exit_code == 0, result.stderr
        page = (tmp_path / "page.html").read_text()
        assert f"batch ({came})" in page
        assert f"Its labels, which were {came}" in page
        assert f"The labels (batch) were {came}." in page
        assert ("not used" in page) is (came == "not used")


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


def test_the_report_of_an_exploration_shows_every_column_of_labels(rows: Path, tmp_path: Path) -> None:
    result = run(
        *("explore", rows, "--labels", "celltype,batch", "--drop", "number", "--max-steps", 1, *QUICK),
        *("--report", tmp_path / "page.html"),
    )
    assert (result.exit_code, result.stderr) == (0, "")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "celltype was not used, batch was not used" in page
    assert "the number of rows of each batch" in page


def test_compare_scores_the_known_label_and_colours_by_all_labels(rows: Path, tmp_path: Path) -> None:
    told = succeed(
        *("compare", rows, "--known-label", "batch", "--labels", "celltype,batch", "--drop", "number"),
        *("--methods", "IMAPCE,PCA,KurtosisPursuit", "-o", tmp_path / "comparison"),
    )
    assert "It can be told of known columns and known rows, not of known labels." in " ".join(told.split())
    scores = read_table(tmp_path / "comparison" / "scores.csv").to_pylist()
    told = " ".join(told.split())
    assert "IMAPCE explained batch away: the known is read back from the view with accuracy" in told
    assert "IMAPCE explained batch away" in (tmp_path / "comparison" / "report.html").read_text()
    assert "IMAPCE explained batch away" in (tmp_path / "comparison" / "scores.json").read_text()
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
