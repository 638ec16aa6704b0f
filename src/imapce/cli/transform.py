"""`imapce transform`: new rows in the view of a saved model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from imapce.cli.messages import named, warnings_in_one_line
from imapce.cli.options import FileOptions, ModelFile, OnlyResult, Output, Plot, ShowOptions


class UnknownCategories(StrEnum):
    """What to do with categories that the model has not seen."""

    error = "error"
    ignore = "ignore"


def transform(
    model: ModelFile,
    data: Annotated[str, typer.Argument(metavar="DATA", help="New rows with the columns of the model.")],
    output: Output = None,
    only_result: OnlyResult = False,
    plot: Plot = None,
    *,
    known: Annotated[
        str | None,
        typer.Option(
            "--known",
            metavar="COLUMNS",
            help="Columns with the labels that the model was fitted given, in its order, if they have other names than "
            "there. What they explain is taken from every row; an empty one takes nothing.",
        ),
    ] = None,
    known_label: Annotated[str | None, typer.Option("--known-label", hidden=True)] = None,
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

    The table of -o has the columns of DATA, the row number and the axes. Columns that were known in
    `imapce embed` are needed in DATA too, those that were labels under the same names or those of --known.

    Example:

        imapce transform view.imapce new.csv -o new_view.parquet
    """
    from imapce.cli.new_rows import new_rows
    from imapce.cli.on_disk import DRAWN_ROWS, require_table_file, tell_of_passes, write_view_of_scan
    from imapce.cli.request import listed_names, no_columns, tell_of_old
    from imapce.cli.results import check_targets, facts_table, plot_words, print_written, write_view
    from imapce.common.arrays import is_scan
    from imapce.common.progress import showing
    from imapce.common.words import axis_names, counted, given, listing
    from imapce.estimators.model_file import load_model
    from imapce.priors.effect import explained_away

    show.require_stdout_free(output)
    if known_label is not None:
        tell_of_old("--known-label", "--known")
    check_targets(table=output, plot=plot, inputs=(model, data), stream=True, only_result=only_result)
    with named("MODEL"):
        fitted = load_model(model)
    rows = new_rows(fitted, data, file.reading, listed_names(known if known is not None else known_label))
    features, carried = rows.features, no_columns() if only_result else rows.everything
    fitted.reader_ = fitted.reader_.with_unknown(unknown.value)
    n_rows, along = features.shape[0], carried.column_names
    if is_scan(features):
        require_table_file(output)
        tell_of_passes(features, None)
        along = [] if only_result else list(features.columns)
        drawn = features.sample(DRAWN_ROWS) if plot is not None else features.head(1)
        with warnings_in_one_line(), showing(quiet=show.quiet, of="of the rows") as tell:
            written = write_view_of_scan(
                fitted,
                features.watched(tell),
                drawn,
                output=output,
                columns=[] if only_result else None,
                plot=plot,
                color={},
                label_names=rows.label_names,
            )
    else:
        with warnings_in_one_line(), showing(quiet=show.quiet) as tell:
            tell(f"placing {counted(n_rows, 'row')}", None)
            view = fitted.transform(features, rows.labels)
        written = write_view(view, carried, output=output, plot=plot, told=plot_words(fitted, plot, data))
    console = show.console(stderr=output == "-")
    axes, away = axis_names(len(fitted.components_)), explained_away(fitted)
    shown = given(listing(axes), away)
    console.print(facts_table({"rows": f"{n_rows:,}", "axes": shown, "carried along": listing(along, 20)}))
    print_written(console, written)
    show.result(command="transform", rows=n_rows, axes=axes, given=away, carried=along, written=written)
