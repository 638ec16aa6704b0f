"""`imapce explore`: Algorithm 1 on a file, to a table of clusters, a report and a session that can be resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from imapce.cli.messages import note, warnings_in_one_line
from imapce.cli.options import DataOptions, Output, Report, ViewOptions
from imapce.errors import InvalidValueError


def explore(
    asked: DataOptions,
    *,
    output: Output = None,
    report: Report = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="FILE", help="Session, saved after every step.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the session instead of starting anew.")] = False,
    min_cluster_size: Annotated[
        int | None, typer.Option("--min-cluster-size", min=1, help="Least rows of a cluster; default 1 % of the rows.")
    ] = None,
    max_clusters: Annotated[
        int, typer.Option("--max-clusters", min=1, help="Most clusters of one view, for dpgmm and hdbscan.")
    ] = 5,
    max_steps: Annotated[int | None, typer.Option("--max-steps", min=1, help="Stop after this many steps.")] = None,
    significance: Annotated[
        float | None,
        typer.Option("--significance", metavar="P", help="Stop where one Gaussian would look as split, as 0.05."),
    ] = None,
    clusterer: Annotated[
        str,
        typer.Option(
            "--clusterer",
            metavar="auto|joint|dpgmm|hdbscan",
            help="Clusters once in all directions (joint), or view by view; auto is joint, or dpgmm with a background.",
        ),
    ] = "auto",
    refine: Annotated[
        bool,
        typer.Option("--refine/--no-refine", help="Carry clusters found view by view into all directions."),
    ] = True,
    fit: ViewOptions,
) -> None:
    """Explore DATA step by step: take the most distinct cluster into the known, look again, until nothing is left.

    With --session the work survives an interruption; --resume goes on from there with the session's own settings.

    Example:

        imapce explore segments.csv --labels class -o clusters.parquet --report report.html --session s.imapce
    """
    from rich.console import Console

    from imapce.cli.outputs import check_targets, write_clusters
    from imapce.cli.request import Request, prepare
    from imapce.cli.screen import exploration_progress, print_exploration, print_written
    from imapce.exploration.session import Exploration

    if output is not None and output.lower().endswith(".npy"):
        raise InvalidValueError(
            f"-o must be a table with columns for explore, got {output!r}: use .parquet, .csv, .tsv or .arrow."
        )
    check_targets(
        table=output,
        report=report,
        others={"--session": session},
        inputs=(asked.data, asked.background),
        source=asked.data,
    )
    if resume and session is None:
        raise InvalidValueError("--resume goes on with a session; name its file with --session FILE.")
    if session is not None and not resume and Path(session).exists():
        raise InvalidValueError(
            f"--session must be a new file, and {session!r} exists; add --resume to go on, or choose another name."
        )
    prepared = prepare(Request.of_options(asked))
    if resume and session is not None:
        exploration = Exploration.load(session, prepared.features)
    else:
        exploration = Exploration(
            prepared.features,
            prior=prepared.priors,
            estimator=fit.estimator(outliers="keep"),
            min_cluster_size="auto" if min_cluster_size is None else min_cluster_size,
            max_clusters=max_clusters,
            random_state=fit.seed,
            clusterer=clusterer,
            refine=refine,
            path=session,
        )
    console = Console()
    try:
        with warnings_in_one_line(), exploration_progress() as progress:
            exploration.run(max_steps, significance=significance, progress=progress)
    except KeyboardInterrupt:
        kept = (
            f"it is in {session}; add --resume to go on" if session is not None else "nothing is kept without --session"
        )
        typer.echo(f"imapce: stopped after {len(exploration.steps)} steps; {kept}.", err=True)
        raise
    if session is not None and not Path(session).exists():
        # Nothing was accepted, and the settings are worth going on with all the same.
        exploration.save(session)
    written: dict[str, str] = {}
    if output is not None:
        write_clusters(exploration, prepared.carried, output, source=asked.data)
        written["table"] = output
    if report is not None:
        if len(prepared.colours) > 1:
            note(f"the report is coloured by {next(iter(prepared.colours))!r}, the first of --labels.")
        exploration.report(report, labels=prepared.labels, title=f"Exploration of {Path(asked.data).name}")
        written["report"] = report
    if session is not None:
        written["session"] = session
    print_exploration(console, exploration, prepared.words)
    print_written(console, written)
