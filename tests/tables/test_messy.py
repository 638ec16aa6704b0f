"""Every messy file goes through `imapce embed`: the view of the clean table, a view, or one sentence with a way out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import run
from imapce.tables.files import read_table
from messy import ANY, CASES, ROWS, SAME, Messy, clean


def view_of(path: Path, words: tuple[str, ...], out: Path) -> tuple[np.ndarray, str]:
    result = run("embed", path, "--starts", "2", "--alpha", "1", "--mu", "paper", *words, "-o", out)
    assert result.exit_code == 0, result.stderr
    table = read_table(out)
    return np.column_stack([table["imapce0"], table["imapce1"]]), result.stderr


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    folder = tmp_path_factory.mktemp("clean")
    clean().to_parquet(folder / "clean.parquet", index=False)
    view, told = view_of(folder / "clean.parquet", (), folder / "view.parquet")
    assert told == ""
    return view


def test_there_are_about_sixty_of_them_and_no_two_alike() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", [case for case in CASES if case.expect in (SAME, ANY)], ids=lambda case: case.name)
def test_a_messy_file_gives_a_view(case: Messy, reference: np.ndarray, tmp_path: Path) -> None:
    if case.name.endswith(".xlsx"):
        pytest.importorskip("openpyxl")
    path = case.write(tmp_path)
    view, told = view_of(path, case.words, tmp_path / "view.parquet")
    assert view.shape == (ROWS, 2)
    if case.expect == SAME:
        np.testing.assert_allclose(view, reference, atol=1e-6)
    assert case.note in told
    assert all(line.startswith(("imapce: note: ", "imapce: warning: ")) for line in told.splitlines())
    assert len(told.splitlines()) <= 2


@pytest.mark.parametrize("case", [case for case in CASES if case.expect not in (SAME, ANY)], ids=lambda case: case.name)
def test_what_is_refused_has_one_sentence_with_a_way_out(case: Messy, tmp_path: Path) -> None:
    result = run("embed", case.write(tmp_path), *case.words, "-o", tmp_path / "view.csv")
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert case.expect in lines[-1]
    assert sum(not line.startswith("imapce: note: ") for line in lines) == 1
    assert not (tmp_path / "view.csv").exists()


@pytest.mark.parametrize("case", [case for case in CASES if case.pandas is not None], ids=lambda case: case.name)
def test_pandas_reads_it_with_one_option_at_most(case: Messy, tmp_path: Path) -> None:
    """So that the cases are what they claim to be: files that another library takes."""
    assert case.pandas is not None
    assert len(case.pandas) <= 1
    engine = {"engine": "python"} if len(case.pandas.get("sep", "")) > 1 else {}
    assert len(pd.read_csv(case.write(tmp_path), **case.pandas, **engine).columns) >= 2
