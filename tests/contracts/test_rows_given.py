"""Rows with labels beside them hold to the contract of every engine; rows less an effect equal X − LB written out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import imapce
from contracts.test_engines import D, N, assert_close, check_reductions, sample
from dask_clusters import needs_dask
from helpers import random_frame, random_stack
from imapce.rows import dense, moment_tensor
from imapce.rows import sparse as sparse_engine
from imapce.rows.base import Rows
from imapce.rows.dense import DenseRows
from imapce.rows.given import RowsBeside, RowsGiven
from imapce.rows.moment_tensor import MomentTensorRows
from imapce.rows.open import open_rows
from imapce.rows.standardized import StandardizedRows
from imapce.tables.reader import Reader

X = sample()
RNG = np.random.default_rng(7)
LABELS = np.column_stack([np.eye(3)[RNG.integers(0, 3, N)] - 1 / 3, RNG.normal(size=N)])
LABELS[::9] = 0.0
Q = LABELS.shape[1]


def on_disk(folder: Path) -> Rows:
    pd.DataFrame(X, columns=[f"x{i}" for i in range(D)]).to_parquet(folder / "rows.parquet", row_group_size=90)
    return open_rows(Reader.learn(imapce.scan(folder / "rows.parquet"))[1], engine="files")


def on_cluster(folder: Path) -> Rows:
    import dask.array as da

    return open_rows(Reader.learn(da.from_array(X, chunks=(150, D)))[1], engine="dask")


OPENED: dict[str, Callable[[Path], Rows]] = {
    "dense": lambda _: open_rows(X, engine="dense"),
    "dense, far from zero": lambda _: DenseRows(X, origin=X.mean(axis=0) + 1.0),
    "sparse": lambda _: open_rows(sparse.csr_array(X), engine="sparse"),
    "moment_tensor": lambda _: open_rows(X, engine="moment_tensor"),
    "files": on_disk,
    "dask": on_cluster,
}
ENGINES = [
    *[pytest.param(name, id=name) for name in OPENED if name != "dask"],
    pytest.param("dask", id="dask", marks=needs_dask),
]


@pytest.fixture(autouse=True)
def _workers(request: pytest.FixtureRequest) -> Any:
    """Dask computes on a cluster of processes, to which functions and records must travel."""
    if "dask" not in request.node.name.partition("[")[2]:
        yield
        return
    with request.getfixturevalue("dask_cluster").as_current():
        yield


@pytest.fixture(params=["one block", "several blocks"])
def block_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "several blocks":
        for module in (dense, sparse_engine, moment_tensor):
            monkeypatch.setattr(module, "BLOCK_BYTES", 1)


def joined(engine: str, folder: Path) -> RowsBeside:
    return RowsBeside(OPENED[engine](folder), LABELS)


# --- beside -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("block_size")
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_with_labels_beside_them_are_rows_of_the_joined_array(engine: str, tmp_path: Path) -> None:
    rows, both = joined(engine, tmp_path), np.column_stack([X, LABELS])
    check_reductions(rows, both)
    plain = both - rows.origin
    W, centre = random_stack(3, D + Q, 2, seed=4), RNG.normal(size=D + Q)
    s = np.sum(np.einsum("id,rdk->rik", plain - centre, W) ** 2, axis=2)
    assert_close(rows.fourth_powers(W, centre), np.sum(s**2, axis=1))
    values = RNG.normal(size=(N, 2))
    assert_close(rows.cross(values), plain.T @ values)
    columns = np.array([1, D, D + Q - 1])
    some = np.concatenate([block.copy() for block in rows.blocks(columns)])
    np.testing.assert_allclose(some, plain[:, columns], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_some_of_them_are_rows_of_the_joined_array_too(engine: str, tmp_path: Path) -> None:
    rows, both = joined(engine, tmp_path), np.column_stack([X, LABELS])
    mask = RNG.random(N) < 0.6
    check_reductions(rows.subset(mask), both[mask])
    check_reductions(rows.subset(mask).subset(np.arange(mask.sum()) % 2 == 0), both[mask][::2])
    check_reductions(rows.without(mask), both[~mask])
    W, offset = random_frame(D + Q, 2), np.array([0.3, -2.0])
    expected = (both - rows.origin) @ W - offset
    np.testing.assert_allclose(rows.project_some(W, offset, mask), expected[mask], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(rows.project_exactly(W, offset), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
def test_folded_with_their_labels_they_are_the_same(engine: str, tmp_path: Path) -> None:
    check_reductions(MomentTensorRows(joined(engine, tmp_path)), np.column_stack([X, LABELS]))


def test_values_beside_go_with_the_blocks() -> None:
    rows, values = joined("dense", Path()), RNG.normal(size=(N, 1))
    (total,) = rows.add_blocks(lambda block, beside: (block.T @ beside,), beside=values)
    assert_close(total, np.column_stack([X, LABELS]).T @ values)


# --- given ------------------------------------------------------------------------------------------------------------

PLACES = {
    "labels": D + np.arange(Q),
    "columns": np.array([1, 4]),
    "both": np.append([2], D + np.arange(Q)),
    "both, in no order": np.array([D + 3, 5, D]),
    "nothing": np.zeros(0, dtype=np.intp),
}


def effect_on(places: np.ndarray) -> np.ndarray:
    """Any numbers will do: what is taken need not be what a regression finds."""
    return np.random.default_rng(len(places)).normal(size=(len(places), D))


def written_out(both: np.ndarray, places: np.ndarray, effect: np.ndarray, *, standardize: bool = True) -> np.ndarray:
    """(x − Bᵀl) in units of x, known columns as zeros."""
    centred = both - both.mean(axis=0)
    left = centred[:, :D] - centred[:, places] @ effect
    left[:, places[places < D]] = 0.0
    return left / both[:, :D].std(axis=0) if standardize else left


@pytest.mark.usefixtures("block_size")
@pytest.mark.parametrize("known", PLACES)
@pytest.mark.parametrize("engine", ENGINES)
def test_rows_less_an_effect_equal_numpy(engine: str, known: str, tmp_path: Path) -> None:
    places, effect = PLACES[known], effect_on(PLACES[known])
    both = np.column_stack([X, LABELS])
    check_given(RowsGiven(StandardizedRows(joined(engine, tmp_path)), places, effect, n_features=D), both, known)


@pytest.mark.parametrize("known", PLACES)
def test_rows_that_are_only_centred_equal_numpy(known: str) -> None:
    beside = StandardizedRows(joined("dense", Path()), standardize=False)
    rows = RowsGiven(beside, PLACES[known], effect_on(PLACES[known]), n_features=D)
    check_given(rows, np.column_stack([X, LABELS]), known, standardize=False)


def check_given(rows: RowsGiven, both: np.ndarray, known: str, *, standardize: bool = True) -> None:
    places, effect = PLACES[known], effect_on(PLACES[known])
    Z = written_out(both, places, effect, standardize=standardize)
    assert (rows.n_rows, rows.n_features) == Z.shape
    assert rows.informative.tolist() == [column not in places for column in range(D)]
    assert_close(rows.variance, Z.var(axis=0))
    V = random_frame(D, 2, seed=3)
    assert_close(rows.project(V), Z @ V)
    mask = np.random.default_rng(1).random(len(Z)) < 0.3
    assert_close(rows.project(V, mask), Z[mask] @ V)
    assert_close(rows.sampled(mask), Z[mask])
    assert_close(np.concatenate([block.copy() for block in rows.blocks()]), Z)
    assert_close(rows.second_moment @ V, Z.T @ (Z @ V))
    assert rows.second_moment.trace == pytest.approx(float(np.sum(Z**2)), rel=1e-10)
    W = random_stack(3, D, 2, seed=5)
    U = Z @ W
    s = np.sum(U**2, axis=2)
    assert_close(rows.quartic(W), Z.T @ (s[:, :, None] * U))
    assert_close(rows.fourth_powers(W), np.sum(s**2, axis=1))
    values = np.random.default_rng(2).normal(size=(len(Z), 3))
    assert_close(rows.cross(values), Z.T @ values)
    known_columns = both[:, places] - both[:, places].mean(axis=0)
    scale = both[:, places].std(axis=0) if standardize else 1.0
    np.testing.assert_allclose(rows.known(), known_columns / scale, rtol=0, atol=1e-9)
    assert_close(rows.unfolded.project(V), Z @ V)
    before = written_out(both, places, np.zeros_like(effect), standardize=standardize)
    assert_close(rows.before.project(V), before @ V)
    assert_close(rows.less(2 * effect).project(V), (2 * Z - before) @ V)


@pytest.mark.parametrize("engine", ["dense", "sparse"])
def test_a_second_moment_that_is_not_formed_equals_the_formed_one(
    engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dense, "scatter_is_affordable", lambda n_features, n_bytes: False)
    monkeypatch.setattr(sparse_engine, "SCATTER_LIMIT", 0)
    rows = RowsGiven(
        StandardizedRows(joined(engine, tmp_path)), PLACES["both"], effect_on(PLACES["both"]), n_features=D
    )
    assert rows.second_moment.matrix is None
    check_given(rows, np.column_stack([X, LABELS]), "both")


def test_a_column_that_the_known_tells_wholly_reads_as_zeros() -> None:
    both = np.column_stack([X, LABELS])
    both[:, 3] = 2 * LABELS[:, 3] - 5
    effect = np.zeros((Q, D))
    effect[3, 3] = 2.0
    rows = RowsGiven(StandardizedRows(DenseRows(both)), PLACES["labels"], effect, n_features=D)
    assert rows.informative.tolist() == [True, True, True, False, True, True]
    assert not rows.project(np.eye(D))[:, 3].any()
    assert not rows.second_moment.columns(np.arange(D) == 3).any()
