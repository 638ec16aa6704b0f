"""`imapce embed`: from a file to a view in every format, with every kind of knowledge."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import imapce
from commands import FEATURES, QUICK, files_beside, refusal, run, succeed
from imapce.estimators.imapce import IMAPCE
from imapce.estimators.model_file import load_model
from imapce.tables.files import read_table, write_table

DROP = ("--drop", "batch,celltype,number")


def test_embed_writes_the_columns_of_the_data_row_number_and_axes(rows: Path, tmp_path: Path) -> None:
    out, plot = tmp_path / "view.parquet", tmp_path / "view.png"
    told = succeed(
        *("embed", rows, "--known", "d_0,d_1, d_2,d_3", "--mu", "200", "--labels", "celltype", *QUICK),
        *("--drop", "batch,number", "-o", out, "--plot", plot),
    )
    table = read_table(out)
    assert table.column_names == [*FEATURES, "batch", "celltype", "number", "row", "imapce0", "imapce1"]
    assert table.select(FEATURES).equals(read_table(rows).select(FEATURES))
    assert table.column("row").to_pylist() == list(range(120))
    assert plot.read_bytes().startswith(b"\x89PNG")
    for words in ("4 columns are known: d_0, d_1, d_2, d_3", "strongest features", "view.parquet"):
        assert words in told


def test_the_summary_begins_with_three_sentences_and_has_the_numbers_of_the_search_under_details(rows: Path) -> None:
    asked = ("embed", rows, "--known", "batch", "--labels", "celltype", "--drop", "number", *QUICK)
    short, long = succeed(*asked), succeed(*asked, "--details")
    there, made, known = json.loads(succeed(*asked, "--json"))["summary"]
    assert there == "3 clusters lie apart in this view."
    assert {"d_4", "d_5"} <= set(made.split())
    assert known.startswith("What is known (batch) is gone: the view tells it no better than chance (accuracy 0.")
    for told in (short, long):
        assert " ".join(told.split()).startswith(" ".join(f"{there} {made} {known}".split()))
        assert max(map(len, told.splitlines())) <= 80
    of_the_search = ("alpha", "mu  ", "objective", "kurtosis", "Converged", "other optima")
    assert all(word in long for word in of_the_search)
    assert not any(word in short for word in of_the_search)
    assert "Nothing was known." in succeed("embed", rows, "--drop", "number", *QUICK)


def test_the_report_of_embed_says_why_the_view_was_chosen_where_it_was(rows: Path, tmp_path: Path) -> None:
    page = tmp_path / "view.html"
    words = ("embed", rows, "--known", "d_0,d_1", "--labels", "celltype", "--drop", "batch,number", *QUICK)
    assert "report written" in succeed(*words, "--report", page)
    chosen = page.read_text(encoding="utf-8")
    for told in (
        "View of rows.csv",
        "Why this view",
        "the nearest rows tell the cluster of",
        "2 columns are known",
        "The rows are shown given d_0, d_1, whose effect was explained away. The prior (d_0, d_1) can be predicted",
    ):
        assert told in chosen
    assert chosen.count("data:image/png;base64,") == 4
    succeed(*words, "--alpha", "1", "--mu", "paper", "--report", page)
    given = page.read_text(encoding="utf-8")
    assert "Why this view" not in given
    assert given.count("data:image/png;base64,") == 3


def test_embed_agrees_with_the_library(rows: Path, tmp_path: Path, columns: dict[str, Any]) -> None:
    out = tmp_path / "view.parquet"
    succeed(
        *("embed", rows, *DROP, "--alpha", "0.5", "--mu", "paper", "--center-only", *QUICK, "--seed", "5"),
        *("--known", "d_0", "--components", "3", "-o", out),
    )
    table = pa.table({name: columns[name] for name in FEATURES})
    model = IMAPCE(3, alpha=0.5, mu="paper", standardize=False, n_starts=3, random_state=5)
    view = model.fit_transform(table, prior=imapce.Attributes(["d_0"]))
    written = read_table(out)
    stacked = np.column_stack([written.column(f"imapce{axis}") for axis in range(3)])
    np.testing.assert_allclose(stacked, view, rtol=0, atol=1e-12)


def test_without_output_only_the_summary(plain: Path) -> None:
    told = succeed("embed", plain, *QUICK)
    assert "no file written" in told
    assert re.search(r"known +nothing", told)
    assert files_beside(plain) == ["plain.csv"]


def test_known_values_of_one_column_are_one_subset(rows: Path, tmp_path: Path, columns: dict[str, Any]) -> None:
    out = tmp_path / "view.csv"
    told = succeed(
        *(
            "embed",
            rows,
            "--known-rows",
            "celltype=a",
            "--known-rows",
            "celltype=b",
            "--drop",
            "batch,number",
            *QUICK,
            "-o",
            out,
        )
    )
    count = sum(value in "ab" for value in columns["celltype"])
    assert f"{count} of 120 rows are known, with celltype = a or b" in told
    assert read_table(out).column_names == [*FEATURES, "batch", "celltype", "number", "row", "imapce0", "imapce1"]


def test_all_priors_combine(rows: Path, plain: Path, tmp_path: Path) -> None:
    told = succeed(
        *(
            "embed",
            rows,
            "--known",
            "d_0",
            "--background",
            plain,
            "--known-rows",
            "batch=old",
            "--known-rows",
            "number=4",
        ),
        *("--labels", "celltype", *QUICK, "-o", tmp_path / "view.tsv", "--plot", tmp_path / "view.svg"),
    )
    flat = " ".join(told.split())
    assert "1 column is known: d_0" in flat
    assert "120 background rows are known: plain.csv" in flat
    assert "with batch = old" in flat
    assert "with number = 4" in flat
    header = (tmp_path / "view.tsv").read_text().splitlines()[0].replace('"', "").split("\t")
    assert header == [*FEATURES, "batch", "celltype", "number", "row", "imapce0", "imapce1"]


def test_names_with_commas_and_equal_signs(tmp_path: Path, columns: dict[str, Any]) -> None:
    path = tmp_path / "odd.csv"
    write_table({"a,b": columns["d_0"], "k=1": columns["batch"], "c": columns["d_4"], "d": columns["d_5"]}, path)
    told = succeed("embed", path, "--known", '"a,b"', "--known-rows", "k=1=old", *QUICK)
    assert "known: a,b" in told
    assert "k=1 = old" in " ".join(told.split())


def test_users_columns_are_never_overwritten(tmp_path: Path, columns: dict[str, Any]) -> None:
    path, out = tmp_path / "taken.parquet", tmp_path / "view.parquet"
    kept = {name: columns[name] for name in FEATURES}
    write_table(kept | {"imapce0": columns["batch"], "row": columns["celltype"]}, path)
    succeed("embed", path, "--labels", "imapce0", "--known-rows", "row=a", *QUICK, "-o", out)
    table = read_table(out)
    assert table.column_names == [*FEATURES, "imapce0", "row", "row_1", "imapce0_1", "imapce1"]
    assert table.column("imapce0").to_pylist() == columns["batch"]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "parquet", "arrow", "feather"])
def test_tables_in_every_format_give_one_view(tmp_path: Path, columns: dict[str, Any], suffix: str) -> None:
    features = {name: columns[name] for name in FEATURES}
    path = tmp_path / f"rows.{suffix}"
    if suffix.endswith(".gz"):
        import gzip

        write_table(features, tmp_path / "rows.csv")
        path.write_bytes(gzip.compress((tmp_path / "rows.csv").read_bytes()))
    else:
        write_table(features, path)
    succeed("embed", path, *QUICK, "-o", tmp_path / "view.npy")
    expected = IMAPCE(n_starts=3, random_state=0).fit_transform(pa.table(features))
    np.testing.assert_allclose(np.load(tmp_path / "view.npy"), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["npy", "npz", "sparse"])
def test_arrays_take_positions(tmp_path: Path, columns: dict[str, Any], kind: str) -> None:
    matrix = np.column_stack([columns[name] for name in FEATURES])
    path = tmp_path / ("rows.npy" if kind == "npy" else "rows.npz")
    if kind == "npy":
        np.save(path, matrix)
    elif kind == "npz":
        np.savez(path, matrix)
    else:
        sparse.save_npz(path, sparse.csr_matrix(matrix))
    model, out, again = tmp_path / "m.imapce", tmp_path / "a.npy", tmp_path / "b.npy"
    assert "2 columns are known: 0, 1" in succeed("embed", path, "--known", "0,1", *QUICK, "-o", out, "--save", model)
    succeed("transform", model, path, "-o", again)
    np.testing.assert_allclose(np.load(out), np.load(again), rtol=0, atol=1e-12)
    assert "no column names; got 'size'" in refusal("embed", path, "--known", "size")
    for option, word in (("--known-rows", "a=1"), ("--labels", "a"), ("--drop", "a")):
        assert f"{option} needs column names" in refusal("embed", path, option, word)


@pytest.fixture
def gaps(tmp_path: Path, columns: dict[str, Any]) -> Path:
    holed = {name: np.array(columns[name], dtype=float) for name in FEATURES}
    holed["d_2"][[3, 50]] = np.nan
    kinds: list[Any] = list(columns["celltype"])
    kinds[7] = None
    path = tmp_path / "gaps.csv"
    write_table(holed | {"celltype": kinds}, path)
    return path


def test_missing_values_are_refused_by_name(gaps: Path) -> None:
    told = refusal("embed", gaps, *QUICK, "-o", gaps.parent / "view.csv")
    assert "'d_2' has 2" in told
    assert "fill them with --missing mean" in told
    assert files_beside(gaps) == ["gaps.csv"]


def test_a_model_fills_new_rows_as_it_filled_its_own(gaps: Path, tmp_path: Path) -> None:
    model, out, again = tmp_path / "m.imapce", tmp_path / "a.parquet", tmp_path / "b.parquet"
    succeed("embed", gaps, "--missing", "mean", *QUICK, "-o", out, "--save", model)
    first = read_table(out)
    # Three rows alone: were they filled with their own means, they would lie elsewhere.
    few = tmp_path / "few.parquet"
    write_table(read_table(gaps).take([3, 7, 9]), few)
    succeed("transform", model, few, "-o", again)
    for axis in ("imapce0", "imapce1"):
        expected = first.column(axis).to_numpy()[[3, 7, 9]]
        np.testing.assert_allclose(read_table(again).column(axis).to_numpy(), expected, rtol=0, atol=1e-12)
    assert load_model(model).missing == "mean"


def test_arrays_are_filled_too(tmp_path: Path, columns: dict[str, Any]) -> None:
    matrix = np.column_stack([columns[name] for name in FEATURES])
    matrix[5, 2] = np.nan
    path, model, out, again = (tmp_path / name for name in ("rows.npy", "m.imapce", "a.npy", "b.npy"))
    np.save(path, matrix)
    assert "'x2' has 1" in refusal("embed", path, *QUICK)
    succeed("embed", path, "--background", path, "--missing", "mean", *QUICK, "-o", out, "--save", model)
    np.save(path, matrix[4:7])
    succeed("transform", model, path, "-o", again)
    np.testing.assert_allclose(np.load(again), np.load(out)[4:7], rtol=0, atol=1e-12)
    matrix[:, 2] = np.nan
    np.save(path, matrix)
    assert "'x2' has only missing values" in refusal("embed", path, "--missing", "mean")


def test_a_view_may_have_as_many_axes_as_the_table_has_columns(plain: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "view.csv", tmp_path / "view.html"
    result = run(
        *("embed", plain, "--components", 5, "-o", out, "--plot", tmp_path / "v.png", "--report", report, *QUICK)
    )
    assert result.exit_code == 0
    assert result.stderr == "imapce: note: the plot shows the first two of the 5 axes.\n"
    assert read_table(out).column_names[-5:] == [f"imapce{axis}" for axis in range(5)]
    assert "It shows the first two of 5 axes." in report.read_text()
    assert "--components must be at most the number of columns; got 11" in refusal("embed", plain, "--components", 11)
