"""Where views are searched, and the optima at one α and μ there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from helpers import angle_between, literal_objective, standardised
from imapce import Attributes, Samples, Subset
from imapce.choice.path import Domain, find_optima, solve_at
from imapce.common.settings import SETTINGS
from imapce.priors.problem import Problem, pose
from imapce.rows.open import open_rows
from imapce.search.starts import contrastive_axes
from imapce.tables.reader import Reader

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 6)) * np.arange(1, 7) + 4 * np.sign(RNG.standard_normal((200, 1))) * np.eye(1, 6)


def posed(table: np.ndarray, priors: Sequence[Any] = ()) -> Problem:
    reader, matrix = Reader.learn(table)
    return pose(open_rows(matrix), list(priors), reader, n_components=2)


def test_few_columns_are_searched_whole() -> None:
    problem = posed(X)
    domain = Domain.from_problem(problem)
    assert not domain.is_reduced
    assert domain.Z is problem.Z
    assert domain.contrast(1.0) is domain.X


@pytest.mark.parametrize("table", [RNG.standard_normal((300, 80)), RNG.standard_normal((500, 6))])
def test_many_columns_and_many_rows_are_searched_in_leading_axes(table: np.ndarray) -> None:
    domain = Domain.from_problem(posed(table), replace(SETTINGS.clusters, many_rows=400))
    assert domain.is_reduced
    assert domain.Z.n_rows <= 400
    assert domain.Z.n_features <= 10
    frame = np.linalg.qr(RNG.standard_normal((domain.Z.n_features, 2)))[0]
    np.testing.assert_allclose(domain.lift(frame).T @ domain.lift(frame), np.eye(2), atol=1e-12)


def test_erased_columns_bar_their_directions() -> None:
    domain = Domain.unreduced(posed(X, [Attributes([0, 1], erase=True)]))
    assert domain.Z.n_features == 4
    Z = standardised(X)
    lifted = domain.lift(np.eye(4)[:, :2])
    assert np.abs(Z[:, :2].T @ Z @ lifted).max() < 1e-8


def test_a_background_is_taken_from_the_data_by_its_weight() -> None:
    background = RNG.standard_normal((100, 6))
    domain = Domain.unreduced(posed(X, [Samples(background)]))
    contrast = domain.contrast(2.0).matrix
    Z, Y = standardised(X), standardised(background)
    np.testing.assert_allclose(contrast, Z.T @ Z - 2 * Y.T @ Y, atol=1e-8)


@pytest.mark.parametrize("mu", [0.0, 5.0, "paper"])
def test_the_optima_of_a_point_are_those_of_equation_two_best_first(mu: Any) -> None:
    known = np.arange(200) < 40
    solution = solve_at(posed(X, [Subset(known)]), 1.5, mu, seed=0)
    values = [view.objective for view in solution.optima]
    assert values == sorted(values)
    best = solution.optima[0]
    assert best.alpha == 1.5
    assert best.converged
    assert (best.mu == mu) if mu != "paper" else best.mu > 0
    Y, Z = standardised(X[known]), standardised(X[~known])
    assert best.objective == pytest.approx(literal_objective(standardised(X), Y, Z, best.V, 1.5, best.mu), rel=1e-9)


def test_without_kurtosis_the_closed_form_is_the_optimum() -> None:
    domain = Domain.unreduced(posed(X))
    axes = contrastive_axes(domain.X, 2)
    solution = find_optima(domain.X, domain.Z, 0.0, axes[None], tol=1e-6, max_iter=50)
    assert angle_between(solution.optima[0].components, axes.T) < 1e-7
