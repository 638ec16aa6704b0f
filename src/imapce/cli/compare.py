"""`imapce compare`: the paper's comparison on a file, to a folder with figure, scores, embeddings and a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imapce.cli.options import (
    AlphaOrRule,
    Background,
    CenterOnly,
    Data,
    Drop,
    ErasedColumns,
    KnownColumns,
    KnownRows,
    LabelColumn,
    Missing,
    MissingValues,
    Mu,
    Seed,
    in_one_sentence,
    number_or_rule,
)
from imapce.errors import InvalidValueError

if TYPE_CHECKING:
    import pyarrow as pa

    from imapce.cli.request import Prepared
    from imapce.comparison.compare import Comparison

FILES = ("comparison.png", "comparison.pdf", "scores.csv", "scores.json", "embeddings.parquet", "report.html")


def _list_methods(wanted: bool) -> None:
    if wanted:
        from rich.console import Console
        from rich.table import Table

        from imapce.comparison.methods import METHODS

        options = {"attributes": "--attributes", "samples": "--background", "subset": "--known"}
        table = Table(box=None, pad_edge=False)
        for heading in ("name", "method", "can use", "sample above", "needs"):
            table.add_column(heading)
        for name, method in METHODS.items():
            kinds = " ".join(option for kind, option in options.items() if kind in method.uses) or "nothing"
            most = "" if method.max_rows is None else f"{method.max_rows:,} rows"
            table.add_row(name, method.title, kinds, most, method.extra or "")
        Console().print(table)
        raise typer.Exit


@in_one_sentence
def compare(
    data: Data,
    attributes: KnownColumns = None,
    erase: ErasedColumns = None,
    background: Background = None,
    known: KnownRows = None,
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
    labels: LabelColumn = None,
    max_rows: Annotated[
        int | None,
        typer.Option("--max-rows", min=2, help="Rows that slow methods get; default 10,000, 3,000 for Fair-NeRV."),
    ] = None,
    alpha: AlphaOrRule = "auto",
    mu: Mu = "auto",
    center_only: CenterOnly = False,
    seed: Seed = 0,
    drop: Drop = None,
    missing: MissingValues = Missing.error,
    list_methods: Annotated[
        bool, typer.Option("--list-methods", callback=_list_methods, is_eager=True, help="List the methods and exit.")
    ] = False,
) -> None:
    """Compare IMAPCE with other methods on DATA: is the known gone, is something else there.

    Every method gets the same rows and the same knowledge; one that cannot use it, or fails, is named with the reason.
    --alpha and --mu are those of IMAPCE, the other methods have their own defaults. IMAPCE, cPCA and gcPCA obey
    --erase; to the others these columns are known like those of --attributes.

    Example:

        imapce compare adult.csv --attributes sex --labels income --methods IMAPCE,PCA,CTSNE -o comparison
    """
    from rich.console import Console

    from imapce.cli.request import Request, prepare
    from imapce.cli.screen import facts_table, print_comparison, print_written
    from imapce.common.whole_files import folder_target
    from imapce.comparison.compare import compare as compare_methods
    from imapce.comparison.methods import chosen_methods

    chosen = chosen_methods(methods)
    if output is not None:
        folder_target(output, FILES)
    prepared = prepare(Request.of_options(data, attributes, background, known, labels, drop, known_labels, erase))
    # On stderr, as every progress; Rich shows it only where someone watches.
    with Console(stderr=True).status("reading the rows") as status:
        comparison = compare_methods(
            prepared.features,
            prepared.priors,
            chosen,
            labels=prepared.labels,
            known_labels=prepared.known_labels,
            parameters={"IMAPCE": {"alpha": number_or_rule(alpha), "mu": number_or_rule(mu)}},
            standardize=not center_only,
            missing=missing.value,
            max_rows=max_rows,
            random_state=seed,
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
            "seed": str(seed),
        }
        written = {}
        if output is not None:
            status.update("writing figures and report")
            written = _write(output, comparison, prepared, facts, Path(data).name, labels)
    console = Console()
    console.print(facts_table(facts))
    print_comparison(console, comparison)
    print_written(console, written)


def _write(
    output: str, comparison: Comparison, prepared: Prepared, facts: dict[str, str], name: str, labels: str | None
) -> dict[str, str]:
    """Write every file of the folder, or none; what was written and where."""
    from imapce.common.whole_files import whole_file, whole_folder
    from imapce.plotting import plot_methods, save_figure, write_comparison_report
    from imapce.tables.files import write_table

    figure = plot_methods(comparison, color=prepared.labels, color_name=labels)
    told = {**facts, "notes": comparison.notes, "scored_rows": len(comparison.scored_rows)}
    records = comparison.to_records()
    with whole_folder(output, FILES) as folder:
        for file in ("comparison.png", "comparison.pdf"):
            save_figure(figure, folder / file)
        write_table({key: [record[key] for record in records] for key in records[0]}, folder / "scores.csv")
        remarks = {one.method.title: list(one.remarks) for one in comparison.results if one.remarks}
        text = json.dumps({**told, "methods": records, "remarks": remarks}, indent=2, ensure_ascii=False)
        with whole_file(folder / "scores.json") as stream:
            stream.write(f"{text}\n".encode())
        write_table(_embeddings(comparison, prepared.carried), folder / "embeddings.parquet")
        write_comparison_report(
            folder / "report.html", comparison, figure, title=f"Comparison of methods on {name}", facts=facts
        )
    return {"report": str(Path(output) / "report.html"), f"{len(FILES) - 1} more files": output}


def _embeddings(comparison: Comparison, carried: pa.Table) -> Any:
    """The columns that go along, the row number, and every method's axes, empty where it got no row."""
    import numpy as np
    import pyarrow as pa

    from imapce.cli.outputs import beside

    axes: dict[str, Any] = {"row": np.arange(comparison.n_rows)}
    for result in comparison.worked:
        if result.embedding is None or result.rows is None:
            continue
        for axis, values in enumerate(result.embedding.T):
            column = np.full(comparison.n_rows, np.nan)
            column[result.rows] = values
            axes[f"{result.method.title}_{axis}"] = pa.array(column, from_pandas=True)
    return beside(carried, axes)
