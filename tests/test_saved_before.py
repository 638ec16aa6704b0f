"""Models and sessions that 0.1 wrote open: they show what they showed, and an exploration goes on from there."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import succeed
from imapce import Exploration, load_model

SAVED = Path(__file__).parent / "saved" / "0.1"
ROWS = pd.read_csv(SAVED / "rows.csv")
AGES = ("first", "last")
STEPS = {"first": 1, "last": 2}


def seen(age: str) -> pd.DataFrame:
    """What the files showed when they were written."""
    return pd.read_csv(SAVED / age / "seen.csv")


def session(age: str, folder: Path) -> Exploration:
    """The session, from a copy that may be written to."""
    shutil.copy(SAVED / age / "session.imapce", folder)
    return Exploration.load(folder / "session.imapce", ROWS)


@pytest.mark.parametrize("age", AGES)
def test_a_model_shows_the_view_it_showed(age: str, tmp_path: Path) -> None:
    model = load_model(SAVED / age / "model.imapce")
    view = model.transform(ROWS)
    # Six digits were written down.
    np.testing.assert_allclose(view, seen(age)[["imapce0", "imapce1"]], atol=1e-6)
    model.save(tmp_path / "again.imapce")
    assert np.array_equal(load_model(tmp_path / "again.imapce").transform(ROWS), view)


def test_a_model_of_the_first_day_is_of_the_paper_s_setting() -> None:
    model = load_model(SAVED / "first" / "model.imapce")
    assert (model.alpha, model.mu, model.outliers) == (1.0, "paper", "keep")


@pytest.mark.parametrize("age", AGES)
def test_a_session_has_the_clusters_it_had(age: str, tmp_path: Path) -> None:
    exploration = session(age, tmp_path)
    assert len(exploration.steps) == STEPS[age]
    assert exploration.labels_.tolist() == seen(age)["cluster"].tolist()


@pytest.mark.parametrize("age", AGES)
def test_a_session_is_undone_goes_on_and_is_reported(age: str, tmp_path: Path) -> None:
    exploration = session(age, tmp_path)
    before = exploration.labels_.tolist()
    exploration.undo()
    assert len(exploration.steps) == STEPS[age] - 1
    assert exploration.labels_.tolist() != before
    exploration.redo()
    assert exploration.labels_.tolist() == before
    exploration.run()
    assert exploration.done
    assert len(exploration.steps) > STEPS[age]
    taken = np.array(before) >= 0
    assert exploration.labels_[taken].tolist() == [label for label in before if label >= 0]
    exploration.report(tmp_path / "report.html")
    assert "cluster" in (tmp_path / "report.html").read_text(encoding="utf-8")
    # Saved after every move, now as a session of today.
    again = Exploration.load(tmp_path / "session.imapce", ROWS, autosave=False)
    assert again.labels_.tolist() == exploration.labels_.tolist()


@pytest.mark.parametrize("age", AGES)
def test_the_commands_read_them(age: str, tmp_path: Path) -> None:
    for name, told in (("model", "It is made of width"), ("session", "120")):
        assert told in succeed("info", SAVED / age / f"{name}.imapce")
    out = tmp_path / "view.csv"
    succeed("transform", SAVED / age / "model.imapce", SAVED / "rows.csv", "-o", out, "--only-result")
    np.testing.assert_allclose(pd.read_csv(out)[["imapce0", "imapce1"]], seen(age)[["imapce0", "imapce1"]], atol=1e-6)
