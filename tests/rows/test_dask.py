"""What a cluster must keep: rows stay where they are, sums are the same to the last bit, a dead worker costs time."""

from __future__ import annotations

import os
import signal
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dask_clusters import cluster_of, needs_dask, planted, received_bytes
from helpers import angle_between, random_stack
from imapce import IMAPCE, Attributes, Subset
from imapce.rows.dask import DaskRows
from imapce.tables import distributed
from imapce.tables.reader import Reader

pytestmark = needs_dask


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they come; in use those below 32 MiB are put together."""
    monkeypatch.setattr(distributed, "SMALLEST_CHUNK", 1)


@pytest.fixture
def client(dask_cluster: Any) -> Iterator[Any]:
    with dask_cluster.as_current():
        yield dask_cluster


def made_there(n_rows: int, n_features: int = 40) -> Any:
    """Rows that the workers draw themselves, in eight chunks: no number of them was ever here."""
    import dask.array as da

    return da.random.default_rng(0).normal(size=(n_rows, n_features), chunks=(n_rows // 8, -1))


def fitted(X: Any, prior: Any = None, **settings: Any) -> IMAPCE:
    return IMAPCE(
        random_state=0, **{"alpha": 1.0, "mu": 100.0, "max_iter": 12, "n_starts": 4, "tol": 1e-3} | settings
    ).fit(X, prior=prior)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("prior", [None, Attributes([0, 1])], ids=["nothing known", "columns known"])
def test_a_fit_receives_no_rows_and_no_more_of_many_than_of_few(prior: Any) -> None:
    received = {}
    for n_rows in (40_000, 160_000):
        X = made_there(n_rows).persist()
        with received_bytes() as sizes:
            model = fitted(X, prior)
        received[n_rows] = sum(sizes) / model.n_evaluations_
    # 51 MB of rows; an evaluation of four starts leaves 4·40·2 numbers, the rest are the scheduler's messages.
    assert received[160_000] < 100_000
    assert received[160_000] < 1.5 * received[40_000]


@pytest.mark.usefixtures("client")
def test_a_choice_receives_a_sample_of_the_rows_and_no_more() -> None:
    received = {}
    for n_rows in (50_000, 200_000):
        X = made_there(n_rows).persist()
        with received_bytes() as sizes:
            fitted(X, alpha="auto", mu="auto", max_iter=200)
        received[n_rows] = sum(sizes)
    # 20,000 rows to look at and their views, 2,000 for outliers and for neighbours; what comes to the client passes the
    # scheduler, which is counted too. All rows are 64 MB.
    assert received[200_000] < 1.2 * received[50_000] < 40_000_000


@pytest.mark.usefixtures("client")
def test_what_a_fit_keeps_here_does_not_grow_with_the_rows() -> None:
    peaks = []
    for n_rows in (40_000, 160_000):
        X = made_there(n_rows).persist()
        fitted(X, max_iter=2)
        tracemalloc.start()
        fitted(X, max_iter=2)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # A few masks, of a byte for each row.
    assert peaks[1] - peaks[0] < 10 * 120_000


@pytest.mark.usefixtures("client")
def test_rows_left_by_a_subset_stay_on_the_cluster() -> None:
    X = made_there(80_000).persist()
    known = np.arange(80_000) % 2 == 0
    with received_bytes() as sizes:
        model = fitted(X, Subset(known))
    assert sum(sizes) / model.n_evaluations_ < 100_000


def sums(client: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums over rows that differ in the last bit when they are added in another order."""
    import dask.array as da

    # 18 chunks: sums of sums, with a group that is not full.
    X = planted(1200, 10)
    with client.as_current():
        rows = DaskRows(Reader.learn(da.from_array(X, chunks=(70, -1)))[1])
        W, offset = random_stack(10, 10, 2), np.full((10, 2), 0.1)
        return rows.moments().scatter, rows.quartic(W, offset).weighted, fitted(
            da.from_array(X, chunks=(70, -1)), Attributes([0])
        ).components_  # fmt: skip


def test_sums_are_the_same_to_the_last_bit_whenever_and_on_however_many_workers(dask_cluster: Any) -> None:
    import dask

    first = sums(dask_cluster)
    with cluster_of(1) as alone, cluster_of(3) as three:
        others = [sums(dask_cluster), sums(alone), sums(three)]
    with dask.config.set(scheduler="threads"):
        others.append(sums(dask_cluster))
    for other in others:
        for mine, theirs in zip(first, other, strict=True):
            assert_array_equal(mine, theirs)


def test_a_round_is_one_graph_for_all_starts(client: Any) -> None:
    rows = DaskRows(Reader.learn(made_there(800, 5))[1])
    with watched(client) as seen:
        rows.quartic(random_stack(30, 5, 2), np.zeros((30, 2)))
    # Eight chunks in one group of sums.
    assert sum(key.startswith("imapce_reduced") and "round" not in key for key in seen.keys) == 8
    assert sum(key.startswith("imapce_added") for key in seen.keys) == 1


# --- workers that die -------------------------------------------------------------------------------------------------


class Watched:
    """The tasks of a round in the order in which they begin; at the one chosen, its worker is killed."""

    def __init__(self, cluster: Any, kill_at: int | None):
        self.cluster, self.kill_at, self.killed = cluster, kill_at, 0
        self.keys: list[str] = []

    def began(self, key: str) -> None:
        self.keys.append(key)
        if len(self.keys) - 1 != self.kill_at:
            return
        at = self.cluster.scheduler.tasks[key].processing_on.address
        (nanny,) = [one for one in self.cluster.workers.values() if one.worker_address == at]
        os.kill(nanny.pid, signal.SIGKILL)
        self.killed += 1


class watched:
    """Tasks that this package sends to a local cluster, seen by its scheduler."""

    def __init__(self, client: Any, kill_at: int | None = None):
        self.scheduler = client.cluster.scheduler
        self.seen = Watched(client.cluster, kill_at)

    def __enter__(self) -> Watched:
        from distributed.diagnostics.plugin import SchedulerPlugin

        seen = self.seen

        class Plugin(SchedulerPlugin):
            def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
                if finish == "processing" and str(key).startswith("imapce"):
                    seen.began(key)

        self.plugin = Plugin()
        self.scheduler.add_plugin(self.plugin, name="imapce-tests")
        return seen

    def __exit__(self, *_: Any) -> None:
        self.scheduler.remove_plugin("imapce-tests")


@pytest.mark.parametrize("source", ["from memory", "made there"])
def test_a_worker_killed_at_any_moment_of_a_fit_changes_nothing(source: str) -> None:
    import dask.array as da

    moments = np.random.default_rng(0 if source == "from memory" else 1)
    X = da.from_array(planted(2000, 10), chunks=(250, -1)) if source == "from memory" else made_there(2000, 10)
    with cluster_of(2) as client, client.as_current():
        with watched(client) as seen:
            undisturbed = fitted(X, Attributes([0]))
        for kill_at in moments.integers(len(seen.keys), size=5 if source == "from memory" else 1):
            client.wait_for_workers(2)
            with watched(client, int(kill_at)) as disturbed:
                model = fitted(X, Attributes([0]))
            assert disturbed.killed == 1
            assert angle_between(model.components_, undisturbed.components_) < 1e-10
            assert_array_equal(model.components_, undisturbed.components_)
