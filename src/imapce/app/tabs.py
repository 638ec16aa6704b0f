"""Who has what open: one tab for every page, each with an exploration of its own over shared rows.

A tab that is closed is freed soon and its work stays in its file, from which the same browser gets it back. A socket
that drops keeps its tab for a minute. What a tab opens is a data set or a file, whose columns get roles: features are
explored, known ones given up, labels only colour.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from imapce import datasets
from imapce.app.conversation import Conversation
from imapce.app.messages import Buffer, Content, Reply, Send
from imapce.app.stage import answer
from imapce.app.study import Study
from imapce.common.words import listing
from imapce.datasets.catalogue import CATALOGUE
from imapce.errors import Argument, FileFormatError, FileName, InvalidValueError, Phrase, Reference
from imapce.estimators.imapce import IMAPCE
from imapce.exploration.session import Exploration
from imapce.priors.base import Prior
from imapce.priors.kinds import Attributes
from imapce.tables.cells import keeping_dates, read_cells
from imapce.tables.encode import Table, column_names, is_table
from imapce.tables.files import read_table
from imapce.tables.usable import usable_columns

ROLES = ("feature", "known", "label", "ignored")
# What a file of an upload may have and unpack to.
MOST_BYTES = 512 << 20
# More columns than this stay a matrix: a table of them would be a second copy of the data.
MOST_TABLE_COLUMNS = 200
_ANSWER = re.compile(r"(class|label|target|species|cell_?type|outcome|diagnosis|group)(_?name)?s?", re.IGNORECASE)

# Words, function of imapce.datasets and its argument, height and width where a row is a picture.
_OFFERS: dict[str, tuple[str, str, tuple[str, ...], tuple[int, int] | None]] = {
    "synthetic": ("Two loud batches hide three quiet cell types", "make_synthetic", (), None),
    "digits": ("Handwritten digits, 8 × 8 pixels; hover shows the picture", "load_digits", (), (8, 8)),
    "image_segmentation": (
        "Seven kinds of outdoor surface, 19 measurements each",
        "fetch_image_segmentation",
        (),
        None,
    ),
    "adult_full": ("People of the 1994 census", "fetch_adult", ("full",), None),
    "adult_paper": ("1,000 people of the 1994 census, as in the paper", "fetch_adult", ("paper",), None),
    "synthetic_paper": ("The paper's own file of batches and cell types", "load_synthetic_paper", (), None),
    "mnist": ("Handwritten digits, 28 × 28 pixels", "fetch_mnist", (), (28, 28)),
    "fashion_mnist": ("Clothes, 28 × 28 pixels", "fetch_fashion_mnist", (), (28, 28)),
    "cifar100_grey28": ("Small photographs in grey", "fetch_cifar100", (), (28, 28)),
}


class Tab:
    """One page: nothing open yet, or a session."""

    def __init__(self, tabs: Tabs, key: str, browser: str):
        self.tabs, self.key, self.browser = tabs, key, browser
        self.conversation: Conversation | None = None
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
        act = getattr(self, f"on_{message.get('type')}", None)
        if act is None and self.conversation is not None:
            return self.conversation.handle(message, buffers)
        return answer(message, lambda: ((act or self._refuse)(message), []))

    def _refuse(self, message: Content) -> Content:
        raise InvalidValueError("nothing is open yet; choose a data set or a file.")

    def close(self) -> None:
        """Free what it holds; its file stays."""
        if self.conversation is not None:
            self.conversation.close()
            self.conversation = None
            # Of a table of 100 MB the pool would keep as much again for another one that may never come.
            pa.default_memory_pool().release_unused()

    def begin(self, study: Study) -> None:
        """Open a study of this tab's own."""
        self.close()
        self.conversation = Conversation(study, self.send)

    def on_where(self, message: Content) -> dict[str, Any]:
        """What the page shows first: the start, or the session."""
        return {"open": self.conversation is not None, "tab": self.key, "limit": self.tabs.most_bytes}

    def on_offered(self, message: Content) -> dict[str, Any]:
        return {"datasets": list_datasets()}

    def on_inspect(self, message: Content) -> dict[str, Any]:
        name, path = self.tabs.upload(str(message["upload"]))
        data, columns = inspect_file(path, self.tabs.most_bytes)
        return {"name": name, "rows": int(data.shape[0]), "columns": columns, "width": int(data.shape[1])}

    def on_open(self, message: Content) -> dict[str, Any]:
        """Begin with a data set or a file that was sent."""
        study = self._study_of(message)
        path = self.tabs.own_file(self.key)
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
        self.begin(self.tabs.with_file(study, self.tabs.own_file(self.key)))

    def _study_of(self, message: Content) -> Study:
        if "dataset" in message:
            return self.tabs.shared_dataset(str(message["dataset"]))
        name, path = self.tabs.upload(str(message["upload"]))
        data, columns = inspect_file(path, self.tabs.most_bytes)
        roles = {column["name"]: column["role"] for column in columns} | dict(message.get("roles", {}))
        return open_file(name, data, roles)

    def on_leave(self, message: Content) -> dict[str, Any]:
        """Back to the start."""
        self.close()
        self.opened = None
        self.tabs.give_up_file(self)
        return {"open": False}


class Tabs:
    """All tabs of one server.

    `study` is what it was started with, None for the start page; `folder` holds uploads and the sessions of tabs;
    `file` is the session file of the command line, which one tab at a time writes to; `most_bytes` may be uploaded.
    """

    def __init__(self, study: Study | None, folder: Path, *, file: Path | None = None, most_bytes: int = MOST_BYTES):
        self._study, self._folder, self._file, self.most_bytes = study, folder, file, most_bytes
        self._open: dict[str, Tab] = {}
        self._freed: dict[str, tuple[str, Content | None]] = {}
        self._holder: str | None = None
        self._uploads: dict[str, tuple[str, Path]] = {}
        self._datasets: dict[str, Study] = {}
        self._lock = threading.RLock()

    def tab(self, key: str | None, browser: str) -> Tab:
        """The tab of a page: the one it had, one of this browser that nobody looks at, or a new one."""
        with self._lock:
            mine = [tab for tab in self._open.values() if tab.browser == browser]
            found = next((tab for tab in mine if tab.key == key), None)
            if found is None:
                found = next((tab for tab in mine if not tab.attached), None)
            return found if found is not None else self._new(key, browser)

    def held(self, key: str | None, browser: str) -> Tab | None:
        """The tab of this browser by its key, where it is held."""
        tab = self._open.get(key or "")
        return tab if tab is not None and tab.browser == browser else None

    def free(self, tab: Tab) -> None:
        """Let go of a tab that nobody looks at."""
        with self._lock:
            if tab.attached or self._open.get(tab.key) is not tab:
                return
            del self._open[tab.key]
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
        return len(self._open)

    @property
    def conversations(self) -> list[Conversation]:
        """Those of all tabs."""
        return [tab.conversation for tab in self._open.values() if tab.conversation is not None]

    def close(self) -> None:
        """Let go of everything."""
        for tab in list(self._open.values()):
            tab.close()
        self._open.clear()

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
                self._datasets[name] = open_dataset(name)
            return self._datasets[name].own_copy()

    def _new(self, key: str | None, browser: str) -> Tab:
        # A page that comes back goes on with the tab it had, else with the last one that this browser closed.
        mine = [freed for freed, (whose, _) in self._freed.items() if whose == browser]
        again = key if key in mine else mine[-1] if mine else None
        tab = Tab(self, again or secrets.token_hex(12), browser)
        _, opened = self._freed.pop(tab.key, ("", None))
        self._open[tab.key] = tab
        if opened is not None:
            tab.reopen(opened)
        elif self._study is not None:
            tab.begin(self._command_line_study(tab))
        return tab

    def _command_line_study(self, tab: Tab) -> Study:
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
            # A file does not tell with which settings its moves were made.
            study.note_settings()
        else:
            study.exploration.keep_in(path)
        return study


def list_datasets() -> list[dict[str, Any]]:
    """The data sets that can be opened without a download.

    >>> [found["name"] for found in list_datasets()][:2]
    ['synthetic', 'digits']
    """
    return [
        {
            "name": data.name,
            "rows": data.rows,
            "columns": data.columns,
            "words": _OFFERS[data.name][0],
            "source": data.source,
        }
        for data in CATALOGUE
        if data.is_on_disk()
    ]


def open_dataset(name: str) -> Study:
    """A data set of the catalogue as a study; all its columns are features, its labels colour."""
    if name not in {data["name"] for data in list_datasets()}:
        raise InvalidValueError(f"the data set must be one of those offered; got {name!r}.")
    _, function, arguments, picture = _OFFERS[name]
    data = getattr(datasets, function)(*arguments)
    labels = {key: pa.array(values) for key, values in data.labels.items()}
    script = [f"data = imapce.datasets.{function}({', '.join(map(repr, arguments))})"]
    features: Any
    if data.X.shape[1] <= MOST_TABLE_COLUMNS:
        features = pa.table({key: data.X[:, j] for j, key in enumerate(data.feature_names)})
        table = pa.table({**labels, **{key: features.column(key) for key in data.feature_names}})
        script.append("X = imapce.tables.frame(dict(zip(data.feature_names, data.X.T)))")
    else:
        features, table = data.X, pa.table(labels)
        script.append("X = data.X")
    return Study(
        name,
        _exploration(features, []),
        features=features,
        table=table,
        labels=tuple(labels),
        picture=picture,
        script=tuple(script),
        labelled="data.labels[{names[0]!r}]",
    )


def _words_of_page(part: Reference) -> str:
    """Whoever sent a file knows it by its name, and where it was put is nobody's business."""
    if isinstance(part, FileName):
        return part.last
    own: dict[Reference, str] = {
        Argument("path"): "the file",
        Phrase("names", "must name"): "must be",
        Phrase("ends in", "must end in"): "must have a name that ends in",
    }
    return own.get(part, str(part))


def inspect_file(path: Path, most_bytes: int = MOST_BYTES) -> tuple[Any, list[dict[str, Any]]]:
    """What a file holds, and for every column its kind, the role it is given first, and why."""
    try:
        data = read_table(path, max_bytes=most_bytes)
    except FileFormatError as problem:
        raise FileFormatError(problem.rendered(_words_of_page)) from problem
    if not is_table(data):
        return data, []
    cells = read_cells(data)
    usable, reasons = usable_columns(cells.native)
    data = keeping_dates(cells, data)
    described = []
    for place, name in enumerate(column_names(data, "the file")):
        kind = data.schema.types[place]
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        answer = _ANSWER.fullmatch(name.strip()) is not None
        role = "label" if answer and (name in usable or not number) else "feature" if name in usable else "ignored"
        words = "number" if number else "category" if name in usable else "text"
        described.append({"name": name, "kind": words, "role": role, "reason": reasons.get(name, "")})
    return data, described


def open_file(name: str, data: Any, roles: Mapping[str, str], *, color: str | None = None) -> Study:
    """A table with a role for every column, or a matrix, as a study."""
    read = f"imapce.tables.read_table({name!r})"
    if not is_table(data):
        return Study(name, _exploration(data, []), features=data, script=(f"X = {read}",))
    names = column_names(data, "the file")
    if strangers := [role for role in roles.values() if role not in ROLES]:
        raise InvalidValueError(f"the role of a column must be one of {listing(ROLES)}; got {strangers[0]!r}.")
    chosen = {column: roles.get(column, "ignored") for column in names}
    used = [column for column in names if chosen[column] in ("feature", "known")]
    known = [column for column in names if chosen[column] == "known"]
    if len(used) - len(known) < 2:
        raise InvalidValueError(
            f"two columns must be features to draw a view; {len(used) - len(known)} is: make more columns features."
        )
    features = Table.learn(data.select(used), "the file")
    reasons = usable_columns(features, named=used)[1]
    if reasons:
        column, reason = next(iter(reasons.items()))
        raise InvalidValueError(f"{column!r} cannot be a feature: it {reason}. Make it a label, or ignore it.")
    priors: list[Prior] = [Attributes(known)] if known else []
    script = [f"data = {read}", f"X = data.select({used!r})"]
    return Study(
        name,
        _exploration(features, priors),
        features=features,
        table=data,
        labels=tuple(column for column in names if chosen[column] == "label"),
        color=color,
        script=tuple(script),
    )


def _exploration(features: Any, priors: list[Prior]) -> Exploration:
    estimator = IMAPCE(outliers="keep", missing="mean")
    return Exploration(features, prior=priors or None, estimator=estimator, random_state=0)
