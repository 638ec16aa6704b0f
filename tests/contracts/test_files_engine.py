"""Files hold to the contract of every engine, and a fit on them is the fit on the same rows in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.test_engines import D, N, check_reductions, sample
from helpers import random_stack
from imapce import IMAPCE, Attributes, Exploration, Labels, Samples, Subset, datasets, scan
from imapce.rows import files as files_engine
from imapce.rows.files import FileRows
from imapce.rows.moment_tensor import MomentTensorRows
from imapce.rows.open import open_rows
from imapce.tables import encode, read_table, write_table
from imapce.tables import scan as scans
from imapce.tables.encode import learn_scan
from same_models import assert_same_fit


def in_parts(table: pa.Table, folder: Path) -> str:
    """Three files of one table, of which the first has four row groups."""
    cuts = [0, len(table) // 2, len(table) // 2 + 7, len(table)]
    for number in range(3):
        part = table.slice(cuts[number], cuts[number + 1] - cuts[number])
        pq.write_table(part, folder / f"part-{number}.parquet", row_group_size=max(1, len(table) // 8))
    return str(folder / "part-*.parquet")


def in_one(suffix: str) -> Callable[[pa.Table, Path], str]:
    def write(table: pa.Table, folder: Path) -> str:
        write_table(table, folder / f"rows{suffix}")
        return str(folder / f"rows{suffix}")

    return write


KINDS: dict[str, Callable[[pa.Table, Path], str]] = {
    "parquet": in_one(".parquet"),
    "several parquet": in_parts,
    "feather": in_one(".feather"),
    "csv": in_one(".csv"),
}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 96 rows and blocks of 256, so that hundreds of rows are many of both, and samples stay on disk."""
    monkeypatch.setattr(scans, "MOST_BATCH_ROWS", 96)
    monkeypatch.setattr(scans, "FEWEST_BATCH_ROWS", 16)
    monkeypatch.setattr(sys.modules["imapce.tables.encode"], "BLOCK_BYTES", 1)
    monkeypatch.setattr(scans, "CSV_BLOCK_BYTES", 20_000)


def numbers(X: np.ndarray) -> pa.Table:
    return pa.table({f"c{place}": column for place, column in enumerate(X.T)})


def mixed(n: int, *, gaps: bool) -> pa.Table:
    rng = np.random.default_rng(5)
    colour = rng.choice(["red", "green", "blue"], n)
    size = rng.normal(size=n) + 3 * (colour == "red")
    # Eighths, which text holds without rounding.
    weight = (rng.integers(-20, 20, n) / 8).astype(np.float32)
    table = {
        "size": pa.array(size, mask=rng.random(n) < 0.1 if gaps else None),
        "colour": pa.array(colour, mask=rng.random(n) < 0.1 if gaps else None),
        "on": pa.array(rng.random(n) < 0.4, mask=rng.random(n) < 0.1 if gaps else None),
        "weight": pa.array(weight),
        "count": pa.array(rng.integers(0, 9, n), mask=rng.random(n) < 0.1 if gaps else None),
    }
    return pa.table(table)


def matrix_of(table: pa.Table, missing: str = "error") -> np.ndarray:
    return encode(table, missing=missing).matrix.astype(np.float64)


@pytest.mark.parametrize("engine", ["files", "moment_tensor"])
@pytest.mark.parametrize("kind", KINDS)
def test_reductions_equal_numpy(kind: str, engine: str, tmp_path: Path) -> None:
    X = sample()
    rows = open_rows(learn_scan(scan(KINDS[kind](numbers(X), tmp_path)))[1], engine=engine)
    check_reductions(rows, X)
    columns = np.array([1, 4])
    read = np.concatenate([block.copy() for block in rows.blocks(columns)])
    assert np.allclose(read, (X - rows.origin)[:, columns], rtol=1e-13, atol=1e-13)
    W, centre = random_stack(3, D, 2), np.full(D, 0.3)
    u = np.einsum("id,rdk->rik", X - rows.origin - centre, W)
    assert np.allclose(rows.fourth_powers(W, centre), np.sum(np.sum(u**2, axis=2) ** 2, axis=1), rtol=1e-10)


@pytest.mark.parametrize("gathered", ["in memory", "on disk"])
@pytest.mark.parametrize("kind", KINDS)
def test_subsets_and_rows_left_out_equal_numpy(
    kind: str, gathered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if gathered == "on disk":
        monkeypatch.setattr(files_engine, "GATHERED_BYTES", 0)
    X = sample() + 1e4 * np.arange(D)
    mask = np.random.default_rng(1).random(N) < 0.4
    rows = open_rows(learn_scan(scan(KINDS[kind](numbers(X), tmp_path)))[1], engine="files")
    assert rows.origin.any()
    part, inner = rows.subset(mask), np.arange(mask.sum()) % 3 > 0
    assert isinstance(part, FileRows) == (gathered == "on disk")
    assert np.array_equal(part.origin, rows.origin)
    check_reductions(part, X[mask])
    check_reductions(part.subset(inner), X[mask][inner])
    left = rows.without(mask)
    check_reductions(left, X[~mask])
    assert np.allclose(left.origin, X[~mask].mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("missing", ["error", "mean"])
@pytest.mark.parametrize("kind", KINDS)
def test_categories_truth_values_and_gaps_are_encoded_as_in_memory(kind: str, missing: Any, tmp_path: Path) -> None:
    table = mixed(400, gaps=missing == "mean")
    encoding, stream = learn_scan(scan(KINDS[kind](table, tmp_path)), missing=missing)
    assert encoding.feature_names == ("size", "colour=blue", "colour=green", "colour=red", "on", "weight", "count")
    expected = matrix_of(table, missing)
    check_reductions(open_rows(stream, engine="files"), expected)


def same_fit(model: IMAPCE, table: pa.Table, on_disk: Any, *, prior: Any, prior_on_disk: Any = None) -> None:
    in_memory = IMAPCE(**{**model.get_params(), "engine": "dense"}).fit(table, prior=prior)
    assert_same_fit(model.fit(on_disk, prior=prior_on_disk or prior), in_memory)
    labels = prior.y if isinstance(prior, Labels) else None
    view = in_memory.transform(table, labels=labels)
    np.testing.assert_allclose(model.transform(on_disk, labels=labels), view, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_every_attribute_of_a_default_fit_is_that_of_the_rows_in_memory(kind: str, tmp_path: Path) -> None:
    data = datasets.make_synthetic(600)
    table = numbers(data.X)
    model = IMAPCE(random_state=0, engine="files")
    same_fit(model, table, scan(KINDS[kind](table, tmp_path)), prior=Attributes(["c0", "c1", "c2", "c3"]))


@pytest.mark.parametrize("kind", ["several parquet", "csv"])
def test_mixed_columns_with_gaps_fit_as_in_memory(kind: str, tmp_path: Path) -> None:
    table = mixed(500, gaps=True)
    model = IMAPCE(alpha=1.0, mu=5.0, missing="mean", random_state=0, engine="files")
    same_fit(model, table, scan(KINDS[kind](table, tmp_path)), prior=Attributes(["colour"]))


def test_a_background_on_disk_known_rows_and_labels_fit_as_in_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = numbers(rng.normal(size=(500, 5)) + 5 * np.eye(3, 5)[np.arange(500) % 3])
    behind = numbers(rng.normal(size=(200, 5)))
    write_table(behind, tmp_path / "behind.feather")
    on_disk = scan(KINDS["parquet"](table, tmp_path))
    model = IMAPCE(random_state=0, engine="files")
    same_fit(model, table, on_disk, prior=Samples(behind), prior_on_disk=Samples(scan(tmp_path / "behind.feather")))
    same_fit(model, table, on_disk, prior=Subset(np.arange(500) % 3 == 0))
    same_fit(model, table, on_disk, prior=Labels(np.arange(500) % 3))


def test_an_exploration_of_digits_finds_the_same_clusters(tmp_path: Path) -> None:
    # Every second column and four steps: a step passes over the files some hundred times.
    table = numbers(datasets.load_digits().X[:, ::2])
    on_disk = Exploration(scan(in_parts(table, tmp_path)), random_state=0).run(max_steps=4)
    in_memory = Exploration(table, random_state=0).run(max_steps=4)
    np.testing.assert_array_equal(on_disk.labels_, in_memory.labels_)
    assert len(on_disk.steps) == len(in_memory.steps) > 3


def test_auto_folds_files_of_few_columns_and_passes_over_the_others(tmp_path: Path) -> None:
    few, many = numbers(sample()), numbers(np.random.default_rng(0).normal(size=(200, 60)))
    write_table(few, tmp_path / "few.parquet")
    write_table(many, tmp_path / "many.parquet")
    assert isinstance(open_rows(learn_scan(scan(tmp_path / "few.parquet"))[1]), MomentTensorRows)
    assert type(open_rows(learn_scan(scan(tmp_path / "many.parquet"))[1])) is FileRows


def test_the_same_files_give_the_same_bytes_whatever_thread_is_faster(tmp_path: Path) -> None:
    path = KINDS["parquet"](numbers(datasets.make_synthetic(600).X), tmp_path)
    models = [IMAPCE(alpha=0.0, mu=50.0, engine="files", random_state=0).fit(scan(path)) for _ in range(3)]
    assert len({model.components_.tobytes() for model in models}) == 1


def test_a_scan_reads_what_read_table_reads(tmp_path: Path) -> None:
    table = mixed(300, gaps=True)
    for kind, write in KINDS.items():
        folder = tmp_path / kind
        folder.mkdir()
        scanned_rows = pa.Table.from_batches(scan(write(table, folder)).batches())
        read = read_table(write(table, folder)) if kind != "several parquet" else table
        assert scanned_rows.to_pydict() == read.to_pydict(), kind
