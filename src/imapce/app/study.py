"""What is explored and how it is called: one exploration, the columns it came from, and its views as scenes.

What is known and the weights of views are the exploration's; a study holds neither.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from imapce.app.colours import NONE, cluster_code, short_value
from imapce.app.scene import Scene
from imapce.common.work import UNWATCHED
from imapce.errors import InvalidValueError
from imapce.exploration.record import TakenCluster
from imapce.exploration.session import Exploration
from imapce.exploration.steps import Step, View
from imapce.plotting.key import hold_classes
from imapce.plotting.steps import known_before
from imapce.priors.base import Prior
from imapce.priors.kinds import Attributes, Labels, Subset
from imapce.tables.columns import Column
from imapce.tables.encode import column_names, is_table

TABLED = 12
# Columns kept once they were asked for: 16 of a million rows are 128 MB.
KEPT = 16


@dataclass(eq=False)
class Study:
    """One exploration with what a page shows beside it.

    `table` holds the columns as they were read, `features` what the exploration was made of, `picture` the height and
    width where a row is a picture, `script` the Python that makes `X`, `labelled` that of columns of labels by their
    names, `background` that of known samples, `color` the column of the first colours; `keeps_file` tells whether the
    file of the session is one that somebody named; `settled_at` is the number of moves that were made before the
    settings were changed last.

    >>> study = Study("noise", Exploration(np.random.default_rng(0).normal(size=(30, 4))))
    >>> study.n_rows, study.plain.kind
    (30, 'plain')
    """

    name: str
    exploration: Exploration
    _: KW_ONLY
    features: Any = None
    table: pa.Table | None = None
    background: str | None = None
    labels: tuple[str, ...] = ()
    color: str | None = None
    picture: tuple[int, int] | None = None
    script: tuple[str, ...] = ()
    labelled: str = "data.select({names!r})"
    keeps_file: bool = True
    settled_at: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        return len(self.exploration.row_ids)

    @property
    def file_name(self) -> str | None:
        """The name of the file that the session is saved in, where somebody chose one."""
        path = self.exploration.path
        return Path(path).name if path is not None and self.keeps_file else None

    # --- columns ------------------------------------------------------------------------------------------------------

    @cached_property
    def columns(self) -> ShownColumns:
        matrix = self.features if isinstance(self.features, np.ndarray) or hasattr(self.features, "toarray") else None
        return ShownColumns(self.exploration, self.table, matrix)

    @cached_property
    def shown_columns(self) -> list[str]:
        """The columns of a table of rows: labels first, then the others as they come."""
        return list(dict.fromkeys([*self.labels, *self.columns.names]))[:TABLED]

    @cached_property
    def feature_columns(self) -> list[str]:
        """The columns that views are made of, a category as one."""
        return column_names(self.features) if is_table(self.features) else list(self.exploration.feature_names)

    @cached_property
    def brightness(self) -> tuple[float, float]:
        """The least and the largest value of a pixel."""
        sample = [self.columns.pixels(row) for row in range(0, self.n_rows, max(1, self.n_rows // 200))]
        return float(np.min(sample)), float(np.max(sample))

    # --- what is known ------------------------------------------------------------------------------------------------

    @property
    def known_by_column(self) -> dict[str, str]:
        """What came of the columns that are known, by their names: "explained away", "erased" or "weighed"."""
        names = {*self.feature_columns, *self.columns.names}
        came = {name: self.exploration.came_of(name) for name in self.exploration.known_names if name in names}
        return {name: what for name, what in came.items() if what is not None}

    def know_columns(self, columns: Mapping[str, bool]) -> list[Prior]:
        """What is known with these columns in place of those before, each erased or not: features as attributes, others
        as labels.
        """
        labels = [name for name in columns if name not in self.feature_columns]
        if labels and (self.table is None or any(name not in self.table.column_names for name in labels)):
            raise InvalidValueError(f"what is known must be columns of the data; got {labels[0]!r}.")
        known = [prior for prior in self.exploration.priors if not self.by_column(prior).listed]
        for erase in (False, True):
            features = [name for name in self.feature_columns if columns.get(name) is erase]
            # An array has no names for its columns, only places.
            listed: list[Any] = (
                features if is_table(self.features) else [self.feature_columns.index(name) for name in features]
            )
            known += [Attributes(listed, erase=erase)] if listed else []
        if self.table is not None:
            known += [Labels(self.table.select([name]), erase=columns[name]) for name in labels]
        return known

    def know_rows(self, priors: Sequence[Prior], rows: NDArray[np.bool_]) -> list[Prior]:
        """The same knowledge with these rows in place of those before; none where no row is meant."""
        others = [prior for prior in priors if not prior.names_rows]
        return [*others, Subset(rows)] if rows.any() else others

    def by_column(self, prior: Prior) -> Prior:
        """Labels that are a column of the table as that column; any other prior as it is."""
        if self.table is None or prior.title not in self.table.column_names:
            return prior
        return Labels(self.table.select([prior.title]), weight=prior.weight, erase=prior.erase)

    # --- copies and moves ---------------------------------------------------------------------------------------------

    @cached_property
    def order(self) -> NDArray[np.int32]:
        """The seeded random order in which rows travel to a page."""
        return np.random.default_rng(0).permutation(self.n_rows).astype(np.int32)

    def prepare(self) -> None:
        """Make what all copies share, which takes a second at a million rows: before a page waits for it."""
        self.plain.index(), self.columns, self.order

    def own_copy(self) -> Self:
        """The same rows for another person: data, columns and the plain view are shared, the exploration is not."""
        self.prepare()
        other = copy.copy(self)
        other.exploration = copy.copy(self.exploration)
        other.exploration.found = self.exploration.found.copied()
        return other

    def note_move(self) -> None:
        """The last move was made with the settings of now, whatever was undone before it."""
        self.settled_at = min(self.settled_at, len(self.exploration.moves) - 1)

    def note_settings(self) -> None:
        """All moves were made with settings before those of now, also those that may be redone."""
        self.settled_at = len(self.exploration.moves) + self.exploration.redoable

    # --- clusters by name ---------------------------------------------------------------------------------------------

    def cluster_name(self, number: int) -> str:
        """What a cluster that was taken is called."""
        names = {cluster.number: cluster.name for cluster in self.exploration.clusters_}
        return names.get(number) or f"Cluster {number}"

    def cluster_at(self, row: int) -> int:
        """The number of the cluster of one row, -1 for none; `labels_` would be made for all of them."""
        return next((cluster.number for cluster in self.exploration.clusters_ if row in cluster.rows), -1)

    def number_now(self, cluster: TakenCluster) -> int | None:
        """The number of a cluster in `labels_`, None where it was regrouped since."""
        return cluster.number if any(other is cluster for other in self.exploration.clusters_) else None

    def own_name(self, cluster: TakenCluster) -> str | None:
        """What a cluster of an accepted step is called besides its number: its name, or that it was regrouped since."""
        return cluster.name or (None if self.number_now(cluster) is not None else "regrouped since")

    def code_of(self, cluster: TakenCluster) -> int:
        """The colour of a cluster that was taken, the same in every view."""
        now = self.number_now(cluster)
        return NONE if now is None else cluster_code(now)

    # --- scenes -------------------------------------------------------------------------------------------------------

    @cached_property
    def plain(self) -> Scene:
        """All rows along the two directions of most variance, whatever is known: what is in sight at the start."""
        start = self.exploration.found.at_start()
        seen = start.look_with(UNWATCHED, alpha=0.0, mu=0.0)
        title = "All rows, along the two directions of most variance"
        return Scene(seen.embedding, seen.components, kind="plain", title=title, known=start.record.known)

    def first_scene(self) -> Scene:
        """What is in sight when a page comes: the proposal, else the last step, else all rows as they are."""
        step, steps = self.exploration.proposal, self.exploration.steps
        if step is not None:
            return self.proposal_scene(step, 0)
        return self.step_scene(len(steps) - 1) if steps else self.plain

    def overview_scene(self, view: View, words: Mapping[int, str] | None = None) -> Scene:
        """All clusters that were taken, in one view; `words` says by number what they are."""
        clusters = self.exploration.clusters_
        title = f"All {len(clusters)} clusters together" if len(clusters) > 1 else "The cluster taken, and the rest"
        return replace(
            _with_clusters(self._scene_of(view, kind="overview", title=title), view),
            names=tuple(cluster.name for cluster in clusters),
            words=() if words is None else tuple(words[cluster.number] for cluster in clusters),
            legend="Clusters taken",
        )

    def proposal_scene(self, step: Step, number: int) -> Scene:
        """A view of the current step."""
        view = step.views[number]
        title = f"Step {step.number}" + (f", view {number + 1} of {len(step.views)}" if number else "")
        scene = replace(self._scene_of(view, kind="proposal", title=title), number=number)
        return _with_clusters(scene, view) if view.looked_at else scene

    def three_axes_scene(self, view: View) -> Scene:
        """A view of three axes beside those of the session."""
        scene = self._scene_of(view, kind="three", title="Three axes")
        step = self.exploration.proposal
        return scene if step is None or not step.views[0].looked_at else _with_clusters(scene, step.views[0])

    def _scene_of(self, view: View, *, kind: str, title: str) -> Scene:
        named, given = self.exploration.given_in_words(view)
        return Scene(
            self.exploration.coordinates(view) if view.coordinates is None else view.coordinates,
            view.components,
            kind=kind,
            title=title,
            known=~view.unexplored,
            named=named,
            given=given,
            legend="Clusters in this view",
            facts={"alpha": short_value(view.optimum.alpha), "mu": short_value(view.optimum.mu)},
        )

    def step_scene(self, number: int) -> Scene:
        """An accepted step in the view it was seen in, with the clusters that were taken."""
        steps = self.exploration.steps
        clusters = np.full(self.n_rows, -1)
        for cluster in steps[number].clusters:
            clusters[cluster.rows] = cluster.number
        taken = sorted(steps[number].clusters, key=lambda cluster: cluster.number)
        numbers = tuple(cluster.number for cluster in taken)
        named, given = self.exploration.given_in_words(steps[number])
        return Scene(
            self.exploration.coordinates(steps[number]),
            steps[number].components,
            kind="step",
            title=f"Step {number + 1}, as it was taken",
            number=number,
            known=known_before(self.exploration, number),
            clusters=clusters,
            numbers=numbers,
            most_distinct=numbers,
            names=tuple(self.own_name(cluster) for cluster in taken),
            codes=tuple(self.code_of(cluster) for cluster in taken),
            named=named,
            given=given,
            legend=f"Taken in step {number + 1}",
        )

    def undone_scene(self, seen: Scene) -> Scene:
        """A step that was just undone: the same view, and its rows no longer taken."""
        known = self.exploration.known
        axes: dict[str, Any] = {"named": seen.named, "given": seen.given}
        return Scene(seen.coordinates, seen.components, kind="plain", title="…", known=known, **axes)


def _with_clusters(scene: Scene, view: View) -> Scene:
    """A scene in the colours of the clusters of a view."""
    numbers = tuple(view.numbers.tolist())
    return replace(scene, clusters=view.clusters, numbers=numbers, most_distinct=tuple(view.most_distinct))


class ShownColumns:
    """Values by the name of their column, as they were written: to colour by, to name rows by, to describe.

    `table` holds those that were read, the exploration those it made of them.

    >>> rows = np.random.default_rng(0).normal(size=(20, 3))
    >>> bool(ShownColumns(Exploration(rows)).values("x1")[0] == rows[0, 1])
    True
    """

    def __init__(self, exploration: Exploration, table: pa.Table | None = None, matrix: Any = None):
        self._exploration, self._table, self._matrix = exploration, table, matrix
        self._kept: OrderedDict[str, NDArray[Any]] = OrderedDict()
        read = [] if table is None else list(table.column_names)
        # A feature that is a column of the table as it stands is one column, not two.
        self.names = read + [name for name in exploration.feature_names if name not in read and "=" not in name]

    def values(self, name: str) -> NDArray[Any]:
        """(n,): numbers as float64 with NaN where one is missing, anything else as objects with None."""
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        found = self._read(name) if self._table is not None and name in self._table.column_names else self._made(name)
        self._kept[name] = found
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found

    def column(self, name: str) -> Column:
        """One as the library describes columns: a number, or a category of its values as a page shows them."""
        values = self.values(name)
        if values.dtype.kind == "f":
            if not hold_classes(values):
                return Column(name, values=values)
            stated = ~np.isnan(values)
            levels, places = np.unique(values[stated], return_inverse=True)
        else:
            stated = np.array([value is not None for value in values], dtype=bool)
            levels, places = np.unique([str(short_value(value)) for value in values[stated]], return_inverse=True)
        codes = np.full(len(values), -1, dtype=np.intp)
        codes[stated] = places
        return Column(name, codes=codes, levels=tuple(str(short_value(level)) for level in levels))

    def row(self, position: int, names: list[str]) -> dict[str, Any]:
        """One row in words, for these columns."""
        return {name: short_value(self.values(name)[position]) for name in names}

    def pixels(self, position: int) -> NDArray[np.float64]:
        """All features of one row, as they were written, where a row is a picture."""
        if self._matrix is not None:
            row = self._matrix[position : position + 1]
            return np.asarray(row.toarray() if hasattr(row, "toarray") else row, dtype=np.float64).ravel()
        assert self._table is not None
        names = self._exploration.feature_names
        return np.array([self._table.column(name)[position].as_py() for name in names], dtype=np.float64)

    def _read(self, name: str) -> NDArray[Any]:
        assert self._table is not None
        column = self._table.column(name)
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
        return np.array(column.to_pylist(), dtype=object)

    def _made(self, name: str) -> NDArray[Any]:
        column = self._exploration.column(name)
        if column.values is not None:
            return column.values
        return np.array([column.text(row) or None for row in range(len(self._exploration.row_ids))], dtype=object)
