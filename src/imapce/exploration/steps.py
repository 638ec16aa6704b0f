"""What a step of an exploration offers: views of the unexplored rows and their clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from imapce.exploration.clustering import Clustering

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class View:
    """One optimum of a step: coordinates of all rows and, when asked for, the clusters of the unexplored ones.

    `set_aside` are the gross outliers of X. They are not clustered: a mixture would spend its components on them.
    """

    components: Array
    objective: float
    kurtosis: float
    starts: int
    unexplored: Mask
    set_aside: Mask
    _project: Callable[[Array], Array] = field(repr=False)
    _cluster: Callable[[Array], Clustering] = field(repr=False)

    @cached_property
    def embedding(self) -> Array:
        """(n, k), all rows, in the standardisation of the unexplored ones."""
        return self._project(self.components)

    @property
    def clustered(self) -> Mask:
        return self.unexplored & ~self.set_aside

    @cached_property
    def clustering(self) -> Clustering:
        return self._cluster(self.embedding[self.clustered])

    @property
    def clusters(self) -> NDArray[np.intp]:
        """(n,), the cluster of every unexplored row; -1 for outliers and for rows already known."""
        labels = np.full(len(self.unexplored), -1)
        labels[self.clustered] = self.clustering.labels
        return labels

    @property
    def distinctness(self) -> Array:
        return self.clustering.distinctness

    @property
    def most_distinct(self) -> tuple[int, ...]:
        return self.clustering.most_distinct


@dataclass(frozen=True, eq=False)
class Step:
    """A proposal: the best view first in `views`, the other distinct optima after it; nothing is changed by it."""

    number: int
    views: list[View]
    mean: Array
    scale: Array
    stop_reason: str
    _test: Callable[[], float] = field(repr=False)

    @cached_property
    def p_value(self) -> float:
        """How often one Gaussian would look as split as the unexplored rows do; computed when first asked for.

        >>> exploration.propose().p_value                        # doctest: +SKIP
        0.01
        """
        return self._test()

    @property
    def p_value_if_asked(self) -> float | None:
        """The p-value where somebody asked for it."""
        return self.__dict__.get("p_value")

    @property
    def embedding(self) -> Array:
        return self.views[0].embedding

    @property
    def unexplored(self) -> Mask:
        return self.views[0].unexplored

    @property
    def clusters(self) -> NDArray[np.intp]:
        return self.views[0].clusters

    @property
    def distinctness(self) -> Array:
        return self.views[0].distinctness

    @property
    def most_distinct(self) -> tuple[int, ...]:
        return self.views[0].most_distinct

    @property
    def components(self) -> Array:
        return self.views[0].components

    @property
    def clustered_from(self) -> str:
        """In words, how the clusters were found."""
        total, sampled = int(self.views[0].clustered.sum()), self.views[0].clustering.sampled
        aside = int(self.unexplored.sum()) - total
        but = f" but {aside:,} gross outlier{'s' if aside > 1 else ''}" if aside else ""
        if sampled == total:
            return f"Clustered all {total + aside:,} unexplored rows{but}."
        return (
            f"Clustered a seeded sample of {sampled:,} of {total + aside:,} unexplored rows{but} and assigned the rest."
        )
