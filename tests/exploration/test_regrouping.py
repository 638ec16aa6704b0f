"""Clusters grouped anew: split, merged, consolidated; labels, tables, files, undo and redo tell the same story."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from archives import repacked, unpacked
from imapce import IMAPCE, Exploration, Subset
from imapce.errors import CancelledError, FileFormatError, InvalidTypeError, InvalidValueError
from imapce.exploration.record import Regrouping
from imapce.plotting import plot_overview, plot_step

GROUP = np.arange(240) % 4
X = np.random.default_rng(0).standard_normal((240, 6)) + 9 * np.eye(4, 6)[GROUP]


def session(data: Any = X, **options: Any) -> Exploration:
    return Exploration(data, **{"random_state": 0, "estimator": IMAPCE(mu=50.0, n_starts=3), **options})


def in_two_halves() -> Exploration:
    """Groups 0 and 1 taken as one cluster, groups 2 and 3 as another."""
    exploration = session()
    exploration.accept(mask=GROUP < 2)
    exploration.accept(mask=GROUP >= 2)
    return exploration


def consistent(exploration: Exploration) -> None:
    labels = exploration.labels_
    for cluster in exploration.clusters_:
        np.testing.assert_array_equal(np.flatnonzero(labels == cluster.number), np.sort(cluster.rows))
    assert set(labels[labels >= 0]) == {cluster.number for cluster in exploration.clusters_}
    assert (exploration.reasons_ != "")[labels < 0].all()
    assert (exploration.reasons_ == "")[labels >= 0].all()
    np.testing.assert_array_equal(np.asarray(exploration.to_frame()["cluster"]), labels)


def test_an_accepted_cluster_is_split_where_it_falls_apart() -> None:
    exploration = in_two_halves()
    split = exploration.split(0)
    assert isinstance(split, Regrouping)
    assert split.words.startswith("Split cluster 0 in pieces of 60 and 60 rows: clear structure: ")
    assert adjusted_rand_score(GROUP[GROUP < 2], exploration.labels_[GROUP < 2]) == 1
    # One piece keeps the number, the other gets the next free one, and no other cluster has another number.
    assert set(exploration.labels_[GROUP < 2]) == {0, 2}
    assert set(exploration.labels_[GROUP >= 2]) == {1}
    assert exploration.origins_ == [None, 2, None]
    assert split.clusters[0].features[0].name in {"x0", "x1"}
    consistent(exploration)


def test_a_cluster_of_one_piece_stays_whole_unless_structure_is_ignored() -> None:
    exploration = session()
    exploration.accept(mask=GROUP == 1)
    before, labels = exploration.moves, exploration.labels_
    with pytest.raises(InvalidValueError) as refused:
        exploration.split(0)
    assert re.fullmatch(
        r"cluster 0 stays whole: no structure beyond chance: .+; the best split would be 2 clusters of \d+ and \d+ "
        r'rows: split\(cluster, structure="ignore"\) splits it so\.',
        str(refused.value),
    )
    assert exploration.moves == before
    np.testing.assert_array_equal(exploration.labels_, labels)
    split = exploration.split(0, structure="ignore")
    assert len(split.clusters) == 2
    assert "no structure beyond chance" in split.words
    assert all(f"{cluster.size}" in str(refused.value) for cluster in split.clusters)
    consistent(exploration)


def test_a_proposed_cluster_is_split_and_proposals_keep_its_pieces() -> None:
    blocks = np.repeat([0, 1], [180, 60])
    data = np.random.default_rng(1).standard_normal((240, 6)) + 12 * np.eye(2, 6)[blocks]
    exploration = session(data)
    before = exploration.propose()
    assert len(before.distinctness) == 2
    split = exploration.split(0, proposed=True, structure="ignore")
    after = exploration.propose()
    assert len(after.distinctness) == 3
    np.testing.assert_array_equal(after.embedding, before.embedding)
    assert exploration.clusters_ == []
    np.testing.assert_array_equal(np.sort(np.concatenate(split.pieces)), np.flatnonzero(before.clusters == 0))
    exploration.run()
    assert sorted(cluster.size for cluster in exploration.clusters_) == sorted(
        [60, *(len(piece) for piece in split.pieces)]
    )
    consistent(exploration)
    exploration.undo(len(exploration.moves))
    assert exploration.propose() == before


def test_pieces_of_a_view_stay_apart_where_clusters_are_found_view_by_view() -> None:
    exploration = session(clusterer="dpgmm")
    found = len(exploration.propose().distinctness)
    rows = [piece.tolist() for piece in exploration.split(0, proposed=True, structure="ignore").pieces]
    shown = exploration.propose().clusters
    assert len(exploration.propose().distinctness) == found + len(rows) - 1
    assert sorted(rows) == sorted(
        np.flatnonzero(shown == number).tolist() for number in {shown[one[0]] for one in rows}
    )


def test_merged_clusters_have_the_lowest_number_and_the_others_keep_theirs() -> None:
    exploration = session().run()
    before = exploration.labels_
    merged = exploration.merge([3, 1])
    assert merged.words == "Merged clusters 1 and 3 into one of 120 rows."
    np.testing.assert_array_equal(exploration.labels_, np.array([0, 1, 2, 1])[before])
    assert [cluster.number for cluster in exploration.clusters_] == [0, 1, 2]
    consistent(exploration)


def test_consolidating_joins_overlapping_clusters_and_gives_rows_to_where_they_belong() -> None:
    exploration = session()
    left = np.arange(240) >= 200
    for part in range(8):
        exploration.accept(mask=(np.arange(240) % 8 == part) & ~left)
    done = exploration.consolidate()
    assert done.words.startswith("Consolidated 8 clusters into 4: 0 with 4, 1 with 5, 2 with 6, 3 with 7.")
    labels = exploration.labels_
    assert adjusted_rand_score(GROUP[labels >= 0], labels[labels >= 0]) == 1
    assert (labels[left] >= 0).mean() > 0.8
    assert set(exploration.reasons_[labels < 0]) <= {"far from every cluster"}
    assert "left over went to the cluster" in done.words
    consistent(exploration)


@pytest.mark.parametrize(
    ("outliers", "reason", "told"),
    [
        ("keep", "far from every cluster", "3 rows are left, no more than min_cluster_size=5"),
        ("trim", "gross outlier, set aside", "3 rows (3 of them gross outliers, set aside) are left"),
    ],
)
def test_a_row_far_from_all_clusters_is_left_and_says_why(outliers: Any, reason: str, told: str) -> None:
    data = X.copy()
    data[:3] += 40
    exploration = session(data, estimator=IMAPCE(mu=50.0, n_starts=3, outliers=outliers))
    for part in range(4):
        exploration.accept(mask=(part == GROUP) & (np.arange(240) >= 3))
    exploration.consolidate()
    assert (exploration.labels_[:3] == -1).all()
    assert str(exploration.stop_reason).startswith(told)
    assert set(exploration.reasons_[:3]) == set(exploration.to_frame()["reason"][:3]) == {reason}


def test_rows_tell_why_they_are_in_no_cluster() -> None:
    exploration = session(prior=Subset(np.arange(6)))
    assert set(exploration.reasons_) == {"known at the start", "not looked at yet"}
    for part in range(4):
        exploration.accept(mask=(part == GROUP) & (np.arange(240) >= 9))
    assert set(exploration.reasons_[6:9]) == {"too few for a cluster"}
    noise = session(np.random.default_rng(0).standard_normal((100, 4))).run()
    assert set(noise.reasons_) == {"one group"}


def test_clusters_that_are_clusters_are_left_alone_and_nothing_is_recorded() -> None:
    exploration = session().run()
    before = exploration.labels_
    assert exploration.consolidate().words == "No two of the 4 clusters overlap."
    np.testing.assert_array_equal(exploration.labels_, before)
    assert exploration.regroupings == []


MOVES: dict[str, Callable[[Exploration], Any]] = {
    "split": lambda one: one.split(0),
    "merge": lambda one: one.merge([0, 1]),
    "consolidate": lambda one: (one.split(0), one.split(1), one.consolidate()),
    "then accept": lambda one: (
        one.undo(),
        one.split(0),
        one.split(int(one.propose().numbers[0]), proposed=True, structure="ignore"),
        one.accept(),
    ),
}


@pytest.mark.parametrize("move", MOVES)
def test_regroupings_are_undone_done_again_saved_and_loaded(move: str, tmp_path: Path) -> None:
    exploration = in_two_halves()
    MOVES[move](exploration)
    consistent(exploration)
    exploration.save(tmp_path / "session")
    loaded = Exploration.load(tmp_path / "session", X)
    assert loaded.moves == exploration.moves
    np.testing.assert_array_equal(loaded.labels_, exploration.labels_)
    states = []
    while exploration.moves:
        states.append((exploration.moves, exploration.labels_))
        exploration.undo()
        consistent(exploration)
    for moves, labels in reversed(states):
        exploration.redo()
        assert exploration.moves == moves
        np.testing.assert_array_equal(exploration.labels_, labels)


def test_regrouping_writes_the_file_of_the_session_and_figures_still_fit(tmp_path: Path) -> None:
    exploration = session(path=tmp_path / "session")
    exploration.accept(mask=GROUP < 2)
    exploration.split(0)
    assert len(Exploration.load(tmp_path / "session", X).clusters_) == 2
    exploration.accept(mask=GROUP == 2)
    plot_step(exploration, 1).draw_without_rendering()
    names = [text.get_text() for text in plot_overview(exploration).axes[0].get_yticklabels()]
    assert names[:3] == ["cluster 0 (regrouped)", "cluster 1 (regrouped)", "cluster 2 (step 2)"]
    exploration.report(tmp_path / "page.html")
    assert "Split cluster 0 in pieces" in (tmp_path / "page.html").read_text()


FORGED: dict[str, tuple[Callable[[dict, dict], Any], str]] = {
    "kind": (lambda head, _: head["steps"][2].update(regrouping="melt"), "of the kind 'melt'"),
    "number": (lambda head, _: head["steps"][2].update(replaced=[7]), "are not there"),
    "lost rows": (lambda _, arrays: arrays.update(step2_cluster0_rows=arrays["step2_cluster0_rows"][:1]), "loses rows"),
    "taken rows": (lambda _, arrays: arrays.update(step2_cluster0_rows=np.array([2, 3])), "not unexplored rows"),
    "pieces": (lambda head, _: head["steps"][2].update(pieces=1), "does not hold a whole"),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_regrouping_is_refused(case: str, tmp_path: Path) -> None:
    change, words = FORGED[case]
    exploration = in_two_halves()
    exploration.split(0)
    exploration.save(tmp_path / "good")
    head, arrays = unpacked(tmp_path / "good")
    change(head, arrays)
    repacked(tmp_path / "bad", head, arrays)
    with pytest.raises(FileFormatError, match=words):
        Exploration.load(tmp_path / "bad", X)


REFUSED: dict[str, tuple[Callable[[Exploration], Any], str]] = {
    "number": (lambda one: one.split(5), "cluster must be among the numbers of accepted clusters (0, 1); got 5."),
    "truth": (lambda one: one.split(True), "got True."),
    "list": (lambda one: one.split([0]), "got [0]."),
    "proposed list": (lambda one: (one.undo(), one.split([0], proposed=True)), "number of one cluster; got [0]."),
    "one": (lambda one: one.merge([1]), "clusters must name at least two clusters and none twice; got [1]."),
    "twice": (lambda one: one.merge([1, 1]), "none twice; got [1, 1]."),
    "no list": (lambda one: one.merge(1), "clusters must be two or more numbers of accepted clusters; got 1."),
    "nothing": (lambda one: one.undo(2).merge([0, 1]), "there are none; accept some first."),
    "nothing at all": (lambda one: one.undo(2).consolidate(), "there are none; accept some first."),
    "small": (
        lambda one: (one.undo(2), one.accept(mask=np.arange(8)), one.split(0)),
        "cluster 0 has 8 rows, and two pieces of at least min_cluster_size=5 need 10; it stays as it is.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_regrouped_is_refused_in_a_sentence(case: str) -> None:
    move, words = REFUSED[case]
    with pytest.raises(InvalidValueError) as caught:
        move(in_two_halves())
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")


def test_rows_that_are_all_alike_cannot_be_split() -> None:
    data = X.copy()
    data[GROUP == 0] = data[0]
    exploration = session(data)
    exploration.accept(mask=GROUP == 0)
    with pytest.raises(InvalidValueError, match="cluster 0 does not fall into pieces of at least min_cluster_size=5"):
        exploration.split(0)
    assert len(exploration.moves) == 1


@pytest.mark.parametrize("move", ["split", "consolidate"])
def test_a_cancelled_regrouping_changes_nothing(move: str) -> None:
    exploration = in_two_halves()
    before = exploration.moves
    with pytest.raises(CancelledError):
        exploration.split(0, cancel=lambda: True) if move == "split" else exploration.consolidate(cancel=lambda: True)
    assert exploration.moves == before


@pytest.mark.parametrize(
    ("names", "kept"), [((None, "B cells"), "B cells"), (("B cells", "B cells"), "B cells"), (("B", "T"), None)]
)
@pytest.mark.parametrize("move", ["merge", "consolidate"])
def test_a_name_outlives_a_regrouping_where_it_is_the_only_one(move: str, names: Any, kept: str | None) -> None:
    exploration = session()
    halves = np.flatnonzero(GROUP == 0)
    for half, name in zip((halves[::2], halves[1::2]), names, strict=True):
        exploration.accept(mask=half, name=name)
    exploration.merge([0, 1]) if move == "merge" else exploration.consolidate()
    assert [cluster.name for cluster in exploration.clusters_] == [kept]
    exploration.undo()
    assert [cluster.name for cluster in exploration.clusters_] == list(names)


@pytest.mark.parametrize("rows", [[9999], [-9999], [0.5], ["a"]])
def test_coordinates_are_asked_for_by_position(rows: Any) -> None:
    exploration = in_two_halves()
    with pytest.raises((InvalidTypeError, InvalidValueError), match="rows must"):
        exploration.coordinates(exploration.steps[0], rows=rows)
    with pytest.raises(InvalidTypeError, match="step must be an accepted step"):
        exploration.coordinates(5)  # type: ignore[arg-type]
    back, first = exploration.coordinates(exploration.steps[0], rows=[-1, 0])
    whole = exploration.coordinates(exploration.steps[0])
    np.testing.assert_allclose([back, first], [whole[-1], whole[0]])
