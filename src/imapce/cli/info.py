"""`imapce info`: what is in a model or a session, in words or as JSON."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imapce.cli.messages import named
from imapce.cli.options import ShowOptions

if TYPE_CHECKING:
    from imapce.exploration.record import Record


def info(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A model of `embed --save` or a session of `explore --session`.")
    ],
    show: ShowOptions,
) -> None:
    """Tell what is in a model or a session: how it was made, what it found, how to go on.

    Example:

        imapce info view.imapce --json
    """
    from imapce.common.archive import archive_kind

    with named("FILE"):
        if archive_kind(file) == "session":
            _tell_session(file, show)
        else:
            _tell_model(file, show)


def _tell_model(file: str, show: ShowOptions) -> None:
    from imapce.cli.results import facts_table, fit_facts, model_facts, print_model
    from imapce.common.words import listing
    from imapce.estimators.model_file import load_model

    fitted = load_model(file)
    facts = model_facts(fitted)
    columns = "no names, by position" if facts["columns"] is None else listing(facts["columns"], 10)
    console = show.console()
    lines = {
        "format version": str(facts["format_version"]),
        "features": f"{facts['n_features']:,} ({columns})",
        "parameters": _named_values(facts["parameters"]),
    }
    console.print(facts_table(lines | fit_facts(fitted)))
    print_model(console, fitted)
    show.result(command="info", kind="model", **facts)


def _tell_session(file: str, show: ShowOptions) -> None:
    from imapce.cli.results import cluster_facts, facts_table, print_clusters, structure_facts
    from imapce.common.words import counted, listing
    from imapce.exploration.session_file import SESSION_VERSION, read_session
    from imapce.exploration.verdict import caveat, verdict_in_words

    record = read_session(file)
    data, steps = record.data, record.moves.steps
    assert data is not None
    known = _known_words(record)
    clusters = cluster_facts(record.moves)
    taken, start = sum(cluster["rows"] for cluster in clusters), int(record.known_at_start.sum())
    left = data.n_rows - taken - start
    structure = next((step.structure for step in steps if step.structure is not None), None)
    go_on = {
        "command": f"imapce explore DATA --session {shlex.quote(file)} --resume",
        "python": f"Exploration.load({file!r}, X)",
    }
    console = show.console()
    facts = {
        "format version": str(SESSION_VERSION),
        "rows": f"{data.n_rows:,}",
        "features": f"{len(data.columns):,} ({listing(data.columns, 10)})",
        "known at the start": "; ".join(known) or "nothing",
        "taken": f"{counted(taken, 'row')} in {counted(len(clusters), 'cluster')}",
        "steps": f"{len(steps):,}",
        "not taken": counted(left, "row"),
        **({"structure": caveat(structure) or verdict_in_words(structure)} if structure is not None else {}),
        "settings": _named_values(_settings(record)),
        "estimator": _named_values(record.parameters),
        "go on": f"{go_on['command']}, or in Python {go_on['python']}, with the same data",
    }
    console.print(facts_table(facts))
    if clusters:
        print_clusters(console, clusters, n_features=len(data.columns))
    show.result(
        command="info",
        kind="session",
        format_version=SESSION_VERSION,
        rows=data.n_rows,
        columns=list(data.columns),
        known=known,
        known_rows=start,
        taken_rows=taken,
        rows_left=left,
        structure=structure_facts(structure),
        settings=_settings(record),
        parameters=record.parameters,
        steps=len(steps),
        clusters=clusters,
        go_on=go_on,
    )


def _settings(record: Record) -> dict[str, Any]:
    names = (
        "min_cluster_size",
        "max_clusters",
        "random_state",
        "clusterer",
        "refine",
        "granularity",
        "n_clusters",
        "ignores_structure",
    )
    return {name: getattr(record, name) for name in names}


def _known_words(record: Record) -> list[str]:
    """What was known when the session began, one sentence for each kind of it."""
    from imapce.priors.kinds import Subset

    words = [prior.phrase for prior in record.priors]
    if record.known_at_start.any():
        words.append(Subset(record.known_at_start).phrase)
    return words


def _named_values(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
