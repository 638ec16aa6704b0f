"""`imapce info`: what is in a model, a session or a table, in words or as JSON."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imapce.cli.messages import named
from imapce.cli.options import Details, ShowOptions

if TYPE_CHECKING:
    from imapce.exploration.record import Record


def info(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A model of `embed --save`, a session of `explore --session`, or a table to look at."
        ),
    ],
    details: Details = False,
    *,
    show: ShowOptions,
) -> None:
    """Tell what is in a model or a session: how it was made, what it found, how to go on; or how a table is read.

    Example:

        imapce info view.imapce --json
    """
    from imapce.common.archive import archive_kind

    with named("FILE"):
        kind = archive_kind(file)
        if kind is None and is_table_file(file):
            _tell_table(file, show)
        elif kind == "session":
            _tell_session(file, show, details=details)
        else:
            _tell_model(file, show, details=details)


def is_table_file(file: str) -> bool:
    """Whether a file is named like a table, or names several.

    >>> is_table_file("rows.csv.gz"), is_table_file("view.imapce")
    (True, False)
    """
    from imapce.tables.files import READ_SUFFIXES

    return file.lower().endswith(READ_SUFFIXES)


def _tell_table(file: str, show: ShowOptions) -> None:
    """How a table is read: its kinds of columns, what is left out of the features, and how to look at it."""
    from imapce.cli.messages import in_own_words
    from imapce.cli.request import read_rows
    from imapce.cli.results import facts_table
    from imapce.common.words import listing
    from imapce.tables.encode import is_table
    from imapce.tables.named import NamedMatrix
    from imapce.tables.reading import read

    data = read_rows(file, {}, "FILE")
    kinds: dict[str, list[str]] = {}
    notes: list[str] = []
    if is_table(data):
        table = read(data)
        names, notes = list(data.column_names), [in_own_words(note) for note in table.notes]
        for name, kind in zip(table.summary.names, table.summary.kinds, strict=True):
            kinds.setdefault({"number": "numbers", "boolean": "true or false"}.get(str(kind), "categories"), []).append(
                name
            )
        left_out = dict(table.left_out)
    else:
        names = list(data.names) if isinstance(data, NamedMatrix) else []
        left_out = {}
    rows, columns = data.shape
    view = f"imapce embed {shlex.quote(file)} --plot view.png"
    clusters = f"imapce explore {shlex.quote(file)} --report report.html"
    by_eye = f"imapce app {shlex.quote(file)}"
    console = show.console()
    facts = {"a table": f"{rows:,} rows, {columns:,} columns"}
    facts |= {kind: f"{len(some):,} ({listing(some, 10)})" for kind, some in kinds.items()}
    if left_out:
        facts["left out"] = listing((f"{name} {reason}" for name, reason in left_out.items()), 20)
    facts |= {"to see a view": view, "to see clusters": clusters, "to look by eye": by_eye}
    console.print(facts_table(facts))
    for note in notes:
        console.print(note, markup=False, highlight=False)
    show.result(
        command="info",
        kind="table",
        rows=rows,
        columns=names,
        kinds=kinds,
        left_out=left_out,
        reading=notes,
        go_on={"view": view, "clusters": clusters, "by eye": by_eye},
    )


def _tell_model(file: str, show: ShowOptions, *, details: bool) -> None:
    from imapce.cli.results import facts_table, fit_facts, model_facts, print_model, told_facts
    from imapce.cli.summary import print_sentences, view_in_sentences
    from imapce.common.words import listing
    from imapce.estimators.model_file import load_model

    fitted = load_model(file)
    facts = model_facts(fitted)
    names, width = facts["columns"], facts["n_features"]
    # A category is one column of the table and a feature for each of its levels.
    of_table = f"of {len(names):,} columns: " if names is not None and len(names) != width else ""
    columns = "no names, by position" if names is None else f"{of_table}{listing(names, 10)}"
    console = show.console()
    sentences = view_in_sentences(fitted)
    lines = {"features": f"{width:,} ({columns})"}
    if details:
        version = {"format version": str(facts["format_version"])}
        lines = {**version, **lines, "parameters": _named_values(facts["parameters"])}
    print_sentences(console, sentences)
    console.print(facts_table(lines | told_facts(fit_facts(fitted), details=details)))
    print_model(console, fitted, details=details)
    show.result(command="info", kind="model", summary=sentences, **facts)


def _tell_session(file: str, show: ShowOptions, *, details: bool) -> None:
    from imapce.cli.results import cluster_facts, facts_table, print_clusters, structure_facts
    from imapce.cli.summary import print_sentences, session_in_sentences
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
        **({"format version": str(SESSION_VERSION)} if details else {}),
        "rows": f"{data.n_rows:,}",
        "features": f"{len(data.columns):,} ({listing(data.columns, 10)})",
        "known at the start": "; ".join(known) or "nothing",
        "taken": f"{counted(taken, 'row')} in {counted(len(clusters), 'cluster')}",
        "steps": f"{len(steps):,}",
        "not taken": counted(left, "row"),
        **({"structure": caveat(structure) or verdict_in_words(structure)} if structure is not None else {}),
        **({"settings": _named_values(_settings(record))} if details else {}),
        **({"estimator": _named_values(record.parameters)} if details else {}),
        "go on": f"{go_on['command']}, or in Python {go_on['python']}, with the same data",
    }
    sentences = session_in_sentences(record, structure, known, data.columns)
    print_sentences(console, sentences)
    console.print(facts_table(facts))
    if clusters:
        print_clusters(console, clusters, n_features=len(data.columns))
    show.result(
        command="info",
        kind="session",
        summary=sentences,
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
