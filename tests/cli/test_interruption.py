"""Ctrl-C in every command: one sentence, status 130, nothing half written, the session saved up to the last step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest

from commands import run
from imapce import Exploration
from imapce.datasets.catalogue import CATALOGUE
from imapce.tables.files import read_table, write_table

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is sent as a POSIX signal")

# The command as it is, with lines of progress often enough to tell where it stands.
COMMAND = (
    "import imapce.cli, imapce.common.progress as p, imapce.common.work as w; "
    "p.SECONDS_BETWEEN_LINES, w.SECONDS_BETWEEN_TELLINGS = 0.01, 0.0; imapce.cli.main()"
)
STOPPED = "imapce: stopped; no file is left half written.\n"
MORE_THAN_A_PIPE_HOLDS = 400_000


@pytest.fixture
def many_rows(tmp_path: Path) -> Path:
    """Rows that take a while: eight groups in twelve columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 12)) + 9 * np.eye(8, 12)[rng.integers(0, 8, 6000)]
    path = tmp_path / "rows.csv"
    write_table({f"d_{place}": column for place, column in enumerate(X.T)}, path)
    return path


@contextmanager
def started(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words], cwd=folder, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def stopped_after(process: subprocess.Popen[str], words: str) -> str:
    """Send Ctrl-C once a line of progress holds these words; what is said last."""
    assert process.stderr is not None
    assert process.stdout is not None
    while words not in (line := process.stderr.readline()):
        assert line, "it ended before it was stopped"
    process.send_signal(signal.SIGINT)
    said = process.stderr.readlines()
    assert process.wait() == 130
    assert process.stdout.read() == ""
    assert "Traceback" not in "".join(said)
    return said[-1]


@pytest.mark.parametrize(
    ("words", "moment"),
    [
        (("embed", "rows.csv", "-o", "v.csv", "--save", "m.imapce", "--report", "r.html", "--plot", "p.png"), "round"),
        (("compare", "rows.csv", "--methods", "KurtosisPursuit", "-o", "comparison"), "fitting kurtosis pursuit"),
        (("demo", "--out", "tour"), "fitting, scoring and drawing"),
    ],
)
def test_a_command_at_work_leaves_nothing(words: tuple[str, ...], moment: str, many_rows: Path) -> None:
    with started(many_rows.parent, *words) as process:
        assert stopped_after(process, moment) == STOPPED
    assert [path.name for path in many_rows.parent.iterdir()] == ["rows.csv"]


def test_an_exploration_is_saved_up_to_its_last_step(many_rows: Path) -> None:
    session = many_rows.parent / "s.imapce"
    with started(many_rows.parent, "explore", "rows.csv", "--session", "s.imapce", "-o", "c.csv") as process:
        said = stopped_after(process, "step 2")
    table = read_table(many_rows)
    steps = len(Exploration.load(session, table, autosave=False).steps)
    assert steps >= 1
    plural = "step" if steps == 1 else "steps"
    assert said == f"imapce: stopped after {steps} {plural}; it is in s.imapce; add --resume to go on.\n"
    assert sorted(path.name for path in many_rows.parent.iterdir()) == ["rows.csv", "s.imapce"]
    with started(many_rows.parent, "explore", "rows.csv", "--session", "s.imapce", "--resume", "-q") as process:
        process.communicate()
        assert process.returncode == 0
    assert len(Exploration.load(session, table).steps) > steps


def test_an_exploration_stopped_in_its_first_step_keeps_its_settings(many_rows: Path) -> None:
    words = ("explore", "rows.csv", "--session", "s.imapce", "--min-cluster-size", "77")
    with started(many_rows.parent, *words) as process:
        said = stopped_after(process, "step 1")
    assert said == "imapce: stopped after 0 steps; it is in s.imapce; add --resume to go on.\n"
    assert Exploration.load(many_rows.parent / "s.imapce", read_table(many_rows)).min_cluster_size == 77


@pytest.mark.parametrize(
    "words",
    [
        ("embed", "-", "-o", "v.csv"),
        ("explore", "-", "-o", "v.csv"),
        ("compare", "-", "-o", "comparison"),
        ("transform", "view.imapce", "-", "-o", "v.csv"),
    ],
)
def test_a_command_that_reads_leaves_nothing(words: tuple[str, ...], model: Path) -> None:
    before = sorted(path.name for path in model.parent.iterdir())
    with started(model.parent, *words) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        # Once this much is taken, the command has begun to read; it waits for the rest.
        process.stdin.write("1,2,3\n" * (MORE_THAN_A_PIPE_HOLDS // 6))
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr.read().endswith(STOPPED)
    assert sorted(path.name for path in model.parent.iterdir()) == before


def test_info_stops_while_it_reads(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with started(tmp_path, "info", "pipe") as process:
        # Opening waits for a reader, so the command is reading when this returns.
        with open(tmp_path / "pipe", "wb"):
            process.send_signal(signal.SIGINT)
            assert process.wait() == 130
        assert process.stderr is not None
        assert process.stderr.read() == STOPPED


def test_datasets_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(CATALOGUE[0]), "is_on_disk", interrupted)
    result = run("datasets")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", STOPPED)
