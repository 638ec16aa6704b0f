"""A session without a browser: what it was asked, and everything it said."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imapce import Exploration
from imapce.app.conversation import Conversation
from imapce.app.study import Study


class Talk:
    """A session, and what it told unasked, in order."""

    def __init__(self, study: Study):
        self.heard: list[tuple[dict[str, Any], list[Any]]] = []
        self._news = threading.Condition()
        self.conversation = Conversation(study, self._hear)

    @property
    def exploration(self) -> Exploration:
        return self.conversation.exploration

    def _hear(self, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        with self._news:
            self.heard.append((content, list(buffers)))
            self._news.notify_all()

    def ask(self, type: str, *buffers: Any, **fields: Any) -> dict[str, Any]:
        """The answer to a message, now or later."""
        number = len(self.heard) + 1_000
        content, payload = self.conversation.handle(
            {"type": type, "id": number, **fields}, [bytes(one) for one in buffers]
        )
        if content["type"] == "later":
            with self._news:
                self._news.wait_for(lambda: self._replies(number), timeout=60)
            content, payload = self._replies(number)[0]
        assert content["type"] == "reply"
        assert content["re"] == number
        return {**content, "buffers": payload}

    def done(self, type: str, **fields: Any) -> dict[str, Any]:
        """The answer to a message that starts work, after the work."""
        answer = self.ask(type, **fields)
        assert "error" not in answer, answer
        assert self.conversation.wait(120)
        return answer

    def said(self, type: str) -> list[tuple[dict[str, Any], list[Any]]]:
        return [one for one in self.heard if one[0]["type"] == type]

    @property
    def state(self) -> dict[str, Any]:
        return self.said("state")[-1][0]

    def _replies(self, number: int) -> list[tuple[dict[str, Any], list[Any]]]:
        return [one for one in self.heard if one[0].get("re") == number and one[0]["type"] == "reply"]


def groups(n: int = 300, seed: int = 0) -> np.ndarray:
    """Rows of four columns in three groups that nothing mixes up."""
    return np.random.default_rng(seed).normal(size=(n, 4)) + 9 * np.eye(3, 4)[np.arange(n) % 3]


def write_groups(path: Path) -> Path:
    """Three groups that nothing mixes up, and their names."""
    rows = (",".join(map(str, [*row, f"k{i % 3}"])) for i, row in enumerate(groups()))
    path.write_text("a,b,c,d,kind\n" + "\n".join(rows))
    return path


def rectangle(points: np.ndarray, margin: float = 1.0) -> bytes:
    """A lasso around points."""
    (a, b), (c, d) = points.min(axis=0) - margin, points.max(axis=0) + margin
    return np.array([a, b, c, b, c, d, a, d]).tobytes()
