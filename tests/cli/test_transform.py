"""`imapce transform`: new rows where the fit would have put them, or a refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import FEATURES, QUICK, refusal, succeed
from imapce import IMAPCE, Labels
from imapce.tables.files import read_table, write_table

EVERY = [*FEATURES, "batch", "celltype", "number"]


def test_the_tables_of_embed_explore_and_transform_have_the_same_columns_of_the_data(
    model: Path, rows: Path, tmp_path: Path
) -> None:
    embed = ("embed", rows, "--labels", "celltype", "--drop", "batch,number", *QUICK)
    explore = ("explore", rows, "--labels", "celltype", "--drop", "batch,number", "--max-steps", 1, *QUICK)
    for words in (embed, explore, ("transform", model, rows)):
        for suffix in (".csv", ".parquet"):
            succeed(*words, "-o", tmp_path / f"out{suffix}")
            succeed(*words, "-o", tmp_path / f"less{suffix}", "--only-result")
            whole, less = read_table(tmp_path / f"out{suffix}"), read_table(tmp_path / f"less{suffix}")
            assert whole.column_names == [*EVERY, *less.column_names]
            assert less.column_names[0] == "row"
            assert less.column_names[-2:] == ["imapce0", "imapce1"]
            assert whole["batch"].equals(read_table(rows)["batch"])
    assert "--only-result is about the table of -o: name one with -o." in refusal(*embed, "--only-result")


def test_transform_agrees_with_embed_and_carries_other_columns(model: Path, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "second.parquet"
    told = succeed("transform", model, rows, "-o", out, "--plot", tmp_path / "second.pdf")
    first, second = read_table(tmp_path / "first.parquet"), read_table(out)
    assert second.column_names == first.column_names == [*EVERY, "row", "imapce0", "imapce1"]
    for axis in ("imapce0", "imapce1"):
        np.testing.assert_allclose(first.column(axis), second.column(axis), rtol=0, atol=1e-12)
    assert "batch, celltype, number" in " ".join(told.split())
    assert (tmp_path / "second.pdf").read_bytes().startswith(b"%PDF")


def test_transform_takes_columns_in_any_order(model: Path, tmp_path: Path, columns: dict[str, Any]) -> None:
    shuffled = tmp_path / "shuffled.parquet"
    write_table({name: columns[name] for name in reversed(FEATURES)}, shuffled)
    succeed("transform", model, shuffled, "-o", tmp_path / "second.parquet")
    first, second = read_table(tmp_path / "first.parquet"), read_table(tmp_path / "second.parquet")
    np.testing.assert_allclose(first.column("imapce0"), second.column("imapce0"), rtol=0, atol=1e-12)
    assert "no file written" in succeed("transform", model, shuffled)


def test_transform_refuses_what_does_not_fit(model: Path, rows: Path, tmp_path: Path, columns: dict[str, Any]) -> None:
    lacking = tmp_path / "lacking.csv"
    write_table({name.replace("d_3", "d_33"): columns[name] for name in FEATURES}, lacking)
    told = refusal("transform", model, lacking, "-o", tmp_path / "no.csv")
    assert "the 10 columns that the model reads, and it lacks 'd_3': did you mean 'd_33'" in told
    nameless = tmp_path / "nameless.npy"
    np.save(nameless, np.zeros((3, 10)))
    assert "the model reads columns by name" in refusal("transform", model, nameless)
    assert "must not replace a file that is read" in refusal("transform", model, rows, "-o", rows)
    assert "not a file" in refusal("transform", tmp_path / "absent.imapce", rows)
    assert not (tmp_path / "no.csv").exists()


@pytest.fixture
def given(rows: Path, tmp_path: Path) -> Path:
    """A model of rows of which two labels are known."""
    path = tmp_path / "given.imapce"
    succeed(
        *("embed", rows, "--known", "batch,number", "--drop", "celltype,batch,number", *QUICK),
        *("--save", path, "-o", tmp_path / "given.parquet"),
    )
    return path


def test_known_labels_are_read_from_the_columns_of_their_names(given: Path, rows: Path, tmp_path: Path) -> None:
    told = succeed("transform", given, rows, "-o", tmp_path / "second.parquet", "--plot", tmp_path / "second.png")
    assert "imapce0, imapce1 given batch, number" in told
    first, second = read_table(tmp_path / "given.parquet"), read_table(tmp_path / "second.parquet")
    for axis in ("imapce0", "imapce1"):
        np.testing.assert_allclose(first.column(axis), second.column(axis), rtol=0, atol=1e-10)
    assert json.loads(succeed("transform", given, rows, "--json"))["given"] == ["batch", "number"]


def test_known_labels_of_other_names_are_named(given: Path, tmp_path: Path, columns: dict[str, Any]) -> None:
    renamed = {{"batch": "run", "number": "size"}.get(name, name): values for name, values in columns.items()}
    write_table(renamed, tmp_path / "renamed.csv")
    succeed("transform", given, tmp_path / "renamed.csv", "--known", "run,size", "-o", tmp_path / "out.parquet")
    first, second = read_table(tmp_path / "given.parquet"), read_table(tmp_path / "out.parquet")
    np.testing.assert_allclose(first.column("imapce0"), second.column("imapce0"), rtol=0, atol=1e-10)


def test_a_row_without_its_label_is_placed_with_nothing_taken(given: Path, tmp_path: Path, columns: Any) -> None:
    write_table({**columns, "batch": [None, *columns["batch"][1:]]}, tmp_path / "gap.parquet")
    succeed("transform", given, tmp_path / "gap.parquet", "-o", tmp_path / "out.parquet")
    first, second = read_table(tmp_path / "given.parquet"), read_table(tmp_path / "out.parquet")
    moved = np.abs(np.asarray(first.column("imapce0")) - np.asarray(second.column("imapce0"))) > 1e-6
    assert np.flatnonzero(moved).tolist() == [0]


def test_known_labels_that_lack_or_do_not_fit_are_told_in_one_sentence(
    given: Path, model: Path, rows: Path, tmp_path: Path, columns: dict[str, Any]
) -> None:
    lacking = tmp_path / "lacking.csv"
    write_table({name.replace("batch", "batches"): values for name, values in columns.items()}, lacking)
    assert (
        "DATA must have the column 'batch', a label that the model was fitted given, whose effect is taken from every "
        "row: add it, or name it with --known; did you mean 'batches'?"
    ) in refusal("transform", given, lacking)
    told = refusal("transform", given, lacking, "--known", "batches")
    assert (
        "for every label that the model was fitted given, and these are 2 labels (batch, number); got batches" in told
    )
    told = refusal("transform", given, lacking, "--known", "btches,number")
    assert "--known must name a column of DATA, got 'btches': did you mean 'batches'?" in told
    assert "and these are none; got batch." in refusal("transform", model, rows, "--known", "batch")
    strange = tmp_path / "strange.csv"
    write_table({**columns, "batch": ["future", *columns["batch"][1:]]}, strange)
    assert (
        "the known labels of DATA must be classes that fit saw (new, old); got 'future'. Leave it empty for rows"
    ) in refusal("transform", given, strange)


def test_labels_without_a_name_are_asked_for(rows: Path, tmp_path: Path, columns: dict[str, Any]) -> None:
    table = read_table(rows).select(FEATURES)
    model = IMAPCE(n_starts=3).fit(table, prior=Labels(np.array(columns["batch"])))
    model.save(tmp_path / "nameless.imapce")
    told = refusal("transform", tmp_path / "nameless.imapce", rows)
    assert "--known must name the columns of the 1 label (without a name) that the model was fitted given" in told
    asked = ("transform", tmp_path / "nameless.imapce", rows, "--known", "batch", "-o", tmp_path / "out.parquet")
    succeed(*asked)
    view = model.transform(table, labels=columns["batch"])
    np.testing.assert_allclose(view[:, 0], read_table(tmp_path / "out.parquet").column("imapce0"), atol=1e-10)


def test_damaged_models_are_refused(model: Path, rows: Path) -> None:
    whole = model.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"not a zip", b""):
        model.write_bytes(damaged)
        refusal("info", model)
        refusal("info", model, "--json")
        refusal("transform", model, rows)
