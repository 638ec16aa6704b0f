"""What stands beside the story: three axes, arrows, the picture of a row, looking back, settings, a reload."""

from __future__ import annotations

from pathlib import Path

from served import chromium, drawn, idle, opened, served


def test_everything_else_on_the_page_works_without_an_error(tmp_path: Path) -> None:
    with served(cwd=tmp_path) as server, chromium() as context:
        page, watched = opened(context, server)
        page.get_by_role("button", name="digits Handwritten digits, 8").click()
        page.get_by_role("button", name="Next view").click()
        page.get_by_role("button", name="Take most distinct").wait_for()
        idle(page)

        # Three axes, turned by hand, and back.
        before = drawn(page)
        page.keyboard.press("3")
        page.wait_for_function("n => Number(document.querySelector('.imapce').dataset.drawn) > n", arg=before)
        assert page.get_by_role("button", name="3-D").get_attribute("aria-pressed") == "true"
        box = page.locator("canvas.over").bounding_box()
        page.mouse.move(box["x"] + 300, box["y"] + 300)
        page.mouse.down()
        page.mouse.move(box["x"] + 400, box["y"] + 340, steps=5)
        page.mouse.up()
        idle(page)
        page.keyboard.press("3")
        page.locator('.views button[data-number="0"][aria-pressed="true"]').wait_for()
        idle(page)
        page.keyboard.press("f")
        page.keyboard.press("l")

        # The picture of a row: rows lie everywhere, so the pointer meets one soon.
        for step in range(200):
            page.mouse.move(box["x"] + 200 + 3 * step, box["y"] + 300 + step)
            page.wait_for_timeout(40)
            if page.locator(".tip .picture").is_visible():
                break
        assert page.locator(".tip .picture").is_visible()

        # Rows of a cluster, then taken, then looked back at.
        page.keyboard.press("ArrowRight")
        page.get_by_role("button", name="Show the rows").click()
        page.locator("dialog.rows td").first.wait_for()
        page.get_by_role("button", name="Close").click()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Take most distinct").click()
        page.locator(".step:not(.now)").first.wait_for()
        idle(page)
        page.locator(".step:not(.now)").first.click()
        page.get_by_role("button", name="Back to now").click()
        page.locator('.views button[data-number="0"][aria-pressed="true"]').wait_for()
        idle(page)

        # A column more is known, and what is left of it is read back; the step stays.
        page.get_by_text("How views are found").click()
        page.get_by_label("A column to add to the known").select_option("class")
        page.locator(".known li", has_text="class").wait_for()
        idle(page)
        page.get_by_role("button", name="What is left of the known?").click()
        page.locator(".leak").first.wait_for()
        assert page.locator(".step:not(.now)").count() == 1

        # A page that is loaded again shows the same.
        known = page.locator(".known li").all_text_contents()
        page.reload()
        page.locator(".step:not(.now)").first.wait_for()
        page.get_by_text("How views are found").click()
        page.locator(".known li", has_text="class").wait_for()
        assert page.locator(".known li").all_text_contents() == known
        watched.nothing_wrong()
