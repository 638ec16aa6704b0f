"""`imapce datasets`: the catalogue of data sets, and which of their files are on disk."""

from __future__ import annotations

from typing import Any

from imapce.cli.options import ShowOptions


def datasets(show: ShowOptions) -> None:
    """List the data sets of imapce.datasets and whether their files are on disk; nothing is downloaded.

    Example:

        imapce datasets --json
    """
    from imapce.datasets.catalogue import CATALOGUE

    entries: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "call": f"imapce.datasets.{entry.call}",
            "rows": entry.rows,
            "columns": entry.columns,
            "source": entry.source,
            "licence": entry.licence,
            "files": [paths[0] for paths in entry.files],
            "on_disk": entry.is_on_disk(),
        }
        for entry in CATALOGUE
    ]
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("rows x columns", justify="right", no_wrap=True)
    table.add_column("on disk", no_wrap=True)
    table.add_column("licence")
    table.add_column("source", overflow="fold")
    for told in entries:
        here = "not needed" if not told["files"] else "yes" if told["on_disk"] else "no"
        table.add_row(told["name"], f"{told['rows']:,} x {told['columns']}", here, told["licence"], told["source"])
    show.console().print(table)
    show.result(command="datasets", datasets=entries)
