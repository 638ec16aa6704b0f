"""Is it structure: clusters are, noise is not whatever its columns, nor are values with their correlations alone."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from imapce import IMAPCE, Exploration
from imapce.clusters.structure import SameColumns, deepest_valley, middle_gain, valley_z
from imapce.plotting.steps import plot_proposal

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


def test_drawn_tables_keep_values_and_correlations_and_lose_the_clusters() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4)) + 4 * np.array([[1, 1, 0, 0], [-1, 1, 0, 0], [0, -1, 0, 0]])[np.arange(400) % 3]
    drawn = SameColumns(X).draw(0)
    np.testing.assert_array_equal(np.sort(drawn, axis=0), np.sort(X, axis=0))
    np.testing.assert_allclose(np.corrcoef(drawn.T), np.corrcoef(X.T), atol=0.15)
    np.testing.assert_array_equal(drawn, SameColumns(X).draw(0))
    assert middle_gain(X, 3, 4.0) > middle_gain(drawn, 3, 4.0) + 0.1


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
