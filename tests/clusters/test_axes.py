"""Coordinates of the mixture: roles of columns, dequantization, the edge of the noise, maps to other rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from imapce import Attributes
from imapce.clusters.axes import (
    LEAST_TILT,
    ColumnRoles,
    CoordinateMap,
    Sample,
    dequantized,
    draw_sample,
    noise_free_axes,
)
from imapce.common.settings import SETTINGS
from imapce.priors.problem import pose
from imapce.rows.open import open_rows
from imapce.rows.standardized import StandardizedRows
from imapce.tables.reader import Reader

RNG = np.random.default_rng(0)


def sample_of(table: Any, prior: Any = ()) -> Sample:
    reader, matrix = Reader.learn(table, missing="mean")
    problem = pose(open_rows(matrix), list(prior), reader, n_components=2, missing="mean", explain=bool(prior))
    return draw_sample(problem, np.ones(len(matrix), dtype=bool))


def mixed_table(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    gaps = np.where(rng.random(n) < 0.2, np.nan, rng.standard_normal(n))
    color = np.array(["red", "green", "blue"])[rng.integers(0, 3, n)]
    return pd.DataFrame(
        {"color": color, "a": rng.standard_normal(n), "gaps": gaps, "flag": rng.random(n) < 0.3, "b": rng.random(n)}
    )


def test_columns_are_numeric_partial_or_levels_of_a_category() -> None:
    table = mixed_table()
    sample = sample_of(table)
    assert (sample.roles.numeric.sum(), sample.roles.partial.sum()) == (2, 1)
    assert np.bincount(sample.roles.blocks).tolist() == [3, 2]
    rows = sample.coordinates(2)
    color, flag = (rows.levels[:, rows.blocks == block] for block in range(2))
    original = table.iloc[sample.positions]
    np.testing.assert_array_equal(np.isnan(rows.partial[:, 0]), original["gaps"].isna())
    np.testing.assert_array_equal(color, pd.get_dummies(original["color"]).to_numpy(float))
    np.testing.assert_array_equal(flag, np.column_stack([~original["flag"], original["flag"]]))
    np.testing.assert_allclose(np.cov(rows.numeric.T, bias=True), np.eye(2), atol=1e-8)


def test_rows_with_a_missing_category_have_none_of_its_levels() -> None:
    table = mixed_table()
    table.loc[:29, "color"] = None
    sample = sample_of(table)
    is_missing = sample.positions < 30
    levels = sample.coordinates(2).levels[:, sample.roles.blocks == 0]
    np.testing.assert_array_equal(levels.sum(axis=1), ~is_missing)


def test_rounded_columns_are_dequantized_and_missing_cells_are_not() -> None:
    values = np.column_stack([RNG.integers(0, 6, 400) * 0.5, RNG.integers(0, 4, 400), RNG.integers(0, 2, 400)])
    values[:50, 1] = 1.75
    missing = np.array([np.nan, 1.75, np.nan])
    roles = ColumnRoles.learn(values, np.arange(3), missing)
    assert (roles.numeric.tolist(), roles.partial.tolist()) == ([True, False, False], [False, True, False])
    changed = dequantized(values, roles, missing)
    for column, step in ((0, 0.5), (1, 1.0)):
        has_value = values[:, column] != missing[column]
        noise = (changed - values)[has_value, column]
        assert np.abs(noise).max() <= step / 2
        # As variable as uniform noise of this width: no value is left alone.
        assert noise.std() == pytest.approx(step / np.sqrt(12), rel=0.1)
        np.testing.assert_array_equal(changed[~has_value, column], values[~has_value, column])
    np.testing.assert_array_equal(changed[:, 2], values[:, 2])
    np.testing.assert_array_equal(changed, dequantized(values, roles, missing))


def signal_and_noise(n: int, d: int, scales: list[float]) -> tuple[StandardizedRows, np.ndarray]:
    """Gaussian noise plus signal of these standard deviations along orthonormal axes."""
    rng = np.random.default_rng(0)
    loadings = np.linalg.qr(rng.standard_normal((d, len(scales))))[0]
    X = rng.standard_normal((n, len(scales))) * scales @ loadings.T + rng.standard_normal((n, d))
    return StandardizedRows(open_rows(X)), loadings


def test_leading_axes_of_many_columns_contain_the_signal() -> None:
    rows, loadings = signal_and_noise(200, 800, [20.0, 16.0, 12.0])
    axes = noise_free_axes(rows.second_moment, 200, rows.rows.resolution, 100)
    np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-9)
    assert np.linalg.norm(axes[:, :3].T @ loadings, axis=0).min() > 0.9


@pytest.mark.parametrize(("n", "d", "scales"), [(200, 800, []), (1500, 300, []), (200, 800, [8.0, 7.0, 6.0])])
def test_axes_of_noise_are_below_the_edge(n: int, d: int, scales: list[float]) -> None:
    rows, _ = signal_and_noise(n, d, scales)
    axes = noise_free_axes(rows.second_moment, n, rows.rows.resolution, 100)
    assert axes.shape[1] <= max(2, len(scales)) + 1


def test_few_columns_keep_all_axes_that_vary() -> None:
    X = RNG.standard_normal((200, 6))
    rows = StandardizedRows(open_rows(np.column_stack([X, X[:, 0]])))
    assert noise_free_axes(rows.second_moment, 200, rows.rows.resolution, 100).shape == (7, 6)


@pytest.mark.parametrize("has_prior", [False, True])
def test_the_map_gives_the_coordinates_of_the_sample(has_prior: bool) -> None:
    table = mixed_table().assign(dose=np.random.default_rng(1).standard_normal(300))
    reader, matrix = Reader.learn(table, missing="mean")
    rows, prior = open_rows(matrix), [Attributes(["dose"])] if has_prior else []
    problem = pose(rows, prior, reader, n_components=2, missing="mean", explain=has_prior)
    sample = draw_sample(problem, np.ones(300, dtype=bool))
    if has_prior:
        sample = replace(sample, effect=RNG.standard_normal(sample.effect.shape) * 0.1)
    expected = sample.coordinates(2)
    found = CoordinateMap.from_sample(sample, 2)(rows).take(sample.positions)
    # Noise as wide as the smallest difference in a column is in the sample alone.
    for name in ("numeric", "partial", "levels"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=2e-3)
    assert (found.tilt is None) is not has_prior
    if found.tilt is not None and expected.tilt is not None:
        np.testing.assert_allclose(found.tilt, expected.tilt, atol=1e-6)


def test_a_tilt_is_the_share_of_a_level_given_the_covariates() -> None:
    rng = np.random.default_rng(0)
    dose = rng.integers(0, 2, 1000)
    flag = rng.random(1000) < np.where(dose, 0.8, 0.2)
    sample = sample_of(pd.DataFrame({"dose": dose, "flag": flag, "x": rng.standard_normal(1000)}), [Attributes([0])])
    B = np.linalg.lstsq(np.column_stack([np.ones(1000), sample.covariates]), sample.values, rcond=None)[0][1:]
    rows = replace(sample, effect=B).coordinates(1)
    is_flag = sample.roles.blocks == sample.roles.blocks[-1]
    own, tilt = flag[sample.positions], rows.tilt
    assert tilt is not None
    for value in (0, 1):
        some = dose[sample.positions] == value
        share = own[some].mean()
        expected = [(1 - share) / (1 - own.mean()), share / own.mean()]
        np.testing.assert_allclose(tilt[some][:, is_flag].mean(axis=0), expected, atol=0.02)
    strong = replace(sample, effect=20 * B).coordinates(1).tilt
    assert strong is not None
    assert strong.min() == LEAST_TILT


def test_numbers_of_axes_are_limited_by_rows_and_columns() -> None:
    sample = sample_of(RNG.standard_normal((400, 50)))
    assert sample.axis_counts == [400 // SETTINGS.clusters.rows_per_axis]
    few = replace(sample, settings=replace(SETTINGS.clusters, axes=(5, 10), most_axes=20, rows_per_axis=5))
    assert few.axis_counts == [5, 10, 20]
