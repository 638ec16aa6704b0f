"""`transform` of a Dask collection is another: nothing is computed before it is asked for, and then it is the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dask_clusters import needs_dask, planted
from imapce import IMAPCE
from imapce.errors import ImapceError

pytestmark = needs_dask


class Counted:
    """Rows that are made when they are asked for, and how often a part of them was."""

    def __init__(self, X: np.ndarray):
        self.X, self.asked = X, 0

    def __call__(self, block_info: Any = None) -> np.ndarray:
        self.asked += 1
        (start, stop), (left, right) = block_info[None]["array-location"]
        return self.X[start:stop, left:right]

    @property
    def array(self) -> Any:
        import dask.array as da

        made = da.map_blocks(self, chunks=((300, 300, 300), (12,)), dtype=float, meta=np.empty((0, 0)))
        self.asked = 0
        return made


@pytest.fixture(autouse=True)
def _in_this_thread() -> Iterator[None]:
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def model() -> IMAPCE:
    return IMAPCE(random_state=0).fit(planted())


def frame(X: np.ndarray) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])], index=np.arange(len(X)) + 1000)


def in_parts(table: Any) -> Any:
    import dask.dataframe as dd

    return dd.from_pandas(table, npartitions=3)


def test_nothing_is_computed_until_it_is_asked_for(model: IMAPCE) -> None:
    import dask.array as da

    X = planted()
    rows = Counted(X)
    view = model.transform(rows.array)
    assert isinstance(view, da.Array)
    assert rows.asked == 0
    assert view.shape == (900, 2)
    assert view.chunks == ((300, 300, 300), (2,))
    assert_allclose(view.compute(), model.transform(X), atol=1e-12)
    assert rows.asked == 3
    assert_allclose(view[:10].compute(), model.transform(X[:10]), atol=1e-12)
    assert rows.asked == 4


def test_rows_of_unknown_number_and_columns_in_chunks_are_shown_too(model: IMAPCE) -> None:
    import dask.array as da

    X = planted()
    held = da.from_array(X, chunks=(200, 5))
    chosen = X[:, 0] > 0
    assert_allclose(model.transform(held).compute(), model.transform(X), atol=1e-12)
    view = model.transform(held[da.from_array(chosen, chunks=200)])
    assert_allclose(view.compute(), model.transform(X[chosen]), atol=1e-12)


def test_fit_transform_is_lazy_and_that_of_the_rows_in_memory() -> None:
    import dask.array as da

    X = planted()
    view = IMAPCE(random_state=0).fit_transform(da.from_array(X, chunks=(250, -1)))
    assert isinstance(view, da.Array)
    assert_allclose(view.compute(), IMAPCE(random_state=0).fit_transform(X), atol=1e-6)


def test_other_views_and_the_way_back_are_lazy(model: IMAPCE) -> None:
    import dask.array as da

    X = planted()
    rows = Counted(X)
    held = rows.array
    one, all_, few = model.transform(held, view=1), model.transform_all(held), model.transform_all(held, most=2)
    back = model.inverse_transform(model.transform(held))
    assert rows.asked == 0
    assert_allclose(one.compute(), model.transform(X, view=1), atol=1e-12)
    assert_allclose(all_.compute(), model.transform_all(X), atol=1e-12)
    assert few.shape == (2, 900, 2)
    assert isinstance(back, da.Array)
    assert_allclose(back.compute(), model.inverse_transform(model.transform(X)), atol=1e-12)
    assert_allclose(model.influence(held), model.influence(X), atol=1e-9)


def test_a_table_gives_an_array_or_by_set_output_a_table_with_its_index() -> None:
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd
    from sklearn import config_context

    table = frame(planted())
    model = IMAPCE(random_state=0).fit(in_parts(table))
    view = model.transform(in_parts(table))
    assert isinstance(view, da.Array)
    assert_allclose(view.compute(), model.transform(table), atol=1e-12)
    with config_context(transform_output="pandas"):
        assert isinstance(model.transform(in_parts(table)), dd.DataFrame)
    model.set_output(transform="pandas")
    for lazy in (model.transform(in_parts(table)), model.fit_transform(in_parts(table))):
        assert isinstance(lazy, dd.DataFrame)
        assert list(lazy.columns) == ["imapce0", "imapce1"]
        pd.testing.assert_frame_equal(lazy.compute(), model.transform(table), atol=1e-6)
    held = IMAPCE(random_state=0).fit(table.to_numpy()).set_output(transform="pandas")
    shown = held.transform(da.from_array(table.to_numpy(), chunks=(300, -1)))
    assert isinstance(shown, dd.DataFrame)
    assert_allclose(shown.compute(), held.transform(table.to_numpy()), atol=1e-12)
    with pytest.raises(ImapceError, match=r'must be "default" or "pandas" for Dask collections; got \'polars\''):
        model.set_output(transform="polars").transform(in_parts(table))


def test_tables_in_memory_go_through_set_output_as_before(model: IMAPCE) -> None:
    import pandas as pd

    X = planted()
    try:
        shown = model.set_output(transform="pandas").transform(X)
        assert isinstance(shown, pd.DataFrame)
        assert list(shown.columns) == ["imapce0", "imapce1"]
    finally:
        model.set_output(transform="default")


def test_what_is_wrong_with_rows_is_told_when_they_are_read(model: IMAPCE) -> None:
    import dask.array as da

    X = planted()
    X[500, 3] = np.nan
    view = model.transform(da.from_array(X, chunks=(300, -1)))
    assert_array_equal(view[:300].compute(), model.transform(planted()[:300]))
    with pytest.raises(ImapceError, match="x3"):
        view.compute()


def test_categories_that_fit_did_not_see_are_met_as_in_memory() -> None:
    table = frame(planted())
    table["colour"] = np.array(["red", "green", "blue"])[np.arange(900) % 3]
    model = IMAPCE(random_state=0, alpha=0.0, mu=1.0).fit(in_parts(table))
    strange = table.assign(colour=table["colour"].replace("red", "violet"))
    with pytest.raises(ImapceError, match="'colour' has the unknown category 'violet'"):
        model.transform(in_parts(strange)).compute()
    with pytest.warns(UserWarning, match="violet"):
        shown = model.transform(in_parts(strange), unknown="ignore").compute()
    with pytest.warns(UserWarning, match="violet"):
        assert_allclose(shown, model.transform(strange, unknown="ignore"), atol=1e-12)


def test_parts_without_rows_give_views_without_rows() -> None:
    table = frame(planted())
    model = IMAPCE(random_state=0, alpha=0.0, mu=1.0).fit(table)
    table["place"] = np.arange(900.0)
    held = in_parts(table)
    chosen = held[held["place"] >= 700].drop(columns="place")
    assert_allclose(model.transform(chosen).compute(), model.transform(table.iloc[700:, :-1]), atol=1e-12)
