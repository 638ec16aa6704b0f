"""The command line: each command reads files, calls the library and writes files; it computes nothing itself.

imapce embed penguins.csv --known species=Adelie --labels island -o view.parquet --plot view.png
imapce transform view.imapce new.csv -o new_view.parquet
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imapce.cli.compare import compare
from imapce.cli.explore import explore
from imapce.cli.options import (
    INTERRUPTED,
    AlphaOrRule,
    Background,
    CenterOnly,
    Components,
    Data,
    Drop,
    ErasedColumns,
    KnownColumns,
    KnownRows,
    LabelColumn,
    Missing,
    MissingValues,
    Mu,
    Outliers,
    OutlyingRows,
    Output,
    Plot,
    Report,
    Seed,
    Starts,
    in_one_sentence,
    number_or_rule,
    warnings_in_one_line,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

app = typer.Typer(
    help="See what else is in your data: views that drop what you know and pull apart the clusters of the rest.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The `imapce` command."""
    try:
        # Named, or `python -m imapce` would call itself by another name in its help.
        app(prog_name="imapce")
    except KeyboardInterrupt:
        # Before a command begins, while modules are imported.
        sys.exit(INTERRUPTED)


def _version(wanted: bool) -> None:
    if wanted:
        from imapce import __version__

        typer.echo(f"imapce {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command()
@in_one_sentence
def embed(
    data: Data,
    attributes: KnownColumns = None,
    erase: ErasedColumns = None,
    background: Background = None,
    known: KnownRows = None,
    output: Output = None,
    plot: Plot = None,
    report: Report = None,
    save: Annotated[str | None, typer.Option(metavar="FILE", help="Model to write, for `imapce transform`.")] = None,
    components: Components = 2,
    alpha: AlphaOrRule = "auto",
    mu: Mu = "auto",
    center_only: CenterOnly = False,
    starts: Starts = 10,
    seed: Seed = 0,
    labels: LabelColumn = None,
    drop: Drop = None,
    outliers: OutlyingRows = Outliers.auto,
    missing: MissingValues = Missing.error,
) -> None:
    """Find a view of DATA that drops what is known and shows what else is there.

    The kinds of knowledge (--attributes, --erase, --background, --known) may be combined.

    Example:

        imapce embed penguins.csv --known species=Adelie -o view.parquet --plot view.png
    """
    from rich.console import Console

    from imapce.cli.outputs import check_targets
    from imapce.cli.request import Request, prepare
    from imapce.cli.screen import facts_table, fit_facts, fit_progress, print_model, print_written
    from imapce.estimators.imapce import IMAPCE

    check_targets(table=output, plot=plot, report=report, others={"--save": save}, inputs=(data, background))
    prepared = prepare(Request.of_options(data, attributes, background, known, labels, drop, erase=erase))
    model = IMAPCE(
        components,
        alpha=number_or_rule(alpha),
        mu=number_or_rule(mu),
        standardize=not center_only,
        n_starts=starts,
        random_state=seed,
        outliers=outliers.value,
        missing=missing.value,
    )
    with warnings_in_one_line(), fit_progress() as watch:
        model.set_params(verbose=watch)
        view = model.fit_transform(prepared.features, prior=prepared.priors)
    # The saved model is for later use, where nobody watches this terminal.
    model.set_params(verbose=False)
    written = _write_view(
        view,
        prepared.carried,
        output=output,
        plot=plot,
        color=prepared.labels,
        color_name=labels,
        known=prepared.known,
        aside=model.outliers_,
    )
    if save is not None:
        model.save(save)
        written["model"] = save
    rows, columns = prepared.features.shape
    encoded = len(model.encoded_feature_names_)
    widened = f", {encoded} after encoding categories" if encoded != columns else ""
    facts = {
        "rows": f"{rows:,}",
        "columns": f"{columns:,}{widened}",
        "known": "; ".join(prepared.words) or "nothing, the view shows the strongest clusters",
    }
    if report is not None:
        from imapce.plotting import write_view_report

        write_view_report(
            model,
            prepared.features,
            report,
            color=prepared.labels,
            color_name=labels,
            known=prepared.known,
            title=f"View of {Path(data).name}",
            # How the search ended is a sentence, and the page has a section for it.
            facts={name: value for name, value in (facts | fit_facts(model)).items() if name != "search"},
        )
        written["report"] = report
    console = Console()
    console.print(facts_table(facts | fit_facts(model)))
    print_model(console, model)
    print_written(console, written)


app.command()(explore)
app.command()(compare)


@app.command()
@in_one_sentence
def transform(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file written by `imapce embed --save`.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="New rows with the columns of the model.")],
    output: Output = None,
    plot: Plot = None,
) -> None:
    """Place new rows in the view of a saved model.

    Columns that are no features of the model are carried along to the output.

    Example:

        imapce transform view.imapce new.csv -o new_view.parquet
    """
    from rich.console import Console

    from imapce.cli.outputs import check_targets
    from imapce.cli.request import rows_for_model
    from imapce.cli.screen import facts_table, print_written
    from imapce.estimators.model_file import load_model

    check_targets(table=output, plot=plot, inputs=(model, data))
    fitted = load_model(model)
    features, carried = rows_for_model(fitted, data)
    with warnings_in_one_line():
        view = fitted.transform(features)
    written = _write_view(view, carried, output=output, plot=plot)
    console = Console()
    along = ", ".join(carried.column_names) or "none"
    console.print(facts_table({"rows": f"{len(view):,}", "axes": str(view.shape[1]), "carried along": along}))
    print_written(console, written)


@app.command()
@in_one_sentence
def info(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A file written by `imapce embed --save`.")],
    as_json: AsJson = False,
) -> None:
    """Tell what is in a model file.

    Example:

        imapce info view.imapce --json
    """
    from rich.console import Console

    from imapce.cli.screen import facts_table, fit_facts, model_facts, print_model
    from imapce.common.words import listing
    from imapce.estimators.model_file import load_model

    fitted = load_model(model)
    facts = model_facts(fitted)
    if as_json:
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    columns = "no names, by position" if facts["columns"] is None else listing(facts["columns"], 10)
    console = Console()
    told = {
        "format version": str(facts["format_version"]),
        "features": f"{facts['n_features']:,} ({columns})",
        "parameters": ", ".join(f"{name}={value!r}" for name, value in facts["parameters"].items()),
    }
    console.print(facts_table(told | fit_facts(fitted)))
    print_model(console, fitted)


@app.command()
@in_one_sentence
def datasets(as_json: AsJson = False) -> None:
    """List the data sets of imapce.datasets and whether their files are on disk; nothing is downloaded.

    Example:

        imapce datasets --json
    """
    from imapce.datasets.catalogue import CATALOGUE

    entries: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "call": f"imapce.datasets.{entry.call}",
            "rows": entry.rows,
            "columns": entry.columns,
            "source": entry.source,
            "licence": entry.licence,
            "files": [paths[0] for paths in entry.files],
            "on_disk": entry.is_on_disk(),
        }
        for entry in CATALOGUE
    ]
    if as_json:
        typer.echo(json.dumps(entries, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("rows x columns", justify="right", no_wrap=True)
    table.add_column("on disk", no_wrap=True)
    table.add_column("licence")
    table.add_column("source", overflow="fold")
    for told in entries:
        here = "not needed" if not told["files"] else "yes" if told["on_disk"] else "no"
        table.add_row(told["name"], f"{told['rows']:,} x {told['columns']}", here, told["licence"], told["source"])
    Console().print(table)


@app.command()
@in_one_sentence
def demo(
    out: Annotated[str, typer.Option(metavar="FOLDER", help="Folder for the figures and the report.")] = "imapce-demo",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the data and the search.")] = 0,
) -> None:
    """Embed example data with and without what is known, and explain the difference in a report.

    Needs no file and no network.

    Example:

        imapce demo --out imapce-demo
    """
    from imapce.cli.demo import run_demo

    run_demo(out, seed)


def _write_view(
    view: NDArray[Any],
    carried: Any,
    *,
    output: str | None,
    plot: str | None,
    color: Any = None,
    color_name: str | None = None,
    known: NDArray[Any] | None = None,
    aside: NDArray[Any] | None = None,
) -> dict[str, str]:
    """Write the table and the plot that were asked for and tell where; the plot is drawn before either is written.

    Rows set aside are in the table and not in the plot, where the others would shrink to a spot.
    """
    from imapce.cli.outputs import output_table
    from imapce.tables.files import write_table

    written: dict[str, str] = {}
    figure = None
    if plot is not None:
        import numpy as np

        from imapce.plotting import plot_embedding

        names = [f"imapce{axis}" for axis in range(view.shape[1])]
        shown = np.ones(len(view), dtype=bool)
        shown[aside if aside is not None else []] = False
        color, known = (None if values is None else np.asarray(values)[shown] for values in (color, known))
        figure = plot_embedding(view[shown], color=color, color_name=color_name, known=known, axis_names=names)
    if output is not None:
        # An .npy file holds one kind of number and no names, so the axes alone.
        write_table(view if output.lower().endswith(".npy") else output_table(carried, view), output)
        written["table"] = output
    if plot is not None and figure is not None:
        from imapce.plotting import save_figure

        save_figure(figure, plot)
        written["plot"] = plot
    return written
