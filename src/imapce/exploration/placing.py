"""Where rows lie in a view of a session: along its axes, after what the known explains was taken from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from imapce.clusters.columns import coordinates
from imapce.priors.base import Prior, labels_among
from imapce.priors.effect import Explained
from imapce.priors.problem import Problem
from imapce.rows.base import Rows

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Placeable(Protocol):
    """A view that rows can be placed in: its axes, and what is taken from the rows before."""

    @property
    def components(self) -> Array: ...
    @property
    def mean(self) -> Array: ...
    @property
    def scale(self) -> Array: ...
    @property
    def explained(self) -> Explained | None: ...


def placed(rows: Rows, view: Placeable, chosen: Mask | None = None) -> Array:
    """(n, k): the rows of a session in a view, or those in `chosen`."""
    explained = view.explained
    if chosen is not None:
        rows = rows.unfolded.subset(chosen)
        explained = None if explained is None else explained.of_rows(chosen)
    if explained is None:
        return coordinates(rows, view.components, view.mean, view.scale)
    return explained.placed(rows, view.components, view.mean, view.scale)


def explained_by(problem: Problem, priors: Sequence[Prior], n_rows: int) -> Explained | None:
    """What was taken from all rows of a session for the views of a problem; None where nothing was."""
    told = problem.told
    effect = None if told is None or problem.effect is None else told.shown(problem.effect)
    if told is None or effect is None:
        return None
    labels = tuple(labels_among((prior for prior in priors if not prior.erase), n_rows))
    centre = told.Z.mean[told.places[~told.erased & (told.places >= told.n_features)]]
    return Explained(effect, labels, centre)
