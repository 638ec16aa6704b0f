"""What a benchmark measured: tables of figures and claims, on the screen and as benchmarks/results/NAME.csv.

    def main(record: Record, asked: Namespace) -> None:
        table = record.table("Ten starts", "problem", "ours, s", "peer, s", "times faster")
        table.row("synthetic", 0.01, 0.7, 70.0, claim=at_least(60, "times faster"))

    if __name__ == "__main__":
        measure("solver", main, __doc__)

NAME.json beside it says when the script ran, on which code and machine, for how many seconds, and how busy the machine
was before. `python -m benchmarks.record FOLDER` takes over what was measured on another machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.provenance import note_run, read_runs
from experiments.result_files import Cell, write_blocks

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
QUICK_RESULTS = ROOT / "build" / "bench"
# Beside the figures of a row: its bound, and whether it is kept.
CLAIM_COLUMNS = ("wanted", "claim")


@dataclass(frozen=True)
class Claim:
    """What a figure of a row is held to: between `least` and `most`, as it was measured and not as it is printed."""

    column: str
    least: float | None = None
    most: float | None = None

    def __str__(self) -> str:
        if self.least is not None and self.most is not None:
            return f"{self.least:g} to {self.most:g}"
        return f"≤ {self.most:g}" if self.least is None else f"≥ {self.least:g}"

    def holds(self, seen: float) -> bool:
        """
        >>> at_most(2.5, "ratio").holds(2.6), within(0.03, 0.07, "share").holds(0.05)
        (False, True)
        >>> at_most(2.5, "ratio").holds(float("nan"))
        False
        """
        return (self.least is None or seen >= self.least) and (self.most is None or seen <= self.most)


def at_most(bound: float, column: str) -> Claim:
    return Claim(column, most=bound)


def at_least(bound: float, column: str) -> Claim:
    return Claim(column, least=bound)


def within(least: float, most: float, column: str) -> Claim:
    return Claim(column, least, most)


@dataclass
class FigureTable:
    """A table that grows by rows; each is said as soon as it is measured. Claims add two columns."""

    title: str
    head: list[str]
    claims: bool
    judged: bool
    rows: list[list[Cell]] = field(default_factory=list)

    def row(self, name: str, *cells: Cell, claim: Claim | None = None) -> None:
        plain = [_plain(cell) for cell in cells]
        if self.claims:
            plain += [str(claim) if claim else None, self._verdict(claim, plain)]
        assert name not in [row[0] for row in self.rows], f"two rows {name!r}"
        self.rows.append([name, *plain])
        said = ", ".join(f"{column} {_said(cell)}" for column, cell in zip(self.head[1:], plain, strict=True))
        print(f"{self.title} · {name}: {said}", flush=True)

    def _verdict(self, claim: Claim | None, figures: Sequence[Cell]) -> str | None:
        if claim is None or not self.judged:
            return None
        seen = figures[self.head.index(claim.column) - 1]
        assert isinstance(seen, int | float), f"{claim.column} is {seen!r}"
        return "holds" if claim.holds(seen) else "missed"


def _plain(cell: Any) -> Cell:
    """A number of NumPy as Python writes it."""
    return cell.item() if hasattr(cell, "item") else cell


def _said(cell: Cell) -> str:
    return "–" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)


@dataclass
class Record:
    """The tables of one script; `quick` runs are of other sizes, so that no claim is judged by them."""

    name: str
    quick: bool = False
    tables: list[FigureTable] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def table(self, title: str, *head: str, claims: bool = True) -> FigureTable:
        """A table with a name for the column of row names and for every other one."""
        assert title not in [one.title for one in self.tables], f"two tables {title!r}"
        made = FigureTable(title, [*head, *CLAIM_COLUMNS] if claims else list(head), claims, not self.quick)
        self.tables.append(made)
        return made

    def show(self) -> None:
        try:
            from experiments.table_blocks import Block
            from rich.console import Console
        except ImportError:
            # A machine with a card and little else: every row was said as it was measured.
            return
        console = Console()
        for table in self.tables:
            Block(table.title, table.head, table.rows).show(console)

    def write(self, folder: Path, seconds: float, busy: float) -> None:
        write_blocks(folder / f"{self.name}.csv", self.tables)
        note_run(
            folder,
            self.name,
            seconds,
            machine_too=self.machine,
            versions_too=self.versions,
            **{"busy cores before": busy},
        )


def measure(
    name: str,
    main: Callable[[Record, argparse.Namespace], None],
    says: str | None,
    options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> None:
    """Run a script's measurements, show them and write them where they belong."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=(says or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs; judges no claim")
    parser.add_argument("--out", type=Path, help="folder of the results (benchmarks/results, or build/bench if quick)")
    options(parser)
    asked = parser.parse_args()
    busy = busy_cores()
    begin = time.perf_counter()
    record = Record(name, asked.quick)
    main(record, asked)
    seconds = time.perf_counter() - begin
    record.show()
    folder = asked.out or (QUICK_RESULTS if asked.quick else RESULTS)
    record.write(folder, seconds, busy)
    print(f"{name}: {seconds:.0f} s, {busy:g} cores busy before, written to {folder}", flush=True)


def busy_cores(seconds: float = 1.0) -> float:
    """How many cores others keep busy just now; the load would still tell of the script before."""
    told = Path("/proc/stat")
    if not told.exists():
        return float("nan")

    def ticks() -> int:
        user, nice, system = told.read_text(encoding="utf-8").split()[1:4]
        return int(user) + int(nice) + int(system)

    before, begin = ticks(), time.perf_counter()
    time.sleep(seconds)
    # On a busy machine it sleeps longer than it was told to.
    return round((ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.perf_counter() - begin), 2)


def take_over(folder: Path, into: Path = RESULTS) -> list[str]:
    """Bring the results of another machine beside those of this one; the names of its scripts."""
    into.mkdir(parents=True, exist_ok=True)
    names = list(read_runs(folder))
    for name in names:
        for kind in ("csv", "json"):
            shutil.copyfile(folder / f"{name}.{kind}", into / f"{name}.{kind}")
    return names


def _main(folders: Sequence[str]) -> None:
    if not folders:
        sys.exit("which folder of results is to be taken over?")
    for folder in folders:
        print(f"taken over: {', '.join(take_over(Path(folder)))}")


if __name__ == "__main__":
    _main(sys.argv[1:])
