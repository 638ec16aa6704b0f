"""The race of starts: what it finds, how it ranks, why it stops, what it tells."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from helpers import grouped, literal_objective, objective_of, only_columns, random_stack, standardised
from imapce import IMAPCE
from imapce.errors import InvalidValueError
from imapce.rows.standardized import QuadraticForm
from imapce.search.objective import Evaluation, Objective
from imapce.search.race import JOINED, Progress, Solution, minimize

DATA = grouped()
D = DATA.X.shape[1]


def problem(mu: float = 100.0) -> Objective:
    return objective_of(DATA.X, engine="dense", mu=mu, known=[0, 1])


def solved(n_starts: int = 12, k: int = 2, **options: object) -> Solution:
    return minimize(problem(), random_stack(n_starts, D, k), **options)  # type: ignore[arg-type]


class Rayleigh:
    """tr(M) − tr(VᵀMV), whose optimum is known: the leading eigenvectors."""

    noise = 1e-13

    def __init__(self, M: np.ndarray):
        self.M = M

    def evaluate(self, V: np.ndarray) -> Evaluation:
        MV = self.M @ V
        value = np.trace(self.M) - np.einsum("rdk,rdk->r", V, MV)
        return Evaluation(value, -2 * MV, np.ones(len(V)), 2 * np.linalg.norm(MV, axis=(1, 2)))


@pytest.mark.parametrize("d", [6, 90])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_optimum_of_a_rayleigh_quotient_is_its_leading_eigenspace(d: int, k: int) -> None:
    """At d = 90 the tangent space is too large for Newton steps, so both ways of finishing are covered."""
    rng = np.random.default_rng(d)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    eigenvalues = np.concatenate([[9.0, 7.0, 5.0], np.linspace(3, 1, d - 3)])
    M = (Q * eigenvalues) @ Q.T
    solution = minimize(Rayleigh(M), random_stack(5, d, k))
    assert solution.converged
    assert solution.optima[0].objective == pytest.approx(eigenvalues[k:].sum(), rel=1e-10)
    assert subspace_angles(solution.optima[0].V, Q[:, :k]).max() < 1e-6
    assert len(solution.optima) == 1


def test_optima_are_ranked_distinct_and_reached_by_no_more_starts_than_there_were() -> None:
    """Every pair of six two-valued columns is a local optimum."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(300, 6)) + 0.3 * rng.normal(size=(300, 6))
    solution = minimize(objective_of(X, engine="dense", mu=1000.0), random_stack(20, 6, 2))
    values = [optimum.objective for optimum in solution.optima]
    assert values == sorted(values)
    assert len(values) >= 2
    for i, one in enumerate(solution.optima):
        assert np.allclose(one.V.T @ one.V, np.eye(2), atol=1e-12)
        assert one.starts >= 1
        for other in solution.optima[:i]:
            assert np.sum(np.sin(subspace_angles(one.V, other.V)) ** 2) >= JOINED
    assert sum(optimum.starts for optimum in solution.optima) <= 20


def test_every_reported_objective_is_that_of_its_frame_and_its_gradient_is_small() -> None:
    Z = standardised(DATA.X)
    objective = problem()
    for optimum in solved().optima:
        literal = literal_objective(Z, only_columns(Z, [0, 1]), Z, optimum.V, 1.0, 100.0)
        assert optimum.objective == pytest.approx(literal, rel=1e-10)
        evaluation = objective.evaluate(optimum.V[None])
        gradient = evaluation.gradient[0] - optimum.V @ (optimum.V.T @ evaluation.gradient[0])
        relative = np.linalg.norm(gradient) / evaluation.scale[0]
        assert relative == pytest.approx(optimum.relative_gradient, rel=1e-2, abs=1e-11)
        assert optimum.converged == (optimum.relative_gradient <= 1e-6)


def test_no_start_ends_above_where_it_began() -> None:
    starts = random_stack(6, D, 2)
    first = problem().evaluate(starts).value
    for i in range(6):
        assert minimize(problem(), starts[i : i + 1]).optima[0].objective < first[i]


def test_more_starts_never_end_higher() -> None:
    best = [solved(n).optima[0].objective for n in (1, 4, 16)]
    assert best[0] >= best[1] - 1e-7
    assert best[1] >= best[2] - 1e-7


def test_the_preconditioner_changes_the_way_and_not_the_optimum() -> None:
    plain = solved(8)
    P = problem().preconditioner(2)
    assert P is not None
    guided = minimize(problem(), random_stack(8, D, 2), preconditioner=P)
    assert guided.optima[0].objective == pytest.approx(plain.optima[0].objective, rel=1e-9)
    assert subspace_angles(guided.optima[0].V, plain.optima[0].V).max() < 1e-5
    assert not np.array_equal(guided.trace.objectives[:2], plain.trace.objectives[:2])


def test_a_race_that_need_not_be_polished_ends_at_the_tolerance_with_fewer_evaluations() -> None:
    rough, fine = problem(), problem()
    starts = random_stack(12, D, 2)
    compared = minimize(rough, starts, tol=1e-3, polish=False)
    polished = minimize(fine, starts, tol=1e-3)
    assert rough.n_evaluations < fine.n_evaluations
    assert compared.converged
    assert polished.optima[0].relative_gradient <= 1e-6 < compared.optima[0].relative_gradient <= 1e-3
    assert np.max(subspace_angles(compared.optima[0].V, polished.optima[0].V)) < 0.05


def test_the_starts_are_not_changed() -> None:
    starts = random_stack(4, D, 2)
    before = starts.tobytes()
    minimize(problem(), starts)
    assert starts.tobytes() == before


def test_the_trace_has_a_row_per_round_and_a_column_per_start() -> None:
    solution = solved(7)
    trace = solution.trace
    assert trace.objectives.shape == (len(trace.evaluations), 7)
    assert trace.evaluations == sorted(set(trace.evaluations))
    assert len(trace.outcomes) == 7
    assert set(trace.outcomes) <= {"converged", "joined", "gave up", "stopped", "exhausted"}
    race = trace.objectives
    for start in range(7):
        running = race[~np.isnan(race[:, start]), start]
        assert np.all(np.diff(running) <= 1e-9 * np.abs(running[:-1]))


def test_a_converged_race_says_so_in_words() -> None:
    solution = solved(6)
    assert solution.converged
    assert solution.stop_reason.startswith("Converged: ")
    assert f"{solution.optima[0].starts} of 6 starts" in solution.stop_reason
    assert f"after {solution.n_iterations} iterations." in solution.stop_reason


def test_a_race_cut_short_says_so_in_words() -> None:
    solution = solved(6, max_iter=2)
    assert not solution.converged
    assert solution.stop_reason.startswith("Not converged: ")
    assert "6 stopped" in solution.stop_reason
    assert "Raise max_iter or tol (now 1e-06)." in solution.stop_reason
    assert solution.n_iterations == 2
    assert set(solution.trace.outcomes) == {"stopped"}


def test_a_start_at_the_optimum_has_nothing_to_do() -> None:
    best = solved().optima[0]
    again = minimize(problem(), best.V[None])
    assert again.converged
    assert again.n_iterations == 0
    assert subspace_angles(again.optima[0].V, best.V).max() < 1e-7


def test_a_callback_sees_every_round_and_what_it_raises_comes_through() -> None:
    seen: list[Progress] = []
    solution = solved(5, callback=seen.append)
    assert [progress.round for progress in seen] == list(range(1, len(seen) + 1))
    assert seen[0].running == 5
    assert solution.optima[0].objective <= seen[-1].best * (1 + 1e-12)
    assert seen[-1].best <= seen[0].best

    class Enough(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.round == 2:
            raise Enough

    with pytest.raises(Enough):
        solved(5, callback=stop)


def test_starts_in_flat_directions_give_up_and_the_others_go_on() -> None:
    flat = np.zeros((1, D, 2))
    flat[0, 0, 0] = flat[0, 4, 1] = 1.0
    X = DATA.X.copy()
    X[:, 4] = 7.0
    objective = objective_of(X, engine="dense", mu=100.0)
    others = random_stack(3, D, 2)
    others[:, 4] = 0.0
    solution = minimize(objective, np.concatenate([flat, others]))
    assert solution.trace.outcomes[0] == "gave up"
    assert np.isfinite(solution.optima[0].objective)


def test_a_quadratic_form_without_a_matrix_is_solved_as_well() -> None:
    C = problem().M.matrix
    assert C is not None
    implicit = QuadraticForm(D, float(np.trace(C)), lambda V: C @ V)
    objective = problem()
    objective.M = implicit
    assert minimize(objective, random_stack(8, D, 2)).optima[0].objective == pytest.approx(
        solved(8).optima[0].objective, rel=1e-9
    )


def test_rows_that_vary_in_one_direction_are_refused_by_every_engine() -> None:
    column = np.random.default_rng(0).normal(size=(40, 1))
    X = column * [1.0, 2.0, -3.0]
    for engine in ("dense", "sparse", "moment_tensor"):
        with pytest.raises(InvalidValueError, match="vary in at least n_components=2 directions"):
            IMAPCE(mu=1.0, engine=engine, random_state=0).fit(X)
