"""Two writers on one session file: the second is refused by name, nothing is lost, and the dead hold nothing."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from subprocess import PIPE
from typing import TextIO

import numpy as np
import pytest

from imapce import IMAPCE, Exploration
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.exploration.own_file import FileLock

X = np.random.default_rng(0).normal(size=(120, 6)) + 8 * np.eye(3, 6)[np.arange(120) % 3]
ESTIMATOR = IMAPCE(mu=50.0, alpha=0.0, n_starts=2)

# Importing takes seconds, so one process imports and forks another for every line: a path, and the pipes on which that
# one is told and answers. It opens the session, says who it is, and does what it is told until it is killed.
FORKING = textwrap.dedent(
    """
    import os, sys
    import numpy as np
    from imapce import IMAPCE, Exploration

    X = np.load(sys.argv[1])
    for line in sys.stdin:
        path, orders, answers = line.rstrip("\\n").split("\\t")
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            print("ended", flush=True)
            continue
        try:
            with open(orders) as told, open(answers, "w", buffering=1) as said:
                if os.path.exists(path):
                    exploration = Exploration.load(path, X)
                else:
                    estimator = IMAPCE(mu=50.0, alpha=0.0, n_starts=2)
                    exploration = Exploration(X, estimator=estimator, random_state=0, path=path)
                said.write(f"{os.getpid()}\\n")
                for order in told:
                    if order.strip() == "accept":
                        exploration.accept()
                        said.write(f"{len(exploration.steps)}\\n")
        finally:
            os._exit(1)
    """
)


def new(path: Path | None = None) -> Exploration:
    return Exploration(X, estimator=ESTIMATOR, random_state=0, path=path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A session of one step that nobody holds."""
    place = tmp_path / "session.imapce"
    new(place).accept()
    return place


@dataclass
class Other:
    """A process that has a session open."""

    pid: int
    orders: TextIO
    answers: TextIO

    def told(self, word: str) -> str:
        self.orders.write(f"{word}\n")
        self.orders.flush()
        return self.answers.readline().strip()


Open = Callable[[Path], AbstractContextManager[Other]]


@pytest.fixture(scope="module")
def another_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Another process with a session open, killed at the end of the block: nobody holds anything after it."""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    folder = tmp_path_factory.mktemp("pipes")
    np.save(folder / "X.npy", X)
    command = [sys.executable, "-c", FORKING, str(folder / "X.npy")]
    numbers = count()
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        forks, ends = parent.stdin, parent.stdout

        @contextmanager
        def opened(path: Path) -> Iterator[Other]:
            pipes = [folder / f"{word}{next(numbers)}" for word in ("orders", "answers")]
            for pipe in pipes:
                os.mkfifo(pipe)
            forks.write("\t".join(map(str, (path, *pipes))) + "\n")
            forks.flush()
            with open(pipes[0], "w") as orders, open(pipes[1]) as answers:
                other = Other(int(answers.readline()), orders, answers)
                try:
                    yield other
                finally:
                    os.kill(other.pid, signal.SIGKILL)
                    assert ends.readline() == "ended\n"

        yield opened
        forks.close()


def test_a_second_process_is_refused_by_name_and_the_first_goes_on(path: Path, another_process: Open) -> None:
    with another_process(path) as other:
        before = path.read_bytes()
        for attempt in (lambda: Exploration.load(path, X), lambda: new().save(path)):
            with pytest.raises(InvalidValueError) as caught:
                attempt()
            sentence = str(caught.value)
            assert f"{str(path)!r} is being written by process {other.pid} on " in sentence
            assert "\n" not in sentence
        assert path.read_bytes() == before
        assert len(Exploration.load(path, X, autosave=False).steps) == 1
        assert other.told("accept") == "2"
    assert len(Exploration.load(path, X).steps) == 2


def test_a_new_file_is_held_before_anything_is_written_to_it(tmp_path: Path, another_process: Open) -> None:
    path = tmp_path / "new.imapce"
    with another_process(path) as other:
        assert not path.exists()
        with pytest.raises(InvalidValueError, match=rf"process {other.pid} on "):
            new(path)
    assert new(path).accept().clusters


def test_a_link_is_the_file_it_leads_to(path: Path, tmp_path: Path, another_process: Open) -> None:
    link = tmp_path / "link.imapce"
    link.symlink_to(path)
    with another_process(link), pytest.raises(InvalidValueError, match="is being written by process"):
        Exploration.load(path, X)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_process_leaves_a_session_to_go_on_with_and_no_lock(path: Path, another_process: Open) -> None:
    # It is killed at the end of the block, with the session open.
    with another_process(path) as other:
        assert other.told("accept") == "2"
    exploration = Exploration.load(path, X)
    assert len(exploration.steps) == 2
    exploration.undo()
    assert len(Exploration.load(path, X).steps) == 1


def test_what_is_let_go_leaves_no_file_behind(path: Path) -> None:
    held = Exploration.load(path, X)
    assert sorted(entry.name for entry in path.parent.iterdir()) == [".session.imapce.lock", "session.imapce"]
    del held
    assert [entry.name for entry in path.parent.iterdir()] == ["session.imapce"]


def test_of_two_sessions_in_one_process_the_later_write_is_refused(path: Path, tmp_path: Path) -> None:
    one, other = Exploration.load(path, X), Exploration.load(path, X)
    one.undo()
    after = path.read_bytes()
    with pytest.raises(InvalidValueError) as caught:
        other.accept()
    assert f"{str(path)!r} was changed since by another session of this process ({os.getpid()})" in str(caught.value)
    assert path.read_bytes() == after
    assert len(other.steps) == 1
    other.save(tmp_path / "kept.imapce")
    assert len(Exploration.load(tmp_path / "kept.imapce", X).steps) == 1
    one.redo()


def test_a_file_put_in_its_place_is_not_overwritten(path: Path, tmp_path: Path) -> None:
    exploration = Exploration.load(path, X)
    new().save(tmp_path / "empty.imapce")
    path.write_bytes((tmp_path / "empty.imapce").read_bytes() + b"more")
    foreign = path.read_bytes()
    with pytest.raises(InvalidValueError, match=r"was changed since by \S+ at \d{4}-\d\d-\d\d"):
        exploration.undo()
    assert path.read_bytes() == foreign
    assert len(exploration.steps) == 1


def test_a_removed_file_is_written_again(path: Path) -> None:
    exploration = Exploration.load(path, X)
    path.unlink()
    exploration.undo()
    assert Exploration.load(path, X).steps == []


def test_many_threads_lose_nothing(path: Path) -> None:
    exploration = Exploration.load(path, X)
    failures: list[BaseException] = []

    def save() -> None:
        try:
            for _ in range(5):
                exploration.save(path)
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(Exploration.load(path, X).steps) == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_writes_only_what_it_has_seen(path: Path, copied: object) -> None:
    first = Exploration.load(path, X)
    second = copied(first)  # type: ignore[operator]
    assert second.path == path
    second.undo()
    with pytest.raises(InvalidValueError, match="another session of this process"):
        first.undo()
    assert Exploration.load(path, X).steps == []


def _undo_in_child(exploration: Exploration, answers: multiprocessing.SimpleQueue[str]) -> None:
    try:
        exploration.undo()
    except InvalidValueError as problem:
        answers.put(str(problem))
    else:
        answers.put("written")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_is_another_process(path: Path) -> None:
    exploration = Exploration.load(path, X)
    fork = multiprocessing.get_context("fork")
    answers: multiprocessing.SimpleQueue[str] = fork.SimpleQueue()
    child = fork.Process(target=_undo_in_child, args=(exploration, answers))
    child.start()
    child.join()
    assert f"is being written by process {os.getpid()} on " in answers.get()
    # Neither did the end of the child take the lock of its parent away.
    assert FileLock(path).holds
    exploration.undo()
    assert Exploration.load(path, X).steps == []


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match="path must be the name of a file, got None"):
        Exploration.load(None, X)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="path must be the name of a file, got 3"):
        new().save(3)  # type: ignore[arg-type]


def test_data_that_cannot_be_read_is_not_the_fault_of_the_file(path: Path) -> None:
    with pytest.raises(InvalidTypeError, match=r"^X ") as caught:
        Exploration.load(path, X.astype(str))
    assert "whole imapce session" not in str(caught.value)


def test_the_command_line_refuses_a_session_that_another_process_writes(
    path: Path, tmp_path: Path, another_process: Open
) -> None:
    from commands import refusal
    from imapce.tables.files import write_table

    write_table({f"x{place}": column for place, column in enumerate(X.T)}, tmp_path / "rows.csv")
    with another_process(path) as other:
        before = path.read_bytes()
        sentence = refusal("explore", tmp_path / "rows.csv", "--session", path, "--resume")
        assert sentence.startswith("imapce: --session must be a session that no other process writes, and ")
        assert f"is being written by process {other.pid} on " in sentence
        assert sentence.endswith(": end that process or choose another name.\n")
        assert path.read_bytes() == before
