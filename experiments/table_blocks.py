"""How the suite speaks: blocks of figures, a line for what is wanted and seen, and rules judged on tables left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.result_files import Cell, write_blocks
from experiments.results import print_wide


@dataclass(frozen=True)
class Block:
    """One table of figures, with a sentence on how to read it."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def table(self) -> str:
        """The figures as a table of Markdown."""
        return markdown(self.head, [[written(cell) for cell in row] for row in self.rows])

    def show(self, console: Console) -> None:
        console.print(f"\n{self.title}", style="bold", highlight=False, markup=False, soft_wrap=True)
        table = Table()
        for place, column in enumerate(self.head):
            table.add_column(column, no_wrap=True, justify="right" if place else "left")
        for row in self.rows:
            table.add_row(*(written(cell) for cell in row))
        print_wide(table, console)
        if self.note:
            console.print(self.note, highlight=False, markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Wanted:
    """One line of the acceptance: a figure and its bound, from below unless `at_most`. Nothing is asserted."""

    what: str
    bound: float
    seen: float | None
    at_most: bool = False
    where: str = ""

    @property
    def holds(self) -> bool | None:
        if self.seen is None or np.isnan(self.seen):
            return None
        # Figures are printed with three digits, and are held to what is printed.
        seen = round(self.seen, 3)
        return seen <= self.bound if self.at_most else seen >= self.bound

    def row(self) -> list[Cell]:
        words = {True: "yes", False: "no", None: "not measured"}[self.holds]
        return [self.what, f"{'≤' if self.at_most else '≥'} {self.bound:g}", self.seen, words, self.where]


def wanted_block(lines: Sequence[Wanted]) -> Block:
    head = ("what", "wanted", "seen", "holds", "where")
    return Block("Wanted and seen", head, [line.row() for line in lines])


def leave_one_out(scores_by_rule: Mapping[str, Mapping[str, float]]) -> float:
    """What choosing a rule by the suite gives on a table the choice has not seen.

    For each table the rule that is best on average on all the other tables is taken, and its score on this one counts;
    the mean over the tables is returned. A rule that wins by one table alone does not win here.

    >>> lucky = {"a": 1.0, "b": 0.2, "c": 0.2}
    >>> steady = {"a": 0.4, "b": 0.4, "c": 0.4}
    >>> round(sum(lucky.values()) / 3, 3), round(leave_one_out({"lucky": lucky, "steady": steady}), 3)
    (0.467, 0.267)
    """
    rules = list(scores_by_rule)
    tables = list(scores_by_rule[rules[0]])
    scores = np.array([[scores_by_rule[rule][table] for table in tables] for rule in rules])
    if len(tables) < 2:
        return float("nan")
    others = scores.sum(axis=1, keepdims=True) - scores
    return float(np.mean(scores[others.argmax(axis=0), np.arange(len(tables))]))


def rules_block(title: str, rules: Mapping[str, Mapping[str, float]]) -> Block:
    """Every rule's mean over the tables, and what leave-one-table-out makes of the choice among them."""
    rows: list[list[Cell]] = [[rule, mean(list(scores.values()))] for rule, scores in rules.items()]
    note = "The last line: for each table the rule that is best on the others, its score there, averaged."
    return Block(title, ("rule", "mean"), [*rows, ["chosen, leave-one-table-out", leave_one_out(rules)]], note)


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def written(cell: Cell) -> str:
    """
    >>> written(0.12345), written(7), written(None), written("iris")
    ('0.123', '7', '–', 'iris')
    """
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return "–"
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def write(name: str, blocks: Sequence[Block], folder: Path) -> None:
    """All blocks as NAME.csv with one figure a line."""
    write_blocks(folder / f"{name}.csv", blocks)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Texts as a table of Markdown.

    >>> print(markdown(["table", "NMI"], [["iris", "0.76"]]), end="")
    | table | NMI |
    | --- | --- |
    | iris | 0.76 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
