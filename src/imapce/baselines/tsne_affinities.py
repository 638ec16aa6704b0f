"""The high-dimensional side of t-SNE and of revised ct-SNE: who is whose neighbour, and how much.

Row by row p_{j|i} ∝ exp(−bᵢ Dᵢⱼ²) over K = ⌊3·perplexity⌋ neighbours, bᵢ set so that the row has the perplexity asked
for; then pᵢⱼ = (p_{j|i} + p_{i|j})/2n. Revised ct-SNE takes half of the neighbours from the row's own class, half from
the others, and weighs the two halves. Both share one neighbour search and one bandwidth search.

>>> P = gaussian_affinities(np.random.default_rng(0).normal(size=(40, 4)), 5)
>>> round(float(P.sum()), 12)
1.0
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from imapce.common.arrays import Array, Codes
from imapce.errors import InvalidValueError, needs

with needs("t-SNE", "imapce[baselines]"):
    import numba


NEIGHBOURS_PER_PERPLEXITY = 3
# Below this a row has fewer than one neighbour at perplexity 1.
FEWEST_ROWS = NEIGHBOURS_PER_PERPLEXITY + 1


def gaussian_affinities(X: Array, perplexity: float, *, all_points: bool = False) -> sparse.csr_matrix:
    """t-SNE's P (n, n), which sums to 1, over the ⌊3·perplexity⌋ nearest rows or over all of them."""
    n = len(X)
    perplexity = usable_perplexity(perplexity, n)
    K = n - 1 if all_points else int(NEIGHBOURS_PER_PERPLEXITY * perplexity)
    neighbours, distances = balanced_neighbours(X, np.zeros(n, dtype=np.intp), K)
    return _joint(neighbours, gaussian_rows(distances**2, np.ones_like(distances), perplexity))


def conditional_affinities(
    X: Array, perplexity: float, labels: Codes, alpha: float, *, fixed_perplexity: bool = True
) -> sparse.csr_matrix:
    """Revised ct-SNE's P: p_{j|i} times α′ where cᵢ = cⱼ and β′ elsewhere, rows normalised again, then symmetrised.

    β′ = (1 − α′ρ)/(1 − ρ) with ρ the share of pairs of equal class. With `fixed_perplexity` the bandwidth is that of
    the unweighted row; otherwise the weighted row has the perplexity asked for. With one class it is t-SNE's P.
    """
    perplexity = usable_perplexity(perplexity, len(X))
    rho = same_label_share(labels)
    if rho == 1.0:
        return gaussian_affinities(X, perplexity)
    neighbours, distances = balanced_neighbours(X, labels, int(NEIGHBOURS_PER_PERPLEXITY * perplexity))
    weights = np.where(labels[neighbours] == labels[:, None], alpha, (1.0 - alpha * rho) / (1.0 - rho))
    if not fixed_perplexity:
        return _joint(neighbours, gaussian_rows(distances**2, weights, perplexity))
    rows = gaussian_rows(distances**2, np.ones_like(distances), perplexity) * weights
    return _joint(neighbours, rows / rows.sum(axis=1, keepdims=True))


def same_label_share(labels: Codes) -> float:
    """ρ = Σ_l n_l (n_l − 1)/(n (n − 1)), the share of ordered pairs with equal labels.

    By it the weights α′ of equal and β′ of different labels are balanced: α′ρ + β′(1 − ρ) = 1.

    >>> same_label_share(np.array([0, 0, 1, 1]))
    0.3333333333333333
    """
    sizes = np.bincount(labels).astype(np.float64)
    return float((sizes * (sizes - 1)).sum() / (len(labels) * (len(labels) - 1)))


def usable_perplexity(perplexity: float, n_rows: int) -> float:
    """The perplexity, lowered to (n − 1)/3 with a warning where there are too few rows for it."""
    if n_rows < FEWEST_ROWS:
        raise InvalidValueError(f"X must have at least {FEWEST_ROWS} rows to have neighbours; got {n_rows} sample(s).")
    largest = (n_rows - 1) / NEIGHBOURS_PER_PERPLEXITY
    if perplexity <= largest:
        return float(perplexity)
    warnings.warn(
        f"perplexity={perplexity:g} needs more than {NEIGHBOURS_PER_PERPLEXITY * perplexity:g} rows and X has "
        f"{n_rows}; {largest:.4g} is used.",
        UserWarning,
        stacklevel=2,
    )
    return largest


def principal_axes(X: Array, n_axes: int | None) -> Array:
    """X in its leading principal axes, which keep the distances that matter and make the search cheap; None: X."""
    if n_axes is None or n_axes >= min(X.shape):
        return X
    # Neither solver draws random numbers, unlike scikit-learn's default for wide tables.
    return PCA(n_axes, svd_solver="covariance_eigh" if X.shape[1] <= len(X) else "full").fit_transform(X)


def balanced_neighbours(X: Array, labels: Codes, K: int) -> tuple[Codes, Array]:
    """K neighbours of each row and their distances: ⌈K/2⌉ nearest of its own class, the rest nearest of the others.

    A class (or its complement) that is too small for its half is made up for from the other side, so that every row
    has K neighbours as long as K < n; with a single class they are the K nearest rows. Exact at any n.
    """
    n = len(X)
    neighbours, distances = np.empty((n, K), dtype=np.intp), np.empty((n, K))
    for label in range(int(labels.max()) + 1):
        inside = labels == label
        own, others = np.flatnonzero(inside), np.flatnonzero(~inside)
        n_own = min(-(-K // 2), len(own) - 1)
        n_other = min(K - n_own, len(others))
        n_own = K - n_other
        if n_own:
            # Without a query scikit-learn leaves out the row itself by its number, not by its distance of 0.
            near = NearestNeighbors(n_neighbors=n_own).fit(X[own]).kneighbors()
            distances[own, :n_own], neighbours[own, :n_own] = near[0], own[near[1]]
        if n_other:
            near = NearestNeighbors(n_neighbors=n_other).fit(X[others]).kneighbors(X[own])
            distances[own, n_own:], neighbours[own, n_own:] = near[0], others[near[1]]
    return neighbours, distances


def gaussian_rows(squared_distances: Array, weights: Array, perplexity: float) -> Array:
    """Rows s/Σs with s = w exp(−b D²) and b found by bisection so that the entropy of the row is log(perplexity).

    A row whose weights cannot reach that entropy (few others, tiny weight for the rest) gets its flattest form.
    """
    with np.errstate(divide="ignore"):
        return _gaussian_rows(squared_distances, np.log(weights), float(np.log(perplexity)))


@numba.njit(cache=True, error_model="numpy")
def _gaussian_rows(squared: Array, log_weights: Array, entropy: float) -> Array:  # pragma: no cover - compiled
    n, K = squared.shape
    rows = np.empty((n, K))
    for i in range(n):
        nearest = squared[i].min()
        spread = squared[i].mean() - nearest
        low, high = 0.0, np.inf
        # Distances are known only up to a unit, so the search begins at the row's own.
        b = 1.0 / spread if spread > 1e-200 else 1.0
        for _ in range(200):
            peak = -np.inf
            for j in range(K):
                rows[i, j] = log_weights[i, j] - b * (squared[i, j] - nearest)
                peak = max(peak, rows[i, j])
            total, moment = 0.0, 0.0
            for j in range(K):
                exponent = rows[i, j] - peak
                s = np.exp(exponent)
                total += s
                if s > 0:
                    moment += s * exponent
                rows[i, j] = s
            excess = np.log(total) - moment / total - entropy
            if abs(excess) < 1e-8:
                break
            if excess > 0:
                low = b
                b = 2.0 * b if high == np.inf else 0.5 * (low + high)
            else:
                high = b
                b = 0.5 * (low + high)
        rows[i] /= total
    return rows


def _joint(neighbours: Codes, rows: Array) -> sparse.csr_matrix:
    """(P + Pᵀ)/2n from conditional rows, without the entries that are zero."""
    n, K = rows.shape
    conditional = sparse.csr_matrix((rows.ravel(), neighbours.ravel(), np.arange(0, n * K + 1, K)), shape=(n, n))
    joint = ((conditional + conditional.T) / (2 * n)).tocsr()
    joint.eliminate_zeros()
    joint.sort_indices()
    return joint
