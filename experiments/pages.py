"""The tables of a Markdown page, written from files of results between two comments that no reader sees.

    <!-- table: results/solver.csv | Ten starts | head problem | digits 2 -->
    …
    <!-- end -->

The file is named from the page's folder, the block by its title. What may follow: `head WORDS` (what the first column
is called), `columns A; B` (these alone, in this order), `rows A; B`, `digits 2` (after the point; otherwise three) or
`figures 3` (that many that count, whatever the size), for one column `digits 2 of seconds`.

    <!-- run: results/results.json -->

is when, on which code and on which machine it was measured; `| card` after it names the scripts it is about.

    python -m experiments.pages PAGE ... [--check]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.result_files import read_figures, value_of
from experiments.table_blocks import Cell, written

MARKED = re.compile(r"(<!-- (table|run): (.*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


class PageError(Exception):
    """A marker that names what is not there."""


def with_tables(page: Path, *, missing_ok: bool = False) -> str:
    """The text of a page with every marked table as the results have it; without its file a table may stay as it is."""

    def made(match: re.Match[str]) -> str:
        name, *options = [one.strip() for one in match[3].split(" | ")]
        path = page.parent / name
        if not path.exists():
            if missing_ok:
                return match[0]
            raise PageError(f"{page}: no file {name}")
        try:
            text = table_text(path, options) if match[2] == "table" else run_text(path, options)
        except PageError as problem:
            raise PageError(f"{page}: {name}: {problem}") from None
        return f"{match[1]}{text}{match[5]}"

    return MARKED.sub(made, page.read_text(encoding="utf-8"))


def table_text(path: Path, options: Sequence[str]) -> str:
    """One block of a file of results as a table of Markdown."""
    title, *rest = options
    figures = read_figures(path)
    if title not in figures:
        raise PageError(f"no block {title!r}; there are {', '.join(figures)}")
    block = figures[title]
    head, columns, rows, ways = "", list(dict.fromkeys(one for row in block.values() for one in row)), list(block), {}
    for option in rest:
        word, _, value = option.partition(" ")
        if word == "head":
            head = value
        elif word == "columns":
            columns = _chosen(value, columns)
        elif word == "rows":
            rows = _chosen(value, rows)
        elif word in ("digits", "figures"):
            count, _, column = value.partition(" of ")
            ways[column] = (word, int(count))
        else:
            raise PageError(f"{option!r} is no option of a table")
    lines = [[head, *columns], ["---"] * (len(columns) + 1)]
    for row in rows:
        cells = [value_of(block[row].get(column, "")) for column in columns]
        ways_of_cells = [ways.get(column, ways.get("")) for column in columns]
        lines.append([row, *(_cell_text(*one) for one in zip(cells, ways_of_cells, strict=True))])
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _chosen(names: str, among: Sequence[str]) -> list[str]:
    chosen = [one.strip() for one in names.split(";")]
    if unknown := [one for one in chosen if one not in among]:
        raise PageError(f"no {unknown[0]!r}; there are {', '.join(among)}")
    return chosen


def _cell_text(cell: Cell, way: tuple[str, int] | None) -> str:
    """
    >>> [_cell_text(one, ("figures", 3)) for one in (0.012345, 17.25, 1727.4, 300, "missed")]
    ['0.0123', '17.2', '1,727', '300', '**missed**']
    >>> _cell_text(0.5, ("digits", 1)), _cell_text(0.5, None), _cell_text(2e-13, ("figures", 2))
    ('0.5', '0.500', '2.0e-13')
    """
    if cell == "missed":
        return "**missed**"
    if not isinstance(cell, float) or cell != cell or way is None:
        return written(cell)
    kind, count = way
    if kind == "digits":
        return f"{cell:,.{count}f}"
    if cell and abs(cell) < 1e-4:
        return f"{cell:.{count - 1}e}"
    # As many digits after the point as leave `count` that count; before the point all of them are shown.
    exponent = int(f"{cell:.{count - 1}e}".partition("e")[2])
    return f"{cell:,.{max(0, count - 1 - exponent)}f}"


def run_text(path: Path, names: Sequence[str] = ()) -> str:
    """When, on which code and where a run was made: a sentence, and one more for what was measured elsewhere."""
    told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    runs = {"": told} if "date" in told else told
    wanted = [one for option in names for one in re.split(r", *", option)]
    if unknown := [one for one in wanted if one not in runs]:
        raise PageError(f"no {unknown[0]!r}; there are {', '.join(runs)}")
    groups: dict[tuple[str, str, str], list[str]] = {}
    for name, run in runs.items():
        if not wanted or name in wanted:
            groups.setdefault((run["date"], run["commit"], machine_text(run["machine"])), []).append(name)
    sentences = []
    for (date, commit, machine), members in sorted(groups.items(), key=lambda one: -len(one[1])):
        begin = "Measured" if not sentences else f"{', '.join(f'`{one}`' for one in members)}:"
        taken = sum(runs[one].get("seconds", 0.0) for one in members)
        minutes = f", {taken / 60:.0f} minutes" if taken >= 90 else f", {taken:.0f} seconds" if taken else ""
        sentences.append(f"{begin} {date} at commit `{commit}` on {machine}{_versions(runs, members)}{minutes}.\n")
    return "".join(sentences)


def machine_text(machine: Any) -> str:
    """A machine in words; where a run tells it in words, these."""
    if isinstance(machine, str):
        return machine
    cores = f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']} GiB"
    return f"{machine['card']} ({cores})" if machine.get("card") else cores


def _versions(runs: dict[str, Any], members: Sequence[str]) -> str:
    versions: dict[str, str] = {}
    for name in members:
        versions.update(runs[name].get("versions", {}))
    return "; " + ", ".join(f"{one} {version}" for one, version in versions.items()) if versions else ""


def update(pages: Sequence[Path], *, check: bool = False) -> list[Path]:
    """Write the tables of some pages anew, or only look; the pages that differ from their results."""
    differing = []
    for page in pages:
        text = with_tables(page, missing_ok=True)
        if text != page.read_text(encoding="utf-8"):
            differing.append(page)
            if not check:
                page.write_text(text, encoding="utf-8")
    return differing


def main(pages: Sequence[Path] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.pages", description=__doc__.partition("\n")[0])
    if not pages:
        parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 where a table differs")
    asked = parser.parse_args()
    try:
        differing = update(pages or asked.pages, check=asked.check)
    except PageError as problem:
        sys.exit(str(problem))
    for page in differing:
        print(f"{page}: {'differs from its results' if asked.check else 'written'}")
    sys.exit(1 if asked.check and differing else 0)


if __name__ == "__main__":
    main()
