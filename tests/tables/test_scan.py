"""`scan`: which files are one table, what is refused in one sentence, and that files stay what they were."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from imapce import IMAPCE, Labels, Samples, scan
from imapce.common.settings import SETTINGS
from imapce.errors import FileFormatError, ImapceError, InvalidTypeError, InvalidValueError
from imapce.tables import scan as scans
from imapce.tables import write_table

RNG = np.random.default_rng(0)


def rows(n: int = 300, **other: Any) -> pa.Table:
    return pa.table({**{name: RNG.normal(size=n) for name in "abcd"}, **other})


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    for number in range(3):
        write_table(rows(), tmp_path / f"part-{number}.parquet")
    return tmp_path


def sentence(caught: pytest.ExceptionInfo[ImapceError]) -> str:
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


def test_a_file_a_folder_a_pattern_and_a_list_are_one_table(parts: Path) -> None:
    assert scan(parts / "part-1.parquet").shape == (300, 4)
    for path in (parts, str(parts / "part-*.parquet"), [str(parts / f"part-{i}.parquet") for i in range(3)]):
        whole = scan(path)
        assert whole.shape == (900, 4)
        assert len(whole) == 900
        assert sum(batch.num_rows for batch in whole.batches()) == 900
    assert "3 files" in repr(scan(parts))
    assert "900 rows, 4 columns" in repr(scan(parts))


def test_columns_are_chosen_in_the_order_asked_for(parts: Path) -> None:
    table = scan(parts, columns=["c", "a"])
    assert next(iter(table.batches())).schema.names == ["c", "a"]
    assert table.head(2).column_names == ["c", "a"]
    with pytest.raises(InvalidValueError, match=r"^columns must be among .*got 'e'"):
        scan(parts, columns=["a", "e"])
    with pytest.raises(InvalidTypeError, match=r"^columns must be a list of names; got 'a'"):
        scan(parts, columns="a")


def test_an_array_of_a_npy_file_is_mapped_and_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", RNG.normal(size=(200, 4)))
    mapped = scan(tmp_path / "rows.npy")
    assert isinstance(mapped, np.memmap)
    assert IMAPCE(random_state=0).fit(mapped).components_.shape == (2, 4)
    with pytest.raises(InvalidValueError, match=r"^columns are chosen by name"):
        scan(tmp_path / "rows.npy", columns=["a"])
    (tmp_path / "rows.npy").write_bytes(b"no array")
    with pytest.raises(FileFormatError, match=r"is no whole \.npy file"):
        scan(tmp_path / "rows.npy")


@pytest.mark.parametrize(
    ("path", "words"),
    [("no.parquet", "path must name files that exist"), (7, "path must be a file, a folder"), ("*.csv", "that exist")],
)
def test_files_that_are_not_there_are_refused(path: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(ImapceError, match=words) as caught:
        scan(path if isinstance(path, int) else str(tmp_path / path))
    sentence(caught)


def test_kinds_that_cannot_be_read_in_passes_are_refused_by_name(tmp_path: Path, parts: Path) -> None:
    (tmp_path / "rows.xlsx").write_bytes(b"PK")
    with pytest.raises(InvalidValueError, match=r"got \.xlsx\.$"):
        scan(tmp_path / "rows.xlsx")
    write_table(rows(), tmp_path / "rows.feather")
    with pytest.raises(InvalidValueError, match="one kind"):
        scan([str(parts / "part-0.parquet"), str(tmp_path / "rows.feather")])
    pq.write_table(rows(0), tmp_path / "none.parquet")
    with pytest.raises(InvalidValueError, match="columns and no rows"):
        scan(tmp_path / "none.parquet")


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_a_truncated_file_is_one_sentence_that_names_it(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{suffix}"
    write_table(rows(5000), path)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(FileFormatError, match="cannot be read to its end") as caught:
        scan(path)
    assert path.name in sentence(caught)


def test_a_file_damaged_inside_is_one_sentence_and_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_table(rows(20_000), path)
    table = scan(path)
    data = bytearray(path.read_bytes())
    # The first page begins behind four bytes.
    data[4:60] = b"\xff" * 56
    stat = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    model = IMAPCE(random_state=0).fit(RNG.normal(size=(60, 3)))
    before = model.components_.copy()
    with pytest.raises(FileFormatError, match="cannot be read to its end") as caught:
        model.fit(table)
    sentence(caught)
    np.testing.assert_array_equal(model.components_, before)


def test_a_column_of_another_type_in_the_third_file_is_named_with_the_file(parts: Path) -> None:
    write_table(rows().set_column(1, "b", pa.array(["x"] * 300)), parts / "part-2.parquet")
    with pytest.raises(FileFormatError, match=r"^column 'b' is string in .*part-2\.parquet' and double in") as caught:
        scan(parts)
    sentence(caught)
    assert scan(parts, columns=["a", "c"]).shape == (900, 2)


def test_numbers_of_several_types_become_one_and_a_column_that_lacks_is_refused(parts: Path) -> None:
    write_table(rows().set_column(1, "b", pa.array(range(300))), parts / "part-1.parquet")
    assert scan(parts).schema.field("b").type == pa.float64()
    assert IMAPCE(alpha=0.0, mu=1.0, random_state=0).fit(scan(parts)).n_features_in_ == 4
    write_table(rows().drop_columns(["d"]), parts / "part-2.parquet")
    with pytest.raises(FileFormatError, match=r"part-2\.parquet' lacks column 'd'"):
        scan(parts)


@pytest.mark.parametrize("change", ["other rows", "touched", "gone"])
def test_a_file_changed_between_passes_is_refused_and_nothing_is_kept(
    change: str, parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, path = scan(parts), parts / "part-1.parquet"
    passes = 0
    read = scans.Scan.batches

    def changing(self: scans.Scan, columns: Any = None) -> Any:
        nonlocal passes
        passes += 1
        yield from read(self, columns)
        if passes == 2:
            if change == "other rows":
                write_table(rows(310), path)
            elif change == "touched":
                os.utime(path, ns=(0, 0))
            else:
                path.unlink()

    monkeypatch.setattr(scans.Scan, "batches", changing)
    model = IMAPCE(random_state=0)
    with pytest.raises(InvalidValueError, match="is gone" if change == "gone" else "was changed while") as caught:
        model.fit(table)
    assert "part-1.parquet" in sentence(caught)
    assert not hasattr(model, "components_")
    assert passes == 3


def test_columns_that_cannot_become_numbers_are_named(tmp_path: Path) -> None:
    write_table(rows(day=pa.array([0] * 300, pa.date32())), tmp_path / "dates.parquet")
    with pytest.raises(InvalidValueError, match="'day' is date32"):
        IMAPCE().fit(scan(tmp_path / "dates.parquet"))
    write_table(rows(name=[f"row {i}" for i in range(300)]), tmp_path / "texts.parquet")
    with pytest.raises(InvalidValueError, match="'name' is free text with"):
        IMAPCE().fit(scan(tmp_path / "texts.parquet"))
    write_table(rows(gap=pa.array([None] * 300, pa.float64())), tmp_path / "gaps.parquet")
    with pytest.raises(InvalidValueError, match="'gap' has only missing values"):
        IMAPCE(missing="mean").fit(scan(tmp_path / "gaps.parquet"))


def test_missing_and_endless_values_are_counted_by_column(tmp_path: Path) -> None:
    table = rows(e=pa.array([None, 1.0, float("nan")] * 100), f=pa.array([np.inf] + [1.0] * 299))
    write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(InvalidValueError, match=r"'e' has 200: .*missing=\"mean\""):
        IMAPCE().fit(scan(tmp_path / "rows.parquet", columns=list("abcde")))
    with pytest.raises(InvalidValueError, match=r"inf or -inf is in it \('f' has 1\)"):
        IMAPCE().fit(scan(tmp_path / "rows.parquet", columns=list("abcdf")))


@pytest.mark.parametrize(
    ("text", "names", "first"),
    [
        ("a;b\n1,5;x\n2;y\n", ["a", "b"], [1.5, 2.0]),
        ("1.5\t2\n2.5\t3\n", ["x0", "x1"], [1.5, 2.5]),
        ("a|b\n1|\n2|4\n", ["a", "b"], [1, 2]),
    ],
)
def test_text_files_are_read_in_their_own_dialect(
    text: str, names: list[str], first: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text(text)
    table = pa.Table.from_batches(scan(tmp_path / "rows.csv").batches())
    assert table.column_names == names
    assert table.column(0).to_pylist() == first


def test_text_in_another_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes("a,b\n1,é\n2,à\n".encode("cp1252"))
    table = pa.Table.from_batches(scan(tmp_path / "rows.csv").batches())
    assert table["b"].to_pylist() == ["é", "à"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a b\n1 2\n3 4\n", "blanks between values"),
        ("# made by hand\na,b\n1,2\n", "1 line above the table passed over"),
        ("a,b\n1,2\n3\n", "Expected 2 columns, got 1"),
        ("a,a\n1,2\n3,4\n", "multiple columns named a"),
    ],
)
def test_text_that_no_scan_can_follow_is_refused_with_the_way_out(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(FileFormatError, match=words) as caught:
        scan(tmp_path / "rows.csv")
    if "Expected" not in words and "multiple" not in words:
        assert "sink_parquet(" in sentence(caught)


def test_text_of_another_type_behind_the_first_rows_names_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "CSV_BLOCK_BYTES", 400)
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n" * 500 + "1,two\n")
    with pytest.raises(FileFormatError, match=r"invalid value 'two'; types are those of its first rows") as caught:
        IMAPCE().fit(scan(tmp_path / "rows.csv"))
    assert "sink_parquet(" in sentence(caught)


def test_text_files_written_in_two_ways_are_no_table(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("a;b\n1;2\n")
    with pytest.raises(FileFormatError, match="in one way"):
        scan(tmp_path)


def test_whoever_watches_is_told_of_every_pass(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "MOST_BATCH_ROWS", 100)
    monkeypatch.setattr(scans, "FEWEST_BATCH_ROWS", 10)
    said: list[tuple[str, float | None]] = []
    table = scan(parts)
    IMAPCE(random_state=0).fit(table.watched(lambda words, share: said.append((words, share))))
    shares = [share for words, share in said if words.startswith("pass 2:")]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) >= 9
    with pytest.raises(InvalidTypeError, match="progress must be a function"):
        table.watched("loud")  # type: ignore[arg-type]


def test_who_watches_may_end_a_fit_which_leaves_nothing(parts: Path) -> None:
    def enough(words: str, share: float | None) -> None:
        if words.startswith("pass 3"):
            raise KeyboardInterrupt

    model = IMAPCE(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(scan(parts).watched(enough))
    assert not hasattr(model, "components_")


class OfFewRows(IMAPCE):
    settings = replace(SETTINGS, clusters=replace(SETTINGS.clusters, rows=500, many_rows=500))


@pytest.mark.parametrize("prior", [None, Samples(RNG.normal(size=(200, 4))), Labels(np.arange(4000) % 3)])
def test_a_fit_takes_about_as_many_passes_as_were_estimated(
    prior: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more rows than any sample has; with fewer, every look at a sample is a pass."""
    monkeypatch.setattr("imapce.rows.standardized.ORDERED_ROWS", 500)
    write_table(rows(4000), tmp_path / "rows.parquet")
    begun: list[str] = []
    table = scan(tmp_path / "rows.parquet").watched(lambda words, share: begun.append(words.split(":")[0]))
    OfFewRows(random_state=0).fit(table, prior=prior)
    # Labels are read from five samples more than a background is.
    assert abs(len(set(begun)) - table.estimate().passes) <= 3


def test_an_estimate_counts_passes_and_bytes(parts: Path) -> None:
    table = scan(parts)
    told = table.estimate(evaluations=40)
    assert told.passes == 46
    assert told.bytes_per_pass == sum(file.stat().st_size for file in parts.iterdir())
    assert told.memory > 8 * len(table)
    assert str(table.estimate()).startswith("about 7 passes of ")


def test_a_sample_is_the_same_whenever_drawn_and_in_the_order_of_the_rows(parts: Path) -> None:
    table = scan(parts)
    whole = pa.Table.from_batches(table.batches())
    drawn = table.sample(50)
    assert len(drawn) == 50
    assert drawn.equals(table.sample(50))
    places = [whole["a"].to_pylist().index(value) for value in drawn["a"].to_pylist()]
    assert places == sorted(places)
    assert table.sample(5000).num_rows == 900


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [([], "at least one column and none twice"), (["a", "a"], "none twice"), (3, "must be a list of names")],
)
def test_columns_are_names_and_each_is_chosen_once(parts: Path, columns: Any, sentence: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=sentence):
        scan(parts, columns=columns)


def test_a_folder_without_tables_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here")
    with pytest.raises(InvalidValueError, match="path must be a folder with tables in it"):
        scan(tmp_path)
