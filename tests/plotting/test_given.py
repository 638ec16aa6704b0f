"""What figures and pages say of rows given the known: arrows, axes and tooltips are those of the other columns."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from imapce import IMAPCE, Attributes, Exploration, Labels, load_model
from imapce.choice.leakage import PriorLeakage, without_leakage
from imapce.plotting import plot_loadings, plot_step, write_view_report
from imapce.plotting.style import axes_given
from imapce.priors.effect import explained_away, strongest

MAKE = np.arange(120) % 3


@pytest.fixture(scope="module")
def cars() -> pd.DataFrame:
    names = ["price", "power", "length", "age"]
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 4)) + 3 * MAKE[:, None], columns=names)
    return table.assign(make=np.array(["audi", "fiat", "saab"])[MAKE])


@pytest.fixture(scope="module")
def model(cars: pd.DataFrame) -> IMAPCE:
    return IMAPCE(n_starts=2).fit(cars, prior=Attributes(["make", "age"]))


def test_the_known_is_named_once_whatever_its_door(cars: pd.DataFrame, model: IMAPCE) -> None:
    assert explained_away(model) == ["age", "make"]
    others = cars.drop(columns="make")
    told = IMAPCE(n_starts=2).fit(others, prior=[Attributes(["age"]), Labels(cars["make"])])
    assert explained_away(told) == ["age", "make"]
    assert [model.encoded_feature_names_[place] for place in sorted(strongest(model, 9))] == [
        "price",
        "power",
        "length",
    ]
    erased = IMAPCE(n_starts=2).fit(cars, prior=Attributes(["age"], erase=True))
    assert explained_away(erased) == []
    assert len(strongest(erased, 9)) == len(erased.encoded_feature_names_)


def test_arrows_are_those_of_what_is_left_and_the_axes_say_given_what(cars: pd.DataFrame, model: IMAPCE) -> None:
    figure = plot_loadings(model, embedding=model.transform(cars))
    ax = figure.axes[0]
    assert {text.get_text() for text in ax.texts} <= {"price", "power", "length"}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("imapce0 given age, make", "imapce1 given age, make")
    figure.draw_without_rendering()
    titles = [one for one in ax.findobj(Text) if one.get_text() in ("feature weights", ax.get_title(loc="right"))]
    words = [ax.xaxis.label, ax.yaxis.label, *ax.texts, *titles]
    extents = [one.get_window_extent() for one in words if one.get_text()]
    assert len(extents) >= 4
    assert not any(one.overlaps(other) for one, other in combinations(extents, 2))


def test_axes_of_many_known_names_stay_short() -> None:
    known = ["year of the first registration", *(f"column {place}" for place in range(9))]
    assert axes_given(["imapce0"], known) == ["imapce0 given year of the first …istration, and 9 more"]
    assert axes_given(["imapce0"], ["make", "age"]) == ["imapce0 given make, age"]
    assert axes_given(["imapce0"], []) == ["imapce0"]


def test_a_tooltip_tells_the_columns_that_make_the_view(cars: pd.DataFrame, model: IMAPCE, tmp_path: Path) -> None:
    page = write_view_report(model, cars, tmp_path / "view.html").read_text()
    rows = json.loads(page.split('<script type="application/json" id="rows">')[1].split("</script>")[0])
    told = json.dumps(rows)
    assert all(f'"{name}"' in told for name in ("price", "power", "length"))
    assert '"make"' not in told
    assert '"age"' not in told
    asked = write_view_report(model, cars, tmp_path / "asked.html", hover=["make"]).read_text()
    assert '"make"' in asked.split('id="rows">')[1].split("</script>")[0]


def test_the_figure_of_a_step_says_given_what() -> None:
    rng, run = np.random.default_rng(0), np.arange(120) % 2
    X = rng.normal(size=(120, 4)) + 8 * (np.arange(120) // 60)[:, None] * [1, 1, 0, 0] + run[:, None]
    exploration = Exploration(X, prior=Labels(pd.Series(run, name="run")), random_state=0)
    exploration.accept()
    assert exploration.explained_away == ["run"]
    assert (exploration.came_of("run"), exploration.came_of("x0")) == ("explained away", None)
    figure = plot_step(exploration, 0)
    assert [ax.get_xlabel() for ax in figure.axes] == ["+ x1 + x0, given run"] * 2
    assert [text.get_text() for text in figure.axes[0].texts] == ["known: run"]
    proposed = exploration.undo().propose().plot().axes[0]
    assert (proposed.get_xlabel(), "known: run" in [text.get_text() for text in proposed.texts]) == (
        "+ x1 + x0, given run",
        True,
    )


def test_how_a_search_ended_is_told_without_the_known(model: IMAPCE, tmp_path: Path) -> None:
    assert PriorLeakage.from_model(model) is not None
    assert " can be predicted " in model.stop_reason_
    assert without_leakage(model.stop_reason_) == model.stop_reason_[: model.stop_reason_.index(" The prior")]
    model.save(tmp_path / "view.imapce")
    assert load_model(tmp_path / "view.imapce").stop_reason_ == model.stop_reason_
    message = "The known (a; b) is read back from the view with R² -0.02, from the clusters 0.00; chance 0.00."
    saved = f"Converged. {message} 1 row"
    assert without_leakage(saved) == "Converged. 1 row"
    assert without_leakage("Converged.") == "Converged."
