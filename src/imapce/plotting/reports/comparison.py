"""One page of a comparison: the figure, the scores, who was left out and why, how to read it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from imapce.plotting.comparison import NOT_ASKED
from imapce.plotting.figure import for_a_file
from imapce.plotting.reports.page import Section, write_report

if TYPE_CHECKING:
    from imapce.comparison.compare import Comparison

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

READING_THE_SCORES = """\
Is the known gone? NLS, the normalised Laplacian score, is the share of a row's neighbours in the view that belong to \
another known class; beside it is what chance gives, and the share of that which is reached: 1 when a place in the \
view says nothing about the known. Read back is how well a linear classifier and 15 nearest neighbours tell the known \
classes from the view (balanced accuracy, or R² for measurements); it should fall to chance.

Is something else there? Pure noise does well on the scores above, so they mean nothing without these. 15-NN accuracy, \
k-means NMI and silhouette tell how well the labels lie apart in the view.

Is it faithful? Trustworthiness is 1 when neighbours in the view are neighbours in the data. A view that drops what is \
known has to give some of it up."""


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
    if absent := [(one.method.title, one.left_out) for one in comparison.results if one.left_out is not None]:
        sections.append(Section("Left out", table=(["method", "reason"], absent)))
    if remarks := [remark for one in comparison.results for remark in one.remarks]:
        sections.append(Section("Remarks", "\n\n".join(remarks)))
    sections.append(Section("How to read the scores", READING_THE_SCORES))
    return write_report(path, title=title, sections=sections, summary=facts)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return NOT_ASKED
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}" if name == "seconds" else f"{value:.3f}"
