"""The whole story in real Chromium: look, take, lasso, undo, redo, turn, run, cancel, see all, export, come back."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from imapce import Exploration
from imapce.datasets import fetch_image_segmentation, load_digits
from imapce.exploration.session_file import read_session
from served import Server, click, lasso, opened, press, served, taken, work

# The lower part of the plot, which unexplored rows reach into wherever the known ones lie: the view is framed by them.
LOWER = [(0.0, 0.5), (0.98, 0.5), (0.98, 0.98), (0.0, 0.98)]


def digits(folder: Path) -> tuple[Path, list[str], str]:
    data = load_digits()
    table = {name: data.X[:, j] for j, name in enumerate(data.feature_names)}
    return write(folder / "digits.csv", {**table, "digit": data.labels["class"]}), ["--labels", "digit"], "digit"


def segments(folder: Path) -> tuple[Path, list[str], str]:
    data = fetch_image_segmentation()
    table = {name: data.X[:, j] for j, name in enumerate(data.feature_names)}
    path = write(folder / "segments.csv", {**table, "surface": data.labels["class_name"]})
    return path, ["--labels", "surface"], "surface"


def mixed(folder: Path) -> tuple[Path, list[str], str]:
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=900)
    table = {
        "id": [f"row-{i}" for i in range(900)],
        "height": rng.normal(size=900) + 5 * (group == 1),
        "width": rng.normal(size=900) + 5 * (group == 2),
        "depth": rng.normal(size=900),
        "age": rng.integers(20, 70, size=900),
        "shape": np.array(["round", "long", "flat"])[(group + (rng.random(900) < 0.1)) % 3],
        "kind": np.array(["a", "b", "c"])[group],
    }
    return write(folder / "mixed.csv", table), ["--labels", "kind", "--known", "age"], "kind"


def write(path: Path, columns: dict[str, Any]) -> Path:
    pyarrow.csv.write_csv(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    "make", [digits, pytest.param(segments, marks=pytest.mark.data("image_segmentation.csv")), mixed]
)
def test_a_person_explores_and_comes_back_to_where_they_were(somebody: Any, tmp_path: Path, make: Any) -> None:
    data, options, label = make(tmp_path)
    session = tmp_path / "session.imapce"
    arguments = [data, *options, "--session", session]
    me = somebody(accept_downloads=True)
    with served(*arguments, cwd=tmp_path) as server:
        page, watched = opened(me, server)
        click(page, "Next view")
        click(page, "Take most distinct")
        assert taken(page).count() == 1

        # A lasso, named and taken.
        lasso(page, LOWER)
        count = int(page.locator(".chosen p").inner_text().split(" row")[0].replace(",", ""))
        page.get_by_label("Name of the rows you take").fill("my group")
        click(page, "Take selection")
        mine = page.locator(".step", has_text="my group")
        assert f"{count:,} row" in mine.inner_text()

        # Back and forth.
        press(page, "u")
        assert mine.count() == 0
        press(page, "r")
        assert mine.count() == 1

        # Another optimum, turned to.
        click(page, page.locator(".views button").nth(1))
        assert page.locator('.views button[data-number="1"]').get_attribute("aria-pressed") == "true"

        # To the end: all clusters in one view, with how many rows they have and what they are.
        click(page, "Run to the end")
        assert page.locator(".stop").is_visible()
        assert page.locator(".step.all").get_attribute("aria-current") == "step"
        cards = overview(page)
        labels = exported_clusters(page, tmp_path / "clusters.csv")
        numbers, sizes = np.unique([one for one in labels if one >= 0], return_counts=True)
        assert [(name, size) for name, size, _ in cards] == [
            ("my group" if number == mine_in(session) else f"Cluster {number}", f"{size:,}")
            for number, size in zip(numbers, sizes, strict=True)
        ]
        assert all(words for _, _, words in cards)
        with work(page):
            page.get_by_label("Colour by").select_option(f"column:{label}")
        assert page.locator(".entry").count() > 2
        watched.nothing_wrong()
        steps = taken(page).all_text_contents()
        server.kill()
    rows = pyarrow.csv.read_csv(data)
    kept = Exploration.load(session, rows.select(features_of(session, rows)), autosave=False)
    assert labels == kept.labels_.tolist()
    assert [cluster.name for cluster in kept.steps[1].clusters] == ["my group"]
    with served(*arguments, cwd=tmp_path) as server:
        page, watched = opened(me, server)
        assert taken(page).all_text_contents() == steps
        assert page.locator(".step.all").get_attribute("aria-current") == "step"
        assert overview(page) == cards
        assert page.locator(".stop").is_visible()
        assert exported_clusters(page, tmp_path / "again.csv") == labels
        watched.nothing_wrong()


def test_a_run_that_is_cancelled_leaves_the_rest_to_be_taken(start: Server, somebody: Any) -> None:
    page, watched = opened(somebody(), start)
    click(page, "digits Handwritten digits, 8")
    # Both at once: what is cancelled has hardly begun.
    with work(page):
        page.evaluate("""() => {
          const [run, cancel] = ["Run to the end", "Cancel"].map((name) =>
            [...document.querySelectorAll(".actions button")].find((one) => one.textContent === name));
          run.click();
          cancel.click();
        }""")
    assert page.locator(".stop").is_hidden()
    assert page.get_by_role("button", name="Run to the end").is_enabled()
    assert page.locator(".imapce").get_attribute("data-busy") == "no"
    watched.nothing_wrong()


def overview(page: Any) -> list[tuple[str, str, str]]:
    """The cards of all clusters in the one view: name, size and words."""
    return [
        (
            one.locator(".label").evaluate("e => e.firstChild.textContent"),
            *(one.locator(place).inner_text() for place in (".number", "small")),
        )
        for one in page.locator(".legend.all .entry:has(small)").all()
    ]


def mine_in(session: Path) -> int:
    """The number of the cluster that was taken by hand."""
    return next(cluster.number for cluster in read_session(session).moves.clusters if cluster.name == "my group")


def exported_clusters(page: Any, path: Path) -> list[int]:
    """The clusters of the CSV file that the page hands out."""
    page.get_by_role("button", name="Export").click()
    with work(page), page.expect_download() as waiting:
        page.get_by_role("menuitem", name="Clusters and coordinates (CSV)").click()
    waiting.value.save_as(path)
    with path.open(newline="") as file:
        return [int(row["cluster"]) for row in csv.DictReader(file)]


def features_of(session: Path, rows: pa.Table) -> list[str]:
    """The columns of the data that the session is about."""
    names = {column.partition("=")[0] for column in read_session(session).data.columns}
    return [name for name in rows.column_names if name in names]
