"""What a command prints: one JSON object with --json, nothing but errors with --quiet, sessions told by `info`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import FEATURES, QUICK, refusal, run, succeed
from imapce import IMAPCE, Exploration
from imapce.cli.options import in_plain_json
from imapce.common.words import axis_names
from imapce.estimators.model_file import load_model
from imapce.tables.files import read_table, write_table


def told(*words: Any) -> dict[str, Any]:
    """The object of a command; what is no JSON, such as NaN, is refused."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    found = json.loads(succeed(*words, "--json"), parse_constant=refuse)
    assert isinstance(found, dict)
    assert found["command"] == words[0]
    assert {"notes", "warnings"} <= set(found)
    return found


def test_embed_and_transform_as_json(rows: Path, tmp_path: Path) -> None:
    out, model = tmp_path / "view.csv", tmp_path / "m.imapce"
    embedded = told("embed", rows, "--labels", "celltype", *QUICK, "-o", out, "--save", model)
    assert (embedded["rows"], embedded["features"]) == (120, 12)
    assert embedded["written"] == {"table": str(out), "model": str(model)}
    assert embedded["model"]["fitted"]["objective"] == load_model(model).objective_
    moved = told("transform", model, rows, "-o", tmp_path / "again.csv")
    assert (moved["rows"], moved["axes"], moved["carried"]) == (
        120,
        ["imapce0", "imapce1"],
        read_table(rows).column_names,
    )


def test_explore_and_info_of_its_session_as_json(plain: Path, tmp_path: Path) -> None:
    session = tmp_path / "s.imapce"
    found = told("explore", plain, *QUICK, "--known", "d_0,d_1", "--session", session)
    kept = told("info", session)
    assert kept["kind"] == "session"
    assert kept["clusters"] == found["clusters"]
    assert sum(cluster["rows"] for cluster in kept["clusters"]) == kept["taken_rows"] == found["taken_rows"]
    assert kept["taken_rows"] + kept["rows_left"] == kept["rows"] == 120
    assert kept["known"] == found["known"] == ["2 columns are known: d_0, d_1"]
    assert kept["columns"] == FEATURES
    assert kept["go_on"]["command"] == f"imapce explore DATA --session {session} --resume"


def test_info_tells_a_session_in_words(plain: Path, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 4)) + 9 * np.eye(1, 4) * (np.arange(60) < 20)[:, None]
    exploration = Exploration(X, estimator=IMAPCE(mu=50.0, alpha=0.0, n_starts=2), random_state=0)
    exploration.accept(mask=np.arange(20))
    exploration.save(tmp_path / "by hand.imapce")
    words = succeed("info", tmp_path / "by hand.imapce")
    lines = [" ".join(line.split()) for line in words.splitlines()]
    for line in ("known at the start nothing", "taken 20 rows in 1 cluster", "not taken 40 rows", "steps 1"):
        assert line in lines, line
    assert any("by hand" in line for line in lines)
    assert any(line.startswith("0 x0 high (") for line in lines)
    assert "--resume" in words.replace("\n", "")
    assert "Exploration.load(" in words


def test_a_file_of_another_kind_is_named(plain: Path) -> None:
    other = plain.with_name("plain.txt.imapce")
    other.write_bytes(plain.read_bytes())
    assert "is not a readable imapce model" in refusal("info", other)
    assert "FILE must name a saved imapce model" in refusal("info", plain.parent / "absent.imapce")


def test_compare_as_json_begins_with_the_fast_methods(plain: Path) -> None:
    found = told("compare", plain, "--known", "d_0")
    assert [one["method"] for one in found["methods"]] == ["IMAPCE", "PCA", "cPCA", "gcPCA", "LEACE", "SIDE"]
    (sentence,) = [one for one in found["reading"] if "--methods all" in one]
    assert sentence.startswith("The fast methods were compared: --methods all adds kurtosis pursuit, t-SNE")
    assert sentence.endswith(" more.")


def test_notes_and_warnings_stand_in_the_object(tmp_path: Path, plain: Path) -> None:
    table = read_table(plain)
    path = tmp_path / "twice.csv"
    lines = plain.read_text().splitlines()
    path.write_text("\n".join([lines[0].replace('"d_9"', '"d_0"'), *lines[1:]]) + "\n")
    assert table.num_columns == 10
    found = told("embed", path, *QUICK)
    sentence = "the header names a column more than once; from the second on 'd_0' is called 'd_0_1'."
    assert found["warnings"] == [sentence]
    result = run("embed", path, *QUICK)
    assert result.stderr == f"imapce: warning: {sentence}\n"


@pytest.mark.parametrize("words", [("embed", "plain.csv", *QUICK), ("explore", "plain.csv", *QUICK), ("datasets",)])
def test_quiet_says_nothing(words: tuple[str, ...], plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(plain.parent)
    write_table({"when": ["2024-01-0" + str(1 + place % 9) for place in range(120)]}, "other.csv")
    assert succeed(*words, "--quiet") == ""


def test_quiet_still_writes_a_table_to_standard_output_and_errors_to_the_other(plain: Path) -> None:
    assert succeed("embed", plain, *QUICK, "-q", "-o", "-").startswith('"d_0"')
    assert "does not exist" in refusal("embed", plain.parent / "absent.csv", "-q")


@pytest.mark.parametrize("command", ["embed", "transform"])
def test_an_object_and_a_table_do_not_share_standard_output(command: str, model: Path, plain: Path) -> None:
    words = (model, plain) if command == "transform" else (plain,)
    assert "--json and --output - both write to standard output" in refusal(command, *words, "--json", "-o", "-")


def test_json_knows_no_infinity() -> None:
    values = {"a": np.float64("inf"), "b": [np.nan, np.int64(3)], "c": np.arange(2), "d": (True, None)}
    assert in_plain_json(values) == {"a": "inf", "b": [None, 3], "c": [0, 1], "d": [True, None]}


def test_transform_advises_no_option_that_it_has_not(model: Path, plain: Path) -> None:
    table = {name: np.array(read_table(plain)[name].to_pylist()) for name in FEATURES}
    for value in (np.nan, np.inf):
        table["d_3"][5] = value
        write_table(table, plain)
        sentence = refusal("transform", model, plain)
        assert "--drop" not in sentence
        assert "; or" not in sentence
        assert "drop those rows" in sentence


def test_axes_have_one_name_everywhere(rows: Path, tmp_path: Path) -> None:
    from imapce.plotting import plot_embedding, plot_loadings

    out, model = tmp_path / "view.csv", tmp_path / "m.imapce"
    words = succeed("embed", rows, "--labels", "celltype", *QUICK, "-o", out, "--save", model)
    axes, fitted = axis_names(2), load_model(model)
    assert axes == ["imapce0", "imapce1"] == list(fitted.get_feature_names_out())
    assert read_table(out).column_names[-2:] == axes
    assert all(axis in words for axis in axes)
    assert [name for name in fitted.loadings().columns if not name.endswith("_correlation")][1:3] == axes
    for figure in (plot_embedding(np.eye(3, 2)), plot_loadings(fitted)):
        assert [figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()] == axes
