"""The tables of a Markdown page, written from files of results between two comments that no reader sees.

    <!-- table: results/solver.csv | Ten starts | head problem | digits 2 -->
    …
    <!-- end -->

The file is named from the page's folder, the block by its title. What may follow: `head WORDS` (what the first column
is called), `columns A; B` (these alone, in this order), `rows A; B`, `digits 2` (after the point; otherwise three) or
`figures 3` (that many that count, whatever the size), for one column `digits 2 of seconds`.

    <!-- blocks: results/tables.csv -->

is all tables of a file under their titles, and

    <!-- run: results -->

is when, on which code and on which machine it was measured; `| card` after it names the scripts it is about, `| short`
leaves out versions and time, `| each` adds the minutes of every one. What
`<!-- paper: results | … -->` can be is in `against_paper.page_text`.

    python -m experiments.pages PAGE ... [--check]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import against_paper
from experiments.provenance import read_runs
from experiments.result_files import Cell, PageError, read_figures, value_of
from experiments.table_blocks import Block, markdown, written

MARKED = re.compile(r"(<!-- (table|run|blocks|paper): (.*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def with_tables(page: Path) -> str:
    """The text of a page with every marked table as the results have it."""

    def made(match: re.Match[str]) -> str:
        name, *options = [one.strip() for one in match[3].split(" | ")]
        path = page.parent / name
        try:
            if not path.exists():
                raise PageError("it is not there")
            text = TEXTS[match[2]](path, options)
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
    fractions = _of_fractions(block, columns)
    lines = []
    for row in rows:
        cells = [_in_column(value_of(block[row].get(column, "")), column in fractions) for column in columns]
        ways_of_cells = [ways.get(column, ways.get("")) for column in columns]
        lines.append([row, *(_cell_text(*one) for one in zip(cells, ways_of_cells, strict=True))])
    return markdown([head, *columns], lines)


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


def blocks_text(path: Path, options: Sequence[str] = ()) -> str:
    """All blocks of a file of results, each under its title; the numbers of a column as one of them needs."""
    made = []
    for title, rows in read_figures(path).items():
        columns = list(dict.fromkeys(column for row in rows.values() for column in row))
        fractions = _of_fractions(rows, columns)
        cells = [
            [name, *(_in_column(value_of(row.get(one, "")), one in fractions) for one in columns)]
            for name, row in rows.items()
        ]
        made.append(f"**{title}**\n\n{Block(title, ('', *columns), cells).table()}")
    return "\n".join(made)


def _of_fractions(rows: Mapping[str, Mapping[str, str]], columns: Sequence[str]) -> set[str]:
    """The columns in which some number has a fraction."""
    return {
        column for column in columns if any(isinstance(value_of(row.get(column, "")), float) for row in rows.values())
    }


def _in_column(cell: Cell, of_fractions: bool) -> Cell:
    """A score of exactly 1 is written as the others of its column."""
    return float(cell) if of_fractions and isinstance(cell, int) else cell


def run_text(path: Path, names: Sequence[str] = ()) -> str:
    """When, on which code and where a run was made: a sentence, and one more for what was measured elsewhere."""
    runs = read_runs(path)
    short, each = "short" in names, "each" in names
    wanted = [one for option in names if option not in ("short", "each") for one in re.split(r", *", option)]
    if unknown := [one for one in wanted if one not in runs]:
        raise PageError(f"no {unknown[0]!r}; there are {', '.join(runs)}")
    groups: dict[tuple[str, str, str], list[str]] = {}
    for name, run in runs.items():
        if not wanted or name in wanted:
            groups.setdefault((run["date"], run["commit"], machine_text(run["machine"])), []).append(name)
    sentences: list[str] = []
    told_versions: dict[str, str] = {}
    for (date, commit, machine), members in sorted(groups.items(), key=lambda one: -len(one[1])):
        begin = "Measured" if not sentences else f"{', '.join(f'`{one}`' for one in members)}:"
        words = [f"{begin} {date} at commit `{commit}` on {machine}"]
        if short:
            sentences.append(f"{words[0]}.\n")
            continue
        words += _how_long([runs[one] for one in members])
        versions = {one: version for name in members for one, version in runs[name].get("versions", {}).items()}
        # Of another machine or day only what differs.
        words += [f"{one} {version}" for one, version in versions.items() if told_versions.get(one) != version]
        told_versions |= versions
        sentences.append(", ".join(words) + ".\n")
    if each:
        taken = sorted(((run["seconds"], name) for name, run in runs.items()), reverse=True)
        told = ", ".join(f"{name} {seconds / 60:.0f}" for seconds, name in taken)
        sentences.append(f"Minutes of each: {told}.\n")
    return "".join(sentences)


def machine_text(machine: Mapping[str, Any]) -> str:
    """A machine in words."""
    cores = f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']} GiB"
    return f"{machine['card']} ({cores})" if machine.get("card") else cores


def _how_long(runs: Sequence[dict[str, Any]]) -> list[str]:
    """How long some runs took together, and how much else was going on before each of them."""
    words = []
    if seconds := sum(run.get("seconds", 0.0) for run in runs):
        words.append(f"in {seconds / 60:.0f} minutes" if seconds >= 90 else f"in {seconds:.0f} seconds")
    if busy := [run["busy cores before"] for run in runs if "busy cores before" in run]:
        words.append(f"with at most {max(busy):g} cores busy before")
    return words


TEXTS: dict[str, Callable[[Path, list[str]], str]] = {
    "table": table_text,
    "run": run_text,
    "blocks": blocks_text,
    "paper": against_paper.page_text,
}


def update(pages: Sequence[Path], *, check: bool = False) -> list[Path]:
    """Write the tables of some pages anew, or only look; the pages that differ from their results."""
    differing = []
    for page in pages:
        text = with_tables(page)
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
