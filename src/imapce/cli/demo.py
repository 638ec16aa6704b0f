"""`imapce demo`: the guided tour of `imapce.cli.tour`, to a folder."""

from __future__ import annotations

from typing import Annotated

import typer

from imapce.cli.options import ShowOptions


def demo(
    out: Annotated[str, typer.Option(metavar="FOLDER", help="Folder for the figures and the report.")] = "imapce-demo",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the data and the search.")] = 0,
    *,
    show: ShowOptions,
) -> None:
    """Embed example data with and without what is known, and explain the difference in a report.

    Needs no file and no network.

    Example:

        imapce demo --out imapce-demo
    """
    from imapce.cli.messages import named
    from imapce.cli.results import print_written
    from imapce.cli.tour import facts, run_tour, score_table
    from imapce.common.progress import showing

    with showing(quiet=show.quiet, of="of the tour") as tell, named("--out"):
        outcomes, files = run_tour(out, seed, tell)
    written = {"report": str(files[-1]), f"{len(files) - 1} figures": out}
    console = show.console()
    console.print(score_table(outcomes))
    print_written(console, written)
    show.result(command="demo", views=facts(outcomes), written=written)
