"""Files of tables: every suffix there and back, damaged files refused in a sentence, no partial file ever."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse

import imapce.tables.files
from imapce.errors import FileFormatError, InvalidTypeError, InvalidValueError
from imapce.tables.files import READ_SUFFIXES, WRITE_SUFFIXES, read_table, write_table

TABLE = pa.table({"x": [0.1, None, 3.0], "n": [1, 2, 3], "word": ["a", 'b,\n"c"', None]})
TABLE_SUFFIXES = [suffix for suffix in WRITE_SUFFIXES if suffix != ".npy"]


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(FileFormatError) as caught:
        read_table(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": lambda data: pa.compress(data, "zstd", asbytes=True)}


def as_bytes(suffix: str, folder: Path) -> bytes:
    """A whole file with this suffix that is large enough to be cut anywhere."""
    values = np.random.default_rng(0).normal(size=(200, 3))
    table = pd.DataFrame(values, columns=list("abc"))
    file = folder / f"whole{suffix}"
    for packed, pack in PACKERS.items():
        if suffix.endswith(packed):
            return pack(as_bytes(suffix.removesuffix(packed), folder))
    if suffix == ".npz":
        np.savez(file, values)
    elif suffix == ".xlsx":
        pytest.importorskip("openpyxl")
        table.to_excel(file, index=False)
    elif suffix == ".h5ad":
        pytest.importorskip("anndata").AnnData(values).write_h5ad(file)
    elif suffix == ".zip":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("rows.csv", table.to_csv(index=False))
    elif suffix == ".json":
        table.to_json(file, orient="records")
    elif suffix in (".jsonl", ".ndjson"):
        table.to_json(file, orient="records", lines=True)
    elif suffix in WRITE_SUFFIXES:
        write_table({name: values[:, place] for place, name in enumerate("abc")}, file)
    else:
        table.to_csv(file, index=False)
    return file.read_bytes()


@pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
def test_tables_go_there_and_back(suffix: str, tmp_path: Path) -> None:
    for number, table in enumerate((TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE))):
        file = tmp_path / f"t{number}{suffix.upper()}"
        write_table(table, file)
        assert read_table(str(file)).to_pydict() == TABLE.to_pydict()
    categories = pd.DataFrame({"c": pd.Categorical(["u", "v", None]), 7: [1, 2, 3]}, index=[5, 6, 7])
    write_table(categories, tmp_path / f"c{suffix}")
    assert read_table(tmp_path / f"c{suffix}").to_pydict() == {"c": ["u", "v", None], "7": [1, 2, 3]}
    assert not list(tmp_path.glob("*.part"))


def test_npy_holds_the_numbers_of_a_table_or_a_matrix(tmp_path: Path) -> None:
    file = tmp_path / "m.npy"
    write_table({"a": np.array([1, 2]), "b": np.array([0.5, 1.5])}, file)
    assert read_table(file).tolist() == [[1.0, 0.5], [2.0, 1.5]]
    write_table(np.eye(2, dtype=np.float32), file)
    back = read_table(file)
    assert back.dtype == np.float32
    back[0, 0] = 5.0
    assert read_table(file).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(InvalidValueError, match="'word'"):
        write_table(TABLE, file)
    for bad in (np.ones(3), np.array([["a"]]), np.array([[None]])):
        with pytest.raises(InvalidValueError, match="two dimensions"):
            write_table(bad, file)
    assert read_table(file).shape == (2, 2)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_npz_holds_a_sparse_matrix_or_one_array(kind: str, tmp_path: Path) -> None:
    dense = np.diag([1.0, 0.0, 2.0])
    file = tmp_path / "s.npz"
    scipy.sparse.save_npz(file, scipy.sparse.csr_array(dense).asformat(kind))
    back = read_table(file)
    assert back.format == ("csc" if kind == "csc" else "csr")
    np.testing.assert_array_equal(back.toarray(), dense)
    np.savez_compressed(file, anything=dense)
    np.testing.assert_array_equal(read_table(file), dense)
    np.savez(file, a=dense, b=dense)
    assert "'a', 'b'" in refusal(file)


def test_a_sparse_file_with_indices_beyond_its_shape_is_refused(tmp_path: Path) -> None:
    for indices, pointers in (([99], [0, 1]), ([-5], [0, 1]), ([0], [0, 10])):
        file = tmp_path / "s.npz"
        np.savez(
            file,
            format=b"csr",
            shape=[1, 2],
            data=[1.0],
            indices=np.array(indices),
            indptr=np.array(pointers),
        )
        assert "cannot be read" in refusal(file)


def test_arrays_that_are_no_numeric_matrix_are_refused(tmp_path: Path) -> None:
    for values in (np.ones(3), np.array([["a"]]), np.ones((1, 1), complex)):
        np.save(tmp_path / "a.npy", values)
        np.savez(tmp_path / "a.npz", values)
        assert "2-D array of numbers" in refusal(tmp_path / "a.npy")
        assert "2-D array of numbers" in refusal(tmp_path / "a.npz")
    np.save(tmp_path / "a.npy", np.array([[{}]]), allow_pickle=True)
    refusal(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", np.array([[{}]]))
    refusal(tmp_path / "a.npz")
    (tmp_path / "b.npy").write_bytes((tmp_path / "a.npz").read_bytes())
    assert "npz archive" in refusal(tmp_path / "b.npy")


def test_a_promise_of_a_huge_array_is_refused_before_it_is_allocated(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**5)})
    (tmp_path / "a.npy").write_bytes(header.getvalue() + b"\0" * 64)
    refusal(tmp_path / "a.npy")


@pytest.mark.parametrize("suffix", READ_SUFFIXES)
def test_damaged_files_are_refused(suffix: str, tmp_path: Path) -> None:
    whole = as_bytes(suffix, tmp_path)
    file = tmp_path / f"bad{suffix}"
    assert "does not exist" in refusal(file)
    file.write_bytes(b"")
    assert "is empty" in refusal(file)
    file.write_bytes(np.random.default_rng(1).bytes(5000))
    assert "cannot be read" in refusal(file)
    file.write_bytes(b"\x00" * 100)
    assert "cannot be read" in refusal(file)
    # A row of text cut after a whole number is a shorter valid row only if a separator is lost with it.
    text = suffix in (".csv", ".tsv", ".tab", ".txt", ".dat", ".data")
    mark = b"\t" if suffix == ".tsv" else b","
    cut = whole.rindex(mark) if text else len(whole) // 2
    file.write_bytes(whole[: whole.rindex(mark, 0, cut)] if text else whole[:cut])
    assert "cannot be read" in refusal(file)
    file.write_bytes(whole)
    assert "at most 10 bytes" in refusal(file, max_bytes=10)
    read_table(file, max_bytes=1_000_000)
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    assert "is not one" in refusal(folder)


def test_the_limit_holds_for_what_a_file_unpacks_to(tmp_path: Path) -> None:
    (tmp_path / "z.csv.gz").write_bytes(gzip.compress(b"a\n" + b"1\n" * 500_000))
    np.savez_compressed(tmp_path / "z.npz", np.zeros((1000, 100)))
    pyarrow.parquet.write_table(pa.table({"a": np.zeros(500_000)}), tmp_path / "z.parquet")
    with pa.ipc.new_file(
        str(tmp_path / "z.arrow"),
        pa.schema([("a", pa.float64())]),
        options=pa.ipc.IpcWriteOptions(compression="zstd"),
    ) as writer:
        writer.write_table(pa.table({"a": np.zeros(500_000)}))
    for file in tmp_path.iterdir():
        assert file.stat().st_size < 50_000
        assert "unpacks to more" in refusal(file, max_bytes=50_000)
        read_table(file)


def test_text_files(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('a,b,c\n1,"",x\n,2.5,\n')
    assert read_table(file).to_pydict() == {"a": [1, None], "b": [None, 2.5], "c": ["x", None]}
    file.write_bytes("\ufeffa,b\n1,2\n".encode())
    assert read_table(file).column_names == ["a", "b"]
    file.write_text("a,b\n1,2\n3,4,5\n")
    assert "Expected 2 columns, got 3 in row 3" in refusal(file)
    file.write_text("0,1\n3,4\n")
    assert read_table(file).column_names == ["0", "1"]
    wide = ",".join(f"{place:080}x" for place in range(20_000))
    file.write_text(f"{wide}\n{','.join('1' for _ in range(20_000))}\n")
    assert read_table(file).num_columns == 20_000


def test_a_stream_of_arrow_data_is_read_too(tmp_path: Path) -> None:
    with pa.ipc.new_stream(str(tmp_path / "s.arrow"), TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert read_table(tmp_path / "s.arrow").equals(TABLE)


def test_unknown_suffixes_list_the_known_ones(tmp_path: Path) -> None:
    assert ".csv, .tsv" in refusal(tmp_path / "t.doc")
    with pytest.raises(FileFormatError, match=r"\.parquet"):
        write_table(TABLE, tmp_path / "t.npz")


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "t.csv"
    target.write_text("before")
    nested = pa.table({"day": [datetime.date(2020, 1, 1)], "list": [[1]]})

    def no_space(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(InvalidValueError, match=r"can be written as \.csv"):
        write_table(nested, target)
    monkeypatch.setattr(imapce.tables.files.os, "fsync", no_space)
    with pytest.raises(InvalidValueError, match="No space left"):
        write_table(TABLE, target)
    monkeypatch.undo()
    monkeypatch.setattr(imapce.tables.files.os, "replace", no_space)
    with pytest.raises(InvalidValueError, match="No space left"):
        write_table(TABLE, target)
    assert os.listdir(tmp_path) == ["t.csv"]
    assert target.read_text() == "before"


def test_places_and_things_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="make the folder"):
        write_table(TABLE, tmp_path / "none" / "t.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(InvalidValueError, match="folder"):
        write_table(TABLE, tmp_path / "d.csv")
    with pytest.raises(InvalidTypeError, match="ndarray"):
        write_table(np.eye(2), tmp_path / "t.csv")
    with pytest.raises(InvalidValueError, match="one length"):
        write_table({"a": [1], "b": [1, 2]}, tmp_path / "t.csv")
    with pytest.raises(InvalidValueError, match="one type"):
        write_table({"a": [1, "x"]}, tmp_path / "t.csv")
    assert os.listdir(tmp_path) == ["d.csv"]


def test_a_written_file_is_as_readable_as_any_other_and_keeps_links(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    write_table(TABLE, tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "t.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_an_index_stored_by_pandas_is_no_column(tmp_path: Path, suffix: str) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]})[lambda table: table["x"] > 1]
    path = tmp_path / f"kept.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        write_table_with_index(frame, path)
    assert read_table(path).column_names == ["x"]


def write_table_with_index(frame: pd.DataFrame, path: Path) -> None:
    table = pa.Table.from_pandas(frame)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
