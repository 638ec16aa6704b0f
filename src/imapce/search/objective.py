"""Equation 2 of the paper and its gradient, for R frames at once; the paper's formulas live here and only here.

    f(V) = ‖X − XVVᵀ‖² − α‖Y − YVVᵀ‖² + μ·κ(V)
         = tr M − tr(VᵀMV) + μ·κ(V),                  M = XᵀX − αYᵀY
    κ(V) = n Σ sᵢ²,   sᵢ = qᵢᵀA⁻¹qᵢ,   qᵢ = Vᵀzᵢ,      A = VᵀZᵀZV
    ∇f   = −2MV + 4μn [ Zᵀdiag(s)QA⁻¹ − ZᵀZVA⁻¹(Σ sᵢqᵢqᵢᵀ)A⁻¹ ]

A needs only ZᵀZ, so with A⁻¹ = LLᵀ and W = VL the rows are read once: sᵢ = ‖Wᵀzᵢ‖², and Zᵀdiag(s)ZW gives κ
(n times the trace of Wᵀ·it) as well as the gradient. κ is Mardia's kurtosis: k(k+2) for Gaussian rows, never below k².
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from imapce.common.arrays import Array, Mask
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.search.descent import transpose

# Up to this width the curvature of f is modelled by a d×d preconditioner. On Image Segmentation (d = 19, condition
# 1e16) it halves the iterations; on 784 pixels the same model drives starts into noise directions (73 -> 1,165).
PRECONDITION_LIMIT = 64


@dataclass(frozen=True)
class Evaluation:
    """f, its Euclidean gradient, κ and the size of the gradient's terms (what "small gradient" is relative to).

    One entry for each of R frames: `value`, `kurtosis` and `scale` are (R,), `gradient` is (R, d, k).
    """

    value: Array
    gradient: Array
    kurtosis: Array
    scale: Array


def stacked_product(M: QuadraticForm, V: Array) -> Array:
    """MV for a stack V (R, d, k) as one product with a d × Rk matrix."""
    n_frames, d, k = V.shape
    flat = np.ascontiguousarray(V.transpose(1, 0, 2)).reshape(d, n_frames * k)
    return (M @ flat).reshape(d, n_frames, k).transpose(1, 0, 2)


class Objective:
    """f for given M (variance kept minus variance known), Z (rows to pull apart) and μ.

    >>> from imapce.rows.dense import DenseRows
    >>> Z = StandardizedRows(DenseRows(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])))
    >>> Objective(Z.second_moment, Z, mu=200.0).evaluate(np.eye(2)[None, :, :1]).value    # ‖X − XVVᵀ‖² = 4, κ = 1
    array([204.])
    """

    def __init__(self, M: QuadraticForm, Z: StandardizedRows, mu: float):
        self.M, self.Z, self.mu = M, Z, mu
        self.n_evaluations = 0
        self.noise = Z.rows.precision
        # A view with an axis of less variance than this is flat: A has too few digits left to be inverted, and κ would
        # be noise (seen: −470 where k² = 4 is the least possible).
        self._flat = Z.rows.resolution * Z.second_moment.trace / max(1, int(Z.informative.sum()))
        # Views lie in the directions in which Z varies: none can gain from the others, and rounding in them looks like
        # structure. Where d is small these are the range of ZᵀZ, else the columns that are not constant.
        self._eigen: tuple[Array, Array] | None = None
        self._range: Array | None = None
        C = Z.second_moment.matrix
        if C is not None and len(C) <= PRECONDITION_LIMIT:
            self._eigen = np.linalg.eigh(C)
            varying = self._eigen[0] > self._flat
            if not varying.all():
                basis = self._eigen[1][:, varying]
                self._range = basis @ basis.T

    def within_range(self, V: Array) -> Array:
        """A frame, or a gradient, without its part in directions in which Z does not vary."""
        if self._range is not None:
            return np.matmul(self._range, V)
        return V if self.Z.informative.all() else V * self.Z.informative[:, None]

    def starts_in_range(self, V: Array) -> Array:
        """Where a search from the frames V (R, d, k) begins: within range, and without κ at its closed form there.

        Projected on the range the leading axes of M lead it no longer, and hundreds of iterations went on the way back.
        """
        if self._range is None or self._eigen is None or self.M.matrix is None or self.mu != 0.0:
            return self.within_range(V)
        basis = self._eigen[1][:, self._eigen[0] > self._flat]
        if basis.shape[1] < V.shape[2]:
            return self.within_range(V)
        axes = np.linalg.eigh(basis.T @ self.M.matrix @ basis)[1]
        return (basis @ axes[:, ::-1][:, : V.shape[2]])[None]

    def evaluate(self, V: Array, mus: Array | None = None) -> Evaluation:
        """Value and gradient at a stack of frames (R, d, k) in one pass over Z; a flat view has the value ∞.

        `mus` (R,), none of them 0, take the place of μ where every frame has its own.
        """
        self.n_evaluations += 1
        MV = stacked_product(self.M, V)
        value = self.M.trace - np.einsum("rdk,rdk->r", V, MV)
        gradient = -2.0 * MV
        scale = 2.0 * np.sqrt(np.einsum("rdk,rdk->r", MV, MV))
        if self.mu == 0.0 and mus is None:
            return Evaluation(value, self.within_range(gradient), self.kurtosis(V), scale)
        # Without a prior M is ZᵀZ itself, and where that is not formed a product with it is a pass over the rows.
        CV = MV if self.M is self.Z.second_moment else stacked_product(self.Z.second_moment, V)
        kurtosis, slope, pull = self._kurtosis_terms(V, CV)
        mu = np.asarray(self.mu if mus is None else mus)
        gradient = self.within_range(gradient + mu[..., None, None] * slope)
        value = np.where(np.isinf(kurtosis), np.inf, value + mu * kurtosis)
        return Evaluation(value, gradient, kurtosis, scale + np.abs(mu) * pull)

    def kurtosis(self, V: Array) -> Array:
        """κ(V) of each frame."""
        L, flat = self._whitening(V, stacked_product(self.Z.second_moment, V))
        return np.where(flat, np.inf, self.Z.n_rows * self.Z.fourth_powers(np.matmul(V, L)))

    def _kurtosis_terms(self, V: Array, CV: Array) -> tuple[Array, Array, Array]:
        """κ, ∇κ and the norm of the first of ∇κ's two terms (they cancel at an optimum); CV is ZᵀZV."""
        n = self.Z.n_rows
        L, flat = self._whitening(V, CV)
        W = np.matmul(V, L)
        weighted = self.Z.quartic(W)
        quartic = np.matmul(transpose(W), weighted)  # Σ s uuᵀ
        kurtosis = np.where(flat, np.inf, n * np.einsum("rkk->r", quartic))
        L_T = transpose(L)
        away = 4.0 * n * np.matmul(weighted, L_T)
        back = 4.0 * n * np.matmul(CV, np.matmul(L, np.matmul(quartic, L_T)))
        return kurtosis, away - back, np.sqrt(np.einsum("rdk,rdk->r", away, away))

    def _whitening(self, V: Array, CV: Array) -> tuple[Array, Mask]:
        """L with A⁻¹ = LLᵀ, A = VᵀZᵀZV, and which views are flat.

        By eigenvalues: as cheap as Cholesky at k = 2 or 3, and it shows a flat view instead of failing.
        """
        eigenvalues, vectors = np.linalg.eigh(np.matmul(transpose(V), CV))
        flat = eigenvalues[:, 0] <= self._flat
        return vectors / np.sqrt(np.maximum(eigenvalues, self._flat))[:, None, :], flat

    def preconditioner(self, n_components: int) -> Array | None:
        """An approximate inverse Hessian (d×d) for views of high variance, or None where d is too large for it to help.

        The variance in the view is taken as the mean of the k largest eigenvalues of ZᵀZ.
        """
        if self._eigen is None or self.M.matrix is None or self.mu == 0.0:
            return None
        eigenvalues, vectors = self._eigen
        curvature = self._curvature(eigenvalues[-n_components:].mean())
        weight = np.where(eigenvalues > self._flat, curvature.max() / curvature, 0.0)
        return (vectors * weight) @ vectors.T

    def inverse_curvature(self, V: Array) -> Array | None:
        """The same model at each of the given frames (R, d, d), with the least variance any axis of the view has."""
        if self._eigen is None or self.M.matrix is None or self.mu == 0.0:
            return None
        eigenvalues, vectors = self._eigen
        in_view = np.linalg.eigvalsh(np.matmul(transpose(V), stacked_product(self.Z.second_moment, V)))[:, :1]
        curvature = self._curvature(np.maximum(in_view, self._flat))
        weight = np.where(eigenvalues > self._flat, curvature.min(axis=1, keepdims=True) / curvature, 0.0)
        return np.matmul(vectors * weight[:, None, :], vectors.T)

    def _curvature(self, variance_in_view: float | Array) -> Array:
        """The variance terms curve like 2λ_max(M) everywhere, κ like 16μ·λ/λ̄ along an eigenvector λ of ZᵀZ."""
        assert self._eigen is not None
        return 2.0 * self._top + 16.0 * abs(self.mu) * np.maximum(self._eigen[0], 0.0) / variance_in_view

    @cached_property
    def _top(self) -> float:
        """λ_max(M), or a thousandth of λ_max(ZᵀZ) where the prior outweighs the data; every Newton step asks for it."""
        assert self._eigen is not None
        assert self.M.matrix is not None
        return max(float(np.linalg.eigvalsh(self.M.matrix)[-1]), 1e-3 * float(self._eigen[0][-1]))


def kurtosis_matrix(Z: StandardizedRows, basis: Array) -> Array:
    """Σ ‖u‖² uuᵀ of the rows in a whitening basis: its eigenvectors point at clusters (low) and outliers (high).

    It is the quartic reduction with one frame of all the basis vectors.
    """
    moved = np.matmul(transpose(basis), Z.quartic(basis[None])[0])
    return (moved + moved.T) / 2


def shares_of_kurtosis(Q: Array) -> Array:
    """sᵢ²/Σs² of the rows of Q = ZV (n, k), with s = qᵀ(QᵀQ)⁻¹q: how much of κ each row is; directions of no variance
    count for nothing.
    """
    left, sizes, _ = np.linalg.svd(Q, full_matrices=False)
    s = np.sum(left[:, sizes > 1e-10 * sizes.max(initial=0.0)] ** 2, axis=1)
    return s**2 / max(float(s @ s), np.finfo(np.float64).tiny)


def reconstruction_error(M: QuadraticForm, V: Array) -> float:
    """‖X − XVVᵀ‖² − α‖Y − YVVᵀ‖² = tr M − tr(VᵀMV), for one frame V (d, k)."""
    return M.trace - float(np.sum(V * (M @ V)))


def paper_mu(M: QuadraticForm, C_X: QuadraticForm, V: Array) -> float:
    """The paper's rule for μ: one to two orders of magnitude below the cPCA reconstruction error; here 10^1.5 below.

    V is the cPCA solution. Where the prior outweighs the data the error is not positive and says nothing about
    scale; then the plain reconstruction error ‖X − XVVᵀ‖² takes its place.
    """
    error = reconstruction_error(M, V)
    plain = reconstruction_error(C_X, V)
    return (error if error > 1e-3 * plain else plain) / 10**1.5
