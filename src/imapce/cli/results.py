"""What a command gives back: files, refused before any work where they could not be written, and numbers on the screen.

check_targets(table="view.parquet", plot="view.png", inputs=("rows.csv",))
write_view(view, carried, output="view.parquet", plot="view.png")   # {"table": "view.parquet", "plot": "view.png"}
print_model(Console(), model)
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from imapce.choice.leakage import PriorLeakage, without_leakage
from imapce.cli.messages import named, note
from imapce.clusters.significance import Structure
from imapce.common.whole_files import writable_target
from imapce.common.words import axis_names, counted, given, listing
from imapce.errors import InvalidValueError
from imapce.estimators.imapce import IMAPCE
from imapce.estimators.model_file import MODEL_VERSION
from imapce.estimators.view_file import beside
from imapce.exploration.record import Moves
from imapce.exploration.session_file import told_feature
from imapce.exploration.traits import how_features_were_chosen, overlap_in_a_word, overlap_in_percent
from imapce.exploration.verdict import stability_in_words, told_structure
from imapce.priors.effect import explained_away, strongest
from imapce.tables.files import STREAM, table_target, write_table
from imapce.tables.named import h5ad_target, is_h5ad

STRONGEST = 8
MOST_OPTIMA = 6
OF_THE_SEARCH = ("known read back", "alpha", "mu", "objective", "kurtosis", "search")
# What optima are compared by, and what it is called here.
COMPARED = {"seen": "clusters seen", "kept": "neighbourhoods kept", "score": "score"}


def check_targets(
    *,
    table: str | None,
    plot: str | None = None,
    report: str | None = None,
    inputs: Iterable[str | None] = (),
    others: Mapping[str, str | None] | None = None,
    stream: bool = False,
    source: str | None = None,
    only_result: bool = False,
) -> None:
    """Refuse, before any work, outputs that cannot be written, that collide, or that would replace an input.

    `stream` says that the command can write its table to standard output, `source` is the file of which an .h5ad table
    would be a copy, `only_result` that the table is to have no columns of it.
    """
    if only_result and (table is None or is_h5ad(table)):
        way = "name one with -o" if table is None else "an .h5ad file is a copy of DATA, so leave the option out"
        raise InvalidValueError(f"--only-result is about the table of -o: {way}.")
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
    told: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """Write the table and the plot that were asked for and tell where; the plot is drawn before either is written.

    Rows set aside are in the table and not in the plot, where the others would shrink to a spot. `told` is what the
    plot says, as `plotting.scatter.words_of_view` puts it.
    """
    written: dict[str, str] = {}
    figure = None
    if plot is not None:
        from imapce.plotting import plot_embedding
        from imapce.plotting.scatter import first_axes

        shown = np.ones(len(view), dtype=bool)
        shown[aside if aside is not None else []] = False
        colors = {name: np.asarray(labels)[shown] for name, labels in (color or {}).items()}
        known = None if known is None else np.asarray(known)[shown]
        drawn = first_axes(view)
        if drawn.shape[1] < view.shape[1]:
            note(f"the plot shows the first two of the {view.shape[1]} axes.")
        figure = plot_embedding(drawn[shown], color=colors or None, known=known, **(told or {}))
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


def plot_words(model: IMAPCE, plot: str | None, name: str, known: Sequence[str] | None = None) -> dict[str, Any]:
    """What the plot of a view of the file `name` says; nothing where none is asked for."""
    if plot is None:
        return {}
    from imapce.plotting.scatter import words_of_view

    return words_of_view(model, f"View of {Path(name).name}", known or None)


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


def output_table(carried: pa.Table, view: NDArray[np.float64]) -> pa.Table:
    """The columns that go along, the row number and the axes; a name that is taken gets _1, _2, ... appended.

    >>> output_table(pa.table({"row": ["a"]}), np.zeros((1, 2))).column_names
    ['row', 'row_1', 'imapce0', 'imapce1']
    """
    axes = dict(zip(axis_names(view.shape[1]), view.T, strict=True))
    return beside(carried, {"row": np.arange(len(view))} | axes)


def strongest_features(model: IMAPCE, most: int = STRONGEST) -> list[dict[str, Any]]:
    """The features with the largest share of the view: name, weight on every axis and share, largest first.

    What was explained away is none of them.
    """
    share = np.mean(model.components_**2, axis=0)
    return [
        {
            "feature": str(model.encoded_feature_names_[place]),
            "weights": [float(weight) for weight in model.components_[:, place]],
            "share": float(share[place]),
        }
        for place in strongest(model, most)
    ]


def model_facts(model: IMAPCE) -> dict[str, Any]:
    """All that a model file tells, as plain values that JSON can hold."""
    parameters = {name: value for name, value in model.get_params().items() if name != "verbose"}
    return {
        "format_version": MODEL_VERSION,
        "parameters": parameters,
        "fitted": {
            "alpha": model.alpha_ if np.isfinite(model.alpha_) else "inf",
            "mu": model.mu_,
            "objective": model.objective_,
            "kurtosis": model.kurtosis_,
            "outliers": [int(row) for row in model.outliers_],
            "explained_variance_ratio": [float(ratio) for ratio in model.explained_variance_ratio_],
            "iterations": model.n_iter_,
            "evaluations": model.n_evaluations_,
            "stop_reason": model.stop_reason_,
            # A file of a model need not tell it.
            "clusters": getattr(model, "n_clusters_", None),
            "explained_away": explained_away(model),
            "read_back": model.read_back_,
        },
        "columns": None if model.input_columns is None else list(model.input_columns),
        "n_features": len(model.encoded_feature_names_),
        "strongest_features": strongest_features(model),
        "optima": [
            {name: getattr(optimum, name) for name in ("mu", "objective", "kurtosis", "starts", *COMPARED)}
            for optimum in model.optima_
        ],
    }


def facts_table(facts: Mapping[str, str]) -> Table:
    """Names and values side by side, without rules; long values wrap."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        # Text, since a file or column name may hold what Rich takes for markup.
        table.add_row(name, Text(value))
    return table


def print_written(console: Console, written: Mapping[str, str]) -> None:
    """One line per file, however long its path: a path broken over lines cannot be copied."""
    console.print()
    for kind, path in written.items():
        line = Text.assemble((f"{kind} written", "bold"), f"  {path}")
        console.print(line, soft_wrap=True)
    if not written:
        console.print("no file written; name one with -o to keep the result")


def fit_facts(model: IMAPCE) -> dict[str, str]:
    """The fitted numbers in words."""
    rule = f" (rule {model.mu!r})" if isinstance(model.mu, str) else ""
    chosen = f" (rule {model.alpha!r})" if isinstance(model.alpha, str) else ""
    variance = ", ".join(f"{100 * ratio:.1f} %" for ratio in model.explained_variance_ratio_)
    known, read = explained_away(model), PriorLeakage.from_model(model)
    facts: dict[str, str] = {"explained away": listing(known, 10)} if known else {}
    if read is not None:
        facts["known read back"] = read.message
    return facts | {
        "alpha": f"{model.alpha_:g}{chosen}" if np.isfinite(model.alpha_) else f"nothing is weighed{chosen}",
        "mu": f"{model.mu_:.6g}{rule}",
        "objective": f"{model.objective_:.8g}",
        "kurtosis": f"{model.kurtosis_:.4f}",
        "variance kept": f"{variance} on {' and '.join(axis_names(len(model.components_)))}",
        "outliers": f"{counted(len(model.outliers_), 'row')} set aside" if len(model.outliers_) else "none set aside",
        "search": without_leakage(model.stop_reason_),
    }


def told_facts(facts: Mapping[str, str], *, details: bool) -> dict[str, str]:
    """The facts that are told: all of them, or those that are not about the search.

    >>> told_facts({"rows": "9", "mu": "3"}, details=False)
    {'rows': '9'}
    """
    return {name: value for name, value in facts.items() if details or name not in OF_THE_SEARCH}


def print_model(console: Console, model: IMAPCE, *, details: bool = True) -> None:
    """The strongest features with their weights and, among the `details`, the other optima that the search found."""
    # A line of its own: the title of a table breaks where the table is narrower.
    every = len(model.encoded_feature_names_)
    some = f", {STRONGEST} of {every:,} by their share of the view" if every > STRONGEST else ""
    heading = Text(f"{given('strongest features', explained_away(model))}{some}", style="bold")
    weights = Table(box=None, pad_edge=False)
    weights.add_column("feature", overflow="fold")
    for axis in axis_names(len(model.components_)):
        weights.add_column(axis, justify="right", no_wrap=True)
    weights.add_column("share", justify="right", no_wrap=True)
    for entry in strongest_features(model):
        cells = [f"{weight:+.3f}" for weight in entry["weights"]]
        weights.add_row(Text(entry["feature"]), *cells, f"{100 * entry['share']:.1f} %")
    console.print()
    console.print(heading)
    console.print(weights)
    if not details:
        return
    rest = model.optima_[1:]
    console.print()
    if not rest:
        console.print("other optima: none, every start that stayed in the search ended at this view")
        return
    optima = Table(title="other optima found", title_justify="left", title_style="bold", box=None, pad_edge=False)
    # Where α and μ were given nothing was compared.
    by = rest[0].compared_by
    for name in ("mu", "objective", "kurtosis", "starts", *([] if by is None else [COMPARED[by]])):
        optima.add_column(name, justify="right", no_wrap=True)
    for optimum in rest[:MOST_OPTIMA]:
        compared = [] if by is None else [f"{getattr(optimum, by):.3f}"]
        numbers = (f"{optimum.mu:.4g}", f"{optimum.objective:.8g}", f"{optimum.kurtosis:.4f}", str(optimum.starts))
        optima.add_row(*numbers, *compared)
    console.print(optima)
    if len(rest) > MOST_OPTIMA:
        console.print(f"and {len(rest) - MOST_OPTIMA} more")


def structure_facts(structure: Structure | None) -> dict[str, Any] | None:
    """The verdict, why, the tests and the sizes of the best split, as plain values; None where nobody knows.

    >>> structure_facts(Structure("none", "z = 0.3"))
    {'verdict': 'none', 'words': 'z = 0.3', 'evidence': [], 'best_split': None}
    """
    if structure is None:
        return None
    return {**told_structure(structure), "best_split": structure.sizes or None}


def cluster_facts(moves: Moves) -> list[dict[str, Any]]:
    """Every cluster as it is after some moves: its step from 1 (None: regrouped), size, how distinct and stable it is,
    and what sets it apart from all other rows, in words and in the units of the table.
    """
    return [
        {
            "cluster": cluster.number,
            "name": cluster.name,
            "step": step,
            "rows": cluster.size,
            "distinctness": None if cluster.overlap is None else overlap_in_a_word(cluster.overlap),
            "overlap": cluster.overlap,
            "stability": cluster.stability,
            "group": cluster.group,
            "p_value": None if step is None else moves.steps[step - 1].p_value,
            "chosen": cluster.chosen,
            "words": cluster.words,
            "features": [told_feature(feature) for feature in cluster.features],
        }
        for cluster, step in zip(moves.clusters, moves.origins, strict=True)
    ]


def print_clusters(console: Console, clusters: list[dict[str, Any]], *, n_features: int) -> None:
    """The clusters that were taken, as `cluster_facts` tells them: how distinct they are, then what sets each apart.

    `n_features` is how many were looked at.
    """
    table = Table(title="clusters", title_justify="left", title_style="bold", box=None, pad_edge=False)
    tested = any(cluster["p_value"] is not None for cluster in clusters)
    drawn = any(cluster["stability"] is not None for cluster in clusters)
    optional = [name for name, is_told in {"stability": drawn, "p": tested}.items() if is_told]
    for heading in ("cluster", "step", "rows", "distinctness", "overlap", *optional):
        table.add_column(heading, justify="right", no_wrap=True)
    words = Table.grid(padding=(0, 2))
    words.add_column(justify="right", no_wrap=True)
    words.add_column(overflow="fold")
    for cluster in clusters:
        number, overlap = str(cluster["cluster"]), cluster["overlap"]
        alone = "by hand" if cluster["chosen"] == "hand" else ""
        apart = [alone, ""] if overlap is None else [cluster["distinctness"], overlap_in_percent(overlap)]
        p_value = ["" if cluster["p_value"] is None else f"{cluster['p_value']:.2g}"] if tested else []
        stable = [stability_in_words(cluster["stability"])] if drawn else []
        step = "regrouped" if cluster["step"] is None else str(cluster["step"])
        table.add_row(number, step, f"{cluster['rows']:,}", *apart, *stable, *p_value)
        called = f"{cluster['name']}: " if cluster["name"] else ""
        words.add_row(number, Text(f"{called}{cluster['words'] or 'not told by this file'}"))
    console.print()
    console.print(table)
    console.print(Text("overlap: how much of it the nearest cluster in its view shares"))
    if drawn:
        console.print(Text("stability: in how many resamples of 80 % of the rows the cluster reappears"))
    console.print()
    console.print(Text("what sets each apart from all other rows", style="bold"))
    console.print(words)
    console.print(Text(how_features_were_chosen(n_features)))
