"""Sessions on disk: every state comes back, on its own data only, and no crash or hostile file does harm."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import sparse

import imapce
from archives import repacked, unpacked
from imapce import IMAPCE, Attributes, Exploration, Samples, Subset
from imapce.errors import FileFormatError, InvalidValueError

SOURCE = Path(imapce.__file__).parents[1]
NAMES = [f"c{i}" for i in range(6)]


def planted(n_rows: int = 120, n_groups: int = 3) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(n_rows, 6))
    data[:, :n_groups] += 8 * np.eye(n_groups)[np.arange(n_rows) % n_groups]
    return data


X = planted()


def session(data: Any = None, **changes: Any) -> Exploration:
    options: dict[str, Any] = {"estimator": IMAPCE(mu=50.0, n_starts=3), "random_state": 0} | changes
    return Exploration(X if data is None else data, **options)


def stepped(**changes: Any) -> Exploration:
    """One automatic step and one by hand."""
    exploration = session(**changes).run(max_steps=1)
    exploration.accept(mask=np.flatnonzero(~exploration.known)[:5])
    return exploration


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sessions") / "session.imapce"
    prior = [Subset([0, 1]), Attributes([5], weight=2.0), Samples(X[:20])]
    stepped(prior=prior).save(path)
    return path


Changed = tuple[dict[str, Any], dict[str, NDArray]]


def refused(path: Path, data: Any, *parts: str, kind: type[InvalidValueError] = InvalidValueError) -> None:
    with pytest.raises(kind) as caught:
        Exploration.load(path, data)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message


# --- there and back ---------------------------------------------------------------------------------------------------


def test_every_part_of_a_session_comes_back(saved: Path) -> None:
    prior = [Subset([0, 1]), Attributes([5], weight=2.0), Samples(X[:20])]
    before, after = stepped(prior=prior), Exploration.load(saved, X)
    for name in ("min_cluster_size", "max_clusters", "random_state", "clusterer", "stop_reason"):
        assert getattr(after, name) == getattr(before, name), name
    np.testing.assert_array_equal(after.labels_, before.labels_)
    np.testing.assert_array_equal(after.known, before.known)
    assert len(after.steps) == len(before.steps) == 2
    for one, two in zip(after.steps, before.steps, strict=True):
        for part in ("components", "mean", "scale"):
            np.testing.assert_array_equal(getattr(one, part), getattr(two, part))
        assert (one.objective, one.kurtosis, one.view) == (two.objective, two.kurtosis, two.view)
        for a, b in zip(one.clusters, two.clusters, strict=True):
            np.testing.assert_array_equal(a.rows, b.rows)
            assert (a.distinctness, a.overlap, a.chosen) == (b.distinctness, b.overlap, b.chosen)
            assert a.features == b.features
    pd.testing.assert_frame_equal(after.to_frame(), before.to_frame())


def test_saving_a_loaded_session_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    Exploration.load(saved, X).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_the_same_state_gives_the_same_bytes(tmp_path: Path) -> None:
    stepped().save(tmp_path / "one")
    stepped().save(tmp_path / "two")
    stepped().undo().redo().save(tmp_path / "three")
    contents = {(tmp_path / name).read_bytes() for name in ("one", "two", "three")}
    assert len(contents) == 1


@pytest.mark.parametrize("changes", [{"max_clusters": 4}, {"min_cluster_size": 11}, {"random_state": 1}])
def test_another_state_gives_other_bytes(changes: dict[str, Any], tmp_path: Path) -> None:
    session().save(tmp_path / "one")
    session(**changes).save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() != (tmp_path / "two").read_bytes()


def test_a_session_is_readable_without_the_library(saved: Path) -> None:
    header, arrays = unpacked(saved)
    assert (header["format"], header["version"], header["n_rows"]) == ("imapce-session", 3, 120)
    assert header["columns"] == [f"x{i}" for i in range(6)]
    exploration = Exploration.load(saved, X)
    for i, step in enumerate(exploration.steps):
        for j, cluster in enumerate(step.clusters):
            np.testing.assert_array_equal(arrays[f"step{i}_cluster{j}_rows"], cluster.rows)
            assert header["steps"][i]["clusters"][j]["distinctness"] == cluster.distinctness
    np.testing.assert_array_equal(np.flatnonzero(arrays["known_at_start"]), [0, 1])


def test_a_session_from_pandas_loads_on_the_same_polars_table(tmp_path: Path) -> None:
    table = pd.DataFrame(X + 1e6, columns=NAMES).assign(kind=pd.Categorical(np.array(["a", "b"])[np.arange(120) % 2]))
    stepped(data=table).save(tmp_path / "pandas")
    same = pl.DataFrame({name: table[name].tolist() for name in table.columns})
    on_pandas = Exploration.load(tmp_path / "pandas", table, autosave=False)
    on_polars = Exploration.load(tmp_path / "pandas", same, autosave=False)
    assert isinstance(on_polars.to_frame(), pl.DataFrame)
    np.testing.assert_array_equal(on_polars.run(max_steps=1).labels_, on_pandas.run(max_steps=1).labels_)


@pytest.mark.parametrize("kind", [np.asfortranarray, sparse.csr_array, lambda a: a[:, ::-1][:, ::-1]])
def test_the_layout_in_memory_is_no_other_data(kind: Callable[[Any], Any], tmp_path: Path) -> None:
    stepped(data=kind(X)).save(tmp_path / "one")
    loaded = Exploration.load(tmp_path / "one", kind(X.copy()))
    assert len(loaded.steps) == 2


def test_minus_zero_is_zero(tmp_path: Path) -> None:
    data = X.copy()
    data[0, 0] = 0.0
    session(data).save(tmp_path / "one")
    data[0, 0] = -0.0
    Exploration.load(tmp_path / "one", data)


# --- saving as it goes ------------------------------------------------------------------------------------------------


def test_every_accept_undo_and_redo_is_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "auto"
    exploration = session(path=path)
    assert not path.exists()

    def in_file() -> NDArray[np.intp]:
        return Exploration.load(path, X, autosave=False).labels_

    moves: list[Callable[[], Any]] = [
        exploration.accept,
        lambda: exploration.accept(mask=np.flatnonzero(~exploration.known)[:3]),
        exploration.undo,
        exploration.redo,
        lambda: exploration.undo(2),
    ]
    for move in moves:
        move()
        np.testing.assert_array_equal(in_file(), exploration.labels_)


def test_a_loaded_session_goes_on_in_its_file_unless_told_not_to(tmp_path: Path) -> None:
    path = tmp_path / "auto"
    session(path=path).run(max_steps=1)
    before = path.read_bytes()
    Exploration.load(path, X, autosave=False).undo()
    assert path.read_bytes() == before
    Exploration.load(path, X).undo()
    assert Exploration.load(path, X).steps == []


def test_a_save_that_fails_leaves_the_session_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    exploration = session(path=folder / "auto")
    exploration.accept()
    kept, labels = exploration.steps, exploration.labels_
    proposal = exploration.propose()
    shutil.rmtree(folder)
    for move in (exploration.accept, exploration.undo):
        with pytest.raises(InvalidValueError, match="path must lie in an existing folder") as caught:
            move()
        assert "\n" not in str(caught.value)
        assert exploration.steps == kept
        np.testing.assert_array_equal(exploration.labels_, labels)
        assert exploration.propose() is proposal
    folder.mkdir()
    exploration.accept()
    np.testing.assert_array_equal(Exploration.load(folder / "auto", X).labels_, exploration.labels_)


def test_a_target_that_is_a_folder_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="path must name a file"):
        session(path=tmp_path)
    exploration = session()
    with pytest.raises(InvalidValueError, match="path must name a file"):
        exploration.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- other data -------------------------------------------------------------------------------------------------------


def changed(row: int, column: int, value: float) -> NDArray[np.float64]:
    data = X.copy()
    data[row, column] = value
    return data


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (X[:-1], "it has 119 rows and the session 120"),
        (np.vstack([X, X[:1]]), "it has 121 rows and the session 120"),
        (X[:, :-1], "it has 5 columns and the session 6"),
        (pd.DataFrame(X, columns=NAMES), "it has column 'c0' where the session has 'x0'"),
        (changed(3, 4, 100.0), "the values of 'x4' differ"),
        (X + 1.0, "the values of 'x0', 'x1', 'x2' and 3 more differ"),
        (X[::-1], "the rows are in another order or a few values differ"),
        (changed(3, 4, X[3, 4] + 1e-13), "the rows are in another order or a few values differ"),
    ],
)
def test_other_data_is_refused_by_what_differs(saved: Path, data: Any, part: str) -> None:
    refused(saved, data, "X must be the data of the session", part)


def test_renamed_columns_are_refused_by_name(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=NAMES)
    session(table).save(tmp_path / "named")
    refused(
        tmp_path / "named", table.rename(columns={"c2": "other"}), "it has column 'other' where the session has 'c2'"
    )
    refused(tmp_path / "named", table[[*NAMES[1:], NAMES[0]]], "it has column 'c1' where the session has 'c0'")


# --- damaged and hostile files ----------------------------------------------------------------------------------------


def test_a_file_cut_anywhere_is_refused(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    cut = tmp_path / "cut"
    for end in np.linspace(0, len(whole) - 1, 60).astype(int):
        cut.write_bytes(whole[:end])
        refused(cut, X, kind=FileFormatError)


def test_a_file_with_a_byte_flipped_is_refused_or_the_same_session(saved: Path, tmp_path: Path) -> None:
    whole = bytearray(saved.read_bytes())
    labels = Exploration.load(saved, X).labels_
    flipped = tmp_path / "flipped"
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 60):
        damaged = whole.copy()
        damaged[place] ^= 1 << int(rng.integers(8))
        flipped.write_bytes(damaged)
        try:
            loaded = Exploration.load(flipped, X)
        except InvalidValueError as error:
            assert "\n" not in str(error)  # noqa: PT017 - either outcome is right
        else:
            np.testing.assert_array_equal(loaded.labels_, labels)


def test_no_file_text_and_a_model_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "none", X, "is not a file", kind=FileFormatError)
    (tmp_path / "text").write_text("hello")
    refused(tmp_path / "text", X, "not a readable imapce session", kind=FileFormatError)
    IMAPCE(mu=50.0, n_starts=2).fit(X).save(tmp_path / "model")
    refused(tmp_path / "model", X, "must be a saved imapce session; it says it is 'imapce-model'", kind=FileFormatError)


def first_rows(value: Any) -> Callable[[Changed], None]:
    return lambda file: file[1].update(step0_cluster0_rows=np.asarray(value))


HOSTILE: dict[str, Callable[[Changed], Any]] = {
    "rows beyond the data": first_rows([5, 120]),
    "negative rows": first_rows([-1, 5]),
    "no rows": first_rows(np.zeros(0, dtype=int)),
    "rows twice in a cluster": first_rows([5, 5]),
    "rows taken by two steps": lambda file: file[1].update(step1_cluster0_rows=file[1]["step0_cluster0_rows"]),
    "rows known at the start": first_rows([0, 5]),
    "rows as a table": first_rows([[5, 6]]),
    "rows as fractions": first_rows([5.0, 6.0]),
    "rows as a mask": first_rows(np.ones(120, dtype=bool)),
    "components of another shape": lambda file: file[1].update(step0_components=np.eye(3, 6)),
    "mean of another shape": lambda file: file[1].update(step0_mean=np.zeros(5)),
    "scale of another shape": lambda file: file[1].update(step1_scale=np.zeros((6, 1))),
    "start of another length": lambda file: file[1].update(known_at_start=np.zeros(119, dtype=bool)),
    "start as numbers": lambda file: file[1].update(known_at_start=np.zeros(120)),
    "background of another width": lambda file: file[1].update(background1=np.zeros((4, 5))),
    "background with one axis": lambda file: file[1].update(background1=np.zeros(6)),
    "NaN in an array": lambda file: file[1].update(step0_mean=np.full(6, np.nan)),
    "no components": lambda file: file[1].pop("step0_components"),
    "no background": lambda file: file[1].pop("background1"),
    "no start": lambda file: file[1].pop("known_at_start"),
    "another version": lambda file: file[0].update(version=99),
    "no steps": lambda file: file[0].pop("steps"),
    "steps as a number": lambda file: file[0].update(steps=3),
    "a step without clusters": lambda file: file[0]["steps"][0].update(clusters=[]),
    "a step too many": lambda file: file[0]["steps"].append(file[0]["steps"][0]),
    "features as text": lambda file: file[0]["steps"][0]["clusters"][0].update(features=["abc", 1]),
    "distinctness as text": lambda file: file[0]["steps"][0]["clusters"][0].update(distinctness="much"),
    "objective as a list": lambda file: file[0]["steps"][0].update(objective=[1]),
    "seed as text": lambda file: file[0].update(random_state="x"),
    "a negative seed": lambda file: file[0].update(random_state=-5),
    "cluster size of zero": lambda file: file[0].update(min_cluster_size=0),
    "an unknown clusterer": lambda file: file[0].update(clusterer="os.system"),
    "an unknown parameter": lambda file: file[0]["parameters"].update(shell="rm"),
    "a parameter out of range": lambda file: file[0]["parameters"].update(n_starts=0),
    "parameters as a list": lambda file: file[0].update(parameters=[1]),
    "an unknown prior": lambda file: file[0]["priors"][0].update(kind="pickle"),
    "a negative weight": lambda file: file[0]["priors"][0].update(weight=-1.0),
    "a negative weight of the known": lambda file: file[0].update(subset_weight=-1.0),
    "columns as a number": lambda file: file[0].update(columns=6),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_sentence(name: str, saved: Path, tmp_path: Path) -> None:
    file = unpacked(saved)
    assert len(Exploration.load(repacked(tmp_path / "whole", *file), X).steps) == 2
    HOSTILE[name](file)
    refused(repacked(tmp_path / "hostile", *file), X)


def test_a_refused_file_stays_as_it_is(saved: Path) -> None:
    before = saved.read_bytes()
    refused(saved, X[::-1])
    assert saved.read_bytes() == before


# --- a killed process -------------------------------------------------------------------------------------------------

# Importing takes seconds, so one process imports and forks an explorer for every line "path delay"; it kills the
# explorer after the delay (a negative one waits for its end) and says how it ended.
AT_THE_FIRST_STEP = -2.0
FORKING = f"AT_THE_FIRST_STEP = {AT_THE_FIRST_STEP}\n" + textwrap.dedent(
    """
    import os, signal, sys, time
    import numpy as np
    from imapce import IMAPCE, Exploration

    X = np.load(sys.argv[1])
    for line in sys.stdin:
        path, delay = line.rsplit(maxsplit=1)
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            exploration = Exploration(X, estimator=IMAPCE(mu=50.0, n_starts=2), random_state=0, path=path)

            def report(step, accepted):
                # One write a line: under PYTHONUNBUFFERED print writes the newline apart, and a kill may come between.
                os.write(1, b"%d\\n" % len(exploration.steps))
                if float(delay) == AT_THE_FIRST_STEP:
                    os.kill(os.getpid(), signal.SIGKILL)

            exploration.run(callback=report)
            os._exit(0)
        if float(delay) >= 0:
            time.sleep(float(delay))
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        print("ended", os.waitstatus_to_exitcode(status), time.monotonic() - began, flush=True)
    """
)


def test_a_killed_exploration_loses_at_most_the_step_at_hand(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", FORKING, str(tmp_path / "X.npy")]
    whole = session(estimator=IMAPCE(mu=50.0, n_starts=2)).run()
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def explore(path: Path, delay: float) -> tuple[int, int, float]:
            """Steps the explorer reported, how it ended and how long it took."""
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{path} {delay}\n")
            process.stdin.flush()
            reported = 0
            while (words := process.stdout.readline().split())[0] != "ended":
                reported = int(words[0])
            return reported, int(words[1]), float(words[2])

        for first in ("warm", "measured"):
            reported, status, duration = explore(tmp_path / first, -1)
            assert (reported, status) == (len(whole.steps), 0)
        loaded_steps = []
        # One moment is sure to lie between the first step and the last, however fast the machine is from now on.
        delays = [*np.random.default_rng(0).uniform(0.0, duration, 20), AT_THE_FIRST_STEP]
        for number, delay in enumerate(delays):
            path = tmp_path / f"killed{number}"
            reported, status, _ = explore(path, delay)
            assert status in (-signal.SIGKILL, 0)
            loaded = Exploration.load(path, X, autosave=False) if path.exists() else None
            loaded_steps.append(0 if loaded is None else len(loaded.steps))
            # A step is on disk before it is reported, so nothing that was reported may be missing.
            assert loaded_steps[-1] >= reported
            if loaded is not None:
                np.testing.assert_array_equal(loaded.run().labels_, whole.labels_)
        process.stdin.close()
        assert process.wait() == 0
    assert min(loaded_steps) < len(whole.steps), "every kill came too late"
    assert loaded_steps[-1] == 1, "what was reported was not on disk"


def test_a_new_exploration_does_not_overwrite_a_saved_one(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[:30, :2] += 8
    path = tmp_path / "session.imapce"
    first = Exploration(X, estimator=IMAPCE(n_starts=2), random_state=0, path=path)
    first.accept()
    saved = path.read_bytes()
    with pytest.raises(InvalidValueError, match=r"Exploration\.load"):
        Exploration(X, random_state=0, path=path)
    assert path.read_bytes() == saved
    assert len(Exploration.load(path, X).steps) == 1
