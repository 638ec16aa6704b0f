"""Dask for tests: a cluster of two processes that starts once, small chunks, and what this process receives of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("dask") is None or importlib.util.find_spec("distributed") is None,
    reason="dask and distributed are not installed",
)
SCHEDULERS = ("threads", "cluster")


@contextmanager
def cluster_of(n_workers: int, **settings: Any) -> Iterator[Any]:
    """A client of so many worker processes of one thread each; who wants it uses `client.as_current()`."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", **settings) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def received_bytes() -> Iterator[list[int]]:
    """The size of every message that this process receives: those to the client and those to the scheduler, which is in
    the same process where the cluster is local, so that nothing can come in unseen.
    """
    from distributed.comm import tcp

    sizes: list[int] = []
    read = tcp.from_frames

    def counted(frames: Any, *args: Any, **kwargs: Any) -> Any:
        sizes.append(sum(memoryview(frame).nbytes for frame in frames))
        return read(frames, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tcp, "from_frames", counted)
        yield sizes


def planted(n_rows: int = 900, n_features: int = 12, seed: int = 0) -> np.ndarray:
    """Rows of three clusters in a plane that is not along the columns."""
    rng = np.random.default_rng(seed)
    mixing = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    X = rng.normal(size=(n_rows, n_features))
    X[:, :2] = 0.3 * X[:, :2] + np.array([[0.0, 2.0], [1.8, -1.0], [-1.8, -1.0]])[np.arange(n_rows) % 3]
    return X @ mixing * rng.uniform(0.5, 3.0, size=n_features) + rng.normal(size=n_features)
