"""t-SNE and UMAP as they are: what a map shows when nothing is known. Thin entries to openTSNE and umap-learn.

>>> TSNE(perplexity=50), UMAP(n_neighbors=5)
(TSNE(perplexity=50), UMAP(n_neighbors=5))
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from imapce.baselines.embedding import Embedding, MapProgress
from imapce.common.arrays import Array, Codes
from imapce.common.checks import as_codes, require_count, require_number
from imapce.errors import InvalidValueError, needs
from imapce.priors.kinds import as_list, is_prior

# Up to here the nearest rows are found exactly, as for ct-SNE, so that maps differ by the method alone.
MOST_EXACT_NEIGHBOURS = 10_000
TOLD_EVERY = 50


class _Plain(Embedding):
    """A map that cannot use what is known; a prior is held to the rules of every method and then left alone."""

    def _labels(self, prior: Any, X: Any, matrix: Array) -> Codes:
        if not is_prior(prior):
            as_codes("prior", prior, len(matrix))
        for known in as_list(prior) if is_prior(prior) else []:
            known.check(self.reader_, len(matrix))
        return np.zeros(len(matrix), dtype=np.intp)


class TSNE(_Plain):
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
        verbose: bool | Callable[[MapProgress], None] = False,
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

    def _layout(self, X: Array, labels: Codes, generator: np.random.RandomState) -> Array:
        with needs("t-SNE", "imapce[baselines]"):
            import openTSNE

            from imapce.baselines.tsne_affinities import principal_axes, usable_perplexity
            from imapce.baselines.tsne_descent import starting_map
        exaggerated = min(self.exaggeration_iter, self.n_iter)
        calls = itertools.count(1)

        def tell(iteration: int, cost: float, embedding: Array) -> None:
            # openTSNE counts anew in each of its two phases.
            before = exaggerated if next(calls) > exaggerated // TOLD_EVERY else 0
            self._report(MapProgress(before + iteration, self.n_iter, float(cost)))

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
        self._check_common("n_iter", "n_jobs")
        if self.n_components > 2:
            raise InvalidValueError(f"n_components must be 1 or 2 for TSNE; got {self.n_components}.")
        for name in ("perplexity", "early_exaggeration"):
            require_number(name, getattr(self, name))
            if getattr(self, name) < 1:
                raise InvalidValueError(f"{name} must be at least 1; got {getattr(self, name)!r}.")
        if self.exaggeration_iter != 0:
            require_count("exaggeration_iter", self.exaggeration_iter)
        if self.n_pca is not None:
            require_count("n_pca", self.n_pca)


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

    def _layout(self, X: Array, labels: Codes, generator: np.random.RandomState) -> Array:
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
        self._check_common("n_neighbors")
        if self.n_neighbors < 2:
            raise InvalidValueError(f"n_neighbors must be at least 2; got {self.n_neighbors}.")
        require_number("min_dist", self.min_dist)
        if self.min_dist > 1:
            raise InvalidValueError(f"min_dist must be from 0 to 1; got {self.min_dist!r}.")
