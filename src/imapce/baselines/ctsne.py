"""Conditional t-SNE: maps that show what is left once the classes of the rows are known.

Two methods with one aim. `CTSNE` (Kang et al. 2019) lets classes overlap: pairs of different classes repel each other
less. `RevisedCTSNE` (Heiter et al. 2023) pulls them together: each row has neighbours in other classes, and those weigh
more. Where classes lie far apart no edge of the first joins them, so their maps float over each other unaligned.

>>> X = np.random.default_rng(0).normal(size=(40, 4))
>>> CTSNE(beta=1e-3, perplexity=5, n_iter=50, random_state=0).fit_transform(X, prior=np.arange(40) % 2).shape
(40, 2)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np
from scipy import sparse

from imapce.baselines.embedding import PerplexityMap
from imapce.baselines.tsne_affinities import conditional_affinities, gaussian_affinities, principal_axes
from imapce.baselines.tsne_descent import Summation, layout, starting_map
from imapce.common.arrays import Array, Codes
from imapce.common.checks import require_choice, require_number, require_truth
from imapce.common.work import Tell, Watch
from imapce.errors import InvalidValueError

# Full rows have n² entries: 3,000 rows give a P of 100 MB.
MOST_FULL_ROWS = 3_000


class _ConditionalTSNE(PerplexityMap):
    """What both share: a P from the rows, a start, the descent and its parameters."""

    theta: float
    method: Summation
    learning_rate: float | Literal["auto"]
    initialization: Literal["pca", "random"]

    @abstractmethod
    def _affinities(self, X: Array, labels: Codes) -> sparse.csr_matrix:
        """P (n, n), symmetric with sum 1."""

    @abstractmethod
    def _repulsion(self) -> float:
        """β′ of the low-dimensional side; 1 is t-SNE."""

    def _layout(self, X: Array, labels: Codes, generator: np.random.RandomState, watch: Watch) -> Array:
        start = starting_map(X, self.n_components, self.initialization, generator)
        embedding, self.kl_divergence_ = layout(
            self._affinities(principal_axes(X, self.n_pca), labels),
            start,
            labels=labels,
            beta=self._repulsion(),
            method=self.method,
            theta=self.theta,
            n_iter=self.n_iter,
            early_exaggeration=self.early_exaggeration,
            exaggeration_iter=self.exaggeration_iter,
            learning_rate=self.learning_rate,
            watch=watch,
        )
        self.n_iter_ = self.n_iter
        return embedding

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        super().check_parameters()
        require_number("theta", self.theta)
        require_choice("method", self.method, ("auto", "exact", "barnes_hut", "fft"))
        require_choice("initialization", self.initialization, ("pca", "random"))
        if not (isinstance(self.learning_rate, str) and self.learning_rate == "auto"):
            require_number("learning_rate", self.learning_rate)


class CTSNE(_ConditionalTSNE):
    """ct-SNE: t-SNE whose map is free to mix classes, because rows of different classes hardly repel each other.

    Minimises KL(P‖R), rᵢⱼ ∝ wᵢⱼ/(1 + |yᵢ − yⱼ|²), w = β′ for rows of different classes and α′ for rows of one, with
    α′ρ + β′(1 − ρ) = 1 and ρ the share of pairs of one class. The classes count at every `theta` and in every `method`.

    Parameters
    ----------
    n_components : 2, or 1.
    perplexity : effective number of neighbours of a row; lowered with a warning where X has too few rows.
    beta : β′ in (0, 1], the repulsion between classes; 1 is t-SNE, the paper searched 1e-2 to 1e-7.
    n_pca : principal axes in which neighbours are looked for; None for all columns.
    method : how repulsion is summed. "exact": over all pairs, and with P over all pairs up to 3,000 rows; "barnes_hut":
        trees with accuracy `theta`; "fft": a grid; "auto": over all pairs up to 20,000 rows, a grid above, P over
        ⌊3·perplexity⌋ neighbours. Classes of up to 5,000 rows are summed over all pairs in every method.
    theta : side of a cell over its distance below which a tree takes it for one point; used by "barnes_hut" alone.
    n_iter : iterations, of which the first `exaggeration_iter` multiply P by `early_exaggeration`.
    learning_rate : a number or "auto", max(200, n/12).
    initialization : "pca" or "random".
    standardize, missing : as in IMAPCE.
    random_state : seed of the start.
    verbose : True shows a bar; a function is called with words and the share that is done, and may raise to cancel.

    Fitted: `embedding_`, `kl_divergence_` (KL(P‖R), constants included), `n_iter_`.

    Examples
    --------
    >>> from imapce import Attributes
    >>> from imapce.baselines import CTSNE
    >>> X = np.column_stack([np.arange(40) % 2, np.random.default_rng(0).normal(size=(40, 4))])
    >>> CTSNE(beta=1e-3, perplexity=5, n_iter=50, random_state=0).fit_transform(X, prior=Attributes([0])).shape
    (40, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        beta: float = 1e-2,
        n_pca: int | None = 50,
        theta: float = 0.5,
        method: Summation = "auto",
        n_iter: int = 1000,
        early_exaggeration: float = 12.0,
        exaggeration_iter: int = 250,
        learning_rate: float | Literal["auto"] = "auto",
        initialization: Literal["pca", "random"] = "pca",
        standardize: bool = True,
        missing: Literal["error", "mean"] = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | Tell = False,
    ):
        self.n_components = n_components
        self.perplexity = perplexity
        self.beta = beta
        self.n_pca = n_pca
        self.theta = theta
        self.method = method
        self.n_iter = n_iter
        self.early_exaggeration = early_exaggeration
        self.exaggeration_iter = exaggeration_iter
        self.learning_rate = learning_rate
        self.initialization = initialization
        self.standardize = standardize
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _affinities(self, X: Array, labels: Codes) -> sparse.csr_matrix:
        all_points = self.method == "exact" and len(X) <= MOST_FULL_ROWS
        return gaussian_affinities(X, self.perplexity, all_points=all_points)

    def _repulsion(self) -> float:
        return float(self.beta)

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        super().check_parameters()
        _require_share("beta", self.beta)


class RevisedCTSNE(_ConditionalTSNE):
    """Revised ct-SNE: t-SNE on affinities that prefer neighbours from other classes.

    Half of a row's ⌊3·perplexity⌋ neighbours are of its own class, half of others; p_{j|i} is multiplied by α′ for the
    first and by β′ = (1 − α′ρ)/(1 − ρ) for the second. A class too small for its half is made up for by the others.

    Parameters
    ----------
    alpha : α′ in (0, 1], the weight of neighbours of one's own class; 1 keeps both halves as they are. Classes far
        apart need a tiny one: on the synthetic set (ceiling 0.48, perplexity 50) NLS is 0.06 at 1e-3, 0.31 at
        1e-5, 0.48 at 1e-10.
    fixed_perplexity : True sets bandwidths before the weights, False with them.
    others : as in CTSNE.

    Fitted: `embedding_`, `kl_divergence_`, `n_iter_`.

    Examples
    --------
    >>> from imapce.baselines import RevisedCTSNE
    >>> X, batch = np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) % 2
    >>> RevisedCTSNE(alpha=1e-10, perplexity=5, n_iter=50, random_state=0).fit_transform(X, prior=batch).shape
    (40, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha: float = 1e-10,
        perplexity: float = 30.0,
        fixed_perplexity: bool = True,
        n_pca: int | None = 50,
        theta: float = 0.5,
        method: Summation = "auto",
        n_iter: int = 750,
        early_exaggeration: float = 12.0,
        exaggeration_iter: int = 250,
        learning_rate: float | Literal["auto"] = "auto",
        initialization: Literal["pca", "random"] = "pca",
        standardize: bool = True,
        missing: Literal["error", "mean"] = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | Tell = False,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.perplexity = perplexity
        self.fixed_perplexity = fixed_perplexity
        self.n_pca = n_pca
        self.theta = theta
        self.method = method
        self.n_iter = n_iter
        self.early_exaggeration = early_exaggeration
        self.exaggeration_iter = exaggeration_iter
        self.learning_rate = learning_rate
        self.initialization = initialization
        self.standardize = standardize
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _affinities(self, X: Array, labels: Codes) -> sparse.csr_matrix:
        return conditional_affinities(
            X, self.perplexity, labels, float(self.alpha), fixed_perplexity=self.fixed_perplexity
        )

    def _repulsion(self) -> float:
        return 1.0

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        super().check_parameters()
        _require_share("alpha", self.alpha)
        require_truth("fixed_perplexity", self.fixed_perplexity)


def _require_share(name: str, value: Any) -> None:
    require_number(name, value)
    if not 0 < value <= 1:
        raise InvalidValueError(f"{name} must be above 0 and at most 1 (1 ignores the classes); got {value!r}.")
