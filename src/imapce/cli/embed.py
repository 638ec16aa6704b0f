"""`imapce embed`: one view of a file, to a table, a plot, a report and a model for new rows."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from imapce.cli.messages import named, warnings_in_one_line
from imapce.cli.options import DataOptions, Details, OnlyResult, Output, Plot, Report, ShowOptions, ViewOptions

if TYPE_CHECKING:
    from imapce.cli.request import Prepared
    from imapce.estimators.imapce import IMAPCE


class Outliers(StrEnum):
    """What to do with gross outliers."""

    auto = "auto"
    keep = "keep"
    trim = "trim"


def embed(
    asked: DataOptions,
    *,
    output: Output = None,
    only_result: OnlyResult = False,
    plot: Plot = None,
    report: Report = None,
    save: Annotated[str | None, typer.Option(metavar="FILE", help="Model to write, for `imapce transform`.")] = None,
    fit: ViewOptions,
    outliers: Annotated[
        Outliers,
        typer.Option(
            "--outliers", help="Use gross outliers, or set them aside; auto does where alpha or mu is automatic."
        ),
    ] = Outliers.auto,
    details: Details = False,
    show: ShowOptions,
) -> None:
    """Find a view of DATA that drops what is known and shows what else is there.

    The kinds of knowledge (--known, --erase, --known-rows, --background) may be combined. Columns that
    can be no features (ids, free text, dates, more than 50 levels, constants) are left out and named.

    Example:

        imapce embed penguins.csv --known-rows species=Adelie -o view.parquet --plot view.png
    """
    from imapce.cli.on_disk import require_table_file, tell_of_passes, write_view_of_scan
    from imapce.cli.request import Request, no_columns, prepare
    from imapce.cli.results import (
        check_targets,
        facts_table,
        fit_facts,
        model_facts,
        plot_words,
        print_model,
        print_written,
        told_facts,
        write_annotated_view,
        write_view,
    )
    from imapce.cli.summary import print_sentences, view_in_sentences
    from imapce.common.progress import showing
    from imapce.tables.named import is_h5ad

    show.require_stdout_free(output)
    check_targets(
        table=output,
        plot=plot,
        report=report,
        others={"--save": save},
        inputs=(asked.data, asked.background),
        stream=True,
        source=asked.data,
        only_result=only_result,
    )
    prepared = prepare(Request.of_options(asked), from_disk=True)
    model = fit.estimator(outliers=outliers.value, random_state=fit.seed)
    table, drawn = prepared.on_disk, prepared.drawn
    if table is None or drawn is None:
        with warnings_in_one_line(), showing(quiet=show.quiet) as tell:
            model.set_params(verbose=tell)
            view = model.fit_transform(prepared.features, prior=prepared.priors or None)
        written = write_view(
            view,
            no_columns() if only_result else prepared.everything,
            output=None if is_h5ad(output) else output,
            plot=plot,
            color=prepared.colours,
            known=prepared.known,
            aside=model.outliers_,
            told=plot_words(model, plot, asked.name),
        )
        if output is not None and is_h5ad(output):
            write_annotated_view(asked.data, output, model, view)
            written["table"] = output
    else:
        require_table_file(output)
        tell_of_passes(prepared.features, model)
        with warnings_in_one_line(), showing(quiet=show.quiet, of="of the pass") as tell:
            model.set_params(verbose=tell)
            model.fit(prepared.features.watched(tell), prior=prepared.priors)
            written = write_view_of_scan(
                model,
                table.watched(tell),
                drawn,
                output=output,
                columns=[] if only_result else None,
                plot=plot,
                color=prepared.colours,
                label_names=prepared.label_names if model.effect_ is not None else (),
            )
    # The saved model is for later use, where nobody watches this terminal.
    model.set_params(verbose=False)
    if save is not None:
        with named("--save"):
            model.save(save)
        written["model"] = save
    facts = _table_facts(model, prepared) | fit_facts(model)
    if report is not None:
        from imapce.plotting import write_view_report

        with named("--report"):
            write_view_report(
                model,
                prepared.features if drawn is None else drawn.select(prepared.features.columns),
                report,
                color=prepared.colours or None,
                told=prepared.told,
                known=prepared.known,
                labels=prepared.row_labels if model.effect_ is not None else None,
                title=f"View of {asked.name}",
                # These are sentences, and the page has sections for them.
                facts={name: value for name, value in facts.items() if name not in ("search", "known read back")},
            )
        written["report"] = report
    # Where the table goes to standard output, the words must not.
    console = show.console(stderr=output == "-")
    sentences = view_in_sentences(model, prepared.words)
    print_sentences(console, sentences)
    console.print(facts_table(told_facts(facts, details=details)))
    print_model(console, model, details=details)
    print_written(console, written)
    rows, columns = prepared.features.shape
    result = {"summary": sentences, "rows": rows, "features": columns, "known": prepared.words}
    result["model"] = model_facts(model)
    show.result(command="embed", **result, written=written)


def _table_facts(model: IMAPCE, prepared: Prepared) -> dict[str, str]:
    rows, columns = prepared.features.shape
    encoded = len(model.encoded_feature_names_)
    widened = f", {encoded:,} with one for each category" if encoded != columns else ""
    return {
        "rows": f"{rows:,}",
        "features": f"{columns:,}{widened}",
        "known": "; ".join(prepared.words) or "nothing",
    }
