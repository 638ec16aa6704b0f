"""Claim: an evaluation on two Dask workers of one thread takes at most 1.5 times that of the dense engine with two threads.

    python -m benchmarks.dask [--rows 2000000] [--columns 100] [--chunk 100000]

An evaluation is value and gradient's one pass, `quartic`, of ten starts with two axes over float32 rows. Both engines
take turns in one run, so that what else the machine does meets both; the ratio is that of the medians. A round over next
to no rows tells what Dask takes by itself.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from imapce.rows.dask import DaskRows
from imapce.rows.dense import DenseRows
from imapce.search.stiefel import random_frames
from imapce.tables import distributed
from imapce.tables.reader import Reader

TURNS = 9


def seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def drawn(rows: int, columns: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, columns), dtype=np.float32)


def on_cluster(n: int, d: int, chunk: int) -> DaskRows:
    """Rows that the workers draw themselves; the same that `in_memory` draws."""
    import dask
    import dask.array as da

    draw = dask.delayed(drawn, pure=False)
    sizes = [min(chunk, n - start) for start in range(0, n, chunk)]
    parts = [da.from_delayed(draw(size, d, i), (size, d), np.float32) for i, size in enumerate(sizes)]
    return DaskRows(Reader.learn(da.concatenate(parts))[1])


def in_memory(n: int, d: int, chunk: int) -> DenseRows:
    X = np.empty((n, d), dtype=np.float32)
    for i, start in enumerate(range(0, n, chunk)):
        X[start : start + chunk] = drawn(min(chunk, n - start), d, i)
    return DenseRows(X)


def measured(n: int, d: int, chunk: int) -> None:
    W, offset = random_frames(10, d, 2, np.random.default_rng(0)), np.zeros((10, 2))
    theirs, mine = in_memory(n, d, chunk), on_cluster(n, d, chunk)
    expected, got = theirs.quartic(W, offset).weighted, mine.quartic(W, offset).weighted
    error = np.abs(got - expected).max() / np.abs(expected).max()
    turns = [
        (seconds(lambda: theirs.quartic(W, offset)), seconds(lambda: mine.quartic(W, offset))) for _ in range(TURNS)
    ]
    dense, dask = np.median(turns, axis=0)
    n_chunks = -(-n // chunk)
    distributed.SMALLEST_CHUNK = 1
    nothing = on_cluster(2 * n_chunks, d, 2)
    nothing.quartic(W, offset)
    alone = np.median([seconds(lambda: nothing.quartic(W, offset)) for _ in range(TURNS)])
    print(
        f"{n:,} x {d} float32 ({4e-9 * n * d:.1f} GB) in at most {n_chunks} chunks, one evaluation of ten starts: "
        f"dense with two threads {dense:.3f} s, two Dask workers {dask:.3f} s, ratio {dask / dense:.2f} (claim 1.5); "
        f"a round of {n_chunks} chunks without rows {1e3 * alone:.0f} ms; largest difference {error:.1e}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--chunk", type=int, default=100_000)
    asked = parser.parse_args()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        measured(asked.rows, asked.columns, asked.chunk)
