"""The view of all clusters together: the one of the first look in which they are seen best, whatever came after."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

from imapce import IMAPCE, Attributes, Exploration, Labels, Samples, Subset, scan
from imapce.choice.scores import neighbors_agree
from imapce.errors import CancelledError
from sessions import GROUP, NAMES, X


def seen_in(embedding: NDArray, labels: NDArray) -> float:
    """The share of the rows in clusters whose neighbours in a view tell their cluster."""
    inside = labels >= 0
    return float(neighbors_agree(embedding[inside], labels[inside]).mean())


def test_all_clusters_are_seen_in_one_view_of_the_first_look() -> None:
    exploration = Exploration(X, random_state=0)
    first = exploration.propose()
    proposed = exploration.overview()
    assert proposed is first.views[0] or proposed == first.views[0]
    exploration.run()
    overview = exploration.overview()
    np.testing.assert_array_equal(overview.clusters, exploration.labels_)
    np.testing.assert_array_equal(overview.numbers, [cluster.number for cluster in exploration.clusters_])
    assert overview.embedding.shape == (len(X), 2)
    assert overview.optimum.components.tolist() in [view.components.tolist() for view in first.views]
    shares = [seen_in(exploration.coordinates(view), exploration.labels_) for view in first.views]
    assert seen_in(overview.embedding, exploration.labels_) > 0.95
    assert overview.optimum.seen == pytest.approx(max(shares), abs=0.05)
    assert overview.most_distinct == ()


def test_the_clusters_that_were_taken_choose_and_not_those_that_were_found() -> None:
    # Columns 0 and 1 hold four clear corners, which the first view shows; what is taken are the two halves of column 2,
    # which that view cannot tell.
    rng = np.random.default_rng(0)
    corner, half = np.arange(400) % 4, np.arange(400) // 4 % 2
    table = rng.normal(size=(400, 5))
    table[:, :2] += 12 * np.column_stack([corner // 2, corner % 2])
    table[:, 2] += 5 * half
    exploration = Exploration(table, random_state=0)
    first = exploration.propose().views[0]
    exploration.accept(mask=half == 0)
    exploration.accept(mask=half == 1)
    overview = exploration.overview()
    assert seen_in(first.embedding, half) < 0.7
    assert seen_in(overview.embedding, half) > 0.9


def test_it_is_looked_for_once_and_again_after_a_move() -> None:
    exploration = Exploration(X, random_state=0).run()
    overview = exploration.overview()
    assert exploration.overview() is overview
    assert len(exploration.merge([0, 1]).clusters) == 1
    merged = exploration.overview()
    np.testing.assert_array_equal(merged.clusters, exploration.labels_)
    assert set(merged.numbers) == {0, 2, 3}
    exploration.split(0)
    assert exploration.overview().numbers.tolist() == [cluster.number for cluster in exploration.clusters_]
    exploration.undo(2)
    np.testing.assert_array_equal(exploration.overview().embedding, overview.embedding)
    exploration.undo(len(exploration.moves))
    assert exploration.overview().most_distinct == exploration.propose().most_distinct
    exploration.redo(1)
    assert set(exploration.overview().clusters) == {-1, *(cluster.number for cluster in exploration.clusters_)}


def test_a_session_from_a_file_or_another_process_has_the_same(tmp_path: Path) -> None:
    exploration = Exploration(X, prior=Attributes([7]), random_state=0).run()
    overview = exploration.overview()
    exploration.save(tmp_path / "session")
    assert Exploration.load(tmp_path / "session", X).overview() == overview
    assert pickle.loads(pickle.dumps(exploration)).overview() == overview


SESSIONS: dict[str, dict[str, Any]] = {
    "paper": {"method": "paper"},
    "view by view": {"clusterer": "dpgmm"},
    "as they are": {"clusterer": "dpgmm", "refine": False},
    "a background": {"prior": Samples(X[GROUP < 2])},
    "a column explained": {"prior": Attributes([0])},
    "labels explained": {"prior": Labels(GROUP % 2)},
    "a column erased": {"prior": Attributes([0], erase=True)},
    "a column weighed": {"prior": Attributes([0]), "estimator": IMAPCE(alpha=1.0, mu=50.0)},
    "rows known": {"prior": Subset(np.flatnonzero(GROUP == 3))},
    "outliers set aside": {"estimator": IMAPCE(outliers="trim")},
    "three axes": {"estimator": IMAPCE(n_components=3, outliers="keep")},
}


@pytest.mark.parametrize("name", SESSIONS)
def test_every_kind_of_session_has_one(name: str) -> None:
    exploration = Exploration(X, random_state=0, **SESSIONS[name]).run(2, structure="ignore")
    assert exploration.clusters_
    overview = exploration.overview()
    np.testing.assert_array_equal(overview.clusters, exploration.labels_)
    np.testing.assert_allclose(overview.embedding, exploration.coordinates(overview))
    again = Exploration(X, random_state=0, **SESSIONS[name]).run(2, structure="ignore")
    assert again.overview() == overview


def test_a_gross_outlier_that_somebody_took_is_in_its_cluster() -> None:
    far = X.copy()
    far[3] = 1e6
    exploration = Exploration(far, estimator=IMAPCE(outliers="trim"), random_state=0)
    exploration.propose()
    assert exploration.set_aside[3]
    exploration.accept(mask=[3, 7, 11, 15, 19])
    assert exploration.overview().clusters[3] == exploration.labels_[3] >= 0


def test_tables_and_files_have_the_view_of_their_array(tmp_path: Path) -> None:
    expected = Exploration(X, random_state=0).run().overview()
    frame = pd.DataFrame(X, columns=NAMES)
    frame.to_parquet(tmp_path / "rows.parquet")
    for table in (frame, pl.from_pandas(frame), scan(tmp_path / "rows.parquet")):
        overview = Exploration(table, random_state=0).run().overview()
        np.testing.assert_array_equal(overview.clusters, expected.clusters)
        np.testing.assert_allclose(overview.embedding, expected.embedding, atol=1e-6)


def test_rows_of_one_group_have_the_view_proposed() -> None:
    exploration = Exploration(np.random.default_rng(0).normal(size=(80, 5)), random_state=0).run()
    overview = exploration.overview()
    assert overview.embedding.shape == (80, 2)
    assert not len(overview.numbers)


def test_who_cancels_it_loses_nothing() -> None:
    exploration = Exploration(X, random_state=0).run()
    with pytest.raises(CancelledError):
        exploration.overview(cancel=lambda: True)
    assert exploration.overview().numbers.tolist() == [0, 1, 2, 3]


def test_where_all_rows_are_taken_nothing_left_is_split() -> None:
    exploration = Exploration(X, random_state=0).run()
    assert not exploration.labels_.min() < 0
    assert exploration.test() == 1.0
