"""A cluster has one number, name and colour on the page; axes and panels tell what is left given the known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from conversation import Talk
from imapce import Attributes, Exploration, Labels
from imapce.app.colours import palettes
from imapce.app.study import Study
from imapce.plotting.steps import cluster_hue

KIND = np.repeat([0, 1, 2], [120, 80, 50])
RNG = np.random.default_rng(0)
MAKE = np.array(["audi", "ford", "seat", "opel"])[RNG.integers(0, 4, 250)]
MAKE[KIND == 2] = "seat"
VALUES = RNG.standard_normal((250, 4)) + 8 * np.eye(3, 4)[KIND] + 3 * (MAKE == "ford")[:, None]
NUMBERS = pa.table({name: VALUES[:, place] for place, name in enumerate(["price", "weight", "length", "power"])})
CARS = NUMBERS.append_column("make", pa.array(MAKE))


def talk_of(door: str) -> Talk:
    if door == "column":
        prior: Attributes | Labels = Attributes(["make"])
        features = CARS
    else:
        prior, features = Labels(CARS.select(["make"])), NUMBERS
    exploration = Exploration(features, prior=prior, random_state=0)
    return Talk(Study("cars", exploration, features=features, table=CARS, labels=("make",)))


def legend(talk: Talk) -> dict[str, int]:
    """The codes of the clusters in the legend that was told last, by name."""
    told = [content for content, _ in talk.heard if content["type"] in ("colours", "view")][-1]
    entries = told["colours"]["legend"] if told["type"] == "view" else told["legend"]
    return {entry["name"]: entry["code"] for entry in entries if "cluster" in entry}


def test_numbers_names_and_colours_stay_from_the_first_view_to_the_last_step() -> None:
    groups = VALUES - 3 * (MAKE == "ford")[:, None]
    talk = Talk(Study("groups", Exploration(groups, random_state=0), features=groups))
    talk.done("next")
    first = legend(talk)
    assert sorted(first) == ["Cluster 0", "Cluster 1", "Cluster 2"]
    talk.done("take", what="clusters", clusters=[1])
    assert legend(talk) == {name: code for name, code in first.items() if name != "Cluster 1"}
    step = talk.state["steps"][0]["clusters"][0]
    assert (step["number"], step["name"], step["code"]) == (1, "Cluster 1", first["Cluster 1"])
    assert sorted(one["number"] for one in talk.conversation.scene.outlines()) == [0, 2]
    talk.done("look_back", step=0)
    assert legend(talk) == {"Cluster 1": first["Cluster 1"]}
    assert [(one["number"], one["name"]) for one in talk.conversation.scene.outlines()] == [(1, "1")]
    answer = talk.ask("select", how="cluster", cluster=1)
    assert (answer["count"], answer["taken"], answer["clusters"]) == (80, [1], [])
    talk.done("run")
    assert legend(talk) == first
    assert {name: cluster_hue(int(name.split()[1])) for name in first} == {
        name: palettes()["light"][code] for name, code in first.items()
    }
    talk.done("merge", numbers=[0, 1])
    assert legend(talk) == {name: code for name, code in first.items() if name != "Cluster 1"}
    talk.done("undo")
    assert legend(talk) == first
    taken = talk.ask("colour", by="taken")["legend"]
    assert {entry["name"]: entry["code"] for entry in taken} == first
    assert [entry["group"] for entry in taken] == [0, 1, 2]
    assert [entry["count"] for entry in taken] == [120, 80, 50]
    row = int(np.flatnonzero(talk.conversation.order == np.flatnonzero(KIND == 1)[0])[0])
    assert talk.ask("hover", point=row)["taken"] == "Cluster 1"


@pytest.mark.parametrize("door", ["column", "label"])
def test_axes_and_panels_tell_what_is_left_given_the_known(door: str) -> None:
    talk = talk_of(door)
    talk.ask("hello")
    talk.done("next")
    view = talk.said("view")[-1][0]
    assert view["kind"] == "proposal"
    for axis in view["axes"]:
        assert axis["given"] == "given make"
        assert axis["features"]
        assert not any("make" in one["name"] for one in axis["features"])
    assert view["arrows"]
    assert not any("make" in one["name"] for one in view["arrows"])
    assert talk.state["read_back"].startswith("The prior (make) can be predicted from the view with accuracy")
    assert talk.state["known"] == [{"name": "make", "came": "explained away"}]
    assert talk.state["known_beside"] == []
    number = talk.conversation.scene.clusters[KIND == 2][0]
    talk.ask("select", how="cluster", cluster=int(number))
    told = talk.ask("describe")
    assert told["known"] == ["all of its rows are make seat"]
    assert not any(one["column"] == "make" for one in told["traits"])
    assert "make" not in told["words"]
    talk.done("take", what="clusters", clusters=[int(number)])
    assert talk.state["steps"][0]["given"] == "given make"
    taken = talk.state["steps"][0]["clusters"][0]
    assert taken["words"] == told["words"]
    assert taken["features"]
    assert not any(one["name"] == "make" for one in taken["features"])
    talk.done("look_back", step=0)
    assert talk.said("view")[-1][0]["axes"][0]["given"] == "given make"
    assert talk.state["read_back"].startswith("The prior (make)")
    talk.done("three")
    assert talk.said("view")[-1][0]["axes"][2]["given"] == "given make"
    assert talk.state["read_back"] is None


def test_the_plain_view_shows_the_table_as_it_is_whatever_is_known() -> None:
    talk = talk_of("label")
    plain = Exploration(NUMBERS, random_state=0).look(alpha=0.0, mu=0.0)
    np.testing.assert_allclose(talk.conversation.study.plain.coordinates, plain.embedding, atol=1e-9)
    assert [axis["given"] for axis in talk.conversation.study.plain.axes(talk.exploration.feature_names)] == ["", ""]


def test_a_known_label_without_a_column_is_told_in_words() -> None:
    prior = Labels(pd.Series(MAKE, name="brand"))
    exploration = Exploration(NUMBERS, prior=prior, random_state=0)
    talk = Talk(Study("cars", exploration, features=NUMBERS, table=NUMBERS))
    talk.done("next")
    assert talk.state["known_beside"] == [
        "The label brand was known: its effect is explained away, given the clusters."
    ]
