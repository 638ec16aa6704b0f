"""`transform_to`: a view written some rows at a time is the view, beside the columns asked for, whole or not at all."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from faults import OLD, needs_file_limit
from imapce import IMAPCE, scan
from imapce.baselines import PCA
from imapce.errors import FileFormatError, ImapceError, InvalidTypeError, InvalidValueError
from imapce.estimators import view_file
from imapce.tables import read_table, write_table
from imapce.tables import scan as scans

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4)) + 6 * np.eye(3, 4)[np.arange(400) % 3]
TABLE = pa.table(
    {
        **{name: X[:, place] for place, name in enumerate("abcd")},
        "kind": pa.array(np.array(["x", "y", "z"])[np.arange(400) % 3]).dictionary_encode(),
        "id": np.arange(400),
    }
)


@pytest.fixture(scope="module")
def model() -> IMAPCE:
    return IMAPCE(random_state=0).fit(TABLE.select(list("abcd")))


@pytest.fixture(autouse=True)
def few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "MOST_BATCH_ROWS", 64)
    monkeypatch.setattr(scans, "FEWEST_BATCH_ROWS", 16)
    monkeypatch.setattr(view_file, "BATCH_ROWS", 64)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv", ".tsv"])
def test_a_scan_is_placed_row_by_row_with_all_its_columns(suffix: str, model: IMAPCE, tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "rows.parquet")
    assert model.transform_to(tmp_path / f"view{suffix}", scan(tmp_path / "rows.parquet")) == 400
    written = read_table(tmp_path / f"view{suffix}")
    assert written.column_names == [*"abcd", "kind", "id", "row", "imapce0", "imapce1"]
    view = np.column_stack([written["imapce0"], written["imapce1"]])
    np.testing.assert_allclose(view, model.transform(TABLE.select(list("abcd"))), rtol=1e-12, atol=1e-12)
    assert written["row"].to_pylist() == list(range(400))
    assert written["kind"].to_pylist() == TABLE["kind"].to_pylist()


@pytest.mark.parametrize("kind", ["arrow", "pandas", "array", "sparse"])
def test_rows_in_memory_are_written_as_well(kind: str, model: IMAPCE, tmp_path: Path) -> None:
    rows: Any = {"arrow": TABLE, "pandas": TABLE.to_pandas(), "array": X, "sparse": sparse.csc_array(X)}[kind]
    fitted = model if kind in ("arrow", "pandas") else IMAPCE(random_state=0).fit(X)
    chosen = {"columns": ["id"]} if kind in ("arrow", "pandas") else {}
    assert fitted.transform_to(tmp_path / "view.parquet", rows, **chosen) == 400
    written = read_table(tmp_path / "view.parquet")
    assert written.column_names == [*chosen.get("columns", []), "row", "imapce0", "imapce1"]
    np.testing.assert_allclose(written["imapce1"], model.transform(TABLE.select(list("abcd")))[:, 1], rtol=1e-7)


def test_another_view_and_other_estimators_are_written_by_their_names(model: IMAPCE, tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "rows.parquet")
    rows = scan(tmp_path / "rows.parquet")
    model.transform_to(tmp_path / "second.parquet", rows, columns=[], view=1)
    second = read_table(tmp_path / "second.parquet")
    assert second.column_names == ["row", "imapce0", "imapce1"]
    np.testing.assert_allclose(second["imapce0"], model.transform(TABLE.select(list("abcd")), view=1)[:, 0], rtol=1e-9)
    plane = PCA().fit(scan(tmp_path / "rows.parquet", columns=list("abcd")))
    plane.transform_to(tmp_path / "plane.parquet", rows, columns=["row"] if "row" in rows.columns else ["id"])
    assert read_table(tmp_path / "plane.parquet").column_names == ["id", "row", "pca0", "pca1"]


def test_names_that_are_taken_are_counted_on(model: IMAPCE, tmp_path: Path) -> None:
    model.transform_to(tmp_path / "view.csv", TABLE.rename_columns([*"abcd", "row", "imapce0"]))
    names = read_table(tmp_path / "view.csv").column_names
    assert names == [*"abcd", "row", "imapce0", "row_1", "imapce0_1", "imapce1"]


@pytest.mark.parametrize(
    ("path", "columns", "words"),
    [
        ("view.npy", None, "path must end in"),
        ("no/view.csv", None, "existing folder"),
        ("view.csv", ["e"], "columns must be among those of X, got 'e'"),
        ("view.csv", "a", "columns must be None or a list of names"),
    ],
)
def test_what_cannot_be_written_is_one_sentence_and_leaves_no_file(
    path: str, columns: Any, words: str, model: IMAPCE, tmp_path: Path
) -> None:
    with pytest.raises(ImapceError, match=words):
        model.transform_to(tmp_path / path, TABLE, columns=columns)
    assert not list(tmp_path.iterdir())


def test_columns_of_an_array_and_rows_of_another_table_are_refused(model: IMAPCE, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="columns are those of a table"):
        IMAPCE(alpha=0.0, mu=1.0).fit(X).transform_to(tmp_path / "view.csv", X, columns=["a"])
    with pytest.raises(InvalidValueError, match="got 'd'"):
        model.transform_to(tmp_path / "view.csv", TABLE.drop_columns(["d"]))
    with pytest.raises(InvalidTypeError):
        model.transform_to(None, TABLE)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_fault_in_the_middle_leaves_what_was_there(model: IMAPCE, tmp_path: Path) -> None:
    (tmp_path / "view.csv").write_bytes(OLD)
    numbers = TABLE["a"].to_numpy().copy()
    numbers[390] = np.nan
    write_table(TABLE.set_column(0, "a", pa.array(numbers)), tmp_path / "rows.parquet")
    with pytest.raises(InvalidValueError, match="'a'"):
        model.transform_to(tmp_path / "view.csv", scan(tmp_path / "rows.parquet"))
    (tmp_path / "rows.csv").write_text("a,b,c,d\n1,2,3,4\n")
    cut = scan(tmp_path / "rows.parquet")
    (tmp_path / "rows.parquet").write_bytes((tmp_path / "rows.parquet").read_bytes()[:-9])
    with pytest.raises((FileFormatError, InvalidValueError), match=r"changed while|read to its end"):
        model.transform_to(tmp_path / "view.csv", cut)
    assert (tmp_path / "view.csv").read_bytes() == OLD
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rows.csv", "rows.parquet", "view.csv"]


@needs_file_limit
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_a_full_disk_is_one_sentence_and_leaves_what_was_there(suffix: str, tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk."""
    path = tmp_path / f"view{suffix}"
    path.write_bytes(OLD)
    script = """
        import resource, signal, sys
        import numpy as np
        from imapce import IMAPCE, ImapceError, scan
        from imapce.tables import write_table

        X = np.random.default_rng(0).normal(size=(30_000, 4))
        write_table(dict(zip("abcd", X.T)), sys.argv[2])
        model = IMAPCE(alpha=0.0, mu=1.0, n_starts=2, random_state=0).fit(scan(sys.argv[2]))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        try:
            model.transform_to(sys.argv[1], scan(sys.argv[2]))
        except ImapceError as problem:
            print(problem)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(path), str(tmp_path / "rows.parquet")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith("path must be a place that can be written, got")
    assert said.count("\n") == 1
    assert path.read_bytes() == OLD
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rows.parquet", f"view{suffix}"]
