"""Rows on a Dask cluster of real processes, and on Dask's threads, against the same rows in memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dask_clusters import SCHEDULERS, needs_dask, planted
from helpers import angle_between, random_stack
from imapce import IMAPCE, Attributes, Exploration, Labels, Samples, Subset, datasets
from imapce.priors.effect import Effect
from imapce.priors.labels import LabelCode
from imapce.rows.dense import DenseRows
from imapce.rows.open import open_rows
from imapce.search.race import Optimum, Trace
from imapce.tables.learn import Encoding
from imapce.tables.reader import Reader

pytestmark = [needs_dask, pytest.mark.parametrize("dask_scheduler", SCHEDULERS, indirect=True)]
on_any_scheduler = pytest.mark.usefixtures("dask_scheduler")


def in_chunks(rows: Any, columns: Any = -1) -> Callable[[np.ndarray], Any]:
    def held(X: np.ndarray) -> Any:
        import dask.array as da

        return da.from_array(X, chunks=(rows, columns))

    return held


def of_unknown_lengths(X: np.ndarray) -> Any:
    import dask.array as da

    whole = da.from_array(X, chunks=(200, -1))
    return whole[da.from_array(np.ones(len(X), dtype=bool), chunks=200)]


HOLDERS: dict[str, Callable[[np.ndarray], Any]] = {
    "one chunk": in_chunks(-1),
    "equal chunks": in_chunks(100),
    "uneven chunks": in_chunks((1, 399, 17, 483)),
    "a hundred chunks": in_chunks(9),
    "columns in several chunks": in_chunks(300, 5),
    "unknown lengths": of_unknown_lengths,
}
KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "int32": lambda X: np.rint(5 * X).astype(np.int32),
    "uint8": lambda X: np.clip(np.rint(20 * X + 100), 0, 255).astype(np.uint8),
    "bool": lambda X: X > 0.3,
    "far from zero": lambda X: X + 1e6 * np.arange(1, X.shape[1] + 1),
}


def assert_same_rows(rows: Any, X: np.ndarray) -> None:
    """Every reduction as the dense engine makes it, to 1e-10 of its size."""
    assert (rows.n_rows, rows.n_features) == X.shape
    assert_allclose(rows.origin, DenseRows(X).centre_if_far().origin, rtol=1e-12)
    alone = DenseRows(X, origin=rows.origin)
    mine, theirs = rows.moments(), alone.moments()
    assert_close(mine.mean + rows.origin, theirs.mean + alone.origin)
    assert_close(mine.variance, theirs.variance)
    assert_close(mine.scatter, theirs.scatter)
    for k in (1, 2, 3):
        W, offset = random_stack(5, X.shape[1], k, seed=k), np.random.default_rng(k).normal(size=(5, k))
        assert_close(rows.quartic(W, offset).weighted, alone.quartic(W, offset).weighted)
        assert_close(rows.quartic(W, offset).total, alone.quartic(W, offset).total)
        assert_close(rows.fourth_powers(W, alone.moments().mean), alone.fourth_powers(W, alone.moments().mean))
        assert_close(rows.scatter_product(W[0], offset[0]), alone.scatter_product(W[0], offset[0]))
        assert_close(rows.project(W[0], offset[0]), alone.project(W[0], offset[0]))
    beside = np.random.default_rng(0).normal(size=(len(X), 2))
    assert_close(rows.cross(beside), alone.cross(beside))
    assert_close(np.concatenate(list(rows.blocks())), X - alone.origin)
    some = np.array([1, 3])
    assert_close(np.concatenate(list(rows.blocks(some))), (X - alone.origin)[:, some])


def assert_close(mine: Any, theirs: Any) -> None:
    assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10 * np.abs(theirs).max())


@on_any_scheduler
@pytest.mark.parametrize("holder", HOLDERS)
def test_reductions_equal_the_dense_engine_however_rows_are_cut(holder: str) -> None:
    X = planted()
    assert_same_rows(open_rows(Reader.learn(HOLDERS[holder](X))[1], engine="dask"), X)


@on_any_scheduler
@pytest.mark.parametrize("kind", KINDS)
def test_reductions_equal_the_dense_engine_whatever_the_numbers_are(kind: str) -> None:
    X = KINDS[kind](planted())
    assert_same_rows(open_rows(Reader.learn(in_chunks(250)(X))[1], engine="dask"), X)


@on_any_scheduler
def test_a_digest_tells_rows_and_their_order_apart_however_they_are_cut() -> None:
    def digest(X: np.ndarray, *sizes: int) -> str:
        (told,) = {open_rows(Reader.learn(in_chunks(size)(X))[1], engine="dask").digest() for size in sizes}
        return told

    far = planted() + 1e5
    swapped, changed, zero, negative = (far.copy() for _ in range(4))
    swapped[[0, -1]] = swapped[[-1, 0]]
    changed[7, 3] = np.nextafter(changed[7, 3], np.inf)
    zero[9, 0], negative[9, 0] = 0.0, -0.0
    assert len({digest(X, 100, 137, len(far)) for X in (far, swapped, changed, zero)}) == 4
    assert digest(zero, 50) == digest(negative, 60)


@on_any_scheduler
@pytest.mark.parametrize("gathered", [0, 20_000], ids=["stay there", "are a sample"])
@pytest.mark.parametrize("share", [0.05, 0.9])
def test_some_of_the_rows_equal_the_dense_engine(gathered: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("imapce.rows.dask.GATHERED_ROWS", gathered)
    X = planted() + 1e5
    rows = open_rows(Reader.learn(in_chunks(100)(X))[1], engine="dask")
    mask = np.random.default_rng(0).random(len(X)) < share
    mask[300:400] = False
    part, left = rows.subset(mask), rows.without(mask)
    assert part.engine == left.engine == ("dense" if gathered else "dask")
    assert_array_equal(part.origin, rows.origin)
    W, offset = random_stack(3, X.shape[1], 2), np.zeros((3, 2))
    alone = DenseRows(X, origin=rows.origin).subset(mask)
    assert_close(part.quartic(W, offset).weighted, alone.quartic(W, offset).weighted)
    assert_same_rows(left, X[~mask])


@on_any_scheduler
def test_a_fold_is_added_where_the_rows_lie() -> None:
    X = planted()[:, :6]
    rows = open_rows(Reader.learn(in_chunks(100)(X))[1], engine="moment_tensor")
    W, offset = random_stack(4, 6, 2), np.full((4, 2), 0.2)
    assert_close(rows.quartic(W, offset).weighted, DenseRows(X).quartic(W, offset).weighted)


# --- fits -------------------------------------------------------------------------------------------------------------


def assert_same_fit(model: IMAPCE, dense: IMAPCE) -> None:
    """Every fitted attribute but the name of the engine and, where B is the same up to rounding, the search's last
    rounds, which rounding decides.
    """
    mine, theirs = ({name: value for name, value in vars(one).items() if name.endswith("_")} for one in (model, dense))
    assert mine.keys() == theirs.keys()
    of_the_search = set() if dense.effect_ is None else {"n_evaluations_", "n_iter_", "trace_"}
    for name in mine.keys() - {"engine_"} - of_the_search:
        assert_same(mine[name], theirs[name], name)


def assert_same(mine: Any, theirs: Any, name: str) -> None:
    assert type(mine) is type(theirs), name
    if isinstance(mine, (list, tuple)):
        assert len(mine) == len(theirs), name
        for one, other in zip(mine, theirs, strict=True):
            assert_same(one, other, name)
    elif isinstance(mine, dict):
        assert_same(list(mine.items()), list(theirs.items()), name)
    elif isinstance(mine, (Optimum, Reader, Trace, Encoding, Effect, LabelCode)):
        for part, other in vars(theirs).items():
            assert_same(_up_to_rotation(part, vars(mine)[part]), _up_to_rotation(part, other), f"{name}.{part}")
    elif isinstance(mine, str):
        # What is told of the gradient is rounding where a start converged to the last digit.
        assert re.sub(r"gradient \S+", "", mine) == re.sub(r"gradient \S+", "", theirs), name
    elif (isinstance(mine, np.ndarray) and mine.dtype.kind == "f") or isinstance(mine, float):
        # What a view keeps counts neighbours; one of a few hundred thousand changes places where two are as far.
        atol = 1e-5 if name.endswith(".kept") else 1e-6
        assert_allclose(mine, theirs, rtol=1e-6, atol=atol, err_msg=name, equal_nan=True)
    else:
        assert_array_equal(mine, theirs, err_msg=name)


def _up_to_rotation(name: str, value: Any) -> Any:
    """The projection on a plane instead of two axes of it: those of a path are in no fixed rotation."""
    return value.T @ value if name == "components" else value


def both(X: np.ndarray, prior: Any, held: Any = None, *, held_prior: Any = None, **settings: Any) -> tuple[IMAPCE, ...]:
    settings = {"random_state": 0, **settings}
    held = in_chunks(100)(X) if held is None else held
    model = IMAPCE(**settings).fit(held, prior=prior if held_prior is None else held_prior)
    dense = IMAPCE(**settings).fit(X, prior=prior)
    assert angle_between(model.components_, dense.components_) < 1e-6
    return model, dense


PRIORS: dict[str, Any] = {
    "nothing": None,
    "attributes": Attributes([0, 3]),
    "erased attributes": Attributes([0, 3], erase=True),
    "subset": Subset(np.arange(900) % 3 == 0),
    "samples": Samples(planted(400, seed=1)),
    "labels": Labels(np.array(["a", "b", "c"])[np.arange(900) % 3]),
    "a list": [Attributes([1]), Subset(np.arange(0, 300))],
}


@on_any_scheduler
@pytest.mark.parametrize("settings", [{}, {"alpha": 1.0, "mu": "paper"}], ids=["auto", "given"])
@pytest.mark.parametrize("prior", PRIORS)
def test_every_fitted_attribute_is_that_of_the_dense_engine(prior: str, settings: dict[str, Any]) -> None:
    model, dense = both(planted(), PRIORS[prior], engine="auto", **settings)
    assert_same_fit(model, dense)


@on_any_scheduler
@pytest.mark.parametrize("kind", ["float32", "uint8", "far from zero"])
def test_a_fit_is_that_of_the_dense_engine_whatever_the_numbers_are(kind: str) -> None:
    # More columns than are folded into a tensor, so that every round goes to the cluster; of few chunks, since a round
    # costs what its tasks cost the scheduler.
    X = KINDS[kind](planted(1200, 33))
    model, dense = both(X, Attributes([0]), in_chunks(400)(X), n_starts=3)
    assert model.engine_ == "dask"
    assert_same_fit(model, dense)


@on_any_scheduler
def test_gross_outliers_are_set_aside_on_the_cluster() -> None:
    X = planted()
    X[[7, 650]] *= 300
    model, dense = both(X, None)
    assert_array_equal(model.outliers_, [7, 650])
    assert_same_fit(model, dense)


@on_any_scheduler
def test_a_background_may_lie_on_the_cluster_and_x_in_memory_and_the_other_way_round() -> None:
    X, background = planted(), planted(600, seed=1)
    held, held_background = in_chunks(100)(X), in_chunks(70)(background)
    for rows, known in ((held, held_background), (X, held_background), (held, background)):
        model, dense = both(X, Samples(background), rows, held_prior=Samples(known))
        assert_same_fit(model, dense)


@on_any_scheduler
def test_labels_and_masks_may_be_dask_s() -> None:
    import dask.array as da

    X = planted()
    y, mask = np.arange(900) % 3, np.arange(900) % 3 == 0
    assert_same_fit(*both(X, Labels(y), held_prior=Labels(da.from_array(y, chunks=100))))
    assert_same_fit(*both(X, y, held_prior=da.from_array(y, chunks=100)))
    assert_same_fit(*both(X, Subset(mask), held_prior=Subset(da.from_array(mask, chunks=100))))


@on_any_scheduler
def test_the_engine_says_what_it_is_and_others_refuse_dask(capsys: pytest.CaptureFixture[str]) -> None:
    held = in_chunks(100)(planted(900, 40))
    model = IMAPCE(alpha=0.0, mu=1.0, random_state=0, verbose=True).fit(held)
    assert model.engine_ == "dask"
    assert "rows lie on a Dask cluster and stay there" in capsys.readouterr().out
    with pytest.raises(TypeError, match=r"engine='dense' reads arrays and X lies on a cluster; use engine='auto'"):
        IMAPCE(engine="dense").fit(held)


@on_any_scheduler
def test_halves_for_stability_are_drawn_on_the_cluster() -> None:
    X = planted()
    model, dense = both(X, None, alpha=0.0, mu=50.0)
    assert_allclose(list(model.stability(in_chunks(100)(X)).values()), list(dense.stability(X).values()), atol=1e-6)


@on_any_scheduler
def test_an_exploration_of_digits_finds_the_same_labels() -> None:
    # Every second column: as many as are not folded into a tensor, in half the rounds.
    X = datasets.load_digits().X[:, ::2]
    mine, theirs = (Exploration(rows, random_state=0) for rows in (in_chunks(900)(X), X))
    mine.run(max_steps=3)
    theirs.run(max_steps=3)
    assert len(theirs.clusters_) >= 2
    assert_array_equal(mine.labels_, theirs.labels_)
    assert [one.name for one in mine.description().clusters] == [one.name for one in theirs.description().clusters]
