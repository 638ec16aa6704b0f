"""What the figures and the report of an exploration show can be counted: points, ellipses, bars, words on the page."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from browser import chromium_or_skip
from imapce import IMAPCE, Subset
from imapce.errors import InvalidValueError
from imapce.exploration.record import Moves
from imapce.exploration.session import Exploration
from imapce.exploration.traits import overlap_in_words
from imapce.plotting import plot_overview, plot_proposal, plot_step, write_exploration_report
from imapce.plotting.cloud import Cloud
from imapce.plotting.key import read_labels
from imapce.plotting.overview import label_counts, plot_all_clusters
from imapce.plotting.reports.page import report_script
from imapce.plotting.steps import OTHER_GREY, UNEXPLORED_BLACK, cluster_hue
from imapce.plotting.style import KNOWN_GREY

HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)> $x_{ " + "long " * 30
CENTRES = 8.0 * np.eye(6)[:4]
GROUP = np.repeat([0, 1, 2, 3], 90)
ROWS = CENTRES[GROUP] + np.random.default_rng(0).normal(size=(360, 6))
CLASSES = np.array(["ash", "birch", "cedar", "dogwood"])[GROUP]


def explored(*, steps: int | None = None, k: int = 2, **options: Any) -> Exploration:
    X = options.pop("X", ROWS)
    estimator = IMAPCE(k, n_starts=3)
    return Exploration(X, estimator=estimator, min_cluster_size=30, random_state=0, **options).run(max_steps=steps)


@pytest.fixture(scope="module")
def session() -> Exploration:
    """At least two steps, ten rows known at the start."""
    exploration = explored(prior=Subset(np.arange(10)))
    assert len(exploration.steps) >= 2
    return exploration


def drawn(figure: Figure, panel: int) -> dict[str, int]:
    """Count the points of a panel by colour."""
    counts: dict[str, int] = {}
    for cloud in figure.axes[panel].collections:
        if isinstance(cloud, PathCollection):
            colors = cloud.get_facecolor() if len(cloud.get_facecolor()) else cloud.get_edgecolor()
            hue = to_hex(colors[0]).upper()
            counts[hue] = counts.get(hue, 0) + len(cloud.get_offsets())
    return counts


def ellipses(figure: Figure, panel: int) -> list[Ellipse]:
    return [patch for patch in figure.axes[panel].patches if isinstance(patch, Ellipse)]


def page_of(exploration: Exploration, path: Path, **options: Any) -> str:
    write_exploration_report(exploration, path, **options)
    return path.read_text(encoding="utf-8")


def test_every_step_shows_known_unexplored_and_taken_rows(session: Exploration) -> None:
    known = 10
    for index, step in enumerate(session.steps):
        figure = plot_step(session, index)
        taken = {cluster_hue(cluster.number): cluster.size for cluster in step.clusters}
        rest = 360 - known - sum(taken.values())
        assert drawn(figure, 0) == {KNOWN_GREY: known, UNEXPLORED_BLACK: 360 - known}
        assert drawn(figure, 1) == {KNOWN_GREY: known, **taken, **({OTHER_GREY: rest} if rest else {})}
        known += sum(taken.values())


def test_taken_clusters_are_encircled_where_their_rows_are(session: Exploration) -> None:
    figure = plot_step(session, 0)
    clusters = session.steps[0].clusters
    coordinates = session.coordinates(session.steps[0])
    assert not ellipses(figure, 0)
    around = ellipses(figure, 1)
    assert {patch.get_fill() for patch in around} == {False}
    centres = np.unique([patch.get_center() for patch in around], axis=0)
    np.testing.assert_allclose(
        np.sort(centres, axis=0), np.sort([coordinates[cluster.rows].mean(axis=0) for cluster in clusters], axis=0)
    )
    for patch in around:
        to_circle = patch.get_patch_transform().inverted()
        rows = min(clusters, key=lambda one: np.hypot(*(coordinates[one.rows].mean(axis=0) - patch.get_center()))).rows
        inside = np.hypot(*to_circle.transform(coordinates[rows]).T) <= 1.0
        assert 0.75 < inside.mean() < 0.97
    assert [text.get_text() for text in figure.axes[1].texts] == [str(one.number) for one in clusters]


def test_the_third_panel_is_there_for_labels_only(session: Exploration) -> None:
    assert len(plot_step(session, 1).axes) == 2
    labels = CLASSES.astype(object)
    labels[::7] = None
    figure = plot_step(session, 1, labels=labels, label_name="tree")
    assert len(figure.axes) == 3
    names = [text.get_text() for text in figure.axes[2].get_legend().get_texts()]
    assert names[0] == "tree"
    assert "missing" in names
    figure.draw_without_rendering()
    assert len({ax.get_xlim() for ax in figure.axes}) == len({ax.get_ylim() for ax in figure.axes}) == 1


def test_known_rows_far_away_do_not_squeeze_the_others() -> None:
    # Along what parts the groups, which every good view shows.
    far = np.vstack([ROWS, 200.0 * (CENTRES[1] - CENTRES[0]) + ROWS[:20]])
    figure = plot_step(explored(X=far, steps=1, prior=Subset(np.arange(360, 380))), 0)
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert names == ["known (20, 20 outside)", "unexplored (360)"]
    unexplored = np.asarray(figure.axes[0].collections[1].get_offsets())
    for low_high, values in zip((figure.axes[0].get_xlim(), figure.axes[0].get_ylim()), unexplored.T, strict=True):
        assert low_high[0] < values.min() < values.max() < low_high[1]


def test_a_proposal_shows_all_clusters_and_encircles_the_most_distinct() -> None:
    step = explored(steps=0, prior=Subset(np.arange(10))).propose()
    figure = plot_proposal(step)
    outliers = int((step.unexplored & (step.clusters < 0)).sum())
    found = step.views[0].clustering
    expected = {cluster_hue(int(number)): int(size) for number, size in zip(found.numbers, found.sizes, strict=True)}
    expected |= {KNOWN_GREY: 10} | ({OTHER_GREY: outliers} if outliers else {})
    assert drawn(figure, 0) == expected
    numbers = [str(number) for number in step.most_distinct]
    assert [text.get_text() for text in figure.axes[0].texts] == [*numbers, "known: 10 rows"]
    key = " ".join(text.get_text() for text in figure.axes[0].get_legend().get_texts())
    assert all(overlap_in_words(overlap) in key for overlap in step.overlap)
    with pytest.raises(InvalidValueError, match="view must be from 0"):
        plot_proposal(step, view=99)


def test_the_overview_has_a_bar_for_every_row_in_the_colors_of_the_steps(session: Exploration) -> None:
    bars = plot_overview(session).axes[0].patches
    sizes = [cluster.size for cluster in session.clusters_]
    left = int((~session.known).sum())
    assert [bar.get_width() for bar in bars] == sizes + ([left] if left else []) + [10]
    assert sum(bar.get_width() for bar in bars) == 360
    hues = [to_hex(bar.get_facecolor()).upper() for bar in bars][: len(sizes)]
    assert hues == [cluster_hue(cluster.number) for cluster in session.clusters_]
    for index, cluster in zip(session.origins_, session.clusters_, strict=True):
        assert index is not None
        assert drawn(plot_step(session, index - 1), 1)[cluster_hue(cluster.number)] == cluster.size


def test_the_heat_map_counts_labels_and_leaves_out_a_scale(session: Exploration) -> None:
    labels = pd.Series(CLASSES, name="tree").where(GROUP != 3)
    figure = plot_overview(session, labels=labels)
    assert figure.axes[1].get_title(loc="left") == "Rows by tree"
    names = [tick.get_text() for tick in figure.axes[1].get_xticklabels()]
    assert names == ["ash", "birch", "cedar", "missing"]
    assert sum(int(text.get_text()) for text in figure.axes[1].texts) == 360
    assert len(plot_overview(session, labels=ROWS[:, 0]).axes) == 1
    read = read_labels(["a", "b", None, "a"], "labels", 4, most=15)
    assert label_counts(read, [np.array([0, 3, 2]), np.array([1])])[1].tolist() == [[2, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize("k", [1, 3])
def test_views_of_other_dimensions_say_what_is_drawn(k: int, tmp_path: Path) -> None:
    exploration = explored(k=k, steps=1)
    figure = plot_step(exploration, 0, labels=CLASSES)
    names = (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel())
    told = exploration.axes_in_words(exploration.steps[0])
    assert all(re.match(r"[+−] x\d", words) for words in told)
    assert names == {1: (told[0], "row"), 3: (f"{told[0]} (of 3)", f"{told[1 % k]} (of 3)")}[k]
    page = page_of(exploration, tmp_path / "report.html", labels=CLASSES)
    assert ("The first two of 3 axes are drawn." in page) == (k == 3)
    plot_proposal(exploration.undo().propose()).draw_without_rendering()


def test_an_exploration_without_steps_has_a_page(tmp_path: Path) -> None:
    exploration = Exploration(ROWS, random_state=0)
    page = page_of(exploration, tmp_path / "report.html", labels=CLASSES)
    assert "No step was accepted" in page
    assert "not finished: 360 rows are unexplored" in page
    assert "<img" not in page
    plot_overview(exploration, labels=CLASSES).draw_without_rendering()
    with pytest.raises(InvalidValueError, match="none is accepted yet"):
        plot_step(exploration, 0)


def test_rows_taken_by_hand_are_drawn_even_when_they_have_no_spread(tmp_path: Path) -> None:
    exploration = explored(steps=0)
    exploration.accept(mask=[5])
    assert ellipses(plot_step(exploration, 0), 1)
    page = page_of(exploration, tmp_path / "report.html")
    assert "Cluster 0 has 1 row (under 1\xa0%), taken in step 1 and chosen by hand." in page
    assert "overlap)" not in page


def many_steps(exploration: Exploration, n_steps: int) -> Exploration:
    """The same exploration with its first step repeated on other rows."""
    step = exploration.steps[0]
    parts = np.array_split(np.arange(360), n_steps)
    taken = [replace(step.clusters[0], rows=part, number=place, chosen="hand") for place, part in enumerate(parts)]
    moves = Moves(360, tuple(replace(step, clusters=(cluster,)) for cluster in taken))
    return Exploration.of_record(replace(exploration.record(), moves=moves), ROWS)


def test_many_steps_fit_on_one_page(tmp_path: Path) -> None:
    exploration = many_steps(explored(steps=1), 30)
    overview = plot_overview(exploration, labels=CLASSES)
    overview.draw_without_rendering()
    boxes = [tick.get_window_extent() for tick in overview.axes[0].get_yticklabels()]
    assert len(boxes) == 30
    assert not any(one.overlaps(other) for one, other in pairwise(boxes))
    path = tmp_path / "report.html"
    page = page_of(many_steps(exploration, 13), path)
    # The view of all clusters, the bars and one for each of fourteen steps, thirteen of which share the last view.
    assert page.count("<img") == 16
    assert "Every row is taken." in page
    assert path.stat().st_size < 2e6


def test_many_rows_are_images() -> None:
    exploration = explored(X=np.tile(ROWS, (60, 1)), steps=1)
    figure = plot_step(exploration, 0, labels=np.tile(CLASSES, 60))
    assert not [cloud for ax in figure.axes for cloud in ax.collections]
    assert all(any(isinstance(one, Cloud) for one in ax.get_children()) for ax in figure.axes)


def test_labels_and_steps_that_do_not_fit_are_refused(session: Exploration, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="labels must hold one label for each of the 360 rows"):
        plot_step(session, 0, labels=CLASSES[:9])
    with pytest.raises(InvalidValueError, match="labels must hold one label"):
        session.report(tmp_path / "report.html", labels=CLASSES[:9])
    with pytest.raises(InvalidValueError, match="index must be from 0 to"):
        plot_step(session, -1)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report whose title, feature names and labels try to be HTML and formulas."""
    table = pd.DataFrame(ROWS, columns=[f"{HOSTILE}{number}" for number in range(6)])
    labels = pd.Series(np.where(GROUP == 0, HOSTILE, CLASSES), name=HOSTILE)
    path = tmp_path_factory.mktemp("report") / "report.html"
    explored(X=table).report(path, labels=labels, title=HOSTILE)
    return path


def test_hostile_names_are_text(hostile: Path) -> None:
    page = hostile.read_text(encoding="utf-8")
    own = page.replace(f'<script type="module">{report_script()}</script>', "").replace(
        '<script type="application/json" id="rows">', ""
    )
    assert "<script" not in own
    assert "onerror=alert(1)>" not in page
    assert re.search(r'class="lead">&lt;script&gt;alert', page)
    assert "http://" not in page
    assert "https://" not in page


def test_the_report_renders_offline(hostile: Path, tmp_path: Path) -> None:
    chromium, sync_playwright = chromium_or_skip()
    complaints: list[str] = []
    requests: list[str] = []
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            context = browser.new_context(
                offline=True, viewport={"width": 1000, "height": 800}, color_scheme=scheme
            )  # fmt: skip
            page = context.new_page()
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("dialog", lambda dialog: complaints.append(dialog.message))
            page.on("request", lambda request: requests.append(request.url))
            page.goto(hostile.as_uri())
            assert page.evaluate("[...document.images].every(image => image.naturalWidth > 1000)")
            # The overview, the heat map, and a figure for every step.
            steps = page.evaluate("document.querySelectorAll('[data-picture]').length")
            assert page.evaluate("document.images.length") == 2 + steps > 3
            assert page.evaluate("document.documentElement.scrollWidth") <= 1000
            shot = page.screenshot(path=tmp_path / f"{scheme}.png", full_page=True)
            assert len(shot) > 50_000
        browser.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def test_all_clusters_are_seen_in_one_view_beside_every_column_of_labels(session: Exploration, tmp_path: Path) -> None:
    columns = {
        "kind": CLASSES,
        "half": np.arange(len(ROWS)) % 2,
        "first column": ROWS[:, 0],
        "nothing": [None] * len(ROWS),
    }
    told: list[tuple[str, float]] = []
    page = page_of(session, tmp_path / "report.html", labels=columns, progress=lambda *words: told.append(words))
    assert "All rows in the one view in which all clusters are seen best" in page
    assert "kind was not used, half was not used, first column was not used." in page
    captions = re.findall("<figcaption>(.*?)</figcaption>", page)
    assert sum("On the right the number of rows of each" in caption for caption in captions) == 2
    assert all(
        page.count(f"Its labels of {name}, which were not used") >= 3 for name in ("kind", "half", "first column")
    )
    assert all(f"<div>{name} (not used)" in page or f">{name} (not used)<" in page for name in ("kind", "half"))
    assert told[0] == ("describing the clusters", 0.0)
    assert all(0.0 <= share <= 1.0 for _, share in told)
    shown = [read_labels(values, "labels", len(ROWS), most=99, name=name) for name, values in list(columns.items())[:3]]
    figure = plot_all_clusters(session, session.overview(), labels=shown)
    assert [ax.get_title(loc="left") for ax in figure.axes[:4]] == ["All clusters in one view", *list(columns)[:3]]
    hues = {cluster_hue(cluster.number): cluster.size for cluster in session.clusters_}
    assert {hue: count for hue, count in drawn(figure, 0).items() if hue in hues} == hues
    numbers = [text.get_text() for text in figure.axes[0].texts]
    assert numbers[: len(hues)] == [str(cluster.number) for cluster in session.clusters_]
