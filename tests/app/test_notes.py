"""What was done to a table before it was explored is said: on the terminal, and on the page as long as it is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from imapce.app import tabs
from served import click, opened, served, work

FILLED = "3 missing cells were filled with the mean of their column: 'a' 2, 'b' 1."


def write(path: Path) -> Path:
    rows = np.random.default_rng(0).normal(size=(60, 3)).astype(str)
    rows[[3, 9], 0] = rows[5, 1] = ""
    path.write_text("a,b,c\n" + "\n".join(map(",".join, rows)))
    return path


def test_cells_that_were_filled_are_told_on_the_terminal_and_on_the_page(somebody: Any, tmp_path: Path) -> None:
    with served(write(tmp_path / "gaps.csv"), cwd=tmp_path) as server:
        assert f"imapce: note: {FILLED}" in server.told
        page, _ = opened(somebody(), server)
        assert page.locator(".notes p").all_text_contents() == [FILLED]
        click(page, "Next view")
        assert page.locator(".notes p").all_text_contents() == [FILLED]
        page.close()


def test_so_they_are_of_a_file_that_is_sent(start: Any, somebody: Any, tmp_path: Path) -> None:
    page, _ = opened(somebody(), start)
    with work(page):
        page.set_input_files("#imapce-file", write(tmp_path / "gaps.csv"))
    click(page, "Explore")
    assert page.locator(".notes p").all_text_contents() == [FILLED]
    click(page, "Back to the start")
    click(page, "digits Handwritten digits, 8")
    assert page.locator(".notes").is_hidden()


def test_nothing_is_said_where_no_cell_was_missing(tmp_path: Path) -> None:
    np.save(tmp_path / "whole.npy", np.random.default_rng(0).normal(size=(20, 3)))
    data, _ = tabs.inspect_file(tmp_path / "whole.npy")
    assert tabs.open_file("whole.npy", data, {}).notes == []
    data[2, 1] = np.nan
    assert tabs.open_file("whole.npy", data, {}).notes == [
        "1 missing cell was filled with the mean of its column: 'x1' 1."
    ]
