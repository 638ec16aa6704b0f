"""What stands in a table of a page besides text: bars of shares, small histograms, clusters with their colour.

Cells are records, and only here do they become HTML, so nothing a table holds is taken for HTML.

>>> cell_html(Share(0.58, 0.12))[0][:24]
'<span class="share"><i s'
"""

from __future__ import annotations

import html
import numbers
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_HISTOGRAM_WIDTH, _HISTOGRAM_HEIGHT = 132, 34


@dataclass(frozen=True)
class Share:
    """Two shares from 0 to 1 as bars below each other: of the rows inside and of the rows outside.

    >>> Share(0.5, 0.25).outside
    0.25
    """

    inside: float
    outside: float


@dataclass(frozen=True)
class Histogram:
    """The shares of the rows in equal bins: filled for the rows inside, a line for those outside.

    >>> Histogram((0.5, 0.5), (0.9, 0.1), "1", "7").low
    '1'
    """

    inside: tuple[float, ...]
    outside: tuple[float, ...]
    low: str
    high: str


@dataclass(frozen=True)
class Lines:
    """Several cells below each other, so that neighbours in a row stay side by side.

    >>> len(Lines(("Bachelors", "Masters")).cells)
    2
    """

    cells: Sequence[object]


@dataclass(frozen=True)
class Link:
    """A text that leads to another place on the page, with a dot of a colour before it where one is given.

    >>> Link("Cluster 3", "cluster-3", hue="#0072B2").anchor
    'cluster-3'
    """

    text: str
    anchor: str
    hue: str | None = None


def text_html(value: object) -> str:
    """Any value as text on the page, with nothing in it that could be HTML.

    >>> text_html("<b>")
    '&lt;b&gt;'
    """
    return html.escape(str(value), quote=True)


def cell_html(value: object) -> tuple[str, bool]:
    """The HTML of a cell and whether it is a number, which is read from the right.

    >>> cell_html(1234), cell_html("a & b")
    (('1,234', True), ('a &amp; b', False))
    """
    if isinstance(value, Lines):
        inner = [cell_html(one) for one in value.cells]
        return "".join(f"<div>{text}</div>" for text, _ in inner), all(number for _, number in inner)
    if isinstance(value, Share):
        bars = (("", value.inside), (" class=other", value.outside))
        drawn = "".join(f'<i style="width:{100 * min(share, 1.0):.0f}%"{kind}></i>' for kind, share in bars)
        return f'<span class="share">{drawn}</span>', False
    if isinstance(value, Histogram):
        return _histogram(value), False
    if isinstance(value, Link):
        dot = "" if value.hue is None else f'<b class="dot" style="background:{text_html(value.hue)}"></b>'
        return f'<a href="#{text_html(value.anchor)}">{dot}{text_html(value.text)}</a>', False
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        return text_html(value), False
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}", True
    return f"{float(value):.4g}", True


def _histogram(value: Histogram) -> str:
    """Bars and line on one scale; the heights are roots, so that a small share is still seen beside a large one."""
    most = max([*value.inside, *value.outside, 1e-12])
    step = _HISTOGRAM_WIDTH / len(value.inside)

    def level(share: float) -> float:
        return _HISTOGRAM_HEIGHT * (1 - (share / most) ** 0.5)

    bars = "".join(
        f"M{place * step:.0f} {_HISTOGRAM_HEIGHT}V{level(share):.0f}h{step - 0.8:.1f}V{_HISTOGRAM_HEIGHT}"
        for place, share in enumerate(value.inside)
        if share > 0
    )
    line = f"M0 {level(value.outside[0]):.0f}" + "".join(
        f"V{level(share):.0f}H{(place + 1) * step:.0f}" for place, share in enumerate(value.outside)
    )
    ends = f"<small><span>{text_html(value.low)}</span><span>{text_html(value.high)}</span></small>"
    return (
        f'<span class="histogram"><svg viewBox="0 -1 {_HISTOGRAM_WIDTH} {_HISTOGRAM_HEIGHT + 2}" '
        f'aria-hidden="true"><path d="{bars}"/><path class="other" d="{line}"/></svg>{ends}</span>'
    )
