"""How a session runs and how it ends."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from imapce import IMAPCE, Exploration, Subset
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.exploration.record import AcceptedStep
from imapce.exploration.steps import Step
from sessions import X, consistent, session

Array = NDArray[np.float64]


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
    assert [step.number for step, _ in seen] == list(range(1, len(exploration.steps) + 1))

    def second_is_enough(step: Step, accepted: AcceptedStep) -> None:
        if step.number == 2:
            raise KeyboardInterrupt

    stopped = session()
    with pytest.raises(KeyboardInterrupt):
        stopped.run(callback=second_is_enough)
    assert len(stopped.steps) == 2
    consistent(stopped, len(X))
    np.testing.assert_array_equal(stopped.run().labels_, exploration.labels_)


@pytest.mark.usefixtures("every_word")
def test_progress_tells_the_share_of_rows_explored_and_changes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[str, float | None]] = []
    labels = session().run(progress=lambda words, share: told.append((words, share))).labels_
    assert capfd.readouterr() == ("", "")
    np.testing.assert_array_equal(labels, session().run().labels_)
    shares = [share for _, share in told]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert 0.4 < shares[-1] < 1.0
    assert {words.split(":")[0] for words, _ in told} >= {"step 1", "step 2", "looking for clusters"}
    with pytest.raises(InvalidTypeError, match="progress must be None, True or a function"):
        session().run(progress="loud")


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
