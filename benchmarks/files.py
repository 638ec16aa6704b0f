"""Files larger than memory: whole default fits of Parquet files, their peak memory and their rate against pyarrow's.

    python -m benchmarks.files [--rows 40000000] [--columns 16] [--folder DIR] [--keep]

The rate is that of all passes of a fit together (bytes of the columns read, over its seconds; once over all of them,
once over those between the beginning and the end of a pass), beside pyarrow reading the same columns in batches and
doing nothing with them, before and after in the same run and with the same threads. CPU seconds stand beside, for
machines with other work. Rows are float32: three planted clusters in four columns, and a loud nuisance in four others,
which the background shows too.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GROUP = 1 << 20
CLUSTERS = 3


def rows_of(start: int, count: int, d: int, *, clusters: bool) -> np.ndarray:
    rng = np.random.default_rng(start + (0 if clusters else 10**9))
    Z = rng.standard_normal((count, d), dtype=np.float32)
    Z[:, 4:8] += 12 * rng.integers(0, 2, (count, 1)).astype(np.float32)
    if clusters:
        Z[:, :4] += 6 * np.eye(CLUSTERS, 4, dtype=np.float32)[labels_of(start, count)]
    return Z


def labels_of(start: int, count: int) -> np.ndarray:
    return (np.arange(start, start + count) * 7919 // 5) % CLUSTERS


def write(path: Path, n: int, d: int, *, clusters: bool) -> None:
    names = [f"c{i}" for i in range(d)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    group = max(1 << 14, min(GROUP, (64 << 20) // (4 * d)))
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, group):
            Z = rows_of(start, min(group, n - start), d, clusters=clusters)
            writer.write_table(pa.table(list(Z.T), schema=schema), row_group_size=group)


def plain_read(path: Path) -> tuple[float, float]:
    """Seconds, and CPU seconds, of a pass in which nothing is done with the rows."""
    from imapce import scan

    begin, cpu = time.perf_counter(), time.process_time()
    for _batch in scan(path).batches():
        pass
    return time.perf_counter() - begin, time.process_time() - cpu


def fit(data: str, background: str) -> dict[str, Any]:
    """One default fit, in a process of its own; what it took, and how well the clusters are seen."""
    from imapce import IMAPCE, Samples, scan
    from imapce.metrics import knn_accuracy

    passes, within = [0.0], [0.0]
    table = scan(data)
    original = type(table).batches

    def counted(self: Any, columns: Any = None) -> Any:
        if self.files == table.files:
            passes[0] += len(self.columns if columns is None else columns) / len(table.columns)
        start = time.perf_counter()
        yield from original(self, columns)
        within[0] += time.perf_counter() - start

    type(table).batches = counted
    begin, cpu = time.perf_counter(), time.process_time()
    model = IMAPCE(random_state=0).fit(table, prior=Samples(scan(background)))
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    rows = rows_of(0, 20_000, len(table.columns), clusters=True)
    names = list(table.columns)
    view = model.transform(pa.table(list(rows.T), names=names))
    return {
        "seconds": seconds,
        "cpu": cpu,
        "within": within[0],
        "passes": passes[0],
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "accuracy": knn_accuracy(view, labels_of(0, 20_000)),
        "engine": model.engine_,
        "said": model.stop_reason_,
    }


def measured(n: int, d: int, folder: Path) -> None:
    data, background = folder / f"rows_{n}_{d}.parquet", folder / f"background_{d}.parquet"
    if not data.exists():
        write(data, n, d, clusters=True)
        write(background, max(100_000, n // 100), d, clusters=False)
    before = [plain_read(data) for _ in range(2)]
    command = [sys.executable, "-m", "benchmarks.files", "--fit", str(data), str(background)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    alone, alone_cpu = (min(one) for one in zip(*before, plain_read(data), strict=True))
    gigabytes = 4e-9 * n * d
    read, plain = gigabytes * found["passes"], gigabytes / alone
    print(
        f"{n:,} x {d} float32 ({gigabytes:.1f} GB), default fit with a background: {found['seconds']:.1f} s "
        f"({found['cpu']:.1f} s CPU), {found['passes']:.1f} passes, {read / found['seconds']:.2f} GB/s = "
        f"{read / found['seconds'] / plain:.0%} of pyarrow alone ({plain:.2f} GB/s, {alone_cpu:.1f} s CPU a pass; "
        f"{found['passes'] * alone_cpu / found['cpu']:.0%} by CPU), "
        f"within passes {read / found['within']:.2f} GB/s = {read / found['within'] / plain:.0%}; "
        f"peak memory {found['peak']:.2f} GiB, 15-NN of the planted clusters {found['accuracy']:.3f}; "
        f"engine {found['engine']}. {found['said'][:100]}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=40_000_000)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--fit", nargs=2)
    asked = parser.parse_args()
    if asked.fit:
        print(json.dumps(fit(*asked.fit)))
    elif asked.folder:
        measured(asked.rows, asked.columns, asked.folder)
    else:
        with tempfile.TemporaryDirectory() as made:
            measured(asked.rows, asked.columns, Path(made))
