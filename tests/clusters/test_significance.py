"""Is it structure: clusters are, noise is not whatever its columns, nor are values with their correlations alone."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from imapce.clusters.space import Space
from imapce.clusters.structure import SameColumns, SameDistances, SameScores, Split, gain_of, judge, normal_scores
from imapce.clusters.valleys import deepest_valley, valley_z
from sklearn.metrics import adjusted_rand_score

from imapce import IMAPCE, Exploration
from imapce.clusters.mixture import choose
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


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", NOISE)
def test_noise_of_any_kind_is_one_group(kind: str, seed: int) -> None:
    X = NOISE[kind](np.random.default_rng([seed, 5]), (300, 6))
    exploration = Exploration(X, estimator=IMAPCE(alpha=1.0, mu=50.0, n_starts=2), random_state=0).run()
    assert exploration.steps == []
    assert exploration.stop_reason is not None
    assert exploration.stop_reason.startswith("No structure beyond chance: ")
    assert "; the 300 rows are one group." in exploration.stop_reason
    step = exploration.propose()
    assert step.structure is not None
    assert step.structure == exploration.structure
    assert step.structure.verdict == "none"
    assert step.most_distinct == ()


def test_rows_that_are_one_group_may_still_be_taken_by_hand() -> None:
    X = np.random.default_rng(0).standard_normal((120, 4))
    exploration = Exploration(X, estimator=IMAPCE(alpha=1.0, mu=50.0, n_starts=2), random_state=0).run()
    exploration.accept(mask=np.arange(40))
    assert not exploration.done
    assert exploration.run().stop_reason is not None
    assert len(exploration.steps) == 1


@pytest.mark.parametrize("shape", ["normal", "exponential", "uniform"])
def test_a_cloud_with_one_peak_has_no_valley(shape: str) -> None:
    x = getattr(np.random.default_rng(0), shape)(size=1000)
    assert valley_z(x) < 3
    assert valley_z(np.append(x, x + 20 * x.std())) > 9
    assert valley_z(np.ones(50)) == 0.0


def test_a_branch_of_clusters_may_have_the_valley_that_none_of_them_has() -> None:
    rng = np.random.default_rng(0)
    side = np.repeat([0, 1], 300)
    rows = rng.standard_normal((600, 3)) + 7 * side[:, None]
    pieces = 2 * side + (rows[:, 1] - 7 * side > 0)
    assert deepest_valley(rows, pieces) > 6
    assert deepest_valley(rows, np.zeros(600, dtype=int)) == 0.0


def space_of(table: Any) -> Space:
    reader, matrix = Reader.learn(table, missing="mean")
    problem = pose(open_rows(matrix), [], reader, n_components=2, missing="mean")
    return Space.of(problem, np.ones(len(matrix), dtype=bool))


def test_drawn_tables_keep_values_and_correlations_and_lose_the_clusters() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4)) + 4 * np.array([[1, 1, 1, 0], [-1, 1, 0, 1], [0, -1, 1, 1]])[np.arange(400) % 3]
    space = space_of(X)
    found = choose(space.cells, space.points)
    null = SameColumns(space)
    drawn = null.draw(0)[0]
    np.testing.assert_array_equal(np.sort(drawn, axis=0), np.sort(null.given[0], axis=0))
    scores = [np.corrcoef(normal_scores(table).T) for table in (drawn, null.given[0])]
    np.testing.assert_allclose(*scores, atol=0.15)
    np.testing.assert_array_equal(drawn, SameColumns(space).draw(0)[0])
    for kind in (SameColumns, SameScores, SameDistances):
        gains = [gain_of(*space.like(*table), found) for table in (kind(space).given, kind(space).draw(0))]
        assert gains[0] > gains[1] + 0.1


def test_tables_with_the_same_distances_have_them_and_the_covariance() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 3)) * rng.gamma(2, size=(500, 1))
    null = SameDistances(space_of(X))
    numbers, drawn = null.given[0], null.draw(0)[0]
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(numbers.T), atol=0.3)

    def distances(table: np.ndarray) -> np.ndarray:
        away = table - numbers.mean(axis=0)
        return np.sort(np.einsum("ij,ij->i", away, np.linalg.solve(np.cov(numbers.T, bias=True), away.T).T))

    np.testing.assert_allclose(distances(drawn), distances(numbers), rtol=1e-6)


def test_whole_categories_are_drawn_with_their_holes() -> None:
    rng = np.random.default_rng(0)
    colour = pd.Categorical(np.array(["red", "green", "blue", None], dtype=object)[rng.integers(0, 4, 300)])
    space = space_of(pd.DataFrame({"colour": colour, "a": rng.standard_normal(300), "b": rng.random(300) < 0.3}))
    null = SameColumns(space)
    numbers, levels = null.draw(0)
    np.testing.assert_array_equal(np.sort(levels, axis=0), np.sort(null.given[1], axis=0))
    assert np.mean(levels[:, 0] == -1) == pytest.approx(np.mean(colour.codes == -1))
    cells = space.like(numbers, levels)[1]
    # Every category is one level or none.
    for block in range(2):
        assert set(cells.flags[:, cells.blocks == block].sum(axis=1)) <= {0.0, 1.0}
    assert cells.flags[:, cells.blocks == 0].sum() == np.count_nonzero(colour.codes >= 0)


def test_scores_do_not_depend_on_the_scale_of_columns() -> None:
    X = np.random.default_rng(0).standard_normal((100, 3))
    np.testing.assert_allclose(normal_scores(X), normal_scores(np.exp(5 * X)))


def verdict_of(table: Any) -> str:
    exploration = Exploration(table, estimator=IMAPCE(alpha=1.0, mu=50.0, n_starts=2, missing="mean"), random_state=0)
    exploration.propose()
    assert exploration.structure is not None
    return exploration.structure.verdict


def test_one_column_with_two_peaks_is_no_structure_and_that_is_said() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    X[:200, 2] += 8
    exploration = Exploration(X, random_state=0)
    exploration.propose()
    assert exploration.structure is not None
    assert exploration.structure.verdict == "none"
    assert "one column alone tells groups apart" in exploration.structure.words


@pytest.mark.parametrize("seed", range(3))
def test_a_curve_is_perhaps_structure_with_the_reason(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(500)
    X = np.column_stack([x, x**2 + 0.5 * rng.standard_normal(500)])
    space = space_of(X)
    found = choose(space.cells, space.points)
    told = judge(space, found, found.labels)
    assert told.verdict == "perhaps"
    assert "it may be a curve or a gradient" in told.words
    assert [one.p_value <= 0.1 for one in told.evidence[1:]] == [True, True, True]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_levels", [2, 3, 7])
def test_independent_categories_are_no_structure(n_levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = {f"c{j}": pd.Categorical(rng.integers(0, n_levels, 400).astype(str)) for j in range(6)}
    assert verdict_of(pd.DataFrame(table)) == "none"
    beside = {f"x{j}": rng.standard_normal(400) for j in range(4)}
    assert verdict_of(pd.DataFrame({"c": table["c0"], **beside})) == "none"


def test_categories_that_go_together_are_clear() -> None:
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
    rng = np.random.default_rng(0)
    shape = (400, 12)
    X = {
        "sparse": np.where(rng.random(shape) < 0.05, rng.standard_normal(shape), 0.0),
        "counts": rng.poisson(1.0, shape).astype(float),
        "heaps": np.where(rng.random(shape) < 0.5, rng.lognormal(size=shape), 0.0),
    }[kind]
    assert verdict_of(X) == "none"


def test_a_split_tells_its_sizes() -> None:
    assert Split(np.full(4, -1)).words == "0 groups of 0 rows"
    assert Split(np.repeat(np.arange(10), 2)).words == "10 groups of 2, 2, 2, 2, 2, 2, 2, 2, … rows"


@pytest.mark.parametrize("clear", [True, False])
def test_the_page_and_the_figure_say_how_clear_it_is(clear: bool, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((150, 4)) + clear * 9 * np.eye(3, 4)[np.arange(150) % 3]
    exploration = Exploration(X, estimator=IMAPCE(alpha=1.0, mu=50.0, n_starts=2), random_state=0)
    title = plot_proposal(exploration.propose()).axes[0].get_title(loc="left")
    exploration.run().report(tmp_path / "page.html")
    page = html.unescape((tmp_path / "page.html").read_text())
    structure = exploration.structure
    assert structure is not None
    assert structure.words in page.replace("\N{NO-BREAK SPACE}", " ")
    assert ("no structure beyond chance" in title) is not clear
    assert ("No structure beyond chance: " in page) is not clear
    assert ("Is there structure at all? Yes, clearly: " in page) is clear
    assert ("one group" in page) is not clear
