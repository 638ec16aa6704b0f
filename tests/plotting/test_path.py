"""The figure of the path and the page of a view: what is drawn is counted, and nothing lies on anything else."""

from __future__ import annotations

import copy
import html
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from helpers import grouped
from imapce import IMAPCE, Attributes, Labels, Samples, Subset, load_model
from imapce.baselines import PCA
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.plotting import path_caption, plot_path, save_figure, write_view_report
from imapce.plotting.path import MOST_THUMBNAILS, compared_by, short_number, value_in_words
from imapce.plotting.reports.page import report_script
from imapce.priors.effect import explained_away

X = grouped().X
RUN = np.arange(300) // 150
BACKGROUND = np.random.default_rng(1).normal(size=(200, 8))
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "columns": ({}, Attributes([0, 1])),
    "background": ({}, Samples(BACKGROUND)),
    "label": ({}, Labels(RUN)),
    "both": ({}, [Samples(BACKGROUND), Attributes([0])]),
    "weighed": ({"alpha": 0.5}, Attributes([0, 1])),
    "nothing": ({}, None),
    "one view": ({"mu": 0.0}, None),
    "paper's mu": ({"mu": "paper"}, Samples(BACKGROUND)),
    "one axis": ({"n_components": 1}, None),
    "three axes": ({"n_components": 3}, Subset(np.arange(40))),
}
BY = dict.fromkeys(CASES, "seen") | dict.fromkeys(("background", "both", "weighed", "paper's mu"), "score")


def labels_of(name: str) -> Any:
    return RUN if name == "label" else None


@pytest.fixture(scope="module")
def models() -> dict[str, IMAPCE]:
    return {
        name: IMAPCE(**{"random_state": 0, "n_starts": 4} | changes).fit(X, prior=prior)
        for name, (changes, prior) in CASES.items()
    }


def dots(figure: Figure, panel: int) -> np.ndarray:
    clouds = [artist for artist in figure.axes[panel].collections if isinstance(artist, PathCollection)]
    return np.asarray(clouds[0].get_offsets())


def stars(figure: Figure, panel: int) -> list[Any]:
    return [line for line in figure.axes[panel].lines if line.get_marker() == "*"]


@pytest.mark.parametrize("name", CASES)
def test_every_view_is_a_dot_and_the_best_one_a_star(models: dict[str, IMAPCE], name: str) -> None:
    model = models[name]
    figure = plot_path(model)
    # Only what α weighs can leak: what is explained away has left the rows.
    leaks = name == "weighed"
    assert len(figure.axes) == 1 + leaks
    by = compared_by(model)
    assert by == BY[name]
    compared = [one for one in model.path_ if np.isfinite(getattr(one, by))]
    for panel, value in enumerate((by, "leakage")[: 1 + leaks]):
        assert sorted(dots(figure, panel)[:, 1]) == pytest.approx(sorted(getattr(one, value) for one in compared))
        assert len(stars(figure, panel)) == 1
    assert stars(figure, 0)[0].get_ydata()[0] == getattr(model.optima_[0], by)
    settings = {(one.alpha, one.mu) for one in compared}
    assert len(np.unique(dots(figure, 0)[:, 0])) == len(settings)
    labels = [tick.get_text() for tick in figure.axes[leaks].get_xticklabels()]
    assert labels == [short_number(mu) for _, mu in sorted(settings)]
    # Where nothing is weighed there is no α to name.
    named = sorted({alpha for alpha, _ in settings if np.isfinite(alpha)})
    assert [text.get_text() for text in figure.axes[0].texts] == [f"α = {short_number(alpha)}" for alpha in named]
    assert figure.axes[0].get_title(loc="left").endswith(" of α and μ" if named else " of μ")
    levels = [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    planes = [one.seen for one in model.path_ if one.mu == 0]
    assert levels == ([0.0] if by == "score" else planes[:1])


def test_a_line_for_every_alpha_joins_the_best_of_every_mu(models: dict[str, IMAPCE]) -> None:
    model = models["background"]
    lines = [
        line for line in plot_path(model).axes[0].lines if line.get_linewidth() == 1.4 and line.get_marker() == "o"
    ]
    drawn = [list(line.get_ydata()) for line in lines if len(line.get_xdata()) > 1]
    expected = [
        [max(one.score for one in model.path_ if (one.alpha, one.mu) == (alpha, mu)) for mu in mus]
        for alpha in sorted({one.alpha for one in model.path_})
        for mus in [sorted({one.mu for one in model.path_ if one.alpha == alpha})]
    ]
    assert drawn == expected
    assert len(drawn) == 4


@pytest.mark.parametrize("name", CASES)
def test_thumbnails_show_the_chosen_view_first_and_then_others(models: dict[str, IMAPCE], name: str) -> None:
    model = models[name]
    figure = plot_path(model, X, labels=labels_of(name))
    small = figure.axes[len(plot_path(model).axes) :]
    assert 1 <= len(small) <= min(MOST_THUMBNAILS, len(model.optima_))
    if name == "one axis":
        assert all(ax.patches for ax in small)
        return
    views = [np.asarray(ax.collections[0].get_offsets()) for ax in small]
    np.testing.assert_array_equal(views[0], model.transform(X, labels_of(name))[:, :2])
    axes = [np.linalg.qr(view - view.mean(axis=0))[0] for view in views]
    if model.n_components == 2:
        assert all(2 - np.sum((one.T @ other) ** 2) >= 0.25 for one, other in combinations(axes, 2))
    by = compared_by(model)
    told = [ax.get_title().split(f"{by} ")[1].split("\n")[0].removesuffix(" %") for ax in small]
    values = [float(text.replace("−", "-")) for text in told]
    # Of views that show the clusters alike the one that keeps most is first, so it may show a little less.
    assert values[by == "seen" :] == sorted(values[by == "seen" :], reverse=True)
    # A number is the one by which the view is drawn again.
    numbers = [int(ax.get_title().removeprefix("view ").split(":")[0]) for ax in small]
    for number, view in zip(numbers, views, strict=True):
        np.testing.assert_array_equal(view, model.transform(X, labels_of(name), view=number)[:, :2])
    written = [text.get_text() for text in figure.axes[0].texts if not text.get_text().startswith("α")]
    assert sorted(", ".join(written).split(", ")) == (sorted(map(str, numbers)) if len(small) > 1 else [""])


@pytest.mark.parametrize("name", CASES)
def test_panels_keep_apart_and_every_word_is_on_the_page(models: dict[str, IMAPCE], name: str) -> None:
    figure = plot_path(models[name], X, labels=labels_of(name))
    figure.draw_without_rendering()
    page = figure.bbox
    boxes = [ax.get_tightbbox() for ax in figure.axes]
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 for box in boxes)
    assert all(page.y0 <= box.y0 and box.y1 <= page.y1 for box in boxes)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    for words in (figure.axes[0].texts, figure.axes[0].get_xticklabels()):
        level = [text.get_window_extent() for text in words if text.get_text() and text.get_rotation() == 0]
        assert not any(one.overlaps(other) for one, other in combinations(level, 2))


def test_large_tables_are_sampled_for_thumbnails(models: dict[str, IMAPCE]) -> None:
    figure = plot_path(models["nothing"], np.tile(X, (30, 1)))
    assert len(figure.axes[1].collections[0].get_offsets()) == 5_000


def test_tables_and_table_output_give_the_same_picture(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=[f"c{place}" for place in range(8)])
    model = IMAPCE(random_state=0, n_starts=4).fit(table).set_output(transform="pandas")
    view = np.asarray(model.transform(table))
    np.testing.assert_array_equal(plot_path(model, table).axes[1].collections[0].get_offsets(), view)


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_a_saved_model_gives_the_same_bytes(models: dict[str, IMAPCE], tmp_path: Path, suffix: str) -> None:
    model = models["columns"]
    before = copy.deepcopy(model.__dict__)
    model.save(tmp_path / "view.imapce")
    written = [
        save_figure(plot_path(one, X), tmp_path / f"{number}{suffix}").read_bytes()
        for number, one in enumerate((model, load_model(tmp_path / "view.imapce")))
    ]
    assert written[0] == written[1]
    assert np.array_equal(model.components_, before["components_"])
    assert set(model.__dict__) == set(before)


def test_the_caption_says_how_well_the_clusters_are_seen_and_what_pca_shows(models: dict[str, IMAPCE]) -> None:
    for name in ("columns", "label", "nothing"):
        model = models[name]
        told, best = path_caption(model), model.optima_[0]
        assert told.startswith(
            f"Of {len(model.path_)} views this one was chosen by how well the {model.n_clusters_} clusters are seen: "
            f"the nearest rows tell the cluster of {value_in_words('seen', best)} of the rows; "
        )
        plane = next(one for one in model.path_ if one.mu == 0)
        of = "PCA's plane" + (" of what is left" if name != "nothing" else "")
        shown = f"it is {of} (μ = 0)" if best.mu == 0 else f"{of} (μ = 0) shows {value_in_words('seen', plane)}"
        assert shown in told
        clearer = best.seen < max(one.seen for one in model.path_)
        assert (f"is shown ({best.kept:.2f} of the neighbourhoods; 0 is chance" in told) is clearer
        assert "leakage" not in told


def test_a_clearer_view_that_chance_may_have_made_is_told_of(models: dict[str, IMAPCE]) -> None:
    model = copy.copy(models["nothing"])
    model.path_ = [*model.path_, replace(model.path_[0], seen=model.optima_[0].seen + 0.01)]
    assert "differ by no more than chance makes it, the one that keeps most of who is near whom is shown" in (
        path_caption(model)
    )


def test_the_caption_of_one_cluster_says_what_is_kept() -> None:
    model = IMAPCE(n_starts=4).fit(np.random.default_rng(1).normal(size=(200, 5)))
    told, best = path_caption(model), model.optima_[0]
    assert compared_by(model) == "kept"
    assert (
        f"keeps of who is near whom, since one cluster is all there is: {best.kept:.2f} of the neighbourhoods" in told
    )
    assert told.endswith("; 0 is chance, 1 a perfect map.")
    figure = plot_path(model)
    assert figure.axes[0].get_ylabel() == "neighbourhoods kept"
    assert [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_linestyle() == "--"] == [0.0]


def test_the_caption_of_a_score_says_where_the_view_was_found_and_what_it_is(models: dict[str, IMAPCE]) -> None:
    model = models["weighed"]
    best, told = max(model.path_, key=lambda one: one.score), path_caption(model)
    assert told.startswith(f"Of {len(model.path_)} views at 3 settings of α and μ the one with the highest score")
    assert f"{best.score:.2f} at α = 0.5 and μ = {short_number(best.mu)}" in told
    assert "(leakage)" in told
    assert "leakage" not in path_caption(models["background"])
    assert path_caption(models["one view"]).startswith("Only one view was found, so there was no choice: the nearest")
    assert "for granted" not in told
    doubtful = copy.copy(models["background"])
    doubtful.path_ = [replace(one, separation=one.separation - 5.0) for one in doubtful.path_]
    assert "take no group for granted" in path_caption(doubtful)


def test_old_models_that_tell_no_clusters_keep_their_reason(models: dict[str, IMAPCE]) -> None:
    """Files written when views were compared by neighbourhoods told `kept` and a separation, and never `seen`."""
    old = copy.copy(models["nothing"])
    before = {"seen": np.nan, "kept": 0.5, "separation": 0.4, "leakage": 0.0}
    old.path_ = [replace(one, **before) for one in old.path_]
    old.optima_ = [replace(one, **before) for one in old.optima_]
    old.n_clusters_ = None
    assert compared_by(old) == "kept"
    told = path_caption(old)
    assert f"how much it keeps of who is near whom: {old.optima_[0].kept:.2f} of the neighbourhoods" in told
    assert "cluster" not in told
    assert len(dots(plot_path(old, X), 0)) == len(old.path_)
    # Older ones told the score of the path alone.
    older = copy.copy(old)
    older.path_ = [replace(one, kept=np.nan) for one in old.path_]
    older.optima_ = [replace(one, kept=np.nan, separation=np.nan, leakage=np.nan) for one in old.optima_]
    assert compared_by(older) == "score"
    assert "the one with the highest score was chosen: 0.40" in path_caption(older)
    assert len(stars(plot_path(older, X), 0)) == 1


def test_views_without_a_score_are_left_out(models: dict[str, IMAPCE]) -> None:
    model = copy.copy(models["background"])
    model.path_ = [*model.path_, replace(model.path_[0], separation=-np.inf)]
    assert len(dots(plot_path(model, X), 0)) == len(model.path_) - 1
    model.path_ = model.path_[-1:]
    with pytest.raises(InvalidValueError, match="finite score"):
        plot_path(model)


def test_models_without_a_path_are_refused_with_a_sentence() -> None:
    with pytest.raises(InvalidTypeError, match="a fitted IMAPCE, got IMAPCE without"):
        plot_path(IMAPCE())
    given = IMAPCE(alpha=1.0, mu=10.0, n_starts=2, random_state=0).fit(X)
    with pytest.raises(InvalidValueError, match="this one was given both"):
        path_caption(given)
    with pytest.raises(InvalidTypeError, match="a fitted IMAPCE, got PCA without"):
        write_view_report(PCA().fit(X), X, "never.html")
    assert not Path("never.html").exists()


def test_numbers_are_short() -> None:
    values = (np.inf, 0.0, 0.75, -211.84, 21184.4, 1.0e12, -3.2e-7)
    assert [short_number(value) for value in values] == ["∞", "0", "0.75", "−212", "2.12e4", "1e12", "−3.2e-7"]


def test_the_page_of_a_view_has_a_section_on_the_choice_only_where_there_was_one(
    models: dict[str, IMAPCE], tmp_path: Path
) -> None:
    hostile = "<script>alert(1)</script>"
    target = write_view_report(
        models["columns"], X, tmp_path / "view.html", color=grouped().kind, color_name=hostile, title=hostile
    )
    page = target.read_text(encoding="utf-8")
    own = page.replace(f'<script type="module">{report_script()}</script>', "").replace(
        '<script type="application/json" id="rows">', ""
    )
    assert "<script" not in own
    assert path_caption(models["columns"]) in html.unescape(page)
    assert page.count("<img") == 4
    assert "labels that colour it were not used" in page
    given = IMAPCE(3, alpha=1.0, mu=10.0, n_starts=2, random_state=0).fit(X)
    page = write_view_report(given, X, tmp_path / "given.html", known=np.arange(300) < 50).read_text(encoding="utf-8")
    assert "Why this view" not in page
    assert page.count("<img") == 3
    assert "Known rows are grey" in page


@pytest.mark.parametrize(("name", "words"), [("nothing", "at the μ of the"), ("background", "at the α and μ of the")])
def test_a_report_says_whose_search_it_shows(models: dict[str, IMAPCE], name: str, words: str, tmp_path: Path) -> None:
    page = write_view_report(models[name], X, tmp_path / "view.html").read_text()
    assert f"{words} chosen view" in page


@pytest.mark.parametrize("name", ["columns", "label", "both"])
def test_a_report_names_what_is_left_given_the_known(models: dict[str, IMAPCE], name: str, tmp_path: Path) -> None:
    model = models[name]
    page = write_view_report(model, X, tmp_path / "view.html", labels=labels_of(name)).read_text()
    known = {"columns": "x0, x1", "label": "labels", "both": "x0"}[name]
    assert explained_away(model) == known.split(", ")
    assert f"The rows are shown given {known}, whose effect was explained away." in page
    read = model.read_back_
    assert read is not None
    assert f"The prior ({known}) can be predicted from the view with" in page
    assert f"{read['view']:.2f}, from the clusters with {read['clusters']:.2f}; chance {read['chance']:.2f}." in page
    # It is told once, and the table has the other columns alone.
    assert page.count("predicted from the view") == 1
    assert f'<th scope="col">feature given {known}</th>' in page
    rows = page.split(f'<th scope="col">feature given {known}</th>')[1].split("</table>")[0]
    absent = [f"x{place}" for place in range(8) if f"<td>x{place}</td>" not in rows]
    assert absent == ([] if name == "label" else known.split(", "))


def test_a_report_says_what_came_of_every_colour(models: dict[str, IMAPCE], tmp_path: Path) -> None:
    colours = {"x0": X[:, 0], "run": RUN, "kind": grouped().kind}
    told = {"x0": "known", "run": "erased"}
    page = write_view_report(models["columns"], X, tmp_path / "view.html", color=colours, told=told).read_text()
    caption = (
        "What is known colours it too: x0 was explained away, run was erased; the other labels that colour it were"
    )
    assert f"{caption} not used." in page
