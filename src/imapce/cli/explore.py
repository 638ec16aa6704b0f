"""`imapce explore`: Algorithm 1 on a file, to a table of clusters, a report and a session that can be resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from imapce.cli.options import (
    AlphaOrRule,
    Background,
    CenterOnly,
    Components,
    Data,
    Drop,
    ErasedColumns,
    KnownColumns,
    KnownRows,
    LabelColumn,
    Missing,
    MissingValues,
    Mu,
    Output,
    Report,
    Seed,
    Starts,
    in_one_sentence,
    number_or_rule,
    warnings_in_one_line,
)
from imapce.errors import InvalidValueError


@in_one_sentence
def explore(
    data: Data,
    attributes: KnownColumns = None,
    erase: ErasedColumns = None,
    background: Background = None,
    known: KnownRows = None,
    output: Output = None,
    report: Report = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="FILE", help="Session, saved after every step.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the session instead of starting anew.")] = False,
    min_cluster_size: Annotated[
        int | None, typer.Option("--min-cluster-size", min=1, help="Least rows of a cluster; default 2 % of the rows.")
    ] = None,
    max_clusters: Annotated[
        int, typer.Option("--max-clusters", min=1, help="Most clusters looked for in one view.")
    ] = 5,
    max_steps: Annotated[int | None, typer.Option("--max-steps", min=1, help="Stop after this many steps.")] = None,
    significance: Annotated[
        float | None,
        typer.Option("--significance", metavar="P", help="Stop where one Gaussian would look as split, as 0.05."),
    ] = None,
    clusterer: Annotated[str, typer.Option("--clusterer", metavar="dpgmm|hdbscan", help="How to cluster.")] = "dpgmm",
    refine: Annotated[
        bool, typer.Option("--refine/--no-refine", help="Carry the clusters of a view into all directions.")
    ] = True,
    components: Components = 2,
    alpha: AlphaOrRule = "auto",
    mu: Mu = "auto",
    center_only: CenterOnly = False,
    starts: Starts = 10,
    seed: Seed = 0,
    labels: LabelColumn = None,
    drop: Drop = None,
    missing: MissingValues = Missing.error,
) -> None:
    """Explore DATA step by step: take the most distinct cluster into the known, look again, until nothing is left.

    With --session the work survives an interruption; --resume goes on from there with the session's own settings.

    Example:

        imapce explore segments.csv --labels class -o clusters.parquet --report report.html --session s.imapce
    """
    from rich.console import Console

    from imapce.cli.outputs import check_targets, cluster_table
    from imapce.cli.request import Request, prepare
    from imapce.cli.screen import print_exploration, print_written
    from imapce.estimators.imapce import IMAPCE
    from imapce.exploration.session import Exploration
    from imapce.tables.files import write_table

    if output is not None and output.lower().endswith(".npy"):
        raise InvalidValueError(
            f"-o must be a table with columns for explore, got {output!r}: use .parquet, .csv, .tsv or .arrow."
        )
    check_targets(table=output, report=report, others={"--session": session}, inputs=(data, background))
    if resume and session is None:
        raise InvalidValueError("--resume goes on with a session; name its file with --session FILE.")
    if session is not None and not resume and Path(session).exists():
        raise InvalidValueError(
            f"--session must be a new file, and {session!r} exists; add --resume to go on, or choose another name."
        )
    prepared = prepare(Request.of_options(data, attributes, background, known, labels, drop, erase=erase))
    if resume and session is not None:
        exploration = Exploration.load(session, prepared.features)
    else:
        model = IMAPCE(
            components,
            alpha=number_or_rule(alpha),
            mu=number_or_rule(mu),
            standardize=not center_only,
            n_starts=starts,
            outliers="keep",
            missing=missing.value,
        )
        exploration = Exploration(
            prepared.features,
            prior=prepared.priors,
            estimator=model,
            min_cluster_size="auto" if min_cluster_size is None else min_cluster_size,
            max_clusters=max_clusters,
            random_state=seed,
            clusterer=clusterer,
            refine=refine,
            path=session,
        )
    console = Console()
    try:
        with warnings_in_one_line():
            exploration.run(max_steps, significance=significance)
    except KeyboardInterrupt:
        kept = (
            f"it is in {session}; add --resume to go on" if session is not None else "nothing is kept without --session"
        )
        typer.echo(f"imapce: stopped after {len(exploration.steps)} steps; {kept}.", err=True)
        raise
    written: dict[str, str] = {}
    if output is not None:
        write_table(cluster_table(prepared.carried, exploration), output)
        written["table"] = output
    if report is not None:
        exploration.report(report, labels=prepared.labels, title=f"Exploration of {Path(data).name}")
        written["report"] = report
    if session is not None:
        written["session"] = session
    print_exploration(console, exploration, prepared.words)
    print_written(console, written)
