"""The quartic reduction on a card against one plain read of the same bytes, against float64, and whole fits.

    IMAPCE_COMMIT=abc1234 python -m benchmarks.card [--quick] [--out DIR]

Runs where the card is, with NumPy and CuPy; what is missing there for whole fits and files (scikit-learn, pyarrow) is
named, and these are left out. `python -m benchmarks.record DIR` then brings the results beside the others.

One evaluation is ten frames of two axes over float32 rows: kernel and reduction of its partial sums, timed by events
(median of 15 after 3). "read" is a kernel that adds up the same bytes, in the same run; "products" are plain float32
products of CuPy; "from the host" is what a search pays: frames up, sums down. Errors are against float64, worst frame:
of Σ s(z − m)uᵀ/σ, which the gradient is made of, and of κ.
"""

from __future__ import annotations

import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np

from benchmarks.record import FigureTable, Record, at_most, measure
from imapce.rows.cuda import CudaRows, plain_quartic
from imapce.rows.cuda_kernel import FRAME_COLUMNS, HalvesStore
from imapce.rows.standardized import StandardizedRows

# Rows and columns, and how many plain reads one evaluation may take.
SIZES = {(2_000_000, 784): 1.15, (10_000_000, 64): 1.15, (1_000_000, 200): 1.3, (200_000, 5_000): 2.5}
FRAMES, AXES = 10, 2
READ = cp.RawKernel(
    r"""
extern "C" __global__ void read(const float4* __restrict__ x, long long n, float* out) {
  float s = 0;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) {
    float4 v = x[i]; s += v.x + v.y + v.z + v.w;
  }
  if (s == 1e30f) out[0] = s;
}""",
    "read",
)


def milliseconds(call: Callable[[], Any], repeats: int = 15, warm: int = 3) -> float:
    for _ in range(warm):
        call()
    times = []
    for _ in range(repeats):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(begin, end))
    return float(np.median(times))


def make(n: int, d: int, clusters: int = 3) -> cp.ndarray:
    """Rows with means, unequal scales, some long tails and a few clusters in the first columns."""
    rng = cp.random.default_rng(0)
    X = cp.empty((n, d), dtype=cp.float32)
    mean, scale = rng.random(d, dtype=cp.float32), 10 ** (1.5 * rng.random(d, dtype=cp.float32) - 1)
    step = max(1, 60_000_000 // d)
    for start in range(0, n, step):
        part = rng.standard_normal((min(step, n - start), d), dtype=cp.float32)
        part *= 1 + 0.3 * cp.abs(rng.standard_normal((len(part), 1), dtype=cp.float32))
        of = cp.arange(start, start + len(part)) % clusters
        for one in range(clusters - 1):
            part[:, one * 4 : one * 4 + 4] += 5.0 * (of == one)[:, None]
        X[start : start + len(part)] = part * scale + mean
    return X


def whitened(Z: StandardizedRows, rng: np.random.Generator) -> np.ndarray:
    V = np.linalg.qr(rng.standard_normal((FRAMES, Z.n_features, AXES)))[0]
    values, vectors = np.linalg.eigh(np.stack([one.T @ (Z.second_moment @ one) for one in V]))
    return np.matmul(V, vectors / np.sqrt(values)[:, None, :])


def exact(X: cp.ndarray, Z: StandardizedRows, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ s z uᵀ of the standardised rows, and κ/n, in float64."""
    frames = cp.asarray(W.transpose(1, 0, 2).reshape(Z.n_features, -1))
    mean, inverse = cp.asarray(Z.mean), 1 / cp.asarray(Z.scale)
    total = cp.zeros((Z.n_features, FRAMES * AXES))
    step = max(1, 30_000_000 // Z.n_features)
    for start in range(0, len(X), step):
        z = (X[start : start + step] - mean) * inverse
        u = (z @ frames).reshape(len(z), FRAMES, AXES)
        total += z.T @ (u * (u * u).sum(axis=2, keepdims=True)).reshape(len(z), -1)
    weighted = total.get().reshape(Z.n_features, FRAMES, AXES).transpose(1, 0, 2)
    return weighted, np.einsum("rdk,rdk->r", W, weighted)


def evaluation(table: FigureTable, n: int, d: int, most: float) -> None:
    X = make(n, d)
    begin = time.perf_counter()
    rows = CudaRows.open(X)
    cp.cuda.Device().synchronize()
    opened = time.perf_counter() - begin
    Z = StandardizedRows(rows)
    W = whitened(Z, np.random.default_rng(1))
    weighted, kurtosis = exact(X, Z, W)
    got = Z.quartic(W)
    kappa = np.einsum("rdk,rdk->r", W, got)
    error = (np.linalg.norm(got - weighted, axis=(1, 2)) / np.linalg.norm(weighted, axis=(1, 2))).max()
    error_kappa = np.abs(kappa / kurtosis - 1).max()
    same = all(np.array_equal(Z.quartic(W), got) for _ in range(3))
    (store,) = rows.held
    assert isinstance(store, HalvesStore)
    inside = W * (1 / Z.scale)[:, None] / rows.scale[:, None]
    read = milliseconds(lambda: READ((132 * 16,), (512,), (X, np.int64(X.size // 4), cp.zeros(1, cp.float32))))
    mine = milliseconds(lambda: store.reduce_on_card(AXES))
    products = milliseconds(lambda: plain_quartic(cp, store.chunks(), inside, np.zeros((FRAMES, AXES))), 3, 1)
    Z.quartic(W)
    begin = time.perf_counter()
    for _ in range(40):
        Z.quartic(W)
    host = (time.perf_counter() - begin) / 40 * 1e3
    table.row(
        *(f"{n:,} × {d:,}", read, 4e-9 * n * d / read, mine / read, products / read, host, float(error)),
        *(float(error_kappa), "yes" if same else "no", opened),
        claim=at_most(most, "evaluation, reads"),
    )


def fits(record: Record, n: int, d: int) -> None:
    """Whole fits of rows that lie on the card; the first of three compiles."""
    from imapce import IMAPCE

    X = make(n, d)
    table = record.table("Whole fits on the card", f"{n:,} × {d}", "best of three, s", "first, s", "evaluations")
    for name, model, most in (
        ("α and μ given", lambda: IMAPCE(alpha=0.0, mu="paper", random_state=0), 0.3),
        ("everything automatic", lambda: IMAPCE(random_state=0), 2.0),
    ):
        times = []
        for _ in range(3):
            cp.cuda.Device().synchronize()
            begin = time.perf_counter()
            fitted = model().fit(X)
            times.append(time.perf_counter() - begin)
        table.row(name, min(times), times[0], fitted.n_evaluations_, claim=at_most(most, "best of three, s"))


def files(record: Record, n: int, d: int) -> None:
    """A default fit of Parquet files that are read twice into the card, against the same pass by pass on the host."""
    import pyarrow as pa

    from imapce import IMAPCE, scan
    from imapce.tables import write_table

    X = make(n, d).get()
    table = record.table("Default fits of Parquet files", f"{n:,} × {d}, engine", "seconds", claims=False)
    with tempfile.TemporaryDirectory() as folder:
        columns = pa.table({f"x{place}": X[:, place] for place in range(d)})
        for part in range(8):
            write_table(columns.slice(part * (n // 8), n // 8), f"{folder}/part-{part}.parquet")
        del X, columns
        for engine in ("cuda", "files"):
            begin = time.perf_counter()
            fitted = IMAPCE(engine=engine, random_state=0).fit(scan(folder))
            table.row(fitted.engine_, time.perf_counter() - begin)


def main(record: Record, asked: Namespace) -> None:
    assert FRAME_COLUMNS >= FRAMES * AXES
    driver = cp.cuda.runtime.driverGetVersion()
    record.machine["card"] = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    record.versions["CUDA driver"] = f"{driver // 1000}.{driver % 1000 // 10}"
    table = record.table(
        "One evaluation",
        *("rows × columns", "one read, ms", "read, TB/s", "evaluation, reads", "float32 products of CuPy, reads"),
        *("from and to the host, ms", "error of the sums", "error of κ", "repeats bit-equal", "opened, s"),
    )
    for (n, d), most in SIZES.items():
        evaluation(table, n // (20 if asked.quick else 1), d, most)
        cp.get_default_memory_pool().free_all_blocks()
    n = 200_000 if asked.quick else 2_000_000
    for part, d in ((fits, 784), (files, 200)):
        try:
            part(record, n, d)
        except ModuleNotFoundError as missing:
            print(f"{part.__name__}: not measured, {missing.name} is not installed here", flush=True)


if __name__ == "__main__":
    measure("card", main, __doc__)
