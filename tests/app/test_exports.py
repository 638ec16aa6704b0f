"""What the page hands out is what the library has: tables, figures, the report, the session, the Python."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.metrics import adjusted_rand_score

from conversation import Talk, groups
from imapce import Attributes, Exploration, Labels, Subset
from imapce.app.exports import as_python
from imapce.app.study import Study
from imapce.app.tabs import open_dataset, open_file


def explored(prior: Any = None) -> Talk:
    X = pa.table({f"c{j}": column for j, column in enumerate(groups().T)})
    study = Study(
        "three groups.csv",
        Exploration(X, prior=prior, random_state=0),
        features=X,
        table=X.append_column("kind", pa.array([f"k{i % 3}" for i in range(300)])),
        labels=("kind",),
        script=("data = table", "X = data.select(['c0', 'c1', 'c2', 'c3'])"),
    )
    talk = Talk(study)
    talk.done("next")
    talk.done("take", what="most")
    talk.ask("select", how="cluster", cluster=talk.conversation.scene.numbers[0])
    talk.done("take", what="selection", name="by 'hand'")
    return talk


def numbers(exploration: Exploration) -> list[int]:
    """What the clusters taken are called."""
    return [cluster.number for cluster in exploration.clusters_]


def names(exploration: Exploration) -> set[str | None]:
    return {cluster.name for cluster in exploration.clusters_}


@pytest.fixture(scope="module")
def talk() -> Talk:
    return explored()


def export(talk: Talk, kind: str) -> tuple[str, bytes]:
    answer = talk.ask("export", kind=kind)
    assert "error" not in answer, answer
    return answer["name"], bytes(answer["buffers"][0])


def test_the_tables_hold_the_labels_and_where_rows_lie(talk: Talk) -> None:
    for kind, read in (("csv", pyarrow.csv.read_csv), ("parquet", pyarrow.parquet.read_table)):
        name, data = export(talk, kind)
        table = read(io.BytesIO(data))
        assert name == f"three-groups-clusters.{kind}"
        np.testing.assert_array_equal(table["cluster"].to_numpy(), talk.exploration.labels_)
        np.testing.assert_allclose(table["view_imapce0"].to_numpy(), talk.conversation.scene.coordinates[:, 0])


@pytest.mark.parametrize("by", ["cluster", "taken", "column:kind", "column:c0"])
@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_the_figure_is_that_of_the_view_in_sight(talk: Talk, kind: str, start: bytes, by: str) -> None:
    talk.ask("colour", by=by)
    assert export(talk, kind)[1].startswith(start)


def test_the_report_and_the_session_are_the_library_s(talk: Talk, tmp_path: Path) -> None:
    assert b"<!doctype html>" in export(talk, "report")[1][:200].lower()
    name, data = export(talk, "session")
    path = tmp_path / name
    path.write_bytes(data)
    assert zipfile.is_zipfile(path)
    again = Exploration.load(path, talk.conversation.study.features)
    np.testing.assert_array_equal(again.labels_, talk.exploration.labels_)
    assert names(again) == {None, "by 'hand'"}


def run_script(talk: Talk) -> Exploration:
    found: dict[str, Any] = {"table": talk.conversation.study.table}
    exec(as_python(talk.conversation.study), found)
    return found["exploration"]


@pytest.mark.parametrize("prior", ["none", "column", "label", "rows"])
def test_the_python_leads_to_the_same_labels(prior: str) -> None:
    kinds = pa.table({"kind": [f"k{i % 2}" for i in range(300)]})
    known = {"none": None, "column": Attributes(["c3"]), "label": Labels(kinds), "rows": Subset(np.arange(30))}[prior]
    talk = explored(known)
    if prior == "label":
        talk.conversation.study.table = talk.conversation.study.table.drop_columns("kind").append_column(
            "kind", kinds["kind"]
        )
    again = run_script(talk)
    np.testing.assert_array_equal(again.labels_, talk.exploration.labels_)
    assert names(again) == {None, "by 'hand'"}


def test_the_python_knows_what_was_regrouped_and_set_anew() -> None:
    talk = explored()
    talk.done("settings", mu=50.0)
    talk.done("merge", numbers=numbers(talk.exploration))
    assert len(talk.exploration.clusters_) == 1
    np.testing.assert_array_equal(run_script(talk).labels_, talk.exploration.labels_)


def in_a_process_of_its_own(talk: Talk, folder: Path) -> np.ndarray:
    """The labels that the copied text leads to, where nothing of this process is known."""
    script = folder / "copied.py"
    script.write_text(export(talk, "python")[1].decode() + "np.save('labels.npy', exploration.labels_)\n")
    subprocess.run([sys.executable, script], cwd=folder, check=True, timeout=300)
    return np.load(folder / "labels.npy")


def take_part(talk: Talk, name: str | None = None) -> None:
    """Half of the first cluster in sight, by hand."""
    rows = np.flatnonzero(talk.conversation.scene.clusters == talk.conversation.scene.numbers[0])
    talk.conversation.selected[rows[: len(rows) // 2]] = True
    talk.done("take", what="selection", name=name)


def test_the_python_of_a_data_set_stands_alone_through_every_kind_of_move(tmp_path: Path) -> None:
    talk = Talk(open_dataset("synthetic"))
    talk.done("take", what="most")
    talk.done("next")
    take_part(talk, "half")
    np.testing.assert_array_equal(in_a_process_of_its_own(talk, tmp_path), talk.exploration.labels_)
    talk.done("split", number=numbers(talk.exploration)[0], structure="ignore")
    assert len(talk.exploration.clusters_) == 3
    talk.done("merge", numbers=numbers(talk.exploration)[:2])
    talk.done("split", cluster=talk.conversation.scene.numbers[0], structure="ignore")
    talk.done("take", what="most")
    np.testing.assert_array_equal(in_a_process_of_its_own(talk, tmp_path), talk.exploration.labels_)
    # What is known and the weights change; what was undone before was made without them.
    talk.done("undo")
    talk.done("settings", columns={"batch": False}, alpha=2.0, mu=50.0)
    talk.done("redo")
    talk.done("take", what="most")
    talk.done("split", number=max(numbers(talk.exploration)), structure="ignore")
    # The same clusters; a number that was shown and never taken before settings changed is free in the script.
    found, here = in_a_process_of_its_own(talk, tmp_path), talk.exploration.labels_
    np.testing.assert_array_equal(found == -1, here == -1)
    assert adjusted_rand_score(found, here) == 1.0
    assert "batch" in as_python(talk.conversation.study)
    assert len(np.unique(found)) > 3


def test_the_python_of_a_file_goes_on_where_settings_changed(tmp_path: Path) -> None:
    X = groups()
    table = pa.table({**{f"c{j}": X[:, j] for j in range(4)}, "kind": [f"k{i % 2}" for i in range(len(X))]})
    pyarrow.csv.write_csv(table, tmp_path / "groups.csv")
    roles = {**{f"c{j}": "feature" for j in range(4)}, "kind": "label"}
    talk = Talk(open_file("groups.csv", pyarrow.csv.read_csv(tmp_path / "groups.csv"), roles))
    talk.done("take", what="most")
    talk.done("undo")
    talk.done("settings", mu=30.0)
    talk.done("settings", columns={"c3": False, "kind": False})
    talk.done("take", what="most")
    take_part(talk)
    talk.done("take", what="most")
    text = as_python(talk.conversation.study)
    assert text.count("exploration.accept()") == 2
    np.testing.assert_array_equal(in_a_process_of_its_own(talk, tmp_path), talk.exploration.labels_)


def test_what_is_not_offered_is_refused(talk: Talk) -> None:
    assert "what is exported must be one of" in talk.ask("export", kind="everything")["error"]
