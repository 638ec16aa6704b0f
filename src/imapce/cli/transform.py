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
    from imapce.cli.on_disk import DRAWN_ROWS, require_table_file, tell_of_passes, write_view_of_scan
    from imapce.cli.outputs import check_targets, write_view
    from imapce.cli.progress import progress
    from imapce.cli.request import rows_for_model
    from imapce.cli.screen import facts_table, print_written
    from imapce.common.streams import is_scan
    from imapce.common.words import axis_names, counted, listing
    from imapce.estimators.model_file import load_model

    show.require_stdout_free(output)
    check_targets(table=output, plot=plot, inputs=(model, data), stream=True)
    with named("MODEL"):
        fitted = load_model(model)
    features, carried = rows_for_model(fitted, data, file.reading)
    fitted.reader_ = fitted.reader_.with_unknown(unknown.value)
    n_rows, along = features.shape[0], carried.column_names
    if is_scan(features):
        require_table_file(output)
        tell_of_passes(features, None)
        along = list(features.columns)
        drawn = features.sample(DRAWN_ROWS) if plot is not None else features.head(1)
        with warnings_in_one_line(), progress(quiet=show.quiet, of="of the rows") as tell:
            written = write_view_of_scan(fitted, features.watched(tell), drawn, output=output, plot=plot, color={})
    else:
        with warnings_in_one_line(), progress(quiet=show.quiet) as tell:
            tell(f"placing {counted(n_rows, 'row')}", None)
            view = fitted.transform(features)
        written = write_view(view, carried, output=output, plot=plot)
    console = show.console(stderr=output == "-")
    axes = axis_names(len(fitted.components_))
    console.print(facts_table({"rows": f"{n_rows:,}", "axes": listing(axes), "carried along": listing(along, 20)}))
    print_written(console, written)
    show.result(command="transform", rows=n_rows, axes=axes, carried=along, written=written)
