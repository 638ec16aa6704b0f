"""axe-core finds nothing serious on any state of the page, light and dark; the keyboard does everything.

axe-core is not part of this project: the variable AXE_CORE names its axe.min.js, and without it its tests are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from conversation import groups
from imapce.app import colours
from served import chromium, idle, opened, served

AXE = os.environ.get("AXE_CORE")


def serious(page: Any) -> list[str]:
    """What axe-core calls serious or critical: rule, and the first element that breaks it."""
    assert AXE is not None
    page.evaluate(Path(AXE).read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run()).violations")
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:160]} {one['nodes'][0].get('failureSummary', '')[:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "groups.csv"
    rows = (",".join(map(str, [*row, f"k{i % 3}"])) for i, row in enumerate(groups()))
    path.write_text("a,b,c,d,kind\n" + "\n".join(rows))
    return path


@pytest.mark.skipif(AXE is None, reason="AXE_CORE names no axe.min.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_on_the_start_page(tmp_path: Path, scheme: str) -> None:
    with served(cwd=tmp_path) as server, chromium(color_scheme=scheme) as context:
        page, _ = opened(context, server)
        page.locator("button.dataset").first.wait_for()
        assert serious(page) == []


@pytest.mark.skipif(AXE is None, reason="AXE_CORE names no axe.min.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_while_exploring(tmp_path: Path, data: Path, scheme: str) -> None:
    with served(data, "--labels", "kind", cwd=tmp_path) as server, chromium(color_scheme=scheme) as context:
        page, _ = opened(context, server)
        page.get_by_role("button", name="Next view").wait_for()
        found = serious(page)
        page.keyboard.press("n")
        page.get_by_role("button", name="Take most distinct").wait_for()
        idle(page)
        page.keyboard.press("ArrowRight")
        page.locator(".why .trait").first.wait_for()
        page.get_by_text("How views are found").click()
        found += serious(page)
        page.keyboard.press("?")
        found += serious(page)
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Show the rows").click()
        page.locator("dialog td").first.wait_for()
        found += serious(page)
        page.get_by_role("button", name="Close").click()
        page.get_by_role("button", name="Export").click()
        found += serious(page)
        assert found == []


def test_the_whole_loop_by_keyboard(tmp_path: Path, data: Path) -> None:
    with served(data, cwd=tmp_path) as server, chromium() as context:
        page, watched = opened(context, server)
        page.get_by_role("button", name="Next view").wait_for()
        page.keyboard.press("n")
        page.get_by_role("button", name="Take most distinct").wait_for()
        idle(page)
        page.keyboard.press("ArrowRight")
        page.locator(".chosen:visible").wait_for()
        status = page.locator("[role=status][aria-live=polite]")
        page.wait_for_function("() => /selected|rows/.test(document.querySelector('.unseen[role=status]').textContent)")
        assert status.count() == 1
        page.locator("canvas.over").focus()
        page.keyboard.press("Enter")
        page.locator(".step:not(.now)").first.wait_for()
        idle(page)
        page.keyboard.press("u")
        page.locator(".step:not(.now)").first.wait_for(state="detached")
        idle(page)
        page.keyboard.press("?")
        assert page.locator("dialog.keys").is_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("d")
        page.locator('.imapce[data-theme="dark"]').wait_for()
        watched.nothing_wrong()


def test_news_from_python_leave_the_focus_where_it_is(tmp_path: Path, data: Path) -> None:
    with served(data, cwd=tmp_path) as server, chromium() as context:
        page, watched = opened(context, server)
        page.get_by_role("button", name="Next view").click()
        for taken in (1, 2):
            page.get_by_role("button", name="Take most distinct").click()
            page.locator(".step:not(.now)").nth(taken - 1).wait_for()
            idle(page)
        for _ in range(80):
            page.keyboard.press("Tab")
            if page.evaluate("() => document.activeElement.matches('.step')"):
                break
        assert page.evaluate("() => document.activeElement.dataset.step") == "0"
        page.evaluate("() => (window.held = document.activeElement)")

        # A look back tells the state again: the same element has the focus and says that it is in sight.
        page.keyboard.press("Enter")
        page.locator('.step[aria-current="step"][data-step="0"]').wait_for()
        assert page.evaluate("() => document.activeElement === window.held")

        # Undone, the second step is gone and the first is still the same; of one that is gone itself, the one in its
        # place has the focus.
        page.keyboard.press("u")
        page.locator('.step[data-step="1"]').wait_for(state="detached")
        assert page.evaluate("() => document.activeElement === window.held")
        idle(page)
        page.keyboard.press("u")
        page.locator('.step[data-step="0"]').wait_for(state="detached")
        assert page.evaluate("() => document.activeElement.matches('.step.now')")
        watched.nothing_wrong()


def test_the_legend_turns_dark_with_the_system(tmp_path: Path, data: Path) -> None:
    shown = """hue => {
      const one = document.createElement("i");
      one.style.background = hue;
      return document.querySelector(".entry .swatch")?.style.background === one.style.background;
    }"""
    light, dark = (colours.palettes()[name][colours.FIRST] for name in ("light", "dark"))
    with served(data, "--color", "kind", cwd=tmp_path) as server, chromium(color_scheme="light") as context:
        page, _ = opened(context, server)
        page.wait_for_function(shown, arg=light)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(shown, arg=dark)
