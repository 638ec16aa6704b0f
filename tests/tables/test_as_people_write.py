"""Columns as people write them, each read as a person would: through a CSV file and through a pandas table.

A case has 24 cells of one column and says what must come of it: numbers with these values, categories with these
levels, or a column that is left out for this reason; and words of the note. The table has a column of numbers besides.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import imapce
from imapce.tables import encode

ROWS = 24
COUNT = np.arange(ROWS)
WHOLE = [str(100 + 7 * place) for place in COUNT]
TENTHS = [f"{1 + 0.7 * place:.1f}" for place in COUNT]
GAP = None


def put(cells: Sequence[str], **at: str) -> list[str]:
    """The cells with others in rows that count from 1: put(cells, r8="n.a.")."""
    changed = list(cells)
    for row, cell in at.items():
        changed[int(row[1:]) - 1] = cell
    return changed


def gaps(values: Sequence[float], *rows: int) -> list[float | None]:
    return [GAP if place + 1 in rows else float(value) for place, value in enumerate(values)]


WHOLE_VALUES = [float(cell) for cell in WHOLE]
TENTH_VALUES = [float(cell) for cell in TENTHS]


@dataclass(frozen=True)
class Case:
    """What 24 cells are: `values` of numbers, `levels` of categories, or the `reason` why they are no feature."""

    cells: list[str]
    values: list[float | None] | None = None
    levels: tuple[str, ...] | None = None
    reason: str = ""
    note: str = ""
    name: str = "c"


def numbers(cells: list[str], values: Sequence[float | None], note: str = "", name: str = "c") -> Case:
    return Case(cells, values=list(values), note=note, name=name)


def categories(cells: list[str]) -> Case:
    return Case(cells, levels=tuple(sorted(set(cells) - {""})))


def left_out(cells: list[str], reason: str, name: str = "c") -> Case:
    return Case(cells, reason=reason, name=name)


def cycle(*cells: str) -> list[str]:
    return [cells[place % len(cells)] for place in COUNT]


def prices(shape: str, mark: str = ".") -> list[str]:
    thousands = {".": ",", ",": "."}[mark]
    amounts = [f"{1000.5 + 33 * place:,.2f}" for place in COUNT]
    return [shape.format(a.translate(str.maketrans({",": thousands, ".": mark}))) for a in amounts]


PRICES = [1000.5 + 33 * place for place in COUNT]
DAYS = pd.Timestamp("2024-11-20") + pd.to_timedelta(COUNT * 3, unit="D")
FIRST = DAYS[COUNT % 3 * 4]

CASES = {
    # Stray words among numbers.
    "one n.a.": numbers(put(WHOLE, r8="n.a."), gaps(WHOLE_VALUES, 8), "'c' is numbers but for 'n.a.' in row 8"),
    "one dash": numbers(put(WHOLE, r3="-"), gaps(WHOLE_VALUES, 3), "'c' is numbers but for '-' in row 3"),
    "one unknown": numbers(put(TENTHS, r24="unknown"), gaps(TENTH_VALUES, 24), "but for 'unknown' in row 24"),
    "a word twice": numbers(put(TENTHS, r2="missing", r9="missing"), gaps(TENTH_VALUES, 2, 9), "in rows 2 and 9"),
    "several words": numbers(
        put(TENTHS, r2="n.a.", r3="n.a.", r4="n.a.", r5="n.a.", r7="?"),
        gaps(TENTH_VALUES, 2, 3, 4, 5, 7),
        "but for 'n.a.' in 4 rows and '?' in row 7",
    ),
    "half of them a dash": numbers(
        ["-" if place % 2 else cell for place, cell in enumerate(TENTHS)],
        [GAP if place % 2 else value for place, value in enumerate(TENTH_VALUES)],
        "but for '-' in 12 rows",
    ),
    "below detection": numbers(
        put(TENTHS, r1="<LOD", r6="<LOD", r7="<LOD", r9="<LOD"), gaps(TENTH_VALUES, 1, 6, 7, 9), "'<LOD' in 4 rows"
    ),
    "bounds": numbers(put(TENTHS, r1="<0.5", r6="> 100"), gaps(TENTH_VALUES, 1, 6), "'<0.5' in row 1"),
    "a remark": numbers(put(WHOLE, r5="see sheet"), gaps(WHOLE_VALUES, 5), "but for 'see sheet' in row 5"),
    "N/A in capitals": numbers(put(WHOLE, r5="N.A."), gaps(WHOLE_VALUES, 5), "'N.A.'"),
    "spreadsheet errors": numbers(put(TENTHS, r5="#DIV/0!"), gaps(TENTH_VALUES, 5), "'#DIV/0!'"),
    "negative numbers": numbers(put([f"-{cell}" for cell in TENTHS], r5="--"), gaps([-v for v in TENTH_VALUES], 5)),
    "a real minus": numbers(put([f"\u2212{cell}" for cell in TENTHS], r5="n/a."), gaps([-v for v in TENTH_VALUES], 5)),
    "exponents": numbers(put([f"{cell}e-3" for cell in TENTHS], r2="n.a."), gaps([v / 1e3 for v in TENTH_VALUES], 2)),
    "few marks and n.a.": numbers(put(cycle("1", "2", "3"), r4="n.a."), gaps([1, 2, 3] * 8, 4), "'n.a.' in row 4"),
    # Currencies, thousands, per cent.
    "euro before": numbers(prices("€{}"), PRICES, "'c' is numbers in €, as '€1,000.50'"),
    "euro behind, comma": numbers(prices("{} €", ","), PRICES, "in € with a decimal comma"),
    "dollar and a blank": numbers(
        put([f"$ {cell}" for cell in WHOLE], r1="$ 7"), [7, *WHOLE_VALUES[1:]], "numbers in $"
    ),
    "a code of three letters": numbers(prices("CHF {}"), PRICES, "numbers in CHF"),
    "pounds and n.a.": numbers(put(prices("£{}"), r8="n.a."), gaps(PRICES, 8), "but for 'n.a.' in row 8"),
    "brackets for a loss": numbers(put(prices("${}"), r2="($1,033.50)"), [PRICES[0], -1033.5, *PRICES[2:]]),
    "a minus before the sign": numbers(put(prices("${}"), r2="-$7"), [PRICES[0], -7.0, *PRICES[2:]]),
    # One amount is other than a constant step away, or they would number the rows.
    "thousands": numbers(
        put([f"{1234 + 1000 * place:,}" for place in COUNT], r1="1,200"),
        [1200.0, *(1234.0 + 1000 * place for place in COUNT[1:])],
    ),
    "thousands and n.a.": numbers(
        put([f"{1234 + 1000 * place:,}" for place in COUNT], r3="n.a."),
        gaps([1234.0 + 1000 * place for place in COUNT], 3),
    ),
    "blanks for thousands": numbers(
        put([f"{1234 + 1000 * place:,}".replace(",", " ") for place in COUNT], r3="n.a."),
        gaps([1234.0 + 1000 * place for place in COUNT], 3),
    ),
    "per cent": numbers([f"{cell}%" for cell in TENTHS], TENTH_VALUES, "'c' is per cent"),
    "per cent, a blank and 0": numbers(put([f"{cell} %" for cell in WHOLE], r2="0"), [100.0, 0.0, *WHOLE_VALUES[2:]]),
    "decimal commas": numbers(put([t.replace(".", ",") for t in TENTHS], r3="n.a."), gaps(TENTH_VALUES, 3), "comma"),
    # Dates.
    "day/month/year": left_out([f"{day:%d/%m/%Y}" for day in DAYS], "is a date, written day/month/year"),
    "month/day/year": left_out([f"{day:%m/%d/%Y}" for day in DAYS], "is a date, written month/day/year"),
    "day.month.year": left_out([f"{day:%d.%m.%Y}" for day in DAYS], "is a date"),
    "year/month/day": left_out([f"{day:%Y/%m/%d}" for day in DAYS], "is a date"),
    "names of months": left_out([f"{day:%d-%b-%Y}" for day in DAYS], "is a date, with the name of the month"),
    "months first": left_out([f"{day:%b %d, %Y}" for day in DAYS], "is a date, with the name of the month"),
    "dates with times": left_out([f"{day:%d/%m/%Y} 14:30" for day in DAYS], "is a date, written day/month/year"),
    "two digits of a year": left_out([f"{day:%d/%m/%y}" for day in DAYS], "is a date, written day/month/year"),
    "a date missing": left_out(put([f"{day:%d/%m/%Y}" for day in DAYS], r3="unknown"), "is a date"),
    "three days again and again": left_out([f"{day:%d/%m/%Y}" for day in FIRST], "is a date"),
    # Ids and what is nearly one.
    "text ids": left_out([f"s-{place:03}" for place in COUNT], "is an id, 24 distinct values in 24 rows"),
    "an id twice": left_out(put([f"s-{place:03}" for place in COUNT], r5="s-001"), "is free text with 23 distinct"),
    "an id with a gap": left_out(put(WHOLE, r5="n.a."), "is an id, 23 distinct values in 24 rows", "patient_id"),
    "remarks": left_out([f"it was {place} of them, so they said" for place in COUNT], "is free text"),
    "ranges": left_out([f"{place}-{place + 1}" for place in COUNT], "is an id"),
    "versions": left_out([f"1.{place}.3" for place in COUNT], "is an id"),
    "telephone": left_out([f"+49 170 {12345 + place}" for place in COUNT], "is free text"),
    "addresses": left_out([f"192.168.100.{place}" for place in COUNT], "is an id"),
    "house numbers": left_out(put(WHOLE, r2="12b", r5="7a"), "is an id"),
    "two currencies": left_out(put(prices("€{}"), r4="$7"), "is an id"),
    "per cent and not": left_out(put([f"{cell}%" for cell in TENTHS], r4="12"), "is an id"),
    "postal codes": left_out([f"{1000 + 13 * place:05}" for place in COUNT], "is an id"),
    # Categories that hold digits.
    "codes and unknown": categories(cycle("1", "2", "3", "unknown")),
    "codes and a slip": categories(put(cycle("1", "2", "3"), r4="other")),
    "postal codes of a town": categories(cycle("04109", "04155", "04229")),
    "ranges of age": categories(cycle("0-9", "10-19", "20-29")),
    "ordinals": categories(cycle("1st", "2nd", "3rd")),
    "types": categories(cycle("type 1", "type 2")),
    "yes and no": categories(cycle("yes", "no", "yes", "n.a.")),
    "grades": categories(cycle("A1", "A2", "B1")),
    "bounds as classes": categories(cycle("<10", "10-20", ">20")),
    "brackets": categories(cycle("(1)", "(2)", "(3)")),
    "sizes": categories(cycle("S", "M", "L", "42")),
    "numbers and as many words": categories(cycle("5.5", "low", "7.5", "high")),
}


def beside() -> list[float]:
    return np.random.default_rng(0).normal(size=ROWS).round(3).tolist()


def in_csv(case: Case, folder: Path) -> Path:
    path = folder / "rows.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["x", case.name], *zip(beside(), case.cells, strict=True)])
    return path


def in_pandas(case: Case, folder: Path) -> pd.DataFrame:
    return pd.DataFrame({"x": beside(), case.name: case.cells})


def in_polars(case: Case, folder: Path) -> pl.DataFrame:
    return pl.DataFrame({"x": beside(), case.name: case.cells})


@pytest.mark.parametrize("source", [in_csv, in_pandas, in_polars])
@pytest.mark.parametrize("named", CASES)
def test_a_column_is_read_as_a_person_would(named: str, source: Any, tmp_path: Path) -> None:
    case = CASES[named]
    table = imapce.read(source(case, tmp_path))
    if case.reason:
        assert table.column_names == ["x"]
        assert table.left_out[case.name].startswith(case.reason)
        assert any(f"{case.name!r} {case.reason}" in note for note in table.notes)
        return
    assert table.column_names == ["x", case.name]
    assert case.note in " ".join(table.notes)
    encoded = encode(table, missing="mean")
    if case.levels is not None:
        assert encoded.encoding.categories[1] == case.levels
        return
    assert case.values is not None
    assert encoded.encoding.kinds[1] == "number"
    column = [None if pd.isna(value) else float(value) for value in table.native[case.name].to_numpy().tolist()]
    assert column == pytest.approx(case.values)


def test_there_are_forty_columns_and_more() -> None:
    assert len(CASES) >= 40
    kinds = ["number" if case.values else "category" if case.levels else "left out" for case in CASES.values()]
    assert min(kinds.count(kind) for kind in ("number", "category", "left out")) >= 10
