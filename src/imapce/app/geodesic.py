"""The turn from one view to another along the geodesic between their planes, by the coordinates the page already has.

With axes A, B (d, k), orthonormal:  AᵀB = U cos(Θ) W.  The geodesic is  G(t) = A U cos(tΘ) + S sin(tΘ),
S = (B Wᵀ − A U cos Θ) / sin Θ,  and its frame turns within the plane from Uᵀ to W:  V(t) = G(t) Uᵀ exp(t L),
L = log(U W).  Rows x then lie at x V(t) = x A · M₁(t) + x B · M₂(t): two small matrices and the 2k numbers of every
row, half of which the page has from the view before. Between steps the scale of the columns changes too; then both ends
are exact, and what lies between turns and rescales at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm, logm

Array = NDArray[np.float64]

# Below this sine of an angle its directions coincide (or are opposite), and no third direction can be told from them.
LEAST_SINE = 1e-7


@dataclass(frozen=True, eq=False)
class Turn:
    """A turn between two views of k axes: angles Θ (k,), U (k, k), W (k, k) and the log of the turn in the plane.

    >>> axes = np.eye(4)
    >>> turn = Turn.between(axes[:, :2], axes[:, 2:])
    >>> np.round(np.degrees(turn.angles))
    array([90., 90.])
    """

    angles: Array
    U: Array
    W: Array
    L: Array

    @classmethod
    def between(cls, A: Array, B: Array) -> Turn:
        """The turn from the plane of A (d, k) to that of B."""
        U, cosines, W = np.linalg.svd(A.T @ B)
        cosines = np.clip(cosines, -1.0, 1.0)
        if np.linalg.det(U @ W) < 0:
            # A plane seen from behind: the least aligned direction turns the long way round instead, so that the frame
            # turns and is never folded.
            U[:, -1] *= -1
            cosines[-1] *= -1
        return cls(np.arccos(cosines), U, W, _rotation_log(U @ W))

    def at(self, t: float) -> tuple[Array, Array]:
        """M₁ and M₂ (k, k) at 0 ≤ t ≤ 1."""
        sines = np.sin(self.angles)
        apart = np.abs(sines) > LEAST_SINE
        safe = np.where(apart, sines, 1.0)
        new = np.sin(t * self.angles) / safe
        old = np.cos(t * self.angles) - np.cos(self.angles) * new
        # Coinciding directions: a straight way between the two ends; opposite ones go through the middle as a turn
        # seen edge-on does.
        eased = np.where(np.cos(self.angles) > 0, t, (1 - np.cos(np.pi * t)) / 2)
        new, old = np.where(apart, new, eased), np.where(apart, old, 1 - eased)
        frame = self.U.T @ expm(t * self.L)
        return (self.U * old) @ frame, (self.W.T * new) @ frame

    def told(self) -> dict[str, Any]:
        """The turn as plain lists for the page, which makes M₁ and M₂ of them."""
        return {"angles": self.angles.tolist(), "U": self.U.tolist(), "W": self.W.tolist(), "L": self.L.tolist()}


def _rotation_log(R: Array) -> Array:
    """The skew L with exp(L) = R, for a rotation of two or three axes."""
    if len(R) == 2:
        angle = np.arctan2(R[1, 0], R[0, 0])
        return angle * np.array([[0.0, -1.0], [1.0, 0.0]])
    if len(R) == 3 and np.trace(R) < -1 + 1e-9:
        # Half a turn: the logarithm is not unique, and its axis is the direction that stays.
        values, vectors = np.linalg.eigh((R + R.T) / 2)
        x, y, z = vectors[:, np.argmax(values)]
        return np.pi * np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    found = np.real(logm(R))
    return (found - found.T) / 2
