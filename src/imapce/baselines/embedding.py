"""Maps without a formula for new rows: what ct-SNE, Fair-NeRV, t-SNE and UMAP share, and the last two, which are told
nothing of what is known: thin entries to openTSNE and umap-learn.

>>> TSNE(perplexity=50), UMAP(n_neighbors=5)
(TSNE(perplexity=50), UMAP(n_neighbors=5))
"""

from __future__ import annotations

import itertools
import warnings
from abc import abstractmethod
from typing import Any, Literal

import numpy as np
from scipy import sparse

from imapce.common.arrays import Array, Codes, require_in_memory
from imapce.common.checks import as_codes, random_generator, require_count, require_number
from imapce.common.progress import watching
from imapce.common.work import Tell, Watch
from imapce.errors import InvalidTypeError, InvalidValueError, needs
from imapce.estimators.base import TableEstimator, check_common, learn
from imapce.priors.kinds import as_list, is_prior, prior_codes
from imapce.priors.names import named_columns
from imapce.rows.standardized import column_scales


class Embedding(TableEstimator):
    """A map of the rows at hand; a subclass lays them out in `_layout` and new rows cannot be placed.

    `standardize`, `missing` and `random_state` are as in every view here; `CTSNE`, `TSNE` and `FairNeRV` are such maps.
    """

    verbose: bool | Tell

    @abstractmethod
    def _layout(self, X: Array, labels: Codes, generator: np.random.RandomState, watch: Watch) -> Array:
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
        matrix = learn(self, X, named=named_columns(prior) if is_prior(prior) else ())
        if sparse.issparse(matrix):
            raise InvalidTypeError(
                f"X must be dense, not sparse, for {type(self).__name__}, which works on distances; use X.toarray() "
                "where it fits into memory."
            )
        matrix = np.asarray(matrix, dtype=np.float64)
        labels = self._labels(prior, X, matrix)
        self.mean_ = matrix.mean(axis=0)
        with watching(self.verbose, of="of the iterations") as watch:
            embedding = self._layout(self._scaled(matrix), labels, generator, watch)
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


# Up to here the nearest rows are found exactly, as for ct-SNE, so that maps differ by the method alone.
MOST_EXACT_NEIGHBOURS = 10_000
TOLD_EVERY = 50


def tell_iteration(watch: Watch, iteration: int, n_iterations: int, cost: float | None = None) -> None:
    """Tell where a map stands.

    >>> tell_iteration(Watch(progress=lambda words, share: print(words, share)), 50, 200, 1.25)
    iteration 50 of 200, cost 1.25 0.25
    """
    after = "" if cost is None else f", cost {cost:.6g}"
    watch.tell(f"iteration {iteration} of {n_iterations}{after}", iteration / n_iterations)


class _Plain(Embedding):
    """A map that cannot use what is known; a prior is held to the rules of every method and then left alone."""

    def _labels(self, prior: Any, X: Any, matrix: Array) -> Codes:
        if not is_prior(prior):
            as_codes("prior", prior, len(matrix))
        for known in as_list(prior) if is_prior(prior) else []:
            known.check(self.reader_, len(matrix))
        return np.zeros(len(matrix), dtype=np.intp)


class PerplexityMap(Embedding):
    """t-SNE in any of its forms: neighbours by perplexity, and a descent that begins with P exaggerated.

    `TSNE`, `CTSNE` and `RevisedCTSNE` are such maps.
    """

    perplexity: float
    n_pca: int | None
    n_iter: int
    early_exaggeration: float
    exaggeration_iter: int

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        check_common(self, "n_iter")
        if self.n_components > 2:
            raise InvalidValueError(
                f"n_components must be 1 or 2 for {type(self).__name__}, whose sums are made for maps; got "
                f"{self.n_components}."
            )
        for name in ("perplexity", "early_exaggeration"):
            require_number(name, getattr(self, name))
            if getattr(self, name) < 1:
                raise InvalidValueError(f"{name} must be at least 1; got {getattr(self, name)!r}.")
        if self.exaggeration_iter != 0:
            require_count("exaggeration_iter", self.exaggeration_iter)
        if self.n_pca is not None:
            require_count("n_pca", self.n_pca)


class TSNE(_Plain, PerplexityMap):
    """t-SNE through openTSNE: minimises KL(P‖Q), qᵢⱼ ∝ 1/(1 + |yᵢ − yⱼ|²), whatever the prior.

    Parameters
    ----------
    n_components : 2, or 1.
    perplexity, n_pca, n_iter, early_exaggeration, exaggeration_iter : as in CTSNE.
    n_jobs : threads of openTSNE; they spin while they wait, so more than one pays on an idle machine only.
    standardize, missing, random_state, verbose : as in CTSNE; progress is told every 50 iterations.

    Fitted: `embedding_`, `kl_divergence_`, `n_iter_`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 4))
    >>> TSNE(perplexity=5, n_iter=50, random_state=0).fit_transform(X).shape
    (40, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        n_pca: int | None = 50,
        n_iter: int = 1000,
        early_exaggeration: float = 12.0,
        exaggeration_iter: int = 250,
        n_jobs: int = 1,
        standardize: bool = True,
        missing: Literal["error", "mean"] = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | Tell = False,
    ):
        self.n_components = n_components
        self.perplexity = perplexity
        self.n_pca = n_pca
        self.n_iter = n_iter
        self.early_exaggeration = early_exaggeration
        self.exaggeration_iter = exaggeration_iter
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _layout(self, X: Array, labels: Codes, generator: np.random.RandomState, watch: Watch) -> Array:
        with needs("t-SNE", "imapce[baselines]"):
            import openTSNE

            from imapce.baselines.tsne_affinities import principal_axes, usable_perplexity
            from imapce.baselines.tsne_descent import starting_map
        exaggerated = min(self.exaggeration_iter, self.n_iter)
        calls = itertools.count(1)

        def tell(iteration: int, cost: float, embedding: Array) -> None:
            # openTSNE counts anew in each of its two phases.
            before = exaggerated if next(calls) > exaggerated // TOLD_EVERY else 0
            tell_iteration(watch, before + iteration, self.n_iter, float(cost))

        method = openTSNE.TSNE(
            n_components=self.n_components,
            perplexity=usable_perplexity(self.perplexity, len(X)),
            early_exaggeration=self.early_exaggeration,
            early_exaggeration_iter=exaggerated,
            n_iter=self.n_iter - exaggerated,
            neighbors="exact" if len(X) <= MOST_EXACT_NEIGHBOURS else "auto",
            callbacks=tell if self.verbose else None,
            callbacks_every_iters=TOLD_EVERY,
            n_jobs=self.n_jobs,
            random_state=generator,
        )
        start = starting_map(X, self.n_components, "pca", generator)
        embedding = method.fit(principal_axes(X, self.n_pca), initialization=start)
        self.kl_divergence_ = float(embedding.kl_divergence)
        self.n_iter_ = self.n_iter
        return np.array(embedding, dtype=np.float64)

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        super().check_parameters()
        require_count("n_jobs", self.n_jobs)


class UMAP(_Plain):
    """UMAP through umap-learn, whatever the prior.

    Parameters
    ----------
    n_components : dimensions of the map.
    n_neighbors : neighbours of a row; lowered with a warning where X has too few rows.
    min_dist : how close rows may lie in the map, 0 to 1.
    standardize, missing, random_state : as in CTSNE.
    verbose : True lets umap-learn print its progress.

    Fitted: `embedding_`.

    Examples
    --------
    >>> method = UMAP(n_neighbors=15, random_state=0)
    >>> map = method.fit_transform(X)                         # doctest: +SKIP
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 15,
        min_dist: float = 0.1,
        standardize: bool = True,
        missing: Literal["error", "mean"] = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ):
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.min_dist = min_dist
        self.standardize = standardize
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _layout(self, X: Array, labels: Codes, generator: np.random.RandomState, watch: Watch) -> Array:
        fewest = self.n_components + 3
        if len(X) < fewest:
            raise InvalidValueError(f"X must have at least {fewest} rows for UMAP; got {len(X)} sample(s).")
        if self.n_neighbors >= len(X):
            warnings.warn(
                f"n_neighbors={self.n_neighbors} needs more rows than the {len(X)} of X; {len(X) - 1} is used.",
                UserWarning,
                stacklevel=2,
            )
        with needs("UMAP", "umap-learn"), warnings.catch_warnings():
            # On import it tells that TensorFlow is not there, which only its parametric variant needs.
            warnings.simplefilter("ignore")
            import umap
        method = umap.UMAP(
            n_components=self.n_components,
            n_neighbors=min(self.n_neighbors, len(X) - 1),
            min_dist=self.min_dist,
            n_jobs=1,
            random_state=int(generator.randint(2**31 - 1)),
            verbose=bool(self.verbose),
        )
        return np.asarray(method.fit_transform(X), dtype=np.float64)

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        check_common(self, "n_neighbors")
        if self.n_neighbors < 2:
            raise InvalidValueError(f"n_neighbors must be at least 2; got {self.n_neighbors}.")
        require_number("min_dist", self.min_dist)
        if self.min_dist > 1:
            raise InvalidValueError(f"min_dist must be from 0 to 1; got {self.min_dist!r}.")
