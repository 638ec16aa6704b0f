"""What is explored and how it is called: one exploration, the columns it came from, and its views as scenes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from imapce.app.colours import NONE, cluster_code
from imapce.app.columns import Columns, told
from imapce.app.scene import Scene
from imapce.errors import InvalidValueError
from imapce.exploration.record import TakenCluster
from imapce.exploration.session import Exploration
from imapce.exploration.steps import Step, View
from imapce.priors.base import Prior
from imapce.priors.kinds import Attributes, Labels, Subset
from imapce.tables.encode import column_names, is_table

Array = NDArray[np.float64]

TABLED = 12


@dataclass(eq=False)
class Study:
    """One exploration with what a page shows beside it.

    `table` holds the columns as they were read, `features` what the exploration was made of, `picture` the height and
    width where a row is a picture, `script` the Python that makes `X`, `labelled` that of columns of labels by their
    names, `color` the column of the first colours; `keeps_file` tells whether the file of the session is one that
    somebody named; `settled_at` is the number of moves that were made before the settings were changed last.

    >>> study = Study("noise", Exploration(np.random.default_rng(0).normal(size=(30, 4))))
    >>> study.n_rows, study.overview.kind
    (30, 'overview')
    """

    name: str
    exploration: Exploration
    _: KW_ONLY
    features: Any = None
    table: pa.Table | None = None
    priors: list[Prior] = field(default_factory=list)
    background: str | None = None
    weights: dict[str, float | str] = field(default_factory=lambda: {"alpha": "auto", "mu": "auto"})
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
        """How many rows there are."""
        return len(self.exploration.row_ids)

    @property
    def file_name(self) -> str | None:
        """The name of the file that the session is saved in, where somebody chose one."""
        path = self.exploration.path
        return Path(path).name if path is not None and self.keeps_file else None

    @cached_property
    def columns(self) -> Columns:
        """The columns to colour by and to show."""
        matrix = self.features if isinstance(self.features, np.ndarray) or hasattr(self.features, "toarray") else None
        return Columns(self.exploration, self.table, matrix)

    @cached_property
    def shown_columns(self) -> list[str]:
        """The columns of a table of rows: labels first, then the others as they come."""
        return list(dict.fromkeys([*self.labels, *self.columns.names]))[:TABLED]

    @cached_property
    def feature_columns(self) -> list[str]:
        """The columns that views are made of, a category as one."""
        return column_names(self.features) if is_table(self.features) else list(self.exploration.feature_names)

    @property
    def known_columns(self) -> list[str]:
        """The columns that are known and given up by views."""
        found: list[str] = []
        for prior in self.priors:
            listed = [] if prior.erase else prior.listed
            found += [name if isinstance(name, str) else self.exploration.feature_names[int(name)] for name in listed]
        return found

    def knowing(self, columns: Sequence[str]) -> list[Prior]:
        """What is known with these columns in place of those before: features as attributes, others as labels."""
        others = [prior for prior in self.priors if prior.erase or not prior.listed]
        features = [name for name in columns if name in self.feature_columns]
        labels = [name for name in columns if name not in self.feature_columns]
        if labels and (self.table is None or any(name not in self.table.column_names for name in labels)):
            raise InvalidValueError(f"what is known must be columns of the data; got {labels[0]!r}.")
        # An array has no names for its columns, only places.
        listed: list[Any] = (
            features if is_table(self.features) else [self.feature_columns.index(one) for one in features]
        )
        attributes: list[Prior] = [Attributes(listed)] if listed else []
        return [*others, *attributes, *(Labels(self.table.select([name])) for name in labels if self.table is not None)]

    @cached_property
    def order(self) -> NDArray[np.int32]:
        """The seeded random order in which rows travel to a page."""
        return np.random.default_rng(0).permutation(self.n_rows).astype(np.int32)

    @cached_property
    def brightness(self) -> tuple[float, float]:
        """The least and the largest value of a pixel."""
        sample = [self.columns.pixels(row) for row in range(0, self.n_rows, max(1, self.n_rows // 200))]
        return float(np.min(sample)), float(np.max(sample))

    @cached_property
    def overview(self) -> Scene:
        """All rows along the two directions of most variance, whatever is known: what is in sight at the start."""
        seen = self.exploration.look(alpha=0.0, mu=0.0)
        return Scene(
            seen.embedding,
            seen.components,
            kind="overview",
            title="Overview: the two directions of most variance",
            known=self.exploration.known,
            facts={"legend": "Rows"},
        )

    def prepare(self) -> None:
        """Make what all copies share, which takes a second at a million rows: before a page waits for it."""
        self.overview.index(), self.columns, self.order

    def own_copy(self) -> Self:
        """The same rows for another person: data, columns and overview are shared, the exploration is not."""
        self.prepare()
        other = copy.copy(self)
        other.exploration = copy.copy(self.exploration)
        return other

    def moved(self) -> None:
        """The last move was made with the settings of now, whatever was undone before it."""
        self.settled_at = min(self.settled_at, len(self.exploration.moves) - 1)

    def settle(self) -> None:
        """Take the weights and what is known from the exploration, as after it was read from a file."""
        record = self.exploration.record()
        self.weights = {name: record.parameters[name] for name in ("alpha", "mu")}
        self.priors = [self._by_column(prior) for prior in record.priors]
        # A file does not tell with which settings its moves were made.
        self.settled_at = len(self.exploration.moves) + self.exploration.redoable
        if record.known_at_start.any():
            self.priors.append(Subset(record.known_at_start, weight=record.subset_weight))

    def _by_column(self, prior: Prior) -> Prior:
        """Labels that are a column of the table as that column, so that it can be named and forgotten."""
        if self.table is None or prior.title not in self.table.column_names:
            return prior
        return Labels(self.table.select([prior.title]), weight=prior.weight, erase=prior.erase)

    def name_of(self, number: int) -> str:
        """What a cluster that was taken is called."""
        names = {one.number: one.name for one in self.exploration.clusters_}
        return names.get(number) or f"Cluster {number}"

    def cluster_of(self, row: int) -> int:
        """The number of the cluster of one row, -1 for none; `labels_` would be made for all of them."""
        return next((one.number for one in self.exploration.clusters_ if row in one.rows), -1)

    def placed(self, view: View) -> Array:
        """All rows in a view of the current step."""
        return self.exploration.coordinates(view) if view.coordinates is None else view.coordinates

    def proposed(self, step: Step, number: int) -> Scene:
        """A view of the current step."""
        view = step.views[number]
        named, given = self.exploration.given_in_words(view)
        scene = Scene(
            self.placed(view),
            view.components,
            kind="proposal",
            title=f"Step {step.number + 1}" + (f", view {number + 1} of {len(step.views)}" if number else ""),
            number=number,
            known=~view.unexplored,
            named=named,
            given=given,
            facts={"alpha": told(view.optimum.alpha), "mu": told(view.optimum.mu), "legend": "Clusters in this view"},
        )
        if not view.looked_at:
            return scene
        return _with_clusters(scene, view)

    def three(self, view: View) -> Scene:
        """A view of three axes beside those of the session."""
        facts = {"alpha": told(view.optimum.alpha), "mu": told(view.optimum.mu), "legend": "Clusters in this view"}
        step = self.exploration.proposal
        named, given = self.exploration.given_in_words(view)
        scene = Scene(
            view.embedding,
            view.components,
            kind="three",
            title="Three axes",
            known=~view.unexplored,
            named=named,
            given=given,
            facts=facts,
        )
        if step is None or not step.views[0].looked_at:
            return scene
        return _with_clusters(scene, step.views[0])

    def looked_back(self, number: int) -> Scene:
        """An accepted step in the view it was seen in, with the clusters that were taken."""
        steps = self.exploration.steps
        clusters = np.full(self.n_rows, -1)
        for cluster in steps[number].clusters:
            clusters[cluster.rows] = cluster.number
        taken = sorted(steps[number].clusters, key=lambda cluster: cluster.number)
        named, given = self.exploration.given_in_words(steps[number])
        known = self.exploration.known & (self.exploration.labels_ < 0)
        for step in steps[:number]:
            for cluster in step.clusters:
                known[cluster.rows] = True
        return Scene(
            self.exploration.coordinates(steps[number]),
            steps[number].components,
            kind="step",
            title=f"Step {number + 1}, as it was taken",
            number=number,
            known=known,
            clusters=clusters,
            numbers=tuple(cluster.number for cluster in taken),
            most_distinct=tuple(cluster.number for cluster in taken),
            named=named,
            given=given,
            facts={
                "legend": f"Taken in step {number + 1}",
                "names": [self.step_name(cluster) for cluster in taken],
                "codes": [self.code_of(cluster) for cluster in taken],
            },
        )

    def step_name(self, cluster: TakenCluster) -> str:
        """What a cluster of an accepted step is called: its name, its number, or that it was regrouped since."""
        if cluster.name:
            return cluster.name
        now = self.number_of(cluster)
        return "regrouped since" if now is None else f"Cluster {now}"

    def code_of(self, cluster: TakenCluster) -> int:
        """The colour of a cluster that was taken, the same in every view."""
        now = self.number_of(cluster)
        return NONE if now is None else cluster_code(now)

    def number_of(self, cluster: TakenCluster) -> int | None:
        """The number of a cluster in `labels_`, None where it was regrouped since."""
        return cluster.number if any(one is cluster for one in self.exploration.clusters_) else None

    def unexplored_again(self, seen: Scene) -> Scene:
        """A step that was just undone: the same view, and its rows no longer taken."""
        known = self.exploration.known
        facts = {"legend": "Rows"}
        return replace(
            seen, kind="overview", known=known, clusters=None, most_distinct=(), numbers=(), facts=facts, title="…"
        )


def _with_clusters(scene: Scene, view: View) -> Scene:
    """A scene in the colours of the clusters of a view."""
    return replace(
        scene,
        clusters=view.clusters,
        numbers=tuple(view.numbers.tolist()),
        most_distinct=tuple(view.most_distinct),
    )
