"""IMAPCE as the authors search for it: one start, steepest descent, pymanopt's own rules for stopping.

The objective and its gradient are ours, in one pass over the rows. Where the kurtosis rules (μ = 1e7 on images), this
ends far above the lowest objective, and the views differ from those of ten starts that go to the end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pymanopt
from pymanopt.manifolds import Stiefel
from pymanopt.optimizers import SteepestDescent

from imapce import IMAPCE
from imapce.common.checks import random_generator
from imapce.priors.problem import Problem
from imapce.search.descent import random_frames
from imapce.search.objective import Objective
from imapce.search.race import Solution, minimize


class SteepestIMAPCE(IMAPCE):
    """IMAPCE with one random start and pymanopt's steepest descent in place of our solver."""

    def _solution(self, problem: Problem, *others: Any) -> Solution:
        alpha, mu = float(self.alpha) if problem.Y.any_known else 0.0, float(self.mu)
        Z = problem.Z
        objective = Objective(problem.contrast(alpha), Z, mu)
        manifold = Stiefel(Z.n_features, self.n_components)
        seen: dict[str, Any] = {}

        def at(V: np.ndarray) -> Any:
            # pymanopt asks for the value and the gradient of a point one after the other.
            if "V" not in seen or not np.array_equal(V, seen["V"]):
                seen.update(V=V.copy(), result=objective.evaluate(V[None]))
            return seen["result"]

        @pymanopt.function.numpy(manifold)
        def value(V: np.ndarray) -> float:
            return float(at(V).value[0])

        @pymanopt.function.numpy(manifold)
        def gradient(V: np.ndarray) -> np.ndarray:
            return at(V).gradient[0]

        rng = np.random.default_rng(int(random_generator(self.random_state).randint(2**31 - 1)))
        start = random_frames(1, Z.n_features, self.n_components, rng, Z.informative)[0]
        task = pymanopt.Problem(manifold, value, euclidean_gradient=gradient)
        V = SteepestDescent(verbosity=0).run(task, initial_point=start).point
        # Our solver only words the result: from V it may not move.
        solution = minimize(objective, V[None], max_iter=1, tol=np.inf)
        best = solution.optima[0]
        kurtosis = float(objective.kurtosis(best.V[None])[0])
        best = replace(best, alpha=alpha, mu=mu, kurtosis=kurtosis)
        return replace(solution, optima=[best], n_evaluations=objective.n_evaluations)
