"""What a session tells: where it stands, why it is over, which clusters it has, and what they are in numbers and words.

Nothing here looks or moves: all of it is read from what was found of the record.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.significance import Structure
from imapce.common.arrays import Array, Mask
from imapce.common.axes import LETTERS
from imapce.common.progress import Progress
from imapce.common.words import axis_names, counted
from imapce.common.work import UNWATCHED, threads_for
from imapce.errors import InvalidTypeError
from imapce.exploration.description import (
    Describer,
    Description,
    Profile,
)
from imapce.exploration.knowledge import (
    EXPLAINED,
    axes_in_words,
    given_columns,
    knowledge_beside,
    knowledge_in_words,
    known_by_name,
    known_classes,
    known_in_a_line,
    known_names,
    known_places,
)
from imapce.exploration.look import Findings
from imapce.exploration.record import AcceptedStep, Move, Regrouping, TakenCluster
from imapce.exploration.steps import Step, View, place_rows, sizes_in_words, with_picture
from imapce.exploration.verdict import caveat
from imapce.priors.base import Prior, stand_in_notes
from imapce.priors.kinds import Subset
from imapce.tables.columns import Column
from imapce.tables.encode import frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Why rows are in no cluster although others are.
SET_ASIDE, FAR = "gross outlier, set aside", "far from every cluster"


def _setting(name: str, meaning: str) -> Any:
    """A setting of the record as a property of the session."""
    return property(lambda session: getattr(session.found.record, name), doc=meaning)


class Results:
    """What a session tells from what was `found` of its record."""

    found: Findings

    method = _setting("method", 'Whether views and clusters are found as in the paper: "auto" or "paper".')
    clusterer = _setting("clusterer", "Where clusters are looked for, as it was asked for.")
    refine = _setting("refine", "Whether clusters of a view are carried into all directions.")
    granularity = _setting("granularity", 'Whether fewer or more clusters are asked for: "coarser", "auto" or "finer".')
    n_clusters = _setting("n_clusters", "How many clusters are asked for; None where their number is found.")
    min_cluster_size = _setting("min_cluster_size", "The s of the paper: the fewest rows a cluster has.")
    max_clusters = _setting("max_clusters", "The most clusters that are looked for in one view.")
    random_state = _setting("random_state", "The seed of everything random; drawn where none was given.")
    ignores_structure = _setting("ignores_structure", "Whether clusters are taken that are no more than chance.")
    is_joint = _setting("is_joint", "Whether clusters are found once and in all directions, or else view by view.")

    # --- where the session stands -------------------------------------------------------------------------------------

    @property
    def row_ids(self) -> NDArray:
        """(n,), the names of the rows in results."""
        return self.found.data.row_ids

    @property
    def notes_(self) -> list[str]:
        """How the table was read, in sentences: cells that are numbers but for a word, columns left out and why, those
        that are skewed, repeat others or stand in for what is known.
        """
        data = self.found.data
        return [*data.notes, *stand_in_notes(data.read_table, self.found.record.priors, data.reader)]

    @property
    def moves(self) -> list[Move]:
        """What was accepted and regrouped so far, first to last: what `undo` takes back."""
        return list(self.found.record.moves)

    @property
    def steps(self) -> list[AcceptedStep]:
        """What was accepted so far, first to last."""
        return list(self.found.record.moves.steps)

    @property
    def regroupings(self) -> list[Regrouping]:
        """What was split, merged or consolidated so far, first to last."""
        return list(self.found.record.moves.regroupings)

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns as the views use them, a category as one name for each of its values."""
        return self.found.data.reader.names

    @property
    def filled(self) -> dict[str, int]:
        """How many cells of which column were missing: they are filled to look for groups, and counted nowhere else.

        >>> from imapce import IMAPCE, Exploration
        >>> X = np.array([[1.0, 4.0], [np.nan, 5.0], [3.0, 6.0], [4.0, 9.0]])
        >>> Exploration(X, estimator=IMAPCE(missing="mean")).filled
        {'x0': 1}
        """
        return dict(self.found.data.filled)

    @property
    def proposal(self) -> Step | None:
        """The step that was proposed since the last move, as far as it was looked at; None where nobody looked."""
        return self.found.step

    @property
    def has_looked(self) -> bool:
        """Whether there is a proposal with its clusters, which asking for it need not compute."""
        return self.found.step is not None and self.found.step.views[0].looked_at

    @property
    def set_aside(self) -> Mask:
        """(n,), the gross outliers of the rows, as far as it was looked."""
        return self.found.set_aside

    @property
    def done(self) -> bool:
        """Whether the exploration is over, as far as it is known: nothing is computed to tell."""
        return self.stop_reason is not None

    @property
    def stop_reason(self) -> str | None:
        """Why the exploration is over, in words; None while it is not, or while it takes a look to tell."""
        end = self.found.end
        return None if end is None else end[0]

    @property
    def structure(self) -> Structure | None:
        """Whether the rows are more than one group, with the best split where it was looked at in this session; None
        where clusters are found view by view, or not yet.
        """
        return self.found.structure

    def shows(self, structure: Structure) -> bool:
        """Whether clusters with this verdict are shown and taken: by itself, or because they were asked for."""
        return self.found.record.shows(structure)

    @property
    def known(self) -> Mask:
        """(n,), the rows that were known at the start or are in a cluster."""
        return self.found.record.known.copy()

    @property
    def known_in_words(self) -> list[str]:
        """What was known at the start, a sentence each; empty where nothing was."""
        return self.known_beside(())

    def known_beside(self, columns: Sequence[str]) -> list[str]:
        """What was known at the start besides these columns and labels, a sentence each."""
        record, reader = self.found.record, self.found.data.reader
        priors = knowledge_beside(columns, record.priors, reader)
        return knowledge_in_words(priors, record.known_at_start, reader)

    @property
    def priors(self) -> list[Prior]:
        """What is known besides what was taken: columns, labels and a background, then known rows as one Subset."""
        record = self.found.record
        rows = [Subset(record.known_at_start, weight=record.subset_weight)] if record.known_at_start.any() else []
        return [*record.priors, *rows]

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings of the estimator that looks for views, alpha and mu among them."""
        return self.found.record.estimator.get_params(deep=False)

    @property
    def known_names(self) -> list[str]:
        """What the columns and labels that are known are called; a category is one column, as it was given."""
        return known_names(self.found.record.priors, self.found.data.reader)

    def came_of(self, name: str) -> str | None:
        """What came of a column or label that was known at the start: "explained away", "erased" or "weighed"; None
        where none of this name was.
        """
        return self._known_by_name().get(name)

    @property
    def explained_away(self) -> list[str]:
        """The names of the columns and labels whose effect is taken from the rows before every view."""
        return [name for name, came in self._known_by_name().items() if came == EXPLAINED]

    def _known_by_name(self) -> dict[str, str]:
        record = self.found.record
        return known_by_name(record.priors, self.found.data.reader, explains=record.estimator.explains)

    # --- results ------------------------------------------------------------------------------------------------------

    @property
    def labels_(self) -> NDArray[np.intp]:
        """(n,), the number of the accepted cluster of every row, -1 where it was not taken.

        A cluster has the number it was shown with before it was taken, so numbers need not follow each other.
        """
        return self.found.record.moves.labels.copy()

    @property
    def clusters_(self) -> list[TakenCluster]:
        """The clusters as they were accepted, and regrouped since, in the order of their numbers; each has its own."""
        return list(self.found.record.moves.clusters)

    @property
    def origins_(self) -> list[int | None]:
        """For each of the clusters the number of the step that took it as it is, from 1; None where it was regrouped
        since.
        """
        return list(self.found.record.moves.origins)

    @property
    def reasons_(self) -> NDArray[np.str_]:
        """(n,), why a row is in no cluster, in a few words and as far as it is known without a look; else empty.

        >>> from imapce import Exploration
        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(153, 4)) + 9 * np.eye(3, 4)[np.arange(153) % 3])
        >>> set(exploration.reasons_.tolist()), set(exploration.run().reasons_.tolist())
        ({'not looked at yet'}, {''})
        """
        moves, end = self.found.record.moves, self.found.end
        left = "not looked at yet" if end is None else end[1]
        last = moves.made[-1] if len(moves) else None
        if isinstance(last, Regrouping) and last.kind == "consolidate":
            left = FAR
        which = [moves.labels >= 0, self.found.record.known, self.found.set_aside]
        return np.select(which, ["", "known at the start", SET_ASIDE], default=left)

    @property
    def stability_(self) -> Array:
        """(c,), of every cluster in `clusters_` the share of ten resamples of 80 % of the rows in which it reappears;
        NaN where nobody knows: for rows chosen by hand, regrouped ones and clusters found view by view.

        >>> from imapce import Exploration
        >>> exploration = Exploration(np.random.default_rng(0).normal(size=(60, 4)), random_state=0)
        >>> _ = exploration.accept(mask=np.arange(20))
        >>> exploration.stability_
        array([nan])
        """
        shares = [cluster.stability for cluster in self.found.record.moves.clusters]
        return np.array([np.nan if share is None else share for share in shares], dtype=float)

    @property
    def caveat(self) -> str:
        """What is to be said of clusters that are not clearly structure, without a full stop; empty where they are, and
        where none is shown.
        """
        verdict, record = self.found.structure, self.found.record
        automatic = any(cluster.chosen == "automatic" for cluster in record.moves.clusters)
        return caveat(verdict) if verdict is not None and (record.shows(verdict) or automatic) else ""

    def to_frame(self) -> Any:
        """A table: row id, cluster, its name, step, overlap, stability, reason, and the row's place in one view.

        `name` is what somebody called the cluster; `step` the one that took the row, from 1, and -1 for none; `overlap`
        how much of the row's cluster its nearest neighbour shares, from 0 to 1; `reason` tells why a row is in no
        cluster. The axes imapce0, imapce1 are those of `overview()`; before a look there are none.
        """
        moves, data = self.found.record.moves, self.found.data
        step_of = np.full(moves.n_rows, -1)
        overlap, stability = np.full((2, moves.n_rows), np.nan)
        names = np.full(moves.n_rows, "", dtype=object)
        for number, step in enumerate(moves.steps, 1):
            for cluster in step.clusters:
                step_of[cluster.rows] = number
        for cluster, share in zip(moves.clusters, self.stability_, strict=True):
            overlap[cluster.rows] = np.nan if cluster.overlap is None else cluster.overlap
            stability[cluster.rows] = share
            names[cluster.rows] = cluster.name or ""
        columns: dict[str, NDArray] = {
            "row": data.row_ids,
            "cluster": self.labels_,
            "name": names.astype(str),
            "step": step_of,
            "overlap": overlap,
            "stability": stability,
            "reason": self.reasons_,
        }
        if moves.clusters or self.has_looked:
            places = self.found.see_all(UNWATCHED).embedding
            columns |= dict(zip(axis_names(places.shape[1]), places.T, strict=True))
        return frame(columns, like=data.table)

    def coordinates(self, step: AcceptedStep | View, *, rows: Any = None) -> Array:
        """(n, k): all rows in the view of an accepted step, or in any view of a proposal; or `rows`, by position."""
        if not hasattr(step, "components"):
            raise InvalidTypeError(f"step must be an accepted step or a view of a proposal; got {step!r:.80}.")
        data = self.found.data
        places = None if rows is None else data.positions_of(rows)
        with threads_for(data.n_rows, data.rows.n_features):
            if places is None:
                return place_rows(data.rows, step)
            places, back = np.unique(places, return_inverse=True)
            chosen = np.zeros(data.n_rows, dtype=bool)
            chosen[places] = True
            return place_rows(data.rows, step, chosen)[back]

    def column(self, name: str) -> Column:
        """A column of the table as it was given, or of an array by the name x0, x1, ...

        >>> from imapce import Exploration
        >>> Exploration(np.eye(5)).column("x1").values
        array([0., 1., 0., 0., 0.])
        """
        return self.found.data.column(name)

    def given_in_words(self, view: AcceptedStep | View) -> tuple[Mask, str]:
        """(d,), the columns that name the axes of a view, and what they are given, as "given make"; else all and "".

        >>> from imapce import Attributes, Exploration
        >>> exploration = Exploration(np.random.default_rng(0).normal(size=(60, 4)), prior=Attributes([0]))
        >>> exploration.given_in_words(exploration.propose(clusters=False).views[0])
        (array([False,  True,  True,  True]), 'given x0')
        """
        return given_columns(view.explained, self.found.record.priors, self.found.data.reader)

    def axes_in_words(self, view: AcceptedStep | View, *, letters: int = LETTERS) -> list[str]:
        """What the axes of a view are made of, in about so many letters each.

        >>> from imapce import Attributes, Exploration
        >>> X = np.random.default_rng(0).normal(size=(60, 3))
        >>> exploration = Exploration(X, prior=Attributes([0]), random_state=0)
        >>> exploration.axes_in_words(exploration.propose(clusters=False).views[0])[0]
        '+ x1 − x2, given x0'
        """
        record, reader = self.found.record, self.found.data.reader
        return axes_in_words(view.components, view.explained, record.priors, reader, letters=letters)

    @property
    def known_in_a_line(self) -> str:
        """What was known at the start, as "known: sex, 20 rows"; "" where nothing was."""
        record = self.found.record
        told = record.priors, record.known_at_start, self.found.data.reader
        return known_in_a_line(*told, explains=record.estimator.explains)

    def describe(self, rows: Any, *, against: Any = None) -> Profile:
        """What any rows are, in the units of the table: the columns that set them apart and the most typical of them.

        Both are masks or positions; `against` is all other rows unless it is given. Known columns set nothing apart,
        and of others only what is not explained by what was known.

        >>> from imapce import Exploration
        >>> X = np.random.default_rng(0).normal(size=(50, 3)) + 9 * (np.arange(50) < 20)[:, None] * np.eye(1, 3)
        >>> Exploration(X).describe(np.arange(20)).name
        'x0 high (9.0 against −0.3)'
        """
        inside = self.found.data.mask_of(rows, "rows")
        outside = ~inside if against is None else self.found.data.mask_of(against, "against")
        aside = self.found.set_aside & ~inside
        profile = self._describer(inside.astype(np.intp) + 2 * outside, 4, set_aside=aside).profile([1, 3], [2, 3])
        taken = self.found.record.moves.cluster_of(inside)
        return profile if against is not None else _as_taken(profile, taken)

    # What it was called before.
    profile = describe

    def description(self, *, labels: Sequence[Column] = ()) -> Description:
        """All accepted clusters side by side, each against all other rows and against what was left at its step.

        Columns of `labels` are described too and used for nothing else.

        >>> from imapce import Exploration
        >>> X = np.random.default_rng(0).normal(size=(50, 3)) + 9 * (np.arange(50) < 20)[:, None] * np.eye(1, 3)
        >>> exploration = Exploration(X, random_state=0)
        >>> _ = exploration.accept(mask=np.arange(20))
        >>> exploration.description().clusters[0].name
        'x0 high (9.0 against −0.3)'
        """
        moves = self.found.record.moves
        n_clusters = len(moves.clusters)
        groups = np.where(self.found.record.known_at_start, n_clusters + 1, n_clusters)
        place_of = {}
        for place, cluster in enumerate(moves.clusters):
            groups[cluster.rows], place_of[cluster.number] = place, place
        # Which came at once; where some were regrouped since, each stands for itself.
        together = [[place] for place in range(n_clusters)]
        if not moves.regroupings:
            together = [[place_of[cluster.number] for cluster in step.clusters] for step in moves.steps]
        aside = self.found.set_aside & (groups >= n_clusters)
        found = self._describer(groups, n_clusters + 2, labels, set_aside=aside).describe(together, list(place_of))
        profiles = zip(found.clusters, moves.clusters, strict=True)
        return replace(found, clusters=tuple(_as_taken(profile, cluster) for profile, cluster in profiles))

    def _describer(
        self, groups: NDArray[np.intp], n_groups: int, labels: Sequence[Column] = (), *, set_aside: Mask
    ) -> Describer:
        """Who describes the rows of these groups (n,); known columns and labels are told apart from the rest."""
        data, priors = self.found.data, self.found.record.priors
        source = data.source
        return Describer(
            data.rows,
            source,
            data.row_ids,
            groups=groups,
            n_groups=n_groups,
            labels=labels,
            known=known_classes(priors, data.reader, data.n_rows, source.column),
            left_out=known_places(priors, data.reader),
            explained=self.found.explained,
            set_aside=set_aside,
        )

    # --- shown --------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        record, moves = self.found.record, self.found.record.moves
        words = [counted(len(moves.steps), "step")]
        known, taken = int(record.known.sum()), int((moves.labels >= 0).sum())
        if moves.steps:
            sizes = sizes_in_words([cluster.size for cluster in moves.clusters], list(moves.by_number))
            words.append(f"{taken:,} rows in {sizes}")
        if known > taken:
            words.append(f"{known - taken:,} known at the start")
        words.append(f"{moves.n_rows - known:,} unexplored")
        after = "" if self.stop_reason is None else f"; {self.stop_reason}"
        after += f"{'' if after else '.'} {self.caveat}." if self.caveat else ""
        rows, columns = f"{moves.n_rows:,} rows", f"{len(self.feature_names):,} columns"
        return f"Exploration of {rows} × {columns}: {', '.join(words)}{after}"

    def _repr_html_(self) -> str:
        return with_picture(repr(self), self.plot if self.steps or self.has_looked else None)

    def plot(self: Any, *, labels: Any = None) -> Figure:
        """The picture of all that was accepted, against `labels` where they are given; before that, of the next step.

        `labels` are one for each row, the name of a column ("sex"), or {"sex": values}, of which the first is drawn.

        >>> from imapce import Exploration
        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3], random_state=0)
        >>> exploration.plot()
        <Figure size 840x540 with 1 Axes>
        """
        from imapce.plotting.labels import labels_by_name
        from imapce.plotting.overview import plot_overview

        name, values = next(iter(labels_by_name(self, labels).items()), (None, None))
        return plot_overview(self, labels=values, label_name=name) if self.steps else self.propose().plot()

    def report(
        self: Any,
        path: str | os.PathLike[str],
        *,
        labels: Any = None,
        label_name: str | None = None,
        title: str = "Exploration",
        hover: Sequence[str] | None = None,
        progress: Progress = None,
    ) -> None:
        """One self-contained HTML page: all clusters side by side, and each with what it is and where it was seen.

        `labels` are only shown: one for each row, called `label_name`, the name of a column ("sex"), or several by
        their names, {"sex": values, "age": values}. `progress(words, share)` is told how far it is, and True shows a
        bar.
        """
        from imapce.plotting.reports.exploration import write_exploration_report

        told = {"labels": labels, "label_name": label_name, "title": title, "hover": hover}
        write_exploration_report(self, path, **told, progress=progress)


def _as_taken(profile: Profile, cluster: TakenCluster | None) -> Profile:
    """The profile of a cluster with the words it was taken with, which files and tables tell; older files have none."""
    return profile if cluster is None or not cluster.features else replace(profile, features=cluster.features)
