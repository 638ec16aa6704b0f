"""What a benchmark measured: tables of figures and claims, on the screen and as benchmarks/results/NAME.csv.

    def main(record: Record, asked: Namespace) -> None:
        table = record.table("Ten starts", "problem", "ours, s", "peer, s", "times faster")
        table.row("synthetic", 0.01, 0.7, 70.0, claim=at_least(60, "times faster"))

    if __name__ == "__main__":
        measure("solver", main, __doc__)

results.json beside the tables says of every script when it ran, on which code and machine, for how many seconds, and
how busy the machine was before. `python -m benchmarks.record FOLDER` takes over what was measured on another machine.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from experiments.result_files import write_figures

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
QUICK_RESULTS = ROOT / "build" / "bench"
LIBRARIES = (
    *("numpy", "scipy", "scikit-learn", "pyarrow", "matplotlib", "pymanopt", "contrastive", "openTSNE", "numba"),
    *("dask", "distributed", "uvicorn", "websockets", "playwright", "cupy-cuda12x", "cupy-cuda13x"),
)
# Beside the figures of a row: its bound, and whether it is kept.
CLAIM_COLUMNS = ("wanted", "claim")
Cell = str | float | int | None


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

    def write(self, folder: Path, run: dict[str, Any]) -> None:
        write_figures(folder / f"{self.name}.csv", self.tables)
        _add_runs(folder, {self.name: run})


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
    parser.add_argument("--commit", help="the code that is measured, where there is no git to ask")
    options(parser)
    asked = parser.parse_args()
    load = os.getloadavg()
    begin = time.perf_counter()
    record = Record(name, asked.quick)
    main(record, asked)
    run = {
        "date": date.today().isoformat(),
        "commit": asked.commit or commit(),
        "machine": {**machine(), **record.machine},
        "versions": {**versions(), **record.versions},
        "seconds": round(time.perf_counter() - begin, 1),
        "load before": [round(one, 2) for one in load],
    }
    record.show()
    folder = asked.out or (QUICK_RESULTS if asked.quick else RESULTS)
    record.write(folder, run)
    print(f"{name}: {run['seconds']:.0f} s, load before {load[0]:.2f}, written to {folder}", flush=True)


def commit() -> str:
    """The commit of the code, and whether what is measured differs from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + ("+changes" if git("status", "--porcelain", "src") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> dict[str, Any]:
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": os.cpu_count(),
        "cpu": models[0] if models else platform.machine(),
        "memory_gib": round(memory),
        "system": platform.system(),
    }


def versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _add_runs(folder: Path, runs: dict[str, Any]) -> None:
    path = folder / "results.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    together = dict(sorted({**known, **runs}.items()))
    path.write_text(json.dumps(together, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def take_over(folder: Path, into: Path = RESULTS) -> list[str]:
    """Bring the results of another machine beside those of this one; the names of its scripts."""
    runs = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    into.mkdir(parents=True, exist_ok=True)
    for name in runs:
        shutil.copyfile(folder / f"{name}.csv", into / f"{name}.csv")
    _add_runs(into, runs)
    return list(runs)


def _main(folders: Sequence[str]) -> None:
    if not folders:
        sys.exit("which folder of results is to be taken over?")
    for folder in folders:
        print(f"taken over: {', '.join(take_over(Path(folder)))}")


if __name__ == "__main__":
    _main(sys.argv[1:])
