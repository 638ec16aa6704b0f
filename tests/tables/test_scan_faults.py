"""What users scan by mistake: each is one sentence that names the file, or is read as it was meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from imapce import IMAPCE, Samples, scan
from imapce.errors import FileFormatError, ImapceError, InvalidTypeError, InvalidValueError
from imapce.tables import scan as scans
from imapce.tables import write_table

RNG = np.random.default_rng(0)


def rows(n: int = 200, **other: Any) -> pa.Table:
    return pa.table({**{name: RNG.normal(size=n) for name in "abcd"}, **other})


def text(n: int, *, line: str = "", at: int = -1) -> str:
    lines = ["a,b,c", *(",".join(f"{value:.4f}" for value in row) for row in RNG.normal(size=(n, 3)))]
    if at >= 0:
        lines[at] = line
    return "\n".join(lines) + "\n"


def refused(call: Callable[[], Any], kind: type[ImapceError]) -> str:
    with pytest.raises(kind) as caught:
        call()
    told = str(caught.value)
    assert told.endswith(".")
    assert ". " not in told
    assert "\n" not in told
    return told


def arrow_cut_in_the_middle(path: Path) -> None:
    with pa.ipc.new_file(path, rows().schema) as writer:
        for batch in rows(2000).to_batches(max_chunksize=100):
            writer.write(batch)
    path.write_bytes(path.read_bytes()[:20_000])


def arrow_stream(path: Path) -> None:
    with pa.ipc.new_stream(path, rows().schema) as writer:
        writer.write_table(rows())


NO_TABLES: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "cut in the middle": ("rows.arrow", arrow_cut_in_the_middle, "not as a stream"),
    "a stream": ("rows.arrow", arrow_stream, "not as a stream"),
    "text with another name": ("rows.parquet", lambda path: path.write_text(text(50)), "magic bytes"),
    "empty": ("rows.parquet", lambda path: path.write_bytes(b""), "0 bytes"),
}


@pytest.mark.parametrize("fault", NO_TABLES)
def test_a_file_that_is_no_table_is_one_sentence(fault: str, tmp_path: Path) -> None:
    name, write, words = NO_TABLES[fault]
    write(tmp_path / name)
    told = refused(lambda: scan(tmp_path / name), FileFormatError)
    assert name in told
    assert words in told


@pytest.mark.parametrize("line", ["1.0,2.0", "1.0,2.0,3.0,4.0", "1.0,2.0,three"])
def test_a_line_of_another_kind_in_the_third_block_is_told_with_file_and_row(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "CSV_BLOCK_BYTES", 4096)
    for number in range(3):
        (tmp_path / f"part-{number}.csv").write_text(text(1000, line=line, at=500 if number == 1 else -1))
    model = IMAPCE(random_state=0)
    told = refused(lambda: model.fit(scan(tmp_path)), FileFormatError)
    assert "part-1.csv" in told
    assert "Row #501" in told
    assert not hasattr(model, "components_")


def test_a_page_damaged_in_the_second_file_is_told_with_that_file(tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(rows(20_000), tmp_path / f"part-{number}.parquet")
    path = tmp_path / "part-1.parquet"
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xff" * 56
    path.write_bytes(data)
    told = refused(lambda: IMAPCE(random_state=0).fit(scan(tmp_path)), FileFormatError)
    assert "part-1.parquet" in told


def test_what_a_writer_leaves_beside_its_tables_is_no_table(tmp_path: Path) -> None:
    write_table(rows(), tmp_path / "part-0.parquet")
    (tmp_path / "_SUCCESS").touch()
    for name in ("_metadata.parquet", ".part-1.parquet"):
        pq.write_table(rows(3), tmp_path / name)
    assert scan(tmp_path).shape == (200, 4)


def test_tables_in_folders_of_their_own_are_named_by_a_pattern(tmp_path: Path) -> None:
    for year in ("2024", "2025"):
        (tmp_path / year).mkdir()
        write_table(rows(), tmp_path / year / "rows.parquet")
    told = refused(lambda: scan(tmp_path), InvalidValueError)
    pattern = str(tmp_path / "**" / "*.parquet")
    assert pattern in told
    assert scan(pattern).shape == (400, 4)


@pytest.mark.parametrize("path", [[1, 2], [["rows.parquet"]], b"rows.parquet", None, {"rows.parquet"}])
def test_what_names_no_files_is_refused(path: Any) -> None:
    assert "a pattern or a list of files; got" in refused(lambda: scan(path), InvalidTypeError)


def test_several_npy_files_are_no_table(tmp_path: Path) -> None:
    for name in ("one.npy", "two.npy"):
        np.save(tmp_path / name, np.eye(3))
    assert "one .npy file, got 2" in refused(lambda: scan(str(tmp_path / "*.npy")), InvalidValueError)


@pytest.mark.parametrize("missing", ["error", "mean"])
@pytest.mark.parametrize("kind", [pa.null(), pa.float32()])
def test_a_column_of_nulls_is_named_whatever_is_done_about_missing_values(
    kind: pa.DataType, missing: str, tmp_path: Path
) -> None:
    write_table(rows(gone=pa.nulls(200, kind)), tmp_path / "rows.parquet")
    model = IMAPCE(missing=missing, random_state=0)  # type: ignore[arg-type]
    assert "'gone'" in refused(lambda: model.fit(scan(tmp_path / "rows.parquet")), InvalidValueError)


@pytest.mark.parametrize("kinds", ["text", "dictionary", "both", "large in the last"])
def test_categories_of_the_last_file_are_seen_whatever_they_are_stored_as(kinds: str, tmp_path: Path) -> None:
    for number in range(3):
        colour = pa.array(["red", "green"] * 100 if number < 2 else ["red", "blue"] * 100)
        if kinds == "dictionary" or (kinds == "both" and number == 1):
            colour = colour.dictionary_encode()
        elif kinds.startswith("large") and number == 2:
            colour = colour.cast(pa.large_string())
        write_table(rows(colour=colour), tmp_path / f"part-{number}.parquet")
    model = IMAPCE(alpha=0.0, mu=1.0, random_state=0).fit(scan(tmp_path))
    assert list(model.encoded_feature_names_[-3:]) == ["colour=blue", "colour=green", "colour=red"]


def test_files_without_row_groups_and_of_any_compression_are_one_table(tmp_path: Path) -> None:
    pq.ParquetWriter(tmp_path / "part-empty.parquet", rows().schema).close()
    for compression in ("snappy", "gzip", "zstd", "none"):
        pq.write_table(rows(), tmp_path / f"part-{compression}.parquet", compression=compression)
    assert IMAPCE(alpha=0.0, mu=1.0, random_state=0).fit(scan(tmp_path)).n_features_in_ == 4
    assert "no rows" in refused(lambda: scan(tmp_path / "part-empty.parquet"), InvalidValueError)


def test_half_precision_is_a_number(tmp_path: Path) -> None:
    half = np.arange(200).astype(np.float16)
    pq.write_table(rows(half=pa.array(half)), tmp_path / "rows.parquet")
    model = IMAPCE(alpha=0.0, mu=1.0, random_state=0, engine="files").fit(scan(tmp_path / "rows.parquet"))
    assert model.mean_[-1] == pytest.approx(99.5)


def test_a_background_of_one_row_is_refused_as_in_memory(tmp_path: Path) -> None:
    write_table(rows(1), tmp_path / "one.parquet")
    prior = Samples(scan(tmp_path / "one.parquet"))
    told = refused(lambda: IMAPCE(random_state=0).fit(rows(), prior=prior), InvalidValueError)
    assert told == "Samples(background) must have at least 2 rows; got 1."


@pytest.mark.parametrize("engine", ["dask", "dense", "sparse"])
def test_engines_that_read_no_files_name_those_that_do(engine: str, tmp_path: Path) -> None:
    write_table(rows(), tmp_path / "rows.parquet")
    told = refused(lambda: IMAPCE(engine=engine).fit(scan(tmp_path / "rows.parquet")), InvalidTypeError)  # type: ignore[arg-type]
    assert "X is imapce.scan(path)" in told
    assert "'files'" in told
