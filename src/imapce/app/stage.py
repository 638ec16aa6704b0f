"""What a page sees of a study: the view in sight, its colours, the rows that are selected.

Rows travel in one seeded random order, so that a prefix is a sample and dithering mixes clusters fairly; the page never
needs to know which row is which.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.app import colours
from imapce.app.messages import Content, Reply, Send
from imapce.app.scene import Scene, Turn, read_polygon
from imapce.app.study import Study
from imapce.errors import ImapceError, InvalidValueError
from imapce.exploration.traits import filled_in_words
from imapce.search.race import Optimum

THUMBNAIL_ROWS = 3000
MOST_TABLE_ROWS = 200
MOST_HOVERED = 12
# Scenes whose clusters were taken already.
LOOKED_BACK = ("step", "overview")
# Sorting a million rows takes 150 ms, which the first lasso should not wait for, nor the turn that leads to the view.
SORTED_AHEAD, TURN_SECONDS = 100_000, 1.5


class Stage:
    """The view in sight and the rows selected in it; `send(content, buffers)` carries what is told unasked."""

    def __init__(self, study: Study, send: Send):
        self.study, self.send = study, send
        self.exploration = study.exploration
        self.order = study.order
        self.selected = np.zeros(study.n_rows, dtype=bool)
        self.scene: Scene = study.plain
        self.by = "cluster" if study.color is None else f"column:{study.color}"
        self._shown: Scene | None = None
        self._thumbnailed: Optimum | None = None

    # --- showing ------------------------------------------------------------------------------------------------------

    def hello(self) -> Content:
        """What a page needs to know once; the view in sight follows."""
        self._shown = self._thumbnailed = None
        study = self.study
        if self.scene.kind == "plain":
            self.scene = study.first_scene()
        return {
            "name": study.name,
            "palettes": colours.palettes(),
            "columns": study.columns.names,
            "features": study.feature_columns,
            "labels": list(study.labels),
            "hovered": study.shown_columns[:4],
            "rows": study.n_rows,
            "notes": [*study.notes, *self._filled()],
        }

    def show(self, scene: Scene, *, turning: bool = True) -> None:
        """Send a view: the turn that leads to it, where every row lies, and its colours."""
        before, self.scene = self._shown, scene
        content: Content = {"type": "view", **scene.content(self.exploration.feature_names), "turn": None}
        if turning and before is not None and before.n_axes == scene.n_axes:
            content["turn"] = Turn.between(before.components.T, scene.components.T).content()
        # One axis at a time and narrow first: a random gather of whole rows takes six times as long.
        points = np.empty(scene.coordinates.T.shape, dtype=np.float32)
        for axis, sent in zip(scene.coordinates.T, points, strict=True):
            np.take(axis.astype(np.float32), self.order, out=sent, mode="clip")
        colouring = self.colouring()
        self._shown = scene
        if self.study.n_rows > SORTED_AHEAD and scene.n_axes == 2:
            sorting = threading.Timer(TURN_SECONDS, scene.index)
            sorting.name, sorting.daemon = "imapce sorting rows", True
            sorting.start()
        self.send({**content, "colours": colouring.content()}, [points, colouring.codes[self.order]])

    def recolour(self, scene: Scene) -> None:
        """Send the colours of a scene that is in sight already, now that its clusters are there."""
        self.scene = self._shown = scene
        colouring = self.colouring()
        self.send({**colouring.content(), "outlines": scene.outlines()}, [colouring.codes[self.order]])

    def colouring(self) -> colours.Colouring:
        """The colours of the view in sight."""
        scene, exploration = self.scene, self.exploration
        if self.by == "taken":
            taken = {cluster.number: self.study.cluster_name(cluster.number) for cluster in exploration.clusters_}
            return colours.by_number("taken", "Clusters taken", exploration.labels_, taken, "Not taken")
        if self.by == "step":
            steps = {number: f"Step {number + 1}" for number in range(len(exploration.steps))}
            return colours.by_number("step", "Step", self._steps(), steps, "Not taken")
        if self.by.startswith("column:"):
            return colours.by_column(self.study.columns.column(self.by.removeprefix("column:")))
        names = scene.names or [None for _ in scene.numbers]
        codes = scene.codes or [colours.cluster_code(number) for number in scene.numbers]
        words = scene.words or ["" for _ in scene.numbers]
        details = [
            {
                "name": name or f"Cluster {number}",
                "code": code,
                "cluster": number,
                "most": number in scene.most_distinct and scene.kind != "step",
                "words": what,
            }
            for number, name, code, what in zip(scene.numbers, names, codes, words, strict=True)
        ]
        return colours.by_cluster(scene.clusters, scene.known, details, title=scene.legend)

    def _filled(self) -> list[str]:
        """That missing cells were filled, where some were."""
        told = filled_in_words(self.exploration.filled, self.study.n_rows)
        return [f"Missing cells: {told}."] if told else []

    def _steps(self) -> NDArray[np.intp]:
        """(n,): the step that took each row, -1 for none."""
        step_of = np.full(self.study.n_rows, -1)
        for number, step in enumerate(self.exploration.steps):
            for cluster in step.clusters:
                step_of[cluster.rows] = number
        return step_of

    def on_colour(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """Colour by clusters, steps or a column."""
        by = str(message["by"])
        if by not in ("cluster", "taken", "step") and by.removeprefix("column:") not in self.study.columns.names:
            raise InvalidValueError(f"colour must be by cluster, taken, step or a column of the data; got {by!r}.")
        self.by = by
        colouring = self.colouring()
        return colouring.content() | {"type": "reply"}, [colouring.codes[self.order]]

    def on_hover(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """One row in words, and as a picture where it is one."""
        row = int(self.order[int(message["point"])])
        names = [name for name in message.get("columns", []) if name in self.study.columns.names][:MOST_HOVERED]
        number = self.study.cluster_at(row)
        content = {
            "row": colours.short_value(self.exploration.row_ids[row]),
            "values": self.study.columns.row(row, names),
        }
        content |= {"taken": self.study.cluster_name(number) if number >= 0 else None}
        if self.study.picture is None:
            return content, []
        low, high = self.study.brightness
        grey = np.clip((self.study.columns.pixels(row) - low) / ((high - low) or 1.0) * 255, 0, 255).astype(np.uint8)
        return {**content, "picture": list(self.study.picture)}, [grey]

    def on_thumbnails(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """All optima of the current step, as points of some rows each; "same" where the page holds them already."""
        step = self.exploration.proposal
        if step is None:
            return {"views": []}, []
        # A step is made anew when clusters are found in it; its optima stay what they are.
        best = step.views[0].optimum
        if message.get("held") and best is self._thumbnailed:
            return {"same": True}, []
        rows = self.order[:THUMBNAIL_ROWS]
        views, points = [], []
        for number, view in enumerate(step.views):
            views.append({"number": number, "starts": view.starts})
            places = self.exploration.coordinates(view, rows=rows)
            points.append(np.ascontiguousarray(places[:, :2].T, dtype=np.float32))
        self._thumbnailed = best
        return {"views": views}, points

    # --- choosing rows ------------------------------------------------------------------------------------------------

    def on_select(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """Rows by lasso, cluster or colour, all others, or none; added to, taken from or instead of those before.

        A lasso means unexplored rows; where it holds none of these, it means the known ones inside.
        """
        how, mode = str(message["how"]), str(message.get("mode", "replace"))
        chosen = np.zeros(self.study.n_rows, dtype=bool)
        if how == "lasso":
            chosen[self.scene.inside(read_polygon(np.frombuffer(buffers[0])), self._plane(message.get("looking")))] = (
                True
            )
            fresh = chosen & ~self.scene.known
            chosen = fresh if fresh.any() and self.by == "cluster" else chosen
        elif how == "cluster":
            chosen |= False if self.scene.clusters is None else self.scene.clusters == int(message["cluster"])
        elif how == "taken":
            chosen |= self.exploration.labels_ == int(message["number"])
        elif how == "step":
            chosen |= self._steps() == int(message["number"])
        elif how == "code":
            chosen |= self.colouring().codes == int(message["code"])
        elif how == "invert":
            chosen = ~self.selected & ~self.exploration.known
        elif how != "clear":
            raise InvalidValueError(
                f"rows are chosen by lasso, cluster, taken, step, code, invert or clear; got {how!r}."
            )
        if mode == "add":
            chosen |= self.selected
        elif mode == "subtract":
            chosen = self.selected & ~chosen
        self.selected = chosen
        return self.selection()

    def _plane(self, looking: Any) -> NDArray[np.float64] | None:
        if looking is None:
            return None
        plane = np.asarray(looking, dtype=np.float64)
        if plane.shape != (self.scene.n_axes, 2) or not np.isfinite(plane).all():
            raise InvalidValueError("the plane that is looked at must be two finite axes; draw the lasso again.")
        return plane

    def selection(self) -> Reply:
        """How many rows are selected, which clusters they are exactly, and a bit for every row."""
        labels, clusters = self.exploration.labels_, self.scene.clusters
        taken = _whole_groups(labels, self.selected)
        shown: list[int] = []
        if clusters is not None and self.scene.kind not in LOOKED_BACK:
            shown = _whole_groups(clusters, self.selected)
        content = {
            "count": int(self.selected.sum()),
            "known": int((self.selected & self.exploration.known).sum()),
            "taken": taken,
            "clusters": shown,
        }
        return content, [np.packbits(self.selected[self.order], bitorder="little")]

    def tell_selection(self) -> None:
        """Send what is selected."""
        content, buffers = self.selection()
        self.send({"type": "selection", **content}, buffers)

    def on_table(self, message: Content, buffers: Sequence[bytes]) -> Reply:
        """The selected rows as a table, from a place on."""
        rows = np.flatnonzero(self.selected)
        start = max(0, int(message.get("start", 0)))
        names = self.study.shown_columns
        values = [self.study.columns.values(name) for name in names]
        body = [
            [
                colours.short_value(self.exploration.row_ids[row]),
                *(colours.short_value(column[row]) for column in values),
            ]
            for row in rows[start : start + MOST_TABLE_ROWS].tolist()
        ]
        return {"head": ["row", *names], "body": body, "start": start, "total": len(rows)}, []


def answer(message: Content, act: Callable[[], Reply]) -> Reply:
    """What `act` gives as the reply to a message; a refusal is a reply too, in one sentence.

    >>> answer({"id": 7}, lambda: ({"count": 3}, []))
    ({'count': 3, 'type': 'reply', 're': 7}, [])
    """
    reply: Content = {"type": "reply", "re": message.get("id")}
    try:
        content, buffers = act()
        return {**content, **reply}, buffers
    except ImapceError as problem:
        return {**reply, "error": str(problem)}, []
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as problem:
        return {**reply, "error": f"That message could not be read ({problem}); reload the page."}, []


def _whole_groups(labels: NDArray[np.intp], selected: NDArray[np.bool_]) -> list[int]:
    """The groups, by number, of which every row is selected, where nothing else is.

    >>> _whole_groups(np.array([4, 4, 1]), np.array([True, True, False]))
    [4]
    """
    count = int(labels.max(initial=-1)) + 1
    if not count or (labels[selected] < 0).any():
        return []
    inside = np.bincount(labels[selected], minlength=count)
    whole = np.bincount(labels[labels >= 0], minlength=count)
    if ((inside > 0) & (inside < whole)).any():
        return []
    return np.flatnonzero(inside).tolist()
