"""A command looks at the columns of its table once and encodes it once, whatever it writes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from commands import run
from helpers import grouped
from imapce import IMAPCE, Exploration
from imapce.tables import encode, usable_columns, write_table
from imapce.tables.encode import Table, is_table, native_table

DATA = grouped(200)
TABLE = pa.table(
    {
        **{f"c{i}": column for i, column in enumerate(DATA.X.T)},
        "batch": DATA.batch.astype(str),
        "kind": [f"kind {one}" for one in DATA.kind],
        "key": [f"row {place}" for place in range(200)],
    }
)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done with tables: "learned" where columns were looked at, "encoded" where a matrix was made."""
    # The package has a function of the module's name.
    module = sys.modules["imapce.tables.encode"]
    counted: list[str] = []

    def counting(word: str, function: Any) -> Any:
        def counted_call(*args: Any, **options: Any) -> Any:
            counted.append(word)
            return function(*args, **options)

        return counted_call

    for word, name in (("learned", "summarize"), ("encoded", "fill_matrix")):
        monkeypatch.setattr(module, name, counting(word, getattr(module, name)))
    return counted


COMMANDS: dict[str, tuple[str, ...]] = {
    "embed": ("--labels", "kind", "--known", "batch", "--starts", "3", "-o", "view.csv", "--report", "view.html"),
    "embed, labels": ("--known", "kind", "--starts", "3", "--plot", "view.png", "--save", "view.imapce"),
    "embed, gaps": ("--missing", "mean", "--known-rows", "kind=kind 1", "--starts", "3", "--report", "view.html"),
    "explore": ("--labels", "kind", "--max-steps", "1", "--starts", "3", "-o", "c.csv", "--report", "report.html"),
    "compare": ("--labels", "kind", "--known", "batch", "--methods", "IMAPCE,PCA,cPCA", "-o", "comparison"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_learns_and_encodes_its_table_once(
    command: str, done: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = TABLE
    if command == "embed, gaps":
        rows = TABLE.set_column(0, "c0", pa.array([None, *TABLE["c0"].to_pylist()[1:]]))
    write_table(rows, "rows.parquet")
    result = run(command.partition(",")[0], "rows.parquet", *COMMANDS[command])
    assert result.exit_code == 0, result.stderr
    assert "'key' is an id, 200 distinct values in 200 rows" in result.stderr
    assert done == ["learned", "encoded"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_learned_table_gives_what_the_table_gives(make: Any, done: list[str]) -> None:
    table = make(TABLE.drop_columns(["key"]).to_pydict())
    learned = Table.learn(make(TABLE.to_pydict())).select(usable_columns(table)[0])
    assert is_table(learned)
    assert type(native_table(learned)) is type(table)
    assert learned.shape == table.shape
    done.clear()
    model, expected = (IMAPCE(alpha=1.0, mu=10.0, n_starts=2, random_state=0).fit(X) for X in (learned, table))
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.transform(learned), expected.transform(table))
    assert list(model.feature_names_in_) == list(expected.feature_names_in_)
    # The fit of the learned one encodes, that of the other learns and encodes, and so does its transform encode.
    assert done == ["encoded", "learned", "encoded", "encoded"]
    # Another encoding than its own is followed, and not mistaken for it.
    half = encode(table[: len(table) // 2] if make is not pa.table else table.slice(0, 100)).encoding
    assert encode(learned, encoding=half).matrix is not encode(learned).matrix


def test_an_exploration_of_a_learned_table_describes_its_own_columns(tmp_path: Path) -> None:
    table = TABLE.drop_columns(["key"])
    sessions = [Exploration(X, random_state=0).run(max_steps=1) for X in (Table.learn(table), table)]
    first, second = (session.to_frame() for session in sessions)
    assert first.to_pandas().equals(second.to_pandas())
    reports = [tmp_path / "a.html", tmp_path / "b.html"]
    for session, path in zip(sessions, reports, strict=True):
        session.report(path)
    assert reports[0].stat().st_size == pytest.approx(reports[1].stat().st_size, rel=0.01)
