"""What a session has found: a table of all rows, where they lie in its views, and what its clusters are in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.common.threads import threads_for
from imapce.common.words import axis_names, close_matches
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.exploration.came_of import EXPLAINED, known_by_name
from imapce.exploration.choices import named_rows
from imapce.exploration.description import Describer, Description, Profile, rest_question, step_questions
from imapce.exploration.kept import KeptSession
from imapce.exploration.knowledge import given_columns, known_classes, known_places
from imapce.exploration.placing import placed
from imapce.exploration.record import AcceptedStep, Regrouping
from imapce.exploration.steps import View
from imapce.exploration.verdict import caveat
from imapce.tables.columns import Column
from imapce.tables.encode import frame
from imapce.tables.reader import OriginalColumns

Array = NDArray[np.float64]

# Why rows are in no cluster although others are.
SET_ASIDE, FAR = "gross outlier, set aside", "far from every cluster"


class Results(KeptSession):
    """A session that tells what it has found, from its state alone."""

    @property
    def reasons_(self) -> NDArray[np.str_]:
        """(n,), why a row is in no cluster, in a few words and as far as it is known without a look; else empty.

        >>> from imapce import Exploration
        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(153, 4)) + 9 * np.eye(3, 4)[np.arange(153) % 3])
        >>> set(exploration.reasons_.tolist()), set(exploration.run().reasons_.tolist())
        ({'not looked at yet'}, {''})
        """
        known, taken = self.known, self.labels_ >= 0
        end = self._end
        left = "not looked at yet" if end is None else end[1]
        if self._moves and isinstance(self._moves[-1], Regrouping) and self._moves[-1].kind == "consolidate":
            left = FAR
        return np.select([taken, known, self._set_aside], ["", "known at the start", SET_ASIDE], default=left)

    @property
    def caveat(self) -> str:
        """What is to be said of clusters that are not clearly structure, without a full stop; empty where they are, and
        where none is shown.
        """
        found = self.structure
        if found is None or not (self.shows(found) or any(one.chosen == "automatic" for one in self.clusters_)):
            return ""
        return caveat(found)

    @property
    def stability_(self) -> Array:
        """(c,), of every cluster in `clusters_` the share of ten draws of 80 % of the rows in which it was found again;
        NaN where nobody knows: for rows chosen by hand, regrouped ones and clusters found view by view.

        >>> from imapce import Exploration
        >>> exploration = Exploration(np.random.default_rng(0).normal(size=(60, 4)), random_state=0)
        >>> _ = exploration.accept(mask=np.arange(20))
        >>> exploration.stability_
        array([nan])
        """
        return np.array([np.nan if one.stability is None else one.stability for one in self.clusters_], dtype=float)

    def came_of(self, name: str) -> str | None:
        """What came of a column or label that was known at the start: "explained away", "erased" or "weighed"; None
        where none of this name was.
        """
        return known_by_name(self._other_priors, self._reader, explains=self._model.explains).get(name)

    @property
    def explained_away(self) -> list[str]:
        """The names of the columns and labels whose effect is taken from the rows before every view."""
        known = known_by_name(self._other_priors, self._reader, explains=self._model.explains)
        return [name for name, came in known.items() if came == EXPLAINED]

    def to_frame(self) -> Any:
        """A table: row id, cluster, step, distinctness, stability, reason, and the row's place in every view taken.

        The axes of step 0 are step0_imapce0, step0_imapce1, and so on. `step` is the one that took the row, -1 for
        none; `reason` tells why a row is in no cluster.
        """
        labels = self.labels_
        step_of = np.full(len(labels), -1)
        distinctness, stability = np.full((2, len(labels)), np.nan)
        for number, step in enumerate(self.steps):
            for cluster in step.clusters:
                step_of[cluster.rows] = number
        for cluster, stable in zip(self.clusters_, self.stability_, strict=True):
            distinctness[cluster.rows] = np.nan if cluster.distinctness is None else cluster.distinctness
            stability[cluster.rows] = stable
        columns: dict[str, NDArray] = {
            "row": self.row_ids,
            "cluster": labels,
            "step": step_of,
            "distinctness": distinctness,
            "stability": stability,
            "reason": self.reasons_,
        }
        for number, step in enumerate(self.steps):
            places = self.coordinates(step)
            for axis, values in zip(axis_names(places.shape[1]), places.T, strict=True):
                columns[f"step{number}_{axis}"] = values
        return frame(columns, like=self._table)

    def profile(self, rows: Any, *, against: Any = None) -> Profile:
        """What any rows are, in the units of the table: the columns that set them apart and the most typical of them.

        Both are masks or positions; `against` is all other rows unless it is given.

        >>> from imapce import Exploration
        >>> X = np.random.default_rng(0).normal(size=(50, 3)) + 9 * (np.arange(50) < 20)[:, None] * np.eye(1, 3)
        >>> Exploration(X).profile(np.arange(20)).name
        'x0 high (9.0 against −0.3)'
        """
        n = self._rows.n_rows
        inside = named_rows(rows, self._table, n, argument="rows")
        outside = ~inside if against is None else named_rows(against, self._table, n, argument="against")
        groups = inside.astype(np.intp) + 2 * outside
        describer = Describer(self._rows, self._source, self.row_ids, groups=groups, n_groups=4, **self._known_apart())
        return describer.profile([1, 3], [2, 3])

    def description(self, *, labels: Column | None = None) -> Description:
        """All accepted clusters side by side, each against all other rows and against what was left at its step.

        `labels` are described too and used for nothing else.

        >>> from imapce import Exploration
        >>> X = np.random.default_rng(0).normal(size=(50, 3)) + 9 * (np.arange(50) < 20)[:, None] * np.eye(1, 3)
        >>> exploration = Exploration(X, random_state=0)
        >>> _ = exploration.accept(mask=np.arange(20))
        >>> exploration.description().clusters[0].name
        'x0 high (9.0 against −0.3)'
        """
        clusters = self.clusters_
        n_clusters = len(clusters)
        groups = np.where(self._known_at_start, n_clusters + 1, n_clusters)
        for place, cluster in enumerate(clusters):
            groups[cluster.rows] = place
        describer = Describer(
            self._rows,
            self._source,
            self.row_ids,
            groups=groups,
            n_groups=n_clusters + 2,
            labels=labels,
            **self._known_apart(),
        )
        left = rest_question(n_clusters) if np.any(groups == n_clusters) else None
        numbers = [cluster.number for cluster in clusters]
        return describer.describe(step_questions(self._taken_together()), left, numbers)

    def column(self, name: str) -> Column:
        """A column of the table as it was given, or of an array by the name x0, x1, ...

        >>> from imapce import Exploration
        >>> Exploration(np.eye(5)).column("x1").values
        array([0., 1., 0., 0., 0.])
        """
        names = self._source.names
        if not isinstance(name, str):
            raise InvalidTypeError(f"name must be the name of a column, a text; got {name!r:.80}.")
        if name not in names:
            raise InvalidValueError(f"name must be a column of X, got {name!r}: {close_matches(name, names)}")
        return self._source.column(names.index(name))

    def coordinates(self, step: AcceptedStep | View, *, rows: Any = None) -> Array:
        """(n, k): all rows in the view of an accepted step, or in any view of a proposal; or `rows`, by position."""
        if not hasattr(step, "components"):
            raise InvalidTypeError(f"step must be an accepted step or a view of a proposal; got {step!r:.80}.")
        if rows is not None:
            rows = _positions(rows, self._rows.n_rows)
        with threads_for(self._rows.n_rows, self._rows.n_features):
            if rows is None:
                return placed(self._rows, step)
            places, back = np.unique(rows, return_inverse=True)
            chosen = np.zeros(self._rows.n_rows, dtype=bool)
            chosen[places] = True
            return placed(self._rows, step, chosen)[back]

    def given_in_words(self, view: AcceptedStep | View) -> tuple[NDArray[np.bool_], str]:
        """(d,), the columns that name the axes of a view, and what they are given, as "given make"; else all and "".

        >>> from imapce import Attributes, Exploration
        >>> exploration = Exploration(np.random.default_rng(0).normal(size=(60, 4)), prior=Attributes([0]))
        >>> exploration.given_in_words(exploration.propose(clusters=False).views[0])
        (array([False,  True,  True,  True]), 'given x0')
        """
        return given_columns(view, self._other_priors, self._reader)

    def _known_apart(self) -> dict[str, Any]:
        """What is known as classes, of all rows, and the places of known columns: they are told apart from the rest."""
        priors, reader = self._other_priors, self._reader
        classes = known_classes(priors, reader, self._rows.n_rows, self._source.column)
        return {"known": classes, "left_out": known_places(priors, reader)}

    def _taken_together(self) -> list[list[int]]:
        """Which clusters came at once, by place; where some were regrouped since, each stands for itself."""
        if self.regroupings:
            return [[place] for place in range(len(self.clusters_))]
        place_of = {cluster.number: place for place, cluster in enumerate(self.clusters_)}
        return [[place_of[cluster.number] for cluster in step.clusters] for step in self.steps]

    @property
    def _source(self) -> OriginalColumns:
        def values(places: NDArray[np.intp]) -> Array:
            return np.vstack([block.copy() for block in self._rows.blocks(places)]) + self._rows.origin[places]

        return OriginalColumns(self._reader, self._table, values)


def _positions(rows: Any, n_rows: int) -> NDArray[np.intp]:
    """Positions of rows in the order asked for, from the end where they are negative."""
    places = np.asarray(rows)
    if places.size and not np.issubdtype(places.dtype, np.integer):
        raise InvalidTypeError(f"rows must be positions, whole numbers; got values of type {places.dtype}.")
    if places.size and not (-n_rows <= places.min() and places.max() < n_rows):
        raise InvalidValueError(f"rows must lie within the {n_rows} rows of X; got {places.min()} to {places.max()}.")
    return places.astype(np.intp) % n_rows
