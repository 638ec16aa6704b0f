"""A comparison on one screen: the scores of every method side by side, and why the others were left out."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from imapce.common.words import counted

if TYPE_CHECKING:
    from imapce.comparison.compare import Comparison

HEADINGS = ("method", "rows", "NLS (chance)", "read back", "15-NN", "NMI", "silh.", "trust", "s")
STRUCTURE = ("knn_accuracy", "kmeans_nmi", "silhouette", "trustworthiness")
MOST_LETTERS = 100
NOT_ASKED = "–"


def beside_chance(score: float | None, chance: float | None) -> str:
    """A score and what chance would give.

    >>> beside_chance(0.5, 0.25), beside_chance(None, None)
    ('0.50 (0.25)', '–')
    """
    return NOT_ASKED if score is None or chance is None else f"{score:.2f} ({chance:.2f})"


def scores_in_words(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row of words for every method that worked, under `HEADINGS`."""
    rows = []
    for result in comparison.worked:
        scores = result.scores
        readers = [score for score in (scores["prior_linear"], scores["prior_knn"]) if score is not None]
        structure = [scores[name] for name in STRUCTURE]
        rows.append(
            (
                result.method.title,
                "" if result.rows is None else f"{len(result.rows):,}",
                beside_chance(scores["nls"], scores["nls_ceiling"]),
                beside_chance(max(readers, default=None), scores["prior_chance"]),
                *(NOT_ASKED if score is None else f"{score:.2f}" for score in structure),
                f"{result.seconds or 0.0:.2f}",
            )
        )
    return rows


def comparison_as_text(comparison: Comparison) -> str:
    """All of it as a text of some lines.

    >>> import numpy as np
    >>> from imapce.comparison import compare
    >>> print(repr(compare(np.random.default_rng(0).normal(size=(60, 4)), None, ["PCA"])).splitlines()[0])
    Comparison of 1 method on 60 rows
    """
    table = [HEADINGS, *scores_in_words(comparison)]
    widths = [max(len(row[place]) for row in table) for place in range(len(HEADINGS))]
    lines = [
        "  ".join(
            cell.ljust(width) if not place else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return "\n".join([_title(comparison), *lines, *_left_out(comparison)])


def comparison_as_html(comparison: Comparison) -> str:
    """The same as a table for a notebook."""
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in HEADINGS)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in scores_in_words(comparison)
    )
    rest = "".join(f"<p>{html.escape(line)}</p>" for line in _left_out(comparison))
    return f"<p>{_title(comparison)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _title(comparison: Comparison) -> str:
    return f"Comparison of {counted(len(comparison.results), 'method')} on {counted(comparison.n_rows, 'row')}"


def _left_out(comparison: Comparison) -> list[str]:
    told = [f"{one.method.title} is left out. {one.left_out}" for one in comparison.results if one.left_out]
    return [line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS - 1]}…" for line in told]
