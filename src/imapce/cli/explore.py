"""`imapce explore`: Algorithm 1 on a file, to a table of clusters, a report and a session that can be resumed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imapce.cli.messages import in_own_words, named, note, warnings_in_one_line
from imapce.cli.options import DataOptions, Details, OnlyResult, Output, Report, ShowOptions, ViewOptions
from imapce.errors import InvalidValueError

if TYPE_CHECKING:
    from rich.console import Console

    from imapce.cli.request import Prepared
    from imapce.exploration.session import Exploration


def explore(
    asked: DataOptions,
    *,
    output: Output = None,
    only_result: OnlyResult = False,
    report: Report = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="FILE", help="Session, saved after every step.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the session instead of starting anew.")] = False,
    min_cluster_size: Annotated[
        int | None,
        typer.Option("--min-cluster-size", min=1, help="Least rows of a cluster; default 1 %, at most 30."),
    ] = None,
    max_clusters: Annotated[
        int, typer.Option("--max-clusters", min=1, help="Most clusters of one view, for dpgmm.")
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
            metavar="auto|joint|dpgmm",
            help="Clusters once in all directions (joint), or view by view; auto is joint, or dpgmm with a background.",
        ),
    ] = "auto",
    refine: Annotated[
        bool,
        typer.Option("--refine/--no-refine", help="Carry clusters found view by view into all directions."),
    ] = True,
    granularity: Annotated[
        str,
        typer.Option(
            "--granularity", metavar="coarser|auto|finer", help="Fewer or more clusters than are found by themselves."
        ),
    ] = "auto",
    clusters: Annotated[
        int | None,
        typer.Option("--clusters", metavar="N", help="So many clusters, also where they are no more than chance."),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Take the best split also where it is no more than chance.")
    ] = False,
    fit: ViewOptions,
    details: Details = False,
    show: ShowOptions,
) -> None:
    """Explore DATA step by step: take the most distinct cluster into the known, look again, until nothing is left.

    With --session the work survives an interruption; --resume goes on from there with the session's own settings.

    Example:

        imapce explore segments.csv --labels class -o clusters.parquet --report report.html --session s.imapce
    """
    from imapce.cli.on_disk import require_table_file, tell_of_passes
    from imapce.cli.request import Request, prepare
    from imapce.cli.results import check_targets, print_written
    from imapce.common.progress import showing
    from imapce.common.words import counted
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
        only_result=only_result,
    )
    if resume and session is None:
        raise InvalidValueError("--resume goes on with a session; name its file with --session FILE.")
    if session is not None and not resume and Path(session).exists():
        raise InvalidValueError(
            f"--session must be a new file, and {session!r} exists; add --resume to go on, or choose another name."
        )
    prepared = prepare(Request.of_options(asked), from_disk=True)
    if prepared.on_disk is not None:
        require_table_file(output, report=report)
        if output is not None and not only_result:
            note("the table of -o has the result alone, since DATA is larger than half of the memory.")
        tell_of_passes(prepared.features, fit.estimator())
    with named("--session"):
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
                granularity=granularity,
                n_clusters=clusters,
                path=session,
            )
    rows = f"of {counted(prepared.features.shape[0], 'row')} explored"
    try:
        with warnings_in_one_line(), named("--session"), showing(quiet=show.quiet, of=rows) as tell:
            rule = "ignore" if anyway else None
            exploration.run(max_steps, significance=significance, structure=rule, progress=tell)
    except KeyboardInterrupt:
        kept = "nothing is kept without --session"
        if session is not None:
            _save_what_there_is(exploration, session)
            kept = f"it is in {session}; add --resume to go on"
        raise KeyboardInterrupt(f"stopped after {counted(len(exploration.steps), 'step')}; {kept}.") from None
    if session is not None:
        _save_what_there_is(exploration, session)
    written: dict[str, str] = {}
    if output is not None:
        _write_clusters(exploration, prepared, output, source=asked.data, only_result=only_result)
        written["table"] = output
    if report is not None:
        with named("--report"), showing(quiet=show.quiet, of="of the page") as tell:
            title = f"Exploration of {asked.name}"
            exploration.report(report, labels=prepared.colours or None, title=title, progress=tell)
        written["report"] = report
    if session is not None:
        written["session"] = session
    console = show.console()
    facts = _facts(exploration, prepared.words)
    _print(console, exploration, facts, details=details)
    print_written(console, written)
    show.result(command="explore", **facts, written=written)


def _save_what_there_is(exploration: Exploration, session: str) -> None:
    """Where nothing was accepted nothing was saved, and the settings are worth going on with all the same."""
    if not Path(session).exists():
        with named("--session"):
            exploration.save(session)


def _write_clusters(
    exploration: Exploration, prepared: Prepared, output: str, *, source: str, only_result: bool
) -> None:
    """Write the columns of DATA and those of `Exploration.to_frame`, or the latter alone.

    An .h5ad file is a copy of `source` with all that was found where scanpy looks for it.
    """
    import numpy as np

    from imapce.cli.request import no_columns
    from imapce.estimators.view_file import beside
    from imapce.tables.encode import column_names
    from imapce.tables.files import write_table
    from imapce.tables.named import is_h5ad

    if is_h5ad(output):
        from imapce.anndata.clusters import write_explored
        from imapce.anndata.results import annotated_copy

        with annotated_copy(source, output) as cells:
            left_out = write_explored(cells, exploration, prepared.features)
        if left_out is not None:
            note(left_out)
        return
    frame = exploration.to_frame()
    names = column_names(frame, "the result")
    along = no_columns() if only_result else prepared.everything
    with named("--output"):
        write_table(beside(along, {name: np.asarray(frame[name]) for name in names}), output)


def _facts(exploration: Exploration, words: list[str]) -> dict[str, Any]:
    """What was known, what was taken and why it ended, as plain values that JSON can hold."""
    from imapce.cli.results import cluster_facts, structure_facts
    from imapce.cli.summary import session_in_sentences

    n_rows, taken = len(exploration.labels_), int((exploration.labels_ >= 0).sum())
    start = int(exploration.known.sum()) - taken
    return {
        "summary": session_in_sentences(
            exploration.found.record, exploration.structure, words, exploration.feature_names
        ),
        "rows": n_rows,
        "known": words,
        "known_rows": start,
        "taken_rows": taken,
        "rows_left": n_rows - taken - start,
        "filled": exploration.filled,
        "structure": structure_facts(exploration.structure),
        "stop_reason": None if exploration.stop_reason is None else in_own_words(exploration.stop_reason),
        "steps": len(exploration.steps),
        "clusters": cluster_facts(exploration.found.record.moves),
    }


def _print(console: Console, exploration: Exploration, facts: dict[str, Any], *, details: bool) -> None:
    """The same in words: the clusters, what sets each apart, and why it stopped."""
    from imapce.cli.results import facts_table, print_clusters
    from imapce.cli.summary import print_sentences
    from imapce.common.words import counted
    from imapce.exploration.knowledge import read_back_in_words
    from imapce.exploration.traits import filled_in_words
    from imapce.exploration.verdict import evidence_in_words, verdict_in_words

    start, clusters = facts["known_rows"], counted(len(facts["clusters"]), "cluster")
    lines = {
        "rows": f"{facts['rows']:,}",
        "known at the start": "; ".join(facts["known"]) or (counted(start, "row") if start else "nothing"),
        "taken": f"{counted(facts['taken_rows'], 'row')} in {clusters}, {counted(facts['steps'], 'step')}",
        "not taken": counted(facts["rows_left"], "row"),
        **({"missing cells": filled} if (filled := filled_in_words(facts["filled"], facts["rows"])) else {}),
    }
    found = exploration.structure
    if verdict := exploration.caveat or (verdict_in_words(found) if found is not None and found.is_taken else ""):
        lines["structure"] = verdict
    lines["end"] = facts["stop_reason"] or "not finished; go on with more steps"
    if details:
        read = [step.read_back for step in exploration.steps if step.read_back is not None]
        lines |= {"tested": told} if (told := evidence_in_words(found)) else {}
        lines |= {"known read back": read_back_in_words(read[0], exploration.known_names)} if read else {}
        lines["weights"] = ", ".join(f"{name} {exploration.parameters[name]!r}" for name in ("alpha", "mu"))
    print_sentences(console, facts["summary"])
    console.print(facts_table(lines))
    if facts["clusters"]:
        print_clusters(console, facts["clusters"], n_features=len(exploration.feature_names))
