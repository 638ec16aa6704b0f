"""What must not change the view: the order and the repetition of rows, the order, units and padding of columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import angle_between, grouped
from imapce import IMAPCE, Attributes, Samples, Subset

DATA = grouped()
MU = 300.0
SAME = 1e-5
# Clusters are told by rows left out, drawn by the values of the rows: other units draw others, and what is explained
# given the clusters changes in its third digit.
ALIKE = 0.01
seeds = st.integers(0, 10_000)
few = settings(max_examples=6)


def fitted(X: np.ndarray, columns: list[int], mu: float = MU, alpha: float | str = 1.0, **options: object) -> IMAPCE:
    """The known columns weighed as in the paper, or with alpha="auto" explained away."""
    return IMAPCE(mu=mu, alpha=alpha, n_starts=6, random_state=0, **options).fit(X, prior=Attributes(columns))


REFERENCE = fitted(DATA.X, [0, 1])
EXPLAINED = fitted(DATA.X, [0, 1], alpha="auto")


def test_the_reference_view_shows_the_quiet_grouping() -> None:
    """The invariances below are only worth something on a view with a clear optimum."""
    for model in (REFERENCE, EXPLAINED):
        loaded = np.sum(model.components_**2, axis=0)
        assert loaded[2:4].sum() > 1.9
        assert model.optima_[0].starts >= 2


@few
@given(seeds)
def test_row_order_does_not_change_the_view(seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(DATA.X))
    assert angle_between(fitted(DATA.X[order], [0, 1]).components_, REFERENCE.components_) < SAME
    assert angle_between(fitted(DATA.X[order], [0, 1], alpha="auto").components_, EXPLAINED.components_) < SAME


@few
@given(seeds)
def test_column_order_only_reorders_the_loadings(seed: int) -> None:
    order = np.random.default_rng(seed).permutation(DATA.X.shape[1])
    known = [int(np.flatnonzero(order == column)[0]) for column in (0, 1)]
    assert angle_between(fitted(DATA.X[:, order], known).components_, REFERENCE.components_[:, order]) < SAME
    explained = fitted(DATA.X[:, order], known, alpha="auto")
    assert angle_between(explained.components_, EXPLAINED.components_[:, order]) < ALIKE


@few
@given(seeds)
def test_units_and_zero_points_of_columns_do_not_change_the_view(seed: int) -> None:
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.uniform(-4, 4, size=DATA.X.shape[1]) * rng.choice([-1, 1], size=DATA.X.shape[1])
    moved = DATA.X * units + 100 * np.abs(units) * rng.normal(size=DATA.X.shape[1])
    signs = np.sign(units)
    assert angle_between(fitted(moved, [0, 1]).components_ * signs, REFERENCE.components_) < SAME
    explained = fitted(moved, [0, 1], alpha="auto")
    assert angle_between(explained.components_ * signs, EXPLAINED.components_) < ALIKE


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("engine", ["dense", "moment_tensor"])
def test_every_row_repeated_gives_the_same_view_with_mu_as_many_times_larger(times: int, engine: str) -> None:
    """The variance terms grow with n and κ does not, so μ must grow with n too."""
    model = fitted(np.repeat(DATA.X, times, axis=0), [0, 1], mu=times * MU, engine=engine)
    assert angle_between(model.components_, REFERENCE.components_) < SAME
    assert model.kurtosis_ == pytest.approx(REFERENCE.kurtosis_, rel=1e-8)
    assert model.objective_ == pytest.approx(times * REFERENCE.objective_, rel=1e-8)
    explained = fitted(np.repeat(DATA.X, times, axis=0), [0, 1], mu=times * MU, alpha="auto", engine=engine)
    assert angle_between(explained.components_, EXPLAINED.components_) < ALIKE


@few
@given(st.integers(0, 8), st.sampled_from([0.0, 0.1, -7.0, 1e9]), st.sampled_from(["dense", "moment_tensor", "sparse"]))
def test_a_constant_column_anywhere_changes_nothing_and_gets_no_weight(place: int, value: float, engine: str) -> None:
    X = np.insert(DATA.X, place, value, axis=1)
    known = [column + (column >= place) for column in (0, 1)]
    for alpha, expected, bound in ((1.0, REFERENCE, SAME), ("auto", EXPLAINED, ALIKE)):
        components = fitted(X, known, alpha=alpha, engine=engine).components_
        assert np.abs(components[:, place]).max() < 1e-12
        assert angle_between(np.delete(components, place, axis=1), expected.components_) < bound


@few
@given(seeds)
def test_with_centring_only_a_rotation_of_the_space_rotates_the_view(seed: int) -> None:
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(8, 8)))[0]
    rows = np.arange(300) < 40
    options: dict = {"mu": MU, "n_starts": 6, "random_state": 0, "standardize": False}
    plain = IMAPCE(**options).fit(DATA.X, prior=Subset(rows))
    turned = IMAPCE(**options).fit(DATA.X @ turn, prior=Subset(rows))
    assert turned.objective_ == pytest.approx(plain.objective_, rel=1e-7)
    assert angle_between(turned.components_ @ turn.T, plain.components_) < SAME


@few
@given(seeds)
def test_order_of_background_rows_does_not_change_the_view(seed: int) -> None:
    background = DATA.X[:120] + 0.1 * np.random.default_rng(1).normal(size=(120, 8))
    order = np.random.default_rng(seed).permutation(120)
    options: dict = {"mu": MU, "n_starts": 6, "random_state": 0}
    one = IMAPCE(**options).fit(DATA.X, prior=Samples(background))
    other = IMAPCE(**options).fit(DATA.X, prior=Samples(background[order]))
    assert angle_between(one.components_, other.components_) < SAME


def test_a_subset_by_mask_by_positions_and_by_negative_positions_is_the_same() -> None:
    mask = np.zeros(300, dtype=bool)
    mask[[3, 4, 250, 299]] = True
    mask[20:60] = True
    positions = np.flatnonzero(mask)
    views = [
        IMAPCE(mu=MU, n_starts=4, random_state=0).fit(DATA.X, prior=Subset(rows)).components_
        for rows in (mask, positions, positions[::-1].tolist(), positions - 300)
    ]
    for view in views[1:]:
        assert np.array_equal(view, views[0])
