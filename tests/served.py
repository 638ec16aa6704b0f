"""The server of `imapce app` as somebody starts it, and a page of it in Chromium that forgives nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import imapce
from browser import chromium_or_skip

# Of the package that is tested: of this tree, or installed.
HOME = Path(imapce.__file__).parents[1]


@dataclass
class Server:
    """A running `imapce app`: its link, its process, and what it said until the link was there."""

    link: str
    process: subprocess.Popen[str]
    told: str = ""

    @property
    def address(self) -> str:
        return urlsplit(self.link).netloc

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def token(self) -> str:
        return self.link.partition("token=")[2]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def served(*arguments: str | Path, cwd: Path, token: str = "") -> Iterator[Server]:
    """Start the server, wait for its link, and end it."""
    environment = {**os.environ, "PYTHONPATH": str(HOME), "PYTHONUNBUFFERED": "1", "IMAPCE_TOKEN": token}
    process = subprocess.Popen(
        [sys.executable, "-m", "imapce", "app", "--no-browser", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        told = ""
        for line in process.stdout:
            told += line
            if found := re.search(r"http://\S+", line):
                yield Server(found[0], process, told)
                break
        else:
            raise AssertionError(f"the server ended without a link:\n{told}")
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(timeout=20)
        process.stdout.close()


@dataclass
class Watched:
    """What a page did that it should not: errors, and requests to others than its own server."""

    address: str
    errors: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def listen(self, page: Any) -> None:
        page.on("console", lambda one: self.errors.append(one.text) if one.type in ("error", "warning") else None)
        page.on("pageerror", lambda problem: self.errors.append(str(problem)))
        page.on("request", lambda one: self.asked(one.url))
        page.on("websocket", lambda one: self.asked(one.url))

    def asked(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.netloc != self.address:
            self.strangers.append(url)

    def nothing_wrong(self) -> None:
        assert self.errors == []
        assert self.strangers == []


class Browser:
    """Real Chromium, started when it is first needed, with --no-sandbox and nothing else: one for many tests.

    While it lives no event loop can be begun in the same thread.
    """

    def __init__(self) -> None:
        self._playwright: Any = None
        self._browser: Any = None

    def context(self, **settings: Any) -> Any:
        """Somebody with cookies and storage of their own; views do not turn, they are there."""
        if self._browser is None:
            path, playwright = chromium_or_skip()
            self._playwright = playwright().start()
            self._browser = self._playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        usual = {"viewport": {"width": 1280, "height": 860}, "reduced_motion": "reduce"}
        return self._browser.new_context(**usual | settings)

    def close(self) -> None:
        """End it; the next context starts another."""
        if self._browser is not None:
            self._browser.close()
            self._playwright.stop()
        self._browser = self._playwright = None


def opened(context: Any, server: Server) -> tuple[Any, Watched]:
    """A page of the server with all it shows first, and its watcher; a broken content policy is an error."""
    page = context.new_page()
    watched = Watched(server.address)
    watched.listen(page)
    page.goto(server.link)
    settled(page)
    return page, watched


# --- work and its end -------------------------------------------------------------------------------------------------
# The page counts what it asked (data-asked) and what of it is done (data-done): it is answered, the work which that
# began is over, and what came of it is drawn or asked in its turn. So nobody has to guess from what is in sight whether
# it is the end of what they did or still what was there before.

SETTLED = """before => {
  const { asked, done } = document.querySelector(".imapce")?.dataset ?? {};
  return Number(asked) > before && asked === done;
}"""


def asked(page: Any) -> int:
    """How much the page has asked of Python."""
    return int(page.locator(".imapce").get_attribute("data-asked"))


def settled(page: Any, before: int = 0, timeout: float = 120_000) -> None:
    """Wait until the page has asked more than `before`, and all of it is done."""
    page.wait_for_function(SETTLED, arg=before, timeout=timeout)


@contextmanager
def work(page: Any, timeout: float = 120_000) -> Iterator[None]:
    """What is done inside asks something of Python: wait until that, and what it leads to, is done."""
    before = asked(page)
    yield
    settled(page, before, timeout)


def click(page: Any, target: Any) -> None:
    """Click a button by its name, or whatever a locator finds, and wait until the work is done."""
    with work(page):
        (page.get_by_role("button", name=target) if isinstance(target, str) else target).click()


def press(page: Any, key: str) -> None:
    """Press a key and wait until the work is done."""
    with work(page):
        page.keyboard.press(key)


def choose(page: Any, label: str, value: str) -> None:
    """Choose in a list by its label and wait until the work is done."""
    with work(page):
        page.get_by_label(label, exact=True).select_option(value)


def taken(page: Any) -> Any:
    """The steps that were taken, as they stand below the view."""
    return page.locator(".step[data-step]")


def lasso(page: Any, places: list[tuple[float, float]]) -> None:
    """Draw around places given as shares of the plot's width and height, and wait until the rows are selected."""
    box = page.locator("canvas.over").bounding_box()
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in places]
    with work(page):
        page.mouse.move(*points[0])
        page.mouse.down()
        for point in points[1:]:
            page.mouse.move(*point, steps=4)
        page.mouse.up()
