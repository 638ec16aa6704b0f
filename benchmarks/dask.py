"""Claim: an evaluation on two Dask workers takes at most 1.5 times that of the dense engine with two threads.

    python -m benchmarks.dask [--rows 2000000] [--columns 100] [--chunk 100000] [--turns 5]

An evaluation is value and gradient's one pass, `quartic`, of ten starts with two axes over float32 rows. The engines
take turns in one run; ratios are those of medians. Two threads that wait for each other are slow where other work runs:
then the seconds of processors are the ones to compare. A round over next to no rows tells what Dask takes by itself.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
from distributed import Client, LocalCluster

from benchmarks.record import Record, at_most, measure
from imapce.common.work import one_thread
from imapce.rows.dask import DaskRows
from imapce.rows.dense import DenseRows
from imapce.search.descent import random_frames
from imapce.tables import distributed
from imapce.tables.reader import Reader


def taken(call: Callable[[], Any], by: list[psutil.Process]) -> tuple[float, float]:
    """Seconds on the wall, and those of the processors in some processes."""
    begin, busy = time.perf_counter(), sum(sum(one.cpu_times()[:2]) for one in by)
    call()
    return time.perf_counter() - begin, sum(sum(one.cpu_times()[:2]) for one in by) - busy


def drawn(rows: int, columns: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, columns), dtype=np.float32)


def on_cluster(n: int, d: int, chunk: int) -> DaskRows:
    """Rows that the workers draw themselves; the same that `in_memory` draws."""
    import dask.array as da

    import dask

    draw = dask.delayed(drawn, pure=False)
    sizes = [min(chunk, n - start) for start in range(0, n, chunk)]
    parts = [da.from_delayed(draw(size, d, i), (size, d), np.float32) for i, size in enumerate(sizes)]
    return DaskRows(Reader.learn(da.concatenate(parts))[1])


def in_memory(n: int, d: int, chunk: int) -> DenseRows:
    X = np.empty((n, d), dtype=np.float32)
    for i, start in enumerate(range(0, n, chunk)):
        X[start : start + chunk] = drawn(min(chunk, n - start), d, i)
    return DenseRows(X)


def measured(record: Record, n: int, d: int, chunk: int, *, turns: int, workers: list[psutil.Process]) -> None:
    W, offset = random_frames(10, d, 2, np.random.default_rng(0)), np.zeros((10, 2))
    theirs, mine = in_memory(n, d, chunk), on_cluster(n, d, chunk)
    expected, got = theirs.quartic(W, offset).weighted, mine.quartic(W, offset).weighted
    error = np.abs(got - expected).max() / np.abs(expected).max()
    here, everywhere = [psutil.Process()], [psutil.Process(), *workers]
    dense, dask, alone = [], [], []
    for _ in range(turns):
        dense.append(taken(lambda: theirs.quartic(W, offset), here))
        dask.append(taken(lambda: mine.quartic(W, offset), everywhere))
        with one_thread():
            alone.append(taken(lambda: theirs.quartic(W, offset), here))
    (wall, _), (dask_wall, dask_cpu), (alone_wall, cpu) = (np.median(one, axis=0) for one in (dense, dask, alone))
    n_chunks = -(-n // chunk)
    distributed.SMALLEST_CHUNK = 1
    nothing = on_cluster(2 * n_chunks, d, 2)
    nothing.quartic(W, offset)
    idle, idle_cpu = np.median([taken(lambda: nothing.quartic(W, offset), here) for _ in range(turns)], axis=0)
    table = record.table(
        "One evaluation of ten starts", f"{n:,} × {d} float32, seconds", "dense", "two workers", "ratio"
    )
    table.row("by the clock, two threads", wall, dask_wall, dask_wall / wall, claim=at_most(1.5, "ratio"))
    table.row("by the clock, one thread", alone_wall, dask_wall, dask_wall / alone_wall)
    table.row("of processors, one thread; client and workers", cpu, dask_cpu, dask_cpu / cpu)
    beside = record.table("What Dask takes by itself", "what", "measured", claims=False)
    beside.row("chunks of a round", n_chunks)
    beside.row("a round without rows, by the clock, ms", 1e3 * idle)
    beside.row("a round without rows, processor of the client, ms", 1e3 * idle_cpu)
    beside.row("rate for each core of the evaluation, GB/s", 4e-9 * n * d / dask_cpu)
    beside.row("largest relative difference from dense", float(error))


def main(record: Record, asked: Namespace) -> None:
    rows, chunk = (100_000, 10_000) if asked.quick else (asked.rows, asked.chunk)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        workers = [psutil.Process(nanny.pid) for nanny in cluster.workers.values()]
        measured(record, rows, asked.columns, chunk, turns=asked.turns, workers=workers)


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--chunk", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=5)


if __name__ == "__main__":
    measure("dask", main, __doc__, options)
