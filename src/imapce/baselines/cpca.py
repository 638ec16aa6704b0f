"""Contrastive PCA (Abid, Zhang, Bagaria and Zou 2018) and, with nothing to contrast, PCA.

    M(α) = C_X − α C_Y,   C_X = XᵀX/(n−1),   C_Y = Σ wⱼ YⱼᵀYⱼ/(mⱼ−1);   V(α) = its k leading eigenvectors

X and every Y are standardised on their own, and only their d×d second moments are used: no row is looked at twice, and
more than 1,000 columns need no joint PCA first. The weight α is chosen among views that differ: two weights a, b are
as alike as the product of the k cosines between the embeddings XV(a) and XV(b),

    A_ab = |det(V_aᵀ C_X V_b)| / √(det(V_aᵀ C_X V_a) · det(V_bᵀ C_X V_b)),

spectral clustering of A groups the weights, and a group is represented by its medoid.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse.linalg import ArpackError
from sklearn.cluster import SpectralClustering

from imapce.common.arrays import Array
from imapce.common.checks import random_generator, require_flag, require_number
from imapce.common.words import listed
from imapce.errors import InvalidValueError
from imapce.estimators.base import LinearView, check_common, keep_view, pose_for
from imapce.priors.base import Prior
from imapce.priors.problem import PriorTerms
from imapce.rows.base import Rows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.rows.subspace import Subspace
from imapce.search.descent import with_fixed_signs
from imapce.search.starts import leading_eigenvectors

LEAST_LOG_ALPHA = -1.0
# A d×d matrix of 512 MiB: what decomposes one whole takes minutes there and hours beyond.
MOST_COLUMNS = 8192


@dataclass(frozen=True)
class ContrastivePath:
    """The view of every weight tried: alphas (m,), components (m, k, d), eigenvalues (m, k), affinity (m, m)."""

    alphas: Array
    components: Array
    eigenvalues: Array
    affinity: Array


class CPCA(LinearView):
    """The axes with the most variance in X beyond α times that in what is known: leading eigenvectors of C_X − α C_Y.

    Parameters
    ----------
    n_components : axes of the view.
    alpha : "auto" chooses among `n_alphas` weights; a number is taken as it is (0 is PCA); "paper" is what the public
        code of the IMAPCE paper computes under the name cPCA, which is PCA.
    n_alphas, max_log_alpha : the weights tried are 0 and this many from 0.1 to 10^max_log_alpha, evenly in log α.
    n_alphas_to_return : how many weights to offer in `alphas_`; the view is that of the first (smallest) one, the
        others' axes are in `path_`.
    standardize, missing : as for IMAPCE, and so is Attributes(columns, erase=True): α weighs the other priors.
    random_state : seed of the clustering of the weights.
    verbose : True prints the weights chosen.

    Fitted: `alpha_`, `alphas_`, `path_` (a `ContrastivePath`), `eigenvalues_` and what every view has. The choice of α
    is no guarantee: on images (CIFAR-100 + Fashion-MNIST) it takes one that parts the clothes hardly at all.

    Examples
    --------
    >>> from imapce import Samples
    >>> from imapce.baselines import CPCA
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> view = CPCA(random_state=0).fit_transform(X, prior=Samples(X[:50] * [3.0, 1.0, 1.0, 1.0]))
    """

    _erases = True
    alpha: float | str
    n_alphas: int
    max_log_alpha: float
    n_alphas_to_return: int
    verbose: bool

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha: float | str = "auto",
        n_alphas: int = 40,
        max_log_alpha: float = 3,
        n_alphas_to_return: int = 1,
        standardize: bool = True,
        missing: Literal["error", "mean"] = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.n_alphas = n_alphas
        self.max_log_alpha = max_log_alpha
        self.n_alphas_to_return = n_alphas_to_return
        self.standardize = standardize
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _fit_rows(self, rows: Rows, priors: list[Prior]) -> None:
        problem = pose_for(self, rows, priors)
        Xs, terms = problem.X, problem.Y
        alphas = self._weights(terms)
        if alphas[-1] > 0:
            self._warn_of_hidden_columns(terms, Xs)
        inside = problem.directions() if self._erases else Subspace(Xs.informative)
        self.path_ = self._path(alphas, terms, Xs, inside)
        self.alphas_ = self._chosen()
        self.alpha_ = float(self.alphas_[0])
        place = int(np.flatnonzero(alphas == self.alpha_)[0])
        self.eigenvalues_ = self.path_.eigenvalues[place]
        keep_view(self, self.path_.components[place], Xs)
        if self.verbose:
            print(
                f"alpha {self.alpha_:.4g} out of {len(alphas)}; offered: {', '.join(f'{a:.4g}' for a in self.alphas_)}"
            )

    def _weights(self, terms: PriorTerms) -> Array:
        """The α to compute a view for; without a prior α has nothing to weigh."""
        if self.alpha == "paper" or not terms.any_known:
            return np.zeros(1)
        if isinstance(self.alpha, str):
            return np.concatenate([[0.0], np.logspace(LEAST_LOG_ALPHA, self.max_log_alpha, self.n_alphas)])
        return np.array([float(self.alpha)])

    def _path(self, alphas: Array, terms: PriorTerms, Xs: StandardizedRows, inside: Subspace) -> ContrastivePath:
        """V(α) and its eigenvalues for every α, and how alike the views are.

        Axes lie `inside` what varies and is not erased. Where α C_Y outweighs C_X all eigenvalues are negative but the
        zeros of columns that are constant in X: they would lead, and the view would show nothing.
        """
        C_X = QuadraticForm.combine([(1 / (Xs.n_rows - 1), Xs.second_moment)])
        frames, eigenvalues = [], []
        for alpha in alphas:
            M = QuadraticForm.combine([(1.0, C_X), *((-alpha * weight, form) for weight, form in terms.covariances)])
            try:
                values, V = leading_eigenvectors(inside.form(M), self.n_components)
            except ArpackError as error:
                raise InvalidValueError(
                    f"alpha={alpha:.4g} leaves axes too alike to be told apart in {Xs.n_features} columns ({error}); "
                    "give a smaller alpha or max_log_alpha."
                ) from error
            frames.append(with_fixed_signs(inside.lift(V)))
            eigenvalues.append(values)
        stack = np.stack(frames)
        return ContrastivePath(alphas, stack.transpose(0, 2, 1), np.stack(eigenvalues), affinity(stack, C_X))

    def _chosen(self) -> Array:
        """The weights offered: the medoids of all groups of alike views but the one of α = 0, in increasing order."""
        path, count = self.path_, self.n_alphas_to_return
        if len(path.alphas) == 1:
            return path.alphas.copy()
        if count == self.n_alphas:
            return path.alphas[1:].copy()
        seed = int(random_generator(self.random_state).randint(2**31 - 1))
        clustering = SpectralClustering(count + 1, affinity="precomputed", random_state=seed)
        with warnings.catch_warnings():
            # Views that are all the same, or unlike all others, are an answer here, not a mishap.
            warnings.simplefilter("ignore")
            groups = clustering.fit_predict(path.affinity)
        medoids = [
            members[np.argmax(path.affinity[np.ix_(members, members)].sum(axis=1))]
            for members in (np.flatnonzero(groups == group) for group in np.unique(groups) if group != groups[0])
        ]
        # All views in the group of α = 0: the known structure makes no difference.
        return np.sort(path.alphas[medoids]) if medoids else np.zeros(1)

    def _warn_of_hidden_columns(self, terms: PriorTerms, Xs: StandardizedRows) -> None:
        hidden = np.zeros(Xs.n_features, dtype=bool)
        for part in terms.parts:
            if part.is_background:
                hidden |= Xs.informative & ~part.varies
        if hidden.any():
            warnings.warn(
                f"Samples(background) is constant in {int(hidden.sum())} column(s) that vary in X "
                f"({listed(self.reader_.names, hidden, most=3)}): it holds nothing against them, and a "
                "large alpha will prefer them. Drop them if that is not meant.",
                UserWarning,
                stacklevel=5,
            )

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        check_common(self, "n_alphas", "n_alphas_to_return")
        if isinstance(self.alpha, str):
            if self.alpha not in ("auto", "paper"):
                raise InvalidValueError(f'alpha must be a number, "auto" or "paper"; got {self.alpha!r}.')
        else:
            require_number("alpha", self.alpha)
        require_number("max_log_alpha", self.max_log_alpha)
        if self.n_alphas_to_return > self.n_alphas:
            raise InvalidValueError(
                f"n_alphas_to_return must be at most n_alphas={self.n_alphas}; got {self.n_alphas_to_return}."
            )
        require_flag("verbose", self.verbose)


class PCA(CPCA):
    """The axes of most variance, read and scaled like every view here; a prior is checked and then ignored.

    >>> X = np.array([[0.0, 1.0, 5.0], [1.0, 3.0, 5.0], [2.0, 5.0, 5.0]])
    >>> PCA(1).fit(X).components_.round(3)
    array([[0.707, 0.707, 0.   ]])
    """

    _erases = False
    alpha = 0.0
    n_alphas = n_alphas_to_return = 1
    max_log_alpha = 0.0

    def __init__(
        self,
        n_components: int = 2,
        *,
        standardize: bool = True,
        missing: Literal["error", "mean"] = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ):
        self.n_components = n_components
        self.standardize = standardize
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose


def affinity(frames: Array, C: QuadraticForm) -> Array:
    """|det| of the k×k correlations between whitened views, for all pairs of `frames` (m, d, k); 1 on the diagonal.

    A view without variance is like no other.
    """
    m, d, k = frames.shape
    flat = np.ascontiguousarray(frames.transpose(1, 0, 2)).reshape(d, m * k)
    moments = (flat.T @ (C @ flat)).reshape(m, k, m, k).transpose(0, 2, 1, 3)
    values, vectors = np.linalg.eigh(moments[range(m), range(m)])
    varying = values > 1e-12 * max(float(values.max()), np.finfo(np.float64).tiny)
    root = vectors * np.where(varying, 1 / np.sqrt(np.where(varying, values, 1.0)), 0.0)[:, None, :]
    cosines = np.matmul(np.matmul(root.transpose(0, 2, 1)[:, None], moments), root[None])
    result = np.minimum(np.abs(np.linalg.det(cosines)), 1.0)
    result = (result + result.T) / 2
    np.fill_diagonal(result, 1.0)
    return result


def entries_of(view: LinearView, form: QuadraticForm) -> Array:
    """The d×d matrix itself, for methods that decompose it whole."""
    if form.matrix is not None:
        return form.matrix
    if form.size > MOST_COLUMNS:
        raise InvalidValueError(
            "X",
            f"must have at most {MOST_COLUMNS} columns for {type(view).__name__}, which decomposes a matrix of "
            f"columns by columns; got {form.size}. Reduce it first, for example with PCA.",
        )
    return form @ np.eye(form.size)
