"""Figures and pages tell whether groups are clear, possible or no more than chance, and how stable."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from imapce import IMAPCE, Exploration
from imapce.exploration.verdict import best_split_in_words
from imapce.plotting import plot_proposal, plot_step, write_exploration_report
from imapce.plotting.steps import cluster_hue
from judged import WORDS, judged

GROUPS = np.random.default_rng(0).standard_normal((150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]
NOISE = np.random.default_rng(0).standard_normal((120, 4))


def session(data: Any = GROUPS) -> Exploration:
    return Exploration(data, random_state=0, estimator=IMAPCE(mu=50.0, n_starts=2))


def page_of(exploration: Exploration, path: Path) -> str:
    write_exploration_report(exploration, path)
    return html.unescape(path.read_text(encoding="utf-8")).replace("\N{NO-BREAK SPACE}", " ")


def title_of(figure: Figure, panel: int = 0) -> str:
    return " ".join((figure.axes[panel].get_title() or figure.axes[panel].get_title(loc="left")).split())


def drawn(figure: Figure) -> dict[str, int]:
    clouds = [one for one in figure.axes[0].collections if isinstance(one, PathCollection)]
    return {to_hex(one.get_facecolor()[0]).upper(): len(one.get_offsets()) for one in clouds}


def test_a_figure_of_one_group_shows_the_best_split_and_says_it_is_chance() -> None:
    exploration = session(NOISE)
    step = exploration.propose()
    figure = plot_proposal(step)
    assert step.structure is not None
    assert step.structure.candidate is not None
    sizes = step.structure.sizes
    assert drawn(figure) == {cluster_hue(place): size for place, size in enumerate(sizes)}
    assert title_of(figure) == "Step 1, view 1 of 2: no structure beyond chance"
    legend = figure.axes[0].get_legend()
    assert legend is not None
    told = [text.get_text() for text in legend.get_texts()]
    assert told == [f"best split: {size} rows\nno more than chance" for size in sizes]
    assert figure.axes[0].patches[:] == []


def test_a_page_of_one_group_draws_the_view_and_the_best_split(tmp_path: Path) -> None:
    exploration = session(NOISE).run()
    page = page_of(exploration, tmp_path / "page.html")
    assert exploration.structure is not None
    assert exploration.structure.candidate is not None
    best = best_split_in_words(exploration.structure)
    assert f"are one group. {best}, shown best by view 1 of 2." in page
    assert f"{best}, each group in a colour of its own; it is no more than chance" in page
    assert "Which features make the view" in page
    assert page.count("<img") == 2
    assert "What could be tried" in page
    assert "on a log scale or by rank" in page
    assert "structure=" not in page


def test_a_page_tells_of_skewed_columns_where_there_are_some(tmp_path: Path) -> None:
    table = pd.DataFrame(NOISE, columns=[f"c{i}" for i in range(NOISE.shape[1])])
    page = page_of(Exploration(table, transform="log", random_state=0).run(), tmp_path / "even.html")
    assert "What could be tried" in page
    assert "hide groups" not in page
    assert "on a log scale or by rank" in page
    table["fee"] = np.random.default_rng(0).lognormal(sigma=1.5, size=len(table))
    page = page_of(Exploration(table, random_state=0).run(), tmp_path / "skewed.html")
    assert "hide groups. strongly skewed: 'fee'" in page
    page = page_of(Exploration(table, transform="log", random_state=0).run(), tmp_path / "scaled.html")
    assert "What could be tried" in page
    assert "on a log scale" not in page
    table["kind"] = np.resize(["a", "b", "c"], len(table))
    assert "120 × 6" in page_of(Exploration(table, random_state=0), tmp_path / "kinds.html")


def test_a_page_of_one_group_shows_the_labels_too(tmp_path: Path) -> None:
    labels = {"half": np.arange(len(NOISE)) % 2, "amount": NOISE[:, 0]}
    session(NOISE).run().report(tmp_path / "page.html", labels=labels)
    page = (tmp_path / "page.html").read_text()
    assert page.count("<img") == 4
    assert "The same rows by half, which was not used." in page
    assert "The same rows by amount, which was not used." in page


def test_a_page_of_nothing_looked_at_draws_nothing(tmp_path: Path) -> None:
    assert "<img" not in page_of(session(), tmp_path / "page.html")


@pytest.mark.parametrize(
    ("verdict", "title", "panel", "answer", "fact"),
    [
        ("clear", "Step 1", "What was taken", "Yes, clearly", "clear"),
        (
            "possible",
            f"Step 1 Possible structure: {WORDS}",
            "What was taken: possible groups",
            "Possible",
            "possible",
        ),
        (
            "none",
            f"Step 1 No structure beyond chance, taken all the same: {WORDS}",
            "What was taken: groups by chance",
            "None beyond chance, and the best split was taken all the same",
            "by chance",
        ),
    ],
)
def test_figures_and_page_say_how_sure_groups_are(
    verdict: str, title: str, panel: str, answer: str, fact: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(monkeypatch, verdict)
    exploration = session().go_on_with(structure="ignore")
    assert title_of(plot_proposal(exploration.propose())) == title
    exploration.run()
    assert title_of(plot_step(exploration, 0), 1) == panel
    page = page_of(exploration, tmp_path / "page.html")
    assert f"Is there structure at all? {answer}: {WORDS}." in page
    assert f"<dd>{fact}</dd>" in page
    assert page.count("It reappears in 9 of 10 resamples.") == 2
    assert page.count("It reappears in 3 of 10 resamples: unstable.") == 1
    assert "Stability" in page


def test_rows_by_hand_have_no_stability_on_the_page(tmp_path: Path) -> None:
    exploration = session()
    exploration.accept(mask=np.arange(30))
    page = page_of(exploration, tmp_path / "page.html")
    assert "It reappears in" not in page
    assert '<th scope="col">stability</th>' not in page
    assert "Is there structure at all?" not in page
