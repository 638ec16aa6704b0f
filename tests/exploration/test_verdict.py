"""Clear, possible or no more than chance: what is shown and taken, what is said of it, and what files keep of it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from archives import repacked, unpacked
from imapce import IMAPCE, Exploration, Samples, Subset
from imapce.clusters.significance import Structure
from imapce.errors import CancelledError, FileFormatError, InvalidValueError
from imapce.exploration import look
from imapce.exploration.verdict import best_split_in_words
from judged import WORDS, judged

GROUP = np.arange(150) % 3
GROUPS = np.random.default_rng(0).standard_normal((150, 4)) + 9 * np.eye(3, 4)[GROUP]
NOISE = np.random.default_rng(0).standard_normal((120, 4))


def session(data: Any = GROUPS, **options: Any) -> Exploration:
    return Exploration(data, **{"random_state": 0, "estimator": IMAPCE(mu=50.0, n_starts=2), **options})


@pytest.fixture
def possible(monkeypatch: pytest.MonkeyPatch) -> None:
    judged(monkeypatch, "possible")


@pytest.fixture
def none(monkeypatch: pytest.MonkeyPatch) -> None:
    judged(monkeypatch, "none")


# --- what is heeded ---------------------------------------------------------------------------------------------------


def test_clear_groups_are_taken_and_the_candidate_is_what_was_taken() -> None:
    exploration = session().run()
    structure = exploration.structure
    assert structure is not None
    assert structure.verdict == "clear"
    assert structure.evidence
    assert all(0 <= one.p_value <= 1 for one in structure.evidence)
    assert structure.candidate is not None
    assert structure.sizes == [50, 50, 50]
    assert adjusted_rand_score(structure.candidate, exploration.labels_) == 1
    assert exploration.caveat == ""
    assert "structure" not in repr(exploration)


def test_possible_groups_are_taken_and_that_is_said(possible: None) -> None:
    exploration = session()
    step = exploration.propose()
    assert len(step.most_distinct) == 1
    assert repr(step).endswith(f". Possible structure: {WORDS}")
    assert repr(exploration).endswith(f"150 unexplored. Possible structure: {WORDS}.")
    exploration.run()
    assert len(exploration.clusters_) == 3
    assert repr(exploration).endswith(f"Every row is taken. Possible structure: {WORDS}.")
    assert {one.structure.verdict for one in exploration.steps if one.structure} == {"possible"}


def test_rows_that_are_one_group_tell_the_best_split_and_the_way_to_it() -> None:
    exploration = session(NOISE).run()
    structure = exploration.structure
    assert exploration.steps == []
    assert structure is not None
    assert structure.verdict == "none"
    assert structure.candidate is not None
    assert structure.candidate.shape == (120,)
    assert len(structure.sizes) >= 2
    assert exploration.stop_reason == (
        f"No structure beyond chance: {structure.reason}; the 120 rows are one group. "
        f'{best_split_in_words(structure)}, shown best by view 1 of 2: run(structure="ignore") takes it.'
    )
    assert exploration.caveat == ""
    assert set(exploration.reasons_) == {"one group"}


def test_ignored_the_best_split_is_taken_as_it_was_told() -> None:
    exploration = session(NOISE).run()
    found = exploration.structure
    assert found is not None
    assert found.candidate is not None
    exploration.run(structure="ignore")
    assert exploration.structure == found
    assert adjusted_rand_score(found.candidate, exploration.labels_) == 1
    assert sorted(exploration.labels_[exploration.labels_ >= 0].tolist())[0] == 0
    assert f"No structure beyond chance, taken all the same: {found.reason}." in repr(exploration)
    np.testing.assert_array_equal(session(NOISE).run(structure="ignore").labels_, exploration.labels_)


def test_what_is_ignored_is_heeded_again(none: None) -> None:
    exploration = session()
    assert exploration.run().clusters_ == []
    exploration.run(1, structure="ignore")
    taken = exploration.labels_
    assert len(exploration.clusters_) == 1
    # No rule given: as the session goes on.
    assert len(exploration.run(1).clusters_) == 3
    exploration.undo(2)
    assert exploration.run(structure="heed").clusters_ == []
    assert str(exploration.stop_reason).startswith("No structure beyond chance")
    exploration.go_on_with(structure="ignore")
    assert len(exploration.propose().distinctness) == 3
    exploration.run(1)
    np.testing.assert_array_equal(exploration.labels_, taken)


def test_the_rule_changes_what_is_shown_and_not_what_was_computed(none: None, monkeypatch: pytest.MonkeyPatch) -> None:
    exploration = session()
    seen = exploration.propose()
    assert seen.most_distinct == ()

    def again(*args: Any, **options: Any) -> Any:
        raise AssertionError("the clusters were looked for again")

    monkeypatch.setattr(look, "assign_rows", again)
    shown = exploration.go_on_with(structure="ignore").propose()
    assert len(shown.most_distinct) == 1
    np.testing.assert_array_equal(shown.embedding, seen.embedding)


@pytest.mark.parametrize("kind", ["save", "pickle"])
def test_a_session_that_ignores_structure_goes_on_so(kind: str, none: None, tmp_path: Path) -> None:
    exploration = session().run(1, structure="ignore")
    if kind == "save":
        exploration.save(tmp_path / "s.imapce")
        again = Exploration.load(tmp_path / "s.imapce", GROUPS)
    else:
        again = pickle.loads(pickle.dumps(exploration))
    assert again.ignores_structure
    np.testing.assert_array_equal(again.run().labels_, exploration.run().labels_)
    assert len(again.clusters_) == 3


def test_cancelled_before_a_step_the_rule_is_as_it_was(none: None, tmp_path: Path) -> None:
    exploration = session(path=tmp_path / "s.imapce")
    exploration.run()
    told = exploration.stop_reason
    before = exploration.record()
    with pytest.raises(CancelledError):
        exploration.run(structure="ignore", cancel=lambda: True)
    assert not exploration.ignores_structure
    assert exploration.record() == before
    assert exploration.run().stop_reason == told
    assert exploration.clusters_ == []


def test_stopped_after_a_step_the_rule_stays_with_it(none: None) -> None:
    exploration = session()

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exploration.run(callback=stop, structure="ignore")
    assert len(exploration.steps) == 1
    assert exploration.ignores_structure


def test_a_run_without_a_step_keeps_its_rule_in_the_file(tmp_path: Path) -> None:
    exploration = session(path=tmp_path / "s.imapce")
    exploration.run(0, structure="ignore")
    assert unpacked(tmp_path / "s.imapce")[0]["ignores_structure"] is True


# --- so many clusters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 4])
def test_so_many_clusters_as_asked_for_are_taken_whatever_the_verdict(size: int) -> None:
    exploration = session(NOISE, n_clusters=size).run()
    assert len(exploration.clusters_) == size
    assert exploration.structure is not None
    assert exploration.structure.verdict == "none"
    assert "taken all the same" in repr(exploration)


def test_what_is_asked_of_clusters_reaches_them_on_every_road(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def look_for(self: IMAPCE, problem: Any, *args: Any, granularity: str, n_clusters: int | None) -> Any:
        asked.append((granularity, n_clusters))
        return real(self, problem, *args, granularity=granularity, n_clusters=n_clusters)

    def at_start(*args: Any, granularity: str, n_clusters: int | None, **options: Any) -> Any:
        asked.append((granularity, n_clusters))
        return candidate(*args, granularity=granularity, n_clusters=n_clusters, **options)

    real, candidate = IMAPCE.look_for_clusters, look.find_clusters
    monkeypatch.setattr(IMAPCE, "look_for_clusters", look_for)
    monkeypatch.setattr(look, "find_clusters", at_start)
    exploration = session(granularity="finer", n_clusters=3)
    exploration.accept(mask=GROUP == 0)
    exploration.propose()
    assert len(asked) >= 2
    assert set(asked) == {("finer", 3)}


def test_what_is_asked_of_clusters_is_kept_and_can_be_changed(tmp_path: Path) -> None:
    exploration = session(granularity="coarser", n_clusters=2)
    exploration.save(tmp_path / "s.imapce")
    again = Exploration.load(tmp_path / "s.imapce", GROUPS)
    assert (again.granularity, again.n_clusters) == ("coarser", 2)
    assert len(again.propose().distinctness) == 2
    again.go_on_with(granularity="auto", n_clusters=4)
    assert (again.granularity, again.n_clusters) == ("auto", 4)
    assert len(again.propose().distinctness) == 4
    assert again.go_on_with(n_clusters="auto").n_clusters is None
    assert len(again.propose().distinctness) == 3
    assert again.record() == session().record()


BACKGROUND = Samples(np.random.default_rng(1).standard_normal((60, 4)))
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "word": ({"granularity": "fine"}, "granularity must be one of 'coarser', 'auto', 'finer'; got 'fine'."),
    "one": ({"n_clusters": 1}, "n_clusters must be None or a whole number of at least 2; got 1."),
    "truth": ({"n_clusters": True}, "n_clusters must be None or a whole number of at least 2; got True."),
    "many": (
        {"n_clusters": 40},
        "n_clusters must leave min_cluster_size=5 or more of 150 rows for each cluster; got 40: ask for fewer, or "
        "lower min_cluster_size.",
    ),
    "known rows": ({"n_clusters": 10, "prior": Subset(np.arange(110))}, "of 40 rows for each cluster; got 10"),
    "view by view": ({"n_clusters": 3, "clusterer": "dpgmm"}, "n_clusters is for clusters found in all directions"),
    "background": (
        {"granularity": "finer", "prior": BACKGROUND},
        "granularity is for clusters found in all directions",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_for_is_refused(name: str) -> None:
    options, sentence = REFUSED[name]
    with pytest.raises(InvalidValueError) as refused:
        session(**options)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.go_on_with(mu=3.0, granularity="finest"),
        lambda one: one.go_on_with(n_clusters=1),
        lambda one: one.go_on_with(n_clusters=3, prior=BACKGROUND),
        lambda one: one.go_on_with(granularity="finer", structure="mind"),
        lambda one: one.run(structure="mind"),
        lambda one: one.split(0, structure=True),
    ],
)
def test_refused_nothing_is_changed(change: Callable[[Exploration], Any]) -> None:
    exploration = session()
    before, step = exploration.record(), exploration.propose()
    with pytest.raises(InvalidValueError):
        change(exploration)
    assert exploration.record() == before
    assert exploration.proposal is step


# --- stability --------------------------------------------------------------------------------------------------------


def test_clusters_have_the_share_of_resamples_in_which_they_reappear(possible: None, tmp_path: Path) -> None:
    exploration = session(path=tmp_path / "s.imapce").run()
    np.testing.assert_array_equal(np.sort(exploration.stability_), [0.3, 0.9, 0.9])
    frame = exploration.to_frame()
    for cluster, share in zip(exploration.clusters_, exploration.stability_, strict=True):
        assert cluster.stability == share
        assert (np.asarray(frame["stability"])[cluster.rows] == share).all()
    again = Exploration.load(tmp_path / "s.imapce", GROUPS, autosave=False)
    np.testing.assert_array_equal(again.stability_, exploration.stability_)
    exploration.merge([0, 1])
    assert np.isnan(exploration.stability_[0])


def test_rows_by_hand_and_clusters_of_a_view_have_no_stability(possible: None) -> None:
    exploration = session()
    exploration.accept(mask=np.arange(20))
    assert np.isnan(exploration.stability_).all()
    assert np.isnan(session(clusterer="dpgmm").run(1).stability_).all()


def test_pieces_that_were_split_off_have_no_stability(possible: None) -> None:
    exploration = session()
    exploration.split(0, proposed=True, structure="ignore")
    exploration.run()
    pieces = {0, max(cluster.number for cluster in exploration.clusters_)}
    assert [cluster.number in pieces for cluster in exploration.clusters_] == np.isnan(exploration.stability_).tolist()


# --- files ------------------------------------------------------------------------------------------------------------


def test_files_keep_verdict_words_and_evidence(possible: None, tmp_path: Path) -> None:
    exploration = session(path=tmp_path / "s.imapce").run(1)
    stored = unpacked(tmp_path / "s.imapce")[0]["steps"][0]["structure"]
    assert stored == {
        "verdict": "possible",
        "words": WORDS,
        "evidence": [{"against": "one peak", "z": 3.9, "p_value": 5e-5}],
    }
    again = Exploration.load(tmp_path / "s.imapce", GROUPS, autosave=False)
    assert again.structure == exploration.structure
    assert again.structure is not None
    assert again.structure.candidate is None


def test_files_that_say_perhaps_open_as_possible(tmp_path: Path) -> None:
    path = tmp_path / "s.imapce"
    exploration = session(path=path).run()
    header, arrays = unpacked(path)
    for step in header["steps"]:
        step["structure"]["verdict"] = "perhaps"
    repacked(path, header, arrays)
    again = Exploration.load(path, GROUPS, autosave=False)
    assert again.structure is not None
    assert exploration.structure is not None
    assert again.structure == replace(exploration.structure, verdict="possible")
    assert "Possible structure: " in again.caveat


@pytest.mark.parametrize(("clear", "verdict"), [(True, "clear"), (False, "none")])
def test_older_files_with_two_scores_open(clear: bool, verdict: str, tmp_path: Path) -> None:
    path = tmp_path / "s.imapce"
    session(path=path).run()
    header, arrays = unpacked(path)
    for name in ("granularity", "n_clusters", "ignores_structure"):
        del header[name]
    for step in header["steps"]:
        step["structure"] = {"clear": clear, "valley": 5.0, "dependence": None, "words": "a valley"}
        for cluster in step["clusters"]:
            cluster.pop("stability", None)
    repacked(path, header, arrays)
    again = Exploration.load(path, GROUPS, autosave=False)
    assert again.structure == Structure(verdict, "a valley", again.structure.evidence)  # type: ignore[arg-type, union-attr]
    (evidence,) = again.structure.evidence  # type: ignore[union-attr]
    assert evidence.z == 5.0
    assert evidence.p_value == pytest.approx(2.87e-7, rel=1e-2)
    assert (again.granularity, again.n_clusters, again.ignores_structure) == ("auto", None, False)
    assert np.isnan(again.stability_).all()


@pytest.mark.parametrize(
    "forge",
    [
        lambda header: header["steps"][0]["structure"].update(verdict="surely"),
        lambda header: header["steps"][0]["structure"].pop("evidence"),
        lambda header: header["steps"][0]["clusters"][0].update(stability=9.0),
        lambda header: header.update(granularity="fine"),
        lambda header: header.update(n_clusters=1),
    ],
)
def test_forged_files_are_refused(forge: Callable[[Any], Any], tmp_path: Path) -> None:
    path = tmp_path / "s.imapce"
    session(path=path).run(1)
    header, arrays = unpacked(path)
    forge(header)
    repacked(path, header, arrays)
    with pytest.raises((FileFormatError, InvalidValueError)):
        Exploration.load(path, GROUPS, autosave=False)
