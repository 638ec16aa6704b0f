"""A full disk, a read-only folder and a folder that is a file: one sentence for every call that writes, nothing lost.

A limit on the size of files (`RLIMIT_FSIZE`) stands for the full disk wherever the system knows one; where a small
file system may be mounted, a disk that is really full is tried as well.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from faults import OLD, mounted, needs_file_limit

# What a user would call, each told the file to write as `path`.
CALLS = {
    "view.parquet": "write_table(wide, path)",
    "view.csv": "write_table(wide, path)",
    "view.arrow": "write_table(wide, path)",
    "view.npy": "write_table(np.column_stack(list(wide.values())), path)",
    "view.imapce": "model.save(path)",
    "session.imapce": "exploration.save(path)",
    "report.html": "exploration.report(path)",
    "page.html": "write_view_report(model, X, path)",
    "view.png": "save_figure(plot_embedding(X[:, :2]), path)",
    "view.pdf": "save_figure(plot_embedding(X[:, :2]), path)",
}
# Importing and fitting take seconds, so one process does that and forks another for every line "limit folder", which
# makes all calls; how that one ended is said last.
FORKING = """
    import os, resource, signal, sys
    import numpy as np
    from imapce import IMAPCE, Exploration, ImapceError
    from imapce.plotting import plot_embedding, save_figure, write_view_report
    from imapce.tables.files import write_table

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)) + 9 * np.eye(3, 4)[np.arange(400) % 3]
    wide = {f"c{i}": rng.normal(size=20_000) for i in range(4)}
    model = IMAPCE(mu=10.0, alpha=0.0, n_starts=2, random_state=0).fit(X)
    exploration = Exploration(X, estimator=IMAPCE(mu=10.0, alpha=0.0, n_starts=2), random_state=0)
    exploration.accept()
    for line in sys.stdin:
        limit, folder = line.rstrip().split(maxsplit=1)
        pid = os.fork()
        if pid:
            print("ended |", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
            continue
        status = 1
        try:
            if int(limit):
                resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
            for name, call in CALLS.items():
                path = f"{folder}/{name}"
                try:
                    eval(call)
                except ImapceError as problem:
                    print(name, "|", problem, flush=True)
                else:
                    print(name, "| was written", flush=True)
            status = 0
        finally:
            os._exit(status)
"""
Sentences = Callable[[Path, int], dict[str, str]]


@pytest.fixture(scope="module")
def sentences() -> Iterator[Sentences]:
    """What every call says when it is to write into a folder, with a limit on the size of files."""
    script = f"CALLS = {CALLS!r}\n{textwrap.dedent(FORKING)}"
    with subprocess.Popen([sys.executable, "-c", script], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        orders, answers = process.stdin, process.stdout

        def ask(folder: Path, limit: int) -> dict[str, str]:
            orders.write(f"{limit} {folder}\n")
            orders.flush()
            told: dict[str, str] = {}
            while "ended" not in told:
                line = answers.readline()
                assert line, "the process that forks is gone"
                told.update([line.rstrip("\n").split(" | ", 1)])
            assert told.pop("ended") == "0"
            assert list(told) == list(CALLS)
            return told

        yield ask
        orders.close()
    assert process.returncode == 0


def filled(folder: Path) -> None:
    for name in CALLS:
        (folder / name).write_bytes(OLD)


def require_nothing_lost(folder: Path) -> None:
    assert {entry.name for entry in folder.iterdir()} == set(CALLS)
    assert {(folder / name).read_bytes() for name in CALLS} == {OLD}


@needs_file_limit
def test_a_file_that_outgrows_its_limit_is_one_sentence_and_the_old_one_stays(
    sentences: Sentences, tmp_path: Path
) -> None:
    filled(tmp_path)
    for name, told in sentences(tmp_path, 600).items():
        assert told.startswith("path must be a place that can be written, got "), told
        assert repr(str(tmp_path / name)) in told
        assert "(File too large): free it or choose another." in told
    require_nothing_lost(tmp_path)


@needs_file_limit
def test_what_fits_is_written(sentences: Sentences, tmp_path: Path) -> None:
    told = sentences(tmp_path, 1 << 24)
    assert set(told.values()) == {"was written"}
    assert {entry.name for entry in tmp_path.iterdir()} == set(CALLS)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "size=64k") as folder:
        filled(folder)
        # Pages of 4 kB: what is left after the old files and this one is not enough for any of the new ones.
        (folder / "ballast").write_bytes(b"\0" * (64 - 4 * len(CALLS)) * 1024)
        yield folder


def test_a_disk_that_is_full_is_one_sentence_and_the_old_files_stay(sentences: Sentences, tiny_disk: Path) -> None:
    for name, told in sentences(tiny_disk, 0).items():
        assert "(No space left on device): free it or choose another." in told
        assert repr(str(tiny_disk / name)) in told
    (tiny_disk / "ballast").unlink()
    require_nothing_lost(tiny_disk)


def test_a_read_only_folder_is_one_sentence(sentences: Sentences, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=64k") as folder:
        filled(folder)
        with mounted(folder, "ro,remount"):
            for told in sentences(folder, 0).values():
                assert told.startswith("path must lie in a folder that can be written, got ")
                assert told.endswith(": choose another folder.")
            require_nothing_lost(folder)


def test_a_folder_that_is_a_file_is_one_sentence(sentences: Sentences, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_bytes(OLD)
    for told in sentences(taken, 0).values():
        assert told.startswith("path must lie in an existing folder, got ")
        assert told.endswith(f": {str(taken)!r} is a file, choose a folder.")
    assert taken.read_bytes() == OLD
