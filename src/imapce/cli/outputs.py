"""What a command writes and where: views, clusters and comparisons, refused before any work where they could not be.

check_targets(table="view.parquet", plot="view.png", inputs=("rows.csv",))
write_view(view, carried, output="view.parquet", plot="view.png")   # {"table": "view.parquet", "plot": "view.png"}
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from imapce.cli.messages import named
from imapce.cli.request import Prepared
from imapce.common.whole_files import whole_file, whole_folder, writable_target
from imapce.common.words import axis_names
from imapce.comparison.compare import Comparison
from imapce.errors import InvalidValueError
from imapce.estimators.imapce import IMAPCE
from imapce.estimators.view_file import beside
from imapce.exploration.session import Exploration
from imapce.tables.encode import column_names
from imapce.tables.files import STREAM, table_target, write_table
from imapce.tables.named import h5ad_target, is_h5ad

COMPARISON_FILES = (
    "comparison.png",
    "comparison.pdf",
    "scores.csv",
    "scores.json",
    "embeddings.parquet",
    "report.html",
)


def check_targets(
    *,
    table: str | None,
    plot: str | None = None,
    report: str | None = None,
    inputs: Iterable[str | None] = (),
    others: Mapping[str, str | None] | None = None,
    stream: bool = False,
    source: str | None = None,
) -> None:
    """Refuse, before any work, outputs that cannot be written, that collide, or that would replace an input.

    `stream` says that the command can write its table to standard output, `source` is the file of which an .h5ad table
    would be a copy.
    """
    inputs = list(inputs)
    targets: dict[str, Path] = {}
    if table == STREAM and not stream:
        raise InvalidValueError("--output must name a file for this command, got '-': use for example out.csv.")
    if inputs.count(STREAM) > 1:
        raise InvalidValueError("standard input holds one table, and '-' stands for two: name a file for one of them.")
    if table is not None and table != STREAM:
        with named("--output"):
            targets["--output"] = h5ad_target(table, source) if is_h5ad(table) else table_target(table)
    if plot is not None:
        # matplotlib takes half a second to import, so only where a figure is asked for.
        from imapce.plotting import figure_target

        with named("--plot"):
            targets["--plot"] = figure_target(plot)
    if report is not None:
        from imapce.plotting import report_target

        with named("--report"):
            targets["--report"] = report_target(report)
    for option, path in (others or {}).items():
        if path is not None:
            with named(option):
                targets[option] = writable_target(path)
    read = {Path(path).resolve() for path in inputs if path not in (None, STREAM)}
    for option, target in targets.items():
        if target in read:
            raise InvalidValueError(f"{option} must not replace a file that is read, got {target.name!r}: rename it.")
    if len(set(targets.values())) < len(targets):
        raise InvalidValueError(f"{' and '.join(targets)} must name different files: rename one of them.")


def write_view(
    view: NDArray[np.float64],
    carried: pa.Table,
    *,
    output: str | None,
    plot: str | None,
    color: Mapping[str, NDArray[Any]] | None = None,
    known: NDArray[Any] | None = None,
    aside: NDArray[Any] | None = None,
    given: Sequence[str] = (),
) -> dict[str, str]:
    """Write the table and the plot that were asked for and tell where; the plot is drawn before either is written.

    Rows set aside are in the table and not in the plot, where the others would shrink to a spot. `given` are the names
    of what was explained away, which the axes of the plot tell.
    """
    written: dict[str, str] = {}
    figure = None
    if plot is not None:
        from imapce.plotting import plot_embedding
        from imapce.plotting.style import axes_given

        shown = np.ones(len(view), dtype=bool)
        shown[aside if aside is not None else []] = False
        colors = {name: np.asarray(labels)[shown] for name, labels in (color or {}).items()}
        known = None if known is None else np.asarray(known)[shown]
        axes = axes_given(axis_names(view.shape[1]), given)
        figure = plot_embedding(view[shown], color=colors or None, known=known, axis_names=axes)
    if output is not None:
        # An .npy file holds one kind of number and no names, so the axes alone.
        table = view if output.lower().endswith(".npy") else output_table(carried, view)
        if output == STREAM:
            _write_stream(table)
        else:
            with named("--output"):
                write_table(table, output)
        written["table"] = output
    if plot is not None and figure is not None:
        from imapce.plotting import save_figure

        with named("--plot"):
            save_figure(figure, plot)
        written["plot"] = plot
    return written


def _write_stream(table: pa.Table) -> None:
    """The table as CSV on standard output."""
    text = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, text)
    sys.stdout.buffer.write(text.getvalue().to_pybytes())


def write_annotated_view(source: str, output: str, model: IMAPCE, view: NDArray[np.float64]) -> None:
    """Write a copy of an .h5ad file with the view in it, as `imapce.anndata.embed` keeps it."""
    from imapce.anndata.results import annotated_copy
    from imapce.anndata.results import write_view as keep_view

    with annotated_copy(source, output) as cells:
        keep_view(cells, model, view)


def write_clusters(exploration: Exploration, carried: pa.Table, output: str, *, source: str) -> None:
    """Write the columns that go along and those of `Exploration.to_frame`: row, cluster, step, distinctness, axes.

    An .h5ad file is a copy of `source` with the clusters in obs.
    """
    if is_h5ad(output):
        from imapce.anndata import write_clusters as keep_clusters
        from imapce.anndata.results import annotated_copy

        with annotated_copy(source, output) as cells:
            keep_clusters(cells, exploration)
        return
    frame = exploration.to_frame()
    names = column_names(frame, "the result")
    with named("--output"):
        write_table(beside(carried, {name: np.asarray(frame[name]) for name in names}), output)


def write_comparison(
    comparison: Comparison,
    prepared: Prepared,
    output: str,
    *,
    title: str,
    facts: dict[str, str],
) -> dict[str, str]:
    """Write every file of the folder `output`, or none; what was written and where."""
    from imapce.plotting import plot_methods, save_figure, write_comparison_report

    figure = plot_methods(comparison, color=prepared.colours or None)
    told = {**facts, "notes": comparison.notes, "scored_rows": len(comparison.scored_rows)}
    records = comparison.to_records()
    remarks = {one.method.title: list(one.remarks) for one in comparison.results if one.remarks}
    with named("--output"), whole_folder(output, COMPARISON_FILES) as folder:
        for file in ("comparison.png", "comparison.pdf"):
            save_figure(figure, folder / file)
        write_table({key: [record[key] for record in records] for key in records[0]}, folder / "scores.csv")
        text = json.dumps({**told, "methods": records, "remarks": remarks}, indent=2, ensure_ascii=False)
        with whole_file(folder / "scores.json") as stream:
            stream.write(f"{text}\n".encode())
        write_table(_embeddings(comparison, prepared.carried), folder / "embeddings.parquet")
        write_comparison_report(folder / "report.html", comparison, figure, title=title, facts=facts)
    return {"report": str(Path(output) / "report.html"), f"{len(COMPARISON_FILES) - 1} more files": output}


def output_table(carried: pa.Table, view: NDArray[np.float64]) -> pa.Table:
    """The columns that go along, the row number and the axes; a name that is taken gets _1, _2, ... appended.

    >>> output_table(pa.table({"row": ["a"]}), np.zeros((1, 2))).column_names
    ['row', 'row_1', 'imapce0', 'imapce1']
    """
    axes = dict(zip(axis_names(view.shape[1]), view.T, strict=True))
    return beside(carried, {"row": np.arange(len(view))} | axes)


def _embeddings(comparison: Comparison, carried: pa.Table) -> pa.Table:
    """The columns that go along, the row number, and every method's axes, empty where it got no row."""
    axes: dict[str, Any] = {"row": np.arange(comparison.n_rows)}
    for result in comparison.worked:
        if result.embedding is None or result.rows is None:
            continue
        for axis, values in zip(result.axes, result.embedding.T, strict=True):
            column = np.full(comparison.n_rows, np.nan)
            column[result.rows] = values
            axes[axis] = pa.array(column, from_pandas=True)
    return beside(carried, axes)
