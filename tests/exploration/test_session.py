"""The session: what is proposed, accepted, taken back and kept, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from imapce import IMAPCE, Attributes, Exploration, Samples, Subset
from imapce.errors import ImapceError, InvalidTypeError, InvalidValueError
from imapce.exploration.record import AcceptedStep
from imapce.exploration.steps import Step

Array = NDArray[np.float64]


def planted(n_rows: int = 160, n_groups: int = 4, n_features: int = 8, seed: int = 0) -> tuple[Array, NDArray[np.intp]]:
    """Groups of equal size; group g has 8 more in column g and noise of unit variance everywhere."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_rows) % n_groups
    X = rng.normal(size=(n_rows, n_features))
    X[:, :n_groups] += 8 * np.eye(n_groups)[group]
    return X, group


X, GROUP = planted()
NAMES = [f"c{i}" for i in range(8)]


def session(data: Any = None, **changes: Any) -> Exploration:
    options: dict[str, Any] = {"estimator": IMAPCE(alpha=1.0, mu=50.0, n_starts=3), "random_state": 0} | changes
    return Exploration(X if data is None else data, **options)


def saved_bytes(exploration: Exploration, folder: Path) -> bytes:
    exploration.save(folder / "state")
    return (folder / "state").read_bytes()


def consistent(exploration: Exploration, n_rows: int) -> None:
    """Every row is taken at most once, none is lost, and labels, clusters, steps and known rows tell one story."""
    taken = [cluster.rows for step in exploration.steps for cluster in step.clusters]
    rows = np.concatenate([*taken, np.empty(0, dtype=np.intp)])
    assert len(set(rows.tolist())) == len(rows)
    labels = exploration.labels_
    assert labels.shape == (n_rows,)
    assert len(exploration.clusters_) == sum(len(step.clusters) for step in exploration.steps) == len(taken)
    expected = np.full(n_rows, -1)
    for number, one in enumerate(taken):
        expected[one] = number
    np.testing.assert_array_equal(labels, expected)
    assert int((labels == -1).sum()) + len(rows) == n_rows


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
    assert step.number == 1
    assert step.clustered_from == f"Clustered all {int(step.unexplored.sum())} unexplored rows."
    assert set(step.most_distinct) <= set(range(len(step.distinctness)))


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
        assert cluster.chosen == "automatic"


def test_accepting_by_mask_takes_the_rows_that_accepting_by_cluster_takes() -> None:
    by_cluster, by_mask, by_position = session(), session(), session()
    mask = by_cluster.propose().clusters == 1
    by_cluster.accept(1)
    by_mask.accept(mask=mask)
    by_position.accept(mask=np.flatnonzero(mask)[::-1])
    np.testing.assert_array_equal(by_mask.labels_, by_cluster.labels_)
    np.testing.assert_array_equal(by_position.labels_, by_cluster.labels_)
    assert by_mask.clusters_[0].distinctness is None
    assert by_cluster.clusters_[0].distinctness is not None
    assert by_mask.clusters_[0].features == by_cluster.clusters_[0].features
    assert {one.clusters_[0].chosen for one in (by_cluster, by_mask, by_position)} == {"hand"}


def test_named_clusters_are_accepted_in_the_order_named() -> None:
    exploration = session()
    clusters = exploration.propose().clusters
    exploration.accept([2, 0])
    np.testing.assert_array_equal(exploration.labels_ == 0, clusters == 2)
    np.testing.assert_array_equal(exploration.labels_ == 1, clusters == 0)
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


def test_features_are_the_standardised_differences_of_means_largest_first() -> None:
    exploration = session()
    step = exploration.propose()
    exploration.accept(mask=GROUP == 1)
    expected = (X[GROUP == 1].mean(axis=0) - X[GROUP != 1].mean(axis=0)) / X.std(axis=0)
    order = np.argsort(-np.abs(expected))
    found = exploration.clusters_[0].features
    assert [f.name for f in found] == [f"x{j}" for j in order]
    np.testing.assert_allclose([f.difference for f in found], expected[order], rtol=1e-9)
    np.testing.assert_allclose([f.loading for f in found], np.linalg.norm(step.components, axis=0)[order], rtol=1e-12)


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
    columns = ["row", "cluster", "step", "distinctness", "reason"]
    columns += [f"step{i}_imapce{j}" for i in range(len(exploration.steps)) for j in range(2)]
    assert list(frame.column_names if kind == "arrow" else frame.columns) == columns
    np.testing.assert_array_equal(np.asarray(frame["cluster"]), exploration.labels_)
    np.testing.assert_array_equal(
        np.asarray(frame["step1_imapce1"]), exploration.coordinates(exploration.steps[1])[:, 1]
    )
    step, distinctness = np.asarray(frame["step"]), np.asarray(frame["distinctness"])
    for number, accepted in enumerate(exploration.steps):
        for cluster in accepted.clusters:
            assert (step[cluster.rows] == number).all()
            assert (distinctness[cluster.rows] == cluster.distinctness).all()
    np.testing.assert_array_equal(step == -1, exploration.labels_ == -1)


def test_the_table_before_the_first_step_has_no_view() -> None:
    frame = session().to_frame()
    assert list(frame.columns) == ["row", "cluster", "step", "distinctness", "reason"]
    assert (frame["cluster"] == -1).all()


def test_a_view_of_three_axes_is_explored() -> None:
    exploration = session(estimator=IMAPCE(3, alpha=1.0, mu=50.0, n_starts=3)).run(max_steps=2)
    assert exploration.steps[0].components.shape == (3, 8)
    assert exploration.coordinates(exploration.steps[0]).shape == (len(X), 3)
    assert "step1_imapce2" in exploration.to_frame().columns
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
    assert ("blue" in first.name, first.difference > 0) == (True, True)
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


def test_the_density_clusterer_explores_too() -> None:
    exploration = session(clusterer="hdbscan").run()
    assert exploration.steps
    consistent(exploration, len(X))


# --- run --------------------------------------------------------------------------------------------------------------


def test_run_stops_after_the_steps_asked_for() -> None:
    exploration = session().run(max_steps=1)
    assert len(exploration.steps) == 1
    assert not exploration.done
    assert len(exploration.run(max_steps=1).steps) == 2
    assert len(session().run(max_steps=0).steps) == 0


def test_the_callback_sees_every_step_and_may_stop_the_run_with_all_kept() -> None:
    seen: list[tuple[Step, AcceptedStep]] = []
    exploration = session().run(callback=lambda step, accepted: seen.append((step, accepted)))
    assert [accepted for _, accepted in seen] == exploration.steps
    assert [step.number for step, _ in seen] == list(range(len(exploration.steps)))

    def second_is_enough(step: Step, accepted: AcceptedStep) -> None:
        if step.number == 1:
            raise KeyboardInterrupt

    stopped = session()
    with pytest.raises(KeyboardInterrupt):
        stopped.run(callback=second_is_enough)
    assert len(stopped.steps) == 2
    consistent(stopped, len(X))
    np.testing.assert_array_equal(stopped.run().labels_, exploration.labels_)


def test_progress_tells_the_share_of_rows_explored_and_changes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[str, float | None]] = []
    labels = session().run(progress=lambda words, share: told.append((words, share))).labels_
    assert capfd.readouterr() == ("", "")
    np.testing.assert_array_equal(labels, session().run().labels_)
    shares = [share for _, share in told]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert 0.4 < shares[-1] < 1.0
    assert {words.split(":")[0] for words, _ in told} >= {"step 0", "step 1", "looking for clusters in all directions"}
    with pytest.raises(InvalidTypeError, match="progress must be None or a function; got True"):
        session().run(progress=True)


# --- how it ends ------------------------------------------------------------------------------------------------------


def words(exploration: Exploration) -> str:
    reason = exploration.stop_reason
    assert reason is not None
    assert exploration.done
    assert reason.endswith(".")
    assert "\n" not in reason
    return reason


def test_fewer_rows_than_a_cluster_end_it_before_it_starts() -> None:
    exploration = session(X[:8], clusterer="dpgmm").run()
    assert exploration.steps == []
    assert words(exploration) == "8 rows are left, no more than min_cluster_size=10; they are outliers."
    assert words(session(X[:4]).run()) == "4 rows are left, no more than min_cluster_size=5; they are outliers."


def test_every_row_taken_ends_it() -> None:
    exploration = session()
    exploration.accept(mask=np.ones(len(X), dtype=bool))
    assert words(exploration) == "Every row is taken."
    np.testing.assert_array_equal(exploration.run().labels_, np.zeros(len(X)))
    with pytest.raises(InvalidValueError, match="nothing can be accepted: 0 rows"):
        exploration.accept()
    with pytest.raises(InvalidValueError, match="nothing can be proposed: 0 rows"):
        exploration.propose()
    assert not exploration.undo().done


def test_a_subset_of_all_rows_ends_it() -> None:
    assert words(session(prior=Subset(np.ones(len(X), dtype=bool))).run()) == "Every row is taken."


def test_no_cluster_of_the_smallest_size_ends_it() -> None:
    exploration = session(min_cluster_size=120).run()
    assert exploration.steps == []
    assert words(exploration) == "No cluster of at least 120 rows is in the view; 160 rows stay as outliers."
    with pytest.raises(InvalidValueError, match="no cluster of this view can be taken"):
        exploration.accept()


def test_too_few_rows_for_a_view_end_it_when_clusters_may_be_tiny() -> None:
    exploration = session(min_cluster_size=1)
    exploration.accept(mask=np.arange(2, len(X)))
    assert words(exploration.run()) == "2 rows are left, too few for a view of 2 axes; they are outliers."
    assert (exploration.labels_[:2] == -1).all()


def test_identical_rows_are_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidValueError, match="columns that vary; got 0") as caught:
        session(np.ones((60, 4))).run()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine", ["dense", "moment_tensor"])
@pytest.mark.parametrize("rank", [0, 1])
def test_rows_left_that_do_not_fill_a_view_are_a_cluster_of_all_directions_and_end_views(
    rank: int, engine: str
) -> None:
    rng = np.random.default_rng(0)
    flat = np.tile([0.0, 0.0, 0.0, 5.0], (60, 1)) + rank * rng.normal(size=(60, 1)) * [1.0, 2.0, 0.0, 0.0]
    data = np.vstack([rng.normal(size=(60, 4)) + np.array([10.0, 0.0, 0.0, 0.0]), flat])
    model = IMAPCE(alpha=1.0, mu=50.0, n_starts=3, engine=engine)
    joint = session(data, estimator=model)
    joint.accept(mask=np.arange(60))
    assert words(joint.run()) == "Every row is taken."
    assert joint.clusters_[1].rows.tolist() == list(range(60, 120))
    np.testing.assert_array_equal(joint.steps[1].components, joint.steps[0].components)
    exploration = session(data, estimator=model, clusterer="dpgmm")
    exploration.accept(mask=np.arange(60))
    exploration.run()
    assert words(exploration) == "The 60 rows left do not vary in 2 directions; they stay as outliers."
    with pytest.raises(InvalidValueError, match="directions among the rows to explore"):
        exploration.propose()
    assert len(exploration.steps) == 1
    assert not exploration.undo().done


def test_one_gaussian_blob_ends_in_words() -> None:
    blob = np.random.default_rng(0).normal(size=(200, 5))
    exploration = session(blob).run()
    consistent(exploration, 200)
    words(exploration)


def test_three_clusters_of_a_twentieth_each_end_in_words() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2, 3], [340, 20, 20, 20])
    data = rng.normal(size=(400, 6)) + 15 * np.eye(6)[:4][group] * (group > 0)[:, None]
    exploration = session(data).run()
    words(exploration)
    consistent(exploration, 400)
    assert all(cluster.size >= exploration.min_cluster_size == 5 for cluster in exploration.clusters_)


# --- bad arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"min_cluster_size": 0}, "min_cluster_size must be at least 1; got 0"),
        ({"min_cluster_size": "x"}, "min_cluster_size must be a whole number or \"auto\"; got 'x'"),
        ({"min_cluster_size": 2.5}, "min_cluster_size must be a whole number; got 2.5"),
        ({"max_clusters": 0}, "max_clusters must be at least 1; got 0"),
        ({"max_clusters": None}, "max_clusters must be a whole number; got None"),
        ({"clusterer": "x"}, "clusterer must be one of 'auto', 'joint', 'dpgmm', 'hdbscan'; got 'x'"),
        ({"row_ids": [1, 2]}, "row_ids must have one entry per row of X (160); got shape (2,)"),
        ({"random_state": "x"}, "random_state must be None or a whole number; got 'x'"),
        ({"random_state": -1}, "random_state must not be negative; got -1"),
        ({"random_state": True}, "random_state must be None or a whole number; got True"),
        ({"estimator": PCA()}, "estimator must be an IMAPCE; got PCA()"),
        ({"estimator": "x"}, "estimator must be an IMAPCE; got 'x'"),
        ({"estimator": IMAPCE}, "estimator must be an IMAPCE; got <class"),
        ({"estimator": IMAPCE(n_starts=0)}, "n_starts must be at least 1; got 0"),
        ({"prior": "x"}, "prior must be None, Attributes(columns)"),
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
        ({"clusters": 99}, "clusters must be numbers from 0 to 3 of this view; got 99"),
        ({"clusters": -1}, "clusters must be numbers from 0 to 3 of this view; got -1"),
        ({"clusters": True}, "clusters must be numbers from 0 to 3 of this view; got True"),
        ({"clusters": 1.5}, "clusters must be numbers from 0 to 3 of this view; got 1.5"),
        ({"clusters": "a"}, "clusters must be numbers from 0 to 3 of this view; got 'a'"),
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
