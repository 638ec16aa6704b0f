"""What the pages say of clusters, and that their points answer: checked against the table, in a real browser."""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from browser import chromium_or_skip
from imapce import IMAPCE, Attributes, Exploration, Subset
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.exploration.traits import aligned
from imapce.plotting import plot_profiles, write_exploration_report, write_report, write_view_report
from imapce.plotting.reports.hover import HoverRows
from imapce.plotting.reports.page import Grid, Histogram, Lines, Link, Picture, Section, Share
from imapce.tables.columns import Column

GROUP = np.repeat([0, 1, 2], 60)


def shop() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "price": np.array([5.0, 50.0, 500.0])[GROUP] * (1 + 0.05 * rng.normal(size=180)),
            "kind": np.array(["pencil", "book", "lamp"])[GROUP],
            "weight": 100.0 * GROUP + rng.normal(size=180),
            "noise": rng.normal(size=180),
        },
        index=[f"item {row}" for row in range(180)],
    )


SHOP = shop()


def explored(table: Any = SHOP, **options: Any) -> Exploration:
    exploration = Exploration(table, estimator=IMAPCE(n_starts=2), random_state=0, **options)
    for group in range(2):
        exploration.accept(mask=np.flatnonzero((group == GROUP) & ~exploration.known))
    return exploration


def text_of(page: str) -> str:
    """What a reader sees, on one line."""
    return " ".join(html.unescape(re.sub(r"<(style|script).*?</\1>|<[^>]+>", " ", page, flags=re.S)).split())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "shop.html"
    return write_exploration_report(explored(), path, labels=pd.Series(GROUP + 7, name="shelf"))


def test_a_section_answers_what_a_cluster_is(page: Path) -> None:
    text = text_of(page.read_text(encoding="utf-8"))
    section = text[text.index("Cluster 1: 60 rows") : text.index("Rows not taken yet")]
    inside, outside, left = (SHOP[GROUP == 1], SHOP[GROUP != 1], SHOP[GROUP == 2])
    means = aligned(inside.price.mean(), outside.price.mean(), left.price.mean())
    assert "left at step 2" in section
    assert re.search(rf"price .*mean median {means[0]} \S+ {means[1]} \S+ {means[2]}", section)
    shares = "100 % 0 % 0 % 0 % 50 % 50 %"
    assert re.search(rf"kind book (lamp pencil|pencil lamp) {shares}", section.replace("\xa0", " "))
    typical = section[section.index("The most typical rows") :]
    names = re.findall(r"item \d+", typical)
    assert len(names) == 5
    assert all(60 <= int(name.split()[1]) < 120 for name in names)
    value = SHOP.price[names[0]]
    assert f"{value:,.3f}"[:5] in typical


def test_labels_that_are_numbers_can_be_read(page: Path, tmp_path: Path) -> None:
    text = text_of(page.read_text(encoding="utf-8")).replace("\xa0", " ")
    assert "7 (100 %)" in text
    assert "8 7 9 100 % (60) 0 % (0) 0 % (0)" in text
    scale = write_exploration_report(explored(), tmp_path / "scale.html", labels=SHOP.price * 2)
    told = text_of(scale.read_text(encoding="utf-8"))
    means = aligned(2 * SHOP.price[GROUP == 0].mean(), 2 * SHOP.price[GROUP != 0].mean())
    assert f"mean {means[0]} ({means[1]} elsewhere)" in told


def test_all_clusters_stand_in_one_table_and_one_heat_map(page: Path) -> None:
    content = page.read_text(encoding="utf-8")
    table = content[content.index('id="side-by-side"') : content.index('id="cluster-0"')]
    assert re.findall(r'href="#(cluster-\d)"', table) == ["cluster-0", "cluster-1"] * 2
    assert table.count("<img") == 1
    for link in set(re.findall(r'href="#([^"]+)"', content)):
        assert f'id="{link}"' in content
    figure = plot_profiles(explored().description())
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert {"price", "kind: book", "weight"} <= set(labels)
    shown = {text.get_text() for text in figure.axes[0].texts}
    gap = (SHOP.weight[GROUP == 0].mean() - SHOP.weight[GROUP != 0].mean()) / SHOP.weight.std(ddof=0)
    assert f"{gap:+.1f}".replace("-", "−") in shown
    with pytest.raises(InvalidValueError, match="at least one cluster"):
        plot_profiles(Exploration(SHOP).description())


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (None, "Nothing was known at the start."),
        (Attributes(["kind"], erase=True), "The column kind was erased"),
        (Subset(np.arange(10)), "10 of 180 rows were known."),
    ],
)
def test_the_page_tells_what_was_known(prior: Any, words: str, tmp_path: Path) -> None:
    exploration = explored(prior=prior)
    text = text_of(write_exploration_report(exploration, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert words in text
    assert ("Nothing was known" in text) == (prior is None)


def test_pages_stay_small_and_need_nothing_else(page: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(500, 200)), columns=[f"a long name of gene {j}" for j in range(200)])
    many = pd.DataFrame({"a": rng.normal(size=25_000), "b": rng.choice(list("xyz"), 25_000), "c": 0.5})
    many["c"] += rng.random(25_000)
    for name, table, half in (("wide", wide, 250), ("many", many, 9_000)):
        exploration = Exploration(table, estimator=IMAPCE(n_starts=1), random_state=0)
        exploration.accept(mask=np.arange(half))
        path = write_exploration_report(exploration, tmp_path / f"{name}.html", labels=np.arange(len(table)) % 9)
        assert path.stat().st_size < 2e6
        content = path.read_text(encoding="utf-8")
        assert not re.search(r"https?:", content)
        assert all(link.startswith(("#", "data:")) for link in re.findall(r'(?:src|href)="([^"]+)', content))
        assert ("20,000 of 25,000 rows answer, a sample with a fixed seed" in content) == (name == "many")
        again = write_exploration_report(exploration, tmp_path / "again.html", labels=np.arange(len(table)) % 9)
        assert again.read_bytes() == path.read_bytes()


def test_many_pictures_leave_room_for_fewer_points() -> None:
    rows = HoverRows(np.arange(30_000), [Column("size", values=np.zeros(30_000))])
    few, many = (rows.fitting(n_pictures=count, page_letters=1_000_000) for count in (1, 30))
    assert (len(few.chosen), few.fine) == (20_000, True)
    assert not many.fine
    assert 1_000 < len(many.chosen) < 20_000
    assert few.data([])["columns"][0]["name"] == "size"


def open_page(player: Any, chromium: str, path: Path, complaints: list[str], **options: Any) -> Any:
    browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    context = browser.new_context(offline=True, viewport={"width": 900, "height": 900}, **options)
    shown = context.new_page()
    shown.on("console", lambda message: complaints.append(message.text))
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    shown.goto(path.as_uri())
    return shown


def hover_row(shown: Any, picture: int, place: tuple[float, float], panel: int = 0) -> str:
    """Point at a place of a panel, in fractions of it from below, and read the card."""
    plot = shown.locator("[data-picture]").nth(picture)
    plot.scroll_into_view_if_needed()
    # The page hides its card once it hears that it was scrolled, which is told with the next frame it draws.
    shown.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    frame = plot.locator("img").bounding_box()
    boxes = json.loads(shown.locator("#rows").text_content())["pictures"][picture]["boxes"]
    left, above, wide, tall = boxes[panel]
    x = frame["x"] + (left + place[0] * wide) * frame["width"]
    shown.mouse.move(x, frame["y"] + (above + (1 - place[1]) * tall) * frame["height"])
    return shown.locator(".card").inner_text() if shown.locator(".card").is_visible() else ""


def test_points_tell_their_row_in_a_browser(page: Path) -> None:
    chromium, sync_playwright = chromium_or_skip()
    exploration, complaints = explored(), []
    coordinates = exploration.coordinates(exploration.steps[0])
    with sync_playwright() as player:
        shown = open_page(player, chromium, page, complaints)
        packed = json.loads(shown.locator("#rows").text_content())
        # The first picture is that of all clusters, the second that of the first step.
        across = np.frombuffer(base64.b64decode(packed["pictures"][1]["x"]), "<u2")
        up = np.frombuffer(base64.b64decode(packed["pictures"][1]["y"]), "<u2")
        # Fractions of the panel are the coordinates of the view, scaled.
        assert abs(np.corrcoef(across, coordinates[:, 0])[0, 1]) > 0.9999
        assert abs(np.corrcoef(up, coordinates[:, 1])[0, 1]) > 0.9999
        for row in (0, 70, 150):
            place = ((across[row] - 1) / 65534, (up[row] - 1) / 65534)
            card = hover_row(shown, 1, place, panel=row % 3)
            found = int(re.match(r"row item (\d+)", card).group(1))  # type: ignore[union-attr]
            # Another row may lie on the same spot; what is told of it must be its own.
            assert np.hypot(*(coordinates[found] - coordinates[row])) < 0.05 * np.ptp(coordinates)
            assert f"kind {SHOP.kind.iloc[found]}" in card
            assert f"shelf {GROUP[found] + 7}" in card
            told = float(re.search(r"price ([\d,.]+)", card).group(1).replace(",", ""))  # type: ignore[union-attr]
            assert told == pytest.approx(SHOP.price.iloc[found], rel=1e-4)
            assert shown.locator(".ring:visible").count() == 3
        shown.mouse.move(2, 2)
        assert not shown.locator(".card").is_visible()
        assert shown.evaluate("document.documentElement.scrollWidth") <= 900
    assert complaints == []


def test_without_script_the_page_is_whole(page: Path) -> None:
    chromium, sync_playwright = chromium_or_skip()
    complaints: list[str] = []
    with sync_playwright() as player:
        shown = open_page(player, chromium, page, complaints, java_script_enabled=False, color_scheme="dark")
        assert shown.locator("figure img").count() == 5
        assert shown.locator(".card").count() == 0
        assert shown.locator("#cluster-1 h2").inner_text() == "Cluster 1: 60 rows"


@pytest.mark.parametrize("axes", [2, 3])
def test_the_view_can_be_hovered_too(axes: int, tmp_path: Path) -> None:
    chromium, sync_playwright = chromium_or_skip()
    model = IMAPCE(axes, alpha=0.0, mu=1.0, n_starts=1, random_state=0).fit(SHOP)
    path = write_view_report(model, SHOP, tmp_path / "view.html", color=GROUP, color_name="shelf", hover=["kind"])
    complaints: list[str] = []
    with sync_playwright() as player:
        shown = open_page(player, chromium, path, complaints)
        packed = json.loads(shown.locator("#rows").text_content())
        across, up = (np.frombuffer(base64.b64decode(packed["pictures"][0][one]), "<u2") for one in "xy")
        card = hover_row(shown, 0, ((across[3] - 1) / 65534, (up[3] - 1) / 65534))
        found = int(re.match(r"row item (\d+)", card).group(1))  # type: ignore[union-attr]
        assert f"shelf {GROUP[found]}" in card
        assert f"kind {SHOP.kind.iloc[found]}" in card
        assert "price" not in card
    assert complaints == []
    with pytest.raises(InvalidValueError, match="hover must name columns of X"):
        write_view_report(model, SHOP, tmp_path / "other.html", hover=["knd"])
    assert not (tmp_path / "other.html").exists()


def test_cells_are_records_and_never_html(tmp_path: Path) -> None:
    bad = '"><script>'
    cells = [Link(bad, bad, bad), Lines((bad, bad)), Histogram((1.0,), (1.0,), bad, bad), Share(0.5, 2.0), bad]
    grid = Grid((["a", *cells], [[1, *cells], [2, *cells]]), heading=bad, remark=bad, key=(bad, bad), compact=True)
    points = np.zeros((2, 2))
    figure = Figure()
    figure.add_subplot()
    section = Section(bad, bad, parts=[grid, Picture(bad, figure, points)], lead=bad, anchor=bad, short=bad, hue=bad)
    rows = HoverRows(np.array([bad, bad]), [Column(bad, codes=np.array([0, -1]), levels=(bad,))])
    content = write_report(tmp_path / "bad.html", title=bad, sections=[section] * 4, hover=rows).read_text()
    assert content.count("<script") == 2
    assert '""' not in content[: content.index("<script")]
    assert '<i style="width:50%"></i><i class="other" style="width:100%"></i>' in content


def test_numbers_are_written_short_and_read_from_the_right(tmp_path: Path) -> None:
    cells = [1234, 0.123456, True, "a & b", Lines((2000, 0.5))]
    table = (["n", "x", "yes", "text", "lines"], [cells, cells])
    content = write_report(tmp_path / "page.html", title="", sections=[Section("t", table=table)]).read_text()
    row = '<tr><td class="number">1,234</td><td class="number">0.1235</td><td>True</td><td>a &amp; b</td>'
    assert content.count(f'{row}<td class="number"><div>2,000</div><div>0.5</div></td></tr>') == 2
    assert '<th scope="col" class="number">n</th>' in content


def named_page(tmp_path: Path, **arguments: Any) -> str:
    exploration = Exploration(shop(), random_state=0)
    exploration.accept(mask=GROUP == 0, name="<i>pencils</i>")
    exploration.report(tmp_path / "page.html", **arguments)
    return (tmp_path / "page.html").read_text()


def test_the_name_a_person_gave_is_on_the_page_and_is_no_html(tmp_path: Path) -> None:
    page = named_page(tmp_path)
    assert "Cluster 0, &lt;i&gt;pencils&lt;/i&gt;: 60 rows" in page
    assert "<i>pencils" not in page


def test_labels_that_are_all_missing_are_as_good_as_none(tmp_path: Path) -> None:
    assert "which were not used" not in named_page(tmp_path, labels=[None] * 180)
    assert "which were not used" in named_page(tmp_path, labels=GROUP)


def test_labels_and_columns_of_another_kind_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidTypeError, match="labels must hold texts, numbers or dates; got values of type dict"):
        named_page(tmp_path, labels=[{}] * 180)
    with pytest.raises(InvalidTypeError, match="hover must be a list of names of columns; got 'price'"):
        named_page(tmp_path, hover="price")
    assert not (tmp_path / "page.html").exists()


def test_bars_of_long_names_are_seen_without_scrolling(tmp_path: Path) -> None:
    chromium, sync_playwright = chromium_or_skip()
    names = {"price": "measured concentration of the reagent", "kind": "kind of sale, as_was_agreed_upon"}
    kinds = {one: f"a rather long name of a kind of {one}" for one in ("pencil", "book", "lamp")}
    table = shop().rename(columns=names).replace(kinds)
    exploration = Exploration(table, random_state=0)
    exploration.accept(mask=GROUP == 0)
    exploration.accept(mask=GROUP == 1)
    exploration.report(tmp_path / "page.html")
    with sync_playwright() as player:
        shown = open_page(player, chromium, tmp_path / "page.html", [])
        boxes = [box.bounding_box() for box in shown.locator(".histogram, .share").all()]
    assert len(boxes) > 4
    assert max(box["x"] + box["width"] for box in boxes) <= 900 - 24
