"""What stands beside the story: three axes, arrows, the picture of a row, looking back, settings, a reload."""

from __future__ import annotations

from typing import Any

from served import Server, click, opened, press, settled, taken, work

# The middle of a place of the plot, left of which and right of which there is a row: the pointer finds that row.
ROW = """() => {
  const canvas = document.querySelector("canvas.points");
  const { width, height } = canvas;
  const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer);
  const ground = pixels[0];
  const at = (x, y) => pixels[y * width + x] !== ground;
  for (let y = height >> 1; y < height; y++)
    for (let x = width >> 2; x < width; x++)
      if (at(x - 1, y) && at(x, y) && at(x + 1, y)) {
        const box = canvas.getBoundingClientRect();
        return [box.left + (x * box.width) / width, box.top + (y * box.height) / height];
      }
}"""


def test_everything_else_on_the_page_works_without_an_error(start: Server, somebody: Any) -> None:
    page, watched = opened(somebody(), start)
    click(page, "digits Handwritten digits, 8")
    click(page, "Next view")

    # Three axes, turned by hand, and back.
    press(page, "3")
    assert page.get_by_role("button", name="3-D").get_attribute("aria-pressed") == "true"
    box = page.locator("canvas.over").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 340, steps=5)
    page.mouse.up()
    press(page, "3")
    assert page.locator('.views button[data-number="0"]').get_attribute("aria-pressed") == "true"
    page.keyboard.press("f")
    page.keyboard.press("l")

    # The picture of a row.
    with work(page):
        page.mouse.move(*page.evaluate(ROW))
    assert page.locator(".tip .picture").is_visible()

    # Rows of a cluster, then taken, then looked back at.
    press(page, "ArrowRight")
    click(page, "Show the rows")
    assert page.locator("dialog.rows td").count() > 1
    page.get_by_role("button", name="Close").click()
    press(page, "Escape")
    click(page, "Take most distinct")
    click(page, taken(page).first)
    click(page, "Back to now")
    assert page.locator('.views button[data-number="0"]').get_attribute("aria-pressed") == "true"

    # A column more is known, and what is left of it is read back; the step stays.
    with work(page):
        page.get_by_label("A column to add to the known").select_option("class")
    page.get_by_text("How views are found").click()
    click(page, "What is left of the known?")
    assert page.locator(".leak").count() == 1
    assert taken(page).count() == 1

    # A page that is loaded again shows the same.
    known = page.locator(".known li").all_text_contents()
    page.reload()
    settled(page)
    assert taken(page).count() == 1
    assert page.locator(".known li").all_text_contents() == known
    watched.nothing_wrong()


def test_what_is_known_is_in_sight_and_can_be_changed(three_groups: Server, somebody: Any) -> None:
    page, watched = opened(somebody(), three_groups)
    cards = page.locator(".known [data-came]")
    assert page.locator("ul.known").inner_text().startswith("Nothing but what you take.")
    with work(page):
        page.get_by_label("A column to add to the known").select_option("d")
    assert cards.evaluate_all("all => all.map(one => [one.firstChild.textContent, one.dataset.came])") == [
        ["d", "explained away"]
    ]
    with work(page):
        page.get_by_label("A column to add to the known").select_option("kind")
    with work(page):
        page.get_by_label("What becomes of d").select_option("erase")
    told = "all => Object.fromEntries(all.map(one => [one.firstChild.textContent, one.dataset.came]))"
    assert cards.evaluate_all(told) == {"d": "erased", "kind": "explained away"}
    click(page, "Forget kind")
    assert cards.evaluate_all(told) == {"d": "erased"}
    click(page, "Forget d")
    assert cards.count() == 0
    watched.nothing_wrong()
