"""What a page and one `Exploration` say to each other; nothing here knows how the words travel.

`handle(message, buffers)` answers at once. Work that takes a while runs beside it and tells of itself through `send`:
first the view, then its clusters, then the test. Only one piece of work changes the exploration at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from imapce.app import exports, why
from imapce.app.frames import Buffer, Content
from imapce.app.jobs import Job, Jobs, told_at_most
from imapce.app.stage import Reply, Send, Stage
from imapce.app.study import Study
from imapce.app.summary import state_of
from imapce.common.checks import is_whole
from imapce.errors import CancelledError, ImapceError, InvalidValueError, Sentence
from imapce.exploration.verdict import SPLITS_IT, without_way_out
from imapce.priors.base import Prior
from imapce.priors.kinds import Subset

PROGRESS_EVERY = 0.1
SIGNIFICANT = 0.05
LONGEST_NAME = 60


class Session(Stage):
    """One person's talk with one exploration.

    >>> from imapce import Exploration
    >>> study = Study("noise", Exploration(np.random.default_rng(0).normal(size=(30, 4))))
    >>> session = Session(study, lambda content, buffers: None)
    >>> session.handle({"type": "select", "how": "invert", "id": 1})[0]["count"]
    30
    """

    def __init__(self, study: Study, send: Send):
        super().__init__(study, send)
        self._telling = threading.RLock()
        self._jobs = Jobs(self._ended)
        self._later = threading.Lock()
        self._last: dict[str, Content] = {}
        self._asked_to_split: Content = {}

    # --- the talk -----------------------------------------------------------------------------------------------------

    def handle(self, message: Content, buffers: Sequence[bytes] = ()) -> Reply:
        """Answer one message; a refusal is an answer too, in one sentence. What takes a while is answered later."""
        name = str(message.get("type"))
        if name in _SLOW:
            self._last[name] = message
            threading.Thread(target=self._answer_later, args=(message,), name=f"imapce {name}", daemon=True).start()
            return {"type": "later"}, []
        return self._answer(_ACTS.get(name), message, buffers)

    def _answer(self, act: Any, message: Content, buffers: Sequence[bytes]) -> Reply:
        answer: Content = {"type": "reply", "re": message.get("id")}
        try:
            if act is None:
                raise InvalidValueError(f"a message must be one of the page's; got {message.get('type')!r}: reload it.")
            content, payload = act(self, message, buffers)
            return {**content, **answer}, payload
        except ImapceError as problem:
            return {**answer, "error": str(problem)}, []
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as problem:
            return {**answer, "error": f"That message could not be read ({problem}); reload the page."}, []

    def _answer_later(self, message: Content) -> None:
        # One at a time, and of several descriptions only the last: at a million rows each is a second of work, and
        # nobody looks at those before it.
        name = str(message["type"])
        with self._later:
            stale = name == "describe" and self._last[name] is not message
            self.send(*self._answer(_superseded if stale else _SLOW[name], message, ()))

    def close(self) -> None:
        """End the work that runs; what was accepted is saved already."""
        self._jobs.close()
        self.send = _to_nobody

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no work runs, for those who have no page to look at."""
        return self._jobs.wait(timeout)

    def tell_state(self) -> None:
        """Send where the exploration stands."""
        # One at a time, or what was seen before the work ended could be told after it.
        with self._telling:
            job = self._jobs.current
            state = state_of(self.exploration, self.study, self.scene)
            state["busy"] = None if job is None else {"words": job.words, "gives_way": job.gives_way}
            self.send({"type": "state", **state}, [])

    def _hello(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        content = self.hello()
        self.show(self.scene, turning=False)
        self.tell_state()
        self.tell_selection()
        return content, []

    # --- looking ------------------------------------------------------------------------------------------------------

    def _next(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        self._start("looking for the next view", self._proposed)
        return {}, []

    def _proposed(self, job: Job) -> None:
        """The next view, shown before its clusters are there; then these, then the test."""
        step = self.exploration.propose(clusters=False, progress=self._told(job), cancel=job.cancelled)
        self.show(self.study.proposed(step, 0))
        job.gives_way = True
        self.tell_state()
        self._coloured(job)

    def _coloured(self, job: Job) -> None:
        number = self.scene.number if self.scene.kind == "proposal" else 0
        self.exploration.cluster(number, progress=self._told(job), cancel=job.cancelled)
        step = self.exploration.proposal
        if step is not None and self.scene.kind == "proposal" and self.scene.number == number:
            self.recolour(self.study.proposed(step, number))
        self.tell_state()
        if step is not None and step.p_value is None and not self.exploration.done:
            self.exploration.test(progress=self._told(job), cancel=job.cancelled)

    def _view(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """Turn to another optimum of the current step, or back to where the exploration stands."""
        step = self.exploration.proposal
        if step is None:
            raise InvalidValueError("there is no view to turn to yet; press Next view.")
        number = message.get("number", 0)
        if not is_whole(number) or not 0 <= number < len(step.views):
            raise InvalidValueError(f"a view must be from 0 to {len(step.views) - 1}; got {number!r}.")
        self._jobs.require_way()
        self.show(self.study.proposed(step, number))
        if step.views[number].looked_at:
            self.tell_state()
        else:
            self._start("colouring the clusters", self._coloured, gives_way=True)
        return {}, []

    def _look_back(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """An accepted step as it was seen."""
        number = int(message["step"])
        if not 0 <= number < len(self.exploration.steps):
            raise InvalidValueError(f"a step must be from 1 to {len(self.exploration.steps)}; got {number + 1}.")
        self.show(self.study.looked_back(number))
        self.tell_state()
        return {}, []

    def _three(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """A view of three axes, beside those of the session."""

        def work(job: Job) -> None:
            view = self.exploration.look(n_components=3, progress=self._told(job), cancel=job.cancelled)
            self.show(self.study.three(view))

        self._start("looking for a view of three axes", work)
        return {}, []

    # --- moving -------------------------------------------------------------------------------------------------------

    def _take(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """Take the most distinct cluster, named ones or the selection, and look again."""
        what, name = str(message.get("what", "most")), str(message.get("name") or "").strip()[:LONGEST_NAME] or None
        if self.scene.kind == "step":
            raise InvalidValueError("this is a view you looked back at; press Back to now, then take.")
        chosen: dict[str, Any] = {"name": name, "view": self.scene.number if self.scene.kind == "proposal" else 0}
        if what == "selection":
            chosen["mask"] = self.selected & ~self.exploration.known
            if not chosen["mask"].any():
                raise InvalidValueError("select some unexplored rows first: draw around them with the lasso.")
        elif what == "clusters":
            chosen["clusters"] = [int(number) for number in message["clusters"]]
        elif what != "most":
            raise InvalidValueError(f"what is taken must be most, clusters or selection; got {what!r}.")
        return self._move(
            "taking rows into the known",
            lambda job: self.exploration.accept(**chosen, progress=self._told(job), cancel=job.cancelled),
        )

    def _split(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """Split a cluster that was taken, or one of the view in sight."""
        proposed = "cluster" in message
        number = int(message["cluster"] if proposed else message["number"])
        view = self.scene.number if self.scene.kind == "proposal" else 0
        rule = str(message.get("structure", "heed"))
        self._asked_to_split = {"cluster" if proposed else "number": number}
        return self._move(
            "splitting the cluster",
            lambda job: self.exploration.split(
                number, proposed=proposed, view=view, structure=rule, progress=self._told(job), cancel=job.cancelled
            ),
        )

    def _merge(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        numbers = [int(number) for number in message["numbers"]]
        return self._move("merging clusters", lambda job: self.exploration.merge(numbers))

    def _undo(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        def work(job: Job) -> None:
            steps = len(self.exploration.steps)
            seen = self.study.looked_back(steps - 1) if steps else None
            self.exploration.undo()
            if seen is not None and len(self.exploration.steps) < steps:
                # What was undone is in sight at once, before it is found again.
                self.show(self.study.unexplored_again(seen))

        return self._move("going back", work, fresh=False)

    def _redo(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        return self._move("going forward", lambda job: self.exploration.redo(), fresh=False)

    def _settings(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """Other weights, clusters, or columns and rows that are known; what was taken stays."""
        given: dict[str, Any] = {key: _weight(key, message[key]) for key in ("alpha", "mu") if key in message}
        given |= {key: message[key] for key in ("granularity", "n_clusters", "structure") if key in message}
        if "columns" in message or "rows" in message:
            given["prior"] = self._priors(message)

        def work(job: Job) -> None:
            self.exploration.go_on_with(**given)
            self.study.priors = given.get("prior", self.study.priors)
            self.study.weights = {**self.study.weights, **{key: given[key] for key in ("alpha", "mu") if key in given}}
            # What may be redone was made with the settings before, too.
            self.study.settled_at = len(self.exploration.moves) + self.exploration.redoable

        return self._move("changing the settings", work, fresh=False)

    def _priors(self, message: Content) -> list[Prior]:
        """What is known now: columns by name, rows as they were or those selected, anything else as it was."""
        priors = list(self.study.priors)
        if "columns" in message:
            priors = self.study.knowing([str(name) for name in message["columns"]])
        if "rows" in message:
            others: list[Prior] = [prior for prior in priors if not prior.names_rows]
            rows = self.selected & (self.exploration.labels_ < 0)
            priors = [*others, Subset(rows)] if message["rows"] == "selection" and rows.any() else others
        return priors

    def _run(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        def seen(step: Any, accepted: Any) -> None:
            self.study.moved()
            self.show(self.study.looked_back(len(self.exploration.steps) - 1))
            self.tell_state()

        def work(job: Job) -> None:
            self.selected[:] = False
            self.tell_selection()
            significance = SIGNIFICANT if message.get("test") else None
            self.exploration.run(
                callback=seen, significance=significance, progress=self._told(job), cancel=job.cancelled
            )

        self._start("running to the end", work)
        return {}, []

    def _cancel(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        return {"cancelled": self._jobs.cancel()}, []

    def _move(self, words: str, change: Callable[[Job], Any], *, fresh: bool = True) -> Reply:
        """Change the exploration, then look again; `fresh` moves are made with the settings of now."""

        def work(job: Job) -> None:
            before = len(self.exploration.steps)
            change(job)
            if fresh:
                self.study.moved()
            self.selected[:] = False
            self.tell_selection()
            self.tell_state()
            if not self.exploration.done:
                self._proposed(job)
            elif len(self.exploration.steps) > before:
                self.show(self.study.looked_back(before))
            else:
                self.recolour(self.scene)

        self._start(words, work)
        return {}, []

    # --- telling ------------------------------------------------------------------------------------------------------

    def _describe(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """What sets the selected rows apart."""
        if not self.selected.any():
            raise InvalidValueError("there are no rows to describe; select some, or click a cluster in the legend.")
        return why.described(self.study, self.selected.copy()), []

    def _left(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """What of the known can still be read from the view, against chance."""
        return why.left_of_the_known(self.study, self.scene), []

    def _export(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        name, media, data = exports.exported(str(message["kind"]), self.study, self.scene, self.colouring())
        return {"name": name, "media": media}, [data]

    def _start(self, words: str, work: Callable[[Job], None], *, gives_way: bool = False) -> None:
        self._jobs.start(words, work, gives_way=gives_way)
        self.tell_state()

    def _told(self, job: Job) -> Callable[[str, float | None], None]:
        def tell(words: str, share: float | None) -> None:
            self.send({"type": "progress", "words": words, "share": share, "gives_way": job.gives_way}, [])

        return told_at_most(tell, PROGRESS_EVERY, time.monotonic)

    def _ended(self, job: Job, error: Exception | None) -> None:
        if isinstance(error, CancelledError):
            self.send({"type": "cancelled", "words": job.words}, [])
        elif error is not None:
            foreign = f"{type(error).__name__}: {error}"
            sentence = error.sentence if isinstance(error, ImapceError) else Sentence(foreign)
            told: Content = {"type": "failed", "sentence": without_way_out(sentence)}
            if SPLITS_IT in sentence.parts:
                told["anyway"] = {**self._asked_to_split, "structure": "ignore"}
            self.send(told, [])
        self.tell_state()


def _weight(name: str, value: Any) -> float | str:
    """A weight as the estimator takes it: "auto" or a number; the estimator says what else is wrong with it."""
    if value == "auto" or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise InvalidValueError(f'{name} must be a number or "auto"; got {value!r}.')


def _superseded(session: Session, message: Content, buffers: Sequence[bytes]) -> Reply:
    raise InvalidValueError("another selection was made meanwhile; that one is described.")


def _to_nobody(content: Content, buffers: Sequence[Buffer]) -> None:
    """Where words go when the page is gone."""


_ACTS: dict[str, Callable[[Session, Content, Sequence[bytes]], Reply]] = {
    "hello": Session._hello,
    "colour": Session.colour,
    "hover": Session.hover,
    "thumbnails": Session.thumbnails,
    "select": Session.select,
    "table": Session.table,
    "view": Session._view,
    "look_back": Session._look_back,
    "three": Session._three,
    "next": Session._next,
    "take": Session._take,
    "split": Session._split,
    "merge": Session._merge,
    "undo": Session._undo,
    "redo": Session._redo,
    "settings": Session._settings,
    "run": Session._run,
    "cancel": Session._cancel,
}
# Answered from a thread of their own: a second of describing must not hold up a lasso.
_SLOW: dict[str, Callable[[Session, Content, Sequence[bytes]], Reply]] = {
    "describe": Session._describe,
    "left": Session._left,
    "export": Session._export,
}
