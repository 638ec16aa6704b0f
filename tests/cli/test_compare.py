"""`imapce compare`: from a file to a folder with figure, scores, embeddings and report, or nothing at all."""

from __future__ import annotations

import csv
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import FEATURES, refusal, run, succeed
from imapce import datasets
from imapce.cli.compare import COMPARISON_FILES
from imapce.comparison.methods import METHODS
from imapce.comparison.scores import SCORES
from imapce.tables.files import read_table, write_table
from stand_ins import FirstColumns, fails, labelled, shows

compare = partial(succeed, "compare")
refused = partial(refusal, "compare")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    data = datasets.make_synthetic(240)
    path = tmp_path / "rows.csv"
    labels = {name: np.array(["a", "b", "c"])[data.labels[name]] for name in ("batch", "celltype")}
    write_table({**dict(zip(FEATURES, data.X.T, strict=True)), **labels}, path)
    return path


@pytest.fixture(autouse=True)
def methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """IMAPCE itself, a view of two columns, a map of labels and one that fails."""
    stand_ins = {
        "IMAPCE": METHODS["IMAPCE"],
        "Columns": shows("columns", max_rows=100),
        "Labelled": labelled(),
        "Broken": fails(RuntimeError("no luck")),
    }
    monkeypatch.setattr("imapce.comparison.methods.METHODS", stand_ins)


@pytest.fixture
def unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of 0.25 without the work, for tests that are about files and words."""
    scores = dict.fromkeys(SCORES, 0.25)
    monkeypatch.setattr(sys.modules["imapce.comparison.compare"], "view_scores", lambda *_, **__: scores)


KNOWN = ("--known", "d_0,d_1,d_2,d_3,batch", "--labels", "celltype")


def test_it_writes_figure_scores_embeddings_and_report(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "comparison"
    told = " ".join(compare(rows, *KNOWN, "-o", out, "--mu", 200).split())
    assert sorted(path.name for path in out.iterdir()) == sorted(COMPARISON_FILES)
    assert (out / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "comparison.pdf").read_bytes().startswith(b"%PDF")
    for words in ("5 columns are known", "Broken is left out", "no luck", "same 100 of 240 rows", "fewer rows"):
        assert words.lower() in told.lower()

    with open(out / "scores.csv", encoding="utf-8") as stream:
        table = {record["method"]: record for record in csv.DictReader(stream)}
    assert list(table["IMAPCE"]) == ["method", "rows", "seconds", *SCORES, "left_out"]
    assert list(table) == ["IMAPCE", "columns", "labelled", "broken"]
    assert float(table["IMAPCE"]["nls_share"]) > 0.8 > 0.4 > float(table["columns"]["nls_share"])
    assert table["columns"]["rows"] == "100"
    assert table["broken"]["left_out"] == "It failed with RuntimeError: no luck."

    stored = json.loads((out / "scores.json").read_text(encoding="utf-8"))
    assert [record["method"] for record in stored["methods"]] == list(table)
    assert stored["methods"][3]["nls"] is None
    assert stored["scored_rows"] == 100

    views = read_table(out / "embeddings.parquet")
    axes = [f"{name}{axis}" for name in ("imapce", "columns", "labelled") for axis in (0, 1)]
    assert views.column_names == [*read_table(rows).column_names, "row", *axes]
    assert views["columns0"].null_count == 140
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Comparison of methods on rows.csv" in page
    assert "no luck" in page
    assert 'src="http' not in page


def test_known_labels_in_the_old_way_are_no_feature_and_reach_the_methods_of_labels(rows: Path, unscored: None) -> None:
    asked = ("--known", "d_0,d_1,d_2,d_3", "--known-labels", "batch", "--labels", "celltype", "--methods", "labelled")
    result = run("compare", rows, *asked)
    assert (
        result.stderr == "imapce: note: --known-labels is now --known; the old spelling goes with the next release.\n"
    )
    batch = np.asarray(read_table(rows)["batch"]) == "b"
    np.testing.assert_array_equal(FirstColumns.given, batch)
    assert "features  10" in result.stdout


def test_without_output_nothing_is_written(rows: Path, unscored: None) -> None:
    told = compare(rows, "--known-rows", "celltype=a", "--labels", "batch", "--methods", "columns", "--max-rows", 50)
    assert "no file written" in told
    assert "same 50 of 240 rows" in told
    assert [path.name for path in rows.parent.iterdir()] == ["rows.csv"]


def test_settings_reach_the_methods(rows: Path, unscored: None) -> None:
    compare(rows, "--drop", "batch,celltype", "--methods", "columns", "--seed", 7, "--center-only", "--missing", "mean")
    assert FirstColumns.settings == {"standardize": False, "missing": "mean", "random_state": 7}


def test_a_background_leaves_out_methods_of_labels(rows: Path, unscored: None) -> None:
    words = ("--background", rows, "--drop", "batch,celltype", "--methods", "labelled,columns")
    told = " ".join(compare(rows, *words).split())
    assert (
        "labelled is left out. It can be told of known columns, known labels and known rows, not of a background table."
        in told
    )
    assert "a background table has no class for the rows of X" in told


def test_an_earlier_comparison_is_replaced_and_nothing_else(rows: Path, tmp_path: Path, unscored: None) -> None:
    out = tmp_path / "comparison"
    out.mkdir()
    words = (rows, *KNOWN, "--methods", "columns", "-o", out)
    compare(*words)
    (out / "scores.csv").write_text("of yesterday")
    compare(*words)
    assert "columns" in (out / "scores.csv").read_text()
    (out / "diary.txt").write_text("mine")
    assert "'diary.txt'" in refused(*words)
    assert (out / "diary.txt").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv", "comparison"}


def test_a_failure_while_writing_leaves_the_earlier_folder(
    rows: Path, tmp_path: Path, unscored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "comparison"
    words = (rows, *KNOWN, "--methods", "columns", "-o", out)
    compare(*words)
    before = (out / "report.html").read_bytes()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("imapce.plotting.write_comparison_report", full)
    assert run("compare", *words, "--seed", 5).exit_code != 0
    assert (out / "report.html").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv", "comparison"}


def test_an_interruption_writes_nothing(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("imapce.comparison.methods.METHODS", {"Slow": fails(KeyboardInterrupt())})
    result = run("compare", rows, *KNOWN, "-o", tmp_path / "comparison")
    assert result.exit_code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--methods", "columns,tsme"), "the methods are IMAPCE, Columns"),
        (("--methods", "broken"), "none did. broken: It failed with RuntimeError: no luck."),
        (("--labels", "celltip"), "celltype"),
        (("--known", "bach"), "batch"),
        (("-o", "no/such/folder"), "existing folder"),
        (("--known", "batch", "--erase", "batch"), "one option only"),
        (("--mu", "often", "--methods", "IMAPCE"), "mu must be"),
    ],
)
def test_bad_words_are_refused_in_one_line(words: tuple[str, ...], sentence: str, rows: Path) -> None:
    assert sentence in refused(rows, *words)


def test_a_target_that_cannot_be_is_refused_before_the_data_is_read(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    assert "must name a folder" in refused(tmp_path / "absent.csv", "-o", blocked)
    assert "the methods are" in refused(tmp_path / "absent.csv", "--methods", "nobody")


def test_the_methods_are_listed_without_data() -> None:
    told = compare("--list-methods")
    assert [line.split()[0] for line in told.splitlines()] == ["name", "IMAPCE", "Columns", "Labelled", "Broken"]
    assert "all that is known" in told
    assert "columns labels rows" in told


def test_help_has_an_example() -> None:
    assert "imapce compare adult.csv" in compare("--help")
