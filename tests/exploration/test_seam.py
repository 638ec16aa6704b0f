"""What a page needs of a session: plain steps, questions that compute nothing, work that is watched and cancelled."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from imapce import IMAPCE, Attributes, Exploration, Samples, Subset
from imapce.errors import CancelledError, ImapceError, InvalidTypeError, InvalidValueError
from imapce.exploration import steps
from imapce.exploration.session_file import read_session

RNG = np.random.default_rng(0)
GROUP = np.arange(240) % 3
X = RNG.standard_normal((240, 5)) + 9 * np.eye(3, 5)[GROUP]


def session(data: Any = X, **options: Any) -> Exploration:
    return Exploration(data, **{"random_state": 0, "estimator": IMAPCE(n_starts=3), **options})


def test_steps_and_views_are_plain_and_compare_by_value() -> None:
    step = session().propose()
    assert step == session().propose()
    assert pickle.loads(pickle.dumps(step)) == step
    step = session(clusterer="dpgmm").propose()
    assert step != session(X[::-1], clusterer="dpgmm").propose()
    assert step != "step"
    with pytest.raises(TypeError, match="unhashable"):
        hash(step)


def test_whether_it_is_over_is_told_without_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("computed")

    exploration = session()
    exploration.propose(clusters=False)
    monkeypatch.setattr(steps, "cluster_view", refused)
    monkeypatch.setattr(IMAPCE, "solve", refused)
    assert exploration.done is False
    assert exploration.stop_reason is None
    assert session().done is False


def test_a_view_may_come_before_its_clusters() -> None:
    exploration = session()
    first = exploration.propose(clusters=False)
    assert first.embedding.shape == (240, 2)
    with pytest.raises(InvalidValueError, match="clusters of this view were not looked for"):
        _ = first.clusters
    with pytest.raises(InvalidValueError, match="the rows in this view were not computed"):
        _ = first.views[1].embedding
    np.testing.assert_array_equal(exploration.coordinates(first.views[0]), first.embedding)
    found = exploration.cluster()
    assert found == exploration.propose().views[0] == session().propose().views[0]
    with pytest.raises(InvalidValueError, match="view must be from 0 to"):
        exploration.cluster(99)


def test_the_test_stays_with_the_step() -> None:
    exploration = session()
    assert exploration.propose().p_value is None
    assert exploration.test() == exploration.propose().p_value == exploration.accept().p_value


class Stop:
    """A cancel that says no so often, then yes."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("after", [0, 1, 5, 12])
@pytest.mark.parametrize(
    "work",
    [
        lambda exploration, cancel: exploration.propose(cancel=cancel),
        lambda exploration, cancel: exploration.cluster(cancel=cancel),
        lambda exploration, cancel: exploration.accept(cancel=cancel),
        lambda exploration, cancel: exploration.test(cancel=cancel),
    ],
)
def test_cancelled_work_changes_nothing(work: Callable[..., Any], after: int) -> None:
    exploration = session()
    with pytest.raises(CancelledError, match=r"cancelled while .*; nothing was changed"):
        work(exploration, Stop(after))
    assert exploration.steps == []
    assert not exploration.known.any()
    assert exploration.propose() == session().propose()


def test_a_cancelled_run_keeps_what_was_accepted() -> None:
    exploration = session()
    accepted: list[int] = []
    with pytest.raises(CancelledError):
        exploration.run(callback=lambda *_: accepted.append(1), cancel=lambda: bool(accepted))
    assert len(exploration.steps) == 1
    np.testing.assert_array_equal(exploration.run().labels_, session().run().labels_)


@pytest.mark.parametrize(
    ("clusterer", "phases"),
    [
        (
            "joint",
            (
                "looking for clusters",
                "selecting the number of clusters",
                "comparing with null tables",
                "computing the stability of clusters",
            ),
        ),
        ("dpgmm", ("clustering the view", "carrying the clusters")),
    ],
)
@pytest.mark.usefixtures("every_word")
def test_what_is_told_names_every_phase(clusterer: str, phases: tuple[str, ...]) -> None:
    told: list[str] = []
    exploration = session(clusterer=clusterer)

    def progress(words: str, share: float | None) -> None:
        told.append(words)
        assert share is None or 0 <= share <= 1

    exploration.test(progress=progress)
    exploration.accept(progress=progress)
    for phase in ("looking for a view", *phases, "describing", "testing"):
        assert any(phase in words for words in told), phase
    with pytest.raises(InvalidTypeError, match="cancel must be None or a function; got 3"):
        exploration.propose(cancel=3)


def test_any_rows_can_be_described() -> None:
    exploration = session()
    first = exploration.describe(GROUP == 1).features
    assert first[0].name == "x1"
    difference = (X[GROUP == 1, 1].mean() - X[GROUP != 1, 1].mean()) / X[:, 1].std()
    assert first[0].difference == pytest.approx(difference)
    against = exploration.describe(np.flatnonzero(GROUP == 1), against=GROUP == 2)
    assert {feature.name for feature in against.features[:2]} == {"x1", "x2"}
    assert (against.size, against.others) == ((GROUP == 1).sum(), (GROUP == 2).sum())
    exploration.propose()
    assert exploration.feature_names == [f"x{i}" for i in range(5)]
    for wrong, words in ((np.zeros(240, dtype=bool), "rows is empty"), ([999], "rows as positions must lie within")):
        with pytest.raises(ImapceError, match=words):
            exploration.describe(wrong)


def test_a_record_holds_the_whole_session(tmp_path: Path) -> None:
    prior = [Attributes([3]), Samples(RNG.standard_normal((40, 5))), Subset(np.arange(9))]
    exploration = session(prior=prior, path=tmp_path / "s.imapce")
    exploration.accept()
    loaded = Exploration.load(tmp_path / "s.imapce", X)
    assert [one.kind for one in loaded.record().priors] == [Attributes.kind, Samples.kind]
    for part in ("data", "moves", "known_at_start", "parameters", "random_state", "refine", "subset_weight"):
        assert read_part(tmp_path / "s.imapce", part) == read(exploration, part) == read(loaded, part), part


def read(exploration: Exploration, part: str) -> Any:
    return as_plain(getattr(exploration.record(), part))


def read_part(path: Path, part: str) -> Any:
    return as_plain(getattr(read_session(path), part))


def as_plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def test_an_exploration_can_be_pickled_at_any_time() -> None:
    exploration = session()
    exploration.accept()
    exploration.propose()
    again = pickle.loads(pickle.dumps(exploration))
    assert again.test() == exploration.test()
    assert again.cluster(0) == exploration.cluster(0)
    np.testing.assert_array_equal(again.run().labels_, exploration.run().labels_)


def test_a_background_with_a_gross_outlier_is_told_and_clustered() -> None:
    background = np.vstack([RNG.standard_normal((80, 5)), np.full((1, 5), 1e4)])
    step = Exploration(X, prior=Samples(background), estimator=IMAPCE(), random_state=0).propose()
    assert "1 of 81 background rows is a gross outlier and was set aside" in step.stop_reason
    assert step.clusters.max() >= 1
