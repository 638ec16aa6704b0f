"""`imapce explore`: from a file to clusters, a report and a session that can be resumed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from commands import FEATURES, refusal, succeed
from imapce import IMAPCE, Exploration, Subset, datasets
from imapce.tables.files import read_table, write_table

QUICK = ("--labels", "celltype", "--drop", "batch", "--starts", "4", "--mu", "1000", "--min-cluster-size", "40")


explore = partial(succeed, "explore")
refused = partial(refusal, "explore")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    data = datasets.make_synthetic(400)
    path = tmp_path / "rows.csv"
    labels = {name: np.array(["a", "b", "c"])[data.labels[name]] for name in ("batch", "celltype")}
    write_table({**dict(zip(FEATURES, data.X.T, strict=True)), **labels}, path)
    return path


def features_of(path: Path) -> np.ndarray:
    table = read_table(path)
    return np.column_stack([table[name].to_numpy() for name in FEATURES])


def test_it_writes_clusters_report_and_session(rows: Path, tmp_path: Path) -> None:
    clusters, report, session = tmp_path / "clusters.parquet", tmp_path / "report.html", tmp_path / "s.imapce"
    printed = explore(rows, *QUICK, "-o", clusters, "--report", report, "--session", session)
    table = read_table(clusters)
    assert table.column_names[:14] == [*FEATURES, "batch", "celltype", "row", "cluster"]
    assert table.column_names[-2:] == ["imapce0", "imapce1"]
    estimator = IMAPCE(mu=1000, n_starts=4, outliers="keep")
    same = Exploration(features_of(rows), estimator=estimator, min_cluster_size=40, random_state=0).run()
    np.testing.assert_array_equal(table["cluster"].to_numpy(), same.labels_)
    assert f"{len(same.clusters_)} clusters" in printed
    page = report.read_text()
    assert "Exploration of rows.csv" in page
    assert "http://" not in page
    assert "https://" not in page


def test_a_session_stopped_half_way_is_resumed_to_the_same_end(rows: Path, tmp_path: Path) -> None:
    session, whole, resumed = tmp_path / "s.imapce", tmp_path / "whole.csv", tmp_path / "resumed.csv"
    explore(rows, *QUICK, "-o", whole)
    explore(rows, *QUICK, "--session", session, "--max-steps", 1)
    explore(rows, *QUICK, "--session", session, "--resume", "-o", resumed)
    assert resumed.read_bytes() == whole.read_bytes()


def test_known_rows_are_a_starting_prior_and_never_taken(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "clusters.csv"
    words = ("--known-rows", "celltype=a", "--drop", "batch", "--starts", 4, "--mu", 1000, "--min-cluster-size", 40)
    printed = explore(rows, *words, "-o", out)
    table = read_table(out)
    known = np.asarray(table["celltype"]) == "a"
    assert set(table["cluster"].to_numpy()[known]) == {-1}
    estimator = IMAPCE(mu=1000, n_starts=4, outliers="keep")
    same = Exploration(
        features_of(rows), prior=Subset(known), estimator=estimator, min_cluster_size=40, random_state=0
    ).run()
    np.testing.assert_array_equal(table["cluster"].to_numpy(), same.labels_)
    assert "celltype = a" in printed


def test_a_session_file_is_not_overwritten_by_a_new_start(rows: Path, tmp_path: Path) -> None:
    session = tmp_path / "s.imapce"
    session.write_bytes(b"work of yesterday")
    assert "add --resume" in refused(rows, *QUICK, "--session", session)
    assert session.read_bytes() == b"work of yesterday"


def test_resume_needs_a_session_that_fits_the_data(rows: Path, tmp_path: Path) -> None:
    assert "--session FILE" in refused(rows, *QUICK, "--resume")
    session = tmp_path / "s.imapce"
    explore(rows, *QUICK, "--session", session, "--max-steps", 1)
    other = tmp_path / "other.csv"
    write_table({name: features_of(rows)[:300, place] for place, name in enumerate(FEATURES)}, other)
    assert "300 rows" in refused(other, "--session", session, "--resume")
    session.write_bytes(session.read_bytes()[:200])
    assert "session" in refused(rows, *QUICK, "--session", session, "--resume")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--clusterer", "kmeans"), "clusterer must be one of"),
        (("--labels", "celltip"), "celltype"),
        (("--report", "no/such/report.html"), "existing folder"),
        (("-o", "clusters.xyz"), "clusters.xyz"),
        (("--mu", "often"), "mu must be"),
        (("-o", "clusters.npy"), "-o must be a table"),
        (("--known", ""), "at least one"),
    ],
)
def test_bad_words_are_refused_in_one_line(words: tuple[str, ...], sentence: str, rows: Path) -> None:
    assert sentence in refused(rows, *words, "--drop", "batch")
