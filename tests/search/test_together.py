"""Several μ searched side by side: what comes out is what a race for each of them gives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from helpers import grouped, objective_of, random_stack
from imapce.search.objective import Objective
from imapce.search.race import minimize, sketch

DATA = grouped()
D = DATA.X.shape[1]
MUS = (10.0, 100.0, 1000.0)


def objectives() -> list[Objective]:
    first = objective_of(DATA.X, engine="dense", mu=MUS[0], known=[0, 1])
    return [Objective(first.M, first.Z, mu) for mu in MUS]


def test_each_mu_has_the_optimum_of_a_race_of_its_own() -> None:
    starts = random_stack(6, D, 2)
    found, trace = sketch(objectives(), starts, tol=1e-8, max_iter=500)
    for objective, optima in zip(objectives(), found, strict=True):
        alone = minimize(objective, starts, tol=1e-8, preconditioner=objective.preconditioner(2), polish=False).optima
        assert optima[0].mu == objective.mu
        assert optima[0].objective == pytest.approx(alone[0].objective, rel=1e-10)
        assert subspace_angles(optima[0].V, alone[0].V).max() < 1e-5
        assert optima[0].kurtosis == pytest.approx(float(objective.kurtosis(optima[0].V[None])[0]))
    assert trace.objectives.shape[1] == len(MUS) * len(starts)


def test_starts_of_another_mu_are_no_rivals() -> None:
    """All begin at one place, where a start of the same μ would be joined at the first review."""
    starts = random_stack(1, D, 2)
    found, trace = sketch(objectives(), starts, tol=1e-6, max_iter=500)
    assert len(found) == len(MUS)
    assert trace.outcomes == ["converged"] * len(MUS)


def test_all_mu_are_evaluated_in_one_pass() -> None:
    together = objectives()
    sketch(together, random_stack(4, D, 2), tol=1e-4, max_iter=200)
    alone = 0
    for objective in objectives():
        minimize(objective, random_stack(4, D, 2), tol=1e-4, max_iter=200, polish=False)
        alone += objective.n_evaluations
    assert sum(one.n_evaluations for one in together) < alone


def test_without_kurtosis_the_closed_form_lies_where_rows_vary() -> None:
    """Rows to explore that do not vary along the leading axis of M: projected there, it was no optimum any more."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6)) * [9.0, 4.0, 3.0, 2.0, 1.0, 1.0]
    X[:, 5] = X[:, 0] + X[:, 1]
    M = rng.standard_normal((6, 6))
    first = objective_of(X, engine="dense", mu=0.0)
    objective = Objective(type(first.M).of_matrix(M @ M.T), first.Z, 0.0)
    start = objective.starts_in_range(np.linalg.eigh(M @ M.T)[1][:, ::-1][None, :, :2])
    solution = minimize(objective, start, tol=1e-10)
    assert solution.n_evaluations <= 2
    assert solution.optima[0].relative_gradient < 1e-12
    assert np.allclose(objective.within_range(solution.optima[0].V), solution.optima[0].V)
