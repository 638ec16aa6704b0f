"""Evidence for structure: clusters have it; noise, correlated columns, curves and rounded values have not."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from imapce import IMAPCE, Exploration
from imapce.clusters import significance
from imapce.clusters.axes import Sample, draw_sample
from imapce.clusters.selection import Selection, select_mixture
from imapce.clusters.significance import NULL_MODELS, OUTLIER, Structure, assess_structure, normal_scores, null_tables
from imapce.plotting.steps import plot_proposal
from imapce.priors.problem import pose
from imapce.rows.open import open_rows
from imapce.tables.reader import Reader

NOISE: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "gauss": lambda rng, shape: rng.standard_normal(shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "t3": lambda rng, shape: rng.standard_t(3, shape),
}


def explored(table: Any) -> Exploration:
    """Only the evidence is needed, so α and μ are given."""
    estimator = IMAPCE(alpha=1.0, mu=50.0, n_starts=2, missing="mean")
    exploration = Exploration(table, estimator=estimator, random_state=0)
    exploration.propose()
    return exploration


def verdict_of(table: Any) -> str:
    structure = explored(table).structure
    assert structure is not None
    return structure.verdict


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", NOISE)
def test_noise_of_any_kind_has_no_structure_and_that_is_said(kind: str, seed: int) -> None:
    X = NOISE[kind](np.random.default_rng([seed, 5]), (300, 6))
    exploration = Exploration(X, estimator=IMAPCE(alpha=1.0, mu=50.0, n_starts=2), random_state=0).run()
    assert exploration.steps == []
    assert exploration.stop_reason is not None
    assert exploration.stop_reason.startswith("No structure beyond chance: ")
    assert "; the 300 rows are one group." in exploration.stop_reason
    step = exploration.propose()
    assert step.structure == exploration.structure
    assert step.structure is not None
    assert step.structure.verdict == "none"
    assert step.most_distinct == ()


def test_rows_without_structure_may_still_be_accepted_by_hand() -> None:
    X = np.random.default_rng(0).standard_normal((120, 4))
    exploration = Exploration(X, estimator=IMAPCE(alpha=1.0, mu=50.0, n_starts=2), random_state=0).run()
    exploration.accept(mask=np.arange(40))
    assert not exploration.done
    assert exploration.run().stop_reason is not None
    assert len(exploration.steps) == 1


# --- null tables ------------------------------------------------------------------------------------------------------


def sample_of(table: Any) -> Sample:
    reader, matrix = Reader.learn(table, missing="mean")
    problem = pose(open_rows(matrix), [], reader, n_components=2, missing="mean")
    return draw_sample(problem, np.ones(len(matrix), dtype=bool))


def selected(sample: Sample, **options: int) -> Selection:
    return select_mixture(sample.coordinates, sample.points, sample.axis_counts, sample.settings, **options)


def three(n: int = 400) -> np.ndarray:
    groups = 4 * np.array([[1, 1, 1, 0], [-1, 1, 0, 1], [0, -1, 1, 1]])
    return np.random.default_rng(0).standard_normal((n, 4)) + groups[np.arange(n) % 3]


@pytest.mark.parametrize("model", NULL_MODELS)
def test_null_tables_lose_the_clusters(model: Any) -> None:
    sample = sample_of(three())
    found = selected(sample)
    tables = [*islice(null_tables(sample, np.arange(400), model), 3)]
    gain, *others = (significance._gain_of(table, sample, found, (101,)) for table in tables)
    assert gain > max(others) + 0.1
    again = [*islice(null_tables(sample, np.arange(400), model), 3)]
    np.testing.assert_array_equal(tables, again)
    assert (tables[1] != tables[2]).any()


def test_tables_with_the_same_columns_draw_decorrelated_columns() -> None:
    sample = sample_of(three())
    given, drawn = islice(null_tables(sample, np.arange(400), "columns"), 2)
    np.testing.assert_array_equal(given, sample.residuals)
    np.testing.assert_allclose(np.cov(drawn.T, bias=True), np.cov(given.T, bias=True), atol=0.15)
    assert np.abs(np.corrcoef(given.T) - np.eye(4)).max() > 0.2
    # Values are those of no column, since the columns are correlated.
    assert not np.allclose(np.sort(drawn, axis=0), np.sort(given, axis=0))
    skewed = np.random.default_rng(0).lognormal(size=(400, 3))
    given, drawn = islice(null_tables(sample_of(skewed), np.arange(400), "columns"), 2)
    correlations = [np.corrcoef(np.sort(drawn[:, j]), np.sort(given[:, j]))[0, 1] for j in range(3)]
    assert min(correlations) > 0.98


def test_columns_with_a_spike_keep_their_values() -> None:
    X = three()
    X[np.random.default_rng(1).random(400) < 0.4, 1] = 0.0
    sample = sample_of(X)
    assert sample.roles.has_spike.tolist() == [False, True, False, False]
    given, drawn = islice(null_tables(sample, np.arange(400), "columns"), 2)
    np.testing.assert_allclose(np.sort(drawn[:, 1]), np.sort(given[:, 1]))
    assert not np.allclose(np.sort(drawn[:, 0]), np.sort(given[:, 0]))


def test_tables_with_the_same_distances_have_them_and_the_covariance() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 3)) * rng.gamma(2, size=(500, 1))
    X = np.column_stack([X, X.sum(axis=1)])
    given, drawn = islice(null_tables(sample_of(X), np.arange(500), "distances"), 2)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(given.T), atol=0.3)

    def distances(table: np.ndarray) -> np.ndarray:
        away = table - given.mean(axis=0)
        return np.sort(np.einsum("ij,ij->i", away @ np.linalg.pinv(np.cov(given.T, bias=True), rcond=1e-9), away))

    np.testing.assert_allclose(distances(drawn), distances(given), rtol=1e-6)


@pytest.mark.parametrize("model", NULL_MODELS)
def test_whole_categories_are_drawn_with_their_missing_levels(model: Any) -> None:
    rng = np.random.default_rng(0)
    color = pd.Categorical(np.array(["red", "green", "blue", None], dtype=object)[rng.integers(0, 4, 300)])
    frame = pd.DataFrame({"color": color, "a": rng.standard_normal(300), "b": rng.random(300) < 0.3})
    sample = sample_of(frame)
    tables = islice(null_tables(sample, np.arange(300), model), 2)
    before, drawn = (sample.coordinates(1, table) for table in tables)
    np.testing.assert_array_equal(drawn.levels.sum(axis=0), before.levels.sum(axis=0))
    for block in range(2):
        # Every row has one level of each category or none.
        assert set(drawn.levels[:, drawn.blocks == block].sum(axis=1)) <= {0.0, 1.0}
    assert drawn.levels[:, drawn.blocks == 0].sum() == np.count_nonzero(color.codes >= 0)
    assert (drawn.levels != before.levels).any()


@pytest.mark.parametrize("model", NULL_MODELS)
def test_missing_values_stay_missing_in_null_tables(model: Any) -> None:
    X = three()
    X[np.random.default_rng(1).random(400) < 0.3, 1] = np.nan
    sample = sample_of(pd.DataFrame(X, columns=list("abcd")))
    given, drawn = islice(null_tables(sample, np.arange(400), model), 2)
    # Missing values are the most common ones.
    is_missing = [
        np.isclose(table[:, 1], np.median(given[np.isnan(X[sample.positions, 1]), 1])) for table in (given, drawn)
    ]
    assert [mask.sum() for mask in is_missing] == [np.isnan(X).sum()] * 2
    assert (is_missing[0] != is_missing[1]).any()


def test_normal_scores_do_not_depend_on_the_scale_of_columns() -> None:
    X = np.random.default_rng(0).standard_normal((100, 3))
    np.testing.assert_allclose(normal_scores(X), normal_scores(np.exp(5 * X)))


# --- the verdict ------------------------------------------------------------------------------------------------------

GROUPS, STABLE = np.array([0, 1, 2]), np.ones(3)


@pytest.mark.parametrize(
    ("p_values", "groups", "stability", "verdict"),
    [
        ({"distances": 0.001, "columns": 0.005}, GROUPS, STABLE, "clear"),
        ({"distances": 0.02, "columns": 0.005}, GROUPS, STABLE, "possible"),
        ({"distances": 0.08, "columns": 0.005}, GROUPS, STABLE, "none"),
        ({"distances": 0.001, "columns": 0.03}, GROUPS, STABLE, "possible"),
        ({"distances": 0.001, "columns": 0.03}, np.zeros(3, dtype=int), STABLE, "none"),
        ({"distances": 0.001, "columns": 0.03}, GROUPS, np.array([1.0, 0.4, 0.4]), "none"),
        ({"distances": 0.001, "columns": 0.08}, GROUPS, STABLE, "none"),
        ({"distances": 0.001, "columns": 0.005}, np.zeros(3, dtype=int), STABLE, "possible"),
        ({"distances": 0.001, "columns": 0.005}, GROUPS, np.array([1.0, 0.4, 0.4]), "possible"),
        ({"distances": 0.001, "columns": 0.005}, GROUPS, np.array([1.0, 0.5, 0.4]), "clear"),
        ({"distances": 0.001, "columns": 0.005}, GROUPS, np.array([0.1, 0.4, 0.4]), "none"),
        # Two stable clusters of one group are one group.
        ({"distances": 0.001, "columns": 0.005}, np.array([0, 0, 1]), np.array([1.0, 1.0, 0.4]), "possible"),
    ],
)
def test_the_verdict_follows_from_p_values_groups_and_stability(
    p_values: dict[str, float],
    groups: np.ndarray,
    stability: np.ndarray,
    verdict: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sample = sample_of(three())
    found = selected(sample, n_components=3)
    monkeypatch.setattr(significance, "_test_against", lambda s, f, model, progress: (2.0, p_values[model]))
    structure = assess_structure(sample, found, groups, stability)
    assert structure.verdict == verdict
    assert structure.is_taken is (verdict != "none")
    assert {one.against for one in structure.evidence} <= set(NULL_MODELS.values())
    if stability.max() < 0.5:
        assert structure.reason == "no cluster reappears in half of the resamples"
    elif verdict == "none":
        assert f"show as much (p = {max(one.p_value for one in structure.evidence):.2g})" in structure.reason
    else:
        assert "p = " in structure.reason
        assert ("a continuum" in structure.reason) is not bool(groups.any())
    nothing = assess_structure(sample, replace(found, gain=0.0), groups, stability)
    assert nothing == Structure("none", "a mixture explains held-out rows no better than one component")


@pytest.mark.parametrize("position", [0, 2])
def test_one_bimodal_column_among_noise_is_no_structure(position: int) -> None:
    X = np.random.default_rng(0).standard_normal((400, 5))
    X[:200, position] += 8
    structure = explored(X).structure
    assert structure is not None
    assert structure.verdict == "none"
    assert " and correlations show as much (p = " in structure.reason


def test_a_curve_is_possible_structure_in_most_draws() -> None:
    verdicts = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(500)
        verdicts.append(verdict_of(np.column_stack([x, x**2 + 0.5 * rng.standard_normal(500)])))
    # An end of the curve may hardly overlap with the rest.
    assert verdicts.count("possible") >= 4


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_levels", [2, 3, 7])
def test_independent_categories_are_no_structure(n_levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = {f"c{j}": pd.Categorical(rng.integers(0, n_levels, 400).astype(str)) for j in range(6)}
    assert verdict_of(pd.DataFrame(table)) == "none"
    beside = {f"x{j}": rng.standard_normal(400) for j in range(4)}
    assert verdict_of(pd.DataFrame({"c": table["c0"], **beside})) == "none"


def test_categories_that_go_together_are_clear_structure() -> None:
    rng = np.random.default_rng(0)
    kind = np.arange(300) % 3
    columns = {}
    for j in range(6):
        level = np.where(rng.random(300) < 0.8, kind, rng.integers(0, 3, 300))
        columns[f"c{j}"] = pd.Categorical(level.astype(str))
    exploration = Exploration(pd.DataFrame(columns), random_state=0).run()
    assert exploration.structure is not None
    assert exploration.structure.verdict == "clear"
    assert adjusted_rand_score(kind, exploration.labels_) > 0.9


@pytest.mark.parametrize("kind", ["sparse", "counts", "heaps"])
def test_columns_with_heaps_of_one_value_are_no_structure(kind: str) -> None:
    rng = np.random.default_rng(1)
    shape = (400, 12)
    X = {
        "sparse": np.where(rng.random(shape) < 0.05, rng.standard_normal(shape), 0.0),
        "counts": rng.poisson(1.0, shape).astype(float),
        "heaps": np.where(rng.random(shape) < 0.5, rng.lognormal(size=shape), 0.0),
    }[kind]
    assert verdict_of(X) == "none"


# --- words ------------------------------------------------------------------------------------------------------------


def test_sizes_are_those_of_the_best_clusters_the_largest_first() -> None:
    assert Structure("none", "no").sizes == []
    assert Structure("none", "no", candidate=np.full(4, OUTLIER)).sizes == []
    assert Structure("none", "no", candidate=np.array([2, 0, 0, OUTLIER, 2, 2])).sizes == [3, 2]


@pytest.mark.parametrize("clear", [True, False])
def test_the_page_and_the_figure_say_how_clear_it_is(clear: bool, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((150, 4)) + clear * 9 * np.eye(3, 4)[np.arange(150) % 3]
    exploration = Exploration(X, estimator=IMAPCE(alpha=1.0, mu=50.0, n_starts=2), random_state=0)
    title = plot_proposal(exploration.propose()).axes[0].get_title(loc="left")
    exploration.run().report(tmp_path / "page.html")
    page = html.unescape((tmp_path / "page.html").read_text())
    structure = exploration.structure
    assert structure is not None
    assert structure.reason in page.replace("\N{NO-BREAK SPACE}", " ")
    assert ("no structure beyond chance" in title) is not clear
    assert ("No structure beyond chance: " in page) is not clear
    assert ("Is there structure at all? Yes, clearly: " in page) is clear
    assert ("one group" in page) is not clear
