"""Who has what open: one tab for every page, each with an exploration of its own over shared rows.

A tab that is closed is freed soon and its work stays in its file, from which the same browser gets it back. A socket
that drops keeps its tab for a minute.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from imapce.app import opening
from imapce.app.frames import Buffer, Content
from imapce.app.session import Reply, Send, Session
from imapce.app.study import Study
from imapce.errors import ImapceError, InvalidValueError
from imapce.exploration.session import Exploration


class Tab:
    """One page: nothing open yet, or a session."""

    def __init__(self, desk: Desk, key: str, browser: str):
        self.desk, self.key, self.browser = desk, key, browser
        self.session: Session | None = None
        self.opened: Content | None = None
        self._send: Send | None = None

    def attach(self, send: Send) -> None:
        """From now on what is told goes here."""
        self._send = send

    def detach(self, send: Send) -> bool:
        """The socket is gone; whether it was the one in use."""
        if self._send is not send:
            return False
        self._send = None
        return True

    @property
    def attached(self) -> bool:
        """Whether a page listens."""
        return self._send is not None

    def send(self, content: Content, buffers: Sequence[Buffer]) -> None:
        """Tell the page, if it is there."""
        send = self._send
        if send is not None:
            send(content, buffers)

    def handle(self, message: Content, buffers: Sequence[bytes] = ()) -> Reply:
        """Answer a message about what to open, or pass it on to the session."""
        act = _ACTS.get(str(message.get("type")))
        if act is None and self.session is not None:
            return self.session.handle(message, buffers)
        answer: Content = {"type": "reply", "re": message.get("id")}
        try:
            if act is None:
                raise InvalidValueError("nothing is open yet; choose a data set or a file.")
            return {**answer, **act(self, message)}, []
        except ImapceError as problem:
            return {**answer, "error": str(problem)}, []
        except (KeyError, TypeError, ValueError) as problem:
            return {**answer, "error": f"That message could not be read ({problem}); reload the page."}, []

    def close(self) -> None:
        """Free what it holds; its file stays."""
        if self.session is not None:
            self.session.close()
            self.session = None
            # Of a table of 100 MB the pool would keep as much again for another one that may never come.
            pa.default_memory_pool().release_unused()

    def begin(self, study: Study) -> None:
        """Open a study of this tab's own."""
        self.close()
        self.session = Session(study, self.send)

    def _where(self, message: Content) -> dict[str, Any]:
        """What the page shows first: the start, or the session."""
        return {"open": self.session is not None, "tab": self.key, "limit": self.desk.most_bytes}

    def _offered(self, message: Content) -> dict[str, Any]:
        return {"datasets": opening.offered()}

    def _inspect(self, message: Content) -> dict[str, Any]:
        name, path = self.desk.upload(str(message["upload"]))
        data, columns = opening.inspected(path, self.desk.most_bytes)
        return {"name": name, "rows": int(data.shape[0]), "columns": columns, "width": int(data.shape[1])}

    def _open(self, message: Content) -> dict[str, Any]:
        """Begin with a data set or a file that was sent."""
        study = self._study_of(message)
        path = self.desk.own_file(self.key)
        path.unlink(missing_ok=True)
        study.exploration.keep_in(path)
        study.keeps_file = False
        self.opened = message
        self.begin(study)
        return {"open": True}

    def reopen(self, opened: Content) -> None:
        """What was open in this tab before it was freed, with the work that its file holds."""
        study = self._study_of(opened)
        self.opened = opened
        study.keeps_file = False
        self.begin(self.desk.with_file(study, self.desk.own_file(self.key)))

    def _study_of(self, message: Content) -> Study:
        if "dataset" in message:
            return self.desk.shared_dataset(str(message["dataset"]))
        name, path = self.desk.upload(str(message["upload"]))
        data, columns = opening.inspected(path, self.desk.most_bytes)
        roles = {one["name"]: one["role"] for one in columns} | dict(message.get("roles", {}))
        return opening.file_study(name, data, roles)

    def _leave(self, message: Content) -> dict[str, Any]:
        """Back to the start."""
        self.close()
        self.opened = None
        self.desk.give_up_file(self)
        return {"open": False}


_ACTS = {
    "where": Tab._where,
    "offered": Tab._offered,
    "inspect": Tab._inspect,
    "open": Tab._open,
    "leave": Tab._leave,
}


class Desk:
    """All tabs of one server.

    `study` is what it was started with, None for the start page; `folder` holds uploads and the sessions of tabs;
    `file` is the session file of the command line, which one tab at a time writes to; `most_bytes` may be uploaded.
    """

    def __init__(
        self, study: Study | None, folder: Path, *, file: Path | None = None, most_bytes: int = opening.MOST_BYTES
    ):
        self._study, self._folder, self._file, self.most_bytes = study, folder, file, most_bytes
        self._tabs: dict[str, Tab] = {}
        self._freed: dict[str, tuple[str, Content | None]] = {}
        self._holder: str | None = None
        self._uploads: dict[str, tuple[str, Path]] = {}
        self._datasets: dict[str, Study] = {}
        self._lock = threading.RLock()

    def tab(self, key: str | None, browser: str) -> Tab:
        """The tab of a page: the one it had, one of this browser that nobody looks at, or a new one."""
        with self._lock:
            mine = [tab for tab in self._tabs.values() if tab.browser == browser]
            found = next((tab for tab in mine if tab.key == key), None)
            if found is None:
                found = next((tab for tab in mine if not tab.attached), None)
            return found if found is not None else self._new(key, browser)

    def held(self, key: str | None, browser: str) -> Tab | None:
        """The tab of this browser by its key, where it is held."""
        tab = self._tabs.get(key or "")
        return tab if tab is not None and tab.browser == browser else None

    def free(self, tab: Tab) -> None:
        """Let go of a tab that nobody looks at."""
        with self._lock:
            if tab.attached or self._tabs.get(tab.key) is not tab:
                return
            del self._tabs[tab.key]
            self._freed[tab.key] = (tab.browser, tab.opened)
            self.give_up_file(tab)
            tab.close()

    def give_up_file(self, tab: Tab) -> None:
        """The session file of the command line is free for another tab."""
        if self._holder == tab.key:
            self._holder = None

    @property
    def open_tabs(self) -> int:
        """How many tabs are held."""
        return len(self._tabs)

    @property
    def sessions(self) -> list[Session]:
        """The sessions of all tabs."""
        return [tab.session for tab in self._tabs.values() if tab.session is not None]

    def close(self) -> None:
        """Let go of everything."""
        for tab in list(self._tabs.values()):
            tab.close()
        self._tabs.clear()

    def own_file(self, key: str) -> Path:
        """Where the session of a tab is kept."""
        return self._folder / f"tab-{key}.imapce"

    def new_upload(self, name: str) -> tuple[str, Path]:
        """A key and a place for a file that is sent; its name gives the suffix and nothing else."""
        key = secrets.token_urlsafe(12)
        plain = Path(name.replace("\\", "/")).name or "upload"
        with self._lock:
            path = self._folder / f"upload-{len(self._uploads)}" / plain
            path.parent.mkdir()
            self._uploads[key] = (plain, path)
        return key, path

    def upload(self, key: str) -> tuple[str, Path]:
        """The name and place of a file that was sent."""
        if key not in self._uploads:
            raise InvalidValueError("the file must be one that was sent to this page; choose it again.")
        return self._uploads[key]

    def shared_dataset(self, name: str) -> Study:
        """A copy of a data set that is read once."""
        with self._lock:
            if name not in self._datasets:
                self._datasets[name] = opening.dataset_study(name)
            return self._datasets[name].own_copy()

    def _new(self, key: str | None, browser: str) -> Tab:
        # A page that comes back goes on with the tab it had, else with the last one that this browser closed.
        mine = [one for one, (whose, _) in self._freed.items() if whose == browser]
        again = key if key in mine else mine[-1] if mine else None
        tab = Tab(self, again or secrets.token_hex(12), browser)
        _, opened = self._freed.pop(tab.key, ("", None))
        self._tabs[tab.key] = tab
        if opened is not None:
            tab.reopen(opened)
        elif self._study is not None:
            tab.begin(self._of_the_command_line(tab))
        return tab

    def _of_the_command_line(self, tab: Tab) -> Study:
        assert self._study is not None
        study = self._study.own_copy()
        if self._file is not None and self._holder is None:
            self._holder, path = tab.key, self._file
        else:
            path = self.own_file(tab.key)
            if self._file is not None:
                study.notes = [
                    *study.notes,
                    f"{self._file.name} is open in another tab; this one is kept apart from it.",
                ]
            study.keeps_file = False
        return self.with_file(study, path)

    @staticmethod
    def with_file(study: Study, path: Path) -> Study:
        """The study with the session in a file, or with a new session that is kept there."""
        if path.exists():
            study.exploration = Exploration.load(path, study.features, row_ids=study.exploration.row_ids)
            study.settle()
        else:
            study.exploration.keep_in(path)
        return study
