"""The page tells clear, perhaps and chance apart, shows the best split when asked, and asks for so many clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from conversation import Talk, groups
from imapce import Exploration
from imapce.app.exports import as_python
from imapce.app.study import Study
from judged import WORDS, judged
from served import chromium, drawn, idle, opened, served

NOISE = np.random.default_rng(0).standard_normal((160, 4))


def talk_of(X: np.ndarray, **options: Any) -> Talk:
    return Talk(Study("rows", Exploration(X, random_state=0, **options), script=("X = rows",)))


def run_script(talk: Talk, X: np.ndarray) -> Exploration:
    found: dict[str, Any] = {"rows": X}
    exec(as_python(talk.conversation.study), found)
    return found["exploration"]


def test_rows_that_are_one_group_show_the_best_split_only_when_asked() -> None:
    talk = talk_of(NOISE)
    talk.done("next")
    found = talk.state["structure"]
    assert (found["verdict"], found["shown"]) == ("none", False)
    assert found["best"].startswith("The best split would be 2 groups of ")
    assert talk.state["stop"] == "Nothing is taken by itself: the 160 rows left are one group."
    talk.done("settings", structure="ignore")
    assert talk.state["stop"] is None
    assert talk.state["structure"]["shown"]
    assert talk.state["can_take_most"]
    talk.done("run")
    taken = talk.exploration.labels_
    assert len(set(taken.tolist())) == 2
    np.testing.assert_array_equal(run_script(talk, NOISE).labels_, taken)
    talk.done("undo")
    talk.done("settings", structure="heed")
    assert not talk.state["structure"]["shown"]
    assert not talk.state["can_take_most"]


def test_perhaps_and_stability_reach_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    judged(monkeypatch, "perhaps")
    talk = talk_of(groups())
    talk.done("run")
    assert talk.state["structure"] == {"verdict": "perhaps", "words": WORDS, "best": "", "shown": True}
    told = [cluster["stability"] for step in talk.state["steps"] for cluster in step["clusters"]]
    assert sorted(told)[0] == "came back in 3 of 10 draws of 80\N{NO-BREAK SPACE}% of the rows"
    assert len(told) == 3
    cluster = talk.exploration.clusters_[0]
    talk.ask("select", how="taken", number=cluster.number)
    assert talk.ask("describe")["stability"] in told
    talk.ask("select", how="invert")
    talk.ask("select", how="taken", number=1, mode="replace")
    talk.ask("select", how="taken", number=2, mode="add")
    assert talk.ask("describe")["stability"] == ""


def test_a_split_that_is_chance_is_refused_with_the_way_to_do_it_anyway() -> None:
    talk = talk_of(groups())
    talk.done("next")
    talk.done("take", what="most")
    (taken,) = talk.exploration.clusters_
    talk.done("split", number=taken.number)
    refused = talk.said("failed")[-1][0]
    assert "stays whole: no structure beyond chance" in refused["sentence"]
    assert "structure=" not in refused["sentence"]
    assert refused["anyway"] == {"number": taken.number, "structure": "ignore"}
    assert len(talk.exploration.clusters_) == 1
    talk.done("split", **refused["anyway"])
    assert len(talk.exploration.clusters_) == 2
    np.testing.assert_array_equal(run_script(talk, groups()).labels_, talk.exploration.labels_)


def test_so_many_clusters_are_asked_for_and_no_longer() -> None:
    talk = talk_of(groups())
    talk.done("next")
    assert (talk.state["granularity"], talk.state["n_clusters"], talk.state["joint"]) == ("auto", None, True)
    talk.done("settings", n_clusters=4, granularity="finer")
    assert (talk.state["granularity"], talk.state["n_clusters"]) == ("finer", 4)
    assert len(talk.exploration.propose().numbers) == 4
    talk.done("run")
    np.testing.assert_array_equal(run_script(talk, groups()).labels_, talk.exploration.labels_)
    talk.done("settings", n_clusters=1)
    assert "n_clusters must be None or a whole number" in talk.said("failed")[-1][0]["sentence"]
    assert talk.state["n_clusters"] == 4
    talk.done("settings", n_clusters="auto", granularity="auto")
    assert talk.state["n_clusters"] is None


def test_a_person_sees_the_verdict_takes_the_split_anyway_and_asks_for_more(tmp_path: Path) -> None:
    data = tmp_path / "noise.csv"
    pyarrow.csv.write_csv(pa.table({f"c{j}": column for j, column in enumerate(NOISE.T)}), data)
    with served(data, cwd=tmp_path) as server, chromium() as context:
        page, watched = opened(context, server)
        page.get_by_role("button", name="Next view").click()
        page.locator('.verdict[data-verdict="none"]').wait_for()
        idle(page)
        verdict = page.locator(".verdict p")
        assert verdict.inner_text().startswith("No groups beyond chance: ")
        assert "The best split would be 2 groups of " in verdict.inner_text()
        assert page.locator(".stop").inner_text() == "Nothing is taken by itself: the 160 rows left are one group."

        page.get_by_role("button", name="Show the best split anyway").click()
        page.get_by_role("button", name="Leave it as one group").wait_for()
        idle(page)
        assert "These are the groups of the best split." in verdict.inner_text()
        page.get_by_role("button", name="Take most distinct").click()
        page.locator(".step:not(.now)").first.wait_for()
        idle(page)

        # A piece of chance is split only by one who insists.
        page.get_by_label("Colour by").select_option("taken")
        page.locator(".entry", has_text="Cluster 0").click()
        page.get_by_role("button", name="Split this one").click()
        page.get_by_role("button", name="Split anyway").wait_for()
        assert "stays whole: no structure beyond chance" in page.locator(".toast").inner_text()
        idle(page)
        page.get_by_role("button", name="Split anyway").click()
        page.locator(".regrouped").wait_for()
        idle(page)

        page.keyboard.press("u")
        page.locator(".regrouped").wait_for(state="detached")
        idle(page)
        page.keyboard.press("u")
        page.locator(".step:not(.now)").wait_for(state="detached")
        idle(page)
        page.get_by_label("Colour by").select_option("cluster")
        page.get_by_text("How views are found").click()
        for change in (
            lambda: page.get_by_label("Number of clusters").fill("3"),
            lambda: page.get_by_label("Fewer or more clusters").select_option("finer"),
        ):
            before = drawn(page)
            change()
            page.keyboard.press("Tab")
            page.wait_for_function("n => Number(document.querySelector('.imapce').dataset.drawn) > n", arg=before)
            idle(page)
        page.locator(".entry", has_text="Cluster 2").wait_for()
        assert page.get_by_role("button", name="Leave it as one group").is_hidden()
        assert page.get_by_label("Number of clusters").input_value() == "3"
        assert page.get_by_label("Fewer or more clusters").input_value() == "finer"
        watched.nothing_wrong()


def test_a_person_reads_perhaps_and_how_stable_a_cluster_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, session = tmp_path / "groups.csv", tmp_path / "s.imapce"
    pyarrow.csv.write_csv(pa.table({f"c{j}": column for j, column in enumerate(groups().T)}), data)
    judged(monkeypatch, "perhaps")
    Exploration(pyarrow.csv.read_csv(data), random_state=0).run().save(session)
    with served(data, "--session", session, cwd=tmp_path) as server, chromium() as context:
        page, watched = opened(context, server)
        page.locator('.verdict[data-verdict="perhaps"]').wait_for()
        assert page.locator(".verdict p").inner_text() == f"Perhaps groups: {WORDS}."
        assert "of 10 draws of 80" in str(page.locator(".step:not(.now)").first.get_attribute("title"))
        page.get_by_label("Colour by").select_option("taken")
        page.locator(".entry", has_text="Cluster 0").click()
        page.locator(".stability").wait_for()
        told = page.locator(".stability").inner_text().replace("\N{NO-BREAK SPACE}", " ")
        assert told == "It came back in 9 of 10 draws of 80 % of the rows."
        watched.nothing_wrong()
