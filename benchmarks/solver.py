"""Claim: ten starts of ours against ten starts of pymanopt's steepest descent, on the same cost and gradient.

The peer gets our one-pass evaluation (value and gradient together, cached between its two calls, with the same number
of BLAS threads). Each of its starts may stop as soon as it reaches our objective; otherwise it runs to its own end
(1,000 iterations, its default rules). "Reaches" is printed for three readings: all digits (ours goes to rounding), so
that the peer too runs to its end; nine digits; six digits.
"""

from __future__ import annotations

import contextlib
import time

import numpy as np
import pymanopt
from pymanopt.manifolds import Stiefel
from pymanopt.optimizers import SteepestDescent

from benchmarks.problems import Problem, image_segmentation, superimposed_digits, synthetic
from imapce.common.work import one_thread
from imapce.search.descent import random_frames
from imapce.search.objective import Objective
from imapce.search.race import minimize
from imapce.search.starts import contrastive_axes, starting_frames

N_STARTS, K = 10, 2


class Reached(Exception):
    """The peer is as low as we are."""


class CachedCost:
    def __init__(self, objective: Objective, target: float, digits: int):
        self.objective, self.target = objective, target + 10.0**-digits * abs(target)
        self.point, self.result = None, None
        self.lowest = np.inf

    def at(self, V):
        if self.point is None or not np.array_equal(V, self.point):
            self.point = V.copy()
            self.result = self.objective.evaluate(V[None])
            self.lowest = min(self.lowest, float(self.result.value[0]))
            if self.lowest <= self.target:
                raise Reached
        return self.result


def ours(problem: Problem, seed: int) -> tuple[float, float, int]:
    start = time.perf_counter()
    objective = problem.objective()
    axes = contrastive_axes(problem.M, K)
    frames = objective.within_range(starting_frames(axes, problem.Z, N_STARTS, np.random.default_rng(seed)))
    folded = problem.Z.rows.folded
    with one_thread() if folded else contextlib.nullcontext():
        solution = minimize(objective, frames, preconditioner=objective.preconditioner(K), newton=folded)
    return time.perf_counter() - start, solution.optima[0].objective, objective.n_evaluations


def steepest_descent(problem: Problem, target: float, digits: int, seed: int) -> tuple[float, float, int]:
    d = problem.Z.n_features
    manifold = Stiefel(d, K)
    lowest, evaluations, seconds = np.inf, 0, 0.0
    for frame in random_frames(N_STARTS, d, K, np.random.default_rng(seed), problem.Z.informative):
        objective = problem.objective()
        cost = CachedCost(objective, target, digits)

        @pymanopt.function.numpy(manifold)
        def value(V, cost=cost):
            return float(cost.at(V).value[0])

        @pymanopt.function.numpy(manifold)
        def gradient(V, cost=cost):
            return cost.at(V).gradient[0]

        task = pymanopt.Problem(manifold, value, euclidean_gradient=gradient)
        start = time.perf_counter()
        with contextlib.suppress(Reached), one_thread() if problem.Z.rows.folded else contextlib.nullcontext():
            SteepestDescent(verbosity=0).run(task, initial_point=frame)
        seconds += time.perf_counter() - start
        lowest = min(lowest, cost.lowest)
        evaluations += objective.n_evaluations
    return seconds, lowest, evaluations


def main() -> None:
    for make, floor in ((synthetic, 50), (image_segmentation, 50), (superimposed_digits, 20)):
        problem = make()
        ours(problem, 99)
        runs = [ours(problem, seed) for seed in range(5)]
        seconds = float(np.median([run[0] for run in runs]))
        value = max(run[1] for run in runs)
        print(f"{problem.name}: ours {1e3 * seconds:.1f} ms, objective {value:.10g} (worst of five seeds)", flush=True)
        for digits in (15, 9, 6):
            peer_seconds, peer_value, evaluations = steepest_descent(problem, min(run[1] for run in runs), digits, 0)
            print(
                f"    pymanopt steepest descent to {digits} digits: {peer_seconds:.2f} s, objective {peer_value:.10g}, "
                f"{evaluations} evaluations; ratio {peer_seconds / seconds:.0f}x (claim {floor}x)",
                flush=True,
            )


if __name__ == "__main__":
    main()
