"""What is drawn can be counted: points, legend entries, boxes that must not overlap, bytes of the files."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA

from browser import chromium_or_skip
from imapce import IMAPCE
from imapce.common.words import shorten
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.plotting import (
    Section,
    plot_comparison,
    plot_embedding,
    plot_loadings,
    plot_trace,
    save_figure,
    write_report,
)
from imapce.plotting.key import read_labels
from imapce.plotting.reports.view import write_view_report
from imapce.plotting.style import KNOWN_GREY, LABEL_HUES, MISSING_GREY, PALETTE
from imapce.tables.columns import Column

IRIS = load_iris()
SPECIES = IRIS.target_names[IRIS.target]
IRIS_VIEW = PCA(2).fit_transform(IRIS.data)
DIGITS = load_digits()
DIGITS_PCA = PCA(3).fit(DIGITS.data)
DIGITS_VIEW = DIGITS_PCA.transform(DIGITS.data)


def clouds(figure: Figure, panel: int = 0) -> list[PathCollection]:
    return [artist for artist in figure.axes[panel].collections if isinstance(artist, PathCollection)]


def legend_names(figure: Figure, panel: int = -1) -> list[str]:
    panels = [ax for ax in figure.axes if ax.get_legend() is not None]
    return [text.get_text() for text in panels[panel].get_legend().get_texts() if text.get_text()]


def color_at(figure: Figure, point: np.ndarray, panel: int = 0) -> str:
    """Find the colour in which the last artist drew a point."""
    found = ""
    for cloud in clouds(figure, panel):
        hits = np.flatnonzero((np.asarray(cloud.get_offsets()) == point).all(axis=1))
        if len(hits):
            found = to_hex(cloud.get_facecolor()[hits[-1]]).upper()
    return found


def model_of(n_features: int, name: str = "feature {}") -> SimpleNamespace:
    weights = np.random.default_rng(3).normal(size=(n_features, 2))
    names = [name.format(number) for number in range(n_features)]
    return SimpleNamespace(components_=np.linalg.qr(weights)[0].T, encoded_feature_names_=names)


def model_with_trace(sign: float = 1.0) -> SimpleNamespace:
    outcomes = ["converged", "gave up", "joined", "converged"]
    rounds = np.arange(20.0)[:, None]
    objectives = np.array([-1.0, -2.0, -3.0, -3.5]) + 4.0 * np.exp(-rounds * np.array([0.4, 0.5, 0.6, 0.7]))
    objectives[8:, 1] = np.nan
    objectives[12:, 2] = np.nan
    trace = SimpleNamespace(evaluations=list(range(10, 210, 10)), objectives=sign * objectives, outcomes=outcomes)
    return SimpleNamespace(trace_=trace, objective_=sign * float(np.nanmin(objectives)))


def test_every_row_is_drawn_once_and_known_rows_lie_below_in_grey() -> None:
    known = SPECIES == "setosa"
    figure = plot_embedding(IRIS_VIEW, color=SPECIES, marker=IRIS.data[:, 1] > 3, known=known)
    below, above = clouds(figure)
    assert (len(below.get_offsets()), len(above.get_offsets())) == (50, 100)
    assert below.get_zorder() < above.get_zorder()
    assert {to_hex(rgba).upper() for rgba in below.get_facecolor()} == {KNOWN_GREY}
    drawn = np.vstack([below.get_offsets(), above.get_offsets()])
    np.testing.assert_array_equal(np.sort(drawn, axis=0), np.sort(IRIS_VIEW, axis=0))
    assert legend_names(figure) == ["versicolor", "virginica", "known rows", "False", "True"]


def test_colors_follow_the_labels_and_do_not_change_when_rows_become_known() -> None:
    plain = plot_embedding(IRIS_VIEW, color=SPECIES)
    greyed = plot_embedding(IRIS_VIEW, color=SPECIES, known=SPECIES == "setosa")
    for row, hue in ((0, PALETTE[0]), (60, PALETTE[1]), (140, PALETTE[2])):
        assert color_at(plain, IRIS_VIEW[row]) == hue
    assert color_at(greyed, IRIS_VIEW[140]) == PALETTE[2]


def test_no_category_is_drawn_after_all_others() -> None:
    figure = plot_embedding(IRIS_VIEW, color=SPECIES)
    colors = [to_hex(rgba) for rgba in clouds(figure)[0].get_facecolor()]
    assert len(set(colors[-30:])) == 3
    again = [to_hex(rgba) for rgba in clouds(plot_embedding(IRIS_VIEW, color=SPECIES))[0].get_facecolor()]
    assert colors == again


def test_markers_differ_within_one_artist() -> None:
    cloud = clouds(plot_embedding(IRIS_VIEW, marker=SPECIES))[0]
    assert len({path.vertices.tobytes() for path in cloud.get_paths()}) == 3
    assert len(cloud.get_paths()) == 150


def test_more_categories_than_colors_keep_the_nineteen_largest() -> None:
    sizes = np.arange(20, 43)
    labels = np.repeat([f"c{number:02d}" for number in range(23)], sizes)
    view = np.random.default_rng(0).normal(size=(len(labels), 2))
    names = legend_names(plot_embedding(view, color=labels))
    assert names == [f"c{number:02d}" for number in range(4, 23)] + ["other (4 more)"]
    assert (len(set(PALETTE)), len(set(LABEL_HUES))) == (12, 20)


def test_twenty_classes_have_a_colour_each() -> None:
    view = np.random.default_rng(0).normal(size=(200, 2))
    figure = plot_embedding(view, color=np.arange(200) % 20)
    assert legend_names(figure) == [str(number) for number in range(20)]
    assert len({color_at(figure, point) for point in view}) == 20


def test_a_column_of_a_table_is_read_as_its_values_are() -> None:
    column = Column("species", codes=IRIS.target, levels=("setosa", "versicolor", "virginica", "none of them"))
    figure = plot_embedding(IRIS_VIEW, color=column)
    assert legend_names(figure) == ["species", "setosa", "versicolor", "virginica"]
    lengths = Column("petal length", values=IRIS.data[:, 2])
    assert plot_embedding(IRIS_VIEW, color=lengths).axes[0].child_axes[0].get_title(loc="left") == "petal length"
    assert legend_names(plot_embedding(IRIS_VIEW, color=Column("kind", values=IRIS.target * 1.0)))[1:] == list("012")
    with pytest.raises(InvalidValueError, match="one label for each of the 3 rows, got 150"):
        plot_embedding(IRIS_VIEW[:3], color=column)


def test_many_numbers_make_a_color_bar_and_few_make_categories() -> None:
    scale = plot_embedding(IRIS_VIEW, color=IRIS.data[:, 2], color_name="petal length")
    assert len(scale.axes[0].child_axes) == 1
    assert scale.axes[0].get_legend() is None
    assert legend_names(plot_embedding(IRIS_VIEW, color=IRIS.target)) == ["0", "1", "2"]


@pytest.mark.parametrize("absent", [None, float("nan")])
def test_missing_labels_are_grey_and_named(absent: object) -> None:
    labels = SPECIES.astype(object)
    labels[3] = absent
    figure = plot_embedding(IRIS_VIEW, color=labels)
    assert legend_names(figure)[-1] == "missing"
    assert color_at(figure, IRIS_VIEW[3]) == MISSING_GREY
    numbers = IRIS.data[:, 2].astype(object)
    numbers[3] = absent
    assert color_at(plot_embedding(IRIS_VIEW, color=numbers), IRIS_VIEW[3]) == MISSING_GREY


def test_labels_of_mixed_and_hostile_kinds_are_drawn_as_written() -> None:
    labels = np.array(["$x_{", "_hidden", "two\nlines", 4, True] * 30, dtype=object)
    figure = plot_embedding(IRIS_VIEW, color=labels, title="$\\frac", color_name="$_{")
    figure.draw_without_rendering()
    assert set(legend_names(figure)) == {"$_{", "$x_{", "_hidden", "two lines", "4", "True"}
    assert read_labels([1.0, 2.0, np.nan], "color", 3, most=12).levels == ("1", "2")


def test_three_columns_give_three_axes_and_every_row() -> None:
    figure = plot_embedding(DIGITS_VIEW, color=DIGITS.target, marker=DIGITS.target % 2)
    assert figure.axes[0].name == "3d"
    assert sum(len(cloud.get_offsets()) for cloud in clouds(figure)) == len(DIGITS_VIEW)
    figure.draw_without_rendering()


@pytest.mark.parametrize("view", [IRIS_VIEW, DIGITS_VIEW], ids=["2-D", "3-D"])
@pytest.mark.parametrize("continuous", [False, True])
def test_the_key_lies_beside_the_data_and_inside_the_page(view: np.ndarray, continuous: bool) -> None:
    rows = np.arange(len(view))
    color = rows * 1.5 if continuous else [f"a rather long category name {row % 14}" for row in rows]
    figure = plot_embedding(view, color=color, marker=rows % 8, known=rows < 5, color_name="c", marker_name="m")
    figure.draw_without_rendering()
    ax = figure.axes[0]
    legend = ax.get_legend().get_window_extent()
    assert legend.x0 >= ax.get_window_extent().x1
    assert figure.bbox.x0 <= legend.x0
    assert legend.x1 <= figure.bbox.x1
    assert legend.y0 >= figure.bbox.y0
    assert not any(legend.overlaps(bar.get_tightbbox()) for bar in ax.child_axes)


def test_a_comparison_names_the_axes_of_a_table_by_its_columns() -> None:
    table = pd.DataFrame(IRIS_VIEW[:, :2], columns=["pca0", "pca1"])
    unnamed = pd.DataFrame(IRIS_VIEW[:, :2])
    figure = plot_comparison([("PCA", table), ("numbered", unnamed), ("ours", IRIS_VIEW[:, :2])])
    assert [ax.get_xlabel() for ax in figure.axes] == ["pca0", "imapce0", "imapce0"]
    figure = plot_comparison([("PCA", table)], axis_names=["first", "second"])
    assert [(ax.get_xlabel(), ax.get_ylabel()) for ax in figure.axes] == [("first", "second")]


def test_a_comparison_shares_its_colors_and_one_legend() -> None:
    panels = [("one", DIGITS_VIEW[:, :2]), ("two", DIGITS_VIEW[:, 1:]), ("three", DIGITS_VIEW[:, ::2])]
    figure = plot_comparison(panels, color=DIGITS.target, known=DIGITS.target == 0)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one", "two", "three"]
    assert sum(ax.get_legend() is not None for ax in figure.axes) == 1
    assert legend_names(figure) == [*"123456789", "known rows"]
    for row in (1, 2, 3, 10):
        assert len({color_at(figure, view[row], panel) for panel, (_, view) in enumerate(panels)}) == 1
    figure.draw_without_rendering()
    widths = [ax.get_window_extent().width for ax in figure.axes]
    assert max(widths) - min(widths) < 1.0


@pytest.mark.parametrize("n_features", [4, 64, 784])
@pytest.mark.parametrize("with_view", [False, True])
def test_feature_names_do_not_overlap_and_stay_inside(n_features: int, with_view: bool) -> None:
    model = model_of(n_features, "a long feature name with number {} in it")
    figure = plot_loadings(model, embedding=IRIS_VIEW if with_view else None)
    figure.draw_without_rendering()
    ax = figure.axes[0]
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == min(n_features, 12)
    assert all("…" in text.get_text() and len(text.get_text()) <= 24 for text in ax.texts)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    page = ax.get_window_extent()
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 for box in boxes)


def test_only_the_longest_arrows_are_named() -> None:
    model = model_of(50)
    figure = plot_loadings(model, max_labels=5)
    longest = np.argsort(-np.hypot(*model.components_))[:5]
    assert {text.get_text() for text in figure.axes[0].texts} == {f"feature {number}" for number in longest}
    arrows = next(artist for artist in figure.axes[0].collections if isinstance(artist, Quiver))
    np.testing.assert_allclose(np.c_[arrows.U, arrows.V], model.components_.T[longest])


def test_bundled_arrows_keep_their_names_apart() -> None:
    tilt = np.linspace(0.0, 0.05, 12)
    bundle = SimpleNamespace(
        components_=np.stack([np.cos(tilt), np.sin(tilt)]),
        encoded_feature_names_=[f"pixel{n}" for n in range(12)],
    )
    figure = plot_loadings(bundle)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) >= 5
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["minimised", "maximised"])
def test_the_trace_shows_gaps_and_counts_outcomes(sign: float) -> None:
    figure = plot_trace(model_with_trace(sign))
    ax = figure.axes[0]
    assert ax.get_yscale() == "log"
    assert [len(line.get_xdata()) for line in ax.lines] == [20, 8, 12, 20]
    assert all((line.get_ydata() > 0).all() for line in ax.lines)
    assert int(np.argmax([line.get_linewidth() for line in ax.lines])) == 3
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(2.5, rel=0.01)
    model = model_with_trace(sign)
    model.objective_ -= sign
    polished = plot_trace(model).axes[0].lines[3].get_ydata()
    assert polished[-1] == pytest.approx(1.0)
    assert legend_names(figure) == ["best start (converged)", "converged (1)", "gave up (1)", "joined (1)"]


def test_an_axes_of_ones_own_is_used() -> None:
    page = Figure()
    ax = page.add_subplot()
    assert plot_embedding(IRIS_VIEW, ax=ax) is page
    assert plot_trace(model_with_trace(), ax=page.add_subplot(1, 2, 2)) is page
    with pytest.raises(InvalidValueError, match="3-D axes"):
        plot_embedding(DIGITS_VIEW, ax=ax)


def test_global_matplotlib_state_is_left_alone(tmp_path: Path) -> None:
    from matplotlib import pyplot

    # Other libraries in this process may have figures open of their own.
    before, opened = dict(matplotlib.rcParams), pyplot.get_fignums()
    figure = plot_comparison([("one", IRIS_VIEW)], color=SPECIES)
    save_figure(figure, tmp_path / "view.svg")
    plot_loadings(model_of(10))
    assert pyplot.get_fignums() == opened
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_the_same_figure_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    written = []
    figure = plot_embedding(IRIS_VIEW, color=SPECIES, title="iris")
    for number, drawn in enumerate((figure, figure, plot_embedding(IRIS_VIEW, color=SPECIES, title="iris"))):
        written.append(save_figure(drawn, tmp_path / f"{number}{suffix}").read_bytes())
    assert written[0] == written[1] == written[2]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_failed_write_keeps_the_old_file_and_leaves_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "view.png"
    target.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError("disk")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InvalidValueError, match="disk"):
        save_figure(plot_embedding(IRIS_VIEW), target)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


BROKEN = IRIS_VIEW.copy()
BROKEN[7, 0] = np.nan


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: plot_embedding(BROKEN), "embedding must be finite.*first: row 7"),
        (lambda: plot_embedding(IRIS.data), r"2 or 3 columns, got shape \(150, 4\)"),
        (lambda: plot_embedding(IRIS_VIEW[:0]), "one row per point"),
        (lambda: plot_embedding([["a", "b"]]), "embedding must be a table of numbers"),
        (
            lambda: plot_embedding(IRIS_VIEW, color=SPECIES[:9]),
            "color must hold one label for each of the 150",
        ),
        (
            lambda: plot_embedding(IRIS_VIEW, color="species"),
            "color must hold one label per row, got 'species'",
        ),
        (lambda: plot_embedding(IRIS_VIEW, marker=IRIS.data[:, 0]), "marker must hold categories"),
        (lambda: plot_embedding(IRIS_VIEW, known=[1, 2]), "known must be a mask of 150"),
        (lambda: plot_embedding(IRIS_VIEW, axis_names=["x"]), "axis_names must hold one name"),
        (lambda: plot_comparison([]), "panels must be a list"),
        (lambda: plot_comparison([("a", IRIS_VIEW), ("b", IRIS_VIEW[1:])]), "panels must show the same rows"),
        (lambda: plot_loadings(model_of(3), max_labels=-1), "max_labels must be"),
        (lambda: plot_loadings(model_of(3), axes=(0, 2)), "axes must be two different axes of the 2"),
        (lambda: plot_loadings(object()), "model must be a fitted model with components_"),
        (lambda: plot_trace(object()), "model must be a fitted model with trace_"),
        (lambda: save_figure(Figure(), "view.gif"), "path must end in .png, .pdf or .svg, got 'view.gif'"),
        (lambda: save_figure(Figure(), "no/such/folder/view.png"), "existing folder"),
        (lambda: write_report("report.txt", title="t", sections=[]), "path must end in .html"),
        (
            lambda: write_report("r.html", title="t", sections=[Section("s", table=(["a", "b"], [[1]]))]),
            "must have 2 cells in every row",
        ),
    ],
)
def test_unusable_input_is_refused_with_a_sentence(call: object, sentence: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=sentence):
        call()  # type: ignore[operator]
    assert not Path("r.html").exists()


HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"


def hostile_report(path: Path) -> Path:
    table = ([HOSTILE, "score"], [[HOSTILE, 0.123456], ["half \ud83d", 12345]])
    sections = [
        Section(HOSTILE, f"{HOSTILE}\n\nsecond", [(HOSTILE, plot_embedding(IRIS_VIEW, title=HOSTILE))], table=table),
        *(Section(f"part {number}") for number in range(4)),
    ]
    return write_report(path, title=HOSTILE, sections=sections, summary={HOSTILE: HOSTILE})


def test_the_report_is_one_page_that_shows_everything_as_text(tmp_path: Path) -> None:
    page = hostile_report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert page.count("<img") == 1
    assert "http://" not in page
    assert "https://" not in page
    assert "&lt;script&gt;" in page
    assert "0.1235" in page
    assert "12,345" in page
    assert page == hostile_report(tmp_path / "again.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.html", "report.html"]


def test_the_report_opens_offline_without_complaints(tmp_path: Path) -> None:
    chromium, sync_playwright = chromium_or_skip()
    report = hostile_report(tmp_path / "report.html")
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(offline=True, viewport={"width": 390, "height": 800})
        page = context.new_page()
        complaints: list[str] = []
        requests: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(report.as_uri())
        assert page.locator("h1").inner_text() == HOSTILE
        assert page.evaluate("document.images[0].naturalWidth") > 1000
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("document.querySelectorAll('nav a').length") == 5
        browser.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def test_names_are_shortened_in_the_middle() -> None:
    assert shorten("marital-status=Married-civ-spouse", 20) == "marital-statu…spouse"
    assert shorten(" a\n b ") == "a b"
    assert shorten("") == "(empty)"


def test_a_view_whose_starts_began_at_the_optimum_has_a_report_without_their_lines(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((60, 2))
    model = IMAPCE(random_state=0).fit(X)
    assert not np.isfinite(model.trace_.objectives).any(axis=0).all()
    write_view_report(model, X, tmp_path / "report.html")
    assert "The search" in (tmp_path / "report.html").read_text()
