"""The picture and the short film of the app, made anew from the page as it is: python docs/images/app_pictures.py

Image Segmentation must be in IMAPCE_DATA or the cache, and Chromium where Playwright finds it (or CHROMIUM names it).
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
SIZE, FILM = (1400, 880), (832, 523)
COLOURS = 256
LONG, SHORT = 1500, 90
Frame = tuple[Image.Image, int]


@contextmanager
def page_of_the_app() -> Iterator[Any]:
    command = [sys.executable, "-m", "imapce", "app", "--no-browser"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as player:
        server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        link = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
        browser = player.chromium.launch(executable_path=os.environ.get("CHROMIUM"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        page.goto(link)
        yield page
        browser.close()
        server.terminate()
        server.wait(30)
        server.stdout.close()


def rest(page: Any) -> None:
    """Wait until all that was asked is done and no view turns."""
    page.wait_for_function("() => (({ asked, done }) => asked === done)(document.querySelector('.imapce').dataset)")
    page.wait_for_timeout(1500)


def seen(page: Any) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def turn(page: Any, act: Any) -> list[Frame]:
    """What is seen from an act on, until the view it leads to is reached."""
    before = page.evaluate("() => document.querySelector('.imapce').dataset.drawn")
    act()
    page.wait_for_function("n => document.querySelector('.imapce').dataset.drawn !== n", arg=before)
    return [(seen(page), SHORT) for _ in range(10)]


def take(page: Any) -> list[Frame]:
    moving = turn(page, lambda: page.get_by_role("button", name="Take most distinct").click())
    rest(page)
    return [*moving, (seen(page), LONG)]


def film(page: Any) -> list[Frame]:
    frames = [(seen(page), LONG)]
    page.locator(".entry").first.click()
    rest(page)
    frames.append((seen(page), LONG))
    page.locator(".why").evaluate("(panel) => panel.scrollIntoView()")
    frames.append((seen(page), LONG))
    page.keyboard.press("Escape")
    page.locator("aside").evaluate("(panel) => (panel.scrollTop = 0)")
    frames += take(page)
    moving = turn(page, lambda: page.locator(".views button").nth(2).click())
    rest(page)
    frames += [*moving, (seen(page), LONG)]
    page.get_by_role("button", name="Run to the end").click()
    rest(page)
    return [*frames, (seen(page), LONG)]


def main() -> None:
    with page_of_the_app() as page:
        page.locator("button.dataset", has_text="image segmentation").click()
        page.get_by_role("button", name="Next view").click()
        rest(page)
        page.mouse.move(5, 5)
        still = seen(page)
        frames = film(page)
    still.save(HERE / "app.png", optimize=True)
    small = [one.resize(FILM, Image.Resampling.LANCZOS) for one, _ in frames]
    # One palette for all frames, of one in full colour: clusters keep theirs while the view turns.
    palette = small[0].quantize(COLOURS)
    small = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in small]
    times = [time for _, time in frames]
    small[0].save(HERE / "app.gif", save_all=True, append_images=small[1:], duration=times, loop=0, optimize=True)


if __name__ == "__main__":
    main()
