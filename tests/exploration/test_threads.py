"""The clusters of a table do not depend on how many threads the linear algebra has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import imapce

TABLES = ("iris", "wine", "digits")
EXPLORED = f"""
import sys
import numpy as np
from sklearn import datasets
from imapce import Exploration

tables = {{name: getattr(datasets, "load_" + name)().data for name in {TABLES}}}
np.savez(sys.argv[1], **{{name: Exploration(X, random_state=0).run().labels_ for name, X in tables.items()}})
"""


def test_labels_are_the_same_with_one_thread_and_with_two(tmp_path: Path) -> None:
    found = []
    for threads in ("1", "2"):
        here = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        path = [str(Path(imapce.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, **here, "PYTHONPATH": os.pathsep.join(filter(None, path))}
        file = tmp_path / f"{threads}.npz"
        subprocess.run([sys.executable, "-c", EXPLORED, str(file)], env=environment, check=True, timeout=300)
        found.append(np.load(file))
    for table in TABLES:
        np.testing.assert_array_equal(found[0][table], found[1][table])
        assert found[0][table].max() >= 1
