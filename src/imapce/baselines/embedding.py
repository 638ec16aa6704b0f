"""What the maps without a formula for new rows share (ct-SNE, Fair-NeRV, t-SNE, UMAP)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from imapce.common.arrays import Array, Codes
from imapce.common.checks import random_generator
from imapce.common.dask_arrays import require_in_memory
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.base import TableEstimator
from imapce.priors.kinds import prior_codes
from imapce.rows.standardized import column_scales


@dataclass(frozen=True)
class MapProgress:
    """Where an iterative map stands: the iteration done, how many there are, the cost where it was computed."""

    iteration: int
    n_iterations: int
    cost: float | None = None


class Embedding(TableEstimator):
    """A map of the rows at hand; a subclass lays them out in `_layout` and new rows cannot be placed.

    `standardize`, `missing` and `random_state` are as in every view here; `CTSNE`, `TSNE` and `FairNeRV` are such maps.
    """

    verbose: bool | Callable[[MapProgress], None]

    @abstractmethod
    def _layout(self, X: Array, labels: Codes, generator: np.random.RandomState) -> Array:
        """The map of the standardised rows X (n, d), given their classes 0..L−1 (all 0 when nothing is known)."""

    def fit_transform(self, X: Any, y: Any = None, *, prior: Any = None) -> Array:
        """The map of the rows of `X`.

        `prior` is None, an array with a class for each row, Attributes(columns) whose values are the classes,
        Subset(rows), or a list of the last two. X is never changed; a fit that is refused or cancelled leaves the
        estimator as it was.
        """
        return self.fit(X, y, prior=prior).embedding_

    def _fit(self, X: Any, prior: Any) -> Any:
        self.check_parameters()
        generator = random_generator(self.random_state)
        require_in_memory(X, type(self).__name__)
        matrix = self._learn(X)
        if sparse.issparse(matrix):
            raise InvalidTypeError(
                f"X must be dense, not sparse, for {type(self).__name__}, which works on distances; use X.toarray() "
                "where it fits into memory."
            )
        matrix = np.asarray(matrix, dtype=np.float64)
        labels = self._labels(prior, X, matrix)
        self.mean_ = matrix.mean(axis=0)
        embedding = self._layout(self._scaled(matrix), labels, generator)
        if not np.isfinite(embedding).all():
            raise InvalidValueError(
                f"X could not be laid out by {type(self).__name__}: coordinates grew beyond all bounds; rescale X or "
                "lower the learning rate."
            )
        self.embedding_ = embedding
        self._n_features_out = embedding.shape[1]
        return matrix

    def _labels(self, prior: Any, X: Any, matrix: Array) -> Codes:
        return prior_codes(prior, X, matrix, reader=self.reader_)

    def _scaled(self, matrix: Array) -> Array:
        """(x − mean)/σ, constant columns as zeros; a category's columns share one σ, as in every view here."""
        with np.errstate(over="ignore", invalid="ignore"):
            variance = matrix.var(axis=0)
        if not np.all(np.isfinite(variance)) or np.any(np.abs(self.mean_) > 1e75):
            raise InvalidValueError("X must have values below about 1e75, or their squares overflow; rescale X.")
        scale = column_scales(self.mean_, variance, self.reader_.groups, standardize=self.standardize)
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        return (matrix - self.mean_) * inverse

    def _report(self, progress: MapProgress) -> None:
        if callable(self.verbose):
            self.verbose(progress)
        elif self.verbose and progress.iteration % 50 == 0:
            cost = "" if progress.cost is None else f"  cost {progress.cost:.6g}"
            print(f"iteration {progress.iteration:4d} of {progress.n_iterations}{cost}")
