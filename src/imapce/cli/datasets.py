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
            "name": data.name,
            "call": f"imapce.datasets.{data.call}",
            "rows": data.rows,
            "columns": data.columns,
            "source": data.source,
            "licence": data.licence,
            "files": [paths[0] for paths in data.files],
            "on_disk": data.is_on_disk(),
        }
        for data in CATALOGUE
    ]
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("rows x columns", justify="right", no_wrap=True)
    table.add_column("on disk", no_wrap=True)
    table.add_column("licence")
    table.add_column("source", overflow="fold")
    for entry in entries:
        here = "not needed" if not entry["files"] else "yes" if entry["on_disk"] else "no"
        table.add_row(entry["name"], f"{entry['rows']:,} x {entry['columns']}", here, entry["licence"], entry["source"])
    show.console().print(table)
    show.result(command="datasets", datasets=entries)
