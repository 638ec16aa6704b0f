"""Every figure that prose quotes, beside the results it comes from: `python -m docs.figures [--write]`.

A figure in prose is followed by its name in a comment, which no reader sees: `an NMI of 0.65<!--nmi-14-->`.
figures.toml says where the name is found in the files of results, and as many digits as are written must agree. A
number that looks like a result and has no name is a mistake, too: what is set, defined or printed by the paper says so
by `<!--set-->`. Code runs as a test of its own, and tables between markers are written by `experiments.pages`.
"""

from __future__ import annotations

import functools
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.result_files import Figures, read_figures

ROOT = Path(__file__).parents[1]
NAMES = ROOT / "docs" / "figures.toml"
# Not what is printed from the code itself or from a file of another page.
PRINTED = ("docs/settings.md", "docs/changelog.md")
SET = "set"

NUMBER = r"[−-]?\d[\d,]*(?:\.\d+)?"
NAMED = re.compile(rf"(?P<number>{NUMBER})(?P<unit>(?:\s|\u00a0)?(?:%|×|°))?<!--(?P<name>[\w-]+)-->")
# Shares and scores with two digits or more, seconds, and how many times one thing is another.
RESULT = re.compile(
    rf"(?<![\w.,])(?:[−-]?[01]\.\d\d+|{NUMBER}(?:\s|\u00a0)(?:ms|s|seconds|minutes|times (?:as|faster|slower)))(?!\w)"
)
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
TABLES = re.compile(r"<!-- (?:table|run|blocks|paper).*?<!-- end -->", re.DOTALL)
LINKS = re.compile(r"\]\([^)]*\)|<!-- .*? -->", re.DOTALL)


@dataclass(frozen=True)
class Place:
    """Where a named figure is kept; a share may be quoted in per cent (`times = 100`), one of two by its `part`."""

    file: str
    block: str
    row: str
    column: str
    times: float = 1.0
    part: int = 0

    def value(self, figures: Figures) -> float:
        """What its file has."""
        return self.times * float(figures[self.block][self.row][self.column].split(" / ")[self.part])


def pages() -> list[Path]:
    """All pages that may quote a figure."""
    every = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*s/README.md")]
    return sorted(page for page in every if page.relative_to(ROOT).as_posix() not in PRINTED)


def places() -> dict[str, Place]:
    """Every name of figures.toml."""
    return {name: Place(**place) for name, place in tomllib.loads(NAMES.read_text(encoding="utf-8")).items()}


def values() -> dict[str, float]:
    """What was measured, for every name."""
    read = functools.cache(read_figures)
    return {name: place.value(read(ROOT / place.file)) for name, place in places().items()}


def quoted(value: float, like: str) -> str:
    """A value with as many digits as a quotation has.

    >>> quoted(0.6471, "0.65"), quoted(12345.6, "12,000"), quoted(-0.02, "−0.1"), quoted(0.0004, "-0.00")
    ('0.65', '12,346', '−0.0', '0.00')
    """
    digits = len(like.partition(".")[2])
    text = f"{value:,.{digits}f}" if "," in like or abs(value) >= 10_000 else f"{value:.{digits}f}"
    return text.replace("-", "−") if "−" in like else text


def mistakes(text: str, known: Mapping[str, float]) -> Iterator[str]:
    """What is wrong with the figures of a page, a line each.

    >>> list(mistakes("It takes 3 s, and finds 0.51<!--found--> of them, 0.05<!--set--> by chance.", {"found": 0.6}))
    ['line 1: 0.51 is 0.60 (found)', "line 1: '3 s' has no name"]
    """
    plain = TABLES.sub(_blank, CODE.sub(_blank, text))
    for match in NAMED.finditer(plain):
        name, number = match["name"], match["number"]
        if name == SET:
            continue
        if name not in known:
            yield f"{_line(plain, match)}: {number} is named {name!r}, which figures.toml does not have"
        elif quoted(known[name], number) != number:
            yield f"{_line(plain, match)}: {number} is {quoted(known[name], number)} ({name})"
    unnamed = LINKS.sub(_blank, NAMED.sub(_blank, plain))
    for match in RESULT.finditer(unnamed):
        yield f"{_line(unnamed, match)}: {match[0]!r} has no name"


def written(text: str, known: Mapping[str, float]) -> str:
    """A page with its named figures brought up to date.

    >>> written("finds 0.51<!--found--> of them", {"found": 0.6})
    'finds 0.60<!--found--> of them'
    """

    def now(match: re.Match[str]) -> str:
        if match["name"] not in known:
            return match[0]
        return f"{quoted(known[match['name']], match['number'])}{match['unit'] or ''}<!--{match['name']}-->"

    return NAMED.sub(now, text)


def _blank(match: re.Match[str]) -> str:
    """As long as what it stands for, so that lines keep their numbers."""
    return re.sub(r"[^\n]", " ", match[0])


def _line(text: str, match: re.Match[str]) -> str:
    return f"line {text.count(chr(10), 0, match.start()) + 1}"


def main(arguments: list[str]) -> int:
    """Compare all pages, or bring them up to date; 1 where a figure differs or has no name."""
    known = values()
    wrong = 0
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if "--write" in arguments and written(text, known) != text:
            text = written(text, known)
            page.write_text(text, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: written")
        for mistake in mistakes(text, known):
            wrong += 1
            print(f"{page.relative_to(ROOT)}: {mistake}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
