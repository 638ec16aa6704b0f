"""`imapce transform`: new rows where the fit would have put them, or a refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from commands import FEATURES, refusal, succeed
from imapce.tables.files import read_table, write_table


def test_transform_agrees_with_embed_and_carries_other_columns(model: Path, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "second.parquet"
    told = succeed("transform", model, rows, "-o", out, "--plot", tmp_path / "second.pdf")
    first, second = read_table(tmp_path / "first.parquet"), read_table(out)
    assert second.column_names == ["batch", "celltype", "number", "row", "imapce0", "imapce1"]
    for axis in ("imapce0", "imapce1"):
        np.testing.assert_allclose(first.column(axis), second.column(axis), rtol=0, atol=1e-12)
    assert "batch, celltype, number" in told
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


def test_damaged_models_are_refused(model: Path, rows: Path) -> None:
    whole = model.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"not a zip", b""):
        model.write_bytes(damaged)
        refusal("info", model)
        refusal("info", model, "--json")
        refusal("transform", model, rows)
