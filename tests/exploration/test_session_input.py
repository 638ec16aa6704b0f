"""What a session is given: priors, tables of every kind, and arguments that are refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import PCA

from imapce import IMAPCE, Attributes, Exploration, Samples, Subset
from imapce.errors import ImapceError, InvalidTypeError, InvalidValueError
from sessions import GROUP, NAMES, X, consistent, saved_bytes, session

Array = NDArray[np.float64]


# --- what is known at the start ---------------------------------------------------------------------------------------

PRIORS: dict[str, Callable[[], Any]] = {
    "attributes": lambda: Attributes([0]),
    "attributes by mask": lambda: Attributes(np.arange(8) == 3),
    "one attribute": lambda: Attributes(np.int64(2)),
    "samples": lambda: Samples(X[GROUP == 0] + 0.5, weight=2.0),
    "sparse samples": lambda: Samples(sparse.csr_array(X[:30])),
    "subset": lambda: Subset(GROUP == 3),
    "subset by position": lambda: Subset(np.flatnonzero(GROUP == 3), weight=3.0),
    "all": lambda: [Attributes([7]), Samples(X[::2], weight=0.5), Subset([0, 1]), Subset([5], weight=2.0)],
}


@pytest.mark.parametrize("name", PRIORS)
def test_what_is_known_at_the_start_is_kept_through_steps_and_files(name: str, tmp_path: Path) -> None:
    exploration = session(prior=PRIORS[name]())
    exploration.run(max_steps=1)
    exploration.save(tmp_path / "one")
    loaded = Exploration.load(tmp_path / "one", X)
    now, before = loaded.propose().views[0], exploration.propose().views[0]
    assert now.objective == pytest.approx(before.objective, rel=1e-12)
    np.testing.assert_array_equal(loaded.run().labels_, exploration.run().labels_)
    if name != "sparse samples":  # a background comes back dense, so its sums are rounded in another order
        assert saved_bytes(loaded, tmp_path) == saved_bytes(exploration, tmp_path)
    consistent(exploration, len(X))


def test_attributes_and_samples_change_the_views_of_every_step() -> None:
    for prior in (Attributes([4]), Samples(X[GROUP == 0])):
        with_prior, without = session(prior=prior), session()
        for one in (with_prior, without):
            one.accept(mask=GROUP == 0)
        assert with_prior.propose().views[0].objective != pytest.approx(without.propose().views[0].objective, rel=1e-6)


@pytest.mark.parametrize("name", ["subset", "subset by position"])
def test_rows_known_at_the_start_are_never_taken(name: str) -> None:
    exploration = session(prior=PRIORS[name]())
    at_start = GROUP == 3
    np.testing.assert_array_equal(exploration.known, at_start)
    np.testing.assert_array_equal(exploration.propose().unexplored, ~at_start)
    exploration.run()
    assert exploration.steps
    assert (exploration.labels_[at_start] == -1).all()


def test_a_subset_at_the_start_equals_accepting_those_rows_first() -> None:
    known = GROUP == 3
    at_start, accepted = session(prior=Subset(known), random_state=1), session(random_state=1)
    accepted.accept(mask=known)
    assert at_start.propose().views[0].objective == pytest.approx(accepted.propose().views[0].objective, rel=1e-6)


# --- tables and kinds of input ----------------------------------------------------------------------------------------


def test_the_index_of_a_pandas_table_names_the_rows() -> None:
    ids = [f"r{i}" for i in range(len(X))]
    exploration = session(pd.DataFrame(X, columns=NAMES, index=ids)).run(max_steps=1)
    assert exploration.to_frame()["row"].tolist() == ids


def test_given_row_ids_come_back_in_order() -> None:
    ids = np.arange(len(X))[::-1] * 10
    frame = session(row_ids=ids).run(max_steps=1).to_frame()
    np.testing.assert_array_equal(frame["row"], ids)


def test_row_ids_can_be_given_again_on_loading(tmp_path: Path) -> None:
    ids = [f"r{i}" for i in range(len(X))]
    session(row_ids=ids).save(tmp_path / "ids")
    assert Exploration.load(tmp_path / "ids", X, row_ids=ids).to_frame()["row"].tolist() == ids


KINDS: dict[str, tuple[Callable[[], Any], type]] = {
    "array": (lambda: X, pd.DataFrame),
    "pandas": (lambda: pd.DataFrame(X, columns=NAMES), pd.DataFrame),
    "polars": (lambda: pl.DataFrame({n: X[:, i] for i, n in enumerate(NAMES)}), pl.DataFrame),
    "arrow": (lambda: pa.table({n: X[:, i] for i, n in enumerate(NAMES)}), pa.Table),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_result_is_a_table_of_the_kind_given(kind: str) -> None:
    make, expected = KINDS[kind]
    exploration = session(make()).run()
    frame = exploration.to_frame()
    assert isinstance(frame, expected)
    columns = ["row", "cluster", "name", "step", "overlap", "stability", "reason", "imapce0", "imapce1"]
    assert list(frame.column_names if kind == "arrow" else frame.columns) == columns
    np.testing.assert_array_equal(np.asarray(frame["cluster"]), exploration.labels_)
    seen = exploration.coordinates(exploration.overview())
    np.testing.assert_array_equal(np.asarray(frame["imapce1"]), seen[:, 1])
    step, overlap = np.asarray(frame["step"]), np.asarray(frame["overlap"])
    for number, accepted in enumerate(exploration.steps, 1):
        for cluster in accepted.clusters:
            assert (step[cluster.rows] == number).all()
            expected = np.nan if cluster.overlap is None else cluster.overlap
            np.testing.assert_array_equal(overlap[cluster.rows], expected)
    np.testing.assert_array_equal(step == -1, exploration.labels_ == -1)


def test_the_table_before_the_first_step_has_no_view() -> None:
    frame = session().to_frame()
    assert list(frame.columns) == ["row", "cluster", "name", "step", "overlap", "stability", "reason"]
    assert (frame["cluster"] == -1).all()


def test_a_view_of_three_axes_is_explored() -> None:
    exploration = session(estimator=IMAPCE(3, alpha=1.0, mu=50.0, n_starts=3)).run(max_steps=2)
    assert exploration.steps[0].components.shape == (3, 8)
    assert exploration.coordinates(exploration.steps[0]).shape == (len(X), 3)
    assert exploration.to_frame().columns[-1] == "imapce2"
    consistent(exploration, len(X))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
def test_sparse_rows_give_the_labels_of_dense_rows(kind: Callable[[Any], Any]) -> None:
    S = np.where(np.abs(X) < 1.0, 0.0, X)
    np.testing.assert_array_equal(session(kind(S)).run().labels_, session(S).run().labels_)


def test_a_table_with_categories_is_explored_and_names_them() -> None:
    colour = np.array(["red", "green", "blue", "black"])[GROUP]
    table = pd.DataFrame(X[:, 4:], columns=NAMES[4:]).assign(colour=pd.Categorical(colour))
    exploration = session(table)
    exploration.accept(mask=colour == "blue")
    first = exploration.clusters_[0].features[0]
    assert (first.name, first.level, first.inside, first.outside) == ("colour", "blue", 1.0, 0.0)
    consistent(exploration.run(), len(X))


def test_input_and_estimator_are_not_changed() -> None:
    data, estimator = X.copy(), IMAPCE(alpha=1.0, mu=50.0, n_starts=3, random_state=5)
    ids, prior_rows = np.arange(len(X)), np.arange(3)
    session(data, estimator=estimator, row_ids=ids, prior=Subset(prior_rows)).run()
    np.testing.assert_array_equal(data, X)
    np.testing.assert_array_equal(prior_rows, np.arange(3))
    assert estimator.get_params() == IMAPCE(alpha=1.0, mu=50.0, n_starts=3, random_state=5).get_params()
    assert not hasattr(estimator, "components_")
    assert not hasattr(estimator, "_encoding")


def test_the_clusterer_of_views_explores_too() -> None:
    exploration = session(clusterer="dpgmm").run()
    assert exploration.steps
    consistent(exploration, len(X))


# --- bad arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"min_cluster_size": 0}, "min_cluster_size must be at least 1; got 0"),
        ({"min_cluster_size": "x"}, "min_cluster_size must be a whole number or \"auto\"; got 'x'"),
        ({"min_cluster_size": 2.5}, "min_cluster_size must be a whole number; got 2.5"),
        ({"max_clusters": 0}, "max_clusters must be at least 1; got 0"),
        ({"max_clusters": None}, "max_clusters must be a whole number; got None"),
        ({"clusterer": "x"}, "clusterer must be one of 'auto', 'joint', 'dpgmm'; got 'x'"),
        ({"row_ids": [1, 2]}, "row_ids must have one entry per row of X (160); got shape (2,)"),
        ({"random_state": "x"}, "random_state must be None or a whole number; got 'x'"),
        ({"random_state": -1}, "random_state must not be negative; got -1"),
        ({"random_state": True}, "random_state must be None or a whole number; got True"),
        ({"estimator": PCA()}, "estimator must be an IMAPCE; got PCA()"),
        ({"estimator": "x"}, "estimator must be an IMAPCE; got 'x'"),
        ({"estimator": IMAPCE}, "estimator must be an IMAPCE; got <class"),
        ({"estimator": IMAPCE(n_starts=0)}, "n_starts must be at least 1; got 0"),
        ({"prior": "x"}, "prior must be Attributes(positions), labels or another prior where X has no names"),
        ({"prior": Subset([999])}, "Subset(rows) as positions must lie within the 160 rows of X; got 999"),
    ],
)
def test_a_bad_argument_of_the_session_is_one_sentence_that_names_it(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ImapceError) as caught:
        session(**changes)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"clusters": 99}, "clusters must be numbers of clusters in this view (0, 1, 2, 3); got 99"),
        ({"clusters": -1}, "clusters must be numbers of clusters in this view (0, 1, 2, 3); got -1"),
        ({"clusters": True}, "clusters must be numbers of clusters in this view (0, 1, 2, 3); got True"),
        ({"clusters": 1.5}, "clusters must be numbers of clusters in this view (0, 1, 2, 3); got 1.5"),
        ({"clusters": "a"}, "clusters must be numbers of clusters in this view (0, 1, 2, 3); got 'a'"),
        ({"clusters": [0, 0]}, "none twice; got [0, 0]"),
        ({"clusters": []}, "clusters must name at least one cluster"),
        ({"clusters": 0, "mask": [0]}, "accept takes clusters or mask, not both"),
        ({"mask": [True, False]}, "mask must have one entry per row of X (160); got 2"),
        ({"mask": []}, "mask is empty"),
        ({"mask": np.zeros(160, dtype=bool)}, "mask is empty"),
        ({"mask": [160]}, "mask as positions must lie within the 160 rows of X; got 160"),
        ({"mask": [0.5]}, "mask must be a boolean mask or integer positions"),
        ({"mask": [[0], [1]]}, "mask must be one-dimensional"),
        ({"name": 5}, "name must be None or a text; got 5"),
        ({"name": "x" * 201}, "name must have at most 200 letters; got 201"),
        ({"name": "two\nlines"}, "name must be one line of letters that can be printed"),
        ({"name": "\ud800"}, "name must be one line of letters that can be printed"),
        ({"view": 9}, "view must be from 0 to 2 in this step; got 9"),
        ({"view": -1}, "view must be from 0 to 2 in this step; got -1"),
        ({"view": "x"}, "view must be from 0 to 2 in this step; got 'x'"),
    ],
)
def test_a_bad_choice_is_one_sentence_and_changes_nothing(arguments: dict[str, Any], sentence: str) -> None:
    exploration = session()
    with pytest.raises((InvalidValueError, InvalidTypeError)) as caught:
        exploration.accept(**arguments)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert exploration.steps == []


def test_a_prior_that_names_no_column_is_refused_when_a_view_is_asked_for() -> None:
    exploration = session(prior=Attributes(["nope"]))
    with pytest.raises(InvalidValueError, match="nope"):
        exploration.run()
    assert exploration.steps == []


@pytest.mark.parametrize(("place", "sentence"), [(".", "got the folder"), ("nope/new.imapce", "existing folder")])
def test_a_file_that_cannot_be_written_is_refused_before_any_work(place: str, sentence: str) -> None:
    with pytest.raises(InvalidValueError, match=sentence):
        session(path=place)
    exploration = session()
    with pytest.raises(InvalidValueError, match=sentence):
        exploration.keep_in(place)
    assert exploration.path is None


@pytest.mark.parametrize("name", [0, None, b"x0"])
def test_a_column_is_asked_for_by_its_name(name: Any) -> None:
    with pytest.raises(InvalidTypeError, match="name must be the name of a column"):
        session().column(name)
