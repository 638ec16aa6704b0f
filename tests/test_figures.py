"""What pages say was measured is what the files of results have: figures in prose, tables between markers, the run."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from docs import figures
from experiments import against_paper, pages
from experiments.provenance import read_runs
from experiments.result_files import Figure, read_figures, write_figures

ROOT = Path(__file__).parents[1]
RESULTS = (ROOT / "experiments" / "results", ROOT / "benchmarks" / "results")
READMES = tuple(ROOT / place / "README.md" for place in ("", "experiments", "benchmarks"))


def test_every_figure_in_prose_is_the_one_that_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    status = figures.main([])
    assert status == 0, capsys.readouterr().out


def test_every_name_of_a_figure_is_quoted_somewhere() -> None:
    every = "".join(page.read_text(encoding="utf-8") for page in figures.pages())
    assert [name for name in figures.places() if f"<!--{name}-->" not in every] == []


def test_a_figure_that_differs_or_has_no_name_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("Found in 0.51<!--found--> of the rows in 3 s.\n\n```python\nx = 0.123\n```\n", encoding="utf-8")
    write_figures(tmp_path / "results.csv", [("B", "ours", "NMI", 0.648)])
    (tmp_path / "figures.toml").write_text(
        '[found]\nfile = "results.csv"\nblock = "B"\nrow = "ours"\ncolumn = "NMI"\n', encoding="utf-8"
    )
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "NAMES", tmp_path / "figures.toml")
    assert figures.main([]) == 1
    assert figures.main(["--write"]) == 1
    text = page.read_text(encoding="utf-8")
    assert text.startswith("Found in 0.65<!--found--> of the rows")
    page.write_text(text.replace("3 s", "no time"), encoding="utf-8")
    assert figures.main([]) == 0


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.parent.name)
def test_tables_of_a_page_are_those_of_its_results(page: Path) -> None:
    assert pages.with_tables(page) == page.read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", RESULTS, ids=str)
def test_a_page_says_on_which_day_and_commit_its_figures_were_measured(folder: Path) -> None:
    text = (folder.parent / "README.md").read_text(encoding="utf-8")
    runs = read_runs(folder)
    assert runs
    for name, run in runs.items():
        assert run["date"] in text, name
        assert run["commit"] in text, name


def test_a_figure_is_named_once_in_its_file() -> None:
    for path in (path for folder in RESULTS for path in folder.glob("*.csv")):
        with open(path, newline="", encoding="utf-8") as stream:
            lines = list(csv.DictReader(stream))
        assert sum(len(row) for block in read_figures(path).values() for row in block.values()) == len(lines), path


def test_reasons_are_given_where_the_results_show_them(tmp_path: Path) -> None:
    def row(data: str, method: str, ours: float) -> list[Figure]:
        named = {"paper": 0.88, "ours": ours, "sd": 0.001, "runs": "one"}
        return [("mnist_fmnist", f"{data} · {method} · SVM accuracy", *one) for one in named.items()]

    rows = [
        *row("mnist a", "IMAPCE", 0.80),
        *row("mnist a as uint8", "IMAPCE", 0.87),
        *row("mnist b", "IMAPCE", 0.80),
        *row("mnist b", "IMAPCE, automatic", 0.91),
        *row("mnist c", "IMAPCE", 0.87),
    ]
    write_figures(tmp_path / "mnist_fmnist.csv", rows)
    results = against_paper.Results(tmp_path)
    numbers = {one.key[0]: one for one in results.numbers()}
    assert {data: one.is_below for data, one in numbers.items()} == {"mnist a": True, "mnist b": True, "mnist c": False}
    assert numbers["mnist a"].reason == "the authors' sums in uint8: 0.870"
    assert numbers["mnist b"].reason == "not explained"
    assert numbers["mnist b"].automatic == 0.91
    assert "| mnist b · IMAPCE | 0.88 / 0.800 ± 0.001 / 0.910 | one |" in against_paper.page_text(
        tmp_path, ["compared mnist_fmnist"]
    )
    (_, *counts), *_ = against_paper.summary(results).rows[2:3]
    assert counts == [3, 2, 0, 0]
