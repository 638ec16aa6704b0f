"""Columns and files as they are found: what is left out and told, what options overrule, streams, unseen categories."""

from __future__ import annotations

import datetime
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from commands import FEATURES, QUICK, refusal, run, succeed
from imapce import IMAPCE, Labels, Samples
from imapce.cli import app
from imapce.cli.messages import in_own_words
from imapce.errors import ImapceError
from imapce.tables.files import read_table, write_table

DROP = ("--drop", "batch,celltype,number")
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=place * place % 400) for place in range(120)]


def told(*words: Any) -> str:
    """What a command that must succeed says on stderr."""
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    return result.stderr


@pytest.fixture
def found(tmp_path: Path, columns: dict[str, Any]) -> Path:
    """A table with a column of every kind that can be no feature."""
    path = tmp_path / "found.parquet"
    features = {name: columns[name] for name in FEATURES}
    unfit = {
        "id": [f"k{place}" for place in range(120)],
        "nr": np.arange(1, 121),
        "note": [f"words {place % 70}" for place in range(120)],
        "day": DAYS,
        "unit": ["cm"] * 120,
        "one": [1.0] * 120,
        "none": pa.nulls(120),
        "levels": pa.array([f"l{place % 60}" for place in range(120)]).dictionary_encode(),
        "list": [[1, 2]] * 120,
    }
    pyarrow.parquet.write_table(pa.table(features | unfit | {"kind": columns["celltype"]}), path)
    return path


def test_columns_that_can_be_no_features_are_left_out_named_and_carried(found: Path, tmp_path: Path) -> None:
    out = tmp_path / "view.csv"
    line = told("embed", found, *QUICK, "-o", out, "--save", tmp_path / "m.imapce")
    assert line.count("\n") == 1
    for words in (
        *(
            "'id' is an id, 120 distinct values in 120 rows",
            "'nr' numbers the rows from",
            "'note' has 70 levels",
        ),
        *("'day' is a date", "'unit' is constant", "'one' is constant", "'none' has only missing values"),
        *("'levels' has 60 levels", "'list' is list", "--dates as-numbers the dates"),
    ):
        assert words in line
    names = read_table(out).column_names
    assert names[: len(FEATURES)] == FEATURES
    assert names[-4:] == ["kind", "row", "imapce0", "imapce1"]
    assert {"id", "day", "list"} < set(names)
    table = read_table(found)
    kept = table.select([*FEATURES, "kind"])
    pyarrow.parquet.write_table(kept, tmp_path / "kept.parquet")
    succeed("embed", tmp_path / "kept.parquet", *QUICK, "-o", tmp_path / "same.csv")
    np.testing.assert_array_equal(read_table(out)["imapce0"], read_table(tmp_path / "same.csv")["imapce0"])
    succeed("transform", tmp_path / "m.imapce", found, "-o", tmp_path / "again.csv")


@pytest.mark.parametrize("command", ["explore", "compare"])
def test_other_commands_leave_the_same_columns_out(command: str, found: Path, tmp_path: Path) -> None:
    words = {"explore": ("--starts", 2, "--mu", 1000, "--max-steps", 1), "compare": ("--methods", "PCA")}[command]
    out = tmp_path / ("out.parquet" if command == "explore" else "out")
    line = told(command, found, *words, "-o", out)
    assert line.startswith("imapce: note: left out of the features and carried to the output: 'id' is an id")
    names = read_table(out if command == "explore" else out / "embeddings.parquet").column_names
    every = read_table(found).column_names
    assert names[: len(every) + 1] == [*every, "row"]


def test_dates_become_days_where_asked_also_in_new_rows_and_backgrounds(
    tmp_path: Path, columns: dict[str, Any]
) -> None:
    path, out, again = (tmp_path / name for name in ("rows.csv", "view.parquet", "again.parquet"))
    write_table({name: columns[name] for name in FEATURES} | {"day": DAYS}, path)
    words = ("--dates", "as-numbers", "--background", path, "-o", out, "--save", tmp_path / "m.imapce")
    assert "features       11" in succeed("embed", path, *QUICK, *words)
    assert read_table(out)["day"].to_pylist() == DAYS
    assert "'day'" in succeed("info", tmp_path / "m.imapce", "--json").replace('"', "'")
    succeed("transform", tmp_path / "m.imapce", path, "-o", again)
    np.testing.assert_allclose(read_table(out)["imapce0"], read_table(again)["imapce0"], atol=1e-12)


def test_columns_names_the_features(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "view.parquet"
    words = ("embed", rows, *QUICK, "-o", out, "--save", tmp_path / "m.imapce")
    succeed(*words, "--columns", "d_4,d_5,batch", "--known", "d_0", "--labels", "celltype")
    assert '"columns": [\n    "d_0",\n    "d_4",\n    "d_5",\n    "batch"\n  ]' in succeed(
        "info", tmp_path / "m.imapce", "--json"
    )
    assert read_table(out).num_columns == 13 + 3
    np.save(tmp_path / "rows.npy", np.zeros((5, 3)))
    assert "--columns needs column names" in refusal("embed", tmp_path / "rows.npy", "--columns", "a")


def test_what_is_recognised_is_noted_once_and_can_be_overruled(rows: Path, tmp_path: Path) -> None:
    path = tmp_path / "spreadsheet.csv"
    table = read_table(rows).select(FEATURES)
    text = "\n".join(";".join(f"{value:.6f}".replace(".", ",") for value in row.values()) for row in table.to_pylist())
    path.write_text(text, encoding="utf-16")
    line = told("embed", path, *QUICK)
    assert line.startswith("imapce: note: 'spreadsheet.csv' was read with semicolons between values, a decimal comma, ")
    assert line.count("\n") == 1
    given = ("--sep", ";", "--decimal", ",", "--encoding", "utf-16", "--no-header")
    succeed("embed", path, *QUICK, *given, "--save", tmp_path / "m.imapce")
    succeed("transform", tmp_path / "m.imapce", path, *given)
    assert told("transform", tmp_path / "m.imapce", path) == line


def test_streams(rows: Path, tmp_path: Path) -> None:
    words = ["embed", "-", *DROP, *QUICK, "-o", "-"]
    result = CliRunner().invoke(app, words, input=rows.read_bytes())
    assert result.exit_code == 0, result.stderr
    assert "strongest features" in result.stderr
    table = pyarrow.csv.read_csv(io.BytesIO(result.stdout_bytes))
    assert table.column_names[-3:] == ["row", "imapce0", "imapce1"]
    assert table.num_rows == 120
    assert "'-' stands for two" in refusal("embed", "-", "--background", "-")
    assert "--output must name a file" in refusal("explore", rows, "-o", "-")


def test_categories_the_model_has_not_seen(tmp_path: Path, columns: dict[str, Any]) -> None:
    path, model, out = tmp_path / "rows.csv", tmp_path / "m.imapce", tmp_path / "view.csv"
    features = {name: columns[name] for name in FEATURES}
    write_table(features | {"kind": columns["celltype"]}, path)
    succeed("embed", path, *QUICK, "--save", model)
    write_table(features | {"kind": ["new", *columns["celltype"][1:]]}, path)
    assert "use --unknown ignore" in refusal("transform", model, path)
    line = told("transform", model, path, "--unknown", "ignore", "-o", out)
    assert line.startswith("imapce: warning: DATA has categories that were not learned")
    assert "'kind' has 'new'" in line
    assert np.isfinite(read_table(out)["imapce0"].to_numpy()).all()


@pytest.mark.parametrize(
    ("table", "settings", "own"),
    [
        ({"a": [None, 1.0, 2.0]}, {}, "DATA must not hold missing values"),
        ({"a": [None, 1.0, 2.0]}, {}, "--missing mean."),
        ({"a": [np.inf, 1.0, 2.0]}, {}, "leave the columns out with --drop."),
        ({"a": [None] * 3}, {}, "'a' has only missing values: add one, or name the right separator with --sep."),
        ({"a": [datetime.date(2020, 1, 1)] * 3}, {}, "take it with --dates as-numbers."),
        ({"a": [1.0, 2.0, 3.0]}, {"alpha": np.nan}, "--alpha must be"),
        ({"a": [1.0, 2.0, 3.0]}, {"n_starts": 0}, "--starts must be at least 1; got 0."),
        ({"a": [1.0, 2.0, 3.0]}, {"prior": Samples(pa.table({"a": [1.0]}))}, "--background must have at least 2 rows"),
        ({"a": [1.0, 2.0, 3.0]}, {"prior": Labels(["x"] * 3)}, "nothing is known; leave the option out."),
    ],
)
def test_advice_speaks_of_options(table: dict[str, Any], settings: dict[str, Any], own: str) -> None:
    prior = settings.pop("prior", None)
    with pytest.raises(ImapceError) as refused:
        IMAPCE(1, **settings).fit(pa.table(table), prior=prior)
    assert own in in_own_words(refused.value.sentence)
    assert "drop it" not in in_own_words(refused.value.sentence)
    # The sentence of Python stays in the words of Python.
    assert "--" not in str(refused.value)
