"""Run `imapce` in this process as a user would in a shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from imapce.cli import app
from imapce.common import progress

FEATURES = [f"d_{place}" for place in range(10)]
QUICK = ("--starts", "3")

# On a busy machine a quick command takes long enough for a line of progress; what that says is another test's matter.
progress.SECONDS_BETWEEN_LINES = 1e6


def run(*words: Any) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def succeed(*words: Any) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    assert beside_columns_alike(result.stderr) == ""
    return result.stdout


def beside_columns_alike(stderr: str) -> str:
    """What a command said but for notes on columns that repeat others or tell the known: made-up tables have many."""
    lines = stderr.splitlines(keepends=True)
    alike = (" repeats '", " to --known?")
    return "".join(line for line in lines if not (line.startswith("imapce: note: ") and any(a in line for a in alike)))


def refusal(*words: Any) -> str:
    """The one line on stderr of a command that must fail."""
    result = run(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    told = beside_columns_alike(result.stderr)
    assert told.startswith("imapce: ")
    assert told.count("\n") == 1
    return told


def files_beside(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir())
