"""Small files of rows, and a model made of them, for the tests of every command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commands import FEATURES, QUICK, succeed
from imapce import datasets
from imapce.tables.files import write_table


@pytest.fixture(scope="module")
def columns() -> dict[str, Any]:
    data = datasets.make_synthetic(120)
    return {
        **dict(zip(FEATURES, data.X.T, strict=True)),
        "batch": [("old", "new")[code] for code in data.labels["batch"]],
        "celltype": [("a", "b", "c")[code] for code in data.labels["celltype"]],
        "number": data.labels["combined_cluster"],
    }


@pytest.fixture
def rows(tmp_path: Path, columns: dict[str, Any]) -> Path:
    """A CSV file in an otherwise empty folder."""
    path = tmp_path / "rows.csv"
    write_table(columns, path)
    return path


@pytest.fixture
def plain(tmp_path: Path, columns: dict[str, Any]) -> Path:
    """The features alone."""
    path = tmp_path / "plain.csv"
    write_table({name: columns[name] for name in FEATURES}, path)
    return path


@pytest.fixture
def model(rows: Path, tmp_path: Path) -> Path:
    path = tmp_path / "view.imapce"
    succeed(
        *("embed", rows, "--known", "d_0,d_1", "--labels", "celltype", "--drop", "batch,number", *QUICK),
        *("--save", path, "-o", tmp_path / "first.parquet"),
    )
    return path
