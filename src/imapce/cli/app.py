"""`imapce app`: the exploration by eye, in a browser."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from imapce.cli.messages import note
from imapce.cli.options import DataOptions
from imapce.errors import InvalidValueError

if TYPE_CHECKING:
    from imapce.app.study import Study


@dataclass(frozen=True, kw_only=True)
class AppOptions(DataOptions):
    """As for other commands, but DATA may be left to the page."""

    data: Annotated[
        str, typer.Argument(metavar="[DATA]", help="Rows, as for explore; without, choose them on the page.")
    ] = ""


def app(
    asked: AppOptions,
    *,
    color: Annotated[str | None, typer.Option("--color", metavar="COLUMN", help="Column of the first colours.")] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="FILE", help="Session to go on with, or to begin; saved after every step."),
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="NAME", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 finds a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Explore DATA by eye in a browser; without DATA, choose it on the page.

    One link is printed, which holds the key to the page. Anywhere but on this machine (--host) IMAPCE_TOKEN must be set
    to a secret of your own.

    Example:

        imapce app segments.csv --labels class --session segments.imapce
    """
    from imapce.app.server import require_place, serve

    token = os.environ.get("IMAPCE_TOKEN")
    require_place(host, token)
    study = None
    if asked.data:
        study = _study(asked, color=color, session=session)
    elif session is not None or color is not None:
        raise InvalidValueError("--session and --color belong to DATA; name its file, or leave them out.")
    serve(study, host=host, port=port, file=session, token=token, tell=_tell, browser=browser)


def _study(asked: AppOptions, *, color: str | None, session: str | None) -> Study:
    from imapce.app.study import Study
    from imapce.cli.messages import in_own_words
    from imapce.cli.request import Request, prepare
    from imapce.common.whole_files import writable_target
    from imapce.estimators.imapce import IMAPCE
    from imapce.exploration.session import Exploration
    from imapce.exploration.traits import filled_in_words
    from imapce.tables.encode import is_table

    if session is not None:
        writable_target(session)
    request = Request.of_options(asked)
    prepared = prepare(request)
    names = prepared.everything.column_names
    if color is not None and color not in names:
        raise InvalidValueError(f"--color must name a column of DATA, got {color!r}: choose among its columns.")
    exploration = Exploration(
        prepared.features,
        prior=prepared.priors,
        estimator=IMAPCE(outliers="keep", missing="mean"),
        random_state=0,
    )
    if filled := filled_in_words(exploration.filled, len(exploration.row_ids)):
        note(f"missing cells: {filled}.")
    if session is not None and Path(session).exists():
        # Other data is refused here, before a page is opened that could not show it.
        Exploration.load(session, prepared.features, autosave=False)
    features = prepared.features
    reading = "".join(f", {key}={value!r}" for key, value in asked.reading.items() if value is not None)
    select = f".select({features.column_names!r})" if is_table(features) else ""
    return Study(
        Path(asked.data).name,
        exploration,
        features=features,
        table=prepared.everything if names else None,
        background=asked.background,
        labels=request.labels,
        color=color,
        script=(f"data = imapce.tables.read_table({asked.data!r}{reading})", f"X = data{select}"),
        notes=[in_own_words(sentence) for sentence in exploration.notes_],
    )


def _tell(link: str) -> None:
    typer.echo(f"imapce app: {link}\nPress Ctrl-C to stop.")
