"""Progress: a moving line in a terminal, plain lines with the time left in a pipe, nothing where it is not wanted."""

from __future__ import annotations

import io
import threading
from typing import Any

import numpy as np
import pytest
import rich.console
from rich.console import Console

from imapce import Exploration
from imapce.common import progress as module
from imapce.common.progress import PlainLines, showing, watching
from imapce.common.work import Watch
from imapce.errors import InvalidTypeError
from imapce.estimators.imapce import told_in_rounds
from imapce.search.race import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_says_what_is_done_of_how_many_and_how_long_is_left() -> None:
    clock = Clock()
    lines = PlainLines("of 1,200 rows explored", clock=clock)
    lines.tell("step 2: looking for a view", 0.25)
    clock.now += 30
    words = "imapce: 25 % of 1,200 rows explored, step 2: looking for a view; 30 seconds so far, about 90 seconds left"
    assert lines.line() == words
    clock.now += 270
    assert lines.line().endswith("5 minutes so far, about 15 minutes left")


def test_nothing_is_said_of_the_time_left_where_nobody_knows_it() -> None:
    clock = Clock()
    lines = PlainLines("of the rows", clock=clock)
    lines.tell("round 3")
    clock.now += 20
    assert lines.line() == "imapce: round 3; 20 seconds so far"
    lines.tell("round 4", 0.001)
    assert "left" not in lines.line()


def test_lines_come_while_one_piece_of_work_takes_long() -> None:
    written: list[str] = []
    twice = threading.Event()

    def write(line: str) -> None:
        written.append(line)
        if len(written) == 2:
            twice.set()

    with PlainLines("", seconds=0.01, write=write) as lines:
        lines.tell("fitting ct-SNE")
        assert twice.wait(60)
    assert all("fitting ct-SNE" in line for line in written)


def test_quick_work_and_quiet_work_say_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        with showing(quiet=quiet, of="of the rows") as tell:
            tell("step 2", 0.25)
    assert capfd.readouterr() == ("", "")


def test_what_goes_into_a_pipe_goes_to_stderr(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.01)
    told = threading.Event()
    monkeypatch.setattr(module, "_to_stderr", _write_and(told, module._to_stderr))
    with showing(quiet=False, of="of the rows") as tell:
        tell("step 2", 0.25)
        assert told.wait(60)
    out, err = capfd.readouterr()
    assert out == ""
    assert "imapce: 25 % of the rows, step 2" in err


def _write_and(told: threading.Event, write: Any) -> Any:
    def both(line: str) -> None:
        write(line)
        if "step 2" in line:
            told.set()

    return both


def test_a_terminal_shows_the_share_and_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(rich.console, "Console", lambda **_: Console(file=shown, force_terminal=True, width=100))
    with showing(quiet=False, of="of 120 rows explored") as tell:
        tell("step 2", 0.25)
    assert "step 2" in shown.getvalue()
    assert "25%" in shown.getvalue()
    assert "of 120 rows explored" in shown.getvalue()


@pytest.mark.usefixtures("every_word")
def test_a_fit_tells_its_searches_and_rounds() -> None:
    told: list[str] = []
    watch = told_in_rounds(Watch(progress=lambda words, share: told.append(words)))
    for number in (1, 2, 1):
        watch(Progress(number, 1 if number == 2 else 4, 0.5))
    assert told == [
        "looking for a view, search 1, round 1, 4 starts running, best objective 0.5",
        "looking for a view, search 1, round 2, 1 start running, best objective 0.5",
        "looking for a view, search 2, round 1, 4 starts running, best objective 0.5",
    ]


def grouped() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]


def test_work_tells_no_more_often_than_a_person_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("imapce.common.work.SECONDS_BETWEEN_TELLINGS", 1e6)
    told: list[str] = []
    Exploration(grouped(), random_state=0).run(progress=lambda words, share: told.append(words))
    # The first words at once; then a million seconds of nothing.
    assert len(told) == 1


def test_true_is_a_bar_that_goes_when_the_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(rich.console, "Console", lambda **_: Console(file=shown, force_terminal=True, width=100))
    labels = Exploration(grouped(), random_state=0).run(progress=True).labels_
    assert "of the rows explored" in shown.getvalue()
    # The cursor, hidden while the bar moves, is shown again.
    assert shown.getvalue().rindex("\x1b[?25h") > shown.getvalue().rindex("\x1b[?25l")
    np.testing.assert_array_equal(labels, Exploration(grouped(), random_state=0).run().labels_)


def test_what_can_be_told_nothing_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match=r"progress must be None, True or a function .*; got 'loud'"):
        Exploration(grouped()).run(progress="loud")
    with watching(False) as watch:
        assert watch.progress is None
