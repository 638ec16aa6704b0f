"""One HTML page with figures and tables that needs nothing else: no server, no network, no other file.

What stands on a page are records; templates/ makes HTML of them and escapes every text. Points of pictures answer to
the mouse by a script that the page carries itself, joined from the files that the app uses too.

>>> write_report("report.html", title="Penguins", sections=[Section("View", "Two groups.")]).name
'report.html'
"""

from __future__ import annotations

import base64
import hashlib
import io
import numbers
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from imapce.common.progress import Progress, watching
from imapce.common.whole_files import as_path, whole_file, writable_target
from imapce.common.words import counted, uncapitalized
from imapce.common.work import Watch
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.exploration.traits import NumberTrait
from imapce.plotting.figure import drawn_pixels
from imapce.plotting.reports.hover import HoverRows, Places
from imapce.tables.columns import number_text

Table = tuple[Sequence[object], Sequence[Sequence[object]]]

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = Path(__file__).parents[1] / "static"
# The modules that the app uses too.
SHARED = ("dom", "hover")
_CONTENTS_FROM = 4
_REPORT_DPI = 150
# A palette makes a cloud of points a third as large. "Maximum coverage" keeps every colour within 10 of 255; the usual
# median cut moved that of small patches by 70.
_COLORS = 256
_HISTOGRAM_WIDTH, _HISTOGRAM_HEIGHT = 132, 34


@dataclass(frozen=True)
class Share:
    """Two shares from 0 to 1 as bars below each other: of the rows inside and of the rows outside."""

    inside: float
    outside: float


@dataclass(frozen=True)
class Histogram:
    """The shares of the rows in equal bins: filled for the rows inside, a line for those outside.

    Both are on one scale; the heights are roots, so that a small share is still seen beside a large one.

    >>> Histogram((0.5, 0.5), (1.0, 0.0), "1", "7").line
    'M0 0V0H66V34H132'
    """

    inside: Sequence[float]
    outside: Sequence[float]
    low: str
    high: str
    box = f"0 -1 {_HISTOGRAM_WIDTH} {_HISTOGRAM_HEIGHT + 2}"

    @classmethod
    def of(cls, trait: NumberTrait) -> Histogram:
        """The histogram of a number that sets rows apart; bins of whole numbers end at whole numbers."""
        low, high = trait.edges[0], trait.edges[-1]
        if len(trait.edges) > 1 and trait.edges[1] - low == 1.0 and (low + 0.5).is_integer():
            ends = number_text(low + 0.5), number_text(high - 0.5)
        else:
            ends = number_text(low, 3), number_text(high, 3)
        return cls(trait.inside.shares, trait.outside.shares, *(end.replace("-", "−") for end in ends))

    @property
    def bars(self) -> str:
        """The path of the rows inside."""
        step = _HISTOGRAM_WIDTH / len(self.inside)
        return "".join(
            f"M{place * step:.0f} {_HISTOGRAM_HEIGHT}V{self._level(share):.0f}h{step - 0.8:.1f}V{_HISTOGRAM_HEIGHT}"
            for place, share in enumerate(self.inside)
            if share > 0
        )

    @property
    def line(self) -> str:
        """The path of the rows outside."""
        step = _HISTOGRAM_WIDTH / len(self.outside)
        return f"M0 {self._level(self.outside[0]):.0f}" + "".join(
            f"V{self._level(share):.0f}H{(place + 1) * step:.0f}" for place, share in enumerate(self.outside)
        )

    def _level(self, share: float) -> float:
        most = max([*self.inside, *self.outside, 1e-12])
        return _HISTOGRAM_HEIGHT * (1 - (share / most) ** 0.5)


@dataclass(frozen=True)
class Lines:
    """Several cells below each other, so that neighbours in a row stay side by side."""

    cells: Sequence[object]


@dataclass(frozen=True)
class Link:
    """A text that leads to another place on the page, with a dot of a colour before it where one is given."""

    text: str
    anchor: str
    hue: str | None = None


@dataclass(frozen=True, eq=False)
class Picture:
    """A captioned figure; with `points`, one per row of the page's `HoverRows`, its `panels` answer to the mouse.

    A function that gives figure and points is called when its turn comes and what it gave is dropped after it, so that
    a page of many figures of many rows holds one of them.
    """

    caption: str
    figure: Figure | Callable[[], tuple[Figure, NDArray[np.float64] | None]]
    points: NDArray[np.float64] | None = None
    panels: Sequence[int] = (0,)


@dataclass(frozen=True)
class Grid:
    """A table with a heading and a remark; `key` tells the colours of its bars, of the rows inside and outside.

    A `compact` one has many columns: small letters, no line breaks, and the first column stays while it is scrolled.
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
    progress: Progress = None,
) -> Path:
    """Write a report as one self-contained HTML page and return its path.

    `summary` is either text or a mapping of facts, shown below the title. Every text is shown as written:
    nothing in a title, a caption or a table is taken for HTML. `dpi` is the resolution of the figures, which
    decides how large the page is. With `hover` the points of pictures that have some can be hovered. `progress` is told
    which section is drawn and the share that is done, or True shows a bar.

    >>> page = write_report("report.html", title="Penguins", sections=[Section("View")], summary={"rows": 344})
    >>> "<dd>344</dd>" in page.read_text()
    True
    """
    report_target(path)
    target = Path(path)
    if isinstance(sections, Section) or not all(isinstance(section, Section) for section in sections):
        raise InvalidTypeError("sections must be a list of Section, got another kind; wrap each part in Section().")
    with watching(progress, of="of the page") as watch:
        pictures = _Pictures(dpi, None if hover is None else hover.sample, watch, _count_pictures(sections))
        shown = [_section(number, section, pictures) for number, section in enumerate(sections, start=1)]
    places = pictures.places
    content = {
        "title": title,
        "summary": summary,
        "sections": shown,
        "contents_from": _CONTENTS_FROM,
        "hover": None,
    }
    template = _templates().get_template("report.html")
    text = template.render(content)
    if hover is not None and places:
        # Pictures and tables come first; the points get what they leave of the page.
        fitting = hover.fitting(n_pictures=len(places), page_letters=len(text))
        script = report_script()
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
        content |= {"script": script, "script_hash": f"sha256-{digest}"}
        content["hover"] = {"words": fitting.words, "data": fitting.data(places)}
        text = template.render(content)
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


def text_of(name: str, **facts: Any) -> str:
    """A text of templates/ with these facts, as sections and captions take it: a blank line begins a paragraph."""
    blocks = _blocks(_templates().get_template(f"{name}.txt").render(facts))
    # Not any white space: a no-break space stays.
    return "\n\n".join(re.sub("[ \n]+", " ", block) for block in blocks)


def join_modules(paths: Iterable[Path]) -> str:
    """ES modules as one, without the imports between them: in a text, relative imports do not resolve.

    Each stands after those it imports from.
    """
    parts = []
    for path in paths:
        text = re.sub(r"^import .*;\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        parts.append(re.sub(r"^export (?!default)", "", text, flags=re.MULTILINE))
    return "\n".join(parts)


@cache
def report_script() -> str:
    """The script of a page, the only one that its browser may run."""
    return join_modules([SCRIPTS / f"{name}.js" for name in (*SHARED, "report")])


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        # Texts become part of a page, which escapes them.
        autoescape=lambda name: name is None or not name.endswith(".txt"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    for kind in (Share, Histogram, Lines, Link):
        made.tests[kind.__name__.lower()] = lambda value, kind=kind: isinstance(value, kind)
    made.filters |= {"text": _cell_text, "width": _width, "blocks": _blocks, "unbroken": _unbroken}
    made.filters["rows"] = lambda count: counted(count, "row")
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return made


def _parts_of(section: Section) -> list[Picture | Grid]:
    parts: list[Picture | Grid] = [Picture(caption, figure) for caption, figure in section.figures]
    return [*parts, *([] if section.table is None else [Grid(section.table)]), *section.parts]


def _count_pictures(sections: Sequence[Section]) -> int:
    return sum(isinstance(part, Picture) for section in sections for part in _parts_of(section))


def _section(number: int, section: Section, pictures: _Pictures) -> dict[str, Any]:
    """What the template shows of a section."""
    return {
        "anchor": section.anchor or f"section-{number}",
        "title": section.title,
        "short": section.short or section.title,
        "hue": section.hue,
        "lead": section.lead,
        "text": section.text,
        "parts": [
            pictures.draw(part, section.title) if isinstance(part, Picture) else _grid(section.title, part)
            for part in _parts_of(section)
        ],
    }


class _Pictures:
    """The pictures of a page, drawn one after the other; those that can be hovered are numbered by their `places`."""

    def __init__(self, dpi: float, sample: NDArray[np.intp] | None, watch: Watch, total: int) -> None:
        self.places: list[Places] = []
        self._dpi, self._sample, self._watch, self._total = dpi, sample, watch, total
        self._drawn = 0

    def draw(self, picture: Picture, title: str) -> dict[str, Any]:
        """What the template shows of a picture."""
        self._watch.tell(f"drawing {uncapitalized(title)}", self._drawn / self._total)
        made = callable(picture.figure)
        figure, points = picture.figure() if callable(picture.figure) else (picture.figure, picture.points)
        pixels, drawn = drawn_pixels(figure, self._dpi, once=made)
        image = Image.fromarray(np.ascontiguousarray(pixels)).quantize(
            _COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
        buffer = io.BytesIO()
        # The best compression takes seven times as long and makes a page 7 % smaller.
        image.save(buffer, "PNG", compress_level=6)
        place = None
        if points is not None and self._sample is not None:
            place = len(self.places)
            self.places.append(Places.on(drawn, points[self._sample], picture.panels))
        self._drawn += 1
        return {
            "caption": picture.caption,
            "image": base64.b64encode(buffer.getvalue()).decode("ascii"),
            "place": place,
        }


def _grid(title: str, grid: Grid) -> dict[str, Any]:
    header, rows = grid.table
    uneven = [number for number, row in enumerate(rows, start=1) if len(row) != len(header)]
    if uneven:
        raise InvalidValueError(
            f"the table of section {title!r} must have {len(header)} cells in every row, as its header has, "
            f"got another number in row {uneven[0]}; fill missing cells with an empty text."
        )
    # A column of numbers is read from the right, header included.
    right = [bool(rows) and all(_is_number(row[column]) for row in rows) for column in range(len(header))]
    return {"grid": grid, "header": header, "rows": rows, "right": right}


def _is_number(value: object) -> bool:
    if isinstance(value, Lines):
        return all(map(_is_number, value.cells))
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _cell_text(value: Any) -> str:
    if not _is_number(value):
        return str(value)
    return f"{int(value):,}" if isinstance(value, numbers.Integral) else f"{float(value):.4g}"


def _width(share: float) -> str:
    return f"{100 * min(share, 1.0):.0f}%"


def _unbroken(words: str) -> str:
    """The same words, in which a number and what it is the value of stay on one line."""
    for sign in "=<":
        words = words.replace(f" {sign} ", f"\N{NO-BREAK SPACE}{sign}\N{NO-BREAK SPACE}")
    return words


def _blocks(text: str) -> list[str]:
    return [block.strip() for block in text.replace("\r\n", "\n").split("\n\n") if block.strip()]
