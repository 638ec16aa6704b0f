"""A full disk, a read-only folder and a folder that is a file: one sentence for every call that writes, nothing lost.

A limit on the size of files (`RLIMIT_FSIZE`) stands for the full disk wherever the system knows one; where a small
file system may be mounted, a disk that is really full is tried as well.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

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
SCRIPT = """
    import resource, signal, sys
    import numpy as np
    from imapce import IMAPCE, Exploration, ImapceError
    from imapce.plotting import plot_embedding, save_figure, write_view_report
    from imapce.tables.files import write_table

    limit, folder = int(sys.argv[1]), sys.argv[2]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)) + 9 * np.eye(3, 4)[np.arange(400) % 3]
    wide = {f"c{i}": rng.normal(size=20_000) for i in range(4)}
    model = IMAPCE(mu=10.0, alpha=0.0, n_starts=2, random_state=0).fit(X)
    exploration = Exploration(X, estimator=IMAPCE(mu=10.0, alpha=0.0, n_starts=2), random_state=0)
    exploration.accept()
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for name, call in CALLS.items():
        path = f"{folder}/{name}"
        try:
            eval(call)
        except ImapceError as problem:
            print(name, "|", problem)
        else:
            print(name, "| was written")
"""


def sentences(folder: Path, limit: int) -> dict[str, str]:
    """What every call says when it is to write into `folder`."""
    script = f"CALLS = {CALLS!r}\n{textwrap.dedent(SCRIPT)}"
    done = subprocess.run(
        [sys.executable, "-c", script, str(limit), str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = dict(line.split(" | ", 1) for line in done.stdout.splitlines())
    assert list(told) == list(CALLS)
    return told


def filled(folder: Path) -> None:
    for name in CALLS:
        (folder / name).write_bytes(OLD)


def require_nothing_lost(folder: Path) -> None:
    assert {entry.name for entry in folder.iterdir()} == set(CALLS)
    assert {(folder / name).read_bytes() for name in CALLS} == {OLD}


@needs_file_limit
def test_a_file_that_outgrows_its_limit_is_one_sentence_and_the_old_one_stays(tmp_path: Path) -> None:
    filled(tmp_path)
    for name, told in sentences(tmp_path, limit=600).items():
        assert told.startswith("path must be a place that can be written, got "), told
        assert repr(str(tmp_path / name)) in told
        assert "(File too large): free it or choose another." in told
    require_nothing_lost(tmp_path)


@needs_file_limit
def test_what_fits_is_written(tmp_path: Path) -> None:
    told = sentences(tmp_path, limit=1 << 24)
    assert set(told.values()) == {"was written"}
    assert {entry.name for entry in tmp_path.iterdir()} == set(CALLS)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "size=64k") as folder:
        filled(folder)
        # Pages of 4 kB: what is left after the old files and this one is not enough for any of the new ones.
        (folder / "ballast").write_bytes(b"\0" * (64 - 4 * len(CALLS)) * 1024)
        yield folder


def test_a_disk_that_is_full_is_one_sentence_and_the_old_files_stay(tiny_disk: Path) -> None:
    for name, told in sentences(tiny_disk, limit=0).items():
        assert "(No space left on device): free it or choose another." in told
        assert repr(str(tiny_disk / name)) in told
    (tiny_disk / "ballast").unlink()
    require_nothing_lost(tiny_disk)


def test_a_read_only_folder_is_one_sentence(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=64k") as folder:
        filled(folder)
        with mounted(folder, "ro,remount"):
            for told in sentences(folder, limit=0).values():
                assert told.startswith("path must lie in a folder that can be written, got ")
                assert told.endswith(": choose another folder.")
            require_nothing_lost(folder)


def test_a_folder_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_bytes(OLD)
    for told in sentences(taken, limit=0).values():
        assert told.startswith("path must lie in an existing folder, got ")
        assert told.endswith(f": {str(taken)!r} is a file, choose a folder.")
    assert taken.read_bytes() == OLD
