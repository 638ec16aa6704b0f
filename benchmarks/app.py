"""The browser app, beside what was asked of it: Chromium without a GPU, best of three, 100,000 and 1,000,000 points.

    python -m benchmarks.app [--rows 100000 1000000]

A page is watched from outside: what it puts on its canvas, what goes through its socket and when.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn

from benchmarks.record import Record, at_least, at_most, measure
from imapce import Exploration
from imapce.app.conversation import Conversation
from imapce.app.scene import LassoIndex
from imapce.app.server import Guard, application
from imapce.app.study import Study
from imapce.app.tabs import Tabs
from imapce.common.work import a_core_left

ROOT = Path(__file__).parents[1]
COLUMNS, GROUPS, REPEATS, FURTHER = 20, 6, 3, 5
# What is asked for at 100,000 and at 1,000,000 points.
WANTED = {
    "link opened to all points drawn, s": (0.8, 1.3),
    "lasso to exact rows in Python, ms": (20, 50),
    "lasso to selection on screen, ms": (60, 150),
    "another known view drawn, ms": (60, 250),
    "turn, frames per second": (55, 40),
    "hover to the row, ms": (16, 16),
    "input while a fit runs, p95, ms": (30, 30),
    "cancel to idle, s": (1.0, 1.5),
    "take to the next view drawn, s": (3.0, 8.0),
    "bytes per point, first": (9, 9),
    "bytes per point, a view": (8, 8),
    "a further session, MB": (10, 30),
    "freed after the tab closes, s": (5, 5),
}
MORE_IS_BETTER = {"turn, frames per second"}

WATCH = """
window.seen = { drawn: [], painted: [], sent: [], got: [] };
const put = CanvasRenderingContext2D.prototype.putImageData;
CanvasRenderingContext2D.prototype.putImageData = function (...given) {
  put.apply(this, given);
  if (this.canvas.className === "points") seen.painted.push(performance.now());
};
const Plain = WebSocket;
window.WebSocket = class extends Plain {
  constructor(address) {
    super(address);
    this.addEventListener("message", (event) => {
      const length = new DataView(event.data).getUint32(0, true);
      const head = JSON.parse(new TextDecoder().decode(new Uint8Array(event.data, 4, length)));
      seen.got.push({ at: performance.now(), type: head.type, re: head.re, busy: head.busy, bytes: head._b });
    });
  }
  send(data) {
    const length = new DataView(data.buffer).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data.buffer, 4, length)));
    seen.sent.push({ at: performance.now(), type: head.type, id: head.id });
    super.send(data);
  }
};
new MutationObserver((changes) => {
  for (const one of changes) seen.drawn.push(performance.now());
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-drawn"] });
// A selection is on the screen with the first picture after its answer.
seen.selections = () => seen.sent.filter((one) => one.type === "select").flatMap((one) => {
  const answer = seen.got.find((other) => other.re === one.id);
  const picture = answer && seen.painted.find((at) => at >= answer.at);
  return picture ? [picture] : [];
});
// The pictures of the last view that came; what is still painted of the one before is none of them.
seen.pictures = () => {
  const view = seen.got.findLast((one) => one.type === "view");
  return seen.painted.filter((at) => at >= view.at);
};
document.addEventListener("pointerup", () => (seen.released = performance.now()), true);
document.addEventListener("pointermove", () => (seen.moved = performance.now()), true);
document.addEventListener("click", () => (seen.clicked = performance.now()), true);
"""


# The pointer of a restless hand, until no work runs: sixty moves a second from within, which take no core away.
WANDER = """
() => {
  const [over, app] = [document.querySelector("canvas.over"), document.querySelector(".imapce")];
  const box = over.getBoundingClientRect();
  let place = 0;
  const timer = setInterval(() => {
    place += 1;
    if (place > 10 && app.dataset.busy === "no") clearInterval(timer);
    const [x, y] = [0.35 + 0.005 * (place % 60), 0.4 + 0.003 * (place % 9)];
    const at = { clientX: box.left + x * box.width, clientY: box.top + y * box.height, bubbles: true };
    over.dispatchEvent(new PointerEvent("pointermove", at));
  }, 16);
}
"""


def rows_of(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=3, size=(GROUPS, COLUMNS))
    return rng.normal(size=(n, COLUMNS)) + centres[rng.integers(GROUPS, size=n)]


@contextmanager
def serving(path: Path) -> Iterator[tuple[str, int]]:
    """A server over a file: its link and its process id."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "imapce", "app", str(path), "--no-browser"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        link = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
        yield link, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stdout.close()


def own_memory() -> float:
    """MB that this process alone holds, once what is free went back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    text = Path("/proc/self/smaps_rollup").read_text()
    return sum(int(size) for size in re.findall(r"Private_\w+:\s+(\d+)", text)) / 1024


def settled_memory() -> float:
    """MB once they fall no more: what was just sent is let go a moment later."""
    now, before = own_memory(), float("inf")
    while now < before - 0.5:
        time.sleep(1)
        now, before = own_memory(), now
    return now


class Page:
    """A page of the server that tells when things happened."""

    def __init__(self, context: Any, link: str):
        self.page = context.new_page()
        self.page.add_init_script(WATCH)
        started = time.perf_counter()
        self.page.goto(link, wait_until="commit")
        self.wait("seen.drawn.length > 0 && seen.painted.length > 0")
        self.opened = time.perf_counter() - started
        self.wait("(({ asked, done }) => asked > 0 && asked === done)(document.querySelector('.imapce').dataset)")
        self.page.wait_for_timeout(300)

    def wait(self, condition: str, seconds: float = 240) -> None:
        self.page.wait_for_function(f"() => {condition}", timeout=1000 * seconds, polling="raf")

    def value(self, expression: str) -> Any:
        return self.page.evaluate(f"() => {expression}")

    def idle(self) -> None:
        self.page.wait_for_timeout(150)
        self.wait("document.querySelector('.imapce').dataset.busy === 'no'")

    def at(self, x: float, y: float) -> tuple[float, float]:
        box = self.page.locator("canvas.over").bounding_box()
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def lasso(self) -> float:
        """ms from the release of a lasso to the selection on the screen."""
        before = self.value("seen.selections().length")
        self.page.mouse.move(*self.at(0.3, 0.3))
        self.page.mouse.down()
        for place in ((0.6, 0.25), (0.7, 0.6), (0.4, 0.7), (0.3, 0.5)):
            self.page.mouse.move(*self.at(*place), steps=8)
        self.page.mouse.up()
        self.wait(f"seen.selections().length > {before}")
        return self.value("seen.selections().at(-1) - seen.released")

    def other_view(self, number: int) -> tuple[float, float, float]:
        """ms to the first frame of a turn to another optimum, its frames per second, bytes per point."""
        drawn = self.value("seen.drawn.length")
        self.page.locator(".views button").nth(number).click()
        self.wait(f"seen.drawn.length > {drawn} && seen.pictures().length > 0")
        first = self.value("seen.pictures()[0] - seen.clicked")
        self.page.wait_for_timeout(1500)
        times = np.array(self.value("seen.pictures()"))
        turn = times[times < times[0] + 1000]
        got = self.value("seen.got.filter((one) => one.type === 'view').at(-1).bytes[0]")
        return first, (len(turn) - 1) / (turn[-1] - turn[0]) * 1000, got

    def hover(self) -> float:
        """ms from a move of the pointer to the question about the row below it."""
        found = []
        for i in range(12):
            before = self.value("seen.sent.filter((one) => one.type === 'hover').length")
            self.page.mouse.move(*self.at(0.42 + 0.013 * i, 0.47))
            self.page.wait_for_timeout(60)
            sent = self.value("seen.sent.filter((one) => one.type === 'hover').map((one) => one.at)")
            if len(sent) > before and i:
                found.append(sent[-1] - self.value("seen.moved"))
        return float(np.median(found)) if found else float("nan")

    def restless(self, name: str) -> float:
        """ms that 95 % of hovers are answered in, from a button on until its view, clusters and test are there."""
        asked = len(self.answers("hover"))
        self.page.get_by_role("button", name=name).click()
        self.page.evaluate(WANDER)
        self.idle()
        waited = self.answers("hover")[asked:]
        return float(np.quantile(waited, 0.95)) if waited else float("nan")

    def answers(self, kind: str) -> list[float]:
        """ms from question to answer of one kind of message."""
        return self.value(
            f"seen.sent.filter((one) => one.type === '{kind}').map((one) => [one, "
            "seen.got.find((other) => other.re === one.id)]).filter(([, one]) => one).map(([a, b]) => b.at - a.at)"
        )


def measured(n: int, context: Any, folder: Path) -> dict[str, float]:
    path = folder / f"rows{n}.npy"
    np.save(path, rows_of(n))
    found: dict[str, float] = {}
    index = LassoIndex(Exploration(np.load(path), random_state=0).look(alpha=0.0, mu=0.0).embedding)
    angle = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    polygon = np.stack([2 * np.cos(angle), 1.5 * np.sin(angle)], axis=1)
    found["lasso to exact rows in Python, ms"] = 1000 * best(lambda: index.rows(polygon))
    with serving(path) as (link, _):
        opened = []
        for place in range(REPEATS):
            page = Page(context, link)
            opened.append(page.opened)
            if place < REPEATS - 1:
                page.page.close()
        found["link opened to all points drawn, s"] = min(opened)
        first = page.value("seen.got.find((one) => one.type === 'view').bytes")
        found["bytes per point, first"] = sum(first) / n
        found["lasso to selection on screen, ms"] = min(page.lasso() for _ in range(REPEATS))
        page.page.keyboard.press("Escape")
        found["hover to the row, ms"] = page.hover()

        restless = [page.restless("Next view")]
        views = [page.other_view(1 + place % 2) for place in range(REPEATS)]
        page.idle()
        found["another known view drawn, ms"] = min(view[0] for view in views)
        found["turn, frames per second"] = max(view[1] for view in views)
        found["bytes per point, a view"] = views[-1][2] / n

        drawn = page.value("seen.drawn.length")
        page.page.locator(".views button").nth(0).click()
        page.idle()
        drawn = page.value("seen.drawn.length")
        page.page.get_by_role("button", name="Take most distinct").click()
        page.wait(f"seen.drawn.length > {drawn}")
        found["take to the next view drawn, s"] = page.value(f"(seen.drawn[{drawn}] - seen.clicked) / 1000")
        page.idle()

        restless += [page.restless("Take most distinct") for _ in range(REPEATS - 1)]
        found["input while a fit runs, p95, ms"] = min(restless)
        page.page.get_by_role("button", name="Run to the end").click()
        page.page.wait_for_timeout(400)
        page.page.evaluate("() => document.querySelector('.actions .warn:not([hidden])')?.click()")
        page.wait(
            "seen.got.at(-1).type === 'state' && seen.got.at(-1).busy === null || seen.got.slice(-3).some("
            "(one) => one.type === 'state' && one.busy === null)"
        )
        found["cancel to idle, s"] = page.value(
            "(seen.got.findLast((one) => one.type === 'state' && one.busy === null).at - seen.clicked) / 1000"
        )
        page.idle()

        page.page.close()
    memory, seconds = further_sessions(path, context.browser)
    found["a further session, MB"] = memory
    found["freed after the tab closes, s"] = seconds
    return found


def further_sessions(path: Path, browser: Any) -> tuple[float, float]:
    """MB that each of five more people with a lasso costs the server, and seconds until the last of them is freed."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-c", f"from benchmarks.app import answering; answering({str(path)!r})"]
    server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None
    assert server.stdout is not None

    def told(question: str) -> float:
        print(question, file=server.stdin, flush=True)
        return float(server.stdout.readline())  # type: ignore[union-attr]

    def another() -> Page:
        page = Page(browser.new_context(viewport={"width": 1200, "height": 900}), link)
        page.lasso()
        return page

    try:
        link = server.stdout.readline().strip()
        # The first ones bring what is shared: threads, buffers of the server, the rows sorted for lassos.
        pages = [another() for _ in range(2)]
        before = told("memory")
        pages += [another() for _ in range(FURTHER)]
        memory = (told("memory") - before) / FURTHER
        assert told("sessions") == FURTHER + 2
        for page in pages:
            page.page.close()
        closed = time.perf_counter()
        while told("sessions") and time.perf_counter() - closed < 90:
            time.sleep(0.05)
        return memory, time.perf_counter() - closed
    finally:
        server.stdin.close()
        server.wait(30)
        server.stdout.close()


def answering(path: str) -> None:
    """A server that tells, asked on its standard input, how much memory it holds and how many sessions live."""
    rows = np.load(path)
    study = Study("rows", Exploration(rows, random_state=0), features=rows)
    study.prepare()
    held: weakref.WeakSet[Conversation] = weakref.WeakSet()
    with tempfile.TemporaryDirectory() as kept, in_this_process(Tabs(study, Path(kept))) as (link, tabs):
        print(link, flush=True)
        for question in sys.stdin:
            held.update(tabs.conversations)
            while any(thread.name.startswith("imapce") for thread in threading.enumerate()):
                time.sleep(0.05)
            print(settled_memory() if question.strip() == "memory" else len(held), flush=True)


@contextmanager
def in_this_process(tabs: Tabs) -> Iterator[tuple[str, Tabs]]:
    """All tabs behind their guard, and the link to it."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    config = uvicorn.Config(
        Guard(application(tabs), "key", [address]),
        log_level="error",
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    with a_core_left():
        thread.start()
        try:
            yield f"http://{address}/login?token=key", tabs
        finally:
            server.should_exit = True
            thread.join(30)


def best(work: Any) -> float:
    """Seconds of the fastest of three."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main(record: Record, asked: Namespace) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player, tempfile.TemporaryDirectory() as folder:
        browser = player.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        record.versions["Chromium"] = browser.version
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        for n in [10_000] if asked.quick else asked.rows:
            found = measured(n, context, Path(folder))
            table = record.table(f"{n:,} points", "what", "seen")
            for name, wanted in WANTED.items():
                bound = wanted[0 if n <= 100_000 else 1]
                claim = at_least(bound, "seen") if name in MORE_IS_BETTER else at_most(bound, "seen")
                table.row(name, float(found[name]), claim=claim)
        browser.close()


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])


if __name__ == "__main__":
    measure("app", main, __doc__, options)
