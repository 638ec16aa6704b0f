"""Files larger than memory: whole default fits of Parquet files, their peak memory and their rate against pyarrow's.

    python -m benchmarks.files [--shape 40000000x16 ...] [--folder DIR]

Files are written to a folder that is thrown away, or to DIR and kept. The rate is that of all passes of a fit together
(bytes of the columns read, over its seconds; once over all of them, once over those between the beginning and the end
of a pass), beside pyarrow reading the same columns in batches and doing nothing with them, before and after in the same
run and with the same threads. CPU seconds stand beside, for machines with other work. Rows are float32: three planted
clusters in four columns, and a loud nuisance in four others, which the background shows too. An exploration from disk
tells its peak memory on the way.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.record import Record, at_least, at_most, measure

# Rows and columns, the least share of pyarrow's own rate and the most memory in GiB, where one is claimed.
SHAPES: dict[tuple[int, int], tuple[float | None, float]] = {
    (40_000_000, 16): (0.6, 1.5),
    (5_000_000, 200): (None, 2.0),
}
EXPLORED, STEPS = (4_000_000, 16), 4
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


def peak() -> float:
    """The most memory this process ever held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


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
        "peak": peak(),
        "accuracy": knn_accuracy(view, labels_of(0, 20_000)),
        "engine": model.engine_,
        "said": model.stop_reason_,
    }


def explore(data: str) -> dict[str, float]:
    """Peak memory of an exploration from disk, in a process of its own."""
    from imapce import Exploration, scan

    exploration = Exploration(scan(data), random_state=0)
    found = {"opened": peak()}
    exploration.propose()
    found["first proposal"] = peak()
    exploration.run(max_steps=STEPS)
    return {**found, f"after {len(exploration.steps)} steps": peak()}


def in_a_process(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.files", *words]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return found


def made(n: int, d: int, folder: Path) -> tuple[Path, Path]:
    """The file of rows and the one of the background."""
    data, background = folder / f"rows_{n}_{d}.parquet", folder / f"background_{n}_{d}.parquet"
    if not background.exists():
        write(data, n, d, clusters=True)
        write(background, max(100_000, n // 100), d, clusters=False)
    return data, background


def measured(record: Record, n: int, d: int, folder: Path) -> None:
    share, most = SHAPES.get((n, d), (None, None))
    data, background = made(n, d, folder)
    before = [plain_read(data) for _ in range(2)]
    found = in_a_process("--fit", str(data), str(background))
    alone, alone_cpu = (min(one) for one in zip(*before, plain_read(data), strict=True))
    gigabytes = 4e-9 * n * d
    read, plain = gigabytes * found["passes"], gigabytes / alone
    name, (fits, rates, memory) = f"{n:,} × {d}", record.tables[:3]
    fits.row(
        name, gigabytes, data.stat().st_size / 1e9, found["seconds"], found["cpu"], found["passes"], found["accuracy"]
    )
    rates.row(
        *(name, read / found["seconds"], plain, alone_cpu, read / found["seconds"] / plain),
        *(read / found["within"] / plain, found["passes"] * alone_cpu / found["cpu"]),
        claim=None if share is None else at_least(share, "share of pyarrow's"),
    )
    memory.row(name, found["peak"], claim=None if most is None else at_most(most, "peak, GiB"))
    print(f"engine {found['engine']}. {found['said'][:100]}", flush=True)


def in_folder(asked: Namespace, work: Callable[[Path], None]) -> None:
    """Do some work where files may be written: where it was asked for, or in a folder that is thrown away after it."""
    if asked.folder:
        work(asked.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        work(Path(folder))


def explored(record: Record, n: int, d: int, folder: Path) -> None:
    table = record.table("An exploration from disk", f"{n:,} × {d}", "peak memory, GiB", claims=False)
    for when, memory in in_a_process("--explore", str(made(n, d, folder)[0])).items():
        table.row(when, memory)


def main(record: Record, asked: Namespace) -> None:
    shapes = [tuple(map(int, one.split("x"))) for one in asked.shape] or list(SHAPES)
    if asked.quick and not asked.shape:
        shapes = [(400_000, 16)]
    head = ("rows × columns", "in memory, GB", "on disk, GB", "fit, s", "CPU, s", "passes", "15-NN of the clusters")
    record.table("Fits from files", *head, claims=False)
    record.table(
        "Rates of reading",
        *("rows × columns", "fit, GB/s", "pyarrow alone, GB/s", "pyarrow alone, CPU s a pass"),
        *("share of pyarrow's", "share within passes", "share by CPU"),
    )
    record.table("Memory of a fit from files", "rows × columns", "peak, GiB")
    for n, d in shapes:
        in_folder(asked, lambda folder, n=n, d=d: measured(record, n, d, folder))
    n, d = (100_000, 16) if asked.quick else EXPLORED
    in_folder(asked, lambda folder: explored(record, n, d, folder))


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--shape", nargs="*", default=[], metavar="ROWSxCOLUMNS")
    parser.add_argument("--folder", type=Path)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        print(json.dumps(fit(*sys.argv[2:])))
    elif sys.argv[1:2] == ["--explore"]:
        print(json.dumps(explore(*sys.argv[2:])))
    else:
        measure("files", main, __doc__, options)
