"""Every output of every command on a disk that is full: one line that names the option, the old file as it was."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from faults import OLD, needs_file_limit

FILES = {
    "embed -o": ("embed", "rows.csv", "-o", "view.csv"),
    "embed --plot": ("embed", "rows.csv", "--plot", "view.png"),
    "embed --save": ("embed", "rows.csv", "--save", "view.imapce"),
    "embed --report": ("embed", "rows.csv", "--report", "view.html"),
    "transform -o": ("transform", "model.imapce", "rows.csv", "-o", "new.parquet"),
    "transform --plot": ("transform", "model.imapce", "rows.csv", "--plot", "new.svg"),
    "explore -o": ("explore", "rows.csv", "-o", "clusters.arrow"),
    "explore --report": ("explore", "rows.csv", "--report", "clusters.html"),
}
# These are new files and folders, since an old session or a folder of others is refused before.
NEW = {
    "explore --session": ("explore", "rows.csv", "--session", "session.imapce"),
    "compare -o": ("compare", "rows.csv", "--methods", "PCA", "-o", "comparison"),
    "demo --out": ("demo", "--out", "tour"),
}
OPTIONS = {"-o": "--output"}
# One process for all, since importing takes seconds; each command runs as it does in a shell.
SCRIPT = textwrap.dedent(
    """
    import json, resource, signal, sys
    from typer.testing import CliRunner
    from imapce import datasets
    from imapce.cli import app
    from imapce.tables.files import write_table

    data = datasets.make_synthetic(300)
    write_table({f"d_{place}": column for place, column in enumerate(data.X.T)}, "rows.csv")
    assert CliRunner().invoke(app, ["embed", "rows.csv", "--starts", "2", "--save", "model.imapce"]).exit_code == 0
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, resource.RLIM_INFINITY))
    said = {}
    for name, words in json.loads(sys.argv[1]).items():
        result = CliRunner().invoke(app, words)
        said[name] = (result.exit_code, result.stdout, result.stderr, repr(result.exception))
    sys.stdout.write(json.dumps(said))
    """
)


@needs_file_limit
def test_every_output_says_one_sentence_and_leaves_what_was_there(tmp_path: Path) -> None:
    old = [words[-1] for words in FILES.values()]
    for name in old:
        (tmp_path / name).write_bytes(OLD)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(FILES | NEW)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, (status, stdout, stderr, exception) in json.loads(done.stdout).items():
        option, target = OPTIONS.get(name.split()[1], name.split()[1]), (FILES | NEW)[name][-1]
        *notes, last = stderr.splitlines()
        assert status == 2, (name, stderr, exception)
        assert stdout == "", name
        assert last == (
            f"imapce: {option} must be a place that can be written, got {target!r} (File too large): free it or choose "
            "another."
        ), name
        assert all(line.startswith(("imapce: note: ", "imapce: ")) for line in notes), name
    assert {(tmp_path / name).read_bytes() for name in old} == {OLD}
    assert {entry.name for entry in tmp_path.iterdir()} == {"rows.csv", "model.imapce", *old}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [("datasets",), ("datasets", "--json"), ("embed", "plain.csv", "-o", "-")])
def test_a_full_standard_output_is_one_sentence(words: tuple[str, ...], plain: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "imapce", *words],
            cwd=plain.parent,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.endswith(
        "imapce: standard output cannot be written (No space left on device): send it elsewhere.\n"
    )
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_a_reader_that_stops_reading_is_no_fault() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "imapce", "datasets"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
