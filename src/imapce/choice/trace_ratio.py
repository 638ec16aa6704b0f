"""The weight of the known at which the best view has nothing over it: gcPCA's ratio for a whole k-frame.

    α* = max_V tr(VᵀC_XV)/tr(VᵀC_YV),  VᵀV = I_k,        C_Y = Σ wⱼ YⱼᵀYⱼ

At α* the best k-frame of C_X − αC_Y keeps exactly as much of the data as of the weighted known: below α* some view
shows more of the data, above it none does. Multiplying Y by c divides α* by c², so α*·C_Y, and with it the view, does
not depend on the scale or the number of rows of what is known.

The maximum is the zero of φ(α) = max_V tr(Vᵀ(C_X − αC_Y)V), a convex falling function, and Newton's method on it (of
Dinkelbach for ratios; Ngo, Bellalij and Saad 2012 for traces) is one eigenproblem a step: it climbs to α* without a
step size and never beyond.

Where the known does not vary in k directions, as for known columns always, the ratio has no bound. So C_Y gets the
ridge of gcPCA, C_Y + ε(tr C_Y/d)I, and α* is at most 1/ε times what a known that varies alike everywhere would give.

Among many columns there are always some directions in which a background hardly varies, and the ratio is about those:
on 784 pixels (sandals and sneakers over digits) α* is in the thousands, and the view is worse than with α = 1. Trust α*
where columns are few against the rows of the background.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from imapce.priors.problem import Problem
from imapce.rows.standardized import QuadraticForm
from imapce.search.starts import contrastive_axes

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# ε: a known that varies alike everywhere moves α by this share, and a flat one stays within its reciprocal.
RIDGE = 0.01
# A step doubles the digits: after one that moved the eighth, all are right. Five or six were seen (d = 60 to 1,500).
SETTLED = 1e-8
MOST_STEPS = 60


@dataclass(frozen=True)
class RatioWeight:
    """α* and whether the ridge gave it: true where more than half of the known it stands against is the ridge's."""

    alpha: float
    capped: bool


def with_ridge(form: QuadraticForm, share: float, columns: Mask) -> QuadraticForm:
    """C + ε(tr C/d)·I on the d `columns`, ε the `share`."""
    ridge = share * form.trace / columns.sum()
    if ridge == 0.0:
        return form
    keep = columns.astype(np.float64)
    if form.matrix is not None:
        return QuadraticForm.of_matrix(form.matrix + ridge * np.diag(keep))
    trace = form.trace + ridge * float(keep.sum())
    return QuadraticForm(form.size, trace, lambda V: form @ V + ridge * keep[:, None] * V)


def trace_ratio(C_X: QuadraticForm, C_Y: QuadraticForm, n_components: int) -> tuple[float, Array]:
    """max_V tr(VᵀC_XV)/tr(VᵀC_YV) and the frame V (d, k) that attains it; ∞ where C_Y is zero on a frame.

    >>> forms = [QuadraticForm.of_matrix(np.diag(values)) for values in ([4.0, 3.0, 1.0], [1.0, 1.0, 2.0])]
    >>> float(trace_ratio(*forms, n_components=2)[0])
    3.5
    """
    ratio, best = 0.0, np.zeros((C_X.size, n_components))
    for _ in range(MOST_STEPS):
        V = contrastive_axes(QuadraticForm.combine([(1.0, C_X), (-ratio, C_Y)]), n_components)
        of_known = _kept(C_Y, V)
        # Less than that is rounding, and the next step would only measure it.
        if of_known <= np.finfo(np.float64).eps * C_Y.trace:
            return np.inf, V
        previous, ratio = ratio, _kept(C_X, V) / of_known
        if ratio <= previous:
            return previous, best
        best = V
        if ratio - previous <= SETTLED * ratio:
            break
    return ratio, best


def weight_by_ratio(problem: Problem) -> RatioWeight:
    """α* for a problem, over the views there can be: of columns that vary in Z, and of nothing that is erased.

    It comes from all rows and columns, so that it is the same whatever μ, and however μ is chosen. Without a prior, or
    with one that varies in nothing, α = 0.
    """
    terms, k = problem.Y, problem.n_components
    if not terms.any_known:
        return RatioWeight(0.0, capped=False)
    C_Y = QuadraticForm.combine(terms.second_moments)
    if C_Y.trace <= 0.0:
        return RatioWeight(0.0, capped=False)
    inside = problem.directions_left()
    columns = problem.X.informative & problem.Z.informative
    known = inside.form(C_Y)
    alpha, V = trace_ratio(inside.form(problem.X.second_moment), inside.form(with_ridge(C_Y, RIDGE, columns)), k)
    return RatioWeight(alpha, capped=_kept(known, V) < k * RIDGE * C_Y.trace / columns.sum())


def _kept(form: QuadraticForm, V: Array) -> float:
    """tr(VᵀCV)."""
    return float(np.sum(V * (form @ V)))
