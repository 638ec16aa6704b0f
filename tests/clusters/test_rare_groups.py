"""Rare groups of many rows: too few for the sample, they become clusters of their own; single far rows are outliers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from dask_clusters import cluster_of, needs_dask
from imapce import Exploration, scan


def table(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """20,000 rows in two groups, a group of 40 rows 8 standard deviations away in each column, and 5 single rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20_000, 20))
    kind = np.arange(20_000) % 2
    X[kind == 1, :5] += 4
    kind[:40] = 2
    X[:40] = rng.standard_normal((40, 20)) + 8
    kind[40:45] = 3
    X[40:45] = 60 * np.eye(5, 20, k=5) - 60 * np.eye(5, 20, k=10)
    return X, kind


@pytest.mark.parametrize("min_cluster_size", [10, None])
def test_a_rare_group_becomes_a_cluster_and_single_far_rows_are_outliers(min_cluster_size: int | None) -> None:
    X, kind = table()
    options = {} if min_cluster_size is None else {"min_cluster_size": min_cluster_size}
    exploration = Exploration(X, random_state=0, **options).run()
    labels = exploration.labels_
    assert labels[kind == 3].tolist() == [-1] * 5
    assert np.mean(labels[kind < 2] == -1) < 0.001
    (label,) = set(labels[kind == 2])
    assert label >= 0
    assert np.flatnonzero(labels == label).tolist() == list(range(40))
    assert len(exploration.clusters_) == 3
    assert exploration.structure is not None
    assert exploration.structure.reason.startswith("2 separate groups (p = ")
    assert ", and 1 rare group" in exploration.structure.reason


def test_a_rare_group_smaller_than_the_minimum_is_no_cluster() -> None:
    X, kind = table()
    labels = Exploration(X, min_cluster_size=60, random_state=0).run().labels_
    assert set(labels[kind == 2]) == {-1}


def test_a_file_has_the_clusters_of_the_table_in_memory(tmp_path: Path) -> None:
    X, _ = table()
    columns = {f"c{j}": X[:, j] for j in range(X.shape[1])}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=3_000)
    labels = Exploration(scan(tmp_path / "rows.parquet"), random_state=0).run().labels_
    np.testing.assert_array_equal(labels, Exploration(X, random_state=0).run().labels_)


@needs_dask
def test_processes_have_the_clusters_of_the_table_in_memory() -> None:
    import dask.array as da

    X, _ = table()
    with cluster_of(2, processes=True) as client, client.as_current():
        labels = Exploration(da.from_array(X, chunks=(3_000, X.shape[1])), random_state=0).run().labels_
    np.testing.assert_array_equal(labels, Exploration(X, random_state=0).run().labels_)
