"""Is a view more than the luck of its rows? Views of halves of the rows, found each on its own, set beside each other.

    agreement(V, W) = mean of ρ²,    ρ the canonical correlations of the views XV and XW of all rows
                    = ‖A^(−½)·VᵀCW·B^(−½)‖²/k,    C = XᵀX,  A = VᵀCV,  B = WᵀCW

X being the rows given the known, so 1 says that both halves show the same, however rotated, and it costs no pass over
the rows. Angles between V and W themselves would call two views different that differ only along columns which repeat
each other.

Chance is the agreement of two random planes of the same columns: k/d where columns share nothing, more where they do.
A half shares no row with the other, so nothing of what both show is there because the same rows were seen twice.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from imapce.common.arrays import Array, Mask
from imapce.common.checks import random_generator, require_count
from imapce.common.work import quiet_about_convergence, threads_for
from imapce.errors import InvalidValueError
from imapce.estimators.base import open_for, read_rows
from imapce.estimators.given import ExplainedRows
from imapce.priors.base import Prior, without_rows
from imapce.priors.kinds import as_list
from imapce.priors.names import with_names_read
from imapce.priors.problem import Problem
from imapce.rows.base import Rows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.search.descent import random_frames, transpose
from imapce.search.objective import stacked_product
from imapce.tables.reader import Reader

CHANCE_DRAWS = 100
FLAT = 1e-12


def agreement(V: Array, W: Array, second_moment: QuadraticForm) -> float:
    """The mean squared canonical correlation of the views with axes V and W (d, k); not orthonormal they may be.

    >>> C = QuadraticForm.of_matrix(np.diag([4.0, 1.0, 1.0]))
    >>> axes = np.eye(3)
    >>> agreement(axes[:, :2], 3 * axes[:, :2], C), agreement(axes[:, :2], axes[:, 1:], C)
    (1.0, 0.5)
    """
    both = np.column_stack([V, W])
    return _shared(both.T @ (second_moment @ both))


def agreement_by_chance(X: StandardizedRows, n_components: int) -> float:
    """What two random views of the columns that vary agree in, on average over a fixed draw.

    >>> from imapce.rows.dense import DenseRows
    >>> rows = np.random.default_rng(0).normal(size=(500, 10))
    >>> round(agreement_by_chance(StandardizedRows(DenseRows(rows)), 2), 1)
    0.2
    """
    drawn = random_frames(2 * CHANCE_DRAWS, X.n_features, n_components, np.random.default_rng(0), X.informative)
    pairs = np.concatenate([drawn[:CHANCE_DRAWS], drawn[CHANCE_DRAWS:]], axis=2)
    moments = np.matmul(transpose(pairs), stacked_product(X.second_moment, pairs))
    return float(np.mean([_shared(moment) for moment in moments]))


def agreement_of_halves(
    X: StandardizedRows, axes_without: Callable[[Mask, int], Array], *, n_splits: int, seed: int
) -> float:
    """The mean agreement of the two halves of `n_splits` random splits.

    `axes_without(mask, seed)` are the axes (d, k), for standardised columns of X, of a fit that has never seen the rows
    of the table in `mask`; its length is that of X's rows.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_splits):
        first = np.zeros(X.n_rows, dtype=bool)
        first[rng.permutation(X.n_rows)[: X.n_rows // 2]] = True
        V, W = (axes_without(half, int(rng.integers(2**31))) for half in (first, ~first))
        found.append(agreement(V, W, X.second_moment))
    return float(np.mean(found))


def _shared(moment: Array) -> float:
    """The mean of ρ² from the second moment (2k, 2k) of two views side by side."""
    k = len(moment) // 2
    half_V, half_W = _inverse_root(moment[:k, :k]), _inverse_root(moment[k:, k:])
    return float(np.sum((half_V.T @ moment[:k, k:] @ half_W) ** 2) / k)


def _inverse_root(moment: Array) -> Array:
    """L (k, r) with LᵀML = I on the directions in which M varies."""
    values, vectors = np.linalg.eigh(moment)
    varying = values > FLAT * max(float(values[-1]), 0.0)
    return vectors[:, varying] / np.sqrt(values[varying])


class HalvedFits(ExplainedRows):
    """A view that can be set beside those of halves of its rows."""

    components_: Array

    @abstractmethod
    def pose(self, rows: Rows, priors: list[Prior], reader: Reader) -> Problem:
        """The problem of some rows."""

    @abstractmethod
    def solve(self, problem: Problem) -> None:
        """Fit to a problem."""

    def stability(self, X: Any, *, prior: Any = None, n_splits: int = 3) -> dict[str, float]:
        """How well views found in two halves of the rows agree, and what two random views would: "score" and "chance".

        The score is the mean squared canonical correlation of the two views, 1 where both halves show the same, over
        `n_splits` random splits. X and the prior are those of `fit`; every half is fitted with this model's parameters
        on its own: two fits of half the rows for each split.

        >>> from imapce import IMAPCE
        >>> X = np.random.default_rng(0).normal(size=(200, 6))
        >>> model = IMAPCE(random_state=0).fit(X)
        >>> noise = model.stability(X)
        >>> X[:, :2] += 6 * (np.arange(200) % 2)[:, None] * [1, -1] + 6 * (np.arange(200) % 3 == 0)[:, None]
        >>> noise["score"] < 0.8, model.stability(X)["score"] > 0.9
        (True, True)
        """
        check_is_fitted(self)
        require_count("n_splits", n_splits)
        matrix, priors = read_rows(self, X), as_list(with_names_read(prior, X))
        if (fewest := 2 * (self.n_components + 1)) > matrix.shape[0]:
            raise InvalidValueError(f"X must have at least {fewest} rows to be halved; got {matrix.shape[0]}.")
        rows = open_for(self, matrix)
        whole = self._given_rows(self.pose(rows, priors, self.reader_))

        def axes_without(left_out: Mask, seed: int) -> Array:
            other = clone(self).set_params(random_state=seed % 2**32, verbose=False)
            with quiet_about_convergence():
                other.solve(other.pose(rows.without(left_out), without_rows(priors, left_out), self.reader_))
            # From the half's units to those of all rows; what is constant there has no part in its view.
            units = np.divide(whole.scale, other.scale_, out=np.zeros_like(other.scale_), where=other.scale_ > 0)
            return (other.components_ * units).T

        with threads_for(rows.n_rows, rows.n_features):
            seed = int(random_generator(self.random_state).randint(2**31 - 1))
            score = agreement_of_halves(whole, axes_without, n_splits=n_splits, seed=seed)
            return {"score": score, "chance": agreement_by_chance(whole, self.n_components)}

    def _given_rows(self, problem: Problem) -> StandardizedRows:
        """X°, as the fitted effect leaves it."""
        if problem.with_known is None or self.effect_ is None:
            return problem.X
        return problem.with_known.given(problem.with_known.whole(self.effect_).weights)[0]
