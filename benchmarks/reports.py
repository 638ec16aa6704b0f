"""Claims: a report of 20 clusters in 8,000 rows takes under 4 s, of 1,000,000 × 20 under 8 s, a plot of it under 2 s.

The peer is matplotlib by itself: for a report as many figures of three scatter plots as it has steps, with a colour for
each point, as PNG; for a plot one such scatter plot.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.problems import seconds_of
from benchmarks.record import Record, at_most, measure
from imapce import IMAPCE, Exploration
from imapce.plotting import plot_embedding, save_figure, write_view_report
from imapce.plotting.style import CLUSTER_HUES


def groups(n_rows: int, n_columns: int, shares: list[float], apart: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    centres = apart * rng.normal(size=(len(shares), n_columns))
    kinds = rng.choice(len(shares), size=n_rows, p=shares)
    return centres[kinds] + rng.normal(size=(n_rows, n_columns)), kinds


def plain_figure(points: np.ndarray, kinds: np.ndarray, n_panels: int, path: Path) -> None:
    """The same points with a colour each, as one would draw them without imapce."""
    figure = Figure(figsize=(3.4 * n_panels, 4.2), layout="constrained")
    for place in range(1, n_panels + 1):
        ax = figure.add_subplot(1, n_panels, place)
        ax.scatter(*points.T, c=np.array(CLUSTER_HUES)[kinds], s=3, alpha=0.5)
    figure.savefig(path, dpi=105)


def main(record: Record, asked: Namespace) -> None:
    small, large = (1_000, 10_000) if asked.quick else (8_000, 1_000_000)
    few = groups(small, 20, [1 / 20] * 20, apart=6.0)
    many = groups(large, 20, [0.4, 0.3, 0.2, 0.07, 0.0295, 0.0005], apart=4.0)
    reports = record.table("Reports", "rows", "ours, s", "plain scatter plots, s", "clusters", "steps", "page, MB")
    plots = record.table("Plots", "rows", "ours, s", "plain scatter plot, s")
    with tempfile.TemporaryDirectory() as folder:
        page, picture = Path(folder) / "page.html", Path(folder) / "figure.png"
        for (X, kinds), most in ((few, 4), (many, 8)):
            exploration = Exploration(X, random_state=0).run()
            points = exploration.overview().embedding
            labels = np.array([f"kind {kind}" for kind in range(20)])[kinds]
            n_steps, n_clusters = len(exploration.steps), len(exploration.clusters_)
            plain = seconds_of(lambda points=points, kinds=kinds: plain_figure(points, kinds, 3, picture))
            taken = seconds_of(lambda ours=exploration, labels=labels: ours.report(page, labels=labels))
            size = page.stat().st_size / 1e6
            cells = (taken, plain * n_steps, n_clusters, n_steps, size)
            reports.row(f"{len(X):,}", *cells, claim=at_most(most, "ours, s"))
            plain = seconds_of(lambda points=points, kinds=kinds: plain_figure(points, kinds, 1, picture))
            taken = seconds_of(
                lambda points=points, labels=labels: save_figure(plot_embedding(points, color=labels), picture)
            )
            plots.row(f"{len(X):,}", taken, plain, claim=at_most(2, "ours, s"))
        model = IMAPCE(alpha=0.0, mu=1.0, random_state=0).fit(many[0])
        taken = seconds_of(lambda: write_view_report(model, many[0], page, color=many[1]))
        size = page.stat().st_size / 1e6
        reports.row(f"{large:,}, of one view", taken, None, None, None, size, claim=at_most(8, "ours, s"))


if __name__ == "__main__":
    measure("reports", main, __doc__)
