"""Files as people have them: one small table in every dialect, container and with every kind of odd column.

`python tests/messy.py FOLDER` writes them all. Each case says with which one option, if any, pandas reads the
file, what `imapce embed` is told besides, and whether its view must be that of the clean table (the odd columns are no
features), a view at all, or a refusal with these words.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

ROWS = 60
NAMES = ["size", "weight", "age", "höhe"]
SAME = "the view of the clean table"
ANY = "a view"


def clean() -> pd.DataFrame:
    """Two clusters in four columns, and a kind with an accent; six digits, so that text holds all of them."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(ROWS, 4)) + 4 * (np.arange(ROWS) % 2)[:, None] * [1, 1, 0, 0]
    table = pd.DataFrame(values.round(6), columns=NAMES)
    table["art"] = np.array(["café", "thé", "eau"])[rng.integers(3, size=ROWS)]
    return table


@dataclass(frozen=True)
class Messy:
    """One file: its name, its bytes (or what writes it), and what must come of it."""

    name: str
    make: bytes | Callable[[Path], Any]
    expect: str = SAME
    words: tuple[str, ...] = ()
    pandas: dict[str, Any] | None = field(default_factory=dict)
    note: str = ""
    argument: str | None = None

    def write(self, folder: Path) -> Path:
        """Write it, and tell what a command must be given as DATA."""
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(self.make, bytes):
            path.write_bytes(self.make)
        else:
            self.make(path)
        return path if self.argument is None else folder / self.argument


def text(
    sep: str = ",",
    decimal: str = ".",
    code: str = "utf-8",
    *,
    header: bool = True,
    end: str = "\n",
    quoting: Any = csv.QUOTE_MINIMAL,
    change: Callable[[str], str] = lambda whole: whole,
    **odd: Any,
) -> bytes:
    """The clean table, with odd columns first or last, as a text file."""
    table = clean().assign(**odd)
    stream = io.StringIO(newline="")
    table.to_csv(stream, sep=sep, decimal=decimal, header=header, index=False, lineterminator=end, quoting=quoting)
    return change(stream.getvalue()).encode(code)


def lines_changed(change: Callable[[int, str], str]) -> Callable[[str], str]:
    return lambda whole: "".join(change(place, line) + "\n" for place, line in enumerate(whole.splitlines()))


def cells_joined(join: Callable[[list[str]], str]) -> Callable[[str], str]:
    return lines_changed(lambda place, line: join(line.split(",")))


def _gaps(word: str) -> dict[str, Any]:
    values = [f"{value:.6f}" for value in np.linspace(0, 1, ROWS) ** 2]
    return {"gaps": [word if place % 20 == 7 else value for place, value in enumerate(values)]}


def _excel(path: Path, **options: Any) -> None:
    clean().to_excel(path, index=False, **options)


def _parts(path: Path, change: Callable[[pd.DataFrame], pd.DataFrame] = lambda part: part) -> None:
    clean().iloc[:30].to_parquet(path.parent / "part-0.parquet", index=False)
    change(clean().iloc[30:]).to_parquet(path.parent / "part-1.parquet", index=False)


def _json(**odd: Any) -> bytes:
    return clean().assign(**odd).to_json(orient="records", lines=True, force_ascii=False).encode()


def _r_table(whole: str) -> str:
    lines = whole.replace(",", " ").splitlines()
    return "\n".join([lines[0], *(f'"{place + 1}" {line}' for place, line in enumerate(lines[1:]))]) + "\n"


def dialects() -> list[Messy]:
    """Separators, decimal signs, headers, encodings, comments."""
    semicolons, commas = "semicolons", "a decimal comma"
    plain = [
        Messy("comma.csv", text()),
        Messy("semicolon.csv", text(";"), pandas={"sep": ";"}, note=semicolons),
        Messy("semicolon_decimal_comma.csv", text(";", ","), pandas=None, note=commas),
        Messy("tab.csv", text("\t"), pandas={"sep": "\t"}, note="tabs"),
        Messy("tab.tsv", text("\t"), pandas={"sep": "\t"}),
        Messy("tab.txt", text("\t"), pandas={"sep": "\t"}, note="tabs"),
        Messy("tab_decimal_comma.tab", text("\t", ","), pandas=None, note=commas),
        Messy("bar.csv", text("|"), pandas={"sep": "|"}, note="bars"),
        Messy("bar_decimal_comma.dat", text("|", ","), pandas=None, note=commas),
        Messy("quoted_decimal_comma.csv", text(",", ","), pandas={"decimal": ","}, note=commas),
        Messy("blank.dat", text(" "), pandas={"sep": " "}, note="blanks"),
        Messy(
            "aligned.txt",
            text(change=cells_joined(lambda cells: "".join(f"{cell:>12}" for cell in cells))),
            pandas={"sep": r"\s+"},
            note="blanks",
        ),
        Messy(
            "two_colons.dat",
            text(change=lambda whole: whole.replace(",", "::")),
            words=("--sep", "::"),
            pandas={"sep": "::"},
        ),
        Messy("headless.csv", text(header=False), pandas={"header": None}, note="no header"),
        Messy("headless.data", text(header=False, change=cells_joined(", ".join)), pandas={"header": None}),
        Messy("headless_semicolon.csv", text(";", ",", header=False), pandas=None, note="no header"),
        Messy("headless_blank.dat", text(" ", header=False), pandas=None, note="no header"),
        Messy("headless_told.csv", text(header=False), words=("--no-header",), pandas={"header": None}),
        Messy("sep_line.csv", text(";", change=lambda whole: "sep=;\n" + whole), pandas=None, note=semicolons),
        Messy("comment.csv", text(change=lambda w: "# made by hand\n# in 1998\n" + w), pandas={"comment": "#"}),
        Messy("comments_below.csv", text(change=lines_changed(_comment_below)), pandas={"comment": "#"}),
        Messy("savetxt.csv", text(change=lambda w: "# " + w), pandas={"skipinitialspace": True}, note="comment"),
        Messy("title.csv", text(change=lambda w: "Measured in May\n\n" + w), pandas={"skiprows": 2}, note="2 lines"),
        Messy("counts_above.csv", text(change=lambda w: "60,5,kinds\n" + w), pandas={"skiprows": 1}, note="1 line"),
        Messy("empty_lines.csv", text(change=lambda w: "\n" + w.replace("\n", "\n\n"))),
        Messy("carriage_returns.csv", text(end="\r\n")),
        Messy("old_mac.csv", text(end="\r")),
        Messy("all_quoted.csv", text(quoting=csv.QUOTE_ALL)),
        Messy("blanks_around.csv", text(change=cells_joined(" , ".join)), pandas={"skipinitialspace": True}),
        Messy("blank_before_quote.csv", text(change=cells_joined(_quoted_last)), pandas={"skipinitialspace": True}),
        Messy("trailing_commas.csv", text(change=lines_changed(lambda place, line: line + ","))),
        Messy(
            "trailing_below.csv",
            text(change=lines_changed(lambda place, line: line + "," * (place > 0))),
            pandas={"index_col": False},
        ),
        Messy("no_last_newline.csv", text(change=str.rstrip)),
        Messy("given.csv", text(";", ",", "cp1252"), pandas=None, words=_given(";", ",", "cp1252")),
    ]
    for code in ("utf-8-sig", "utf-16", "utf-16-le", "latin-1", "cp1252"):
        known = code if code != "utf-8-sig" else None
        plain.append(Messy(f"{code}.csv", text(code=code), pandas={"encoding": code}, note="encoding" if known else ""))
    plain.append(Messy("windows_spreadsheet.csv", text(";", ",", "cp1252", end="\r\n"), pandas=None, note="cp1252"))
    return plain


def _given(sep: str, decimal: str, code: str) -> tuple[str, ...]:
    return ("--sep", sep, "--decimal", decimal, "--encoding", code, "--header")


def _comment_below(place: int, line: str) -> str:
    return f"{line}\n# a pause" if place == 20 else line


def _quoted_last(cells: list[str]) -> str:
    return ", ".join([*cells[:-1], f'"{cells[-1]}"'])


def containers() -> list[Messy]:
    """Packed text, JSON lines, Excel, folders and patterns of Parquet."""
    return [
        Messy("packed.csv.gz", gzip.compress(text())),
        Messy("packed.csv.bz2", bz2.compress(text())),
        Messy("packed.csv.zst", pa.compress(text(), "zstd", asbytes=True), pandas=None),
        Messy("packed.txt.gz", gzip.compress(text(";", ",", "cp1252")), pandas=None, note="semicolons"),
        Messy("lines.jsonl", _json(), pandas=None),
        Messy("lines.ndjson.gz", gzip.compress(_json()), pandas=None),
        Messy("lists.jsonl", _json(tags=[["a", "b"]] * ROWS), pandas=None, note="'tags' is list"),
        Messy("sheet.xlsx", _excel, pandas=None),
        Messy("sheet_headless.xlsx", lambda path: _excel(path, header=False), pandas=None, note="no header"),
        Messy("sheet_with_title.xlsx", lambda path: _excel(path, startrow=3, startcol=2), pandas=None),
        Messy("folder/part-0.parquet", _parts, pandas=None, argument="folder"),
        Messy("pattern/part-0.parquet", _parts, pandas=None, argument="pattern/part-*.parquet"),
        Messy("table.feather", lambda path: clean().to_feather(path, compression="zstd"), pandas=None),
    ]


def columns() -> list[Messy]:
    """Columns that are no features, and numbers and names that do not look like it."""
    count = np.arange(ROWS)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(count**2 % 97, unit="D")
    words = np.array(["it was", "as if", "on the"])
    prose = [f"{words[place % 3]} {place % 41} again, and so on" for place in count]
    mean = ("--missing", "mean")
    return [
        Messy("text_id.csv", text(sample=[f"s-{place:03}" for place in count]), note="'sample' is an id"),
        Messy("row_number.csv", text(patient_id=count + 1), note="'patient_id' numbers the rows from 1 to 60"),
        Messy("pandas_index.csv", lambda path: clean().to_csv(path), note="'unnamed0' numbers the rows"),
        Messy("r_table.txt", text(change=_r_table), pandas={"sep": " "}, note="'unnamed0' numbers the rows"),
        Messy("free_text.csv", text(remark=prose), note="'remark' is free text"),
        Messy("line_breaks.csv", text(remark=[line.replace(",", "\n") for line in prose]), note="'remark'"),
        Messy("iso_dates.csv", text(day=days.strftime("%Y-%m-%d")), note="'day' is a date"),
        Messy("times.csv", text(when=days.strftime("%Y-%m-%d %H:%M:%S")), note="'when' is a date"),
        Messy("zoned_times.csv", text(when=days.strftime("%Y-%m-%dT%H:%M:%SZ")), note="'when' is a date"),
        Messy("german_dates.csv", text(";", ",", day=days.strftime("%d.%m.%Y")), pandas=None, note="'day' is a date"),
        Messy("slashed_dates.csv", text(day=days.strftime("%m/%d/%Y")), note="'day'"),
        Messy("hours.csv", text(hour=[f"{place % 24:02}:30" for place in count]), note="'hour' is a date"),
        Messy("dates_taken.csv", text(day=days.strftime("%Y-%m-%d")), ANY, words=("--dates", "as-numbers")),
        Messy("levels.csv", text(town=[f"town {place % 55}" for place in count]), note="'town' has 55 levels"),
        Messy("constant.csv", text(unit="cm", version=3), note="'unit' is constant, 'version' is constant"),
        Messy("all_missing.csv", text(later=np.nan), note="'later' has only missing values"),
        Messy("dropped.csv", text(sample=prose), words=("--drop", "sample")),
        Messy("chosen.csv", text(sample=prose, other=count % 7), words=("--columns", "size,weight,age,höhe,art")),
        Messy("same_names.csv", text(change=lambda w: w.replace("weight", "size", 1))),
        Messy("thousands.csv", text(money=[f"{1000 + 37 * place:,}" for place in count]), ANY),
        Messy("exponents.csv", text(tiny=[f"{place**2 % 7}e-9" for place in count]), ANY),
        Messy("truth.csv", text(on=np.where(count % 3 > 0, "TRUE", "FALSE")), ANY),
        Messy("question_marks.csv", text(**_gaps("?")), ANY, words=mean, pandas={"na_values": "?"}),
        Messy("na.csv", text(**_gaps("NA")), ANY, words=mean),
        Messy("none.csv", text(**_gaps("None")), ANY, words=mean),
        Messy("short_rows.csv", text(change=lines_changed(_short)), ANY, words=mean, note="fewer than 5 values"),
    ]


def _short(place: int, line: str) -> str:
    return line.rsplit(",", 2)[0] if place == 30 else line


def refused() -> list[Messy]:
    """What no option of a reader makes a table to look at; the expected words are the way out."""
    text_only = "name,remark\n" + "".join(f"n{place},said {place}\n" for place in range(ROWS))
    other = _parts_that_differ
    return [
        Messy("gaps.csv", text(**_gaps("")), "fill them with --missing mean"),
        Messy("infinite.csv", text(**_gaps("inf")), "leave the columns out with --drop"),
        Messy("long_row.csv", text(change=lines_changed(_long)), "goes in double quotes", pandas=None),
        Messy("cut.csv", text()[:-40], "which was cut short", pandas=None),
        Messy("picture.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "correct its suffix", pandas=None),
        Messy("text_only.csv", text_only.encode(), "name the right separator with --sep"),
        Messy("header_only.csv", b"a,b,c\n", "check the step that made it"),
        Messy("empty.csv", b"", "write it again", pandas=None),
        Messy("wrong_code.csv", text(), "--encoding", words=("--encoding", "ascii"), pandas=None),
        Messy("wrong_column.csv", text(), "did you mean 'size'?", words=("--columns", "sice")),
        Messy("differ/part-0.parquet", other, "with the same columns", pandas=None, argument="differ"),
        Messy("nothing/there.txt", b"", "correct the pattern", pandas=None, argument="nothing/*.parquet"),
    ]


def _parts_that_differ(path: Path) -> None:
    _parts(path, lambda part: part.rename(columns={"age": "Age"}))


def _long(place: int, line: str) -> str:
    return line + ",more" if place == 30 else line


CASES = [*dialects(), *containers(), *columns(), *refused()]


if __name__ == "__main__":
    for case in CASES:
        print(case.write(Path(sys.argv[1])))
