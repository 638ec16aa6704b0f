"""Planes to set beside the optima of equation 2, and what each view keeps of the neighbourhoods once the known is out.

    U = x_O − Bᵀx_K,   B = C_KK⁻¹C_KO       the columns O that are not known, less what the known ones K tell of them

Neighbours are those of U in the leading axes of U√w, less what known labels L explain of it; with nothing known U are
the rows themselves. Four places are looked in, each giving up more than the one before:

    0  no weight on K                    1  nor on what is correlated with K, vᵀC_K = 0
    2  the axes of U itself: K erased    3  only the axes of U along which the classes of K spread most alike

(for labels 1 and 2 are one place, vᵀXᵀL = 0), each for its principal plane and its plane of neighbours. Rows are
touched in a seeded sample, at most 2,000 of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from imapce.choice.neighbours import (
    Neighbourhoods,
    beyond_noise,
    nearest,
    neighbour_plane,
    reference_axes,
    searched_width,
    shared_weights,
)
from imapce.choice.spaces import searched_axes, units_of
from imapce.priors.problem import Problem
from imapce.rows.standardized import QuadraticForm
from imapce.rows.subspace import Subspace
from imapce.search.closed_form import leading_eigenvectors
from imapce.search.stiefel import with_fixed_signs

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SAMPLED = 2_000
STAGES = 4
NEGLIGIBLE = 1e-7
PRINCIPAL, NEIGHBOURS = "PCA's plane", "the plane of neighbours"


class Planes:
    """The planes of a problem and what any view of it keeps; `basis` (d, q) are the axes of the path's search.

    >>> from imapce.priors.problem import pose
    >>> from imapce.rows.open import open_rows
    >>> from imapce.tables.reader import Reader
    >>> X = np.random.default_rng(0).normal(size=(200, 5)) + 4 * np.arange(200)[:, None] % 8 * np.array([1, 1, 0, 0, 0])
    >>> reader, matrix = Reader.learn(X)
    >>> planes = Planes(pose(open_rows(matrix), [], reader, n_components=2), np.eye(5))
    >>> [(name, V.shape) for name, V in planes.at(0)], planes.weights.round(1).tolist()
    ([("PCA's plane", (5, 2)), ('the plane of neighbours', (5, 2))], [0.8, 0.8, 0.0, 0.0, 0.0])
    """

    def __init__(self, problem: Problem, basis: Array):
        self.problem, self.k, self._basis = problem, problem.n_components, basis
        Z = problem.Z
        places = Z.content_sample(SAMPLED)
        self.sample = np.zeros(Z.n_rows, dtype=bool)
        self.sample[places] = True
        # The rows of the sample in an order that their values alone decide.
        self._order = places.argsort().argsort()
        self.known = problem.hidden_columns
        self.others = Z.informative & ~self.known
        # Columns enough to explain anything by chance: no weights then, and the leading axes hold what they share.
        self.wide = 2 * int(Z.informative.sum()) > int(self.sample.sum())
        self.asked = Neighbourhoods(self.near)
        self._base = np.zeros(Z.n_rows, dtype=bool)
        self._base[places[self.asked.base]] = True
        self._base_order = places[self.asked.base].argsort().argsort()

    def kept(self, V: Array) -> Array:
        """For every row asked how much of its neighbourhood the view with the axes V (d, k) keeps."""
        return self.asked.kept(self.problem.Z.project(V, self._base)[self._base_order])

    def rows(self, V: Array) -> Array:
        """The sampled rows along V (d, c)."""
        return self.problem.Z.project(V, self.sample)[self._order]

    def known_values(self) -> tuple[Array, Mask]:
        """What a view is not to show of the sampled rows (m, q), and which of them say it (m,)."""
        values, stated = self.problem.known_values(self.sample)
        return values[self._order], stated[self._order]

    def at(self, stage: int) -> Iterator[tuple[str, Array]]:
        """The principal plane and the plane of neighbours of a place; none where it has too few directions."""
        axes = self.axes(stage)
        if axes.shape[1] < self.k:
            return
        rows = self.rows(axes)
        # Where columns repeat the known ones, what is left of them is rounding.
        if np.sort(rows.std(axis=0))[-self.k] > NEGLIGIBLE * self._typical:
            for name, F in self._pair(rows):
                yield name, np.linalg.qr(axes @ F)[0]

    @property
    def _typical(self) -> float:
        """The spread of a column that varies, in the mean."""
        Z = self.problem.Z
        return float(np.sqrt(Z.second_moment.trace / (Z.n_rows * max(1, int(Z.informative.sum())))))

    def _pair(self, rows: Array) -> Iterator[tuple[str, Array]]:
        """Both planes of rows (m, q) in axes of descending variance."""
        yield PRINCIPAL, np.eye(rows.shape[1], self.k)
        yield NEIGHBOURS, neighbour_plane(rows, self._nearest, self.k)

    def axes(self, stage: int) -> Array:
        """The leading axes (d, q) of stage 0, 1 or 2."""
        if stage == 2:
            return self._residual_axes
        return self._leading(np.column_stack([units_of(self.known), *([self._shared] if stage else [])]))

    def _leading(self, excluded: Array) -> Array:
        Z = self.problem.Z
        if not self.wide:
            return searched_axes(self.problem, excluded, searched_width(Z.n_rows))
        axes = self._basis if not excluded.shape[1] else searched_axes(self.problem, excluded)
        return axes[:, : max(self.k, self._beyond_noise(axes))]

    def _beyond_noise(self, axes: Array) -> int:
        """How many of the leading axes (d, q) vary more than columns that share nothing would make them."""
        Z = self.problem.Z
        sizes = np.sum(self.rows(axes) ** 2, axis=0) * Z.n_rows / int(self.sample.sum())
        return beyond_noise(sizes, Z.n_rows, trace=Z.second_moment.trace, n_columns=int(Z.informative.sum()))

    @cached_property
    def remark(self) -> str:
        """What is to be said of the neighbourhoods: by how much they are told, and where by nothing but chance."""
        if self.wide:
            count = self._beyond_noise(searched_axes(self.problem, self._shared) if self.problem.hides else self._basis)
            if count:
                axes = "axis that varies" if count == 1 else f"{count} axes that vary"
                return f" Columns are many: who is near is told by the {axes} more than unrelated columns would."
            return " No direction varies more than unrelated columns would make it: no structure beyond chance."
        if len(self.weights) > 1 and (self.weights == self.weights.max(initial=0.0)).all():
            return " No two columns share anything beyond chance."
        return ""

    @cached_property
    def _shared(self) -> Array:
        """C_X[:, K] and XᵀL: a direction free of it is uncorrelated with the known."""
        columns = self.problem.X.second_moment.columns(self.known) if self.known.any() else units_of(self.known)
        labels = self.problem.Y.labels
        return columns if labels is None else np.column_stack([columns, labels.shared])

    @cached_property
    def _lift(self) -> Array:
        """L (d, o) with ZL = U."""
        L = units_of(self.others)
        if self.known.any():
            shared = self._shared[:, : int(self.known.sum())]
            B = np.linalg.pinv(shared[self.known], rcond=1e-10, hermitian=True) @ shared[self.others].T
            L[self.known] = -B
        return L

    @cached_property
    def _second_moment(self) -> Array:
        """UᵀU (o, o), of a table that is not wide, less what labels explain of it in the sample."""
        moment = self._lift.T @ (self.problem.Z.second_moment @ self._lift)
        if self._told.shape[1]:
            U = self.rows(self._lift)
            fitted = U - self._untold(U)
            moment = moment - fitted.T @ fitted * (self.problem.Z.n_rows / len(U))
        return (moment + moment.T) / 2

    @cached_property
    def _told(self) -> Array:
        """L (m, q) of the sampled rows."""
        values = self.known_values()[0]
        return values[:, int(self.known.sum()) :]

    def _untold(self, U: Array) -> Array:
        """The sampled rows (m, c) less what labels explain of them."""
        return U - self._told @ np.linalg.lstsq(self._told, U, rcond=1e-10)[0] if self._told.shape[1] else U

    @cached_property
    def _residual_axes(self) -> Array:
        """The leading axes of U, as vectors of all columns; not orthonormal."""
        if self.wide:
            return self._leading(self._shared)
        if not self.others.any():
            return self._lift
        shared = self._lift.T @ self._shared[:, int(self.known.sum()) :]
        inside = Subspace(np.ones(len(shared), dtype=bool), shared if shared.any() else None)
        q = min(inside.size, searched_width(self.problem.Z.n_rows))
        if q < 1:
            return self._lift[:, :0]
        values, axes = leading_eigenvectors(inside.form(QuadraticForm.of_matrix(self._second_moment)), q)
        return self._lift @ with_fixed_signs(inside.lift(axes[:, values > 1e-8 * values[0]]))

    @cached_property
    def weights(self) -> Array:
        """w of the columns that are not known."""
        U = self._untold(self.problem.Z.sampled(self.sample)[self._order] @ self._lift)
        return shared_weights(U, self.problem.sources[self.others])

    @cached_property
    def near(self) -> Array:
        """The sampled rows (m, q) in coordinates in which near means alike in what is not known."""
        Z = self.problem.Z
        if self.wide:
            return self.rows(self._leading(self._shared))
        if not self.others.any():
            return self.rows(self._lift)
        axes = reference_axes(self._second_moment, self.weights, Z.n_rows)
        return self._untold(self.rows(self._lift @ axes))

    @cached_property
    def _nearest(self) -> NDArray[np.intp]:
        return nearest(self.near)

    def alike(self, classes: NDArray[np.intp]) -> Array:
        """D (d, q): axes of U, those along which the classes of the sampled rows (-1: none) spread most alike first.

        Whitened H of U less the means of the classes; the eigenvectors of Σ_c n_c/n·(H_cᵀH_c/n_c − I)², smallest first.
        """
        U = self.rows(self._residual_axes)
        if not U.shape[1]:
            return self._residual_axes
        _, sizes, Vt = np.linalg.svd(U - U.mean(axis=0), full_matrices=False)
        varies = sizes > 1e-6 * sizes[0]
        whiten = Vt[varies].T / (sizes[varies] / np.sqrt(len(U)))
        H = U @ whiten
        unlike = np.zeros((H.shape[1],) * 2)
        for c in np.unique(classes[classes >= 0]):
            own = H[classes == c]
            if len(own) > 2:
                difference = own.T @ own / len(own) - np.eye(H.shape[1])
                unlike += len(own) / len(H) * difference @ difference
        return np.asarray(self._residual_axes @ whiten @ np.linalg.eigh(unlike)[1])

    def within(self, axes: Array) -> Iterator[tuple[str, Array]]:
        """Both planes in the span of given axes (d, r)."""
        orthonormal = np.linalg.qr(axes)[0]
        _, turn = np.linalg.eigh(orthonormal.T @ (self.problem.Z.second_moment @ orthonormal))
        orthonormal = with_fixed_signs(orthonormal @ turn[:, ::-1])
        for name, F in self._pair(self.rows(orthonormal)):
            yield name, orthonormal @ F
