"""One HTML page with figures and tables that needs nothing else: no server, no network, no other file.

>>> write_report("report.html", title="Penguins", sections=[Section("View", "Two groups.")]).name
'report.html'
"""

from __future__ import annotations

import base64
import html
import numbers
import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from imapce.common.whole_files import as_path, whole_file, writable_target
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.plotting.files import figure_bytes

Table = tuple[Sequence[object], Sequence[Sequence[object]]]
_CONTENTS_FROM = 4
_REPORT_DPI = 150


@dataclass(frozen=True)
class Section:
    """A part of a report: a title, text (a blank line begins a paragraph), captioned figures and a table.

    >>> Section("Fit", "It converged.", table=(["alpha", "objective"], [[1.0, 0.25]])).figures
    []
    """

    title: str
    text: str = ""
    figures: list[tuple[str, Figure]] = field(default_factory=list)
    _: KW_ONLY
    table: Table | None = None


def write_report(
    path: str | os.PathLike[str],
    *,
    title: str,
    sections: Sequence[Section],
    summary: str | Mapping[str, object] | None = None,
    dpi: float = _REPORT_DPI,
) -> Path:
    """Write a report as one self-contained HTML page and return its path.

    `summary` is either text or a mapping of facts, shown below the title. Every text is shown as written:
    nothing in a title, a caption or a table is taken for HTML. `dpi` is the resolution of the figures, which
    decides how large the page is.

    >>> page = write_report("report.html", title="Penguins", sections=[Section("View")], summary={"rows": 344})
    >>> "<dd>344</dd>" in page.read_text()
    True
    """
    report_target(path)
    target = Path(path)
    if isinstance(sections, Section) or not all(isinstance(section, Section) for section in sections):
        raise InvalidTypeError("sections must be a list of Section, got another kind; wrap each part in Section().")
    parts = [_section(number, section, dpi) for number, section in enumerate(sections, start=1)]
    contents = _contents(sections) if len(sections) >= _CONTENTS_FROM else ""
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        # Even if some text got past the escaping, the browser would neither run nor fetch anything.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<link rel="icon" href="data:,">\n<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n'
        f"<body>\n<main>\n<header>\n<h1>{_text(title)}</h1>\n{_summary(summary)}</header>\n{contents}"
        + "".join(parts)
        + "</main>\n</body>\n</html>\n"
    )
    # Text from a broken file can hold half characters, which UTF-8 cannot write.
    with whole_file(target) as stream:
        stream.write(page.encode("utf-8", "xmlcharrefreplace"))
    return target


def report_target(path: str | os.PathLike[str]) -> Path:
    """The file that `write_report` would write, or one sentence on why it could not; for checks ahead of long work.

    >>> report_target("report.html").name
    'report.html'
    """
    target = as_path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidValueError(f"path must end in .html, got {target.name!r}; a report is an HTML page.")
    return writable_target(target)


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)


def _paragraphs(text: str) -> str:
    blocks = [block for block in text.replace("\r\n", "\n").split("\n\n") if block.strip()]
    return "".join(f"<p>{_text(block.strip())}</p>\n" for block in blocks)


def _summary(summary: str | Mapping[str, object] | None) -> str:
    if summary is None:
        return ""
    if isinstance(summary, Mapping):
        facts = "".join(
            f"<div><dt>{_text(name)}</dt><dd>{_text(_cell(value)[0])}</dd></div>" for name, value in summary.items()
        )
        return f'<dl class="facts">{facts}</dl>\n'
    return f'<div class="summary">{_paragraphs(summary)}</div>\n'


def _contents(sections: Sequence[Section]) -> str:
    links = "".join(
        f'<li><a href="#section-{number}">{_text(section.title)}</a></li>'
        for number, section in enumerate(sections, start=1)
    )
    return f'<nav aria-label="Contents"><ol>{links}</ol></nav>\n'


def _section(number: int, section: Section, dpi: float) -> str:
    figures = "".join(_figure(caption, figure, dpi) for caption, figure in section.figures)
    table = "" if section.table is None else _table(section.title, section.table)
    return (
        f'<section id="section-{number}">\n<h2>{_text(section.title)}</h2>\n'
        f"{_paragraphs(section.text)}{figures}{table}</section>\n"
    )


def _figure(caption: str, figure: Figure, dpi: float) -> str:
    image = base64.b64encode(figure_bytes(figure, ".png", dpi)).decode("ascii")
    return (
        f'<figure><img src="data:image/png;base64,{image}" alt="{_text(caption)}">'
        f"<figcaption>{_text(caption)}</figcaption></figure>\n"
    )


def _table(title: str, table: Table) -> str:
    header, rows = table
    uneven = [number for number, row in enumerate(rows, start=1) if len(row) != len(header)]
    if uneven:
        raise InvalidValueError(
            f"the table of section {title!r} must have {len(header)} cells in every row, as its header has, "
            f"got another number in row {uneven[0]}; fill missing cells with an empty text."
        )
    cells = [[_cell(value) for value in row] for row in rows]
    # A column of numbers is read from the right, header included.
    right = [bool(cells) and all(row[column][1] for row in cells) for column in range(len(header))]
    sides = [' class="number"' if numeric else "" for numeric in right]
    head = "".join(f'<th scope="col"{side}>{_text(name)}</th>' for side, name in zip(sides, header, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{side}>{_text(text)}</td>" for side, (text, _) in zip(sides, row, strict=True))
        + "</tr>\n"
        for row in cells
    )
    return (
        f'<div class="table" tabindex="0" role="region" aria-label="{_text(title)}"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>\n</table></div>\n"
    )


def _cell(value: object) -> tuple[str, bool]:
    """Give the text of a cell and whether it is a number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        return str(value), False
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}", True
    return f"{float(value):.4g}", True


_STYLE = """
:root { --page: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d9dee4; --card: #f6f8fa; --link: #0a5cad; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171c; --ink: #e6e9ed; --soft: #a3adb8; --line: #343b44; --card: #1d2228;
    --link: #7db8f5; }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.6; overflow-wrap: break-word;
  font: 17px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 920px; margin: 0 auto; padding: 48px 24px 96px; }
h1 { font-size: 2.1rem; line-height: 1.2; letter-spacing: -0.02em; margin: 0 0 16px; }
h2 { font-size: 1.35rem; line-height: 1.3; letter-spacing: -0.01em; margin: 0 0 12px; }
p { margin: 0 0 14px; max-width: 44em; }
a { color: var(--link); }
section { margin-top: 40px; padding-top: 32px; border-top: 1px solid var(--line); }
.summary { color: var(--soft); font-size: 1.1rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px;
  margin: 24px 0 0; }
.facts div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px;
  min-width: 0; }
dt { color: var(--soft); font-size: 0.82rem; }
dd { margin: 2px 0 0; font-weight: 600; font-variant-numeric: tabular-nums; }
nav { margin-top: 28px; }
nav ol { margin: 0; padding-left: 1.3em; columns: 2; column-gap: 32px; }
figure { margin: 20px 0; }
img { display: block; width: 100%; height: auto; background: #ffffff; border: 1px solid var(--line);
  border-radius: 12px; padding: 10px; }
figcaption { color: var(--soft); font-size: 0.9rem; margin-top: 8px; }
.table { overflow-x: auto; margin: 20px 0; border: 1px solid var(--line); border-radius: 12px; }
table { border-collapse: collapse; width: 100%; font-size: 0.93rem; }
th, td { text-align: left; padding: 9px 16px; border-bottom: 1px solid var(--line); overflow-wrap: normal; }
tbody tr:last-child td { border-bottom: 0; }
th { background: var(--card); font-weight: 600; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
@media (max-width: 600px) {
  main { padding: 28px 16px 64px; }
  h1 { font-size: 1.6rem; }
  nav ol { columns: 1; }
  img { padding: 4px; border-radius: 8px; }
}
@media print { section { break-inside: avoid; } }
"""
