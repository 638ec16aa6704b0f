"""A cluster has one number from the first look on: taken, undone, split, merged, saved, it stays the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from archives import repacked, unpacked
from imapce import IMAPCE, Attributes, Exploration, Labels
from imapce.errors import FileFormatError, InvalidValueError
from imapce.plotting.overview import plot_overview
from imapce.plotting.steps import plot_proposal, plot_step

SIZES = [100, 70, 50, 30]
GROUP = np.random.default_rng(1).permutation(np.repeat(np.arange(4), SIZES))
X = np.random.default_rng(0).standard_normal((250, 6)) + 9 * np.eye(4, 6)[GROUP]


def session(data: Any = X, **options: Any) -> Exploration:
    return Exploration(data, **{"random_state": 0, **options})


def numbers(exploration: Exploration) -> list[int]:
    return [cluster.number for cluster in exploration.clusters_]


def test_the_first_look_numbers_by_size_and_every_later_one_keeps_that() -> None:
    exploration = session()
    np.testing.assert_array_equal(exploration.propose().clusters, GROUP)
    order = []
    while not exploration.done:
        step = exploration.propose()
        left = exploration.labels_ < 0
        np.testing.assert_array_equal(step.clusters[left], GROUP[left])
        assert step.numbers.tolist() == sorted(set(GROUP[left].tolist()))
        assert len(step.distinctness) == len(step.numbers)
        assert set(step.most_distinct) <= set(step.numbers.tolist())
        accepted = exploration.accept()
        assert tuple(sorted(one.number for one in accepted.clusters)) == tuple(sorted(step.most_distinct))
        order += [one.number for one in accepted.clusters]
    assert sorted(order) == [0, 1, 2, 3]
    assert order != [0, 1, 2, 3]
    np.testing.assert_array_equal(exploration.labels_, GROUP)
    assert [cluster.size for cluster in exploration.clusters_] == SIZES
    np.testing.assert_array_equal(exploration.to_frame()["cluster"], GROUP)
    assert exploration.description().numbers == (0, 1, 2, 3)
    assert [profile.size for profile in exploration.description().clusters] == SIZES


def test_what_was_left_at_a_step_is_what_it_is_described_against() -> None:
    exploration = session()
    exploration.accept(2)
    exploration.accept(1)
    told = exploration.description()
    assert told.numbers == (1, 2)
    assert [profile.left for profile in told.clusters] == [130, 200]


def test_a_cluster_is_taken_by_the_number_it_is_shown_with_in_every_step() -> None:
    exploration = session()
    exploration.accept(1)
    assert exploration.propose().numbers.tolist() == [0, 2, 3]
    with pytest.raises(InvalidValueError, match=r"clusters in this view \(0, 2, 3\); got 1"):
        exploration.accept(1)
    exploration.accept(3)
    np.testing.assert_array_equal(exploration.labels_, np.where(np.isin(GROUP, [1, 3]), GROUP, -1))
    assert "2 clusters (0: 100, 2: 50)" in repr(exploration.propose())


def test_rows_by_hand_get_the_next_free_number_and_whole_clusters_their_own() -> None:
    exploration = session()
    exploration.propose()
    some = np.flatnonzero(GROUP == 0)[:20]
    exploration.accept(mask=some)
    exploration.propose()
    exploration.accept(mask=GROUP == 2)
    assert numbers(exploration) == [2, 4]
    assert set(exploration.labels_[some]) == {4}
    exploration.accept(mask=np.flatnonzero(GROUP == 1)[:9], number=9)
    exploration.accept(mask=np.flatnonzero(GROUP == 1)[9:15])
    assert numbers(exploration) == [2, 4, 9, 10]
    for number, words in ((9, "no accepted cluster has"), (-1, "not negative"), (True, "whole number")):
        with pytest.raises(InvalidValueError, match=words):
            exploration.accept(mask=GROUP == 3, number=number)
    with pytest.raises(InvalidValueError, match="number is for rows by mask"):
        exploration.accept(number=11)


def test_clusters_looked_for_later_do_not_take_the_numbers_of_rows_by_hand() -> None:
    exploration = session()
    exploration.accept(mask=np.flatnonzero(GROUP == 3)[:10])
    assert numbers(exploration) == [0]
    # All rows of the start are clustered, the largest of them being the first after what was given.
    assert exploration.propose().numbers.tolist() == [1, 2, 3, 4]
    exploration.undo()
    assert exploration.propose().numbers.tolist() == [1, 2, 3, 4]


def test_undo_and_redo_restore_numbers() -> None:
    exploration = session().run()
    states = [(exploration.labels_, numbers(exploration))]
    while exploration.moves:
        exploration.undo()
        states.append((exploration.labels_, numbers(exploration)))
        np.testing.assert_array_equal(exploration.propose().clusters, np.where(exploration.known, -1, GROUP))
    for labels, before in reversed(states[:-1]):
        exploration.redo()
        assert numbers(exploration) == before
        np.testing.assert_array_equal(exploration.labels_, labels)


def test_a_split_keeps_the_number_for_the_largest_and_a_merge_the_lowest() -> None:
    exploration = session()
    exploration.accept(3)
    exploration.accept([1, 2])
    merged = exploration.merge([2, 1])
    assert [one.number for one in merged.clusters] == [1]
    assert numbers(exploration) == [1, 3]
    split = exploration.split(1)
    assert [(one.number, one.size) for one in split.clusters] == [(1, 70), (4, 50)]
    # Numbers that were set free are not given again.
    assert exploration.propose().numbers.tolist() == [0]
    exploration.accept()
    assert numbers(exploration) == [0, 1, 3, 4]
    exploration.undo(4)
    assert numbers(exploration) == [3]


def test_pieces_of_a_proposed_cluster_are_numbered_before_they_are_taken() -> None:
    both = np.where(GROUP == 3, 2, GROUP)
    data = X - 9 * np.eye(4, 6)[GROUP] + 9 * np.eye(4, 6)[both]
    exploration = session(data)
    assert exploration.propose().numbers.tolist() == [0, 1, 2]
    split = exploration.split(2, proposed=True, structure="ignore")
    assert split.numbers[0] == 2
    assert split.numbers[1:] == tuple(range(3, 2 + len(split.numbers)))
    shown = exploration.propose()
    assert shown.numbers.tolist() == [0, 1, *split.numbers]
    for number, rows in zip(split.numbers, split.pieces, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(shown.clusters == number), rows)
    exploration.accept(int(split.numbers[1]))
    assert numbers(exploration) == [split.numbers[1]]


def test_consolidating_keeps_the_lowest_numbers() -> None:
    exploration = session()
    exploration.propose()
    for part in (1, 0):
        exploration.accept(mask=np.flatnonzero(GROUP == 0)[part::2])
    exploration.accept(3)
    done = exploration.consolidate()
    assert done.words.startswith("Consolidated 3 clusters into 2: 4 with 5.")
    assert numbers(exploration) == [3, 4]


MOVES: dict[str, Callable[[Exploration], Any]] = {
    "taken": lambda one: one.accept(2),
    "by hand": lambda one: (one.propose(), one.accept(mask=np.arange(9))),
    "split": lambda one: (one.accept([0, 1]), one.merge([0, 1]), one.split(0)),
    "proposed split": lambda one: one.split(0, proposed=True, structure="ignore"),
    "consolidated": lambda one: (one.run(), one.split(0, structure="ignore"), one.consolidate()),
    "view by view": lambda one: one.accept(),
    "other knowledge": lambda one: (one.accept(1), one.go_on_with(prior=Attributes([5])), one.accept()),
}


@pytest.mark.parametrize("case", MOVES)
def test_numbers_are_kept_in_the_file_and_go_on_from_there(case: str, tmp_path: Path) -> None:
    exploration = session(**({"clusterer": "dpgmm"} if case == "view by view" else {}))
    MOVES[case](exploration)
    exploration.save(tmp_path / "s.imapce")
    loaded = Exploration.load(tmp_path / "s.imapce", X)
    assert loaded.moves == exploration.moves
    assert numbers(loaded) == numbers(exploration)
    # By hand first: what is free must be known without a look.
    rows = np.flatnonzero(~exploration.known)[:7]
    if len(rows):
        loaded.accept(mask=rows)
        exploration.accept(mask=rows)
    np.testing.assert_array_equal(loaded.labels_, exploration.labels_)
    np.testing.assert_array_equal(loaded.run().labels_, exploration.run().labels_)


def test_other_knowledge_finds_other_clusters_with_other_numbers() -> None:
    exploration = session()
    exploration.accept(1)
    before = exploration.labels_
    exploration.go_on_with(prior=Attributes([5]))
    assert min(exploration.propose().numbers) >= 2
    np.testing.assert_array_equal(exploration.labels_, before)


def test_what_is_done_again_after_other_knowledge_keeps_its_number_alone() -> None:
    exploration = session()
    exploration.accept(1)
    exploration.undo()
    exploration.go_on_with(prior=Attributes([5]))
    assert exploration.propose().numbers[0] == 0
    exploration.redo()
    assert numbers(exploration) == [1]
    assert 1 not in exploration.propose().numbers


def test_clusters_of_a_view_have_numbers_that_no_taken_cluster_has() -> None:
    exploration = session(clusterer="dpgmm")
    while not exploration.done:
        step = exploration.propose()
        if exploration.done:
            break
        assert not set(step.numbers.tolist()) & set(numbers(exploration))
        # The most distinct comes first, so the numbers of a run follow each other.
        assert min(step.most_distinct) == len(exploration.clusters_)
        exploration.accept()
    assert numbers(exploration) == list(range(len(exploration.clusters_)))


def test_figures_and_reports_tell_the_same_numbers(tmp_path: Path) -> None:
    exploration = session()
    exploration.accept(2)
    exploration.accept(1)
    texts = [text.get_text() for text in plot_overview(exploration).axes[0].get_yticklabels()]
    assert texts[:2] == ["cluster 1 (step 2)", "cluster 2 (step 1)"]
    assert "cluster 2 (50)" in [text.get_text() for text in plot_step(exploration, 0).axes[1].get_legend().texts]
    shown = [text.get_text() for text in plot_proposal(exploration.propose()).axes[0].get_legend().texts]
    assert [text.partition(":")[0] for text in shown[:2]] == ["cluster 0", "cluster 3"]
    exploration.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Cluster 1: 70 rows" in page
    assert "Cluster 2: 50 rows" in page
    assert "Cluster 0" not in page


@pytest.mark.parametrize("erase", [False, True])
def test_the_same_knowledge_gives_the_same_clusters_by_every_door(erase: bool) -> None:
    rng = np.random.default_rng(3)
    make = np.array(["audi", "ford", "seat"])[rng.integers(0, 3, 300)]
    kind = np.repeat([0, 1], [180, 120])
    data = rng.standard_normal((300, 4)) + 5 * kind[:, None] * [1, 1, 0, 0] + 5 * (make == "ford")[:, None]
    table = pd.DataFrame(data, columns=list("abcd"))
    as_label = session(table, prior=Labels(pd.Series(make, name="make"), erase=erase)).run()
    as_column = session(table.assign(make=pd.Categorical(make)), prior=Attributes(["make"], erase=erase)).run()
    np.testing.assert_array_equal(as_label.labels_, as_column.labels_)
    np.testing.assert_array_equal(as_label.labels_ >= 0, True)
    assert np.mean(as_label.labels_ == kind) > 0.98


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_without_numbers_opens_with_those_of_acceptance(tmp_path: Path) -> None:
    exploration = session()
    for number in (3, 1, 2):
        exploration.accept(number)
    exploration.merge([1, 3])
    exploration.save(tmp_path / "new")
    header, arrays = unpacked(tmp_path / "new")
    header["version"] = 1
    for name in ("numbers", "method", "explained"):
        del header[name]
    for step in header["steps"]:
        step.pop("numbers", None)
        for cluster in step["clusters"]:
            del cluster["number"]
    # As it was told then: by place, and the places were those of acceptance.
    header["steps"][3]["replaced"] = [0, 1]
    repacked(tmp_path / "old", header, arrays)
    loaded = Exploration.load(tmp_path / "old", X)
    assert [[one.number for one in step.clusters] for step in loaded.steps] == [[0], [1], [2]]
    assert numbers(loaded) == [0, 2]
    np.testing.assert_array_equal(loaded.labels_, np.array([-1, 0, 2, 0])[GROUP])
    assert loaded.propose().numbers[0] >= 3
    header["steps"][3]["replaced"] = [-1, 1]
    repacked(tmp_path / "bad", header, arrays)
    with pytest.raises(FileFormatError, match="regroups clusters that are not there"):
        Exploration.load(tmp_path / "bad", X)


FORGED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no number": (lambda head: head["steps"][0]["clusters"][0].pop("number"), "does not hold a whole"),
    "text": (lambda head: head["steps"][0]["clusters"][0].update(number="1"), "a cluster has the number '1'"),
    "truth": (lambda head: head["steps"][0]["clusters"][0].update(number=True), "a cluster has the number True"),
    "negative": (lambda head: head["steps"][0]["clusters"][0].update(number=-1), "a cluster has the number -1"),
    "huge": (lambda head: head["steps"][0]["clusters"][0].update(number=10**30), "a cluster has the number 1"),
    "twice": (lambda head: head["steps"][1]["clusters"][0].update(number=3), "two clusters have the number 3"),
    "backwards": (lambda head: head.update(numbers=[4, 0]), "end at 0 before 4"),
    "three": (lambda head: head.update(numbers=[0, 4, 5]), "does not hold a whole"),
    "pieces": (lambda head: head["steps"][2].update(numbers=[1, 1]), "have no number each"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a session of two steps and a split, to be forged."""
    exploration = session()
    exploration.accept(3)
    exploration.accept(2)
    exploration.split(0, proposed=True, structure="ignore")
    exploration.save(path := tmp_path_factory.mktemp("good") / "s.imapce")
    return path


@pytest.mark.parametrize("case", FORGED)
def test_forged_numbers_are_refused(case: str, good: Path, tmp_path: Path) -> None:
    change, words = FORGED[case]
    header, arrays = unpacked(good)
    change(header)
    repacked(tmp_path / "bad", header, arrays)
    with pytest.raises(FileFormatError, match=words):
        Exploration.load(tmp_path / "bad", X)


# --- the paper's way --------------------------------------------------------------------------------------------------


def test_the_paper_s_way_is_one_switch(tmp_path: Path) -> None:
    paper = session(method="paper").run()
    by_hand = session(estimator=IMAPCE(alpha=1.0, mu="paper", outliers="keep"), clusterer="dpgmm", refine=False).run()
    np.testing.assert_array_equal(paper.labels_, by_hand.labels_)
    assert paper.steps == by_hand.steps
    assert paper.structure is None
    paper.save(tmp_path / "s.imapce")
    loaded = Exploration.load(tmp_path / "s.imapce", X)
    assert (loaded.method, loaded.clusterer, loaded.refine) == ("paper", "dpgmm", False)
    assert loaded.record().parameters == paper.record().parameters
    assert session().method == "auto"
    own = session(method="paper", estimator=IMAPCE(mu=50.0, n_starts=2))
    assert (own.record().parameters["mu"], own.clusterer) == (50.0, "dpgmm")
    for wrong, words in (
        ({"clusterer": "joint"}, "clusterer must be 'dpgmm' with method=\"paper\", whose it is; got 'joint'"),
        ({"refine": True}, "refine must be False with method"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            session(method="paper", **wrong)
    with pytest.raises(InvalidValueError, match="method must be"):
        session(method="papier")


def test_numbers_given_while_a_move_could_be_redone_stay_once_it_is_forgotten() -> None:
    exploration = session()
    exploration.accept(mask=np.arange(12))
    exploration.undo()
    exploration.propose()
    exploration.accept()
    numbers, clusters = exploration.propose().numbers, exploration.propose().clusters
    exploration.undo().redo()
    np.testing.assert_array_equal(exploration.propose().numbers, numbers)
    np.testing.assert_array_equal(exploration.propose().clusters, clusters)
