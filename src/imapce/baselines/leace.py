"""LEACE (Belrose, Schneider-Joseph, Ravfogel, et al. 2023): erase what is known linearly, then show the rest by PCA.

    P = I − W⁺UUᵀW,   W = S_xx^(−1/2),   W⁺ = S_xx^(1/2),   U = left singular vectors of W S_xz S_zz^(−1/2)

P is an oblique projection with P S_xz = 0: no linear predictor of what is known, Z, beats the constant one on the
erased rows Px, and no affine map with that property moves the rows less. Z is whitened too, so the singular values are
the canonical correlations between rows and labels and `tol` has no unit. Only linear traces are erased: classes that
differ in their spread can still be told apart.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from imapce.baselines.cpca import entries_of
from imapce.common.arrays import Array, Codes, Mask, require_in_memory
from imapce.common.checks import as_codes, require_flag, require_number
from imapce.common.work import threads_for
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.base import (
    LinearView,
    check_common,
    data_of,
    keep_view,
    learn_for_view,
    open_for,
    read_rows,
)
from imapce.priors.base import Prior, labels_among
from imapce.priors.kinds import is_prior
from imapce.priors.labels import LabelCode
from imapce.rows.base import Rows
from imapce.rows.standardized import StandardizedRows
from imapce.search.descent import with_fixed_signs

# An eigenvalue below this share of the largest is rounding; its direction is left out of W and W⁺.
NEGLIGIBLE = 1e-12
# Up to this many rows a column the covariance is a rough estimate, and "auto" shrinks it.
FEW_ROWS = 10


class LEACE(LinearView):
    """PCA of the rows without what a linear predictor could know of the labels: X_e = XPᵀ, axes V = PᵀV_e.

    `prior` is an array with a class for each row (one-hot), Attributes(columns), whose encoded columns are themselves
    what is erased, Labels(y), Subset(rows) (known or not), or a list of the last three. New rows need no labels.

    Parameters
    ----------
    n_components : axes of the view.
    shrinkage : S_xx ← aS + (1−a)(tr S/d)I with a from the data; "auto" does so up to ten rows a column. On the rows of
        the fit P S_xz = 0 holds either way.
    tol : canonical correlations up to this are left in.
    standardize, missing : as for IMAPCE.
    random_state, verbose : for the manners of the others; nothing here is random or takes long.

    Fitted: `erasure_`, the thin factors L (d, r) and R (r, d) of P = I − LR; `canonical_correlations_`; what every view
    has. `components_` = V_eᵀP is not orthonormal: a row's place is that of its erased row in the PCA of erased rows.

    Examples
    --------
    >>> from imapce.baselines import LEACE
    >>> X, batch = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    >>> view = LEACE().fit_transform(X, prior=batch)
    >>> bool(np.allclose(view[batch == 0].mean(axis=0), view[batch == 1].mean(axis=0)))
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        shrinkage: bool | Literal["auto"] = "auto",
        tol: float = 1e-6,
        standardize: bool = True,
        missing: Literal["error", "mean"] = "error",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ):
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.tol = tol
        self.standardize = standardize
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: Any, prior: Any) -> Any:
        if is_prior(prior):
            return super()._fit(X, prior)
        self.check_parameters()
        matrix = learn_for_view(self, X)
        with threads_for(*matrix.shape):
            rows = open_for(self, matrix)
            self._erase_and_keep(rows, [as_codes("prior", prior, rows.n_rows)], np.zeros(rows.n_features, dtype=bool))
        return matrix

    def _fit_rows(self, rows: Rows, priors: list[Prior]) -> None:
        columns = np.zeros(rows.n_features, dtype=bool)
        for prior in priors:
            if prior.is_background:
                raise InvalidTypeError(
                    "prior must be labels for this method (an array, Labels, Attributes or a Subset); got "
                    "Samples(background), which only IMAPCE, cPCA and gcPCA can use."
                )
            columns |= prior.column_mask(self.reader_)
        classes = [prior.row_mask(rows.n_rows).astype(np.intp) for prior in priors if prior.names_rows]
        labels = [LabelCode.of(read).columns(read) for read in labels_among(priors, rows.n_rows)]
        self._erase_and_keep(rows, classes, columns, np.column_stack([np.zeros((rows.n_rows, 0)), *labels]))

    def _erase_and_keep(self, rows: Rows, classes: list[Codes], columns: Mask, labels: Array | None = None) -> None:
        Xs = data_of(self, rows)
        S_xx = entries_of(self, Xs.second_moment) / (Xs.n_rows - 1)
        S_xz, S_zz = _label_moments(Xs, S_xx, classes, columns, labels)
        L, R, self.canonical_correlations_ = erasure(self._shrunk(S_xx, Xs), S_xz, S_zz, self.tol)
        self.erasure_ = (L, R)
        erased = S_xx - L @ (R @ S_xx)
        erased = erased - (erased @ R.T) @ L.T
        values, V = np.linalg.eigh((erased + erased.T) / 2)
        if values[-self.n_components] <= NEGLIGIBLE * np.trace(S_xx):
            raise InvalidValueError(
                f"prior leaves fewer than n_components={self.n_components} directions in which X varies; lower "
                "n_components or erase less."
            )
        V = V[:, ::-1][:, : self.n_components]
        keep_view(self, with_fixed_signs(V - R.T @ (L.T @ V)).T.copy(), Xs)

    def _shrunk(self, S: Array, Xs: StandardizedRows) -> Array:
        """aS + (1−a)(tr S/d)I over the columns that vary, a = 1 − ((tr S)²/n)/(‖S‖² − (tr S)²/d), kept in [0, 1].

        Without the bounds a is negative for nearly uncorrelated columns (−38 in a 20×3 example), S is no covariance
        any more and part of the label stays.
        """
        d, n = int(Xs.informative.sum()), Xs.n_rows
        if not self.shrinkage or (self.shrinkage == "auto" and n > FEW_ROWS * d):
            return S
        trace_squared = np.trace(S) ** 2
        spread = float(np.sum(S * S)) - trace_squared / d
        a = 0.0 if spread <= 0 else min(max(1 - trace_squared / n / spread, 0.0), 1.0)
        return a * S + (1 - a) * np.trace(S) / d * np.diag(Xs.informative.astype(np.float64))

    def erase(self, X: Any) -> Array:
        """The standardised rows without what is known: Px for each x = (row − mean_)/scale_."""
        check_is_fitted(self)
        require_in_memory(X, "LEACE.erase")
        matrix = read_rows(self, X)
        dense = matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix, dtype=np.float64)
        inverse = np.divide(1.0, self.scale_, out=np.zeros_like(self.scale_), where=self.scale_ > 0)
        rows = (dense - self.mean_) * inverse
        L, R = self.erasure_
        return rows - (rows @ R.T) @ L.T

    def check_parameters(self) -> None:
        """Refuse constructor arguments that cannot be used."""
        check_common(self)
        if not (isinstance(self.shrinkage, (bool, np.bool_)) or self.shrinkage == "auto"):
            raise InvalidValueError(f'shrinkage must be True, False or "auto"; got {self.shrinkage!r}.')
        require_number("tol", self.tol)
        require_flag("verbose", self.verbose)


def _label_moments(
    Xs: StandardizedRows,
    S_xx: Array,
    classes: list[Codes],
    columns: Mask,
    labels: Array | None = None,
) -> tuple[Array, Array]:
    """S_xz and S_zz for Z = (known columns of X, one-hot classes, labels), from S_xx and one pass over the rows."""
    n = Xs.n_rows
    parts = [sparse.csr_array((np.ones(n), codes, np.arange(n + 1))) for codes in classes]
    one_hot = sparse.hstack([sparse.csr_array(np.zeros((n, 0)) if labels is None else labels), *parts], format="csr")
    sums = np.zeros((one_hot.shape[1], Xs.n_features))
    if one_hot.shape[1]:
        start = 0
        for block in Xs.blocks():
            sums += one_hot[start : start + len(block)].T @ block
            start += len(block)
    # The rows are centred, so the share of a class need not be subtracted from its indicator.
    with_classes = sums.T / (n - 1)
    shares = np.asarray(one_hot.sum(axis=0)).ravel() / n
    among_classes = ((one_hot.T @ one_hot).toarray() - n * np.outer(shares, shares)) / (n - 1)
    S_xz = np.column_stack([S_xx[:, columns], with_classes])
    cross = with_classes[columns]
    S_zz = np.block([[S_xx[np.ix_(columns, columns)], cross], [cross.T, among_classes]])
    return S_xz, S_zz


def erasure(S_xx: Array, S_xz: Array, S_zz: Array, tol: float) -> tuple[Array, Array, Array]:
    """L = W⁺U and R = UᵀW of P = I − LR, and the canonical correlations (all of them, largest first).

    >>> L, R, correlations = erasure(np.eye(2), np.array([[0.5], [0.0]]), np.eye(1), 1e-6)
    >>> np.abs(L @ R).tolist(), correlations.tolist()
    ([[1.0, 0.0], [0.0, 0.0]], [0.5])
    """
    values, vectors = np.linalg.eigh(S_xx)
    kept = values > NEGLIGIBLE * values[-1]
    root, axes = np.sqrt(values[kept]), vectors[:, kept]
    scores = (axes.T @ S_xz) / root[:, None] @ _inverse_root(S_zz)
    U, correlations, _ = np.linalg.svd(scores, full_matrices=False)
    U = U[:, correlations > tol]
    return axes @ (root[:, None] * U), (U / root[:, None]).T @ axes.T, correlations


def _inverse_root(S: Array) -> Array:
    """S^(−1/2) on the range of S: the columns of a one-hot label sum to one, so S_zz never has full rank."""
    if not len(S):
        return S
    values, vectors = np.linalg.eigh(S)
    kept = values > NEGLIGIBLE * max(values[-1], np.finfo(np.float64).tiny)
    return (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
