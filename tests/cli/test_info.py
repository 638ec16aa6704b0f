"""`imapce info`: what a model file tells, in words and in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from commands import FEATURES, succeed
from imapce.estimators.model_file import load_model
from imapce.tables.files import write_table


def test_info_in_words_and_in_json(model: Path) -> None:
    told = succeed("info", model, "--details")
    for words in (
        "format version",
        "n_starts=3",
        "strongest features given d_0, d_1",
        "10 (d_0, d_1",
        "Converged",
        "The prior (d_0, d_1) can be predicted from the view with R²",
    ):
        assert words in " ".join(told.split())
    facts = json.loads(succeed("info", model, "--json"))
    short = " ".join(succeed("info", model).split())
    assert short.startswith(" ".join(" ".join(facts["summary"]).split()))
    assert "format version" not in short
    assert "objective" not in short
    fitted = load_model(model)
    assert facts["format_version"] == 1
    assert facts["columns"] == FEATURES
    assert facts["parameters"]["random_state"] == 0
    assert facts["fitted"]["objective"] == fitted.objective_
    assert len(facts["optima"]) == len(fitted.optima_)
    assert facts["fitted"]["read_back"] == fitted.read_back_
    assert facts["fitted"]["explained_away"] == ["d_0", "d_1"]
    shares = [entry["share"] for entry in facts["strongest_features"]]
    assert len(shares) == 8
    assert not {"d_0", "d_1"} & {entry["feature"] for entry in facts["strongest_features"]}
    assert shares == sorted(shares, reverse=True)
    assert fitted.verbose is False


def test_a_model_of_categories_tells_its_features_and_its_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = {"size": rng.normal(size=60), "age": rng.normal(size=60), "kind": np.resize(["a", "b", "c"], 60)}
    write_table(table, tmp_path / "rows.csv")
    succeed("embed", tmp_path / "rows.csv", "--save", tmp_path / "m.imapce", "-o", tmp_path / "v.csv")
    assert "5 (of 3 columns: size, age, kind)" in " ".join(succeed("info", tmp_path / "m.imapce").split())


def test_a_table_is_told_to_be_one_with_its_kinds_and_how_to_look_at_it(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = [f"k{place},{place % 7 + 20},{'fm'[place % 2]},yes" for place in range(30)]
    path.write_text("\n".join(["id,age,sex,here", *rows]))
    told = " ".join(succeed("info", path).split())
    assert "a table 30 rows, 4 columns numbers 1 (age) categories 1 (sex)" in told
    assert "left out id is an id, 30 distinct values in 30 rows, here is constant" in told
    facts = json.loads(succeed("info", path, "--json"))
    assert facts["kind"] == "table"
    assert (facts["rows"], facts["columns"]) == (30, ["id", "age", "sex", "here"])
    assert facts["kinds"] == {"numbers": ["age"], "categories": ["sex"]}
    assert list(facts["left_out"]) == ["id", "here"]
    assert facts["go_on"]["view"] == f"imapce embed {path} --plot view.png"
