"""The whole story in real Chromium: look, take, lasso, undo, redo, turn, run, cancel, colour, export, restore."""

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
from served import chromium, drawn, idle, lasso, opened, served

# Parts of the plot: one of them has unexplored rows, wherever the known ones lie.
PARTS = [
    [(0.55, 0.25), (0.9, 0.3), (0.92, 0.75), (0.6, 0.8), (0.5, 0.5)],
    [(0.08, 0.2), (0.45, 0.2), (0.4, 0.8), (0.1, 0.8), (0.08, 0.5)],
    [(0.1, 0.1), (0.95, 0.1), (0.95, 0.5), (0.1, 0.5)],
    [(0.1, 0.5), (0.95, 0.5), (0.95, 0.92), (0.1, 0.92)],
]


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
def test_a_person_explores_and_comes_back_to_where_they_were(tmp_path: Path, make: Any) -> None:
    data, options, label = make(tmp_path)
    session = tmp_path / "session.imapce"
    arguments = [data, *options, "--session", session]
    with chromium(accept_downloads=True) as context:
        with served(*arguments, cwd=tmp_path) as server:
            page, watched = opened(context, server)
            page.get_by_role("button", name="Next view").click()
            idle(page)
            page.get_by_role("button", name="Take most distinct").click()
            # The step itself: a picture may be drawn anew for other reasons before the work begins.
            page.locator(".step:not(.now)").wait_for()
            idle(page)
            assert page.locator(".step:not(.now)").count() == 1

            # A lasso, named and taken.
            take = page.get_by_role("button", name="Take selection")
            for part in PARTS:
                before = page.locator(".imapce").get_attribute("data-selections")
                lasso(page, part)
                page.wait_for_function(
                    "n => document.querySelector('.imapce').dataset.selections !== n", arg=before, timeout=10_000
                )
                if take.is_visible() and take.is_enabled():
                    break
            chosen = page.locator(".chosen p").inner_text()
            count = int(chosen.split(" row")[0].replace(",", ""))
            page.get_by_label("Name of the rows you take").fill("my group")
            take.click()
            page.locator(".step", has_text="my group").wait_for()
            idle(page)
            assert f"{count:,} rows" in page.locator(".step", has_text="my group").inner_text().replace("row ", "rows ")

            # Back and forth.
            page.keyboard.press("u")
            page.locator(".step", has_text="my group").wait_for(state="detached")
            idle(page)
            page.keyboard.press("r")
            page.locator(".step", has_text="my group").wait_for()
            idle(page)

            # Another optimum, turned to.
            if page.locator(".views button").count() > 1:
                before = drawn(page)
                page.locator(".views button").nth(1).click()
                page.locator('.views button[data-number="1"][aria-pressed="true"]').wait_for()
                assert drawn(page) > before
                idle(page)

            # A run that is cancelled, then one that is not.
            run_and_cancel(page)
            if page.locator(".stop:visible").count() == 0:
                page.get_by_role("button", name="Run to the end").click()
                page.locator(".stop:visible").wait_for(timeout=180_000)
            idle(page)
            # Where no row is left there is nothing to ask of the rest.
            over = page.get_by_text("Every row is explored").count() == 1
            assert page.locator(".gaugebox").is_hidden() or not over

            page.get_by_label("Colour by").select_option(f"column:{label}")
            page.locator(".entry").first.wait_for()
            labels = exported_clusters(page, tmp_path / "clusters.csv")
            watched.nothing_wrong()
            steps = page.locator(".step:not(.now)").all_text_contents()
            server.kill()
        rows = pyarrow.csv.read_csv(data)
        kept = Exploration.load(session, rows.select(features_of(session, rows)), autosave=False)
        assert labels == kept.labels_.tolist()
        assert [cluster.name for cluster in kept.steps[1].clusters] == ["my group"]
        with served(*arguments, cwd=tmp_path) as server:
            page, watched = opened(context, server)
            page.locator(".step", has_text="my group").wait_for()
            # Not their inner text: of an element that a fresh state has just replaced that has no line breaks.
            assert page.locator(".step:not(.now)").all_text_contents() == steps
            assert exported_clusters(page, tmp_path / "again.csv") == labels
            watched.nothing_wrong()


def run_and_cancel(page: Any) -> None:
    """Begin a run and cancel it as soon as it can be; on a small table the end may come first."""
    page.get_by_role("button", name="Run to the end").click()
    page.wait_for_function("() => document.querySelector('.actions .warn:not([hidden]), .actions .stop:not([hidden])')")
    page.evaluate("() => document.querySelector('.actions .warn:not([hidden])')?.click()")
    idle(page)


def exported_clusters(page: Any, path: Path) -> list[int]:
    """The clusters of the CSV file that the page hands out."""
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as waiting:
        page.get_by_role("menuitem", name="Clusters and coordinates (CSV)").click()
    waiting.value.save_as(path)
    with path.open(newline="") as file:
        return [int(row["cluster"]) for row in csv.DictReader(file)]


def features_of(session: Path, rows: pa.Table) -> list[str]:
    """The columns of the data that the session is about."""
    from imapce.exploration.session_file import read_session

    names = {column.partition("=")[0] for column in read_session(session).data.columns}
    return [name for name in rows.column_names if name in names]
