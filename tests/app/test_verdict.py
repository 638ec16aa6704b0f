"""The page tells clear, possible and chance apart, shows the best split when asked, and asks for so many clusters."""

from __future__ import annotations

import re
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
from served import choose, click, opened, press, served, taken

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
    told = re.match(r"The best split would be (\d) clusters of ", found["best"])
    assert told
    assert talk.state["stop"] == "Nothing is taken by itself: the 160 rows left are one group."
    talk.done("settings", structure="ignore")
    assert talk.state["stop"] is None
    assert talk.state["structure"]["shown"]
    assert talk.state["can_take_most"]
    talk.done("run")
    taken = talk.exploration.labels_
    assert len(set(taken.tolist())) == int(told[1])
    np.testing.assert_array_equal(run_script(talk, NOISE).labels_, taken)
    talk.done("undo")
    talk.done("settings", structure="heed")
    assert not talk.state["structure"]["shown"]
    assert not talk.state["can_take_most"]


def test_possible_and_stability_reach_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    judged(monkeypatch, "possible")
    talk = talk_of(groups())
    talk.done("run")
    assert talk.state["structure"] == {
        "verdict": "possible",
        "words": f"Possible structure: {WORDS}",
        "best": "",
        "shown": True,
    }
    told = [cluster["stability"] for step in talk.state["steps"] for cluster in step["clusters"]]
    assert sorted(told)[0] == "3 of 10 resamples: unstable"
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


def test_a_person_sees_the_verdict_takes_the_split_anyway_and_asks_for_more(somebody: Any, tmp_path: Path) -> None:
    data = tmp_path / "noise.csv"
    pyarrow.csv.write_csv(pa.table({f"c{j}": column for j, column in enumerate(NOISE.T)}), data)
    with served(data, cwd=tmp_path) as server:
        page, watched = opened(somebody(), server)
        click(page, "Next view")
        verdict = page.locator('.found[data-verdict="none"] p')
        assert verdict.inner_text().startswith("No structure beyond chance: ")
        assert re.search(r"The best split would be \d clusters of ", verdict.inner_text())
        assert page.locator(".stop").inner_text() == "Nothing is taken by itself: the 160 rows left are one group."

        click(page, "Show the best split anyway")
        assert page.get_by_role("button", name="Leave it as one group").is_visible()
        assert "These are the groups of the best split." in verdict.inner_text()
        click(page, "Take most distinct")
        assert taken(page).count() == 1

        # A piece of chance is split only by one who insists.
        choose(page, "Colour by", "taken")
        click(page, page.locator(".entry", has_text="Cluster").first)
        click(page, "Split this one")
        assert "stays whole: no structure beyond chance" in page.locator(".toast").inner_text()
        click(page, "Split anyway")
        assert page.locator(".regrouped").count() == 1

        press(page, "u")
        assert page.locator(".regrouped").count() == 0
        press(page, "u")
        assert taken(page).count() == 0
        choose(page, "Colour by", "cluster")
        page.get_by_text("How views are found").click()
        page.get_by_label("Number of clusters").fill("3")
        press(page, "Tab")
        choose(page, "Fewer or more clusters", "finer")
        assert page.locator(".entry", has_text="Cluster 2").count() == 1
        assert page.get_by_role("button", name="Leave it as one group").is_hidden()
        assert page.get_by_label("Number of clusters").input_value() == "3"
        assert page.get_by_label("Fewer or more clusters").input_value() == "finer"
        watched.nothing_wrong()


def test_a_person_reads_possible_and_how_stable_a_cluster_is(
    somebody: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, session = tmp_path / "groups.csv", tmp_path / "s.imapce"
    pyarrow.csv.write_csv(pa.table({f"c{j}": column for j, column in enumerate(groups().T)}), data)
    judged(monkeypatch, "possible")
    Exploration(pyarrow.csv.read_csv(data), random_state=0).run().save(session)
    with served(data, "--session", session, cwd=tmp_path) as server:
        page, watched = opened(somebody(), server)
        assert page.locator('.found[data-verdict="possible"] p').inner_text() == f"Possible structure: {WORDS}."
        assert "of 10 resamples" in str(taken(page).first.get_attribute("title"))
        click(page, page.locator(".entry", has_text="Cluster 0"))
        told = page.locator(".stability").inner_text().replace("\N{NO-BREAK SPACE}", " ")
        assert told == "It reappears in 9 of 10 resamples."
        watched.nothing_wrong()
