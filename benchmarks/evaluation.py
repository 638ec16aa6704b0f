"""Claims: value and gradient of ten starts cost at most 2.5 plain products Z·W; a fit adds less than 0.3 of the data.

Memory is the peak of a fresh process, before and during the fit, so that nothing else counts.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

from benchmarks.problems import median_seconds
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
if sys.argv[1] == "dense":
    X = rng.standard_normal((100_000, 1_000), dtype=np.float32)
    X[:40_000, :5] += 3
    size = X.nbytes
else:
    X = scipy.sparse.random(10_000, 5_000, density=0.01, format="csr", random_state=rng)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
# Libraries and thread buffers are not the fit's.
IMAPCE(alpha=1.0, mu="paper", n_starts=2, max_iter=1).fit(rng.standard_normal((500, 50)))
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
model = IMAPCE(alpha=1.0, mu="paper", max_iter=30, random_state=0).fit(X)
print(json.dumps({"data": size, "before": before, "peak": peak()}))
"""


def time_of_one_evaluation(n_rows: int, n_features: int) -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((n_rows, n_features))
    Z = StandardizedRows(DenseRows(data))
    objective = Objective(Z.second_moment, Z, 100.0)
    frames = random_frames(10, n_features, 2, rng)
    W = np.ascontiguousarray(frames.transpose(1, 0, 2)).reshape(n_features, 20)
    evaluation = median_seconds(lambda: objective.evaluate(frames), 15)
    product = median_seconds(lambda: data @ W, 15)
    print(
        f"{n_rows} x {n_features}: value and gradient of ten starts {1e3 * evaluation:.1f} ms, "
        f"one product Z @ W with 20 columns {1e3 * product:.1f} ms, ratio {evaluation / product:.2f} (claim 2.5)",
        flush=True,
    )


def memory_of_one_fit(kind: str) -> None:
    output = subprocess.run([sys.executable, "-c", MEMORY_SCRIPT, kind], check=True, capture_output=True, text=True)
    figures = json.loads(output.stdout)
    extra = figures["peak"] - figures["before"]
    if kind == "dense":
        print(
            f"100,000 x 1,000 float32 ({figures['data'] / 2**20:.0f} MiB): peak extra {extra / 2**20:.0f} MiB, "
            f"{extra / figures['data']:.2f} of the data (claim 0.3)"
        )
    else:
        print(
            f"10,000 x 5,000 sparse at 1 % ({figures['data'] / 2**20:.1f} MiB): peak of the whole process "
            f"{figures['peak'] / 2**30:.2f} GiB (claim 1 GiB), of which the fit added {extra / 2**20:.0f} MiB"
        )


def main() -> None:
    time_of_one_evaluation(6_000, 784)
    time_of_one_evaluation(100_000, 100)
    memory_of_one_fit("dense")
    memory_of_one_fit("sparse")


if __name__ == "__main__":
    main()
