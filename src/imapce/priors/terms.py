"""TODO-DOC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imapce.errors import InvalidValueError
from imapce.priors.kinds import Attributes, Prior, Samples, known_columns, known_rows
from imapce.rows.base import Rows
from imapce.rows.standardized import QuadraticForm, StandardizedRows

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Known:
    """One Y as the methods need it: its weight, YᵀY, how many rows it has and which of its columns vary.

    `rows` is Y itself; None where Y is columns of X. `is_background` says that Y are other rows than those of X.
    """

    weight: float
    second_moment: QuadraticForm
    n_rows: int
    varies: Mask
    rows: StandardizedRows | None = None
    is_background: bool = False


@dataclass(frozen=True)
class PriorTerms:
    """The priors as the objective needs them: one Y for each, the rows left to pull apart, and what is erased.

    `erased` is C_X[:, A] (d, q), to which every axis must be orthogonal; None where nothing is to be erased.
    """

    known_parts: list[Known]
    known: Mask | None
    erased: Array | None = None

    @property
    def any_known(self) -> bool:
        return bool(self.known_parts)

    def known_columns(self, n_features: int) -> Mask:
        """The columns of X that are known and vary; none where only rows are known."""
        columns = np.zeros(n_features, dtype=bool)
        for part in self.known_parts:
            if part.rows is None:
                columns |= part.varies
        return columns

    @property
    def backgrounds(self) -> list[StandardizedRows]:
        """The Y that show what else could split the rows. Known rows of X do not: they have left Z."""
        return [part.rows for part in self.known_parts if part.rows is not None and part.is_background]

    @property
    def second_moments(self) -> list[tuple[float, QuadraticForm]]:
        """wⱼ and YⱼᵀYⱼ, sums over rows as in the paper's objective."""
        return [(part.weight, part.second_moment) for part in self.known_parts]

    @property
    def covariances(self) -> list[tuple[float, QuadraticForm]]:
        """wⱼ/(mⱼ−1) and YⱼᵀYⱼ: what contrastive PCA weighs, whatever the number of rows."""
        return [(part.weight / max(1, part.n_rows - 1), part.second_moment) for part in self.known_parts]


def prior_terms(
    priors: Sequence[Prior],
    X: StandardizedRows,
    *,
    columns_of: Callable[[Any], NDArray[np.intp]],
    open_background: Callable[[Any], Rows],
    standardized: Callable[[Rows], StandardizedRows],
    min_unexplored: int,
) -> PriorTerms:
    """Second moments of every Y, each standardised on its own, and the union of the known rows.

    The callables belong to the estimator: how a column is named, how a background is read, how rows are scaled.
    """
    parts: list[Known] = []
    known: Mask | None = None
    erased = np.zeros(X.n_features, dtype=bool)
    for prior in priors:
        if isinstance(prior, Attributes):
            columns = known_columns(prior, X.n_features, columns_of)
            if prior.erase:
                erased |= columns
                continue
            parts.append(Known(prior.weight, X.with_columns(columns), X.n_rows, columns & X.informative))
            continue
        if isinstance(prior, Samples):
            Y = standardized(open_background(prior.background))
        else:
            rows = known_rows(prior, X.n_rows)
            known = rows if known is None else known | rows
            Y = standardized(X.rows.subset(rows))
        parts.append(Known(prior.weight, Y.second_moment, Y.n_rows, Y.informative, Y, isinstance(prior, Samples)))
    if known is not None and X.n_rows - int(known.sum()) < min_unexplored:
        raise InvalidValueError(
            f"Subset(rows) leaves {X.n_rows - int(known.sum())} of {X.n_rows} rows to explore, and at least "
            f"{min_unexplored} are needed for this many components; name fewer rows as known."
        )
    return PriorTerms(parts, known, X.second_moment.columns(erased) if erased.any() else None)
