"""Rows inside a subspace are the rows times its basis, whichever engine reads them and however the basis is kept."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import grouped, random_stack, standardised
from imapce.rows.open import open_rows
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.rows.subspace import RowsWithin, Subspace

X = grouped().X
EVERY = np.ones(8, dtype=bool)


def basis(inside: Subspace) -> NDArray[np.float64]:
    return inside.lift(np.eye(inside.size))


@pytest.mark.parametrize("rank", [0, 1, 3, 7])
@pytest.mark.parametrize("left_out", [[], [0], [2, 6]])
def test_the_basis_is_orthonormal_and_orthogonal_to_what_is_erased(rank: int, left_out: list[int]) -> None:
    columns = ~np.isin(np.arange(8), left_out)
    B = np.random.default_rng(rank).normal(size=(8, rank))
    inside = Subspace(columns, B)
    N = basis(inside)
    assert inside.size == max(0, 8 - len(left_out) - rank)
    np.testing.assert_allclose(N.T @ N, np.eye(inside.size), atol=1e-14)
    np.testing.assert_allclose(N.T @ B, 0, atol=1e-13)
    assert np.all(N[~columns] == 0)
    np.testing.assert_allclose(inside.coordinates(np.eye(8)), N.T, atol=1e-15)


def test_coordinates_lead_back_to_the_vector() -> None:
    inside = Subspace(EVERY, np.random.default_rng(0).normal(size=(8, 2)))
    W = random_stack(3, inside.size, 2)
    np.testing.assert_allclose(inside.coordinates(inside.lift(W)), W, atol=1e-14)


def test_the_basis_depends_on_the_span_alone() -> None:
    B = np.random.default_rng(1).normal(size=(8, 3))
    mixed = B @ np.array([[2.0, 1.0, 0.0], [0.0, -1.0, 3.0], [1.0, 0.0, 1.0]])
    np.testing.assert_allclose(basis(Subspace(EVERY, mixed)), basis(Subspace(EVERY, B)), atol=1e-13)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_rank_is_that_of_unit_columns_and_zero_columns_count_for_nothing(scale: float) -> None:
    one, two = np.random.default_rng(2).normal(size=(2, 8, 1))
    B = np.hstack([one, scale * two, one + two, np.zeros((8, 1)), 3.0 * one])
    assert Subspace(EVERY, B).n_erased == 2
    assert Subspace(EVERY, np.zeros((8, 2))).is_whole


def test_a_first_direction_along_the_first_column_is_no_special_case() -> None:
    for sign in (1.0, -1.0):
        N = basis(Subspace(EVERY, sign * np.eye(8)[:, :2]))
        np.testing.assert_allclose(np.abs(N), np.eye(8)[:, 2:], atol=1e-15)


@pytest.mark.parametrize("engine", ["dense", "sparse", "moment_tensor"])
def test_reductions_are_those_of_the_rows_times_the_basis(engine: str) -> None:
    Z = StandardizedRows(open_rows(X, engine=engine))
    inside = Subspace(EVERY, Z.second_moment.columns(np.arange(8) < 2))
    within = RowsWithin(Z, inside)
    ZN = standardised(X) @ basis(inside)
    W = random_stack(4, inside.size, 2)
    U = np.matmul(ZN, W)
    expected = np.matmul(ZN.T, np.sum(U**2, axis=2, keepdims=True) * U)
    np.testing.assert_allclose(within.quartic(W), expected, rtol=1e-9, atol=1e-7)
    assert within.second_moment.matrix is not None
    np.testing.assert_allclose(within.second_moment.matrix, ZN.T @ ZN, atol=1e-9)
    np.testing.assert_allclose(np.vstack(list(within.blocks())), ZN, atol=1e-12)


def test_a_form_without_entries_gives_the_same_products_and_columns() -> None:
    Z = standardised(X)
    formed = QuadraticForm.of_matrix(Z.T @ Z)
    implied = QuadraticForm(8, formed.trace, lambda V: Z.T @ (Z @ V))
    chosen = np.arange(8) == 5
    np.testing.assert_allclose(implied.columns(chosen), formed.columns(chosen), atol=1e-10)
    inside = Subspace(EVERY, formed.columns(chosen))
    W = random_stack(1, inside.size, 2)[0]
    np.testing.assert_allclose(inside.form(implied) @ W, inside.form(formed) @ W, atol=1e-9)
    assert inside.form(implied).matrix is None
    assert inside.form(implied).trace == inside.form(formed).trace == formed.trace
