"""Which colour every row has: one byte a row, and what stands beside it in the legend.

    0 known · 1 no cluster, or missing · 2 to 26 the palette and further hues of clusters · 32 to 63 a scale

The bytes are what the page draws from; light and dark are two tables of 64 colours for the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.plotting.style import CLUSTER_HUES, KNOWN_GREY, MISSING_GREY, PALETTE, continuous_colormap
from imapce.tables.columns import Column

Codes = NDArray[np.uint8]

KNOWN, NONE, FIRST, SCALE = 0, 1, 2, 32
SHADES = 32
HUES = (*PALETTE, *(hue for hue in CLUSTER_HUES if hue not in PALETTE))
CLUSTER_CODES = tuple(FIRST + HUES.index(hue) for hue in CLUSTER_HUES)
# On dark the deep ones are lifted until each is 3:1 against the ground, and moved apart again: the closest two of all
# are as far from each other as on light.
ON_DARK = {
    "#0072B2": "#588CFF",
    "#D55E00": "#BE4B13",
    "#009E73": "#88CA95",
    "#000000": "#E6EAEF",
    "#882255": "#C212A8",
    "#332288": "#205BF7",
    "#5A2D00": "#965F49",
}


def palettes() -> dict[str, list[str]]:
    """The 64 colours on light and on dark ground.

    >>> palettes()["light"][FIRST]
    '#0072B2'
    """
    shades = continuous_colormap()(np.linspace(0, 1, SHADES))[:, :3]
    scale = ["#%02X%02X%02X" % tuple(round(255 * part) for part in shade) for shade in shades]  # noqa: UP031
    spare = [MISSING_GREY] * (SCALE - FIRST - len(HUES))
    light = [KNOWN_GREY, "#8C959F", *HUES, *spare, *scale]
    dark = ["#3A424C", "#7C8794", *(ON_DARK.get(hue, hue) for hue in HUES), *spare, *_lifted(shades)]
    return {"light": light, "dark": dark}


def _lifted(shades: NDArray[np.float64]) -> list[str]:
    """The scale on dark ground, where its darkest third would vanish."""
    lifted = 0.22 + 0.78 * shades
    return ["#%02X%02X%02X" % tuple(round(255 * min(1.0, part)) for part in shade) for shade in lifted]  # noqa: UP031


@dataclass(frozen=True, eq=False)
class Colouring:
    """The code of every row and the legend: entries of a category, or the ends of a scale.

    >>> by_column(Column("size", values=np.array([1.0, np.nan] * 20))).legend[-1]["name"]
    'missing'
    """

    by: str
    title: str
    codes: Codes
    legend: list[dict[str, Any]] = field(default_factory=list)
    scale: dict[str, Any] | None = None

    def content(self) -> dict[str, Any]:
        """All but the codes, which travel as bytes."""
        return {"type": "colours", "by": self.by, "title": self.title, "legend": self.legend, "scale": self.scale}


def by_cluster(
    clusters: NDArray[np.intp] | None, known: NDArray[np.bool_], details: list[dict[str, Any]], *, title: str
) -> Colouring:
    """The clusters of a view by number; `details` gives each its code and more. Without any, unexplored are alike."""
    legend = []
    if clusters is None:
        codes = np.full(len(known), NONE, dtype=np.uint8)
    else:
        most = max((more["cluster"] for more in details), default=-1)
        counts = np.bincount(clusters + 1, minlength=most + 2)[1:]
        legend = [{**more, "count": int(counts[more["cluster"]])} for more in details]
        code_of = np.full(len(counts) + 1, NONE, dtype=np.uint8)
        for more in details:
            code_of[more["cluster"] + 1] = more["code"]
        codes = code_of[clusters + 1]
    codes[known] = KNOWN
    loose = int((codes == NONE).sum())
    if loose:
        name = "Unexplored" if clusters is None else "In no cluster"
        legend.append({"code": NONE, "name": name, "count": loose, "loose": True})
    if known.any():
        legend.append({"code": KNOWN, "name": "Known", "count": int(known.sum()), "known": True})
    return Colouring("cluster", title, codes, legend)


def by_number(by: str, title: str, numbers: NDArray[np.intp], names: dict[int, str], rest: str) -> Colouring:
    """Groups by number and name, as the clusters taken or the steps they were taken in; -1 is none of them."""
    codes = np.full(len(numbers), NONE, dtype=np.uint8)
    legend: list[dict[str, Any]] = []
    for number, name in names.items():
        inside = numbers == number
        codes[inside] = cluster_code(number)
        legend.append({"code": cluster_code(number), "name": name, "count": int(inside.sum()), "group": number})
    if (codes == NONE).any():
        legend.append({"code": NONE, "name": rest, "count": int((codes == NONE).sum()), "group": -1})
    return Colouring(by, title, codes, legend)


def cluster_code(number: int) -> int:
    """The code of a cluster by its number; after 24 they repeat, as in all figures.

    >>> cluster_code(0), cluster_code(11), cluster_code(24)
    (2, 14, 2)
    """
    return CLUSTER_CODES[number % len(CLUSTER_CODES)]


def by_column(column: Column) -> Colouring:
    """A column: categories by how many rows they have, numbers on a scale, missing ones grey."""
    if column.values is not None:
        return _on_a_scale(column.name, column.values)
    assert column.codes is not None
    missing = column.codes < 0
    counts = np.bincount(column.codes[~missing], minlength=len(column.levels))
    # Few classes keep their own order (1, 2, 3 or a, b, c); of many the largest get a colour and the rest is "other".
    kept = np.flatnonzero(counts)
    if len(kept) > len(PALETTE):
        kept = np.sort(np.argsort(-counts, kind="stable")[: len(PALETTE) - 1])
    code_of = np.full(len(counts) + 1, FIRST + len(PALETTE) - 1, dtype=np.uint8)
    code_of[kept] = FIRST + np.arange(len(kept))
    codes = np.where(missing, NONE, code_of[column.codes]).astype(np.uint8)
    legend = [
        {"code": int(code_of[place]), "name": column.levels[place], "count": int(counts[place])} for place in kept
    ]
    others = int(counts.sum() - counts[kept].sum())
    if others:
        rest = int(np.count_nonzero(counts)) - len(kept)
        legend.append({"code": FIRST + len(PALETTE) - 1, "name": f"{rest} others", "count": others})
    if missing.any():
        legend.append({"code": NONE, "name": "missing", "count": int(missing.sum())})
    return Colouring(f"column:{column.name}", column.name, codes, legend)


def short_value(value: Any) -> Any:
    """A value as a page shows it: short, and None where it is missing.

    >>> short_value(0.1 + 0.2), short_value(3.0), short_value(float("nan"))
    (0.3, 3, None)
    """
    if value is None or (isinstance(value, float | np.floating) and not np.isfinite(value)):
        return None
    if isinstance(value, float | np.floating):
        short = float(f"{float(value):.6g}")
        return int(short) if short.is_integer() and abs(short) < 1e15 else short
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return int(value)
    return " ".join(str(value).split())[:200]


def _on_a_scale(name: str, values: NDArray[np.float64]) -> Colouring:
    missing = ~np.isfinite(values)
    present = values[~missing]
    codes = np.full(len(values), NONE, dtype=np.uint8)
    scale = None
    if len(present):
        # The scale spans the middle 98 %, or one far value would leave a single colour for all others.
        low, high = (float(end) for end in np.quantile(present, [0.01, 0.99]))
        if not high > low:
            low, high = float(present.min()), float(present.max())
        share = np.clip((present - low) / ((high - low) or 1.0), 0.0, 1.0)
        codes[~missing] = SCALE + np.minimum((share * SHADES).astype(int), SHADES - 1)
        scale = {"low": short_value(low), "high": short_value(high), "first": SCALE}
    legend = [{"code": NONE, "name": "missing", "count": int(missing.sum())}] if missing.any() else []
    return Colouring(f"column:{name}", name, codes, legend, scale)
