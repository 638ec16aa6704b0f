"""The command line: each command reads files, calls the library and writes files; it computes nothing itself.

imapce embed penguins.csv --known-rows species=Adelie --labels island -o view.parquet --plot view.png
imapce transform view.imapce new.csv -o new_view.parquet

One file per command, each light to import: what a command needs is imported when it runs, or `imapce --help` would
take seconds.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from imapce.cli import app as app_command
from imapce.cli import compare, datasets, demo, embed, explore, info, transform
from imapce.cli.messages import INTERRUPTED, in_one_sentence
from imapce.cli.options import with_option_groups

app = typer.Typer(
    help="See what else is in your data: views that drop what you know and pull apart the clusters of the rest.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (
    embed.embed,
    explore.explore,
    app_command.app,
    compare.compare,
    transform.transform,
    info.info,
    datasets.datasets,
    demo.demo,
):
    app.command()(in_one_sentence(with_option_groups(command)))


def main() -> None:
    """The `imapce` command."""
    try:
        # Named, or `python -m imapce` would call itself by another name in its help.
        app(prog_name="imapce")
    except KeyboardInterrupt:
        # Before a command begins, while modules are imported.
        sys.exit(INTERRUPTED)


def _version(wanted: bool) -> None:
    if wanted:
        from imapce import __version__

        typer.echo(f"imapce {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
