"""What was taken from the rows before a view is kept with its step: in files, words and axes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from archives import repacked, unpacked
from imapce import IMAPCE, Attributes, Exploration, Labels
from imapce.errors import FileFormatError
from imapce.exploration.knowledge import known_names

RNG = np.random.default_rng(0)
KIND = np.arange(240) % 3
MAKE = np.array(["audi", "ford", "seat", "opel"])[RNG.integers(0, 4, 240)]
YEAR = RNG.normal(2000, 5, 240)
NUMBERS = (
    RNG.standard_normal((240, 5)) + 8 * np.eye(3, 5)[KIND] + 4 * (MAKE == "ford")[:, None] + (YEAR[:, None] - 2000)
)
TABLE = pd.DataFrame(NUMBERS, columns=["price", "weight", "length", "doors", "power"])
CARS = TABLE.assign(make=pd.Categorical(MAKE), year=YEAR)
GAPS = pd.Series(np.where(np.arange(240) % 17 == 0, None, MAKE), name="make")

PRIORS: dict[str, tuple[pd.DataFrame, Callable[[], Any]]] = {
    "category": (CARS, lambda: Attributes(["make"])),
    "number": (CARS, lambda: Attributes(["year"])),
    "label": (TABLE, lambda: Labels(pd.Series(MAKE, name="make"))),
    "label with gaps": (TABLE, lambda: Labels(GAPS)),
    "number as label": (TABLE, lambda: Labels(pd.Series(YEAR, name="year"))),
    "two labels": (TABLE, lambda: [Labels(pd.Series(MAKE, name="make")), Labels(pd.Series(YEAR, name="year"))]),
    "both": (CARS, lambda: [Attributes(["year"]), Labels(pd.Series(MAKE, name="brand"))]),
    "both, one erased": (CARS, lambda: [Attributes(["year"], erase=True), Labels(pd.Series(MAKE, name="brand"))]),
}


def session(name: str, **options: Any) -> Exploration:
    table, prior = PRIORS[name]
    return Exploration(table, prior=prior(), random_state=0, **options)


@pytest.mark.parametrize("name", PRIORS)
def test_a_loaded_session_places_rows_as_before(name: str, tmp_path: Path) -> None:
    exploration = session(name).run(max_steps=2)
    assert all(step.explained is not None for step in exploration.steps)
    places = [exploration.coordinates(step) for step in exploration.steps]
    shown = exploration.propose().embedding if not exploration.done else None
    exploration.save(tmp_path / "s.imapce")
    loaded = Exploration.load(tmp_path / "s.imapce", PRIORS[name][0])
    assert loaded.steps == exploration.steps
    for step, before in zip(loaded.steps, places, strict=True):
        np.testing.assert_allclose(loaded.coordinates(step), before, rtol=0, atol=1e-12)
        np.testing.assert_allclose(loaded.coordinates(step, rows=[3, 1]), before[[3, 1]], rtol=0, atol=1e-12)
    if shown is not None:
        np.testing.assert_allclose(loaded.propose().embedding, shown, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(loaded.run().labels_, exploration.run().labels_)
    # One effect for all steps.
    assert len(unpacked(tmp_path / "s.imapce")[0]["explained"]) == 1


def test_steps_stay_where_they_were_seen_when_other_things_become_known(tmp_path: Path) -> None:
    exploration = session("category")
    exploration.accept()
    exploration.go_on_with(prior=Labels(pd.Series(YEAR, name="year")))
    exploration.accept()
    exploration.go_on_with(prior=[])
    exploration.accept(mask=np.flatnonzero(~exploration.known)[:20])
    places = [exploration.coordinates(step) for step in exploration.steps]
    words = [exploration.given_in_words(step)[1] for step in exploration.steps]
    assert words == ["given make", "given year", ""]
    exploration.save(tmp_path / "s.imapce")
    assert len(unpacked(tmp_path / "s.imapce")[0]["explained"]) == 2
    loaded = Exploration.load(tmp_path / "s.imapce", CARS)
    for step, before in zip(loaded.steps, places, strict=True):
        np.testing.assert_allclose(loaded.coordinates(step), before, rtol=0, atol=1e-12)
    assert [loaded.given_in_words(step)[1] for step in loaded.steps] == words


def cut(name: str) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    return lambda _, arrays: arrays.update({name: arrays[name][:-1]})


FORGED: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], Any], str]] = {
    "no such place": (lambda head, _: head["steps"][0].update(explained=5), "names an explanation that is not there"),
    "negative place": (lambda head, _: head["steps"][0].update(explained=-1), "names an explanation that is not there"),
    "place in words": (lambda head, _: head["steps"][0].update(explained="0"), "names an explanation that is not"),
    "centre": (cut("step0_centre"), "centre of step 0 does not fit"),
    "weights": (cut("explained0_weights"), "weights of explanation 0 do not fit"),
    "labels": (cut("explained0_labels0"), "labels do not fit the rows"),
    "code": (cut("explained0_code0"), "code of a label does not fit its classes"),
    "unit": (lambda head, _: head["explained"][0]["codes"][0].update(unit=0.0), "unit of a label is 0.0"),
    "classes": (
        lambda head, _: head["explained"][0]["codes"][0].update(names=["audi", "ford", "seat", "lada"]),
        "explanation 0 cannot read its labels",
    ),
    "fingerprint": (
        lambda head, _: head["explained"][0]["labels"][0].update(fingerprint="0"),
        "not those of their fingerprint",
    ),
    "other classes": (
        lambda _, arrays: arrays.update(explained0_labels0=arrays["explained0_labels0"] + 9),
        "classes that have no name",
    ),
    "no labels": (lambda head, _: head["explained"][0].update(labels=[]), "has other labels than it reads"),
    "columns": (lambda _, arrays: arrays.update(explained0_columns=np.array([99])), "are not columns of the data"),
    "columns twice": (lambda _, arrays: arrays.update(explained0_columns=np.array([5, 5])), "are not columns of the"),
    "missing array": (lambda _, arrays: arrays.pop("explained0_weights"), "does not hold a whole"),
    "no list": (lambda head, _: head.update(explained=7), "does not hold a whole"),
    "read back": (lambda head, _: head["steps"][0].update(read_back={"view": "x"}), "does not hold a whole"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a session of one step, to be forged."""
    exploration = session("both")
    exploration.accept()
    exploration.save(path := tmp_path_factory.mktemp("good") / "s.imapce")
    return path


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_explanation_is_refused_in_a_sentence(case: str, good: Path, tmp_path: Path) -> None:
    header, arrays = unpacked(good)
    change, words = FORGED[case]
    change(header, arrays)
    repacked(tmp_path / "bad", header, arrays)
    with pytest.raises(FileFormatError, match=words) as caught:
        Exploration.load(tmp_path / "bad", CARS)
    assert str(caught.value).count("\n") == 0


# --- words ------------------------------------------------------------------------------------------------------------


def test_axes_and_features_name_what_is_left_of_the_other_columns() -> None:
    exploration = session("category")
    step = exploration.propose()
    named, given = exploration.given_in_words(step.views[0])
    assert given == "given make"
    assert [name for name, told in zip(exploration.feature_names, named, strict=True) if not told] == [
        f"make={make}" for make in sorted(set(MAKE))
    ]
    accepted = exploration.accept()
    for features in (
        step.features,
        accepted.clusters[0].features,
        exploration.describe(accepted.clusters[0].rows).features,
    ):
        assert not any("make" in feature.name for feature in features)
    assert all(trait.column != "make" for trait in exploration.profile(accepted.clusters[0].rows).traits)
    assert not any("make" in name for name in exploration.description().features)
    erased = Exploration(CARS, prior=Attributes(["make"], erase=True), random_state=0)
    assert erased.given_in_words(erased.propose(clusters=False).views[0])[1] == "free of make"
    weighed = Exploration(CARS, prior=Attributes(["make"]), estimator=IMAPCE(alpha=1.0, mu=50.0), random_state=0)
    named, given = weighed.given_in_words(weighed.propose(clusters=False).views[0])
    assert (named.all(), given) == (True, "")


def test_features_tell_what_differs_given_the_known() -> None:
    make = np.where(np.arange(400) % 4 == 0, "ford", "seat")
    kind = np.repeat([0, 1], 200)
    table = pd.DataFrame(np.random.default_rng(1).standard_normal((400, 3)), columns=["a", "b", "c"])
    table["a"] += 6 * kind
    table["b"] += 6 * (make == "ford")
    exploration = Exploration(table, prior=Labels(pd.Series(make, name="make")), random_state=0)
    exploration.propose()
    inside = (kind == 0) & (make == "ford")
    plain, given = Exploration(table).describe(inside), exploration.describe(inside)
    assert "b high" in plain.name
    assert "b" not in given.name.replace(" ", "")[:1]
    assert given.name.startswith("a low")
    strength = {one.name: one.strength for one in given.features}
    assert strength.get("b", 0.0) < 0.1
    # What is told of a column are the numbers of the table all the same.
    told = next(one for one in given.features if one.name == "a")
    assert (told.inside, told.outside) == pytest.approx((table.a[inside].mean(), table.a[~inside].mean()))


def test_a_cluster_that_is_one_class_of_the_known_says_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    kind = np.repeat([0, 1], [120, 80])
    run = np.where(kind == 0, rng.integers(1, 3, 200), 3)
    X = rng.standard_normal((200, 4)) + 8 * kind[:, None]
    for prior in (Labels(pd.Series(run, name="run")), Attributes(["run"])):
        table = pd.DataFrame(X, columns=list("abcd"))
        if isinstance(prior, Attributes):
            table = table.assign(run=pd.Categorical(run.astype(str)))
        exploration = Exploration(table, prior=prior, random_state=0)
        exploration.accept(mask=kind == 1)
        exploration.accept(mask=kind == 0)
        told = exploration.description().clusters
        assert [one.known for one in told] == [("all of its rows are run 3",), ()]
        assert exploration.profile(kind == 1).known == ("all of its rows are run 3",)
        exploration.report(tmp_path / "page.html", labels=run, label_name="run")
        page = (tmp_path / "page.html").read_text()
        assert page.count("all of its rows are run 3.") == 1
        assert "(not used)" not in page
        assert "were not used" not in page
        exploration.report(tmp_path / "page.html", labels=kind, label_name="kind")
        assert "kind (not used)" in (tmp_path / "page.html").read_text()
    untitled = Exploration(X, prior=Labels(run), random_state=0).profile(kind == 1)
    assert untitled.known == ("all of its rows have the known label 3",)
    gaps = Exploration(X, prior=Labels(np.where(np.arange(200) == 199, None, run)), random_state=0)
    assert gaps.profile(kind == 1).known == ()


def test_the_read_back_of_the_known_is_told_of_steps_and_kept(tmp_path: Path) -> None:
    exploration = session("label")
    step = exploration.propose()
    assert step.read_back is not None
    assert step.read_back["chance"] == 0.25
    assert step.read_back["view"] < 0.45
    assert step.read_back["clusters"] is not None
    accepted = exploration.accept()
    assert accepted.read_back == step.read_back
    exploration.save(tmp_path / "s.imapce")
    assert Exploration.load(tmp_path / "s.imapce", TABLE).steps[0].read_back == step.read_back
    exploration.report(tmp_path / "page.html")
    assert (
        "At step 1 the prior (make) can be predicted from the view with accuracy"
        in (tmp_path / "page.html").read_text()
    )
    assert Exploration(TABLE, random_state=0).propose(clusters=False).read_back is None


@pytest.mark.parametrize("name", PRIORS)
def test_other_weights_can_be_looked_at_whatever_is_known(name: str) -> None:
    exploration = session(name)
    for settings in ({"alpha": 0.0, "mu": 0.0}, {"alpha": 1.0, "mu": 50.0}, {"mu": 10.0}, {"n_components": 3}):
        view = exploration.look(**settings)
        assert np.isfinite(view.embedding).all()
        assert (view.explained is None) == ("alpha" in settings)
    plain = Exploration(PRIORS[name][0], random_state=0).look(alpha=0.0, mu=0.0)
    if "erased" not in name:
        np.testing.assert_allclose(exploration.look(alpha=0.0, mu=0.0).embedding, plain.embedding, atol=1e-8)


def test_what_is_known_has_names() -> None:
    exploration = session("both")
    assert exploration.known_names == ["year", "brand"]
    assert exploration.known_beside(["year"]) == [
        "The label brand was known: its effect is explained away, given the clusters."
    ]
    assert exploration.known_beside(["year", "brand"]) == []
    assert known_names([], None) == []  # type: ignore[arg-type]
