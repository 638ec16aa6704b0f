"""Claims: value and gradient of ten starts cost at most 2.5 plain products Z·W; a fit adds less than 0.3 of the data.

Memory is the peak of a fresh process, before and during the fit, so that nothing else counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace

import numpy as np

from benchmarks.problems import median_seconds
from benchmarks.record import FigureTable, Record, at_most, measure
from imapce.rows.dense import DenseRows
from imapce.rows.standardized import StandardizedRows
from imapce.search.descent import random_frames
from imapce.search.objective import Objective

MEMORY_SCRIPT = """
import json, resource, sys, warnings
import numpy as np, scipy.sparse
from imapce import IMAPCE
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
kind, n, d = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if kind == "dense":
    X = rng.standard_normal((n, d), dtype=np.float32)
    X[:2 * n // 5, :5] += 3
    size = X.nbytes
else:
    X = scipy.sparse.random(n, d, density=0.01, format="csr", random_state=rng)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
# Libraries and thread buffers are not the fit's.
IMAPCE(alpha=1.0, mu="paper", n_starts=2, max_iter=1).fit(rng.standard_normal((500, 50)))
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
model = IMAPCE(alpha=1.0, mu="paper", max_iter=30, random_state=0).fit(X)
print(json.dumps({"data": size, "before": before, "peak": peak()}))
"""


def time_of_one_evaluation(table: FigureTable, n_rows: int, n_features: int) -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((n_rows, n_features))
    Z = StandardizedRows(DenseRows(data))
    objective = Objective(Z.second_moment, Z, 100.0)
    frames = random_frames(10, n_features, 2, rng)
    W = np.ascontiguousarray(frames.transpose(1, 0, 2)).reshape(n_features, 20)
    evaluation = median_seconds(lambda: objective.evaluate(frames), 15)
    product = median_seconds(lambda: data @ W, 15)
    cells = (1e3 * evaluation, 1e3 * product, evaluation / product)
    table.row(f"{n_rows:,}×{n_features}", *cells, claim=at_most(2.5, "ratio"))


def memory_of_one_fit(record: Record) -> None:
    """Both kinds of rows, each in a process of its own."""
    dense = record.table("Memory of a fit, dense rows", "rows", "data, MiB", "the fit adds, MiB", "share of the data")
    sparse = record.table(
        "Memory of a fit, sparse rows", "rows", "data, MiB", "the fit adds, MiB", "whole process, GiB"
    )
    sizes = {"dense": (100_000, 1_000), "sparse": (10_000, 5_000)}
    if record.quick:
        sizes = {"dense": (20_000, 200), "sparse": (2_000, 500)}
    for kind, (n, d) in sizes.items():
        command = [sys.executable, "-c", MEMORY_SCRIPT, kind, str(n), str(d)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        extra = found["peak"] - found["before"]
        cells = (found["data"] / 2**20, extra / 2**20)
        if kind == "dense":
            share = extra / found["data"]
            dense.row(f"{n:,}×{d:,} float32", *cells, share, claim=at_most(0.3, "share of the data"))
        else:
            whole = found["peak"] / 2**30
            sparse.row(f"{n:,}×{d:,} at 1 %", *cells, whole, claim=at_most(1.0, "whole process, GiB"))


def main(record: Record, asked: Namespace) -> None:
    table = record.table("One evaluation", "rows", "ten starts, ms", "one product Z·W of 20 columns, ms", "ratio")
    for shape in [(1_000, 100)] if asked.quick else [(6_000, 784), (100_000, 100)]:
        time_of_one_evaluation(table, *shape)
    memory_of_one_fit(record)


if __name__ == "__main__":
    measure("evaluation", main, __doc__)
