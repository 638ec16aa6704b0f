"""Same seed, same subspace: whatever the engine, the number of threads or the order of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from helpers import angle_between
from imapce import IMAPCE, Attributes, Samples, Subset, datasets
from imapce.rows import dense
from imapce.rows import sparse as sparse_engine

SAME = 1e-6


@dataclass(frozen=True)
class Problem:
    X: np.ndarray
    prior: Any
    mu: float | str = "paper"


def synthetic() -> Problem:
    return Problem(datasets.make_synthetic().X, Attributes([0, 1, 2, 3]), 200.0)


def digits() -> Problem:
    data = datasets.load_digits()
    return Problem(data.X, Subset(data.labels["class"] == 0))


def image_segmentation() -> Problem:
    return Problem(datasets.fetch_image_segmentation().X, None, 1e5)


def long_table() -> Problem:
    """20,000 × 40 with four hidden groups and a background that shares its loudest direction."""
    rng = np.random.default_rng(0)
    n, d = 20_000, 40
    mixing = rng.normal(size=(d, d)) / np.sqrt(d)
    centres = 2.5 * rng.normal(size=(4, d))
    X = rng.normal(size=(n, d)) @ mixing + centres[np.arange(n) % 4]
    background = rng.normal(size=(500, d)) @ mixing
    return Problem(X, Samples(background))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "synthetic": synthetic,
    "digits": digits,
    "image segmentation": image_segmentation,
    "20,000 x 40": long_table,
}
SEGMENTATION = pytest.param("image segmentation", marks=pytest.mark.data("image_segmentation.csv"))


def view(problem: Problem, X: Any = None, prior: Any = None, engine: str = "auto") -> IMAPCE:
    model = IMAPCE(alpha=1.0, mu=problem.mu, engine=engine, random_state=0)
    return model.fit(problem.X if X is None else X, prior=problem.prior if prior is None else prior)


@pytest.mark.parametrize("name", ["synthetic", "digits", SEGMENTATION, "20,000 x 40"])
def test_every_engine_gives_the_same_subspace(name: str) -> None:
    problem = PROBLEMS[name]()
    reference = view(problem, engine="dense")
    for engine in ("sparse", "moment_tensor"):
        other = view(problem, engine=engine)
        assert angle_between(other.components_, reference.components_) < SAME, engine
        assert other.objective_ == pytest.approx(reference.objective_, rel=1e-9), engine
    if name in ("synthetic", "digits"):
        other = view(problem, X=sparse.csc_array(problem.X))
        assert angle_between(other.components_, reference.components_) < SAME, "csc"


@pytest.mark.parametrize("engine", ["dense", "sparse"])
@pytest.mark.parametrize("name", ["synthetic", "digits"])
def test_second_moments_that_are_not_formed_give_the_same_subspace(
    name: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = PROBLEMS[name]()
    formed = view(problem, engine=engine)
    monkeypatch.setattr(dense, "scatter_is_affordable", lambda n_features, n_bytes: False)
    monkeypatch.setattr(sparse_engine, "SCATTER_LIMIT", 0)
    implicit = view(problem, engine=engine)
    assert angle_between(implicit.components_, formed.components_) < SAME
    assert implicit.mu_ == pytest.approx(formed.mu_, rel=1e-9)


@pytest.mark.parametrize("name", ["synthetic", "digits", SEGMENTATION])
def test_the_order_of_rows_does_not_change_the_subspace(name: str) -> None:
    problem = PROBLEMS[name]()
    order = np.random.default_rng(1).permutation(len(problem.X))
    prior = Subset(problem.prior.rows[order]) if isinstance(problem.prior, Subset) else problem.prior
    shuffled = view(problem, X=problem.X[order], prior=prior)
    assert angle_between(shuffled.components_, view(problem).components_) < SAME


@pytest.mark.parametrize("name", ["synthetic", "digits", SEGMENTATION])
def test_one_and_two_threads_give_the_same_subspace(name: str) -> None:
    problem = PROBLEMS[name]()
    if name == "digits":
        problem = Problem(problem.X[:500], Subset(problem.prior.rows[:500]))
    views = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            views.append(view(problem, engine="dense").components_)
    assert angle_between(*views) < SAME


@pytest.mark.parametrize("name", ["synthetic", "digits"])
def test_the_same_seed_twice_gives_the_same_bytes(name: str) -> None:
    problem = PROBLEMS[name]()
    one, other = view(problem), view(problem)
    assert one.components_.tobytes() == other.components_.tobytes()
    assert one.objective_ == other.objective_
    assert one.stop_reason_ == other.stop_reason_
    assert one.trace_.objectives.tobytes() == other.trace_.objectives.tobytes()


def test_a_random_state_object_is_used_as_its_seed_would_be() -> None:
    problem = synthetic()
    seeded = IMAPCE(alpha=1.0, mu=200.0, random_state=7).fit(problem.X, prior=problem.prior)
    stateful = IMAPCE(alpha=1.0, mu=200.0, random_state=np.random.RandomState(7)).fit(problem.X, prior=problem.prior)
    assert seeded.components_.tobytes() == stateful.components_.tobytes()
