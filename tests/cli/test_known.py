"""`--known` and several `--labels`: what is known, as a feature or beside them, and what colours the pictures."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import FEATURES, QUICK, beside_columns_alike, files_beside, refusal, run, succeed
from imapce import Exploration, Labels, load_model
from imapce.metrics import residual_predictability
from imapce.tables.files import read_table, write_table

DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=7 * (place % 60)) for place in range(120)]


def test_a_known_label_leaves_the_features_and_cannot_be_read_from_the_view(rows: Path, tmp_path: Path) -> None:
    told = succeed(
        *("embed", rows, "--known", "batch", "--labels", "celltype,batch", "--drop", "number,batch"),
        *("--save", tmp_path / "view.imapce", "-o", tmp_path / "view.parquet", "--plot", tmp_path / "view.png"),
        *("--report", tmp_path / "view.html"),
    )
    assert "the label batch is known" in told
    model, table = load_model(tmp_path / "view.imapce"), read_table(tmp_path / "view.parquet")
    assert list(model.feature_names_in_) == FEATURES
    assert "can be predicted from the view" in model.stop_reason_
    view = np.column_stack([table.column(f"imapce{axis}") for axis in range(2)])
    read = residual_predictability(view, table.column("batch").to_numpy())
    assert read["score"] - read["chance"] < 0.15
    # Both columns colour the picture, and the page says which of them was used.
    page = (tmp_path / "view.html").read_text()
    assert "What is known colours it too: batch was explained away; the other labels that colour it were not" in page


def test_the_summary_and_the_object_say_what_is_left_of_the_label(rows: Path) -> None:
    asked = ("embed", rows, "--known", "batch", "--labels", "celltype", "--drop", "number,batch", *QUICK)
    told = " ".join(succeed(*asked, "--details").split())
    assert "explained away batch known read back The prior (batch) can be predicted from the view with accuracy" in told
    assert "strongest features given batch" in told
    # The sentence on the search does not repeat it.
    assert told.count("can be predicted from the view") == 1
    assert "alpha nothing is weighed (rule 'auto')" in told
    fitted = json.loads(succeed(*asked, "--json"))["model"]["fitted"]
    assert fitted["explained_away"] == ["batch"]
    assert set(fitted["read_back"]) == {"view", "clusters", "chance"}
    assert fitted["read_back"]["chance"] == 0.5
    assert (
        f"accuracy {fitted['read_back']['view']:.2f}, from the clusters with {fitted['read_back']['clusters']:.2f};"
        in told
    )
    assert fitted["clusters"] > 1


def test_known_columns_are_no_strongest_features(rows: Path) -> None:
    asked = ("embed", rows, "--known", "d_0,d_1,d_2,d_3", "--drop", "batch,celltype,number", *QUICK)
    assert "strongest features given d_0, d_1, d_2, and 1 more" in succeed(*asked)
    told = json.loads(succeed(*asked, "--json"))["model"]
    names = [entry["feature"] for entry in told["strongest_features"]]
    assert sorted(names) == FEATURES[4:]
    assert all(np.isfinite(optimum["seen"]) for optimum in told["optima"])


def test_what_alpha_weighs_is_not_said_to_be_explained_away(rows: Path, tmp_path: Path) -> None:
    told = succeed(
        *("embed", rows, "--known", "batch", "--labels", "batch", "--drop", "number,celltype,batch", "--alpha", 1),
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
    assert "What is known" in told
    page = (tmp_path / "view.html").read_text()
    assert "What is known colours it too: batch was erased; the other labels that colour it were not used." in page
    assert "The prior can be predicted from the view with accuracy" in page


def test_the_report_of_an_exploration_says_that_its_label_was_explained_away(rows: Path, tmp_path: Path) -> None:
    asked = ("explore", rows, "--drop", "number", "--max-steps", 1, *QUICK, "--report", tmp_path / "page.html")
    known = ("--known", "batch"), ("--erase", "batch"), ()
    for words, came in zip(known, ("explained away", "erased", "not used"), strict=True):
        result = run(*asked, *words, "--labels", "batch")
        assert result.exit_code == 0, result.stderr
        page = (tmp_path / "page.html").read_text()
        assert f"batch ({came})" in page
        assert f"Its labels, which were {came}" in page
        assert f"The labels (batch) were {came}." in page
        assert ("not used" in page) is (came == "not used")


def test_explore_goes_on_with_the_label_of_its_session(rows: Path, tmp_path: Path) -> None:
    asked = ("explore", rows, "--known", "batch", "--drop", "number,batch", "--labels", "celltype", *QUICK)
    told = succeed(*asked, "--session", tmp_path / "s.imapce", "--max-steps", 1)
    assert "the label batch is known" in told
    succeed(*asked, "--session", tmp_path / "s.imapce", "--resume", "-o", tmp_path / "clusters.csv")
    features = read_table(rows).select(FEATURES)
    prior = Exploration.load(tmp_path / "s.imapce", features).record().priors[0]
    assert isinstance(prior, Labels)
    assert prior.y.title == "batch"
    assert "celltype" in read_table(tmp_path / "clusters.csv").column_names


def test_the_report_of_an_exploration_shows_every_column_of_labels(rows: Path, tmp_path: Path) -> None:
    succeed(
        *("explore", rows, "--labels", "celltype,batch", "--known", "batch", "--drop", "number", "--max-steps", 1),
        *(*QUICK, "--report", tmp_path / "page.html"),
    )
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "celltype was not used, batch was explained away" in page
    assert "the number of rows of each batch" in page


def test_compare_scores_the_known_label_and_colours_by_all_labels(rows: Path, tmp_path: Path) -> None:
    told = succeed(
        *("compare", rows, "--known", "batch", "--labels", "celltype,batch", "--drop", "number,batch"),
        *("--methods", "IMAPCE,PCA,KurtosisPursuit", "-o", tmp_path / "comparison"),
    )
    assert "It can be told of known columns and known rows, not of known labels." in " ".join(told.split())
    scores = read_table(tmp_path / "comparison" / "scores.csv").to_pylist()
    told = " ".join(told.split())
    assert "IMAPCE explained batch away: the prior can be predicted from the view with accuracy" in told
    assert "IMAPCE explained batch away" in (tmp_path / "comparison" / "report.html").read_text()
    assert "IMAPCE explained batch away" in (tmp_path / "comparison" / "scores.json").read_text()
    assert scores[0]["prior_chance"] == 0.5
    assert scores[0]["prior_knn"] < scores[1]["prior_knn"]


def test_a_known_column_that_is_a_feature_may_colour_as_well(rows: Path, tmp_path: Path) -> None:
    succeed(
        *("embed", rows, "--known", "batch", "--labels", "batch,celltype,number", "--plot", tmp_path / "v.png"),
        *("--save", tmp_path / "view.imapce", *QUICK),
    )
    assert list(load_model(tmp_path / "view.imapce").feature_names_in_) == [*FEATURES, "batch"]


REFUSED = {
    "no such column": (("--known", "btch"), "--known must name a column of DATA, got 'btch': did you mean 'batch'?"),
    "known and erased": (
        ("--known", "batch", "--erase", "batch"),
        "must name different columns, and 'batch' is in both",
    ),
    "an id": (("--known", "name"), "--known must be classes of several rows, or numbers; got 120 classes"),
    "an id to erase": (("--erase", "name"), "must be classes of several rows, or numbers; got 120 classes"),
    "one class": (("--known", "same"), "--known is 'x' for every row, so nothing is known; leave the option"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_known_is_refused_in_one_line(case: str, tmp_path: Path, columns: dict[str, Any]) -> None:
    path = tmp_path / "rows.csv"
    write_table({**columns, "name": [f"row {place}" for place in range(120)], "same": ["x"] * 120}, path)
    words, told = REFUSED[case]
    features = ("--columns", ",".join(FEATURES))
    assert told in refusal("embed", path, *words, *features, "-o", tmp_path / "view.csv")
    assert files_beside(path) == ["rows.csv"]


def test_a_column_that_can_be_no_feature_is_known_or_erased_as_a_label(tmp_path: Path, columns: dict[str, Any]) -> None:
    path = tmp_path / "rows.csv"
    write_table({**{name: columns[name] for name in FEATURES}, "day": DAYS, "batch": columns["batch"]}, path)
    for option, state in (("--known", "known"), ("--erase", "erased")):
        told = succeed("embed", path, option, "batch,day", "--save", tmp_path / f"{state}.imapce", *QUICK)
        assert f"1 column is {state}: batch" in told
        assert f"the label day is {state}" in told
    # A label that was erased takes no part in placing rows, one that was explained away does.
    assert load_model(tmp_path / "known.imapce").label_names == ("day",)
    assert load_model(tmp_path / "erased.imapce").label_names == ()
    assert list(load_model(tmp_path / "known.imapce").feature_names_in_) == [*FEATURES, "batch"]


def test_a_column_and_a_label_that_say_the_same_give_the_same_view(rows: Path, tmp_path: Path) -> None:
    for name, drop in (("column", "celltype,number"), ("label", "celltype,number,batch")):
        succeed("embed", rows, "--known", "batch", "--drop", drop, "-o", tmp_path / f"{name}.parquet", *QUICK)
    column, label = (read_table(tmp_path / f"{name}.parquet") for name in ("column", "label"))
    for axis in ("imapce0", "imapce1"):
        one, other = column.column(axis).to_numpy(), label.column(axis).to_numpy()
        assert abs(np.corrcoef(one, other)[0, 1]) > 1 - 1e-6


OLD = {
    "--attributes": (("--attributes", "batch"), ("--known", "batch")),
    "--known-label": (("--known-label", "batch"), ("--known", "batch", "--drop", "batch,number")),
    "--known COLUMN=VALUE": (("--known", "celltype=a"), ("--known-rows", "celltype=a")),
}


@pytest.mark.parametrize("old", OLD)
def test_old_spellings_do_what_they_did_and_say_what_they_are_called_now(old: str, rows: Path, tmp_path: Path) -> None:
    before, now = OLD[old]
    said = run("embed", rows, "--drop", "number", *before, "-o", tmp_path / "before.csv", *QUICK)
    assert said.exit_code == 0
    hint = beside_columns_alike(said.stderr)
    assert hint.count("\n") == 1
    assert hint.startswith(f"imapce: note: {' '.join(before) if '=' in before[1] else before[0]} is now {now[0]}")
    drop = () if "--drop" in now else ("--drop", "number")
    succeed("embed", rows, *drop, *now, "-o", tmp_path / "now.csv", *QUICK)
    assert (tmp_path / "before.csv").read_bytes() == (tmp_path / "now.csv").read_bytes()


def test_a_column_whose_name_holds_an_equals_sign_can_be_known(tmp_path: Path, columns: dict[str, Any]) -> None:
    path = tmp_path / "rows.csv"
    write_table({**{name: columns[name] for name in FEATURES}, "run=1": columns["batch"]}, path)
    assert "1 column is known: run=1" in succeed("embed", path, "--known", "run=1", *QUICK)


def test_old_spellings_are_not_in_the_help() -> None:
    for command in ("embed", "explore", "compare", "app", "transform"):
        told = succeed(command, "--help")
        assert "--attributes" not in told
        assert "--known-label" not in told


def test_a_file_without_names_has_no_known_label(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(30, 4)))
    assert "--known must be positions from 0" in refusal("embed", tmp_path / "rows.npy", "--known", "batch")
    assert "--known-rows needs column names" in refusal("embed", tmp_path / "rows.npy", "--known-rows", "batch=1")
