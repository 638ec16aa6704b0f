"""A comparison as one figure, a panel per method with its scores, and as a page with all scores.

>>> from imapce.comparison import compare
>>> plot_methods(compare(np.random.default_rng(0).normal(size=(50, 4)), methods="PCA"))
<Figure size 460x345 with 1 Axes>
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from imapce.errors import InvalidValueError
from imapce.plotting.figure import for_a_file
from imapce.plotting.key import MARKERS, Key, column_name
from imapce.plotting.reports.page import Section, text_of, write_report
from imapce.plotting.scatter import draw_rows, read_embedding
from imapce.plotting.style import HAIRLINE, SOFT_INK, TICK_SIZE, blank_figure, write_title

if TYPE_CHECKING:
    from imapce.comparison.compare import Comparison, MethodResult

MOST_COLUMNS = 4
MOST_MARKERS = 4
NOT_ASKED = "–"
_PANEL_INCHES = 2.7
_KEY_INCHES = 1.9
_CAPTION_INCHES = 0.75
_LINE_INCHES = 0.17
_LETTERS_PER_INCH = 14
HEADER = {
    "method": "method",
    "rows": "rows",
    "nls_share": "known mixed in (of 1)",
    "nls": "NLS",
    "nls_ceiling": "NLS by chance",
    "prior_linear": "known read back, linear",
    "prior_knn": "known read back, 15-NN",
    "prior_chance": "chance",
    "knn_accuracy": "15-NN accuracy",
    "kmeans_nmi": "k-means NMI",
    "silhouette": "silhouette",
    "trustworthiness": "trustworthiness",
    "seconds": "seconds",
}


def plot_methods(
    comparison: Comparison,
    *,
    color: ArrayLike | Mapping[str, ArrayLike] | None = None,
    color_name: str | None = None,
) -> Figure:
    """Draw the rows that all methods are scored on, a panel for each method that worked, and name the others below.

    `color` holds one label for every row of the data, or several such columns by name, which colour the same panels
    once more below. Known rows are grey; up to four known classes are markers. Axes have no numbers, since those of a
    map mean nothing; a caption gives the share of the NLS that chance gives (1: the known is gone), how well the known
    is read back, and the structure.

    >>> from imapce.comparison import compare
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> figure = plot_methods(compare(X, methods="PCA,LEACE"), color=X[:, 0] > 0, color_name="high")
    >>> [ax.get_title(loc="left") for ax in figure.axes]
    ['PCA', 'LEACE']
    """
    worked = comparison.worked
    if not worked:
        raise InvalidValueError("comparison must have a method that worked, got none: see why each was left out.")
    rows = comparison.scored_rows
    marker_name, marker, greyed = _known_look(comparison)
    columns = dict(color) if isinstance(color, Mapping) else {color_name or column_name(color): color}
    keys = [
        Key.read(
            None if labels is None else np.asarray(labels, dtype=object)[rows],
            # Where a column colours the rows, shapes would say the same once more.
            None if marker is None or name == marker_name else marker[rows],
            name,
            marker_name,
            len(rows),
        )
        for name, labels in columns.items()
    ]
    across = min(MOST_COLUMNS, len(worked))
    down = -(-len(worked) // across)
    width = _PANEL_INCHES * across + _KEY_INCHES
    left_out = _left_out_lines(comparison, width)
    height = (
        (_PANEL_INCHES + _CAPTION_INCHES) * down * len(keys) + _LINE_INCHES * len(left_out) + (0.2 if left_out else 0.0)
    )
    figure = blank_figure(width, height)
    for block, key in enumerate(keys):
        for place, result in enumerate(worked):
            ax: Any = figure.add_subplot(down * len(keys), across, block * down * across + place + 1)
            points = read_embedding(comparison.embedding_of_scored_rows(result)[:, :2], result.method.title)
            draw_rows(ax, points, key, greyed[rows])
            _dress(ax, result)
            if place == across - 1:
                key.draw(ax, greyed[rows])
    if left_out:
        figure.supxlabel("\n".join(left_out), x=0.01, ha="left", fontsize=TICK_SIZE, color=SOFT_INK, parse_math=False)
    return figure


def score_caption(result: MethodResult) -> str:
    """The key scores of a method in lines that fit under a panel.

    >>> from imapce.comparison import METHODS, MethodResult
    >>> score_caption(MethodResult(METHODS["PCA"], seconds=0.5))
    '0.50 s'
    """
    scores = result.scores
    lines = []
    if scores["nls_share"] is not None:
        read = max(score for score in (scores["prior_linear"], scores["prior_knn"]) if score is not None)
        lines.append(f"known: NLS share {scores['nls_share']:.2f}, read {read:.2f} ({scores['prior_chance']:.2f})")
    structure = [("15-NN", "knn_accuracy"), ("NMI", "kmeans_nmi"), ("silhouette", "silhouette")]
    lines.append(", ".join(f"{word} {scores[name]:.2f}" for word, name in structure if scores[name] is not None))
    last = [] if scores["trustworthiness"] is None else [f"trust {scores['trustworthiness']:.2f}"]
    if result.seconds is not None:
        last.append(f"{result.seconds:.2f} s")
    return "\n".join([line for line in [*lines, ", ".join(last)] if line])


def _known_look(comparison: Comparison) -> tuple[str | None, NDArray[Any] | None, NDArray[np.bool_]]:
    """Name and labels of the markers, and the rows in grey: a known subset is grey, few known classes are shapes."""
    greyed = np.zeros(comparison.n_rows, dtype=bool)
    shapes: tuple[str, NDArray[Any]] | None = None
    for name, column in comparison.known.items():
        values = np.unique(column.astype(str)) if column.dtype.kind != "f" else ()
        if list(values) == ["known", "rest"]:
            greyed |= column.astype(str) == "known"
        elif 2 <= len(values) <= min(MOST_MARKERS, len(MARKERS)) and shapes is None:
            shapes = name, column
    return (shapes[0], shapes[1], greyed) if shapes is not None else (None, None, greyed)


def _dress(ax: Any, result: MethodResult) -> None:
    write_title(ax, result.method.title, pad=6)
    ax.set(xticks=[], yticks=[], facecolor="white")
    for spine in ax.spines.values():
        spine.set_color(HAIRLINE)
    # Widening the limits instead of shrinking the box keeps all panels equally large.
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel(score_caption(result), fontsize=TICK_SIZE, color=SOFT_INK, loc="left", ma="left", parse_math=False)


def _left_out_lines(comparison: Comparison, width: float) -> list[str]:
    lines: list[str] = []
    for result in comparison.results:
        if result.left_out is not None:
            text = f"Left out: {result.method.title}. {result.left_out}"
            lines += textwrap.wrap(text, int(width * _LETTERS_PER_INCH), subsequent_indent="    ")
    return lines


def score_rows(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Header and cells of the table of scores, methods that worked only; scores nobody has are left out.

    >>> from imapce.comparison import compare
    >>> header, cells = score_rows(compare(np.random.default_rng(0).normal(size=(50, 4)), methods="PCA"))
    >>> header[:2], cells[0][:2]
    (['method', 'rows'], ['PCA', '50'])
    """
    records = [record for record in comparison.to_records() if record["left_out"] is None]
    shown = [name for name in HEADER if any(record[name] is not None for record in records)]
    return [HEADER[name] for name in shown], [[_cell(name, record[name]) for name in shown] for record in records]


@for_a_file()
def write_comparison_report(
    path: str | os.PathLike[str],
    comparison: Comparison,
    figure: Figure,
    *,
    title: str,
    facts: Mapping[str, object],
) -> Path:
    """Write the comparison as one HTML page: the figure, the scores, who was left out and why, how to read it.

    >>> from imapce.comparison import compare
    >>> comparison = compare(np.random.default_rng(0).normal(size=(50, 4)), methods="PCA")
    >>> write_comparison_report("page.html", comparison, Figure(), title="Noise", facts={"rows": 50}).name
    'page.html'
    """
    sections = [
        Section("Views", figures=[("Every panel shows the same rows.", figure)]),
        Section("Scores", "\n\n".join(comparison.notes), table=score_rows(comparison)),
    ]
    if absent := [(result.method.title, result.left_out) for result in comparison.results if result.left_out]:
        sections.append(Section("Left out", table=(["method", "reason"], absent)))
    if remarks := [remark for result in comparison.results for remark in result.remarks]:
        sections.append(Section("Remarks", "\n\n".join(remarks)))
    sections.append(Section("How to read the scores", text_of("how_to_read_scores")))
    return write_report(path, title=title, sections=sections, summary=facts)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return NOT_ASKED
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}" if name == "seconds" else f"{value:.3f}"
