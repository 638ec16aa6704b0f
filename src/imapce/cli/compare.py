"""`imapce compare`: the paper's comparison on a file, to a folder with figure, scores, embeddings and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from imapce.cli.options import DataOptions, FitOptions
from imapce.errors import InvalidValueError


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
        typer.Option(
            "--known-labels",
            metavar="COLUMN",
            help="Classes that the known stands for, where its columns do not say them. It is no feature.",
        ),
    ] = None,
    methods: Annotated[str, typer.Option("--methods", metavar="all|A,B", help="Methods to compare.")] = "all",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder to write: figure, scores, embeddings, report."),
    ] = None,
    max_rows: Annotated[
        int | None,
        typer.Option("--max-rows", min=2, help="Rows that slow methods get; default 10,000, 3,000 for Fair-NeRV."),
    ] = None,
    fit: FitOptions,
    list_methods: Annotated[
        bool, typer.Option("--list-methods", callback=_list_methods, is_eager=True, help="List the methods and exit.")
    ] = False,
) -> None:
    """Compare IMAPCE with other methods on DATA: is the known gone, is something else there.

    The first column of --labels scores the structure, all of them colour the figure.
    Every method gets the same rows and the same knowledge; one that cannot use it, or fails, is named with the reason.
    --alpha and --mu are those of IMAPCE, the other methods have their own defaults. IMAPCE, cPCA and gcPCA obey
    --erase; to the others these columns are known like those of --attributes.

    Example:

        imapce compare adult.csv --attributes sex --labels income --methods IMAPCE,PCA,CTSNE -o comparison
    """
    from rich.console import Console

    from imapce.cli.outputs import COMPARISON_FILES, write_comparison
    from imapce.cli.request import Request, prepare
    from imapce.cli.screen import facts_table, print_comparison, print_written
    from imapce.common.whole_files import folder_target
    from imapce.comparison.compare import compare as compare_methods
    from imapce.comparison.methods import chosen_methods

    chosen = chosen_methods(methods)
    if output is not None:
        folder_target(output, COMPARISON_FILES)
    prepared = prepare(Request.of_options(asked, known_labels))
    # On stderr, as every progress; Rich shows it only where someone watches.
    with Console(stderr=True).status("reading the rows") as status:
        comparison = compare_methods(
            prepared.features,
            prepared.priors,
            chosen,
            labels=prepared.labels,
            known_labels=prepared.known_labels,
            parameters={"IMAPCE": fit.weights},
            standardize=not fit.center_only,
            missing=fit.missing.value,
            max_rows=max_rows,
            random_state=fit.seed,
            progress=status.update,
        )
        if not comparison.worked:
            reasons = " ".join(f"{one.method.title}: {one.left_out}" for one in comparison.results)
            raise InvalidValueError(f"--methods must name a method that works here, and none did. {reasons}")
        rows, columns = prepared.features.shape
        facts = {
            "rows": f"{rows:,}",
            "columns": f"{columns:,}",
            "known": "; ".join(prepared.words) or "nothing",
            "seed": str(fit.seed),
        }
        written = {}
        if output is not None:
            status.update("writing figures and report")
            title = f"Comparison of methods on {Path(asked.data).name}"
            written = write_comparison(comparison, prepared, output, title=title, facts=facts)
    console = Console()
    console.print(facts_table(facts))
    print_comparison(console, comparison)
    print_written(console, written)
