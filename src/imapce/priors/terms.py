"""What priors add to equation 2: a second moment YᵀY for each, the rows left to pull apart, what is erased.

Priors combine: M = XᵀX − α Σ wⱼ YⱼᵀYⱼ, and Z is what no subset covers. Attributes and labels to be erased add no
term: they bind the axes, vᵀ C_X[:, A] = 0 and vᵀXᵀL = 0, as α = ∞ would.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from imapce.priors.labels import LabelTerm
from imapce.rows.standardized import QuadraticForm, StandardizedRows

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Known:
    """One Y as the methods need it: its weight, YᵀY, how many rows it has and which of its columns vary.

    `rows` is Y itself; None where Y is columns of X or what labels explain of it. `is_background` says that Y are other
    rows than those of X.
    """

    weight: float
    second_moment: QuadraticForm
    n_rows: int
    varies: Mask
    rows: StandardizedRows | None = None
    is_background: bool = False


@dataclass(frozen=True)
class PriorTerms:
    """The priors as the objective needs them: one Y for each, the rows known, and what is erased.

    `known` masks the rows of X that a subset covers, None where there is no subset. `erased` is C_X[:, A] (d, q), to
    which every axis must be orthogonal, beside XᵀL of labels; `erased_columns` masks A; None where nothing is to be
    erased. `labels` are all that are known, `weighed_labels` those of them that are not to be erased.

    >>> PriorTerms((), None).any_known
    False
    """

    parts: tuple[Known, ...]
    known: Mask | None
    erased: Array | None = None
    erased_columns: Mask | None = None
    labels: LabelTerm | None = None
    weighed_labels: LabelTerm | None = None

    @property
    def any_known(self) -> bool:
        return bool(self.parts)

    def known_columns(self, n_features: int) -> Mask:
        """The columns of X that are known and vary; none where only rows are known."""
        columns = np.zeros(n_features, dtype=bool)
        for part in self.parts:
            if part.rows is None:
                columns |= part.varies
        return columns

    @property
    def backgrounds(self) -> list[StandardizedRows]:
        """The Y that show what else could split the rows. Known rows of X do not: they have left Z."""
        return [part.rows for part in self.parts if part.rows is not None and part.is_background]

    @property
    def second_moments(self) -> list[tuple[float, QuadraticForm]]:
        """wⱼ and YⱼᵀYⱼ, sums over rows as in the paper's objective."""
        return [(part.weight, part.second_moment) for part in self.parts]

    @property
    def covariances(self) -> list[tuple[float, QuadraticForm]]:
        """wⱼ/(mⱼ−1) and YⱼᵀYⱼ: what contrastive PCA weighs, whatever the number of rows."""
        return [(part.weight / max(1, part.n_rows - 1), part.second_moment) for part in self.parts]
