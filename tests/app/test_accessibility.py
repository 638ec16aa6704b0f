"""axe-core finds nothing serious on any state of the page, light and dark; the keyboard does everything.

axe-core is not part of this project: the variable AXE_CORE names its axe.min.js, and without it its tests are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from imapce.app import colours
from served import Server, click, opened, press, taken, work

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


@pytest.mark.skipif(AXE is None, reason="AXE_CORE names no axe.min.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_on_the_start_page(start: Server, somebody: Any, scheme: str) -> None:
    page, _ = opened(somebody(color_scheme=scheme), start)
    assert page.locator("button.dataset").count() > 1
    assert serious(page) == []


@pytest.mark.skipif(AXE is None, reason="AXE_CORE names no axe.min.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_from_the_first_view_to_the_overview(three_groups: Server, somebody: Any, scheme: str) -> None:
    page, _ = opened(somebody(color_scheme=scheme), three_groups)
    found = serious(page)
    press(page, "n")
    press(page, "ArrowRight")
    page.get_by_text("How views are found").click()
    with work(page):
        page.get_by_label("A column to add to the known").select_option("d")
    found += serious(page)
    page.keyboard.press("?")
    found += serious(page)
    page.keyboard.press("Escape")
    press(page, "ArrowRight")
    click(page, "Show the rows")
    found += serious(page)
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Export").click()
    found += serious(page)
    page.keyboard.press("Escape")
    click(page, "Run to the end")
    assert page.locator(".legend.all .entry").count() == 3
    found += serious(page)
    assert found == []


def test_the_whole_loop_by_keyboard(three_groups: Server, somebody: Any) -> None:
    page, watched = opened(somebody(), three_groups)
    press(page, "n")
    press(page, "ArrowRight")
    assert page.locator(".chosen").is_visible()
    page.wait_for_function("() => /selected|rows/.test(document.querySelector('.unseen[role=status]').textContent)")
    assert page.locator("[role=status][aria-live=polite]").count() == 1
    page.locator("canvas.over").focus()
    press(page, "Enter")
    assert taken(page).count() == 1
    press(page, "a")
    assert page.locator(".step.all").get_attribute("aria-current") == "step"
    press(page, "u")
    assert taken(page).count() == 0
    page.keyboard.press("?")
    assert page.locator("dialog.keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    assert page.locator(".imapce").get_attribute("data-theme") == "dark"
    watched.nothing_wrong()


def test_news_from_python_leave_the_focus_where_it_is(three_groups: Server, somebody: Any) -> None:
    page, watched = opened(somebody(), three_groups)
    click(page, "Next view")
    for number in (0, 1):
        click(page, page.locator(".entry", has_text=f"Cluster {number}"))
        click(page, "Take selection")
    assert taken(page).count() == 2
    taken(page).first.focus()
    page.evaluate("() => (window.held = document.activeElement)")

    # A look back tells the state again: the same element has the focus and says that it is in sight.
    press(page, "Enter")
    assert taken(page).first.get_attribute("aria-current") == "step"
    assert page.evaluate("() => document.activeElement === window.held")

    # Undone, the second step is gone and the first is still the same; of one that is gone itself, the one in its place
    # has the focus.
    press(page, "u")
    assert taken(page).count() == 1
    assert page.evaluate("() => document.activeElement === window.held")
    press(page, "u")
    assert taken(page).count() == 0
    assert page.evaluate("() => document.activeElement.matches('.step.now')")
    watched.nothing_wrong()


def test_every_step_is_reached_by_tab(three_groups: Server, somebody: Any) -> None:
    page, _ = opened(somebody(), three_groups)
    click(page, "Next view")
    click(page, "Take most distinct")
    reached = set()
    for _ in range(page.locator("button, select, input, summary, canvas.over").count()):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.className"))
    assert {"step", "step all", "step now", "entry"} <= reached


def test_the_legend_turns_dark_with_the_system(three_groups: Server, somebody: Any) -> None:
    shown = """hue => {
      const one = document.createElement("i");
      one.style.background = hue;
      return document.querySelector(".entry .swatch")?.style.background === one.style.background;
    }"""
    light, dark = (colours.palettes()[name][colours.FIRST] for name in ("light", "dark"))
    page, _ = opened(somebody(color_scheme="light"), three_groups)
    with work(page):
        page.get_by_label("Colour by").select_option("column:kind")
    assert page.evaluate(shown, light)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(shown, arg=dark)
