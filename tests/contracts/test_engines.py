"""One suite over all engines: every reduction equals a plain NumPy computation, whatever holds the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from helpers import random_frame, random_stack
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.rows import dense, moment_tensor
from imapce.rows import sparse as sparse_engine
from imapce.rows.base import Rows, scatter_is_affordable
from imapce.rows.dense import DenseRows
from imapce.rows.moment_tensor import MomentTensorRows, moment_tensor_pays
from imapce.rows.open import open_rows
from imapce.rows.sparse import SparseRows
from imapce.rows.standardized import QuadraticForm, StandardizedRows, column_scales

Holder = Callable[[np.ndarray, Path], Any]
N, D = 700, 6


def as_memmap(X: np.ndarray, folder: Path) -> np.memmap:
    mapped = np.memmap(folder / "rows.bin", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    return np.memmap(folder / "rows.bin", dtype=np.float64, mode="r", shape=X.shape)


def non_contiguous(X: np.ndarray, folder: Path) -> np.ndarray:
    wide = np.full((2 * len(X), 2 * X.shape[1]), np.nan)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def read_only(X: np.ndarray, folder: Path) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


HOLDERS: dict[str, Holder] = {
    "float64": lambda X, _: X,
    "float32": lambda X, _: X.astype(np.float32),
    "big-endian": lambda X, _: X.astype(">f8"),
    "int64": lambda X, _: np.rint(3 * X).astype(np.int64),
    "uint8": lambda X, _: np.clip(np.rint(40 * X + 100), 0, 255).astype(np.uint8),
    "bool": lambda X, _: X > 0.3,
    "fortran": lambda X, _: np.asfortranarray(X),
    "non-contiguous": non_contiguous,
    "read-only": read_only,
    "memmap": as_memmap,
    "csr": lambda X, _: sparse.csr_array(np.where(np.abs(X) > 0.8, X, 0.0)),
    "csc": lambda X, _: sparse.csc_array(np.where(np.abs(X) > 0.8, X, 0.0)),
    "csr of int": lambda X, _: sparse.csr_array(np.rint(X).astype(np.int32)),
    "csr of float32": lambda X, _: sparse.csr_matrix(np.where(X > 1, X, 0).astype(np.float32)),
}
CASES = [
    *[(holder, "dense") for holder in HOLDERS if not holder.startswith("cs")],
    *[(holder, "sparse") for holder in ("csr", "csc", "csr of int", "csr of float32", "float64", "bool")],
    *[(holder, "moment_tensor") for holder in ("float64", "float32", "uint8", "bool", "csr", "csc")],
]


@pytest.fixture(params=["one block", "several blocks"])
def block_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the smallest blocks the 700 rows need three dense, three sparse and eleven tensor blocks."""
    if request.param == "several blocks":
        for module in (dense, sparse_engine, moment_tensor):
            monkeypatch.setattr(module, "BLOCK_BYTES", 1)
    return request.param


def sample(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, D)) @ rng.normal(size=(D, D)) + rng.normal(size=D)


def plain(held: Any) -> np.ndarray:
    return np.asarray(held.toarray() if sparse.issparse(held) else held).astype(np.float64)


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    """To 1e-10 of the largest entry: a sum over rows that happens to be small has lost no more than the others."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * max(np.abs(expected).max(), 1e-300))


def check_reductions(rows: Rows, values: np.ndarray) -> None:
    """All of the contract against NumPy on `values`, in the engine's coordinates: each to 1e-10 of its size."""
    Z = values - rows.origin
    assert (rows.n_rows, rows.n_features) == Z.shape
    size = np.abs(Z).max() + 1.0
    moments = rows.moments()
    mean, centred = Z.mean(axis=0), Z - Z.mean(axis=0)
    assert moments.n_rows == len(Z)
    assert np.allclose(moments.mean, mean, rtol=1e-12, atol=1e-12 * size)
    assert_close(moments.variance, centred.var(axis=0))
    if moments.scatter is not None:
        assert_close(moments.scatter, centred.T @ centred)
    for k in (1, 2, 3):
        W = random_stack(4, rows.n_features, k, seed=k)
        offset = np.random.default_rng(k).normal(size=(4, k))
        result = rows.quartic(W, offset)
        u = np.einsum("id,rdk->rik", Z, W) - offset[:, None, :]
        su = np.sum(u**2, axis=2)[:, :, None] * u
        assert_close(result.weighted, np.einsum("id,rik->rdk", Z, su))
        assert_close(result.total, su.sum(axis=1))
        assert_close(rows.scatter_product(W[0], offset[0]), Z.T @ u[0])
        assert np.allclose(rows.project(W[0], offset[0]), u[0], rtol=1e-10, atol=1e-11 * size)
    assert np.allclose(np.concatenate([block.copy() for block in rows.blocks()]), Z, rtol=1e-13, atol=1e-13 * size)


@pytest.mark.usefixtures("block_size")
@pytest.mark.parametrize(("holder", "engine"), CASES)
def test_reductions_equal_numpy(holder: str, engine: str, tmp_path: Path) -> None:
    held = HOLDERS[holder](sample(), tmp_path)
    check_reductions(open_rows(held, engine=engine), plain(held))


@pytest.mark.usefixtures("block_size")
@pytest.mark.parametrize(("holder", "engine"), CASES)
def test_blocks_of_some_columns_equal_numpy(holder: str, engine: str, tmp_path: Path) -> None:
    held = HOLDERS[holder](sample(), tmp_path)
    rows = open_rows(held, engine=engine)
    columns = np.array([1, 4])
    read = np.concatenate([block.copy() for block in rows.blocks(columns)])
    assert np.allclose(read, (plain(held) - rows.origin)[:, columns], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("holder", "engine"), CASES)
def test_rows_that_are_left_out_leave_no_trace(holder: str, engine: str, tmp_path: Path) -> None:
    """Whatever the engine learned from all rows, an origin or a tensor, is learned anew from those left."""
    values = sample()
    mask = np.arange(N) % 50 == 7
    values[mask] = 1e3 * values[mask] + 1e4
    held = HOLDERS[holder](values, tmp_path)
    left = open_rows(held, engine=engine).without(mask)
    alone = open_rows(
        held[np.flatnonzero(~mask)] if not holder.startswith("csc") else held.tocsr()[~mask], engine=engine
    )
    np.testing.assert_array_equal(left.origin, alone.origin)
    np.testing.assert_array_equal(left.moments().scatter, alone.moments().scatter)
    W, offset = random_stack(2, D, 2), np.zeros((2, 2))
    np.testing.assert_array_equal(left.quartic(W, offset).weighted, alone.quartic(W, offset).weighted)


@pytest.mark.usefixtures("block_size")
@pytest.mark.parametrize(("holder", "engine"), CASES)
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_a_subset_and_its_subset_equal_numpy(holder: str, engine: str, share: float, tmp_path: Path) -> None:
    held = HOLDERS[holder](sample(), tmp_path)
    rng = np.random.default_rng(1)
    mask = rng.random(N) < share
    inner = rng.random(mask.sum()) < 0.6
    rows = open_rows(held, engine=engine)
    part = rows.subset(mask)
    assert np.array_equal(part.origin, rows.origin)
    check_reductions(part, plain(held)[mask])
    check_reductions(part.subset(inner), plain(held)[mask][inner])


@pytest.mark.parametrize(("holder", "engine"), CASES)
def test_the_caller_s_data_are_never_changed(holder: str, engine: str, tmp_path: Path) -> None:
    held = HOLDERS[holder](sample(), tmp_path)
    parts = (held.data, held.indices, held.indptr) if sparse.issparse(held) else (held,)
    before = [np.asarray(part).tobytes() for part in parts]
    rows = open_rows(held, engine=engine)
    check_reductions(rows, plain(held))
    check_reductions(rows.subset(np.arange(N) % 2 == 0), plain(held)[::2])
    assert [np.asarray(part).tobytes() for part in parts] == before


@pytest.mark.usefixtures("block_size")
def test_a_subset_too_large_to_copy_is_gathered_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sample()
    mask = np.random.default_rng(2).random(N) < 0.7
    monkeypatch.setattr(dense, "COPY_LIMIT", 0)
    part = DenseRows(X).subset(mask)
    check_reductions(part, X[mask])
    check_reductions(part.subset(np.arange(mask.sum()) % 3 > 0), X[mask][np.arange(mask.sum()) % 3 > 0])


@pytest.mark.parametrize("engine", ["dense", "sparse", "moment_tensor"])
@pytest.mark.parametrize("rows_kept", ["all", "none but one"])
def test_a_subset_of_everything_and_of_one_row_equal_numpy(engine: str, rows_kept: str) -> None:
    X = sample()
    mask = np.ones(N, dtype=bool) if rows_kept == "all" else np.arange(N) == 17
    check_reductions(open_rows(X, engine=engine).subset(mask), X[mask])


@pytest.mark.parametrize("engine", ["dense", "moment_tensor"])
def test_columns_a_million_from_zero_keep_their_digits(engine: str) -> None:
    spread = sample() / sample().std(axis=0)
    X = spread + 1e6 * np.arange(1, D + 1)
    rows = open_rows(X, engine=engine)
    assert np.allclose(rows.origin, X.mean(axis=0), rtol=1e-12)
    check_reductions(rows, X)
    exact = spread - spread.mean(axis=0)
    assert np.allclose(rows.moments().scatter, exact.T @ exact, rtol=1e-6, atol=1e-6 * N)


def test_columns_near_zero_keep_zero_as_their_origin() -> None:
    assert not open_rows(sample(), engine="dense").origin.any()


def formed_and_implicit(X: Any, engine: str, monkeypatch: pytest.MonkeyPatch) -> tuple[StandardizedRows, ...]:
    formed = StandardizedRows(open_rows(X, engine=engine))
    monkeypatch.setattr(dense, "scatter_is_affordable", lambda n_features, n_bytes: False)
    monkeypatch.setattr(sparse_engine, "SCATTER_LIMIT", 0)
    implicit = StandardizedRows(open_rows(X, engine=engine))
    assert formed.second_moment.matrix is not None
    assert implicit.second_moment.matrix is None
    return formed, implicit


@pytest.mark.usefixtures("block_size")
@pytest.mark.parametrize("engine", ["dense", "sparse"])
def test_a_second_moment_that_is_not_formed_equals_the_formed_one(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    formed, implicit = formed_and_implicit(sample(), engine, monkeypatch)
    V = random_frame(D, 3)
    assert np.allclose(implicit.second_moment @ V, formed.second_moment @ V, rtol=1e-10, atol=1e-9)
    assert implicit.second_moment.trace == pytest.approx(formed.second_moment.trace, rel=1e-12)
    assert np.allclose(implicit.variance, formed.variance)
    columns = np.arange(D) < 2
    assert np.allclose(implicit.with_columns(columns) @ V, formed.with_columns(columns) @ V, rtol=1e-10, atol=1e-9)
    assert implicit.with_columns(columns).trace == pytest.approx(formed.with_columns(columns).trace, rel=1e-12)
    terms = [[(1.0, Z.second_moment), (-0.5, Z.with_columns(columns))] for Z in (formed, implicit)]
    mine, theirs = QuadraticForm.combine(terms[1]), QuadraticForm.combine(terms[0])
    assert np.allclose(mine @ V, theirs @ V, rtol=1e-10, atol=1e-9)
    assert mine.trace == pytest.approx(theirs.trace, rel=1e-12)


def test_wide_data_form_no_square_matrix() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3000))
    assert not scatter_is_affordable(3000, X.nbytes)
    moments = open_rows(X, engine="dense").moments()
    assert moments.scatter is None
    assert np.allclose(moments.variance, X.var(axis=0))
    assert open_rows(sparse.csr_array(X), engine="sparse").moments().scatter is None


def test_the_larger_side_of_a_long_table_is_a_difference_of_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    X = sample()
    mask = np.random.default_rng(3).random(N) < 0.8
    W, offset = random_stack(3, X.shape[1], 2), np.full((3, 2), 0.3)
    anew = MomentTensorRows(DenseRows(X)).subset(mask)
    monkeypatch.setattr(moment_tensor, "QUICK_FOLD", 0)
    difference = MomentTensorRows(DenseRows(X)).subset(mask)
    assert difference.resolution > anew.resolution
    np.testing.assert_allclose(difference.quartic(W, offset).weighted, anew.quartic(W, offset).weighted, rtol=1e-9)
    np.testing.assert_allclose(difference.quartic(W, offset).total, anew.quartic(W, offset).total, rtol=1e-9, atol=1e-9)


def test_columns_that_repeat_each_other_make_the_tensor_smaller() -> None:
    X = sample()
    twice = np.column_stack([X, X[:, :2] @ [1.0, -2.0]])
    assert MomentTensorRows(DenseRows(twice))._T.shape == MomentTensorRows(DenseRows(X))._T.shape


def test_standardised_rows_equal_numpy_and_read_constant_columns_as_zeros() -> None:
    X = sample()
    X[:, 2] = 0.1
    expected = (X - X.mean(axis=0)) / np.where(np.arange(D) == 2, np.inf, X.std(axis=0))
    for engine in ("dense", "sparse", "moment_tensor"):
        Z = StandardizedRows(open_rows(X, engine=engine))
        assert list(Z.informative) == [True, True, False, True, True, True]
        assert Z.scale[2] == 0.0
        assert np.allclose(Z.mean, X.mean(axis=0))
        assert np.allclose(Z.second_moment @ np.eye(D), expected.T @ expected, atol=1e-9 * N)
        W = random_stack(2, D, 2)
        U = expected @ W
        weighted = expected.T @ (np.sum(U**2, axis=2)[:, :, None] * U)
        assert np.allclose(Z.quartic(W), weighted, rtol=1e-8, atol=1e-7 * N)


def test_centring_only_leaves_the_units() -> None:
    Z = StandardizedRows(DenseRows(sample()), standardize=False)
    assert np.array_equal(Z.scale, np.ones(D))
    centred = sample() - sample().mean(axis=0)
    assert np.allclose(Z.second_moment @ np.eye(D), centred.T @ centred)


def test_columns_of_one_group_share_a_scale_that_gives_the_group_unit_variance() -> None:
    groups = np.array([0, 1, 1, 1, 2])
    variance = np.array([4.0, 0.1, 0.2, 0.0, 9.0])
    scales = column_scales(np.zeros(5), variance, groups, standardize=True)
    assert np.allclose(scales, [2.0, np.sqrt(0.3), np.sqrt(0.3), 0.0, 3.0])


@given(st.integers(0, 1000), st.sampled_from(["dense", "sparse", "moment_tensor"]))
def test_engines_agree_on_any_small_integers(seed: int, engine: str) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(int(rng.integers(2, 40)), int(rng.integers(3, 7))))
    check_reductions(open_rows(X, engine=engine), X.astype(np.float64))


def test_auto_takes_the_tensor_for_narrow_rows_and_passes_for_wide_ones() -> None:
    rng = np.random.default_rng(0)
    assert isinstance(open_rows(rng.normal(size=(2000, 8))), MomentTensorRows)
    assert type(open_rows(rng.normal(size=(2000, 60)))) is DenseRows
    assert type(open_rows(sparse.csr_array(rng.normal(size=(200, 60))))) is SparseRows
    assert moment_tensor_pays(10_000, 10, 2)
    assert not moment_tensor_pays(10_000, 100, 2)


def test_an_engine_that_does_not_exist_or_cannot_read_the_rows_is_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidValueError, match=r"^engine must be one of .*; got 'gpu'\.$"):
        open_rows(np.eye(3), engine="gpu")
    with pytest.raises(InvalidTypeError, match=r"^engine='dense' .* X is sparse"):
        open_rows(sparse.eye_array(3, format="csr"), engine="dense")


def test_sparse_entries_given_twice_count_as_their_sum() -> None:
    twice = sparse.csr_array(
        (np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 1, 2]), np.array([0, 2, 3, 4])), shape=(3, 3)
    )
    before = twice.data.copy()
    np.testing.assert_allclose(SparseRows(twice).moments().variance, twice.toarray().var(axis=0))
    np.testing.assert_array_equal(twice.data, before)


def test_sparse_scatter_keeps_its_digits_far_from_zero() -> None:
    X = np.random.default_rng(0).normal(size=(200, 4)) + 1e6
    X[::3, 1] = 0.0
    centred = X - X.mean(axis=0)
    scatter = SparseRows(sparse.csr_array(X)).moments().scatter
    np.testing.assert_allclose(scatter, centred.T @ centred, rtol=1e-9, atol=1e-4)
