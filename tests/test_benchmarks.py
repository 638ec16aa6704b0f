"""Benchmarks: what a script measured becomes a file of results, and the page shows what these files hold."""

from __future__ import annotations

import doctest
import re
from argparse import Namespace
from pathlib import Path

import pytest
from benchmarks import growth, readme, record
from benchmarks.record import Record, at_least, at_most, within
from experiments import pages, result_files
from experiments.provenance import read_runs
from experiments.result_files import read_figures

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "benchmarks" / "README.md"


def results_of(folder: Path, quick: bool = False) -> None:
    made = Record("solver", quick)
    table = made.table("Ten starts", "problem", "ours, s", "ratio")
    table.row("iris", 0.01234, 70.0, claim=at_least(60, "ratio"))
    table.row("digits", 2.0, 20.0, claim=at_least(25, "ratio"))
    table.row("peer", 3, None)
    made.machine = {"cores": 2, "cpu": "a CPU", "memory_gib": 8}
    made.write(folder, 60.0, 0.0)


def test_a_claim_is_judged_by_what_was_measured(tmp_path: Path) -> None:
    results_of(tmp_path)
    rows = read_figures(tmp_path / "solver.csv")["Ten starts"]
    assert rows["iris"] == {"ours, s": "0.01234", "ratio": "70.0", "wanted": "≥ 60", "claim": "holds"}
    assert rows["digits"]["claim"] == "missed"
    assert rows["peer"] == {"ours, s": "3", "ratio": "", "wanted": "", "claim": ""}
    assert readme.claims(tmp_path) == (1, ["solver, Ten starts, digits: wanted ≥ 25"])


def test_other_sizes_judge_no_claim(tmp_path: Path) -> None:
    results_of(tmp_path, quick=True)
    assert readme.claims(tmp_path) == (0, [])


def test_bounds_hold_on_both_sides() -> None:
    assert at_most(1.15, "reads").holds(1.15)
    assert not at_most(1.15, "reads").holds(1.151)
    assert [within(0.03, 0.07, "share").holds(one) for one in (0.02, 0.03, 0.07, 0.08)] == [False, True, True, False]


def test_two_rows_of_one_name_would_be_one_in_the_file() -> None:
    table = Record("solver").table("Ten starts", "problem", "seconds", claims=False)
    table.row("iris", 1.0)
    with pytest.raises(AssertionError, match="two rows 'iris'"):
        table.row("iris", 2.0)


def test_a_script_writes_its_figures_and_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["growth", "--quick", "--out", str(tmp_path)])
    monkeypatch.setenv("IMAPCE_COMMIT", "abc1234")
    monkeypatch.setattr(record, "busy_cores", lambda: 0.0)

    def small(made: Record, asked: Namespace) -> None:
        table = made.table("Fits", "rows", "fit, s", "evaluations", "each, ms", "PCA, s", claims=False)
        growth.measured(table, [(200, 4), (400, 4)], [200, 400], 1)

    record.measure("growth", small, growth.__doc__)
    figures = read_figures(tmp_path / "growth.csv")["Fits"]
    assert list(figures) == ["200 × 4", "400 × 4"]
    assert all(float(row["fit, s"]) > 0 for row in figures.values())
    run = read_runs(tmp_path)["growth"]
    assert run["commit"] == "abc1234"
    assert run["machine"]["cores"] >= 1
    assert "numpy" in run["versions"]


def test_what_another_machine_measured_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    results_of(here)
    card = Record("card")
    card.table("One evaluation", "rows", "reads").row("10 × 2", 1.1, claim=at_most(1.15, "reads"))
    card.machine = {"cores": 2, "cpu": "a CPU", "memory_gib": 8, "card": "a card"}
    monkeypatch.setenv("IMAPCE_COMMIT", "def")
    card.write(there, 60.0, 0.0)
    assert record.take_over(there, here) == ["card"]
    assert list(read_runs(here)) == ["card", "solver"]
    assert readme.claims(here)[0] == 2
    (here / "page.md").write_text("<!-- run: . -->\n<!-- end -->\n")
    lines = pages.with_tables(here / "page.md").splitlines()[1:-1]
    assert len(lines) == 2
    assert "commit `def` on a card (2 cores of a CPU, 8 GiB)" in "".join(lines)


def test_a_page_shows_what_the_file_holds(tmp_path: Path) -> None:
    results_of(tmp_path)
    page = tmp_path / "page.md"
    marker = "<!-- table: solver.csv | Ten starts | head problem | columns ratio; ours, s; claim | figures 2 -->"
    page.write_text(f"before\n{marker}\n| old |\n<!-- end -->\nafter\n")
    assert pages.update([page], check=True) == [page]
    assert "| old |" in page.read_text()
    assert pages.update([page]) == [page]
    assert page.read_text().splitlines() == [
        "before",
        marker,
        "| problem | ratio | ours, s | claim |",
        "| --- | --- | --- | --- |",
        "| iris | 70 | 0.012 | holds |",
        "| digits | 20 | 2.0 | **missed** |",
        "| peer | – | 3.0 | – |",
        "<!-- end -->",
        "after",
    ]
    assert pages.update([page], check=True) == []


@pytest.mark.parametrize(
    "marker",
    [
        *("table: solver.csv | Nine starts", "table: solver.csv | Ten starts | columns speed"),
        *("table: solver.csv | Ten starts | rows wine", "table: solver.csv | Ten starts | sorted"),
        *("table: descent.csv | Ten starts", "blocks: descent.csv", "run: . | descent", "paper: . | beaten"),
    ],
)
def test_a_marker_that_names_what_is_not_there_is_an_error(tmp_path: Path, marker: str) -> None:
    results_of(tmp_path)
    (tmp_path / "page.md").write_text(f"<!-- {marker} -->\n<!-- end -->\n")
    with pytest.raises(pages.PageError, match=r"page\.md: (solver|descent|\.)"):
        pages.with_tables(tmp_path / "page.md")


def test_the_page_of_the_benchmarks_is_what_their_results_give() -> None:
    assert pages.with_tables(PAGE) == PAGE.read_text(encoding="utf-8")


def test_every_script_of_the_page_is_run_and_every_script_that_is_run_is_on_it() -> None:
    named = set(re.findall(r"<!-- table: results/(\w+)\.csv", PAGE.read_text(encoding="utf-8")))
    run = re.search(r"^BENCH \?= (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert run is not None
    assert named == {*run[1].split(), "card"}
    for name in named:
        assert f'measure("{name}", main' in (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", [record, pages, result_files], ids=lambda one: one.__name__)
def test_examples(module: object) -> None:
    found = doctest.testmod(module)
    assert found.failed == 0
    assert found.attempted
