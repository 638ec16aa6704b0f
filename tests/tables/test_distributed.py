"""Dask tables and arrays are read where they lie: the columns that pandas gives, and refusals in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dask_clusters import SCHEDULERS, needs_dask, planted
from helpers import angle_between
from imapce import IMAPCE, Attributes, Exploration, Samples
from imapce.baselines import PCA, TSNE
from imapce.comparison import compare
from imapce.errors import ImapceError
from imapce.tables import distributed
from imapce.tables.reader import Reader

pytestmark = [needs_dask, pytest.mark.parametrize("dask_scheduler", SCHEDULERS, indirect=True)]
on_any_scheduler = pytest.mark.usefixtures("dask_scheduler")


def table(n_rows: int = 240) -> Any:
    import pandas as pd

    X = planted(n_rows, 6)
    frame = pd.DataFrame(X, columns=[f"n{i}" for i in range(6)], index=[f"row {i}" for i in range(n_rows)])
    frame["whole"] = np.rint(3 * X[:, 0]).astype(np.int64)
    frame["on"] = X[:, 1] > 0
    frame["colour"] = np.array(["red", "green", "blue"])[np.arange(n_rows) % 3]
    frame["size"] = pd.Categorical(np.array(["s", "m", "l"])[np.arange(n_rows) // 100], ["s", "m", "l", "xl"])
    return frame


def gappy(frame: Any) -> Any:
    """The same table with gaps; the first part of the column of text has nothing else."""
    frame = frame.copy()
    frame.iloc[5:30, 0] = np.nan
    frame.iloc[:60, frame.columns.get_loc("colour")] = None
    frame.iloc[100:130, frame.columns.get_loc("size")] = np.nan
    return frame


def in_parts(frame: Any, npartitions: int = 4) -> Any:
    import dask.dataframe as dd

    return dd.from_pandas(frame, npartitions=npartitions, sort=False)


def with_empty_parts(frame: Any) -> Any:
    """The rows of colour green, and parts of nothing before and between them."""
    import dask.dataframe as dd

    nothing = in_parts(frame.iloc[:20], 1)
    nothing = nothing[nothing["n0"] > 1e9]
    return dd.concat([nothing, in_parts(frame.iloc[:120], 2), nothing, in_parts(frame.iloc[120:], 1)])


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "one part": lambda frame: in_parts(frame, 1),
    "parts": in_parts,
    "many parts": lambda frame: in_parts(frame, 24),
    "empty parts": with_empty_parts,
}


@on_any_scheduler
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("missing", ["error", "mean"])
def test_a_table_is_encoded_as_pandas_is(holder: str, missing: Any) -> None:
    frame = table() if missing == "error" else gappy(table())
    mine, chunks = Reader.learn(HOLDERS[holder](frame), missing=missing)
    theirs, matrix = Reader.learn(frame, missing=missing)
    assert mine.names == theirs.names
    assert mine.encoding.kinds == theirs.encoding.kinds
    assert mine.encoding.categories == theirs.encoding.categories
    assert_allclose(mine.encoding.fill, theirs.encoding.fill, rtol=1e-12)
    assert chunks.shape == matrix.shape
    held = np.concatenate([part.compute() for part in chunks.parts])
    assert_allclose(held, matrix, rtol=1e-12)
    assert [len(part.compute()) for part in chunks.parts] == list(chunks.lengths)


@on_any_scheduler
@pytest.mark.parametrize("holder", ["parts", "empty parts"])
def test_a_fit_and_its_books_are_those_of_pandas(holder: str) -> None:
    frame = table()
    # A given μ takes a tenth of the rounds; the choice of one is held to that of rows in memory in tests/contracts.
    settings: dict[str, Any] = {"random_state": 0, "alpha": 1.0, "mu": "paper"}
    model = IMAPCE(**settings).fit(HOLDERS[holder](frame), prior=Attributes(["colour"]))
    theirs = IMAPCE(**settings).fit(frame, prior=Attributes(["colour"]))
    assert angle_between(model.components_, theirs.components_) < 1e-6
    assert_array_equal(model.feature_names_in_, theirs.feature_names_in_)
    assert_array_equal(model.encoded_feature_names_, theirs.encoded_feature_names_)
    assert model.n_features_in_ == theirs.n_features_in_ == 10
    assert_allclose(model.mean_, theirs.mean_, atol=1e-12)
    assert_allclose(model.loadings()["contribution"], theirs.loadings()["contribution"], atol=1e-9)
    assert model.input_columns == theirs.input_columns


@on_any_scheduler
def test_gaps_are_filled_as_in_memory_and_a_background_with_the_means_of_x() -> None:
    frame, other = gappy(table()), gappy(table()).iloc[::-1]
    settings: dict[str, Any] = {"missing": "mean", "random_state": 0, "alpha": 1.0, "mu": "paper"}
    model = IMAPCE(**settings).fit(in_parts(frame), prior=Samples(in_parts(other.assign(more=1.0))))
    theirs = IMAPCE(**settings).fit(frame, prior=Samples(other.assign(more=1.0)))
    assert angle_between(model.components_, theirs.components_) < 1e-6


@on_any_scheduler
def test_gaps_of_an_array_are_filled_as_in_memory() -> None:
    import dask.array as da

    X = planted()
    X[::7, 2] = np.nan
    X[:100, 3] = np.nan
    held = da.from_array(X, chunks=(100, 4))
    settings: dict[str, Any] = {"missing": "mean", "random_state": 0, "alpha": 1.0, "mu": "paper"}
    model, theirs = IMAPCE(**settings).fit(held), IMAPCE(**settings).fit(X)
    assert angle_between(model.components_, theirs.components_) < 1e-6
    assert_allclose(model.transform(held).compute(), theirs.transform(X), atol=1e-9)


@on_any_scheduler
def test_rows_of_an_exploration_are_called_as_in_the_table() -> None:
    assert_array_equal(Exploration(in_parts(table())).row_ids, table().index)
    assert_array_equal(Exploration(in_parts(table()[["n0", "n1", "n2"]])).row_ids[:2], ["row 0", "row 1"])


@on_any_scheduler
def test_small_chunks_are_put_together_by_their_sizes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import dask.array as da

    X = planted(1000, 10)
    monkeypatch.setattr(distributed, "SMALLEST_CHUNK", 300 * 10 * 8)
    chunks = Reader.learn(da.from_array(X, chunks=(90, -1)))[1]
    assert chunks.lengths == (270, 270, 270, 190)
    assert_array_equal(np.concatenate([part.compute() for part in chunks.parts]), X)


# --- refusals ---------------------------------------------------------------------------------------------------------


def with_value(value: float) -> Any:
    X = planted()
    X[3, 2] = X[700, 5] = value
    return X


def array(X: Any, **how: Any) -> Any:
    import dask.array as da

    return da.from_array(X, chunks=how.pop("chunks", 200), **how)


def sparse_chunks() -> Any:
    from scipy import sparse

    return array(planted()).map_blocks(sparse.csr_array, dtype=float)


def mixed() -> Any:
    """A column that is text in one part and a number in another."""
    return in_parts(table()).map_partitions(lambda part: part.assign(what="a" if part["n0"].iloc[0] > 0 else 1.0))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "NaN": (lambda: array(with_value(np.nan)), r"X must not hold missing values \(NaN\), and 'x2' has 1, 'x5' has 1"),
    "inf": (lambda: array(with_value(-np.inf)), r"inf or -inf is in it \('x2' has 1, 'x5' has 1\)"),
    "text": (lambda: array(np.full((9, 3), "a")), r"X must hold numbers; got an array of text"),
    "objects": (
        lambda: array(planted().astype(object)),
        r"X must hold real numbers; got a dask.array of object\. Conv",
    ),
    "complex": (lambda: array(planted() * 1j), r"X must be real"),
    "dates": (lambda: array(np.zeros((9, 3), dtype="M8[s]")), r"X must hold numbers; got an array of type datetime64"),
    "one dimension": (lambda: array(np.arange(9.0)), r"X must have rows and columns"),
    "no rows": (
        lambda: array(planted())[array(np.zeros(900, dtype=bool))],
        r"X must have rows, and every part of it is",
    ),
    "sparse chunks": (sparse_chunks, r"X must be made of NumPy arrays; got chunks that are csr_array"),
    "few rows": (lambda: array(planted(2)), r"X must have more rows than n_components=2; got 2"),
    "table, NaN": (lambda: in_parts(gappy(table())), r"X must not hold missing values \(NaN\), and 'n0' has 25"),
    "table, inf": (lambda: in_parts(table().assign(far=np.inf)), r"inf or -inf is in it \('far' has 240\)"),
    "table, dates": (lambda: in_parts(table().assign(day=np.datetime64("2020-01-01"))), r"'day' is datetime64"),
    "table, prose": (lambda: in_parts(table().assign(id=table().index)), r"'id' is free text with 240 distinct values"),
    "table, mixed": (mixed, r"'what' is a category in one part and a number in another \(convert it\)"),
    "table, nothing": (lambda: in_parts(table().assign(gone=np.nan)), r"'gone' has only missing values"),
    "table, no rows": (lambda: in_parts(table()).query("n0 > 1e9"), r"X must have rows, and every part of it is empty"),
}


@on_any_scheduler
@pytest.mark.parametrize("fault", REFUSED)
def test_bad_rows_are_refused_in_one_sentence_and_change_nothing(fault: str) -> None:
    make, words = REFUSED[fault]
    model = IMAPCE(random_state=0, alpha=0.0, mu=1.0).fit(planted())
    before = dict(vars(model))
    with pytest.raises(ImapceError, match=words) as caught:
        model.fit(make())
    assert "\n" not in str(caught.value)
    assert vars(model) == before


@on_any_scheduler
def test_other_columns_than_those_of_fit_are_refused_before_anything_is_computed() -> None:
    X, frame = planted(), table()
    model = IMAPCE(random_state=0, alpha=0.0, mu=1.0).fit(array(X))
    with pytest.raises(ValueError, match="X has 5 features, but IMAPCE is expecting 12 features as input"):
        model.transform(array(X[:, :5]))
    with pytest.raises(ValueError, match=r"Samples\(background\) must have the 12 columns of X; got 5"):
        IMAPCE().fit(X, prior=Samples(array(X[:, :5])))
    model = IMAPCE(random_state=0, alpha=0.0, mu=1.0).fit(in_parts(frame))
    with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
        model.transform(in_parts(frame.rename(columns={"n0": "other"})))
    with pytest.raises(TypeError, match="X must be a table with the columns of fit"):
        model.transform(frame.to_numpy())
    with pytest.raises(TypeError, match=r"Samples\(background\) must be a table, as in fit; got a dask.array"):
        IMAPCE().fit(in_parts(frame), prior=Samples(array(X)))


@on_any_scheduler
def test_methods_that_need_all_rows_at_once_refuse_a_cluster() -> None:
    held = array(planted())
    with pytest.raises(
        TypeError, match="X must be in memory for compare, and its rows lie on a cluster; pass a sample"
    ):
        compare(held, methods=["PCA"])
    pytest.importorskip("openTSNE")
    with pytest.raises(TypeError, match="X must be in memory for TSNE"):
        TSNE().fit_transform(held)


@on_any_scheduler
def test_linear_rivals_run_on_a_cluster() -> None:
    X = planted()
    mine, theirs = PCA().fit(array(X)), PCA().fit(X)
    assert angle_between(mine.components_, theirs.components_) < 1e-9
    assert_allclose(mine.transform(array(X)).compute(), theirs.transform(X), atol=1e-9)
