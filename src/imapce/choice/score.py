"""How good a view is, told without labels: how clearly it splits the rows, and how much of the known it still shows.

    η(θ) = max_t σ²_between(t)/σ²,                   the share of the variance along θ that one cut explains
    e(θ) = (η(θ) − 2/π)/(1 − 2/π) − e_Y(θ)₊          0 for one Gaussian, 1 for two points, less the background's own
    separation = e(θ*) + ½ Σ (e(θ⊥) − chance)₊
    leakage    = Σ ρ²,                     ρ the canonical correlations of the view and the known columns or labels
    score      = separation·(1 − leakage)₊

θ* is the clearest direction of the whitened view and θ⊥ those across it, which count half. A background that is cut by
the same direction as well shows that the split is none of the data's own; rows known already are none: they have left.
Heavy tails and single outliers lower η, a sharp peak does not raise it. Of the measures tried (held-out likelihood of a
density and of mixtures, kurtosis, their contrasts with the background) it was the one that lost least against the best
view at hand, on the superimposed images it was developed on; so was the ½ (`across` in `common/settings.py`).

A part of less than 21 % of the rows explains too little variance to be seen so. Where no split in two is clear, cuts
that part a minority are compared with what a Gaussian gives at the same share instead of 2/π, times the depth of the
valley they lie in, since a long tail explains as much as a cluster does.

Leakage is a discount, not a ban: asked to be at the level of chance, a view has to give up all that has to do with the
known, and the groups looked for often have.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.stats import norm

from imapce.common.arrays import Array, Mask
from imapce.common.settings import SETTINGS, Settings
from imapce.priors.labels import LabelTerm
from imapce.rows.standardized import QuadraticForm

ONE_GAUSSIAN = 2 / np.pi
# Standard deviations from the mean within which cuts are looked for.
REACH = 12
# Cells of a histogram, and all of them; what lies further out than REACH counts as lying there.
PER_UNIT = 32
CELLS = 2 * REACH * PER_UNIT
# Kurtosis sees parts of more than (3 − √3)/6 as two clusters when it is low, smaller ones when it is high.
LARGEST_MINORITY = (3 - 3**0.5) / 6


class Cuts:
    """Every cut of each column of projections: the share of rows on either side and the share of variance explained."""

    def __init__(self, projections: Array, settings: Settings = SETTINGS):
        self._settings = settings
        n, width = projections.shape
        centred = projections - projections.mean(axis=0)
        spread = np.sqrt(np.mean(centred**2, axis=0))
        scaled = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
        cell = np.clip(((scaled + REACH) * PER_UNIT).astype(np.intp), 0, CELLS - 1)
        counts = np.bincount((cell + CELLS * np.arange(width)).ravel(), minlength=CELLS * width)
        self.n_rows = n
        self._counts = counts.reshape(width, CELLS).astype(np.float64)

    @cached_property
    def balanced(self) -> Array:
        """(η − 2/π)/(1 − 2/π), η the largest share of variance one cut explains: 0 for a Gaussian, 1 for two points.

        Rows beyond four standard deviations count as lying there, so single ones cannot make a cut.
        """
        edge = int((REACH - self._settings.choice.tail) * PER_UNIT)
        inner = self._counts[:, edge : CELLS - edge].copy()
        inner[:, 0] += self._counts[:, :edge].sum(axis=1)
        inner[:, -1] += self._counts[:, CELLS - edge :].sum(axis=1)
        return (self._explained(inner)[0].max(axis=1) - ONE_GAUSSIAN) / (1 - ONE_GAUSSIAN)

    @cached_property
    def minority(self) -> Array:
        """max (η(t) − g(p))/(1 − g(p))·depth(t) over the cuts t that part a share p of 1 to 21 %, or 0.

        g(p) = φ(Φ⁻¹(p))²/(p(1 − p)) is what a cut at the same share explains of a Gaussian. Tails explain as much as a
        cluster does, so a cut counts by the depth of the valley it lies in, 1 − f(t)/min(peak on either side).
        """
        explained, below = self._explained(self._counts)
        share = np.minimum(below, self.n_rows - below) / self.n_rows
        smallest = self._settings.outliers
        small = share >= max(smallest.smallest_share, smallest.smallest_rows / self.n_rows)
        small &= share <= LARGEST_MINORITY
        tail = np.where(small, share, 0.5)
        gaussian = norm.pdf(norm.ppf(tail)) ** 2 / (tail * (1 - tail))
        kernel = self._settings.choice.smoothing * PER_UNIT
        density = gaussian_filter1d(self._counts, kernel, axis=1, mode="constant")
        left = np.maximum.accumulate(density, axis=1)
        right = np.maximum.accumulate(density[:, ::-1], axis=1)[:, ::-1]
        here = (density[:, :-1] + density[:, 1:]) / 2
        peak = np.minimum(left[:, :-1], right[:, 1:])
        depth = np.clip(1 - np.divide(here, peak, out=np.ones_like(here), where=peak > 0), 0.0, 1.0)
        beyond = (explained - gaussian) / (1 - gaussian) * depth
        return np.where(small, beyond, 0.0).max(axis=1, initial=0.0)

    def clearest(self, minorities: bool) -> Array:
        """For each column how clear its best cut is, with or without cuts that part a minority."""
        return np.maximum(self.balanced, self.minority) if minorities else self.balanced

    @staticmethod
    def _explained(counts: Array) -> tuple[Array, Array]:
        """σ²_between/σ² and the number of rows below, for every cut between two cells."""
        cells = counts.shape[1]
        place = (np.arange(cells) - (cells - 1) / 2) / PER_UNIT
        below = np.cumsum(counts, axis=1)[:, :-1]
        sums = np.cumsum(counts * place, axis=1)
        n = counts.sum(axis=1, keepdims=True)
        mean = sums[:, -1:] / n
        inside = below * (n - below)
        between = np.divide((sums[:, :-1] - below * mean) ** 2, inside, out=np.zeros_like(below), where=inside > 0)
        variance = counts @ place**2 / n[:, 0] - mean[:, 0] ** 2
        return np.divide(between, variance[:, None], out=np.zeros_like(between), where=variance[:, None] > 0), below


def separation(
    view: Array,
    backgrounds: list[Array],
    *,
    minorities: bool = False,
    chance: float = 0.0,
    settings: Settings = SETTINGS,
) -> float:
    """How clearly the rows of a view (n, k) fall apart, beyond one Gaussian and beyond what each background shows.

    Axes across the clearest one count only beyond `chance`, what the best of all directions searched shows of a
    Gaussian: every view has a second axis. With `minorities` cuts that part a few count too, and all into halves only
    beyond `chance`.

    >>> rng = np.random.default_rng(0)
    >>> abs(separation(rng.standard_normal((5000, 2)), [])) < 0.15
    True
    """
    centred = view - view.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(view))
    if values[0] <= 1e-12 * values[-1]:
        return -np.inf
    whitening = vectors / np.sqrt(values)
    axes = _clearest_axes(centred @ whitening, minorities, settings)
    own = Cuts(centred @ (whitening @ axes), settings)
    excess = own.balanced - chance * (np.arange(len(values)) > 0)
    if minorities:
        excess = np.maximum(own.balanced - chance, own.minority)
    known = [Cuts(Y @ (whitening @ axes), settings).clearest(minorities) for Y in backgrounds]
    excess = excess - np.max([np.zeros(len(values)), *known], axis=0)
    return float(excess[0] + settings.choice.across * np.maximum(excess[1:], 0.0).sum())


def reached_by_chance(n_rows: int, searched: int) -> float:
    """How far the best of all directions in q dimensions cuts Gaussian rows better than 2/π, as a separation.

    2√(2/π)·√((1 − 3/π)·q/n), the standard deviation of mean |x|/√(mean x²) along one direction times √q.

    >>> round(reached_by_chance(1000, 30), 2)
    0.16
    """
    return float(2 * np.sqrt(ONE_GAUSSIAN * (1 - 3 / np.pi) * searched / n_rows) / (1 - ONE_GAUSSIAN))


def _clearest_axes(whitened: Array, minorities: bool, settings: Settings) -> Array:
    """θ* and the directions across it (k, k), each the clearest of those still free."""
    k = whitened.shape[1]
    chosen = np.zeros((k, 0))
    while chosen.shape[1] < k:
        free = np.linalg.svd(chosen)[0][:, chosen.shape[1] :] if chosen.shape[1] else np.eye(k)
        choices = free @ _directions(free.shape[1], settings.choice.directions)
        clearest = int(np.argmax(Cuts(whitened @ choices, settings).clearest(minorities)))
        chosen = np.column_stack([chosen, choices[:, clearest]])
    return chosen


def _directions(k: int, directions: int) -> Array:
    """Unit vectors (k, m) spread over the half sphere: equal angles in the plane, a fixed draw beyond it."""
    if k == 1:
        return np.ones((1, 1))
    if k == 2:
        angles = np.arange(directions) * np.pi / directions
        return np.stack([np.cos(angles), np.sin(angles)])
    drawn = np.random.default_rng(0).standard_normal((k, k * k * directions))
    return drawn / np.linalg.norm(drawn, axis=0)


class Leakage:
    """Σρ² of a view and the known columns and labels, from second moments alone."""

    def __init__(self, second_moment: QuadraticForm, known: Mask, labels: LabelTerm | None = None):
        columns = np.flatnonzero(known)
        self._second_moment = second_moment
        self._cross = np.zeros((second_moment.size, 0))
        if len(columns) or labels is not None:
            unit = np.zeros((second_moment.size, len(columns)))
            unit[columns, np.arange(len(columns))] = 1.0
            cross = second_moment @ unit
            among = cross[columns]
            if labels is not None:
                shared, L = labels.shared, labels.values
                among = np.block([[among, shared[columns]], [shared[columns].T, L.T @ L]])
                cross = np.column_stack([cross, shared])
            values, vectors = np.linalg.eigh(among)
            varying = values > 1e-10 * max(float(values[-1]), 0.0)
            self._cross = cross @ (vectors[:, varying] / np.sqrt(values[varying]))

    def of(self, V: Array) -> float:
        """Σρ² for a frame V (d, k), the eigenvalues of (VᵀCV)⁻¹·seen seenᵀ; 0 where nothing is known."""
        if not self._cross.shape[1]:
            return 0.0
        seen = V.T @ self._cross
        values, vectors = np.linalg.eigh(V.T @ (self._second_moment @ V))
        varying = values > 1e-12 * max(float(values[-1]), 0.0)
        correlations = np.linalg.svd((vectors[:, varying] / np.sqrt(values[varying])).T @ seen, compute_uv=False)
        return float(np.sum(correlations**2))
