"""`imapce transform`: new rows in the view of a saved model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from imapce.cli.messages import named, warnings_in_one_line
from imapce.cli.options import FileOptions, ModelFile, Output, Plot, ShowOptions


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
    show: ShowOptions,
) -> None:
    """Place new rows in the view of a saved model.

    Columns that are no features of the model are carried along to the output.

    Example:

        imapce transform view.imapce new.csv -o new_view.parquet
    """
    from imapce.cli.outputs import check_targets, write_view
    from imapce.cli.progress import progress
    from imapce.cli.request import rows_for_model
    from imapce.cli.screen import facts_table, print_written
    from imapce.common.words import axis_names, counted, listing
    from imapce.estimators.model_file import load_model

    show.require_stdout_free(output)
    check_targets(table=output, plot=plot, inputs=(model, data), stream=True)
    with named("MODEL"):
        fitted = load_model(model)
    features, carried = rows_for_model(fitted, data, file.reading)
    fitted.reader_ = fitted.reader_.with_unknown(unknown.value)
    with warnings_in_one_line(), progress(quiet=show.quiet) as tell:
        tell(f"placing {counted(features.shape[0], 'row')}", None)
        view = fitted.transform(features)
    written = write_view(view, carried, output=output, plot=plot)
    console = show.console(stderr=output == "-")
    axes = axis_names(view.shape[1])
    told = {"rows": f"{len(view):,}", "axes": listing(axes), "carried along": listing(carried.column_names, 20)}
    console.print(facts_table(told))
    print_written(console, written)
    show.result(command="transform", rows=len(view), axes=axes, carried=carried.column_names, written=written)
