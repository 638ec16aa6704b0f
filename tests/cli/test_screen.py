"""What a terminal shows: progress only where someone watches."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from imapce.cli import screen
from imapce.cli.screen import exploration_progress, fit_progress


def test_nobody_is_told_of_progress_where_stderr_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with exploration_progress() as watch_rows, fit_progress() as watch_fit:
        assert watch_rows is None
        assert watch_fit is False
    assert capfd.readouterr() == ("", "")


def test_an_exploration_in_a_terminal_shows_its_step_and_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(screen, "Console", lambda **_: Console(file=shown, force_terminal=True, width=90))
    with exploration_progress() as watch:
        assert watch is not None
        watch("step 2", 0.25)
    assert "step 2" in shown.getvalue()
    assert "25%" in shown.getvalue()
