"""`imapce demo`: the guided tour of `imapce.cli.tour`, to a folder."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    out: Annotated[str, typer.Option(metavar="FOLDER", help="Folder for the figures and the report.")] = "imapce-demo",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the data and the search.")] = 0,
) -> None:
    """Embed example data with and without what is known, and explain the difference in a report.

    Needs no file and no network.

    Example:

        imapce demo --out imapce-demo
    """
    from imapce.cli.tour import run_tour

    run_tour(out, seed)
