"""How a step and a session show themselves: one line in a terminal, the line and the picture in a notebook.

Nothing is computed to tell: a picture is drawn of what was looked at already. The drawing is reached for when someone
asks to see it.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from imapce.common.words import counted
from imapce.exploration.verdict import caveat

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from imapce.exploration.record import Feature, TakenCluster
    from imapce.exploration.session import Exploration
    from imapce.exploration.steps import Step, View

MOST_SIZES = 8
PICTURE_DPI = 80.0


def sizes_in_words(sizes: Sequence[int], numbers: Sequence[int]) -> str:
    """How many clusters, and how many rows each has; their numbers too where these are not 0, 1, ...

    >>> sizes_in_words([62, 50, 38], [0, 1, 2]), sizes_in_words([62, 38], [0, 2])
    ('3 clusters (62, 50, 38)', '2 clusters (0: 62, 2: 38)')
    """
    plain = list(numbers) == list(range(len(sizes)))
    texts = [f"{size:,}" if plain else f"{number}: {size:,}" for number, size in zip(numbers, sizes, strict=True)]
    told = ", ".join(texts[:MOST_SIZES]) + (", …" if len(sizes) > MOST_SIZES else "")
    return f"{len(sizes)} cluster{'' if len(sizes) == 1 else 's'}" + (f" ({told})" if len(sizes) else "")


def feature_in_words(features: Sequence[Feature]) -> str:
    """The feature that sets rows apart most, as "petal length −1.3 sd"; nothing where there is none."""
    if not features:
        return ""
    first = features[0]
    return f"{first.name[:60]} {'−' if first.difference < 0 else '+'}{abs(first.difference):.1f} sd"


def clusters_of_view(view: View) -> str:
    """What a view shows, in words; numbers are told where they are not the places of the sizes."""
    if view.found is None:
        return f"{int(view.unexplored.sum()):,} unexplored rows, clusters not looked for"
    outliers = int(view.clustered.sum() - view.found.sizes.sum())
    beside = f", {outliers:,} rows in none" if outliers else ""
    return sizes_in_words(view.found.sizes.tolist(), view.numbers.tolist()) + beside


def step_in_words(step: Step) -> str:
    """A proposal on one line, as "Step 0: 3 clusters (62, 50, 38); most distinct 1: petal length −1.3 sd"."""
    seen = step.views[0]
    line = f"Step {step.number}: {clusters_of_view(seen)}"
    if seen.found is None or not seen.most_distinct:
        return line
    why = feature_in_words(step.features)
    most = " and ".join(map(str, seen.most_distinct))
    but = caveat(step.structure)
    return f"{line}; most distinct {most}" + (f": {why}" if why else "") + (f". {but}" if but else "")


def taken_in_words(cluster: TakenCluster) -> str:
    """An accepted cluster on one line, as "50 rows: petal length −1.3 sd"."""
    why = feature_in_words(cluster.features)
    called = f"{cluster.name}, " if cluster.name else ""
    return f"{called}{counted(cluster.size, 'row')}" + (f": {why}" if why else "")


def exploration_in_words(exploration: Exploration) -> str:
    """A session on one line: of what, how far, and why it ended."""
    known, taken = exploration.known, exploration.labels_ >= 0
    steps = len(exploration.steps)
    words = [f"{steps} step{'' if steps == 1 else 's'}"]
    if steps:
        clusters = exploration.clusters_
        sizes = sizes_in_words([one.size for one in clusters], [one.number for one in clusters])
        words.append(f"{int(taken.sum()):,} rows in {sizes}")
    if at_start := int((known & ~taken).sum()):
        words.append(f"{at_start:,} known at the start")
    words.append(f"{int((~known).sum()):,} unexplored")
    end = "" if exploration.stop_reason is None else f"; {exploration.stop_reason}"
    but = exploration.caveat
    end += f"{'' if end else '.'} {but}." if but else ""
    rows, columns = f"{len(known):,} rows", f"{len(exploration.feature_names):,} columns"
    return f"Exploration of {rows} × {columns}: {', '.join(words)}{end}"


class ShownStep:
    """What a proposal adds to its arrays so that people can look at it."""

    def __repr__(self: Any) -> str:
        return step_in_words(self)

    def plot(self: Any, *, view: int = 0) -> Figure:
        """The picture of one of its views with its clusters, the most distinct encircled."""
        from imapce.plotting.steps import plot_proposal

        return plot_proposal(self, view=view)

    def _repr_html_(self: Any) -> str:
        return with_picture(repr(self), self.plot if self.views[0].looked_at else None)


class ShownExploration:
    """What a session adds to its state so that people can look at it."""

    def __repr__(self: Any) -> str:
        return exploration_in_words(self)

    def plot(self: Any, *, labels: ArrayLike | None = None) -> Figure:
        """The picture of all that was accepted, against `labels` where they are given; before that, of the next step.

        >>> from imapce import Exploration
        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3], random_state=0)
        >>> exploration.plot()
        <Figure size 840x540 with 1 Axes>
        """
        from imapce.plotting.overview import plot_overview

        return plot_overview(self, labels=labels) if self.steps else self.propose().plot()

    def _repr_html_(self: Any) -> str:
        return with_picture(repr(self), self.plot if self.steps or self.has_looked else None)


def with_picture(line: str, plot: Any) -> str:
    """A line and, where there is something to draw, its picture, as HTML that needs no other file."""
    text = f"<p>{html.escape(line)}</p>"
    if plot is None:
        return text
    from imapce.plotting.figure import figure_bytes, for_a_file

    with for_a_file():
        image = base64.b64encode(figure_bytes(plot(), ".png", PICTURE_DPI)).decode()
    return f'{text}<img alt="{html.escape(line)}" src="data:image/png;base64,{image}">'
