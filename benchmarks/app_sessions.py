"""Ten people on one server for five minutes: no error, and memory that stays where it is.

    python -m benchmarks.app_sessions [--seconds 300]

Each has a socket of their own and goes round: look, lasso, describe, colour, turn to another view, take, undo, redo.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np
from websockets.sync.client import connect

from benchmarks.app import rows_of, serving
from benchmarks.record import Record, at_most, measure
from imapce.app.messages import pack, unpack
from imapce.app.server import cookie_of

PEOPLE, ROWS, SECONDS = 10, 20_000, 300.0


class Person:
    """One socket and the answers that came through it."""

    def __init__(self, link: str, number: int):
        address, token = link.removeprefix("http://").split("/login?token=")
        port = address.rpartition(":")[2]
        cookie = f"imapce_{port}={cookie_of(token)}; imapce_{port}_browser=person{number}"
        self._open = connect(
            f"ws://{address}/talk", origin=f"http://{address}", additional_headers={"Cookie": cookie}, max_size=None
        )
        self.socket = self._open.__enter__()
        self.errors: list[str] = []
        self.asked = 0
        self.state: dict[str, Any] = {}

    def ask(self, type: str, *buffers: Any, **fields: Any) -> dict[str, Any]:
        """The answer to a message; news that come before it are heard."""
        self.asked += 1
        self.socket.send(pack({"type": type, "id": self.asked, **fields}, buffers))
        while True:
            content = self.hear()
            if content.get("re") == self.asked and content["type"] == "reply":
                if "error" in content:
                    self.errors.append(f"{type}: {content['error']}")
                return content

    def hear(self) -> dict[str, Any]:
        content, _ = unpack(self.socket.recv(timeout=120))
        if content["type"] == "state":
            self.state = content
        elif content["type"] == "failed":
            self.errors.append(content["sentence"])
        return content

    def idle(self) -> None:
        while self.state.get("busy") is not None:
            self.hear()

    def go_round(self, chance: random.Random) -> None:
        """One round of what people do."""
        self.ask("next") if not self.state["proposed"] else None
        self.idle()
        centre, size = np.array([chance.gauss(0, 2), chance.gauss(0, 2)]), chance.uniform(1, 4)
        angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
        self.ask("select", (centre + size * np.stack([np.cos(angle), np.sin(angle)], axis=1)).ravel(), how="lasso")
        if self.ask("select", how="invert")["count"]:
            self.ask("describe")
        self.ask("select", how="clear")
        self.ask("colour", by=chance.choice(["cluster", "taken", "step", "column:x3"]))
        self.ask("hover", point=chance.randrange(ROWS), columns=["x0", "x1"])
        self.ask("view", number=chance.randrange(max(1, self.state["views"])))
        self.idle()
        if self.state["can_take_most"]:
            self.ask("take", what="most")
            self.idle()
        for move in ("undo", "redo", "undo"):
            if self.state["undoable" if move == "undo" else "redoable"]:
                self.ask(move)
                self.idle()


def resident(pid: int) -> float:
    """Memory of a process in MB."""
    words = Path(f"/proc/{pid}/status").read_text().split()
    return int(words[words.index("VmRSS:") + 1]) / 1024


def live(person: Person, until: float, seed: int, rounds: list[int]) -> None:
    chance = random.Random(seed)
    try:
        person.ask("hello")
        while time.monotonic() < until:
            person.go_round(chance)
            rounds[seed] += 1
    except Exception as problem:
        person.errors.append(f"{type(problem).__name__}: {problem}")


def live_together(seconds: float) -> tuple[list[int], list[str], list[float]]:
    """Rounds of everyone, what went wrong, and the server's memory in MB, asked twenty times over the time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, rows_of(ROWS))
        with serving(path) as (link, pid):
            people = [Person(link, number) for number in range(PEOPLE)]
            rounds = [0] * PEOPLE
            until = time.monotonic() + seconds
            threads = [
                threading.Thread(target=live, args=(one, until, number, rounds)) for number, one in enumerate(people)
            ]
            for thread in threads:
                thread.start()
            memory = []
            while any(thread.is_alive() for thread in threads):
                memory.append(resident(pid))
                time.sleep(seconds / 20)
            for person in people:
                person.socket.close()
    return rounds, [error for person in people for error in person.errors], memory


def main(record: Record, asked: Namespace) -> None:
    seconds = 10.0 if asked.quick else asked.seconds
    rounds, errors, memory = live_together(seconds)
    for error in errors[:10]:
        print(error)
    table = record.table("Sessions side by side", f"{PEOPLE} sessions of {ROWS:,} rows, {seconds:.0f} s", "seen")
    table.row("rounds of what people do", sum(rounds))
    table.row("errors", len(errors), claim=at_most(0, "seen"))
    half = len(memory) // 2
    table.row("memory after a tenth of the time, MB", memory[max(1, len(memory) // 10)])
    table.row("most memory in the first half, MB", max(memory[:half]))
    table.row("most memory in the second half, MB", max(memory[half:]))
    table.row("memory at the end, MB", memory[-1])


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=SECONDS)


if __name__ == "__main__":
    measure("app_sessions", main, __doc__, options)
