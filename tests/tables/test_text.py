"""Text files in every dialect: what is recognised, what is told, what is tidied, and what may be overruled."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from imapce.errors import FileFormatError, InvalidTypeError, InvalidValueError, MissingExtraError
from imapce.tables import read_table, recognised, write_table
from imapce.tables.dialect import SAMPLE_BYTES, recognise

PLAIN = {"a": [1.5, 2.5, 4.0], "b": ["x", "y", "x"]}


def table_of(text: str | bytes, folder: Path, name: str = "t.csv", **given: Any) -> dict[str, list[Any]]:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_table(file, **given).to_pydict()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1.5,x\n2.5,y\n4,x\n", ""),
        ("a,b\r\n1.5,x\r\n2.5,y\r\n4,x\r\n", ""),
        ("\ufeffa,b\n1.5,x\n2.5,y\n4,x\n", ""),
        ("a;b\n1,5;x\n2,5;y\n4;x\n", "semicolons between values and a decimal comma"),
        ("sep=;\na;b\n1,5;x\n2,5;y\n4;x\n", "semicolons between values and a decimal comma"),
        ("a\tb\n1.5\tx\n2.5\ty\n4\tx\n", "tabs between values"),
        ("a|b\n1.5|x\n2.5|y\n4|x\n", "bars between values"),
        ("a    b\n1.5  x\n2.5\ty\n  4  x \n", "blanks between values"),
        ("# made by hand\n# in 1998\na,b\n1.5,x\n2.5,y\n4,x\n", "2 lines above the table passed over"),
        ("# a,b\n1.5,x\n2.5,y\n4,x\n", "the names in its comment"),
        ("Sizes of things\n\na,b\n1.5,x\n2.5,y\n4,x\n", "2 lines above the table passed over"),
        ("a,b\n1.5,x\n# a pause\n2.5,y\n4,x\n", ""),
        (" a , b\n 1.5 , x\n2.5,  y \n4, x\n", ""),
        ('a, b\n1.5, "x"\n2.5, "y"\n4, "x"\n', ""),
        ("a,b,\n1.5,x,\n2.5,y,\n4,x,\n", ""),
        ("a,b\n1.5,x,\n2.5,y,\n4,x,\n", ""),
        ("a,b,\n1.5,x\n2.5,y\n4,x\n", ""),
    ],
)
def test_one_table_in_many_dialects(text: str, words: str, tmp_path: Path) -> None:
    assert table_of(text, tmp_path) == PLAIN
    assert recognised(tmp_path / "t.csv").words == words


@pytest.mark.parametrize("code", ["utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"])
def test_encodings(code: str, tmp_path: Path) -> None:
    assert table_of("größe,b\n1.5,café\n2.5,thé\n".encode(code), tmp_path) == {
        "größe": [1.5, 2.5],
        "b": ["café", "thé"],
    }
    assert "the encoding " in recognised(tmp_path / "t.csv").words


def test_an_encoding_that_shows_only_beyond_what_was_looked_at(tmp_path: Path) -> None:
    text = "a,b\n" + "1,plain\n" * SAMPLE_BYTES + "2,café\n"
    assert table_of(text.encode("cp1252"), tmp_path)["b"][-1] == "café"


def test_numbers_that_turn_to_text_or_fractions_far_down(tmp_path: Path) -> None:
    rows = (1 << 24) // 4
    assert table_of("a,b\n" + "1,2\n" * rows + "1.5,x\n", tmp_path)["b"][-1] == "x"


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("5.1,3.5,Iris\n4.9,3.0,Iris\n", False),
        ("39, State-gov, 77516\n50, Private, 83311\n", False),
        ("1.5,2.5\n3,4\n", False),
        ("5,0,0,12\n3,0,0,9\n", False),
        ("?,2.5\n3,4\n", False),
        ("p,x,s\ne,x,s\np,b,s\np,x,y\n", False),
        ("2020-01-01,5\n2020-01-02,7\n", False),
        ("alice,31\nbob,42\n", False),
        ("0,1,2\n5,6,8\n", True),
        (",0\n0,1.5\n1,2.5\n", True),
        ("country,2019,2020\nA,1,2\nB,3,4\n", True),
        ("sample,400.5,401,401.5,402,402.5\nA,1,2,3,4,5\nB,3,4,5,6,7\n", True),
        ("size,2019\n1,2\n3,4\n", True),
        ("day,1/22/20\na,5\nb,6\n", True),
        ("name,kind\nalice,x\nbob,y\n", True),
        ('"c","7"\n"u",1\n"v",2\n', True),
    ],
)
def test_a_first_row_of_data_is_told_from_one_of_names(text: str, header: bool, tmp_path: Path) -> None:
    columns = table_of(text, tmp_path)
    assert recognised(tmp_path / "t.csv").header is header
    assert (next(iter(columns)) == "x0") is not header
    assert len(next(iter(columns.values()))) == len(text.splitlines()) - header


def test_what_is_given_overrules_and_is_not_told(tmp_path: Path) -> None:
    assert table_of("a;b\n1;2\n", tmp_path, sep=",") == {"a;b": ["1;2"]}
    assert table_of("a;b\n1,5;2,5\n", tmp_path, decimal=".") == {"a": ["1,5"], "b": ["2,5"]}
    assert table_of("0,1\n2,3\n", tmp_path, header=False) == {"x0": [0, 2], "x1": [1, 3]}
    assert table_of("1.5,2\n3,4\n", tmp_path, header=True) == {"1.5": [3], "2": [4]}
    assert table_of("a\né\n".encode(), tmp_path, encoding="latin-1") == {"a": ["Ã©"]}
    assert table_of("a::b\n1::2\n", tmp_path, sep="::") == {"a": [1], "b": [2]}
    assert table_of("a\tb\n1\t2\n", tmp_path, sep="tab") == {"a": [1], "b": [2]}
    assert recognise(b"1;2,5\n3;4,5\n", sep=";", decimal=",", header=False).words == ""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"sep": ""}, "sep must be"),
        ({"decimal": ";"}, "decimal must be"),
        ({"sep": ",", "decimal": ","}, "decimal must differ"),
        ({"encoding": "klingon"}, "encoding must be one that Python knows"),
    ],
)
def test_what_cannot_be_given(given: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=told):
        table_of("a,b\n1,2\n", tmp_path, **given)
    with pytest.raises(InvalidTypeError, match="header must be"):
        table_of("a,b\n1,2\n", tmp_path, header=0)
    write_table({"a": [1]}, tmp_path / "t.parquet")
    with pytest.raises(InvalidValueError, match="sep is for text files"):
        read_table(tmp_path / "t.parquet", sep=";")
    with pytest.raises(FileFormatError, match="not ascii text"):
        table_of("a,b\né,2\n", tmp_path, encoding="ascii")


def test_columns_are_tidied(tmp_path: Path) -> None:
    text = 'a,a,,n,t,d,w\n1,2,3,"1,234",?, 2020-01-01,NA \n4,5,6,"12",7, 2020-01-02, x\n'
    with pytest.warns(UserWarning, match="'a' is called 'a_1'"):
        table = table_of(text, tmp_path)
    assert table == {
        "a": [1, 4],
        "a_1": [2, 5],
        "unnamed2": [3, 6],
        "n": [1234, 12],
        "t": [None, 7],
        "d": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)],
        "w": [None, "x"],
    }
    assert table_of("a;b\n1.234,5;x\n12,25;?\n", tmp_path) == {"a": [1234.5, 12.25], "b": ["x", "?"]}


def test_row_names_of_r_get_a_name(tmp_path: Path) -> None:
    assert table_of('"x" "y"\n"r 1" 1 2\n"r 2" 3 4\n', tmp_path, "t.txt") == {
        "unnamed0": ["r 1", "r 2"],
        "x": [1, 3],
        "y": [2, 4],
    }


def test_short_rows_are_filled_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="1 of 3 rows have fewer than 2 values, the first of them row 3"):
        assert table_of("a,b\n1,2\n3\n5,6\n", tmp_path) == {"a": [1, 3, 5], "b": [2, None, 6]}
    with pytest.raises(FileFormatError, match="cut short"):
        table_of("a,b\n1,2\n3", tmp_path)


@pytest.mark.parametrize("packed", ["gz", "bz2", "zst"])
def test_packed_text(packed: str, tmp_path: Path) -> None:
    pack = {"gz": gzip.compress, "bz2": bz2.compress}.get(packed, lambda data: pa.compress(data, "zstd", asbytes=True))
    assert table_of(pack(b"a;b\n1,5;2\n"), tmp_path, f"t.csv.{packed}") == {"a": [1.5], "b": [2]}
    assert recognised(tmp_path / f"t.csv.{packed}").sep == ";"
    assert table_of(pack(b'{"a": 1}\n{"b": 2}\n'), tmp_path, f"t.jsonl.{packed}") == {"a": [1, None], "b": [None, 2]}


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a;b\n1,5;2\n")))
    assert read_table("-").to_pydict() == {"a": [1.5], "b": [2]}
    with pytest.raises(FileFormatError, match="standard input is empty"):
        read_table("-")


def test_folders_and_patterns_of_parquet(tmp_path: Path) -> None:
    write_table({"a": [1], "b": [2.5]}, tmp_path / "1.parquet")
    write_table({"b": [3], "a": [4]}, tmp_path / "2.parquet")
    for path in (tmp_path, tmp_path / "*.parquet", tmp_path / "[12].parquet"):
        assert read_table(path).to_pydict() == {"a": [1, 4], "b": [2.5, 3.0]}
    with pytest.raises(FileFormatError, match="at most 10 bytes"):
        read_table(tmp_path, max_bytes=10)
    with pytest.raises(FileFormatError, match="finds no file"):
        read_table(tmp_path / "x*.parquet")
    write_table({"a": ["x"], "b": [3]}, tmp_path / "3.parquet")
    with pytest.raises(FileFormatError, match="same types"):
        read_table(tmp_path)
    write_table({"a": [1], "c": [3]}, tmp_path / "3.parquet")
    with pytest.raises(FileFormatError, match=r"'1.parquet' and '3.parquet' differ in 'b', 'c'"):
        read_table(tmp_path)
    (tmp_path / "notes.txt").write_text("a,b\n1,2\n")
    with pytest.raises(FileFormatError, match=r"also finds 'notes.txt'"):
        read_table(tmp_path / "*")


def test_the_first_sheet_of_excel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in ([], ["size", "kind", "day", None], [1.5, " a", datetime.date(2020, 1, 1), None], [2, "b, c", None]):
        book.active.append(row)
    book.create_sheet("other")
    file = tmp_path / "t.xlsx"
    book.save(file)
    assert read_table(file).to_pydict() == {
        "size": [1.5, 2.0],
        "kind": ["a", "b, c"],
        "day": [datetime.date(2020, 1, 1), None],
    }
    assert read_table(file, header=False).num_rows == 3
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"imapce\[excel\]"):
        read_table(file)


def test_a_separator_before_a_quote_does_not_swallow_the_table(tmp_path: Path) -> None:
    text = 'a,"b""c&amp;",d\n1.5,3.5,5.5\n2.5,4.5,6.5\n'
    assert table_of(text, tmp_path) == {"a": [1.5, 2.5], 'b"c&amp;': [3.5, 4.5], "d": [5.5, 6.5]}
