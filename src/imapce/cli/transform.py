"""`imapce transform`: new rows in the view of a saved model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from imapce.cli.messages import warnings_in_one_line
from imapce.cli.options import FileOptions, ModelFile, Output, Plot


class UnknownCategories(StrEnum):
    """What to do with categories that the model has not seen."""

    error = "error"
    ignore = "ignore"


def transform(
    model: ModelFile,
    data: Annotated[str, typer.Argument(metavar="DATA", help="New rows with the columns of the model.")],
    output: Output = None,
    plot: Plot = None,
    *,
    unknown: Annotated[
        UnknownCategories,
        typer.Option(
            "--unknown", help="Refuse categories the model has not seen, or name them and take them for none."
        ),
    ] = UnknownCategories.error,
    file: FileOptions,
) -> None:
    """Place new rows in the view of a saved model.

    Columns that are no features of the model are carried along to the output.

    Example:

        imapce transform view.imapce new.csv -o new_view.parquet
    """
    from rich.console import Console

    from imapce.cli.outputs import check_targets, write_view
    from imapce.cli.request import rows_for_model
    from imapce.cli.screen import facts_table, print_written
    from imapce.estimators.model_file import load_model

    check_targets(table=output, plot=plot, inputs=(model, data), stream=True)
    fitted = load_model(model)
    features, carried = rows_for_model(fitted, data, file.reading)
    fitted.reader_ = fitted.reader_.with_unknown(unknown.value)
    with warnings_in_one_line():
        view = fitted.transform(features)
    written = write_view(view, carried, output=output, plot=plot)
    console = Console(stderr=output == "-")
    along = ", ".join(carried.column_names) or "none"
    console.print(facts_table({"rows": f"{len(view):,}", "axes": str(view.shape[1]), "carried along": along}))
    print_written(console, written)
