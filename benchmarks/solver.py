"""Claim: ten starts of ours against ten starts of pymanopt's steepest descent, on the same cost and gradient.

The peer gets our one-pass evaluation (value and gradient together, cached between its two calls, with the same number
of BLAS threads). Each of its starts may stop as soon as it reaches our objective; otherwise it runs to its own end
(1,000 iterations, its default rules). "Reaches" has three readings: all digits (ours goes to rounding), so that the
peer too runs to its end, which the claim is about; nine digits; six digits. The clock is read on the way: one run for
all three.
"""

from __future__ import annotations

import contextlib
import time
from argparse import Namespace

import numpy as np
import pymanopt
from pymanopt.manifolds import Stiefel
from pymanopt.optimizers import SteepestDescent

from benchmarks.problems import Problem, image_segmentation, superimposed_digits, synthetic
from benchmarks.record import Record, at_least, measure
from imapce.common.work import one_thread
from imapce.search.descent import random_frames
from imapce.search.objective import Objective
from imapce.search.race import minimize
from imapce.search.starts import contrastive_axes, starting_frames

N_STARTS, K = 10, 2
READINGS = (15, 9, 6)
# How many times faster ten starts are, by the reading of all digits.
CLAIMS = {synthetic: 60, image_segmentation: 90, superimposed_digits: 25}


class Reached(Exception):
    """The peer is as low as we are."""


class CachedCost:
    """Value and gradient of the last point, and when each reading of "as low as we are" was first met."""

    def __init__(self, objective: Objective, target: float):
        self.objective = objective
        self.targets = {digits: target + 10.0**-digits * abs(target) for digits in READINGS}
        self.reached: dict[int, float] = {}
        self.point, self.result = None, None
        self.lowest = np.inf

    def at(self, V):
        if self.point is None or not np.array_equal(V, self.point):
            self.point = V.copy()
            self.result = self.objective.evaluate(V[None])
            self.lowest = min(self.lowest, float(self.result.value[0]))
            for digits, target in self.targets.items():
                if self.lowest <= target and digits not in self.reached:
                    self.reached[digits] = time.perf_counter()
            if len(self.reached) == len(READINGS):
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


def steepest_descent(problem: Problem, target: float, seed: int) -> tuple[dict[int, float], float, int]:
    """Seconds of all starts by reading, the lowest objective, and evaluations to the end."""
    d = problem.Z.n_features
    manifold = Stiefel(d, K)
    lowest, evaluations, seconds = np.inf, 0, dict.fromkeys(READINGS, 0.0)
    for frame in random_frames(N_STARTS, d, K, np.random.default_rng(seed), problem.Z.informative):
        objective = problem.objective()
        cost = CachedCost(objective, target)

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
        end = time.perf_counter()
        for digits in READINGS:
            seconds[digits] += cost.reached.get(digits, end) - start
        lowest = min(lowest, cost.lowest)
        evaluations += objective.n_evaluations
    return seconds, lowest, evaluations


def main(record: Record, asked: Namespace) -> None:
    table = record.table(
        "Ten starts",
        *("problem", "ours, s", "objective, worst of the seeds", "peer, s", "objective of the peer"),
        *("evaluations of the peer", "times faster, all digits", "nine digits", "six digits"),
    )
    for make, floor in list(CLAIMS.items())[: 2 if asked.quick else None]:
        problem = make()
        ours(problem, 99)
        runs = [ours(problem, seed) for seed in range(5)]
        seconds = float(np.median([run[0] for run in runs]))
        peer, lowest, evaluations = steepest_descent(problem, min(run[1] for run in runs), 0)
        faster = {digits: peer[digits] / seconds for digits in READINGS}
        table.row(
            *(problem.name, seconds, f"{max(run[1] for run in runs):.10g}", peer[15], f"{lowest:.10g}", evaluations),
            *(faster[digits] for digits in READINGS),
            claim=at_least(floor, "times faster, all digits"),
        )


if __name__ == "__main__":
    measure("solver", main, __doc__)
