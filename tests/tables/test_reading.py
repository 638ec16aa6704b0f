"""`imapce.read`, `IMAPCE.fit` and `Exploration` read as the command line does, and new rows by the same rules."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import imapce
from commands import run
from imapce import IMAPCE, Attributes, Exploration, Given, load_model
from imapce.comparison import compare
from imapce.errors import FileFormatError, InvalidTypeError, InvalidValueError
from imapce.tables import encode, read_table, write_table

ROWS = 90
SETTINGS: dict[str, Any] = {"alpha": 1.0, "mu": 10.0, "n_starts": 2, "random_state": 0}


def messy() -> pd.DataFrame:
    """Three groups in columns as people write them, with an id, a remark, a date and a constant."""
    rng, group = np.random.default_rng(0), np.arange(ROWS) % 3
    a, b, c = (rng.normal(size=(ROWS, 3)) + 7 * np.eye(3)[group]).T
    size = [f"{value:.4f}" for value in a]
    size[7] = "n.a."
    return pd.DataFrame(
        {
            "key": [f"k{place:03}" for place in range(ROWS)],
            "size": size,
            "paid": [f"€{1000 + 10 * value:,.2f}" for value in b],
            "share": c,
            "colour": np.array(["red", "blue"])[np.arange(ROWS) // 3 % 2],
            "seen": [f"{day:%d/%m/%Y}" for day in pd.date_range("2024-01-01", periods=ROWS)],
            "unit": "cm",
        }
    )


FEATURES = ["size", "paid", "share", "colour"]
NOTES = (
    "'size' is numbers but for 'n.a.' in row 8, read as missing.",
    "'paid' is numbers in €, as ",
    "left out of the features: 'key' is an id, 90 distinct values in 90 rows, 'seen' is a date, written "
    "day/month/year, 'unit' is constant; ",
)


def told(notes: list[str]) -> None:
    assert [note.startswith(words) for note, words in zip(notes, NOTES, strict=True)] == [True] * 3


KINDS = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}


@pytest.mark.parametrize("kind", KINDS)
def test_everything_that_learns_reads_alike(kind: str) -> None:
    frame = KINDS[kind](messy())
    table = imapce.read(frame)
    assert table.column_names == FEATURES
    told(table.notes)
    expected = encode(table, missing="mean").matrix
    for model in (IMAPCE(**SETTINGS, missing="mean"), Given(missing="mean")):
        model.fit(frame)
        told(model.notes_)
        assert list(model.feature_names_in_) == FEATURES
        np.testing.assert_array_equal(
            model.reader_.read(frame[FEATURES] if kind != "arrow" else frame.select(FEATURES), missing="mean"), expected
        )
        np.testing.assert_array_equal(
            model.transform(frame), type(model)(**model.get_params()).fit(table).transform(table)
        )
    exploration = Exploration(frame, missing="mean", random_state=0)
    told(exploration.notes_)
    assert exploration.feature_names == ["size", "paid", "share", "colour=blue", "colour=red"]
    assert np.isnan(exploration.column("size").values[7])


def test_python_and_the_command_line_read_one_file_alike(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    messy().to_csv(path, index=False)
    table = imapce.read(path)
    told(table.notes)
    result = run("explore", path, "--missing", "mean", "--max-steps", "1")
    assert result.exit_code == 0, result.stderr
    for words in NOTES[:2]:
        assert f"note: {words}" in result.stderr
    assert "left out of the features and carried to the output: 'key' is an id" in result.stderr
    assert "--columns keeps what can be kept, --dates as-numbers the dates." in result.stderr
    refused = run("explore", path)
    assert refused.exit_code == 2
    assert "'size' has 1" in refused.stderr
    assert "--missing mean" in refused.stderr


def test_a_table_that_was_taken_as_it_is_still_is() -> None:
    frame = pd.DataFrame(
        {
            "id": np.arange(ROWS) // 2,
            "x": np.random.default_rng(0).normal(size=ROWS),
            "on": np.arange(ROWS) % 4 == 0,
            "store": (np.arange(ROWS) % 12).astype(str),
            "mark": np.array(["1", "2", "unknown"])[np.arange(ROWS) % 3],
            "when": np.array(["31/12/2024", "1/1/2025"])[np.arange(ROWS) % 2],
            "rate": np.array(["5%", "7%"])[np.arange(ROWS) // 2 % 2],
            "unit": "cm",
        }
    )
    model = IMAPCE(**SETTINGS).fit(frame)
    assert model.notes_ == []
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.reader_.encoding == encode(frame).encoding
    assert model.reader_.encoding.categories[3] == tuple(sorted(map(str, range(12))))
    assert Exploration(frame).feature_names == list(encode(frame).encoding.feature_names)


ROW_NUMBERS = "left out of the features: 'plate' numbers the rows from 10 to 99 in steps of 1, 'few' has 50 missing "


@pytest.mark.parametrize("kind", KINDS)
def test_row_numbers_and_mostly_missing_columns_are_left_out_of_every_fit(kind: str) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(ROWS, 3)), columns=list("abc"))
    frame = frame.assign(plate=10 + np.arange(ROWS), few=[1.5, 2.5] * 20 + [None] * 50)
    table = KINDS[kind](frame)
    exploration = Exploration(table, missing="mean", random_state=0)
    assert exploration.feature_names == ["a", "b", "c"]
    assert [note.startswith(ROW_NUMBERS) for note in exploration.notes_] == [True]
    model = IMAPCE(**SETTINGS, missing="mean").fit(table)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.notes_ == list(exploration.notes_)
    # A position counts all columns, so none may be left out.
    for prior in (Attributes([0]), Attributes([3])):
        assert Exploration(table, prior=prior, missing="mean").feature_names == list(frame.columns)
        assert list(IMAPCE(missing="mean").fit(table, prior=prior).feature_names_in_) == list(frame.columns)


def test_a_column_that_is_left_out_changes_no_other_column() -> None:
    frame = pd.DataFrame(
        {
            "x": np.random.default_rng(0).normal(size=ROWS),
            "when": np.array(["31/12/2024", "1/1/2025"])[np.arange(ROWS) % 2],
            "rate": np.array(["5%", "7%"])[np.arange(ROWS) // 2 % 2],
        }
    )
    expected = IMAPCE(**SETTINGS).fit(frame).reader_.encoding
    assert IMAPCE(**SETTINGS).fit(frame.assign(plate=np.arange(ROWS))).reader_.encoding == expected


def test_numbers_that_became_forty_categories_are_numbers() -> None:
    cells = [str(place % 41) for place in range(200)]
    cells[7] = "n.a."
    frame = pd.DataFrame({"a": cells, "x": np.random.default_rng(0).normal(size=200)})
    model = IMAPCE(**SETTINGS, missing="mean").fit(frame)
    assert model.reader_.names == ["a", "x"]
    assert model.notes_ == ["'a' is numbers but for 'n.a.' in row 8, read as missing."]


def test_text_and_numbers_side_by_side_in_one_pandas_column() -> None:
    frame = pd.DataFrame({"a": [*np.arange(20) / 2, "n.a.", None], "x": np.random.default_rng(0).normal(size=22)})
    table = imapce.read(frame)
    assert table.native["a"].isna().sum() == 2
    assert table.notes == ["'a' is numbers but for 'n.a.' in row 21, read as missing."]
    assert list(frame["a"])[20] == "n.a.", "the table itself must not change"


# --- new rows ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> IMAPCE:
    return IMAPCE(**SETTINGS, missing="mean").fit(messy())


@pytest.mark.parametrize("kind", KINDS)
def test_new_rows_come_in_any_order_with_or_without_what_was_left_out(model: IMAPCE, kind: str) -> None:
    frame = messy()
    expected = model.transform(frame)
    for columns in (FEATURES, FEATURES[::-1], ["unit", *FEATURES[::-1], "key"]):
        np.testing.assert_array_equal(model.transform(KINDS[kind](frame[columns])), expected)
    with pytest.raises(InvalidValueError, match="stranger"):
        model.transform(KINDS[kind](frame.assign(stranger=1.0)))
    with pytest.raises(InvalidValueError, match="paid"):
        model.transform(KINDS[kind](frame.drop(columns="paid")))


def test_cells_of_new_rows_are_read_by_what_was_learned(model: IMAPCE, tmp_path: Path) -> None:
    frame = messy().head(3)
    expected = model.transform(frame)
    plain = frame.assign(
        size=frame["size"].astype(float), paid=[float(cell.strip("€").replace(",", "")) for cell in frame["paid"]]
    )
    np.testing.assert_allclose(model.transform(plain), expected)
    model.save(tmp_path / "m.imapce")
    again = load_model(tmp_path / "m.imapce")
    np.testing.assert_array_equal(again.transform(frame), expected)
    assert again.notes_ == model.notes_
    missing = frame.assign(size=["n.a.", None, "unknown"])
    np.testing.assert_array_equal(again.transform(missing), model.transform(frame.assign(size=[np.nan] * 3)))
    odd = frame.assign(size=["12.5", "3.5", "large"])
    with pytest.raises(InvalidValueError, match=r"'size' was learned as numbers and has 'large'.*unknown=.ignore"):
        again.transform(odd)
    with pytest.warns(UserWarning, match="no numbers, read as missing: 'size' has 'large'"):
        ignored = again.transform(odd, unknown="ignore")
    np.testing.assert_array_equal(ignored, model.transform(odd.assign(size=[12.5, 3.5, np.nan])))
    with pytest.raises(InvalidValueError, match="was learned as a number and is now"):
        again.transform(frame.assign(share=["tall", "small", "tall"]))


def test_the_transform_command_reads_new_cells_alike(model: IMAPCE, tmp_path: Path) -> None:
    model.save(tmp_path / "m.imapce")
    new = messy().iloc[::-1].head(5)
    new.loc[new.index[1], "size"] = "-"
    new[["seen", *FEATURES[::-1]]].to_csv(tmp_path / "new.csv", index=False)
    result = run("transform", tmp_path / "m.imapce", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0, result.stderr
    written = read_table(tmp_path / "out.csv")
    np.testing.assert_allclose(np.column_stack([written["imapce0"], written["imapce1"]]), model.transform(new))


def test_dates_as_numbers_are_read_alike_in_new_rows() -> None:
    frame = messy()
    table = imapce.read(frame, dates="as-numbers", drop=["unit"])
    assert "seen" in table.column_names
    assert table.native["seen"].iloc[1] - table.native["seen"].iloc[0] == 1
    assert table.left_out == {"key": "is an id, 90 distinct values in 90 rows", "unit": "was dropped"}
    model = IMAPCE(**SETTINGS, missing="mean").fit(table)
    # In these three rows alone nothing tells the day from the month.
    few = frame.head(3)
    np.testing.assert_allclose(model.transform(few), model.transform(table)[:3])
    real = few.assign(seen=pd.to_datetime(few["seen"], dayfirst=True))
    np.testing.assert_allclose(model.transform(real), model.transform(table)[:3])


def test_unknown_categories_are_refused_or_none(model: IMAPCE) -> None:
    new = messy().head(2).assign(colour="green")
    with pytest.raises(InvalidValueError, match="unknown category 'green'"):
        model.transform(new)
    with pytest.warns(UserWarning, match="'colour' has 'green'"):
        assert np.isfinite(model.transform(new, unknown="ignore")).all()


def test_a_session_of_a_messy_table_opens_again(tmp_path: Path) -> None:
    path = tmp_path / "s.imapce"
    exploration = Exploration(messy(), missing="mean", random_state=0)
    _ = exploration.accept(mask=np.arange(ROWS) % 3 == 0)
    exploration.save(path)
    labels = exploration.labels_
    again = Exploration.load(path, messy())
    np.testing.assert_array_equal(again.labels_, labels)
    told(again.notes_)
    other = messy().assign(share=0.5 + np.arange(ROWS))
    with pytest.raises(InvalidValueError, match="must be the data of the session"):
        Exploration.load(path, other, autosave=False)


def test_what_an_exploration_is_told_of_missing_values_counts() -> None:
    with pytest.raises(InvalidValueError, match="'size' has 1"):
        Exploration(messy())
    estimator = IMAPCE(outliers="keep", missing="error")
    assert Exploration(messy(), estimator=estimator, missing="mean").feature_names[0] == "size"
    assert estimator.missing == "error"
    with pytest.raises(InvalidValueError, match="missing must be"):
        Exploration(messy(), missing="median")


def test_columns_and_drop() -> None:
    frame = messy()
    assert imapce.read(frame, columns=["share", "unit"]).column_names == ["share", "unit"]
    assert imapce.read(frame, drop=["share"]).column_names == ["size", "paid", "colour"]
    with pytest.raises(
        InvalidValueError, match="columns must name columns of the table, got 'sice': did you mean 'size'"
    ):
        imapce.read(frame, columns=["sice"])
    with pytest.raises(InvalidValueError, match="sep is for files"):
        imapce.read(frame, sep=";")
    with pytest.raises(InvalidValueError, match="dates must be one of"):
        imapce.read(frame, dates="no")
    with pytest.raises(InvalidValueError, match=r"must keep at least one feature.*'key' is an id"):
        imapce.read(frame[["key", "unit"]])
    with pytest.raises(InvalidTypeError, match="drop needs columns with names"):
        imapce.read(np.eye(3), drop=["a"])
    assert imapce.read(np.eye(3)).shape == (3, 3)


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_zip_with_one_table(tmp_path: Path) -> None:
    path = tmp_path / "rows.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/rows.csv", messy().to_csv(index=False))
        archive.writestr("folder/README", "made by hand")
        archive.writestr("__MACOSX/folder/._rows.csv", b"\x00")
    table = imapce.read(path)
    assert table.column_names == FEATURES
    assert table.notes[0] == "'rows.zip' holds 'rows.csv'."
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.parquet", b"PAR1")
    with pytest.raises(FileFormatError, match=r"holds 2 tables \('folder/rows.csv', 'more.parquet'\): unpack it"):
        imapce.read(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("README", "nothing here")
    with pytest.raises(FileFormatError, match=r"holds no table \('README'\)"):
        imapce.read(path)


def test_a_zip_holds_other_formats_and_no_way_out_of_its_folder(tmp_path: Path) -> None:
    write_table(messy(), tmp_path / "rows.parquet")
    with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
        archive.write(tmp_path / "rows.parquet", "../../rows.parquet")
    assert read_table(tmp_path / "rows.zip").equals(read_table(tmp_path / "rows.parquet"))
    assert not (tmp_path.parent.parent / "rows.parquet").exists()


JSONS = {
    "records": [{"a": 1, "b": "x"}, {"a": "n.a."}, {"a": 3.5, "b": None}],
    "wrapped": {"data": [{"a": 1, "b": "x"}, {"a": "n.a."}, {"a": 3.5, "b": None}]},
    "columns": {"a": [1, "n.a.", 3.5], "b": ["x", None, None]},
    "pandas' columns": {"a": {"0": 1, "1": "n.a.", "2": 3.5}, "b": {"0": "x", "1": None, "2": None}},
    "split": {"columns": ["a", "b"], "index": [0, 1, 2], "data": [[1, "x"], ["n.a.", None], [3.5, None]]},
}


@pytest.mark.parametrize("shape", JSONS)
def test_json_in_every_shape(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(JSONS[shape]))
    assert read_table(path).to_pydict() == {"a": ["1", "n.a.", "3.5"], "b": ["x", None, None]}
    table = imapce.read(path, columns=["a"])
    assert table.native["a"].to_pylist() == [1.0, None, 3.5]
    assert table.notes == ["'a' is numbers but for 'n.a.' in row 2, read as missing."]


def test_json_lines_under_either_name(tmp_path: Path) -> None:
    for name in ("rows.json", "rows.jsonl"):
        (tmp_path / name).write_text('{"a": 1.5}\n{"a": "n.a."}\n{"a": 3}\n')
        assert imapce.read(tmp_path / name).native["a"].to_pylist() == [1.5, None, 3.0]
    for text in ("[]", "3", "[1, 2]", '{"a": 1}', '{"a": [1], "b": [1, 2]}', "{"):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(FileFormatError, match="cannot be read"):
            read_table(tmp_path / "bad.json")


def test_a_workbook_of_several_sheets(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        messy().to_excel(book, sheet_name="May", index=False)
        messy().head(60).to_excel(book, sheet_name="June", index=False)
    table = imapce.read(path)
    assert len(table) == ROWS
    assert table.notes[0] == "'book.xlsx' has 2 sheets, and 'May', the first, was read; sheet= names another ('June')."
    june = imapce.read(path, sheet="June")
    assert len(june) == 60
    assert june.notes[0] == "'size' is numbers but for 'n.a.' in row 8, read as missing."
    with pytest.raises(
        InvalidValueError, match=r"sheet must name a sheet of 'book.xlsx', got 'July': it has 'May', 'June'"
    ):
        imapce.read(path, sheet="July")
    (tmp_path / "rows.csv").write_text("a\n1\n2\n")
    with pytest.raises(InvalidValueError, match=r"sheet is for Excel files, got 'rows.csv'"):
        imapce.read(tmp_path / "rows.csv", sheet="May")
    result = run("embed", path, "--missing", "mean", "--starts", "2", "--alpha", "1", "--mu", "paper")
    assert result.exit_code == 0, result.stderr
    assert "'May', the first, was read; --sheet names another ('June')." in result.stderr
    result = run(
        "embed", path, "--sheet", "June", "--missing", "mean", "--starts", "2", "--alpha", "1", "--mu", "paper"
    )
    assert result.exit_code == 0, result.stderr
    assert "60 rows" in result.stdout + result.stderr
    assert "--sheet must name a sheet" in run("embed", path, "--sheet", "July").stderr


def test_the_decimal_sign_of_a_file_decides_what_a_column_leaves_open(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x;y\n1,5;1.234\n2,5;2.345\n3,5;n.a.\n4,5;4.567\n")
    assert imapce.read(tmp_path / "rows.csv").native["y"].to_pylist() == [1234, 2345, None, 4567]
    (tmp_path / "rows.csv").write_text("x,y\n1.5,1.234\n2.5,2.345\n3.5,n.a.\n4.5,4.567\n")
    assert imapce.read(tmp_path / "rows.csv").native["y"].to_pylist() == [1.234, 2.345, None, 4.567]


def test_a_table_prints_what_was_read() -> None:
    shown = repr(imapce.read(messy()))
    assert shown.startswith("Table of 90 rows and 4 features: 'size', 'paid', 'share', 'colour'\n'size' is numbers")
    assert len(shown.splitlines()) == 4


def test_a_comparison_takes_a_messy_table() -> None:
    comparison = compare(messy(), methods=["PCA", "IMAPCE"], missing="mean", random_state=0)
    assert [one.method.title for one in comparison.worked] == ["PCA", "IMAPCE"]


@pytest.mark.parametrize("data", [3, None, ["a", "b"], {"a": [1.0]}])
def test_what_is_no_table_is_refused_in_one_sentence(data: object) -> None:
    with pytest.raises(InvalidTypeError, match="data must be a path or a table, got "):
        imapce.read(data)
