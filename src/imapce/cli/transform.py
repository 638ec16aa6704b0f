"""`imapce transform`: new rows in the view of a saved model."""

from __future__ import annotations

from typing import Annotated

import typer

from imapce.cli.messages import warnings_in_one_line
from imapce.cli.options import ModelFile, Output, Plot


def transform(
    model: ModelFile,
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

    from imapce.cli.outputs import check_targets, write_view
    from imapce.cli.request import rows_for_model
    from imapce.cli.screen import facts_table, print_written
    from imapce.estimators.model_file import load_model

    check_targets(table=output, plot=plot, inputs=(model, data))
    fitted = load_model(model)
    features, carried = rows_for_model(fitted, data)
    with warnings_in_one_line():
        view = fitted.transform(features)
    written = write_view(view, carried, output=output, plot=plot)
    console = Console()
    along = ", ".join(carried.column_names) or "none"
    console.print(facts_table({"rows": f"{len(view):,}", "axes": str(view.shape[1]), "carried along": along}))
    print_written(console, written)
