"""What was done to a table before it was explored is said: on the terminal, and on the page as long as it is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from conversation import Talk
from imapce.app import tabs
from served import click, opened, served, work

FILLED = (
    "issing cells: a 2 of 60, b 1; filled with the mean of the column to look for groups, and counted nowhere else."
)


def write(path: Path) -> Path:
    rows = np.random.default_rng(0).normal(size=(60, 3)).astype(str)
    rows[[3, 9], 0] = rows[5, 1] = ""
    path.write_text("a,b,c\n" + "\n".join(map(",".join, rows)))
    return path


def test_cells_that_were_filled_are_told_on_the_terminal_and_on_the_page(somebody: Any, tmp_path: Path) -> None:
    with served(write(tmp_path / "gaps.csv"), cwd=tmp_path) as server:
        assert f"imapce: note: m{FILLED}" in server.told
        page, _ = opened(somebody(), server)
        assert page.locator(".notes p").all_text_contents() == [f"M{FILLED}"]
        click(page, "Next view")
        assert page.locator(".notes p").all_text_contents() == [f"M{FILLED}"]
        page.close()


def test_so_they_are_of_a_file_that_is_sent(start: Any, somebody: Any, tmp_path: Path) -> None:
    page, _ = opened(somebody(), start)
    with work(page):
        page.set_input_files("#imapce-file", write(tmp_path / "gaps.csv"))
    click(page, "Explore")
    assert page.locator(".notes p").all_text_contents() == [f"M{FILLED}"]
    click(page, "Back to the start")
    click(page, "digits Handwritten digits, 8")
    assert page.locator(".notes").is_hidden()


def test_nothing_is_said_where_no_cell_was_missing(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(20, 3))
    for gaps, notes in ((0, 0), (1, 1)):
        rows[:gaps, 1] = np.nan
        np.save(tmp_path / "rows.npy", rows)
        data, _ = tabs.inspect_file(tmp_path / "rows.npy")
        talk = Talk(tabs.open_file("rows.npy", data, {}))
        assert len(talk.ask("hello")["notes"]) == notes
