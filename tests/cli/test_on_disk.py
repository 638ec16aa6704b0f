"""Files larger than half of the memory: every command says so and reads them from disk, or refuses in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from commands import QUICK, files_beside, refusal, run, succeed
from imapce import load_model
from imapce.cli import on_disk
from imapce.tables import read_table, write_table
from imapce.tables import scan as scans

RNG = np.random.default_rng(0)


def table(n: int = 600) -> pa.Table:
    X = RNG.normal(size=(n, 4)) + 7 * np.eye(3, 4)[np.arange(n) % 3]
    return pa.table(
        {
            **{name: X[:, place] for place, name in enumerate("abcd")},
            "kind": np.array(["x", "y", "z"])[np.arange(n) % 3],
            "id": [f"row {place}" for place in range(n)],
        }
    )


@pytest.fixture
def huge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is large beside a memory of ten kilobytes, read 64 rows at a time."""
    path = tmp_path / "huge.parquet"
    write_table(table(), path)
    monkeypatch.setattr(on_disk, "memory_bytes", lambda: 10_000)
    monkeypatch.setattr(scans, "MOST_BATCH_ROWS", 64)
    monkeypatch.setattr(scans, "FEWEST_BATCH_ROWS", 16)
    return path


def told(*words: Any) -> tuple[str, str]:
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    return result.stdout, result.stderr


def test_embed_reads_from_disk_says_so_and_writes_the_view_beside_all_columns(huge: Path) -> None:
    view, model, plot = (huge.parent / name for name in ("view.parquet", "model.imapce", "view.png"))
    _, notes = told("embed", huge, "-o", view, "--save", model, "--plot", plot, "--labels", "kind", *QUICK)
    assert "'huge.parquet' is larger than half of the memory: read from disk, about 7 passes of" in notes
    assert "left out of the features and carried to the output: 'id'" in notes
    written = read_table(view)
    assert written.column_names == [*"abcd", "kind", "id", "row", "imapce0", "imapce1"]
    fitted = load_model(model)
    assert fitted.input_columns == tuple("abcd")
    np.testing.assert_allclose(
        np.column_stack([written["imapce0"], written["imapce1"]]),
        fitted.transform(read_table(huge).select(list("abcd"))),
        rtol=1e-9,
        atol=1e-9,
    )
    assert plot.stat().st_size > 1000


def test_what_is_known_is_read_of_all_rows(huge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("imapce.cli.request.DRAWN_ROWS", 50)
    out, _ = told("embed", huge, "--known-rows", "kind=x", "--drop", "id", *QUICK)
    assert "200 of 600 rows are known, with kind = x" in " ".join(out.split())
    out, _ = told("embed", huge, "--known", "kind", "--known", "a", "--drop", "id,kind", *QUICK)
    assert "the label kind is known" in " ".join(out.split())


def test_known_labels_are_read_from_disk_for_every_row(huge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view, model, new = (huge.parent / name for name in ("view.csv", "model.imapce", "new.csv"))
    words = ("--known", "kind", "--drop", "id,kind", *QUICK)
    page, plot = huge.parent / "page.html", huge.parent / "view.png"
    told("embed", huge, "-o", view, "--save", model, "--report", page, "--plot", plot, *words)
    assert "The rows are shown given kind, whose effect was explained away." in page.read_text()
    told("transform", model, huge, "-o", new, "--plot", plot)
    monkeypatch.setattr(on_disk, "memory_bytes", lambda: None)
    succeed("embed", huge, "-o", huge.parent / "memory.csv", *words)
    expected = read_table(huge.parent / "memory.csv")["imapce0"]
    for written in (view, new):
        np.testing.assert_allclose(read_table(written)["imapce0"], expected, rtol=1e-6, atol=1e-6)


def test_the_view_and_the_report_are_those_of_the_file_in_memory(huge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--drop", "id", "--labels", "kind", *QUICK)
    told("embed", huge, "-o", huge.parent / "disk.csv", "--report", huge.parent / "disk.html", *words)
    assert "</html>" in (huge.parent / "disk.html").read_text()
    monkeypatch.setattr(on_disk, "memory_bytes", lambda: None)
    succeed("embed", huge, "-o", huge.parent / "memory.csv", *words)
    mine, theirs = read_table(huge.parent / "disk.csv"), read_table(huge.parent / "memory.csv")
    assert mine.column_names == theirs.column_names
    np.testing.assert_allclose(mine["imapce0"], theirs["imapce0"], rtol=1e-6, atol=1e-6)


def test_a_background_on_disk_is_read_from_there(huge: Path) -> None:
    behind = huge.parent / "behind.parquet"
    write_table({name: RNG.normal(size=500) for name in "abcd"}, behind)
    out, _ = told("embed", huge, "--background", behind, "--drop", "id,kind", *QUICK)
    assert "500 background rows are known" in " ".join(out.split())


def test_explore_and_transform_read_from_disk(huge: Path) -> None:
    model, clusters, new = (huge.parent / name for name in ("model.imapce", "clusters.csv", "new.parquet"))
    _, notes = told("explore", huge, "--drop", "id,kind", "-o", clusters, *QUICK)
    assert "read from disk" in notes
    assert "the table of -o has the result alone, since DATA is larger than half of the memory." in notes
    found = read_table(clusters)
    assert len(found) == 600
    assert len(set(found["cluster"].to_pylist())) == 3
    told("embed", huge, "--save", model, "--drop", "id,kind", *QUICK)
    out, notes = told("transform", model, huge, "-o", new, "--plot", huge.parent / "new.png")
    assert "read from disk, 1 pass of" in notes
    assert "600" in out
    assert read_table(new).column_names == [*"abcd", "kind", "id", "row", "imapce0", "imapce1"]
    told("transform", model, huge, "-o", new, "--only-result")
    assert read_table(new).column_names == ["row", "imapce0", "imapce1"]


def test_a_csv_and_a_pattern_are_read_from_disk_too(huge: Path) -> None:
    write_table(table(), huge.parent / "rows.csv")
    assert "read from disk" in told("embed", huge.parent / "rows.csv", "--drop", "id", *QUICK)[1]
    for number in range(2):
        write_table(table(300), huge.parent / f"part-{number}.parquet")
    assert "read from disk" in told("embed", huge.parent / "part-*.parquet", "--drop", "id", *QUICK)[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-o", "-"], "--output must be .parquet, .arrow, .csv or .tsv"),
        (["-o", "view.npy"], "--output must be .parquet, .arrow, .csv or .tsv"),
        (["--dates", "as-numbers"], "--dates as-numbers is for tables that are read whole"),
        (["--known-rows", "kind=w"], "must occur in column 'kind'"),
        (["--labels", "colour"], "--labels must name a column of DATA, got 'colour'"),
    ],
)
def test_options_that_need_all_rows_are_refused_in_one_sentence(
    words: list[str], sentence: str, huge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(huge.parent)
    result = run("embed", huge, "--drop", "id", *words, *QUICK)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert files_beside(huge) == ["huge.parquet"]


def test_reports_of_explorations_and_comparisons_are_refused(huge: Path) -> None:
    assert "--report is drawn from rows in memory" in refusal(
        "explore", huge, "--drop", "id,kind", "--report", huge.parent / "report.html"
    )
    assert "DATA must fit in memory for this command, and 'huge.parquet'" in refusal(
        "compare", huge, "--drop", "id", "-o", huge.parent / "out"
    )
    assert files_beside(huge) == ["huge.parquet"]


@pytest.mark.parametrize("name", ["rows.xlsx", "rows.csv.gz", "rows.jsonl"])
def test_formats_that_are_read_whole_are_refused_with_the_way_out(name: str, huge: Path) -> None:
    (huge.parent / name).write_bytes(b"x" * 6000)
    assert f"DATA must be .parquet, .arrow or plain .csv where it is larger than half of the memory, got '{name}'" in (
        refusal("embed", huge.parent / name)
    )


def test_text_options_are_refused_and_small_files_are_read_whole(huge: Path) -> None:
    write_table(table(), huge.parent / "rows.csv")
    assert "--sep is for files that are read whole" in refusal("embed", huge.parent / "rows.csv", "--sep", ";")
    write_table(table(30).select(list("abcd")), huge.parent / "small.csv")
    assert (huge.parent / "small.csv").stat().st_size < 5000
    succeed("embed", huge.parent / "small.csv", *QUICK)


def test_progress_tells_the_pass_its_rate_and_the_time_left(huge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("imapce.common.progress.SECONDS_BETWEEN_LINES", 0.001)
    _, lines = told("embed", huge, "--drop", "id,kind", "-o", huge.parent / "view.csv", *QUICK)
    assert "% of the pass, pass " in lines
    assert " GB/s, " in lines
