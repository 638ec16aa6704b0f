"""What holds for all tests: which data they may use, one BLAS thread, property tests that repeat exactly.

A test of a published file is marked with the file, `@pytest.mark.data("adult.data", "adult.data.gz")`, any of the names
will do, and is skipped where that is not on disk; no test downloads. BLAS and OpenMP get one thread, here and in every
process that a test starts: the arrays are small, and workers with several threads each get in one another's way
(scikit-learn's t-SNE of 178 rows beside other work took 10 s of CPU with two threads, which spin, and 0.4 s with one).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy  # noqa: F401 - loads the BLAS libraries that are limited below
import pytest
import scipy.linalg  # noqa: F401
from hypothesis import settings
from threadpoolctl import threadpool_limits

from dask_clusters import cluster_of

threadpool_limits(1, user_api="blas")
# Read by libraries that are loaded later, such as scikit-learn's OpenMP, and by other processes.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
# Tests in the background of a shell are told to ignore Ctrl-C, and would hand that down to the commands they stop.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("imapce", deadline=None, derandomize=True, max_examples=15, database=None)
settings.load_profile("imapce")

BESIDE = Path(__file__).parents[2] / "shared" / "data"
# An IMAPCE_DATA that is empty is a choice too: no data folder.
if "IMAPCE_DATA" not in os.environ and BESIDE.is_dir():
    os.environ["IMAPCE_DATA"] = str(BESIDE)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "data(*paths): needs one of these files in IMAPCE_DATA or the cache")


def pytest_runtest_setup(item: pytest.Item) -> None:
    # Not above: SciPy silences the warning about np.matrix when it is first imported, and that must be while pytest
    # collects with warnings as errors, or a module that makes an np.matrix cannot be collected.
    from imapce.datasets.downloads import find

    for marker in item.iter_markers("data"):
        if find(marker.args) is None:
            pytest.skip(f"{marker.args[0]} is in neither IMAPCE_DATA nor the cache")


@pytest.fixture
def every_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is told as often as it comes, however fast the machine."""
    from imapce.common import work

    monkeypatch.setattr(work, "SECONDS_BETWEEN_TELLINGS", 0.0)


@pytest.fixture(scope="session")
def dask_cluster() -> Iterator[Any]:
    """A client of two worker processes, started once; no test is its user by chance."""
    with cluster_of(2) as client:
        yield client


@pytest.fixture
def dask_scheduler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where Dask computes, "threads" or "cluster" by indirect parameter, with chunks kept as small as they are."""
    pytest.importorskip("distributed", reason="dask and distributed are not installed")
    import dask
    from imapce.tables import distributed

    monkeypatch.setattr(distributed, "SMALLEST_CHUNK", 1)
    if request.param == "threads":
        with dask.config.set(scheduler="threads"):
            yield request.param
    else:
        with request.getfixturevalue("dask_cluster").as_current():
            yield request.param
