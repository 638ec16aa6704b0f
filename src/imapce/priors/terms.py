"""What priors add to equation 2: a second moment YᵀY for each, the rows left, what is erased and what explained away.

Priors combine: M = XᵀX − α Σ wⱼ YⱼᵀYⱼ, and Z is what no subset covers. Attributes and labels to be erased add no
term: they bind the axes, vᵀ C_X[:, A] = 0 and vᵀXᵀL = 0. Those to be explained away add none either: X and Z are the
rows less their effect, X° = X − LB, which `clusters/given.py` finds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from imapce.common.arrays import Array, Codes, Mask
from imapce.priors.effect import Effect
from imapce.priors.labels import LabelCode, LabelTerm
from imapce.rows.given import RowsGiven
from imapce.rows.standardized import QuadraticForm, StandardizedRows


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

    def given(self, told: Told, weights: Array) -> Known:
        """Y less the effect of the known columns and, of rows of X, of the labels beside them."""
        if self.rows is None:
            return self
        d = told.n_features
        reached = ~told.erased & (told.places < self.rows.n_features)
        rows = RowsGiven(self.rows, told.places[reached], weights[reached], n_features=d)
        return Known(self.weight, rows.second_moment, rows.n_rows, rows.informative, rows, self.is_background)


@dataclass(frozen=True, eq=False)
class Told:
    """Rows with what is to be explained away or erased beside them: X and Z as [x | l], each standardised.

    `places` (q,) are those of the known among the columns of [x | l], and `erased` (q,) tells which views are not to
    show linearly at all.
    """

    X: StandardizedRows
    Z: StandardizedRows
    places: Codes
    erased: Mask
    n_features: int
    codes: tuple[LabelCode, ...] = ()

    def effect(self, weights: Array) -> Effect:
        """B (q, d), in the units of the table, as the effect of what is told."""
        return Effect(self.places[self.places < self.n_features], self.codes, weights)

    def shown(self, effect: Effect) -> Effect | None:
        """The part of an effect that views take off the rows: not of what is erased; None where all is."""
        return None if self.erased.all() else effect.only(~self.erased)

    def whole(self, shown: Effect) -> Effect:
        """An effect that was `shown`, with nothing where something is erased."""
        weights = np.zeros((len(self.places), self.n_features))
        weights[~self.erased] = shown.weights
        return self.effect(weights)

    @property
    def rest(self) -> RowsGiven:
        """Z with nothing taken from it yet, for those who look for clusters: given all that is known."""
        nothing = np.zeros((len(self.places), self.n_features))
        return RowsGiven(self.Z, self.places, nothing, n_features=self.n_features)

    def given(self, weights: Array) -> tuple[StandardizedRows, StandardizedRows]:
        """X° and Z° for views: less the effect (q, d) of what is not erased; that only binds the axes."""
        places, weights = self.places[~self.erased], weights[~self.erased]
        X = RowsGiven(self.X, places, weights, n_features=self.n_features)
        same = self.Z is self.X
        return X, X if same else RowsGiven(self.Z, places, weights, n_features=self.n_features)


@dataclass(frozen=True)
class PriorTerms:
    """The priors as the objective needs them: one Y for each, the rows known, and what is erased.

    `known` masks the rows of X that a subset covers, None where there is no subset. `erased` is C_X[:, A] (d, q), to
    which every axis must be orthogonal, beside XᵀL of `erased_labels`; `erased_columns` masks A; None where nothing is
    to be erased. `labels` are all that are known, `weighed_labels` those of them with a Y of their own;
    `explained_columns` masks the columns to be explained away.

    >>> PriorTerms((), None).any_known
    False
    """

    parts: tuple[Known, ...]
    known: Mask | None
    erased: Array | None = None
    erased_columns: Mask | None = None
    erased_labels: LabelTerm | None = None
    labels: LabelTerm | None = None
    weighed_labels: LabelTerm | None = None
    explained_columns: Mask | None = None

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
    def is_background(self) -> bool:
        """Whether more is weighed than rows of X: other rows, columns or labels, of which its clusters know nothing."""
        return any(part.rows is None or part.is_background for part in self.parts)

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
