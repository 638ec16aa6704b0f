"""The report of an exploration: a summary, one figure of all clusters, and every step with what set its clusters apart.

>>> from imapce import Exploration
>>> exploration = Exploration(np.random.default_rng(0).normal(size=(50, 4)))
>>> write_exploration_report(exploration, "exploration.html").name
'exploration.html'
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from imapce.plotting.labels import Labels
from imapce.plotting.overview import label_counts, plot_overview
from imapce.plotting.reports.page import Section, Table, write_report
from imapce.plotting.steps import RASTERISE_FROM, first_cluster, known_before, plot_step
from imapce.plotting.style import shorten

if TYPE_CHECKING:
    from imapce.exploration.record import AcceptedStep, Feature, TakenCluster
    from imapce.exploration.session import Exploration

_FEATURES_IN_WORDS = 3
_LABELS_IN_WORDS = 5
_NAME_IN_WORDS = 40
# Less than a tenth of a standard deviation is no reason for a cluster to stand apart.
_WORTH_SAYING = 0.1


def write_exploration_report(
    exploration: Exploration,
    path: str | os.PathLike[str],
    *,
    labels: ArrayLike | None = None,
    title: str = "Exploration",
) -> Path:
    """Write one self-contained HTML page about an exploration, finished or not, and return its path.

    With `labels`, one per row and some possibly missing, the figures show them and the text says what each
    cluster is made of. The labels are shown only; the exploration never used them.

    >>> from imapce import Exploration
    >>> from imapce.datasets import make_synthetic
    >>> data = make_synthetic(100)
    >>> exploration = Exploration(data.X, random_state=0)
    >>> _ = exploration.accept()
    >>> write_exploration_report(exploration, "cells.html", labels=data.labels["celltype"], title="Cells").name
    'cells.html'
    """
    n_rows = len(exploration.row_ids)
    read = None if labels is None else Labels.read(labels, "labels", n_rows, most=n_rows + 1)
    sections = [_overview(exploration, labels)]
    sections += [_step(exploration, index, labels, read) for index in range(len(exploration.steps))]
    # Clouds of many points hardly compress: at a lower resolution, still above that of the page, a dozen stay small.
    dpi = 105.0 if n_rows > RASTERISE_FROM else 150.0
    return write_report(path, title=title, sections=sections, summary=_summary(exploration), dpi=dpi)


def _summary(exploration: Exploration) -> dict[str, object]:
    taken = int((exploration.labels_ >= 0).sum())
    left = int((~exploration.known).sum())
    start = len(exploration.row_ids) - taken - left
    facts: dict[str, object] = {
        "rows × columns": f"{len(exploration.row_ids):,} × {len(exploration.feature_names):,}",
        "steps": len(exploration.steps),
        "clusters": len(exploration.clusters_),
        "rows taken": taken,
    }
    structure = exploration.structure
    one_group = structure is not None and not structure.clear
    facts["one group" if one_group else "left as outliers" if exploration.done else "rows not taken yet"] = left
    if structure is not None:
        facts["structure"] = "clear" if structure.clear else "by chance"
    if start:
        facts["known at the start"] = start
    return facts


def _overview(exploration: Exploration, labels: ArrayLike | None) -> Section:
    left = int((~exploration.known).sum())
    end = exploration.stop_reason or f"The exploration is not finished: {_rows(left)} are unexplored."
    if not exploration.steps:
        return Section("Overview", f"No step was accepted, so there is no cluster to show.\n\n{end}")
    # The sentence of an exploration that found nothing says so itself.
    found = exploration.structure
    why = f" Is there structure at all? Yes: {found.words}." if found is not None and found.clear else ""
    text = (
        f"{end}{why}\n\nClusters and steps are numbered from 0, as in labels_ and in the table of results, and a "
        "cluster has the same colour in all figures."
    )
    if exploration.regroupings:
        done = " ".join(regrouping.words for regrouping in exploration.regroupings)
        text = (
            f"{end}{why}\n\nRegrouped since: {done}\n\nThe steps below show the clusters as they were taken, numbered "
            "from 0 in that order; the figure here shows them as they are now, with their numbers in labels_."
        )
    caption = "Rows of every cluster, in the order in which the clusters were taken."
    if labels is not None:
        caption += " On the right the number of rows of each label; darker is a larger share of the cluster."
    return Section("Overview", text, [(caption, plot_overview(exploration, labels=labels))])


def _step(exploration: Exploration, index: int, labels: ArrayLike | None, read: Labels | None) -> Section:
    step = exploration.steps[index]
    first = first_cluster(exploration, index)
    numbered = list(enumerate(step.clusters, start=first))
    paragraphs = [_what_was_taken(step, index, len(exploration.row_ids))]
    for number, cluster in numbered:
        name = f"Cluster {number}" if len(numbered) > 1 else "It"
        paragraphs.append(_why(name, cluster))
        if read is not None and not read.continuous:
            paragraphs[-1] += " " + _made_of(cluster, read)
    # A single cluster is described in the same breath.
    text = (" " if len(numbered) == 1 else "\n\n").join(filter(None, paragraphs))
    n_known = int(known_before(exploration, index).sum())
    before = f"{_rows(n_known)} were known before (grey)" if n_known else "nothing was known before"
    caption = f"Step {index}: {before}; every taken cluster is encircled at two standard deviations."
    if labels is not None:
        caption += " The labels were not used."
    if step.components.shape[0] > 2:
        caption += f" The first two of {step.components.shape[0]} axes are drawn."
    which = _listed([str(number) for number, _ in numbered])
    size = sum(cluster.size for cluster in step.clusters)
    return Section(
        f"Step {index}: cluster{'s' if len(numbered) > 1 else ''} {which}, {_rows(size)}",
        text,
        [(caption, plot_step(exploration, index, labels=labels))],
        table=_features(numbered),
    )


def _what_was_taken(step: AcceptedStep, index: int, n_rows: int) -> str:
    """Say how many clusters a step took, how large and how distinct they are and who chose them.

    Such as: Step 2 took one cluster of 338 rows (15 %), chosen automatically; distinctness 12.3; p = 0.01 for one
    Gaussian.
    """
    clusters = step.clusters
    sizes = " and ".join(f"{_rows(cluster.size)} ({_percent(cluster.size, n_rows)})" for cluster in clusters)
    how_many = "one cluster" if len(clusters) == 1 else f"{len(clusters)} clusters"
    who = "chosen automatically" if all(cluster.chosen == "automatic" for cluster in clusters) else "chosen by hand"
    if step.view:
        who += f" in view {step.view}"
    # A cluster alone in its view has nothing to be distinct from, and one drawn by hand was never measured.
    apart = [f"{cluster.distinctness:.3g}" for cluster in clusters if cluster.distinctness]
    distinct = f"; distinctness {' and '.join(dict.fromkeys(apart))}" if apart else ""
    tested = "" if step.p_value is None else f"; p = {step.p_value:.2g} for one Gaussian"
    return f"Step {index} took {how_many} of {sizes}, {who}{distinct}{tested}."


def _why(name: str, cluster: TakenCluster) -> str:
    features = [feature for feature in cluster.features if abs(feature.difference) >= _WORTH_SAYING]
    if not features:
        return f"{name} does not differ from the other unexplored rows in the mean of any feature."
    return f"{name} stands apart by {_listed([_in_words(feature) for feature in features[:_FEATURES_IN_WORDS]])}."


def _in_words(feature: Feature) -> str:
    level = "high" if feature.difference > 0 else "low"
    return f"{level} {shorten(feature.name, _NAME_IN_WORDS)} ({_signed(feature.difference, 1)}\N{NO-BREAK SPACE}sd)"


def _made_of(cluster: TakenCluster, labels: Labels) -> str:
    """Say which labels the rows of a cluster have, the most frequent first."""
    names, counts = label_counts(labels, [cluster.rows])
    order = [label for label in np.argsort(-counts[0], kind="stable") if counts[0, label]]
    parts = [
        f"{shorten(names[label], _NAME_IN_WORDS)} {count:,} ({_percent(count, cluster.size)})"
        for label, count in ((label, int(counts[0, label])) for label in order[:_LABELS_IN_WORDS])
    ]
    if len(order) > _LABELS_IN_WORDS:
        others = int(counts[0, order[_LABELS_IN_WORDS:]].sum())
        parts.append(f"{len(order) - _LABELS_IN_WORDS} more labels {others:,} ({_percent(others, cluster.size)})")
    return f"By label: {', '.join(parts)}."


def _features(numbered: list[tuple[int, TakenCluster]]) -> Table | None:
    rows: list[list[object]] = [
        [f"cluster {number}", feature.name, _signed(feature.difference, 2), f"{feature.loading:.3f}"]
        for number, cluster in numbered
        for feature in cluster.features
        if feature.difference
    ]
    if not rows:
        return None
    header = ["cluster", "feature", "difference (sd)", "loading in the view"]
    # The title names the only cluster of a step already.
    return (header, rows) if len(numbered) > 1 else (header[1:], [row[1:] for row in rows])


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _percent(part: int, whole: int) -> str:
    r"""Write a share without decimals, and never a part as nothing or as everything.

    >>> _percent(1, 1000), _percent(999, 1000), _percent(331, 2310)
    ('under 1\xa0%', 'over 99\xa0%', '14\xa0%')
    """
    percent = 100 * part / whole
    if 0 < percent < 1:
        return "under 1\N{NO-BREAK SPACE}%"
    return "over 99\N{NO-BREAK SPACE}%" if 99 < percent < 100 else f"{percent:.0f}\N{NO-BREAK SPACE}%"


def _signed(number: float, digits: int) -> str:
    """Write a number with its sign, a minus and not a hyphen."""
    return f"{number:+.{digits}f}".replace("-", "−")


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
