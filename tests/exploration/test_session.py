"""The session: what is proposed, accepted, taken back and kept."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import imapce
from imapce import IMAPCE, Exploration, Subset
from imapce.errors import ImapceError, InvalidValueError
from imapce.exploration import record
from imapce.exploration.record import AcceptedStep, Move, TakenCluster, clusters_after
from sessions import GROUP, X, consistent, planted, saved_bytes, session

Array = NDArray[np.float64]
# That a run goes through, of all modules; three of them say in words what was taken.
MOST_FILES = 44


# --- the same answer however it is asked for --------------------------------------------------------------------------


def test_the_planted_groups_are_found() -> None:
    exploration = session().run()
    first = exploration.clusters_[0]
    share = np.bincount(GROUP[first.rows], minlength=4) / first.size
    assert share.max() > 0.95
    assert exploration.done


def test_the_same_seed_gives_the_same_labels_twice() -> None:
    np.testing.assert_array_equal(session().run().labels_, session().run().labels_)


def test_labels_do_not_depend_on_the_number_of_threads() -> None:
    labels = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            labels.append(session(estimator=IMAPCE(alpha=1.0, mu=50.0, n_starts=3, engine="dense")).run().labels_)
    np.testing.assert_array_equal(*labels)


def test_labels_do_not_depend_on_the_engine() -> None:
    labels = [
        session(estimator=IMAPCE(alpha=1.0, mu=50.0, n_starts=3, engine=engine)).run().labels_
        for engine in ("dense", "moment_tensor")
    ]
    np.testing.assert_array_equal(*labels)


def test_a_session_saved_halfway_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    at_once = session().run()
    assert len(at_once.steps) >= 2
    session().run(max_steps=1).save(tmp_path / "half")
    resumed = Exploration.load(tmp_path / "half", X).run()
    np.testing.assert_array_equal(resumed.labels_, at_once.labels_)
    assert saved_bytes(resumed, tmp_path) == saved_bytes(at_once, tmp_path)


def test_a_seed_that_was_drawn_is_kept_in_the_file(tmp_path: Path) -> None:
    exploration = session(random_state=None)
    exploration.save(tmp_path / "drawn")
    loaded = Exploration.load(tmp_path / "drawn", X)
    assert loaded.random_state == exploration.random_state
    np.testing.assert_array_equal(loaded.run().labels_, exploration.run().labels_)


# --- propose ----------------------------------------------------------------------------------------------------------


def test_proposing_changes_nothing_and_asking_again_gives_the_same_step(tmp_path: Path) -> None:
    exploration = session().run(max_steps=1)
    before = saved_bytes(exploration, tmp_path)
    step = exploration.propose()
    assert step.clusters.max() >= 0
    assert exploration.propose() is step
    assert saved_bytes(exploration, tmp_path) == before


def test_a_proposal_describes_the_unexplored_rows_only() -> None:
    exploration = session().run(max_steps=1)
    step = exploration.propose()
    np.testing.assert_array_equal(step.unexplored, exploration.labels_ == -1)
    assert (step.clusters[~step.unexplored] == -1).all()
    assert step.embedding.shape == (len(X), 2)
    assert step.number == 2
    assert step.clustered_from == f"Clustered all {int(step.unexplored.sum())} unexplored rows."
    assert set(step.most_distinct) <= set(step.numbers.tolist())


def test_the_embedding_is_the_view_of_an_estimator_fitted_on_the_same_rows() -> None:
    exploration = session(estimator=IMAPCE(alpha=1.0, mu=50.0, n_starts=10))
    exploration.run(max_steps=1)
    known = exploration.known
    step = exploration.propose()
    model = IMAPCE(alpha=1.0, mu=50.0, n_starts=10, random_state=3).fit(X, prior=Subset(known))
    assert step.views[0].objective == pytest.approx(model.objective_, rel=1e-6)


# --- accept -----------------------------------------------------------------------------------------------------------


def test_accepting_without_a_choice_takes_the_most_distinct_clusters() -> None:
    exploration = session()
    step = exploration.propose()
    accepted = exploration.accept()
    assert isinstance(accepted, AcceptedStep)
    assert exploration.steps == [accepted]
    for cluster, number in zip(accepted.clusters, step.most_distinct, strict=True):
        np.testing.assert_array_equal(cluster.rows, np.flatnonzero(step.clusters == number))
        assert cluster.distinctness == step.distinctness[number]
        assert cluster.overlap == step.overlap[number] == np.exp(-step.distinctness[number])
        assert cluster.chosen == "automatic"


def test_accepting_by_mask_takes_the_rows_that_accepting_by_cluster_takes() -> None:
    by_cluster, by_mask, by_position = session(), session(), session()
    mask = by_cluster.propose().clusters == 1
    by_cluster.accept(1)
    by_mask.accept(mask=mask)
    by_position.accept(mask=np.flatnonzero(mask)[::-1])
    # A cluster keeps the number it was shown with; rows of a session where none was shown get the first.
    np.testing.assert_array_equal(by_cluster.labels_, np.where(mask, 1, -1))
    np.testing.assert_array_equal(by_mask.labels_, np.where(mask, 0, -1))
    np.testing.assert_array_equal(by_position.labels_, by_mask.labels_)
    assert by_mask.clusters_[0].distinctness is None
    assert by_cluster.clusters_[0].distinctness is not None
    assert by_mask.clusters_[0].overlap is None
    assert by_mask.clusters_[0].features == by_cluster.clusters_[0].features
    assert {one.clusters_[0].chosen for one in (by_cluster, by_mask, by_position)} == {"hand"}


def test_named_clusters_are_accepted_together_with_their_numbers() -> None:
    exploration = session()
    clusters = exploration.propose().clusters
    accepted = exploration.accept([2, 0])
    np.testing.assert_array_equal(exploration.labels_, np.where(np.isin(clusters, [0, 2]), clusters, -1))
    assert [cluster.number for cluster in accepted.clusters] == [2, 0]
    assert [cluster.number for cluster in exploration.clusters_] == [0, 2]
    assert len(exploration.steps) == 1


def test_another_optimum_can_be_accepted_from() -> None:
    exploration = session()
    step = exploration.propose()
    assert len(step.views) > 1
    other = step.views[1]
    assert other.objective > step.views[0].objective
    assert not other.looked_at
    accepted = exploration.accept(view=1)
    exploration.undo()
    other = exploration.cluster(view=1)
    assert exploration.propose().views[1] == other
    np.testing.assert_array_equal(accepted.components, other.components)
    assert (accepted.view, accepted.objective, accepted.kurtosis) == (1, other.objective, other.kurtosis)
    np.testing.assert_array_equal(accepted.clusters[0].rows, np.flatnonzero(other.clusters == other.most_distinct[0]))
    np.testing.assert_array_equal(exploration.coordinates(accepted), other.embedding)


def test_accepted_rows_leave_the_next_view_and_become_its_prior() -> None:
    exploration = session()
    accepted = exploration.accept()
    step = exploration.propose()
    assert not step.unexplored[accepted.clusters[0].rows].any()
    np.testing.assert_allclose(step.mean, X[step.unexplored].mean(axis=0), atol=1e-10)


def test_the_planted_feature_of_a_cluster_comes_first_with_its_sign() -> None:
    for group in range(4):
        exploration = session()
        exploration.accept(mask=group == GROUP)
        first = exploration.clusters_[0].features[0]
        assert (first.name, first.difference > 1.5) == (f"x{group}", True)
    exploration = session(-X)
    exploration.accept(mask=GROUP == 2)
    first = exploration.clusters_[0].features[0]
    assert (first.name, first.difference < -1.5) == ("x2", True)


def test_features_are_against_all_other_rows_also_late_in_a_session() -> None:
    exploration = session()
    exploration.accept(mask=GROUP == 0)
    exploration.accept(mask=GROUP == 1)
    found = exploration.clusters_[1].features
    inside, outside = X[GROUP == 1].mean(axis=0), X[GROUP != 1].mean(axis=0)
    assert sorted(f.name for f in found) == [f"x{j}" for j in range(X.shape[1])]
    for feature in found:
        j = int(feature.name[1:])
        told = (feature.inside, feature.outside, feature.difference)
        assert told == pytest.approx((inside[j], outside[j], (inside[j] - outside[j]) / X[:, j].std()), rel=1e-9)
    weaker = [f.strength for f in found if not f.told]
    assert found[0].told
    assert weaker == sorted(weaker, reverse=True)
    assert exploration.clusters_[1].words == ", ".join(f.words for f in found if f.told)


def test_rows_that_are_known_cannot_be_taken_again() -> None:
    exploration = session(prior=Subset([3]))
    exploration.accept(mask=[5, 6])
    labels = exploration.labels_
    for again in ([6, 7], [3]):
        with pytest.raises(InvalidValueError, match=rf"mask must name unexplored rows only; 1 .* row {again[0]}\."):
            exploration.accept(mask=again)
    np.testing.assert_array_equal(exploration.labels_, labels)


def test_coordinates_of_a_step_are_the_embedding_that_was_proposed() -> None:
    exploration = session()
    embeddings = []
    while not exploration.done and exploration.propose().most_distinct:
        embeddings.append(exploration.propose().embedding)
        exploration.accept()
    assert len(embeddings) >= 2
    for step, embedding in zip(exploration.steps, embeddings, strict=True):
        np.testing.assert_array_equal(exploration.coordinates(step), embedding)


# --- undo and redo ----------------------------------------------------------------------------------------------------


def test_undo_restores_every_earlier_state_and_redo_every_later_one(tmp_path: Path) -> None:
    exploration = session()
    states = [saved_bytes(exploration, tmp_path)]
    while not exploration.done and exploration.propose().most_distinct:
        exploration.accept()
        states.append(saved_bytes(exploration, tmp_path))
    last = len(states) - 1
    assert last >= 3
    for number in reversed(range(last)):
        assert saved_bytes(exploration.undo(), tmp_path) == states[number]
    for number in range(1, last + 1):
        assert saved_bytes(exploration.redo(), tmp_path) == states[number]
    for _ in range(3):
        assert saved_bytes(exploration.undo(last), tmp_path) == states[0]
        assert saved_bytes(exploration.redo(last - 1), tmp_path) == states[last - 1]
        assert saved_bytes(exploration.redo(), tmp_path) == states[last]


def test_a_step_that_was_undone_is_proposed_again_as_it_was() -> None:
    exploration = session().run(max_steps=1)
    before = exploration.propose()
    exploration.accept()
    after = exploration.undo().propose()
    np.testing.assert_array_equal(after.embedding, before.embedding)
    np.testing.assert_array_equal(after.clusters, before.clusters)


def test_undo_and_redo_go_no_further_than_there_are_steps() -> None:
    exploration = session()
    with pytest.raises(InvalidValueError, match=r"undo\(steps\) can go back 0 steps; got 1"):
        exploration.undo()
    exploration.accept()
    with pytest.raises(InvalidValueError, match="can go back 1 step; got 2"):
        exploration.undo(2)
    with pytest.raises(InvalidValueError, match=r"redo\(steps\) can go forward 0 steps; got 1"):
        exploration.redo()
    for bad in (0, -1, "x", True):
        with pytest.raises(ImapceError, match="steps must be"):
            exploration.undo(bad)  # type: ignore[arg-type]
    assert len(exploration.steps) == 1


def test_accepting_something_else_forgets_what_was_undone() -> None:
    exploration = session().run(max_steps=1).undo()
    exploration.accept(mask=[0, 1, 2])
    with pytest.raises(InvalidValueError, match="can go forward 0 steps"):
        exploration.redo()


SMALL, _ = planted(60, 3, 4)
MOVES = st.one_of(st.just("auto"), st.just("undo"), st.just("redo"), st.integers(0, 2**31))


@given(st.lists(MOVES, max_size=7), st.booleans())
def test_any_sequence_of_moves_keeps_every_row_once(moves: list[str | int], subset: bool) -> None:
    prior = Subset([1, 2, 3]) if subset else None
    exploration = session(SMALL, prior=prior, min_cluster_size=5, estimator=IMAPCE(alpha=1.0, mu=50.0, n_starts=2))
    history: list[NDArray[np.intp]] = [exploration.labels_]
    position = 0
    for move in moves:
        if move in ("undo", "redo"):
            target = position + (1 if move == "redo" else -1)
            if not 0 <= target < len(history):
                continue
            getattr(exploration, str(move))()
            position = target
            np.testing.assert_array_equal(exploration.labels_, history[position])
        else:
            if exploration.done or (~exploration.known).sum() <= 2:
                continue
            if move == "auto":
                if not exploration.propose().most_distinct:
                    assert exploration.done
                    continue
                exploration.accept()
            else:
                left = np.flatnonzero(~exploration.known)
                rng = np.random.default_rng(int(move))
                exploration.accept(mask=rng.choice(left, rng.integers(1, len(left) // 2 + 1), replace=False))
            position += 1
            history[position:] = [exploration.labels_]
        consistent(exploration, len(SMALL))
        assert len(exploration.steps) == position
        if subset:
            assert (exploration.labels_[1:4] == -1).all()
            assert exploration.known[1:4].all()


# --- computed once ----------------------------------------------------------------------------------------------------


def test_results_are_computed_once_for_every_move(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[int] = []

    def counting(moves: Iterable[Move]) -> list[TakenCluster]:
        asked.append(len(tuple(moves)))
        return clusters_after(moves)

    monkeypatch.setattr(record, "clusters_after", counting)
    exploration = session(path=tmp_path / "session.imapce")
    for n_moves in (1, 2):
        exploration.propose()
        exploration.accept()
        for read in (lambda: exploration.labels_, lambda: exploration.clusters_, lambda: exploration.origins_):
            assert len(read()) > 0
        exploration.to_frame(), exploration.describe(exploration.labels_ >= 0), exploration.description()
        exploration.report(tmp_path / "report.html")
        assert exploration.stability_.shape == (len(exploration.clusters_),)
        assert f"{n_moves} step" in repr(exploration)
        assert (exploration.reasons_ == "").any()
    exploration.merge([cluster.number for cluster in exploration.clusters_[:2]])
    exploration.undo()
    assert len(exploration.clusters_) == len(np.unique(exploration.labels_[exploration.labels_ >= 0]))
    # Once for nothing, one, two and three moves, and once more for the two that undo goes back to.
    assert asked == [0, 1, 2, 3, 2]


def test_a_run_walks_through_few_files() -> None:
    house, entered = str(Path(imapce.__file__).parent), set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(house):
            entered.add(frame.f_code.co_filename)

    exploration, before = Exploration(X, random_state=0), sys.getprofile()
    sys.setprofile(note)
    try:
        exploration.run()
    finally:
        sys.setprofile(before)
    assert len(exploration.steps) >= 2
    assert len(entered) <= MOST_FILES, sorted(entered)


def test_what_is_given_out_cannot_change_the_session() -> None:
    exploration = session().run(max_steps=1)
    labels, known = exploration.labels_, exploration.known
    exploration.labels_[:] = 7
    exploration.known[:] = False
    exploration.clusters_.clear()
    exploration.steps.clear()
    np.testing.assert_array_equal(exploration.labels_, labels)
    np.testing.assert_array_equal(exploration.known, known)
    assert len(exploration.clusters_) == len(exploration.steps) == 1


def test_clusters_with_nothing_to_merge_are_consolidated_and_rows_far_from_all_are_told() -> None:
    data = X.copy()
    data[5], data[17] = 1e4, -1e4
    exploration = session(data, estimator=IMAPCE(n_starts=3)).run()
    words = exploration.consolidate().words
    assert words.startswith("No two of the 4 clusters overlap.")
    assert "2 rows are far from every cluster." in words
    assert set(exploration.reasons_.tolist()) == {"", "gross outlier, set aside"}
    assert exploration.undo().moves == exploration.steps
