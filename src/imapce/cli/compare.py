"""`imapce compare`: the paper's comparison on a file, to a folder with figure, scores, embeddings and a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imapce.cli.messages import in_own_words, named
from imapce.cli.options import DataOptions, FitOptions, ShowOptions
from imapce.errors import InvalidValueError, Sentence

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from imapce.cli.request import Prepared
    from imapce.comparison.compare import Comparison

COMPARISON_FILES = (
    "comparison.png",
    "comparison.pdf",
    "scores.csv",
    "scores.json",
    "embeddings.parquet",
    "report.html",
)


def _list_methods(wanted: bool) -> None:
    if wanted:
        from rich.console import Console
        from rich.table import Table

        from imapce.comparison.methods import METHODS

        # In words: as options they would break the table in a terminal of 80 columns.
        words = {"attributes": "columns", "labels": "labels", "samples": "background", "subset": "rows"}
        table = Table(box=None, pad_edge=False)
        for heading in ("name", "method", "can use", "sample above", "needs"):
            table.add_column(heading)
        for name, method in METHODS.items():
            kinds = " ".join(word for kind, word in words.items() if kind in method.uses) or "nothing"
            kinds = "all that is known" if method.uses == words.keys() else kinds
            most = "" if method.max_rows is None else f"{method.max_rows:,} rows"
            table.add_row(name, method.title, kinds, most, method.extra or "")
        Console().print(table)
        raise typer.Exit


def compare(
    asked: DataOptions,
    *,
    known_labels: Annotated[
        str | None,
        typer.Option("--known-labels", hidden=True),
    ] = None,
    methods: Annotated[
        str,
        typer.Option("--methods", metavar="fast|all|A,B", help="Methods to compare; fast are those of seconds."),
    ] = "fast",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder to write: figure, scores, embeddings, report."),
    ] = None,
    max_rows: Annotated[
        int | None,
        typer.Option("--max-rows", min=2, help="Rows that slow methods get; default 10,000, 3,000 for Fair-NeRV."),
    ] = None,
    fit: FitOptions,
    show: ShowOptions,
    list_methods: Annotated[
        bool, typer.Option("--list-methods", callback=_list_methods, is_eager=True, help="List the methods and exit.")
    ] = False,
) -> None:
    """Compare IMAPCE with other methods on DATA: is the known gone, is something else there.

    Whether the known is gone is scored by --known, --erase and --known-rows; the first column of --labels scores the
    structure, all of them colour the figure.
    Every method gets the same rows and the same knowledge; one that cannot use it, or fails, is named with the reason.
    --methods fast leaves out those that take minutes and says what --methods all would take. --alpha and --mu are those
    of IMAPCE, the other methods have their own defaults. IMAPCE, cPCA and gcPCA obey --erase; to the others these
    columns are known like those of --known.

    Example:

        imapce compare adult.csv --known sex --labels income --methods IMAPCE,PCA,CTSNE -o comparison
    """
    from imapce.cli.request import Request, prepare
    from imapce.cli.results import facts_table, print_written
    from imapce.common.progress import showing
    from imapce.common.whole_files import folder_target
    from imapce.comparison.compare import compare as compare_methods
    from imapce.comparison.methods import chosen_methods

    chosen_methods(methods)
    if output is not None:
        with named("--output"):
            folder_target(output, COMPARISON_FILES)
    prepared = prepare(Request.of_options(asked, known_labels))
    with showing(quiet=show.quiet, of="of the comparison") as tell:
        comparison = compare_methods(
            prepared.features,
            prepared.priors,
            methods,
            labels=prepared.labels,
            known_labels=prepared.known_labels,
            parameters={"IMAPCE": fit.weights},
            standardize=not fit.center_only,
            missing=fit.missing.value,
            max_rows=max_rows,
            random_state=fit.seed,
            progress=tell,
        )
        if not comparison.worked:
            reasons = (Sentence(f" {one.method.title}: ", one.left_out or "") for one in comparison.results)
            raise InvalidValueError("methods", Sentence("must name a method that works here, and none did.", *reasons))
        comparison = replace(comparison, notes=[in_own_words(sentence) for sentence in comparison.notes])
        rows, columns = prepared.features.shape
        facts = {
            "rows": f"{rows:,}",
            "features": f"{columns:,}",
            "known": "; ".join(prepared.words) or "nothing",
            "seed": str(fit.seed),
        }
        written = {}
        if output is not None:
            tell("writing figures and report", 1.0)
            title = f"Comparison of methods on {asked.name}"
            written = _write(comparison, prepared, output, title=title, facts=facts)
    console = show.console()
    console.print(facts_table(facts))
    _print(console, comparison)
    print_written(console, written)
    show.result(
        command="compare",
        rows=rows,
        features=columns,
        known=prepared.words,
        seed=fit.seed,
        scored_rows=len(comparison.scored_rows),
        methods=comparison.to_records(),
        remarks=[remark for one in comparison.results for remark in one.remarks],
        reading=comparison.notes,
        written=written,
    )


def _write(
    comparison: Comparison,
    prepared: Prepared,
    output: str,
    *,
    title: str,
    facts: dict[str, str],
) -> dict[str, str]:
    """Write every file of the folder `output`, or none; what was written and where."""
    import json

    from imapce.common.whole_files import whole_file, whole_folder
    from imapce.plotting import plot_methods, save_figure, write_comparison_report
    from imapce.tables.files import write_table

    figure = plot_methods(comparison, color=prepared.colours or None)
    records = comparison.to_records()
    remarks = {one.method.title: list(one.remarks) for one in comparison.results if one.remarks}
    with named("--output"), whole_folder(output, COMPARISON_FILES) as folder:
        for file in ("comparison.png", "comparison.pdf"):
            save_figure(figure, folder / file)
        write_table({key: [record[key] for record in records] for key in records[0]}, folder / "scores.csv")
        text = json.dumps(
            {
                **facts,
                "notes": comparison.notes,
                "scored_rows": len(comparison.scored_rows),
                "methods": records,
                "remarks": remarks,
            },
            indent=2,
            ensure_ascii=False,
        )
        with whole_file(folder / "scores.json") as stream:
            stream.write(f"{text}\n".encode())
        write_table(_embeddings(comparison, prepared.everything), folder / "embeddings.parquet")
        write_comparison_report(folder / "report.html", comparison, figure, title=title, facts=facts)
    return {"report": str(Path(output) / "report.html"), f"{len(COMPARISON_FILES) - 1} more files": output}


def _embeddings(comparison: Comparison, carried: pa.Table) -> pa.Table:
    """The columns that go along, the row number, and every method's axes, empty where it got no row."""
    import numpy as np
    import pyarrow as pa

    from imapce.estimators.view_file import beside

    axes: dict[str, Any] = {"row": np.arange(comparison.n_rows)}
    for result in comparison.worked:
        if result.embedding is None or result.rows is None:
            continue
        for axis, values in zip(result.axes, result.embedding.T, strict=True):
            column = np.full(comparison.n_rows, np.nan)
            column[result.rows] = values
            axes[axis] = pa.array(column, from_pandas=True)
    return beside(carried, axes)


def _print(console: Console, comparison: Comparison) -> None:
    """The scores of every method, why the others were left out, and how to read both."""
    from rich.table import Table
    from rich.text import Text

    from imapce.comparison.in_words import HEADINGS, scores_in_words

    # Single spaces: the longest names and numbers just fit into the 80 columns of a plain terminal.
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for place, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    for title, *cells in scores_in_words(comparison):
        table.add_row(Text(title), *cells)
    console.print()
    console.print(table)
    console.print()
    left_out = ((one.method.title, one.left_out) for one in comparison.results if one.left_out)
    sentences = [f"{title} is left out. {in_own_words(reason)}" for title, reason in left_out]
    sentences += [remark for one in comparison.results for remark in one.remarks]
    for sentence in [*comparison.notes, *sentences]:
        console.print(Text(sentence))
