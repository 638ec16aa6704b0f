"""What a page and one `Exploration` say to each other; nothing here knows how the words travel.

`handle(message, buffers)` answers at once. Work that takes a while runs beside it and tells of itself through `send`:
first the view, then its clusters. Only one piece of work changes the exploration at a time, and each has a number: the
answer that begins it names it as `work`, and the state after its end says that so many are `done`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from imapce.app.exports import export
from imapce.app.messages import Content, Reply, Send
from imapce.app.stage import Stage, answer
from imapce.app.study import Study
from imapce.app.summary import describe_rows, describe_state, read_known_back
from imapce.common.checks import is_whole
from imapce.common.work import Tell, Throttled
from imapce.errors import CancelledError, ImapceError, InvalidValueError, Sentence
from imapce.exploration.verdict import SPLITS_IT, without_way_out
from imapce.priors.problem import FlatRowsError

# Seconds between two views of a run: the turn to one takes a second.
SHOW_EVERY = 1.5
LONGEST_NAME = 60
# Answered from a thread of their own: a second of describing must not hold up a lasso.
SLOW = frozenset(("describe", "left", "export"))


@dataclass(eq=False)
class Job:
    """One piece of work: its number, its words, whether it gives way, and the event that ends it."""

    number: int
    words: str
    gives_way: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    tell: Throttled | None = None

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
        self._begun = 0
        self.current: Job | None = None

    def start(self, words: str, work: Callable[[Job], None], *, gives_way: bool = False) -> int:
        """Do `work(job)` in a thread, and tell its number; refused while other work runs that does not give way."""
        with self._lock:
            self.require_way()
            before = self.current
            if before is not None:
                before.stop.set()
            self._begun += 1
            self.current = job = Job(self._begun, words, gives_way)
        threading.Thread(target=self._run, args=(job, before, work), name=f"imapce {words}", daemon=True).start()
        return job.number

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
        self._done = 0
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
            done, job = self._done, self._jobs.current
            busy = None if job is None else {"words": job.words, "gives_way": job.gives_way}
            self.send({"type": "state", **describe_state(self.study, self.scene), "busy": busy, "done": done}, [])

    def on_hello(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        comes_back = self.scene.kind == "plain" and bool(self.exploration.clusters_) and self._jobs.current is None
        content = self.hello()
        self.show(self.scene, turning=False)
        self.tell_selection()
        if comes_back:
            return {**content, **self._start("looking where you were", self._look_again, gives_way=True)[0]}, []
        self.tell_state()
        return content, []

    def _look_again(self, job: Job) -> None:
        """All that was taken before this page came, and whether anything is left."""
        self._show_all(job)
        if not self.exploration.done:
            with suppress(FlatRowsError):
                self.exploration.propose(progress=self._progress_of(job), cancel=job.cancelled)

    # --- looking ------------------------------------------------------------------------------------------------------

    def on_next(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        return self._start("looking for the next view", self._propose)

    def _propose(self, job: Job) -> None:
        """The next view, shown before its clusters are there; then these, and at the end all that were taken."""
        try:
            step = self.exploration.propose(clusters=False, progress=self._progress_of(job), cancel=job.cancelled)
        except FlatRowsError:
            # The state says so, in words for those who cannot set an estimator.
            pass
        else:
            self.scene, job.gives_way = self.study.proposal_scene(step, 0), True
            # Before the view, which makes a page ask for the others of this step.
            self.tell_state()
            self.show(self.scene)
            self._find_clusters(job)
        if self.exploration.done and self.exploration.clusters_:
            self._show_all(job)

    def _find_clusters(self, job: Job) -> None:
        number = self._view_in_sight
        self.exploration.cluster(number, progress=self._progress_of(job), cancel=job.cancelled)
        step = self.exploration.proposal
        if step is not None and self.scene.kind == "proposal" and self.scene.number == number:
            self.recolour(self.study.proposal_scene(step, number))
        if step is not None and not self.exploration.is_joint and not self.exploration.done:
            # Clusters of all directions are judged when they are found; those of a view by what is left to see.
            self.tell_state()
            self.exploration.test(progress=self._progress_of(job), cancel=job.cancelled)

    def on_overview(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """All clusters that were taken, in one view."""
        if not self.exploration.clusters_:
            raise InvalidValueError("no cluster is taken yet; take one first.")
        return self._start("looking at all clusters together", self._show_all, gives_way=True)

    def _show_all(self, job: Job) -> None:
        """All clusters in the view that shows them best, then what each of them is."""
        view = self.exploration.overview(progress=self._progress_of(job), cancel=job.cancelled)
        self.show(self.study.overview_scene(view))
        self.tell_state()
        # Clusters of older files have no words of their own.
        words = {
            cluster.number: cluster.words or self.exploration.describe(cluster.rows).name
            for cluster in self.exploration.clusters_
        }
        if self.scene.kind == "overview":
            self.recolour(self.study.overview_scene(view, words))

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
        if self.scene.kind == "step" or (self.scene.kind == "overview" and what != "selection"):
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
            columns = dict[Any, Any](message["columns"])
            given["prior"] = self.study.know_columns({str(name): erase is True for name, erase in columns.items()})
        if "rows" in message:
            rows = self.selected & (self.exploration.labels_ < 0) & (message["rows"] == "selection")
            given["prior"] = self.study.know_rows(given.get("prior", self.exploration.priors), rows)

        def work(job: Job) -> None:
            self.exploration.go_on_with(**given)
            self.study.note_settings()

        return self._move("changing the settings", work, fresh=False)

    def on_run(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        shown = [-SHOW_EVERY]

        def show_step(step: Any, accepted: Any) -> None:
            self.study.note_move()
            if time.monotonic() - shown[0] >= SHOW_EVERY:
                shown[0] = time.monotonic()
                self.show(self.study.step_scene(len(self.exploration.steps) - 1))
            self.tell_state()

        def work(job: Job) -> None:
            self.selected[:] = False
            self.tell_selection()
            self.exploration.run(callback=show_step, progress=self._progress_of(job), cancel=job.cancelled)
            if self.exploration.clusters_:
                self._show_all(job)
            elif self.exploration.proposal is not None:
                self.show(self.study.proposal_scene(self.exploration.proposal, 0))

        return self._start("running to the end", work)

    def on_cancel(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        return {"cancelled": self._jobs.cancel()}, []

    def _move(self, words: str, change: Callable[[Job], Any], *, fresh: bool = True) -> Reply:
        """Change the exploration, then look again; `fresh` moves are made with the settings of now."""

        def work(job: Job) -> None:
            change(job)
            if fresh:
                self.study.note_move()
            self.selected[:] = False
            self.tell_selection()
            self.tell_state()
            if not self.exploration.done:
                self._propose(job)
            elif self.exploration.clusters_:
                self._show_all(job)
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
        number = self._jobs.start(words, work, gives_way=gives_way)
        self.tell_state()
        return {"work": number}, []

    def _progress_of(self, job: Job) -> Tell:
        """What is called as work goes on, and tells the page; of one piece of work ten times a second at most."""

        def tell(words: str, share: float | None) -> None:
            self.send({"type": "progress", "words": words, "share": share, "gives_way": job.gives_way}, [])

        job.tell = job.tell or Throttled(tell)
        return job.tell

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
        # It holds this conversation, which holds it: together they would stay in memory.
        job.tell = None
        self._done = job.number
        self.tell_state()


def _tell_nobody(*words: Any) -> None:
    """Where words go when the page is gone."""
