"""The talk of a page with one exploration, without a page: every message, and what it changes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from conversation import Talk, groups, rectangle
from imapce import Exploration
from imapce.app.study import Study
from imapce.exploration.session import Exploration as Session
from imapce.plotting.reports.page import Histogram


@pytest.fixture
def talk() -> Talk:
    table = pa.table({"kind": [f"k{i % 3}" for i in range(300)], "size": np.linspace(0, 1, 300)})
    study = Study("three groups", Exploration(groups(), random_state=0), table=table, labels=("kind",))
    return Talk(study)


def bits(buffer: Any, order: np.ndarray) -> np.ndarray:
    mask = np.zeros(len(order), dtype=bool)
    mask[order] = np.unpackbits(np.frombuffer(bytes(buffer), np.uint8), bitorder="little")[: len(order)].astype(bool)
    return mask


def test_the_first_view_holds_every_row_in_eight_bytes_and_its_colour_in_one(talk: Talk) -> None:
    talk.ask("hello")
    content, (points, codes) = talk.said("view")[0]
    assert content["kind"] == "plain"
    assert points.nbytes == 8 * 300
    assert codes.nbytes == 300
    seen = np.empty((300, 2), dtype=np.float32)
    seen[talk.conversation.order] = points.T
    np.testing.assert_allclose(seen, talk.conversation.scene.coordinates, rtol=1e-5, atol=1e-5)


def test_the_view_comes_before_its_clusters(talk: Talk) -> None:
    talk.ask("hello")
    talk.done("next")
    kinds = [content["type"] for content, _ in talk.heard]
    last_view = max(i for i, kind in enumerate(kinds) if kind == "view")
    assert kinds.index("colours") > last_view
    assert talk.state["can_take_most"]


def test_taking_is_what_accept_does(talk: Talk) -> None:
    talk.done("next")
    talk.done("take", what="most")
    alone = Exploration(groups(), random_state=0)
    alone.accept()
    np.testing.assert_array_equal(talk.exploration.labels_, alone.labels_)


def test_a_lasso_selects_the_rows_inside_and_takes_them_by_name(talk: Talk) -> None:
    talk.done("next")
    places, group = talk.conversation.scene.coordinates, np.arange(300) % 3
    # The rectangle around a group that is on one side of all others.
    low, high = (np.array([f(places[group == g], axis=0) for g in range(3)]) for f in (np.min, np.max))
    around = [((places >= low[g] - 0.1) & (places <= high[g] + 0.1)).all(axis=1).sum() for g in range(3)]
    chosen = int(np.argmin(around))
    answer = talk.ask("select", rectangle(places[group == chosen], margin=0.1), how="lasso")
    mask = bits(answer["buffers"][0], talk.conversation.order)
    assert answer["count"] == mask.sum()
    assert mask[group == chosen].all()
    number = talk.conversation.scene.clusters[mask][0]
    np.testing.assert_array_equal(talk.conversation.scene.clusters == number, mask)
    talk.done("take", what="selection", name="  second  ")
    assert talk.exploration.clusters_[0].name == "second"
    # What was drawn around is that cluster, and keeps its number.
    np.testing.assert_array_equal(talk.exploration.labels_ == number, mask)
    assert talk.state["steps"][0]["clusters"][0]["name"] == "second"


def test_selections_are_added_to_subtracted_from_inverted_and_cleared(talk: Talk) -> None:
    talk.done("next")
    one, two = (talk.conversation.scene.clusters == number for number in (0, 1))
    assert talk.ask("select", how="cluster", cluster=0)["count"] == one.sum()
    assert talk.ask("select", how="cluster", cluster=1, mode="add")["clusters"] == [0, 1]
    np.testing.assert_array_equal(talk.conversation.selected, one | two)
    assert talk.ask("select", how="cluster", cluster=0, mode="subtract")["count"] == two.sum()
    assert talk.ask("select", how="invert")["count"] == 300 - two.sum()
    assert talk.ask("select", how="clear")["count"] == 0


def test_undo_and_redo_go_back_and_forth(talk: Talk) -> None:
    talk.done("take", what="most")
    taken = talk.exploration.labels_.copy()
    talk.done("undo")
    assert talk.state["steps"] == []
    assert talk.state["redoable"] == 1
    talk.done("redo")
    np.testing.assert_array_equal(talk.exploration.labels_, taken)


def test_another_optimum_is_turned_to(talk: Talk) -> None:
    talk.ask("hello")
    talk.done("next")
    assert talk.state["views"] > 1
    talk.done("view", number=1)
    content, (points, _) = talk.said("view")[-1]
    assert content["number"] == 1
    assert len(content["turn"]["angles"]) == 2
    assert points.nbytes == 8 * 300
    assert talk.ask("view", number=99)["error"].startswith("a view must be from 0 to")


def test_a_run_ends_where_run_ends_and_shows_all_clusters(talk: Talk) -> None:
    talk.done("run")
    alone = Exploration(groups(), random_state=0).run()
    np.testing.assert_array_equal(talk.exploration.labels_, alone.labels_)
    assert talk.state["stop"] == alone.stop_reason
    content, (points, _) = talk.said("view")[-1]
    assert content["kind"] == "overview"
    seen = np.empty((300, 2), dtype=np.float32)
    seen[talk.conversation.order] = points.T
    np.testing.assert_allclose(seen, alone.overview().embedding, rtol=1e-5, atol=1e-5)
    cards = talk.said("colours")[-1][0]["legend"]
    assert [(card["cluster"], card["count"]) for card in cards] == [(one.number, one.size) for one in alone.clusters_]
    assert [card["words"] for card in cards] == [one.name for one in alone.description().clusters]


def test_a_run_that_is_cancelled_keeps_what_was_taken(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    told = talk.conversation.tell_state
    cancelled: list[int] = []

    def cancel_after_the_first_step() -> None:
        if talk.exploration.steps and not cancelled:
            cancelled.append(len(talk.exploration.steps))
            talk.conversation.handle({"type": "cancel", "id": 1})
        told()

    monkeypatch.setattr(talk.conversation, "tell_state", cancel_after_the_first_step)
    talk.done("run")
    assert len(talk.exploration.steps) == cancelled[0] == 1
    assert talk.said("cancelled")
    assert talk.state["busy"] is None


def test_one_thing_at_a_time(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(Session, "propose", lambda self, **given: go.wait(20))
    talk.ask("next")
    assert talk.ask("undo")["error"].startswith("one thing at a time: still looking for the next view")
    assert talk.ask("select", how="invert")["count"] == 300
    go.set()
    assert talk.conversation.wait(20)
    assert talk.said("failed")


def test_a_cluster_is_split_and_clusters_are_merged(talk: Talk) -> None:
    talk.done("next")
    talk.ask("select", how="invert")
    talk.done("take", what="selection")
    (whole,) = talk.exploration.clusters_
    talk.done("split", number=whole.number)
    numbers = [cluster.number for cluster in talk.exploration.clusters_]
    assert len(numbers) > 1
    assert min(numbers) == whole.number
    talk.done("merge", numbers=numbers[:2])
    assert talk.state["moves"][-1]["kind"] == "merge"
    assert talk.exploration.labels_.min() == whole.number


def test_settings_are_changed_and_what_was_taken_stays(talk: Talk) -> None:
    talk.done("take", what="most")
    taken = talk.exploration.labels_.copy()
    talk.done("settings", mu=100.0, columns={"x3": False})
    np.testing.assert_array_equal(talk.exploration.labels_, taken)
    assert talk.exploration.record().parameters["mu"] == 100.0
    assert talk.state["known"] == [{"name": "x3", "came": "explained away"}]
    assert talk.state["weights"] == {"alpha": "auto", "mu": 100.0}
    read = talk.ask("left")
    assert [one["name"] for one in read["known"]] == ["x3"]
    talk.done("settings", columns={"kind": False}, mu="auto")
    assert talk.state["known"] == [{"name": "kind", "came": "explained away"}]
    talk.done("settings", columns={})
    assert talk.state["known"] == []
    assert "must be a number" in talk.ask("settings", mu="much")["error"]


def test_a_column_is_erased_and_explained_away_again(talk: Talk) -> None:
    talk.done("settings", columns={"x3": True, "kind": False})
    came = {one["name"]: one["came"] for one in talk.state["known"]}
    assert came == {"x3": "erased", "kind": "explained away"}
    assert talk.state["known_beside"] == []
    assert {prior.erase for prior in talk.exploration.priors} == {True, False}
    talk.done("settings", columns={"x3": False})
    assert talk.state["known"] == [{"name": "x3", "came": "explained away"}]
    assert "could not be read" in talk.ask("settings", columns=[3])["error"]


def test_every_work_has_a_number_and_is_done_when_it_is_over(talk: Talk) -> None:
    talk.ask("hello")
    assert talk.state["done"] == 0
    numbers = [
        talk.done(name, **more)["work"] for name, more in (("next", {}), ("take", {"what": "most"}), ("undo", {}))
    ]
    assert numbers == [1, 2, 3]
    assert (talk.state["done"], talk.state["busy"]) == (3, None)
    done = [content["done"] for content, _ in talk.said("state")]
    assert done == sorted(done)
    # What fails is over too, and told before that.
    number = talk.done("settings", n_clusters=1)["work"]
    told = [(content["type"], content.get("done")) for content, _ in talk.heard]
    assert told.index(("failed", None)) < told.index(("state", number))
    assert talk.state["done"] == number


def test_all_clusters_are_looked_at_together_and_one_goes_on_from_there(talk: Talk) -> None:
    assert "no cluster is taken yet" in talk.ask("overview")["error"]
    talk.done("take", what="most")
    talk.done("overview")
    assert talk.state["looking"]["kind"] == "overview"
    assert "looked back" in talk.ask("take", what="most")["error"]
    number = talk.exploration.clusters_[0].number
    assert talk.ask("select", how="cluster", cluster=number)["taken"] == [number]
    # Rows that were left may be taken where they are seen.
    talk.ask("select", how="invert")
    talk.done("take", what="selection", name="the rest")
    assert talk.state["looking"]["kind"] == "overview"
    legend = talk.said("colours")[-1][0]["legend"]
    assert {entry["name"] for entry in legend} == {f"Cluster {number}", "the rest"}
    assert talk.state["stop"] == "Every row is taken."


def test_whether_anything_is_left_is_told_in_the_verdicts_of_the_library(talk: Talk) -> None:
    talk.done("next")
    assert talk.state["structure"]["words"].startswith("Clear structure: ")
    assert talk.state["remains"] is None
    talk.done("take", what="clusters", clusters=[0])
    assert talk.state["remains"] == {"verdict": "clear", "words": "Clear structure: 2 of the clusters found are left"}
    noise = Talk(Study("noise", Exploration(np.random.default_rng(0).normal(size=(90, 4)), clusterer="dpgmm")))
    noise.done("next")
    assert noise.state["remains"]["verdict"] == "none"
    assert noise.state["remains"]["words"].startswith("No structure beyond chance: one shapeless cloud would look as ")
    found = Talk(Study("groups", Exploration(groups(), clusterer="dpgmm", random_state=0)))
    found.done("next")
    assert found.state["remains"]["verdict"] == "clear"


def test_a_session_that_was_run_comes_with_all_clusters_and_its_end() -> None:
    exploration = Exploration(groups(), random_state=0).run()
    talk = Talk(Study("groups", exploration))
    work = talk.done("hello")["work"]
    assert talk.state["done"] == work
    assert talk.state["looking"]["kind"] == "overview"
    assert talk.state["stop"] == exploration.stop_reason
    assert len(talk.state["steps"]) == len(exploration.steps)
    # A page that is loaded again is where it was.
    before = len(talk.heard)
    assert "work" not in talk.done("hello")
    assert [content["kind"] for content, _ in talk.heard[before:] if content["type"] == "view"] == ["overview"]


def test_where_too_much_is_known_the_page_says_what_to_do(talk: Talk) -> None:
    talk.done("settings", columns={"x0": False, "x1": False, "x2": False})
    assert talk.state["stop"] == (
        "Beside what is known the 300 rows left do not vary in 2 directions: forget a column to see more."
    )
    assert not talk.said("failed")
    talk.done("settings", columns={"x0": False})
    assert talk.state["stop"] is None


def test_selected_rows_become_known_and_are_forgotten(talk: Talk) -> None:
    talk.done("next")
    talk.ask("select", how="cluster", cluster=0)
    size = int(talk.conversation.selected.sum())
    talk.done("settings", rows="selection")
    assert talk.state["known_at_start"] == size
    talk.done("settings", rows="none")
    assert talk.state["known_at_start"] == 0


def test_three_axes_are_shown_and_lassoed_as_they_are_looked_at(talk: Talk) -> None:
    talk.done("next")
    talk.done("three")
    content, (points, _) = talk.said("view")[-1]
    assert content["dims"] == 3
    assert points.nbytes == 12 * 300
    looking = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0][:, :2]
    flat = talk.conversation.scene.coordinates @ looking
    chosen = np.arange(300) % 3 == 2
    answer = talk.ask("select", rectangle(flat[chosen]), how="lasso", looking=looking.tolist())
    assert bits(answer["buffers"][0], talk.conversation.order)[chosen].all()


def test_rows_are_described_in_the_units_of_the_table(talk: Talk) -> None:
    talk.done("next")
    talk.ask("select", how="cluster", cluster=0)
    told = talk.ask("describe")
    strongest = told["traits"][0]
    inside = groups()[talk.conversation.selected, int(strongest["column"][1:])].mean()
    assert strongest["inside"] == pytest.approx(inside, rel=1e-4)
    drawn = Histogram.of(talk.exploration.describe(talk.conversation.selected).traits[0])
    assert strongest["histogram"]["bars"] == drawn.bars
    assert strongest["histogram"]["line"] == drawn.line
    assert told["labels"][0]["levels"][0]["inside"] == 1.0
    rows = talk.ask("table")
    assert rows["total"] == told["count"]
    assert rows["head"][:2] == ["row", "kind"]


def test_a_row_is_told_beside_the_pointer(talk: Talk) -> None:
    told = talk.ask("hover", point=5, columns=["kind", "x0"])
    row = int(talk.conversation.order[5])
    assert told["row"] == row
    assert told["values"] == {"kind": f"k{row % 3}", "x0": pytest.approx(groups()[row, 0], rel=1e-5)}


@pytest.mark.parametrize("by", ["cluster", "taken", "step", "column:kind", "column:size", "column:x1"])
def test_every_colour_has_a_legend_that_counts_all_rows(talk: Talk, by: str) -> None:
    talk.done("take", what="most")
    told = talk.ask("colour", by=by)
    assert len(told["buffers"][0]) == 300
    if told["scale"] is None:
        assert sum(entry["count"] for entry in told["legend"]) == 300


def test_looking_back_shows_a_step_and_takes_nothing(talk: Talk) -> None:
    talk.done("take", what="most")
    talk.ask("look_back", step=0)
    assert talk.state["looking"] == {"kind": "step", "number": 0}
    assert "looked back" in talk.ask("take", what="most")["error"]
    talk.done("view", number=0)
    assert talk.state["looking"]["kind"] == "proposal"


@pytest.mark.parametrize(
    "message",
    [{"type": "nonsense"}, {"type": "select", "how": "lasso"}, {"type": "select", "how": "magic"}, {"type": "hover"},
     {"type": "colour", "by": "column:nothing"}, {"type": "take", "what": "all"}, {"type": "look_back", "step": 7},
     {"type": "merge", "numbers": "x"}, {"type": "hover", "point": 10**9}, {}],
)  # fmt: skip
def test_messages_that_make_no_sense_are_answered_in_a_sentence(talk: Talk, message: dict[str, Any]) -> None:
    answer, _ = talk.conversation.handle({**message, "id": 3})
    talk.conversation.wait(20)
    assert answer["re"] == 3
    assert answer.get("error") or talk.said("failed")
    assert talk.exploration.labels_.max() == -1


def test_of_several_descriptions_only_the_first_and_the_last_are_made(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.ask("select", how="invert")
    began, go_on, made, real = threading.Event(), threading.Event(), [], talk.exploration.describe

    def held_up(rows: np.ndarray) -> Any:
        made.append(rows.sum())
        began.set()
        assert go_on.wait(60)
        return real(rows)

    monkeypatch.setattr(talk.exploration, "describe", held_up)
    talk.conversation.handle({"type": "describe", "id": 1})
    assert began.wait(60)
    for number in (2, 3):
        talk.conversation.handle({"type": "describe", "id": number})
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "imapce describe":
            thread.join(60)
    answers = {content["re"]: content for content, _ in talk.said("reply")}
    assert "another selection" in answers[2]["error"]
    assert answers[1]["count"] == answers[3]["count"] == 300
    assert len(made) == 2
