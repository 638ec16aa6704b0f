"""What is known by the names of columns, in every place that takes a prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from anndata import AnnData

from imapce import IMAPCE, Attributes, Exploration, Given, ImapceError, Labels, Subset
from imapce.anndata import embed, known
from imapce.comparison import compare
from imapce.priors.names import with_names_read
from imapce.tables.named import NamedMatrix

ROWS = 120
BATCH = np.where(np.arange(ROWS) % 2, "x", "y")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    X = np.random.default_rng(0).normal(size=(ROWS, 4))
    X[BATCH == "x", :2] += 4
    return pd.DataFrame(X, columns=list("abcd")).assign(batch=BATCH)


TABLES = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}


@pytest.mark.parametrize("kind", TABLES)
def test_a_name_is_the_column_in_every_kind_of_table(kind: str, frame: pd.DataFrame) -> None:
    X = TABLES[kind](frame)
    by_name = IMAPCE(random_state=0).fit(X, prior="batch")
    as_before = IMAPCE(random_state=0).fit(X, prior=Attributes(["batch"]))
    np.testing.assert_array_equal(by_name.components_, as_before.components_)


def test_names_and_priors_mix_wherever_something_is_known(frame: pd.DataFrame) -> None:
    told = ["batch", "a", Subset([0, 1, 2])]
    exploration = Exploration(frame, prior=told, random_state=0)
    assert exploration.known_names == ["batch", "a"]
    assert exploration.known.sum() == 3
    assert exploration.go_on_with(prior="a").known_names == ["a"]
    as_before = Given(Attributes(["batch", "a"])).fit_transform(frame)
    np.testing.assert_allclose(Given(["batch", "a"]).fit_transform(frame), as_before, atol=1e-12)
    np.testing.assert_allclose(Given().fit_transform(frame, prior=["batch", "a"]), as_before, atol=1e-12)
    assert list(compare(frame, "batch", ["PCA"]).known) == ["batch"]
    model = IMAPCE(random_state=0).fit(frame, prior="batch")
    assert model.stability(frame, prior="batch", n_splits=1)["score"] <= 1.0


def test_a_column_that_can_be_no_feature_is_a_label(frame: pd.DataFrame) -> None:
    (found,) = with_names_read("day", frame.assign(day=pd.date_range("2024-01-01", periods=ROWS)))
    assert isinstance(found, Labels)
    assert found.read_labels(ROWS).title == "day"
    about = pa.table({"batch": BATCH})
    cells = NamedMatrix(frame[list("abcd")].to_numpy(), ("a", "b", "c", "d"), about)
    assert [type(one) for one in with_names_read(["batch", "a"], cells)] == [Labels, Attributes]
    assert IMAPCE(random_state=0).fit(cells, prior="batch").label_names == ("batch",)


def test_names_in_an_anndata_are_columns_of_obs_and_variables(frame: pd.DataFrame) -> None:
    frame = frame.set_axis([f"cell {place}" for place in range(ROWS)])
    cells = AnnData(frame[list("abcd")], obs=frame[["batch"]])
    assert [type(one) for one in known(cells, ["batch", "a"])] == [Labels, Attributes]
    assert embed(cells, prior=["batch", "a"]).effect_ is not None
    assert Exploration.from_anndata(cells, prior=["batch", "a"]).known_names == ["batch", "a"]
    # A column of obs is meant where a variable has its name too.
    cells.obs["a"] = BATCH
    assert isinstance(known(cells, "a")[0], Labels)


def test_texts_one_for_each_row_are_labels(frame: pd.DataFrame) -> None:
    X = frame[list("abcd")]
    by_list = IMAPCE(random_state=0).fit(X, prior=BATCH.tolist())
    np.testing.assert_array_equal(by_list.components_, IMAPCE(random_state=0).fit(X, prior=BATCH).components_)
    some = [None, *BATCH.tolist()[1:]]
    assert with_names_read(some, X) is some


REFUSED: dict[str, tuple[Any, str]] = {
    "misspelled": ("bach", "prior must name a column of X, got 'bach': did you mean 'batch'?"),
    "one of several": (["batch", "agee"], "got 'agee': the columns are 'a', 'b', 'c', 'd', 'batch'."),
    "beside a prior": (["bach", Subset([0])], "did you mean 'batch'?"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_unknown_name_is_told_in_one_sentence(case: str, frame: pd.DataFrame) -> None:
    prior, told = REFUSED[case]
    for call in (
        lambda: IMAPCE().fit(frame, prior=prior),
        lambda: Given(prior).fit(frame),
        lambda: Exploration(frame, prior=prior),
    ):
        with pytest.raises(ImapceError) as problem:
            call()
        assert told in str(problem.value)


def test_an_array_has_no_names(frame: pd.DataFrame) -> None:
    with pytest.raises(ImapceError, match=r"where X has no names of columns, got 'batch': pass X as a table"):
        IMAPCE().fit(frame[list("abcd")].to_numpy(), prior="batch")
