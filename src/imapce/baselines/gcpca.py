"""Generalised contrastive PCA: a background prior without the weight α (de Oliveira, Garg, et al. 2025).

With a = C_X and b = C_Y an axis x is judged by the ratio ρ = xᵀax / xᵀbx, not by the difference xᵀ(a − αb)x:

    v2: ρ        v3: ρ − 1        v4: (xᵀ(a−b)x)/(xᵀ(a+b)x) = (ρ−1)/(ρ+1), in [−1, 1]

All three increase with ρ, so they have the same axes in the same order; v4 stays bounded where b is singular, and it is
the one that is solved. On images b *is* singular (pixels that are constant in the background): every direction b does
not know reaches v4 = 1 and the leading axes are arbitrary. So b is replaced by b + ε(tr b/d)I.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import eigh

from imapce.baselines.cpca import entries_of
from imapce.common.arrays import Array
from imapce.common.checks import require_choice, require_flag, require_number, require_truth
from imapce.errors import InvalidValueError
from imapce.estimators.base import LinearView, check_common, keep_view, pose_for
from imapce.priors.base import Prior
from imapce.rows.base import Rows
from imapce.rows.standardized import QuadraticForm
from imapce.search.descent import with_fixed_signs

VERSIONS = ("v2", "v3", "v4", "v2.1", "v3.1", "v4.1")
# Directions with less variance than this share of the largest, in X and background together, are rounding.
NEGLIGIBLE = 1e-12
# Values within this of v4 = 1 are ties: the background does not vary there, and only xᵀax can order them.
TIED = 1e-9


class GCPCA(LinearView):
    """The axes with the largest ratio of variance in X to that in what is known: generalised eigenvectors of (a, b).

    Parameters
    ----------
    n_components : axes of the view.
    version : "v2", "v3" or "v4", which differ in the scale of `values_` alone; "v2.1" and so on are the same with
        orthogonal=True.
    orthogonal : orthonormal axes instead of uncorrelated ones of unit length: the best axis, the worst orthogonal to
        it, the best orthogonal to both and so on, of which the best ones are kept.
    shrinkage : ε of b + ε(tr b/d)I, d the columns that vary. 0.1 was best on CIFAR-100 + Fashion-MNIST, less is better
        on MNIST + Fashion-MNIST; with 0 ties are ordered by their variance in X.
    standardize, missing : as for IMAPCE.
    random_state, verbose : for the manners of the others; nothing here is random or takes long.

    Fitted: `values_`, the objective of each axis, and what every view has. Without a prior all axes tie: PCA.

    Examples
    --------
    >>> from imapce import Samples
    >>> from imapce.baselines import GCPCA
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> view = GCPCA().fit_transform(X, prior=Samples(X[:50] * [3.0, 1.0, 1.0, 1.0]))
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        version: str = "v4",
        orthogonal: bool = False,
        shrinkage: float = 0.1,
        standardize: bool = True,
        missing: Literal["error", "mean"] = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ):
        self.n_components = n_components
        self.version = version
        self.orthogonal = orthogonal
        self.shrinkage = shrinkage
        self.standardize = standardize
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _fit_rows(self, rows: Rows, priors: list[Prior]) -> None:
        problem = pose_for(self, rows, priors)
        Xs, terms = problem.X, problem.Y
        a = entries_of(self, Xs.second_moment) / (Xs.n_rows - 1)
        b = np.zeros_like(a)
        if terms.any_known:
            varies = Xs.informative.astype(np.float64)
            b = entries_of(self, QuadraticForm.combine(terms.covariances)) * np.outer(varies, varies)
            b += self.shrinkage * np.trace(b) / varies.sum() * np.diag(varies)
        N = problem.directions()
        J = N.lift(_common_range(*(entries_of(self, N.form(QuadraticForm.of_matrix(form))) for form in (a, b))))
        if J.shape[1] < self.n_components:
            raise InvalidValueError(
                f"X must vary in at least n_components={self.n_components} directions; got {J.shape[1]}, since columns "
                "repeat each other; lower n_components."
            )
        orthogonal = self.orthogonal or self.version.endswith(".1")
        axes = _alternating_axes if orthogonal else leading_ratio_axes
        V = with_fixed_signs(axes(a, b, J, self.n_components))
        self.values_ = self._values(np.einsum("dk,dk->k", V, a @ V), np.einsum("dk,dk->k", V, b @ V))
        keep_view(self, V.T.copy(), Xs)

    def _values(self, in_data: Array, in_background: Array) -> Array:
        """The objective of each axis from xᵀax and xᵀbx; ρ = ∞ where the background does not vary."""
        if self.version.startswith("v4"):
            return (in_data - in_background) / (in_data + in_background)
        none = in_background <= TIED * in_data
        ratio = np.where(none, np.inf, in_data / np.where(none, 1.0, in_background))
        return ratio if self.version.startswith("v2") else ratio - 1

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        check_common(self)
        require_choice("version", self.version, VERSIONS)
        require_truth("orthogonal", self.orthogonal)
        require_number("shrinkage", self.shrinkage)
        require_flag("verbose", self.verbose)


def _common_range(a: Array, b: Array) -> Array:
    """An orthonormal basis (d, r) of the directions in which X or the background varies."""
    values, vectors = np.linalg.eigh(a + b)
    return vectors[:, values > NEGLIGIBLE * values[-1]]


def leading_ratio_axes(a: Array, b: Array, J: Array, count: int) -> Array:
    """The `count` axes of unit length with the largest v4 inside the span of J, best first.

    >>> leading_ratio_axes(np.diag([1.0, 4.0]), np.diag([1.0, 8.0]), np.eye(2), 1).ravel().tolist()
    [1.0, 0.0]
    """
    values, vectors = _ratios(a, b, J)
    tied = values > 1 - TIED
    if tied.sum() > 1:
        # Any rotation of the tied axes is as good for the ratio; the one along the principal axes of X is meaningful.
        basis = np.linalg.qr(J @ vectors[:, tied])[0]
        V = basis @ np.linalg.eigh(basis.T @ a @ basis)[1]
        V = np.column_stack([J @ vectors[:, ~tied], V])
    else:
        V = J @ vectors
    V = V[:, ::-1][:, :count]
    return V / np.linalg.norm(V, axis=0)


def _alternating_axes(a: Array, b: Array, J: Array, count: int) -> Array:
    """Orthonormal axes: the best, then the worst and the best orthogonal to all before, ...; the best are kept."""
    best: list[Array] = []
    while len(best) < count:
        top = leading_ratio_axes(a, b, J, 1)
        best.append(top)
        J = _complement(J, top)
        if J.shape[1] > count - len(best):
            bottom = J @ _ratios(a, b, J)[1][:, :1]
            J = _complement(J, bottom / np.linalg.norm(bottom))
    return np.column_stack(best)


def _ratios(a: Array, b: Array, J: Array) -> tuple[Array, Array]:
    """v4 values (ascending) and axes in the coordinates of J: (a−b)x = θ(a+b)x."""
    return eigh(J.T @ (a - b) @ J, J.T @ (a + b) @ J)


def _complement(J: Array, x: Array) -> Array:
    """An orthonormal basis of what in the span of J is orthogonal to its member x."""
    return J @ np.linalg.qr(J.T @ x, mode="complete")[0][:, 1:]
