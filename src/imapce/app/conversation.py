"""What a page and one `Exploration` say to each other; nothing here knows how the words travel.

`handle(message, buffers)` answers at once. Work that takes a while runs beside it and tells of itself through `send`:
first the view, then its clusters, then the test. Only one piece of work changes the exploration at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from imapce.app.exports import export
from imapce.app.messages import Content, Reply, Send
from imapce.app.stage import Stage, answer
from imapce.app.study import Study
from imapce.app.summary import describe_rows, describe_state, read_known_back
from imapce.common.checks import is_whole
from imapce.common.work import Tell
from imapce.errors import CancelledError, ImapceError, InvalidValueError, Sentence
from imapce.exploration.verdict import SPLITS_IT, without_way_out

SIGNIFICANT = 0.05
LONGEST_NAME = 60
# Answered from a thread of their own: a second of describing must not hold up a lasso.
SLOW = frozenset(("describe", "left", "export"))


@dataclass(eq=False)
class Job:
    """One piece of work: its words, whether it gives way, and the event that ends it."""

    words: str
    gives_way: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    def cancelled(self) -> bool:
        """Whether it was asked to end."""
        return self.stop.is_set()


class Jobs:
    """The work of one conversation, one job after another, each in a thread.

    Work that the page did not ask for in so many words (colouring a view, the test) gives way to what it asks for next.
    `ended(job, error)` is called in the thread of the work when it is over; error is None where all went well.
    """

    def __init__(self, ended: Callable[[Job, Exception | None], None]):
        self._ended = ended
        self._lock = threading.Lock()
        self.current: Job | None = None

    def start(self, words: str, work: Callable[[Job], None], *, gives_way: bool = False) -> None:
        """Do `work(job)` in a thread; refused while other work runs that does not give way."""
        job = Job(words, gives_way)
        with self._lock:
            self.require_way()
            before = self.current
            if before is not None:
                before.stop.set()
            self.current = job
        threading.Thread(target=self._run, args=(job, before, work), name=f"imapce {words}", daemon=True).start()

    def require_way(self) -> None:
        """Refuse to begin while other work runs that does not give way."""
        job = self.current
        if job is not None and not job.gives_way:
            raise InvalidValueError(f"one thing at a time: still {job.words}; wait for it or cancel it.")

    def cancel(self) -> bool:
        """Ask the work that runs to end; whether there was any."""
        job = self.current
        if job is not None:
            job.stop.set()
        return job is not None

    def close(self) -> None:
        """End the work that runs and tell nobody: two objects that held each other would stay in memory."""
        self.cancel()
        self._ended = _tell_nobody

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs; whether that came in time."""
        job = self.current
        return True if job is None else job.done.wait(timeout)

    def _run(self, job: Job, before: Job | None, work: Callable[[Job], None]) -> None:
        if before is not None:
            before.done.wait()
        error: Exception | None = None
        try:
            if job.cancelled():
                raise CancelledError(f"cancelled before {job.words}; nothing was changed.")
            work(job)
        except Exception as problem:
            error = problem
        with self._lock:
            if self.current is job:
                self.current = None
        try:
            self._ended(job, error)
        finally:
            job.done.set()


class Conversation(Stage):
    """One person's talk with one exploration: a message of type x is answered by `on_x`.

    >>> from imapce import Exploration
    >>> study = Study("noise", Exploration(np.random.default_rng(0).normal(size=(30, 4))))
    >>> conversation = Conversation(study, lambda content, buffers: None)
    >>> conversation.handle({"type": "select", "how": "invert", "id": 1})[0]["count"]
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
        if name in SLOW:
            self._last[name] = message
            threading.Thread(target=self._answer_later, args=(message,), name=f"imapce {name}", daemon=True).start()
            return {"type": "later"}, []
        act = getattr(self, f"on_{name}", self._refuse)
        return answer(message, lambda: act(message, buffers))

    def _answer_later(self, message: Content) -> None:
        # One at a time, and of several descriptions only the last: at a million rows each is a second of work, and
        # nobody looks at those before it.
        name = str(message["type"])
        with self._later:
            stale = name == "describe" and self._last[name] is not message
            act = self._refuse_as_stale if stale else getattr(self, f"on_{name}")
            self.send(*answer(message, lambda: act(message, ())))

    def _refuse(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        raise InvalidValueError(f"a message must be one of the page's; got {message.get('type')!r}: reload it.")

    def _refuse_as_stale(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        raise InvalidValueError("another selection was made meanwhile; that one is described.")

    def close(self) -> None:
        """End the work that runs; what was accepted is saved already."""
        self._jobs.close()
        self.send = _tell_nobody

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no work runs, for those who have no page to look at."""
        return self._jobs.wait(timeout)

    def tell_state(self) -> None:
        """Send where the exploration stands."""
        # One at a time, or what was seen before the work ended could be told after it.
        with self._telling:
            job = self._jobs.current
            busy = None if job is None else {"words": job.words, "gives_way": job.gives_way}
            self.send({"type": "state", **describe_state(self.study, self.scene), "busy": busy}, [])

    def on_hello(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        content = self.hello()
        self.show(self.scene, turning=False)
        self.tell_state()
        self.tell_selection()
        return content, []

    # --- looking ------------------------------------------------------------------------------------------------------

    def on_next(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        return self._start("looking for the next view", self._propose)

    def _propose(self, job: Job) -> None:
        """The next view, shown before its clusters are there; then these, then the test."""
        step = self.exploration.propose(clusters=False, progress=self._progress_of(job), cancel=job.cancelled)
        self.show(self.study.proposal_scene(step, 0))
        job.gives_way = True
        self.tell_state()
        self._find_clusters(job)

    def _find_clusters(self, job: Job) -> None:
        number = self._view_in_sight
        self.exploration.cluster(number, progress=self._progress_of(job), cancel=job.cancelled)
        step = self.exploration.proposal
        if step is not None and self.scene.kind == "proposal" and self.scene.number == number:
            self.recolour(self.study.proposal_scene(step, number))
        self.tell_state()
        if step is not None and step.p_value is None and not self.exploration.done:
            self.exploration.test(progress=self._progress_of(job), cancel=job.cancelled)

    @property
    def _view_in_sight(self) -> int:
        return self.scene.number if self.scene.kind == "proposal" else 0

    def on_view(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """Turn to another optimum of the current step, or back to where the exploration stands."""
        step = self.exploration.proposal
        if step is None:
            raise InvalidValueError("there is no view to turn to yet; press Next view.")
        number = message.get("number", 0)
        if not is_whole(number) or not 0 <= number < len(step.views):
            raise InvalidValueError(f"a view must be from 0 to {len(step.views) - 1}; got {number!r}.")
        self._jobs.require_way()
        self.show(self.study.proposal_scene(step, number))
        if not step.views[number].looked_at:
            return self._start("colouring the clusters", self._find_clusters, gives_way=True)
        self.tell_state()
        return {}, []

    def on_look_back(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """An accepted step as it was seen."""
        number = int(message["step"])
        if not 0 <= number < len(self.exploration.steps):
            raise InvalidValueError(f"a step must be from 1 to {len(self.exploration.steps)}; got {number + 1}.")
        self.show(self.study.step_scene(number))
        self.tell_state()
        return {}, []

    def on_three(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """A view of three axes, beside those of the session."""

        def work(job: Job) -> None:
            view = self.exploration.look(n_components=3, progress=self._progress_of(job), cancel=job.cancelled)
            self.show(self.study.three_axes_scene(view))

        return self._start("looking for a view of three axes", work)

    # --- moving -------------------------------------------------------------------------------------------------------

    def on_take(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """Take the most distinct cluster, named ones or the selection, and look again."""
        what, name = str(message.get("what", "most")), str(message.get("name") or "").strip()[:LONGEST_NAME] or None
        if self.scene.kind == "step":
            raise InvalidValueError("this is a view you looked back at; press Back to now, then take.")
        chosen: dict[str, Any] = {"name": name, "view": self._view_in_sight}
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
            lambda job: self.exploration.accept(**chosen, progress=self._progress_of(job), cancel=job.cancelled),
        )

    def on_split(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """Split a cluster that was taken, or one of the view in sight."""
        proposed = "cluster" in message
        number = int(message["cluster"] if proposed else message["number"])
        asked: dict[str, Any] = {
            "proposed": proposed,
            "view": self._view_in_sight,
            "structure": str(message.get("structure", "heed")),
        }
        self._asked_to_split = {"cluster" if proposed else "number": number}
        return self._move(
            "splitting the cluster",
            lambda job: self.exploration.split(number, **asked, progress=self._progress_of(job), cancel=job.cancelled),
        )

    def on_merge(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        numbers = [int(number) for number in message["numbers"]]
        return self._move("merging clusters", lambda job: self.exploration.merge(numbers))

    def on_undo(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        def work(job: Job) -> None:
            steps = len(self.exploration.steps)
            seen = self.study.step_scene(steps - 1) if steps else None
            self.exploration.undo()
            if seen is not None and len(self.exploration.steps) < steps:
                # What was undone is in sight at once, before it is found again.
                self.show(self.study.undone_scene(seen))

        return self._move("going back", work, fresh=False)

    def on_redo(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        return self._move("going forward", lambda job: self.exploration.redo(), fresh=False)

    def on_settings(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """Other weights, clusters, or columns and rows that are known; what was taken stays."""
        names = ("alpha", "mu", "granularity", "n_clusters", "structure")
        given: dict[str, Any] = {name: message[name] for name in names if name in message}
        for name in ("alpha", "mu"):
            # The estimator says what else is wrong with it.
            if not isinstance(given.get(name, "auto"), int | float) and given.get(name, "auto") != "auto":
                raise InvalidValueError(f'{name} must be a number or "auto"; got {given[name]!r}.')
        if "columns" in message:
            given["prior"] = self.study.know_columns([str(name) for name in message["columns"]])
        if "rows" in message:
            rows = self.selected & (self.exploration.labels_ < 0) & (message["rows"] == "selection")
            given["prior"] = self.study.know_rows(given.get("prior", self.exploration.priors), rows)

        def work(job: Job) -> None:
            self.exploration.go_on_with(**given)
            self.study.note_settings()

        return self._move("changing the settings", work, fresh=False)

    def on_run(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        def show_step(step: Any, accepted: Any) -> None:
            self.study.note_move()
            self.show(self.study.step_scene(len(self.exploration.steps) - 1))
            self.tell_state()

        def work(job: Job) -> None:
            self.selected[:] = False
            self.tell_selection()
            significance = SIGNIFICANT if message.get("test") else None
            self.exploration.run(
                callback=show_step, significance=significance, progress=self._progress_of(job), cancel=job.cancelled
            )

        return self._start("running to the end", work)

    def on_cancel(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        return {"cancelled": self._jobs.cancel()}, []

    def _move(self, words: str, change: Callable[[Job], Any], *, fresh: bool = True) -> Reply:
        """Change the exploration, then look again; `fresh` moves are made with the settings of now."""

        def work(job: Job) -> None:
            before = len(self.exploration.steps)
            change(job)
            if fresh:
                self.study.note_move()
            self.selected[:] = False
            self.tell_selection()
            self.tell_state()
            if not self.exploration.done:
                self._propose(job)
            elif len(self.exploration.steps) > before:
                self.show(self.study.step_scene(before))
            else:
                self.recolour(self.scene)

        return self._start(words, work)

    # --- telling ------------------------------------------------------------------------------------------------------

    def on_describe(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """What sets the selected rows apart."""
        if not self.selected.any():
            raise InvalidValueError("there are no rows to describe; select some, or click a cluster in the legend.")
        return describe_rows(self.study, self.selected.copy()), []

    def on_left(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """What of the known can still be read from the view, against chance."""
        return read_known_back(self.study, self.scene), []

    def on_export(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        name, media, data = export(str(message["kind"]), self.study, self.scene, self.colouring())
        return {"name": name, "media": media}, [data]

    def _start(self, words: str, work: Callable[[Job], None], *, gives_way: bool = False) -> Reply:
        self._jobs.start(words, work, gives_way=gives_way)
        self.tell_state()
        return {}, []

    def _progress_of(self, job: Job) -> Tell:
        """What is called as work goes on, and tells the page."""

        def tell(words: str, share: float | None) -> None:
            self.send({"type": "progress", "words": words, "share": share, "gives_way": job.gives_way}, [])

        return tell

    def _ended(self, job: Job, error: Exception | None) -> None:
        if isinstance(error, CancelledError):
            self.send({"type": "cancelled", "words": job.words}, [])
        elif error is not None:
            foreign = f"{type(error).__name__}: {error}"
            sentence = error.sentence if isinstance(error, ImapceError) else Sentence(foreign)
            content: Content = {"type": "failed", "sentence": without_way_out(sentence)}
            if SPLITS_IT in sentence.parts:
                content["anyway"] = {**self._asked_to_split, "structure": "ignore"}
            self.send(content, [])
        self.tell_state()


def _tell_nobody(*words: Any) -> None:
    """Where words go when the page is gone."""
