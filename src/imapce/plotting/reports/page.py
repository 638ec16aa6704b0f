"""One HTML page with figures and tables that needs nothing else: no server, no network, no other file.

>>> write_report("report.html", title="Penguins", sections=[Section("View", "Two groups.")]).name
'report.html'
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from imapce.common.whole_files import as_path, whole_file, writable_target
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.plotting.files import drawn_bytes
from imapce.plotting.reports.cells import cell_html, text_html
from imapce.plotting.reports.hover import SCRIPT_HASH, HoverRows, Places
from imapce.plotting.reports.look import STYLE

Table = tuple[Sequence[object], Sequence[Sequence[object]]]
_CONTENTS_FROM = 4
_REPORT_DPI = 150
# A palette makes a cloud of points a third as large. "Maximum coverage" keeps every colour within 10 of 255; the usual
# median cut moved that of small patches by 70.
_COLORS = 256
# Where a caption says which points answer, which is known last; no text on a page can hold it.
_TOLD = "<!--told-->"


@dataclass(frozen=True, eq=False)
class Picture:
    """A captioned figure; with `points`, one per row of the page's `HoverRows`, its `panels` answer to the mouse.

    >>> Picture("Every point is a row.", Figure()).points is None
    True
    """

    caption: str
    figure: Figure
    points: NDArray[np.float64] | None = None
    panels: Sequence[int] = (0,)


@dataclass(frozen=True)
class Grid:
    """A table with a heading and a remark; `key` tells the colours of its bars, of the rows inside and outside.

    A `compact` one has many columns: small letters, no line breaks, and the first column stays while it is scrolled.

    >>> Grid((["alpha"], [[1.0]]), heading="Fit").remark
    ''
    """

    table: Table
    heading: str = ""
    remark: str = ""
    key: tuple[str, str] | None = None
    compact: bool = False


@dataclass(frozen=True)
class Section:
    """A part of a report: a title, text (a blank line begins a paragraph), captioned figures and a table.

    `lead` is a first paragraph in larger letters, `parts` are more pictures and tables in their order, `anchor` is
    where links lead, `short` what the contents call it and `hue` the colour of a dot before its title.

    >>> Section("Fit", "It converged.", table=(["alpha", "objective"], [[1.0, 0.25]])).figures
    []
    """

    title: str
    text: str = ""
    figures: list[tuple[str, Figure]] = field(default_factory=list)
    _: KW_ONLY
    table: Table | None = None
    parts: Sequence[Picture | Grid] = ()
    lead: str = ""
    anchor: str = ""
    short: str = ""
    hue: str | None = None


def write_report(
    path: str | os.PathLike[str],
    *,
    title: str,
    sections: Sequence[Section],
    summary: str | Mapping[str, object] | None = None,
    dpi: float = _REPORT_DPI,
    hover: HoverRows | None = None,
) -> Path:
    """Write a report as one self-contained HTML page and return its path.

    `summary` is either text or a mapping of facts, shown below the title. Every text is shown as written:
    nothing in a title, a caption or a table is taken for HTML. `dpi` is the resolution of the figures, which
    decides how large the page is. With `hover` the points of pictures that have some can be hovered.

    >>> page = write_report("report.html", title="Penguins", sections=[Section("View")], summary={"rows": 344})
    >>> "<dd>344</dd>" in page.read_text()
    True
    """
    report_target(path)
    target = Path(path)
    if isinstance(sections, Section) or not all(isinstance(section, Section) for section in sections):
        raise InvalidTypeError("sections must be a list of Section, got another kind; wrap each part in Section().")
    page = _Page(dpi)
    parts = "".join(page.section(number, section) for number, section in enumerate(sections, start=1))
    contents = _contents(sections) if len(sections) >= _CONTENTS_FROM else ""
    script, policy = "", ""
    if hover is not None and page.places:
        # Pictures and tables come first; the points get what they leave of the page.
        hover = hover.fitting(n_pictures=len(page.places), page_letters=len(parts) + len(STYLE))
        parts = parts.replace(_TOLD, f" {text_html(hover.caption)}")
        script, policy = hover.html(page.places), f" script-src '{SCRIPT_HASH}';"
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        # Even if some text got past the escaping, the browser would neither fetch anything nor run any other script.
        '<meta http-equiv="Content-Security-Policy" '
        f"content=\"default-src 'none'; img-src data:;{policy} style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<link rel="icon" href="data:,">\n<title>{text_html(title)}</title>\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n<main>\n<header>\n<h1>{text_html(title)}</h1>\n{_summary(summary)}</header>\n{contents}"
        f"{parts.replace(_TOLD, '')}</main>\n{script}</body>\n</html>\n"
    )
    # Text from a broken file can hold half characters, which UTF-8 cannot write.
    with whole_file(target) as stream:
        stream.write(text.encode("utf-8", "xmlcharrefreplace"))
    return target


def report_target(path: str | os.PathLike[str]) -> Path:
    """The file that `write_report` would write, or one sentence on why it could not; for checks ahead of long work.

    >>> report_target("report.html").name
    'report.html'
    """
    target = as_path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidValueError("path", f"must end in .html, got {target.name!r}; a report is an HTML page.")
    return writable_target(target)


class _Page:
    """The sections of a page in the making, which number the pictures that can be hovered."""

    def __init__(self, dpi: float):
        self._dpi = dpi
        self.places: list[Places] = []

    def section(self, number: int, section: Section) -> str:
        parts: list[Picture | Grid] = [Picture(caption, figure) for caption, figure in section.figures]
        parts += [] if section.table is None else [Grid(section.table)]
        inner = "".join(
            self._picture(part) if isinstance(part, Picture) else _grid(section.title, part)
            for part in [*parts, *section.parts]
        )
        lead = f'<p class="lead">{text_html(section.lead)}</p>\n' if section.lead else ""
        dot = "" if section.hue is None else f'<b class="dot" style="background:{text_html(section.hue)}"></b>'
        return (
            f'<section id="{_anchor(number, section)}">\n<h2>{dot}{text_html(section.title)}</h2>\n'
            f"{lead}{_paragraphs(section.text)}{inner}</section>\n"
        )

    def _picture(self, picture: Picture) -> str:
        content, drawn = drawn_bytes(picture.figure, ".png", self._dpi)
        image = base64.b64encode(_with_palette(content)).decode("ascii")
        which, told, caption = "", "", text_html(picture.caption)
        if picture.points is not None:
            which, told = f' data-picture="{len(self.places)}"', _TOLD
            self.places.append(Places.on(drawn, picture.points, picture.panels))
        return (
            f'<figure><div class="plot"{which}><img src="data:image/png;base64,{image}" alt="{caption}"></div>'
            f"<figcaption>{caption}{told}</figcaption></figure>\n"
        )


def _with_palette(png: bytes) -> bytes:
    """The same picture as PNG with a palette, where that is smaller."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    buffer = io.BytesIO()
    image.quantize(_COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return min(buffer.getvalue(), png, key=len)


def _paragraphs(text: str) -> str:
    blocks = [block for block in text.replace("\r\n", "\n").split("\n\n") if block.strip()]
    return "".join(f"<p>{text_html(block.strip())}</p>\n" for block in blocks)


def _summary(summary: str | Mapping[str, object] | None) -> str:
    if summary is None:
        return ""
    if isinstance(summary, Mapping):
        facts = "".join(
            f"<div><dt>{text_html(name)}</dt><dd>{cell_html(value)[0]}</dd></div>" for name, value in summary.items()
        )
        return f'<dl class="facts">{facts}</dl>\n'
    return f'<div class="summary">{_paragraphs(summary)}</div>\n'


def _anchor(number: int, section: Section) -> str:
    return text_html(section.anchor or f"section-{number}")


def _contents(sections: Sequence[Section]) -> str:
    links = "".join(
        f'<li><a href="#{_anchor(number, section)}">{text_html(section.short or section.title)}</a></li>'
        for number, section in enumerate(sections, start=1)
    )
    return f'<nav aria-label="Contents"><ol>{links}</ol></nav>\n'


def _grid(title: str, grid: Grid) -> str:
    header, rows = grid.table
    uneven = [number for number, row in enumerate(rows, start=1) if len(row) != len(header)]
    if uneven:
        raise InvalidValueError(
            f"the table of section {title!r} must have {len(header)} cells in every row, as its header has, "
            f"got another number in row {uneven[0]}; fill missing cells with an empty text."
        )
    cells = [[cell_html(value) for value in row] for row in rows]
    # A column of numbers is read from the right, header included.
    right = [bool(cells) and all(row[column][1] for row in cells) for column in range(len(header))]
    sides = [' class="number"' if numeric else "" for numeric in right]
    head = "".join(f'<th scope="col"{side}>{cell_html(name)[0]}</th>' for side, name in zip(sides, header, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{side}>{text}</td>" for side, (text, _) in zip(sides, row, strict=True)) + "</tr>\n"
        for row in cells
    )
    heading = f"<h3>{text_html(grid.heading)}</h3>\n" if grid.heading else ""
    key = ""
    if grid.key is not None:
        inside, outside = map(text_html, grid.key)
        key = f'<p class="key"><i></i>{inside}<i class="other"></i>{outside}</p>\n'
    name = text_html(f"{title}: {grid.heading}" if grid.heading else title)
    kind = "table compact" if grid.compact else "table"
    return (
        f"{heading}{_paragraphs(grid.remark)}{key}"
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{name}"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>\n</table></div>\n"
    )
