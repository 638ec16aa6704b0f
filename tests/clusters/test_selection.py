"""Selection of axes and components: held-out gain, starts, folds, and tables that have nothing to select."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from helpers import numeric_rows
from imapce.clusters import selection
from imapce.clusters.axes import sphering
from imapce.clusters.mixture import fit_mixtures, posteriors
from imapce.clusters.selection import Starts, folds, held_out, one_hot, select_mixture, sphere_locally
from imapce.common.settings import SETTINGS

CLUSTERS = SETTINGS.clusters


def select(Z: np.ndarray, **options: Any) -> selection.Selection:
    Z = (Z - Z.mean(axis=0)) @ sphering(Z)
    return select_mixture(lambda q: numeric_rows(Z), Z, [Z.shape[1]], **options)


def groups(k: int, n: int = 300, q: int = 5) -> tuple[np.ndarray, np.ndarray]:
    labels = np.arange(n) % k
    return np.random.default_rng(0).standard_normal((n, q)) + 7 * np.eye(k, q)[labels], labels


@pytest.mark.parametrize("k", [2, 3, 4])
def test_separate_groups_are_the_components(k: int) -> None:
    Z, labels = groups(k)
    found = select(Z)
    assert found.n_components == k
    assert adjusted_rand_score(labels, found.resp.argmax(axis=1)) > 0.99
    assert adjusted_rand_score(labels, found.heldout.argmax(axis=1)) > 0.99
    assert found.gain > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_one_gaussian_gains_hardly_anything(seed: int) -> None:
    # The gain is the largest of many; that of the groups above is more than 0.5.
    assert select(np.random.default_rng(seed).standard_normal((300, 6))).gain < 0.02


@pytest.mark.parametrize(("exponent", "k"), [(0.1, 5), (0.3, 3), (1.0, 2)])
def test_the_number_of_components_maximizes_the_gain_over_its_power(
    exponent: float, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    Z = np.random.default_rng(0).standard_normal((60, 2))
    gains = {2: 1.0, 3: 1.2, 5: 1.35}
    # 1.35/5^0.3 = 0.833, 1.2/3^0.3 = 0.863, 1/2^0.3 = 0.812
    fits = {k: (gain, one_hot(np.arange(60) % k, k), np.full((60, k), 1 / k), 0) for k, gain in gains.items()}
    monkeypatch.setattr(selection, "_compare_sizes", lambda *_: fits)
    found = select(Z, settings=replace(CLUSTERS, exponent=exponent))
    assert (found.n_components, found.gain) == (k, gains[k])


def test_the_default_exponent_counts_components() -> None:
    assert CLUSTERS.coarser > CLUSTERS.exponent == 0.3 > CLUSTERS.finer


def test_the_number_of_components_can_be_fixed() -> None:
    Z, labels = groups(3)
    found = select(Z, n_components=6)
    assert found.n_components == 6
    # Each of them is a part of one group.
    parts = found.resp.argmax(axis=1)
    assert sum(np.bincount(labels[parts == c]).max() for c in np.unique(parts)) > 0.97 * len(Z)


@pytest.mark.parametrize(("columns", "n_axes"), [([0], 2), ([0, 1], 2), ([4, 5], 6)])
def test_fewest_axes_with_a_share_of_the_best_gain_are_selected(columns: list[int], n_axes: int) -> None:
    Z = np.random.default_rng(0).standard_normal((400, 8))
    Z[:, columns] += 8 * np.eye(3, len(columns))[np.arange(400) % 3]
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    found = select_mixture(lambda q: numeric_rows(Z[:, :q]), Z, [2, 6, 8])
    assert found.n_axes == n_axes


def test_held_out_densities_are_by_mixtures_fitted_to_other_folds() -> None:
    Z, labels = groups(3, 90)
    rows, fold = numeric_rows(Z), folds(90, 3)
    starts = np.stack([one_hot(np.random.default_rng(1).integers(0, 3, 90), 3), one_hot(labels, 3)])
    density, heldout, best = held_out(rows, starts, fold, CLUSTERS)
    assert best == 1
    for f in range(3):
        logs = fit_mixtures(rows, starts[1:], (fold != f)[None], CLUSTERS)[1]
        resp, expected = posteriors(logs)
        np.testing.assert_allclose(density[fold == f], expected[0, fold == f], atol=0.02)
        np.testing.assert_allclose(heldout[fold == f], resp[0, fold == f], atol=0.02)


def test_thin_sheets_are_separated_by_local_sphering() -> None:
    rng = np.random.default_rng(0)
    side = np.arange(400) % 2
    sheets = np.column_stack([10 * rng.standard_normal((400, 3)), 0.1 * rng.standard_normal(400) + 0.6 * side])
    mixed = sheets @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
    mixed = (mixed - mixed.mean(axis=0)) @ sphering(mixed)
    away = sphere_locally(mixed)
    gap, before = (np.abs(np.subtract(*(Z[side == s].mean(axis=0) for s in (0, 1)))).max() for Z in (away, mixed))
    assert gap > max(3.0, before)
    starts, kinds = Starts(mixed)(2)
    assert kinds == [0, 1, 2]
    labels = starts.argmax(axis=2)
    assert adjusted_rand_score(side, labels[2]) > 0.9 > adjusted_rand_score(side, labels[0])


@pytest.mark.parametrize("kinds", [(0,), (1,), (0, 2), (0, 1, 2)])
def test_starts_have_the_number_of_groups_that_is_asked_for(kinds: tuple[int, ...]) -> None:
    starts = Starts(np.random.default_rng(0).standard_normal((40, 8)), kinds=kinds)
    for k in (2, 7):
        resp, found = starts(k)
        assert tuple(found) == kinds
        assert {len(np.unique(one)) for one in resp.argmax(axis=2)} == {k}
    # There are no 41 groups of 40 rows, and an arbitrary start.
    assert starts(41)[0].shape == (1, 40, 41)


@pytest.mark.parametrize(
    "rows", [np.zeros((60, 3)), np.zeros((3, 2)), np.random.default_rng(0).standard_normal((12, 8)), np.ones((40, 0))]
)
def test_odd_rows_have_a_mixture(rows: np.ndarray) -> None:
    found = select_mixture(lambda q: numeric_rows(rows), rows, [max(1, rows.shape[1])])
    assert found.resp.shape == (len(rows), found.n_components)
    np.testing.assert_allclose(found.resp.sum(axis=1), 1.0)


def test_folds_are_equal_and_differ_by_seed() -> None:
    fold = folds(100, 3)
    assert sorted(np.bincount(fold)) == [33, 33, 34]
    np.testing.assert_array_equal(fold, folds(100, 3))
    assert (fold != folds(100, 3, 101)).any()
