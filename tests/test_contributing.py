"""The map in CONTRIBUTING.md shows the house as it is: every room is on it, every file it names is there, and a fit
takes the way it describes.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from typer.testing import CliRunner

import imapce
from imapce import IMAPCE
from imapce.cli import app

ROOT = Path(__file__).parents[1]
HOUSE = ROOT / "src" / "imapce"
# The package that runs: that of this tree, or an installed one.
TESTED = Path(imapce.__file__).parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

ROOMS = sorted(folder.name for folder in HOUSE.iterdir() if (folder / "__init__.py").is_file())
# `rows/dense.py` or `errors.py`; a name such as `rows/<engine>.py` stands for a file that is still to be written.
FILES = sorted(set(re.findall(r"`((?:\w+/)*\w+\.py)`", TEXT)))
TO_WRITE = sorted(set(re.findall(r"`((?:\w+/)+)<\w+>\.py`", TEXT)))
FOLDERS = sorted(set(re.findall(r"`((?:\w+/)+)`", TEXT)))
ADDITIONS = ("engine", "baseline", "prior kind", "score", "file format", "figure", "clustering method", "command")
MOST_FILES_OF_A_FIT, MOST_FILES_OF_A_COMMAND = 35, 62


def table_rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, its own head left out."""
    section = TEXT.split(f"## {heading}", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_is_on_the_map(room: str) -> None:
    assert f"`{room}/`" in [row[0] for row in table_rows("The house")]


@pytest.mark.parametrize("file", FILES)
def test_every_file_on_the_map_is_there(file: str) -> None:
    assert (HOUSE / file).is_file(), f"CONTRIBUTING.md names {file}, and src/imapce has no such file"


@pytest.mark.parametrize("folder", [*TO_WRITE, *FOLDERS])
def test_every_folder_on_the_map_is_there(folder: str) -> None:
    assert (HOUSE / folder).is_dir() or (ROOT / folder).is_dir(), f"CONTRIBUTING.md names {folder}, which is not there"


@pytest.mark.parametrize("addition", [*ADDITIONS, "μ rule"])
def test_every_usual_addition_has_its_files(addition: str) -> None:
    files = dict(table_rows("I want to add a …"))[addition]
    assert re.search(r"`\w+/[\w<>]+\.py`", files), f"no file is named for a new {addition}"


@pytest.mark.parametrize(("name", "file"), re.findall(r"`(\w+)` in `([\w/]+\.py)`", TEXT))
def test_every_name_on_the_map_is_in_its_file(name: str, file: str) -> None:
    assert re.search(rf"^(def|class) {name}\b", (HOUSE / file).read_text(encoding="utf-8"), re.MULTILINE)


def entered(work: Callable[[], object]) -> list[tuple[str, str]]:
    """File and name of every function of the package that some work enters, in the order of the first time."""
    seen: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = frame.f_code.co_filename
        # Code of a module or a class runs when it is imported, and belongs to no walk.
        if event == "call" and path.startswith(str(TESTED)) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            seen[Path(path).relative_to(TESTED).as_posix(), frame.f_code.co_qualname] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return list(seen)


def test_a_default_fit_takes_the_way_of_the_data() -> None:
    way = [(file.strip("`"), function.strip("`")) for function, file, _ in table_rows("The way of the data")]
    assert len(way) > 8
    X = np.random.default_rng(0).normal(size=(60, 4)) + 6 * np.eye(2, 4)[np.arange(60) % 2]
    assert [step for step in entered(lambda: IMAPCE().fit(X)) if step in way] == way


def test_a_default_fit_walks_through_few_files() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4)) + 6 * np.eye(2, 4)[np.arange(60) % 2]
    assert len({file for file, _ in entered(lambda: IMAPCE().fit(X))}) <= MOST_FILES_OF_A_FIT


def test_a_command_walks_through_few_files(tmp_path: Path) -> None:
    table, view = tmp_path / "table.csv", tmp_path / "view.csv"
    X = np.random.default_rng(0).normal(size=(60, 4)) + 6 * np.eye(2, 4)[np.arange(60) % 2]
    table.write_text("a,b,c,d\n" + "\n".join(",".join(map(str, row)) for row in X))
    arguments = ["embed", str(table), "-o", str(view)]
    # Once before: what modules call while they are imported is no part of the walk, whichever test imports them.
    CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert view.is_file()
    files = {file for file, _ in entered(lambda: CliRunner().invoke(app, arguments, catch_exceptions=False))}
    assert len(files) <= MOST_FILES_OF_A_COMMAND


def test_the_map_stays_short() -> None:
    assert len(TEXT.splitlines()) < 160
    assert len(FILES) > 10
