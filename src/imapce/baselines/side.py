"""SIDE: the linear view in which the data differ most from what is known about them (Puolamäki et al. 2020).

What is known is a background distribution of the rows (`side_background`). Whitened by it, rows that held no surprise
would be N(0, I) noise; the view takes the directions in which they are not, by variance (PCA) or by shape (ICA).
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from imapce.baselines.side_background import FLOOR, Background, principal_axes
from imapce.common.arrays import Array, Mask, require_in_memory
from imapce.common.checks import random_generator, require_number, require_truth, require_verbose
from imapce.common.progress import watching
from imapce.common.work import Tell, threads_for
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.base import LinearView, check_common, data_of, keep_view, learn, read_rows
from imapce.priors.kinds import as_list, is_prior, prior_codes
from imapce.priors.names import named_columns
from imapce.priors.problem import require_shape
from imapce.rows.open import open_rows

# E log cosh of a standard normal variable, the score of pure noise.
NORMAL_LOG_COSH = 0.3745672075
# Directions along which more than this share of the rows is known not to vary are left out of the view.
MOST_FLOORED = 0.5
# The least cosine between a view and the next iteration's: Gaussian directions drag on the others, so that a plane of
# three clear clusters among six of noise keeps jittering at .95 to .999, for 2,000 iterations as for 200.
AT_REST = 0.9


class SIDE(LinearView):
    """The view in which the rows surprise most, given the clusters that are known.

    Every row i has a background N(μᵢ, Σᵢ): the distribution closest to N(0, I) that agrees with what is known (the
    mean and variance of each column, the mean and covariance of each known cluster). Views are chosen on the whitened
    rows yᵢ = Σᵢ^(−1/2)(xᵢ − μᵢ); shown is X w, in the same axes.

    - "pca": eigenvectors w of cov(Y) by falling (s − log s − 1)/2, the KL of N(0, s) from N(0, 1), so a variance s far
      below 1 counts like one far above. Where classes are known for all rows, cov(Y) = I and PCA has nothing to show.
    - "ica": FastICA directions of Y (log cosh), by falling |E log cosh(u) − 0.3746|, u the standardised projection; a
      positive score means flat or split in clusters, a negative one heavy tails. The axes are not orthogonal.
    - "auto": "pca" if each of its axes has a variance outside (1 ± √(d/n))², where noise lies; else "ica".

    A direction along which a known cluster does not vary (the label column itself) tells nothing once whitened: those
    in which more than half of the rows are so fixed are left out (were too few left, the least fixed ones are taken).

    Parameters
    ----------
    n_components : axes of the view.
    view : "ica", "pca" or "auto".
    margins : the mean and variance of each column are known from the start. With False and no prior nothing is known,
        and the view is that of PCA or FastICA on the standardised data (PCA ordered by score, not by variance).
    max_sweeps, tol : when the iteration for the background ends. Label priors need none, nor do disjoint subsets with
        margins=False; a Subset with margins does, which is slow beyond a hundred columns.
    n_restarts : runs of FastICA from random starts; the one whose last axis shown has the largest |score| is kept.
    max_ica_dimensions : FastICA sees at most this many directions, those of most variance in X.
    standardize, missing, random_state : as in `IMAPCE`.
    verbose : True shows a bar; a function is called with words and the share of the most sweeps that is done, and may
        raise to cancel.

    Attributes
    ----------
    components_ (k, d) unit vectors w, background_, view_ ("pca" or "ica"), scores_ (k,), n_iter_ (sweeps, 0 where the
    background has a closed form), residual_ (how far the background is from what it should know).

    Examples
    --------
    >>> from imapce.baselines import SIDE
    >>> X, labels = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    >>> view = SIDE(random_state=0).fit_transform(X, prior=labels)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        view: Literal["ica", "pca", "auto"] = "ica",
        margins: bool = True,
        max_sweeps: int = 1000,
        tol: float = 1e-6,
        n_restarts: int = 3,
        max_ica_dimensions: int = 50,
        standardize: bool = True,
        missing: Literal["error", "mean"] = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | Tell = False,
    ):
        self.n_components = n_components
        self.view = view
        self.margins = margins
        self.max_sweeps = max_sweeps
        self.tol = tol
        self.n_restarts = n_restarts
        self.max_ica_dimensions = max_ica_dimensions
        self.standardize = standardize
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: Any, prior: Any) -> Any:
        """As every linear view, but on the rows themselves and with an array of labels for a prior as well."""
        self.check_parameters()
        generator = random_generator(self.random_state)
        require_in_memory(X, "SIDE")
        matrix = learn(self, X, named=named_columns(prior) if is_prior(prior) else ())
        if sparse.issparse(matrix):
            raise InvalidTypeError(
                "X must be dense, since SIDE whitens every row; a sparse matrix is not supported, use X.toarray() if "
                "it fits into memory."
            )
        require_shape(matrix.shape, self.n_components)
        clusters = self._clusters(prior, X, matrix)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = open_rows(matrix, engine="dense")
        Xs = data_of(self, rows)
        self.mean_, self.scale_ = Xs.mean, Xs.scale
        # Without standardisation the start is N(0, σ̄²I), σ̄² the mean variance: the unit of measurement says nothing.
        self._unit = 1.0 if self.standardize else float(np.sqrt(Xs.variance[Xs.informative].mean()))
        Z = self._varying(matrix)
        with threads_for(*matrix.shape):
            self.background_ = self._background(Z, clusters)
            self.residual_, self.n_iter_ = self.background_.residual, self.background_.n_sweeps
            axes = self._axes(Z, generator)
        components = np.zeros((self.n_components, Xs.n_features))
        components[:, Xs.informative] = axes.T
        keep_view(self, components, Xs)
        return matrix

    def _clusters(self, prior: Any, X: Any, matrix: Array) -> list[Mask]:
        """The rows of each known cluster: the classes of the labels, then each Subset as it is."""
        subsets: list[Mask] = []
        if is_prior(prior):
            given = as_list(prior)
            for known in given:
                if known.names_rows:
                    known.require_same_index(X)
                    subsets.append(known.row_mask(len(matrix)))
            prior = [known for known in given if not known.names_rows]
            if not prior:
                return subsets
        codes = prior_codes(prior, X, matrix, reader=self.reader_)
        return [codes == code for code in range(codes.max() + 1)] + subsets

    def _varying(self, matrix: Any) -> Array:
        """The standardised rows without the columns that are constant."""
        varying = self.scale_ > 0
        scale = self.scale_[varying] * self._unit
        return (np.asarray(matrix[:, varying], dtype=np.float64) - self.mean_[varying]) / scale

    def _background(self, Z: Array, clusters: list[Mask]) -> Background:
        """What is expected of the rows before looking: the distribution of most entropy with the moments of the columns
        (where `margins` are known) and of the known clusters.
        """
        background = Background(Z)
        if self.margins:
            background.margin()
        for rows in clusters:
            background.cluster(rows)
        with watching(self.verbose, of="of the sweeps") as watch:

            def tell(sweep: int, residual: float) -> None:
                words = f"sweep {sweep} of at most {self.max_sweeps}, residual {residual:.3g}"
                watch.tell(words, sweep / self.max_sweeps)

            return background.fit(max_sweeps=self.max_sweeps, tol=self.tol, callback=tell)

    # --- the choice of axes --------------------------------------------------------------------------------------

    def _axes(self, Z: Array, generator: np.random.RandomState) -> Array:
        """The axes of the view (d, k) among the varying columns; also `view_` and `scores_`."""
        k = self.n_components
        Y = self.background_.whiten(Z)
        free = self._free_directions()
        variances, vectors = eigh(np.cov((Y @ free).T, ddof=1).reshape(free.shape[1], -1))
        # Below this the rows do not vary at all (categories add up to 1): rounding would get the largest score.
        present = variances > FLOOR * variances.mean()
        if present.sum() < k:
            raise InvalidValueError(
                f"X must vary in at least n_components={k} directions beyond what is known; got {int(present.sum())}. "
                "Lower n_components or leave out a prior."
            )
        directions, variances = free @ vectors[:, present], variances[present]
        scores = kl_scores(variances)
        order = np.argsort(-scores, kind="stable")
        spread = np.sqrt(Y.shape[1] / len(Y))
        surprising = (variances > (1 + spread) ** 2) | (variances < max(0.0, 1 - spread) ** 2)
        self.view_ = self.view if self.view != "auto" else "pca" if surprising[order[:k]].all() else "ica"
        if self.view_ == "pca":
            self.scores_ = scores[order[:k]]
            # Known variances are those with divisor n: cov(Y) is n/(n − 1)·I then, and its score is 1/(4n²).
            if self.scores_[0] < len(Y) ** -2.0:
                warnings.warn(
                    "all variances are known, so the PCA view has nothing to show and its axes are arbitrary; use "
                    'view="ica".',
                    UserWarning,
                    stacklevel=4,
                )
            return signed(directions[:, order[:k]])
        directions = leading_directions(directions, Z, max(k, self.max_ica_dimensions))
        axes, self.scores_ = self._best_run(Y @ directions, generator)
        return signed(unit_columns(directions @ axes))

    def _free_directions(self) -> Array:
        """Directions (d, r) that are left when those fixed by the background for most rows are taken out."""
        directions, shares = self.background_.floored_shares()
        if shares[-1] == 0.0:
            return np.eye(len(shares))
        count = int((shares <= MOST_FLOORED).sum())
        return directions[:, : count if count >= self.n_components else max(self.n_components, self.max_ica_dimensions)]

    def _best_run(self, Y: Array, generator: np.random.RandomState) -> tuple[Array, Array]:
        """The independent axes of the run whose last axis shown has the largest |score|."""
        k = self.n_components
        best: tuple[float, bool, Array, Array] | None = None
        for _ in range(self.n_restarts):
            axes, scores, settled = independent_axes(Y, k, generator)
            if best is None or abs(scores[-1]) > best[0]:
                best = abs(float(scores[-1])), settled, axes, scores
        assert best is not None
        _, settled, axes, scores = best
        if not settled:
            warnings.warn(
                "FastICA was still turning the view after 200 iterations, so it depends on random_state; raise "
                "n_restarts or lower max_ica_dimensions.",
                ConvergenceWarning,
                stacklevel=6,
            )
        return axes, scores

    def whiten(self, X: Any, groups: Any = None) -> Array:
        """The whitened rows Y (n, d), zero in constant columns; `whiten(X) @ components_.T` is Y in the view.

        `groups` says which group of `background_` each row belongs to; without it X must be the rows of `fit`.
        """
        check_is_fitted(self)
        require_in_memory(X, "SIDE.whiten")
        matrix = read_rows(self, X)
        if sparse.issparse(matrix):
            matrix = matrix.toarray()
        whitened = np.zeros(matrix.shape)
        whitened[:, self.scale_ > 0] = self.background_.whiten(self._varying(matrix), groups)
        return whitened

    # --- checks --------------------------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        check_common(self, "max_sweeps", "n_restarts", "max_ica_dimensions")
        require_number("tol", self.tol)
        if self.view not in ("ica", "pca", "auto"):
            raise InvalidValueError(f'view must be "ica", "pca" or "auto"; got {self.view!r}.')
        require_truth("margins", self.margins)
        require_verbose(self.verbose)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def independent_axes(Y: Array, count: int, generator: np.random.RandomState) -> tuple[Array, Array, bool]:
    """One run of FastICA: the `count` axes (r, count) of largest |score|, the scores, whether their span is at rest.

    Y is whitened here, by the symmetric root: FastICA's own whitening takes singular vectors, which under a label prior
    (all singular values equal) are decided by rounding. And FastICA counts as converged when each of its r axes is at
    rest, which Gaussian directions, free to turn among each other, never are; hence the span shown is followed for
    one more iteration.
    """
    variances, vectors = eigh(np.cov(Y.T, ddof=0).reshape(Y.shape[1], -1))
    root = (vectors / np.sqrt(variances)) @ vectors.T
    white = (Y - Y.mean(axis=0)) @ root
    settings: dict[str, Any] = {"whiten": False, "fun": "logcosh", "tol": 1e-4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rotation = FastICA(max_iter=200, random_state=generator, **settings).fit(white).components_
        after = FastICA(max_iter=1, w_init=rotation, **settings).fit(white).components_
    scores = log_cosh_scores(white @ rotation.T)
    order = np.argsort(-np.abs(scores), kind="stable")[:count]
    cosines = np.linalg.svd(rotation[order] @ after[order].T, compute_uv=False)
    return root @ rotation[order].T, scores[order], bool(cosines.min() > AT_REST)


def unit_columns(axes: Array) -> Array:
    return axes / np.linalg.norm(axes, axis=0)


def kl_scores(variances: Array) -> Array:
    """KL(N(0, s) ‖ N(0, 1)) = (s − log s − 1)/2 for each variance s.

    >>> kl_scores(np.array([1.0]))
    array([0.])
    """
    return (variances - np.log(variances) - 1) / 2


def log_cosh_scores(sources: Array) -> Array:
    """mean log cosh(u) − E log cosh(N(0, 1)) for each column, u the column standardised."""
    u = (sources - sources.mean(axis=0)) / sources.std(axis=0)
    # log cosh u = log(eᵘ + e⁻ᵘ) − log 2: cosh itself overflows beyond 710.
    return (np.logaddexp(u, -u) - np.log(2)).mean(axis=0) - NORMAL_LOG_COSH


def leading_directions(directions: Array, Z: Array, count: int) -> Array:
    """The leading principal axes of Z within the span of `directions` (d, r), at most `count`.

    Under a label prior cov(Y) = I and its eigenvectors are decided by rounding; those of Z are not. Nor would the
    largest KL scores do: in wide data they belong to directions of almost no variance. Measured on MNIST +
    Fashion-MNIST (digit known, 50 of 775 directions, one seed), the garment by 15 neighbours in X w, chance .5: .66
    this way, .53 by score.
    """
    return signed(directions @ principal_axes(Z @ directions)[:, :count])


def signed(axes: Array) -> Array:
    """Each column with a mean that is not negative; where the mean is 0, with its strongest loading positive."""
    total = axes.sum(axis=0)
    strongest = axes[np.argmax(np.abs(axes), axis=0), np.arange(axes.shape[1])]
    return axes * np.where(np.where(np.abs(total) > 1e-9, total, strongest) < 0, -1.0, 1.0)
