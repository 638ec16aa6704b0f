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

from browser import chromium_or_skip

ROOT = Path(__file__).parents[1]


@dataclass
class Server:
    """A running `imapce app`: its link and its process."""

    link: str
    process: subprocess.Popen[str]

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
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1", "IMAPCE_TOKEN": token}
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
                yield Server(found[0], process)
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


@contextmanager
def chromium(**settings: Any) -> Iterator[Any]:
    """A browser context of real Chromium, with --no-sandbox and nothing else."""
    path, playwright = chromium_or_skip()
    with playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser.new_context(viewport={"width": 1280, "height": 860}, **settings)
        browser.close()


def opened(context: Any, server: Server) -> tuple[Any, Watched]:
    """A page of the server and its watcher; a broken content policy is an error of the console."""
    page = context.new_page()
    watched = Watched(server.address)
    watched.listen(page)
    page.goto(server.link)
    page.wait_for_selector(".imapce")
    return page, watched


def drawn(page: Any) -> int:
    """How many views the page has drawn."""
    return int(page.locator(".imapce").get_attribute("data-drawn") or 0)


def idle(page: Any, timeout: float = 120_000) -> None:
    """Wait until no work runs."""
    page.wait_for_selector('.imapce[data-busy="no"]', timeout=timeout)


def lasso(page: Any, places: list[tuple[float, float]]) -> None:
    """Draw around places given as shares of the plot's width and height."""
    box = page.locator("canvas.over").bounding_box()
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in places]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=4)
    page.mouse.up()
