"""Rows on a card against the dense engine; the layout against its NumPy reference, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halves
from helpers import random_stack
from imapce import IMAPCE, Exploration, Subset, scan
from imapce.common.arrays import card_answers
from imapce.common.streams import Portion, Stream
from imapce.errors import InvalidValueError, MissingExtraError
from imapce.rows import cuda, cuda_source
from imapce.rows.cuda import CudaRows
from imapce.rows.cuda_kernel import SHARED_BYTES, WIDEST_PANEL, HalvesStore, Shape, column_scale
from imapce.rows.dense import DenseRows
from imapce.rows.outliers import outlying_rows
from imapce.tables import write_table

needs_card = pytest.mark.skipif(not card_answers(), reason="no NVIDIA card answers here")
WIDTHS = [3, 8, 21, 40, 64, 100, 200, 216, 333, 400, 784, 800, 1700]


class Pieces(Stream):
    """An array read as files are: from its beginning, some rows at a time, in one buffer that is used again."""

    def __init__(self, X: np.ndarray, rows: int):
        self.X, self.rows, self.passes = X, rows, 0

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def portions(self, columns: Any = None) -> Iterator[Portion]:
        self.passes += 1
        for start in range(0, len(self.X), self.rows):
            part = self.X[start : start + self.rows]
            yield Portion(len(part), partial(self._blocks, part))

    def _blocks(self, part: np.ndarray, places: np.ndarray | None) -> Iterator[np.ndarray]:
        part = part if places is None else part[places]
        step = len(part) // 2 + 1
        buffer = np.empty((step, part.shape[1]))
        for start in range(0, len(part), step):
            block = part[start : start + step]
            buffer[: len(block)] = block
            yield buffer[: len(block)]


def sample(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, d)) * (1 + 0.3 * np.abs(rng.normal(size=(n, 1)))) * 10 ** rng.uniform(-1, 0.5, d)) + 3


def whitened(rows: DenseRows, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    moments = rows.moments()
    scaled = frames / np.sqrt(moments.variance * rows.n_rows)[:, None]
    return scaled, moments.mean @ scaled


@needs_card
@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [37, 20_011])
def test_a_pass_on_the_card_equals_the_dense_one(n: int, d: int, k: int) -> None:
    X = sample(n, d)
    rows = CudaRows.open(X)
    dense = DenseRows(X, origin=rows.origin)
    W, offset = whitened(dense, random_stack(13, d, min(k, d), seed=k))
    mine, exact = rows.quartic(W, offset), dense.quartic(W, offset)
    size = np.linalg.norm(exact.weighted, axis=(1, 2), keepdims=True)
    assert (np.abs(mine.weighted - exact.weighted) / size).max() < 1e-6
    u = np.einsum("nd,rdk->nrk", X - rows.origin, W) - offset
    sizes = np.linalg.norm(u**3, axis=2).sum(axis=0)
    assert (np.abs(mine.total - exact.total) / sizes[:, None]).max() < 1e-6


@needs_card
@pytest.mark.parametrize("d", WIDTHS)
def test_the_layout_is_that_of_the_reference_bit_for_bit(d: int) -> None:
    import cupy

    Z = np.random.default_rng(0).normal(size=(77, d)).astype(np.float32)
    scale = column_scale(np.abs(Z).max(axis=0).astype(np.float64))
    store = HalvesStore(cupy, len(Z), d)
    store.write(0, cupy.asarray(halves.scaled(Z.astype(np.float64), scale)))
    decoded = np.concatenate([chunk.get() for chunk in store.chunks()])
    np.testing.assert_array_equal(decoded / scale, halves.decode(halves.encode(Z.astype(np.float64), scale), scale))
    if d == store.width:
        code = store.codes[0].get().view(np.float16)
        np.testing.assert_array_equal(code, halves.encode(Z.astype(np.float64), scale))


@needs_card
def test_a_repeat_is_bit_equal_and_a_scale_that_does_not_fit_is_found() -> None:
    rows = CudaRows.open(sample(50_000, 96))
    W = random_stack(10, 96, 2)
    first = rows.quartic(W, np.zeros((10, 2)))
    rows.quartic(1e-6 * W, np.zeros((10, 2)))
    rows.quartic(1e9 * W, np.zeros((10, 2)))
    again = rows.quartic(W, np.zeros((10, 2)))
    for _ in range(3):
        np.testing.assert_array_equal(rows.quartic(W, np.zeros((10, 2))).weighted, again.weighted)
    np.testing.assert_allclose(again.weighted, first.weighted, rtol=1e-5, atol=1e-5 * np.abs(first.weighted).max())
    large = rows.quartic(1e9 * W, np.zeros((10, 2))).weighted / 1e27
    np.testing.assert_allclose(large, first.weighted, rtol=1e-5, atol=1e-5 * np.abs(first.weighted).max())


@needs_card
def test_rows_larger_than_the_card_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    X, W = sample(40_000, 96), random_stack(4, 96, 2) / 96
    whole = CudaRows.open(X)
    room = 10_000 * HalvesStore.bytes_of(1, 96)
    free = whole.xp.cuda.Device().mem_info[0]
    monkeypatch.setattr(cuda, "ROOM", room / free)
    monkeypatch.setattr(cuda_source, "BATCH_BYTES", 1 << 20)
    monkeypatch.setattr(cuda, "PART_BYTES", 3 << 20)
    for matrix in (X, Pieces(X, 7_001)):
        rows = CudaRows.open(matrix)
        assert sum(store.n_rows for store in rows.held) < 20_000
        mine, exact = rows.quartic(W, np.zeros((4, 2))), whole.quartic(W, np.zeros((4, 2)))
        np.testing.assert_allclose(mine.weighted, exact.weighted, rtol=1e-6, atol=1e-6 * np.abs(exact.weighted).max())
        mask = np.arange(len(X)) % 3 == 0
        assert np.allclose(rows.subset(mask).moments().variance, whole.subset(mask).moments().variance, rtol=1e-6)
    with pytest.raises(InvalidValueError, match=r"needs another .* GiB on the card"):
        CudaRows.open(whole.xp.asarray(X))


@needs_card
@pytest.mark.parametrize("library", ["cupy", "torch", "jax"])
def test_arrays_of_a_card_are_read_where_they_lie_and_views_come_back_in_kind(library: str) -> None:
    module = pytest.importorskip(library)
    X = sample(500, 12).astype(np.float32)
    put = {"cupy": "asarray", "torch": "from_numpy", "jax": "device_put"}[library]
    held = getattr(module, put)(X)
    held = held.cuda() if library == "torch" else held
    model = IMAPCE(random_state=0).fit(held)
    view = model.transform(held)
    assert type(view).__module__.partition(".")[0] in (library, f"{library}lib")
    expected = model.transform(X)
    got = view.get() if library == "cupy" else view.cpu().numpy() if library == "torch" else np.asarray(view)
    np.testing.assert_allclose(got, expected, atol=1e-5)


@needs_card
@pytest.mark.parametrize("engine", ["cuda", "auto"])
def test_a_fit_on_the_card_is_the_fit_on_the_host(engine: str) -> None:
    import cupy

    rng = np.random.default_rng(0)
    X = (rng.normal(size=(3000, 50)) + 6 * np.eye(3, 50)[np.arange(3000) % 3]).astype(np.float32)
    known = Subset(np.arange(3000) % 3 == 0)
    for prior in (None, known):
        host = IMAPCE(engine="dense", random_state=0).fit(X, prior=prior)
        card = IMAPCE(engine=engine, random_state=0).fit(cupy.asarray(X) if engine == "auto" else X, prior=prior)
        cosines = np.linalg.svd(host.components_ @ card.components_.T)[1]
        assert np.arccos(np.clip(cosines.min(), 0, 1)) < 1e-4
        view = card.transform(cupy.asarray(X))
        assert isinstance(view, cupy.ndarray)
        np.testing.assert_allclose(view.get(), host.transform(X), atol=1e-3)
        exploration = Exploration(X, prior=prior, estimator=IMAPCE(outliers="keep", engine="cuda"), random_state=0)
        plain = Exploration(X, prior=prior, estimator=IMAPCE(outliers="keep", engine="dense"), random_state=0)
        np.testing.assert_array_equal(exploration.run().labels_, plain.run().labels_)


@needs_card
def test_a_scan_on_the_card_is_the_fit_of_its_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(30_000, 50)) + 6 * np.eye(3, 50)[np.arange(30_000) % 3]).astype(np.float32)
    table = pa.table({f"x{place}": X[:, place] for place in range(50)})
    for part in range(3):
        write_table(table.slice(part * 10_000, 10_000), tmp_path / f"part-{part}.parquet")
    files = scan(tmp_path)
    host = IMAPCE(engine="dense", random_state=0).fit(table)
    card = IMAPCE(engine="cuda", random_state=0).fit(files)
    assert card.engine_ == "cuda"
    cosines = np.linalg.svd(host.components_ @ card.components_.T)[1]
    assert np.arccos(np.clip(cosines.min(), 0, 1)) < 1e-4
    np.testing.assert_allclose(card.transform(files), host.transform(table), atol=1e-3)


# --- without a card: the same steps computed by NumPy, and the reference of the kernel's numbers ---------------------


def on_numpy(X: np.ndarray) -> CudaRows:
    return CudaRows.open(X, xp=np)


@pytest.mark.parametrize("far", [0.0, 1e6])
def test_the_steps_of_the_card_computed_by_numpy_equal_the_dense_engine(far: float) -> None:
    X = sample(900, 7) + far
    rows = on_numpy(X)
    dense = DenseRows(X, origin=rows.origin)
    mask = np.random.default_rng(1).random(900) < 0.4
    for mine, theirs in ((rows, dense), (rows.subset(mask), dense.subset(mask))):
        moments, exact = mine.moments(), theirs.moments()
        assert mine.n_rows == theirs.n_rows
        np.testing.assert_allclose(moments.scatter, exact.scatter, rtol=1e-6, atol=1e-6 * exact.scatter.max())
        np.testing.assert_allclose(moments.mean, exact.mean, atol=1e-6)
        for k in (1, 2, 3, 5):
            W, offset = whitened(theirs, random_stack(3, 7, k, seed=k))
            got, wanted = mine.quartic(W, offset), theirs.quartic(W, offset)
            assert np.abs(got.weighted - wanted.weighted).max() < 1e-6 * np.abs(wanted.weighted).max()
            np.testing.assert_allclose(mine.project(W[0], offset[0]), theirs.project(W[0], offset[0]), atol=1e-6)
        W = random_stack(1, 7, 2)[0]
        product = theirs.scatter_product(W, np.zeros(2))
        np.testing.assert_allclose(mine.scatter_product(W, np.zeros(2)), product, atol=1e-6 * np.abs(product).max())
        np.testing.assert_allclose(
            np.concatenate(list(mine.blocks())), np.concatenate(list(theirs.blocks())), atol=1e-5
        )
    assert np.array_equal(rows.without(mask).origin, on_numpy(X[~mask]).origin)
    assert np.array_equal(outlying_rows(rows), outlying_rows(dense))


@pytest.mark.parametrize("room", [900, 300, 0])
def test_files_fill_the_card_and_what_has_no_room_is_read_again(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    X = sample(900, 7)
    monkeypatch.setattr(CudaRows, "_room", lambda self: min(room, self.n_rows))
    monkeypatch.setattr(cuda, "PART_BYTES", 250 * 4 * 7)
    files = Pieces(X, 64)
    rows, array = CudaRows.open(files, xp=np), on_numpy(X)
    assert sum(store.n_rows for store in rows.held) == room
    np.testing.assert_allclose(rows.moments().scatter, array.moments().scatter, rtol=1e-12)
    mask = np.random.default_rng(1).random(900) < 0.4
    W = random_stack(3, 7, 2)
    few = rows.subset(mask)
    passes = files.passes
    for mine, theirs in ((rows, array), (few, array.subset(mask)), (few.subset(mask[mask]), array.subset(mask))):
        got, wanted = mine.quartic(W, np.zeros((3, 2))), theirs.quartic(W, np.zeros((3, 2)))
        np.testing.assert_allclose(got.weighted, wanted.weighted, rtol=1e-5, atol=1e-6 * np.abs(wanted.weighted).max())
        np.testing.assert_allclose(mine.project(W[0], np.zeros(2)), theirs.project(W[0], np.zeros(2)), atol=1e-12)
    assert (files.passes == passes) == (room == 900)
    np.testing.assert_allclose(rows.without(mask).origin, array.without(mask).origin, rtol=1e-12)


def test_the_numbers_of_the_kernel_are_good_to_a_millionth() -> None:
    X = sample(5000, 30) - 3
    scale = column_scale(np.abs(X).max(axis=0))
    W, offset = whitened(DenseRows(X), random_stack(1, 30, 2))
    weighted, total = halves.quartic_of_halves(X, scale, W[0], offset[0])
    exact = DenseRows(X).quartic(W, offset)
    assert np.linalg.norm(weighted - exact.weighted[0]) < 1e-6 * np.linalg.norm(exact.weighted[0])
    assert np.linalg.norm(total - exact.total[0]) < 1e-6 * np.abs((X @ W[0] - offset[0]) ** 3).sum()


@pytest.mark.parametrize("d", WIDTHS)
def test_every_width_has_a_shape_of_the_kernel_that_fits_a_multiprocessor(d: int) -> None:
    width = d if d <= WIDEST_PANEL else -(-d // (-(-d // WIDEST_PANEL) * 16)) * 16
    shape = Shape.of(width)
    assert shape.shared_bytes <= SHARED_BYTES
    assert shape.D <= shape.padded_columns <= shape.D + 64
    assert shape.threads <= 1024
    assert shape.SLOTS >= 2


@pytest.mark.skipif(card_answers(), reason="a card answers here")
def test_without_a_card_the_engine_is_refused_in_one_sentence() -> None:
    with pytest.raises((MissingExtraError, InvalidValueError), match=r"(pip install|engine='auto')") as told:
        IMAPCE(engine="cuda").fit(sample(50, 4))
    assert "\n" not in str(told.value)
