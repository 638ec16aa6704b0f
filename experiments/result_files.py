"""A file of results: one figure a line, as block, row, column and value; what pages and prose quote is in such files.

Nothing but the standard library is needed, so that a machine with a graphics card and little else can write one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

COLUMNS = ("block", "row", "column", "value")
Cell = str | float | int | None
# Block, row and column name a figure.
Figure = tuple[str, str, str, Cell]
Figures = dict[str, dict[str, dict[str, str]]]


class PageError(Exception):
    """A page that asks for what no file of results has."""


class Titled(Protocol):
    """A table of figures; the first cell of a row is its name."""

    @property
    def title(self) -> str: ...
    @property
    def head(self) -> Sequence[str]: ...
    @property
    def rows(self) -> Sequence[Sequence[Any]]: ...


def write_blocks(path: Path, blocks: Iterable[Titled]) -> None:
    """Every cell by the first cell of its row and the head of its column."""
    figures = (
        (block.title, str(row[0]), column, cell)
        for block in blocks
        for row in block.rows
        for column, cell in zip(block.head[1:], row[1:], strict=True)
    )
    write_figures(path, figures)


def write_figures(path: Path, figures: Iterable[Figure]) -> None:
    """A line for each figure; numbers with six digits, which is more than a page ever quotes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for block, row, column, value in figures:
            writer.writerow([block, row, column, float(f"{value:.6g}") if isinstance(value, float) else value])


def read_figures(path: Path) -> Figures:
    """Every value as it is written, by block, row and column, in the order of the file."""
    figures: Figures = {}
    with open(path, newline="", encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            figures.setdefault(line["block"], {}).setdefault(line["row"], {})[line["column"]] = line["value"]
    return figures


def value_of(text: str) -> Cell:
    """What was written: a whole number, a number, nothing, or words.

    >>> value_of("7"), value_of("0.5"), value_of(""), value_of("holds")
    (7, 0.5, None, 'holds')
    """
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
